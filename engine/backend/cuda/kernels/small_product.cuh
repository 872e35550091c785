/* Small products in one launch, with what follows them. T: out and the operands of the epilogue, U: a, V: b. VARIANT: the
 * activation, 8 if both operands are contiguous along k in pieces of 16 bytes, 16 if there is a second product of low rank, 32 for one row.
 *
 * Such a product takes as long as its memory takes to answer, so the kernels spread it over many blocks and read all that a thread
 * needs at once: warps of a block share k. */
typedef acc_of<T>::type A;
enum { ACTIVATION = VARIANT & 7, SMOOTH = VARIANT >> 3 & 1, LOW = VARIANT >> 4 & 1, ONE = VARIANT >> 5 & 1 };
enum { NONE, RELU, GELU, GELU_TANH, SILU };
struct small_product {
    T       *out;
    const U *a;
    const V *b;
    const T *addend, *residual;
    const U *down; /* scale (a down) up is added */
    const V *up;
    i64      batch, m, n, k, rank, together;                                                  /* column tiles of a block */
    i64      out_at[3], a_at[3], b_at[3], addend_at[3], residual_at[3], down_at[2], up_at[2]; /* strides: batch, row, column */
    double   scale, addend_scale, low_scale;
    int      accumulate, low_aligned; /* down has 8 neighbours on 16 bytes */
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
enum { ROWS = ONE ? 1 : 8, COLS = ONE ? 4 : 8, MOST_WARPS = 8, RANKS = 8, MOST_RANK = 16 };

/* A block makes ROWS x COLS elements, `together` times, its threads share k. */
BLOCK_KERNEL_OF(32 * MOST_WARPS, lanes, small_product, p)
{
    enum { WIDE = SMOOTH ? 16 / (int)sizeof(V) : 1, N = ROWS * COLS };
    __shared__ A part[MOST_WARPS][N];
    int          lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    u32          tiles = (u32)((p.n + COLS - 1) / COLS), across = (tiles + (u32)p.together - 1) / (u32)p.together;
    u32          down = (u32)((p.m + ROWS - 1) / ROWS), batch = blockIdx.x / (across * down);
    i64          i0 = (i64)(blockIdx.x / across % down) * ROWS;
    u32          tile = blockIdx.x % across * (u32)p.together, end = tile + (u32)p.together;
    const U     *a = p.a + batch * p.a_at[0] + i0 * p.a_at[1];
    const V     *b = p.b + batch * p.b_at[0];
    if (end > tiles) end = tiles;
#if VARIANT >> 4 & 1
    __shared__ A low_part[MOST_WARPS][ROWS * RANKS], low[ROWS][MOST_RANK]; /* a down, of the block's rows */
    for (int r0 = 0; r0 < p.rank; r0 += RANKS) {
        A dot[ROWS * RANKS];
#pragma unroll
        for (int e = 0; e < ROWS * RANKS; e++) dot[e] = 0;
#pragma unroll 2
        for (i64 l = threadIdx.x; l < p.k; l += blockDim.x) {
            const V *from = p.down + l * p.down_at[0] + r0 * p.down_at[1];
            A        x[ROWS], y[RANKS];
            if (p.low_aligned) {
                several<V, 4> u = *(const several<V, 4> *)from, v = *(const several<V, 4> *)(from + 4);
#pragma unroll
                for (int r = 0; r < 4; r++) y[r] = (A)value(u.v[r]), y[r + 4] = (A)value(v.v[r]);
            } else
#pragma unroll
                for (int r = 0; r < RANKS; r++) y[r] = r0 + r < p.rank ? (A)value(from[r * p.down_at[1]]) : (A)0;
#pragma unroll
            for (int i = 0; i < ROWS; i++) x[i] = i0 + i < p.m ? (A)value(a[i * p.a_at[1] + l * p.a_at[2]]) : (A)0;
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int r = 0; r < RANKS; r++) dot[i * RANKS + r] += x[i] * y[r];
        }
        sum_of_lanes(dot, low_part[warp]);
        __syncthreads();
        for (int e = threadIdx.x; e < ROWS * RANKS; e += blockDim.x) {
            A all = 0;
            for (int w = 0; w < warps; w++) all += low_part[w][e];
            low[e / RANKS][r0 + e % RANKS] = (A)p.low_scale * all;
        }
        __syncthreads();
    }
#endif
    for (; tile < end; tile++) {
        i64 j0 = (i64)tile * COLS;
        A   sum[N];
#pragma unroll
        for (int e = 0; e < N; e++) sum[e] = 0;
#pragma unroll(ONE ? 2 : 1)
        for (i64 l = (i64)threadIdx.x * WIDE; l < p.k; l += (i64)blockDim.x * WIDE) {
            A x[ROWS][WIDE], y[COLS][WIDE];
            if (SMOOTH) {
                several<U, WIDE> u[ROWS];
                several<V, WIDE> v[COLS];
#pragma unroll
                for (int i = 0; i < ROWS; i++)
                    if (i0 + i < p.m) u[i] = *(const several<U, WIDE> *)(a + i * p.a_at[1] + l);
#pragma unroll
                for (int j = 0; j < COLS; j++)
                    if (j0 + j < p.n) v[j] = *(const several<V, WIDE> *)(b + (j0 + j) * p.b_at[2] + l);
#pragma unroll
                for (int w = 0; w < WIDE; w++) {
#pragma unroll
                    for (int i = 0; i < ROWS; i++) x[i][w] = i0 + i < p.m ? (A)value(u[i].v[w]) : (A)0;
#pragma unroll
                    for (int j = 0; j < COLS; j++) y[j][w] = j0 + j < p.n ? (A)value(v[j].v[w]) : (A)0;
                }
            } else {
#pragma unroll
                for (int i = 0; i < ROWS; i++) x[i][0] = i0 + i < p.m ? (A)value(a[i * p.a_at[1] + l * p.a_at[2]]) : (A)0;
#pragma unroll
                for (int j = 0; j < COLS; j++)
                    y[j][0] = j0 + j < p.n ? (A)value(b[l * p.b_at[1] + (j0 + j) * p.b_at[2]]) : (A)0;
            }
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int j = 0; j < COLS; j++)
#pragma unroll
                    for (int w = 0; w < WIDE; w++) sum[i * COLS + j] += x[i][w] * y[j][w];
        }
        sum_of_lanes(sum, part[warp]);
        __syncthreads();
        for (int e = threadIdx.x; e < N; e += blockDim.x) {
            i64 i = i0 + e / COLS, j = j0 + e % COLS;
            if (i >= p.m || j >= p.n) continue;
            A all = 0;
            for (int w = 0; w < warps; w++) all += part[w][e];
#if VARIANT >> 4 & 1
            for (int r = 0; r < p.rank; r++) all += low[e / COLS][r] * (A)value(p.up[r * p.up_at[0] + j * p.up_at[1]]);
#endif
            put(p, batch, i, j, all);
        }
        __syncthreads(); /* part is used again */
    }
}
/* One row times a matrix whose columns are neighbours: a thread has those of 16 bytes, the threads of a block share k. */
BLOCK_KERNEL(columns, small_product, p)
{
    enum { WIDE = 16 / (int)sizeof(V), TOGETHER = 16, ACROSS = TOGETHER / WIDE, WARPS = 8 };
    __shared__ A part[WARPS][TOGETHER];
    int          lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i64          j0 = (i64)blockIdx.x * TOGETHER, j = j0 + threadIdx.x % ACROSS * WIDE, end = j < p.n ? p.k : 0;
    A            sum[WIDE];
#pragma unroll
    for (int w = 0; w < WIDE; w++) sum[w] = 0;
#pragma unroll 4
    for (i64 l = threadIdx.x / ACROSS; l < end; l += WARPS * 32 / ACROSS) {
        several<V, WIDE> y = *(const several<V, WIDE> *)(p.b + l * p.b_at[1] + j);
        A                x = (A)value(p.a[l * p.a_at[2]]);
#pragma unroll
        for (int w = 0; w < WIDE; w++) sum[w] += x * (A)value(y.v[w]);
    }
#pragma unroll
    for (int w = 0; w < WIDE; w++) {
#pragma unroll
        for (int d = ACROSS; d < 32; d *= 2) sum[w] += __shfl_xor_sync(0xffffffffu, sum[w], d);
        if (lane < ACROSS) part[warp][lane * WIDE + w] = sum[w];
    }
    __syncthreads();
    if (threadIdx.x >= TOGETHER || j0 + threadIdx.x >= p.n) return;
    A all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) all += part[w][threadIdx.x];
    put(p, 0, 0, j0 + threadIdx.x, all);
}
/* Operands that lie otherwise: a block makes a tile of 32 x 32 from slices of 32 in shared memory. A thread makes 4 x 4 elements
 * from a quarter of each slice, while the next slice is on its way. */
enum { TILE = 32, EDGE = 4, PARTS = 4, READ = TILE * TILE / 256 };
template <class S> struct reader { /* of one operand's slices */
    const S   *at[READ];
    int        l[READ], place[READ];
    bool       there[READ];
    i64        step;
    __device__ reader(const S *x, i64 across, i64 deep, i64 from, i64 n) : step(TILE * deep)
    {
#pragma unroll
        for (int q = 0; q < READ; q++) { /* neighbouring threads read neighbours in memory */
            int e = threadIdx.x + 256 * q, i = deep == 1 ? e / TILE : e % TILE;
            l[q] = deep == 1 ? e % TILE : e / TILE, place[q] = i, there[q] = from + i < n;
            at[q] = x + (from + i) * across + l[q] * deep;
        }
    }
    __device__ void read(A (&to)[READ], i64 rest)
    {
#pragma unroll
        for (int q = 0; q < READ; q++) to[q] = there[q] && l[q] < rest ? (A)value(*at[q]) : (A)0, at[q] += step;
    }
};
typedef several<A, EDGE> four;
typedef four             slice_row[TILE / EDGE + 1], sum_row[TILE / EDGE];
BLOCK_KERNEL_OF(256, tiles, small_product, p)
{
    /* Of the slices first, then of the quarters' sums: apart, doubles would not fit. */
    __shared__ four memory[PARTS * TILE * TILE / EDGE];
    static_assert(2 * TILE * sizeof(slice_row) <= sizeof memory, "both slices fit");
    slice_row *left = (slice_row *)memory, *right = left + TILE;
    sum_row   *parts = (sum_row *)memory;
    i64        across = (p.n + TILE - 1) / TILE, down = (p.m + TILE - 1) / TILE, batch = blockIdx.x / (across * down);
    i64        i0 = blockIdx.x / across % down * TILE, j0 = blockIdx.x % across * TILE;
    int        part = threadIdx.x / 64, y = threadIdx.x / 8 % 8, x = threadIdx.x % 8;
    reader<U>  of_a(p.a + batch * p.a_at[0], p.a_at[1], p.a_at[2], i0, p.m);
    reader<V>  of_b(p.b + batch * p.b_at[0], p.b_at[2], p.b_at[1], j0, p.n);
    A          sum[EDGE][EDGE], u[READ], v[READ];
#pragma unroll
    for (int i = 0; i < EDGE; i++)
#pragma unroll
        for (int j = 0; j < EDGE; j++) sum[i][j] = 0;
    of_a.read(u, p.k), of_b.read(v, p.k);
    for (i64 l0 = 0; l0 < p.k; l0 += TILE) {
#pragma unroll
        for (int q = 0; q < READ; q++) {
            left[of_a.l[q]][of_a.place[q] / EDGE].v[of_a.place[q] % EDGE] = u[q];
            right[of_b.l[q]][of_b.place[q] / EDGE].v[of_b.place[q] % EDGE] = v[q];
        }
        __syncthreads();
        if (l0 + TILE < p.k) of_a.read(u, p.k - l0 - TILE), of_b.read(v, p.k - l0 - TILE);
#pragma unroll
        for (int l = 0; l < TILE / PARTS; l++) {
            four s = left[part * (TILE / PARTS) + l][y], t = right[part * (TILE / PARTS) + l][x];
#pragma unroll
            for (int i = 0; i < EDGE; i++)
#pragma unroll
                for (int j = 0; j < EDGE; j++) sum[i][j] += s.v[i] * t.v[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < EDGE; i++) {
        four s;
#pragma unroll
        for (int j = 0; j < EDGE; j++) s.v[j] = sum[i][j];
        parts[part * TILE + y * EDGE + i][x] = s;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < TILE * TILE; e += 256) {
        i64 i = i0 + e / TILE, j = j0 + e % TILE;
        if (i >= p.m || j >= p.n) continue;
        A all = 0;
        for (int q = 0; q < PARTS; q++) all += parts[q * TILE + e / TILE][e % TILE / EDGE].v[e % EDGE];
        put(p, batch, i, j, all);
    }
}
