/* Sparse tensors taken apart and put together: the only ops that the tape records with a sparse tensor at one end.
 *
 *   _sparse_coo, _sparse_compressed    indices and values become a tensor. The gradient of the values is the tensor's gradient at the
 *                                      indices, whatever layout it has: a dense one is indexed, a sparse one looked up.
 *   _sparse_values                     the values of a tensor. Its gradient is a sparse tensor with the same indices.
 *
 * Every sparse form is written between these, in ops on dense tensors, so first and second derivatives follow. The indices are arguments of
 * _sparse_values, although the tensor has them: what a gradient reads is saved as an argument, and the tape never has to save a
 * sparse tensor. */
#include "sparse.h"

int parts_of(lc_tensor *t, parts *p)
{
    const lc_sparse *s = t->sparse;
    *p = (parts){ .layout = s->layout,
                  .index = { s->index[0], s->index[1] },
                  .values = s->values,
                  .coalesced = s->coalesced,
                  .ndim = t->ndim,
                  .sparse_dim = lc_sparse_dim(t),
                  .nnz = lc_nnz(t) };
    memcpy(p->shape, t->shape, (size_t)t->ndim * sizeof *p->shape);
    bool recorded = t->flags & LC_REQUIRES_GRAD && !(lc_modes & (LC_NO_GRAD | LC_INFERENCE_MODE));
    if (recorded) p->values = lc__sparse_values(t, s->index[0], s->index[1] ? s->index[1] : LC_NONE, s->layout, s->coalesced);
    return p->values ? 0 : -1;
}

lc_tensor *together(const parts *p)
{
    if (p->layout == LC_SPARSE_COO) return lc__sparse_coo(p->index[0], p->values, p->shape, p->ndim, p->coalesced);
    return lc__sparse_compressed(p->index[0], p->index[1], p->values, p->shape, p->ndim, p->layout);
}
lc_tensor *with_values(const parts *p, lc_tensor *values)
{
    parts q = *p;
    q.values = values;
    return together(&q);
}

static bool same_index(const lc_tensor *a, const lc_tensor *b)
{
    return a == b || (a && b && a->data == b->data && a->storage == b->storage && lc_same_shape(a, b) && lc_same_strides(a, b));
}
/* The gradient g of a tensor at its indices. */
static lc_tensor *values_at(lc_tensor *g, const parts *at)
{
    parts p, own = *at;
    if (is_sparse(g)) {
        if (parts_of(g, &p) < 0) return NULL;
        if (p.layout == at->layout && same_index(p.index[0], at->index[0]) && same_index(p.index[1], at->index[1]))
            return p.values;
    }
    bool coo = at->layout == LC_SPARSE_COO;
    if (!coo) { /* places of compressed entries, in their order; batches are further sparse dimensions */
        const lc_tensor *like = at->values; /* of which only the shape is known */
        lc_value         device = { .tag = LC_IS_device, .dev = like->device };
        lc_tensor       *none = lc_zeros(like->shape, like->ndim, LC_OF_DTYPE(LC_b8), device);
        lc_tensor *pattern = none ? lc_scoped(lc_sparse_new(at->layout, at->ndim, at->shape, at->index, none, false)) : NULL;
        if (!pattern || coo_parts(pattern, &own) < 0) return NULL;
    }
    lc_tensor *found, *values = NULL;
    if (!is_sparse(g)) values = gathered(g, &own);
    else if (lc_sparse_dim(g) + lc_batch_dim(g) != own.sparse_dim)
        values = gathered(lc_to_dense(g, LC_ABSENT, LC_ABSENT), &own);
    else if (coo_parts(g, &p) == 0 && (is_coo(g) ? coalesced_parts(g, &p) : 0) == 0) values = looked_up(&p, &own, &found);
    return coo || !values ? values : lc_reshape(values, at->values->shape, at->values->ndim);
}

/* ---- put together ---- */
static int _sparse_coo_call(const lc_value *in, lc_tensor **out)
{
    GIVE(lc_scoped(lc_sparse_new(LC_SPARSE_COO, in[2].n, in[2].is, (lc_tensor *[2]){ in(0), NULL }, in(1), in[3].b)));
}
GRAD(_sparse_coo)
{
    parts p = { .layout = LC_SPARSE_COO, .index = { in(0) }, .sparse_dim = (int)in(0)->shape[0], .nnz = in(0)->shape[1] };
    p.ndim = in[2].n, p.coalesced = in[3].b, p.values = in(1);
    memcpy(p.shape, in[2].is, (size_t)p.ndim * sizeof *p.shape);
    if (need[1]) dx[1] = values_at(g[0], &p);
}
LC_OP(_sparse_coo, .sig = "_sparse_coo(indices: Tensor, values: Tensor, size: list[int], coalesced: bool) -> Tensor",
      .doc = "The sparse tensor of these indices and values, which must fit.", .reads_values = true, .call = _sparse_coo_call,
      .grad = _sparse_coo_grad, .saves = IN(0));
ENTER(_sparse_coo, runs_as_it_is)

static int _sparse_compressed_call(const lc_value *in, lc_tensor **out)
{
    GIVE(lc_scoped(lc_sparse_new((lc_layout)in[4].i, in[3].n, in[3].is, (lc_tensor *[2]){ in(0), in(1) }, in(2), true)));
}
GRAD(_sparse_compressed)
{
    parts p = { .layout = (lc_layout)in[4].i, .index = { in(0), in(1) }, .sparse_dim = 2, .ndim = in[3].n, .values = in(2) };
    memcpy(p.shape, in[3].is, (size_t)p.ndim * sizeof *p.shape);
    p.nnz = in(1)->shape[in(1)->ndim - 1];
    if (need[2]) dx[2] = values_at(g[0], &p);
}
LC_OP(_sparse_compressed,
      .sig = "_sparse_compressed(compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: list[int], layout: "
             "int) -> Tensor",
      .doc = "The compressed sparse tensor of these indices and values, which must fit.", .reads_values = true,
      .call = _sparse_compressed_call, .grad = _sparse_compressed_grad, .saves = IN(0) | IN(1));
ENTER(_sparse_compressed, runs_as_it_is)

/* ---- taken apart ---- */
static int _sparse_values_call(const lc_value *in, lc_tensor **out)
{
    GIVE(lc_scoped(lc_tensor_alias(in(0)->sparse->values, true)));
}
GRAD(_sparse_values)
{
    parts p = { .layout = (lc_layout)in[3].i, .index = { in(1), in(2) == LC_NONE ? NULL : in(2) }, .values = g[0] };
    p.coalesced = in[4].b, p.ndim = in(0)->ndim;
    memcpy(p.shape, in(0)->shape, (size_t)p.ndim * sizeof *p.shape);
    dx[0] = together(&p);
}
LC_OP(_sparse_values,
      .sig = "_sparse_values(input: Tensor, index: Tensor, plain: Tensor | None, layout: int, coalesced: bool) -> Tensor",
      .doc = "The values of a sparse tensor, whose indices these are.", .hidden = true, .call = _sparse_values_call,
      .grad = _sparse_values_grad, .saves = IN(1) | IN(2));
ENTER(_sparse_values, runs_as_it_is)

/* A user's Function decides itself what it does with a sparse input. */
ENTER(function, runs_as_it_is)

static const char *torch_name(const lc_tensor *t) /* of a layout, in messages: PyTorch's word */
{
    static const char *const names[LC_LAYOUTS] = { "Strided", "Sparse", "SparseCsr", "SparseCsc", "SparseBsr", "SparseBsc" };
    return names[lc_layout_of(t)];
}
static int not_that(const char *op, const char *kind, const lc_tensor *t)
{
    return lc_fail_int(LC_LucidError, "%s expected sparse%s tensor layout but got %s", op, kind, torch_name(t));
}
static int part_of(const char *op, lc_tensor *t, bool fits, const char *kind, int which, lc_tensor **out)
{
    parts p;
    if (!fits) return not_that(op, kind, t);
    if (parts_of(t, &p) < 0) return -1;
    lc_tensor *part = which < 2 ? p.index[which] : p.values;
    GIVE(part == t->sparse->values || which < 2 ? lc_scoped(lc_tensor_alias(part, true)) : part);
}
static bool by_row(const lc_tensor *t) { return lc_is_by_row(lc_layout_of(t)); }
static bool by_column(const lc_tensor *t) { return lc_layout_of(t) == LC_SPARSE_CSC || lc_layout_of(t) == LC_SPARSE_BSC; }
static int  check_coalesced(const char *what, const lc_tensor *t)
{
    if (!is_coo(t) || t->sparse->coalesced) return 0;
    return lc_fail_int(LC_LucidError, "Cannot get %s on an uncoalesced tensor, please call .coalesce() first", what);
}
/* Rows: what it is called, which tensors have it, PyTorch's word for those, which part; check refuses uncoalesced ones. */
#define PART(name, fits, kind, which, check, text)                                                                             \
    static int name##_call(const lc_value *in, lc_tensor **out)                                                                \
    {                                                                                                                          \
        return (check) < 0 ? -1 : part_of(#name, in(0), fits(in(0)), kind, which, out);                                        \
    }                                                                                                                          \
    LC_OP(name, .sig = #name "(input: Tensor) -> Tensor", .doc = text, .method = true, .function = false,                      \
          .call = name##_call);                                                                                                \
    ENTER(name, runs_its_body)
PART(indices, is_coo, " coordinate", 0, check_coalesced("indices", in(0)),
     "The indices of a coalesced COO tensor, a column each.")
PART(_indices, is_coo, " coordinate", 0, 0, "The indices of a COO tensor, coalesced or not.")
PART(values, is_sparse, "", 2, check_coalesced("values", in(0)),
     "The values of a sparse tensor; of a COO one that is coalesced.")
PART(_values, is_sparse, "", 2, 0, "The values of a sparse tensor, coalesced or not.")
PART(crow_indices, by_row, " row compressed", 0, 0, "Where each row of a CSR or BSR tensor starts.")
PART(col_indices, by_row, " row compressed", 1, 0, "The column of each entry of a CSR or BSR tensor.")
PART(ccol_indices, by_column, " column compressed", 0, 0, "Where each column of a CSC or BSC tensor starts.")
PART(row_indices, by_column, " column compressed", 1, 0, "The row of each entry of a CSC or BSC tensor.")

/* ---- coalesce ---- */
static int coalesce_call(const lc_value *in, lc_tensor **out)
{
    parts p;
    if (!is_coo(in(0))) return not_that("coalesce", " coordinate", in(0));
    if (in(0)->sparse->coalesced) GIVE(in(0));
    if (coalesced_parts(in(0), &p) < 0) return -1;
    GIVE(together(&p));
}
LC_OP(coalesce, .sig = "coalesce(input: Tensor) -> Tensor",
      .doc = "A COO tensor with its indices sorted and the values of equal ones summed; itself if it is so already.",
      .method = true, .function = false, .call = coalesce_call);
ENTER(coalesce, runs_its_body)

/* ---- dense again ---- */
static lc_tensor *dense_of(lc_tensor *t)
{
    parts p;
    if (coo_parts(t, &p) < 0) return NULL;
    lc_value   device = { .tag = LC_IS_device, .dev = t->device };
    lc_tensor *zeros = lc_zeros(p.shape, p.ndim, LC_OF_DTYPE(t->dtype), device), *rows[LC_MAX_DIMS];
    if (p.sparse_dim == 0) return lc_add(zeros, lc_sum(p.values, &(int64_t){ 0 }, 1, false));
    for (int d = 0; d < p.sparse_dim; d++)
        if (!(rows[d] = index_row(&p, d))) return NULL;
    return lc_index_put(zeros, rows, p.sparse_dim, p.values, !p.coalesced);
}
/* With masked_grad=False a gradient reaches zeros, too: this op is recorded itself. (input, layout) */
static int _sparse_spread_call(const lc_value *in, lc_tensor **out) { GIVE(dense_of(in(0))); }
GRAD(_sparse_spread) { dx[0] = converted_to(lc_to_sparse_dim(g[0], in(0)->ndim), (lc_layout)in[1].i, NULL); }
LC_OP(_sparse_spread, .sig = "_sparse_spread(input: Tensor, layout: int) -> Tensor",
      .doc = "A sparse tensor as a dense one; the gradient reaches its zeros.", .hidden = true, .call = _sparse_spread_call,
      .grad = _sparse_spread_grad);
ENTER(_sparse_spread, runs_as_it_is)

static int to_dense_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *t = in(0);
    bool       masked = in[2].tag == LC_IS_none || in[2].b;
    if (is_sparse(t)) t = masked ? dense_of(t) : lc__sparse_spread(t, lc_layout_of(t));
    GIVE(t && in[1].tag == LC_IS_dtype && in[1].dt != t->dtype ? lc_to(t, in[1].dt, false, false, LC_ABSENT) : t);
}
LC_OP(to_dense, .sig = "to_dense(input: Tensor, dtype: dtype | None = None, *, masked_grad: bool | None = None) -> Tensor",
      .doc =
          "The tensor with its zeros in memory; itself if it is dense. masked_grad=False lets gradients reach the zeros of a "
          "sparse input.",
      .method = true, .function = false, .call = to_dense_call);
ENTER(to_dense, runs_its_body)

/* ---- dense to sparse ---- */
static int to_sparse_dim_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    n = in[1].i, dims[LC_MAX_DIMS];
    if (is_sparse(x)) return refuse_layout("to_sparse", x);
    if (n < 0 || n > x->ndim || (n == 0 && x->ndim))
        return lc_fail_int(LC_LucidError, "sparse_dim must be in [1, %d] for %s, got %lld", x->ndim, LC_SHAPE(x), (long long)n);
    lc_tensor *there = lc_ne(x, LC_INTEGER(0));
    for (int d = (int)n; d < x->ndim; d++) dims[d - n] = d;
    if (n < x->ndim) there = lc_any(there, dims, (int)(x->ndim - n), false);
    parts p = { .layout = LC_SPARSE_COO, .coalesced = true, .ndim = x->ndim, .sparse_dim = (int)n };
    memcpy(p.shape, x->shape, (size_t)x->ndim * sizeof *p.shape);
    lc_tensor *places = lc_nonzero(there, false);
    if (!places || !(p.index[0] = lc_contiguous(lc_t(places), LC_CONTIGUOUS_FORMAT))) return -1;
    p.nnz = p.index[0]->shape[1];
    p.values = n ? gathered(x, &p) : lc_reshape(x, (int64_t[]){ p.nnz }, 1);
    if (n == 0 && p.nnz == 0)
        p.values = lc_reshape(lc_narrow(lc_reshape(x, (int64_t[]){ 1 }, 1), 0, 0, 0), (int64_t[]){ 0 }, 1);
    GIVE(p.values ? together(&p) : NULL);
}
LC_OP(to_sparse_dim, .sig = "to_sparse_dim(input: Tensor, sparse_dim: int) -> Tensor",
      .doc = "The COO tensor of a dense one, sparse in its first sparse_dim dimensions.", .hidden = true, .reads_values = true,
      .call = to_sparse_dim_call);

static int _to_layout_call(const lc_value *in, lc_tensor **out) /* (input, layout, sparse_dim, block) */
{
    lc_tensor *t = in(0);
    int        last = t->ndim - (int)in[3].i;
    if (in[1].i != LC_SPARSE_COO && !is_coo(t) && !is_sparse(t) &&
        last > 2) { /* batches of matrices: every one has as many entries */
        GIVE(converted_to(lc_to_sparse_dim(t, last), (lc_layout)in[1].i, in[4].n == 2 ? in[4].is : NULL));
    }
    if (!is_sparse(t)) t = lc_to_sparse_dim(t, in[2].tag == LC_IS_int ? in[2].i : last);
    GIVE(t ? converted_to(t, (lc_layout)in[1].i, in[4].n == 2 ? in[4].is : NULL) : NULL);
}
LC_OP(_to_layout,
      .sig = "_to_layout(input: Tensor, layout: int, sparse_dim: int | None = None, dense_dim: int = 0, block: list[int] = ()) "
             "-> Tensor",
      .doc = "The tensor in another layout.", .reads_values = true, .call = _to_layout_call);
ENTER(_to_layout, runs_its_body)
