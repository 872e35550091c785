/* Operators on the accelerator: a CUDA device, when there is one (engine/lightning/accelerator.h).
 *
 * A task is an operator of one shape. Its operands and its result lie side by side in one piece of device memory, a resident. A call
 * says what it moves: one-shot operators send all operands, launch and fetch; sessions keep their resident, so that a call between
 * start and finish is a launch and nothing else. Before a result is fetched the device has finished without an error: out is written
 * whole or not at all.
 *
 * Device "cuda" always computes here. Of "metal" lightning_core._tuning decides by shape: it measures both sides once and keeps the
 * answer in a file. A copy to the device and back costs more than most small operators, so one-shot calls and sessions have different
 * break-even points: three verdicts. */
#include "lightning.h"

static const lc_device host = { .kind = LC_CPU };

/* ---- tasks ---- */
lightning_task lightning_product_task(int64_t m, int64_t k, int64_t n)
{
    return (lightning_task){ LIGHTNING_OP_MATMUL, 2, { m * k, k * n }, m * n, m * k * n, { m, k, n }, .causal = false };
}
lightning_task lightning_pointwise_task(lightning_op op, int64_t n)
{
    return (lightning_task){ op, 2, { n, n }, n, n, { n }, .causal = false };
}
lightning_task lightning_attention_task(int64_t seq, int64_t dim, bool causal)
{
    int64_t n = seq * dim;
    return (lightning_task){ LIGHTNING_OP_ATTENTION, 3, { n, n, n }, n, n * seq, { seq, dim }, .causal = causal };
}
lightning_task lightning_conv_task(const lightning_conv_shape *s)
{
    int64_t taps = s->c * s->kh * s->kw, size = s->n * s->o * s->oh * s->ow;
    return (lightning_task){ LIGHTNING_OP_CONV, 3,         { s->n * s->c * s->h * s->w, s->o * taps, s->o }, size,
                             size * taps,       .conv = *s };
}
lightning_task lightning_pipeline_task(const lightning_conv_shape *s, int64_t seq, int64_t dim)
{
    lightning_task t = lightning_conv_task(s);
    t.op = LIGHTNING_PIPELINE, t.out_size = seq * dim, t.dims[0] = seq, t.dims[1] = dim;
    return t;
}

/* ---- residents ---- */
static int64_t size_of(const lightning_task *t, int i)
{
    if (i < 3) return i < t->n_in ? t->in_size[i] : 0;
    if (i == 3) return t->out_size;
    int64_t image = t->conv.n * t->conv.o * t->conv.oh * t->conv.ow; /* beside: image, q, k and v; the sums of the softmax */
    return (t->op == LIGHTNING_PIPELINE ? image + 3 * t->out_size : 0) +
           (t->op == LIGHTNING_PIPELINE || t->op == LIGHTNING_OP_ATTENTION ? t->dims[0] : 0);
}
static int reserve(lightning_resident *r, const lightning_task *t)
{
    enum { LINE = 256 };
    size_t bytes = 0;
    for (int i = 0; i < 5; i++) {
        r->at[i] = bytes;
        bytes += ((size_t)size_of(t, i) * sizeof(float) + LINE - 1) / LINE * LINE;
    }
    if (!(r->memory = lc_storage_new(lc_current_device(LC_CUDA), bytes))) return -1;
    return r->queue = lc_backends[LC_CUDA]->queue(r->memory->device.index), 0;
}
static float *place(const lightning_resident *r, int i) { return (float *)(r->memory->data + r->at[i]); }
void          lightning_resident_end(lightning_resident *r)
{
    if (r->memory) lc_storage_release(r->memory);
    r->memory = NULL, r->filled = false;
}
/* Work of another stream on this memory comes first, and the memory stays until the work of this one is done. */
static int follow(lightning_resident *r, lc_device where)
{
    const lc_backend *b = lc_backends[where.kind];
    void             *queue = b->queue(where.index), *before = r->queue;
    if (queue == before) return 0;
    if (b->queue_waits(where.index, queue, where.index, before) < 0 || b->used_on_queue(r->memory, queue) < 0) return -1;
    return r->queue = queue, 0;
}
static int moved(int64_t n, lcMemcpyKind kind, int rc)
{
    lc_runtime_note(LC_EVENT_memcpy, rc < 0 ? LC_DRIVER_ERROR : LC_SUCCESS, (uint64_t)n * sizeof(float), kind, 0);
    return rc;
}
static int fill(lightning_resident *r, const lightning_task *t, unsigned moves, float *const *in)
{
    if (!r->memory && reserve(r, t) < 0) return -1;
    lc_device where = r->memory->device;
    if (follow(r, where) < 0) return -1;
    if (!r->filled) moves |= LIGHTNING_SEND;
    bool has_third = moves >> 2 & 1 ? t->n_in == 3 && in[2] : r->has_third;
    bool whole = r->filled;
    r->filled = false;
    for (int i = 0; i < t->n_in; i++) {
        if (!(moves >> i & 1) || !in[i]) continue;
        int rc = lightning_move(where, place(r, i), host, in[i], t->in_size[i]);
        if (moved(t->in_size[i], LC_MEMCPY_HOST_TO_DEVICE, rc) < 0) return -1;
        whole = true;
    }
    return r->filled = whole, r->has_third = has_third, 0;
}
int lightning_resident_fill(lightning_resident *r, const lightning_task *t, unsigned moves, float *const *in)
{
    return fill(r, t, moves, in) < 0 ? py_raise_int() : 0;
}
lc_tensor *lightning_resident_view(const lightning_resident *r, const lightning_task *t, int i)
{
    return lc_tensor_on(r->memory, LC_f32, 2, t->dims, (int64_t[]){ t->dims[1], 1 }, (int64_t)(r->at[i] / sizeof(float)));
}
static int pipeline(lc_device where, const lightning_resident *r, const lightning_task *t, float *const *in)
{
    const lightning_conv_shape *s = &t->conv;
    int64_t                     each = t->out_size, size = s->n * s->o * s->oh * s->ow;
    float                      *image = place(r, 4), *q = image + size;
    lightning_task conv = lightning_conv_task(s), attention = lightning_attention_task(t->dims[0], t->dims[1], false);
    if (lightning_launch(where, &conv, conv.op, in, image, NULL) < 0) return -1;
    if (lightning_repeat(where, image, size, q, 3 * each) < 0) return -1;
    return lightning_launch(where, &attention, attention.op, (float *[]){ q, q + each, q + 2 * each }, place(r, 3),
                            q + 3 * each);
}
static int run(lightning_resident *r, const lightning_task *t, lightning_op op, lcDeviceKind requested, unsigned moves,
               float *const *in, float *out, int64_t count)
{
    if (fill(r, t, moves, in) < 0) return -1;
    lc_device where = r->memory->device;
    float    *there[] = { place(r, 0), place(r, 1), r->has_third ? place(r, 2) : NULL };
    for (int64_t i = 0; i < count; i++) {
        lightning_note_on(op == LIGHTNING_PIPELINE ? LIGHTNING_OP_CONV : op, requested, LC_DEVICE_CUDA, t->work);
        if (op == LIGHTNING_PIPELINE)
            lightning_note_on(LIGHTNING_OP_ATTENTION, requested, LC_DEVICE_CUDA, t->out_size * t->dims[0]);
        int rc = op == LIGHTNING_PIPELINE ? pipeline(where, r, t, there)
                                          : lightning_launch(where, t, op, there, place(r, 3), place(r, 4));
        if (rc < 0) return -1;
    }
    if (!(moves & (LIGHTNING_FETCH | LIGHTNING_WAIT))) return 0;
    if (lc_device_synchronize(where) < 0) return -1;
    lc_runtime_note(LC_EVENT_device_synchronize, LC_SUCCESS, 0, 0, 0);
    if (!(moves & LIGHTNING_FETCH)) return 0;
    return moved(t->out_size, LC_MEMCPY_DEVICE_TO_HOST, lightning_move(host, out, where, place(r, 3), t->out_size));
}
int lightning_resident_run(lightning_resident *r, const lightning_task *t, lightning_op op, lcDeviceKind requested,
                           unsigned moves, float *const *in, float *out, int64_t count)
{
    return run(r, t, op, requested, moves, in, out, count) < 0 ? py_raise_int() : 0;
}

/* ---- verdicts: asked for once per shape ---- */
enum { SLOTS = 1 << 10, KEY = 14, ASK_AGAIN = LIGHTNING_UNSETTLED };
typedef struct {
    int64_t key[KEY]; /* key[0] 0: empty */
    int     verdict;
} judged;
static struct {
    judged slot[SLOTS];
    int    used;
} verdicts;

static const char *const names[] = {
    [LIGHTNING_OP_MATMUL] = "matmul",       [LIGHTNING_OP_ADD] = "vector_add",   [LIGHTNING_OP_SUB] = "matrix_sub",
    [LIGHTNING_OP_DIV] = "matrix_div",      [LIGHTNING_OP_CONV] = "conv2d_nchw", [LIGHTNING_OP_ATTENTION] = "attention_forward",
    [LIGHTNING_PIPELINE] = "conv_attention"
};
static int key_of(const lightning_task *t, int64_t key[KEY]) /* how many numbers follow the first */
{
    const lightning_conv_shape *s = &t->conv;
    const int64_t window[] = { s->n, s->c, s->h, s->w, s->o, s->kh, s->kw, s->stride_h, s->stride_w, s->pad_h, s->pad_w };
    bool          conv = t->op == LIGHTNING_OP_CONV || t->op == LIGHTNING_PIPELINE;
    int           n = 1;
    memset(key, 0, KEY * sizeof *key);
    key[0] = t->op;
    for (int i = 0; conv && i < 11; i++) key[n++] = window[i];
    for (int i = 0; i < 3 && t->dims[i]; i++) key[n++] = t->dims[i];
    if (t->op == LIGHTNING_OP_ATTENTION) key[n++] = t->causal;
    return n - 1;
}
static judged *find(const int64_t key[KEY])
{
    uint64_t h = 0;
    for (int i = 0; i < KEY; i++) h = (h ^ (uint64_t)key[i]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    for (;; h++) {
        judged *at = &verdicts.slot[h % SLOTS];
        if (!at->key[0] || !memcmp(at->key, key, sizeof at->key)) return at;
    }
}
static judged *enter(const int64_t key[KEY], int verdict)
{
    if (verdicts.used >= SLOTS / 2) memset(&verdicts, 0, sizeof verdicts);
    judged *at = find(key);
    verdicts.used += !at->key[0];
    memcpy(at->key, key, sizeof at->key);
    return at->verdict = verdict, at;
}
/* While the ways are measured the shape is the CPU's: "metal" then times the CPU, "cuda" the device. */
static int ask(const lightning_task *t, const int64_t key[KEY], int n)
{
    PyObject *sizes = PyTuple_New(n), *tuning = sizes ? PyImport_ImportModule("lightning_core._tuning") : NULL;
    for (int i = 0; sizes && i < n; i++) {
        PyObject *size = PyLong_FromLongLong(key[i + 1]);
        if (!size) Py_CLEAR(sizes);
        else PyTuple_SET_ITEM(sizes, i, size);
    }
    enter(key, LIGHTNING_NEVER);
    PyObject *answer = tuning && sizes ? PyObject_CallMethod(tuning, "crossover", "sO", names[t->op], sizes) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(tuning);
    int verdict = -1, keeps = 0;
    if (answer && !PyArg_ParseTuple(answer, "ip", &verdict, &keeps)) verdict = -1;
    Py_XDECREF(answer);
    if (!PyErr_Occurred() && (verdict < 0 || verdict > LIGHTNING_ALWAYS))
        PyErr_Format(PyExc_RuntimeError, "tuning gave the unknown verdict %d", verdict);
    if (PyErr_Occurred()) return enter(key, ASK_AGAIN), -1;
    return enter(key, keeps ? verdict : ASK_AGAIN), verdict;
}
int lightning_judge(const lightning_task *t, lcDeviceKind device)
{
    if (!lc_runtime_uses_cuda(device)) return LIGHTNING_NEVER;
    if (device == LC_DEVICE_CUDA) return LIGHTNING_ALWAYS;
    int64_t key[KEY];
    int     n = key_of(t, key);
    judged *at = find(key);
    return at->key[0] && at->verdict != ASK_AGAIN ? at->verdict : ask(t, key, n);
}
int lightning_offload(const lightning_task *t, lcDeviceKind device, float *const *in, float *out)
{
    int verdict = lightning_judge(t, device);
    if (verdict != LIGHTNING_ALWAYS) return verdict < 0 ? -1 : 1;
    lightning_resident r = { 0 };
    int                rc = lightning_resident_run(&r, t, t->op, device, LIGHTNING_SEND | LIGHTNING_FETCH, in, out, 1);
    return lightning_resident_end(&r), rc;
}

/* ---- for Python ---- */
static PyObject *uses_cuda(UNUSED PyObject *m, PyObject *device)
{
    lcDeviceKind kind;
    if (lightning_device(device, LC_DEVICE_CPU, &kind) < 0) return NULL;
    return PyBool_FromLong(lc_runtime_uses_cuda(kind));
}
static PyObject *hide_cuda(UNUSED PyObject *m, PyObject *hidden)
{
    bool flag;
    if (lightning_flag(hidden, "hidden", false, &flag) < 0) return NULL;
    return lc_runtime_hide_cuda(flag), Py_NewRef(Py_None);
}
static PyObject *forget_verdicts(UNUSED PyObject *m, UNUSED PyObject *unused)
{
    return memset(&verdicts, 0, sizeof verdicts), Py_NewRef(Py_None);
}
PyMethodDef lightning_device_functions[] = {
    { "_uses_cuda", uses_cuda, METH_O, "_uses_cuda(device): whether CUDA computes for it, or may, for \"metal\"." },
    { "_hide_cuda", hide_cuda, METH_O, "_hide_cuda(hidden): tests: as if there were no CUDA device; False: look again." },
    { "_forget_verdicts", forget_verdicts, METH_NOARGS, "The next call of every shape asks lightning_core._tuning again." },
    { 0 }
};
