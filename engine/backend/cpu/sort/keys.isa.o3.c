/* Keys of every dtype (keys.h). Compiled once per instruction set: conversion, extremes and widening are vector code. */
#include "keys.h"
#include <string.h>

#define SIGN            ((K)((K)1 << (8 * sizeof(K) - 1)))
#define NEVER(x)        0
#define AS_IS(x)        (x)
#define SIGN_FLIPPED(x) ((x) ^ SIGN)

#define KEY     AS_IS
#define VALUE   AS_IS
#define LOSSY   NEVER
#define NAN_KEY 0
#define K       uint8_t
#define NAME(f) f##_u8
#include "keys.inc.c"
#define K       uint16_t
#define NAME(f) f##_u16
#include "keys.inc.c"
#define K       uint32_t
#define NAME(f) f##_u32
#include "keys.inc.c"
#define K       uint64_t
#define NAME(f) f##_u64
#include "keys.inc.c"
#undef KEY
#undef VALUE

#define KEY     SIGN_FLIPPED
#define VALUE   SIGN_FLIPPED
#define K       uint8_t
#define NAME(f) f##_i8
#include "keys.inc.c"
#define K       uint16_t
#define NAME(f) f##_i16
#include "keys.inc.c"
#define K       uint32_t
#define NAME(f) f##_i32
#include "keys.inc.c"
#define K       uint64_t
#define NAME(f) f##_i64
#include "keys.inc.c"
#undef KEY
#undef VALUE
#undef LOSSY
#undef NAN_KEY

/* Floats: negative numbers have all bits inverted, others get the sign bit. Branchless, so that it vectorises. */
#define ONES_IF(c)   ((K) - (K)(c))
#define MAGNITUDE(x) ((K)((x) & (K)~SIGN))
#define IS_NAN(x)    (MAGNITUDE(x) > INFINITE)
#define ORDERED(x)   ((K)((x) ^ (ONES_IF((x) >> (8 * sizeof(K) - 1)) | SIGN)))
#define FLOAT_KEY(x) ((K)((ORDERED(x) | ONES_IF(IS_NAN(x))) + (K)((x) == SIGN)))
#define FLOAT_OF(k)  ((k)&SIGN ? (k) ^ SIGN : (K) ~(k))
#define IMPRECISE(x) ((K)(IS_NAN(x) | ((x) == SIGN)))
#define KEY          FLOAT_KEY
#define VALUE        FLOAT_OF
#define LOSSY        IMPRECISE
#define NAN_KEY      ((K) ~(K)0)
#define INFINITE     0x7c00
#define K            uint16_t
#define NAME(f)      f##_f16
#include "keys.inc.c"
#undef INFINITE
#define INFINITE 0x7f80
#define K        uint16_t
#define NAME(f)  f##_bf16
#include "keys.inc.c"
#undef INFINITE
#define INFINITE 0x7f800000u
#define K        uint32_t
#define NAME(f)  f##_f32
#include "keys.inc.c"
#undef INFINITE
#define INFINITE 0x7ff0000000000000u
#define K        uint64_t
#define NAME(f)  f##_f64
#include "keys.inc.c"
#define key_b8 key_u8

/* Sorting networks of eight, eight of them side by side, then transposed. */
static inline void order(uint64_t *a, uint64_t *b)
{
    for (int l = 0; l < 8; l++) {
        uint64_t x = a[l], y = b[l];
        a[l] = x < y ? x : y, b[l] = x < y ? y : x;
    }
}
static void runs(uint64_t *record)
{
    static const uint8_t pair[19][2] = { { 0, 2 }, { 1, 3 }, { 4, 6 }, { 5, 7 }, { 0, 4 }, { 1, 5 }, { 2, 6 },
                                         { 3, 7 }, { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 }, { 2, 4 }, { 3, 5 },
                                         { 1, 4 }, { 3, 6 }, { 1, 2 }, { 3, 4 }, { 5, 6 } };
    uint64_t             a[8][8];
    memcpy(a, record, sizeof a);
#pragma GCC unroll 19
    for (int i = 0; i < 19; i++) order(a[pair[i][0]], a[pair[i][1]]);
    for (int i = 0; i < 8; i++)
        for (int l = 0; l < 8; l++) record[8 * l + i] = a[i][l];
}

static int64_t starts(const uint64_t *key, uint64_t last, uint64_t nan, int64_t n, uint8_t *fresh, uint16_t *start)
{
    int64_t count = 0;
    fresh[0] = key[0] != last;
    for (int64_t i = 1; i < n; i++) fresh[i] = key[i] != key[i - 1];
    for (int64_t i = 0; nan && i < n; i++) fresh[i] |= key[i] == nan;
    for (int64_t i = 0; i < n; i++) start[count] = (uint16_t)i, count += fresh[i];
    return count;
}
static uint64_t largest(const uint64_t *x, int64_t n)
{
    uint64_t most = 0;
    for (int64_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

#define TABLE_OF(isa) lc_cpu_sort_##isa
#define TABLE(isa)    TABLE_OF(isa)
extern const lc_sort_kernels TABLE(LC_ISA);
const lc_sort_kernels        TABLE(LC_ISA) = {
    .key = {
#define KEY_OF(op, dtype) [LC_##dtype] = &key_##dtype,
        LC_EACH_sortable(KEY_OF, ) },
    .runs = runs,
    .starts = starts,
    .largest = largest,
};
