/* Linear layers: x W' + b for x of any rank, with a fused activation and residual, and with low-rank corrections.
 *
 * The product's kernel gets bias, activation and residual as its epilogue, so they cost no pass over the result; on other
 * devices, and for integers and complex numbers, they are separate steps. x is not copied if its strides describe a batch of
 * matrices: transposes, slices and expanded tensors go in directly. */
#include "matmul.h"

/* ---- operands ---- */
typedef struct { /* x (batch, rows, k); owns the tensor it reads */
    lc_tensor *x;
    int64_t    batch, rows, k, batch_step, row_step, col_step;
} rows_of;
static int see_rows(const lc_record *call, lc_tensor *x, lc_dtype dtype,
                    rows_of *r) /* the leading dimensions as two at most, or a copy */
{
    int64_t size[2] = { 1, 1 }, step[2] = { 0, 0 }, total = 1;
    int     last = x->ndim - 1, n = 1; /* dimensions found, the last one first */
    for (int d = 0; d < last; d++) total *= x->shape[d];
    for (int d = last - 1; d >= 0 && n <= 2; d--) {
        int64_t *s = &size[2 - n], *t = &step[2 - n];
        if (x->shape[d] == 1) continue;
        if (*s == 1) *s = x->shape[d], *t = x->stride[d];
        else if (x->stride[d] == *s * *t) *s *= x->shape[d];
        else if (n++ == 1) size[0] = x->shape[d], step[0] = x->stride[d];
    }
    dtype = dtype_for_product(call, x, dtype);
    r->x = n <= 2 ? in_dtype(x, dtype) : packed(x, dtype), r->k = x->shape[last];
    if (!r->x) return -1;
    if (r->x == x && x->numel)
        r->batch = size[0], r->rows = size[1], r->batch_step = step[0], r->row_step = step[1], r->col_step = x->stride[last];
    else r->batch = 1, r->rows = total, r->batch_step = 0, r->row_step = r->k, r->col_step = 1;
    return 0;
}

typedef struct {
    lc_op_id   activation; /* LC_OP_COUNT: none */
    double     scale;
    lc_tensor *bias, *residual; /* NULL: none */
} tail;

static int step_of(const lc_record *call, lc_dtype dtype, lc_op_id op, lc_tensor *out, lc_tensor *other)
{
    lc_tensor *in[] = { out, other };
    int        rc = call->backend->elementwise(op, dtype, out, in, other ? 2 : 1);
    return rc == LC_NO_KERNEL ? no_kernel(call) : rc;
}
static int run_steps(const lc_record *call, lc_dtype dtype, const tail *t, lc_tensor *out)
{
    if (t->scale != 1 && step_of(call, dtype, LC_OP_mul, out, LC_NUMBER(t->scale)) < 0) return -1;
    if (t->bias && step_of(call, dtype, LC_OP_add, out, t->bias) < 0) return -1;
    if (t->activation != LC_OP_COUNT && step_of(call, dtype, t->activation, out, NULL) < 0) return -1;
    return t->residual ? step_of(call, dtype, LC_OP_add, out, t->residual) : 0;
}

/* out (batch, rows, n) = x times b (k, n; any strides), then the tail. out is contiguous. */
static int multiply_rows(const lc_record *call, lc_dtype dtype, const rows_of *r, lc_tensor *b, int64_t b_row, int64_t b_col,
                         int64_t n, const tail *t, lc_tensor *out, const lc_low_rank *low)
{
    lc_matmul_epilogue e = { .scale = t->scale, .addend_scale = 1, .activation = t->activation };
    lc_matmul_args     a = { .out = out, .a = r->x, .b = b, .batch = r->batch, .m = r->rows, .n = n, .k = r->k, .low = low };
    lc_record          product = *call;
    lc_tensor         *bias = NULL, *residual = NULL;
    bool               fuses = can_fuse(call, dtype, LC_FUSES_EPILOGUE);
    a.out_batch = r->rows * n, a.out_row = n, a.out_col = 1, a.b_row = b_row, a.b_col = b_col;
    a.a_batch = r->batch_step, a.a_row = r->row_step, a.a_col = r->col_step;
    product.dtype = dtype;
    if (!fuses) {
        int rc = run_kernel_with(&product, &a);
        return rc < 0 ? rc : run_steps(call, dtype, t, out);
    }
    int rc = 0;
    if (t->bias) {
        e.addend = bias = for_product(call, t->bias, dtype), rc = bias ? 0 : -1;
        if (bias) e.addend_stride[2] = bias->numel > 1 ? bias->stride[bias->ndim - 1] : 0;
    }
    if (t->residual && rc == 0) {
        e.residual = residual = packed(t->residual, dtype_for_product(call, t->residual, dtype)), rc = residual ? 0 : -1;
        memcpy(e.residual_stride, (int64_t[]){ a.out_batch, n, 1 }, sizeof e.residual_stride);
    }
    if (t->bias || t->residual || t->scale != 1 || t->activation != LC_OP_COUNT) a.epilogue = &e;
    if (rc == 0) rc = low ? call->backend->run(LC_OP_mm, dtype, &a) : run_kernel_with(&product, &a);
    return lc_release(bias), lc_release(residual), rc;
}
static int run_linear(const lc_record *call, const tail *t)
{
    lc_dtype   dtype = working_dtype(call->dtype);
    rows_of    r = { 0 };
    lc_tensor *w = for_product(call, call->in[1], dtype), *out = NULL;
    if (w) out = destination(call->out[0], dtype_for_product(call, call->out[0], dtype), call->in, call->n_in);
    int  rc = out ? see_rows(call, call->in[0], dtype, &r) : -1;
    bool column = w && w->ndim == 1;
    if (rc == 0)
        rc = multiply_rows(call, dtype, &r, w, w->stride[column ? 0 : 1], column ? 0 : w->stride[0], column ? 1 : w->shape[0],
                           t, out, NULL);
    lc_release(r.x), lc_release(w);
    return out ? deliver(call->out[0], out, rc) : rc;
}

/* ---- shapes ---- */
static bool is_there(const lc_tensor *t) { return t != LC_NONE; }
static int  one_dtype(const lc_record *call)
{
    for (int k = 1; k < call->n_in; k++)
        if (is_there(call->in[k]) && call->in[k]->dtype != call->in[0]->dtype)
            return lc_fail_int(LC_DtypeMismatch, "%s: expected all operands to have the same dtype, but got: %s and %s",
                               call->op->name, LC_SHAPE(call->in[0]), LC_SHAPE(call->in[k]));
    return 0;
}
/* Bias: one value per feature, or one for all. */
static int linear_spec(const lc_record *call, lc_spec *out, const lc_tensor *x, const lc_tensor *w, const lc_tensor *bias)
{
    int64_t shape[LC_MAX_DIMS];
    if (one_dtype(call) < 0) return -1;
    if (!x->ndim || !w->ndim || w->ndim > 2)
        return lc_fail_int(LC_ShapeMismatch,
                           "linear: expected an input of one dimension or more and a weight of one or two, "
                           "but got %s and %s",
                           LC_SHAPE(x), LC_SHAPE(w));
    int64_t k = x->shape[x->ndim - 1], n = w->ndim == 2 ? w->shape[0] : 1;
    if (w->shape[w->ndim - 1] != k)
        return lc_fail_int(LC_ShapeMismatch, "linear: an input of %lld features does not fit a weight for %lld: %s and %s",
                           (long long)k, (long long)w->shape[w->ndim - 1], LC_SHAPE(x), LC_SHAPE(w));
    if (is_there(bias) && (bias->ndim > 1 || (bias->numel != 1 && bias->numel != n)))
        return lc_fail_int(LC_ShapeMismatch, "linear: bias %s does not fit %lld features", LC_SHAPE(bias), (long long)n);
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    shape[x->ndim - 1] = n;
    return spec_shape(call, out, (lc_dtype)x->dtype, x->ndim - (w->ndim == 1), shape);
}
static int narrow_linear_shape(const lc_record *call, lc_spec *out)
{
    return linear_spec(call, out, call->in[0], call->in[1], call->in[2]);
}

/* ---- gradients ---- */
static lc_tensor *flat(lc_tensor *t) /* scoped: (rows, features) */
{
    return t && t->ndim != 2
               ? lc_reshape(t, (int64_t[]){ t->numel && t->ndim ? -1 : (t->ndim ? 0 : 1), t->ndim ? t->shape[t->ndim - 1] : 1 },
                            2)
               : t;
}
/* Gradients of x W' + bias: gz is the gradient of that. Without a bias (LC_NONE), or if it is none of the usual form, the
 * caller says what dx[2] is. */
static void product_grads(lc_tensor *gz, lc_tensor *x, lc_tensor *w, const lc_tensor *bias, const bool *need, lc_tensor **dx)
{
    if (!gz) return;
    if (w->ndim == 1) {
        lc_tensor *each = lc_unsqueeze(gz, -1);
        if (need[0]) dx[0] = lc_mul(each, conj_of(w));
        if (need[1]) dx[1] = lc_mul(each, conj_of(x));
        return;
    }
    if (need[0]) dx[0] = lc_matmul(gz, conj_of(w));
    if (!need[1]) return;
    lc_tensor *left = lc_transpose(flat(gz), 0, 1), *right = conj_of(flat(x));
    if (need[2] && gives_sums(gz, x, bias)) {
        lc__mm_sums_out made = lc__mm_sums(left, right, false);
        dx[1] = made.product, dx[2] = made.sums;
    } else dx[1] = lc_mm(left, right);
}

#define LAYER .ns = "nn.functional", .kernel = LC_OP_mm, .promote = LC_NO_PROMOTION, .amp = LC_AMP_LOWER
/* A bias of more dimensions is broadcast over the result, as addmm does it. */
static bool is_wide(const lc_tensor *bias) { return is_there(bias) && bias->ndim > 1; }
static int  linear_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *x = call->in[0], *w = call->in[1], *bias = call->in[2];
    if (is_there(bias) && w->ndim == 1 && (x->ndim == 2 || bias->ndim))
        return lc_fail_int(LC_ShapeMismatch, "linear: expected a weight of two dimensions, but got %s", LC_SHAPE(w));
    if (!is_wide(bias)) return narrow_linear_shape(call, out);
    if (linear_spec(call, out, x, w, LC_NONE) < 0) return -1;
    int  more = bias->ndim - out->ndim;
    bool fits = more <= 0 || (more == 1 && out->ndim == 1 && bias->shape[0] == 1); /* one row: it has two in addmm */
    for (int d = 1; fits && d <= bias->ndim && d <= out->ndim; d++)
        fits = bias->shape[bias->ndim - d] == 1 || bias->shape[bias->ndim - d] == out->shape[out->ndim - d];
    if (x->ndim > 2 && x->is_contiguous && bias->ndim == 2 && bias->shape[1] == 1) /* addmm sees all rows as one matrix */
        fits = bias->shape[0] == 1 || (fits && x->numel == bias->shape[0] * x->shape[x->ndim - 1]);
    if (fits) return 0;
    return lc_fail_int(LC_ShapeMismatch, "linear: bias %s does not fit a result of %s", LC_SHAPE(bias),
                       LC_SIZES(out->shape, out->ndim));
}
GRAD(linear)
{
    if (need[2]) dx[2] = in(2)->ndim > g[0]->ndim ? lc_unsqueeze(g[0], 0) : g[0];
    product_grads(g[0], in(0), in(1), in(2), need, dx);
}
/* The steps run on the stored result: float16 and bfloat16 round in between. */
static int add_wide(const lc_record *call)
{
    lc_tensor *bias = call->in[2], *out = call->out[0];
    int        more = bias->ndim > out->ndim;
    lc_tensor *row = lc_tensor_view(bias, bias->ndim - more, bias->shape + more, bias->stride + more, 0);
    int        rc = row ? step_of(call, call->dtype, LC_OP_add, out, row) : -1;
    return lc_release(row), rc;
}
static int linear_run(const lc_record *call)
{
    const lc_tensor *x = call->in[0];
    if (is_wide(call->in[2])) {
        int rc = run_linear(call, &(tail){ LC_OP_COUNT, 1, NULL, NULL });
        return rc < 0 ? rc : add_wide(call);
    }
    if (is_there(call->in[2]) && x->ndim != 2 && !x->is_contiguous && working_dtype(call->dtype) != call->dtype) {
        /* half precision: PyTorch rounds the product of such an input before it adds the bias */
        int rc = run_linear(call, &(tail){ LC_OP_COUNT, 1, NULL, NULL });
        return rc < 0 ? rc : step_of(call, call->dtype, LC_OP_add, call->out[0], call->in[2]);
    }
    return run_linear(call, &(tail){ LC_OP_COUNT, 1, is_there(call->in[2]) ? call->in[2] : NULL, NULL });
}
/* vmap with a weight per example: a batch of products. */
static int linear_batch(const lc_batch_call *b, lc_tensor **out)
{
    lc_tensor *x = b->in[0], *w = b->in[1], *bias = b->in[2];
    int        ndim = b->call->in[0]->ndim;
    int64_t    shape[LC_MAX_DIMS + 1] = { b->size };
    if (!b->batched[1] || ndim < 1 || b->call->in[1]->ndim != 2 || (bias != LC_NONE && b->call->in[2]->ndim != 1))
        return LC_NO_RULE;
    const int64_t *of = x->shape + b->batched[0];
    memcpy(shape + 1, of, (size_t)(ndim - 1) * sizeof *shape), shape[ndim] = w->shape[1];
    lc_tensor *y = lc_matmul(lc_reshape(x, (int64_t[]){ b->batched[0] ? b->size : 1, -1, of[ndim - 1] }, 3), lc_mT(w));
    if (bias != LC_NONE) y = lc_add(y, b->batched[2] ? lc_unsqueeze(bias, 1) : bias);
    return (out[0] = lc_reshape(y, shape, ndim + 1)) ? 0 : -1;
}
LC_OP(linear, .batching = LC_BATCH_FRONT, .batched = IN(0), .batch = linear_batch,
      .sig = "linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor",
      .doc = "input times the transposed weight, plus bias: a fully connected layer.", LAYER, .out = true,
      .shape = linear_shape, .run = linear_run, .grad = linear_grad, .saves = IN(0) | IN(1));

/* ---- with what follows ---- */
static const struct {
    const char *name;
    lc_op_id    op;
} activations[] = { { "none", LC_OP_COUNT },
                    { "relu", LC_OP_relu },
                    { "gelu", LC_OP_gelu },
                    { "gelu_tanh", LC_OP_gelu_tanh },
                    { "silu", LC_OP_silu } };
static int find_activation(const char *name, lc_op_id *op)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (!strcmp(activations[i].name, name)) return *op = activations[i].op, 0;
    return lc_fail_int(LC_ValueError, "fused_linear: activation is one of none, relu, gelu, gelu_tanh, silu; not %s", name);
}
static int fused_linear_shape(const lc_record *call, lc_spec *out)
{
    lc_op_id         op;
    const lc_tensor *residual = call->in[3];
    if (find_activation(call->args[3].s, &op) < 0 || narrow_linear_shape(call, out) < 0) return -1;
    if (is_there(residual) &&
        (residual->ndim != out->ndim || memcmp(residual->shape, out->shape, (size_t)out->ndim * sizeof *out->shape)))
        return lc_fail_int(LC_ShapeMismatch, "fused_linear: residual %s does not have the shape of the result, %s",
                           LC_SHAPE(residual), LC_SIZES(out->shape, out->ndim));
    return 0;
}
static int fused_linear_run(const lc_record *call)
{
    tail t = { LC_OP_COUNT, lc_number_of(&call->args[4]), is_there(call->in[2]) ? call->in[2] : NULL,
               is_there(call->in[3]) ? call->in[3] : NULL };
    return find_activation(call->args[3].s, &t.activation) < 0 ? -1 : run_linear(call, &t);
}
static lc_tensor *scaled(lc_tensor *t, const lc_value *scale)
{
    return lc_number_of(scale) == 1 ? t : lc_mul(t, LC_NUMBER(lc_number_of(scale)));
}
/* The activation's input is recomputed: keeping it would take as much memory as the result. */
GRAD(fused_linear)
{
    lc_tensor *gz = g[0];
    lc_op_id   op;
    if (need[3]) dx[3] = g[0];
    if (!need[0] && !need[1] && !need[2]) return;
    if (find_activation(in[3].s, &op) < 0) return;
    if (op != LC_OP_COUNT) {
        lc_tensor *z = lc_fused_linear(in(0), in(1), in(2), "none", lc_number_of(&in[4]), LC_NONE);
        gz = op == LC_OP_relu   ? lc_threshold_backward(gz, z, LC_I(0))
             : op == LC_OP_silu ? lc_silu_backward(gz, z)
                                : lc_gelu_backward(gz, z, op == LC_OP_gelu ? "none" : "tanh");
    }
    if (need[2]) dx[2] = gz;
    product_grads(scaled(gz, &in[4]), in(0), in(1), lc_number_of(&in[4]) == 1 ? in(2) : LC_NONE, need, dx);
}
LC_OP(
    fused_linear,
    .sig = "fused_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = 'none', scale: float "
           "= 1.0, residual: Tensor | None = None) -> Tensor",
    .doc = "activation(scale * input weight' + bias) + residual in one pass; activation: none, relu, gelu, gelu_tanh or silu.",
    LAYER, .shape = fused_linear_shape, .run = fused_linear_run, .grad = fused_linear_grad, .saves = IN(0) | IN(1) | IN(2));

static int fused_linear_relu_run(const lc_record *call)
{
    return run_linear(call, &(tail){ LC_OP_relu, 1, is_there(call->in[2]) ? call->in[2] : NULL, NULL });
}
GRAD(fused_linear_relu)
{
    lc_tensor *gz = lc_threshold_backward(g[0], y[0], LC_I(0));
    if (need[2]) dx[2] = gz;
    product_grads(gz, in(0), in(1), in(2), need, dx);
}
LC_OP(fused_linear_relu, .sig = "fused_linear_relu(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor",
      .doc = "relu(linear(input, weight, bias)) in one pass.", LAYER, .shape = narrow_linear_shape,
      .run = fused_linear_relu_run, .grad = fused_linear_relu_grad, .saves = IN(0) | IN(1) | OUT(0));

static int fused_linear_gelu_call(const lc_value *in, lc_tensor **out)
{
    bool tanh = !strcmp(in[3].s, "tanh");
    if (!tanh && strcmp(in[3].s, "none"))
        return lc_fail_int(LC_LucidError, "approximate argument must be either none or tanh.");
    out[0] = lc_fused_linear(in(0), in(1), in[2].tag == LC_IS_none ? LC_NONE : in(2), tanh ? "gelu_tanh" : "gelu", 1, LC_NONE);
    return out[0] ? 0 : -1;
}
LC_OP(
    fused_linear_gelu,
    .sig = "fused_linear_gelu(input: Tensor, weight: Tensor, bias: Tensor | None = None, approximate: str = 'none') -> Tensor",
    .doc = "gelu(linear(input, weight, bias)) in one pass.", .ns = "nn.functional", .call = fused_linear_gelu_call);

/* ---- with a correction of low rank ---- */
/* x W' + b + scale (x A) B. x A is as narrow as the rank. If the product packs x, x A is packed behind it as additional
 * columns, and B joins the same sums; else x A goes into a small buffer, and its product with B is the residual of the layer.
 * Gradients work the same way: u = g B' first, which is equally narrow. */
static int lora_linear_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *w = call->in[1], *a = call->in[3], *b = call->in[4];
    if (narrow_linear_shape(call, out) < 0) return -1;
    if (w->ndim != 2 || a->ndim != 2 || b->ndim != 2 || a->shape[0] != w->shape[1] || b->shape[1] != w->shape[0] ||
        a->shape[1] != b->shape[0])
        return lc_fail_int(LC_ShapeMismatch,
                           "lora_linear: a weight (n, k) takes A (k, rank) and B (rank, n), but got %s, %s and %s", LC_SHAPE(w),
                           LC_SHAPE(a), LC_SHAPE(b));
    return 0;
}
static int lora_linear_run(const lc_record *call)
{
    lc_dtype dtype = working_dtype(call->dtype);
    rows_of  r = { 0 }, narrow;
    tail     t = { LC_OP_COUNT, 1, is_there(call->in[2]) ? call->in[2] : NULL, NULL },
         only_scale = { LC_OP_COUNT, lc_number_of(&call->args[5]), NULL, NULL }, nothing = { LC_OP_COUNT, 1, NULL, NULL };
    lc_dtype   stored = call->backend->can.half & LC_HALF_FACTORS ? dtype_for_product(call, call->out[0], dtype) : dtype;
    lc_tensor *out = destination(call->out[0], stored, call->in, call->n_in), *w = for_product(call, call->in[1], dtype),
              *a = for_product(call, call->in[3], dtype), *b = for_product(call, call->in[4], dtype);
    int        rc = out && w && a && b ? see_rows(call, call->in[0], dtype, &r) : -1;
    lc_tensor *down = NULL, *up = NULL;
    bool       done = false;
    int64_t    rank = rc == 0 ? a->shape[1] : 0;
    if (rc == 0 && can_fuse(call, dtype, LC_FUSES_LOW_RANK | LC_FUSES_EPILOGUE) && rank && r.x->dtype == stored &&
        a->dtype == stored && b->dtype == stored) {
        lc_low_rank low = { a, b, rank, { a->stride[0], a->stride[1] }, { b->stride[0], b->stride[1] }, only_scale.scale };
        rc = multiply_rows(call, dtype, &r, w, w->stride[1], w->stride[0], w->shape[0], &t, out, &low);
        done = rc != LC_NO_KERNEL;
        if (!done) rc = 0;
    }
    if (rc == 0 && !done) {
        int64_t rows = r.batch * r.rows;
        down = lc_tensor_new(stored, out->device, 2, (int64_t[]){ rows, rank });
        up = lc_tensor_new(stored, out->device, out->ndim, out->shape);
        narrow = (rows_of){ .x = down, .batch = 1, .rows = rows, .k = rank, .row_step = rank, .col_step = 1 };
        rc = down && up ? multiply_rows(call, dtype, &r, a, a->stride[0], a->stride[1], rank, &only_scale, down, NULL) : -1;
        if (rc == 0) rc = multiply_rows(call, dtype, &narrow, b, b->stride[0], b->stride[1], b->shape[1], &nothing, up, NULL);
        t.residual = up;
        if (rc == 0) rc = multiply_rows(call, dtype, &r, w, w->stride[1], w->stride[0], w->shape[0], &t, out, NULL);
    }
    lc_release(w), lc_release(a), lc_release(b), lc_release(r.x), lc_release(down), lc_release(up);
    return out ? deliver(call->out[0], out, rc) : rc;
}
GRAD(lora_linear)
{
    lc_tensor *x = in(0), *gz = g[0], *flat_x = flat(x), *flat_g = flat(gz), *u = NULL;
    lc_value   scale = LC_F(lc_number_of(&in[5]));
    if (!gz || !x) return;
    if (need[0] || need[3]) u = lc_mm(flat_g, adjoint(in(4)));
    if (need[0]) {
        lc_tensor *sum = lc_addmm(lc_mm(flat_g, conj_of(in(1))), u, adjoint(in(3)), LC_I(1), scale);
        dx[0] = sum ? lc_reshape(sum, x->shape, x->ndim) : NULL;
    }
    if (need[1]) dx[1] = lc_mm(lc_transpose(flat_g, 0, 1), conj_of(flat_x));
    if (need[2]) dx[2] = gz;
    if (need[3]) dx[3] = lc_mul(lc_mm(adjoint(flat_x), u), LC_NUMBER(scale.f));
    if (need[4]) dx[4] = lc_mm(adjoint(lc_mul(lc_mm(flat_x, in(3)), LC_NUMBER(scale.f))), flat_g);
}
LC_OP(lora_linear,
      .sig =
          "lora_linear(input: Tensor, weight: Tensor, bias: Tensor | None, A: Tensor, B: Tensor, scale: float = 1.0) -> Tensor",
      .doc = "linear(input, weight, bias) + scale * (input A) B: a layer with a correction of low rank, A (k, rank) and B "
             "(rank, n).",
      LAYER, .shape = lora_linear_shape, .run = lora_linear_run, .grad = lora_linear_grad,
      .saves = IN(0) | IN(1) | IN(3) | IN(4));
