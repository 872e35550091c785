/* What every program starts with. Element types by their names in dtype.def. Values are converted on load and store: bool from and to any nonzero byte,
 * float16 and bfloat16 as float. */
typedef signed char        i8;
typedef unsigned char      u8;
typedef short              i16;
typedef int                i32;
typedef long long          i64;
typedef unsigned short     u16;
typedef unsigned           u32;
typedef unsigned long long u64;
typedef float              f32;
typedef double             f64;
typedef u16                uint16_t;
typedef i64                int64_t;
typedef u64                uint64_t;
struct b8 {
    unsigned char v;
};
struct f16 {
    unsigned short v;
};
struct bf16 {
    unsigned short v;
};

#ifndef KERNEL /* the emulation (tests/gpu/emulator) brings its own */
/* A kernel has one argument, a struct. A BLOCK_KERNEL has barriers or shuffles: its threads wait for each other. Blocks have up to
 * 512 threads, which can have 128 registers each; a kernel that needs more says how many threads. */
#define KERNEL(name, args, p) extern "C" __global__ void name(const __grid_constant__ args p)
#define BLOCK_KERNEL          KERNEL
#define BLOCK_KERNEL_OF(threads, name, args, p)                                                                                \
    KERNEL(name, args, p) /* no __launch_bounds__: with them others registers are chosen */
/* Other threads may store there too: the value of one of them stays. */
template <class S> __device__ inline void store_one_of(S *to, S v) { *to = v; }
/* As many bytes as the launch asks for. */
#define SHARED_MEMORY(type, name) extern __shared__ __align__(16) type name[]
__device__ inline float half_to_float(u16 h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
__device__ inline u16 float_to_half(float f)
{
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
__device__ inline void halves_to_floats(u32 pair, float &first, float &second) /* the first one is in the lower half */
{
    first = half_to_float((u16)pair), second = half_to_float((u16)(pair >> 16));
}
#if __CUDA_ARCH__ >= 800
__device__ inline u16 float_to_brain(float f)
{
    u16 h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
__device__ inline u32 floats_to_halves(float first, float second)
{
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
__device__ inline u32 floats_to_brains(float first, float second)
{
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
/* The larger one; not-a-number if one of them is. */
__device__ inline float larger(float a, float b)
{
    float most;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
    return most;
}
#else /* Turing has no such instructions */
__device__ inline u16 float_to_brain(float f)
{
    u32 bits = __float_as_uint(f);
    return f != f ? (u16)0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
__device__ inline u32   floats_to_halves(float a, float b) { return float_to_half(a) | (u32)float_to_half(b) << 16; }
__device__ inline u32   floats_to_brains(float a, float b) { return float_to_brain(a) | (u32)float_to_brain(b) << 16; }
__device__ inline float larger(float a, float b) { return a != a || a > b ? a : b; }
#endif
/* The hardware's own 2^x and 1 / x: good enough for halves. */
__device__ inline float fast_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ inline float fast_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#endif
__device__ inline void brains_to_floats(u32 pair, float &first, float &second)
{
    first = __uint_as_float(pair << 16), second = __uint_as_float(pair & 0xffff0000u);
}
__device__ inline double larger(double a, double b) { return a != a || a > b ? a : b; }
/* Every index below n, spread over all threads of the launch. */
#define EACH(i, n) for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < (n); i += gridDim.x * (i64)blockDim.x)

template <class T> __device__ T value(T x) { return x; }
__device__ inline bool          value(b8 x) { return x.v != 0; }
__device__ inline float         value(f16 x) { return half_to_float(x.v); }
__device__ inline float         value(bf16 x) { return __uint_as_float((unsigned)x.v << 16); }

template <class T> struct made {
    template <class V> __device__ static T of(V v) { return (T)v; }
};
template <> struct made<b8> {
    template <class V> __device__ static b8 of(V v) { return b8{ (unsigned char)(v != V(0)) }; }
};
template <> struct made<f16> {
    template <class V> __device__ static f16 of(V v) { return f16{ float_to_half((float)v) }; }
};
template <> struct made<bf16> {
    template <class V> __device__ static bf16 of(V v) { return bf16{ float_to_brain((float)v) }; }
};

/* A scalar passed with the call: as a double and as an integer. */
template <class T> __device__ T   number(double f, i64 i) { return (T)i; }
template <> __device__ inline f32 number<f32>(double f, i64 i) { return (f32)f; }
template <> __device__ inline f64 number<f64>(double f, i64 i) { return f; }

/* What sums of a type are kept in. */
template <class T> struct acc_of {
    typedef i64 type;
};
template <> struct acc_of<f16> {
    typedef f32 type;
};
template <> struct acc_of<bf16> {
    typedef f32 type;
};
template <> struct acc_of<f32> {
    typedef f32 type;
};
template <> struct acc_of<f64> {
    typedef f64 type;
};
template <class T> __device__ T infinity() { return (T)__int_as_float(0x7f800000); }

/* Elements that move as a whole, by their size. */
struct w16 {
    u64 a, b;
};

/* Folds over the threads of a block, in a fixed order; every thread gets the result. At most 1024 threads, whole warps. */
template <class V, class F> __device__ V block_fold(V v, F f)
{
    __shared__ V part[32];
    for (int d = 16; d; d /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, d));
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    if (lane == 0) part[warp] = v;
    __syncthreads();
    v = part[lane < warps ? lane : 0]; /* every warp folds the parts, and lane 0 meets each of them once */
    for (int d = 16; d; d /= 2) {
        V other = __shfl_xor_sync(0xffffffffu, v, d);
        if ((lane ^ d) < warps) v = f(v, other);
    }
    v = __shfl_sync(0xffffffffu, v, 0);
    __syncthreads(); /* part may be used again */
    return v;
}
template <class V> __device__ V block_sum(V v)
{
    return block_fold(v, [](V a, V b) { return a + b; });
}
template <class V> __device__ V block_max(V v)
{
    return block_fold(v, [](V a, V b) { return a != a || a > b ? a : b; });
}

/* N neighbours that move at once; at most 16 bytes are taken to be aligned. */
template <class S, int N> struct alignas(sizeof(S) * N < 16 ? sizeof(S) * N : 16) several {
    S v[N];
};
/* The same in registers. Halves stay in pairs: a piece is read, filled and written without taking it apart. */
template <class S, int N> struct alignas(several<S, N>) held_piece {
    S               v[N];
    __device__ void fill(S with)
    {
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = with;
    }
    template <class V> __device__ void get(V *to) const
    {
#pragma unroll
        for (int j = 0; j < N; j++) to[j] = (V)value(v[j]);
    }
    template <class V> __device__ void set(const V *from)
    {
#pragma unroll
        for (int j = 0; j < N; j++) v[j] = made<S>::of(from[j]);
    }
};
#define PIECE_OF_HALVES(S, pair_to_floats, floats_to_pair)                                                                     \
    template <> struct alignas(16) held_piece<S, 8> {                                                                          \
        u32             pair[4];                                                                                               \
        __device__ void fill(S with)                                                                                           \
        {                                                                                                                      \
            for (int j = 0; j < 4; j++) pair[j] = with.v * 0x10001u;                                                           \
        }                                                                                                                      \
        template <class V> __device__ void get(V *to) const                                                                    \
        {                                                                                                                      \
            float first, second;                                                                                               \
            for (int j = 0; j < 4; j++) pair_to_floats(pair[j], first, second), to[2 * j] = first, to[2 * j + 1] = second;     \
        }                                                                                                                      \
        template <class V> __device__ void set(const V *from)                                                                  \
        {                                                                                                                      \
            for (int j = 0; j < 4; j++) pair[j] = floats_to_pair((float)from[2 * j], (float)from[2 * j + 1]);                  \
        }                                                                                                                      \
    };
PIECE_OF_HALVES(f16, halves_to_floats, floats_to_halves)
PIECE_OF_HALVES(bf16, brains_to_floats, floats_to_brains)
/* A row in registers: `threads` share it, each has CHUNKS pieces of WIDE neighbours. What lies beyond the row is `otherwise`.
 * n is a multiple of WIDE. */
template <int WIDE> __device__ int held_at(int chunk, int lane, int threads) { return (chunk * threads + lane) * WIDE; }
template <int WIDE, int CHUNKS, class S, class V>
__device__ void hold(V (&to)[CHUNKS * WIDE], const S *row, int n, int lane, int threads, V otherwise)
{
    held_piece<S, WIDE> x[CHUNKS]; /* filled, then read over: no element is chosen by itself */
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        int at = held_at<WIDE>(c, lane, threads);
        x[c].fill(made<S>::of(otherwise));
        if (at < n) x[c] = *(const held_piece<S, WIDE> *)(row + at);
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) x[c].get(to + c * WIDE);
}
template <int WIDE, int CHUNKS, class S, class V>
__device__ void release(const V (&from)[CHUNKS * WIDE], S *row, int n, int lane, int threads)
{
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        int                 at = held_at<WIDE>(c, lane, threads);
        held_piece<S, WIDE> x;
        x.set(from + c * WIDE);
        if (at < n) *(held_piece<S, WIDE> *)(row + at) = x;
    }
}
/* Every element of a row, over the threads of a block, 16 bytes at a time: f(index of the first, elements as V, how many). */
template <class V, class S, class F> __device__ void each_of_row(const S *row, i64 n, F f)
{
    enum { WIDE = 16 / sizeof(S) };
    i64 head = (i64)((16 - (u64)row % 16) % 16 / sizeof(S));
    if (head > n) head = n;
    i64 pieces = (n - head) / WIDE, tail = head + pieces * WIDE;
    V   x[WIDE];
    for (i64 i = threadIdx.x; i < head; i += blockDim.x) x[0] = (V)value(row[i]), f(i, x, 1);
    enum { AT_ONCE = 2 }; /* loads on their way */
    for (i64 c = threadIdx.x; c < pieces; c += AT_ONCE * blockDim.x) {
        held_piece<S, WIDE> held[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (c + u * blockDim.x < pieces) held[u] = *(const held_piece<S, WIDE> *)(row + head + (c + u * blockDim.x) * WIDE);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
            if (c + u * blockDim.x < pieces) held[u].get(x), f(head + (c + u * blockDim.x) * WIDE, x, WIDE);
    }
    for (i64 i = tail + threadIdx.x; i < n; i += blockDim.x) x[0] = (V)value(row[i]), f(i, x, 1);
}
/* The same, where f changes the elements into those of `to`. */
template <class V, class S, class F> __device__ void map_row(S *to, const S *row, i64 n, F f)
{
    enum { WIDE = 16 / sizeof(S) };
    bool alike = (u64)to % 16 == (u64)row % 16;
    i64  head = alike ? (i64)((16 - (u64)row % 16) % 16 / sizeof(S)) : n;
    if (head > n) head = n;
    i64 pieces = (n - head) / WIDE, tail = head + pieces * WIDE;
    V   x[WIDE];
    for (i64 i = threadIdx.x; i < head; i += blockDim.x) x[0] = (V)value(row[i]), f(i, x, 1), to[i] = made<S>::of(x[0]);
    for (i64 c = threadIdx.x; c < pieces; c += blockDim.x) {
        held_piece<S, WIDE> held = *(const held_piece<S, WIDE> *)(row + head + c * WIDE), made;
        held.get(x), f(head + c * WIDE, x, WIDE), made.set(x);
        *(several<u64, 2> *)(to + head + c * WIDE) = *(several<u64, 2> *)&made; /* in one instruction */
    }
    for (i64 i = tail + threadIdx.x; i < n; i += blockDim.x) x[0] = (V)value(row[i]), f(i, x, 1), to[i] = made<S>::of(x[0]);
}
/* The sum of powers of n more elements, relative to the largest one so far. */
template <class V, class F> __device__ void add_powers(const V *x, int n, V &most, V &sum, F power)
{
    V here = x[0];
#pragma unroll
    for (int j = 1; j < n; j++) here = larger(here, x[j]);
    if (here > most) sum *= power(most - here), most = here;
    V base = most == -infinity<V>() ? (V)0 : most;
#pragma unroll
    for (int j = 0; j < n; j++) sum += power(x[j] - base);
}
/* The threads that share a row: a warp of a block of four, or the block. */
template <class V, class F> __device__ V warp_fold(V v, F f)
{
    for (int d = 16; d; d /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, d));
    return v;
}
/* nothing: changes no fold. */
template <bool WARP, class V, class F> __device__ V shared_fold(V v, V nothing, F f)
{
    v = warp_fold(v, f);
    if (WARP) return v;
    __shared__ V part[32];
    int          lane = threadIdx.x % 32;
    if (lane == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    return warp_fold(lane < blockDim.x / 32 ? part[lane] : nothing, f); /* every warp does: no second barrier */
}
/* ROUND: sums that follow each other need numbers of their own, since nothing waits between them. */
template <bool WARP, int ROUND = 0, class V> __device__ V shared_sum(V v)
{
    return shared_fold<WARP>(v, (V)0, [](V a, V b) { return a + b; });
}

/* The sums of N elements, a power of two, over the lanes of a warp. Each exchange halves what a lane keeps, as long as it has more
 * than one. */
template <int N, class V> __device__ void sum_of_lanes(V (&sum)[N], V *to)
{
    int lane = threadIdx.x % 32, base = 0;
#pragma unroll
    for (int step = 16, n = N / 2; step; step /= 2, n /= 2) {
        bool up = lane & step;
        if (n == 0) sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], step);
        else if (up) base += n;
#pragma unroll
        for (int e = 0; e < N / 2; e++)
            if (e < n) {
                V kept = up ? sum[e + n] : sum[e], given = up ? sum[e] : sum[e + n];
                sum[e] = kept + __shfl_xor_sync(0xffffffffu, given, step);
            }
    }
    enum { LEFT = N > 32 ? N / 32 : 1 };
    if (N >= 32 || lane % (32 / (N < 32 ? N : 32)) == 0)
#pragma unroll
        for (int e = 0; e < LEFT; e++) to[base + e] = sum[e];
}

/* A value that only the kernel can see is wrong: the first one is kept for the host (driver.h). */
struct trouble {
    i64 kind, value, low, high;
};
__device__ inline void report(trouble *word, i64 kind, i64 value, i64 low, i64 high)
{
    if (atomicCAS((unsigned long long *)&word->kind, 0ull, (unsigned long long)kind) == 0)
        word->value = value, word->low = low, word->high = high;
}
