/* Distinct values, and distinct slices along a dimension. How many there are depends on the values, so results are made here. */
#include "../rules.h"

static int run_unique(const lc_tensor *x, lc_unique_args *a)
{
    const lc_backend *backend = lc_backend_of(x->device);
    if (!backend) return -1;
    if (!backend->can.values) return lc_fail_int(LC_NotImplementedError, "unique: the size of the result is unknown on meta");
    if (!backend->has(LC_OP_unique, (lc_dtype)x->dtype))
        return lc_fail_int(LC_NotImplementedError, "unique is not implemented for %s on %s", lc_dtypes[x->dtype].name,
                           backend->name);
    return backend->run(LC_OP_unique, (lc_dtype)x->dtype, a);
}

/* What has capacity for more becomes a tensor of n: of its own size if that spares much, else as it is. */
static lc_tensor *front(lc_tensor *t, int64_t n)
{
    if (n < t->numel / 2) return lc_clone(lc_narrow(t, 0, 0, n), LC_CONTIGUOUS_FORMAT);
    return lc_tensor_resize(t, 1, &n) < 0 ? NULL : t;
}
static lc_tensor *vector(lc_dtype dtype, lc_device device, int64_t n) { return lc_scoped(lc_tensor_new(dtype, device, 1, &n)); }

typedef struct {
    bool inverse, counts, consecutive;
} wanted;
static int make_outputs(const lc_unique_args *a, int64_t n)
{
    a->outputs->chosen = vector(a->slices ? LC_i64 : (lc_dtype)a->in->dtype, a->in->device, n);
    if (a->counts) a->outputs->counts = vector(LC_i64, a->in->device, n);
    return a->outputs->chosen && (a->outputs->counts || !a->counts) ? 0 : -1;
}

/* Fill out[0], then inverse and counts as wanted. x: contiguous; width 0: single values, of which *chosen are some, else indices of slices. */
static int distinct(lc_tensor *x, int64_t n, int64_t width, lc_tensor **chosen, lc_tensor *inverse, wanted w, lc_tensor **out)
{
    int64_t           found = 0;
    lc_unique_outputs outputs = { 0 };
    lc_unique_args    a = { .in = x,
                            .n = n,
                            .width = width ? width : 1,
                            .slices = width > 0,
                            .counts = w.counts,
                            .consecutive = w.consecutive,
                            .found = lc_scoped(lc_tensor_new(LC_i64, x->device, 0, NULL)),
                            .outputs = &outputs,
                            .make = make_outputs };
    if (!inverse || !a.found) return -1;
    if (w.inverse) a.inverse = inverse;
    if (run_unique(x, &a) < 0 || read_int(a.found, &found) < 0) return -1;
    int k = 1;
    if (w.inverse) out[k++] = inverse;
    if (w.counts && !(out[k++] = front(outputs.counts, found))) return -1;
    return (*chosen = front(outputs.chosen, found)) ? 0 : -1;
}

static int unique_flat(lc_tensor *x, wanted w, lc_tensor **out)
{
    lc_tensor *inverse = w.inverse ? lc_scoped(lc_tensor_new(LC_i64, x->device, x->ndim, x->shape)) : LC_NONE;
    lc_tensor *packed = lc_contiguous(x, LC_CONTIGUOUS_FORMAT);
    return packed ? distinct(packed, x->numel, 0, &out[0], inverse, w, out) : -1;
}

/* Along a dimension: it goes to the front, slices become rows, and those chosen go back. */
static int unique_along(lc_tensor *x, int64_t dim, wanted w, lc_tensor **out)
{
    int64_t order[LC_MAX_DIMS], back[LC_MAX_DIMS], n;
    int     d, empty = 0;
    if (x->ndim == 0) return lc_fail_int(LC_IndexError, "unique: a single value has no dimension %lld", (long long)dim);
    if (dim_index(dim, x->ndim, &d) < 0) return -1;
    n = x->shape[d];
    for (int e = 0; e < x->ndim; e++) empty += x->shape[e] == 0;
    if (empty > (n == 0))
        return lc_fail_int(LC_LucidError, "unique: %s has no elements, and not only along dimension %d", LC_SHAPE(x), d);
    for (int e = 0; e < x->ndim; e++) order[e] = e == 0 ? d : e <= d ? e - 1 : e, back[order[e]] = e;
    lc_tensor *rows = lc_contiguous(lc_permute(x, order, x->ndim), LC_CONTIGUOUS_FORMAT), *chosen;
    lc_tensor *inverse = w.inverse ? vector(LC_i64, x->device, n) : LC_NONE;
    if (!rows || distinct(rows, n, n ? x->numel / n : 1, &chosen, inverse, w, out) < 0) return -1;
    return (out[0] = lc_permute(lc_index_select(rows, 0, chosen), back, x->ndim)) ? 0 : -1;
}

static int unique_as(lc_tensor *x, const lc_value *dim, wanted w, lc_tensor **out)
{
    return dim->tag == LC_IS_int ? unique_along(x, dim->i, w, out) : unique_flat(x, w, out);
}
GRAD(unique)
{
    lc_fail(LC_NotImplementedError, "the derivative for 'unique' is not implemented");
    dx[0] = NULL;
}
static int unique_count(const lc_value *in) { return 1 + in[2].b + in[3].b; }
static int unique_call(const lc_value *in, lc_tensor **out)
{
    return unique_as(in(0), &in[4], (wanted){ in[2].b, in[3].b, false }, out);
}
LC_OP(unique,
      .sig = "unique(input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, "
             "dim: int | None = None) -> Tensor | list[Tensor]",
      .doc = "The distinct values, or the distinct slices along dim, in ascending order (whatever `sorted` says); with "
             "return_inverse where "
             "each element went, with return_counts how many there are of each.",
      .method = true, .reads_values = true, .count = unique_count, .call = unique_call, .grad = unique_grad);

static int unique_consecutive_count(const lc_value *in) { return 1 + in[1].b + in[2].b; }
static int unique_consecutive_call(const lc_value *in, lc_tensor **out)
{
    return unique_as(in(0), &in[3], (wanted){ in[1].b, in[2].b, true }, out);
}
LC_OP(unique_consecutive,
      .sig = "unique_consecutive(input: Tensor, return_inverse: bool = False, return_counts: bool = False, "
             "dim: int | None = None) -> Tensor | list[Tensor]",
      .doc = "The input with runs of equal values, or of equal slices along dim, cut down to their first.", .method = true,
      .reads_values = true, .count = unique_consecutive_count, .call = unique_consecutive_call, .grad = unique_grad);
