/* Grid sampling (args.h: lc_grid_args) and its gradients: a thread per position. T: the elements. */
enum { BILINEAR, NEAREST, BICUBIC, ZEROS = 0, BORDER, REFLECTION };
struct grid_args {
    T       *out, *d_image, *d_grid;
    const T *image, *grid, *grad;
    i64      images, channels, positions, size[3];
    int      axes, mode, padding, align_corners;
};
struct around { /* one coordinate: taps, their weights, and the derivatives of those */
    i64 at[4];
    T   weight[4], slope[4];
};
__device__ inline T reflected(T c, T low, T span, T *direction)
{
    if (span <= 0) return *direction = 0, (T)0;
    T away = c - low;
    if (away < 0) away = -away, *direction = -*direction;
    T rest = (T)fmod(away, span), turns = (T)floor(away / span);
    if (fmod(turns, (T)2) == 0) return rest + low;
    return *direction = -*direction, span - rest + low;
}
__device__ inline T padded(const grid_args &p, T c, i64 size, T *direction)
{
    if (p.padding == ZEROS) return c;
    if (p.padding == REFLECTION)
        c = p.align_corners ? reflected(c, 0, (T)(size - 1), direction) : reflected(c, (T)-0.5, (T)size, direction);
    if (c != c && p.axes == 3) return p.grad ? c : (T)(size - 1);
    if (!(c > 0)) return *direction = 0, (T)0;
    if (c >= (T)(size - 1)) return *direction = 0, (T)(size - 1);
    return c;
}
__device__ inline i64 whole(T c)
{
    return c > (T)-1073741824 && c < (T)1073741824 ? (i64)c : -0x40000000;
} /* outside stays outside */
__device__ inline T      near(T x, T a) { return ((a + 2) * x - (a + 3)) * x * x + 1; } /* Keys' cubic, x <= 1 */
__device__ inline T      far(T x, T a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }
__device__ inline T      near_slope(T x, T a) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; }
__device__ inline T      far_slope(T x, T a) { return (3 * a * x - 10 * a) * x + 8 * a; }
__device__ inline around find(const grid_args &p, T c, i64 size)
{
    around r;
    T      scale = (T)(p.align_corners ? size - 1 : size) / 2, direction = 1;
    c = p.align_corners ? (c + 1) / 2 * (T)(size - 1) : ((c + 1) * (T)size - 1) / 2;
    if (p.mode == BICUBIC) {
        T   below = (T)floor(c), t = c - below, rest = 1 - t, k = (T)-0.75;
        i64 first = whole(below) - 1;
        for (int i = 0; i < 4; i++) {
            T ignored = 1;
            r.at[i] = p.padding == ZEROS ? first + i : whole(padded(p, below + (T)(i - 1), size, &ignored));
        }
        r.weight[0] = far(t + 1, k), r.weight[1] = near(t, k), r.weight[2] = near(rest, k), r.weight[3] = far(rest + 1, k);
        r.slope[0] = scale * far_slope(t + 1, k), r.slope[1] = scale * near_slope(t, k);
        r.slope[2] = -scale * near_slope(rest, k), r.slope[3] = -scale * far_slope(rest + 1, k);
        return r;
    }
    c = padded(p, c, size, &direction);
    if (p.mode == NEAREST) {
        r.at[0] = whole((T)rint(c)), r.weight[0] = 1, r.slope[0] = 0;
        return r;
    }
    T below = (T)floor(c);
    r.at[0] = whole(below), r.at[1] = r.at[0] + 1;
    r.weight[1] = c - below, r.weight[0] = below + 1 - c;
    r.slope[1] = scale * direction, r.slope[0] = -r.slope[1];
    return r;
}
/* The taps of a position: `at` is the element of the plane, or outside (-1). */
#define EACH_TAP(i)                                                                                                            \
    int    each = p.mode == BICUBIC ? 4 : p.mode == NEAREST ? 1 : 2, deep = p.axes == 3 ? each : 1;                            \
    i64    image = i / p.positions, place = i % p.positions, area = p.size[0] * p.size[1] * p.size[2];                         \
    around rx = find(p, p.grid[i * p.axes], p.size[2]), ry = find(p, p.grid[i * p.axes + 1], p.size[1]), rz;                   \
    rz.at[0] = 0, rz.weight[0] = 1, rz.slope[0] = 0;                                                                           \
    if (p.axes == 3) rz = find(p, p.grid[i * p.axes + 2], p.size[0]);                                                          \
    for (int z = 0; z < deep; z++)                                                                                             \
        for (int y = 0; y < each; y++)                                                                                         \
            for (int x = 0; x < each; x++)
#define INSIDE                                                                                                                 \
    (rx.at[x] >= 0 && rx.at[x] < p.size[2] && ry.at[y] >= 0 && ry.at[y] < p.size[1] && rz.at[z] >= 0 && rz.at[z] < p.size[0])
#define ELEMENT ((rz.at[z] * p.size[1] + ry.at[y]) * p.size[2] + rx.at[x])
KERNEL(sample, grid_args, p)
{
    EACH(i, p.images * p.positions)
    {
        for (i64 c = 0; c < p.channels; c++) p.out[(i / p.positions * p.channels + c) * p.positions + i % p.positions] = 0;
        EACH_TAP(i)
        {
            if (!INSIDE && p.axes == 3) continue;
            T w = rx.weight[x] * ry.weight[y] * rz.weight[z];
            for (i64 c = 0; c < p.channels; c++)
                p.out[(image * p.channels + c) * p.positions + place] +=
                    w * (INSIDE ? p.image[(image * p.channels + c) * area + ELEMENT] : (T)0);
        }
    }
}
KERNEL(image_slope, grid_args, p) /* d_image starts as zeros; the order of sums varies */
{
    EACH(i, p.images * p.positions)
    {
        EACH_TAP(i)
        {
            if (!INSIDE) continue;
            T w = rx.weight[x] * ry.weight[y] * rz.weight[z];
            for (i64 c = 0; c < p.channels; c++)
                atomicAdd(p.d_image + (image * p.channels + c) * area + ELEMENT,
                          w * p.grad[(image * p.channels + c) * p.positions + place]);
        }
    }
}
KERNEL(grid_slope, grid_args, p) /* of nearest it is zero, whatever the values are */
{
    EACH(i, p.images * p.positions)
    {
        T sum[3] = { 0, 0, 0 };
        EACH_TAP(i)
        {
            if (!INSIDE || p.mode == NEAREST) continue;
            T v = 0;
            for (i64 c = 0; c < p.channels; c++)
                v +=
                    p.image[(image * p.channels + c) * area + ELEMENT] * p.grad[(image * p.channels + c) * p.positions + place];
            sum[0] += v * rx.slope[x] * ry.weight[y] * rz.weight[z];
            sum[1] += v * rx.weight[x] * ry.slope[y] * rz.weight[z];
            sum[2] += v * rx.weight[x] * ry.weight[y] * rz.slope[z];
        }
        for (int d = 0; d < p.axes; d++) p.d_grid[i * p.axes + d] = sum[d];
    }
}
