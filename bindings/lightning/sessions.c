/* Resident sessions: an operator of one shape, called again and again. A session checks sizes once per call, has chosen its way of
 * computing at the first, and owns its buffers: no two sessions share memory.
 *
 * On an accelerator (device.c) the phases differ in what they move: start sends the operands, run launches, sync and finish fetch,
 * and a phase that comes before any start sends, too. On the CPU operands are read where they are and a call has finished when it
 * returns, so each phase computes and fills out; start also keeps a copy of the operands for run_batch_sync_cached_no_download, the
 * one call that gets none. What touches the session's buffers takes its lock: on the CPU these two calls, and a convolution if it is
 * free, on an accelerator all. Other calls may run on any number of threads at once. */
#include "lightning.h"

typedef enum { PRODUCT, ELEMENTWISE, SUM, CONVOLUTION, ATTENTION } session_kind;
typedef struct {
    PyObject_HEAD session_kind kind;
    lightning_way              way;     /* on the CPU */
    lightning_verdict          verdict; /* whether calls go to an accelerator */
    lcDeviceKind               device;
    lightning_task             task;
    bool                       shaped, relu; /* shaped: out * scale + bias, ReLU if relu */
    float                      scale, bias;
    unsigned                   moves; /* of forward_into */
    unsigned                   forks; /* of the process, when the lock was made */
    pthread_mutex_t            lock;  /* of what follows */
    bool                       started, has_third;
    float                     *kept[4]; /* operands, result */
    lc_conv_kept               packed;  /* a convolution's weights, as the kernel reads them, and what they were */
    float                     *weights;
    bool                       reads_weights; /* where they are: it packs none */
    lightning_resident         resident;
} session;

static atomic_uint forks;
static void        count_fork(void) { atomic_fetch_add(&forks, 1); }
/* A forked child has no other thread: one that held the lock will not let it go, nor finish what it was packing. */
static inline void renew_after_fork(session *s)
{
    unsigned now = atomic_load_explicit(&forks, memory_order_relaxed);
    if (__builtin_expect(s->forks == now, 1)) return;
    pthread_mutex_init(&s->lock, NULL);
    s->forks = now, s->packed.form = 0;
}

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
    s->kind = kind, s->task.n_in = n_in, s->device = LC_DEVICE_METAL, s->scale = 1;
    s->way = LIGHTNING_UNKNOWN, s->verdict = LIGHTNING_UNSETTLED, s->moves = LIGHTNING_SEND | LIGHTNING_FETCH;
    pthread_mutex_init(&s->lock, NULL);
    s->forks = atomic_load(&forks);
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
    lightning_task *t = &s->task;
    memcpy(t->dims, d, sizeof d);
    t->op = LIGHTNING_OP_MATMUL;
    t->in_size[0] = sized(d[0], d[1]), t->in_size[1] = sized(d[1], d[2]), t->out_size = sized(d[0], d[2]);
    t->work = t->out_size < 0 ? -1 : sized(t->out_size, d[1]);
    return (PyObject *)s;
}
static PyObject *make_pointwise(PyTypeObject *type, session_kind kind, int64_t n)
{
    session *s = make(type, kind, 2);
    if (s) s->task = lightning_pointwise_task(kind == SUM ? LIGHTNING_OP_ADD : LIGHTNING_OP_SUB, n);
    return (PyObject *)s;
}
LIGHTNING_SIGNATURE(MatrixElemwiseMetalResidentSession, 2, "rows", "cols");
static PyObject *new_elementwise(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *slot[2];
    int64_t   d[2];
    if (read_sizes(&MatrixElemwiseMetalResidentSession_signature, args, kwargs, slot, d, 2, 0) < 0) return NULL;
    return make_pointwise(type, ELEMENTWISE, sized(d[0], d[1]));
}
LIGHTNING_SIGNATURE(VectorAddMetalResidentSession, 1, "n");
static PyObject *new_sum(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *slot[1];
    int64_t   n;
    if (read_sizes(&VectorAddMetalResidentSession_signature, args, kwargs, slot, &n, 1, 0) < 0) return NULL;
    return make_pointwise(type, SUM, sized(n, 1));
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
    lightning_task *t = &s->task;
    t->op = LIGHTNING_OP_CONV, t->conv = c;
    t->in_size[0] = fits ? sized(sized(sized(c.n, c.c), c.h), c.w) : -1;
    t->in_size[1] = fits ? sized(sized(sized(c.o, c.c), c.kh), c.kw) : -1;
    t->in_size[2] = c.o;
    t->out_size = fits ? sized(sized(sized(c.n, c.o), c.oh), c.ow) : -1;
    t->work = sized(sized(sized(t->out_size, c.c), c.kh), c.kw);
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
    lightning_task *t = &s->task;
    t->op = LIGHTNING_OP_ATTENTION, t->dims[0] = d[0], t->dims[1] = d[1], t->causal = causal, s->device = device;
    t->in_size[0] = t->in_size[1] = t->in_size[2] = t->out_size = sized(d[0], d[1]);
    t->work = sized(t->out_size, d[0]);
    return (PyObject *)s;
}
static size_t kept_bytes(const session *s, int i)
{
    return (size_t)(i < 3 ? s->task.in_size[i] : s->task.out_size) * sizeof(float);
}
static void end(PyObject *self)
{
    session      *s = (session *)self;
    PyTypeObject *type = Py_TYPE(self);
    for (int i = 0; i < 4; i++)
        if (s->kept[i]) lc_free(s->kept[i], kept_bytes(s, i));
    if (s->weights) lc_free(s->weights, kept_bytes(s, 1));
    if (s->packed.data) lc_free(s->packed.data, s->packed.bytes);
    lightning_resident_end(&s->resident);
    pthread_mutex_destroy(&s->lock);
    type->tp_free(self);
    Py_DECREF(type);
}

/* ---- computing ---- */
static lightning_op op_of(const session *s, lightning_pointwise what)
{
    return s->kind != ELEMENTWISE ? s->task.op : what == LIGHTNING_DIV ? LIGHTNING_OP_DIV : LIGHTNING_OP_SUB;
}
static int choose_way(session *s)
{
    const lightning_task *t = &s->task;
    if (s->kind == PRODUCT) return lightning_matmul_way(s->device, t->dims[0], t->dims[1], t->dims[2], &s->way);
    if (s->kind == ATTENTION) return lightning_attention_way(s->device, t->dims[0], t->dims[1], t->causal, &s->way);
    return s->way = LIGHTNING_ALL, 0;
}
static void shape_result(const session *s, float *out)
{
    for (int64_t i = 0; i < s->task.out_size; i++) {
        out[i] = out[i] * s->scale + s->bias;
        if (s->relu && out[i] < 0) out[i] = 0;
    }
}
/* Weights are packed once and again when they have changed: comparing them takes a tenth of that. A call that meets another one on
 * this session packs for itself. */
static int convolve(session *s, float *const *in, float *out)
{
    const lightning_conv_shape *shape = &s->task.conv;
    size_t                      bytes = kept_bytes(s, 1);
    renew_after_fork(s);
    if (s->reads_weights || pthread_mutex_trylock(&s->lock) != 0) return lightning_conv(in[0], in[1], in[2], out, shape, NULL);
    int rc = 0;
    if (!s->weights && !(s->weights = lc_alloc(bytes))) rc = py_raise_int();
    if (!rc && s->packed.form && memcmp(s->weights, in[1], bytes)) s->packed.form = 0;
    if (!rc && !s->packed.form) memcpy(s->weights, in[1], bytes);
    if (!rc) rc = lightning_conv(in[0], s->weights, in[2], out, shape, &s->packed);
    s->reads_weights = !rc && !s->packed.form;
    pthread_mutex_unlock(&s->lock);
    return rc;
}
static int compute(session *s, lightning_pointwise what, float *const *in, float *out)
{
    const lightning_task *t = &s->task;
    if (s->way == LIGHTNING_UNKNOWN && choose_way(s) < 0) return -1;
    lightning_note(op_of(s, what), s->device, t->work);
    if (s->kind == PRODUCT) return lightning_product(s->way, in[0], in[1], out, t->dims[0], t->dims[1], t->dims[2]);
    if (s->kind == CONVOLUTION) return convolve(s, in, out);
    if (s->kind != ATTENTION) return lightning_combine(what, in[0], in[1], out, t->out_size);
    return lightning_attend(s->way, in[0], in[1], in[2], out, t->dims[0], t->dims[1], t->causal);
}
static void take(session *s)
{
    renew_after_fork(s);
    if (pthread_mutex_trylock(&s->lock) == 0) return;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&s->lock);
    Py_END_ALLOW_THREADS
}
static int keep(session *s, float *const *in) /* copies of the operands */
{
    const int n_in = s->task.n_in;
    for (int i = 0; i < n_in; i++) {
        if (!in[i]) continue;
        if (!s->kept[i] && !(s->kept[i] = lc_alloc(kept_bytes(s, i)))) return py_raise_int();
    }
    if (!s->kept[3] && !(s->kept[3] = lc_alloc(kept_bytes(s, 3)))) return py_raise_int();
    take(s);
    for (int i = 0; i < n_in; i++)
        if (in[i]) memcpy(s->kept[i], in[i], kept_bytes(s, i));
    s->started = true, s->has_third = n_in == 3 && in[2];
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* ---- on the accelerator ---- */
/* Whether a call goes there; s->verdict is settled by the first. stays: the operands serve later calls. -1 raised. */
static int goes_there(session *s, bool stays)
{
    if (s->verdict == LIGHTNING_UNSETTLED) {
        int verdict = lightning_judge(&s->task, s->device);
        if (verdict < 0) return -1;
        s->verdict = (lightning_verdict)verdict;
    }
    if (s->verdict != LIGHTNING_NEVER && !lc_runtime_uses_cuda(s->device)) s->verdict = LIGHTNING_NEVER; /* after a fork */
    return s->verdict >= (stays ? LIGHTNING_IF_RESIDENT : LIGHTNING_ALWAYS);
}
static int run_there(session *s, lightning_pointwise what, unsigned moves, float *const *in, float *out, int64_t count)
{
    take(s);
    int rc = lightning_resident_run(&s->resident, &s->task, op_of(s, what), s->device, moves, in, out, count);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* ---- a phase: operands, out (or the size of a list), how often ---- */
typedef struct {
    const char         *name;
    lightning_pointwise what;
    unsigned            moves;
    bool                keeps, lists, counted;
    bool                stays, shapes; /* stays: operands serve later calls. shapes: the result, as the session's policy says */
} phase;
static PyObject *misfit(const session *s, int i, int64_t size)
{
    int n_in = s->task.n_in;
    return PyErr_Format(PyExc_ValueError, "%s has %lld elements, the session needs %lld",
                        i < n_in ? (const char *[]){ "the first operand", "the second operand", "the third operand" }[i]
                                 : "out",
                        (long long)size, (long long)(i < n_in ? s->task.in_size[i] : s->task.out_size)),
           NULL;
}
/* By operands, by whether a list is made, by whether there is a count. */
#define PARAMS(...)                                                                                                            \
    {                                                                                                                          \
        .params = (const char *const[]) { __VA_ARGS__, NULL }                                                                  \
    }
#define OPERANDS(...)                                                                                                          \
    {                                                                                                                          \
        { PARAMS(__VA_ARGS__, "out"), PARAMS(__VA_ARGS__, "out", "n") },                                                       \
        {                                                                                                                      \
            PARAMS(__VA_ARGS__, "out_size"), PARAMS(__VA_ARGS__, "out_size", "n")                                              \
        }                                                                                                                      \
    }
static lightning_signature phase_signatures[][2][2] = { OPERANDS("a", "b"), OPERANDS("x", "w", "bias"),
                                                        OPERANDS("q", "k", "v") };
/* The arguments of a phase by their names: one slot each. */
static int bind_phase(const session *s, const phase *p, PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **slots)
{
    int                  operands = s->kind == CONVOLUTION ? 1 : s->kind == ATTENTION ? 2 : 0;
    lightning_signature *sig = &phase_signatures[operands][p->lists][p->counted];
    sig->name = p->name, sig->required = s->task.n_in + 1 + p->counted;
    return lightning_bind(sig, args, n, names, slots);
}
static PyObject *run_phase(session *s, const phase *p, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    int              n_in = s->task.n_in, there = 0, rc = 0;
    int64_t          count = 1, size = 0;
    PyObject        *slots[LIGHTNING_PARAMS];
    lightning_array  a[4];
    float           *in[3] = { NULL }, *data;
    PyObject        *result = NULL, *made = NULL;
    lightning_target t;
    if (names || n != n_in + 1 + p->counted) {
        if (bind_phase(s, p, args, n, names, slots) < 0) return NULL;
        args = slots;
    }
    if (p->counted && lightning_size(args[n_in + 1], "n", &count) < 0) return NULL;
    if (p->lists && lightning_size(args[n_in], "out_size", &size) < 0) return NULL;
    for (int i = 0; i < 4; i++) a[i].owner = NULL, a[i].from_buffer = false, a[i].data = NULL, a[i].size = 0;
    for (int i = 0; i < n_in; i++) {
        if (i == 2 && s->kind == CONVOLUTION && args[i] == Py_None) continue;
        if (lightning_read(args[i], &a[i]) < 0) goto end;
        in[i] = a[i].data;
    }
    if (!p->lists && lightning_write(args[n_in], &a[n_in]) < 0) goto end;
    if (s->task.work < 0 || !count) {
        lightning_fail(LC_INVALID_VALUE);
        goto end;
    }
    for (int i = 0; i < n_in; i++)
        if (in[i] && a[i].size != s->task.in_size[i]) {
            misfit(s, i, a[i].size);
            goto end;
        }
    if ((p->lists ? size : a[n_in].size) != s->task.out_size) {
        misfit(s, n_in, p->lists ? size : a[n_in].size);
        goto end;
    }
    if (__builtin_expect(s->verdict != LIGHTNING_NEVER, 0) &&
        (there = goes_there(s, p->keeps || p->stays || p->moves != (LIGHTNING_SEND | LIGHTNING_FETCH))) < 0)
        goto end;
    if (p->keeps && !there && keep(s, in) < 0) goto end;
    if (p->lists) made = lightning_new(1, (const Py_ssize_t[]){ size }, &data);
    if (p->lists ? !made : !there && lightning_target_over(&t, &a[n_in], a, n_in) < 0) goto end;
    if (there) {
        data = p->lists ? data : a[n_in].data;
        rc = run_there(s, p->what, p->moves, in, data, count);
        if (!rc && p->shapes && s->shaped && p->moves & LIGHTNING_FETCH) shape_result(s, data);
        if (!rc && !p->lists) result = Py_NewRef(Py_None);
    } else {
        data = p->lists ? data : t.data;
        for (int64_t i = 0; i < count && !rc; i++) rc = compute(s, p->what, in, data);
        if (!rc && p->shapes && s->shaped) shape_result(s, data);
        if (!p->lists) result = lightning_target_end(&t, rc);
    }
    if (p->lists && !rc) result = PyObject_CallMethod(made, "tolist", NULL);
end:
    Py_XDECREF(made);
    lightning_end(a, n_in + !p->lists);
    return result;
}
static PyObject *run_cached(session *s, PyObject *repeat)
{
    int64_t count;
    int     rc = 0, there = 0;
    bool    ready;
    if (lightning_size(repeat, "n", &count) < 0) return NULL;
    if (!count || s->task.work < 0) return lightning_fail(LC_INVALID_VALUE);
    if (s->verdict != LIGHTNING_NEVER && (there = goes_there(s, true)) < 0) return NULL;
    take(s);
    if (there) {
        ready = s->resident.filled;
        if (ready)
            rc = lightning_resident_run(&s->resident, &s->task, s->task.op, s->device, LIGHTNING_WAIT, (float *[3]){ NULL },
                                        NULL, count);
    } else {
        float *in[] = { s->kept[0], s->kept[1], s->has_third ? s->kept[2] : NULL };
        ready = s->started;
        for (int64_t i = 0; i < count && ready && !rc; i++)
            rc = compute(s, s->kind == SUM ? LIGHTNING_ADD : LIGHTNING_SUB, in, s->kept[3]);
    }
    pthread_mutex_unlock(&s->lock);
    return !ready ? lightning_fail(LC_NOT_INITIALIZED) : rc < 0 ? NULL : Py_NewRef(Py_None);
}
enum { SEND = LIGHTNING_SEND, FETCH = LIGHTNING_FETCH, WAIT = LIGHTNING_WAIT };
#define PHASE(function, what, moves, ...)                                                                                      \
    static PyObject *phase_##function(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)                    \
    {                                                                                                                          \
        static const phase p = { #function, what, moves, __VA_ARGS__ };                                                        \
        return run_phase((session *)self, &p, args, n, names);                                                                 \
    }
/* A phase whose result is a list has to fetch it. */
#define PHASES(prefix, what)                                                                                                   \
    PHASE(prefix##start_into, what, SEND, .keeps = true)                                                                       \
    PHASE(prefix##run_into, what, 0, .keeps = false)                                                                           \
    PHASE(prefix##finish_into, what, FETCH, .keeps = false)                                                                    \
    PHASE(prefix##start, what, SEND | FETCH, .keeps = true, .lists = true)                                                     \
    PHASE(prefix##run, what, FETCH, .lists = true)                                                                             \
    PHASE(prefix##finish, what, FETCH, .lists = true)
PHASES(, LIGHTNING_ADD)
PHASES(sub_, LIGHTNING_SUB)
PHASES(div_, LIGHTNING_DIV)
PHASE(sync_into, LIGHTNING_ADD, FETCH, .keeps = false)
PHASE(sync, LIGHTNING_ADD, FETCH, .lists = true)
PHASE(run_batch_sync_into, LIGHTNING_ADD, FETCH, .counted = true)
PHASE(run_batch_sync_no_download_into, LIGHTNING_ADD, WAIT, .counted = true)
PHASE(run_batch_sync, LIGHTNING_ADD, FETCH, .lists = true, .counted = true)
PHASE(add, LIGHTNING_ADD, SEND | FETCH, .lists = true)
PHASE(sub, LIGHTNING_SUB, SEND | FETCH, .lists = true)
PHASE(div, LIGHTNING_DIV, SEND | FETCH, .lists = true)
static PyObject *forward_into(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    const phase p = { "forward_into", LIGHTNING_ADD, ((session *)self)->moves, .shapes = true };
    return run_phase((session *)self, &p, args, n, names);
}
LIGHTNING_SIGNATURE(run_batch_sync_cached_no_download, 1, "n");
static PyObject *run_batch_cached(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *slot[1];
    if (lightning_bind(&run_batch_sync_cached_no_download_signature, args, n, names, slot) < 0) return NULL;
    return run_cached((session *)self, slot[0]);
}

/* ---- for Python ---- */
static PyObject *run_moving(PyObject *self, PyObject *const *args, Py_ssize_t n,
                            UNUSED PyObject *names) /* the last argument: what the call moves */
{
    int64_t moves;
    if (n < 1) return PyErr_SetString(PyExc_TypeError, "_run() takes operands, out and moves"), NULL;
    if (lightning_size(args[n - 1], "moves", &moves) < 0) return NULL;
    const phase p = { "_run", LIGHTNING_ADD, (unsigned)moves & LIGHTNING_MOVES, .stays = true };
    PyObject   *done = run_phase((session *)self, &p, args, n - 1, NULL);
    Py_XDECREF(done);
    return done ? PyBool_FromLong(((session *)self)->verdict != LIGHTNING_NEVER) : NULL;
}
static PyObject *use_device(PyObject *self, PyObject *device)
{
    session     *s = (session *)self;
    lcDeviceKind kind;
    if (lightning_device(device, LC_DEVICE_METAL, &kind) < 0) return NULL;
    take(s);
    s->device = kind, s->verdict = LIGHTNING_UNSETTLED, s->way = LIGHTNING_UNKNOWN, s->started = false;
    lightning_resident_end(&s->resident);
    pthread_mutex_unlock(&s->lock);
    return Py_NewRef(Py_None);
}
/* The operands of attention as tensors on the device, sent as moves says; None if the CPU computes. */
static PyObject *operands(PyObject *self, PyObject *args)
{
    session        *s = (session *)self;
    PyObject       *objects[3], *result = NULL;
    lightning_array a[3];
    int             moves, rc = 0;
    if (!PyArg_ParseTuple(args, "OOOi:_operands", &objects[0], &objects[1], &objects[2], &moves)) return NULL;
    if (s->task.work < 0) return lightning_fail(LC_INVALID_VALUE);
    int there = goes_there(s, moves != (LIGHTNING_SEND | LIGHTNING_FETCH));
    if (there <= 0) return there < 0 ? NULL : Py_NewRef(Py_None);
    if (lightning_read_all(objects, a, 3) == 0) {
        for (int i = 0; i < 3 && !rc; i++)
            if (a[i].size != s->task.in_size[i]) misfit(s, i, a[i].size), rc = -1;
        float *const in[] = { a[0].data, a[1].data, a[2].data };
        if (!rc) {
            take(s);
            rc = lightning_resident_fill(&s->resident, &s->task, (unsigned)moves, in);
            if (!rc && (result = PyTuple_New(3)))
                for (int i = 0; i < 3 && result; i++) {
                    PyObject *view = py_wrap(lightning_resident_view(&s->resident, &s->task, i));
                    if (view) PyTuple_SET_ITEM(result, i, view);
                    else Py_CLEAR(result);
                }
            pthread_mutex_unlock(&s->lock);
        }
    }
    return lightning_end(a, 3), result;
}
static PyObject *set_policy(PyObject *self, PyObject *args) /* of attention: out * scale + bias, then ReLU; what it moves */
{
    session *s = (session *)self;
    float    scale, bias;
    int      relu, moves;
    if (!PyArg_ParseTuple(args, "ffpi:_set_policy", &scale, &bias, &relu, &moves)) return NULL;
    s->scale = scale, s->bias = bias, s->relu = relu, s->shaped = scale != 1 || bias != 0 || relu;
    s->moves = (unsigned)moves & LIGHTNING_MOVES;
    return Py_NewRef(Py_None);
}

#define RUNS(f)     LIGHTNING_FAST(phase_##f)
#define THREE       "(a, b, out)\n--\n\n"
#define FOUR        "(x, w, bias, out)\n--\n\n"
#define START(what) what " into out; keeps the operands. An accelerator gets them, and leaves out as it is."
#define RUN(what)   what " into out. An accelerator computes with what it has, and leaves out as it is."
#define MOVING      "_run(operands, out, moves): whether an accelerator computed it, which moves no more than that."
#define USE         "_use(device): from now on; what was kept is dropped."
#define CACHED      "_run_cached(n): with the operands that start kept, and waits."
static PyMethodDef product_methods[] = {
    { "start_into", RUNS(start_into), "start_into" THREE START("The product") },
    { "run_into", RUNS(run_into), "run_into" THREE RUN("The product") },
    { "sync_into", RUNS(sync_into), "sync_into" THREE "The product into out, complete." },
    { "finish_into", RUNS(finish_into), "finish_into" THREE "The product into out, complete." },
    { "run_batch_sync_into", RUNS(run_batch_sync_into),
      "run_batch_sync_into(a, b, out, n)\n--\n\nThe product n times, into out." },
    { "run_batch_sync_no_download_into", RUNS(run_batch_sync_no_download_into),
      "run_batch_sync_no_download_into(a, b, out, n)\n--\n\nThe same; an accelerator leaves out as it is." },
    { "run_batch_sync_cached_no_download", LIGHTNING_FAST(run_batch_cached),
      "run_batch_sync_cached_no_download(n)\n--\n\nThe product of the operands that start kept." },
    { "start", RUNS(start), "start(a, b, out_size)\n--\n\nThe product as a list; keeps the operands." },
    { "run", RUNS(run), "run(a, b, out_size)\n--\n\nThe product as a list." },
    { "sync", RUNS(sync), "sync(a, b, out_size)\n--\n\nThe product as a list." },
    { "finish", RUNS(finish), "finish(a, b, out_size)\n--\n\nThe product as a list." },
    { "run_batch_sync", RUNS(run_batch_sync), "run_batch_sync(a, b, out_size, n)\n--\n\nThe product n times, as a list." },
    { "_run", LIGHTNING_FAST(run_moving), MOVING },
    { "_use", use_device, METH_O, USE },
    { "_run_cached", LIGHTNING_FAST(run_batch_cached), CACHED },
    { 0 }
};
static PyMethodDef elementwise_methods[] = {
    { "sub_start_into", RUNS(sub_start_into), "sub_start_into" THREE START("a - b") },
    { "sub_run_into", RUNS(sub_run_into), "sub_run_into" THREE RUN("a - b") },
    { "sub_finish_into", RUNS(sub_finish_into), "sub_finish_into" THREE "a - b into out." },
    { "div_start_into", RUNS(div_start_into), "div_start_into" THREE START("a / b") },
    { "div_run_into", RUNS(div_run_into), "div_run_into" THREE RUN("a / b") },
    { "div_finish_into", RUNS(div_finish_into), "div_finish_into" THREE "a / b into out." },
    { "sub_start", RUNS(sub_start), "sub_start(a, b, out_size)\n--\n\na - b as a list." },
    { "sub_run", RUNS(sub_run), "sub_run(a, b, out_size)\n--\n\na - b as a list." },
    { "sub_finish", RUNS(sub_finish), "sub_finish(a, b, out_size)\n--\n\na - b as a list." },
    { "sub", RUNS(sub), "sub(a, b, out_size)\n--\n\na - b as a list." },
    { "div_start", RUNS(div_start), "div_start(a, b, out_size)\n--\n\na / b as a list." },
    { "div_run", RUNS(div_run), "div_run(a, b, out_size)\n--\n\na / b as a list." },
    { "div_finish", RUNS(div_finish), "div_finish(a, b, out_size)\n--\n\na / b as a list." },
    { "div", RUNS(div), "div(a, b, out_size)\n--\n\na / b as a list." },
    { "_use", use_device, METH_O, USE },
    { "_run_cached", LIGHTNING_FAST(run_batch_cached), CACHED },
    { 0 }
};
static PyMethodDef sum_methods[] = { { "start_into", RUNS(start_into), "start_into" THREE START("a + b") },
                                     { "run_into", RUNS(run_into), "run_into" THREE RUN("a + b") },
                                     { "finish_into", RUNS(finish_into), "finish_into" THREE "a + b into out." },
                                     { "start", RUNS(start), "start(a, b, out_size)\n--\n\na + b as a list." },
                                     { "run", RUNS(run), "run(a, b, out_size)\n--\n\na + b as a list." },
                                     { "finish", RUNS(finish), "finish(a, b, out_size)\n--\n\na + b as a list." },
                                     { "add", RUNS(add), "add(a, b, out_size)\n--\n\na + b as a list." },
                                     { "_use", use_device, METH_O, USE },
                                     { "_run_cached", LIGHTNING_FAST(run_batch_cached), CACHED },
                                     { 0 } };
static PyMethodDef convolution_methods[] = {
    { "start_into", RUNS(start_into), "start_into" FOUR START("The convolution") },
    { "run_into", RUNS(run_into), "run_into" FOUR RUN("The convolution") },
    { "sync_into", RUNS(sync_into), "sync_into(x, w, bias, out)\n--\n\nThe convolution into out, complete." },
    { "finish_into", RUNS(finish_into), "finish_into(x, w, bias, out)\n--\n\nThe convolution into out, complete." },
    { "run_batch_sync_into", RUNS(run_batch_sync_into),
      "run_batch_sync_into(x, w, bias, out, n)\n--\n\nThe convolution n times, into out." },
    { "_run", LIGHTNING_FAST(run_moving), MOVING },
    { "_use", use_device, METH_O, USE },
    { "_run_cached", LIGHTNING_FAST(run_batch_cached), CACHED },
    { 0 }
};
static PyMethodDef attention_methods[] = {
    { "forward_into", LIGHTNING_FAST(forward_into), "forward_into(q, k, v, out)\n--\n\nAttention into out." },
    { "_set_policy", set_policy, METH_VARARGS,
      "_set_policy(scale, bias, relu, moves): what is done to every result, and what forward_into moves." },
    { "_run", LIGHTNING_FAST(run_moving), MOVING },
    { "_operands", operands, METH_VARARGS, "_operands(q, k, v, moves): tensors on the device; None if the CPU computes." },
    { "_use", use_device, METH_O, USE },
    { "_run_cached", LIGHTNING_FAST(run_batch_cached), CACHED },
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
    pthread_atfork(NULL, NULL, count_fork);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        PyObject *type = PyType_FromSpec(&specs[i]);
        if (!type || PyModule_AddType(module, (PyTypeObject *)type) < 0) return Py_XDECREF(type), -1;
        Py_DECREF(type);
    }
    return 0;
}
