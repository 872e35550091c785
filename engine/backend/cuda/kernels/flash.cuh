/* Attention whose scores never reach memory. A block of 128 threads has a tile of queries; it walks over tiles of keys, keeps the
 * running maximum and sum of each row, and rescales what it has summed when the maximum grows.
 *
 * Thread (y, x) of 16 by 8 has queries y + 16 i. In the product with keys it has keys x + 8 j, in that with values columns 4 x +
 * 32 j and the three after: so all it reads from shared memory are 16 bytes at a time, and rows are as far apart as keeps a warp's
 * reads in different banks. Keys and values arrive while the product before is computed (float32; halves are converted on the way).
 *
 * T: query, key, value; U: mask; V: out. VARIANT: bits 0 to 2: the width in steps of 32, less one; 3, 4: no mask, boolean, added. */
enum { D = (VARIANT % 8 + 1) * 32, MASKED = VARIANT >> 3 & 1, ADDED = VARIANT >> 4 & 1 };
enum { RM = D <= 64 ? 8 : D <= 128 ? 4 : 2, CN = D <= 64 ? 8 : 4, DM = D / 32, ROWS = 16 * RM, KEYS = 8 * CN, THREADS = 128 };
enum { Q_STEP = D + 8, K_STEP = D + 4, V_STEP = D, P_STEP = KEYS + 8 };
struct flash_args {
    const T *q, *k, *v;
    const U *mask;
    V       *out;
    float   *lse;
    i64      h, group, l, s, tiles;
    i64      q_step[4], k_step[4], v_step[4], mask_step[4], out_step[4];
    int      e, ev, causal, wide, out_wide; /* wide: rows of q, k, v start on 16 bytes and are contiguous */
    float    scale;
};
typedef several<float, 4> four;
#ifndef LC_EMULATED /* the emulation brings its own */
__device__ inline void                     copies_end() { asm volatile("cp.async.commit_group;"); }
template <int LEFT> __device__ inline void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }
/* Copies that go on while the thread computes; without a source they write zeros. */
__device__ inline void copy_four(float *to, const float *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}
__device__ inline void copy_one(float *to, const float *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from),
                 "r"(there ? 4 : 0)
                 : "memory");
}
#endif
template <class S> __device__ inline void copy_four(float *to, const S *from, bool there)
{
    several<S, 4> x;
    if (there) x = *(const several<S, 4> *)from;
    four y;
#pragma unroll
    for (int i = 0; i < 4; i++) y.v[i] = there ? (float)value(x.v[i]) : 0.f;
    *(four *)to = y;
}
template <class S> __device__ inline void copy_one(float *to, const S *from, bool there)
{
    *to = there ? (float)value(*from) : 0.f;
}
/* Rows of a tile into shared memory; zeros where there are none. */
template <int N, int STEP>
__device__ inline void fetch(float *to, const T *from, i64 row_step, i64 step, i64 rows, int width, bool wide)
{
    if (wide) { /* a thread stays in its columns */
        enum { ACROSS = D / 4, DOWN = THREADS / ACROSS };
        int  c = threadIdx.x % ACROSS * 4, r = threadIdx.x / ACROSS;
        bool inside = c < width;
        from += r * row_step + c, to += r * STEP + c;
#pragma unroll 4
        for (; r < N && threadIdx.x < ACROSS * DOWN; r += DOWN, from += DOWN * row_step, to += DOWN * STEP)
            copy_four(to, from, inside && r < rows);
    } else
#pragma unroll 1
        for (int i = threadIdx.x; i < N * D; i += THREADS) {
            int  r = i / D, c = i % D;
            bool there = r < rows && c < width;
            copy_one(to + r * STEP + c, from + (there ? r * row_step + c * step : 0), there);
        }
    copies_end();
}
__device__ inline float over_eight(float x, bool sum) /* lanes that share a row */
{
#pragma unroll
    for (int d = 4; d; d /= 2) {
        float y = __shfl_xor_sync(0xffffffffu, x, d);
        x = sum ? x + y : x > y ? x : y;
    }
    return x;
}
BLOCK_KERNEL_OF(THREADS, flash, flash_args, p)
{
    SHARED_MEMORY(float, memory);
    float *queries = memory, *keys = queries + ROWS * Q_STEP, *values = keys + KEYS * K_STEP, *weights = values + KEYS * V_STEP;
    int    x = threadIdx.x % 8, y = threadIdx.x / 8;
    i64    tile = p.tiles - 1 - blockIdx.x % p.tiles, head = blockIdx.x / p.tiles, b = head / p.h, i_head = head % p.h;
    i64    first = tile * ROWS, end = p.s; /* long rows of causal attention start first */
    if (p.causal && first + ROWS < end) end = first + ROWS;
    const T *q = p.q + b * p.q_step[0] + i_head * p.q_step[1] + first * p.q_step[2];
    const T *k = p.k + b * p.k_step[0] + i_head / p.group * p.k_step[1];
    const T *v = p.v + b * p.v_step[0] + i_head / p.group * p.v_step[1];
    float    sums[RM][DM * 4], most[RM], sum[RM];
#pragma unroll
    for (int i = 0; i < RM; i++) {
        most[i] = -infinity<float>(), sum[i] = 0;
#pragma unroll
        for (int j = 0; j < DM * 4; j++) sums[i][j] = 0;
    }
    const float to_two = 1.44269504088896340736f;
    int         depth = (p.e + 3) / 4 * 4;
    fetch<ROWS, Q_STEP>(queries, q, p.q_step[2], p.q_step[3], p.l - first, p.e, p.wide);
    fetch<KEYS, K_STEP>(keys, k, p.k_step[2], p.k_step[3], p.s, p.e, p.wide);
    for (i64 at = 0; at < end; at += KEYS) {
        copies_wait<0>();
        __syncthreads(); /* keys are there; nobody reads the values and weights before any more */
        fetch<KEYS, V_STEP>(values, v + at * p.v_step[2], p.v_step[2], p.v_step[3], p.s - at, p.ev, p.wide);
        float s[RM][CN];
#pragma unroll
        for (int i = 0; i < RM; i++)
#pragma unroll
            for (int j = 0; j < CN; j++) s[i][j] = 0;
#pragma unroll 1
        for (int d = 0; d < depth; d += 4) {
            four own[RM];
#pragma unroll
            for (int i = 0; i < RM; i++) own[i] = *(const four *)(queries + (y + 16 * i) * Q_STEP + d);
#pragma unroll
            for (int j = 0; j < CN; j++) {
                four key = *(const four *)(keys + (x + 8 * j) * K_STEP + d);
#pragma unroll
                for (int i = 0; i < RM; i++)
#pragma unroll
                    for (int c = 0; c < 4; c++) s[i][j] += own[i].v[c] * key.v[c];
            }
        }
        __syncthreads(); /* the keys have been read */
        if (at + KEYS < end)
            fetch<KEYS, K_STEP>(keys, k + (at + KEYS) * p.k_step[2], p.k_step[2], p.k_step[3], p.s - at - KEYS, p.e, p.wide);
        else copies_end();
        bool whole = at + KEYS <= p.s && !(p.causal && at + KEYS > first + 1) && !MASKED && !ADDED;
#pragma unroll
        for (int i = 0; i < RM; i++) {
            i64   row = first + y + 16 * i;
            float top = -infinity<float>();
#pragma unroll
            for (int j = 0; j < CN; j++) {
                i64   col = at + x + 8 * j;
                float t = s[i][j] * p.scale;
                if (!whole) {
                    bool seen = col < p.s && !(p.causal && col > row);
                    if ((MASKED || ADDED) && seen && row < p.l) {
                        auto m = value(
                            p.mask[b * p.mask_step[0] + i_head * p.mask_step[1] + row * p.mask_step[2] + col * p.mask_step[3]]);
                        if (MASKED) seen = m != 0;
                        else t += (float)m;
                    }
                    if (!seen) t = -infinity<float>();
                }
                s[i][j] = t;
                top = t > top ? t : top;
            }
            top = over_eight(top, false);
            top = top > most[i] ? top : most[i];
            float base = top == -infinity<float>() ? 0.f : top, shrink = exp2f((most[i] - base) * to_two), part = 0;
#pragma unroll
            for (int j = 0; j < CN; j++) {
                float e = exp2f((s[i][j] - base) * to_two);
                part += e;
                weights[(y + 16 * i) * P_STEP + x + 8 * j] = e;
            }
            most[i] = top, sum[i] = sum[i] * shrink + part; /* of this thread's keys: joined at the end */
#pragma unroll
            for (int j = 0; j < DM * 4; j++) sums[i][j] *= shrink;
        }
        copies_wait<1>();
        __syncthreads(); /* values are there, and the weights of all threads */
#pragma unroll 1
        for (int c = 0; c < KEYS; c += 4) {
            four own[RM];
#pragma unroll
            for (int i = 0; i < RM; i++) own[i] = *(const four *)(weights + (y + 16 * i) * P_STEP + c);
#pragma unroll
            for (int n = 0; n < 4; n++)
#pragma unroll
                for (int j = 0; j < DM; j++) {
                    four w = *(const four *)(values + (c + n) * V_STEP + 4 * x + 32 * j);
#pragma unroll
                    for (int i = 0; i < RM; i++)
#pragma unroll
                        for (int m = 0; m < 4; m++) sums[i][4 * j + m] += own[i].v[n] * w.v[m];
                }
        }
    }
    copies_wait<0>();
#pragma unroll
    for (int i = 0; i < RM; i++) {
        i64   row = first + y + 16 * i;
        float all = over_eight(sum[i], true), by = all == 0 ? 0.f : 1 / all;
        if (row >= p.l) continue;
        V *out = p.out + b * p.out_step[0] + i_head * p.out_step[1] + row * p.out_step[2];
#pragma unroll
        for (int j = 0; j < DM; j++) {
            int c = 4 * x + 32 * j;
            if (p.out_wide && c < p.ev) {
                several<V, 4> w;
#pragma unroll
                for (int m = 0; m < 4; m++) w.v[m] = made<V>::of(sums[i][4 * j + m] * by);
                *(several<V, 4> *)(out + c) = w;
            } else
#pragma unroll
                for (int m = 0; m < 4; m++)
                    if (c + m < p.ev) out[(c + m) * p.out_step[3]] = made<V>::of(sums[i][4 * j + m] * by);
        }
        if (x == 0) p.lse[head * p.l + row] = all == 0 ? -infinity<float>() : most[i] + logf(all);
    }
}
