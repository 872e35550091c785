/* Products with an addend: beta * input + alpha * (product). One .run for all of them: the product goes into the result, or
 * into a temporary if the result's memory is still needed, in the dtype of its sums. Scaling and adding follow there, so
 * float16 and bfloat16 round once. With beta 0 the input is not read at all: its NaNs do not count. */
#include "matmul.h"
#include "../../tensor/iter.h"

static bool is(const lc_value *v, double number)
{
    return v->tag == LC_IS_complex ? v->c.re == number && v->c.im == 0 : lc_number_of(v) == number;
}

static int alike(const lc_record *call) /* all three operands have one dtype */
{
    for (int k = 0; k < 2; k++)
        if (call->in[k]->dtype != call->in[k + 1]->dtype)
            return lc_fail_int(LC_DtypeMismatch, "%s: expected all operands to have the same dtype, but got: %s and %s",
                               call->op->name, LC_SHAPE(call->in[k]), LC_SHAPE(call->in[k + 1]));
    return 0;
}
static int sum_shape(const lc_record *call, lc_spec *out, int ndim, const int64_t *shape) /* the addend broadcasts to it */
{
    for (int k = 3; k < 5; k++)
        if (number_fits(working_dtype(call->dtype), number_operand(&call->args[k])) < 0) return -1;
    const lc_tensor *x = call->in[0];
    bool             fits = x->ndim <= ndim;
    for (int d = 0, more = ndim - x->ndim; fits && d < x->ndim; d++) fits = x->shape[d] == 1 || x->shape[d] == shape[more + d];
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch, "%s: input %s does not broadcast to the product's shape %s", call->op->name,
                           LC_SHAPE(x), LC_SIZES(shape, ndim));
    return spec_shape(call, out, call->dtype, ndim, shape);
}

static int step(const lc_record *call, lc_op_id op, lc_dtype dtype, lc_tensor *to, lc_tensor *const *in, int n)
{
    int rc = call->backend->elementwise(op, dtype, to, in, n);
    return rc == LC_NO_KERNEL ? no_kernel(call) : rc;
}
static int scale_and_add(const lc_record *call, lc_dtype dtype, lc_tensor *product) /* product becomes the result */
{
    const lc_value *beta = &call->args[3], *alpha = &call->args[4];
    lc_tensor      *x = call->in[0], *sum[] = { product, x, number_operand(beta) };
    if (!is(alpha, 1) && step(call, LC_OP_mul, dtype, product, (lc_tensor *[]){ product, number_operand(alpha) }, 2) < 0)
        return -1;
    if (is(beta, 0)) return 0;
    return is(beta, 1) ? step(call, LC_OP_add, dtype, product, sum, 2) : step(call, LC_OP_add_scaled, dtype, product, sum, 3);
}
/* If the backend can fuse it, floats are scaled and added while the product is in the cache. */
static int run_fused(const lc_record *call, lc_dtype dtype, lc_tensor *a, lc_tensor *b, lc_tensor *out, int a_first,
                     int b_first, int out_first)
{
    lc_matmul_epilogue e = { .scale = lc_number_of(&call->args[4]),
                             .addend_scale = lc_number_of(&call->args[3]),
                             .activation = LC_OP_COUNT };
    lc_tensor         *x = is(&call->args[3], 0) ? NULL : for_product(call, call->in[0], dtype);
    if (!x && !is(&call->args[3], 0)) return -1;
    for (int d = 0; x && d < x->ndim; d++)
        if (x->shape[d] != 1) e.addend_stride[out_first + out->ndim - x->ndim + d] = x->stride[d];
    e.addend = x;
    int rc = matrix_product_with(call, dtype, a, b, out, a_first, b_first, out_first, x || e.scale != 1 ? &e : NULL, false);
    return lc_release(x), rc;
}
/* x += a b, where x shares nothing with a and b. */
static bool adds_in_place(const lc_record *call, lc_dtype dtype)
{
    const lc_tensor *x = call->in[0], *out = call->out[0];
    return x->data == out->data && x->dtype == dtype && lc_same_shape(x, out) && out->storage && out->storage == x->storage &&
           !memcmp(x->stride, out->stride, (size_t)x->ndim * sizeof *x->stride) && call->in[1]->storage != out->storage &&
           call->in[2]->storage != out->storage && is(&call->args[3], 1) && is(&call->args[4], 1);
}
static int run_sum(const lc_record *call, lc_tensor *left, lc_tensor *right, int a_first, int b_first, int out_first)
{
    lc_dtype   dtype = working_dtype(call->dtype);
    bool       fuses = can_fuse(call, dtype, LC_FUSES_SCALE_AND_ADD);
    bool       adds = can_fuse(call, dtype, LC_FUSES_ACCUMULATION) && adds_in_place(call, dtype);
    lc_tensor *a = for_product(call, left, dtype), *b = for_product(call, right, dtype),
              *out = adds ? lc_retain(call->out[0])
                          : destination(call->out[0], dtype_for_product(call, call->out[0], dtype), call->in, 3);
    int rc = a && b && out ? 0 : -1;
    if (rc == 0 && adds) rc = matrix_product_with(call, dtype, a, b, out, a_first, b_first, out_first, NULL, true);
    else if (rc == 0 && fuses) rc = run_fused(call, dtype, a, b, out, a_first, b_first, out_first);
    else if (rc == 0) {
        rc = matrix_product(call, dtype, a, b, out, a_first, b_first, out_first);
        if (rc == 0) rc = scale_and_add(call, dtype, out);
    }
    lc_release(a), lc_release(b);
    return deliver(call->out[0], out, rc);
}

static lc_tensor *times(lc_tensor *t, const lc_value *number) /* scoped: times its conjugate */
{
    lc_value conjugate = *number;
    if (number->tag == LC_IS_complex) conjugate.c.im = -conjugate.c.im;
    return is(number, 1) ? t : lc_mul(t, number_operand(&conjugate));
}
#define SUM_OF_PRODUCTS                                                                                                        \
    .method = true, .inplace = true, .out = true, .any_strides = true, .kernel = LC_OP_mm, .promote = LC_NO_PROMOTION,         \
    .saves_for = { 0, IN(2), IN(1) }

static int addmm_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[1], *b = call->in[2];
    if (matrices_fit(a, b) < 0 || alike(call) < 0) return -1;
    return sum_shape(call, out, 2, (int64_t[]){ a->shape[0], b->shape[1] });
}
static int addmm_run(const lc_record *call) { return run_sum(call, call->in[1], call->in[2], 1, 1, 1); }
GRAD(addmm)
{
    if (need[0]) dx[0] = times(g[0], &in[3]);
    if (need[1]) dx[1] = times(lc_mm(g[0], adjoint(in(2))), &in[4]);
    if (!need[2]) return;
    if (need[0] && is(&in[3], 1) && is(&in[4], 1) && gives_sums(g[0], in(1), in(0))) {
        lc__mm_sums_out made = lc__mm_sums(adjoint(in(1)), g[0], true);
        dx[2] = made.product, dx[0] = made.sums;
    } else dx[2] = times(lc_mm(adjoint(in(1)), g[0]), &in[4]);
}
static int addmm_batch(const lc_batch_call *b, lc_tensor **out)
{
    if (b->call->in[1]->ndim != 2 || b->call->in[2]->ndim != 2) return LC_NO_RULE;
    lc_tensor *to = b->in[0], *y = times(lc_matmul(b->in[1], b->in[2]), &b->call->args[4]);
    if (b->batched[0] && b->call->in[0]->ndim < 2)
        to = lc_reshape(to, (int64_t[]){ b->size, 1, b->call->in[0]->ndim ? to->shape[1] : 1 }, 3);
    y = lc_add(
        lc_expand(times(to, &b->call->args[3]), (int64_t[]){ b->size, b->call->in[1]->shape[0], b->call->in[2]->shape[1] }, 3),
        y);
    return (out[0] = y) ? 0 : -1;
}
LC_OP(addmm, .batch = addmm_batch,
      .sig = "addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor",
      .doc = "beta * input + alpha * (mat1 @ mat2).", SUM_OF_PRODUCTS, .amp = LC_AMP_LOWER, .shape = addmm_shape,
      .run = addmm_run, .grad = addmm_grad);

static int addmv_shape(const lc_record *call, lc_spec *out)
{
    if (matrix_fits_vector(call->in[1], call->in[2]) < 0 || alike(call) < 0) return -1;
    return sum_shape(call, out, 1, call->in[1]->shape);
}
static int addmv_run(const lc_record *call) { return run_sum(call, call->in[1], call->in[2], 1, 1, 1); }
GRAD(addmv)
{
    if (need[0]) dx[0] = times(g[0], &in[3]);
    if (need[1]) dx[1] = times(lc_mul(lc_unsqueeze(g[0], 1), conj_of(in(2))), &in[4]);
    if (need[2]) dx[2] = times(lc_mv(adjoint(in(1)), g[0]), &in[4]);
}
LC_OP(addmv, .sig = "addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor",
      .doc = "beta * input + alpha * (mat @ vec).", SUM_OF_PRODUCTS, .amp = LC_AMP_GPU_LOWER, .shape = addmv_shape,
      .run = addmv_run, .grad = addmv_grad);

static int has_dims(const lc_tensor *t, int n) /* PyTorch checks these sizes before the number of dimensions */
{
    if (t->ndim >= n) return 0;
    return lc_fail_int(LC_IndexError, "Dimension out of range: %s has no dimension %d", LC_SHAPE(t), n - 1);
}
static int baddbmm_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[1], *b = call->in[2];
    if (has_dims(a, 2) < 0 || has_dims(b, 3) < 0 || batches_fit(a, b) < 0 || alike(call) < 0) return -1;
    return sum_shape(call, out, 3, (int64_t[]){ a->shape[0], a->shape[1], b->shape[2] });
}
static int baddbmm_run(const lc_record *call) { return run_sum(call, call->in[1], call->in[2], 0, 0, 0); }
GRAD(baddbmm)
{
    if (need[0]) dx[0] = times(g[0], &in[3]);
    if (need[1]) dx[1] = times(lc_bmm(g[0], adjoint(in(2))), &in[4]);
    if (need[2]) dx[2] = times(lc_bmm(adjoint(in(1)), g[0]), &in[4]);
}
LC_OP(baddbmm,
      .sig = "baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor",
      .doc = "beta * input + alpha * bmm(batch1, batch2).", SUM_OF_PRODUCTS, .amp = LC_AMP_LOWER, .shape = baddbmm_shape,
      .run = baddbmm_run, .grad = baddbmm_grad);

/* The sum over the batch is part of one product: (n, batch * m) x (batch * m, p). */
static lc_tensor *in_a_row(lc_tensor *t, bool left) /* new reference; a copy only if no strides describe it */
{
    const int64_t *n = t->shape, *s = t->stride;
    int            rows = left ? 1 : 0, inner = left ? 2 : 1;
    int64_t        size = n[0] * n[inner], shape[2] = { left ? n[1] : size, left ? size : n[2] };
    if (n[0] == 1 || n[inner] == 1 || s[0] == n[inner] * s[inner]) {
        int64_t even = n[inner] == 1 ? s[0] : s[inner];
        return lc_tensor_view(t, 2, shape, (int64_t[]){ left ? s[1] : even, left ? even : s[2] }, 0);
    }
    int64_t    wide[3] = { n[rows], n[!rows], n[2] }, steps[3] = { s[rows], s[!rows], s[2] };
    lc_tensor *moved = lc_tensor_view(t, 3, wide, steps, 0), *copy = moved ? packed(moved, (lc_dtype)t->dtype) : NULL;
    lc_tensor *made = copy ? lc_tensor_view(copy, 2, shape, (int64_t[]){ shape[1], 1 }, 0) : NULL;
    return lc_release(moved), lc_release(copy), made;
}
static int addbmm_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[1], *b = call->in[2];
    if (has_dims(a, 2) < 0 || has_dims(b, 3) < 0 || batches_fit(a, b) < 0 || alike(call) < 0) return -1;
    return sum_shape(call, out, 2, (int64_t[]){ a->shape[1], b->shape[2] });
}
static int addbmm_run(const lc_record *call)
{
    lc_tensor *a = in_a_row(call->in[1], true), *b = a ? in_a_row(call->in[2], false) : NULL;
    int        rc = b ? run_sum(call, a, b, 1, 1, 1) : -1;
    return lc_release(a), lc_release(b), rc;
}
GRAD(addbmm)
{
    if (need[0]) dx[0] = times(g[0], &in[3]);
    if (!need[1] && !need[2]) return;
    lc_tensor *each = lc_expand(g[0], (int64_t[]){ in(1)->shape[0], in(1)->shape[1], in(2)->shape[2] }, 3);
    if (need[1]) dx[1] = times(lc_bmm(each, adjoint(in(2))), &in[4]);
    if (need[2]) dx[2] = times(lc_bmm(adjoint(in(1)), each), &in[4]);
}
LC_OP(addbmm, .sig = "addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor",
      .doc = "beta * input + alpha * (the sum of bmm(batch1, batch2) over the batch).", .method = true, .out = true,
      .any_strides = true, .kernel = LC_OP_mm, .promote = LC_NO_PROMOTION, .amp = LC_AMP_LOWER,
      .saves_for = { 0, IN(2), IN(1) }, .shape = addbmm_shape, .run = addbmm_run, .grad = addbmm_grad);
/* Only this op resizes its target to the shape of the product, as in PyTorch. */
static int addbmm__call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *y = lc_addbmm(x, in(1), in(2), in[3], in[4]);
    if (!y || (!lc_same_shape(x, y) && lc_tensor_resize(x, y->ndim, y->shape) < 0)) return -1;
    return (out[0] = lc_copy_(x, y, false)) ? 0 : -1;
}
LC_OP(addbmm_,
      .sig = "addbmm_(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor",
      .doc = "addbmm in place.", .method = true, .function = false, .writes = IN(0), .call = addbmm__call, .grad = addbmm_grad,
      .saves_for = { 0, IN(2), IN(1) });

static int number_suits(const lc_record *call, const lc_value *v, const char *name) /* integers refuse fractions */
{
    lc_dtype dtype = call->dtype;
    if (v->tag == LC_IS_bool && dtype != LC_b8)
        return lc_fail_int(LC_LucidError, "Boolean %s only supported for Boolean results.", name);
    if (v->tag == LC_IS_complex && !lc_is_complex(dtype))
        return lc_fail_int(LC_LucidError, "%s: value cannot be converted to type %s without overflow", call->op->name,
                           lc_dtypes[dtype].name);
    if (lc_is_differentiable(dtype) || v->tag == LC_IS_bool || v->tag == LC_IS_int) return 0;
    return lc_fail_int(LC_DtypeMismatch, "%s: argument %s must not be a floating point number for %s", call->op->name, name,
                       lc_dtypes[dtype].name);
}
static int addr_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *a = call->in[1], *b = call->in[2];
    if (a->ndim != 1 || b->ndim != 1)
        return lc_fail_int(LC_ShapeMismatch, "addr: Expected 1-D argument vec1 and vec2, but got %s and %s", LC_SHAPE(a),
                           LC_SHAPE(b));
    if (number_suits(call, &call->args[3], "beta") < 0 || number_suits(call, &call->args[4], "alpha") < 0) return -1;
    if (sum_shape(call, out, 2, (int64_t[]){ a->shape[0], b->shape[0] }) < 0) return -1;
    return out->order = LC_ORDER_STRIDES,
           lc_output_strides((lc_tensor *[]){ call->in[0], call->in[2] }, 2, 2, out->shape, out->stride), 0;
}
static int addr_run(const lc_record *call)
{
    lc_dtype   dtype = working_dtype(call->dtype);
    lc_tensor *a = call->in[1], *out = destination(call->out[0], dtype, call->in, 3);
    lc_tensor *column = lc_tensor_view(a, 2, (int64_t[]){ a->shape[0], 1 }, (int64_t[]){ a->stride[0], 0 }, 0);
    int        rc = column && out ? step(call, LC_OP_mul, dtype, out, (lc_tensor *[]){ column, call->in[2] }, 2) : -1;
    if (rc == 0) rc = scale_and_add(call, dtype, out);
    lc_release(column);
    return deliver(call->out[0], out, rc);
}
GRAD(addr)
{
    if (need[0]) dx[0] = times(g[0], &in[3]);
    if (need[1]) dx[1] = times(lc_mv(g[0], conj_of(in(2))), &in[4]);
    if (need[2]) dx[2] = times(lc_mv(lc_transpose(g[0], 0, 1), conj_of(in(1))), &in[4]);
}
LC_OP(addr, .casts_out = true,
      .sig = "addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor",
      .doc = "beta * input + alpha * outer(vec1, vec2).", .method = true, .inplace = true, .out = true, .any_strides = true,
      .amp = LC_AMP_GPU_LOWER, .shape = addr_shape, .run = addr_run, .grad = addr_grad, .saves_for = { 0, IN(2), IN(1) });
