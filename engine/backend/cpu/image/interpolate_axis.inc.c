/* Positions and weights of one dimension, in T as PyTorch computes them: float for images of float32, float16 and bfloat16,
 * double for float64. */
static T NAME(step)(const lc_interpolate_args *a, int d)
{
    int64_t in = a->size[d], out = a->result[d];
    if (a->align_corners) return out > 1 ? (T)(in - 1) / (T)(out - 1) : 0;
    return a->scale[d] > 0 ? (T)(1.0 / a->scale[d]) : (T)in / (T)out;
}
static T NAME(position)(T step, int64_t i, bool align_corners, bool below_zero)
{
    if (align_corners) return step * (T)i;
    T at = FMA(step, (T)i + (T)0.5, (T)-0.5); /* as PyTorch's compiler does it */
    return !below_zero && at < 0 ? 0 : at;
}
static T NAME(cubic)(T x, T a) /* Keys' convolution, 0 <= x < 2 */
{
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}
static T NAME(cubic_filter)(T x, T a) /* the same, rounded as PyTorch's filters are */
{
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
static T NAME(sinc)(T x) { return x == 0 ? 1 : (T)(sin(M_PI * (double)x) / (M_PI * (double)x)); }
static T NAME(filter)(lc_interpolation mode, T x)
{
    x = x < 0 ? -x : x;
    switch (mode) {
    case LC_CUBIC_ANTIALIAS:
        return NAME(cubic_filter)(x, (T)-0.5);
    case LC_LANCZOS_ANTIALIAS:
        return x < 3 ? NAME(sinc)(x) * NAME(sinc)(x / 3) : 0;
    default:
        return x < 1 ? 1 - x : 0;
    }
}

/* A filter over a window around each result, normalised. capacity: most taps per result. */
static void NAME(windows)(const lc_interpolate_args *a, int d, interpolate_axis *x, int64_t capacity)
{
    T       step = NAME(step)(a, d), wide = (T)width_of(a->mode) * (T)0.5;
    T       support = step >= 1 ? wide * step : wide, inverse = step >= 1 ? 1 / step : 1;
    int64_t at = 0;
    for (int64_t i = 0; i < x->n; i++) {
        T       center = step * ((T)i + (T)0.5), total = 0;
        int64_t first = (int64_t)(center - support + (T)0.5), past = (int64_t)(center + support + (T)0.5);
        first = first < 0 ? 0 : first, past = past > x->size ? x->size : past;
        past = past - first > capacity ? first + capacity : past;
        x->start[i] = at;
        for (int64_t j = first; j < past; j++, at++) {
            T w = NAME(filter)(a->mode, ((T)(j - first) + (T)first - center + (T)0.5) * inverse);
            x->index[at] = j, x->weight[at] = (double)w, total += w;
        }
        for (int64_t j = x->start[i]; j < at && total != 0; j++) x->weight[j] = (double)((T)x->weight[j] / total);
    }
    x->start[x->n] = at;
}
static void NAME(lay_out)(const lc_interpolate_args *a, int d, interpolate_axis *x)
{
    T       step = NAME(step)(a, d);
    int64_t at = 0, last = x->size - 1, taps = width_of(a->mode);
    for (int64_t i = 0; i < x->n; i++) {
        x->start[i] = at;
        if (a->mode <= LC_NEAREST_EXACT) {
            T       exact = NAME(position)(step, i, a->mode == LC_NEAREST, false) + (a->mode == LC_NEAREST ? 0 : (T)0.5);
            int64_t near = (int64_t)floor((double)exact);
            x->index[at] = near < last ? near : last, x->weight[at++] = 1;
            continue;
        }
        T       exact = NAME(position)(step, i, a->align_corners, a->mode == LC_CUBIC);
        int64_t floored = (int64_t)floor((double)exact), first = floored < last ? floored : last;
        T       rest = exact - (T)first;
        rest = rest < 0 ? 0 : rest > 1 ? 1 : rest;
        T weights[4] = { 1 - rest, rest };
        if (a->mode == LC_CUBIC)
            for (int k = 0; k < 4; k++) weights[k] = NAME(cubic)(k < 2 ? rest + (T)(1 - k) : 1 - rest + (T)(k - 2), (T)-0.75);
        for (int64_t k = 0; k < taps; k++) {
            int64_t j = a->mode == LC_CUBIC ? first - 1 + k : first + k;
            x->index[at] = j < 0 ? 0 : j > last ? last : j, x->weight[at++] = (double)weights[k];
        }
    }
    x->start[x->n] = at;
}
#undef T
#undef FMA
#undef NAME
