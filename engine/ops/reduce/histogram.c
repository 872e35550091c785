/* Histograms and counts. None has a gradient, as in PyTorch. */
#include "../rules.h"
#include <math.h>

static int count_of_bins(int64_t bins, int dim)
{
    if (bins > 0 && bins < INT32_MAX) return 0;
    return lc_fail_int(LC_LucidError, "histogram(): bins must be > 0, but got %lld for dimension %d", (long long)bins, dim);
}

/* ---- histc ---- */
static int histc_shape(const lc_record *call, lc_spec *out)
{
    if (count_of_bins(call->args[1].i, 0) < 0) return -1;
    return spec_shape(call, out, (lc_dtype)call->in[0]->dtype, 1, &call->args[1].i);
}
static double rounded_to(lc_dtype dtype, double x)
{
    return dtype == LC_f64    ? x
           : dtype == LC_f16  ? lc_f16_to_f32(lc_f32_to_f16((float)x))
           : dtype == LC_bf16 ? lc_bf16_to_f32(lc_f32_to_bf16((float)x))
                              : (float)x;
}
static int histc_run(const lc_record *call)
{
    lc_tensor        *x = packed(call->in[0], (lc_dtype)call->in[0]->dtype);
    lc_histogram_args a = { .out = call->out[0], .in = x, .dims = 1 };
    a.low = rounded_to(call->dtype, lc_number_of(&call->args[2]));
    a.high = rounded_to(call->dtype, lc_number_of(&call->args[3]));
    int rc = x ? run_kernel_with(call, &a) : -1;
    return lc_release(x), rc;
}
LC_OP(histc, .sig = "histc(input: Tensor, bins: int = 100, min: Number = 0, max: Number = 0) -> Tensor",
      .doc = "How many elements fall into each of `bins` bins of equal width from min to max (both 0: of all elements).",
      .method = true, .out = true, .promote = LC_NO_PROMOTION, .shape = histc_shape, .run = histc_run);

/* ---- histograms of any number of dimensions ---- */
static int histogram_shape(const lc_record *call, lc_spec *out)
{
    int64_t shape[LC_MAX_DIMS];
    int     dims = call->args[1].n;
    for (int d = 0; d < dims; d++) shape[d] = call->in[1 + d]->numel - 1;
    return spec_shape(call, out, (lc_dtype)call->in[0]->dtype, dims, shape);
}
static int histogram_run(const lc_record *call)
{
    int               dims = call->args[1].n;
    const lc_tensor  *weight = call->in[1 + dims];
    lc_histogram_args a = { .out = call->out[0], .in = call->in[0], .edges = call->in + 1, .dims = dims };
    a.weight = weight == LC_NONE ? NULL : weight, a.even = call->args[3].b;
    return run_kernel_with(call, &a);
}
LC_OP(_histogram, .sig = "_histogram(input: Tensor, edges: list[Tensor], weight: Tensor | None, even: bool) -> Tensor",
      .doc = "Counts of points, (n, dims), between the edges of each dimension; everything contiguous.", .hidden = true,
      .promote = LC_NO_PROMOTION, .shape = histogram_shape, .run = histogram_run);

typedef struct {
    lc_tensor      *points; /* (n, dims), contiguous */
    lc_tensor      *weight; /* (n) or LC_NONE */
    const lc_value *range;
    int             dims;
    bool            density;
} sampled;

static int check_weight(const sampled *s, const lc_tensor *input, const lc_tensor *weight, bool flat)
{
    if (weight == LC_NONE) return 0;
    bool fits = flat ? weight->numel == input->numel
                     : weight->ndim == input->ndim - 1 && lc_same_sizes(weight->shape, input->shape, weight->ndim);
    if (fits && weight->dtype == s->points->dtype) return 0;
    return lc_fail_int(LC_ShapeMismatch,
                       "histogramdd: weight should have the dtype and the shape of the input without its innermost dimension, "
                       "but got input %s and weight %s",
                       LC_SHAPE(input), LC_SHAPE(weight));
}
/* input: any shape if flat, else (..., dims) */
static int sample(lc_tensor *input, lc_tensor *weight, const lc_value *range, bool density, bool flat, sampled *s)
{
    int64_t all = -1;
    if ((input->dtype != LC_f32 && input->dtype != LC_f64) || !lc_can(input)->values)
        return lc_fail_int(LC_NotImplementedError, "histogramdd is not implemented for %s on %s", lc_dtypes[input->dtype].name,
                           lc_device_names[input->device.kind]);
    if (!flat && input->ndim < 2)
        return lc_fail_int(LC_ShapeMismatch, "histogramdd: input tensor should have at least 2 dimensions, but got %s",
                           LC_SHAPE(input));
    s->dims = flat ? 1 : (int)(input->shape[input->ndim - 1] < LC_MAX_DIMS ? input->shape[input->ndim - 1] : LC_MAX_DIMS + 1);
    if (s->dims > LC_MAX_DIMS || s->dims < 1)
        return lc_fail_int(LC_ValueError, "histogramdd: %s: from 1 to %d dimensions are supported", LC_SHAPE(input),
                           LC_MAX_DIMS);
    int64_t shape[] = { input->numel / s->dims, s->dims };
    s->points = lc_contiguous(lc_reshape(lc_detach(input), shape, 2), LC_CONTIGUOUS_FORMAT);
    s->weight = weight, s->range = range, s->density = density;
    if (!s->points || check_weight(s, input, weight, flat) < 0) return -1;
    if (weight != LC_NONE) s->weight = lc_contiguous(lc_reshape(lc_detach(weight), &all, 1), LC_CONTIGUOUS_FORMAT);
    return s->weight ? 0 : -1;
}

/* Outer edges of a dimension: as given, or the extremes of the points; a single value gets a width of one. */
static int outer_edges(const sampled *s, lc_tensor *const *extreme, int d, double *low, double *high)
{
    const double *range = s->range->fs;
    if (s->range->tag == LC_IS_floats) *low = range[2 * d], *high = range[2 * d + 1];
    else if (!extreme[0]) *low = 0, *high = 1; /* no points */
    else {
        lc_tensor *least = lc_select(extreme[0], 0, d), *most = lc_select(extreme[1], 0, d);
        lc_tensor *found = least && most ? lc_stack((lc_tensor *[]){ least, most }, 2, 0) : NULL;
        lc_tensor *both = lc_scoped(lc_tensor_new(LC_f64, (lc_device){ LC_CPU, 0 }, 1, &(int64_t){ 2 }));
        if (!found || !both || move_values(both, found) < 0) return -1;
        *low = ((double *)both->data)[0], *high = ((double *)both->data)[1];
    }
    if (!isfinite(*low) || !isfinite(*high))
        return lc_fail_int(LC_LucidError, "histogramdd: dimension %d's range [%g, %g] is not finite", d, *low, *high);
    if (*low > *high)
        return lc_fail_int(LC_LucidError, "histogramdd: min should not exceed max, but got min %g max %g for dimension %d",
                           *low, *high, d);
    if (*low == *high) *low -= 0.5, *high += 0.5;
    return 0;
}
static int even_edges(const sampled *s, const int64_t *bins, int n_bins, lc_tensor **edges)
{
    lc_tensor *extreme[2] = { NULL, NULL };
    int64_t    first = 0;
    lc_value   dtype = LC_OF_DTYPE((lc_dtype)s->points->dtype), device = { .tag = LC_IS_device, .dev = s->points->device };
    if (n_bins != s->dims)
        return lc_fail_int(LC_ShapeMismatch,
                           "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
    if (s->range->tag == LC_IS_floats && s->range->n != 2 * s->dims)
        return lc_fail_int(LC_LucidError,
                           "histogramdd: for a %d-dimensional histogram range should have %d elements, but got %d", s->dims,
                           2 * s->dims, s->range->n);
    for (int d = 0; d < s->dims; d++)
        if (count_of_bins(bins[d], d) < 0) return -1;
    if (s->range->tag != LC_IS_floats && s->points->numel) {
        extreme[0] = lc_amin(s->points, &first, 1, false), extreme[1] = lc_amax(s->points, &first, 1, false);
        if (!extreme[0] || !extreme[1]) return -1;
    }
    for (int d = 0; d < s->dims; d++) {
        double low, high;
        if (outer_edges(s, extreme, d, &low, &high) < 0) return -1;
        if (!(edges[d] = lc_linspace(LC_F(low), LC_F(high), bins[d] + 1, dtype, device))) return -1;
    }
    return 0;
}
/* Edges that were given: copies, contiguous. */
static int given_edges(const sampled *s, lc_tensor *const *bins, int n_bins, lc_tensor **edges)
{
    if (n_bins != s->dims)
        return lc_fail_int(LC_ShapeMismatch,
                           "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
    for (int d = 0; d < n_bins; d++) {
        const lc_tensor *b = bins[d];
        if (b->ndim != 1 || b->numel < 1 || b->dtype != s->points->dtype)
            return lc_fail_int(LC_LucidError,
                               "histogramdd: bins should be vectors of %s with at least 1 element, but got %s for dimension %d",
                               lc_dtypes[s->points->dtype].name, LC_SHAPE(b), d);
        if (count_of_bins(b->numel - 1, d) < 0) return -1;
        if (!(edges[d] = lc_clone(lc_detach(bins[d]), LC_CONTIGUOUS_FORMAT))) return -1;
    }
    return 0;
}
static lc_tensor *counted(const sampled *s, lc_tensor *const *edges, bool even)
{
    lc_tensor *hist = lc__histogram(s->points, edges, s->dims, s->weight, even);
    if (!hist || !s->density) return hist;
    hist = lc_div(hist, lc_sum(hist, NULL, 0, false));
    for (int d = 0; hist && d < s->dims; d++) {
        int64_t    shape[LC_MAX_DIMS], n = edges[d]->numel - 1;
        lc_tensor *width = lc_sub(lc_narrow(edges[d], 0, 1, n), lc_narrow(edges[d], 0, 0, n));
        for (int e = 0; e < s->dims; e++) shape[e] = e == d ? n : 1;
        hist = width ? lc_div(hist, lc_reshape(width, shape, s->dims)) : NULL;
    }
    return hist;
}

/* ---- histogram: one dimension ---- */
static int histogram_call(const lc_value *in, lc_tensor **out)
{
    sampled s;
    if (sample(in(0), in(3), &in[2], in[4].b, true, &s) < 0 || even_edges(&s, &in[1].i, 1, &out[1]) < 0) return -1;
    return (out[0] = counted(&s, &out[1], true)) ? 0 : -1;
}
GRAD(histogram)
{
    lc_fail(LC_NotImplementedError, "the derivative for histograms is not implemented");
    dx[0] = NULL;
}
LC_OP(histogram, .strict_out = true,
      .sig = "histogram(input: Tensor, bins: int = 100, *, range: list[float] | None = None, weight: Tensor | None = None, "
             "density: bool = False) -> (hist: Tensor, bin_edges: Tensor)",
      .doc = "How many elements fall into bins of equal width, and the edges of these; density: so that the integral is one.",
      .method = true, .out = true, .reads_values = true, .call = histogram_call, .grad = histogram_grad);

static const lc_value no_range = { .tag = LC_IS_none };
static int            histogram_bins_call(const lc_value *in, lc_tensor **out)
{
    sampled s;
    if (sample(in(0), in(2), &no_range, in[3].b, true, &s) < 0 || given_edges(&s, &in(1), 1, &out[1]) < 0) return -1;
    return (out[0] = counted(&s, &out[1], false)) ? 0 : -1;
}
LC_OP(histogram_bins, .strict_out = true, .py = "histogram",
      .sig = "histogram_bins(input: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False) "
             "-> (hist: Tensor, bin_edges: Tensor)",
      .doc = "How many elements fall between the given edges.", .method = true, .out = true, .call = histogram_bins_call,
      .grad = histogram_grad);

/* ---- parts of histogramdd, which is composed in Python because its result is nested ---- */
static int edges_count(const lc_value *in) { return in[1].n; }
static int bin_edges_call(const lc_value *in, lc_tensor **out)
{
    sampled s;
    return sample(in(0), in(3), &in[2], false, false, &s) < 0 ? -1 : even_edges(&s, in[1].is, in[1].n, out);
}
LC_OP(_histogramdd_bin_edges,
      .sig = "_histogramdd_bin_edges(input: Tensor, bins: list[int], *, range: list[float] | None = None, "
             "weight: Tensor | None = None, density: bool = False) -> list[Tensor]",
      .doc = "The edges of bins of equal width along each coordinate.", .reads_values = true, .count = edges_count,
      .call = bin_edges_call);
static int from_tensors(const lc_value *in, bool even, lc_tensor **out)
{
    sampled    s;
    lc_tensor *edges[LC_MAX_DIMS];
    if (sample(in(0), in(2), &no_range, in[3].b, false, &s) < 0 || given_edges(&s, in[1].ts, in[1].n, edges) < 0) return -1;
    return (out[0] = counted(&s, edges, even)) ? 0 : -1;
}
static int from_bin_tensors_call(const lc_value *in, lc_tensor **out) { return from_tensors(in, in[4].b, out); }
LC_OP(_histogramdd_from_bin_tensors,
      .sig = "_histogramdd_from_bin_tensors(input: Tensor, bins: list[Tensor], *, weight: Tensor | None = None, "
             "density: bool = False, even: bool = False) -> Tensor",
      .doc = "How many points fall between the edges of each coordinate; even: the edges are at equal distances.",
      .call = from_bin_tensors_call, .grad = histogram_grad);

/* ---- bincount ---- */
static int bincount_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor        *x = in(0), *weights = in(1);
    const lc_backend *backend = lc_backend_of(x->device);
    int64_t           size = 0, least = in[2].i;
    bool              weighted = weights != LC_NONE && x->numel;
    lc_bincount_args  a = { 0 };
    if (!backend) return -1;
    if (!backend->can.values) return lc_fail_int(LC_NotImplementedError, "bincount: the size of the result is unknown on meta");
    if (!backend->has(LC_OP_bincount, (lc_dtype)x->dtype))
        return lc_fail_int(LC_NotImplementedError, "bincount is not implemented for %s on %s", lc_dtypes[x->dtype].name,
                           backend->name);
    if (x->ndim != 1) return lc_fail_int(LC_LucidError, "bincount only supports 1-d non-negative integral inputs.");
    if (least < 0) return lc_fail_int(LC_LucidError, "bincount: minlength should be >= 0, got %lld", (long long)least);
    if (weighted && (weights->ndim != 1 || weights->numel != x->numel))
        return lc_fail_int(LC_ShapeMismatch, "bincount: weights should be 1-d and have the same length as input, got %s and %s",
                           LC_SHAPE(weights), LC_SHAPE(x));
    if (weighted && backend->queue && lc_modes & LC_DETERMINISTIC && lc_not_deterministic("bincount with weights") < 0)
        return -1;
    lc_dtype   dtype = !weighted ? LC_i64 : weights->dtype == LC_f32 ? LC_f32 : LC_f64;
    lc_tensor *in_order = lc_contiguous(x, LC_CONTIGUOUS_FORMAT);
    if (weighted)
        a.weights =
            lc_contiguous(lc_to(lc_is_complex(weights->dtype) ? lc_real(weights) : weights, dtype, false, false, LC_ABSENT),
                          LC_CONTIGUOUS_FORMAT);
    a.in = in_order, a.size = lc_scoped(lc_tensor_new(LC_i64, x->device, 0, NULL));
    if (!in_order || !a.size || (weighted && !a.weights) || backend->run(LC_OP_bincount, (lc_dtype)x->dtype, &a) < 0) return -1;
    if (read_int(a.size, &size) < 0) return -1;
    if (size < least) size = least;
    if (!(a.out = out[0] = lc_scoped(lc_tensor_new(dtype, x->device, 1, &size)))) return -1;
    return size ? backend->run(LC_OP_bincount, (lc_dtype)x->dtype, &a) : 0;
}
LC_OP(bincount, .sig = "bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor",
      .doc = "How often each of the numbers 0, 1, ... occurs, or the sum of its weights.", .method = true, .reads_values = true,
      .call = bincount_call, .grad = histogram_grad);
