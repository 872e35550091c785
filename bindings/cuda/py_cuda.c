/* CUDA for lucid/cuda: devices, streams, events and graphs as plain functions over numbers. A stream or event is the driver's
 * handle, 0 the default stream; a graph is a capsule. */
#include "../py.h"
#include "../../engine/backend/cuda/report.h"

#define FUNCTION(name) static PyObject *name(UNUSED PyObject *module, UNUSED PyObject *args)
#define READ(...)                                                                                                              \
    if (!PyArg_ParseTuple(args, __VA_ARGS__)) return NULL
static PyObject           *done(int rc) { return rc < 0 ? py_raise() : Py_NewRef(Py_None); }
static PyObject           *whether(int rc) { return rc < 0 ? py_raise() : PyBool_FromLong(rc); }
typedef unsigned long long handle;
static void               *at(handle h) { return (void *)(uintptr_t)h; }
static int                 is_open(void) { return lc_backend_of((lc_device){ LC_CUDA, 0 }) ? 0 : -1; }

/* ---- devices ---- */
FUNCTION(synchronize)
{
    int device;
    READ("i", &device);
    return done(lc_device_synchronize((lc_device){ LC_CUDA, (int8_t)device }));
}
FUNCTION(info)
{
    lc_cuda_info i;
    int          device;
    READ("i", &device);
    if (is_open() < 0 || lc_cuda_device_info(device, &i) < 0) return py_raise();
    return Py_BuildValue("{sssLsisisisisisisisisisisisisisisisisisisi sy#}", "name", i.name, "total_memory",
                         (long long)i.total_memory, "major", i.major, "minor", i.minor, "multi_processor_count", i.processors,
                         "max_threads_per_multi_processor", i.threads_per_processor, "L2_cache_size", i.l2_bytes, "driver",
                         i.driver, "warp_size", i.warp, "max_threads_per_block", i.threads_per_block, "shared_memory_per_block",
                         i.shared_per_block, "shared_memory_per_multiprocessor", i.shared_per_processor,
                         "regs_per_multiprocessor", i.registers_per_processor, "clock_rate", i.clock_khz, "memory_clock_rate",
                         i.memory_clock_khz, "memory_bus_width", i.memory_bus_bits, "is_integrated", i.integrated,
                         "is_multi_gpu_board", i.multi_gpu, "pci_bus_id", i.pci_bus, "pci_device_id", i.pci_device,
                         "pci_domain_id", i.pci_domain, "uuid", (const char *)i.uuid, (Py_ssize_t)sizeof i.uuid);
}
FUNCTION(current_device) { return PyLong_FromLong(lc_cuda_current_device()); }
FUNCTION(set_device)
{
    int device;
    READ("i", &device);
    return done(is_open() < 0 ? -1 : lc_cuda_set_device(device));
}
FUNCTION(can_access)
{
    int device, other, can = 0;
    READ("ii", &device, &other);
    if (is_open() < 0 || lc_cuda_can_access(device, other, &can) < 0) return py_raise();
    return PyBool_FromLong(can);
}
FUNCTION(open_driver)
{
    if (is_open() < 0) return py_raise();
    Py_RETURN_NONE;
}
FUNCTION(initialized) { return PyBool_FromLong(lc_cuda_initialized()); }
FUNCTION(libraries)
{
    char      text[512];
    PyObject *list = PyList_New(0);
    lc_cuda_load_libraries();
    for (int i = 0; list && lc_cuda_library(i, text); i++) {
        PyObject *line = PyUnicode_FromString(text);
        if (!line || PyList_Append(list, line) < 0) Py_CLEAR(list);
        Py_XDECREF(line);
    }
    return list;
}
FUNCTION(set_tf32)
{
    int yes;
    READ("p", &yes);
    lc_cuda_tf32 = yes;
    Py_RETURN_NONE;
}

FUNCTION(set_conv) /* returns what was set before */
{
    struct lc_cuda_conv before = lc_cuda_conv;
    int                 off, ordered, exact;
    READ("ppp", &off, &ordered, &exact);
    lc_cuda_conv = (struct lc_cuda_conv){ off, ordered, exact };
    return Py_BuildValue("(NNN)", PyBool_FromLong(before.off), PyBool_FromLong(before.ordered), PyBool_FromLong(before.exact));
}

/* ---- streams ---- */
FUNCTION(stream_new)
{
    int   device, priority;
    void *stream;
    READ("ii", &device, &priority);
    if (is_open() < 0 || lc_cuda_stream_new(device, priority, &stream) < 0) return py_raise();
    return PyLong_FromVoidPtr(stream);
}
FUNCTION(stream_priority)
{
    int    device;
    handle stream;
    READ("iK", &device, &stream);
    return PyLong_FromLong(lc_cuda_stream_priority(device, at(stream)));
}
FUNCTION(stream_get)
{
    int device;
    READ("i", &device);
    return PyLong_FromVoidPtr(lc_cuda_stream_get(device));
}
#define ON_STREAM(name, call, answer)                                                                                          \
    FUNCTION(name)                                                                                                             \
    {                                                                                                                          \
        int    device;                                                                                                         \
        handle stream;                                                                                                         \
        READ("iK", &device, &stream);                                                                                          \
        return answer(is_open() < 0 ? -1 : call(device, at(stream)));                                                          \
    }
ON_STREAM(stream_set, lc_cuda_stream_set, done)
ON_STREAM(stream_query, lc_cuda_stream_query, whether)
ON_STREAM(stream_wait, lc_cuda_stream_wait, done)
ON_STREAM(stream_captures, lc_cuda_stream_captures, whether)
ON_STREAM(event_query, lc_cuda_event_query, whether)
ON_STREAM(event_wait, lc_cuda_event_wait, done)
FUNCTION(event_free)
{
    int    device;
    handle event;
    READ("iK", &device, &event);
    lc_cuda_event_free(device, at(event));
    Py_RETURN_NONE;
}
FUNCTION(stream_wait_stream)
{
    int    device, other_device;
    handle stream, other;
    READ("iKiK", &device, &stream, &other_device, &other);
    return done(is_open() < 0 ? -1 : lc_cuda_stream_wait_stream(device, at(stream), other_device, at(other)));
}
FUNCTION(stream_wait_event)
{
    int    device;
    handle stream, event;
    READ("iKK", &device, &stream, &event);
    return done(is_open() < 0 ? -1 : lc_cuda_stream_wait_event(device, at(stream), at(event)));
}

/* ---- events ---- */
FUNCTION(event_new)
{
    int   device, times, blocking;
    void *event = NULL;
    READ("ipp", &device, &times, &blocking);
    if (is_open() < 0 || lc_cuda_event_new(device, times, blocking, &event) < 0) return py_raise();
    return PyLong_FromVoidPtr(event);
}
FUNCTION(event_record)
{
    int    device;
    handle event, stream;
    READ("iKK", &device, &event, &stream);
    return done(is_open() < 0 ? -1 : lc_cuda_event_record(device, at(event), at(stream)));
}
FUNCTION(event_time)
{
    int    device;
    handle start, end;
    float  milliseconds = 0;
    READ("iKK", &device, &start, &end);
    if (is_open() < 0 || lc_cuda_event_time(device, at(start), at(end), &milliseconds) < 0) return py_raise();
    return PyFloat_FromDouble(milliseconds);
}

/* ---- graphs ---- */
static const char graph_name[] = "lucid.cuda.graph";
static void      *graph_of(PyObject *capsule) { return PyCapsule_GetPointer(capsule, graph_name); }
static void       graph_end(PyObject *capsule) { lc_cuda_graph_free(graph_of(capsule)); }

FUNCTION(graph_begin)
{
    handle pool;
    int    mode;
    READ("Ki", &pool, &mode);
    void *graph = is_open() < 0 ? NULL : lc_cuda_capture_begin(pool, mode);
    return graph ? PyCapsule_New(graph, graph_name, graph_end) : py_raise();
}
FUNCTION(graph_finish)
{
    void *graph = graph_of(args);
    if (!graph) return NULL;
    return whether(lc_cuda_capture_end(graph));
}
FUNCTION(graph_replay)
{
    void *graph = graph_of(args);
    if (!graph) return NULL;
    return done(lc_cuda_graph_replay(graph));
}
FUNCTION(graph_pool)
{
    void *graph = graph_of(args);
    return graph ? PyLong_FromUnsignedLongLong(lc_cuda_graph_pool(graph)) : NULL;
}
FUNCTION(graph_print)
{
    PyObject   *capsule;
    const char *path;
    READ("Os", &capsule, &path);
    void *graph = graph_of(capsule);
    if (!graph) return NULL;
    return done(lc_cuda_graph_print(graph, path));
}
FUNCTION(capturing) { return PyBool_FromLong(lc_cuda_capturing()); }
FUNCTION(pool_new) { return PyLong_FromUnsignedLongLong(lc_cuda_pool_new()); }

static PyMethodDef functions[] = {
    { "_cuda_synchronize", synchronize, METH_VARARGS, "(device): wait for its work." },
    { "_cuda_info", info, METH_VARARGS, "(device): its properties, as a dict." },
    { "_cuda_current_device", current_device, METH_NOARGS, "What \"cuda\" means to this thread." },
    { "_cuda_set_device", set_device, METH_VARARGS, "(device): what \"cuda\" means from now on." },
    { "_cuda_can_access", can_access, METH_VARARGS, "(device, other): whether one reads the other's memory." },
    { "_cuda_open", open_driver, METH_NOARGS, "Load the driver; raises if there is no device." },
    { "_cuda_initialized", initialized, METH_NOARGS, "Whether the driver was asked for, and is there." },
    { "_cuda_libraries", libraries, METH_NOARGS, "The CUDA libraries that are used, loaded if need be." },
    { "_cuda_set_tf32", set_tf32, METH_VARARGS, "(allowed): whether float32 products may use TF32." },
    { "_cuda_set_conv", set_conv, METH_VARARGS, "(without cuDNN, deterministic, without TF32): how to convolve; how it was." },
    { "_cuda_stream_new", stream_new, METH_VARARGS, "(device, priority): a stream of the pool." },
    { "_cuda_stream_priority", stream_priority, METH_VARARGS, "(device, stream): -1 or 0." },
    { "_cuda_stream_get", stream_get, METH_VARARGS, "(device): this thread's current stream." },
    { "_cuda_stream_set", stream_set, METH_VARARGS, "(device, stream): the current stream from now on." },
    { "_cuda_stream_query", stream_query, METH_VARARGS, "(device, stream): whether its work is done." },
    { "_cuda_stream_wait", stream_wait, METH_VARARGS, "(device, stream): wait for its work." },
    { "_cuda_stream_captures", stream_captures, METH_VARARGS, "(device, stream): whether it is being captured." },
    { "_cuda_stream_wait_stream", stream_wait_stream, METH_VARARGS, "(device, stream, other device, other stream)." },
    { "_cuda_stream_wait_event", stream_wait_event, METH_VARARGS, "(device, stream, event)." },
    { "_cuda_event_new", event_new, METH_VARARGS, "(device, times, blocking): an event." },
    { "_cuda_event_free", event_free, METH_VARARGS, "(device, event)." },
    { "_cuda_event_record", event_record, METH_VARARGS, "(device, event, stream)." },
    { "_cuda_event_query", event_query, METH_VARARGS, "(device, event): whether it has passed." },
    { "_cuda_event_wait", event_wait, METH_VARARGS, "(device, event): wait until it has passed." },
    { "_cuda_event_time", event_time, METH_VARARGS, "(device, start, end): milliseconds between two events." },
    { "_cuda_graph_begin", graph_begin, METH_VARARGS, "(pool, mode): capture what this thread's current stream gets." },
    { "_cuda_graph_finish", graph_finish, METH_O, "(graph): end the capture; True: it is empty." },
    { "_cuda_graph_replay", graph_replay, METH_O, "(graph): run it on the current stream." },
    { "_cuda_graph_pool", graph_pool, METH_O, "(graph): the number of its memory pool." },
    { "_cuda_graph_print", graph_print, METH_VARARGS, "(graph, path): write it as a DOT file." },
    { "_cuda_capturing", capturing, METH_NOARGS, "Whether this thread is capturing a graph." },
    { "_cuda_pool_new", pool_new, METH_NOARGS, "A number for a memory pool that graphs share." },
    { 0 },
};

int py_add_cuda(PyObject *module) { return PyModule_AddFunctions(module, functions) < 0 ? -1 : py_add_cuda_memory(module); }
