/* Recurrent layers: step by step, a product with the weights and a kernel for the rest. Row b of every step is sequence b, so a
 * step works on the first rows of the states. */
#include "../driver.h"
#include <string.h>

typedef struct {
    void *gates, *hidden, *bias, *state, *cell_state, *saved, *cells, *out, *before_out, *before_start, *d_gates, *d_hidden,
        *dh, *dc, *g_out;
    int64_t rows, h, p, before_rows;
} rnn_args; /* as in kernels/rnn.cuh */
CUDA_BODY(rnn);

#define AT(t, rows_before, width) ((t) ? (t)->data + (rows_before) * (width)*size : NULL)
static int copy(void *to, const void *from, int64_t bytes) { return to == from ? 0 : cuda_move_bytes(to, from, (size_t)bytes); }
static int clear(void *p, int64_t bytes) { return cuda_set_bytes(p, 0, (size_t)bytes); }
static int64_t gates_of(lc_rnn_kind kind) { return kind == LC_RNN_LSTM ? 4 : kind == LC_RNN_GRU ? 3 : 1; }
static int64_t starts_at(const lc_rnn_args *a, int64_t t)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < t; i++) rows += a->sizes[i];
    return rows;
}
/* to (n, m) = x (n, k) w' or w: rows contiguous */
static int times(int device, lc_dtype dtype, void *to, void *x, const lc_tensor *w, bool transposed, int64_t n, int64_t m,
                 int64_t k, bool adds)
{
    cuda_matrix out = { to, 0, m, 1, dtype }, left = { x, 0, k, 1, dtype },
                right = { w->data, 0, transposed ? 1 : m, transposed ? k : 1, dtype };
    return cuda_product(device, dtype, out, left, right, 1, n, m, k, 1, adds);
}

static int recurrence(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_rnn_args *a = args;
    int64_t            size = lc_size_of(dtype), h = a->h, p = a->p, width = gates_of(a->kind) * h;
    int                device = a->gates->device.index;
    cuda_scratch       scratch = { 0 };
    cuda_program       q = { &rnn_body, "forward", .type = { CUDA_TYPE(dtype) }, .variant = (int16_t)a->kind };
    if (cuda_use(device) < 0) return -1;
    char *hidden = cuda_scratch_new(&scratch, device, (size_t)(a->batch * (width + h) * size)),
         *raw = hidden + a->batch * width * size;
    int rc = hidden ? 0 : -1;
    if (rc == 0) rc = copy(a->hn->data, a->h0->data, a->batch * p * size);
    if (rc == 0 && a->cn) rc = copy(a->cn->data, a->c0->data, a->batch * h * size);
    int64_t row = a->reverse ? starts_at(a, a->steps) : 0;
    for (int64_t step = 0; step < a->steps && rc == 0; step++) {
        int64_t t = a->reverse ? a->steps - 1 - step : step, n = a->sizes[t];
        if (a->reverse) row -= n;
        rnn_args r = { .gates = AT(a->gates, row, width),
                       .hidden = hidden,
                       .bias = a->bias ? a->bias->data : NULL,
                       .state = a->project ? raw : a->hn->data,
                       .cell_state = a->cn ? a->cn->data : NULL,
                       .saved = AT(a->saved, row, 4 * h),
                       .cells = AT(a->cells, row, h),
                       .rows = n,
                       .h = h,
                       .p = p };
        rc = times(device, dtype, hidden, a->hn->data, a->weight, true, n, width, p, false);
        if (rc == 0) rc = cuda_map(&q, n * h, &r);
        if (rc == 0 && a->project) rc = times(device, dtype, a->hn->data, raw, a->project, true, n, p, h, false);
        if (rc == 0) rc = copy(AT(a->out, row, p), a->hn->data, n * p * size);
        if (!a->reverse) row += n;
    }
    return cuda_scratch_free(&scratch), rc;
}

static int recurrence_backward(UNUSED lc_op_id op, lc_dtype dtype, const void *args)
{
    const lc_rnn_args *a = args;
    int64_t            size = lc_size_of(dtype), h = a->h, p = a->p, width = gates_of(a->kind) * h;
    int                device = a->weight->device.index;
    cuda_scratch       scratch = { 0 };
    cuda_program       q = { &rnn_body, .type = { CUDA_TYPE(dtype) }, .variant = (int16_t)a->kind };
    if (cuda_use(device) < 0) return -1;
    char *raw = cuda_scratch_new(&scratch, device, (size_t)(a->batch * h * size)), *dh = a->d_h0->data,
         *dc = a->d_c0 ? a->d_c0->data : NULL;
    int rc = raw ? 0 : -1;
    if (rc == 0) rc = a->g_hn ? copy(dh, a->g_hn->data, a->batch * p * size) : clear(dh, a->batch * p * size);
    if (rc == 0 && dc) rc = a->g_cn ? copy(dc, a->g_cn->data, a->batch * h * size) : clear(dc, a->batch * h * size);
    for (int64_t step = a->steps - 1; step >= 0 && rc == 0; step--) {
        int64_t t = a->reverse ? a->steps - 1 - step : step, n = a->sizes[t], row = starts_at(a, t),
                last = a->reverse ? t + 1 : t - 1;
        bool             there = last >= 0 && last < a->steps;
        const lc_tensor *steps = a->kind == LC_RNN_LSTM ? a->cells : a->out, *start = a->kind == LC_RNN_LSTM ? a->c0 : a->h0;
        rnn_args         r = { .saved = AT(a->saved, row, 4 * h),
                               .cells = AT(a->cells, row, h),
                               .out = AT(a->out, row, p),
                               .d_gates = AT(a->d_gates, row, width),
                               .d_hidden = AT(a->d_hidden, row, width),
                               .dh = dh,
                               .dc = dc,
                               .g_out = AT(a->g_out, row, p),
                               .rows = n,
                               .h = h,
                               .p = p };
        if (a->kind >= LC_RNN_GRU) r.before_start = start->data, r.before_rows = there ? a->sizes[last] : 0;
        if (a->kind >= LC_RNN_GRU && there) r.before_out = AT(steps, starts_at(a, last), h);
        if (a->g_out) q.kernel = "add_out", rc = cuda_map(&q, n * p, &r);
        if (rc == 0 && a->project) {
            rc = copy(AT(a->d_out, row, p), dh, n * p * size);
            if (rc == 0) rc = times(device, dtype, raw, dh, a->project, false, n, h, p, false);
            r.dh = raw;
        }
        if (rc == 0) q.kernel = "backward", rc = cuda_map(&q, n * h, &r);
        bool gru = a->kind == LC_RNN_GRU;
        if (rc == 0) rc = times(device, dtype, dh, gru ? r.d_hidden : r.d_gates, a->weight, false, n, p, width, gru);
    }
    return cuda_scratch_free(&scratch), rc;
}
CUDA_RUN(_recurrence, recurrence, CUDA_F32_F64)
CUDA_RUN(_recurrence_backward, recurrence_backward, CUDA_F32_F64)
