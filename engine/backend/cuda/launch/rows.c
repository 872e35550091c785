/* Softmax, normalisations and cross entropy: a block per row, or slices of a channel that are summed in order. */
#include "../driver.h"
#include "../../../tensor/iter.h"

#define DATA(t)       ((t) ? (t)->data : NULL)
#define TYPE_OF(t, d) CUDA_TYPE((t) ? (lc_dtype)(t)->dtype : (d))
static int threads_for(int64_t n) { return n >= 2048 ? 512 : n >= 512 ? 256 : n >= 128 ? 128 : 32; }

/* How a contiguous row of n elements is held in registers (types.cuh: hold), as bits of a VARIANT: 1 held, 2 by a warp, 4 in
 * pieces of 16 bytes, and the logarithm of the number of pieces per thread. A row that is too long is read more than once. */
typedef struct {
    int16_t bits;
    int     threads, rows; /* of a block */
} row_form;
static bool hold_row(int64_t n, int size, bool aligned, row_form *f)
{
    /* `few` pieces, up to 32 elements, make up for what a thread does once: addresses, and the sums over its row. */
    int wide = aligned && n % (16 / size) == 0 ? 16 / size : 1, most = wide > 4 ? 4 : 8, chunks = 1, few = wide > 1 ? most : 4;
    int64_t pieces = (n + wide - 1) / wide;
    f->threads = pieces <= 32 * few ? 32 : 64;
    while (f->threads > 32 && f->threads < 512 && pieces > few * f->threads) f->threads *= 2;
    while (chunks < most && pieces > (int64_t)chunks * f->threads) chunks *= 2;
    if (pieces > (int64_t)chunks * f->threads) return false;
    f->rows = f->threads == 32 ? 4 : 1;
    f->bits = (int16_t)(1 | (f->rows > 1) << 1 | (wide > 1) << 2 | __builtin_ctz((unsigned)chunks) << 3);
    if (f->rows > 1) f->threads = 128;
    return true;
}
static int launch_rows(cuda_program *q, const char *kernel, const row_form *f, int64_t rows, const void *args)
{
    q->kernel = kernel;
    return cuda_blocks(q, (rows + f->rows - 1) / f->rows, f->threads, args);
}
static bool is_aligned(const void *p, int64_t step) { return ((uintptr_t)p | (uintptr_t)step) % 16 == 0; }

/* ---- softmax ---- */
enum { DIMS = 8 };
typedef struct {
    char   *out, *in, *y;
    int64_t n, lines, step[3];
    int     ndim;
    int64_t shape[DIMS], stride[3][DIMS];
} lines_args;
CUDA_BODY(softmax);

static int cuda_softmax(lc_op_id op, UNUSED lc_dtype compute, const void *args)
{
    const lc_softmax_args *a = args;
    int variant = op == LC_OP_softmax ? 0 : op == LC_OP_log_softmax ? 1 : op == LC_OP__softmax_backward_data ? 2 : 3;
    const lc_tensor *operand[3] = { a->out, a->in, variant >= 2 ? a->y : a->in };
    int64_t          stride[3][LC_MAX_DIMS], shape[LC_MAX_DIMS];
    int              kept = 0;
    lines_args       p = { a->out->data, a->in->data, operand[2]->data, .n = 1, .step = { 1, 1, 1 } };
    if (a->in->numel == 0) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    for (int d = 0; d < a->in->ndim; d++) {
        bool along = d == a->dim;
        if (along) p.n = a->in->shape[d];
        else shape[kept] = a->in->shape[d];
        for (int k = 0; k < 3; k++) *(along ? &p.step[k] : &stride[k][kept]) = operand[k]->stride[d];
        kept += !along;
    }
    lc_iter it;
    lc_iter_start(&it, kept, shape);
    for (int k = 0; k < 3; k++) lc_iter_add_raw(&it, NULL, stride[k]);
    lc_iter_prepare(&it, true);
    if (it.ndim > DIMS) return lc_fail_int(LC_NotImplementedError, "softmax on cuda: more than %d dimensions", DIMS);
    p.lines = it.numel, p.ndim = it.ndim;
    for (int d = 0; d < it.ndim; d++) {
        p.shape[d] = it.shape[d];
        for (int k = 0; k < 3; k++) p.stride[k][d] = it.stride[k][d];
    }
    cuda_program q = { &softmax_body, "rows",
                       .type = { CUDA_TYPE(a->out->dtype), CUDA_TYPE(a->in->dtype), CUDA_TYPE(operand[2]->dtype) },
                       .variant = (int16_t)variant };
    if (p.n <= 16 || (p.step[1] != 1 && p.lines >= 4096)) return q.kernel = "columns", cuda_map(&q, p.lines, &p);
    bool aligned = true, dense = true;
    for (int k = 0; k < 3; k++) {
        int size = (int)lc_size_of(operand[k]->dtype);
        dense = dense && p.step[k] == 1, aligned = aligned && is_aligned(operand[k]->data, 0);
        for (int d = 0; d < it.ndim; d++) aligned = aligned && is_aligned(NULL, p.stride[k][d] * size);
    }
    row_form form;
    if (!dense || !hold_row(p.n, (int)lc_size_of(a->in->dtype), aligned, &form))
        return cuda_blocks(&q, p.lines, threads_for(p.n), &p);
    q.variant = (int16_t)(variant | form.bits << 2);
    return launch_rows(&q, "held", &form, p.lines, &p);
}
CUDA_RUN(softmax, cuda_softmax, CUDA_FLOATS)
CUDA_RUN(log_softmax, cuda_softmax, CUDA_FLOATS)
CUDA_RUN(_softmax_backward_data, cuda_softmax, CUDA_FLOATS)
CUDA_RUN(_log_softmax_backward_data, cuda_softmax, CUDA_FLOATS)

/* ---- normalisations ---- */
typedef struct {
    void   *out, *mean, *rstd, *variance, *dweight, *dbias, *in, *grad, *weight, *bias;
    int64_t rows, groups, channels, inner, slices;
    double  eps;
    int     centred, fixed;
    void   *partial;
} norm_args;
CUDA_BODY(norm);

static cuda_program start_norm(const lc_norm_args *a, norm_args *p)
{
    const lc_tensor *x = a->in ? a->in : a->grad, *of[] = { a->weight, a->bias, a->dweight, a->dbias }, *parameter = NULL;
    lc_dtype         work = lc_working_dtype((lc_dtype)x->dtype);
    for (int i = 0; i < 4 && !parameter; i++) parameter = of[i];
    *p = (norm_args){ DATA(a->out),
                      DATA(a->mean),
                      DATA(a->rstd),
                      DATA(a->variance),
                      DATA(a->dweight),
                      DATA(a->dbias),
                      DATA(a->in),
                      DATA(a->grad),
                      DATA(a->weight),
                      DATA(a->bias),
                      .rows = a->rows,
                      .groups = a->groups ? a->groups : 1,
                      .channels = a->channels,
                      .inner = a->inner,
                      .slices = 1,
                      .eps = a->eps,
                      .centred = a->centred,
                      .fixed = a->fixed };
    return (cuda_program){ &norm_body, .type = { CUDA_TYPE(x->dtype), CUDA_TYPE(work), TYPE_OF(parameter, work) } };
}
static size_t sum_bytes(lc_dtype dtype) { return dtype == LC_f64 ? 8 : 4; }

/* The row in registers where it fits, read and written 16 bytes at a time. */
static int norm_of_rows(cuda_program *q, const norm_args *p, const char *kernel, const char *held)
{
    int64_t length = p->channels * p->inner;
    int     size = (int)lc_size_of((lc_dtype)(q->type[0] - 1));
    bool    aligned = is_aligned(p->in, length * size) && is_aligned(p->out, 0) && is_aligned(p->grad, 0) &&
                   is_aligned(p->weight, 0) && is_aligned(p->bias, 0);
    row_form form;
    if (!hold_row(length, size, aligned, &form)) return q->kernel = kernel, cuda_blocks(q, p->rows, threads_for(length), p);
    cuda_program by = *q;
    by.variant = (int16_t)(form.bits | (p->inner > 1) << 5);
    return launch_rows(&by, held, &form, p->rows, p);
}
static int zero(const lc_tensor *t) { return t ? cuda_set_bytes(t->data, 0, (size_t)(t->numel * lc_size_of(t->dtype))) : 0; }
static int norm_rows(UNUSED lc_op_id op, UNUSED lc_dtype compute, const void *args)
{
    norm_args           p;
    cuda_program        q = start_norm(args, &p);
    const lc_norm_args *a = args;
    if (!p.rows) return 0;
    if (cuda_use(a->in->device.index) < 0) return -1;
    if (!p.channels || !p.inner) { /* the mean of nothing is 0, its deviation NaN: all bytes are 255 */
        int rc = zero(a->mean);
        return rc < 0 || !a->rstd ? rc
                                  : cuda_set_bytes(a->rstd->data, 255, (size_t)(a->rstd->numel * lc_size_of(a->rstd->dtype)));
    }
    return norm_of_rows(&q, &p, "rows", "held");
}
static int norm_rows_backward(UNUSED lc_op_id op, UNUSED lc_dtype compute, const void *args)
{
    const lc_norm_args *a = args;
    norm_args           p;
    cuda_program        q = start_norm(a, &p);
    cuda_scratch        scratch = { 0 };
    int64_t             width = p.groups * p.channels, length = p.channels * p.inner;
    int                 rc = 0;
    if (cuda_use(a->in->device.index) < 0) return -1;
    if (!p.rows || !length) return zero(a->dweight) < 0 ? -1 : zero(a->dbias);
    if (a->out) rc = norm_of_rows(&q, &p, "rows_slope", "held_slope");
    if (rc < 0 || !(a->dweight || a->dbias)) return rc;
    if (p.inner > 1) return q.kernel = "group_sums", cuda_blocks(&q, width, threads_for(p.inner), &p);
    int64_t blocks = (width + 31) / 32, times = p.rows / p.groups;
    p.slices = 528 / blocks + 1;
    if (p.slices > times / 32 + 1) p.slices = times / 32 + 1;
    if (!(p.partial = cuda_scratch_new(&scratch, a->in->device.index, (size_t)(p.slices * 2 * width) * 8))) return -1;
    q.kernel = "rows_sums", rc = cuda_blocks(&q, blocks * p.slices, 256, &p);
    if (rc == 0) q.kernel = "rows_total", rc = cuda_map(&q, width, &p);
    return cuda_scratch_free(&scratch), rc;
}
CUDA_RUN(_norm_rows, norm_rows, CUDA_FLOATS)
CUDA_RUN(_norm_rows_backward, norm_rows_backward, CUDA_FLOATS)

static int norm_channels(UNUSED lc_op_id op, UNUSED lc_dtype compute, const void *args)
{
    const lc_norm_args *a = args;
    norm_args           p;
    cuda_program        q = start_norm(a, &p);
    cuda_scratch        scratch = { 0 };
    int64_t             all = p.rows * p.inner, n = all * p.channels;
    bool                reduces = a->grad ? true : !a->fixed;
    int                 rc = 0;
    const lc_tensor    *any = a->in ? a->in : a->grad;
    if (!p.channels) return 0;
    if (cuda_use(any->device.index) < 0) return -1;
    int              wide = 16 / (int)lc_size_of(any->dtype);
    bool             aligned = true;
    const lc_tensor *of[] = { a->out, a->in, a->grad };
    for (int i = 0; i < 3; i++) aligned = aligned && is_aligned(DATA(of[i]), 0);
    bool    beside = p.inner == 1 && p.channels > 4; /* channels are neighbours in memory */
    bool    strips = beside && aligned && p.channels % wide == 0;
    int64_t across = strips ? 8 * wide : beside ? 32 : 1, blocks = (p.channels + across - 1) / across;
    int64_t enough = beside ? 1056 : 528, least = strips ? 128 : beside ? 64 : 2048;
    p.slices = enough / blocks + 1;
    if (p.slices > all / least + 1) p.slices = all / least + 1;
    if (reduces && !(p.partial = cuda_scratch_new(&scratch, any->device.index, (size_t)(2 * p.channels * (p.slices + 1)) * 8)))
        return -1;
    if (reduces) {
        q.kernel = strips   ? (a->grad ? "strip_dots" : "strip_moments")
                   : beside ? (a->grad ? "beside_dots" : "beside_moments")
                            : (a->grad ? "channel_dots" : "channel_moments");
        rc = cuda_blocks(&q, blocks * p.slices, 256, &p);
        q.kernel = a->grad ? "channel_sums" : "channel_statistics";
        if (rc == 0) rc = cuda_blocks(&q, (p.channels + 3) / 4, 128, &p);
    }
    bool fits = aligned && n % wide == 0 && p.inner % wide == 0;
    if (rc == 0 && a->out && n && strips) {
        q.kernel = a->grad ? "strip_slope" : "strip_scale";
        rc = cuda_blocks(&q, blocks * p.slices, 256, &p);
    } else if (rc == 0 && a->out && n) {
        q.kernel = fits ? (a->grad ? "wide_slope" : "wide_scale") : a->grad ? "channel_slope" : "channel_scale";
        rc = cuda_map(&q, fits ? n / wide : n, &p);
    }
    return cuda_scratch_free(&scratch), rc;
}
CUDA_RUN(_norm_channels, norm_channels, CUDA_FLOATS)
CUDA_RUN(_norm_channels_backward, norm_channels, CUDA_FLOATS)

/* ---- cross entropy ---- */
typedef struct {
    void         *in, *out, *target, *weight, *grad, *loss, *lse, *total, *reduced;
    int64_t       n, classes, lanes, ignored, shared_grad;
    double        smoothing;
    int           mean;
    cuda_trouble *word;
    void         *all_weights, *parts;
    int64_t       slices;
} entropy_args;
CUDA_BODY(cross_entropy);

static int cross_entropy(UNUSED lc_op_id op, UNUSED lc_dtype compute, const void *args)
{
    const lc_cross_entropy_args *a = args;
    int                          device = a->in->device.index, rc = 0;
    lc_dtype                     work = lc_working_dtype((lc_dtype)a->in->dtype);
    entropy_args                 p = { a->in->data,
                                       DATA(a->out),
                                       a->target->data,
                                       DATA(a->weight),
                                       DATA(a->grad),
                                       DATA(a->loss),
                                       DATA(a->lse),
                                       DATA(a->total),
                                       DATA(a->reduced),
                                       a->n,
                                       a->classes,
                                       a->lanes,
                                       a->ignored,
                                       .shared_grad = a->grad && a->grad->numel == 1,
                                       .smoothing = a->smoothing,
                                       .mean = a->mean };
    cuda_program q = { &cross_entropy_body, .type = { CUDA_TYPE(a->in->dtype), CUDA_TYPE(work), TYPE_OF(a->reduced, LC_f32) } };
    cuda_scratch scratch = { 0 }, parts = { 0 };
    int64_t      positions = a->n * a->lanes;
    enum { SLICE = 2048, MOST_SLICES = 264 }; /* of positions, which one block would sum one after the other */
    if (cuda_use(device) < 0) return -1;
    p.word = cuda_trouble_word(device);
    if (a->smoothing != 0) {
        if (!(p.all_weights = cuda_scratch_new(&scratch, device, sum_bytes(work)))) return -1;
        q.kernel = "weights", rc = cuda_blocks(&q, 1, 256, &p);
    }
    bool rows = a->lanes == 1 && a->classes > 32, few = !rows && positions <= 1024;
    if (rc == 0 && a->out) {
        q.kernel = rows ? "backward_rows" : "backward";
        rc = rows ? cuda_blocks(&q, positions, threads_for(a->classes), &p) : cuda_map(&q, positions * a->classes, &p);
    } else if (rc == 0 && few) q.kernel = "forward_few", rc = cuda_blocks(&q, 1, positions <= 256 ? 256 : 512, &p);
    else if (rc == 0) {
        q.kernel = rows ? "forward_rows" : "forward_each";
        rc = rows ? cuda_blocks(&q, positions, threads_for(a->classes), &p) : cuda_map(&q, positions, &p);
        p.slices = positions / SLICE < MOST_SLICES ? positions / SLICE : MOST_SLICES;
        if (rc == 0 && p.slices > 1) {
            p.parts = cuda_scratch_new(&parts, device, (size_t)p.slices * 2 * sizeof(double));
            q.kernel = "sum_slices", rc = p.parts ? cuda_blocks(&q, p.slices, 256, &p) : -1;
        }
        if (rc == 0) q.kernel = "sums", rc = cuda_blocks(&q, 1, 512, &p);
    }
    return cuda_scratch_free(&scratch), cuda_scratch_free(&parts), rc;
}
CUDA_RUN(_cross_entropy, cross_entropy, CUDA_FLOATS)
CUDA_RUN(_cross_entropy_backward, cross_entropy, CUDA_FLOATS)
