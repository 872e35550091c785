/* Positions of nonzero elements, and conversion of positions. The size of the result depends on the values, so it is
 * allocated here and not by the engine. */
#include "../rules.h"

static int nonzero_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor        *x = in(0);
    const lc_backend *backend = lc_backend_of(x->device);
    int64_t           count = 0;
    if (!backend) return -1;
    if (!backend->can.values) return lc_fail_int(LC_NotImplementedError, "nonzero: the size of the result is unknown on meta");
    if (!backend->has(LC_OP_nonzero, x->dtype))
        return lc_fail_int(LC_NotImplementedError, "nonzero is not implemented for %s on %s", lc_dtypes[x->dtype].name,
                           backend->name);
    lc_nonzero_args args = { .in = x, .count = lc_scoped(lc_tensor_new(LC_i64, x->device, 0, NULL)) };
    if (!args.count || backend->run(LC_OP_nonzero, x->dtype, &args) < 0 || read_int(args.count, &count) < 0) return -1;
    /* Column-major in memory, as in PyTorch: the kernel writes the positions of one dimension after the other. */
    out[0] = lc_scoped(lc_tensor_new_strided(LC_i64, x->device, 2, (int64_t[]){ count, x->ndim }, (int64_t[]){ 1, count }));
    return (args.out = out[0]) ? backend->run(LC_OP_nonzero, x->dtype, &args) : -1;
}
#define POSITIONS .kernel = LC_OP_nonzero, .method = true, .reads_values = true, .call = nonzero_call
LC_OP(nonzero, .strict_out = true, .sig = "nonzero(input: Tensor, *, as_tuple: Literal[False] = False) -> Tensor",
      .doc = "The positions of elements that are not zero, one per row.", .out = true, POSITIONS);
LC_OP(argwhere, .sig = "argwhere(input: Tensor) -> Tensor", .doc = "The positions of elements that are not zero, one per row.",
      POSITIONS);

static int nonzero_count(const lc_value *in) { return in(0)->ndim ? in(0)->ndim : 1; }
static int nonzero_numpy_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0)->ndim ? in(0) : lc_unsqueeze(in(0), 0), *where = x ? lc_nonzero(x, false) : NULL;
    for (int d = 0; where && d < x->ndim; d++)
        if (!(out[d] = lc_select(where, 1, d))) where = NULL;
    return where ? 0 : -1;
}
LC_OP(nonzero_as_tuple, .sig = "nonzero_as_tuple(input: Tensor, *, as_tuple: Literal[True]) -> list[Tensor]", .py = "nonzero",
      .doc = "nonzero as one vector per dimension.", .method = true, .reads_values = true, .count = nonzero_count,
      .call = nonzero_numpy_call);
LC_OP(where_nonzero, .sig = "where_nonzero(condition: Tensor) -> list[Tensor]", .py = "where",
      .doc = "Where condition holds: nonzero as one vector per dimension.", .reads_values = true, .count = nonzero_count,
      .call = nonzero_numpy_call);

static int nonzero_static_call(const lc_value *in, lc_tensor **out)
{
    int64_t size = in[1].i, shape[2] = { size, in(0)->ndim };
    if (size < 0)
        return lc_fail_int(LC_LucidError, "nonzero_static: 'size' must be a non-negative integer, got %lld", (long long)size);
    lc_tensor *found = lc_nonzero(in(0), false);
    lc_tensor *rows =
        lc_full(shape, 2, LC_INTEGER(in[2].i), LC_OF_DTYPE(LC_i64), (lc_value){ .tag = LC_IS_device, .dev = in(0)->device });
    if (!found || !rows) return -1;
    int64_t n = found->shape[0] < size ? found->shape[0] : size;
    if (!lc_copy_(lc_narrow(rows, 0, 0, n), lc_narrow(found, 0, 0, n), false)) return -1;
    return out[0] = rows, 0;
}
LC_OP(nonzero_static, .sig = "nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor",
      .doc = "nonzero with a given number of rows: cut off, or filled up with fill_value.", .method = true, .out = true,
      .reads_values = true, .call = nonzero_static_call);

/* ---- unravel_index: every coordinate at once, (index // what the later dimensions hold) % size ---- */
static lc_tensor *integers(const int64_t *values, int64_t n, lc_device device) /* scoped */
{
    lc_tensor *here = lc_scoped(lc_tensor_new(LC_i64, (lc_device){ 0 }, 1, &n));
    if (!here) return NULL;
    memcpy(here->data, values, (size_t)n * sizeof *values);
    if (lc_same_device(device, here->device)) return here;
    lc_tensor *there = lc_scoped(lc_tensor_new(LC_i64, device, 1, &n));
    return there && move_values(there, here) == 0 ? there : NULL;
}
static int unravel_count(const lc_value *in) { return in[1].n; }
static int unravel_index_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    each[LC_MAX_DIMS];
    int        n = in[1].n;
    if (lc_class_of(x->dtype) != LC_INT)
        return lc_fail_int(LC_TypeError, "unravel_index: expected 'indices' to be integer dtype, but got %s",
                           lc_dtypes[x->dtype].name);
    if (n > LC_MAX_DIMS) return lc_fail_int(LC_ValueError, "unravel_index: at most %d dimensions, got %d", LC_MAX_DIMS, n);
    for (int d = n - 1; d >= 0; d--) {
        if (in[1].is[d] < 0)
            return lc_fail_int(LC_ValueError, "unravel_index: 'shape' cannot have negative values, but got %s",
                               LC_SIZES(in[1].is, n));
        if (d == n - 1) each[d] = 1;
        else if (__builtin_mul_overflow(each[d + 1], in[1].is[d + 1], &each[d]))
            return lc_fail_int(LC_ValueError, "unravel_index: %s has too many elements", LC_SIZES(in[1].is, n));
    }
    lc_tensor *quotient = lc_floor_divide(lc_unsqueeze(x, -1), integers(each, n, x->device));
    return lc_unbind(lc_remainder(quotient, integers(in[1].is, n, x->device)), -1, out);
}
LC_OP(unravel_index, .sig = "unravel_index(indices: Tensor, shape: list[int]) -> list[Tensor]",
      .doc = "The coordinates, a tensor per dimension of shape, of positions in a flattened tensor.", .count = unravel_count,
      .call = unravel_index_call);
