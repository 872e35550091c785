/* Products of matrices of which some are sparse.
 *
 * A sparse matrix times a dense one is a sum of rows per row: row r of the result is the sum of the dense rows that the columns of r name,
 * each times a value. That is what embedding bags compute, with their gradients: the bags are the rows, the table is the dense matrix, the
 * factors are the values. So the kernels are those of embedding.c, and the derivative by the values (a product that is computed only at the
 * places of the entries) is _embedding_dot. A matrix by columns goes the other way round: its product is _embedding_backward.
 *
 * Sparse times sparse expands: each entry (i, k) of the left meets every entry of row k of the right; the products are coalesced. */
#include "sparse.h"

typedef struct { /* a matrix by rows, or by columns if transposed */
    lc_tensor *starts, *plain, *values;
    int64_t    rows, columns, nnz;
    bool       by_column;
} compressed_matrix;

static lc_tensor *as_i64(lc_tensor *t) { return t && t->dtype != LC_i64 ? lc_to(t, LC_i64, false, false, LC_ABSENT) : t; }

static int check_matrix(const char *op, const lc_tensor *t)
{
    if (t->ndim == 2 && (!is_sparse(t) || lc_dense_dim(t) == 0)) return 0;
    if (t->ndim != 2) return lc_fail_int(LC_ShapeMismatch, "%s: Expected a matrix, got %s", op, LC_SHAPE(t));
    return lc_fail_int(LC_NotImplementedError, "%s of a sparse matrix with dense dimensions is not implemented", op);
}
static int matrix_of(lc_tensor *t, compressed_matrix *m)
{
    parts p;
    if (lc_is_blocked(lc_layout_of(t)) && !(t = converted_to(t, LC_SPARSE_CSR, NULL))) return -1;
    *m = (compressed_matrix){ .rows = t->shape[0], .columns = t->shape[1], .by_column = lc_layout_of(t) == LC_SPARSE_CSC };
    if ((is_coo(t) ? coalesced_parts(t, &p) : parts_of(t, &p)) < 0) return -1;
    m->values = p.values, m->nnz = p.nnz;
    if (is_coo(t))
        m->starts = row_starts(index_row(&p, 0), m->rows), m->plain = lc_contiguous(index_row(&p, 1), LC_CONTIGUOUS_FORMAT);
    else m->starts = as_i64(p.index[0]), m->plain = as_i64(p.index[1]);
    return m->starts && m->plain ? 0 : -1;
}
static void transpose_matrix(compressed_matrix *m)
{
    int64_t rows = m->rows;
    m->rows = m->columns, m->columns = rows, m->by_column = !m->by_column;
}

static lc_tensor *times_dense(const compressed_matrix *m, lc_tensor *dense) /* (rows, columns) x (columns, n) */
{
    if (!dense) return NULL;
    int64_t n = dense->shape[1];
    if (lc_is_floating(dense->dtype)) {
        if (m->by_column) return lc__embedding_backward(dense, m->plain, m->starts, m->values, m->rows, -1, false);
        return lc__embedding_sum(dense, m->plain, m->starts, m->values, -1, false, false);
    }
    lc_tensor *line = rows_of(m->starts, m->nnz), *row = m->by_column ? m->plain : line,
              *column = m->by_column ? line : m->plain;
    lc_tensor *terms = lc_mul(lc_unsqueeze(m->values, 1), lc_index_select(dense, 0, column));
    lc_value   device = { .tag = LC_IS_device, .dev = dense->device };
    return lc_index_add(lc_zeros((int64_t[]){ m->rows, n }, 2, LC_OF_DTYPE(dense->dtype), device), 0, row, terms, LC_I(1));
}

static lc_tensor *times_sparse(lc_tensor *a, lc_tensor *b)
{
    compressed_matrix left, right;
    parts             p = { .layout = LC_SPARSE_COO, .ndim = 2, .sparse_dim = 2, .shape = { a->shape[0], b->shape[1] } };
    lc_tensor        *by_row = lc_layout_of(b) == LC_SPARSE_CSC ? converted_to(b, LC_SPARSE_CSR, NULL) : b;
    lc_tensor        *from = lc_layout_of(a) == LC_SPARSE_CSC ? converted_to(a, LC_SPARSE_CSR, NULL) : a;
    if (!by_row || !from || matrix_of(from, &left) < 0 || matrix_of(by_row, &right) < 0) return NULL;
    lc_tensor *first = lc_index_select(right.starts, 0, left.plain);
    lc_tensor *past = lc_index_select(right.starts, 0, lc_add(left.plain, LC_INTEGER(1)));
    lc_tensor *counts = lc_sub(past, first), *entry = lc_repeat_interleave_counts(counts, LC_ABSENT);
    if (!entry) return NULL;
    lc_value   device = { .tag = LC_IS_device, .dev = a->device };
    lc_tensor *before = lc_sub(lc_cumsum(counts, 0, LC_ABSENT), counts); /* products in front of each entry's */
    lc_tensor *at =
        lc_add(lc_arange(LC_I(entry->numel), int_dtype(), device), lc_index_select(lc_sub(first, before), 0, entry));
    lc_tensor *row = lc_index_select(rows_of(left.starts, left.nnz), 0, entry), *column = lc_index_select(right.plain, 0, at);
    p.values = lc_mul(lc_index_select(left.values, 0, entry), lc_index_select(right.values, 0, at));
    p.index[0] = lc_stack((lc_tensor *[]){ row, column }, 2, 0), p.nnz = entry->numel;
    lc_tensor *product = p.index[0] && p.values ? lc_coalesce(together(&p)) : NULL;
    return product && !is_coo(a) ? converted_to(product, lc_layout_of(a), NULL) : product;
}

static int check_product(const char *op, const lc_tensor *a, const lc_tensor *b)
{
    if (!a || !b) return -1;
    if (check_matrix(op, a) < 0 || check_matrix(op, b) < 0) return -1;
    if (a->shape[1] != b->shape[0])
        return lc_fail_int(LC_ShapeMismatch, "%s: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", op,
                           (long long)a->shape[0], (long long)a->shape[1], (long long)b->shape[0], (long long)b->shape[1]);
    if (a->dtype != b->dtype)
        return lc_fail_int(LC_DtypeMismatch, "%s: expected m1 and m2 to have the same dtype, but got: %s != %s", op,
                           lc_dtypes[a->dtype].name, lc_dtypes[b->dtype].name);
    return 0;
}
static lc_tensor *product(const char *op, lc_tensor *a, lc_tensor *b) /* of matrices */
{
    compressed_matrix m;
    if (check_product(op, a, b) < 0) return NULL;
    if (is_sparse(a) && is_sparse(b)) return times_sparse(a, b);
    if (!is_sparse(a) && !is_sparse(b)) return lc_mm(a, b);
    if (matrix_of(is_sparse(a) ? a : b, &m) < 0) return NULL;
    if (is_sparse(a)) return times_dense(&m, b);
    transpose_matrix(&m); /* a b = (b' a')' */
    return lc_t(times_dense(&m, lc_t(a)));
}
FORM(mm) { GIVE(product("mm", in(0), in(1))); }
ENTER(mm, mm_form)

static lc_tensor *matrix_vector(const char *op, lc_tensor *matrix, lc_tensor *vector)
{
    if (vector->ndim != 1 || is_sparse(vector))
        return lc_fail(LC_ShapeMismatch, "%s: expected a dense vector, got %s", op, LC_SHAPE(vector));
    lc_tensor *column = product(op, matrix, lc_unsqueeze(vector, 1));
    return column ? lc_select(column, 1, 0) : NULL;
}
FORM(mv) { GIVE(matrix_vector("mv", in(0), in(1))); }
ENTER(mv, mv_form)

/* Matrices of a batch as blocks on the diagonal of one. */
static lc_tensor *batch_product(lc_tensor *a, lc_tensor *b)
{
    parts p;
    if (a->ndim != 3 || b->ndim != 3 || is_sparse(b) || lc_dense_dim(a))
        return lc_fail(LC_NotImplementedError,
                       "bmm: a sparse batch of matrices times a dense one is implemented, got %s (%s) and %s (%s)", LC_SHAPE(a),
                       lc_layout_names[lc_layout_of(a)], LC_SHAPE(b), lc_layout_names[lc_layout_of(b)]);
    int64_t batch = a->shape[0], m = a->shape[1], k = a->shape[2], n = b->shape[2];
    if (b->shape[0] != batch || b->shape[1] != k)
        return lc_fail(
            LC_ShapeMismatch,
            "bmm: Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
            (long long)batch, (long long)k, (long long)b->shape[0], (long long)b->shape[1]);
    if (coo_parts(a, &p) < 0) return NULL;
    if (p.sparse_dim != 3)
        return lc_fail(LC_NotImplementedError, "bmm: all three dimensions must be sparse, got %d", p.sparse_dim);
    lc_tensor *block = index_row(&p, 0), *rows[2] = { lc_add(lc_mul(block, LC_INTEGER(m)), index_row(&p, 1)),
                                                      lc_add(lc_mul(block, LC_INTEGER(k)), index_row(&p, 2)) };
    p.index[0] = lc_stack(rows, 2, 0), p.ndim = p.sparse_dim = 2, p.shape[0] = batch * m, p.shape[1] = batch * k;
    lc_tensor *diagonal = p.index[0] ? together(&p) : NULL;
    lc_tensor *all = diagonal ? product("bmm", diagonal, lc_reshape(b, (int64_t[]){ batch * k, n }, 2)) : NULL;
    return all ? lc_reshape(all, (int64_t[]){ batch, m, n }, 3) : NULL;
}
FORM(bmm) { GIVE(batch_product(in(0), in(1))); }
ENTER(bmm, bmm_form)

FORM(matmul)
{
    lc_tensor *a = in(0), *b = in(1);
    if (a->ndim == 2 && b->ndim == 2) GIVE(product("matmul", a, b));
    if (a->ndim == 2 && b->ndim == 1) GIVE(matrix_vector("matmul", a, b));
    if (a->ndim == 1 && b->ndim == 2) {
        lc_tensor *row = product("matmul", lc_unsqueeze(a, 0), b);
        GIVE(row ? lc_select(row, 0, 0) : NULL);
    }
    if (a->ndim == 3 && b->ndim == 3) GIVE(batch_product(a, b));
    return lc_fail_int(LC_NotImplementedError, "matmul is not implemented for %s and %s of layouts %s and %s", LC_SHAPE(a),
                       LC_SHAPE(b), lc_layout_names[lc_layout_of(a)], lc_layout_names[lc_layout_of(b)]);
}
ENTER(matmul, matmul_form)

/* A layer whose weight is sparse. */
FORM(linear)
{
    lc_tensor *x = in(0), *weight = in(1);
    int64_t    shape[LC_MAX_DIMS];
    if (is_sparse(x) || weight->ndim != 2 || !x->ndim)
        return refuse_layout("linear with such an input", is_sparse(x) ? x : weight);
    lc_tensor *rows = x->ndim == 2 ? x : lc_reshape(x, (int64_t[]){ -1, x->shape[x->ndim - 1] }, 2);
    lc_tensor *y = rows ? product("linear", rows, lc_t(weight)) : NULL;
    memcpy(shape, x->shape, (size_t)x->ndim * sizeof *shape);
    shape[x->ndim - 1] = weight->shape[0];
    if (y && x->ndim != 2) y = lc_reshape(y, shape, x->ndim);
    GIVE(y && in(2) != LC_NONE ? lc_add(y, in(2)) : y);
}
ENTER(linear, linear_form)

/* ---- beta input + alpha product ---- */
static bool       is_one(const lc_value *v) { return v->tag != LC_IS_complex && lc_number_of(v) == 1; }
static lc_tensor *times_number(lc_tensor *t, const lc_value *v) { return is_one(v) ? t : lc_mul(t, number_operand(v)); }
static lc_tensor *added(lc_tensor *input, lc_tensor *made, const lc_value *beta, const lc_value *alpha)
{
    if (!made) return NULL;
    bool none = beta->tag != LC_IS_complex && lc_number_of(beta) == 0;
    made = times_number(made, alpha);
    return none ? made : lc_add(times_number(input, beta), made);
}
FORM(addmm) { GIVE(added(in(0), product("addmm", in(1), in(2)), &in[3], &in[4])); }
ENTER(addmm, addmm_form)
FORM(addmv) { GIVE(added(in(0), matrix_vector("addmv", in(1), in(2)), &in[3], &in[4])); }
ENTER(addmv, addmv_form)

/* ---- alpha mat1 mat2 at the places of input, + beta input ---- */
static int _sparse_sampled_addmm_call(const lc_value *in, lc_tensor **out)
{
    compressed_matrix m;
    parts             p;
    lc_tensor        *a = in(1), *b = in(2);
    if (lc_layout_of(in(0)) != LC_SPARSE_CSR)
        return lc_fail_int(LC_LucidError, "sampled_addmm: Expected self to have sparse csr layout, but got %s",
                           lc_layout_names[lc_layout_of(in(0))]);
    if (is_sparse(a) || is_sparse(b)) return lc_fail_int(LC_LucidError, "sampled_addmm: Expected mat1 and mat2 to be dense");
    if (check_product("sampled_addmm", a, b) < 0 || check_matrix("sampled_addmm", in(0)) < 0) return -1;
    if (in(0)->shape[0] != a->shape[0] || in(0)->shape[1] != b->shape[1])
        return lc_fail_int(LC_ShapeMismatch, "sampled_addmm: self.shape %s must match mat1 @ mat2 of %s and %s",
                           LC_SHAPE(in(0)), LC_SHAPE(a), LC_SHAPE(b));
    if (matrix_of(in(0), &m) < 0 || parts_of(in(0), &p) < 0) return -1;
    lc_tensor *columns = lc_contiguous(lc_t(b), LC_CONTIGUOUS_FORMAT), *dots;
    if (lc_is_floating(a->dtype)) dots = lc__embedding_dot(a, columns, m.plain, m.starts, -1);
    else
        dots = lc_sum(lc_mul(lc_index_select(a, 0, rows_of(m.starts, m.nnz)), lc_index_select(columns, 0, m.plain)),
                      &(int64_t){ 1 }, 1, false);
    GIVE(dots ? with_values(&p, added(p.values, dots, &in[3], &in[4])) : NULL);
}
LC_OP(
    _sparse_sampled_addmm,
    .sig = "_sparse_sampled_addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor",
    .doc = "alpha * (mat1 @ mat2) at the places of a CSR matrix, + beta * input.", .call = _sparse_sampled_addmm_call);
ENTER(_sparse_sampled_addmm, runs_its_body)
