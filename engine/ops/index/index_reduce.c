/* scatter_reduce and index_reduce: values that meet at one position are reduced together. Both are the walk of index.c in
 * another mode. With include_self=False a first walk writes the start value of the reduction. A mean is a sum divided by a
 * count. */
#include "index.h"
#include <math.h>

typedef struct {
    lc_index_mode mode;
    bool          mean;
} fold;

/* sum is scatter_reduce's alone: index_add is index_reduce's. */
static int fold_of(const lc_record *call, bool sums, fold *f)
{
    static const struct {
        const char *name;
        fold        fold;
    } all[] = { { "sum", { LC_INDEX_ADD, false } },
                { "mean", { LC_INDEX_ADD, true } },
                { "prod", { LC_INDEX_MULTIPLY, false } },
                { "amax", { LC_INDEX_MAX, false } },
                { "amin", { LC_INDEX_MIN, false } } };
    for (size_t i = !sums; i < sizeof all / sizeof *all; i++)
        if (!strcmp(call->args[4].s, all[i].name)) return *f = all[i].fold, 0;
    return lc_fail_int(LC_LucidError, "%s: reduce argument must be %smean, prod, amax or amin, got %s.", call->op->name,
                       sums ? "sum, " : "", call->args[4].s);
}

/* The identity of the reduction: new reference, 0-d. */
static lc_tensor *empty_fold(const lc_record *call, lc_index_mode mode)
{
    lc_dtype dtype = (lc_dtype)call->in[0]->dtype;
    int64_t  bits = 8 * lc_size_of(dtype);
    bool     largest = mode == LC_INDEX_MIN, sign = dtype != LC_u8 && dtype != LC_u16 && dtype != LC_u32;
    if (mode == LC_INDEX_ADD || mode == LC_INDEX_MULTIPLY) return one_value(call, LC_INTEGER(mode == LC_INDEX_MULTIPLY));
    if (dtype == LC_b8) return one_value(call, LC_INTEGER(largest));
    if (lc_is_floating(dtype)) return one_value(call, LC_NUMBER(largest ? INFINITY : -INFINITY));
    int64_t most = (int64_t)(~0ull >> (64 - bits + sign));
    return one_value(call, LC_INTEGER(largest ? most : sign ? -most - 1 : 0));
}

/* out / counts; a position without contributions keeps its value. */
static int divide(const lc_record *call, const lc_tensor *walked, bool include_self)
{
    lc_dtype   dtype = (lc_dtype)call->out[0]->dtype, real = lc_real_of(dtype);
    lc_tensor *counts = lc_tensor_new(real, call->device, call->out[0]->ndim, call->out[0]->shape),
              *one = lc_tensor_new(real, call->device, 0, NULL);
    int rc = counts && one ? fill_tensor(counts, LC_INTEGER(include_self)) : -1;
    if (rc == 0) rc = fill_tensor(one, LC_INTEGER(1));
    if (rc == 0) rc = walk_along(call, counts, one, walked, &(lc_index_args){ .mode = LC_INDEX_ADD, .checked = true });
    if (rc == 0) rc = call->backend->elementwise(LC_OP_maximum, real, counts, (lc_tensor *[]){ counts, one }, 2);
    lc_op_id by = lc_is_differentiable(dtype) ? LC_OP_div : LC_OP_floor_divide;
    if (rc == 0) rc = call->backend->elementwise(by, dtype, call->out[0], (lc_tensor *[]){ call->out[0], counts }, 2);
    return lc_release(one), lc_release(counts), rc == LC_NO_KERNEL ? no_kernel(call) : rc;
}

static int reduce_into(const lc_record *call, lc_tensor *source, const lc_tensor *walked)
{
    fold       f = { LC_INDEX_ADD, false };
    bool       include_self = call->args[5].b;
    lc_tensor *start = start_of(call), *empty = NULL;
    if (fold_of(call, true, &f) < 0) return -1; /* the shape rule has refused other values */
    if (f.mode >= LC_INDEX_MAX && lc_is_complex(call->in[0]->dtype)) return no_kernel(call);
    if (f.mean && call->in[0]->dtype == LC_b8) return no_kernel(call);
    if (!include_self) {
        if (!(empty = empty_fold(call, f.mode))) return -1;
        int rc = walk_along(call, call->out[0], empty, walked, &(lc_index_args){ .mode = LC_INDEX_WRITE, .start = start });
        lc_release(empty), start = NULL;
        if (rc < 0) return -1;
    }
    if (walk_along(call, call->out[0], source, walked,
                   &(lc_index_args){ .mode = f.mode, .start = start, .checked = !include_self }) < 0)
        return -1;
    return f.mean ? divide(call, walked, include_self) : 0;
}

/* An in-place reduction of several steps works on a temporary: if a step fails, nothing has changed. */
static int reduce_along(const lc_record *call, lc_tensor *source, const lc_tensor *walked)
{
    lc_record aside = *call;
    bool      one_step = call->args[5].b && strcmp(call->args[4].s, "mean");
    if (!call->op->writes || one_step) return reduce_into(call, source, walked);
    lc_tensor *made = lc_tensor_new((lc_dtype)call->out[0]->dtype, call->device, call->out[0]->ndim, call->out[0]->shape);
    aside.out = &made;
    int rc = made ? reduce_into(&aside, source, walked) : -1;
    if (rc == 0) rc = call->backend->copy(call->out[0], made);
    lc_release(made);
    return rc;
}

/* ---- gradients: one set of formulas, for elements picked one by one and for whole slices ---- */
typedef struct {
    bool        slices;
    int64_t     dim;
    lc_tensor  *index;
    const char *reduce;
    bool        include_self;
} along;
static lc_tensor *picked(const along *a, lc_tensor *t)
{
    return a->slices ? lc_index_select(t, a->dim, a->index) : lc_gather(t, a->dim, a->index, false);
}
static lc_tensor *added(const along *a, lc_tensor *to, lc_tensor *t)
{
    return a->slices ? lc_index_add(to, a->dim, a->index, t, LC_I(1)) : lc_scatter_add(to, a->dim, a->index, t);
}
static lc_tensor *reduced(const along *a, lc_tensor *to, lc_tensor *t)
{
    return a->slices ? lc_index_reduce(to, a->dim, a->index, t, a->reduce, a->include_self)
                     : lc_scatter_reduce(to, a->dim, a->index, t, a->reduce, a->include_self);
}
static lc_tensor *as_numbers(lc_tensor *condition, lc_tensor *like) /* 1 and 0 of another tensor's dtype */
{
    return condition ? lc__to_copy(condition, (lc_dtype)like->dtype, like->device, LC_PRESERVE_FORMAT) : NULL;
}
static lc_tensor *ones_of(lc_tensor *t) { return t ? lc_add(zeros_like(t), LC_INTEGER(1)) : NULL; }

/* Zeros need care: the product of the other factors is not the result divided by zero. If exactly one zero of src meets a
 * position, its gradient is the product of the others. */
static void grad_of_prod(const along *a, lc_tensor *g, lc_tensor *y, lc_tensor *self, lc_tensor *src, lc_tensor **dx)
{
    lc_tensor *one = LC_INTEGER(1), *zero = LC_INTEGER(0);
    lc_tensor *safe = lc_masked_fill(self, lc_eq(self, zero), one);
    dx[0] = lc_div(lc_mul(g, reduced(a, safe, src)), safe);
    lc_tensor *is_zero = lc_eq(src, zero), *zeros = picked(a, added(a, zeros_like(self), as_numbers(is_zero, self)));
    lc_tensor *single = lc_bitwise_and(is_zero, lc_eq(zeros, one));
    lc_tensor *others = reduced(a, self, lc_masked_fill(src, single, one));
    dx[1] = lc_where(single, picked(a, lc_mul(g, others)), lc_div(picked(a, lc_mul(g, y)), lc_masked_fill(src, is_zero, one)));
}
static void grad_of_mean(const along *a, lc_tensor *g, lc_tensor *src, lc_tensor **dx)
{
    lc_tensor *counts = added(a, a->include_self ? ones_of(g) : zeros_like(g), ones_of(src));
    counts = lc_masked_fill(counts, lc_eq(counts, LC_INTEGER(0)), LC_INTEGER(1));
    dx[0] = lc_div(g, counts);
    dx[1] = lc_div(picked(a, g), picked(a, counts));
}
static void grad_of_extreme(const along *a, lc_tensor *g, lc_tensor *y, lc_tensor *self, lc_tensor *src, lc_tensor **dx)
{
    lc_tensor *mine = as_numbers(lc_eq(self, y), g), *its = as_numbers(lc_eq(src, picked(a, y)), g);
    lc_tensor *each = lc_div(g, added(a, mine, its)); /* all elements equal to the extreme share its gradient */
    dx[0] = lc_mul(mine, each);
    dx[1] = lc_mul(its, picked(a, each));
}
static lc_tensor *part_read(lc_tensor *src, const lc_tensor *index) /* scoped: src as far as index reaches */
{
    for (int d = 0; src && d < src->ndim && d < index->ndim; d++)
        if (src->shape[d] != index->shape[d]) src = lc_narrow(src, d, 0, index->shape[d]);
    return src;
}
static void grads_along(const along *a, lc_tensor *g, lc_tensor *y, lc_tensor *self, lc_tensor *src, lc_tensor **to_self,
                        lc_tensor **to_src)
{
    lc_tensor *dx[2], *read = a->slices ? src : part_read(src, a->index);
    if (!strcmp(a->reduce, "sum")) dx[0] = g, dx[1] = picked(a, g);
    else if (!strcmp(a->reduce, "prod")) grad_of_prod(a, g, y, self, read, dx);
    else if (!strcmp(a->reduce, "mean")) grad_of_mean(a, g, read, dx);
    else grad_of_extreme(a, g, y, self, read, dx);
    if (!a->include_self)
        dx[0] = a->slices ? lc_index_fill(dx[0], a->dim, a->index, LC_INTEGER(0))
                          : lc_scatter_value(dx[0], a->dim, a->index, LC_INTEGER(0), NULL);
    *to_self = dx[0];
    *to_src = a->slices ? same_size_view(dx[1], src->shape, src->ndim) : grown(dx[1], src);
}
#define ALONG(is_slices) (&(along){ is_slices, in[1].i, in(2), in[4].s, in[5].b })

/* ---- the two ops ---- */
#define FOLDS                                                                                                                  \
    .method = true, .inplace = true, .out = true, .kernel = LC_OP__index_put, .any_strides = true, .exact = true,              \
    .promote = LC_NO_PROMOTION, .saves = IN(0) | IN(2) | IN(3) | OUT(0)
static int scatter_reduce_shape(const lc_record *call, lc_spec *out)
{
    fold f;
    return fold_of(call, true, &f) < 0 ? -1 : scatter_shape(call, out);
}
static int scatter_reduce_run(const lc_record *call) { return reduce_along(call, call->in[2], call->in[1]); }
GRAD(scatter_reduce) { grads_along(ALONG(false), g[0], y[0], in(0), in(3), &dx[0], &dx[2]); }
LC_OP(scatter_reduce, .batching = LC_BATCH_DIMS,
      .sig = "scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) "
             "-> Tensor",
      .doc = "input with src reduced into it at index along dim: sum, prod, mean, amax or amin.", FOLDS,
      .shape = scatter_reduce_shape, .run = scatter_reduce_run, .grad = scatter_reduce_grad);

static int index_reduce_shape(const lc_record *call, lc_spec *out)
{
    fold f;
    return fold_of(call, false, &f) < 0 ? -1 : slices_fit(call, out);
}
static int index_reduce_run(const lc_record *call)
{
    lc_dtype dtype = (lc_dtype)call->in[0]->dtype;
    if (dtype == LC_b8 || lc_is_complex(dtype)) return no_kernel(call);
    return reduce_along(call, call->in[2], call->in[2]->ndim ? call->in[2] : call->out[0]);
}
GRAD(index_reduce) { grads_along(ALONG(true), g[0], y[0], in(0), in(3), &dx[0], &dx[2]); }
LC_OP(index_reduce,
      .sig = "index_reduce(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) "
             "-> Tensor",
      .doc = "input with the slices of source reduced into it: prod, mean, amax or amin.", FOLDS, .shape = index_reduce_shape,
      .run = index_reduce_run, .grad = index_reduce_grad);
