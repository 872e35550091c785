/* Distances of rows, CTC and the multilabel margin loss. */
#include "science.h"
#include <stdlib.h>

typedef struct {
    void   *out, *a, *b;
    int64_t batch, n, m, k;
    double  p;
    int     pairs;
} distance_args;
CUDA_BODY(distance);
static int distances(lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_distance_args *a = args;
    bool                    own = op == LC_OP__pdist;
    int                     last = a->a->ndim - 1;
    distance_args p = { a->out->data, a->a->data,  own ? NULL : a->b->data, .n = a->a->shape[last - 1], .k = a->a->shape[last],
                        .p = a->p,    .pairs = own };
    cuda_program  q = { &distance_body, own ? "own_pairs" : "all_pairs", .type = { CUDA_TYPE(dtype) } };
    if (!a->out->numel) return 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    p.m = own ? p.n : a->b->shape[last - 1], p.batch = own ? 1 : a->out->numel / (p.n * p.m);
    return cuda_map(&q, p.batch * p.n * p.m, &p);
}
CUDA_RUN(_cdist, distances, CUDA_F32_F64)
CUDA_RUN(_pdist, distances, CUDA_F32_F64)

/* ---- CTC ---- */
enum { STATES = 64 }; /* threads of a sample */
typedef struct {
    void         *log_probs, *nll, *alpha, *out, *grad, *targets;
    int64_t      *first, *input_length, *target_length, steps, batch, classes, longest, blank;
    int           zero_infinity;
    double       *beta;
    cuda_trouble *word;
} ctc_args;
CUDA_BODY(ctc);
static int ctc(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_ctc_args *a = args;
    int                device = a->log_probs->device.index;
    int64_t            batch = a->log_probs->shape[1], wide = 2 * a->longest + 1;
    ctc_args           p = { .log_probs = a->log_probs->data,
                             .nll = a->nll->data,
                             .alpha = a->alpha->data,
                             .out = a->out ? a->out->data : NULL,
                             .grad = a->grad ? a->grad->data : NULL,
                             .targets = a->targets->data,
                             .steps = a->log_probs->shape[0],
                             .batch = batch,
                             .classes = a->log_probs->shape[2],
                             .longest = a->longest,
                             .blank = a->blank,
                             .zero_infinity = a->zero_infinity };
    cuda_program       q = { &ctc_body, a->out ? "backward" : "forward", .type = { CUDA_TYPE(dtype) } };
    cuda_scratch       lengths = { 0 }, lines = { 0 };
    if (!batch) return 0;
    if (cuda_use(device) < 0) return -1;
    p.word = cuda_trouble_word(device);
    int64_t *host = malloc((size_t)batch * 3 * sizeof *host), at = 0;
    if (!host) return lc_fail_int(LC_OutOfMemory, "ctc_loss: no memory for %lld samples", (long long)batch);
    for (int64_t b = 0; b < batch; b++) {
        host[b] = at, host[batch + b] = a->input_length[b], host[2 * batch + b] = a->target_length[b];
        at += a->targets->ndim == 1 ? a->target_length[b] : a->targets->shape[1];
    }
    p.first = cuda_scratch_new(&lengths, device, (size_t)batch * 3 * 8);
    int rc = p.first ? cuda_to_device(p.first, host, (size_t)batch * 3 * 8) : -1;
    p.input_length = p.first + batch, p.target_length = p.first + 2 * batch;
    if (rc == 0 && a->out) rc = cuda_zero(a->out);
    if (rc == 0 && a->out && !(p.beta = cuda_scratch_new(&lines, device, (size_t)(2 * batch * wide) * 8))) rc = -1;
    if (rc == 0) rc = cuda_blocks(&q, batch, STATES, &p);
    free(host), cuda_scratch_free(&lengths), cuda_scratch_free(&lines);
    return rc;
}
CUDA_RUN(_ctc_loss, ctc, CUDA_F32_F64)
CUDA_RUN(_ctc_loss_backward, ctc, CUDA_F32_F64)

typedef struct {
    void         *out, *in, *grad, *target;
    int64_t       rows, classes;
    cuda_trouble *word;
} margin_args;
static int margin(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_multilabel_margin_args *a = args;
    margin_args  p = { a->out->data,    a->in->data, a->grad ? a->grad->data : NULL, a->target->data, a->in->shape[0],
                       a->in->shape[1], NULL };
    cuda_program q = { &ctc_body, a->grad ? "margin_slope" : "margin", .type = { CUDA_TYPE(dtype) } };
    if (!a->out->numel || !p.classes) return a->out->numel ? cuda_zero(a->out) : 0;
    if (cuda_use(a->out->device.index) < 0) return -1;
    p.word = cuda_trouble_word(a->out->device.index);
    return a->grad ? cuda_map(&q, p.rows * p.classes, &p) : cuda_blocks(&q, p.rows, 128, &p);
}
CUDA_RUN(_multilabel_margin, margin, CUDA_F32_F64)
CUDA_RUN(_multilabel_margin_backward, margin, CUDA_F32_F64)
