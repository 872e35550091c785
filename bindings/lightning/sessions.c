/* Resident sessions: an operator of one shape, called again and again. A session checks sizes once per call, has chosen its way of
 * computing at the first, and owns its buffers: no two sessions share memory.
 *
 * On a device with memory of its own the phases differ in what they move: start sends the operands, run launches, sync waits, finish
 * fetches. Here operands are read where they are and a call has finished when it returns, so each phase computes and fills out; start
 * also keeps a copy of the operands for run_batch_sync_cached_no_download, the one call that gets none. Only these two touch the
 * session's buffers, and they take its lock; all other calls may run on any number of threads at once. */
#include "lightning.h"

typedef enum { PRODUCT, ELEMENTWISE, SUM, CONVOLUTION, ATTENTION } session_kind;
typedef struct {
    PyObject_HEAD session_kind kind;
    lightning_way              way;
    lcDeviceKind               device;
    int                        n_in;
    int64_t                    in_size[3], out_size, work; /* work: as the trace counts it; -1: nothing can be computed */
    int64_t                    dims[3];
    lightning_conv_shape       conv;
    bool                       causal, shaped, relu; /* shaped: out * scale + bias, ReLU if relu */
    float                      scale, bias;
    pthread_mutex_t            lock; /* of what follows */
    bool                       started, has_third;
    float                     *kept[4]; /* operands, result */
} session;

/* ---- making ---- */
static int64_t sized(int64_t a, int64_t b) /* -1: empty, or too large */
{
    int64_t n;
    return a < 1 || b < 1 || __builtin_mul_overflow(a, b, &n) || n > PTRDIFF_MAX / 8 ? -1 : n;
}
static session *make(PyTypeObject *type, session_kind kind, int n_in)
{
    session *s = (session *)type->tp_alloc(type, 0);
    if (!s) return NULL;
    s->kind = kind, s->n_in = n_in, s->way = LIGHTNING_UNKNOWN, s->device = LC_DEVICE_METAL, s->scale = 1;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}
static int read_sizes(lightning_signature *sig, PyObject *args, PyObject *kwargs, PyObject **slot, int64_t *sizes, int n_sizes,
                      int64_t preset)
{
    PyObject  *names = NULL, *all[2 * LIGHTNING_PARAMS] = { NULL };
    Py_ssize_t n = PyTuple_GET_SIZE(args), more = kwargs ? PyDict_GET_SIZE(kwargs) : 0, at = 0, i = n;
    PyObject  *key, *value;
    if (n + more > 2 * LIGHTNING_PARAMS) return PyErr_SetString(PyExc_TypeError, "too many arguments"), -1;
    for (Py_ssize_t k = 0; k < n; k++) all[k] = PyTuple_GET_ITEM(args, k);
    if (more && !(names = PyTuple_New(more))) return -1;
    while (more && PyDict_Next(kwargs, &at, &key, &value)) {
        PyTuple_SET_ITEM(names, i - n, Py_NewRef(key));
        all[i++] = value;
    }
    int rc = lightning_bind(sig, all, n, names, slot);
    Py_XDECREF(names);
    for (int k = 0; k < n_sizes && !rc; k++) rc = lightning_size_or(slot[k], sig->params[k], preset, &sizes[k]);
    return rc;
}
LIGHTNING_SIGNATURE(MatMulMetalResidentSession, 3, "m", "k", "n");
static PyObject *new_product(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *slot[3];
    int64_t   d[3];
    if (read_sizes(&MatMulMetalResidentSession_signature, args, kwargs, slot, d, 3, 0) < 0) return NULL;
    session *s = make(type, PRODUCT, 2);
    if (!s) return NULL;
    memcpy(s->dims, d, sizeof d);
    s->in_size[0] = sized(d[0], d[1]), s->in_size[1] = sized(d[1], d[2]), s->out_size = sized(d[0], d[2]);
    s->work = s->out_size < 0 ? -1 : sized(s->out_size, d[1]);
    return (PyObject *)s;
}
LIGHTNING_SIGNATURE(MatrixElemwiseMetalResidentSession, 2, "rows", "cols");
static PyObject *new_elementwise(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *slot[2];
    int64_t   d[2];
    if (read_sizes(&MatrixElemwiseMetalResidentSession_signature, args, kwargs, slot, d, 2, 0) < 0) return NULL;
    session *s = make(type, ELEMENTWISE, 2);
    if (s) s->in_size[0] = s->in_size[1] = s->out_size = s->work = sized(d[0], d[1]);
    return (PyObject *)s;
}
LIGHTNING_SIGNATURE(VectorAddMetalResidentSession, 1, "n");
static PyObject *new_sum(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *slot[1];
    int64_t   n;
    if (read_sizes(&VectorAddMetalResidentSession_signature, args, kwargs, slot, &n, 1, 0) < 0) return NULL;
    session *s = make(type, SUM, 2);
    if (s) s->in_size[0] = s->in_size[1] = s->out_size = s->work = sized(n, 1);
    return (PyObject *)s;
}
LIGHTNING_SIGNATURE(Conv2dMetalResidentSession, 7, "batch", "in_channels", "in_h", "in_w", "out_channels", "kernel_h",
                    "kernel_w", "stride_h", "stride_w", "pad_h", "pad_w", "apply_relu");
static PyObject *new_convolution(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *slot[12];
    int64_t   d[7], window[4];
    bool      relu;
    if (read_sizes(&Conv2dMetalResidentSession_signature, args, kwargs, slot, d, 7, 0) < 0 ||
        lightning_size_or(slot[7], "stride_h", 1, &window[0]) < 0 ||
        lightning_size_or(slot[8], "stride_w", 1, &window[1]) < 0 || lightning_size_or(slot[9], "pad_h", 0, &window[2]) < 0 ||
        lightning_size_or(slot[10], "pad_w", 0, &window[3]) < 0 || lightning_flag(slot[11], "apply_relu", true, &relu) < 0)
        return NULL;
    session *s = make(type, CONVOLUTION, 3);
    if (!s) return NULL;
    enum { MOST = 1 << 30 };
    bool fits = true;
    for (int i = 0; i < 7; i++) fits = fits && d[i] >= 1 && d[i] <= MOST;
    for (int i = 0; i < 4; i++) fits = fits && window[i] >= (i < 2) && window[i] <= MOST;
    lightning_conv_shape c = { .n = d[0], .c = d[1], .h = d[2], .w = d[3], .o = d[4], .kh = d[5], .kw = d[6], .relu = relu };
    c.stride_h = window[0], c.stride_w = window[1], c.pad_h = window[2], c.pad_w = window[3];
    int64_t high = c.h + 2 * c.pad_h - c.kh, wide = c.w + 2 * c.pad_w - c.kw;
    fits = fits && high >= 0 && wide >= 0;
    if (fits) c.oh = high / c.stride_h + 1, c.ow = wide / c.stride_w + 1;
    s->in_size[0] = fits ? sized(sized(sized(c.n, c.c), c.h), c.w) : -1;
    s->in_size[1] = fits ? sized(sized(sized(c.o, c.c), c.kh), c.kw) : -1;
    s->in_size[2] = c.o;
    s->out_size = fits ? sized(sized(sized(c.n, c.o), c.oh), c.ow) : -1;
    s->conv = c, s->work = sized(sized(sized(s->out_size, c.c), c.kh), c.kw);
    return (PyObject *)s;
}
LIGHTNING_SIGNATURE(AttentionSession, 2, "seq_len", "head_dim", "causal", "device");
static PyObject *new_attention(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject    *slot[4];
    int64_t      d[2];
    bool         causal;
    lcDeviceKind device;
    if (read_sizes(&AttentionSession_signature, args, kwargs, slot, d, 2, 0) < 0 ||
        lightning_flag(slot[2], "causal", false, &causal) < 0 || lightning_device(slot[3], LC_DEVICE_METAL, &device) < 0)
        return NULL;
    session *s = make(type, ATTENTION, 3);
    if (!s) return NULL;
    s->dims[0] = d[0], s->dims[1] = d[1], s->causal = causal, s->device = device;
    s->in_size[0] = s->in_size[1] = s->in_size[2] = s->out_size = sized(d[0], d[1]);
    s->work = sized(s->out_size, d[0]);
    return (PyObject *)s;
}
static size_t kept_bytes(const session *s, int i) { return (size_t)(i < 3 ? s->in_size[i] : s->out_size) * sizeof(float); }
static void   end(PyObject *self)
{
    session      *s = (session *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int i = 0; i < 4; i++)
        if (s->kept[i]) lc_free(s->kept[i], kept_bytes(s, i));
    pthread_mutex_destroy(&s->lock);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- computing ---- */
static lightning_op trace_code(const session *s, lightning_pointwise what)
{
    static const lightning_op ops[] = { [PRODUCT] = LIGHTNING_OP_MATMUL,
                                        [SUM] = LIGHTNING_OP_ADD,
                                        [CONVOLUTION] = LIGHTNING_OP_CONV,
                                        [ATTENTION] = LIGHTNING_OP_ATTENTION };
    return s->kind != ELEMENTWISE ? ops[s->kind] : what == LIGHTNING_DIV ? LIGHTNING_OP_DIV : LIGHTNING_OP_SUB;
}
static int choose_way(session *s)
{
    if (s->kind == PRODUCT) return lightning_matmul_way(s->device, s->dims[0], s->dims[1], s->dims[2], &s->way);
    if (s->kind == ATTENTION) return lightning_attention_way(s->device, s->dims[0], s->dims[1], s->causal, &s->way);
    return s->way = LIGHTNING_ALL, 0;
}
static void shape_result(const session *s, float *out)
{
    for (int64_t i = 0; i < s->out_size; i++) {
        out[i] = out[i] * s->scale + s->bias;
        if (s->relu && out[i] < 0) out[i] = 0;
    }
}
static int compute(session *s, lightning_pointwise what, float *const *in, float *out)
{
    if (s->way == LIGHTNING_UNKNOWN && choose_way(s) < 0) return -1;
    lightning_note(trace_code(s, what), s->device, s->work);
    if (s->kind == PRODUCT) return lightning_product(s->way, in[0], in[1], out, s->dims[0], s->dims[1], s->dims[2]);
    if (s->kind == CONVOLUTION) return lightning_conv(in[0], in[1], in[2], out, &s->conv);
    if (s->kind != ATTENTION) return lightning_combine(what, in[0], in[1], out, s->out_size);
    int rc = lightning_attend(s->way, in[0], in[1], in[2], out, s->dims[0], s->dims[1], s->causal);
    if (!rc && s->shaped) shape_result(s, out);
    return rc;
}
static void take(session *s)
{
    if (pthread_mutex_trylock(&s->lock) == 0) return;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&s->lock);
    Py_END_ALLOW_THREADS
}
static int keep(session *s, float *const *in) /* copies of the operands */
{
    for (int i = 0; i < s->n_in; i++) {
        if (!in[i]) continue;
        if (!s->kept[i] && !(s->kept[i] = lc_alloc(kept_bytes(s, i)))) return py_raise_int();
    }
    if (!s->kept[3] && !(s->kept[3] = lc_alloc(kept_bytes(s, 3)))) return py_raise_int();
    take(s);
    for (int i = 0; i < s->n_in; i++)
        if (in[i]) memcpy(s->kept[i], in[i], kept_bytes(s, i));
    s->started = true, s->has_third = s->n_in == 3 && in[2];
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* ---- a phase: operands, out (or the size of a list), how often ---- */
typedef struct {
    const char         *name;
    lightning_pointwise what;
    bool                keeps, lists, counted;
} phase;
static PyObject *misfit(const session *s, int i, int64_t size)
{
    return PyErr_Format(PyExc_ValueError, "%s has %lld elements, the session needs %lld",
                        i < s->n_in ? (const char *[]){ "the first operand", "the second operand", "the third operand" }[i]
                                    : "out",
                        (long long)size, (long long)(i < s->n_in ? s->in_size[i] : s->out_size)),
           NULL;
}
static PyObject *run_phase(session *s, const phase *p, PyObject *const *args, Py_ssize_t n)
{
    int              n_in = s->n_in, wanted = n_in + 1 + p->counted;
    int64_t          count = 1, size = 0;
    lightning_array  a[4];
    float           *in[3] = { NULL }, *data;
    PyObject        *result = NULL, *made = NULL;
    lightning_target t;
    if (n != wanted) return PyErr_Format(PyExc_TypeError, "%s() takes %d arguments, %zd were given", p->name, wanted, n), NULL;
    if (p->counted && lightning_size(args[n_in + 1], "repeat_count", &count) < 0) return NULL;
    if (p->lists && lightning_size(args[n_in], "out_size", &size) < 0) return NULL;
    if (lightning_start() < 0) return NULL;
    for (int i = 0; i < 4; i++) a[i].owner = NULL, a[i].from_buffer = false, a[i].data = NULL, a[i].size = 0;
    for (int i = 0; i < n_in; i++) {
        if (i == 2 && s->kind == CONVOLUTION && args[i] == Py_None) continue;
        if (lightning_read(args[i], &a[i]) < 0) goto end;
        in[i] = a[i].data;
    }
    if (!p->lists && lightning_write(args[n_in], &a[n_in]) < 0) goto end;
    if (s->work < 0 || !count) {
        lightning_fail(LC_INVALID_VALUE);
        goto end;
    }
    for (int i = 0; i < n_in; i++)
        if (in[i] && a[i].size != s->in_size[i]) {
            misfit(s, i, a[i].size);
            goto end;
        }
    if ((p->lists ? size : a[n_in].size) != s->out_size) {
        misfit(s, n_in, p->lists ? size : a[n_in].size);
        goto end;
    }
    if (p->keeps && keep(s, in) < 0) goto end;
    if (p->lists) made = lightning_new(1, (const Py_ssize_t[]){ size }, &data);
    if (p->lists ? !made : lightning_target_over(&t, &a[n_in], a, n_in) < 0) goto end;
    int rc = 0;
    for (int64_t i = 0; i < count && !rc; i++) rc = compute(s, p->what, in, p->lists ? data : t.data);
    if (!p->lists) result = lightning_target_end(&t, rc);
    else if (!rc) result = PyObject_CallMethod(made, "tolist", NULL);
end:
    Py_XDECREF(made);
    lightning_end(a, n_in + !p->lists);
    return result;
}
static PyObject *run_cached(session *s, PyObject *repeat)
{
    int64_t count;
    if (lightning_size(repeat, "repeat_count", &count) < 0) return NULL;
    if (!count || s->work < 0) return lightning_fail(LC_INVALID_VALUE);
    take(s);
    int    rc = 0;
    bool   ready = s->started;
    float *in[] = { s->kept[0], s->kept[1], s->has_third ? s->kept[2] : NULL };
    for (int64_t i = 0; i < count && ready && !rc; i++) rc = compute(s, LIGHTNING_SUB, in, s->kept[3]);
    pthread_mutex_unlock(&s->lock);
    return !ready ? lightning_fail(LC_NOT_INITIALIZED) : rc < 0 ? NULL : Py_NewRef(Py_None);
}
#define PHASE(function, what, keeps, lists, counted)                                                                           \
    static PyObject *function(PyObject *self, PyObject *const *args, Py_ssize_t n)                                             \
    {                                                                                                                          \
        static const phase p = { #function, what, keeps, lists, counted };                                                     \
        return run_phase((session *)self, &p, args, n);                                                                        \
    }
PHASE(start_into, LIGHTNING_ADD, true, false, false)
PHASE(run_into, LIGHTNING_ADD, false, false, false)
PHASE(start, LIGHTNING_ADD, true, true, false)
PHASE(run, LIGHTNING_ADD, false, true, false)
PHASE(run_batch_sync_into, LIGHTNING_ADD, false, false, true)
PHASE(run_batch_sync, LIGHTNING_ADD, false, true, true)
PHASE(sub_start_into, LIGHTNING_SUB, true, false, false)
PHASE(sub_run_into, LIGHTNING_SUB, false, false, false)
PHASE(sub_start, LIGHTNING_SUB, true, true, false)
PHASE(sub_run, LIGHTNING_SUB, false, true, false)
PHASE(div_start_into, LIGHTNING_DIV, true, false, false)
PHASE(div_run_into, LIGHTNING_DIV, false, false, false)
PHASE(div_start, LIGHTNING_DIV, true, true, false)
PHASE(div_run, LIGHTNING_DIV, false, true, false)
static PyObject *run_batch_cached(PyObject *self, PyObject *count) { return run_cached((session *)self, count); }
static PyObject *set_output(PyObject *self, PyObject *args) /* of attention: out * scale + bias, then ReLU */
{
    session *s = (session *)self;
    float    scale, bias;
    int      relu;
    if (!PyArg_ParseTuple(args, "ffp:_set_output", &scale, &bias, &relu)) return NULL;
    s->scale = scale, s->bias = bias, s->relu = relu, s->shaped = scale != 1 || bias != 0 || relu;
    return Py_NewRef(Py_None);
}

#define FAST(f) (PyCFunction)(void (*)(void))(f), METH_FASTCALL
#define THREE   "(a, b, out)\n--\n\n"
static PyMethodDef product_methods[] = {
    { "start_into", FAST(start_into), "start_into" THREE "The product into out; keeps the operands." },
    { "run_into", FAST(run_into), "run_into" THREE "The product into out." },
    { "sync_into", FAST(run_into), "sync_into" THREE "The product into out, complete." },
    { "finish_into", FAST(run_into), "finish_into" THREE "The product into out, complete." },
    { "run_batch_sync_into", FAST(run_batch_sync_into),
      "run_batch_sync_into(a, b, out, repeat_count)\n--\n\nThe product repeat_count times, into out." },
    { "run_batch_sync_no_download_into", FAST(run_batch_sync_into),
      "run_batch_sync_no_download_into(a, b, out, repeat_count)\n--\n\nThe same: out is host memory." },
    { "run_batch_sync_cached_no_download", run_batch_cached, METH_O,
      "run_batch_sync_cached_no_download(repeat_count)\n--\n\nThe product of the operands that start kept." },
    { "start", FAST(start), "start(a, b, out_size)\n--\n\nThe product as a list; keeps the operands." },
    { "run", FAST(run), "run(a, b, out_size)\n--\n\nThe product as a list." },
    { "sync", FAST(run), "sync(a, b, out_size)\n--\n\nThe product as a list." },
    { "finish", FAST(run), "finish(a, b, out_size)\n--\n\nThe product as a list." },
    { "run_batch_sync", FAST(run_batch_sync),
      "run_batch_sync(a, b, out_size, repeat_count)\n--\n\nThe product repeat_count times, as a list." },
    { 0 }
};
static PyMethodDef elementwise_methods[] = {
    { "sub_start_into", FAST(sub_start_into), "sub_start_into" THREE "a - b into out." },
    { "sub_run_into", FAST(sub_run_into), "sub_run_into" THREE "a - b into out." },
    { "sub_finish_into", FAST(sub_run_into), "sub_finish_into" THREE "a - b into out." },
    { "div_start_into", FAST(div_start_into), "div_start_into" THREE "a / b into out." },
    { "div_run_into", FAST(div_run_into), "div_run_into" THREE "a / b into out." },
    { "div_finish_into", FAST(div_run_into), "div_finish_into" THREE "a / b into out." },
    { "sub_start", FAST(sub_start), "sub_start(a, b, out_size)\n--\n\na - b as a list." },
    { "sub_run", FAST(sub_run), "sub_run(a, b, out_size)\n--\n\na - b as a list." },
    { "sub_finish", FAST(sub_run), "sub_finish(a, b, out_size)\n--\n\na - b as a list." },
    { "sub", FAST(sub_run), "sub(a, b, out_size)\n--\n\na - b as a list." },
    { "div_start", FAST(div_start), "div_start(a, b, out_size)\n--\n\na / b as a list." },
    { "div_run", FAST(div_run), "div_run(a, b, out_size)\n--\n\na / b as a list." },
    { "div_finish", FAST(div_run), "div_finish(a, b, out_size)\n--\n\na / b as a list." },
    { "div", FAST(div_run), "div(a, b, out_size)\n--\n\na / b as a list." },
    { 0 }
};
static PyMethodDef sum_methods[] = { { "start_into", FAST(start_into), "start_into" THREE "a + b into out." },
                                     { "run_into", FAST(run_into), "run_into" THREE "a + b into out." },
                                     { "finish_into", FAST(run_into), "finish_into" THREE "a + b into out." },
                                     { "start", FAST(start), "start(a, b, out_size)\n--\n\na + b as a list." },
                                     { "run", FAST(run), "run(a, b, out_size)\n--\n\na + b as a list." },
                                     { "finish", FAST(run), "finish(a, b, out_size)\n--\n\na + b as a list." },
                                     { "add", FAST(run), "add(a, b, out_size)\n--\n\na + b as a list." },
                                     { 0 } };
static PyMethodDef convolution_methods[] = {
    { "start_into", FAST(start_into), "start_into(x, w, bias, out)\n--\n\nThe convolution into out." },
    { "run_into", FAST(run_into), "run_into(x, w, bias, out)\n--\n\nThe convolution into out." },
    { "sync_into", FAST(run_into), "sync_into(x, w, bias, out)\n--\n\nThe convolution into out, complete." },
    { "finish_into", FAST(run_into), "finish_into(x, w, bias, out)\n--\n\nThe convolution into out, complete." },
    { "run_batch_sync_into", FAST(run_batch_sync_into),
      "run_batch_sync_into(x, w, bias, out, repeat_count)\n--\n\nThe convolution repeat_count times, into out." },
    { 0 }
};
static PyMethodDef attention_methods[] = {
    { "forward_into", FAST(run_into), "forward_into(q, k, v, out)\n--\n\nAttention into out." },
    { "_set_output", set_output, METH_VARARGS, "_set_output(scale, bias, relu): what is done to every result." },
    { 0 }
};

#define ARRAYS ">>> import numpy as np\n>>> out = np.empty(1, np.float32)\n"
#define SHOWN  ">>> out.tolist()\n"
static const char
    product_doc[] = "MatMulMetalResidentSession(m, k, n)\n--\n\nProducts of (m, k) by (k, n).\n\n" ARRAYS
                    ">>> lightning_core.MatMulMetalResidentSession(1, 2, 1).run_into([1, 2], [3, 4], out)\n" SHOWN "[11.0]\n",
    elementwise_doc[] = "MatrixElemwiseMetalResidentSession(rows, cols)\n--\n\nDifferences and quotients of matrices.\n\n"
                        ">>> lightning_core.MatrixElemwiseMetalResidentSession(1, 2).div([4, 9], [2, 3], 2)\n[2.0, 3.0]\n",
    sum_doc[] = "VectorAddMetalResidentSession(n)\n--\n\nSums of vectors.\n\n"
                ">>> lightning_core.VectorAddMetalResidentSession(2).add([1, 2], [3, 4], 2)\n[4.0, 6.0]\n",
    convolution_doc[] =
        "Conv2dMetalResidentSession(batch, in_channels, in_h, in_w, out_channels, kernel_h, kernel_w, stride_h=1, "
        "stride_w=1, pad_h=0, pad_w=0, apply_relu=True)\n--\n\nConvolutions of one shape, with ReLU.\n\n" ARRAYS
        ">>> session = lightning_core.Conv2dMetalResidentSession(1, 1, 1, 2, 1, 1, 2)\n"
        ">>> session.run_into([1, 2], [3, 4], None, out)\n" SHOWN "[11.0]\n",
    attention_doc[] = "_AttentionSession(seq_len, head_dim, causal=False, device='metal')\n--\n\nThe part of "
                      "AttentionSession that is called often.";

int lightning_add_sessions(PyObject *module)
{
#define SLOTS(kind)                                                                                                            \
    (PyType_Slot[])                                                                                                            \
    {                                                                                                                          \
        { Py_tp_new, new_##kind }, { Py_tp_dealloc, end }, { Py_tp_methods, kind##_methods },                                  \
            { Py_tp_doc, (void *)kind##_doc },                                                                                 \
        {                                                                                                                      \
            0, NULL                                                                                                            \
        }                                                                                                                      \
    }
#define TYPE(title, kind)                                                                                                      \
    {                                                                                                                          \
        "lightning_core." title, sizeof(session), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, SLOTS(kind)                     \
    }
    PyType_Spec specs[] = { TYPE("MatMulMetalResidentSession", product),
                            TYPE("MatrixElemwiseMetalResidentSession", elementwise), TYPE("VectorAddMetalResidentSession", sum),
                            TYPE("Conv2dMetalResidentSession", convolution), TYPE("_AttentionSession", attention) };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        PyObject *type = PyType_FromSpec(&specs[i]);
        if (!type || PyModule_AddType(module, (PyTypeObject *)type) < 0) return Py_XDECREF(type), -1;
        Py_DECREF(type);
    }
    return 0;
}
