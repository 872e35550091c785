/* Dimensions of sparse tensors exchanged, added, selected and joined. None of these is a view: parts are shared where they can be. */
#include "sparse.h"

static int find_dim(int64_t dim, int ndim, int *found)
{
    if (ndim && dim >= -ndim && dim < ndim) return *found = (int)(dim < 0 ? dim + ndim : dim), 0;
    return lc_fail_int(LC_IndexError, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -ndim,
                       ndim - 1, (long long)dim);
}

/* ---- order of dimensions ---- */
static lc_tensor *compressed_transpose(lc_tensor *t) /* the last two: rows become columns, and nothing moves */
{
    static const lc_layout other[LC_LAYOUTS] = { [LC_SPARSE_CSR] = LC_SPARSE_CSC,
                                                 [LC_SPARSE_CSC] = LC_SPARSE_CSR,
                                                 [LC_SPARSE_BSR] = LC_SPARSE_BSC,
                                                 [LC_SPARSE_BSC] = LC_SPARSE_BSR };
    parts                  p;
    int                    at = lc_batch_dim(t);
    if (parts_of(t, &p) < 0) return NULL;
    if (lc_is_blocked(p.layout)) p.values = lc_transpose(p.values, at + 1, at + 2);
    int64_t rows = p.shape[at];
    p.shape[at] = p.shape[at + 1], p.shape[at + 1] = rows, p.layout = other[p.layout];
    return p.values ? together(&p) : NULL;
}
static lc_tensor *permuted(lc_tensor *t, const int *order) /* dimension d of the result is order[d] */
{
    parts   p;
    int     n = lc_batch_dim(t) + lc_sparse_dim(t), at = lc_batch_dim(t), ndim = t->ndim;
    bool    changed = false, swapped = !is_coo(t);
    int64_t inner[LC_MAX_DIMS] = { 0 }, rows[LC_MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        if ((order[d] < n) != (d < n))
            return lc_fail(LC_LucidError,
                           "permute: sparse and dense dimensions of a sparse tensor cannot change places: dimension %d of %s "
                           "has %d of them",
                           order[d], LC_SHAPE(t), n);
        changed |= order[d] != d;
        swapped &= order[d] == (d == at ? at + 1 : d == at + 1 ? at : d);
    }
    if (!changed) return t;
    if (swapped) return compressed_transpose(t);
    if (!is_coo(t)) return refuse_layout("permute of other dimensions than the last two", t), NULL;
    if (parts_of(t, &p) < 0) return NULL;
    bool sorted = true;
    for (int d = 0; d < ndim; d++) {
        p.shape[d] = t->shape[order[d]];
        if (d < n) rows[d] = order[d], sorted &= order[d] == d;
        else inner[d - n + 1] = order[d] - n + 1;
    }
    lc_tensor *which = lc_scoped(lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, 1, (int64_t[]){ n }));
    if (!which) return NULL;
    memcpy(which->data, rows, (size_t)n * sizeof *rows);
    if (!sorted)
        p.index[0] = lc_index_select(p.index[0], 0, lc__to_copy(which, LC_i64, p.index[0]->device, LC_PRESERVE_FORMAT));
    p.values = lc_permute(p.values, inner, ndim - n + 1);
    p.coalesced = p.coalesced && sorted;
    return p.index[0] && p.values ? together(&p) : NULL;
}
static lc_tensor *exchanged(lc_tensor *t, int a, int b)
{
    int order[LC_MAX_DIMS];
    for (int d = 0; d < t->ndim; d++) order[d] = d == a ? b : d == b ? a : d;
    return permuted(t, order);
}
FORM(transpose)
{
    int a, b;
    if (find_dim(in[1].i, in(0)->ndim, &a) < 0 || find_dim(in[2].i, in(0)->ndim, &b) < 0) return -1;
    GIVE(exchanged(in(0), a, b));
}
ENTER(transpose, transpose_form)
ENTER(swapaxes, runs_its_body)
FORM(t)
{
    if (in(0)->ndim > 2)
        return lc_fail_int(LC_ShapeMismatch, "t() expects a tensor with <= 2 dimensions, but self is %dD", in(0)->ndim);
    GIVE(in(0)->ndim < 2 ? in(0) : exchanged(in(0), 0, 1));
}
ENTER(t, t_form)
ENTER(mT, runs_its_body)
ENTER(H, runs_its_body)
ENTER(mH, runs_its_body)
ENTER(adjoint, runs_its_body)
FORM(permute)
{
    int order[LC_MAX_DIMS], seen[LC_MAX_DIMS] = { 0 };
    if (in[1].n != in(0)->ndim)
        return lc_fail_int(LC_ShapeMismatch,
                           "permute: number of dimensions in the tensor input does not match the length of the desired "
                           "ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %d",
                           in(0)->ndim, in[1].n);
    for (int d = 0; d < in[1].n; d++) {
        if (find_dim(in[1].is[d], in(0)->ndim, &order[d]) < 0) return -1;
        if (seen[order[d]]++) return lc_fail_int(LC_LucidError, "permute: duplicate dims are not allowed.");
    }
    GIVE(permuted(in(0), order));
}
ENTER(permute, permute_form)
ENTER(T, runs_its_body)
ENTER(movedim, runs_its_body)

/* ---- a dimension of size one ---- */
FORM(unsqueeze)
{
    parts      p;
    lc_tensor *t = in(0);
    int        d;
    if (!is_coo(t)) return refuse_layout("unsqueeze", t);
    if (find_dim(in[1].i, t->ndim + 1, &d) < 0 || parts_of(t, &p) < 0) return -1;
    memmove(p.shape + d + 1, p.shape + d, (size_t)(t->ndim - d) * sizeof *p.shape);
    p.shape[d] = 1, p.ndim++;
    if (d > p.sparse_dim) GIVE(with_values(&p, lc_unsqueeze(p.values, d - p.sparse_dim + 1)));
    lc_value   device = { .tag = LC_IS_device, .dev = t->device };
    lc_tensor *zeros = lc_zeros((int64_t[]){ 1, p.nnz }, 2, int_dtype(), device);
    lc_tensor *rows[3] = { lc_narrow(p.index[0], 0, 0, d), zeros, lc_narrow(p.index[0], 0, d, p.sparse_dim - d) };
    p.index[0] = lc_cat(rows, 3, 0), p.sparse_dim++;
    GIVE(p.index[0] ? together(&p) : NULL);
}
ENTER(unsqueeze, unsqueeze_form)

/* ---- parts of a dimension ---- */
static int as_coo(lc_tensor *t, parts *p, const char *op) /* compressed matrices go through COO */
{
    if (!is_coo(t) && lc_batch_dim(t)) return refuse_layout(op, t);
    return coo_parts(t, p);
}
static lc_tensor *like(lc_tensor *made, const lc_tensor *t) /* in the layout of t */
{
    return made && !is_coo(t)
               ? converted_to(made, lc_layout_of(t), lc_is_blocked(lc_layout_of(t)) ? t->sparse->values->shape + 1 : NULL)
               : made;
}
static lc_tensor *without_row(const parts *p, int d)
{
    lc_tensor *rows[2] = { lc_narrow(p->index[0], 0, 0, d), lc_narrow(p->index[0], 0, d + 1, p->sparse_dim - d - 1) };
    return lc_cat(rows, 2, 0);
}
static lc_tensor *with_row(const parts *p, int d, lc_tensor *row)
{
    lc_tensor *rows[3] = { lc_narrow(p->index[0], 0, 0, d), lc_unsqueeze(row, 0),
                           lc_narrow(p->index[0], 0, d + 1, p->sparse_dim - d - 1) };
    return p->sparse_dim == 1 ? rows[1] : lc_cat(rows, 3, 0);
}
static lc_tensor *selected(lc_tensor *t, int d, int64_t i)
{
    parts p;
    if (as_coo(t, &p, "select") < 0) return NULL;
    memmove(p.shape + d, p.shape + d + 1, (size_t)(p.ndim - d - 1) * sizeof *p.shape);
    p.ndim--;
    if (d >= p.sparse_dim) return with_values(&p, lc_select(p.values, d - p.sparse_dim + 1, i));
    if (keep_entries(&p, lc_eq(index_row(&p, d), LC_INTEGER(i))) < 0) return NULL;
    if (p.sparse_dim == 1) return lc_sum(p.values, &(int64_t){ 0 }, 1, false);
    p.index[0] = without_row(&p, d), p.sparse_dim--;
    return p.index[0] ? together(&p) : NULL;
}
FORM(select)
{
    int     d;
    int64_t i = in[2].i, n;
    if (find_dim(in[1].i, in(0)->ndim, &d) < 0) return -1;
    n = in(0)->shape[d];
    if (i < -n || i >= n)
        return lc_fail_int(LC_IndexError, "select(): index %lld out of range for tensor of size %s at dimension %d",
                           (long long)i, LC_SIZES(in(0)->shape, in(0)->ndim), d);
    GIVE(selected(in(0), d, i < 0 ? i + n : i));
}
ENTER(select, select_form)
FORM(unbind)
{
    int d;
    if (find_dim(in[1].i, in(0)->ndim, &d) < 0) return -1;
    for (int64_t i = 0; i < in(0)->shape[d]; i++)
        if (!(out[i] = selected(in(0), d, i))) return -1;
    return 0;
}
ENTER(unbind, unbind_form)

static lc_tensor *sliced(lc_tensor *t, int d, int64_t start, int64_t end, int64_t step)
{
    parts   p;
    int64_t n = t->shape[d];
    if (as_coo(t, &p, "slice") < 0) return NULL;
    start = start < 0 ? start + n : start, end = end < 0 ? end + n : end;
    start = start < 0 ? 0 : start > n ? n : start, end = end < start ? start : end > n ? n : end;
    p.shape[d] = (end - start + step - 1) / step;
    if (d >= p.sparse_dim) return with_values(&p, lc_slice(p.values, d - p.sparse_dim + 1, LC_I(start), LC_I(end), step));
    lc_tensor *row = index_row(&p, d), *keep = lc_logical_and(lc_ge(row, LC_INTEGER(start)), lc_lt(row, LC_INTEGER(end)));
    if (step != 1)
        keep = lc_logical_and(keep, lc_eq(lc_remainder(lc_sub(row, LC_INTEGER(start)), LC_INTEGER(step)), LC_INTEGER(0)));
    if (keep_entries(&p, keep) < 0) return NULL;
    row = lc_sub(index_row(&p, d), LC_INTEGER(start));
    if (step != 1) row = lc_floor_divide(row, LC_INTEGER(step));
    p.index[0] = with_row(&p, d, row);
    return p.index[0] ? like(together(&p), t) : NULL;
}
FORM(slice)
{
    int     d;
    int64_t start = 0, end = INT64_MAX;
    int_argument(&in[2], &start), int_argument(&in[3], &end);
    if (find_dim(in[1].i, in(0)->ndim, &d) < 0) return -1;
    if (in[4].i < 1) return lc_fail_int(LC_ValueError, "slice step must be positive");
    GIVE(sliced(in(0), d, start, end, in[4].i));
}
ENTER(slice, slice_form)
FORM(narrow)
{
    int     d;
    int64_t start = in[2].i, length = in[3].i;
    if (find_dim(in[1].i, in(0)->ndim, &d) < 0) return -1;
    int64_t n = in(0)->shape[d];
    if (start < 0) start += n;
    if (length < 0 || start < 0 || start > n || length > n - start)
        return lc_fail_int(LC_LucidError, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)in[2].i,
                           (long long)length, (long long)n);
    GIVE(sliced(in(0), d, start, start + length, 1));
}
ENTER(narrow, narrow_form)

/* Every entry occurs as often as its index is asked for. */
FORM(index_select)
{
    parts      p;
    lc_tensor *t = in(0), *index = in(2);
    int        d;
    if (find_dim(in[1].i, t->ndim, &d) < 0 || as_coo(t, &p, "index_select") < 0) return -1;
    if (index->ndim > 1 || lc_class_of(index->dtype) != LC_INT)
        return lc_fail_int(LC_IndexError, "index_select(): Index is supposed to be a vector of integers, got %s",
                           LC_SHAPE(index));
    index = lc_to(lc_reshape(index, (int64_t[]){ -1 }, 1), LC_i64, false, false, LC_ABSENT);
    if (!index) return -1;
    p.shape[d] = index->numel;
    if (d >= p.sparse_dim) GIVE(with_values(&p, lc_index_select(p.values, d - p.sparse_dim + 1, index)));
    lc_tensor *odd = lc_any(lc_logical_or(lc_lt(index, LC_INTEGER(0)), lc_ge(index, LC_INTEGER(t->shape[d]))), NULL, 0, false);
    int64_t    outside;
    if (read_int(odd, &outside) < 0) return -1;
    if (outside)
        return lc_fail_int(LC_IndexError, "index_select(): index out of range for dimension %d with size %lld", d,
                           (long long)t->shape[d]);
    lc_sort_out by = lc_sort(index, 0, false, LC_B(true));
    if (!by.values || !by.indices) return -1;
    lc_tensor *row = lc_contiguous(index_row(&p, d), LC_CONTIGUOUS_FORMAT);
    lc_tensor *first = lc_searchsorted(by.values, row, false, false, NULL, LC_NONE),
              *past = lc_searchsorted(by.values, row, false, true, NULL, LC_NONE);
    lc_tensor *counts = lc_sub(past, first), *entry = lc_repeat_interleave_counts(counts, LC_ABSENT);
    if (!entry) return -1;
    lc_value   device = { .tag = LC_IS_device, .dev = t->device };
    lc_tensor *before = lc_sub(lc_cumsum(counts, 0, LC_ABSENT), counts);
    lc_tensor *at =
        lc_add(lc_arange(LC_I(entry->numel), int_dtype(), device), lc_index_select(lc_sub(first, before), 0, entry));
    if (take_entries(&p, entry) < 0) return -1;
    p.index[0] = with_row(&p, d, lc_index_select(by.indices, 0, at)), p.coalesced = false;
    lc_tensor *made = p.index[0] ? together(&p) : NULL;
    GIVE(is_coo(t) ? made : like(made, t));
}
ENTER(index_select, index_select_form)

/* ---- joined ---- */
FORM(cat)
{
    lc_tensor *const *ts = in[0].ts;
    lc_tensor        *index[64], *values[64];
    int               n = in[0].n, d = 0;
    parts             p, first = { 0 };
    int64_t           offset = 0;
    if (n > 64) return lc_fail_int(LC_NotImplementedError, "cat: at most 64 sparse tensors at once, got %d", n);
    for (int k = 0; k < n; k++) {
        if (!is_coo(ts[k]))
            return lc_fail_int(LC_LucidError, "cat: Concatenating sparse tensors, but a %s tensor was found at position %d.",
                               lc_layout_names[lc_layout_of(ts[k])], k);
        if (parts_of(ts[k], &p) < 0) return -1;
        if (k == 0) {
            first = p;
            if (find_dim(in[1].i, p.ndim, &d) < 0) return -1;
            if (d >= p.sparse_dim)
                return lc_fail_int(LC_NotImplementedError,
                                   "cat along a dense dimension is not implemented for sparse_coo tensors");
        }
        bool fits = p.ndim == first.ndim && p.sparse_dim == first.sparse_dim;
        for (int e = 0; e < p.ndim && fits; e++) fits = e == d || p.shape[e] == first.shape[e];
        if (!fits)
            return lc_fail_int(LC_ShapeMismatch, "cat: Sizes of tensors must match except in dimension %d. Got %s and %s.", d,
                               LC_SHAPE(ts[0]), LC_SHAPE(ts[k]));
        index[k] = offset ? with_row(&p, d, lc_add(index_row(&p, d), LC_INTEGER(offset))) : p.index[0];
        values[k] = p.values;
        offset += p.shape[d];
        first.coalesced &= p.coalesced && (d == 0 || k == 0);
        first.nnz += k ? p.nnz : 0;
    }
    first.shape[d] = offset;
    first.index[0] = lc_cat(index, n, 1), first.values = lc_cat(values, n, 0);
    if (n > 1 && d != 0) first.coalesced = false;
    GIVE(first.index[0] && first.values ? together(&first) : NULL);
}
ENTER(cat, cat_form)
FORM(stack)
{
    lc_tensor *wide[64];
    if (in[0].n > 64) return lc_fail_int(LC_NotImplementedError, "stack: at most 64 sparse tensors at once, got %d", in[0].n);
    for (int k = 0; k < in[0].n; k++)
        if (!(wide[k] = lc_unsqueeze(in[0].ts[k], in[1].i))) return -1;
    int64_t dim = in[1].i < 0 ? in[1].i + in[0].ts[0]->ndim + 1 : in[1].i;
    GIVE(lc_cat(wide, in[0].n, dim));
}
ENTER(stack, stack_form)
