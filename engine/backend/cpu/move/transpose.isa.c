/* Transposing blocks in registers. Compiled once per instruction set.
 *
 * n rows of n elements are transposed by log2(n) rounds of the same step: the first half of the rows is zipped with the
 * second half. A block is as wide as a cache line on both sides, so every line is read once and written once, whole. Blocks
 * of large copies bypass the cache: their lines are not read first, and would not fit anyway. */
#include "../kernels.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define UNROLL _Pragma("GCC unroll 16")

#ifdef __AVX2__
#define FENCE _mm_sfence()
#else
#define FENCE (void)0
#endif
#ifdef __AVX512F__
enum { LINE = 64 };
#define STREAM(p, x) _mm512_stream_si512((void *)(p), (__m512i)(x))
#define ZIP32(a, b, from)                                                                                                      \
    __builtin_shufflevector(a, b, from, from + 16, from + 1, from + 17, from + 2, from + 18, from + 3, from + 19, from + 4,    \
                            from + 20, from + 5, from + 21, from + 6, from + 22, from + 7, from + 23)
#define ZIP64(a, b, from)                                                                                                      \
    __builtin_shufflevector(a, b, from, from + 8, from + 1, from + 9, from + 2, from + 10, from + 3, from + 11)
#else
enum { LINE = 32 }; /* half a line: the next block writes the other half immediately */
#ifdef __AVX2__
#define STREAM(p, x) _mm256_stream_si256((void *)(p), (__m256i)(x))
#else
#define STREAM(p, x) (*(p) = (x))
#endif
#define ZIP32(a, b, from)                                                                                                      \
    __builtin_shufflevector(a, b, from, from + 8, from + 1, from + 9, from + 2, from + 10, from + 3, from + 11)
#define ZIP64(a, b, from) __builtin_shufflevector(a, b, from, from + 4, from + 1, from + 5)
#endif

#define TRANSPOSE(bits)                                                                                                        \
    typedef uint##bits##_t vec##bits __attribute__((vector_size(LINE), aligned(bits / 8), may_alias));                         \
    enum { N##bits = LINE * 8 / bits };                                                                                        \
    static inline __attribute__((always_inline)) void block##bits(char *dst, int64_t dst_step, const char *src,                \
                                                                  int64_t src_step, bool stream)                               \
    {                                                                                                                          \
        vec##bits a[N##bits], b[N##bits];                                                                                      \
        UNROLL for (int i = 0; i < N##bits; i++) a[i] = *(const vec##bits *)(src + i * src_step);                              \
        UNROLL for (int round = 1; round < N##bits; round *= 2)                                                                \
        {                                                                                                                      \
            UNROLL for (int i = 0; i < N##bits / 2; i++)                                                                       \
            {                                                                                                                  \
                b[2 * i] = ZIP##bits(a[i], a[i + N##bits / 2], 0);                                                             \
                b[2 * i + 1] = ZIP##bits(a[i], a[i + N##bits / 2], N##bits / 2);                                               \
            }                                                                                                                  \
            UNROLL for (int i = 0; i < N##bits; i++) a[i] = b[i];                                                              \
        }                                                                                                                      \
        UNROLL for (int i = 0; i < N##bits; i++) if (stream) STREAM((vec##bits *)(dst + i * dst_step), a[i]);                  \
        else *(vec##bits *)(dst + i * dst_step) = a[i]; }                                                                      \
    static void transpose##bits(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows, int64_t cols,    \
                                bool stream)                                                                                   \
    {                                                                                                                          \
        int64_t whole_rows = rows - rows % N##bits, whole_cols = cols - cols % N##bits;                                        \
        stream = stream && ((uintptr_t)dst | (uintptr_t)dst_step) % LINE == 0;                                                 \
        for (int64_t r = 0; r < whole_rows; r += N##bits)                                                                      \
            for (int64_t c = 0; c < whole_cols; c += N##bits) {                                                                \
                char       *to = dst + r * dst_step + c * (bits / 8);                                                          \
                const char *from = src + c * src_step + r * (bits / 8);                                                        \
                if (stream) block##bits(to, dst_step, from, src_step, true);                                                   \
                else block##bits(to, dst_step, from, src_step, false);                                                         \
            }                                                                                                                  \
        for (int64_t r = 0; r < rows; r++)                                                                                     \
            for (int64_t c = r < whole_rows ? whole_cols : 0; c < cols; c++)                                                   \
                ((uint##bits##_t *)(dst + r * dst_step))[c] = ((const uint##bits##_t *)(src + c * src_step))[r];               \
        if (stream) FENCE;                                                                                                     \
    }
TRANSPOSE(32)
TRANSPOSE(64)

static void fill_lines(char *dst, const char *line, int64_t lines)
{
    typedef char vec __attribute__((vector_size(LINE), aligned(16), may_alias));
    vec          x = *(const vec *)line, y = *(const vec *)(line + 64 - LINE);
    for (int64_t i = 0; i < lines; i++) *(vec *)(dst + i * 64) = x, *(vec *)(dst + i * 64 + 64 - LINE) = y;
}

/* Stores are aligned: a store that crosses two lines costs twice, a load hardly more. */
typedef char bytes_at __attribute__((vector_size(LINE), aligned(1), may_alias));
typedef char bytes_line __attribute__((vector_size(LINE), may_alias));
static void  copy(char *dst, const char *src, int64_t n)
{
    int64_t head = -(int64_t)(uintptr_t)dst & (LINE - 1), i;
    if (n < 4 * LINE) {
        __builtin_memcpy(dst, src, (size_t)n);
        return;
    }
    *(bytes_at *)dst = *(const bytes_at *)src; /* the head, and more */
    for (i = head; i + LINE <= n; i += LINE) *(bytes_line *)(dst + i) = *(const bytes_at *)(src + i);
    *(bytes_at *)(dst + n - LINE) = *(const bytes_at *)(src + n - LINE);
}

#define BACKWARDS_4(n)  n - 1, n - 2, n - 3, n - 4
#define BACKWARDS_8(n)  BACKWARDS_4(n), BACKWARDS_4(n - 4)
#define BACKWARDS_16(n) BACKWARDS_8(n), BACKWARDS_8(n - 8)
#ifdef __AVX512F__
#define REVERSED32(x) __builtin_shufflevector(x, x, BACKWARDS_16(16))
#define REVERSED64(x) __builtin_shufflevector(x, x, BACKWARDS_8(8))
#else
#define REVERSED32(x) __builtin_shufflevector(x, x, BACKWARDS_8(8))
#define REVERSED64(x) __builtin_shufflevector(x, x, BACKWARDS_4(4))
#endif
#define REVERSE(bits)                                                                                                          \
    static void reverse##bits(char *dst, const char *src, int64_t n)                                                           \
    {                                                                                                                          \
        uint##bits##_t       *to = (uint##bits##_t *)dst;                                                                      \
        const uint##bits##_t *from = (const uint##bits##_t *)src;                                                              \
        int64_t               i = 0;                                                                                           \
        for (; i < n && (uintptr_t)(to + i) % LINE; i++) to[i] = from[-i];                                                     \
        for (; i + N##bits <= n; i += N##bits)                                                                                 \
            *(vec##bits *)(to + i) = REVERSED##bits(*(const vec##bits *)(from - i - (N##bits - 1)));                           \
        for (; i < n; i++) to[i] = from[-i];                                                                                   \
    }
REVERSE(32)
REVERSE(64)

#define RAMP(type)                                                                                                             \
    static void ramp_##type(void *to, double start, double step, int64_t first, int way, int64_t n)                            \
    {                                                                                                                          \
        /* the index as a double, without the conversion of 64-bit integers, which vector instruction sets lack */             \
        for (int i = 0; i < (int)n; i++) ((type *)to)[i] = (type)(start + step * ((double)first + (double)(way * i)));         \
    }
RAMP(float)
RAMP(double)

const lc_moves CAT(lc_cpu_moves, LC_ISA) = {
    { transpose32, transpose64 }, fill_lines, copy, { reverse32, reverse64 }, { ramp_float, ramp_double }
};
