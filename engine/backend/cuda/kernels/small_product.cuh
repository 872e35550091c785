/* Small products in one launch, with what follows them. T: out and the operands of the epilogue, U: a, V: b. VARIANT: the
 * activation, 8 if both operands are contiguous along k on 16 bytes, 16 if there is a second product of low rank. */
typedef acc_of<T>::type A;
enum { ACTIVATION = VARIANT & 7, SMOOTH = VARIANT >> 3 & 1, LOW = VARIANT >> 4 & 1 };
enum { NONE, RELU, GELU, GELU_TANH, SILU };
struct small_product {
    T       *out;
    const U *a;
    const V *b;
    const T *addend, *residual;
    const U *down; /* scale (a down) up is added */
    const V *up;
    i64      batch, m, n, k, rank;
    i64      out_at[3], a_at[3], b_at[3], addend_at[3], residual_at[3], down_at[2], up_at[2]; /* strides: batch, row, column */
    double   scale, addend_scale, low_scale;
    int      accumulate;
};
__device__ inline float  power(float x) { return expf(x); }
__device__ inline double power(double x) { return exp(x); }
__device__ inline A      activated(A x)
{
    if (ACTIVATION == RELU) return x < 0 ? (A)0 : x;
    if (ACTIVATION == GELU) return (A)0.5 * x * ((A)1 + (A)erf(x * (A)0.70710678118654752440));
    if (ACTIVATION == GELU_TANH)
        return (A)0.5 * x * ((A)1 + (A)tanh((A)0.79788456080286535588 * (x + (A)0.044715 * x * x * x)));
    if (ACTIVATION == SILU) return x / ((A)1 + power(-x));
    return x;
}
__device__ inline void put(const small_product &p, i64 batch, i64 i, i64 j, A v)
{
    T *to = p.out + batch * p.out_at[0] + i * p.out_at[1] + j * p.out_at[2];
    if (p.scale != 1) v = (A)p.scale * v;
    if (p.addend) v += (A)p.addend_scale * (A)value(p.addend[batch * p.addend_at[0] + i * p.addend_at[1] + j * p.addend_at[2]]);
    v = activated(v);
    if (p.residual) v += (A)value(p.residual[batch * p.residual_at[0] + i * p.residual_at[1] + j * p.residual_at[2]]);
    if (p.accumulate) v += (A)value(*to);
    *to = made<T>::of(v);
}
enum { EDGE = 8, WARPS = 4, MOST_RANK = 16 };
/* A warp makes EDGE x EDGE elements, its lanes share k. Each of five exchanges halves what a lane keeps: two elements stay. */
BLOCK_KERNEL(lanes, small_product, p)
{
    int  lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i64  across = (p.n + EDGE - 1) / EDGE, down = (p.m + EDGE - 1) / EDGE, tile = blockIdx.x * WARPS + warp;
    bool there = tile < p.batch * across * down;
    if (!there) tile = 0;
    i64      batch = tile / (across * down), i0 = tile / across % down * EDGE, j0 = tile % across * EDGE;
    const U *a = p.a + batch * p.a_at[0];
    const V *b = p.b + batch * p.b_at[0];
    enum { WIDE = SMOOTH ? 4 : 1 };
    A sum[EDGE * EDGE];
#pragma unroll
    for (int e = 0; e < EDGE * EDGE; e++) sum[e] = 0;
    for (i64 l = lane * WIDE; l < p.k; l += 32 * WIDE) {
        A x[EDGE][WIDE], y[EDGE][WIDE];
#pragma unroll
        for (int i = 0; i < EDGE; i++) {
            bool row = i0 + i < p.m, col = j0 + i < p.n;
            if (SMOOTH) {
                several<U, WIDE> u;
                several<V, WIDE> v;
                if (row) u = *(const several<U, WIDE> *)(a + (i0 + i) * p.a_at[1] + l);
                if (col) v = *(const several<V, WIDE> *)(b + (j0 + i) * p.b_at[2] + l);
#pragma unroll
                for (int w = 0; w < WIDE; w++) {
                    x[i][w] = row ? (A)value(u.v[w]) : (A)0;
                    y[i][w] = col ? (A)value(v.v[w]) : (A)0;
                }
            } else {
                x[i][0] = row ? (A)value(a[(i0 + i) * p.a_at[1] + l * p.a_at[2]]) : (A)0;
                y[i][0] = col ? (A)value(b[l * p.b_at[1] + (j0 + i) * p.b_at[2]]) : (A)0;
            }
        }
#pragma unroll
        for (int i = 0; i < EDGE; i++)
#pragma unroll
            for (int j = 0; j < EDGE; j++)
#pragma unroll
                for (int w = 0; w < WIDE; w++) sum[i * EDGE + j] += x[i][w] * y[j][w];
    }
    int base = 0;
#pragma unroll
    for (int step = 16, n = EDGE * EDGE / 2; step; step /= 2, n /= 2) {
        bool up = lane & step;
        if (up) base += n;
#pragma unroll
        for (int e = 0; e < EDGE * EDGE / 2; e++)
            if (e < n) {
                A kept = up ? sum[e + n] : sum[e], given = up ? sum[e] : sum[e + n];
                sum[e] = kept + __shfl_xor_sync(0xffffffffu, given, step);
            }
    }
#if VARIANT >> 4 & 1
    __shared__ A low[WARPS][EDGE][MOST_RANK]; /* a down, of the warp's rows */
    for (i64 r = 0; r < p.rank; r++) {
        A dot[EDGE];
#pragma unroll
        for (int i = 0; i < EDGE; i++) dot[i] = 0;
        for (i64 l = lane; l < p.k; l += 32) {
            A y = (A)value(p.down[l * p.down_at[0] + r * p.down_at[1]]);
#pragma unroll
            for (int i = 0; i < EDGE; i++)
                if (i0 + i < p.m) dot[i] += (A)value(a[(i0 + i) * p.a_at[1] + l * p.a_at[2]]) * y;
        }
#pragma unroll
        for (int i = 0; i < EDGE; i++) {
            if (i0 + i >= p.m) continue; /* of the whole warp */
            for (int d = 16; d; d /= 2) dot[i] += __shfl_xor_sync(0xffffffffu, dot[i], d);
            if (lane == 0) low[warp][i][r] = dot[i];
        }
    }
    __syncthreads();
#endif
#pragma unroll
    for (int e = 0; e < EDGE * EDGE / 32; e++) {
        i64 i = i0 + (base + e) / EDGE, j = j0 + (base + e) % EDGE;
        if (!there || i >= p.m || j >= p.n) continue;
#if VARIANT >> 4 & 1
        A more = 0;
        for (i64 r = 0; r < p.rank; r++)
            more += low[warp][(base + e) / EDGE][r] * (A)value(p.up[r * p.up_at[0] + j * p.up_at[1]]);
        sum[e] += (A)p.low_scale * more;
#endif
        put(p, batch, i, j, sum[e]);
    }
}
/* Operands that lie otherwise: a block makes a tile of 32 x 32 from slices of 32 in shared memory, a thread 2 x 2. */
enum { TILE = 32 };
BLOCK_KERNEL(tiles, small_product, p)
{
    __shared__ A left[TILE][TILE + 1], right[TILE][TILE + 1];
    i64          across = (p.n + TILE - 1) / TILE, down = (p.m + TILE - 1) / TILE, batch = blockIdx.x / (across * down);
    i64          i0 = blockIdx.x / across % down * TILE, j0 = blockIdx.x % across * TILE;
    const U     *a = p.a + batch * p.a_at[0];
    const V     *b = p.b + batch * p.b_at[0];
    int          y = threadIdx.x / 16, x = threadIdx.x % 16;
    A            sum[2][2] = { { 0, 0 }, { 0, 0 } };
    for (i64 l0 = 0; l0 < p.k; l0 += TILE) {
#pragma unroll
        for (int e = threadIdx.x; e < TILE * TILE; e += 256) {
            int i = p.a_at[2] == 1 ? e / TILE : e % TILE, l = p.a_at[2] == 1 ? e % TILE : e / TILE;
            left[l][i] = i0 + i < p.m && l0 + l < p.k ? (A)value(a[(i0 + i) * p.a_at[1] + (l0 + l) * p.a_at[2]]) : (A)0;
            int j = p.b_at[1] == 1 ? e / TILE : e % TILE;
            l = p.b_at[1] == 1 ? e % TILE : e / TILE;
            right[l][j] = j0 + j < p.n && l0 + l < p.k ? (A)value(b[(l0 + l) * p.b_at[1] + (j0 + j) * p.b_at[2]]) : (A)0;
        }
        __syncthreads();
#pragma unroll
        for (int l = 0; l < TILE; l++)
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 2; j++) sum[i][j] += left[l][y + 16 * i] * right[l][x + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            if (i0 + y + 16 * i < p.m && j0 + x + 16 * j < p.n) put(p, batch, i0 + y + 16 * i, j0 + x + 16 * j, sum[i][j]);
}
