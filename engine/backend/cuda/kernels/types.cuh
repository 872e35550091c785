/* Element types by their names in dtype.def. Values are converted on load and store: bool from and to any nonzero byte,
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

template <class T> __device__ T value(T x) { return x; }
__device__ inline bool          value(b8 x) { return x.v != 0; }
__device__ inline float         value(f16 x)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.v));
    return f;
}
__device__ inline float value(bf16 x) { return __uint_as_float((unsigned)x.v << 16); }

template <class T> struct made {
    template <class V> __device__ static T of(V v) { return (T)v; }
};
template <> struct made<b8> {
    template <class V> __device__ static b8 of(V v) { return b8{ (unsigned char)(v != V(0)) }; }
};
template <> struct made<f16> {
    template <class V> __device__ static f16 of(V v)
    {
        f16 h;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.v) : "f"((float)v));
        return h;
    }
};
template <> struct made<bf16> {
    template <class V> __device__ static bf16 of(V v)
    {
        float    f = (float)v;
        unsigned u = __float_as_uint(f);
        return bf16{ f != f ? (unsigned short)0x7fc0 : (unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16) };
    }
};

/* A scalar passed with the call: as a double and as an integer. */
template <class T> __device__ T   number(double f, i64 i) { return (T)i; }
template <> __device__ inline f32 number<f32>(double f, i64 i) { return (f32)f; }
template <> __device__ inline f64 number<f64>(double f, i64 i) { return f; }
