/* What lucid/cuda asks of the allocator, and the streams and mappings of tensors. */
#include "../py.h"
#include "../../engine/backend/cuda/report.h"

#define FUNCTION(name) static PyObject *name(UNUSED PyObject *module, UNUSED PyObject *args)
#define READ(...)                                                                                                              \
    if (!PyArg_ParseTuple(args, __VA_ARGS__)) return NULL
static int is_open(void) { return lc_backend_of((lc_device){ LC_CUDA, 0 }) ? 0 : -1; }

FUNCTION(memory_info)
{
    int     device;
    int64_t rest, total;
    READ("i", &device);
    if (is_open() < 0 || lc_cuda_memory_info(device, &rest, &total) < 0) return py_raise();
    return Py_BuildValue("(LL)", (long long)rest, (long long)total);
}

static int put(PyObject *dict, const char *what, const char *pool, const char *part, int64_t n)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s.%s", what, pool, part);
    PyObject *value = PyLong_FromLongLong(n);
    int       rc = value ? PyDict_SetItemString(dict, name, value) : -1;
    return Py_XDECREF(value), rc;
}
FUNCTION(memory_stats) /* PyTorch's names */
{
    static const char *const what[LC_CUDA_COUNTS] = { "allocation",      "segment",
                                                      "active",          "inactive_split",
                                                      "allocated_bytes", "reserved_bytes",
                                                      "active_bytes",    "inactive_split_bytes",
                                                      "requested_bytes" };
    static const char *const pools[LC_CUDA_POOLS] = { "all", "large_pool", "small_pool" };
    lc_cuda_memory_stats     s;
    int                      device, rc = 0;
    READ("i", &device);
    lc_cuda_memory_read(device, &s);
    PyObject *dict =
        Py_BuildValue("{sLsLsLsL}", "num_alloc_retries", (long long)s.retries, "num_ooms", (long long)s.ooms,
                      "num_device_alloc", (long long)s.device_allocations, "num_device_free", (long long)s.device_frees);
    for (int w = 0; dict && w < LC_CUDA_COUNTS; w++)
        for (int p = 0; p < LC_CUDA_POOLS && rc == 0; p++) {
            const lc_cuda_count *c = &s.count[w][p];
            rc = put(dict, what[w], pools[p], "current", c->current) < 0 || put(dict, what[w], pools[p], "peak", c->peak) < 0 ||
                 put(dict, what[w], pools[p], "allocated", c->allocated) < 0 ||
                 put(dict, what[w], pools[p], "freed", c->freed) < 0;
        }
    if (rc) Py_CLEAR(dict);
    return dict;
}
FUNCTION(memory_count) /* (device, which, peak) of one count: what programs ask in loops */
{
    lc_cuda_memory_stats s;
    int                  device, what, peak;
    READ("iip", &device, &what, &peak);
    if (what < 0 || what >= LC_CUDA_COUNTS) return PyErr_Format(PyExc_ValueError, "count %d", what);
    lc_cuda_memory_read(device, &s);
    const lc_cuda_count *c = &s.count[what][LC_CUDA_ALL_POOLS];
    return PyLong_FromLongLong(peak ? c->peak : c->current);
}
FUNCTION(memory_reset)
{
    int device, peaks;
    READ("ip", &device, &peaks);
    lc_cuda_memory_reset(device, peaks);
    Py_RETURN_NONE;
}
FUNCTION(memory_limit)
{
    int    device;
    double fraction;
    READ("id", &device, &fraction);
    if (is_open() < 0 || lc_cuda_memory_limit(device, fraction) < 0) return py_raise();
    Py_RETURN_NONE;
}
FUNCTION(memory_limit_of)
{
    int device;
    READ("i", &device);
    return is_open() < 0 ? py_raise() : PyFloat_FromDouble(lc_cuda_memory_limit_of(device));
}
FUNCTION(memory_blocks)
{
    static const char *const states[] = { "inactive", "active_allocated", "active_pending_free" };
    int                      room = lc_cuda_memory_blocks(NULL, 0) + 64; /* another thread may be allocating */
    lc_cuda_block           *blocks = PyMem_Calloc((size_t)room, sizeof *blocks);
    PyObject                *list = blocks ? PyList_New(0) : PyErr_NoMemory();
    int                      n = list ? lc_cuda_memory_blocks(blocks, room) : 0;
    for (int i = 0; i < n && i < room && list; i++) {
        const lc_cuda_block *b = &blocks[i];
        PyObject            *item =
            Py_BuildValue("(iKLKLLsOKK)", b->device, (unsigned long long)b->segment, (long long)b->segment_bytes,
                          (unsigned long long)b->address, (long long)b->bytes, (long long)b->asked, states[b->state],
                          b->small ? Py_True : Py_False, (unsigned long long)b->stream, (unsigned long long)b->private_pool);
        if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    PyMem_Free(blocks);
    return list;
}
FUNCTION(empty_cache)
{
    lc_cuda_empty_cache();
    Py_RETURN_NONE;
}
FUNCTION(host_empty_cache)
{
    lc_cuda_host_empty_cache();
    Py_RETURN_NONE;
}

/* ---- of tensors ---- */
static lc_tensor *tensor_of(PyObject *o)
{
    if (py_is_tensor(o) && py_tensor(o)->storage) return py_tensor(o);
    return PyErr_Format(PyExc_TypeError, "expected a tensor with memory, got %s", Py_TYPE(o)->tp_name), NULL;
}
FUNCTION(record_stream)
{
    PyObject          *o;
    unsigned long long stream;
    READ("OK", &o, &stream);
    lc_tensor *t = tensor_of(o);
    if (!t) return NULL;
    if (t->device.kind == LC_CUDA && lc_cuda_record_stream(t->storage, (void *)(uintptr_t)stream) < 0) return py_raise();
    Py_RETURN_NONE;
}
FUNCTION(register_host)
{
    lc_tensor *t = tensor_of(args);
    if (!t) return NULL;
    if (t->device.kind != LC_CPU) return PyErr_Format(PyExc_ValueError, "expected a tensor in CPU memory");
    if (t->storage->pinned || !t->storage->bytes) Py_RETURN_NONE;
    if (is_open() < 0 || lc_cuda_register_host(t->storage) < 0) return py_raise();
    Py_RETURN_NONE;
}
FUNCTION(map_host)
{
    PyObject *o;
    int       device;
    READ("Oi", &o, &device);
    lc_tensor *t = tensor_of(o), *seen = NULL;
    if (!t) return NULL;
    if (t->device.kind != LC_CPU || !t->storage->pinned)
        return PyErr_Format(PyExc_ValueError, "expected a tensor in page-locked CPU memory");
    lc_storage *s = is_open() < 0 ? NULL : lc_cuda_map_host(t->storage, device);
    if (s) seen = lc_tensor_on(s, (lc_dtype)t->dtype, t->ndim, t->shape, t->stride, lc_storage_offset(t));
    lc_storage_release(s);
    return seen ? py_wrap(seen) : py_raise();
}

static void drop_owner(lc_storage *s)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    Py_DECREF((PyObject *)s->owner);
    PyGILState_Release(lock);
}
FUNCTION(
    adopt) /* (owner, address, device or -1, dtype, shape, strides in elements, read_only): a tensor on another library's memory */
{
    PyObject          *owner, *type, *shape, *strides;
    unsigned long long address;
    int                device, read_only;
    lc_dtype           dtype;
    int64_t            sizes[LC_MAX_DIMS], steps[LC_MAX_DIMS], last = 1;
    READ("OKiOO!O!p", &owner, &address, &device, &type, &PyTuple_Type, &shape, &PyTuple_Type, &strides, &read_only);
    Py_ssize_t n = PyTuple_GET_SIZE(shape);
    if (py_convert_dtype(type, &dtype) != 1) return PyErr_Format(PyExc_TypeError, "expected a dtype");
    if (n > LC_MAX_DIMS || PyTuple_GET_SIZE(strides) != n) return PyErr_Format(PyExc_ValueError, "malformed geometry");
    for (Py_ssize_t d = 0; d < n; d++) {
        if (py_convert_int(PyTuple_GET_ITEM(shape, d), &sizes[d]) != 1 ||
            py_convert_int(PyTuple_GET_ITEM(strides, d), &steps[d]) != 1 || sizes[d] < 0 || (steps[d] < 0 && sizes[d] > 1))
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "sizes and strides must not be negative");
        last = sizes[d] == 0 ? 0 : last == 0 ? 0 : last + (sizes[d] - 1) * steps[d];
    }
    void *at = (void *)(uintptr_t)address;
    if (is_open() < 0) return py_raise();
    if (device < 0 && !last) device = lc_cuda_current_device();
    if (device < 0 && lc_cuda_device_of(at, &device) < 0) return py_raise();
    lc_storage *s =
        lc_storage_foreign((lc_device){ LC_CUDA, (int8_t)device }, at, (size_t)(last * lc_size_of(dtype)), drop_owner, owner);
    if (!s) return py_raise();
    Py_INCREF(owner);
    s->read_only = read_only;
    lc_tensor *t = lc_tensor_on(s, dtype, (int)n, sizes, steps, 0);
    lc_storage_release(s);
    return t ? py_wrap(t) : py_raise();
}

static PyObject *watcher; /* a function of (what, device, address, bytes, stream) */
static void      tell(int what, int device, uint64_t address, size_t bytes, void *stream)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    PyObject        *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* memory is also freed on the way of an exception */
    PyObject *told = watcher ? PyObject_CallFunction(watcher, "iiKnK", what, device, (unsigned long long)address,
                                                     (Py_ssize_t)bytes, (unsigned long long)(uintptr_t)stream)
                             : Py_NewRef(Py_None);
    if (!told) PyErr_WriteUnraisable(watcher);
    Py_XDECREF(told);
    PyErr_Restore(type, value, trace);
    PyGILState_Release(lock);
}
static PyObject *memory_watch(UNUSED PyObject *module, PyObject *function)
{
    PyObject *before = watcher;
    watcher = function == Py_None ? NULL : Py_NewRef(function);
    lc_cuda_memory_watcher = watcher ? tell : NULL;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    { "_cuda_memory_watch", memory_watch, METH_O, "(function): called at every allocation (1), free (0), refusal (-1)." },
    { "_cuda_adopt", adopt, METH_VARARGS,
      "(owner, address, device, dtype, shape, strides, read_only): its memory as a tensor." },
    { "_cuda_memory_info", memory_info, METH_VARARGS, "(device): its free and total bytes, by its driver." },
    { "_cuda_memory_stats", memory_stats, METH_VARARGS, "(device): what the allocator counts." },
    { "_cuda_memory_count", memory_count, METH_VARARGS, "(device, which, peak): one of these counts." },
    { "_cuda_memory_reset", memory_reset, METH_VARARGS, "(device, peaks): start its peaks anew; False: its sums." },
    { "_cuda_memory_limit", memory_limit, METH_VARARGS, "(device, fraction): how much this process may hold." },
    { "_cuda_memory_limit_of", memory_limit_of, METH_VARARGS, "(device): that fraction." },
    { "_cuda_memory_blocks", memory_blocks, METH_NOARGS, "All blocks of the allocator, by segments." },
    { "_cuda_empty_cache", empty_cache, METH_NOARGS, "Give unused device memory back." },
    { "_cuda_host_empty_cache", host_empty_cache, METH_NOARGS, "Give unused page-locked memory back." },
    { "_cuda_record_stream", record_stream, METH_VARARGS, "(tensor, stream): its memory stays until the stream is done." },
    { "_cuda_register_host", register_host, METH_O, "(tensor): page-lock its memory." },
    { "_cuda_map_host", map_host, METH_VARARGS, "(tensor, device): the same memory as the device sees it." },
    { 0 },
};
int py_add_cuda_memory(PyObject *module)
{
    return PyModule_AddFunctions(module, functions) < 0 ? -1 : py_add_cuda_kernel(module);
}
