/* Attention of one query per row over a cache (args.h: lc_cached_args). T: all tensors. VARIANT: 0: write, else the width of keys and
 * values in pieces of 8.
 *
 * A block is a query head of a row, or one of `splits` parts of its span. Eight lanes share a key, so a warp looks at four at
 * a time and each thread reads UNROLL of them before it uses one: such a step takes as long as memory takes to answer. Every
 * group of lanes keeps a running maximum, a sum and a weighted sum of values; they are joined by shuffles, then through shared
 * memory, then (splits) by a second kernel. */
typedef acc_of<T>::type A;
struct cached_args {
    T         *keys, *values, *out;
    const T   *q, *k, *v;
    const i64 *spans;
    A         *parts; /* (rows * heads, splits, width + 2) if splits > 1 */
    i64        rows, heads, key_heads, capacity, splits, window, width[2];
    i64        key_at[3], value_at[3], q_at[3], k_at[3], v_at[3]; /* strides: row, head, then position or element */
    double     scale;
    trouble   *word;
};
#if VARIANT == 0
KERNEL(store, cached_args, p)
{
    i64 each = p.width[0] + p.width[1];
    EACH(at, p.rows * p.key_heads * each)
    {
        i64 i = at % each, head = at / each % p.key_heads, row = at / each / p.key_heads, end = p.spans[2 * row + 1];
        if (end < 0 || end >= p.capacity) report(p.word, 1, end, 0, p.capacity);
        else if (i < p.width[0])
            p.keys[row * p.key_at[0] + head * p.key_at[1] + end * p.key_at[2] + i] =
                p.k[row * p.k_at[0] + head * p.k_at[1] + i * p.k_at[2]];
        else
            i -= p.width[0], p.values[row * p.value_at[0] + head * p.value_at[1] + end * p.value_at[2] + i] =
                                 p.v[row * p.v_at[0] + head * p.v_at[1] + i * p.v_at[2]];
    }
}
#else
enum { E = VARIANT * 8, LANES = 8, EVEN = VARIANT & -VARIANT, PIECE = EVEN < 16 / (int)sizeof(T) ? EVEN : 16 / (int)sizeof(T) };
enum { PIECES = E / LANES / PIECE, GROUPS = 4, UNROLL = E <= 64 ? 4 : 2 };
enum { THREADS = E <= 64 && sizeof(T) < 8 ? 512 : E <= 128 ? 256 : 128, MOST_WARPS = THREADS / 32 };
__device__ inline float  power(float x) { return expf(x); }
__device__ inline double power(double x) { return exp(x); }
struct state {
    A most, sum, acc[PIECES * PIECE];
};
__device__ inline void load(A (&to)[PIECES * PIECE], const T *row, int lane)
{
#pragma unroll
    for (int c = 0; c < PIECES; c++) {
        several<T, PIECE> x = *(const several<T, PIECE> *)(row + (c * LANES + lane) * PIECE);
#pragma unroll
        for (int j = 0; j < PIECE; j++) to[c * PIECE + j] = (A)value(x.v[j]);
    }
}
__device__ inline void join(state &s, A most, A sum, const A *acc)
{
    A top = most > s.most ? most : s.most;
    if (top == -infinity<A>()) return;
    A mine = power(s.most - top), theirs = power(most - top);
    s.most = top, s.sum = s.sum * mine + sum * theirs;
#pragma unroll
    for (int i = 0; i < PIECES * PIECE; i++) s.acc[i] = s.acc[i] * mine + acc[i] * theirs;
}
BLOCK_KERNEL_OF(THREADS, answer, cached_args, p)
{
    __shared__ A part[MOST_WARPS][E + 2];
    i64          head = blockIdx.x / p.splits, split = blockIdx.x % p.splits, row = head / p.heads;
    i64          h = head % p.heads, shared = h / (p.heads / p.key_heads), begin = p.spans[2 * row], end = p.spans[2 * row + 1];
    int          lane = threadIdx.x % LANES, warps = blockDim.x / 32, warp = threadIdx.x / 32, groups = blockDim.x / LANES;
    if (begin < 0 || begin > end || end > p.capacity) {
        if (threadIdx.x == 0) report(p.word, 1, end, 0, p.capacity);
        begin = end = 0;
    }
    if (p.window && end - begin > p.window) begin = end - p.window;
    i64 each = (end - begin + p.splits - 1) / p.splits, from = begin + split * each, to = from + each < end ? from + each : end;
    const T *keys = p.keys + row * p.key_at[0] + shared * p.key_at[1];
    const T *values = p.values + row * p.value_at[0] + shared * p.value_at[1];
    const T *query = p.q + row * p.q_at[0] + h * p.q_at[1];
    A        q[PIECES * PIECE];
    state    s;
    s.most = -infinity<A>(), s.sum = 0;
#pragma unroll
    for (int c = 0; c < PIECES; c++)
#pragma unroll
        for (int j = 0; j < PIECE; j++) {
            q[c * PIECE + j] = (A)value(query[((c * LANES + lane) * PIECE + j) * p.q_at[2]]) * (A)p.scale;
            s.acc[c * PIECE + j] = 0;
        }
    i64 first = from + threadIdx.x / LANES, rounds = (each + (i64)groups * UNROLL - 1) / ((i64)groups * UNROLL);
    for (i64 round = 0; round < rounds; round++) { /* all threads go round equally often: they exchange values */
        A score[UNROLL], x[UNROLL][PIECES * PIECE];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            i64 at = first + (round * UNROLL + u) * groups;
            if (at < to) load(x[u], keys + at * p.key_at[2], lane);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            i64 at = first + (round * UNROLL + u) * groups;
            A   dot = 0;
            if (at < to) {
#pragma unroll
                for (int i = 0; i < PIECES * PIECE; i++) dot += q[i] * x[u][i];
                load(x[u], values + at * p.value_at[2], lane);
            }
#pragma unroll
            for (int d = 1; d < LANES; d *= 2) dot += __shfl_xor_sync(0xffffffffu, dot, d);
            score[u] = at < to ? dot : -infinity<A>();
        }
        A top = s.most;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) top = score[u] != score[u] || score[u] > top ? score[u] : top;
        if (top == -infinity<A>()) continue; /* the exchanges of this round are over */
        A kept = power(s.most - top);
        s.most = top, s.sum *= kept;
#pragma unroll
        for (int i = 0; i < PIECES * PIECE; i++) s.acc[i] *= kept;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (score[u] == -infinity<A>()) continue;
            A weight = power(score[u] - top);
            s.sum += weight;
#pragma unroll
            for (int i = 0; i < PIECES * PIECE; i++) s.acc[i] += weight * x[u][i];
        }
    }
#pragma unroll
    for (int d = LANES; d < 32; d *= 2) { /* the groups of a warp */
        A most = __shfl_xor_sync(0xffffffffu, s.most, d), sum = __shfl_xor_sync(0xffffffffu, s.sum, d), acc[PIECES * PIECE];
#pragma unroll
        for (int i = 0; i < PIECES * PIECE; i++) acc[i] = __shfl_xor_sync(0xffffffffu, s.acc[i], d);
        join(s, most, sum, acc);
    }
    if (threadIdx.x % 32 < LANES) {
#pragma unroll
        for (int c = 0; c < PIECES; c++)
#pragma unroll
            for (int j = 0; j < PIECE; j++) part[warp][(c * LANES + lane) * PIECE + j] = s.acc[c * PIECE + j];
        if (lane == 0) part[warp][E] = s.most, part[warp][E + 1] = s.sum;
    }
    __syncthreads();
    A most = -infinity<A>(), sum = 0;
    for (int w = 0; w < warps; w++) most = part[w][E] != part[w][E] || part[w][E] > most ? part[w][E] : most;
    for (int w = 0; w < warps; w++) sum += part[w][E + 1] ? part[w][E + 1] * power(part[w][E] - most) : (A)0;
    for (int i = threadIdx.x; i < E; i += blockDim.x) {
        A acc = 0;
        for (int w = 0; w < warps; w++) acc += part[w][E + 1] ? part[w][i] * power(part[w][E] - most) : (A)0;
        if (p.splits == 1) p.out[head * E + i] = made<T>::of(sum > 0 || sum != sum ? acc / sum : (A)0);
        else p.parts[(head * p.splits + split) * (E + 2) + i] = acc;
    }
    if (p.splits > 1 && threadIdx.x == 0) {
        A *to = p.parts + (head * p.splits + split) * (E + 2) + E;
        to[0] = most, to[1] = sum;
    }
}
KERNEL(gather, cached_args, p) /* the parts of each head */
{
    EACH(at, p.rows * p.heads * E)
    {
        const A *parts = p.parts + at / E * p.splits * (E + 2);
        A        most = -infinity<A>(), sum = 0, acc = 0;
        for (i64 s = 0; s < p.splits; s++) {
            A m = parts[s * (E + 2) + E];
            most = m != m || m > most ? m : most;
        }
        for (i64 s = 0; s < p.splits; s++) {
            const A *part = parts + s * (E + 2);
            if (!part[E + 1]) continue;
            A weight = power(part[E] - most);
            sum += part[E + 1] * weight, acc += part[at % E] * weight;
        }
        p.out[at] = made<T>::of(sum > 0 || sum != sum ? acc / sum : (A)0);
    }
}
#endif
