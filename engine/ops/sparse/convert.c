/* Indices of sparse tensors: sorted, looked up, compressed, expanded. Everything is made of ops on int64 tensors, except the order of
 * entries, which has a kernel (backend/cpu/sparse/).
 *
 * COO is the layout everything goes through: each layout can be written as COO, and COO as each. A compressed batch is COO with the
 * batch among its sparse dimensions. */
#include "sparse.h"

static lc_value   device_of(const lc_tensor *t) { return (lc_value){ .tag = LC_IS_device, .dev = t->device }; }
static lc_tensor *counting(int64_t n, const lc_tensor *like) { return lc_arange(LC_I(n), int_dtype(), device_of(like)); }
static lc_tensor *as_i64(lc_tensor *t) { return t && t->dtype != LC_i64 ? lc_to(t, LC_i64, false, false, LC_ABSENT) : t; }
static lc_tensor *flat(lc_tensor *t) { return t ? lc_reshape(t, (int64_t[]){ -1 }, 1) : NULL; }

lc_tensor *index_row(const parts *p, int d) { return lc_select(p->index[0], 0, d); }

lc_tensor *linear_index(const parts *p)
{
    int64_t step = 1;
    for (int d = 0; d < p->sparse_dim; d++)
        if (p->shape[d] && __builtin_mul_overflow(step, p->shape[d], &step))
            return lc_fail(LC_LucidError, "sparse tensor: the size %s has more places than can be counted",
                           LC_SIZES(p->shape, p->ndim));
    if (p->sparse_dim == 0) return lc_zeros(&p->nnz, 1, int_dtype(), device_of(p->index[0]));
    lc_tensor *sum = index_row(p, 0);
    for (int d = 1; d < p->sparse_dim; d++) sum = lc_add(lc_mul(sum, LC_INTEGER(p->shape[d])), index_row(p, d));
    return sum;
}

int take_entries(parts *p, lc_tensor *at)
{
    if (!at) return -1;
    p->index[0] = lc_index_select(p->index[0], 1, at);
    p->values = lc_index_select(p->values, 0, at);
    p->nnz = at->numel;
    return p->index[0] && p->values ? 0 : -1;
}
int keep_entries(parts *p, lc_tensor *keep) { return take_entries(p, flat(lc_nonzero(keep, false))); }

/* ---- coalesce ---- */
/* Sums of rows of values (nnz, ...) by groups: those order[starts[k]] ... order[starts[k + 1] - 1] become row k. */
static lc_tensor *grouped_sum(lc_tensor *values, lc_tensor *order, lc_tensor *starts)
{
    int64_t shape[LC_MAX_DIMS], nnz = order->numel, n = starts->numel - 1, width = nnz ? values->numel / nnz : 1;
    memcpy(shape, values->shape, (size_t)values->ndim * sizeof *shape);
    shape[0] = n;
    if (lc_is_floating(values->dtype) && values->numel) {
        lc_tensor *rows = lc_reshape(values, (int64_t[]){ nnz, width }, 2);
        return lc_reshape(lc__embedding_sum(rows, order, starts, LC_NONE, -1, false, false), shape, values->ndim);
    }
    lc_dtype   dtype = (lc_dtype)values->dtype, sums = dtype == LC_b8 ? LC_i64 : dtype;
    lc_tensor *given = lc_index_select(sums == dtype ? values : lc_to(values, sums, false, false, LC_ABSENT), 0, order);
    lc_tensor *sum = lc_index_add(lc_zeros(shape, values->ndim, LC_OF_DTYPE(sums), device_of(values)), 0, rows_of(starts, nnz),
                                  given, LC_I(1));
    return sums == dtype ? sum : lc_ne(sum, LC_INTEGER(0));
}
static int coalesce_parts(parts *p)
{
    lc_tensor *keys = linear_index(p);
    if (!keys) return -1;
    lc__sparse_order_out by = lc__sparse_order(keys);
    if (!by.order || !by.starts) return -1;
    int64_t n = by.starts->numel - 1;
    p->values = grouped_sum(p->values, by.order, by.starts);
    p->index[0] = lc_index_select(p->index[0], 1, lc_index_select(by.order, 0, lc_narrow(by.starts, 0, 0, n)));
    p->nnz = n, p->coalesced = true;
    return p->values && p->index[0] ? 0 : -1;
}
int coalesced_parts(lc_tensor *t, parts *p)
{
    if (parts_of(t, p) < 0) return -1;
    return p->coalesced ? 0 : coalesce_parts(p);
}

/* The order that sorts keys, stable, and where each new key starts in it: (nnz) and (distinct + 1). */
static int _sparse_order_call(const lc_value *in, lc_tensor **out)
{
    int64_t     n = in(0)->numel;
    lc_sort_out by = lc_sort(in(0), 0, false, LC_B(true));
    if (!by.values || !by.indices) return -1;
    lc_tensor *end = lc_full(&(int64_t){ 1 }, 1, LC_INTEGER(n), int_dtype(), device_of(in(0)));
    lc_tensor *zero = lc_zeros(&(int64_t){ n ? 1 : 0 }, 1, int_dtype(), device_of(in(0)));
    lc_tensor *places = zero;
    if (n > 1) {
        lc_tensor *differs = lc_ne(lc_narrow(by.values, 0, 1, n - 1), lc_narrow(by.values, 0, 0, n - 1));
        lc_tensor *later = lc_add(flat(lc_nonzero(differs, false)), LC_INTEGER(1));
        places = lc_cat((lc_tensor *[]){ zero, later }, 2, 0);
    }
    out[0] = by.indices, out[1] = lc_cat((lc_tensor *[]){ places, end }, 2, 0);
    return out[1] ? 0 : -1;
}
LC_OP(_sparse_order, .sig = "_sparse_order(keys: Tensor) -> (order: Tensor, starts: Tensor)",
      .doc = "The stable order of keys, and where each distinct one starts in it.", .hidden = true, .reads_values = true,
      .call = _sparse_order_call);

/* ---- look up ---- */
lc_tensor *gathered(lc_tensor *dense, const parts *p)
{
    lc_tensor *rows[LC_MAX_DIMS];
    if (!dense) return NULL;
    if (p->sparse_dim == 0) return lc_expand(lc_unsqueeze(dense, 0), p->values->shape, p->values->ndim);
    for (int d = 0; d < p->sparse_dim; d++)
        if (!(rows[d] = index_row(p, d))) return NULL;
    return lc_index(dense, rows, p->sparse_dim);
}
lc_tensor *looked_up(const parts *in, const parts *at, lc_tensor **found)
{
    lc_tensor *keys = linear_index(in), *wanted = linear_index(at);
    if (!keys || !wanted) return NULL;
    if (in->nnz == 0) {
        int64_t shape[LC_MAX_DIMS];
        memcpy(shape, in->values->shape, (size_t)in->values->ndim * sizeof *shape);
        shape[0] = at->nnz;
        *found = lc_zeros(shape, 1, LC_OF_DTYPE(LC_b8), device_of(keys));
        return lc_zeros(shape, in->values->ndim, LC_OF_DTYPE(in->values->dtype), device_of(keys));
    }
    lc_tensor *place = lc_clamp(lc_searchsorted(keys, wanted, false, false, NULL, LC_NONE), LC_NONE, LC_INTEGER(in->nnz - 1));
    int64_t    column[LC_MAX_DIMS] = { at->nnz };
    for (int d = 1; d < in->values->ndim; d++) column[d] = 1;
    *found = lc_eq(lc_index_select(keys, 0, place), wanted);
    lc_tensor *missing = lc_reshape(lc_logical_not(*found), column, in->values->ndim);
    return lc_masked_fill(lc_index_select(in->values, 0, place), missing, LC_INTEGER(0));
}

/* ---- compressed ---- */
lc_tensor *row_starts(lc_tensor *sorted, int64_t n)
{
    if (!sorted) return NULL;
    return lc_searchsorted(lc_contiguous(sorted, LC_CONTIGUOUS_FORMAT), counting(n + 1, sorted), false, false, NULL, LC_NONE);
}
lc_tensor *rows_of(lc_tensor *starts, int64_t nnz)
{
    lc_tensor *counts = lc_diff(as_i64(starts), 1, -1, LC_NONE, LC_NONE);
    return lc_repeat_interleave_counts(counts, LC_I(nnz));
}

/* Entries of blocks: their rows and columns counted in elements, a value each. */
static int spread_blocks(parts *p, int n_index, lc_tensor **rows, int d_row, int64_t height, int64_t width)
{
    int64_t    n = p->nnz, each = height * width;
    lc_tensor *inner = counting(each, p->index[0]);
    lc_tensor *inside[2] = { lc_floor_divide(inner, LC_INTEGER(width)), lc_remainder(inner, LC_INTEGER(width)) };
    for (int d = 0; d < n_index; d++) {
        lc_tensor *column = lc_unsqueeze(rows[d], 1);
        if (d >= d_row) column = lc_add(lc_mul(column, LC_INTEGER(d == d_row ? height : width)), inside[d - d_row]);
        rows[d] = flat(lc_expand(column, (int64_t[]){ n, each }, 2));
    }
    int64_t shape[LC_MAX_DIMS] = { n * each };
    for (int d = 3; d < p->values->ndim; d++) shape[d - 2] = p->values->shape[d];
    p->values = lc_reshape(p->values, shape, p->values->ndim - 2);
    p->nnz = n * each;
    return p->values ? 0 : -1;
}
int coo_parts(lc_tensor *t, parts *p)
{
    if (parts_of(t, p) < 0) return -1;
    if (p->layout == LC_SPARSE_COO) return 0;
    int        batch = lc_batch_dim(t);
    int64_t    nnz = p->nnz, all = nnz;
    lc_layout  layout = p->layout;
    bool       by_row = lc_is_by_row(layout);
    lc_tensor *rows[LC_MAX_DIMS], *starts = as_i64(p->index[0]);
    for (int d = 0; d < batch; d++) all *= t->shape[d];
    /* Starts count from the first entry of their matrix; matrices of a batch follow each other, with nnz entries each. */
    lc_tensor *counts = flat(lc_diff(starts, 1, -1, LC_NONE, LC_NONE));
    if (!counts) return -1;
    int64_t    lines = starts->shape[batch] - 1;
    lc_tensor *line = lc_repeat_interleave_counts(counts, LC_I(all)),
              *rest = lines ? lc_floor_divide(line, LC_INTEGER(lines)) : line;
    rows[batch] = lines ? lc_remainder(line, LC_INTEGER(lines)) : line;
    rows[batch + 1] = as_i64(flat(p->index[1]));
    for (int d = batch - 1; d >= 0; d--) {
        rows[d] = t->shape[d] ? lc_remainder(rest, LC_INTEGER(t->shape[d])) : rest;
        rest = t->shape[d] ? lc_floor_divide(rest, LC_INTEGER(t->shape[d])) : rest;
    }
    int64_t shape[LC_MAX_DIMS] = { all };
    for (int d = batch + 1; d < p->values->ndim; d++) shape[d - batch] = p->values->shape[d];
    p->values = lc_reshape(p->values, shape, p->values->ndim - batch);
    p->nnz = all;
    if (!by_row) {
        lc_tensor *row = rows[batch];
        rows[batch] = rows[batch + 1], rows[batch + 1] = row;
    }
    if (!p->values) return -1;
    if (lc_is_blocked(layout) &&
        spread_blocks(p, batch + 2, rows, batch, t->sparse->values->shape[batch + 1], t->sparse->values->shape[batch + 2]) < 0)
        return -1;
    p->layout = LC_SPARSE_COO, p->index[1] = NULL, p->sparse_dim = batch + 2;
    p->coalesced = layout == LC_SPARSE_CSR;
    return (p->index[0] = lc_stack(rows, batch + 2, 0)) ? 0 : -1;
}

/* COO with sparse dimensions (batch..., rows, columns) to CSR, CSC, or blocks. */
static lc_tensor *compressed(parts *p, lc_layout layout, const int64_t *block)
{
    int     batch = p->sparse_dim - 2, dense = p->ndim - p->sparse_dim;
    int64_t n_batch = 1, height = block ? block[0] : 1, width = block ? block[1] : 1, shape[LC_MAX_DIMS];
    if (batch < 0)
        return lc_fail(LC_LucidError, "to_sparse: a %s tensor has at least two sparse dimensions, got %d",
                       lc_layout_names[layout], p->sparse_dim);
    int64_t rows = p->shape[batch], columns = p->shape[batch + 1];
    if (height < 1 || width < 1 || rows % height || columns % width)
        return lc_fail(
            LC_LucidError,
            "Tensor size(-2) %lld needs to be divisible by blocksize[0] %lld, and size(-1) %lld by blocksize[1] %lld",
            (long long)rows, (long long)height, (long long)columns, (long long)width);
    for (int d = 0; d < batch; d++) n_batch *= p->shape[d];
    if (p->coalesced && layout == LC_SPARSE_CSR && !batch) { /* in order already */
        lc_tensor *starts = row_starts(index_row(p, 0), rows), *plain = lc_contiguous(index_row(p, 1), LC_CONTIGUOUS_FORMAT);
        return starts && plain ? lc__sparse_compressed(starts, plain, p->values, p->shape, p->ndim, layout) : NULL;
    }
    /* An entry's matrix, and the row and column of its block. */
    lc_tensor *row = index_row(p, batch), *column = index_row(p, batch + 1), *matrix = NULL, *inside = NULL;
    for (int d = 0; d < batch; d++)
        matrix = d ? lc_add(lc_mul(matrix, LC_INTEGER(p->shape[d])), index_row(p, d)) : index_row(p, 0);
    if (block) {
        inside =
            lc_add(lc_mul(lc_remainder(row, LC_INTEGER(height)), LC_INTEGER(width)), lc_remainder(column, LC_INTEGER(width)));
        row = lc_floor_divide(row, LC_INTEGER(height)), column = lc_floor_divide(column, LC_INTEGER(width));
    }
    bool       by_row = lc_is_by_row(layout);
    int64_t    lines = by_row ? rows / height : columns / width, across = by_row ? columns / width : rows / height;
    lc_tensor *line = by_row ? row : column, *plain = by_row ? column : row;
    if (matrix) line = lc_add(lc_mul(matrix, LC_INTEGER(lines)), line);
    lc_tensor *keys = lc_add(lc_mul(line, LC_INTEGER(across)), plain);
    if (!keys) return NULL;
    lc__sparse_order_out by = lc__sparse_order(keys);
    if (!by.order || !by.starts) return NULL;
    int64_t    n = by.starts->numel - 1, per_matrix = n_batch ? n / n_batch : 0;
    lc_tensor *firsts = lc_index_select(by.order, 0, lc_narrow(by.starts, 0, 0, n));
    lc_tensor *starts = row_starts(lc_index_select(line, 0, firsts), n_batch * lines);
    plain = lc_index_select(plain, 0, firsts);
    lc_tensor *values;
    if (block) { /* entries go to their places in blocks of zeros */
        int64_t flat_shape[LC_MAX_DIMS] = { n, height * width };
        memcpy(flat_shape + 2, p->shape + p->sparse_dim, (size_t)dense * sizeof *shape);
        lc_tensor *zeros = lc_zeros(flat_shape, 2 + dense, LC_OF_DTYPE(p->values->dtype), device_of(p->values));
        lc_tensor *at[2] = { rows_of(by.starts, p->nnz), lc_index_select(inside, 0, by.order) };
        values = lc_index_put(zeros, at, 2, lc_index_select(p->values, 0, by.order), true);
    } else values = grouped_sum(p->values, by.order, by.starts);
    if (!starts || !plain || !values) return NULL;
    if (batch) { /* starts count from the first entry of their matrix, which all have the same number of */
        lc_tensor *firsts_of = lc_mul(counting(n_batch, starts), LC_INTEGER(lines));
        lc_tensor *wide = lc_add(lc_unsqueeze(firsts_of, 1), counting(lines + 1, starts));
        starts = lc_reshape(lc_index_select(starts, 0, flat(wide)), (int64_t[]){ n_batch, lines + 1 }, 2);
        starts = lc_sub(starts, lc_mul(lc_unsqueeze(counting(n_batch, starts), 1), LC_INTEGER(per_matrix)));
        lc_tensor *ends = lc_ne(lc_select(starts, 1, lines), LC_INTEGER(per_matrix)),
                  *uneven = lc_any(lc_logical_or(ends, lc_ne(lc_select(starts, 1, 0), LC_INTEGER(0))), NULL, 0, false);
        int64_t refused;
        if (read_int(uneven, &refused) < 0) return NULL;
        if (refused) return lc_fail(LC_LucidError, "Expect the same number of specified elements per batch.");
        memcpy(shape, p->shape, (size_t)batch * sizeof *shape);
        shape[batch] = lines + 1;
        starts = lc_reshape(starts, shape, batch + 1);
        shape[batch] = per_matrix;
        plain = lc_reshape(plain, shape, batch + 1);
    }
    memcpy(shape, p->shape, (size_t)batch * sizeof *shape);
    int at = batch;
    shape[at++] = per_matrix;
    if (block) shape[at++] = height, shape[at++] = width;
    memcpy(shape + at, p->shape + p->sparse_dim, (size_t)dense * sizeof *shape);
    values = lc_reshape(values, shape, at + dense);
    return starts && plain && values ? lc__sparse_compressed(starts, plain, values, p->shape, p->ndim, layout) : NULL;
}

lc_tensor *converted_to(lc_tensor *t, lc_layout layout, const int64_t *block)
{
    if (!t) return NULL;
    parts     p;
    lc_layout from = lc_layout_of(t);
    bool      same_block = !block || (lc_is_blocked(from) && t->sparse->values->shape[lc_batch_dim(t) + 1] == block[0] &&
                                 t->sparse->values->shape[lc_batch_dim(t) + 2] == block[1]);
    if (from == layout && same_block) return t;
    if (coo_parts(t, &p) < 0) return NULL;
    if (layout != LC_SPARSE_COO) return compressed(&p, layout, block);
    return together(&p);
}
