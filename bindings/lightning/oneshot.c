/* The one-shot operators. Each reads its arrays, checks shapes (ValueError, nothing written), refuses empty work (RuntimeError "invalid
 * value"), and computes into a new array or into out. */
#include "lightning.h"

static PyObject *as_list_like(PyObject *given, PyObject *result) /* lists in, a list out */
{
    if (!result || !PyList_Check(given)) return result;
    PyObject *list = PyObject_CallMethod(result, "tolist", NULL);
    Py_DECREF(result);
    return list;
}

/* ---- products ---- */
static int multiply(lcDeviceKind device, const lightning_array *a, const lightning_array *b, float *out, int64_t m, int64_t k,
                    int64_t n)
{
    lightning_way way;
    if (lc_runtime_may_use_cuda(device)) {
        lightning_task t = lightning_product_task(m, k, n);
        int            rc = lightning_offload(&t, device, (float *[]){ a->data, b->data }, out);
        if (rc <= 0) return rc;
    }
    if (lightning_matmul_way(device, m, k, n, &way) < 0) return -1;
    lightning_note(LIGHTNING_OP_MATMUL, device, m * k * n);
    return lightning_product(way, a->data, b->data, out, m, k, n);
}
static bool empty_product(int64_t m, int64_t k, int64_t n)
{
    if (m && k && n) return false;
    return lightning_fail(LC_INVALID_VALUE), true;
}
static bool are_matrices(const char *function, const lightning_array *a)
{
    if (a[0].nd == 2 && a[1].nd == 2 && a[0].dims[1] == a[1].dims[0]) return true;
    return lightning_wrong(function,
                           a[0].nd == 2 && a[1].nd == 2 ? "the columns of a are not the rows of b" : "a and b must be 2-D"),
           false;
}

static PyObject *product_of_matrices(const char *function, PyObject *const *slot, PyObject *out, PyObject *where)
{
    PyObject       *result = NULL;
    lcDeviceKind    device;
    lightning_array a[3];
    if (lightning_device(where, LC_DEVICE_METAL, &device) < 0) return NULL;
    a[2].owner = NULL, a[2].from_buffer = false;
    if (lightning_read_all(slot, a, 2) == 0 && are_matrices(function, a) && (!out || lightning_write(out, &a[2]) == 0)) {
        const Py_ssize_t dims[] = { a[0].dims[0], a[1].dims[1] }, depth = a[0].dims[1];
        bool             fits = !out || (a[2].nd == 2 ? a[2].dims[0] == dims[0] && a[2].dims[1] == dims[1]
                                                      : a[2].nd == 1 && a[2].size == dims[0] * dims[1]);
        lightning_target t;
        if (!fits) lightning_wrong(function, "out must be (m, n) or flat (m * n,)");
        else if (!empty_product(dims[0], depth, dims[1]) &&
                 (out ? lightning_target_over(&t, &a[2], a, 2) : lightning_target_new(&t, 2, dims)) == 0)
            result = lightning_target_end(&t, multiply(device, &a[0], &a[1], t.data, dims[0], depth, dims[1]));
    }
    return lightning_end(a, out ? 3 : 2), result;
}
LIGHTNING_FUNCTION(matmul2d, 2, product_of_matrices("matmul2d", slot, NULL, slot[2]), "a", "b", "device")
LIGHTNING_FUNCTION(matmul2d_into, 3, product_of_matrices("matmul2d_into", slot, slot[2], slot[3]), "a", "b", "out", "device")

/* matmul, matmul_np and matmul_np_into: sizes are given, arrays may have any rank. */
static PyObject *sized_product(const char *function, PyObject *const *arrays, bool into, PyObject *const *sizes)
{
    PyObject       *result = NULL;
    lcDeviceKind    device;
    lightning_array a[3];
    int64_t         m, k, n;
    if (lightning_size(sizes[0], "m", &m) < 0 || lightning_size(sizes[1], "k", &k) < 0 ||
        lightning_size(sizes[2], "n", &n) < 0 || lightning_device(sizes[3], LC_DEVICE_METAL, &device) < 0)
        return NULL;
    a[2].owner = NULL, a[2].from_buffer = false;
    if (lightning_read_all(arrays, a, 2) == 0 && (!into || lightning_write(arrays[2], &a[2]) == 0)) {
        Py_ssize_t       flat[] = { 0 };
        lightning_target t;
        if (!lightning_has_size(&a[0], m, k) || !lightning_has_size(&a[1], k, n) || __builtin_mul_overflow(m, n, &flat[0]))
            lightning_wrong(function, "a must have m * k elements and b k * n");
        else if (into && a[2].size != flat[0]) lightning_wrong(function, "out must have m * n elements");
        else if (!empty_product(m, k, n) &&
                 (into ? lightning_target_over(&t, &a[2], a, 2) : lightning_target_new(&t, 1, flat)) == 0)
            result = lightning_target_end(&t, multiply(device, &a[0], &a[1], t.data, m, k, n));
    }
    return lightning_end(a, into ? 3 : 2), result;
}
LIGHTNING_FUNCTION(matmul, 5, as_list_like(slot[0], sized_product("matmul", slot, false, slot + 2)), "a", "b", "m", "k", "n",
                   "device")
LIGHTNING_FUNCTION(matmul_np, 5, sized_product("matmul_np", slot, false, slot + 2), "a", "b", "m", "k", "n", "device")
LIGHTNING_FUNCTION(matmul_np_into, 6, sized_product("matmul_np_into", slot, true, slot + 3), "a", "b", "out", "m", "k", "n",
                   "device")

/* ---- element by element ---- */
static int combine_flat(lightning_pointwise what, lcDeviceKind device, const lightning_array *a, float *out)
{
    static const lightning_op ops[] = { LIGHTNING_OP_ADD, LIGHTNING_OP_SUB, LIGHTNING_OP_DIV };
    if (lc_runtime_may_use_cuda(device)) {
        lightning_task t = lightning_pointwise_task(ops[what], a[0].size);
        int            rc = lightning_offload(&t, device, (float *[]){ a[0].data, a[1].data }, out);
        if (rc <= 0) return rc;
    }
    lightning_note(ops[what], device, a[0].size);
    return lightning_combine(what, a[0].data, a[1].data, out, a[0].size);
}
static PyObject *combine(const char *function, lightning_pointwise what, lcDeviceKind device, PyObject *const *slot,
                         int64_t size)
{
    PyObject       *result = NULL;
    lightning_array a[2];
    if (lightning_read_all(slot, a, 2) == 0) {
        const Py_ssize_t flat[] = { a[0].size };
        lightning_target t;
        if (a[0].size != a[1].size || (size >= 0 && a[0].size != size))
            lightning_wrong(function, "the sizes of a and b do not fit");
        else if (!a[0].size) lightning_fail(LC_INVALID_VALUE);
        else if (lightning_target_new(&t, 1, flat) == 0)
            result = lightning_target_end(&t, combine_flat(what, device, a, t.data));
    }
    return lightning_end(a, 2), as_list_like(slot[0], result);
}
LIGHTNING_SIGNATURE(vector_add, 2, "a", "b", "device");
static PyObject *vector_add(UNUSED PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject    *slot[3];
    lcDeviceKind device;
    if (lightning_bind(&vector_add_signature, args, n, names, slot) < 0 ||
        lightning_device(slot[2], LC_DEVICE_METAL, &device) < 0)
        return NULL;
    return combine("vector_add", LIGHTNING_ADD, device, slot, -1);
}
LIGHTNING_SIGNATURE(matrix_sub, 4, "a", "b", "rows", "cols", "device");
static PyObject *matrix_sub(UNUSED PyObject *m, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject    *slot[5];
    lcDeviceKind device;
    int64_t      rows, columns, size;
    if (lightning_bind(&matrix_sub_signature, args, n, names, slot) < 0 || lightning_size(slot[2], "rows", &rows) < 0 ||
        lightning_size(slot[3], "cols", &columns) < 0 || lightning_device(slot[4], LC_DEVICE_METAL, &device) < 0)
        return NULL;
    if (__builtin_mul_overflow(rows, columns, &size)) return lightning_wrong("matrix_sub", "rows * cols is too large");
    return combine("matrix_sub", LIGHTNING_SUB, device, slot, size);
}

/* ---- attention ---- */
static int attend(lcDeviceKind device, const lightning_array *a, float *out, int64_t seq, int64_t dim, bool causal)
{
    lightning_way way;
    if (lc_runtime_may_use_cuda(device)) {
        lightning_task t = lightning_attention_task(seq, dim, causal);
        int            rc = lightning_offload(&t, device, (float *[]){ a[0].data, a[1].data, a[2].data }, out);
        if (rc <= 0) return rc;
    }
    if (lightning_attention_way(device, seq, dim, causal, &way) < 0) return -1;
    lightning_note(LIGHTNING_OP_ATTENTION, device, seq * seq * dim);
    return lightning_attend(way, a[0].data, a[1].data, a[2].data, out, seq, dim, causal);
}
static bool no_attention(int64_t seq, int64_t dim)
{
    if (seq && dim) return false;
    return lightning_fail(LC_INVALID_VALUE), true;
}
static PyObject *attention_of_matrices(const char *function, PyObject *const *slot, PyObject *out, PyObject *flag,
                                       PyObject *where)
{
    PyObject       *result = NULL;
    lcDeviceKind    device;
    bool            causal;
    lightning_array a[4];
    if (lightning_flag(flag, "causal", false, &causal) < 0 || lightning_device(where, LC_DEVICE_METAL, &device) < 0)
        return NULL;
    a[3].owner = NULL, a[3].from_buffer = false;
    if (lightning_read_all(slot, a, 3) == 0 && (!out || lightning_write(out, &a[3]) == 0)) {
        bool             same = true;
        lightning_target t;
        for (int i = 0; i < 3 + (out != NULL); i++)
            same = same && a[i].nd == 2 && a[i].dims[0] == a[0].dims[0] && a[i].dims[1] == a[0].dims[1];
        if (!same) lightning_wrong(function, out ? "q, k, v and out must be (seq, dim)" : "q, k and v must be (seq, dim)");
        else if (!no_attention(a[0].dims[0], a[0].dims[1]) &&
                 (out ? lightning_target_over(&t, &a[3], a, 3) : lightning_target_new(&t, 2, a[0].dims)) == 0)
            result = lightning_target_end(&t, attend(device, a, t.data, a[0].dims[0], a[0].dims[1], causal));
    }
    return lightning_end(a, out ? 4 : 3), result;
}
LIGHTNING_FUNCTION(attention2d, 3, attention_of_matrices("attention2d", slot, NULL, slot[3], slot[4]), "q", "k", "v", "causal",
                   "device")
LIGHTNING_FUNCTION(attention2d_into, 4, attention_of_matrices("attention2d_into", slot, slot[3], slot[4], slot[5]), "q", "k",
                   "v", "out", "causal", "device")

static PyObject *sized_attention(const char *function, PyObject *const *slot, PyObject *out, PyObject *const *rest)
{
    PyObject       *result = NULL;
    lcDeviceKind    device;
    bool            causal, fits = true;
    int64_t         seq, dim;
    lightning_array a[4];
    if (lightning_size(rest[0], "seq_len", &seq) < 0 || lightning_size(rest[1], "head_dim", &dim) < 0 ||
        lightning_flag(rest[2], "causal", false, &causal) < 0 || lightning_device(rest[3], LC_DEVICE_METAL, &device) < 0)
        return NULL;
    a[3].owner = NULL, a[3].from_buffer = false;
    if (lightning_read_all(slot, a, 3) == 0 && (!out || lightning_write(out, &a[3]) == 0)) {
        lightning_target t;
        const Py_ssize_t flat[] = { a[0].size };
        for (int i = 0; i < 3 + (out != NULL); i++) fits = fits && lightning_has_size(&a[i], seq, dim);
        if (!fits) lightning_wrong(function, "every array must have seq_len * head_dim elements");
        else if (!no_attention(seq, dim) &&
                 (out ? lightning_target_over(&t, &a[3], a, 3) : lightning_target_new(&t, 1, flat)) == 0)
            result = lightning_target_end(&t, attend(device, a, t.data, seq, dim, causal));
    }
    return lightning_end(a, out ? 4 : 3), result;
}
LIGHTNING_FUNCTION(attention_forward, 5, as_list_like(slot[0], sized_attention("attention_forward", slot, NULL, slot + 3)), "q",
                   "k", "v", "seq_len", "head_dim", "causal", "device")
LIGHTNING_FUNCTION(lightning_attention, 5, sized_attention("attention", slot, NULL, slot + 3), "q", "k", "v", "seq_len",
                   "head_dim", "causal", "device")
LIGHTNING_FUNCTION(lightning_attention_into, 6, sized_attention("attention_into", slot, slot[3], slot + 4), "q", "k", "v",
                   "out", "seq_len", "head_dim", "causal", "device")

/* ---- for Python: a result into the caller's memory ---- */
static PyObject *copy_into(UNUSED PyObject *m, PyObject *args)
{
    PyObject       *from, *to, *result = NULL;
    lightning_array a[2] = { { 0 } };
    if (!PyArg_ParseTuple(args, "OO:_copy_into", &from, &to)) return NULL;
    if (lightning_read(from, &a[0]) == 0 && lightning_write(to, &a[1]) == 0) {
        if (a[0].size != a[1].size) lightning_wrong("out", "another number of elements");
        else memmove(a[1].data, a[0].data, (size_t)a[0].size * sizeof(float)), result = Py_NewRef(Py_None);
    }
    return lightning_end(a, 2), result;
}

PyMethodDef lightning_oneshot_functions[] = {
    { "_copy_into", copy_into, METH_VARARGS, "_copy_into(result, out): out as every function takes it." },
    { "matmul2d", LIGHTNING_FAST(matmul2d),
      "matmul2d(a, b, device='metal')\n--\n\nThe product of two matrices.\n\n"
      ">>> lightning_core.matmul2d([[1, 2], [3, 4]], [[1, 0], [0, 1]]).tolist()\n[[1.0, 2.0], [3.0, 4.0]]\n" },
    { "matmul2d_into", LIGHTNING_FAST(matmul2d_into),
      "matmul2d_into(a, b, out, device='metal')\n--\n\nmatmul2d into out, which is (m, n) or flat.\n\n"
      ">>> import numpy as np\n"
      ">>> out = np.empty((1, 1), np.float32)\n"
      ">>> lightning_core.matmul2d_into([[1, 2]], [[3], [4]], out)\n"
      ">>> out.item()\n"
      "11.0\n" },
    { "matmul", LIGHTNING_FAST(matmul),
      "matmul(a, b, m, k, n, device='metal')\n--\n\nThe product of m x k by k x n numbers of any rank, flat. Lists give a "
      "list.\n\n"
      ">>> lightning_core.matmul([1, 2, 3, 4], [1, 0, 0, 1], 2, 2, 2)\n[1.0, 2.0, 3.0, 4.0]\n" },
    { "matmul_np", LIGHTNING_FAST(matmul_np),
      "matmul_np(a, b, m, k, n, device='metal')\n--\n\nmatmul that always gives an array.\n\n"
      ">>> lightning_core.matmul_np([1, 2], [3, 4], 1, 2, 1).tolist()\n"
      "[11.0]\n" },
    { "matmul_np_into", LIGHTNING_FAST(matmul_np_into),
      "matmul_np_into(a, b, out, m, k, n, device='metal')\n--\n\nmatmul into out, which has m * n elements and any rank.\n\n"
      ">>> import numpy as np\n"
      ">>> out = np.empty((1, 1), np.float32)\n"
      ">>> lightning_core.matmul_np_into([1, 2], [3, 4], out, 1, 2, 1)\n"
      ">>> out.item()\n"
      "11.0\n" },
    { "vector_add", LIGHTNING_FAST(vector_add),
      "vector_add(a, b, device='metal')\n--\n\nThe sum of two arrays of one size, flat. Lists give a list.\n\n"
      ">>> lightning_core.vector_add([1, 2], [3, 4])\n[4.0, 6.0]\n" },
    { "matrix_sub", LIGHTNING_FAST(matrix_sub),
      "matrix_sub(a, b, rows, cols, device='metal')\n--\n\nThe difference of two arrays of rows * cols elements, flat. Lists "
      "give a list.\n\n"
      ">>> lightning_core.matrix_sub([3, 4], [1, 1], 1, 2)\n[2.0, 3.0]\n" },
    { "attention2d", LIGHTNING_FAST(attention2d),
      "attention2d(q, k, v, causal=False, device='metal')\n--\n\nsoftmax(q k' / sqrt(dim)) v of matrices (seq, dim).\n\n"
      ">>> lightning_core.attention2d([[1, 2]], [[3, 4]], [[5, 6]]).tolist()\n[[5.0, 6.0]]\n" },
    { "attention2d_into", LIGHTNING_FAST(attention2d_into),
      "attention2d_into(q, k, v, out, causal=False, device='metal')\n--\n\nattention2d into out, (seq, dim).\n\n"
      ">>> import numpy as np\n"
      ">>> out = np.empty((1, 1), np.float32)\n"
      ">>> lightning_core.attention2d_into([[1]], [[2]], [[3]], out)\n"
      ">>> out.item()\n"
      "3.0\n" },
    { "attention_forward", LIGHTNING_FAST(attention_forward),
      "attention_forward(q, k, v, seq_len, head_dim, causal=False, device='metal')\n--\n\nAttention over arrays of seq_len * "
      "head_dim "
      "elements, flat. Lists give a list.\n\n"
      ">>> lightning_core.attention_forward([1, 2], [3, 4], [5, 6], 1, 2)\n"
      "[5.0, 6.0]\n" },
    { "lightning_attention", LIGHTNING_FAST(lightning_attention),
      "lightning_attention(q, k, v, seq_len, head_dim, causal=False, device='metal')\n--\n\nAttention, flat for any rank.\n\n"
      ">>> lightning_core.lightning_attention([[1, 2]], [[3, 4]], [[5, 6]], 1, 2).tolist()\n"
      "[5.0, 6.0]\n" },
    { "lightning_attention_into", LIGHTNING_FAST(lightning_attention_into),
      "lightning_attention_into(q, k, v, out, seq_len, head_dim, causal=False, device='metal')\n--\n\nAttention into out.\n\n"
      ">>> import numpy as np\n"
      ">>> out = np.empty((1, 1), np.float32)\n"
      ">>> lightning_core.lightning_attention_into([1], [2], [3], out, 1, 1)\n"
      ">>> out.item()\n"
      "3.0\n" },
    { 0 }
};
