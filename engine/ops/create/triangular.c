/* Diagonals and triangles: matrices from diagonals, parts of matrices on one side of a diagonal, and the indices of such parts. */
#include "create.h"

/* ---- triangles ---- */
static int triangle_shape(const lc_record *call, lc_spec *out)
{
    if (call->in[0]->ndim < 2)
        return lc_fail_int(LC_ShapeMismatch, "%s: input tensor must have at least 2 dimensions", call->op->name);
    return spec_like(call, out, call->in[0], (lc_dtype)call->in[0]->dtype), 0;
}
static int triangle(const lc_record *call, bool upper)
{
    return run_kernel_with(
        call, &(lc_triangle_args){ .out = call->out[0], .in = call->in[0], .diagonal = call->args[1].i, .upper = upper });
}
#define IS_TRIANGLE                                                                                                            \
    .method = true, .inplace = true, .out = true, .promote = LC_NO_PROMOTION, .shape = triangle_shape, .kernel = LC_OP_tril

static int tril_run(const lc_record *call) { return triangle(call, false); }
GRAD(tril) { dx[0] = lc_tril(g[0], in[1].i); }
LC_OP(tril, .batching = LC_BATCH_FRONT, .batched = IN(0), .sig = "tril(input: Tensor, diagonal: int = 0) -> Tensor",
      .doc = "The lower triangle of matrices; zero above the diagonal.", IS_TRIANGLE, .run = tril_run, .grad = tril_grad);
static int triu_run(const lc_record *call) { return triangle(call, true); }
GRAD(triu) { dx[0] = lc_triu(g[0], in[1].i); }
LC_OP(triu, .batching = LC_BATCH_FRONT, .batched = IN(0), .sig = "triu(input: Tensor, diagonal: int = 0) -> Tensor",
      .doc = "The upper triangle of matrices; zero below the diagonal.", IS_TRIANGLE, .run = triu_run, .grad = triu_grad);

/* Columns of row r that belong to the lower triangle: [0, that many). */
typedef unsigned __int128 wide;
static int64_t            columns_below(int64_t r, int64_t columns, int64_t offset, bool upper)
{
    __int128 n = (__int128)r + offset + !upper;
    return n < 0 ? 0 : n > columns ? columns : (int64_t)n;
}
/* The number of elements of rows that end at 1, 2, ... n columns, or at all columns. */
static wide elements_below(__int128 n, int64_t columns)
{
    wide all = (wide)columns;
    if (n <= 0) return 0;
    return n <= columns ? (wide)n * ((wide)n + 1) / 2 : all * (all + 1) / 2 + ((wide)n - all) * all;
}
static int indices_shape(const lc_record *call, lc_spec *out, bool upper) /* (row, col, offset, *, dtype, device) */
{
    const lc_value *a = call->args;
    int64_t         rows = a[0].i, columns = a[1].i;
    if (rows < 0) return lc_fail_int(LC_LucidError, "row must be non-negative, got %lld", (long long)rows);
    if (columns < 0) return lc_fail_int(LC_LucidError, "col must be non-negative, got %lld", (long long)columns);
    __int128 before = (__int128)a[2].i - upper; /* columns of the row above the first */
    wide     n = elements_below(before + rows, columns) - elements_below(before, columns);
    if (upper) n = (wide)rows * (wide)columns - n;
    if (n > INT64_MAX / 16) return lc_fail_int(LC_OutOfMemory, "%s: too many indices", call->op->name);
    return factory_shape(call, out, &a[3], LC_i64, &a[4], 2, (int64_t[]){ 2, (int64_t)n });
}
static int indices_run(const lc_record *call, bool upper)
{
    const lc_value *a = call->args;
    lc_tensor      *out = call->out[0], *made = out;
    bool            direct = out->dtype == LC_i64 && out->is_contiguous && lc_can(out)->host_memory;
    if (!direct && !(made = lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, 2, out->shape))) return -1;
    int64_t *row = (int64_t *)made->data, *column = row + out->shape[1];
    int64_t  left = out->shape[1], first = !left || upper || a[2].i >= 0 ? 0 : -a[2].i; /* the first row that has some */
    for (int64_t r = first; left > 0; r++) {
        int64_t below = columns_below(r, a[1].i, a[2].i, upper);
        for (int64_t c = upper ? below : 0; c < (upper ? a[1].i : below); c++) *row++ = r, *column++ = c, left--;
    }
    if (direct) return 0;
    int rc = move_values(out, made);
    return lc_release(made), rc;
}
static int tril_indices_shape(const lc_record *call, lc_spec *out) { return indices_shape(call, out, false); }
static int triu_indices_shape(const lc_record *call, lc_spec *out) { return indices_shape(call, out, true); }
static int tril_indices_run(const lc_record *call) { return indices_run(call, false); }
static int triu_indices_run(const lc_record *call) { return indices_run(call, true); }
LC_OP(tril_indices,
      .sig = "tril_indices(row: int, col: int, offset: int = 0, *, dtype: dtype | None = None, device: device | None = None) "
             "-> Tensor",
      .doc = "Rows and columns of the lower triangle of a matrix.", .factory = true, .shape = tril_indices_shape,
      .run = tril_indices_run);
LC_OP(triu_indices,
      .sig = "triu_indices(row: int, col: int, offset: int = 0, *, dtype: dtype | None = None, device: device | None = None) "
             "-> Tensor",
      .doc = "Rows and columns of the upper triangle of a matrix.", .factory = true, .shape = triu_indices_shape,
      .run = triu_indices_run);

/* ---- diagonals ---- */
static int diag_embed_call(const lc_value *in, lc_tensor **out) /* (input, offset, dim1, dim2) */
{
    lc_tensor *x = in(0);
    int64_t    shape[LC_MAX_DIMS], side, offset = in[1].i;
    int        ndim = x->ndim + 1, d1, d2;
    if (ndim > LC_MAX_DIMS) return lc_fail_int(LC_ShapeMismatch, "%d dimensions: at most %d are supported", ndim, LC_MAX_DIMS);
    if (dim_index(in[2].i, ndim, &d1) < 0 || dim_index(in[3].i, ndim, &d2) < 0) return -1;
    if (d1 == d2) return lc_fail_int(LC_ShapeMismatch, "diagonal dimensions cannot be identical %d, %d", d1, d2);
    if (x->ndim == 0) return lc_fail_int(LC_IndexError, "Dimension specified as -1 but tensor has no dimensions");
    if (offset == INT64_MIN || __builtin_add_overflow(x->shape[x->ndim - 1], offset < 0 ? -offset : offset, &side))
        return lc_fail_int(LC_OutOfMemory, "diag_embed: offset %lld is too large", (long long)offset);
    for (int d = 0, from = 0; d < ndim; d++) shape[d] = d == d1 || d == d2 ? side : x->shape[from++];
    return (*out = lc_diagonal_backward(x, shape, ndim, offset, d1, d2)) ? 0 : -1;
}
LC_OP(diag_embed, .sig = "diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor",
      .doc = "Matrices with the last dimension of input on a diagonal, zero elsewhere.", .method = true,
      .call = diag_embed_call);

static lc_tensor *diag(lc_tensor *x, int64_t diagonal)
{
    return x && x->ndim == 1 ? lc_diag_embed(x, diagonal, 0, 1) : lc_diagonal_copy(x, diagonal, 0, 1);
}
static int diag_call(const lc_value *in, lc_tensor **out)
{
    if (in(0)->ndim != 1 && in(0)->ndim != 2)
        return lc_fail_int(LC_ShapeMismatch, "diag(): Supports 1D or 2D tensors. Got %dD", in(0)->ndim);
    return (*out = diag(in(0), in[1].i)) ? 0 : -1;
}
LC_OP(diag, .strict_out = true, .sig = "diag(input: Tensor, diagonal: int = 0) -> Tensor",
      .doc = "A vector as the diagonal of a matrix, or the diagonal of a matrix as a vector.", .method = true, .out = true,
      .call = diag_call);

static int diagflat_call(const lc_value *in, lc_tensor **out)
{
    return (*out = diag(lc_reshape(in(0), &in(0)->numel, 1), in[1].i)) ? 0 : -1;
}
LC_OP(diagflat, .sig = "diagflat(input: Tensor, offset: int = 0) -> Tensor", .doc = "All elements on the diagonal of a matrix.",
      .method = true, .call = diagflat_call);

/* The main diagonal of all dimensions. With wrap, the diagonal of a tall matrix starts again below each square, after one
 * skipped row. */
static int fill_diagonal__call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *value = number_operand(&in[1]);
    int64_t    step = 0, size = INT64_MAX;
    if (x->ndim < 2) return lc_fail_int(LC_ShapeMismatch, "dimensions must larger than 1");
    for (int d = 0; d < x->ndim; d++) {
        step += x->stride[d], size = x->shape[d] < size ? x->shape[d] : size;
        if (x->ndim > 2 && x->shape[d] != x->shape[0])
            return lc_fail_int(LC_ShapeMismatch, "all dimensions of input must be of equal length");
    }
    int64_t again = in[2].b && x->ndim == 2 && size ? x->shape[1] + 1 : x->shape[0] + 1;
    for (int64_t row = 0; row < x->shape[0]; row += again) {
        int64_t length = x->shape[0] - row < size ? x->shape[0] - row : size;
        if (!lc_fill_(lc_as_strided_from(x, &length, 1, &step, 1, row * x->stride[0]), value)) return -1;
    }
    return *out = x, 0;
}
LC_OP(fill_diagonal_, .sig = "fill_diagonal_(input: Tensor, fill_value: Number, wrap: bool = False) -> Tensor",
      .doc = "Write one value on the main diagonal.", .method = true, .function = false, .writes = IN(0),
      .call = fill_diagonal__call);

/* ---- matrices on the diagonal of a matrix ---- */
static int64_t rows_of(const lc_tensor *t) { return t->ndim == 2 ? t->shape[0] : 1; }
static int64_t columns_of(const lc_tensor *t) { return t->ndim ? t->shape[t->ndim - 1] : 1; }

static int block_diag_shape(const lc_record *call, lc_spec *out)
{
    int64_t shape[2] = { call->n_in == 0, 0 };
    for (int k = 0; k < call->n_in; k++) {
        const lc_tensor *t = call->in[k];
        if (t->ndim > 2)
            return lc_fail_int(LC_ShapeMismatch,
                               "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %d has %d dimensions", k,
                               t->ndim);
        if (__builtin_add_overflow(shape[0], rows_of(t), &shape[0]) ||
            __builtin_add_overflow(shape[1], columns_of(t), &shape[1]))
            return lc_fail_int(LC_OutOfMemory, "block_diag: the result is too large");
    }
    return spec_shape(call, out, call->n_in ? call->dtype : lc_default_dtype, 2, shape);
}
static int block_diag_run(const lc_record *call)
{
    lc_tensor *out = call->out[0];
    int64_t    row = 0, column = 0;
    int        rc = call->backend->fill(out, LC_INTEGER(0));
    for (int k = 0; k < call->n_in && rc == 0; k++) {
        lc_tensor *t = call->in[k], *place = lc_tensor_view(out, 2, (int64_t[]){ rows_of(t), columns_of(t) }, out->stride,
                                                            row * out->stride[0] + column * out->stride[1]);
        rc = place ? call->backend->copy(place, t) : -1;
        lc_release(place);
        row += rows_of(t), column += columns_of(t);
    }
    return rc;
}
GRAD(block_diag)
{
    int64_t row = 0, column = 0;
    for (int k = 0; k < in[0].n; k++) {
        lc_tensor *t = in[0].ts[k];
        if (need[k])
            dx[k] = lc_reshape(lc_narrow(lc_narrow(g[0], 0, row, rows_of(t)), 1, column, columns_of(t)), t->shape, t->ndim);
        row += rows_of(t), column += columns_of(t);
    }
}
LC_OP(block_diag, .sig = "block_diag(*tensors: Tensor) -> Tensor",
      .doc = "Matrices along the diagonal of a matrix, zero elsewhere.", .shape = block_diag_shape, .run = block_diag_run,
      .grad = block_diag_grad);

static int vander_call(const lc_value *in, lc_tensor **out) /* (x, N, increasing) */
{
    lc_tensor *x = in(0);
    int64_t    n;
    if (x->ndim != 1) return lc_fail_int(LC_ShapeMismatch, "x must be a one-dimensional tensor.");
    n = x->shape[0];
    if (int_argument(&in[1], &n) && n < 0) return lc_fail_int(LC_LucidError, "N must be non-negative.");
    lc_dtype dtype = lc_class_of(x->dtype) <= LC_INT ? LC_i64 : (lc_dtype)x->dtype;
    lc_value device = { .tag = LC_IS_device, .dev = x->device };
    if (n == 0) return (*out = lc_empty((int64_t[]){ x->shape[0], 0 }, 2, LC_OF_DTYPE(dtype), device, LC_ABSENT)) ? 0 : -1;
    lc_tensor *one = lc_ones((int64_t[]){ x->shape[0], 1 }, 2, LC_OF_DTYPE(dtype), device);
    lc_tensor *rest = lc_expand(lc_unsqueeze(x, 1), (int64_t[]){ x->shape[0], n - 1 }, 2);
    lc_tensor *powers = lc_cumprod(lc_cat((lc_tensor *[]){ one, rest }, 2, 1), 1, LC_ABSENT);
    return (*out = in[2].b ? powers : lc_flip(powers, (int64_t[]){ 1 }, 1)) ? 0 : -1;
}
LC_OP(vander, .sig = "vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor",
      .doc = "The powers of each element, as rows.", .call = vander_call);
