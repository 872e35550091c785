/* PyTorch's recurrent functions, which nn.LSTM, nn.GRU and nn.RNN call: layers and directions over _recurrence. */
#include "rnn.h"

typedef struct { /* the arguments of a call of any form */
    const char       *name;
    lc_rnn_kind       kind;
    lc_tensor        *input;   /* (rows, width): the steps one after the other */
    lc_tensor        *hx, *cx; /* (layers x directions, batch, .) */
    lc_tensor *const *params;
    int               n_params;
    bool              biases, train, both; /* both directions */
    int64_t           layers, steps, batch;
    const int64_t    *sizes;
    double            dropout;
    lc_tensor        *sequences; /* padded: (steps, batch, width); NULL: packed */
} network;

static bool       has_projection(const network *n) { return n->cx && n->cx->shape[2] != n->hx->shape[2]; }
static lc_tensor *product(lc_tensor *x, lc_tensor *weight, lc_tensor *bias)
{
    return bias ? lc_addmm(bias, x, lc_t(weight), LC_I(1), LC_I(1)) : lc_mm(x, lc_t(weight));
}

static int parameters_agree(const network *n, lc_tensor *const *p) /* in dtype */
{
    for (int i = 0; i < (n->biases ? 4 : 2) + has_projection(n); i++)
        if (p[i]->dtype != n->input->dtype)
            return lc_fail_int(LC_DtypeMismatch, "%s: input and parameters must have one dtype, got %s and %s", n->name,
                               LC_SHAPE(n->input), LC_SHAPE(p[i]));
    return 0;
}
/* Whether the kernels take one layer's parameters: w_ih (G h, width), w_hh (G h, p), biases (G h), w_hr (p, h). */
static bool parameters_fit(const network *n, lc_tensor *const *p, int64_t width)
{
    int64_t gates = n->kind == LC_RNN_LSTM  ? 4
                    : n->kind == LC_RNN_GRU ? 3
                                            : 1,
            size = n->hx->shape[2], h = n->cx ? n->cx->shape[2] : size;
    int  last = n->biases ? 4 : 2;
    bool fits = p[0]->ndim == 2 && p[1]->ndim == 2 && p[0]->shape[0] == gates * h && p[1]->shape[0] == gates * h &&
                p[1]->shape[1] == size && p[0]->shape[1] == width;
    for (int i = 2; fits && n->biases && i < 4; i++) fits = p[i]->ndim == 1 && p[i]->shape[0] == gates * h;
    if (fits && has_projection(n)) fits = p[last]->ndim == 2 && p[last]->shape[0] == size && p[last]->shape[1] == h;
    return fits;
}
static int network_fits(const network *n)
{
    int64_t          ways = n->layers * (n->both ? 2 : 1);
    int              each = (n->biases ? 4 : 2) + has_projection(n);
    lc_tensor *const state[] = { n->hx, n->cx };
    for (int i = 0; i < 2 && state[i]; i++) {
        if (i ? state[i]->shape[0] < ways : state[i]->shape[0] != ways)
            return lc_fail_int(LC_ShapeMismatch, "%s: Expected hidden size (%lld, %lld, %lld), got %s", n->name,
                               (long long)ways, (long long)n->batch, (long long)state[i]->shape[2], LC_SHAPE(state[i]));
        bool wide = i && has_projection(n) && state[i]->dtype == working_dtype((lc_dtype)n->input->dtype); /* autocast */
        if (state[i]->dtype != n->input->dtype && !wide)
            return lc_fail_int(LC_DtypeMismatch, "%s: input and hidden state must have one dtype, got %s and %s", n->name,
                               LC_SHAPE(n->input), LC_SHAPE(state[i]));
    }
    if (n->layers < 1)
        return lc_fail_int(LC_ValueError, "%s: num_layers must be positive, got %lld", n->name, (long long)n->layers);
    if (!lc_is_floating(n->input->dtype))
        return lc_fail_int(LC_DtypeMismatch, "%s: expected floating point input, got %s", n->name, LC_SHAPE(n->input));
    if (n->n_params != ways * each)
        return lc_fail_int(LC_LucidError, "%s: expected %lld parameters, got %d", n->name, (long long)(ways * each),
                           n->n_params);
    return 0;
}

/* Whether the kernels take its sequences and states: as many states as sequences, packed ones that end one after the other. */
static bool sequences_fit(const network *n)
{
    bool    fits = n->hx->shape[1] == n->batch && (!n->cx || n->cx->shape[1] == n->batch);
    int64_t rows = 0;
    for (int64_t t = 0; fits && t < n->steps; t++) {
        fits = n->sizes[t] > 0 && n->sizes[t] <= n->sizes[t ? t - 1 : 0];
        if (fits) fits = !__builtin_add_overflow(rows, n->sizes[t], &rows);
    }
    return fits && rows == n->input->shape[0];
}
/* Any other network: x is (steps, batch, width), or packed. */
static int run_plainly(const network *n, lc_tensor *x, lc_tensor **last, lc_tensor **out)
{
    int         ways = n->both ? 2 : 1, each = (n->biases ? 4 : 2) + has_projection(n), done = 0;
    lc_tensor **last_c = last + n->layers * ways, *way[2], *got[3];
    for (int64_t layer = 0; layer < n->layers; layer++) {
        for (int w = 0; w < ways; w++, done++) {
            lc_tensor *const *p = n->params + (layer * ways + w) * each;
            lc_tensor        *b_ih = n->biases ? p[2] : LC_NONE, *b_hh = n->biases ? p[3] : LC_NONE;
            rnn_layer         l = { n->kind,
                                    w,
                                    p[0],
                                    p[1],
                                    b_ih,
                                    b_hh,
                            has_projection(n) ? p[each - 1] : LC_NONE,
                                    lc_select(n->hx, 0, done),
                            n->cx ? lc_select(n->cx, 0, done) : LC_NONE };
            if (parameters_agree(n, p) < 0 || !l.hx || !l.cx) return -1;
            if (rnn_plain(&l, x, n->sequences ? NULL : n->sizes, n->steps, got) < 0) return -1;
            way[w] = got[0], last[done] = got[1], last_c[done] = got[2];
        }
        x = n->both ? lc_cat(way, 2, -1) : way[0];
        if (n->dropout > 0 && n->train && layer + 1 < n->layers) x = lc_dropout(x, n->dropout, true);
        if (!x) return -1;
    }
    out[0] = x, out[1] = lc_stack(last, done, 0);
    if (n->cx) out[2] = lc_stack(last_c, done, 0);
    return out[1] && (!n->cx || out[2]) ? 0 : -1;
}

/* Both biases are added to the gates, except in a GRU: added up first, their gradient is one sum over all rows. In half
 * precision that would round once more. */
static bool adds_biases(const network *n)
{
    return n->kind != LC_RNN_GRU && n->input->dtype == working_dtype((lc_dtype)n->input->dtype);
}

/* out: (rows, directions x p), hn and cn (layers x directions, batch, .) */
static int run_network(const network *n, lc_tensor **out)
{
    int        ways = n->both ? 2 : 1, each = (n->biases ? 4 : 2) + has_projection(n), done = 0;
    lc_tensor *x = n->input, **last, *way[2];
    if (network_fits(n) < 0) return -1;
    size_t bytes = (size_t)(2 * n->layers * ways) * sizeof *last;
    if (!(last = lc_alloc(bytes))) return lc_fail_int(LC_OutOfMemory, "%s: no memory for its layers", n->name);
    lc_tensor **last_c = last + n->layers * ways;
    bool        fits = sequences_fit(n);
    int64_t     width = n->input->shape[1];
    for (int64_t k = 0; fits && k < n->layers * ways; k++)
        fits = parameters_fit(n, n->params + k * each, k < ways ? width : ways * n->hx->shape[2]);
    if (!fits) {
        int rc = run_plainly(n, n->sequences ? n->sequences : n->input, last, out);
        return lc_free(last, bytes), rc;
    }
    for (int64_t layer = 0; layer < n->layers && x; layer++) {
        for (int w = 0; w < ways; w++, done++) {
            lc_tensor *const *p = n->params + (layer * ways + w) * each;
            if (parameters_agree(n, p) < 0) return lc_free(last, bytes), -1;
            lc_tensor *project = has_projection(n) ? p[each - 1] : LC_NONE, *hx = lc_select(n->hx, 0, done);
            lc_tensor *first = n->biases ? p[2] : NULL, *bias = n->biases ? p[3] : LC_NONE;
            if (n->biases && adds_biases(n)) first = lc_add(first, bias), bias = LC_NONE;
            lc_tensor         *gates = product(x, p[0], first);
            lc_tensor         *cx = n->cx ? lc_select(n->cx, 0, done) : LC_NONE;
            lc__recurrence_out y = lc__recurrence(gates, p[1], bias, project, hx, cx, n->kind, n->sizes, (int)n->steps, w);
            way[w] = y.output, last[done] = y.hn, last_c[done] = y.cn;
        }
        x = n->both ? lc_cat(way, 2, 1) : way[0];
        if (n->dropout > 0 && n->train && layer + 1 < n->layers) x = lc_dropout(x, n->dropout, true);
    }
    out[0] = x, out[1] = x ? lc_stack(last, done, 0) : NULL;
    if (n->cx) out[2] = x ? lc_stack(last_c, done, 0) : NULL;
    lc_free(last, bytes);
    return out[0] && out[1] && (!n->cx || out[2]) ? 0 : -1;
}

/* ---- padded input: (steps, batch, width), or (batch, steps, width) ---- */

/* What follows hx: params, has_biases, num_layers, dropout, train, bidirectional. */
static void read_options(network *n, const lc_value *in)
{
    n->params = in[0].ts, n->n_params = in[0].n, n->biases = in[1].b, n->layers = in[2].i, n->dropout = in[3].f;
    n->train = in[4].b, n->both = in[5].b;
}
static int states_have_rank(const network *n)
{
    if (n->hx->ndim == 3 && (!n->cx || n->cx->ndim == 3)) return 0;
    return lc_fail_int(LC_IndexError, "%s: expected hidden states of 3 dimensions, got %s", n->name, LC_SHAPE(n->hx));
}
static int run_padded(network *n, lc_tensor *input, bool batch_first, lc_tensor **out)
{
    if (input->ndim != 3) return lc_fail_int(LC_IndexError, "%s: input must have 3 dimensions, got %d", n->name, input->ndim);
    if (states_have_rank(n) < 0) return -1;
    lc_tensor *x = batch_first ? lc_transpose(input, 0, 1) : input;
    if (!x) return -1;
    int64_t steps = x->shape[0], batch = x->shape[1], *sizes;
    if (!steps) return lc_fail_int(LC_ShapeMismatch, "%s: Expected sequence length to be larger than 0 in RNN", n->name);
    if (!(sizes = lc_alloc((size_t)steps * sizeof *sizes)))
        return lc_fail_int(LC_OutOfMemory, "%s: no memory for its steps", n->name);
    for (int64_t t = 0; t < steps; t++) sizes[t] = batch;
    n->input = lc_reshape(x, (int64_t[]){ steps * batch, x->shape[2] }, 2);
    n->sizes = sizes, n->steps = steps, n->batch = batch, n->sequences = x;
    int rc = n->input ? run_network(n, out) : -1;
    lc_free(sizes, (size_t)steps * sizeof *sizes);
    if (rc < 0) return -1;
    lc_tensor *y = out[0];
    if (y->ndim == 2) y = lc_reshape(y, (int64_t[]){ steps, batch, y->shape[1] }, 3);
    return (out[0] = y && batch_first ? lc_transpose(y, 0, 1) : y) ? 0 : -1;
}

/* ---- packed input: rows of step 0, of step 1, ...; batch_sizes (steps), int64, on the CPU ---- */

static int run_packed(network *n, lc_tensor *data, lc_tensor *batch_sizes, lc_tensor **out)
{
    if (data->ndim != 2)
        return lc_fail_int(LC_ShapeMismatch, "%s: packed input must have 2 dimensions, got %s", n->name, LC_SHAPE(data));
    if (batch_sizes->ndim != 1 || batch_sizes->dtype != LC_i64 || !lc_can(batch_sizes)->host_memory || !batch_sizes->numel)
        return lc_fail_int(LC_ShapeMismatch, "%s: batch_sizes must be int64, of one dimension and on the CPU, got %s", n->name,
                           LC_SHAPE(batch_sizes));
    if (states_have_rank(n) < 0) return -1;
    lc_tensor *sizes = lc_scoped(packed(batch_sizes, LC_i64));
    if (!sizes) return -1;
    n->sizes = (const int64_t *)sizes->data, n->steps = sizes->numel, n->batch = n->sizes[0], n->input = data;
    for (int64_t t = 0; t < n->steps; t++)
        if (n->sizes[t] < 0 || n->sizes[t] > data->shape[0])
            return lc_fail_int(LC_LucidError, "%s: batch_sizes must be of rows that there are, got %lld", n->name,
                               (long long)n->sizes[t]);
    return run_network(n, out);
}

static int two_states(network *n, const lc_value *hx)
{
    if (hx->n != 2) return lc_fail_int(LC_LucidError, "%s expects two hidden states", n->name);
    n->hx = hx->ts[0], n->cx = hx->ts[1];
    return 0;
}
static int lstm_call(const lc_value *in, lc_tensor **out)
{
    network n = { .name = "lstm", .kind = LC_RNN_LSTM };
    read_options(&n, in + 2);
    return two_states(&n, &in[1]) < 0 ? -1 : run_padded(&n, in(0), in[8].b, out);
}
static int lstm_data_call(const lc_value *in, lc_tensor **out)
{
    network n = { .name = "lstm", .kind = LC_RNN_LSTM };
    read_options(&n, in + 3);
    return two_states(&n, &in[2]) < 0 ? -1 : run_packed(&n, in(0), in(1), out);
}
#define LAYERS  "params: list[Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool, bidirectional: bool"
#define OF_DATA "(data: Tensor, batch_sizes: Tensor, hx: "
LC_OP(lstm, .unnamed = true,
      .sig = "lstm(input: Tensor, hx: list[Tensor], " LAYERS ", batch_first: bool) -> (output: Tensor, hn: Tensor, cn: Tensor)",
      .doc = "Layers of long short-term memory over input (steps, batch, width): all outputs, and both states at the end. "
             "params: per layer and direction w_ih, w_hh, and b_ih, b_hh if has_biases, and w_hr if outputs are projected.",
      .random = true, .amp = LC_AMP_LSTM, .call = lstm_call);
LC_OP(lstm_data, .unnamed = true, .py = "lstm",
      .sig = "lstm_data" OF_DATA "list[Tensor], " LAYERS ") -> (output: Tensor, hn: Tensor, cn: Tensor)",
      .doc = "lstm of packed sequences.", .random = true, .reads_values = true, .any_device = IN(1), .amp = LC_AMP_LIKE_STATE,
      .call = lstm_data_call);

static int padded_call(const char *name, lc_rnn_kind kind, const lc_value *in, lc_tensor **out)
{
    network n = { .name = name, .kind = kind, .hx = in(1) };
    read_options(&n, in + 2);
    return run_padded(&n, in(0), in[8].b, out);
}
static int packed_call(const char *name, lc_rnn_kind kind, const lc_value *in, lc_tensor **out)
{
    network n = { .name = name, .kind = kind, .hx = in(2) };
    read_options(&n, in + 3);
    return run_packed(&n, in(0), in(1), out);
}
#define RNN(op, kind, cast, about)                                                                                             \
    COMPOSITE(op, padded_call(#op, kind, in, out))                                                                             \
    LC_OP(op, .unnamed = true,                                                                                                 \
          .sig = #op "(input: Tensor, hx: Tensor, " LAYERS ", batch_first: bool) -> (output: Tensor, hn: Tensor)",             \
          .doc = about, .random = true, .amp = cast, .call = op##_call);                                                       \
    COMPOSITE(op##_data, packed_call(#op, kind, in, out))                                                                      \
    LC_OP(op##_data, .unnamed = true, .py = #op,                                                                               \
          .sig = #op "_data" OF_DATA "Tensor, " LAYERS ") -> (output: Tensor, hn: Tensor)",                                    \
          .doc = #op " of packed sequences.", .random = true, .reads_values = true, .any_device = IN(1), .amp = cast,          \
          .call = op##_data_call);
RNN(gru, LC_RNN_GRU, LC_AMP_LIKE_STATE,
    "Layers of gated recurrent units over input (steps, batch, width): all outputs, and the state at the end.")
RNN(rnn_tanh, LC_RNN_TANH, LC_AMP_LOWER, "Layers of plain recurrent units, h = tanh(...), over input (steps, batch, width).")
RNN(rnn_relu, LC_RNN_RELU, LC_AMP_LOWER, "Layers of plain recurrent units, h = relu(...), over input (steps, batch, width).")

/* ---- one step: (input, hx, w_ih, w_hh, b_ih, b_hh) ---- */

static int cell(const char *name, lc_rnn_kind kind, const lc_value *in, lc_tensor *hx, lc_tensor *cx, lc_tensor **out)
{
    network    n = { .name = name, .kind = kind, .input = in(0), .layers = 1, .steps = 1 };
    lc_tensor *p[4] = { in[2].t, in[3].t, rnn_tensor(&in[4]), rnn_tensor(&in[5]) };
    if (in(0)->ndim != 2 || hx->ndim != 2 || (cx && cx->ndim != 2))
        return lc_fail_int(in(0)->ndim < 2 || hx->ndim < 2 ? LC_IndexError : LC_ShapeMismatch,
                           "%s: expected input and hidden state of 2 dimensions, got %s and %s", name, LC_SHAPE(in(0)),
                           LC_SHAPE(hx));
    if (!p[2] != !p[3]) { /* one bias of the two */
        int missing = p[2] ? 3 : 2;
        if (!(p[missing] = zeros_like(p[5 - missing]))) return -1;
    }
    n.biases = p[2], n.params = p, n.n_params = n.biases ? 4 : 2;
    n.batch = in(0)->shape[0], n.sizes = &n.batch;
    n.hx = lc_unsqueeze(hx, 0), n.cx = cx ? lc_unsqueeze(cx, 0) : NULL;
    if (!n.hx || (cx && !n.cx)) return -1;
    if (cx && cx->shape[1] != hx->shape[1])
        return lc_fail_int(LC_ShapeMismatch, "%s: hidden states differ in size: %s and %s", name, LC_SHAPE(hx), LC_SHAPE(cx));
    if (network_fits(&n) < 0 || parameters_agree(&n, p) < 0) return -1;
    int64_t rows = (kind == LC_RNN_LSTM ? 4 : kind == LC_RNN_GRU ? 3 : 1) * hx->shape[1];
    bool    fits = hx->shape[0] == n.batch && (!cx || cx->shape[0] == n.batch) && p[0]->ndim == 2 && p[1]->ndim == 2;
    if (p[0]->ndim < 2 || p[1]->ndim < 2)
        return lc_fail_int(LC_IndexError, "%s: weights must have 2 dimensions, got %s and %s", name, LC_SHAPE(p[0]),
                           LC_SHAPE(p[1]));
    if (!fits || p[0]->shape[0] != rows || p[1]->shape[0] != rows || in(0)->shape[1] != p[0]->shape[1] ||
        hx->shape[1] != p[1]->shape[1])
        return lc_fail_int(LC_ShapeMismatch, "%s: input %s, hidden state %s and weights %s, %s do not fit", name,
                           LC_SHAPE(in(0)), LC_SHAPE(hx), LC_SHAPE(p[0]), LC_SHAPE(p[1]));
    if (!sequences_fit(&n) || !parameters_fit(&n, p, in(0)->shape[1])) {
        lc_tensor *none = LC_NONE, *got[3];
        rnn_layer  l = { kind, false, p[0], p[1], p[2] ? p[2] : none, p[3] ? p[3] : none, none, hx, cx ? cx : none };
        if (rnn_plain(&l, in(0), &n.batch, 1, got) < 0) return -1;
        out[0] = got[1];
        if (cx) out[1] = got[2];
        return 0;
    }
    lc_tensor         *gates = product(in(0), p[0], p[2]);
    lc__recurrence_out y =
        lc__recurrence(gates, p[1], p[3] ? p[3] : LC_NONE, LC_NONE, hx, cx ? cx : LC_NONE, kind, n.sizes, 1, false);
    out[0] = y.output;
    if (cx) out[1] = y.cn;
    return y.output ? 0 : -1;
}
static int lstm_cell_call(const lc_value *in, lc_tensor **out)
{
    if (in[1].n != 2) return lc_fail_int(LC_LucidError, "lstm_cell expects two hidden states");
    return cell("lstm_cell", LC_RNN_LSTM, in, in[1].ts[0], in[1].ts[1], out);
}
#define WEIGHTS ", w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None) -> "
LC_OP(lstm_cell, .unnamed = true, .sig = "lstm_cell(input: Tensor, hx: list[Tensor]" WEIGHTS "(hy: Tensor, cy: Tensor)",
      .doc = "One step of long short-term memory: both states after it.", .amp = LC_AMP_LIKE_STATE, .call = lstm_cell_call);
#define CELL(op, kind, cast, about)                                                                                            \
    COMPOSITE(op, cell(#op, kind, in, in(1), NULL, out))                                                                       \
    LC_OP(op, .sig = #op "(input: Tensor, hx: Tensor" WEIGHTS "Tensor", .doc = about, .amp = cast, .call = op##_call);
CELL(gru_cell, LC_RNN_GRU, LC_AMP_LIKE_STATE, "One step of a gated recurrent unit.")
CELL(rnn_tanh_cell, LC_RNN_TANH, LC_AMP_LOWER, "One step of a recurrent unit with tanh.")
CELL(rnn_relu_cell, LC_RNN_RELU, LC_AMP_LOWER, "One step of a recurrent unit with relu.")
