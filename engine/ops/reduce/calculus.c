/* Differences, finite-difference gradients and the trapezoidal rule: formulas over neighbours along a dimension. */
#include "../rules.h"

static lc_tensor *part(lc_tensor *x, int d, int64_t start, int64_t length) { return x ? lc_narrow(x, d, start, length) : NULL; }
static int64_t    one_less(int64_t n) { return n ? n - 1 : 0; }
static lc_tensor *but_last(lc_tensor *x, int d) { return x ? part(x, d, 0, one_less(x->shape[d])) : NULL; }
static lc_tensor *but_first(lc_tensor *x, int d) { return x ? part(x, d, x->shape[d] > 0, one_less(x->shape[d])) : NULL; }
static lc_tensor *times(double factor, lc_tensor *x) { return lc_mul(LC_NUMBER(factor), x); }

/* ---- diff ---- */

static lc_tensor *extended(lc_tensor *x, lc_tensor *before, lc_tensor *after, int64_t dim)
{
    lc_tensor *parts[3];
    int        n = 0;
    for (int k = 0; k < 3; k++) {
        lc_tensor *t = k == 0 ? before : k == 1 ? x : after;
        if (t == LC_NONE) continue;
        if (t->ndim != x->ndim)
            return lc_fail(LC_ShapeMismatch, "diff expects prepend or append to be the same dimension as input");
        parts[n++] = t;
    }
    return n == 1 ? x : lc_cat(parts, n, dim);
}
static int diff_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    int64_t    n = in[1].i;
    int        d;
    if (x->ndim == 0) return lc_fail_int(LC_ShapeMismatch, "diff expects input to be at least one-dimensional");
    if (n < 0) return lc_fail_int(LC_LucidError, "order must be non-negative but got %lld", (long long)n);
    if (n == 0) { /* dim is not checked, unless something is concatenated there */
        bool joins = in(3) != LC_NONE || in(4) != LC_NONE;
        if (joins && (dim_index(in[2].i, x->ndim, &d) < 0 || !extended(x, in(3), in(4), d))) return -1;
        return (out[0] = lc_clone(x, LC_PRESERVE_FORMAT)) ? 0 : -1;
    }
    if (dim_index(in[2].i, x->ndim, &d) < 0 || !(x = extended(x, in(3), in(4), d))) return -1;
    if (n > x->shape[d]) n = x->shape[d];
    if (n == 0) return (out[0] = lc_clone(x, LC_PRESERVE_FORMAT)) ? 0 : -1;
    for (bool logical = x->dtype == LC_b8; n-- && x;)
        x = logical ? lc_logical_xor(but_first(x, d), but_last(x, d)) : lc_sub(but_first(x, d), but_last(x, d));
    return (out[0] = x) ? 0 : -1;
}
LC_OP(diff, .strict_out = true,
      .sig = "diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> "
             "Tensor",
      .doc = "Differences of neighbours along a dimension, n times over.", .method = true, .out = true, .call = diff_call);

/* ---- gradient: second order inside, one-sided at the edges ---- */

static int gradient_dims(const lc_value *in, int *dims) /* how many; -1 after lc_fail */
{
    const lc_tensor *x = in(0);
    const lc_value  *dim = &in[2];
    int64_t          order = in[3].i;
    bool             all = dim->tag == LC_IS_none;
    uint64_t         seen = 0;
    int              n = all ? x->ndim : dim->n;
    if (x->dtype == LC_u8) return lc_fail_int(LC_LucidError, "torch.gradient does not support uint8 input.");
    if (order != 1 && order != 2)
        return lc_fail_int(LC_LucidError, "torch.gradient only supports edge_order=1 and edge_order=2.");
    for (int i = 0; i < n; i++) {
        if (dim_index(all ? i : dim->is[i], x->ndim, &dims[i]) < 0) return -1;
        if (seen >> dims[i] & 1)
            return lc_fail_int(LC_LucidError, "dim %d appears multiple times in the list of dims", dims[i]);
        seen |= 1ull << dims[i];
        if (x->ndim && x->shape[dims[i]] < order + 1)
            return lc_fail_int(LC_ShapeMismatch, "torch.gradient expected each dimension size to be at least edge_order+1");
    }
    return n;
}
static int gradient_count(const lc_value *in)
{
    int dims[LC_MAX_DIMS];
    if (in[2].tag == LC_IS_ints && in[2].n > LC_MAX_DIMS)
        return lc_fail_int(LC_LucidError, "torch.gradient: %d dimensions are too many", in[2].n);
    return gradient_dims(in, dims);
}
static int spacing_fits(int n, int wanted)
{
    if (n == wanted) return 0;
    return lc_fail_int(LC_LucidError,
                       "torch.gradient expected spacing to be unspecified, a scalar or a list of length %d, but got a list of "
                       "length %d",
                       wanted, n);
}
static lc_tensor *joined(lc_tensor *first, lc_tensor *inside, lc_tensor *last, int d)
{
    return lc_cat((lc_tensor *[]){ first, inside, last }, 3, d);
}

static lc_tensor *evenly_spaced(lc_tensor *x, int d, lc_tensor *step, bool second_order)
{
    int64_t    n = x->shape[d];
    lc_tensor *x0 = part(x, d, 0, 1), *x1 = part(x, d, 1, 1), *y0 = part(x, d, n - 1, 1), *y1 = part(x, d, n - 2, 1);
    lc_tensor *inside = times(0.5, lc_div(lc_sub(part(x, d, 2, n - 2), part(x, d, 0, n - 2)), step)), *first, *last;
    if (second_order) {
        first = lc_sub(lc_add(times(-1.5, x0), times(2, x1)), times(0.5, part(x, d, 2, 1)));
        last = lc_add(lc_sub(times(0.5, part(x, d, n - 3, 1)), times(2, y1)), times(1.5, y0));
    } else {
        first = lc_sub(x1, x0), last = lc_sub(y0, y1);
    }
    return joined(lc_div(first, step), inside, lc_div(last, step), d);
}

/* Weights of three neighbours whose distances are p and q, at the left, the middle and the right one. */
typedef struct {
    lc_tensor *a, *b, *c;
} weights;
static weights weights_at(int place, lc_tensor *p, lc_tensor *q)
{
    lc_tensor *sum = lc_add(p, q), *psum = lc_mul(p, sum), *qsum = lc_mul(q, sum), *pq = lc_mul(p, q);
    if (place < 0) return (weights){ lc_neg(lc_div(lc_add(times(2, p), q), psum)), lc_div(sum, pq), lc_neg(lc_div(p, qsum)) };
    if (place == 0) return (weights){ lc_div(lc_neg(q), psum), lc_div(lc_sub(q, p), pq), lc_div(p, qsum) };
    return (weights){ lc_div(q, psum), lc_div(lc_neg(sum), pq), lc_div(lc_add(p, times(2, q)), qsum) };
}
static lc_tensor *weighted(weights w, lc_tensor *x, int d, int64_t start, int64_t n)
{
    lc_tensor *left = lc_mul(w.a, part(x, d, start, n)), *middle = lc_mul(w.b, part(x, d, start + 1, n));
    return lc_add(lc_add(left, middle), lc_mul(w.c, part(x, d, start + 2, n)));
}
static lc_tensor *along(lc_tensor *t, int ndim, int d) /* a vector as the d-th of ndim dimensions */
{
    int64_t shape[LC_MAX_DIMS];
    for (int e = 0; e < ndim; e++) shape[e] = e == d ? -1 : 1;
    return t ? lc_reshape(t, shape, ndim) : NULL;
}
static lc_tensor *element(lc_tensor *t, int64_t i) { return t ? lc_select(t, 0, i) : NULL; }

static lc_tensor *at_coordinates(lc_tensor *x, int d, lc_tensor *where, bool second_order)
{
    int64_t n = x->shape[d];
    if (where->ndim != 1)
        return lc_fail(LC_ShapeMismatch,
                       "torch.gradient expected each element of spacing to have one dimension, but got an element with %d "
                       "dimensions!",
                       where->ndim);
    if (where->shape[0] != n)
        return lc_fail(LC_ShapeMismatch, "torch.gradient: %lld coordinates for %lld elements", (long long)where->shape[0],
                       (long long)n);
    lc_tensor *step = lc_sub(but_first(where, 0), but_last(where, 0)), *p = but_last(step, 0), *q = but_first(step, 0), *first,
              *last;
    if (!p || !q) return NULL;
    weights w = weights_at(0, p, q);
    w.a = along(w.a, x->ndim, d), w.b = along(w.b, x->ndim, d), w.c = along(w.c, x->ndim, d);
    lc_tensor *inside = weighted(w, x, d, 0, n - 2);
    if (second_order) {
        weights left = weights_at(-1, element(p, 0), element(q, 0)), right = weights_at(1, element(p, -1), element(q, -1));
        first = weighted(left, x, d, 0, 1), last = weighted(right, x, d, n - 3, 1);
    } else {
        first = lc_div(lc_sub(part(x, d, 1, 1), part(x, d, 0, 1)), element(step, 0));
        last = lc_div(lc_sub(part(x, d, n - 1, 1), part(x, d, n - 2, 1)), element(step, -1));
    }
    return joined(first, inside, last, d);
}

static int gradient_call(const lc_value *in, lc_tensor **out)
{
    int        dims[LC_MAX_DIMS], n = gradient_dims(in, dims);
    lc_tensor *step = in[1].tag == LC_IS_none ? LC_INTEGER(1) : number_operand(&in[1]);
    for (int i = 0; i < n; i++)
        if (!(out[i] = evenly_spaced(in(0), dims[i], step, in[3].i == 2))) return -1;
    return n < 0 ? -1 : 0;
}
static int gradient_steps_call(const lc_value *in, lc_tensor **out)
{
    int dims[LC_MAX_DIMS], n = gradient_dims(in, dims);
    if (n < 0 || spacing_fits(in[1].n, n) < 0) return -1;
    for (int i = 0; i < n; i++)
        if (!(out[i] = evenly_spaced(in(0), dims[i], LC_NUMBER(in[1].fs[i]), in[3].i == 2))) return -1;
    return 0;
}
static int gradient_coordinates_call(const lc_value *in, lc_tensor **out)
{
    int dims[LC_MAX_DIMS], n = gradient_dims(in, dims);
    if (n < 0 || spacing_fits(in[1].n, n) < 0) return -1;
    for (int i = 0; i < n; i++)
        if (!(out[i] = at_coordinates(in(0), dims[i], in[1].ts[i], in[3].i == 2))) return -1;
    return 0;
}
LC_OP(gradient,
      .sig = "gradient(input: Tensor, *, spacing: Number | None = None, dim: list[int] | None = None, edge_order: int = 1) -> "
             "list[Tensor]",
      .doc = "Derivatives along dimensions by finite differences of evenly spaced samples.", .count = gradient_count,
      .call = gradient_call);
LC_OP(gradient_steps, .py = "gradient",
      .sig = "gradient_steps(input: Tensor, *, spacing: list[float], dim: list[int] | None = None, edge_order: int = 1) -> "
             "list[Tensor]",
      .doc = "Derivatives along dimensions, each evenly spaced.", .count = gradient_count, .call = gradient_steps_call);
LC_OP(gradient_coordinates, .py = "gradient",
      .sig = "gradient_coordinates(input: Tensor, *, spacing: list[Tensor], dim: list[int] | None = None, edge_order: int = 1) "
             "-> list[Tensor]",
      .doc = "Derivatives along dimensions of samples at given coordinates.", .count = gradient_count,
      .call = gradient_coordinates_call);

/* ---- the trapezoidal rule ---- */

/* Distances of neighbouring samples, ready to broadcast against y's. */
static lc_tensor *distances(lc_tensor *x, const lc_tensor *y, int d, const char *name)
{
    int64_t shape[LC_MAX_DIMS];
    if (y->dtype == LC_b8 || x->dtype == LC_b8)
        return lc_fail(LC_LucidError, "%s: received a bool input for `x` or `y`, but bool is not supported", name);
    if (y->ndim == 0) return lc_fail(LC_IndexError, "%s: y has no dimension", name);
    if (x->ndim == 1) {
        if (x->shape[0] != y->shape[d])
            return lc_fail(LC_ShapeMismatch, "%s: There must be one `x` value for each sample point", name);
        x = along(x, y->ndim, d);
    } else if (x->ndim < y->ndim) {
        int more = y->ndim - x->ndim;
        for (int e = 0; e < y->ndim; e++) shape[e] = e < more ? 1 : x->shape[e - more];
        x = lc_reshape(x, shape, y->ndim);
    }
    if (!x) return NULL;
    if (d >= x->ndim || x->shape[d] < 1) return lc_fail(LC_ShapeMismatch, "%s: x has no samples along dimension %d", name, d);
    return lc_sub(but_first(x, d), but_last(x, d));
}
static int check_distance(const lc_value *dx, const lc_tensor *y, const char *name)
{
    if (y->dtype == LC_b8)
        return lc_fail_int(LC_LucidError, "%s: received a bool input for `y`, but bool is not supported", name);
    if (dx->tag == LC_IS_complex || dx->tag == LC_IS_bool)
        return lc_fail_int(LC_LucidError, "%s: Currently, we only support dx as a real number.", name);
    return 0;
}
static int no_samples(const lc_tensor *y, int dim, lc_tensor **out) /* the integral over nothing is zero */
{
    int64_t shape[LC_MAX_DIMS];
    for (int d = 0, n = 0; d < y->ndim; d++)
        if (d != dim) shape[n++] = y->shape[d];
    lc_value device = { .tag = LC_IS_device, .dev = y->device };
    return (out[0] = lc_zeros(shape, y->ndim - 1, LC_OF_DTYPE((lc_dtype)y->dtype), device)) ? 0 : -1;
}
static int trapezoid_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *y = in(0);
    int64_t    dim;
    int        d;
    if (dim_index(in[2].i, y->ndim, &d) < 0) return -1;
    dim = d;
    if (y->ndim && y->shape[d] == 0) return no_samples(y, d, out);
    lc_tensor *dx = distances(in(1), y, d, "trapezoid");
    if (!dx) return -1;
    return (out[0] = lc_div(lc_sum(lc_mul(lc_add(but_last(y, d), but_first(y, d)), dx), &dim, 1, false), LC_NUMBER(2))) ? 0
                                                                                                                        : -1;
}
static int trapezoid_evenly_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *y = in(0);
    int64_t    dim;
    int        d;
    if (dim_index(in[2].i, y->ndim, &d) < 0) return -1;
    dim = d;
    if (y->ndim && y->shape[d] == 0) return no_samples(y, d, out);
    if (check_distance(&in[1], y, "trapezoid") < 0) return -1;
    lc_tensor *edges = lc_add(lc_select(y, dim, 0), lc_select(y, dim, -1));
    return (out[0] = lc_mul(lc_sub(lc_sum(y, &dim, 1, false), times(0.5, edges)), LC_NUMBER(lc_number_of(&in[1])))) ? 0 : -1;
}
static int cumulative_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *y = in(0), *dx;
    int        d;
    if (dim_index(in[2].i, y->ndim, &d) < 0 || !(dx = distances(in(1), y, d, "cumulative_trapezoid"))) return -1;
    lc_tensor *areas = lc_mul(dx, lc_add(but_first(y, d), but_last(y, d)));
    return (out[0] = lc_div(lc_cumsum(areas, d, LC_ABSENT), LC_NUMBER(2))) ? 0 : -1;
}
static int cumulative_evenly_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *y = in(0);
    int        d;
    if (dim_index(in[2].i, y->ndim, &d) < 0 || check_distance(&in[1], y, "cumulative_trapezoid") < 0) return -1;
    if (y->ndim == 0) return lc_fail_int(LC_IndexError, "cumulative_trapezoid: y has no dimension");
    return (out[0] = lc_cumsum(times(lc_number_of(&in[1]) / 2, lc_add(but_first(y, d), but_last(y, d))), d, LC_ABSENT)) ? 0
                                                                                                                        : -1;
}
LC_OP(trapezoid, .aliases = "trapz", .sig = "trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor",
      .doc = "Integral of samples y at x by the trapezoidal rule.", .call = trapezoid_call);
LC_OP(trapezoid_evenly, .py = "trapezoid", .sig = "trapezoid_evenly(y: Tensor, *, dx: Number = 1, dim: int = -1) -> Tensor",
      .doc = "Integral of samples y, dx apart, by the trapezoidal rule.", .call = trapezoid_evenly_call);
LC_OP(trapz_evenly, .py = "trapz", .sig = "trapz_evenly(y: Tensor, *, dx: float = 1, dim: int = -1) -> Tensor",
      .doc = "Another name of trapezoid.", .call = trapezoid_evenly_call);
LC_OP(cumulative_trapezoid, .sig = "cumulative_trapezoid(y: Tensor, x: Tensor, *, dim: int = -1) -> Tensor",
      .doc = "Running integral of samples y at x by the trapezoidal rule.", .call = cumulative_call);
LC_OP(cumulative_trapezoid_evenly, .py = "cumulative_trapezoid",
      .sig = "cumulative_trapezoid_evenly(y: Tensor, *, dx: Number = 1, dim: int = -1) -> Tensor",
      .doc = "Running integral of samples y, dx apart, by the trapezoidal rule.", .call = cumulative_evenly_call);
