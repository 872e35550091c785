/* Sums, norms and softmax of sparse tensors, and masks. */
#include "sparse.h"

/* ---- sums: over all, over dense dimensions, over sparse ones ---- */
static lc_tensor *summed(lc_tensor *t, const lc_value *dims, bool keepdim)
{
    parts    p;
    uint64_t mask;
    int64_t  inner[LC_MAX_DIMS], rows[LC_MAX_DIMS];
    int      n_inner = 0, n_rows = 0, kept = 0;
    if (dims_mask(dims, t->ndim, "sum", &mask) < 0 || coo_parts(t, &p) < 0) return NULL;
    uint64_t all = t->ndim ? ~0ull >> (64 - t->ndim) : 0;
    if (mask == all) {
        lc_tensor *sum = lc_sum(p.values, NULL, 0, false);
        int64_t    ones[LC_MAX_DIMS];
        for (int d = 0; d < t->ndim; d++) ones[d] = 1;
        return keepdim ? lc_reshape(sum, ones, t->ndim) : sum;
    }
    for (int d = 0; d < t->ndim; d++) {
        bool gone = mask >> d & 1;
        if (d < p.sparse_dim && !gone) rows[n_rows++] = d;
        if (d >= p.sparse_dim && gone) inner[n_inner++] = d - p.sparse_dim + 1;
        if (!gone) p.shape[kept++] = t->shape[d];
    }
    if (n_inner) p.values = lc_sum(p.values, inner, n_inner, false);
    lc_tensor *made;
    if (n_rows == 0) made = lc_sum(p.values, &(int64_t){ 0 }, 1, false);
    else {
        lc_tensor *which = lc_scoped(lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, 1, (int64_t[]){ n_rows }));
        if (!which) return NULL;
        memcpy(which->data, rows, (size_t)n_rows * sizeof *rows);
        bool fewer = n_rows < p.sparse_dim;
        if (fewer)
            p.index[0] = lc_index_select(p.index[0], 0, lc__to_copy(which, LC_i64, p.index[0]->device, LC_PRESERVE_FORMAT)),
            p.coalesced = false;
        p.ndim = kept, p.sparse_dim = n_rows;
        made = p.index[0] && p.values ? together(&p) : NULL;
        if (made && fewer) made = lc_coalesce(made);
    }
    for (int d = 0; d < t->ndim && keepdim && made; d++)
        if (mask >> d & 1) made = lc_unsqueeze(made, d);
    return made && keepdim && !is_coo(t) && is_sparse(made) ? converted_to(made, lc_layout_of(t), NULL) : made;
}
FORM(sum) { GIVE(summed(in(0), &in[1], in[2].b)); }
ENTER(sum, sum_form)
FORM(sum_dtype)
{
    lc_tensor *t = in[3].tag == LC_IS_dtype ? lc_to(in(0), in[3].dt, false, false, LC_ABSENT) : in(0);
    GIVE(t ? summed(t, &in[1], in[2].b) : NULL);
}
ENTER(sum_dtype, sum_dtype_form)

/* Of the whole tensor, zeros make no difference: the op on the values. */
FORM(of_values)
{
    parts p;
    bool  whole = true;
    for (int k = 1; k < op->args->n_params; k++)
        if (op->args->params[k].kind == LC_IS_ints) whole &= in[k].tag == LC_IS_none || in[k].n == 0;
        else if (op->args->params[k].kind == LC_IS_bool) whole &= !in[k].b; /* keepdim */
    if (!whole)
        return lc_fail_int(LC_NotImplementedError, "%s of some dimensions is not implemented for %s tensors",
                           op->py ? op->py : op->name, lc_layout_names[lc_layout_of(in(0))]);
    if ((is_coo(in(0)) ? coalesced_parts(in(0), &p) : parts_of(in(0), &p)) < 0) return -1;
    lc_value args[op->args->n_params + 1];
    memcpy(args, in, (size_t)op->args->n_params * sizeof *args);
    args[0].t = p.values;
    return lc_call_scoped(op, args, out);
}
ENTER(norm, of_values_form)
ENTER(norm_of_order, of_values_form)
ENTER(any, of_values_form)
ENTER(count_nonzero, of_values_form)

/* ---- masks ---- */
static int sparse_mask_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *mask = in(1), *found, *values;
    parts      p, at, m;
    if (!is_sparse(mask))
        return lc_fail_int(LC_LucidError, "sparse_mask: expected the mask to have a sparse layout, but got strided");
    if (!lc_same_shape(x, mask))
        return lc_fail_int(LC_ShapeMismatch,
                           "sparse_mask(): operands have incompatible sizes; self has size %s but mask has size %s",
                           LC_SIZES(x->shape, x->ndim), LC_SIZES(mask->shape, mask->ndim));
    if (parts_of(mask, &m) < 0 || coo_parts(mask, &at) < 0) return -1;
    if (!is_sparse(x)) values = gathered(x, &at);
    else {
        lc_tensor *c = lc_coalesce(converted_to(x, LC_SPARSE_COO, NULL));
        if (!c || parts_of(c, &p) < 0) return -1;
        if (p.sparse_dim != at.sparse_dim)
            return lc_fail_int(LC_LucidError, "sparse_mask(): expected the same number of sparse dimensions, got %d and %d",
                               p.sparse_dim, at.sparse_dim);
        values = looked_up(&p, &at, &found);
    }
    if (values && !lc_same_shape(values, m.values)) values = lc_reshape(values, m.values->shape, m.values->ndim);
    GIVE(values ? with_values(&m, values) : NULL);
}
LC_OP(sparse_mask, .sig = "sparse_mask(input: Tensor, mask: Tensor) -> Tensor",
      .doc = "The elements of input at the indices of a sparse tensor, in its layout.", .method = true, .function = false,
      .call = sparse_mask_call);
ENTER(sparse_mask, runs_its_body)

/* ---- softmax: over the entries of a line; what is not there counts as -inf ---- */
static int softmax_of(const lc_value *in, bool logarithm, lc_tensor **out) /* (input, dim, dtype) */
{
    parts      p;
    lc_tensor *t = in(0);
    int        d;
    if (!is_sparse(t)) return lc_fail_int(LC_LucidError, "sparse softmax: expected a sparse tensor, got a strided one");
    if (in[2].tag == LC_IS_dtype && !(t = lc_to(t, in[2].dt, false, false, LC_ABSENT))) return -1;
    if (dim_index(in[1].i, t->ndim, &d) < 0) return -1;
    lc_tensor *sorted = is_coo(t) ? lc_coalesce(t) : t;
    if (!sorted || coo_parts(sorted, &p) < 0) return -1;
    if (d >= p.sparse_dim) {
        int inner = d - p.sparse_dim + 1;
        GIVE(with_values(&p, logarithm ? lc_log_softmax(p.values, inner, LC_ABSENT) : lc_softmax(p.values, inner, LC_ABSENT)));
    }
    /* Lines: the indices without dimension d. Values of a line get its largest subtracted, then are summed by line. */
    parts line = p;
    line.shape[d] = 1;
    lc_tensor *rows[3] = { lc_narrow(p.index[0], 0, 0, d), lc_mul(lc_narrow(p.index[0], 0, d, 1), LC_INTEGER(0)),
                           lc_narrow(p.index[0], 0, d + 1, p.sparse_dim - d - 1) };
    line.index[0] = lc_cat(rows, 3, 0);
    lc_tensor *keys = line.index[0] ? linear_index(&line) : NULL;
    if (!keys) return -1;
    if (p.nnz == 0) GIVE(sorted);
    lc__sparse_order_out by = lc__sparse_order(keys);
    if (!by.order || !by.starts) return -1;
    int64_t    n = by.starts->numel - 1, shape[LC_MAX_DIMS];
    lc_tensor *place = lc_index_copy(zeros_like(keys), 0, by.order, rows_of(by.starts, p.nnz)); /* the line of each entry */
    memcpy(shape, p.values->shape, (size_t)p.values->ndim * sizeof *shape);
    shape[0] = n;
    lc_value   device = { .tag = LC_IS_device, .dev = t->device }, dtype = LC_OF_DTYPE(p.values->dtype);
    lc_tensor *low = lc_full(shape, p.values->ndim, LC_NUMBER(-__builtin_inf()), dtype, device);
    lc_tensor *largest = lc_index_reduce(low, 0, place, lc_detach(p.values), "amax", true);
    lc_tensor *shifted = lc_sub(p.values, lc_index_select(largest, 0, place)), *e = lc_exp(shifted);
    lc_tensor *sums = lc_index_add(lc_zeros(shape, p.values->ndim, dtype, device), 0, place, e, LC_I(1));
    lc_tensor *values =
        logarithm ? lc_sub(shifted, lc_index_select(lc_log(sums), 0, place)) : lc_div(e, lc_index_select(sums, 0, place));
    lc_tensor *made = values ? with_values(&p, values) : NULL;
    GIVE(made && !is_coo(t) ? converted_to(made, lc_layout_of(t), NULL) : made);
}
static int _sparse_softmax_call(const lc_value *in, lc_tensor **out) { return softmax_of(in, false, out); }
static int _sparse_log_softmax_call(const lc_value *in, lc_tensor **out) { return softmax_of(in, true, out); }
LC_OP(_sparse_softmax, .sig = "_sparse_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor",
      .doc = "softmax over the entries of a sparse tensor along dim; zeros that are not stored count as -inf.",
      .call = _sparse_softmax_call);
LC_OP(_sparse_log_softmax, .sig = "_sparse_log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor",
      .doc = "The logarithm of sparse softmax.", .call = _sparse_log_softmax_call);
ENTER(_sparse_softmax, runs_its_body)
ENTER(_sparse_log_softmax, runs_its_body)
