/* The runtime functions of lightning_core: devices, synchronisation, trace. They call the functions of lightning_core.h, so C programs
 * and Python see one state. */
#include "lightning.h"

static const char *const device_names[] = { "cpu", "cuda", "metal" };
static const char *const mode_names[] = { "auto", "always", "never" };
static const char *const memory_names[] = { "native-device", "host-managed-compat" };

/* ---- devices ---- */
static PyObject *metal_available(UNUSED PyObject *m, UNUSED PyObject *unused) { return PyBool_FromLong(lcIsMetalAvailable()); }
static PyObject *cuda_available(UNUSED PyObject *m, UNUSED PyObject *unused) { return PyBool_FromLong(lcIsCudaAvailable()); }
static PyObject *backend_name(UNUSED PyObject *m, UNUSED PyObject *unused) { return PyUnicode_FromString(lcBackendName()); }
static PyObject *memory_model_name(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return PyUnicode_FromString(lcGetMemoryModelName());
}
static PyObject *capability_dict(const lcBackendCapabilities *c)
{
#define FLAG(name) #name, PyBool_FromLong(c->name)
    return Py_BuildValue("{sssNsNsNsNsNsNsNsNss}", "device", device_names[c->device], FLAG(built), FLAG(available),
                         FLAG(compute_surface), FLAG(memory_surface), FLAG(sync_surface), FLAG(profiling_surface),
                         FLAG(runtime_trace_surface), FLAG(sync_policy_surface), "memory_model", memory_names[c->memory_model]);
#undef FLAG
}
static PyObject *capabilities_of(lcDeviceKind device)
{
    lcBackendCapabilities c;
    lcGetBackendCapabilities(device, &c);
    return capability_dict(&c);
}
static PyObject *interfaces_of(lcDeviceKind device)
{
    lcBackendInterfaceContract c;
    lcGetBackendInterfaceContract(device, &c);
#define FLAG(part, name) #name, PyBool_FromLong(c.part.name)
    return Py_BuildValue("{sssNs{sNsNss}s{sNsNsNssss}s{sNsNsNss}s{sNsNsNsnss}}", "device", device_names[device], "capabilities",
                         capability_dict(&c.capabilities), "compute", FLAG(compute, available),
                         FLAG(compute, op_dispatch_trace_surface), "driver_tag", c.compute.driver_tag, "memory",
                         FLAG(memory, available), FLAG(memory, allocator_surface), FLAG(memory, memcpy_surface), "memory_model",
                         memory_names[c.memory.memory_model], "driver_tag", c.memory.driver_tag, "sync", FLAG(sync, available),
                         FLAG(sync, sync_policy_surface), FLAG(sync, trace_sync_boundary_surface), "driver_tag",
                         c.sync.driver_tag, "profiler", FLAG(profiler, available), FLAG(profiler, runtime_trace_surface),
                         FLAG(profiler, op_dispatch_trace_surface), "trace_capacity", (Py_ssize_t)c.profiler.trace_capacity,
                         "driver_tag", c.profiler.driver_tag);
#undef FLAG
}
static PyObject *of_device(PyObject *name, PyObject *(*ask)(lcDeviceKind))
{
    lcDeviceKind device;
    return lightning_device(name, LC_DEVICE_CPU, &device) < 0 ? NULL : ask(device);
}
LIGHTNING_FUNCTION(runtime_backend_capabilities, 1, of_device(slot[0], capabilities_of), "device")
LIGHTNING_FUNCTION(runtime_backend_interfaces, 1, of_device(slot[0], interfaces_of), "device")
static lcDeviceKind active(void) { return lc_runtime_uses_cuda(LC_DEVICE_CUDA) ? LC_DEVICE_CUDA : LC_DEVICE_CPU; }
static PyObject    *active_capabilities(UNUSED PyObject *m, UNUSED PyObject *unused) { return capabilities_of(active()); }
static PyObject    *active_interfaces(UNUSED PyObject *m, UNUSED PyObject *unused) { return interfaces_of(active()); }

/* ---- synchronisation ---- */
static int read_policy(PyObject *const *slot, lcSyncPolicy *policy)
{
    bool boundary;
    if (lightning_flag(slot[1], "trace_sync_boundary", false, &boundary) < 0) return -1;
    *policy = (lcSyncPolicy){ LC_SYNC_AUTO, boundary };
    if (!slot[0]) return 0;
    if (!PyUnicode_Check(slot[0])) return PyErr_SetString(PyExc_TypeError, "mode must be a string"), -1;
    for (int i = 0; i < 3; i++)
        if (PyUnicode_CompareWithASCIIString(slot[0], mode_names[i]) == 0) return policy->mode = (lcSyncMode)i, 0;
    return PyErr_Format(PyExc_ValueError, "mode must be \"auto\", \"always\" or \"never\", not '%U'", slot[0]), -1;
}
static PyObject *status_result(lcError_t status) { return status == LC_SUCCESS ? Py_NewRef(Py_None) : lightning_fail(status); }
#define POLICY(function, call)                                                                                                 \
    LIGHTNING_SIGNATURE(function, 0, "mode", "trace_sync_boundary");                                                           \
    static PyObject *function(UNUSED PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *names)                        \
    {                                                                                                                          \
        PyObject    *slot[2];                                                                                                  \
        lcSyncPolicy policy;                                                                                                   \
        if (lightning_bind(&function##_signature, args, n, names, slot) < 0 || read_policy(slot, &policy) < 0) return NULL;    \
        return status_result(call(policy));                                                                                    \
    }
POLICY(runtime_sync_policy_set, lcSetDefaultSyncPolicy)
POLICY(runtime_sync_apply, lcApplySyncPolicy)
static PyObject *runtime_sync_policy_get(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    lcSyncPolicy policy;
    lcGetDefaultSyncPolicy(&policy);
    return Py_BuildValue("{sssN}", "mode", mode_names[policy.mode], "trace_sync_boundary",
                         PyBool_FromLong(policy.trace_sync_boundary));
}
static PyObject *runtime_sync_apply_default(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return status_result(lcApplyDefaultSyncPolicy());
}

/* ---- trace ---- */
static const char *const type_names[LC_EVENTS] = { "malloc_device",      "free_device",        "memcpy",
                                                   "device_synchronize", "apply_sync_policy",  "get_device_count",
                                                   "is_cuda_available",  "is_metal_available", "preferred_device_for",
                                                   "backend_name",       "op_dispatch" };
static const char *const op_names[] = { "unknown",    "matmul",      "vector_add",       "matrix_sub",
                                        "matrix_div", "conv2d_nchw", "attention_forward" };
static PyObject         *event_dict(const lc_runtime_event *e)
{
    bool        op = e->type == LC_EVENT_op_dispatch;
    const char *name = op ? op_names[e->detail0] : "", *asked = op ? device_names[e->detail1 & 15] : "",
               *chosen = op ? device_names[e->detail1 >> 4 & 15] : "";
    return Py_BuildValue("{sssssLsKsLsLsssssssN}", "type", type_names[e->type], "status", lcGetErrorString(e->status),
                         "timestamp_ns", (long long)e->timestamp_ns, "size_bytes", (unsigned long long)e->size_bytes, "detail0",
                         (long long)e->detail0, "detail1", (long long)e->detail1, "op", name, "requested_device", asked,
                         "selected_device", chosen, "fallback", PyBool_FromLong(op && e->detail1 >> 8 & 1));
}
static PyObject *enable_trace(PyObject *flag)
{
    bool on;
    if (lightning_flag(flag, "enabled", false, &on) < 0) return NULL;
    atomic_store(&lc_runtime_tracing, on);
    return Py_NewRef(Py_None);
}
LIGHTNING_FUNCTION(runtime_trace_enable, 1, enable_trace(slot[0]), "enabled")
static PyObject *runtime_trace_enabled(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return PyBool_FromLong(atomic_load_explicit(&lc_runtime_tracing, memory_order_relaxed));
}
static PyObject *runtime_trace_clear(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return lc_runtime_clear(), Py_NewRef(Py_None);
}
static PyObject *runtime_trace_capacity(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return PyLong_FromLong(LC_RUNTIME_EVENTS);
}
static PyObject *runtime_trace_events(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    lc_runtime_event *events = PyMem_New(lc_runtime_event, LC_RUNTIME_EVENTS);
    int               n = events ? lc_runtime_events(events) : 0;
    PyObject         *list = events ? PyList_New(n) : PyErr_NoMemory();
    for (int i = 0; list && i < n; i++) {
        PyObject *event = event_dict(&events[i]);
        if (event) PyList_SET_ITEM(list, i, event);
        else Py_CLEAR(list);
    }
    return PyMem_Free(events), list;
}
static PyObject *note(UNUSED PyObject *m, PyObject *args) /* of an operator that Python computes */
{
    int       op;
    PyObject *device, *where = NULL;
    long long work;
    if (!PyArg_ParseTuple(args, "iOL|O:_note", &op, &device, &work, &where)) return NULL;
    lcDeviceKind requested, selected;
    if (lightning_device(device, LC_DEVICE_CPU, &requested) < 0 || lightning_device(where, LC_DEVICE_CPU, &selected) < 0)
        return NULL;
    if (op < 0 || op > LIGHTNING_OP_ATTENTION) return PyErr_SetString(PyExc_ValueError, "no such operator"), NULL;
    lightning_note_on((lightning_op)op, requested, selected, work);
    return Py_NewRef(Py_None);
}
static PyObject *note_copy(UNUSED PyObject *m, PyObject *args)
{
    int       kind;
    long long bytes;
    if (!PyArg_ParseTuple(args, "iL:_note_copy", &kind, &bytes)) return NULL;
    lc_runtime_note(LC_EVENT_memcpy, LC_SUCCESS, (uint64_t)bytes, kind, 0);
    return Py_NewRef(Py_None);
}

PyMethodDef lightning_runtime_functions[] = {
    { "metal_available", metal_available, METH_NOARGS,
      "metal_available()\n--\n\nFalse: nothing here runs on Metal.\n\n"
      ">>> lightning_core.metal_available()\n"
      "False\n" },
    { "cuda_available", cuda_available, METH_NOARGS,
      "cuda_available()\n--\n\nWhether there is a CUDA device that can compute: \"cuda\" then means it.\n\n"
      ">>> type(lightning_core.cuda_available())\n"
      "<class 'bool'>\n" },
    { "backend_name", backend_name, METH_NOARGS,
      "backend_name()\n--\n\nThe backend that computes: cuda, or cpu if there is none.\n\n"
      ">>> lightning_core.backend_name() in ('cuda', 'cpu')\n"
      "True\n" },
    { "memory_model_name", memory_model_name, METH_NOARGS,
      "memory_model_name()\n--\n\nWho manages the memory.\n\n"
      ">>> lightning_core.memory_model_name()\n"
      "'host-managed-compat'\n" },
    { "runtime_backend_capabilities", LIGHTNING_FAST(runtime_backend_capabilities),
      "runtime_backend_capabilities(device)\n--\n\nWhat a backend offers, as a dict of flags.\n\n"
      ">>> lightning_core.runtime_backend_capabilities('metal')['available']\n"
      "False\n" },
    { "runtime_active_backend_capabilities", active_capabilities, METH_NOARGS,
      "runtime_active_backend_capabilities()\n--\n\nWhat the backend that computes offers.\n\n"
      ">>> lightning_core.runtime_active_backend_capabilities()['available']\n"
      "True\n" },
    { "runtime_backend_interfaces", LIGHTNING_FAST(runtime_backend_interfaces),
      "runtime_backend_interfaces(device)\n--\n\nA backend's interfaces: compute, memory, sync, profiler.\n\n"
      ">>> lightning_core.runtime_backend_interfaces('cpu')['sync']['driver_tag']\n"
      "'cpu.noop_sync'\n" },
    { "runtime_active_backend_interfaces", active_interfaces, METH_NOARGS,
      "runtime_active_backend_interfaces()\n--\n\nThe interfaces of the backend that computes.\n\n"
      ">>> lightning_core.runtime_active_backend_interfaces()['compute']['available']\n"
      "True\n" },
    { "runtime_sync_policy_set", LIGHTNING_FAST(runtime_sync_policy_set),
      "runtime_sync_policy_set(mode='auto', trace_sync_boundary=False)\n--\n\nThe default policy: auto, always or never.\n\n"
      ">>> lightning_core.runtime_sync_policy_set('auto')\n" },
    { "runtime_sync_policy_get", runtime_sync_policy_get, METH_NOARGS,
      "runtime_sync_policy_get()\n--\n\nThe default policy.\n\n"
      ">>> lightning_core.runtime_sync_policy_get()['trace_sync_boundary']\n"
      "False\n" },
    { "runtime_sync_apply", LIGHTNING_FAST(runtime_sync_apply),
      "runtime_sync_apply(mode='auto', trace_sync_boundary=False)\n--\n\nSynchronise as a policy says.\n\n"
      ">>> lightning_core.runtime_sync_apply('always')\n" },
    { "runtime_sync_apply_default", runtime_sync_apply_default, METH_NOARGS,
      "runtime_sync_apply_default()\n--\n\nSynchronise as the default policy says.\n\n"
      ">>> lightning_core.runtime_sync_apply_default()\n" },
    { "runtime_trace_enable", LIGHTNING_FAST(runtime_trace_enable),
      "runtime_trace_enable(enabled)\n--\n\nStart or stop recording events; what was recorded stays.\n\n"
      ">>> lightning_core.runtime_trace_enable(False)\n" },
    { "runtime_trace_enabled", runtime_trace_enabled, METH_NOARGS,
      "runtime_trace_enabled()\n--\n\nWhether events are recorded.\n\n"
      ">>> lightning_core.runtime_trace_enabled()\n"
      "False\n" },
    { "runtime_trace_clear", runtime_trace_clear, METH_NOARGS,
      "runtime_trace_clear()\n--\n\nForget all events.\n\n"
      ">>> lightning_core.runtime_trace_clear()\n" },
    { "runtime_trace_capacity", runtime_trace_capacity, METH_NOARGS,
      "runtime_trace_capacity()\n--\n\nHow many events are kept; the oldest go first.\n\n"
      ">>> lightning_core.runtime_trace_capacity()\n"
      "4096\n" },
    { "runtime_trace_events", runtime_trace_events, METH_NOARGS,
      "runtime_trace_events()\n--\n\nThe recorded events, oldest first, as dicts.\n\n"
      ">>> lightning_core.runtime_trace_clear()\n"
      ">>> lightning_core.runtime_trace_events()\n"
      "[]\n" },
    { "_note_copy", note_copy, METH_VARARGS, "_note_copy(kind, bytes): records a memcpy event." },
    { "_note", note, METH_VARARGS, "_note(op, requested, work, selected='cpu'): records an op_dispatch event." },
    { 0 }
};
