/* Recurrent steps of elements of type T: see rnn_steps.isa.o3.c. */
#include "../matmul/small_gemm.inc.c"

/* Inputs and outputs of one step of a row; hidden is the state times the weights. */
typedef struct {
    const T *x, *bias; /* gates of the input; NULL or (G h) */
    T       *hidden, *h, *c, *saved, *cell;
} NAME(row);

static void NAME(add_bias)(T *hidden, const T *bias, int64_t n)
{
    if (bias) INDEPENDENT
    for (int64_t j = 0; j < n; j++) hidden[j] += bias[j];
}
static void NAME(lstm_row)(const NAME(row) * r, int64_t n)
{
    const T *x = r->x, *a = r->hidden;
    T       *h = r->h, *c = r->c, *s = r->saved, *cell = r->cell;
    INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        T i = SIGMOID(x[j] + a[j]), f = SIGMOID(x[n + j] + a[n + j]), g = TANH(x[2 * n + j] + a[2 * n + j]),
          o = SIGMOID(x[3 * n + j] + a[3 * n + j]), next = f * c[j] + i * g;
        s[j] = i, s[n + j] = f, s[2 * n + j] = g, s[3 * n + j] = o;
        c[j] = cell[j] = next, h[j] = o * TANH(next);
    }
}
static void NAME(gru_row)(const NAME(row) * r, int64_t n)
{
    const T *x = r->x, *a = r->hidden;
    T       *h = r->h, *s = r->saved;
    INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        T reset = SIGMOID(x[j] + a[j]), z = SIGMOID(x[n + j] + a[n + j]), m = a[2 * n + j],
          fresh = TANH(x[2 * n + j] + reset * m);
        s[j] = reset, s[n + j] = z, s[2 * n + j] = fresh, s[3 * n + j] = m;
        h[j] = fresh + z * (h[j] - fresh);
    }
}
static void NAME(plain_row)(const NAME(row) * r, int64_t n, bool relu)
{
    const T *x = r->x, *a = r->hidden;
    T       *h = r->h;
    if (relu) INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        T v = x[j] + a[j];
        h[j] = v < 0 ? 0 : v;
    }
    else INDEPENDENT for (int64_t j = 0; j < n; j++) h[j] = TANH(x[j] + a[j]); }
static void NAME(forward)(const rnn_plan *plan, int64_t begin, int64_t end, void *scratch)
{
    const lc_rnn_args *a = plan->args;
    int64_t            h = a->h, p = a->p, width = rnn_gates(a->kind) * h, wide = rnn_padded(width), wide_p = rnn_padded(p);
    T                 *hidden = scratch, *raw = hidden + RNN_ROWS * wide, *projected = raw + RNN_ROWS * rnn_padded(h);
    T                 *state = (T *)a->hn->data, *cells = a->cn ? (T *)a->cn->data : NULL;
    memcpy(state + begin * p, (const T *)a->h0->data + begin * p, (size_t)((end - begin) * p) * sizeof(T));
    if (cells) memcpy(cells + begin * h, (const T *)a->c0->data + begin * h, (size_t)((end - begin) * h) * sizeof(T));
    for (int64_t step = 0; step < a->steps; step++) {
        int64_t t = a->reverse ? a->steps - 1 - step : step, n = (a->sizes[t] < end ? a->sizes[t] : end) - begin;
        if (n <= 0) continue;
        NAME(multiply)
        (n, NAME(whole)(width), p, state + begin * p, p, 1, plan->weight, plan->weight_row, hidden, wide, hidden, STORE, NULL);
        for (int64_t i = 0; i < n; i++) {
            int64_t row = plan->starts[t] + begin + i;
            NAME(row)
            r = { .x = (const T *)a->gates->data + row * width,
                  .hidden = hidden + i * wide,
                  .h = a->project ? raw + i * rnn_padded(h) : state + (begin + i) * p };
            if (a->bias) NAME(add_bias)(r.hidden, (const T *)a->bias->data, width);
            if (a->saved) r.saved = (T *)a->saved->data + row * 4 * h;
            if (cells) r.c = cells + (begin + i) * h, r.cell = (T *)a->cells->data + row * h;
            if (a->kind == LC_RNN_LSTM) NAME(lstm_row)(&r, h);
            else if (a->kind == LC_RNN_GRU) NAME(gru_row)(&r, h);
            else NAME(plain_row)(&r, h, a->kind == LC_RNN_RELU);
        }
        if (a->project) {
            NAME(multiply)
            (n, NAME(whole)(p), h, raw, rnn_padded(h), 1, plan->project, plan->project_row, projected, wide_p, projected, STORE,
             NULL);
            for (int64_t i = 0; i < n; i++) memcpy(state + (begin + i) * p, projected + i * wide_p, (size_t)p * sizeof(T));
        }
        memcpy((T *)a->out->data + (plan->starts[t] + begin) * p, state + begin * p, (size_t)(n * p) * sizeof(T));
    }
}

/* ---- backward ---- */

/* dh (n) and dc become the gradients of the row's gates, and dc that of the previous state. */
static void NAME(lstm_back)(const T *s, const T *cell, const T *before, const T *dh, T *dc, T *d, int64_t n)
{
    INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        T i = s[j], f = s[n + j], g = s[2 * n + j], o = s[3 * n + j], u = TANH(cell[j]), e = dc[j] + dh[j] * o * (1 - u * u);
        d[j] = e * g * i * (1 - i), d[n + j] = e * before[j] * f * (1 - f), d[2 * n + j] = e * i * (1 - g * g);
        d[3 * n + j] = dh[j] * u * o * (1 - o), dc[j] = e * f;
    }
}
/* dh becomes the direct gradient of the previous state; d is that of the inputs' gates, d_hidden that of the state's. */
static void NAME(gru_back)(const T *s, const T *before, T *dh, T *d, T *d_hidden, int64_t n)
{
    INDEPENDENT
    for (int64_t j = 0; j < n; j++) {
        T reset = s[j], z = s[n + j], fresh = s[2 * n + j], m = s[3 * n + j], e = dh[j];
        T dn = e * (1 - z) * (1 - fresh * fresh), dz = e * (before[j] - fresh) * z * (1 - z), dr = dn * m * reset * (1 - reset);
        d[j] = d_hidden[j] = dr, d[n + j] = d_hidden[n + j] = dz, d[2 * n + j] = dn, d_hidden[2 * n + j] = dn * reset;
        dh[j] = e * z;
    }
}
static void NAME(plain_back)(const T *y, const T *dh, T *d, int64_t n, bool relu)
{
    if (relu) INDEPENDENT
    for (int64_t j = 0; j < n; j++) d[j] = y[j] <= 0 ? 0 : dh[j]; /* NaN lets gradients pass, as in PyTorch */
    else INDEPENDENT for (int64_t j = 0; j < n; j++) d[j] = dh[j] * (1 - y[j] * y[j]); }
/* Row b of the steps' output (rows of n) before step t, or of the initial state if t is the first. */
static const T *NAME(before)(const rnn_plan *plan, int64_t t, int64_t b, const lc_tensor *steps, const lc_tensor *start,
                             int64_t n)
{
    const lc_rnn_args *a = plan->args;
    int64_t            last = a->reverse ? t + 1 : t - 1;
    bool               there = last >= 0 && last < a->steps && b < a->sizes[last];
    return there ? (const T *)steps->data + (plan->starts[last] + b) * n : (const T *)start->data + b * n;
}
static void NAME(start_rows)(T *to, int64_t step, const lc_tensor *from, int64_t begin, int64_t end, int64_t n)
{
    for (int64_t b = begin; b < end; b++)
        if (from) memcpy(to + (b - begin) * step, (const T *)from->data + b * n, (size_t)n * sizeof(T));
        else memset(to + (b - begin) * step, 0, (size_t)n * sizeof(T));
}
static void NAME(backward)(const rnn_plan *plan, int64_t begin, int64_t end, void *scratch)
{
    const lc_rnn_args *a = plan->args;
    int64_t            h = a->h, p = a->p, width = rnn_gates(a->kind) * h, wide = rnn_padded(h), wide_p = rnn_padded(p);
    T   *dh = scratch, *dc = dh + RNN_ROWS * wide_p, *raw = dc + RNN_ROWS * wide, *d_c0 = a->d_c0 ? (T *)a->d_c0->data : NULL;
    bool gru = a->kind == LC_RNN_GRU;
    NAME(start_rows)(dh, wide_p, a->g_hn, begin, end, p);
    if (d_c0) NAME(start_rows)(dc, wide, a->g_cn, begin, end, h);
    for (int64_t step = a->steps - 1; step >= 0; step--) {
        int64_t t = a->reverse ? a->steps - 1 - step : step, n = (a->sizes[t] < end ? a->sizes[t] : end) - begin;
        int64_t first = plan->starts[t] + begin;
        if (n <= 0) continue;
        T *of_hidden = (T *)(gru ? a->d_hidden : a->d_gates)->data + first * width;
        for (int64_t i = 0; i < n && a->g_out; i++) {
            const T *g = (const T *)a->g_out->data + (first + i) * p;
            T       *to = dh + i * wide_p;
            INDEPENDENT
            for (int64_t j = 0; j < p; j++) to[j] += g[j];
        }
        if (a->project) {
            for (int64_t i = 0; i < n; i++)
                memcpy((T *)a->d_out->data + (first + i) * p, dh + i * wide_p, (size_t)p * sizeof(T));
            NAME(multiply)(n, NAME(whole)(h), p, dh, wide_p, 1, plan->project, plan->project_row, raw, wide, raw, STORE, NULL);
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t row = first + i;
            T      *d = (T *)a->d_gates->data + row * width, *g = a->project ? raw + i * wide : dh + i * wide_p;
            if (gru) NAME(gru_back)
            ((const T *)a->saved->data + row * 4 * h, NAME(before)(plan, t, begin + i, a->out, a->h0, h), g, d,
             of_hidden + i * width, h);
            else if (a->kind == LC_RNN_LSTM)
                NAME(lstm_back)((const T *)a->saved->data + row * 4 * h, (const T *)a->cells->data + row * h,
                                NAME(before)(plan, t, begin + i, a->cells, a->c0, h), g, dc + i * wide, d, h);
            else NAME(plain_back)((const T *)a->out->data + row * p, g, d, h, a->kind == LC_RNN_RELU); }
        NAME(multiply)
        (n, NAME(whole)(p), width, of_hidden, width, 1, plan->weight, plan->weight_row, dh, wide_p, dh, gru ? ADD : STORE,
         NULL);
    }
    for (int64_t b = begin; b < end; b++) {
        memcpy((T *)a->d_h0->data + b * p, dh + (b - begin) * wide_p, (size_t)p * sizeof(T));
        if (d_c0) memcpy(d_c0 + b * h, dc + (b - begin) * wide, (size_t)h * sizeof(T));
    }
}
#undef T
#undef SIGMOID
#undef TANH
#undef NAME
