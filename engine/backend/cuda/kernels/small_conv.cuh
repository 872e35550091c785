/* Small convolutions of planes (rows of an image are contiguous) in two dimensions: where the launches and transposes of a library
 * would take longer than the arithmetic. T: all tensors. VARIANT: bits 0-1 what is computed (0 result, 1 image, 2 weight), 2-3
 * channels per thread (1, 2, 4, 8), 4-6 and 7-9 the window's height and width less one, 10 whether every stride is one.
 *
 *   result, image   a thread makes one place of CHANNELS channels; a block shares their weights, a part of the sum at a time
 *   weight          a block makes the taps of CHANNELS channels of the result and one of the image, over a slice of all places;
 *                   `add_slices` adds the slices in order, so the sum is the same in every run */
typedef acc_of<T>::type A;
enum { RESULT, IMAGE, WEIGHT, KIND = VARIANT & 3, CHANNELS = 1 << (VARIANT >> 2 & 3), STRIDE_ONE = VARIANT >> 10 & 1 };
enum { HIGH = (VARIANT >> 4 & 7) + 1, BROAD = (VARIANT >> 7 & 7) + 1, TAPS = HIGH * BROAD };
enum {
    THREADS = 128,
    SHARED = 4096,
    TOGETHER = SHARED / (TAPS * CHANNELS)
}; /* TOGETHER: summed channels whose weights are shared */
struct small_conv {
    T       *out;
    const T *a, *b; /* 0: image, weight; 1: result, weight; 2: result, image */
    const T *bias;
    i32      n, groups, c, m; /* c, m: channels of a group, in the image and in the result */
    i32      size[2], result[2], stride[2], padding[2], dilation[2];
    i32      image[4], weight[4], outcome[4]; /* strides in elements: image or m, channel, row, column */
    i32      tiles, blocks, slices;           /* of channels; of places; of the sum over places */
    A       *partial;
};

/* Where the result's row (or column) lies that tap `t` joins to the image's row `at`; -1: there is none. */
__device__ inline int made_by(const small_conv &p, int d, int at, int t)
{
    int y = at + p.padding[d] - t * p.dilation[d];
    if (y < 0) return -1;
    if (!STRIDE_ONE) {
        if (y % p.stride[d]) return -1;
        y /= p.stride[d];
    }
    return y < p.result[d] ? y : -1;
}
__device__ inline int met(const small_conv &p, int d, int at, int t)
{
    int y = (STRIDE_ONE ? at : at * p.stride[d]) - p.padding[d] + t * p.dilation[d];
    return y < 0 || y >= p.size[d] ? -1 : y;
}

#if (VARIANT & 3) < 2
typedef several<A, CHANNELS> group; /* a tap's weights */
BLOCK_KERNEL(places, small_conv, p)
{
    alignas(16) __shared__ A weight[SHARED];
    const int               *from = KIND == RESULT ? p.image : p.outcome, *to = KIND == RESULT ? p.outcome : p.image;
    const int               *size = KIND == RESULT ? p.result : p.size;
    int                      summed = KIND == RESULT ? p.c : p.m, made_here = KIND == RESULT ? p.m : p.c;
    int      tile = blockIdx.x / p.blocks % p.tiles, g = blockIdx.x / p.blocks / p.tiles, first = tile * CHANNELS;
    int      at = blockIdx.x % p.blocks * THREADS + threadIdx.x, x = at % size[1], y = at / size[1] % size[0];
    int      n = at / size[1] / size[0];
    bool     inside = n < p.n;
    const T *source = p.a + n * from[0] + g * summed * from[1];
    A        sum[CHANNELS];
#pragma unroll
    for (int k = 0; k < CHANNELS; k++) sum[k] = 0;
    for (int s0 = 0; s0 < summed; s0 += TOGETHER) {
        int here = summed - s0 < TOGETHER ? summed - s0 : TOGETHER;
        __syncthreads();
        for (int e = threadIdx.x; e < here * TAPS * CHANNELS; e += THREADS) {
            int k = e % CHANNELS, tap = e / CHANNELS % TAPS, s = s0 + e / CHANNELS / TAPS, made = first + k;
            int m = KIND == RESULT ? made : s, c = KIND == RESULT ? s : made;
            weight[e] = made < made_here ? (A)p.b[(g * p.m + m) * p.weight[0] + c * p.weight[1] + tap / BROAD * p.weight[2] +
                                                  tap % BROAD * p.weight[3]]
                                         : (A)0;
        }
        __syncthreads();
        if (!inside) continue;
        for (int s = 0; s < here; s++) {
            const T     *plane = source + (s0 + s) * from[1];
            const group *w = (const group *)weight + s * TAPS;
#pragma unroll
            for (int ty = 0; ty < HIGH; ty++) {
                int row = KIND == RESULT ? met(p, 0, y, ty) : made_by(p, 0, y, ty);
                if (row < 0) continue;
#pragma unroll
                for (int tx = 0; tx < BROAD; tx++) {
                    int   column = KIND == RESULT ? met(p, 1, x, tx) : made_by(p, 1, x, tx);
                    A     v = column < 0 ? (A)0 : (A)plane[row * from[2] + column * from[3]];
                    group of = w[ty * BROAD + tx];
#pragma unroll
                    for (int k = 0; k < CHANNELS; k++) sum[k] += v * of.v[k];
                }
            }
        }
    }
    if (!inside) return;
    T *out = p.out + n * to[0] + (g * made_here + first) * to[1] + y * to[2] + x * to[3];
#pragma unroll
    for (int k = 0; k < CHANNELS; k++)
        if (first + k < made_here) out[k * to[1]] = p.bias ? sum[k] + (A)p.bias[g * made_here + first + k] : sum[k];
}
#else
BLOCK_KERNEL(weights, small_conv, p)
{
    enum { EACH_BLOCK = TAPS * CHANNELS, WARPS = THREADS / 32 };
    enum { HALF = EACH_BLOCK > 32 ? 32 : EACH_BLOCK > 16 ? 16 : EACH_BLOCK > 8 ? 8 : 4 };
    __shared__ A part[WARPS][2 * HALF];
    int          slice = blockIdx.x % p.slices, c = blockIdx.x / p.slices % p.c, tile = blockIdx.x / p.slices / p.c % p.tiles;
    int          g = blockIdx.x / p.slices / p.c / p.tiles, first = tile * CHANNELS;
    int          all = p.n * p.result[0] * p.result[1], length = (all + p.slices - 1) / p.slices;
    int          begin = slice * length, end = begin + length < all ? begin + length : all;
    A            sum[2 * HALF]; /* a power of two */
#pragma unroll
    for (int e = 0; e < 2 * HALF; e++) sum[e] = 0;
    for (int at = begin + threadIdx.x; at < end; at += THREADS) {
        int      x = at % p.result[1], y = at / p.result[1] % p.result[0], n = at / p.result[1] / p.result[0];
        const T *slope = p.a + n * p.outcome[0] + (g * p.m + first) * p.outcome[1] + y * p.outcome[2] + x * p.outcome[3];
        const T *plane = p.b + n * p.image[0] + (g * p.c + c) * p.image[1];
        A        d[CHANNELS];
#pragma unroll
        for (int k = 0; k < CHANNELS; k++) d[k] = first + k < p.m ? (A)slope[k * p.outcome[1]] : (A)0;
#pragma unroll
        for (int ty = 0; ty < HIGH; ty++) {
            int row = met(p, 0, y, ty);
#pragma unroll
            for (int tx = 0; tx < BROAD; tx++) {
                int column = met(p, 1, x, tx);
                A   v = row < 0 || column < 0 ? (A)0 : (A)plane[row * p.image[2] + column * p.image[3]];
#pragma unroll
                for (int k = 0; k < CHANNELS; k++) sum[(ty * BROAD + tx) * CHANNELS + k] += v * d[k];
            }
        }
    }
    sum_of_lanes(sum, part[threadIdx.x / 32]);
    __syncthreads();
    for (int e = threadIdx.x; e < EACH_BLOCK; e += THREADS) {
        A   v = 0;
        int m = first + e % CHANNELS, tap = e / CHANNELS;
        for (int w = 0; w < WARPS; w++) v += part[w][e];
        if (m < p.m) p.partial[((slice * p.groups * p.m + g * p.m + m) * (i64)p.c + c) * TAPS + tap] = v;
    }
}
KERNEL(add_slices, small_conv, p)
{
    i64 each = (i64)p.groups * p.m * p.c * TAPS;
    EACH(i, each)
    {
        int tap = (int)(i % TAPS), c = (int)(i / TAPS % p.c), m = (int)(i / TAPS / p.c);
        A   sum = 0;
        for (int s = 0; s < p.slices; s++) sum += p.partial[s * each + i];
        p.out[m * p.weight[0] + c * p.weight[1] + tap / BROAD * p.weight[2] + tap % BROAD * p.weight[3]] = (T)sum;
    }
}
#endif
