/* Random fills by Philox in the layout of PyTorch's CUDA kernels: G threads; thread t draws four words at a time, whose k-th
 * belongs to element t + (4 round + k) G (float64 and wide integers: two draws of 64 bits). T: the elements; VARIANT: what is
 * drawn. The numbers depend on G, hence on the GPU's model. */
#include "philox.cuh"
enum { UNIFORM, NORMAL, EXPONENTIAL, CAUCHY, LOG_NORMAL, GEOMETRIC, BERNOULLI, BERNOULLI_EACH, INTEGERS, SLOPES, KEYS };
struct random_args {
    T         *out;
    const f32 *single; /* parameters per element, contiguous: one of them, or neither */
    const f64 *twofold;
    i64        n, threads;
    u64        seed, offset;
    const u64 *replayed; /* in a captured graph: seed, and what offset counts from */
    double     a, b;
    i64        low;
    u64        range; /* 0: 2^64 */
    u64        bits;  /* KEYS: those that count */
    int        pairs; /* two draws of 64 bits */
    trouble   *word;
};
__device__ inline double unit(u32 x, u32 y)
{
    return (double)((u64)x ^ (u64)y << 21) * 1.1102230246251565e-16 + 1.1102230246251565e-16 / 2.0;
}
struct drawn {
    double u[4];
    u64    bits[4];
};
/* float32 and narrower with the approximations that PyTorch's kernels take, so that the numbers are the same to the last bit */
__device__ inline void normals(float x, u32 y, double *to)
{
    float s = sqrtf(-2.0f * logf(x)), turn = 2.3283064e-10f * 6.2831855f, sine, cosine;
    __sincosf(fmaf((float)y, turn, turn / 2.0f), &sine, &cosine);
    to[0] = (double)(s * sine), to[1] = (double)(s * cosine);
}
__device__ inline float cauchy(float u, float median, float sigma)
{
    const float eps = 1.1920928955078125e-07f;
    return fmaf(sigma, __tanf(3.14159265f * (fminf(fmaxf(u, eps), 1 - eps) - 0.5f)), median);
}
__device__ inline void store(const random_args &p, i64 i, double u, u64 bits)
{
    typedef acc_of<T>::type A;
    double                  p_i = p.single ? (double)p.single[i] : p.twofold ? p.twofold[i] : p.a;
    T                       v;
    if (VARIANT == UNIFORM) {
        if (sizeof(T) == 8) v = made<T>::of(u * (p.b - p.a) + p.a);
        else v = made<T>::of((float)u * (float)(p.b - p.a) + (float)p.a);
        if ((double)value(v) == (double)value(made<T>::of(p.b))) v = made<T>::of(p.a);
    } else if (VARIANT == NORMAL)
        v = sizeof(T) == 8 ? made<T>::of(u * p.b + p.a) : made<T>::of(fmaf((float)u, (float)p.b, (float)p.a));
    else if (VARIANT == LOG_NORMAL) v = made<T>::of(exp(u * p.b + p.a));
    else if (VARIANT == EXPONENTIAL) {
        double eps = sizeof(T) == 8 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
        v = made<T>::of(-1 / p.a * (u >= 1 - eps / 2 ? -eps / 2 : log(u)));
    } else if (VARIANT == CAUCHY && sizeof(T) == 8) v = made<T>::of(p.a + p.b * tan(3.14159265358979323846 * (u - 0.5)));
    else if (VARIANT == CAUCHY) v = made<T>::of(cauchy((float)u, (float)p.a, (float)p.b));
    else if (VARIANT == GEOMETRIC && p.pairs) v = made<T>::of(ceil(log(u) / log1p(-p.a)));
    else if (VARIANT == GEOMETRIC) v = made<T>::of(ceilf(__logf((float)u) / __logf(1.0f - (float)p.a)));
    else if (VARIANT == BERNOULLI) v = made<T>::of((i64)(sizeof(A) == 8 && sizeof(T) == 8 ? u < p_i : (float)u < (float)p_i));
    else if (VARIANT == BERNOULLI_EACH) {
        if (!(p_i >= 0 && p_i <= 1)) report(p.word, 3, 0, 0, 0);
        v = made<T>::of((i64)(u <= p_i && p_i > 0));
    } else if (VARIANT == SLOPES) v = made<T>::of(p_i > 0 ? 1.0 : u * (p.b - p.a) + p.a);
    else if (VARIANT == KEYS) v = made<T>::of((i64)((p.range ? bits % p.range : bits) + (u64)p.low) & (i64)p.bits);
    else v = made<T>::of((i64)((p.range ? bits % p.range : bits) + (u64)p.low));
    p.out[i] = v;
}
KERNEL(fill, random_args, p)
{
    i64 thread = blockIdx.x * (i64)blockDim.x + threadIdx.x;
    int each = p.pairs ? 2 : 4;
    u64 seed = p.replayed ? p.replayed[0] : p.seed, offset = p.replayed ? p.replayed[1] + p.offset : p.offset;
    if (thread >= p.threads) return;
    for (i64 first = thread, round = 0; first < p.n; first += each * p.threads, round++) {
        words  w = philox(seed, offset / 4 + (u64)round, (u64)thread);
        double u[4];
        u64    bits[4];
        if (p.pairs) {
            for (int k = 0; k < 2; k++)
                u[k] = unit(w.v[2 * k], w.v[2 * k + 1]), bits[k] = (u64)w.v[2 * k] << 32 | w.v[2 * k + 1];
            if (VARIANT == NORMAL || VARIANT == LOG_NORMAL) {
                double s = sqrt(-2.0 * log(u[0])), v = 6.283185307179586 * u[1];
                u[0] = s * sin(v), u[1] = s * cos(v);
            }
        } else {
            for (int k = 0; k < 4; k++) u[k] = (double)unit(w.v[k]), bits[k] = w.v[k];
            if (VARIANT == NORMAL || VARIANT == LOG_NORMAL)
                for (int k = 0; k < 4; k += 2) normals(unit(w.v[k]), w.v[k + 1], u + k);
        }
#pragma unroll
        for (int k = 0; k < 4; k++) { /* of a constant number: in registers */
            if (k >= each) break;
            i64 i = VARIANT == BERNOULLI_EACH ? 4 * thread + k : first + k * p.threads; /* PyTorch has a kernel for them */
            if (i < p.n) store(p, i, u[k], bits[k]);
        }
    }
}
/* A permutation is the order of random keys; where keys are equal, the first thread of them shuffles their numbers. */
struct island_args {
    const i64 *keys; /* in order */
    i64       *numbers, n;
    u64        seed, offset;
    const u64 *replayed;
};
KERNEL(shuffle_islands, island_args, p)
{
    u64 seed = p.replayed ? p.replayed[0] : p.seed, offset = p.replayed ? p.replayed[1] + p.offset : p.offset;
    EACH(i, p.n - 1)
    {
        int size = 1;
        if (p.keys[i] != p.keys[i + 1] || (i && p.keys[i] == p.keys[i - 1])) continue;
        while (i + size < p.n && p.keys[i + size] == p.keys[i]) size++;
        for (int k = size - 1, drawn = 0; k > 0; k--, drawn++) {
            i64 *at = p.numbers + i;
            int  other = (int)(philox(seed, offset / 4 + (u64)(drawn / 4), (u64)i).v[drawn % 4] % (u32)(k + 1));
            i64  held = at[k];
            at[k] = at[other], at[other] = held;
        }
    }
}
