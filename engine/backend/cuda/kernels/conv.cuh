/* Convolution without cuDNN: a product whose operands are gathered from where they lie. T: what is computed, U and V: the
 * operands. VARIANT: 0 result, 1 image, 2 weight. Rows and columns of the product, and the sum's elements, are
 *   0  positions (n, place), channels m           over (c, tap)
 *   1  positions of the image, channels c         over (m, tap)
 *   2  channels m, (c, tap)                       over (n, place of the result), cut into slices that are summed in order
 * per group. Tiles as in matmul.cuh. */
typedef acc_of<T>::type A;
enum { TILE = 64, DEEP = 16, EACH_WAY = 4, RESULT = 0, IMAGE = 1, WEIGHT = 2 };
struct side {
    i64 n, channel, place[3]; /* strides in elements */
};
struct conv_args {
    T       *out;
    const U *a; /* 0: image, 1: result, 2: result */
    const V *b; /* 0: weight, 1: weight, 2: image */
    const A *bias;
    i64      n, groups, c, m, size[3], result[3], kernel[3], stride[3], padding[3], dilation[3];
    side     image, weight, outcome; /* weight: n is m's stride, place the taps' */
    i64      rows, cols, deep, slices;
    A       *partial;
};
__device__ inline i64 places(const i64 *of) { return of[0] * of[1] * of[2]; }
__device__ inline i64 strided(const i64 *of, const i64 *stride, i64 i)
{
    return i % of[2] * stride[2] + i / of[2] % of[1] * stride[1] + i / of[2] / of[1] * stride[0];
}
/* Offset of the image's element that tap and place of the result meet; -1: outside */
__device__ inline i64 met(const conv_args &p, i64 place, i64 tap)
{
    i64 offset = 0;
    for (int d = 2; d >= 0; d--) {
        i64 at = place % p.result[d] * p.stride[d] - p.padding[d] + tap % p.kernel[d] * p.dilation[d];
        if (at < 0 || at >= p.size[d]) return -1;
        offset += at * p.image.place[d], place /= p.result[d], tap /= p.kernel[d];
    }
    return offset;
}
/* Offset of the result's element whose tap is at a place of the image; -1: there is none */
__device__ inline i64 made_by(const conv_args &p, i64 place, i64 tap)
{
    i64 offset = 0;
    for (int d = 2; d >= 0; d--) {
        i64 at = place % p.size[d] + p.padding[d] - tap % p.kernel[d] * p.dilation[d];
        if (at < 0 || at % p.stride[d] || at / p.stride[d] >= p.result[d]) return -1;
        offset += at / p.stride[d] * p.outcome.place[d], place /= p.size[d], tap /= p.kernel[d];
    }
    return offset;
}
__device__ inline A left_at(const conv_args &p, i64 g, i64 row, i64 l)
{
    i64 taps = places(p.kernel), offset;
    if (VARIANT == RESULT) {
        i64 all = places(p.result);
        offset = met(p, row % all, l % taps);
        return offset < 0 ? (A)0 : (A)value(p.a[row / all * p.image.n + (g * p.c + l / taps) * p.image.channel + offset]);
    }
    if (VARIANT == IMAGE) {
        i64 all = places(p.size);
        offset = made_by(p, row % all, l % taps);
        return offset < 0 ? (A)0 : (A)value(p.a[row / all * p.outcome.n + (g * p.m + l / taps) * p.outcome.channel + offset]);
    }
    i64 all = places(p.result);
    return (A)value(
        p.a[l / all * p.outcome.n + (g * p.m + row) * p.outcome.channel + strided(p.result, p.outcome.place, l % all)]);
}
__device__ inline A right_at(const conv_args &p, i64 g, i64 l, i64 col)
{
    i64 taps = places(p.kernel);
    if (VARIANT == RESULT)
        return (A)value(
            p.b[(g * p.m + col) * p.weight.n + l / taps * p.weight.channel + strided(p.kernel, p.weight.place, l % taps)]);
    if (VARIANT == IMAGE)
        return (A)value(
            p.b[(g * p.m + l / taps) * p.weight.n + col * p.weight.channel + strided(p.kernel, p.weight.place, l % taps)]);
    i64 all = places(p.result), offset = met(p, l % all, col % taps);
    return offset < 0 ? (A)0 : (A)value(p.b[l / all * p.image.n + (g * p.c + col / taps) * p.image.channel + offset]);
}
__device__ inline void put(const conv_args &p, i64 g, i64 row, i64 col, A v)
{
    if (VARIANT == RESULT) {
        i64 all = places(p.result), channel = g * p.m + col;
        if (p.bias) v += p.bias[channel];
        p.out[row / all * p.outcome.n + channel * p.outcome.channel + strided(p.result, p.outcome.place, row % all)] =
            made<T>::of(v);
    } else if (VARIANT == IMAGE) {
        i64 all = places(p.size), channel = g * p.c + col;
        if (p.bias) v += p.bias[channel];
        p.out[row / all * p.image.n + channel * p.image.channel + strided(p.size, p.image.place, row % all)] = made<T>::of(v);
    } else {
        i64 taps = places(p.kernel);
        p.out[(g * p.m + row) * p.weight.n + col / taps * p.weight.channel + strided(p.kernel, p.weight.place, col % taps)] =
            made<T>::of(v);
    }
}
BLOCK_KERNEL(convolve, conv_args, p)
{
    __shared__ A left[DEEP][TILE + 1], right[DEEP][TILE + 1];
    i64          down = (p.rows + TILE - 1) / TILE, across = (p.cols + TILE - 1) / TILE, tile = blockIdx.x % (down * across);
    i64          slice = blockIdx.x / (down * across) % p.slices, g = blockIdx.x / (down * across) / p.slices;
    i64          i0 = tile / across * TILE, j0 = tile % across * TILE, length = (p.deep + p.slices - 1) / p.slices;
    i64          begin = slice * length, end = begin + length < p.deep ? begin + length : p.deep;
    int          y = threadIdx.x / 16, x = threadIdx.x % 16;
    A            sum[EACH_WAY][EACH_WAY];
    for (int i = 0; i < EACH_WAY; i++)
        for (int j = 0; j < EACH_WAY; j++) sum[i][j] = 0;
    for (i64 l0 = begin; l0 < end; l0 += DEEP) {
        for (int e = threadIdx.x; e < TILE * DEEP; e += 256) {
            int i = VARIANT == WEIGHT ? e / DEEP : e % TILE, l = VARIANT == WEIGHT ? e % DEEP : e / TILE;
            left[l][i] = i0 + i < p.rows && l0 + l < end ? left_at(p, g, i0 + i, l0 + l) : (A)0;
            int j = e / DEEP;
            l = e % DEEP;
            right[l][j] = j0 + j < p.cols && l0 + l < end ? right_at(p, g, l0 + l, j0 + j) : (A)0;
        }
        __syncthreads();
        for (int l = 0; l < DEEP; l++)
            for (int i = 0; i < EACH_WAY; i++)
                for (int j = 0; j < EACH_WAY; j++) sum[i][j] += left[l][y + 16 * i] * right[l][x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < EACH_WAY; i++)
        for (int j = 0; j < EACH_WAY; j++) {
            i64 row = i0 + y + 16 * i, col = j0 + x + 16 * j;
            if (row >= p.rows || col >= p.cols) continue;
            if (p.partial) p.partial[((g * p.slices + slice) * p.rows + row) * p.cols + col] = sum[i][j];
            else put(p, g, row, col, sum[i][j]);
        }
}
KERNEL(add_slices, conv_args, p)
{
    i64 each = p.rows * p.cols;
    EACH(i, p.groups * each)
    {
        i64 g = i / each, at = i % each;
        A   sum = 0;
        for (i64 s = 0; s < p.slices; s++) sum += p.partial[(g * p.slices + s) * each + at];
        put(p, g, at / p.cols, at % p.cols, sum);
    }
}
