/* Recurrent layers. The hidden op runs one direction of one layer over a whole sequence; around it, in plain ops, are the
 * inputs' part of the gates (one product over all steps), layers, directions, dropout between layers. Its gradient is a
 * kernel too, and two products over all steps; if gradients are themselves recorded, it is the formula of rnn_formula.c.
 *
 * A sequence is stored as rows: those of step 0, then those of step 1. Packed input has this form; padded input, (steps,
 * batch, width), is the case of equally many rows per step. */
#include "rnn.h"

static int64_t gates_of(int64_t kind) { return kind == LC_RNN_LSTM ? 4 : kind == LC_RNN_GRU ? 3 : 1; }
typedef struct {
    int64_t rows, batch, h, p;
} rnn_sizes;
static rnn_sizes sizes_of(const lc_tensor *gates, const lc_tensor *hx, int64_t kind)
{
    return (rnn_sizes){ gates->shape[0], hx->shape[0], gates->shape[1] / gates_of(kind), hx->shape[1] };
}

/* ---- forward ---- */

static int matrix_spec(const lc_record *call, lc_spec *out, int64_t rows, int64_t columns)
{
    return spec_shape(call, out, (lc_dtype)call->in[0]->dtype, 2, (int64_t[]){ rows, columns });
}
static int recurrence_shape(const lc_record *call, lc_spec *out)
{
    int64_t   kind = call->args[RNN_KIND].i, cells = kind == LC_RNN_LSTM, saved = kind >= LC_RNN_GRU;
    rnn_sizes n = sizes_of(call->in[RNN_GATES], call->in[RNN_HX], kind);
    matrix_spec(call, &out[0], n.rows, n.p), matrix_spec(call, &out[1], n.batch, n.p);
    matrix_spec(call, &out[2], cells * n.batch, n.h), matrix_spec(call, &out[3], saved * n.rows, 4 * n.h);
    matrix_spec(call, &out[4], cells * n.rows, n.h);
    out[3].dtype = out[4].dtype = working_dtype(out[0].dtype);
    if (cells) out[2].dtype = (lc_dtype)call->in[RNN_CX]->dtype;
    return 0;
}
/* Operands for the kernel: contiguous, of the dtype it computes in. Results likewise, delivered afterwards. */
enum { MOST = 12 };
typedef struct {
    lc_dtype   dtype;
    lc_tensor *in[MOST], *out[MOST], *to[MOST];
    int        n_in, n_out;
    bool       failed;
} operands;
static lc_tensor *operand_of(operands *o, lc_tensor *t)
{
    if (t == LC_NONE || o->failed) return NULL;
    if (!(t = packed(t, o->dtype))) o->failed = true;
    else o->in[o->n_in++] = t;
    return t;
}
static lc_tensor *result_of(operands *o, lc_tensor *t)
{
    if (o->failed) return NULL;
    lc_tensor *made =
        t->dtype == o->dtype && t->is_contiguous ? lc_retain(t) : lc_tensor_new(o->dtype, t->device, t->ndim, t->shape);
    if (!made) o->failed = true;
    else o->to[o->n_out] = t, o->out[o->n_out++] = made;
    return made;
}
static int finish(operands *o, int rc)
{
    for (int i = 0; i < o->n_in; i++) lc_release(o->in[i]);
    for (int i = 0; i < o->n_out; i++) rc = deliver(o->to[i], o->out[i], rc);
    return rc;
}
static lc_rnn_args sequence(const lc_value *kind, rnn_sizes n)
{
    return (lc_rnn_args){ .kind = (lc_rnn_kind)kind->i,
                          .sizes = kind[1].is,
                          .steps = kind[1].n,
                          .reverse = kind[2].b,
                          .batch = n.batch,
                          .h = n.h,
                          .p = n.p };
}
static int recurrence_run(const lc_record *call)
{
    lc_tensor *const *in = call->in;
    lc_record         steps = *call;
    operands          o = { .dtype = working_dtype((lc_dtype)in[0]->dtype) };
    int64_t           kind = call->args[RNN_KIND].i;
    lc_rnn_args       a = sequence(&call->args[RNN_KIND], sizes_of(in[RNN_GATES], in[RNN_HX], kind));
    steps.dtype = o.dtype;
    a.gates = operand_of(&o, in[RNN_GATES]), a.weight = operand_of(&o, in[RNN_WEIGHT]), a.bias = operand_of(&o, in[RNN_BIAS]);
    a.project = operand_of(&o, in[RNN_PROJECTION]), a.h0 = operand_of(&o, in[RNN_HX]), a.c0 = operand_of(&o, in[RNN_CX]);
    a.out = result_of(&o, call->out[0]), a.hn = result_of(&o, call->out[1]);
    if (kind == LC_RNN_LSTM) a.cn = result_of(&o, call->out[2]), a.cells = result_of(&o, call->out[4]);
    if (kind >= LC_RNN_GRU) a.saved = result_of(&o, call->out[3]);
    return finish(&o, o.failed ? -1 : run_kernel_with(&steps, &a));
}

/* The state before each row's step: the row of the step before, or the start. scoped */
static lc_tensor *states_before(lc_tensor *out, lc_tensor *start, const lc_value *sizes, bool reverse)
{
    int64_t        steps = sizes->n, at = 0, n_parts = 0;
    const int64_t *n = sizes->is;
    lc_tensor    **parts, *all = NULL;
    if (!steps) return out;
    if (n[0] == n[steps - 1]) { /* equal steps: two pieces */
        int64_t rows = (steps - 1) * n[0];
        all = lc_narrow(out, 0, reverse ? n[0] : 0, rows);
        return lc_cat(reverse ? (lc_tensor *[]){ all, start } : (lc_tensor *[]){ start, all }, 2, 0);
    }
    if (!(parts = lc_alloc((size_t)(2 * steps) * sizeof *parts)))
        return lc_fail(LC_OutOfMemory, "recurrent layer: no memory for its steps");
    for (int64_t t = 0; t < steps; at += n[t++]) {
        int64_t last = reverse ? t + 1 : t - 1, there = last < 0 || last >= steps ? 0 : n[last] < n[t] ? n[last] : n[t];
        if (there) parts[n_parts++] = lc_narrow(out, 0, reverse ? at + n[t] : at - n[last], there);
        if (there < n[t]) parts[n_parts++] = lc_narrow(start, 0, there, n[t] - there);
    }
    all = lc_cat(parts, (int)n_parts, 0);
    lc_free(parts, (size_t)(2 * steps) * sizeof *parts);
    return all;
}
GRAD(_recurrence)
{
    if (!(lc_modes & LC_NO_GRAD)) return rnn_formula(in, g, need, dx);
    const lc_value *sizes = &in[RNN_SIZES];
    lc_tensor      *weight = in[RNN_WEIGHT].t, *project = rnn_tensor(&in[RNN_PROJECTION]), *hx = in[RNN_HX].t;
    int64_t         kind = in[RNN_KIND].i, h = in[RNN_GATES].t->shape[1] / gates_of(kind);
    int             work = working_dtype((lc_dtype)hx->dtype), dtype = hx->dtype;
    lc_tensor      *cx = rnn_tensor(&in[RNN_CX]),
              *of[] = { g[0], g[1], g[2], y[0], y[3], y[4], weight, project ? project : LC_NONE, hx, cx ? cx : LC_NONE };
    lc__recurrence_backward_out d = lc__recurrence_backward(of, 10, kind, sizes->is, sizes->n, in[RNN_REVERSE].b);
    lc_tensor                  *hidden = kind == LC_RNN_GRU ? d.d_hidden : d.d_gates;
    if (!hidden) return;
    dx[RNN_GATES] = in_type(d.d_gates, dtype), dx[RNN_HX] = in_type(d.d_hx, dtype);
    if (need[RNN_CX]) dx[RNN_CX] = in_type(d.d_cx, cx->dtype);
    if (need[RNN_BIAS]) dx[RNN_BIAS] = in_type(lc_sum(hidden, &(int64_t){ 0 }, 1, false), dtype);
    if (need[RNN_WEIGHT]) {
        lc_tensor *before = in_type(states_before(y[0], hx, sizes, in[RNN_REVERSE].b), work);
        dx[RNN_WEIGHT] = in_type(lc_mm(lc_t(hidden), before), dtype);
    }
    if (need[RNN_PROJECTION]) {
        lc_tensor *raw = lc_mul(lc_narrow(y[3], 1, 3 * h, h), lc_tanh(y[4]));
        dx[RNN_PROJECTION] = in_type(lc_mm(lc_t(d.d_out), raw), dtype);
    }
}
#define IS_RECURRENCE .hidden = true, .promote = LC_NO_PROMOTION
LC_OP(_recurrence,
      .sig = "_recurrence(gates: Tensor, weight: Tensor, bias: Tensor | None, projection: Tensor | None, hx: Tensor, cx: "
             "Tensor | None, "
             "kind: int, batch_sizes: list[int], reverse: bool) -> (output: Tensor, hn: Tensor, cn: Tensor, saved: Tensor, "
             "cells: Tensor)",
      .doc = "One direction of one recurrent layer; gates are of the inputs. kind: 0 tanh, 1 relu, 2 gru, 3 lstm.",
      IS_RECURRENCE, .shape = recurrence_shape, .run = recurrence_run, .grad = _recurrence_grad,
      .saves = IN(RNN_GATES) | IN(RNN_WEIGHT) | IN(RNN_BIAS) | IN(RNN_PROJECTION) | IN(RNN_HX) | IN(RNN_CX) | OUT(0) | OUT(3) |
               OUT(4));

/* ---- backward: operands are g_out, g_hn, g_cn, output, saved, cells, weight, projection, hx, cx ---- */

static int backward_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *weight = call->in[6], *y = call->in[3], *hx = call->in[8];
    int64_t          kind = call->args[1].i, width = weight->shape[0], lstm = kind == LC_RNN_LSTM;
    matrix_spec(call, &out[0], y->shape[0], width), matrix_spec(call, &out[1], kind == LC_RNN_GRU ? y->shape[0] : 0, width);
    matrix_spec(call, &out[2], hx->shape[0], hx->shape[1]),
        matrix_spec(call, &out[3], lstm * hx->shape[0], width / gates_of(kind));
    matrix_spec(call, &out[4], call->in[7] == LC_NONE ? 0 : y->shape[0], hx->shape[1]);
    for (int i = 0; i < 5; i++) out[i].dtype = working_dtype((lc_dtype)hx->dtype);
    return 0;
}
static int backward_run(const lc_record *call)
{
    lc_tensor *const *in = call->in;
    lc_record         steps = *call;
    operands          o = { .dtype = working_dtype((lc_dtype)in[8]->dtype) };
    int64_t           kind = call->args[1].i;
    rnn_sizes         n = { in[3]->shape[0], in[8]->shape[0], in[6]->shape[0] / gates_of(kind), in[8]->shape[1] };
    lc_rnn_args       a = sequence(&call->args[1], n);
    steps.dtype = o.dtype;
    a.g_out = operand_of(&o, in[0]), a.g_hn = operand_of(&o, in[1]), a.out = operand_of(&o, in[3]);
    a.weight = operand_of(&o, in[6]), a.project = operand_of(&o, in[7]), a.h0 = operand_of(&o, in[8]);
    a.d_gates = result_of(&o, call->out[0]), a.d_h0 = result_of(&o, call->out[2]);
    if (kind >= LC_RNN_GRU) a.saved = operand_of(&o, in[4]);
    if (kind == LC_RNN_GRU) a.d_hidden = result_of(&o, call->out[1]);
    if (a.project) a.d_out = result_of(&o, call->out[4]);
    if (kind == LC_RNN_LSTM) {
        a.g_cn = operand_of(&o, in[2]), a.cells = operand_of(&o, in[5]), a.c0 = operand_of(&o, in[9]);
        a.d_c0 = result_of(&o, call->out[3]);
    }
    return finish(&o, o.failed ? -1 : run_kernel_with(&steps, &a));
}
LC_OP(_recurrence_backward,
      .sig =
          "_recurrence_backward(operands: list[Tensor | None], kind: int, batch_sizes: list[int], reverse: bool) -> (d_gates: "
          "Tensor, d_hidden: Tensor, d_hx: Tensor, d_cx: Tensor, d_out: Tensor)",
      .doc =
          "Gradients of _recurrence: of the gates, of the state's part of them where that is another, of the start, and of the "
          "output before projection.",
      IS_RECURRENCE, .shape = backward_shape, .run = backward_run);
