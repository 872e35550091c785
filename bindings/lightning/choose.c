/* Which way an operator is computed. Device "cpu" follows a fixed rule by shape. The others are tuned: the first call of a shape asks
 * lightning_core._tuning, which measures the ways or finds the answer in a file; later calls find it in the table here. */
#include "lightning.h"

enum { SLOTS = 1 << 12, LITTLE_PRODUCT = 256, LITTLE_ATTENTION = 2048 };
typedef struct {
    int64_t key[3]; /* key[0] 0: empty */
    int     way;
} choice;
static struct {
    choice slot[SLOTS];
    int    used;
} matmul_choices, attention_choices;

static choice *find(choice *slots, int64_t a, int64_t b, int64_t c)
{
    uint64_t h = (uint64_t)a * 0x9e3779b97f4a7c15u + (uint64_t)b * 0xc2b2ae3d27d4eb4fu + (uint64_t)c * 0x165667b19e3779f9u;
    for (uint64_t i = h >> 52;; i++) {
        choice *at = &slots[i % SLOTS];
        if (!at->key[0] || (at->key[0] == a && at->key[1] == b && at->key[2] == c)) return at;
    }
}
static void forget_all(void)
{
    memset(&matmul_choices, 0, sizeof matmul_choices); /* and the counts */
    memset(&attention_choices, 0, sizeof attention_choices);
}

/* Asks Python once per shape. The answer may come late, after other calls: find looks again. */
static int ask(const char *function, choice *slots, int *used, int64_t a, int64_t b, int64_t c, lightning_way *way)
{
    choice *at = find(slots, a, b, c);
    if (at->key[0]) return *way = (lightning_way)at->way, 0;
    PyObject *tuning = PyImport_ImportModule("lightning_core._tuning"),
             *answer = tuning ? PyObject_CallMethod(tuning, function, "LLL", a, b, c) : NULL;
    Py_XDECREF(tuning);
    long chosen = answer ? PyLong_AsLong(answer) : -1;
    Py_XDECREF(answer);
    if (chosen < 0 || chosen >= LIGHTNING_WAYS) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_RuntimeError, "tuning gave the unknown way %ld", chosen);
        return -1;
    }
    if (*used >= SLOTS / 2) forget_all();
    at = find(slots, a, b, c);
    *used += !at->key[0];
    *at = (choice){ { a, b, c }, (int)chosen };
    return *way = (lightning_way)chosen, 0;
}

int lightning_matmul_way(lcDeviceKind device, int64_t m, int64_t k, int64_t n, lightning_way *way)
{
    if (device == LC_DEVICE_METAL) return ask("matmul_way", matmul_choices.slot, &matmul_choices.used, m, k, n, way);
    return *way = m * k * n <= LITTLE_PRODUCT ? LIGHTNING_DIRECT : LIGHTNING_ALL, 0;
}
int lightning_attention_way(lcDeviceKind device, int64_t seq, int64_t dim, bool causal, lightning_way *way)
{
    if (device == LC_DEVICE_METAL)
        return ask("attention_way", attention_choices.slot, &attention_choices.used, seq, dim, causal, way);
    return *way = seq * seq * dim <= LITTLE_ATTENTION ? LIGHTNING_DIRECT : LIGHTNING_ALL, 0;
}

/* ---- for lightning_core._tuning: run one way; forget what was chosen ---- */
static PyObject *run_product(UNUSED PyObject *m, PyObject *args)
{
    PyObject       *objects[3], *result = NULL;
    lightning_array a[3] = { { 0 } };
    long long       rows, depth, columns;
    int             way, count;
    if (!PyArg_ParseTuple(args, "OOOLLLii:_run_product", &objects[0], &objects[1], &objects[2], &rows, &depth, &columns, &way,
                          &count))
        return NULL;
    if (lightning_read(objects[0], &a[0]) == 0 && lightning_read(objects[1], &a[1]) == 0 &&
        lightning_write(objects[2], &a[2]) == 0) {
        if (rows < 1 || depth < 1 || columns < 1 || a[0].size != rows * depth || a[1].size != depth * columns ||
            a[2].size != rows * columns || way < 0 || way >= LIGHTNING_WAYS)
            PyErr_SetString(PyExc_ValueError, "sizes do not fit");
        else {
            int rc = 0;
            for (int i = 0; i < count && !rc; i++)
                rc = lightning_product((lightning_way)way, a[0].data, a[1].data, a[2].data, rows, depth, columns);
            if (!rc) result = Py_NewRef(Py_None);
        }
    }
    return lightning_end(a, 3), result;
}
static PyObject *run_attention(UNUSED PyObject *m, PyObject *args)
{
    PyObject       *objects[4], *result = NULL;
    lightning_array a[4] = { { 0 } };
    long long       seq, dim;
    int             causal, way, count, rc = 0;
    if (!PyArg_ParseTuple(args, "OOOOLLpii:_run_attention", &objects[0], &objects[1], &objects[2], &objects[3], &seq, &dim,
                          &causal, &way, &count))
        return NULL;
    for (int i = 0; i < 3 && !rc; i++) rc = lightning_read(objects[i], &a[i]);
    if (!rc && !(rc = lightning_write(objects[3], &a[3]))) {
        for (int i = 0; i < 4; i++) rc |= seq < 1 || dim < 1 || a[i].size != seq * dim;
        if (rc || way < 0 || way >= LIGHTNING_WAYS) PyErr_SetString(PyExc_ValueError, "sizes do not fit");
        else {
            for (int i = 0; i < count && !rc; i++)
                rc = lightning_attend((lightning_way)way, a[0].data, a[1].data, a[2].data, a[3].data, seq, dim, causal);
            if (!rc) result = Py_NewRef(Py_None);
        }
    }
    return lightning_end(a, 4), result;
}
static PyObject *forget_choices(UNUSED PyObject *m, UNUSED PyObject *unused) { return forget_all(), Py_NewRef(Py_None); }

PyMethodDef lightning_choice_functions[] = {
    { "_run_product", run_product, METH_VARARGS,
      "_run_product(a, b, out, m, k, n, way, count): one way of a product, measured." },
    { "_run_attention", run_attention, METH_VARARGS, "_run_attention(q, k, v, out, seq, dim, causal, way, count)" },
    { "_forget_choices", forget_choices, METH_NOARGS, "The next call of every shape asks lightning_core._tuning again." },
    { 0 }
};
