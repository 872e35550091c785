/* Arguments of the whole-call kernels: one struct per family. The op checks shapes; the kernel checks values (index ranges)
 * before it writes anything. All strides are in elements. */
#pragma once
#include "backend.h"

/* The epilogue of a product, applied while it is in the cache: activation(scale * product + addend_scale * addend) +
 * residual. Operands have the computing dtype and strides (batch, row, column), zero where they broadcast. */
typedef struct {
    double           scale, addend_scale;
    const lc_tensor *addend, *residual; /* or NULL */
    int64_t          addend_stride[3], residual_stride[3];
    lc_op_id         activation; /* an elementwise op; LC_OP_COUNT: none */
} lc_matmul_epilogue;

/* The epilogue of another kernel: rows of scalar.def, run in place on elements of its result that are in the cache. An
 * operand is the result itself, a number, or a tensor of the result's dtype; all are contiguous and of one shape. */
enum { LC_EPILOGUE_STEPS = 4, LC_EPILOGUE_OPERANDS = 4, LC_EPILOGUE_RESULT = -1, LC_EPILOGUE_NUMBER = -2 };
typedef struct {
    lc_op_id row;
    int      n_in, in[LC_EPILOGUE_OPERANDS]; /* an index in the call's inputs, or one of the two above */
    lc_dtype number_dtype[LC_EPILOGUE_OPERANDS];
    _Alignas(16) char number[LC_EPILOGUE_OPERANDS][16];
} lc_row_epilogue_step;
typedef struct lc_row_epilogue {
    int                  n;
    lc_row_epilogue_step step[LC_EPILOGUE_STEPS];
} lc_row_epilogue;
typedef struct {
    const lc_row_epilogue *epilogue; /* NULL: none */
    lc_tensor *const      *in;       /* the call's inputs */
} lc_finish;

/* A low-rank product that is added to another: scale (a down) up, down (k, rank), up (rank, n). Strides: (row, column). */
typedef struct {
    const lc_tensor *down, *up;
    int64_t          rank, down_stride[2], up_stride[2];
    double           scale;
} lc_low_rank;

/* The matmul family: out (batch, m, n) = a (batch, m, k) x b (batch, k, n); any strides; a batch stride of 0 broadcasts. All
 * of the computing dtype; on the CPU each may be float16 or bfloat16 instead: inputs are converted, and the result is
 * rounded once. */
typedef struct {
    lc_tensor                *out, *a, *b;
    int64_t                   batch, m, n, k;
    int64_t                   out_batch, out_row, out_col, a_batch, a_row, a_col, b_batch, b_row, b_col;
    bool                      accumulate; /* add to the old values of out. This and the epilogue: floats on the CPU only */
    const lc_matmul_epilogue *epilogue;   /* or NULL */
    const lc_low_rank        *low;        /* or NULL. On the CPU, if it can be fused; else LC_NO_KERNEL */
    lc_tensor                *sums;       /* of _mm_sums: also gets the sums of a's rows (m) */
} lc_matmul_args;

/* cdist: out (batch, n, m) holds the p-norms of a's rows (batch, n, k) minus b's (batch, m, k). All contiguous. pdist: out
 * (n (n - 1) / 2) holds those of a's rows (n, k), each pair once; b is NULL. */
typedef struct {
    lc_tensor *out, *a, *b;
    double     p;
} lc_distance_args;

/* Every kind of indexing is one walk over `shape`. Position i pairs the element of `walked` at walked_stride . i with the
 * element of `indexed` at indexed_stride . i + sum over k of index[k](i) * step[k]. gather has one index tensor, x[a, :, b]
 * two; index_select's and broadcast ones have strides of zero. Duplicates: later positions win, sums are in the order of the
 * walk. */
typedef struct {
    const lc_tensor *index; /* int64 */
    int64_t          stride[LC_MAX_DIMS];
    int64_t          size, step; /* of the dimension that it selects in `indexed` */
    int              dim;        /* its number, for messages */
} lc_index_operand;
typedef enum { /* WRITE and the following: into `indexed` */
               LC_INDEX_READ,
               LC_INDEX_WRITE,
               LC_INDEX_ADD,
               LC_INDEX_MULTIPLY,
               LC_INDEX_MAX,
               LC_INDEX_MIN
} lc_index_mode;
typedef struct {
    lc_tensor              *indexed, *walked; /* of one dtype */
    const lc_tensor        *start; /* initial values of `indexed`, copied once all indices are checked. NULL: its own */
    lc_index_mode           mode;
    bool                    wraps;   /* negative indices count from the end */
    bool                    fresh;   /* the output is new and discarded if an index is bad, so no check in advance */
    bool                    checked; /* all indices have been checked */
    bool                    flat; /* the only index counts the elements of `indexed` in row-major order, whatever its strides */
    bool                    ordered; /* duplicates as said above; else a device may take them in any order */
    int                     ndim, n_index;
    int64_t                 shape[LC_MAX_DIMS], indexed_stride[LC_MAX_DIMS], walked_stride[LC_MAX_DIMS];
    const lc_index_operand *index;
} lc_index_args;

/* nonzero: the first call, with out NULL, writes count; the second fills out int64 (count, ndim), column-major in memory: a
 * row per element, in row-major order. */
typedef struct {
    const lc_tensor *in;
    lc_tensor       *out, *count; /* count: 0-d int64 */
} lc_nonzero_args;

/* sort and topk along one dimension (in->ndim 0: one element). values or indices (int64) may be NULL; both have the shape of
 * in, but k elements along dim. */
typedef struct {
    lc_tensor       *values, *indices;
    const lc_tensor *in;
    int              dim;
    int64_t          k;
    bool             descending, ordered; /* ordered: topk(sorted=True) */
} lc_sort_args;

/* equal: both have the same shape. */
typedef struct {
    const lc_tensor *x, *y;
    lc_tensor       *equal; /* 0-d bool */
} lc_equal_args;

/* _within: whether every element of x lies between low and high. */
enum { LC_ABOVE_LOW = 1, LC_BELOW_HIGH = 2, LC_WHOLE = 4 }; /* low excluded, high excluded, integers only */
typedef struct {
    const lc_tensor *x;
    double           low, high;
    int              kind;
    lc_tensor       *within; /* 0-d bool */
} lc_within_args;

/* masked_select, masked_scatter: elements of `masked` where mask is true, in row-major order, to or from the contiguous
 * `packed`. mask is bool and broadcasts to `masked`. count (0-d int64; NULL: not wanted): the number of elements. Without
 * `packed` they are only counted. If `packed` has too few elements, the call fails before any is moved. */
typedef struct {
    const lc_tensor *mask;
    lc_tensor       *masked, *packed;
    bool             scatter;
    lc_tensor       *count;
} lc_mask_args;

/* Scans along one dimension: everything contiguous and of one shape. index: int64, for cummax and cummin, else NULL. */
typedef struct {
    lc_tensor       *out, *index;
    const lc_tensor *in;
    int              dim;
} lc_scan_args;

/* The softmax family: along one dimension, the others are independent. Shapes are equal. */
typedef struct {
    lc_tensor       *out;
    const lc_tensor *in, *y; /* y: softmax backward only, the forward's output; in is then the gradient */
    int              dim;
} lc_softmax_args;

/* Normalisations. in, out and grad are dense, of one dtype and memory order; everything else is contiguous, in the dtype of
 * the statistics. NULL: absent or not wanted. Backward reads mean and rstd, and writes out (the gradient of in), dweight and
 * dbias.
 *   rows      `rows` rows of channels x inner elements, one statistic each; row r has the parameters of group r % groups. With
 *             `last` (LC_LAST_GROUPS) memory is (rows / groups, inner, groups, channels)
 *   channels  (rows, channels, inner), one statistic per channel */
typedef struct {
    lc_tensor       *out, *mean, *rstd, *variance, *dweight, *dbias;
    const lc_tensor *in, *grad, *weight, *bias; /* weight and bias: (groups * channels) */
    int64_t          rows, groups, channels, inner;
    double           eps;
    bool             centred; /* rows: the mean is subtracted; otherwise mean is NULL */
    bool             last;    /* rows of images with the channels last */
    bool             fixed;   /* channels: mean and rstd are given, not computed from in */
    lc_finish        finish;  /* forward */
} lc_norm_args;

/* multilabel_margin_loss: in (rows, classes), target int64 of the same shape; the labels of a row precede its first -1. out
 * (rows); with grad (rows), out (rows, classes). All contiguous. */
typedef struct {
    lc_tensor       *out;
    const lc_tensor *in, *target, *grad;
} lc_multilabel_margin_args;

/* Cross entropy of in (n, classes, lanes), contiguous, of any floating dtype. Everything else is contiguous, of the
 * computing dtype: target int64 and lse (n, lanes), weight (classes) or NULL.
 * Forward writes loss (n, lanes), lse, total (0-d: the total weight of the positions that are not ignored) and, unless NULL,
 * reduced (0-d, of in's dtype or the computing one: the sum of the losses, divided by total if `mean`).
 * Backward writes out, like in, from grad (n, lanes), or (1) if shared by all, divided by total unless that is NULL. */
typedef struct {
    const lc_tensor *in, *target, *weight, *grad;
    lc_tensor       *out, *loss, *lse, *total, *reduced;
    int64_t          n, classes, lanes, ignored;
    double           smoothing;
    bool             mean;
} lc_cross_entropy_args;

/* ctc_loss: log_probs (steps, n, classes), targets int64 (n, most) or the samples' labels concatenated; lengths are checked.
 * Forward writes nll (n) and alpha (n, steps, 2 longest + 1), the logarithms of the forward variables; backward reads them
 * and grad (n), and writes out, like log_probs. All contiguous, of one dtype. */
typedef struct {
    const lc_tensor *log_probs, *targets, *grad;
    lc_tensor       *nll, *alpha, *out;
    const int64_t   *input_length, *target_length; /* n of each */
    int64_t          blank, longest;
    bool             zero_infinity;
} lc_ctc_args;

/* tril, triu: out = in on one side of a diagonal of the last two dimensions, zero on the other. out has in's dtype and may
 * be in. */
typedef struct {
    lc_tensor       *out;
    const lc_tensor *in;
    int64_t          diagonal;
    bool             upper;
} lc_triangle_args;

/* arange, linspace, logspace: out (n) 1-d. linspace counts down from end in its second half. */
typedef struct {
    lc_tensor *out;
    double     start, step, end, base;
    double     start_im, end_im, base_im; /* linspace and logspace of a complex dtype */
    int64_t    start_int, step_int;       /* arange of an integer dtype is exact */
} lc_ramp_args;

/* Random fills. The op gives a and b their meaning: from and to, mean and std, p, lambda. out is real. */
typedef struct {
    lc_tensor       *out;
    const lc_tensor *parameters[3]; /* parameters per element, broadcast: probabilities, rates, counts; multinomial: weights */
    lc_generator    *generator;
    double           a, b;
    int64_t          low;
    uint64_t         range; /* integers: low + draw % range; 0 means 2^64 */
    bool             any;   /* random_ without bounds: every integer that the dtype represents exactly */
    bool             apart; /* dropout: no element shares a thread's draws with its neighbours in memory */
} lc_random_args;

/* Samples images (images, channels, size[0..2]) at the positions of a grid (images, positions, axes), x first, from -1 to 1
 * across the image: out (images, channels, positions). Backward, from grad, which is like out: d_image and d_grid; either
 * may be NULL. Contiguous, of the computing dtype. With two axes size[0] is 1. */
typedef enum { LC_GRID_BILINEAR, LC_GRID_NEAREST, LC_GRID_BICUBIC } lc_grid_mode;
typedef enum { LC_GRID_ZEROS, LC_GRID_BORDER, LC_GRID_REFLECTION } lc_grid_padding;
typedef struct {
    lc_tensor       *out, *d_image, *d_grid;
    const lc_tensor *image, *grid, *grad;
    int64_t          images, channels, positions, size[3];
    int              axes;
    lc_grid_mode     mode;
    lc_grid_padding  padding;
    bool             align_corners;
} lc_grid_args;

/* A product with a weight in codes: out (m, n) = x (m, k) times codes' (n, k), each group of codes along k scaled, plus bias
 * (n; NULL: none). codes: int8, or uint8 with two of 4 bits each (ops/matmul/quantized.c has their order). Everything is
 * contiguous and, but for codes, float32; scales (n, k / group). */
typedef struct {
    lc_tensor       *out;
    const lc_tensor *x, *codes, *scales, *bias;
    int64_t          m, n, k, group;
} lc_quantized_args;

/* Embeddings: sample i of n reads row ids[i] of a table of `rows`, and belongs to bag b with bags[b] <= i < bags[b + 1];
 * without bags, each sample is its own bag. A sample has weight factors[i], or 1. Samples of row `padding` are ignored.
 * Everything is contiguous; ids are int64, and the kernel checks them before it writes.
 *   rows      out (n, width): rows of table, of any dtype
 *   sum       out (bags, width): per bag, the sum of its rows of table
 *   backward  out (rows, width): per row, the sum over its samples of the rows of table (bags, width) of their bags
 *   dot       out (n): table's row times that of other (bags, width) for its bag
 *   max       out (bags, width) and index, the row of each maximum, -1 if there is none */
typedef struct {
    lc_tensor       *out, *index;
    const lc_tensor *table, *other, *ids, *bags, *factors;
    int64_t          n, n_bags, rows, width, padding; /* padding: -1 if there is none */
    bool             by_frequency; /* backward: sums are divided by the number of samples per row (embedding.c) */
    bool             ordered;      /* backward: samples are summed in their order; else a device may take any */
} lc_embedding_args;

/* unique: in is contiguous, n slices of `width` elements. Slices are compared as a whole; those with a NaN equal none. Once
 * the backend knows the largest possible number of groups, it calls make, which allocates chosen (values; for slices int64:
 * the representative of each group) and counts (int64), if wanted, with that capacity. inverse has n, int64; NULL: not
 * wanted. found (0-d int64): the number of groups. */
typedef struct lc_unique_args lc_unique_args;
typedef struct {
    lc_tensor *chosen, *counts; /* counts: NULL if not wanted */
} lc_unique_outputs;
struct lc_unique_args {
    const lc_tensor   *in;
    int64_t            n, width;
    bool               slices;      /* not single values */
    bool               counts;      /* wanted */
    bool               consecutive; /* compare neighbours only */
    lc_tensor         *inverse, *found;
    lc_unique_outputs *outputs;
    int (*make)(const lc_unique_args *a, int64_t n); /* -1: out of memory, error set */
};

/* searchsorted: the insertion position of each value in its sequence; all contiguous, values and sequence of the computing
 * dtype. Either one sequence of n, or one per row of `each` values. sorter (int64, like the sequence): the order in which to
 * read it; NULL: as it is. */
typedef struct {
    lc_tensor       *out; /* int32 or int64 */
    const lc_tensor *sequence, *values, *sorter;
    int64_t          n, each;
    bool             one, right; /* right: after equal elements, not before them */
} lc_search_args;

/* isin: out (bool): whether each element is among the tests (false for NaN); all contiguous, of one dtype. */
typedef struct {
    lc_tensor       *out;
    const lc_tensor *elements, *tests;
    bool             invert;
} lc_isin_args;

/* histc, histogram: how many of n points of `dims` coordinates fall into each bin, or the sum of their weights. Points
 * outside and NaN are ignored; the last bin of a dimension includes its right edge. */
typedef struct {
    lc_tensor        *out;         /* contiguous, one dimension per coordinate */
    const lc_tensor  *in, *weight; /* (n, dims) and (n), contiguous, of the dtype of out; weight may be NULL */
    lc_tensor *const *edges;       /* one tensor per coordinate, contiguous; NULL: bins of equal width from low to high */
    bool              even;        /* edges are equidistant */
    double            low, high;   /* if equal: the smallest and largest value of in */
    int               dims;
} lc_histogram_args;

/* bincount: the first call, with out NULL, finds the size of the result (or fails: a negative value); the second fills out,
 * at least that large, int64 or the dtype of the weights. in is contiguous, of any integer dtype; weights (n), contiguous,
 * or NULL. */
typedef struct {
    lc_tensor       *out;
    const lc_tensor *in, *weights;
    lc_tensor       *size; /* 0-d int64 */
} lc_bincount_args;

/* Elements of given ranks along the last dimension: in (..., n), rank, value, index (..., m), int64 except for value; all
 * but in contiguous. Equal values rank by index, NaNs last. */
typedef struct {
    const lc_tensor *in, *rank;
    lc_tensor       *value, *index;
} lc_quantile_args;

/* Pooling: windows over planes (planes, size[0..2]) give planes (planes, result[0..2]); with fewer dimensions, the first
 * sizes are 1. Everything is contiguous, of the computing dtype; index counts the elements of a plane. A backward kernel
 * reads `in`, which has result's sizes, and writes out, which has size's. With the channels last (LC_LAST_POOLS) they are
 * (images, size[0..2], channels), and so is everything else: images = planes / channels. */
typedef struct {
    lc_tensor       *out, *index; /* index: int64; NULL if not wanted. Backward of max: read */
    const lc_tensor *in, *grad;   /* grad: for a max backward that finds the positions again from `in` */
    int64_t          planes, size[3], result[3], kernel[3], stride[3], padding[3], dilation[3];
    int64_t          channels;                 /* adjacent in memory; 1: planes */
    bool             adaptive, padding_counts; /* adaptive: kernel and later fields are ignored. padding_counts: in averages */
    int64_t          divisor;                  /* of averages; 0: the number of elements */
    lc_finish        finish;                   /* the gradient of the maximum */
    const lc_tensor *samples;                  /* fractional: draws per plane (planes, dimensions), of the computing dtype */
    lc_dtype         samples_dtype;            /* the dtype in which PyTorch computes with them */
    bool             ordered;                  /* backward: the same sums, bit by bit, in every run */
} lc_pool_args;

/* Attention: q (b, h, l, e), k (b, hk, s, e), v (b, hk, s, ev), out (b, h, l, ev), where h is a multiple of hk and head i of
 * q belongs to head i / (h / hk) of k and v. mask (b, h, l, s): bool or floating, or NULL. Any strides; q, k, v, mask, grad
 * may be float16 or bfloat16, the others are of the computing dtype. lse (b, h, l), contiguous: written by the forward pass
 * for the backward pass. */
typedef struct {
    const lc_tensor *q, *k, *v, *mask;
    lc_tensor       *out, *lse;
    const lc_tensor *grad; /* backward: of out; out and lse are read */
    lc_tensor       *dq, *dk, *dv;
    double           scale;
    bool             causal;
    bool             ordered; /* backward: the same sums, bit by bit, in every run */
} lc_attention_args;

/* Decoding: buffers keys (b, hk, capacity, e) and values (b, hk, capacity, ev), contiguous along the last dimension, of one
 * dtype; spans (b, 2) int64, contiguous, on the device: a row's tokens are [begin, end).
 *   write      k (b, hk, 1, e) and v (b, hk, 1, ev) go to `end`, any strides
 *   attention  q (b, h, 1, e), any strides, over the span, or its last `window` tokens if that is not 0; out (b, h, 1, ev) is
 *              contiguous. A row whose span is empty gets zeros */
typedef struct {
    lc_tensor       *keys, *values, *out;
    const lc_tensor *q, *k, *v, *spans;
    double           scale;
    int64_t          window;
} lc_cached_args;

/* Rotary positions: out = in cos + (-second half of in, first half) sin along the last dimension, which is even. Four dimensions,
 * strides of in, cos, sin (0 where expanded) and out in this order; one dtype. */
typedef struct {
    lc_tensor       *out;
    const lc_tensor *in, *cos, *sin;
    int64_t          shape[4], at[4][4];
} lc_rotary_args;

/* One direction of one recurrent layer over a whole sequence. Steps are contiguous in memory; step t has sizes[t] rows,
 * which never grow with t, and row b belongs to sequence b. Everything is contiguous, of the computing dtype; fields a cell
 * type lacks are NULL.
 * G gates: 4 of lstm (i, f, g, o), 3 of gru (r, z, n), 1 of the others. h: hidden size; p: size of the output, h without
 * projection. */
typedef enum { LC_RNN_TANH, LC_RNN_RELU, LC_RNN_GRU, LC_RNN_LSTM } lc_rnn_kind;
typedef struct {
    lc_rnn_kind      kind;
    const lc_tensor *gates;                   /* (rows, G h): of the inputs, with their bias */
    const lc_tensor *weight, *bias, *project; /* (G h, p), (G h), (p, h) */
    const lc_tensor *h0, *c0;                 /* (batch, p), (batch, h) */
    lc_tensor       *out, *hn, *cn;           /* (rows, p), (batch, p), (batch, h) */
    lc_tensor       *saved, *cells;           /* (rows, 4 h): activated gates, gru also h' W_n + b_n; (rows, h) */
    const lc_tensor *g_out, *g_hn, *g_cn;     /* backward: gradients, NULL for zero; out, saved and cells are read */
    lc_tensor     *d_gates, *d_hidden, *d_h0, *d_c0, *d_out; /* d_hidden: of h' W, if different (gru). d_out: with projection */
    const int64_t *sizes;
    int64_t        steps, batch, h, p;
    bool           reverse;
} lc_rnn_args;

/* Interpolation: an image (planes, size[0..2], inner) becomes (planes, result[0..2], inner); backward, the gradient of the
 * second becomes that of the first; in and out accordingly. Contiguous; inner is 1, or the channels of a channels-last
 * image. With fewer dimensions the first sizes are 1. scale: the scale factor, if positive; otherwise the sizes give it. */
typedef enum {
    LC_NEAREST,
    LC_NEAREST_EXACT,
    LC_LINEAR,
    LC_CUBIC,
    LC_LINEAR_ANTIALIAS,
    LC_CUBIC_ANTIALIAS,
    LC_LANCZOS_ANTIALIAS
} lc_interpolation;
typedef struct {
    lc_tensor       *out;
    const lc_tensor *in;
    int64_t          planes, inner, size[3], result[3];
    double           scale[3];
    lc_interpolation mode;
    bool             align_corners, backward;
    bool             ordered; /* backward: the same sums, bit by bit, in every run */
} lc_interpolate_args;

/* Padding by a tensor's own elements: in (outer, size[0..2]) to out (outer, result[0..2]), contiguous, of one dtype.
 * Position i along dimension d is element from[d][i] of in; the size[d] positions from before[d] on copy in unchanged. */
typedef struct {
    const lc_tensor *in;
    lc_tensor       *out;
    int64_t          outer, size[3], result[3], before[3];
    const int64_t   *from[3];
} lc_pad_args;

/* Weights in the order in which kernels read them, kept from call to call by who computes one shape again and again with the same
 * weights. Starts as zeros; the kernel fills data (lc_alloc) and form, which says what the order is. Set form to 0 when the weights
 * change. Kernels that read weights where they are leave it as it is. */
typedef struct {
    void  *data;
    size_t bytes;
    int    form;
} lc_conv_kept;

/* Convolution in up to three dimensions: image (n, groups * c, ...), weight (groups * m, c, kernel...), result (n, groups *
 * m, ...). The op computes one of the three from the other two. Any strides; all three have two leading dimensions and
 * `dims` spatial ones. image and result may be float16 or bfloat16, the others are of the computing dtype. */
typedef struct {
    lc_tensor    *image, *weight, *result;
    lc_tensor    *bias; /* contiguous, per channel of the computed tensor; NULL: none. Not for the weight */
    int64_t       groups, stride[3], padding[3], dilation[3]; /* of `dims` dimensions */
    int           dims;
    lc_conv_kept *kept;    /* of a convolution; NULL: weights are ordered anew */
    bool          ordered; /* the same sums, bit by bit, in every run */
    lc_finish     finish;  /* not for the weight */
} lc_conv_args;

#include "math/step_types.h"
/* Optimizer steps: n parameters at once. lists[0] holds the parameters, lists[1] their gradients, then the states of the
 * algorithm, in the order of the op's arguments; NULL: absent. The tensors of one parameter have its shape; each has its own
 * strides; dtypes are floating. */
enum { LC_STEP_LISTS = 5 };
typedef struct {
    lc_step_kind           kind;
    int                    n;
    lc_tensor *const      *lists[LC_STEP_LISTS];
    const lc_step_numbers *numbers; /* n; NULL: the device computes them by `formula` */
    const lc_step_formula *formula;
    lc_tensor *const *steps, *const *kept[LC_STEP_KEPT]; /* n each, of one element, on the device; NULL: there are none */
    const lc_tensor *lr;                                 /* its learning rate, likewise; NULL: formula->fixed.lr */
    bool             count; /* the number of this step is one more than `steps` says, and kept there */
} lc_step_args;

/* Adafactor: n parameters. Squared gradients are kept factored: a row and a column per matrix of the last two dimensions (in
 * full for parameters with fewer). rows[i] and columns[i] have the shape of parameter i with 1 in place of the last
 * dimension, or the one before it; for a parameter with fewer than two dimensions, rows[i] has its shape and columns[i] is
 * NULL. Each tensor has its own strides; dtypes are floating. */
typedef struct {
    double sign, shrink; /* sign of the gradient; factor by which the parameter is first multiplied */
    double share;        /* weight of the new squares in the averages */
    double rate, least;  /* the step is rate * max(least, the parameter's root mean square) */
    double eps, most;    /* smallest root of a variance; clipping threshold of the update's root mean square */
} lc_adafactor_numbers;
typedef struct {
    int               n;
    lc_tensor *const *params, *const *grads, *const *rows, *const *columns;
    const lc_adafactor_numbers *numbers; /* n */
} lc_adafactor_args;
