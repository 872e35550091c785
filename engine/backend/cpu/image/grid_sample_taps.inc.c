/* Grid sampling of elements T, with places I as wide. */
typedef struct { /* around one coordinate: taps, their weights, and the derivatives of those */
    int64_t at[4];
    T       weight[4], slope[4];
} NAME(around);

/* Reflects x between low and low + span; *turn changes its sign on the way back. */
static T NAME(reflected)(T c, T low, T span, T *direction)
{
    if (span <= 0) return *direction = 0, (T)0;
    T away = c - low;
    if (away < 0) away = -away, *direction = -*direction;
    T rest = FMOD(away, span), reflections = FLOOR(away / span);
    if (FMOD(reflections, 2) == 0) return rest + low;
    return *direction = -*direction, span - rest + low;
}
static T NAME(padded)(const lc_grid_args *a, T c, int64_t size, T *direction)
{
    if (a->padding == LC_GRID_ZEROS) return c;
    if (a->padding == LC_GRID_REFLECTION)
        c = a->align_corners ? NAME(reflected)(c, 0, (T)(size - 1), direction)
                             : NAME(reflected)(c, (T)-0.5, (T)size, direction);
    if (c != c && a->axes == 3)
        return a->grad ? c : (T)(size - 1);    /* PyTorch's choice in volumes: the last element; outside for gradients */
    if (!(c > 0)) return *direction = 0, (T)0; /* and in planes */
    if (c >= (T)(size - 1)) return *direction = 0, (T)(size - 1);
    return c;
}
/* A whole number within the range of int64; far outside of the image stays outside. */
static int64_t NAME(whole)(T c) { return c > (T)-0x1p30 && c < (T)0x1p30 ? (int64_t)c : -0x40000000; }

static T NAME(near)(T x, T a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }      /* Keys' cubic, x <= 1 */
static T NAME(far)(T x, T a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; } /* 1 < x < 2 */
static T NAME(near_slope)(T x, T a) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; }
static T NAME(far_slope)(T x, T a) { return (3 * a * x - 10 * a) * x + 8 * a; }

static void NAME(find)(const lc_grid_args *a, T c, int64_t size, NAME(around) * r)
{
    T scale = (T)(a->align_corners ? size - 1 : size) / 2, direction = 1;
    c = a->align_corners ? (c + 1) / 2 * (T)(size - 1) : ((c + 1) * (T)size - 1) / 2;
    if (a->mode == LC_GRID_BICUBIC) {
        T       below = FLOOR(c), t = c - below, rest = 1 - t, k = (T)-0.75;
        int64_t first = NAME(whole)(below) - 1;
        for (int i = 0; i < 4; i++) {
            T ignored = 1;
            r->at[i] =
                a->padding == LC_GRID_ZEROS ? first + i : NAME(whole)(NAME(padded)(a, below + (T)(i - 1), size, &ignored));
        }
        r->weight[0] = NAME(far)(t + 1, k), r->weight[1] = NAME(near)(t, k);
        r->weight[2] = NAME(near)(rest, k), r->weight[3] = NAME(far)(rest + 1, k);
        r->slope[0] = scale * NAME(far_slope)(t + 1, k), r->slope[1] = scale * NAME(near_slope)(t, k);
        r->slope[2] = -scale * NAME(near_slope)(rest, k), r->slope[3] = -scale * NAME(far_slope)(rest + 1, k);
        return;
    }
    c = NAME(padded)(a, c, size, &direction);
    if (a->mode == LC_GRID_NEAREST) {
        r->at[0] = NAME(whole)(RINT(c)), r->weight[0] = 1, r->slope[0] = 0;
        return;
    }
    T below = FLOOR(c);
    r->at[0] = NAME(whole)(below), r->at[1] = r->at[0] + 1;
    r->weight[1] = c - below, r->weight[0] = below + 1 - c;
    r->slope[1] = scale * direction, r->slope[0] = -r->slope[1];
}

/* The usual case, branchless: two axes, bilinear, no reflection, no slopes. Coordinates are clamped to just outside of the
 * image. */
INLINE void NAME(lay_four)(const lc_grid_args *a, const T *positions, int64_t n, grid_tile *t, bool corners, bool border)
{
    int64_t tile = t->tile;
    I      *place = t->place, wide = (I)a->size[2], high = (I)a->size[1];
    T      *weight = t->weight, width = (T)wide, height = (T)high;
    INDEPENDENT
    for (int64_t p = 0; p < n; p++) {
        T x = positions[2 * p] + 1, y = positions[2 * p + 1] + 1;
        x = corners ? x / 2 * (width - 1) : (x * width - 1) / 2, y = corners ? y / 2 * (height - 1) : (y * height - 1) / 2;
        if (border) {
            x = x > 0 ? x : 0, y = y > 0 ? y : 0;
            x = x < width - 1 ? x : width - 1, y = y < height - 1 ? y : height - 1;
        }
        T fx = FLOOR(x), fy = FLOOR(y), x1 = x - fx, x0 = fx + 1 - x, y1 = y - fy, y0 = fy + 1 - y;
        fx = fx > -2 ? fx : -2, fy = fy > -2 ? fy : -2; /* NaN too */
        fx = fx < width ? fx : width, fy = fy < height ? fy : height;
        I ix = (I)fx, iy = (I)fy, at = iy * wide + ix;
        I left = (ix >= 0) & (ix < wide), right = (ix >= -1) & (ix < wide - 1);
        I top = (iy >= 0) & (iy < high), bottom = (iy >= -1) & (iy < high - 1);
        place[p] = (left & top) ? at : -1, place[tile + p] = (right & top) ? at + 1 : -1;
        place[2 * tile + p] = (left & bottom) ? at + wide : -1, place[3 * tile + p] = (right & bottom) ? at + wide + 1 : -1;
        weight[p] = x0 * y0, weight[tile + p] = x1 * y0, weight[2 * tile + p] = x0 * y1, weight[3 * tile + p] = x1 * y1;
    }
}
static void NAME(lay)(const lc_grid_args *a, const void *positions, int64_t n, bool slopes, grid_tile *t)
{
    if (a->axes == 2 && t->taps == 4 && a->padding != LC_GRID_REFLECTION && !slopes) {
        bool border = a->padding != LC_GRID_ZEROS;
        if (a->align_corners) NAME(lay_four)(a, positions, n, t, true, border);
        else NAME(lay_four)(a, positions, n, t, false, border);
        return;
    }
    int     each = a->mode == LC_GRID_BICUBIC ? 4 : a->mode == LC_GRID_NEAREST ? 1 : 2;
    int64_t taps = t->taps, tile = t->tile;
    for (int64_t p = 0; p < n; p++) {
        NAME(around) r[3];
        r[2].at[0] = 0, r[2].weight[0] = 1, r[2].slope[0] = 0; /* two axes */
        for (int d = 0; d < a->axes; d++)
            NAME(find)(a, ((const T *)positions)[p * a->axes + d], a->size[2 - d], &r[d]); /* x is last */
        for (int64_t k = 0; k < taps; k++) {
            int64_t x = k % each, y = k / each % each, z = k / (each * each), at = k * tile + p;
            int64_t ix = r[0].at[x], iy = r[1].at[y], iz = r[2].at[z];
            T       wx = r[0].weight[x], wy = r[1].weight[y], wz = r[2].weight[z], *slope = t->slope;
            bool    inside = ix >= 0 && ix < a->size[2] && iy >= 0 && iy < a->size[1] && iz >= 0 && iz < a->size[0];
            ((I *)t->place)[at] = (I)(inside ? (iz * a->size[1] + iy) * a->size[2] + ix : -1);
            if (!inside && a->axes == 3) wx = wy = wz = 0; /* PyTorch skips it, in volumes even if the position is NaN */
            ((T *)t->weight)[at] = wx * wy * wz;
            if (!slopes) continue;
            slope[at] = r[0].slope[x] * wy * wz, slope[taps * tile + at] = wx * r[1].slope[y] * wz;
            if (a->axes == 3) slope[2 * taps * tile + at] = wx * wy * r[2].slope[z];
        }
    }
}

/* Four taps at a time, which is one position of a plane; `first`: out is uninitialised. */
INLINE void NAME(gather_four)(const grid_tile *t, int64_t k, T *out, const T *plane, int64_t n, bool first)
{
    int64_t  tile = t->tile;
    const I *place = (const I *)t->place + k * tile;
    const T *weight = (const T *)t->weight + k * tile;
    for (int64_t p = 0; p < n; p++) {
        I i0 = place[p], i1 = place[tile + p], i2 = place[2 * tile + p], i3 = place[3 * tile + p];
        T a = i0 < 0 ? 0 : plane[i0], b = i1 < 0 ? 0 : plane[i1], c = i2 < 0 ? 0 : plane[i2], d = i3 < 0 ? 0 : plane[i3];
        T sum = (a * weight[p] + b * weight[tile + p]) + (c * weight[2 * tile + p] + d * weight[3 * tile + p]);
        out[p] = first ? sum : out[p] + sum;
    }
}
static void NAME(gather)(const grid_tile *t, void *to, const void *plane, int64_t n)
{
    T *out = to;
    if (t->taps == 1)
        for (int64_t p = 0; p < n; p++) {
            I i = ((const I *)t->place)[p];
            out[p] = i < 0 ? 0 : ((const T *)plane)[i];
        }
    else
        for (int64_t k = 0; k < t->taps; k += 4)
            if (k == 0) NAME(gather_four)(t, k, out, plane, n, true);
            else NAME(gather_four)(t, k, out, plane, n, false);
}
static void NAME(scatter)(const grid_tile *t, void *to, const void *from, int64_t n)
{
    T       *plane = to;
    const T *g = from;
    for (int64_t k = 0; k < t->taps; k++) {
        const I *place = (const I *)t->place + k * t->tile;
        const T *weight = (const T *)t->weight + k * t->tile;
        for (int64_t p = 0; p < n; p++)
            if (place[p] >= 0) plane[place[p]] += weight[p] * g[p];
    }
}
static void NAME(slope)(const grid_tile *t, int axes, void *to, const void *from, const void *gradient, int64_t n)
{
    const T *plane = from, *g = gradient;
    for (int64_t k = 0; k < t->taps; k++) {
        const I *place = (const I *)t->place + k * t->tile;
        const T *sx = (const T *)t->slope + k * t->tile, *sy = sx + t->taps * t->tile, *sz = sy + t->taps * t->tile;
        T       *x = to, *y = x + t->tile, *z = y + t->tile;
        if (axes == 2)
            for (int64_t p = 0; p < n; p++) {
                T v = place[p] < 0 ? 0 : plane[place[p]] * g[p];
                x[p] += v * sx[p], y[p] += v * sy[p];
            }
        else
            for (int64_t p = 0; p < n; p++) {
                T v = place[p] < 0 ? 0 : plane[place[p]] * g[p];
                x[p] += v * sx[p], y[p] += v * sy[p], z[p] += v * sz[p];
            }
    }
}
/* ---- interleaved channels ---- */
typedef T   NAME(lanes) __attribute__((vector_size(GRID_LANE_BYTES), may_alias));
static void NAME(gather_lanes)(const grid_tile *t, void *to, const void *from, int64_t n)
{
    NAME(lanes) *out = to;
    const NAME(lanes) *rows = from;
    int64_t tile = t->tile;
    if (t->taps == 1) {
        for (int64_t p = 0; p < n; p++) out[p] = rows[((const I *)t->place)[p]];
        return;
    }
    for (int64_t k = 0; k < t->taps; k += 4) {
        const I *place = (const I *)t->place + k * tile;
        const T *weight = (const T *)t->weight + k * tile;
        for (int64_t p = 0; p < n; p++) {
            NAME(lanes) top = rows[place[p]] * weight[p] + rows[place[tile + p]] * weight[tile + p];
            NAME(lanes)
            low = rows[place[2 * tile + p]] * weight[2 * tile + p] + rows[place[3 * tile + p]] * weight[3 * tile + p];
            out[p] = k ? out[p] + (top + low) : top + low;
        }
    }
}
static void NAME(scatter_lanes)(const grid_tile *t, void *to, const void *from, int64_t n)
{
    NAME(lanes) *rows = to;
    const NAME(lanes) *g = from;
    for (int64_t k = 0; k < t->taps; k++) {
        const I *place = (const I *)t->place + k * t->tile;
        const T *weight = (const T *)t->weight + k * t->tile;
        for (int64_t p = 0; p < n; p++) rows[place[p]] += g[p] * weight[p];
    }
}
#undef T
#undef I
#undef FLOOR
#undef RINT
#undef FMOD
#undef NAME
