/* Conversion of one element: (lc_to)STORE_to(LOAD_from(x)).
 *
 * Conversions follow PyTorch on x86, without undefined behaviour: a float that does not fit becomes the lowest integer of
 * the machine conversion (32 bits for the narrow types, 64 for int64), which the narrow types then truncate. Complex to real
 * drops the imaginary part. */
#pragma once
#include "math/scalar_math.h"

static inline int32_t  i32_of_f32(float x) { return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN; }
static inline int32_t  i32_of_f64(double x) { return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN; }
static inline int64_t  i64_of_f64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }
static inline uint64_t u64_of_f64(double x) { return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)i64_of_f64(x); }
static inline lc_c64   c64_of_c32(uint32_t parts)
{
    lc_c64 z;
    __real__ z = lc_f16_to_f32((uint16_t)parts), __imag__ z = lc_f16_to_f32((uint16_t)(parts >> 16));
    return z;
}
static inline uint32_t c32_of_c64(lc_c64 z) { return lc_f32_to_f16(__real__ z) | (uint32_t)lc_f32_to_f16(__imag__ z) << 16; }
static inline int64_t  i64_of_i64(int64_t x) { return x; }

#define PLAIN(x)      (x)
#define LOAD_b8       PLAIN
#define LOAD_u8       PLAIN
#define LOAD_i8       PLAIN
#define LOAD_i16      PLAIN
#define LOAD_i32      PLAIN
#define LOAD_i64      PLAIN
#define LOAD_u16      PLAIN
#define LOAD_u32      PLAIN
#define LOAD_u64      PLAIN
#define LOAD_f16      lc_f16_to_f32
#define LOAD_bf16     lc_bf16_to_f32
#define LOAD_f32      PLAIN
#define LOAD_f64      PLAIN
#define LOAD_c32      c64_of_c32
#define LOAD_c64      PLAIN
#define LOAD_c128     PLAIN
#define NARROW(x)     BY_REAL_TYPE(__real__(x), i32_of_f32, i32_of_f64, i64_of_i64)(__real__(x))
#define WIDE(x)       BY_REAL_TYPE(__real__(x), i64_of_f64, i64_of_f64, i64_of_i64)(__real__(x))
#define STORE_b8(x)   (__real__(x) != 0 || __imag__(x) != 0)
#define STORE_u8(x)   BY_REAL_TYPE(__real__(x), i32_of_f32, i64_of_f64, i64_of_i64)(__real__(x))
#define STORE_i8      NARROW
#define STORE_i16     NARROW
#define STORE_i32     NARROW
#define STORE_i64     WIDE
#define STORE_u16     WIDE
#define STORE_u32     WIDE
#define STORE_u64(x)  BY_REAL_TYPE(__real__(x), u64_of_f64, u64_of_f64, i64_of_i64)(__real__(x))
#define STORE_f16(x)  lc_f32_to_f16((float)__real__(x))
#define STORE_bf16(x) lc_f32_to_bf16((float)__real__(x))
#define STORE_f32     __real__
#define STORE_f64     __real__
#define STORE_c32(x)  c32_of_c64((lc_c64)(x))
#define STORE_c64     PLAIN
#define STORE_c128    PLAIN
