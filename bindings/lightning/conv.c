/* Convolution, and the pipeline of convolution and attention. Images are (N, C, H, W), weights (O, C, KH, KW). */
#include "lightning.h"

static int read_window(PyObject *const *slot, lightning_conv_shape *s)
{
    if (lightning_size_or(slot[0], "stride_h", 1, &s->stride_h) < 0 ||
        lightning_size_or(slot[1], "stride_w", 1, &s->stride_w) < 0 || lightning_size_or(slot[2], "pad_h", 0, &s->pad_h) < 0 ||
        lightning_size_or(slot[3], "pad_w", 0, &s->pad_w) < 0)
        return -1;
    enum { MOST = 1 << 30 };
    if (s->stride_h < 1 || s->stride_w < 1) return lightning_wrong("conv2d_nchw", "strides must be positive"), -1;
    if (s->stride_h > MOST || s->stride_w > MOST || s->pad_h > MOST || s->pad_w > MOST)
        return lightning_wrong("conv2d_nchw", "strides and padding must be less than 2 ** 30"), -1;
    return 0;
}
/* The shapes of a convolution, checked against each other; arrays: x, w, and bias if there is one. */
static int conv_shape(const lightning_array *x, const lightning_array *w, const lightning_array *bias, lightning_conv_shape *s)
{
    if (x->nd != 4 || w->nd != 4) return lightning_wrong("conv2d_nchw", "x must be (N, C, H, W) and w (O, C, KH, KW)"), -1;
    s->n = x->dims[0], s->c = x->dims[1], s->h = x->dims[2], s->w = x->dims[3];
    s->o = w->dims[0], s->kh = w->dims[2], s->kw = w->dims[3];
    if (w->dims[1] != s->c) return lightning_wrong("conv2d_nchw", "x and w have different numbers of channels"), -1;
    if (bias && bias->size != s->o) return lightning_wrong("conv2d_nchw", "bias must have one element per output channel"), -1;
    if (!x->size || !w->size) return lightning_fail(LC_INVALID_VALUE), -1;
    int64_t high = s->h + 2 * s->pad_h - s->kh, wide = s->w + 2 * s->pad_w - s->kw;
    if (high < 0 || wide < 0) return lightning_wrong("conv2d_nchw", "the kernel is larger than the padded image"), -1;
    return s->oh = high / s->stride_h + 1, s->ow = wide / s->stride_w + 1, 0;
}
static int run_conv(lcDeviceKind device, const lightning_array *a, const float *bias, const lightning_conv_shape *s, float *out)
{
    if (lc_runtime_may_use_cuda(device)) {
        lightning_task t = lightning_conv_task(s);
        int            rc = lightning_offload(&t, device, (float *[]){ a[0].data, a[1].data, (float *)bias }, out);
        if (rc <= 0) return rc;
    }
    lightning_note(LIGHTNING_OP_CONV, device, s->n * s->o * s->oh * s->ow * s->c * s->kh * s->kw);
    return lightning_conv(a[0].data, a[1].data, bias, out, s, NULL);
}
static PyObject *convolve(PyObject *const *objects, PyObject *out, PyObject *const *rest, bool relu)
{
    PyObject            *result = NULL;
    lcDeviceKind         device;
    lightning_conv_shape s = { .relu = relu };
    lightning_array      a[4];
    bool                 has_bias = objects[2] && objects[2] != Py_None;
    int                  n_in = 2 + has_bias, n = n_in + (out != NULL);
    if (read_window(rest, &s) < 0 || lightning_device(rest[4], LC_DEVICE_METAL, &device) < 0) return NULL;
    a[n - 1].owner = NULL, a[n - 1].from_buffer = false;
    if (lightning_read_all(objects, a, n_in) == 0 && conv_shape(&a[0], &a[1], has_bias ? &a[2] : NULL, &s) == 0 &&
        (!out || lightning_write(out, &a[n_in]) == 0)) {
        const Py_ssize_t dims[] = { s.n, s.o, s.oh, s.ow };
        bool             fits = true;
        lightning_target t;
        for (int d = 0; out && d < 4; d++) fits = fits && a[n_in].nd == 4 && a[n_in].dims[d] == dims[d];
        if (!fits) lightning_wrong("conv2d_nchw", "out must be (N, O, OH, OW)");
        else if ((out ? lightning_target_over(&t, &a[n_in], a, n_in) : lightning_target_new(&t, 4, dims)) == 0)
            result = lightning_target_end(&t, run_conv(device, a, has_bias ? a[2].data : NULL, &s, t.data));
    }
    return lightning_end(a, n), result;
}
#define CONV(function, relu)                                                                                                   \
    LIGHTNING_FUNCTION(function, 2, convolve(slot, NULL, slot + 3, relu), "x", "w", "bias", "stride_h", "stride_w", "pad_h",   \
                       "pad_w", "device")
#define CONV_INTO(function, relu)                                                                                              \
    LIGHTNING_FUNCTION(function, 4, convolve(slot, slot[3], slot + 4, relu), "x", "w", "bias", "out", "stride_h", "stride_w",  \
                       "pad_h", "pad_w", "device")
CONV(conv2d_nchw, false)
CONV(lightning_conv_relu_nchw, true)
CONV_INTO(conv2d_nchw_into, false)
CONV_INTO(lightning_conv_relu_nchw_into, true)

/* ---- convolution, ReLU, attention in one call ----
 * The result of the convolution is repeated up to 3 * seq_len * head_dim numbers: q, then k, then v. */
static int pipeline(lcDeviceKind device, const lightning_array *a, const float *bias, const lightning_conv_shape *s, float *out,
                    int64_t seq, int64_t dim)
{
    lightning_way way;
    int64_t       conv_size = s->n * s->o * s->oh * s->ow, each = seq * dim, all = 3 * each;
    bool          repeats = conv_size < all;
    size_t        bytes = (size_t)(conv_size + (repeats ? all : 0)) * sizeof(float);
    if (lc_runtime_may_use_cuda(device)) {
        lightning_task t = lightning_pipeline_task(s, seq, dim);
        int            rc = lightning_offload(&t, device, (float *[]){ a[0].data, a[1].data, (float *)bias }, out);
        if (rc <= 0) return rc;
    }
    if (lightning_attention_way(device, seq, dim, false, &way) < 0) return -1;
    float *image = lc_alloc(bytes), *q = repeats ? image + conv_size : image;
    if (!image) return py_raise_int();
    lightning_note(LIGHTNING_OP_CONV, device, conv_size * s->c * s->kh * s->kw);
    int rc = lightning_conv(a[0].data, a[1].data, bias, image, s, NULL);
    for (int64_t at = 0; repeats && at < all; at += conv_size)
        memcpy(q + at, image, (size_t)(all - at < conv_size ? all - at : conv_size) * sizeof(float));
    lightning_note(LIGHTNING_OP_ATTENTION, device, seq * seq * dim);
    if (!rc) rc = lightning_attend(way, q, q + each, q + 2 * each, out, seq, dim, false);
    return lc_free(image, bytes), rc;
}
static int is_graph(PyObject *mode) /* 1: graph, 0: eager, -1 raised */
{
    if (!mode) return 0;
    if (!PyUnicode_Check(mode)) return PyErr_SetString(PyExc_TypeError, "execution_mode must be a string"), -1;
    if (PyUnicode_CompareWithASCIIString(mode, "eager") == 0) return 0;
    if (PyUnicode_CompareWithASCIIString(mode, "graph") == 0) return 1;
    return PyErr_Format(PyExc_ValueError, "execution_mode must be \"eager\" or \"graph\", not '%U'", mode), -1;
}
/* objects: x, w, bias; rest: seq_len, head_dim, four of the window, device */
static PyObject *conv_attention(PyObject *const *objects, PyObject *out, PyObject *const *rest)
{
    PyObject            *result = NULL;
    lcDeviceKind         device;
    lightning_conv_shape s = { .relu = true };
    lightning_array      a[4];
    int64_t              seq, dim;
    Py_ssize_t           flat[1];
    bool                 has_bias = objects[2] != Py_None;
    int                  n_in = 2 + has_bias, n = n_in + (out != NULL);
    if (lightning_size(rest[0], "seq_len", &seq) < 0 || lightning_size(rest[1], "head_dim", &dim) < 0 ||
        read_window(rest + 2, &s) < 0 || lightning_device(rest[6], LC_DEVICE_METAL, &device) < 0)
        return NULL;
    if (!seq || !dim) return lightning_fail(LC_INVALID_VALUE);
    if (__builtin_mul_overflow(seq, dim, &flat[0]) || flat[0] > PTRDIFF_MAX / 64)
        return lightning_wrong("conv_attention", "seq_len * head_dim is too large");
    a[n - 1].owner = NULL, a[n - 1].from_buffer = false;
    if (lightning_read_all(objects, a, n_in) == 0 && conv_shape(&a[0], &a[1], has_bias ? &a[2] : NULL, &s) == 0 &&
        (!out || lightning_write(out, &a[n_in]) == 0)) {
        lightning_target t;
        if (out && a[n_in].size != flat[0]) lightning_wrong("conv_attention", "out must have seq_len * head_dim elements");
        else if ((out ? lightning_target_over(&t, &a[n_in], a, n_in) : lightning_target_new(&t, 1, flat)) == 0)
            result = lightning_target_end(&t, pipeline(device, a, has_bias ? a[2].data : NULL, &s, t.data, seq, dim));
    }
    return lightning_end(a, n), result;
}
static PyObject *by_graph(const char *function, PyObject *const *slot, int n)
{
    PyObject *home = PyImport_ImportModule("lightning_core._pipeline"), *args = PyTuple_New(n), *result = NULL;
    for (int i = 0; args && i < n; i++) PyTuple_SET_ITEM(args, i, Py_NewRef(slot[i] ? slot[i] : Py_Ellipsis));
    PyObject *call = home && args ? PyObject_GetAttrString(home, function) : NULL;
    if (call) result = PyObject_Call(call, args, NULL);
    Py_XDECREF(call);
    Py_XDECREF(args);
    Py_XDECREF(home);
    return result;
}
static PyObject *run_pipeline(const char *by_name, PyObject *const *slot, int n, PyObject *out, PyObject *mode)
{
    int graph = is_graph(mode); /* n: arguments before the mode */
    return graph < 0 ? NULL : graph ? by_graph(by_name, slot, n) : conv_attention(slot, out, slot + n - 7);
}
LIGHTNING_FUNCTION(lightning_conv_attention_torchstrong_nchw, 5, run_pipeline("conv_attention_graph", slot, 10, NULL, slot[10]),
                   "x", "w", "bias", "seq_len", "head_dim", "stride_h", "stride_w", "pad_h", "pad_w", "device",
                   "execution_mode")
LIGHTNING_FUNCTION(lightning_conv_attention_torchstrong_nchw_into, 6,
                   run_pipeline("conv_attention_graph_into", slot, 11, slot[3], slot[11]), "x", "w", "bias", "out", "seq_len",
                   "head_dim", "stride_h", "stride_w", "pad_h", "pad_w", "device", "execution_mode")

#define WINDOW "stride_h=1, stride_w=1, pad_h=0, pad_w=0, device='metal')\n--\n\n"
PyMethodDef lightning_conv_functions[] = {
    { "conv2d_nchw", LIGHTNING_FAST(conv2d_nchw),
      "conv2d_nchw(x, w, bias=None, " WINDOW "The convolution of x (N, C, H, W) with w (O, C, KH, KW).\n\n"
      ">>> lightning_core.conv2d_nchw([[[[1, 2]]]], [[[[3, -4]]]]).tolist()\n"
      "[[[[-5.0]]]]\n" },
    { "conv2d_nchw_into", LIGHTNING_FAST(conv2d_nchw_into),
      "conv2d_nchw_into(x, w, bias, out, " WINDOW "conv2d_nchw into out, (N, O, OH, OW); bias may be None.\n\n"
      ">>> import numpy as np\n"
      ">>> out = np.empty((1, 1, 1, 1), np.float32)\n"
      ">>> lightning_core.conv2d_nchw_into([[[[1, 2]]]], [[[[3, -4]]]], None, out)\n"
      ">>> out.item()\n"
      "-5.0\n" },
    { "lightning_conv_relu_nchw", LIGHTNING_FAST(lightning_conv_relu_nchw),
      "lightning_conv_relu_nchw(x, w, bias=None, " WINDOW "conv2d_nchw, then max(0, y).\n\n"
      ">>> lightning_core.lightning_conv_relu_nchw([[[[1, 2]]]], [[[[3, -4]]]]).tolist()\n"
      "[[[[0.0]]]]\n" },
    { "lightning_conv_relu_nchw_into", LIGHTNING_FAST(lightning_conv_relu_nchw_into),
      "lightning_conv_relu_nchw_into(x, w, bias, out, " WINDOW "lightning_conv_relu_nchw into out.\n\n"
      ">>> import numpy as np\n"
      ">>> out = np.empty((1, 1, 1, 1), np.float32)\n"
      ">>> lightning_core.lightning_conv_relu_nchw_into([[[[1, 2]]]], [[[[3, -4]]]], None, out)\n"
      ">>> out.item()\n"
      "0.0\n" },
    { "lightning_conv_attention_torchstrong_nchw", LIGHTNING_FAST(lightning_conv_attention_torchstrong_nchw),
      "lightning_conv_attention_torchstrong_nchw(x, w, bias, seq_len, head_dim, stride_h=1, stride_w=1, pad_h=0, pad_w=0, "
      "device='metal', execution_mode='eager')\n--\n\nConvolution, ReLU, then attention over its numbers, repeated to q, k and "
      "v. Flat.\n\n"
      ">>> lightning_core.lightning_conv_attention_torchstrong_nchw([[[[1, 2]]]], [[[[3, 4]]]], None, 1, 2).tolist()\n"
      "[11.0, 11.0]\n" },
    { "lightning_conv_attention_torchstrong_nchw_into", LIGHTNING_FAST(lightning_conv_attention_torchstrong_nchw_into),
      "lightning_conv_attention_torchstrong_nchw_into(x, w, bias, out, seq_len, head_dim, stride_h=1, stride_w=1, pad_h=0, "
      "pad_w=0, device='metal', execution_mode='eager')\n--\n\nThe same into out, of seq_len * head_dim elements.\n\n"
      ">>> import numpy as np\n"
      ">>> out = np.empty((1, 1), np.float32)\n"
      ">>> lightning_core.lightning_conv_attention_torchstrong_nchw_into([[[[1, 2]]]], [[[[3, 4]]]], None, out, 1, 1)\n"
      ">>> out.item()\n"
      "11.0\n" },
    { 0 }
};
