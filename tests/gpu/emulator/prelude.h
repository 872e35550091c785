/* What CUDA C++ gives a kernel, for a C++ compiler: the text of a program follows. Blocks run one after the other. In a
 * BLOCK_KERNEL each thread is a fiber that runs until it waits; the emulator picks the next one at random. */
#include <cstring>
#include <math.h>
#define int64_t  emulated_int64_t /* CUDA's are long long */
#define uint64_t emulated_uint64_t
#define uint16_t emulated_uint16_t
struct emulated_dim3 {
    unsigned x, y, z;
};
struct emulated_thread {
    emulated_dim3 threadIdx, blockIdx, blockDim, gridDim;
};
extern "C" emulated_thread emulated_now;
extern "C" void            emulated_block_barrier();
extern "C" void            emulated_warp_barrier(unsigned mask);
extern "C" char           *emulated_dynamic_shared;
extern "C" void            emulated_warp_exchange(unsigned mask, const void *mine, void *theirs, int bytes, int lane);
#define threadIdx emulated_now.threadIdx
#define blockIdx  emulated_now.blockIdx
#define blockDim  emulated_now.blockDim
#define gridDim   emulated_now.gridDim
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __shared__    static
#define __constant__  static
#define __syncthreads emulated_block_barrier
/* Copies of a thread into shared memory that go on meanwhile: they are there when it has waited for their group. */
extern "C" void                 emulated_copy(void *to, const void *from, int bytes, bool there);
extern "C" void                 emulated_copies_wait(int groups_left);
extern "C" void                 emulated_copies_end();
static inline void              copy_four(float *to, const float *from, bool there) { emulated_copy(to, from, 16, there); }
static inline void              copy_one(float *to, const float *from, bool there) { emulated_copy(to, from, 4, there); }
static inline void              copies_end() { emulated_copies_end(); }
template <int LEFT> inline void copies_wait() { emulated_copies_wait(LEFT); }
static inline void              __syncwarp(unsigned mask = 0xffffffffu) { emulated_warp_barrier(mask); }
#define SHARED_MEMORY(type, name) type *name = (type *)emulated_dynamic_shared
#ifdef EMULATED_RACES /* every access is told to the detector (races.cpp), these as atomic ones */
extern "C" void       emulated_atomic(const void *p, size_t n);
extern "C" void       emulated_fence();
extern "C" const char emulated_races;
const char            emulated_races = 1;
#define ATOMIC(result, name) template <class V, class W> __attribute__((noinline, no_sanitize("thread"))) static result name
#else
static inline void emulated_atomic(const void *, size_t) {}
static inline void emulated_fence() {}
#define ATOMIC(result, name) template <class V, class W> static result name
#endif
template <class V> V __shfl_xor_sync(unsigned threads, V v, int mask)
{
    V other;
    emulated_warp_exchange(threads, &v, &other, sizeof v, (int)(threadIdx.x % 32) ^ mask);
    return other;
}
template <class V> V __shfl_sync(unsigned threads, V v, int lane)
{
    V other;
    emulated_warp_exchange(threads, &v, &other, sizeof v, lane);
    return other;
}
static inline float __int_as_float(int i)
{
    float f;
    std::memcpy(&f, &i, 4);
    return f;
}
static inline float    __uint_as_float(unsigned i) { return __int_as_float((int)i); }
static inline unsigned __float_as_uint(float f)
{
    unsigned u;
    std::memcpy(&u, &f, 4);
    return u;
}
static inline int       __float_as_int(float f) { return (int)__float_as_uint(f); }
static inline long long __double_as_longlong(double d)
{
    long long i;
    std::memcpy(&i, &d, 8);
    return i;
}
static inline double __longlong_as_double(long long i)
{
    double d;
    std::memcpy(&d, &i, 8);
    return d;
}
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
ATOMIC(V, atomicAdd)(V *p, W v)
{
    emulated_atomic(p, sizeof *p);
    V old = *p;
    *p = (V)(old + v);
    return old;
}
ATOMIC(V, atomicCAS)(V *p, V expected, W wanted)
{
    emulated_atomic(p, sizeof *p);
    V old = *p;
    if (old == expected) *p = (V)wanted;
    return old;
}
ATOMIC(V, atomicMax)(V *p, W v)
{
    emulated_atomic(p, sizeof *p);
    V old = *p;
    if ((V)v > old) *p = (V)v;
    return old;
}
ATOMIC(void, store_one_of)(V *to, W v)
{
    emulated_atomic(to, sizeof *to);
    *to = v;
}
static inline void  __threadfence() { emulated_fence(); }
static inline float half_to_float(unsigned short h)
{
    _Float16 x;
    std::memcpy(&x, &h, 2);
    return (float)x;
}
static inline unsigned short float_to_half(float f)
{
    _Float16       x = (_Float16)f;
    unsigned short h;
    std::memcpy(&h, &x, 2);
    return h;
}
static inline double         sinpi(double x) { return std::sin(3.14159265358979323846 * std::fmod(x, 2)); }
static inline double         cospi(double x) { return std::cos(3.14159265358979323846 * std::fmod(x, 2)); }
static inline unsigned short float_to_brain(float f)
{
    unsigned u = __float_as_uint(f);
    return f != f ? (unsigned short)0x7fff : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static inline void halves_to_floats(unsigned pair, float &a, float &b)
{
    a = half_to_float((unsigned short)pair), b = half_to_float((unsigned short)(pair >> 16));
}
static inline unsigned floats_to_halves(float a, float b) { return float_to_half(a) | (unsigned)float_to_half(b) << 16; }
static inline unsigned floats_to_brains(float a, float b) { return float_to_brain(a) | (unsigned)float_to_brain(b) << 16; }
static inline float    larger(float a, float b) { return a != a || a > b ? a : b; }
static inline float    fast_exp2(float x) { return std::exp2(x); }
static inline float    fast_reciprocal(float x) { return 1 / x; }
#define __expf                     std::exp
#define __logf                     std::log
#define __tanf                     std::tan
#define __sincosf(x, sine, cosine) (*(sine) = std::sin(x), *(cosine) = std::cos(x))
static inline float  __fdividef(float x, float y) { return x / y; }
static inline double erfinv(double x)
{
    if (!(x > -1 && x < 1)) return x == 1 ? HUGE_VAL : x == -1 ? -HUGE_VAL : NAN;
    double w = -std::log((1 - x) * (1 + x)), y = 0.886 * x * (1 + 0.1 * w);
    for (int i = 0; i < 60; i++) y -= (std::erf(y) - x) / (1.12837916709551257390 * std::exp(-y * y));
    return y;
}
static inline float  erfinv(float x) { return (float)erfinv((double)x); }
static inline float  rsqrt(float x) { return 1 / std::sqrt(x); }
static inline double rsqrt(double x) { return 1 / std::sqrt(x); }
#undef INFINITY
#undef NAN
struct emulated_kernel {
    int  bytes, threads; /* of its argument; the most of a block */
    bool waits;
    void (*body)(const void *args);
    int        n;
    const int *sizes;
};
#define EMULATED(name, args, p, threads, waits)                                                                                \
    static void                      name##_body(const args &p);                                                               \
    static void                      name##_call(const void *a) { name##_body(*(const args *)a); }                             \
    extern "C" const emulated_kernel name;                                                                                     \
    const emulated_kernel            name = { (int)sizeof(args), threads, waits, name##_call, 0, nullptr };                    \
    static void                      name##_body(const args &p)
/* A __global__ function, as users write them: its parameters lie in slots of 16 bytes. */
#define __global__
template <auto F> struct emulated_function;
template <class... A, void (*F)(A...)> struct emulated_function<F> {
    static constexpr int n = sizeof...(A), sizes[sizeof...(A) + 1] = { (int)sizeof(A)..., 0 };
    static constexpr int start(int k)
    {
        int at = 0;
        for (int i = 0; i < k; i++) at += (sizes[i] + 15) / 16 * 16;
        return at;
    }
    template <int... K> struct list {
    };
    template <int N, int... K> struct count : count<N - 1, N - 1, K...> {
    };
    template <int... K> struct count<0, K...> {
        typedef list<K...> type;
    };
    template <int... K> static void apply(const char *at, list<K...>) { F(*(const A *)(at + start(K))...); }
    static void                     call(const void *at) { apply((const char *)at, typename count<n>::type()); }
};
#define EMULATED_FUNCTION(name)                                                                                                \
    extern "C" const emulated_kernel name##_emulated;                                                                          \
    const emulated_kernel            name##_emulated = {                                                                       \
                   0, 1024, true, emulated_function<name>::call, emulated_function<name>::n, emulated_function<name>::sizes    \
    };
#define KERNEL(name, args, p)                   EMULATED(name, args, p, 512, false)
#define BLOCK_KERNEL(name, args, p)             EMULATED(name, args, p, 512, true)
#define BLOCK_KERNEL_OF(threads, name, args, p) EMULATED(name, args, p, threads, true)
#line 1 "lucid.cu"
