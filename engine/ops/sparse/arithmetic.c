/* Sums, products by elements, copies and conversions of sparse tensors.
 *
 * What is linear in the values needs no coalesced input. Two tensors with the very same indices (a gradient and another one through the same
 * pattern) are added value by value; others are joined, and summed at once if both were coalesced, as in PyTorch. */
#include "sparse.h"

static lc_tensor *signed_values(lc_tensor *values, const lc_value *alpha, bool minus)
{
    if (alpha) values = lc_mul(values, number_operand(alpha));
    return minus ? lc_neg(values) : values;
}
static int check_sizes(const lc_op *op, const lc_tensor *a, const lc_tensor *b)
{
    if (lc_same_shape(a, b)) return 0;
    return lc_fail_int(LC_ShapeMismatch, "%s: expected sizes of 'self' and 'other' to match, but %s != %s",
                       op->py ? op->py : op->name, LC_SIZES(a->shape, a->ndim), LC_SIZES(b->shape, b->ndim));
}
static bool same_pattern(const parts *a, const parts *b)
{
    bool same = a->layout == b->layout;
    for (int i = 0; i < 2 && same; i++) {
        const lc_tensor *x = a->index[i], *y = b->index[i];
        same = x == y ||
               (x && y && x->data == y->data && x->storage == y->storage && lc_same_shape(x, y) && lc_same_strides(x, y));
    }
    return same;
}

/* ---- a + alpha b ---- */
static lc_tensor *joined(const lc_op *op, lc_tensor *a, lc_tensor *b, const lc_value *alpha, bool minus)
{
    parts p, q;
    if (check_sizes(op, a, b) < 0) return NULL;
    lc_layout layout = lc_layout_of(a);
    if (parts_of(a, &p) < 0 || parts_of(b, &q) < 0) return NULL;
    if (same_pattern(&p, &q)) return with_values(&p, lc_add(p.values, signed_values(q.values, alpha, minus)));
    if (coo_parts(a, &p) < 0 || coo_parts(b, &q) < 0) return NULL;
    if (p.sparse_dim != q.sparse_dim)
        return lc_fail(LC_LucidError, "%s: expected 'self' and 'other' to have same number of sparse dimensions, got %d and %d",
                       op->py ? op->py : op->name, p.sparse_dim, q.sparse_dim);
    bool both = p.coalesced && q.coalesced;
    p.index[0] = lc_cat((lc_tensor *[]){ p.index[0], q.index[0] }, 2, 1);
    p.values = lc_cat((lc_tensor *[]){ p.values, signed_values(q.values, alpha, minus) }, 2, 0);
    p.nnz += q.nnz, p.coalesced = false;
    if (!p.index[0] || !p.values) return NULL;
    lc_tensor *sum = together(&p);
    if (layout != LC_SPARSE_COO) return sum ? converted_to(sum, layout, NULL) : NULL;
    return both && sum ? lc_coalesce(sum) : sum;
}
static int sum_of(const lc_op *op, const lc_value *in, const lc_value *alpha, bool minus, lc_tensor **out)
{
    lc_tensor *a = in(0), *b = in(1);
    if (a->is_number || b->is_number)
        return lc_fail_int(LC_LucidError,
                           "%s(sparse, number) is not supported: the result would be dense. Use to_dense() first",
                           op->py ? op->py : op->name);
    if (is_sparse(a) && is_sparse(b)) GIVE(joined(op, a, b, alpha, minus));
    lc_tensor *x = lc_to_dense(a, LC_ABSENT, LC_ABSENT), *y = lc_to_dense(b, LC_ABSENT, LC_ABSENT);
    GIVE(x && y ? lc_add(x, signed_values(y, alpha, minus)) : NULL);
}
FORM(add) { return sum_of(op, in, NULL, false, out); }
FORM(sub) { return sum_of(op, in, NULL, true, out); }
FORM(add_alpha) { return sum_of(op, in, &in[2], false, out); }
FORM(sub_alpha) { return sum_of(op, in, &in[2], true, out); }
ENTER(add, add_form)
ENTER(sub, sub_form)
ENTER(add_alpha, add_alpha_form)
ENTER(sub_alpha, sub_alpha_form)

/* Into a dense tensor: only its elements at the indices are touched. Rows go through index_add_, which is made for them. */
static int add_into(const lc_op *op, const lc_value *in, const lc_value *alpha, bool minus, lc_tensor **out)
{
    lc_tensor *to = in(0), *rows[LC_MAX_DIMS];
    lc_value   one = LC_I(1);
    parts      p;
    if (check_sizes(op, to, in(1)) < 0 || coo_parts(in(1), &p) < 0) return -1;
    if (p.values->dtype != to->dtype) p.values = lc_to(p.values, (lc_dtype)to->dtype, false, false, LC_ABSENT);
    if (p.sparse_dim == 1) {
        if (minus) p.values = lc_neg(p.values);
        GIVE(lc_index_add_(to, 0, index_row(&p, 0), p.values, alpha ? *alpha : one));
    }
    if (p.sparse_dim == 0) GIVE(lc_add_(to, lc_sum(signed_values(p.values, alpha, minus), &(int64_t){ 0 }, 1, false)));
    for (int d = 0; d < p.sparse_dim; d++)
        if (!(rows[d] = index_row(&p, d))) return -1;
    GIVE(lc_index_put_(to, rows, p.sparse_dim, signed_values(p.values, alpha, minus), true));
}
FORM(add_) { return add_into(op, in, NULL, false, out); }
FORM(sub_) { return add_into(op, in, NULL, true, out); }
FORM(add_alpha_) { return add_into(op, in, &in[2], false, out); }
FORM(sub_alpha_) { return add_into(op, in, &in[2], true, out); }
ENTER(add_, add__form)
ENTER(sub_, sub__form)
ENTER(add_alpha_, add_alpha__form)
ENTER(sub_alpha_, sub_alpha__form)

/* ---- by elements ---- */
static bool is_scalar(const lc_tensor *t) { return t->is_number || (t->ndim == 0 && !is_sparse(t)); }
/* The op itself on the values, with a number or a 0-d tensor at the other place. */
static int scaled_by(const lc_op *op, const lc_value *in, int sparse_at, bool linear, lc_tensor **out)
{
    parts      p;
    lc_tensor *t = in(sparse_at), *values;
    if ((linear || !is_coo(t) ? parts_of(t, &p) : coalesced_parts(t, &p)) < 0) return -1;
    lc_value args[op->args->n_params + 1];
    memcpy(args, in, (size_t)op->args->n_params * sizeof *args);
    args[sparse_at].t = p.values;
    if (lc_call_scoped(op, args, &values) < 0) return -1;
    GIVE(with_values(&p, values));
}
static lc_tensor *expanded(lc_tensor *t, const lc_tensor *like)
{
    return lc_same_shape(t, like) ? t : lc_expand(t, like->shape, like->ndim);
}
FORM(mul)
{
    lc_tensor *a = in(0), *b = in(1), *found;
    parts      p, q;
    if (is_scalar(b)) return scaled_by(op, in, 0, true, out);
    if (is_scalar(a)) return scaled_by(op, in, 1, true, out);
    if (!is_sparse(a) || !is_sparse(b)) { /* a dense factor is read at the indices */
        lc_tensor *s = is_sparse(a) ? a : b, *d = is_sparse(a) ? b : a;
        if (parts_of(s, &p) < 0 || coo_parts(s, &q) < 0) return -1;
        lc_tensor *factor = gathered(expanded(d, s), &q);
        if (factor && !lc_same_shape(factor, p.values)) factor = lc_reshape(factor, p.values->shape, p.values->ndim);
        GIVE(factor ? with_values(&p, lc_mul(p.values, factor)) : NULL);
    }
    if (check_sizes(op, a, b) < 0 || parts_of(a, &p) < 0 || parts_of(b, &q) < 0) return -1;
    if (p.coalesced && q.coalesced && same_pattern(&p, &q)) GIVE(with_values(&p, lc_mul(p.values, q.values)));
    lc_layout  layout = lc_layout_of(a);
    lc_tensor *x = lc_coalesce(converted_to(a, LC_SPARSE_COO, NULL)), *y = lc_coalesce(converted_to(b, LC_SPARSE_COO, NULL));
    if (!x || !y || parts_of(x, &p) < 0 || parts_of(y, &q) < 0) return -1;
    if (p.sparse_dim != q.sparse_dim)
        return lc_fail_int(LC_LucidError, "mul(sparse, sparse): expected the same number of sparse dimensions, got %d and %d",
                           p.sparse_dim, q.sparse_dim);
    lc_tensor *other = looked_up(&q, &p, &found);
    if (!other || !(p.values = lc_mul(p.values, other)) || keep_entries(&p, found) < 0) return -1;
    lc_tensor *product = together(&p);
    GIVE(product ? converted_to(product, layout, NULL) : NULL);
}
ENTER(mul, mul_form)

static int quotient(const lc_op *op, const lc_value *in, bool linear, lc_tensor **out)
{
    if (is_sparse(in(0)) && is_scalar(in(1))) return scaled_by(op, in, 0, linear, out);
    return lc_fail_int(LC_LucidError,
                       "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape %s for divisor)",
                       LC_SIZES(in(1)->shape, in(1)->ndim));
}
FORM(div) { return quotient(op, in, true, out); }
FORM(div_rounded) { return quotient(op, in, false, out); }
ENTER(div, div_form)
ENTER(div_mode, div_rounded_form)
ENTER(floor_divide, div_rounded_form)
ENTER(remainder, div_rounded_form)
ENTER(fmod, div_rounded_form)

/* ---- copies ---- */
static int check_format(const lc_op *op, const lc_value *format)
{
    if (format->tag != LC_IS_format || format->fmt == LC_PRESERVE_FORMAT || format->fmt == LC_CONTIGUOUS_FORMAT) return 0;
    return lc_fail_int(LC_LucidError, "%s: sparse tensors have no memory format", op->name);
}
FORM(clone)
{
    parts p;
    if (check_format(op, &in[1]) < 0 || parts_of(in(0), &p) < 0) return -1;
    for (int i = 0; i < 2; i++)
        if (p.index[i] && !(p.index[i] = lc_clone(p.index[i], LC_CONTIGUOUS_FORMAT))) return -1;
    GIVE(with_values(&p, lc_clone(p.values, LC_PRESERVE_FORMAT)));
}
ENTER(clone, clone_form)
FORM(alias) { GIVE(in(0)); }
ENTER(alias, alias_form)
ENTER(positive, alias_form)
FORM(contiguous)
{
    if (check_format(op, &in[1]) < 0) return -1;
    GIVE(in(0));
}
ENTER(contiguous, contiguous_form)
ENTER(resolve_conj, alias_form)
ENTER(resolve_neg, alias_form)
FORM(detach) { GIVE(lc_scoped(lc_tensor_alias(in(0), true))); }
ENTER(detach, detach_form)
ENTER(detach_, runs_its_body)

FORM(_to_copy)
{
    parts p;
    if (parts_of(in(0), &p) < 0) return -1;
    for (int i = 0; i < 2; i++)
        if (p.index[i] && !(p.index[i] = lc__to_copy(p.index[i], (lc_dtype)p.index[i]->dtype, in[2].dev, LC_PRESERVE_FORMAT)))
            return -1;
    GIVE(with_values(&p, lc__to_copy(p.values, in[1].dt, in[2].dev, LC_PRESERVE_FORMAT)));
}
ENTER(_to_copy, _to_copy_form)
ENTER(to, runs_its_body)
ENTER(to_device, runs_its_body)
ENTER(to_other, runs_its_body)
ENTER(type_as, runs_its_body)
ENTER(float, runs_its_body)
ENTER(double, runs_its_body)
ENTER(half, runs_its_body)
ENTER(bfloat16, runs_its_body)
ENTER(int, runs_its_body)
ENTER(long, runs_its_body)
ENTER(short, runs_its_body)
ENTER(char, runs_its_body)
ENTER(byte, runs_its_body)
ENTER(bool, runs_its_body)
ENTER(chalf, runs_its_body)
ENTER(cfloat, runs_its_body)
ENTER(cdouble, runs_its_body)
ENTER(cpu, runs_its_body)
ENTER(cuda, runs_its_body)

/* ---- nothing but zeros ---- */
static lc_tensor *without_entries(const lc_tensor *t, lc_dtype dtype)
{
    parts    p;
    lc_value device = { .tag = LC_IS_device, .dev = t->device };
    if (parts_of((lc_tensor *)t, &p) < 0) return NULL;
    int64_t shape[LC_MAX_DIMS];
    int     at = lc_batch_dim(t);
    bool    coo = p.layout == LC_SPARSE_COO;
    memcpy(shape, p.values->shape, (size_t)p.values->ndim * sizeof *shape);
    shape[at] = 0;
    p.values = lc_zeros(shape, p.values->ndim, LC_OF_DTYPE(dtype), device);
    const lc_tensor *last = p.index[coo ? 0 : 1];
    memcpy(shape, last->shape, (size_t)last->ndim * sizeof *shape);
    shape[last->ndim - 1] = 0;
    p.index[coo ? 0 : 1] = lc_zeros(shape, last->ndim, LC_OF_DTYPE(last->dtype), device);
    if (!coo) p.index[0] = zeros_like(p.index[0]);
    p.coalesced = true;
    return p.values && p.index[0] && (coo || p.index[1]) ? together(&p) : NULL;
}
FORM(zeros_like)
{
    lc_dtype dtype = in[1].tag == LC_IS_dtype ? in[1].dt : (lc_dtype)in(0)->dtype;
    if (in[2].tag == LC_IS_device && !lc_same_device(in[2].dev, in(0)->device))
        return lc_fail_int(LC_NotImplementedError, "%s: a sparse tensor on another device is not implemented", op->name);
    if (check_format(op, &in[3]) < 0) return -1;
    GIVE(without_entries(in(0), dtype));
}
ENTER(zeros_like, zeros_like_form)
ENTER(empty_like, zeros_like_form)

/* In place by nature: the tensor takes over new parts. */
static int become(const lc_op *op, lc_tensor *to, lc_tensor *made)
{
    if (!made) return -1;
    if (to->flags & LC_REQUIRES_GRAD && !(lc_modes & (LC_NO_GRAD | LC_INFERENCE_MODE)))
        return lc_fail_int(LC_NotImplementedError, "%s: writing in place to a sparse tensor is not recorded for gradients",
                           op->name);
    if (lc_tensor_become(to, made) < 0) return -1;
    return lc_bump_version(to), 0;
}
FORM(zero_) { return become(op, in(0), without_entries(in(0), (lc_dtype)in(0)->dtype)) < 0 ? -1 : (out[0] = in(0), 0); }
ENTER(zero_, zero__form)
FORM(copy_)
{
    lc_tensor *to = in(0), *from = in(1);
    if (is_sparse(from) && !is_sparse(to)) GIVE(lc_copy_(to, lc_to_dense(from, LC_ABSENT, LC_ABSENT), false));
    if (!is_sparse(from) || lc_layout_of(from) != lc_layout_of(to))
        return lc_fail_int(
            LC_LucidError,
            "copy_() between dense and sparse Tensors is not implemented! Found self type = %s and src type = %s",
            lc_layout_names[lc_layout_of(to)], lc_layout_names[lc_layout_of(from)]);
    if (to == from) GIVE(to);
    if (check_sizes(op, to, from) < 0) return -1;
    lc_tensor *copy = lc__to_copy(from, (lc_dtype)to->dtype, to->device, LC_PRESERVE_FORMAT);
    return become(op, to, copy) < 0 ? -1 : (out[0] = to, 0);
}
ENTER(copy_, copy__form)
