/* Normalisations (args.h: lc_norm_args). T: in, out and grad; U: statistics; V: parameters and their
 * gradients. VARIANT: how a row is held; 0: not. */
typedef acc_of<T>::type A;
struct norm_args {
    T       *out;
    U       *mean, *rstd, *variance;
    V       *dweight, *dbias;
    const T *in, *grad;
    const V *weight, *bias;
    i64      rows, groups, channels, inner, slices;
    double   eps;
    int      centred, fixed;
    A       *partial; /* sums of slices, or factors per channel */
};
template <class S> __device__ inline A    at_or(const S *p, i64 i, A otherwise) { return p ? (A)value(p[i]) : otherwise; }
template <class S> __device__ inline void set(S *p, i64 i, A v)
{
    if (p) p[i] = made<S>::of(v);
}

#if VARIANT & 1
/* ---- rows in registers, read once (rows.c: hold_row) ---- */
enum { WARP = (VARIANT >> 1 & 1) != 0, WIDE = VARIANT >> 2 & 1 ? 16 / (int)sizeof(T) : 1, CHUNKS = 1 << (VARIANT >> 3 & 3) };
/* Several elements have one parameter. A text of its own: it takes a third of the registers. */
enum { SHARED = VARIANT >> 5 & 1 };
struct place {
    int lane, threads, length;
    i64 row, first; /* first: parameter of the row's first channel */
};
__device__ inline place place_of(const norm_args &p)
{
    place at;
    at.lane = WARP ? threadIdx.x % 32 : threadIdx.x, at.threads = WARP ? 32 : blockDim.x;
    at.row = WARP ? blockIdx.x * 4 + threadIdx.x / 32 : blockIdx.x;
    at.length = (int)(p.channels * p.inner);
    if (at.row >= p.rows) at.row = 0, at.length = 0; /* a warp without a row: it folds nothing */
    at.first = p.groups == 1 ? 0 : at.row % p.groups * p.channels;
    return at;
}
/* f(element, its parameter) for what this thread holds. */
template <class F>
__device__ inline void with_parameters(A (&x)[CHUNKS * WIDE], const norm_args &p, const place &at, const V *of, A otherwise,
                                       F f)
{
    if (!SHARED) {
        held_piece<V, WIDE> held[CHUNKS];
        of += at.first;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            int element = held_at<WIDE>(c, at.lane, at.threads);
            held[c].fill(made<V>::of(otherwise));
            if (element < at.length) held[c] = *(const held_piece<V, WIDE> *)(of + element);
        }
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            A w[WIDE];
            held[c].get(w);
#pragma unroll
            for (int j = 0; j < WIDE; j++) f(x[c * WIDE + j], w[j]);
        }
    } else
#pragma unroll
        for (int i = 0; i < CHUNKS * WIDE; i++) {
            int element = held_at<WIDE>(i / WIDE, at.lane, at.threads) + i % WIDE;
            f(x[i], element < at.length ? (A)value(of[at.first + element / (int)p.inner]) : otherwise);
        }
}
BLOCK_KERNEL(held, norm_args, p)
{
    place at = place_of(p);
    A     x[CHUNKS * WIDE], mean = 0, square = 0, share = (A)1 / (A)at.length;
    hold<WIDE, CHUNKS>(x, p.in + at.row * at.length, at.length, at.lane, at.threads, (A)0);
    if (p.centred) {
#pragma unroll
        for (int i = 0; i < CHUNKS * WIDE; i++) mean += x[i];
        mean = shared_sum<WARP>(mean) * share;
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
        if (held_at<WIDE>(c, at.lane, at.threads) < at.length)
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                A d = x[c * WIDE + j] - mean;
                square += d * d;
            }
    A rstd = rsqrt(shared_sum<WARP, 1>(square) * share + (A)p.eps);
#pragma unroll
    for (int i = 0; i < CHUNKS * WIDE; i++) x[i] = (x[i] - mean) * rstd;
    if (p.weight) with_parameters(x, p, at, p.weight, (A)1, [](A &x, A w) { x *= w; });
    if (p.bias) with_parameters(x, p, at, p.bias, (A)0, [](A &x, A b) { x += b; });
    release<WIDE, CHUNKS>(x, p.out + at.row * at.length, at.length, at.lane, at.threads);
    if (at.lane == 0 && at.length) set(p.mean, at.row, mean), set(p.rstd, at.row, rstd);
}
BLOCK_KERNEL(held_slope, norm_args, p) /* the gradient of the input */
{
    place at = place_of(p);
    A     x[CHUNKS * WIDE], g[CHUNKS * WIDE], sum = 0, dot = 0, share = (A)1 / (A)at.length;
    hold<WIDE, CHUNKS>(x, p.in + at.row * at.length, at.length, at.lane, at.threads, (A)0);
    hold<WIDE, CHUNKS>(g, p.grad + at.row * at.length, at.length, at.lane, at.threads, (A)0);
    A mean = at_or(p.mean, at.row, 0), rstd = at_or(p.rstd, at.row, 0);
    if (p.weight) with_parameters(g, p, at, p.weight, (A)1, [](A &g, A w) { g *= w; });
#pragma unroll
    for (int i = 0; i < CHUNKS * WIDE; i++) x[i] -= mean, sum += g[i], dot += g[i] * x[i];
    sum = p.centred ? shared_sum<WARP>(sum) * share : (A)0;
    dot = shared_sum<WARP, 1>(dot) * share * rstd * rstd;
#pragma unroll
    for (int i = 0; i < CHUNKS * WIDE; i++) x[i] = (g[i] - dot * x[i] - sum) * rstd;
    release<WIDE, CHUNKS>(x, p.out + at.row * at.length, at.length, at.lane, at.threads);
}
#else
/* ---- rows of any length: a block each ---- */
BLOCK_KERNEL(rows, norm_args, p)
{
    i64      length = p.channels * p.inner, first = blockIdx.x % p.groups * p.channels;
    const T *x = p.in + blockIdx.x * length;
    A        mean = 0, square = 0;
    if (p.centred) {
        for (i64 i = threadIdx.x; i < length; i += blockDim.x) mean += (A)value(x[i]);
        mean = block_sum(mean) / (A)length;
    }
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
        A d = (A)value(x[i]) - mean;
        square += d * d;
    }
    A rstd = (A)1 / sqrt(block_sum(square) / (A)length + (A)p.eps);
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
        i64 c = first + (p.inner == 1 ? i : i / p.inner);
        p.out[blockIdx.x * length + i] =
            made<T>::of(((A)value(x[i]) - mean) * rstd * at_or(p.weight, c, 1) + at_or(p.bias, c, 0));
    }
    if (threadIdx.x == 0) set(p.mean, blockIdx.x, mean), set(p.rstd, blockIdx.x, rstd);
}
BLOCK_KERNEL(rows_slope, norm_args, p) /* the gradient of the input */
{
    i64      length = p.channels * p.inner, first = blockIdx.x % p.groups * p.channels;
    const T *x = p.in + blockIdx.x * length, *g = p.grad + blockIdx.x * length;
    A        mean = at_or(p.mean, blockIdx.x, 0), rstd = at_or(p.rstd, blockIdx.x, 0), sum = 0, dot = 0;
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
        A wg = (A)value(g[i]) * at_or(p.weight, first + (p.inner == 1 ? i : i / p.inner), 1);
        sum += wg, dot += wg * ((A)value(x[i]) - mean);
    }
    sum = p.centred ? block_sum(sum) / (A)length : 0;
    dot = block_sum(dot) / (A)length * rstd * rstd;
    for (i64 i = threadIdx.x; i < length; i += blockDim.x) {
        A wg = (A)value(g[i]) * at_or(p.weight, first + (p.inner == 1 ? i : i / p.inner), 1);
        p.out[blockIdx.x * length + i] = made<T>::of((wg - dot * ((A)value(x[i]) - mean) - sum) * rstd);
    }
}
/* The parameters' gradients where each element of a row has its own: 32 parameters and 8 rows at a time. */
BLOCK_KERNEL(rows_sums, norm_args, p)
{
    __shared__ A part[2][256];
    i64          width = p.groups * p.channels, blocks = (width + 31) / 32, c = blockIdx.x % blocks * 32 + threadIdx.x % 32;
    i64          slice = blockIdx.x / blocks, times = p.rows / p.groups, length = (times + p.slices - 1) / p.slices;
    i64          begin = slice * length, end = begin + length < times ? begin + length : times;
    A            sum = 0, dot = 0;
    if (c < width)
#pragma unroll 4 /* loads of several rows on their way */
        for (i64 t = begin + threadIdx.x / 32; t < end; t += 8) {
            i64 r = t * p.groups + c / p.channels, at = r * p.channels + c % p.channels;
            A   g = (A)value(p.grad[at]);
            sum += g, dot += g * ((A)value(p.in[at]) - at_or(p.mean, r, 0)) * at_or(p.rstd, r, 0);
        }
    part[0][threadIdx.x] = sum, part[1][threadIdx.x] = dot;
    __syncthreads();
    if (threadIdx.x >= 32 || c >= width) return;
    for (int l = 1; l < 8; l++) sum += part[0][l * 32 + threadIdx.x], dot += part[1][l * 32 + threadIdx.x];
    p.partial[(slice * 2) * width + c] = dot, p.partial[(slice * 2 + 1) * width + c] = sum;
}
KERNEL(rows_total, norm_args, p)
{
    i64 width = p.groups * p.channels;
    EACH(c, width)
    {
        A dot = 0, sum = 0;
        for (i64 s = 0; s < p.slices; s++) dot += p.partial[(s * 2) * width + c], sum += p.partial[(s * 2 + 1) * width + c];
        set(p.dweight, c, dot), set(p.dbias, c, sum);
    }
}
BLOCK_KERNEL(group_sums, norm_args, p) /* a block per parameter of a group norm */
{
    i64 group = blockIdx.x / p.channels, c = blockIdx.x % p.channels;
    A   sum = 0, dot = 0;
    for (i64 r = group; r < p.rows; r += p.groups) {
        A   mean = at_or(p.mean, r, 0), rstd = at_or(p.rstd, r, 0);
        i64 at = (r * p.channels + c) * p.inner;
        for (i64 i = threadIdx.x; i < p.inner; i += blockDim.x) {
            A g = (A)value(p.grad[at + i]);
            sum += g, dot += g * ((A)value(p.in[at + i]) - mean) * rstd;
        }
    }
    sum = block_sum(sum), dot = block_sum(dot);
    if (threadIdx.x == 0) set(p.dweight, blockIdx.x, dot), set(p.dbias, blockIdx.x, sum);
}

/* ---- channels: slices of a channel, then the channel, then every element ---- */
#define CHANNEL_SLICE                                                                                                          \
    i64 c = blockIdx.x / p.slices, slice = blockIdx.x % p.slices, all = p.rows * p.inner;                                      \
    i64 length = (all + p.slices - 1) / p.slices, begin = slice * length, end = begin + length < all ? begin + length : all
/* Where element i of a channel lies; 32-bit division where it is enough. */
__device__ inline i64 element(const norm_args &p, i64 c, i64 i)
{
    if (p.rows * p.inner >= 1ll << 31) return (i / p.inner * p.channels + c) * p.inner + i % p.inner;
    u32 row = (u32)i / (u32)p.inner;
    return (row * p.channels + c) * p.inner + ((u32)i - row * (u32)p.inner);
}
/* Where channels are neighbours (inner is 1): 32 channels and 8 rows at a time. TERMS adds to a and b. */
#define CHANNELS_BESIDE(shift_of, TERMS)                                                                                        \
    __shared__ A part[2][256];                                                                                                  \
    i64          blocks = (p.channels + 31) / 32, c = blockIdx.x % blocks * 32 + threadIdx.x % 32, slice = blockIdx.x / blocks; \
    i64          length = (p.rows + p.slices - 1) / p.slices, begin = slice * length;                                           \
    i64          end = begin + length < p.rows ? begin + length : p.rows;                                                       \
    A            a = 0, b = 0, shift = c < p.channels ? (A)(shift_of) : (A)0;                                                   \
    if (c < p.channels) {                                                                                                       \
        _Pragma("unroll 8") for (i64 r = begin + threadIdx.x / 32; r < end; r += 8)                                             \
        {                                                                                                                       \
            i64 at = r * p.channels + c;                                                                                        \
            TERMS;                                                                                                              \
        }                                                                                                                       \
    }                                                                                                                           \
    part[0][threadIdx.x] = a, part[1][threadIdx.x] = b;                                                                         \
    __syncthreads();                                                                                                            \
    if (threadIdx.x >= 32 || c >= p.channels) return;                                                                           \
    for (int l = 1; l < 8; l++) a += part[0][l * 32 + threadIdx.x], b += part[1][l * 32 + threadIdx.x];                         \
    p.partial[2 * (c * p.slices + slice)] = a, p.partial[2 * (c * p.slices + slice) + 1] = b
BLOCK_KERNEL(beside_moments, norm_args, p)
{
    CHANNELS_BESIDE(value(p.in[c]), A d = (A)value(p.in[at]) - shift; a += d; b += d * d);
}
BLOCK_KERNEL(beside_dots, norm_args, p)
{
    CHANNELS_BESIDE(at_or(p.mean, c, 0), A g = (A)value(p.grad[at]); a += g; b += g * ((A)value(p.in[at]) - shift));
}
BLOCK_KERNEL(channel_moments, norm_args, p) /* relative to the channel's first element: no cancellation */
{
    CHANNEL_SLICE;
    A shift = (A)value(p.in[c * p.inner]), sum = 0, square = 0;
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
        A d = (A)value(p.in[element(p, c, i)]) - shift;
        sum += d, square += d * d;
    }
    sum = block_sum(sum), square = block_sum(square);
    if (threadIdx.x == 0) p.partial[2 * blockIdx.x] = sum, p.partial[2 * blockIdx.x + 1] = square;
}
/* A warp per channel adds the sums of its slices. */
#define SLICES_OF_CHANNEL(sum, other)                                                                                          \
    i64 c = blockIdx.x * 4 + threadIdx.x / 32;                                                                                 \
    A   sum = 0, other = 0;                                                                                                    \
    for (i64 s = threadIdx.x % 32; c < p.channels && s < p.slices; s += 32)                                                    \
        sum += p.partial[2 * (c * p.slices + s)], other += p.partial[2 * (c * p.slices + s) + 1];                              \
    sum = shared_sum<true>(sum), other = shared_sum<true>(other)
BLOCK_KERNEL(channel_statistics, norm_args, p)
{
    SLICES_OF_CHANNEL(sum, square);
    if (threadIdx.x % 32 == 0 && c < p.channels) {
        A n = (A)(p.rows * p.inner);
        A off = sum / n, variance = square / n - off * off;
        if (variance < 0) variance = 0;
        set(p.mean, c, (n > 0 ? (A)value(p.in[c * p.inner]) : (A)0) + off), set(p.rstd, c, (A)1 / sqrt(variance + (A)p.eps));
        set(p.variance, c, variance);
    }
}
KERNEL(channel_scale, norm_args, p)
{
    EACH(i, p.rows * p.channels * p.inner)
    {
        i64 c = i / p.inner % p.channels;
        p.out[i] = made<T>::of(((A)value(p.in[i]) - at_or(p.mean, c, 0)) * (at_or(p.rstd, c, 1) * at_or(p.weight, c, 1)) +
                               at_or(p.bias, c, 0));
    }
}
BLOCK_KERNEL(channel_dots, norm_args, p)
{
    CHANNEL_SLICE;
    A mean = at_or(p.mean, c, 0), sum = 0, dot = 0;
    for (i64 i = begin + threadIdx.x; i < end; i += blockDim.x) {
        A g = (A)value(p.grad[element(p, c, i)]);
        sum += g, dot += g * ((A)value(p.in[element(p, c, i)]) - mean);
    }
    sum = block_sum(sum), dot = block_sum(dot);
    if (threadIdx.x == 0) p.partial[2 * blockIdx.x] = sum, p.partial[2 * blockIdx.x + 1] = dot;
}
BLOCK_KERNEL(channel_sums, norm_args, p) /* factors go behind the slices' sums */
{
    SLICES_OF_CHANNEL(sum, dot);
    if (threadIdx.x % 32 == 0 && c < p.channels) {
        A n = (A)(p.rows * p.inner), rstd = at_or(p.rstd, c, 0), *by = p.partial + 2 * p.channels * p.slices + 2 * c;
        set(p.dweight, c, dot * rstd), set(p.dbias, c, sum);
        by[0] = p.fixed ? (A)0 : rstd * rstd * dot / n, by[1] = p.fixed ? (A)0 : sum / n;
    }
}
KERNEL(channel_slope, norm_args, p)
{
    EACH(i, p.rows * p.channels * p.inner)
    {
        i64      c = i / p.inner % p.channels;
        const A *by = p.partial + 2 * p.channels * p.slices + 2 * c;
        A        d = (A)value(p.grad[i]);
        if (!p.fixed) d -= by[0] * ((A)value(p.in[i]) - at_or(p.mean, c, 0)) + by[1];
        p.out[i] = made<T>::of(d * (at_or(p.rstd, c, 0) * at_or(p.weight, c, 1)));
    }
}
/* ---- channels that are neighbours, 16 bytes at a time: 8 threads have the neighbours of a row, 32 rows are read at once. A
 * thread stays with its channels, so what belongs to them is in registers. ---- */
enum { WIDE = 16 / sizeof(T), ACROSS = 8, DOWN = 32 };
struct strip {
    i64  c, begin, end;
    bool there;
};
__device__ inline strip strip_of(const norm_args &p)
{
    i64   blocks = (p.channels + ACROSS * WIDE - 1) / (ACROSS * WIDE), length = (p.rows + p.slices - 1) / p.slices;
    strip s;
    s.c = (blockIdx.x % blocks * ACROSS + threadIdx.x % ACROSS) * WIDE, s.there = s.c < p.channels;
    i64 first = blockIdx.x / blocks * length, end = first + length < p.rows ? first + length : p.rows;
    s.begin = first + threadIdx.x / ACROSS, s.end = s.there ? end : 0;
    return s;
}
template <class S> __device__ inline void of_strip(A (&to)[WIDE], const strip &s, const S *from, A otherwise)
{
#pragma unroll
    for (int j = 0; j < WIDE; j++) to[j] = from && s.there ? (A)value(from[s.c + j]) : otherwise;
}
/* The sums of a strip over its rows: the rows of a warp, then the warps. */
__device__ inline void put_strip(const norm_args &p, A (&a)[WIDE], A (&b)[WIDE])
{
    __shared__ A part[2][8][ACROSS * WIDE];
    int          lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int j = 0; j < WIDE; j++) {
#pragma unroll
        for (int d = ACROSS; d < 32; d *= 2) {
            a[j] += __shfl_xor_sync(0xffffffffu, a[j], d), b[j] += __shfl_xor_sync(0xffffffffu, b[j], d);
        }
        if (lane < ACROSS) part[0][warp][lane * WIDE + j] = a[j], part[1][warp][lane * WIDE + j] = b[j];
    }
    __syncthreads();
    i64 blocks = (p.channels + ACROSS * WIDE - 1) / (ACROSS * WIDE), c = blockIdx.x % blocks * ACROSS * WIDE + threadIdx.x;
    if (threadIdx.x >= ACROSS * WIDE || c >= p.channels) return;
    A sum = 0, other = 0;
#pragma unroll
    for (int w = 0; w < 8; w++) sum += part[0][w][threadIdx.x], other += part[1][w][threadIdx.x];
    A *to = p.partial + 2 * (c * p.slices + blockIdx.x / blocks);
    to[0] = sum, to[1] = other;
}
typedef several<T, WIDE> neighbours;
BLOCK_KERNEL(strip_moments, norm_args, p)
{
    strip s = strip_of(p);
    A     shift[WIDE], sum[WIDE] = {}, square[WIDE] = {};
    of_strip(shift, s, p.in, 0);
#pragma unroll 4
    for (i64 r = s.begin; r < s.end; r += DOWN) {
        neighbours x = *(const neighbours *)(p.in + r * p.channels + s.c);
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            A d = (A)value(x.v[j]) - shift[j];
            sum[j] += d, square[j] += d * d;
        }
    }
    put_strip(p, sum, square);
}
BLOCK_KERNEL(strip_dots, norm_args, p)
{
    strip s = strip_of(p);
    A     mean[WIDE], sum[WIDE] = {}, dot[WIDE] = {};
    of_strip(mean, s, p.mean, 0);
#pragma unroll 4
    for (i64 r = s.begin; r < s.end; r += DOWN) {
        neighbours x = *(const neighbours *)(p.in + r * p.channels + s.c);
        neighbours g = *(const neighbours *)(p.grad + r * p.channels + s.c);
#pragma unroll
        for (int j = 0; j < WIDE; j++) sum[j] += (A)value(g.v[j]), dot[j] += (A)value(g.v[j]) * ((A)value(x.v[j]) - mean[j]);
    }
    put_strip(p, sum, dot);
}
KERNEL(strip_scale, norm_args, p)
{
    strip s = strip_of(p);
    A     mean[WIDE], by[WIDE], weight[WIDE], bias[WIDE];
    of_strip(mean, s, p.mean, 0), of_strip(by, s, p.rstd, 1), of_strip(weight, s, p.weight, 1), of_strip(bias, s, p.bias, 0);
#pragma unroll
    for (int j = 0; j < WIDE; j++) by[j] *= weight[j];
    enum { ROUND = 4 }; /* rows that are read before the first is written */
    for (i64 r = s.begin; r < s.end; r += ROUND * DOWN) {
        neighbours x[ROUND];
#pragma unroll
        for (int k = 0; k < ROUND; k++)
            if (r + k * DOWN < s.end) x[k] = *(const neighbours *)(p.in + (r + k * DOWN) * p.channels + s.c);
#pragma unroll
        for (int k = 0; k < ROUND; k++) {
#pragma unroll
            for (int j = 0; j < WIDE; j++) x[k].v[j] = made<T>::of(((A)value(x[k].v[j]) - mean[j]) * by[j] + bias[j]);
            if (r + k * DOWN < s.end) *(neighbours *)(p.out + (r + k * DOWN) * p.channels + s.c) = x[k];
        }
    }
}
KERNEL(strip_slope, norm_args, p)
{
    strip    s = strip_of(p);
    const A *sums = p.partial + 2 * p.channels * p.slices;
    A        mean[WIDE], by[WIDE], weight[WIDE], pull[WIDE], even[WIDE];
    of_strip(mean, s, p.mean, 0), of_strip(by, s, p.rstd, 0), of_strip(weight, s, p.weight, 1);
#pragma unroll
    for (int j = 0; j < WIDE; j++) {
        by[j] *= weight[j];
        pull[j] = s.there ? sums[2 * (s.c + j)] : (A)0, even[j] = s.there ? sums[2 * (s.c + j) + 1] : (A)0;
    }
    enum { ROUND = 2 };
    for (i64 r = s.begin; r < s.end; r += ROUND * DOWN) {
        neighbours g[ROUND], x[ROUND];
#pragma unroll
        for (int k = 0; k < ROUND; k++)
            if (r + k * DOWN < s.end) {
                i64 at = (r + k * DOWN) * p.channels + s.c;
                g[k] = *(const neighbours *)(p.grad + at);
                x[k] = p.fixed ? g[k] : *(const neighbours *)(p.in + at);
            }
#pragma unroll
        for (int k = 0; k < ROUND; k++) {
#pragma unroll
            for (int j = 0; j < WIDE; j++) {
                A d = (A)value(g[k].v[j]);
                if (!p.fixed) d -= pull[j] * ((A)value(x[k].v[j]) - mean[j]) + even[j];
                g[k].v[j] = made<T>::of(d * by[j]);
            }
            if (r + k * DOWN < s.end) *(neighbours *)(p.out + (r + k * DOWN) * p.channels + s.c) = g[k];
        }
    }
}

/* ---- 16 bytes of one channel at a time ---- */
__device__ inline i64 channel_of(const norm_args &p, i64 i)
{
    if (p.rows * p.channels * p.inner >= 1ll << 31) return i / p.inner % p.channels;
    return (u32)i / (u32)p.inner % (u32)p.channels;
}
KERNEL(wide_scale, norm_args, p)
{
    EACH(v, p.rows * p.channels * p.inner / WIDE)
    {
        i64        c = channel_of(p, v * WIDE);
        A          mean = at_or(p.mean, c, 0), by = at_or(p.rstd, c, 1) * at_or(p.weight, c, 1), bias = at_or(p.bias, c, 0);
        neighbours x = ((const neighbours *)p.in)[v];
#pragma unroll
        for (int j = 0; j < WIDE; j++) x.v[j] = made<T>::of(((A)value(x.v[j]) - mean) * by + bias);
        ((neighbours *)p.out)[v] = x;
    }
}
KERNEL(wide_slope, norm_args, p)
{
    EACH(v, p.rows * p.channels * p.inner / WIDE)
    {
        i64        c = channel_of(p, v * WIDE);
        const A   *sums = p.partial + 2 * p.channels * p.slices + 2 * c;
        A          mean = at_or(p.mean, c, 0), by = at_or(p.rstd, c, 0) * at_or(p.weight, c, 1);
        neighbours g = ((const neighbours *)p.grad)[v], x;
        if (!p.fixed) x = ((const neighbours *)p.in)[v];
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
            A d = (A)value(g.v[j]);
            if (!p.fixed) d -= sums[0] * ((A)value(x.v[j]) - mean) + sums[1];
            g.v[j] = made<T>::of(d * by);
        }
        ((neighbours *)p.out)[v] = g;
    }
}
#endif
