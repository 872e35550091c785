/* The rows of indexed walks: moves by element width, arithmetic by dtype. */
#include "index.h"
#include "../convert.h"
#include <string.h>

#define TEMPLATE "index/index_move.inc.c"
#include "../each_width.inc.c"

/* A row that combines `walked` into `indexed`. */
#define COMBINES(name, T, COMBINE)                                                                                             \
    static int name(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)                                             \
    {                                                                                                                          \
        const lc_indexed_row *row = ctx;                                                                                       \
        const char           *index = ptr[2];                                                                                  \
        if (stride[2] == 0 && stride[0] == sizeof(T) && stride[1] == sizeof(T)) {                                              \
            uint64_t k = cpu_index_at(row, index);                                                                             \
            if (k >= (uint64_t)row->size) return 1;                                                                            \
            T       *to = (T *)(ptr[0] + (int64_t)k * row->step);                                                              \
            const T *walked = (const T *)ptr[1];                                                                               \
            for (int64_t i = 0; i < n; i++) to[i] = (T)COMBINE(to[i], walked[i]);                                              \
        } else if (stride[0] == 0 && row->step == sizeof(T) && stride[1] == sizeof(T))                                         \
            FOR_GOOD_INDICES(T *to = (T *)ptr[0] + k; *to = (T)COMBINE(*to, ((const T *)ptr[1])[i]))                           \
        else                                                                                                                   \
            FOR_GOOD_INDICES(T *to = (T *)(ptr[0] + i * stride[0] + (int64_t)k * row->step);                                   \
                             *to = (T)COMBINE(*to, *(const T *)(ptr[1] + i * stride[1])))                                      \
        return 0;                                                                                                              \
    }
#define PLUS(a, b)    ((a) + (b))
#define TIMES(a, b)   ((a) * (b))
#define LARGER(a, b)  ((b) > (a) || (b) != (b) ? (b) : (a)) /* NaN wins */
#define SMALLER(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define ANY(a, b)     ((a) | (b))
#define BOTH(a, b)    ((a) & (b))
static inline uint16_t f16_of(float x) { return lc_f32_to_f16(x); }
static inline uint16_t bf16_of(float x) { return lc_f32_to_bf16(x); }
static inline float    of_f16(uint16_t x) { return lc_f16_to_f32(x); }
static inline float    of_bf16(uint16_t x) { return lc_bf16_to_f32(x); }
#define F16_PLUS(a, b)     f16_of(of_f16(a) + of_f16(b))
#define F16_TIMES(a, b)    f16_of(of_f16(a) * of_f16(b))
#define F16_LARGER(a, b)   f16_of(LARGER(of_f16(a), of_f16(b)))
#define F16_SMALLER(a, b)  f16_of(SMALLER(of_f16(a), of_f16(b)))
#define BF16_PLUS(a, b)    bf16_of(of_bf16(a) + of_bf16(b))
#define BF16_TIMES(a, b)   bf16_of(of_bf16(a) * of_bf16(b))
#define BF16_LARGER(a, b)  bf16_of(LARGER(of_bf16(a), of_bf16(b)))
#define C32_PLUS(a, b)     c32_of_c64(c64_of_c32(a) + c64_of_c32(b))
#define C32_TIMES(a, b)    c32_of_c64(c64_of_c32(a) * c64_of_c32(b))
#define BF16_SMALLER(a, b) bf16_of(SMALLER(of_bf16(a), of_bf16(b)))

/* dtype, C type of sums (unsigned: they wrap), sum, product, C type of comparisons, maximum, minimum */
#define ROWS(R)                                                                                                                \
    R(b8, uint8_t, ANY, BOTH, uint8_t, ANY, BOTH)                                                                              \
    R(u8, uint8_t, PLUS, TIMES, uint8_t, LARGER, SMALLER)                                                                      \
    R(i8, int8_t, PLUS, TIMES, int8_t, LARGER, SMALLER)                                                                        \
    R(i16, int16_t, PLUS, TIMES, int16_t, LARGER, SMALLER)                                                                     \
    R(i32, uint32_t, PLUS, TIMES, int32_t, LARGER, SMALLER)                                                                    \
    R(i64, uint64_t, PLUS, TIMES, int64_t, LARGER, SMALLER)                                                                    \
    R(u16, uint16_t, PLUS, TIMES, uint16_t, LARGER, SMALLER)                                                                   \
    R(u32, uint32_t, PLUS, TIMES, uint32_t, LARGER, SMALLER)                                                                   \
    R(u64, uint64_t, PLUS, TIMES, uint64_t, LARGER, SMALLER)                                                                   \
    R(f16, uint16_t, F16_PLUS, F16_TIMES, uint16_t, F16_LARGER, F16_SMALLER)                                                   \
    R(bf16, uint16_t, BF16_PLUS, BF16_TIMES, uint16_t, BF16_LARGER, BF16_SMALLER)                                              \
    R(f32, float, PLUS, TIMES, float, LARGER, SMALLER)                                                                         \
    R(f64, double, PLUS, TIMES, double, LARGER, SMALLER)
#define COMPLEX_ROWS(R)                                                                                                        \
    R(c32, uint32_t, C32_PLUS, C32_TIMES) R(c64, _Complex float, PLUS, TIMES) R(c128, _Complex double, PLUS, TIMES)

#define SUMS(dtype, T, ADD, MULTIPLY, ...) COMBINES(add_##dtype, T, ADD) COMBINES(multiply_##dtype, T, MULTIPLY)
#define ORDERS(dtype, U, ADD, MULTIPLY, T, MAXIMUM, MINIMUM)                                                                   \
    COMBINES(larger_##dtype, T, MAXIMUM) COMBINES(smaller_##dtype, T, MINIMUM)
ROWS(SUMS)
ROWS(ORDERS)
COMPLEX_ROWS(SUMS)

lc_row_fn cpu_index_row(lc_index_mode mode, lc_dtype dtype)
{
    static const lc_row_fn moves[17][2] = { [1] = { read_1, write_1 },
                                            [2] = { read_2, write_2 },
                                            [4] = { read_4, write_4 },
                                            [8] = { read_8, write_8 },
                                            [16] = { read_16, write_16 } };
    static const lc_row_fn folds[LC_DTYPE_COUNT][4] = {
#define ALL_FOUR(dtype, ...)  [LC_##dtype] = { add_##dtype, multiply_##dtype, larger_##dtype, smaller_##dtype },
#define ONLY_SUMS(dtype, ...) [LC_##dtype] = { add_##dtype, multiply_##dtype },
        ROWS(ALL_FOUR) COMPLEX_ROWS(ONLY_SUMS)
    };
    return mode <= LC_INDEX_WRITE ? moves[lc_size_of(dtype)][mode] : folds[dtype][mode - LC_INDEX_ADD];
}
