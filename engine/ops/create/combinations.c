/* Combinations, Cartesian products, repetitions. The host computes the indices; index_select does the rest, and has the
 * gradient. */
#include "../rules.h"

static lc_tensor *host_indices(int64_t n) { return lc_scoped(lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, 1, &n)); }
static lc_tensor *chosen(lc_tensor *x, int64_t dim, lc_tensor *index) /* scoped */
{
    if (!x) return NULL;
    if (index && !lc_same_device(index->device, x->device)) index = lc__to_copy(index, LC_i64, x->device, LC_PRESERVE_FORMAT);
    return lc_index_select(x, dim, index);
}

static int vector_only(const lc_tensor *x)
{
    if (x->ndim == 1) return 0;
    return lc_fail_int(LC_ShapeMismatch, "Expect a 1D vector, but got shape %s", LC_SIZES(x->shape, x->ndim));
}

static int cartesian_prod_call(const lc_value *in, lc_tensor **out)
{
    int         n = in[0].n;
    size_t      bytes = (size_t)(n + 1) * sizeof(lc_tensor *);
    lc_tensor **grid;
    for (int k = 0; k < n; k++)
        if (vector_only(in[0].ts[k]) < 0) return -1;
    if (n == 1) return *out = in[0].ts[0], 0;
    if (!(grid = lc_alloc(bytes))) return -1;
    int rc = lc_meshgrid(in[0].ts, n, "ij", grid);
    for (int k = 0; k < n && rc == 0; k++) rc = (grid[k] = lc_flatten(grid[k], 0, -1)) ? 0 : -1;
    if (rc == 0) rc = (*out = lc_stack(grid, n, 1)) ? 0 : -1;
    lc_free(grid, bytes);
    return rc;
}
LC_OP(cartesian_prod, .sig = "cartesian_prod(*tensors: Tensor) -> Tensor",
      .doc = "Every choice of one element from each vector, as rows.", .call = cartesian_prod_call);

/* The number of combinations of r out of n; -1 after lc_fail if they cannot be stored. */
static int64_t choices(int64_t n, int64_t r, bool again)
{
    __int128 count = 1;
    if (again) n += r > 0 ? r - 1 : 0;
    if (r > n) return 0;
    for (int64_t i = 1; i <= r; i++) {
        count = count * (n - r + i) / i;
        if (count > (int64_t)1 << 48) return lc_fail_int(LC_OutOfMemory, "combinations: too many to count");
    }
    return (int64_t)count;
}
static int combinations_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0), *index;
    int64_t    r = in[1].i, count;
    if (vector_only(x) < 0) return -1;
    if (r < 0) return lc_fail_int(LC_LucidError, "Expect a non-negative number, but got %lld", (long long)r);
    if (r == 0) return (*out = lc_narrow(x, 0, 0, 0)) && (*out = lc_clone(*out, LC_CONTIGUOUS_FORMAT)) ? 0 : -1;
    if (r > 1 << 20) return lc_fail_int(LC_OutOfMemory, "combinations: %lld elements are too many", (long long)r);
    if ((count = choices(x->shape[0], r, in[2].b)) < 0 || !(index = host_indices(count * r))) return -1;
    int64_t *row = (int64_t *)index->data, n = x->shape[0], step = in[2].b ? 0 : 1;
    for (int64_t i = 0; i < r && count; i++) row[i] = i * step;
    for (int64_t c = 1; c < count; c++, row += r) { /* the last place that can still count up does */
        int64_t at = r - 1;
        memcpy(row + r, row, (size_t)r * sizeof *row);
        while (row[at] == n - 1 - (r - 1 - at) * step) at--;
        row[r + at]++;
        for (int64_t i = at + 1; i < r; i++) row[r + i] = row[r + i - 1] + step;
    }
    lc_dtype wide = working_dtype((lc_dtype)x->dtype); /* in which the gradient is summed */
    if (wide != x->dtype) x = lc__to_copy(x, wide, x->device, LC_PRESERVE_FORMAT);
    lc_tensor *rows = lc_reshape(chosen(x, 0, index), (int64_t[]){ count, r }, 2);
    if (rows && wide != in(0)->dtype) rows = lc__to_copy(rows, (lc_dtype)in(0)->dtype, rows->device, LC_PRESERVE_FORMAT);
    return (*out = rows) ? 0 : -1;
}
LC_OP(combinations, .sig = "combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor",
      .doc = "Every choice of r elements of a vector, in order, as rows.", .call = combinations_call);

/* ---- repeat_interleave ---- */

/* Index k, repeated counts[k] times: the source element of each position of the result. Scoped, on the CPU. */
static lc_tensor *expanded_counts(lc_tensor *counts, int64_t n, const lc_value *output_size)
{
    int64_t total = 0, wanted;
    if (counts->dtype != LC_i64 && counts->dtype != LC_i32)
        return lc_fail(LC_DtypeMismatch, "repeats has to be Long or Int tensor, got %s", LC_SHAPE(counts));
    lc_tensor *each = lc_scoped(lc_tensor_new(LC_i64, (lc_device){ LC_CPU, 0 }, counts->ndim, counts->shape));
    if (!each || move_values(each, counts) < 0) return NULL;
    const int64_t *times = (const int64_t *)each->data;
    bool           one = counts->numel == 1;
    for (int64_t k = 0; k < n; k++) {
        if (times[one ? 0 : k] < 0) return lc_fail(LC_LucidError, "repeats can not be negative");
        if (__builtin_add_overflow(total, times[one ? 0 : k], &total))
            return lc_fail(LC_OutOfMemory, "repeat_interleave: the result is too large");
    }
    if (int_argument(output_size, &wanted) && wanted != total)
        return lc_fail(LC_ShapeMismatch, "allocated size does not match required size: %lld and %lld", (long long)wanted,
                       (long long)total);
    lc_tensor *index = host_indices(total);
    int64_t   *to = index ? (int64_t *)index->data : NULL;
    for (int64_t k = 0; k < n && to; k++)
        for (int64_t i = times[one ? 0 : k]; i > 0; i--) *to++ = k;
    return index;
}

static int repeat_interleave_counts_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *counts = in(0);
    if (counts->ndim != 1) return lc_fail_int(LC_ShapeMismatch, "repeat_interleave only accept 1D vector as repeat");
    lc_tensor *index = expanded_counts(counts, counts->shape[0], &in[1]);
    return (*out = index ? lc__to_copy(index, (lc_dtype)counts->dtype, counts->device, LC_PRESERVE_FORMAT) : NULL) ? 0 : -1;
}
LC_OP(repeat_interleave_counts, .py = "repeat_interleave",
      .sig = "repeat_interleave_counts(repeats: Tensor, *, output_size: int | None = None) -> Tensor",
      .doc = "Each index, repeated as often as repeats says.", .reads_values = true, .call = repeat_interleave_counts_call);

/* dim absent: of the flattened input. */
static lc_tensor *along_dim(const lc_value *in, int *d)
{
    lc_tensor *x = in(0);
    int64_t    dim = 0;
    if (!int_argument(&in[2], &dim)) x = lc_flatten(x, 0, -1);
    else if (x->ndim == 0) x = lc_flatten(x, 0, 0);
    return x && dim_index(dim, x->ndim, d) < 0 ? NULL : x;
}

static int repeat_interleave_each_call(const lc_value *in, lc_tensor **out)
{
    int        d;
    lc_tensor *x = along_dim(in, &d), *counts = in(1);
    if (!x) return -1;
    if (counts->ndim > 1) return lc_fail_int(LC_ShapeMismatch, "repeats must be 0-dim or 1-dim tensor");
    if (counts->numel != 1 && counts->numel != x->shape[d])
        return lc_fail_int(LC_ShapeMismatch,
                           "repeats must have the same size as input along dim, but got repeats.size(0) = %lld and "
                           "input.size(%d) = %lld",
                           (long long)counts->numel, d, (long long)x->shape[d]);
    lc_tensor *index = expanded_counts(counts, x->shape[d], &in[3]);
    return (*out = index ? chosen(x, d, index) : NULL) ? 0 : -1;
}
LC_OP(repeat_interleave_each, .py = "repeat_interleave",
      .sig = "repeat_interleave_each(input: Tensor, repeats: Tensor, dim: int | None = None, *, "
             "output_size: int | None = None) -> Tensor",
      .doc = "Each element along dim, repeated as often as its entry in repeats says.", .method = true, .reads_values = true,
      .any_device = IN(1), .call = repeat_interleave_each_call);

static int repeat_interleave_call(const lc_value *in, lc_tensor **out)
{
    int64_t    shape[LC_MAX_DIMS], times = in[1].i, wanted;
    int        d;
    lc_tensor *x = along_dim(in, &d);
    if (!x) return -1;
    if (in(0)->ndim == 0 && in[2].tag == LC_IS_int)
        return lc_fail_int(LC_IndexError, "Dimension specified as %lld but tensor has no dimensions", (long long)in[2].i);
    if (times < 0) return lc_fail_int(LC_LucidError, "Repeats must be non-negative");
    if (x->ndim == LC_MAX_DIMS)
        return lc_fail_int(LC_ShapeMismatch, "%d dimensions: at most %d are supported", x->ndim, LC_MAX_DIMS - 1);
    for (int e = 0; e < x->ndim; e++) shape[e < d + 1 ? e : e + 1] = x->shape[e];
    shape[d + 1] = times;
    if (int_argument(&in[3], &wanted) && wanted != times * x->shape[d])
        return lc_fail_int(LC_ShapeMismatch, "repeat_interleave: Invalid output_size, expected %lld but got %lld",
                           (long long)(times * x->shape[d]), (long long)wanted);
    lc_tensor *each = lc_expand(lc_unsqueeze(x, d + 1), shape, x->ndim + 1);
    return (*out = lc_flatten(lc_clone(each, LC_CONTIGUOUS_FORMAT), d, d + 1)) ? 0 : -1;
}
LC_OP(repeat_interleave,
      .sig = "repeat_interleave(input: Tensor, repeats: int, dim: int | None = None, *, output_size: int | None = None) -> "
             "Tensor",
      .doc = "Each element along dim several times; without dim, of the flattened input.", .method = true,
      .call = repeat_interleave_call);
