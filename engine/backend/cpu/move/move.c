/* Moves: conversion [from][to] with any strides on either side, copies per width, fills.
 *
 * A copy between two orders of dimensions (a transposed copy) goes through square blocks: rows of one side are columns of
 * the other, and a block of whole cache lines on both sides wastes no memory traffic. */
#include "../cpu.h"
#include "../convert.h"
#include "../../../core/float8.h"
#include "../../../tensor/iter.h"
#include <string.h>

/* Any pair, any strides: small rather than fast. Common contiguous conversions have vector code (loops.isa.c). */
#define MOVE(from, to)                                                                                                         \
    static SMALL void move_##from##_##to(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n)            \
    {                                                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                                                        \
            *(lc_##to *)(dst + i * dst_step) = (lc_##to)STORE_##to(LOAD_##from(*(const lc_##from *)(src + i * src_step)));     \
    }
#define EACH_DTYPE(X, with)                                                                                                    \
    X(with, b8)                                                                                                                \
    X(with, u8)                                                                                                                \
    X(with, i8)                                                                                                                \
    X(with, i16)                                                                                                               \
    X(with, i32)                                                                                                               \
    X(with, i64)                                                                                                               \
    X(with, u16)                                                                                                               \
    X(with, u32) X(with, u64) X(with, f16) X(with, bf16) X(with, f32) X(with, f64) X(with, c32) X(with, c64) X(with, c128)
#define DTYPE(name, ctype, acc, py, class) EACH_DTYPE(MOVE, name)
#define STORED(name, ctype, acc, py, class)
#include "../../../core/dtype.def"
#undef DTYPE

typedef void (*mover)(char *, int64_t, const char *, int64_t, int64_t);
static const mover movers[LC_DTYPE_COUNT][LC_DTYPE_COUNT] = {
#define MOVER(from, to)                    move_##from##_##to,
#define DTYPE(name, ctype, acc, py, class) { EACH_DTYPE(MOVER, name) },
#define STORED(name, ctype, acc, py, class)
#include "../../../core/dtype.def"
#undef DTYPE
};

/* Copies of one width, whatever the dtype. */
typedef struct {
    uint64_t part[2];
} u128;
#define UNROLLED(loop) _Pragma("GCC unroll 4") loop /* without it, its speed depends on its alignment */
#define COPY(bits, type)                                                                                                       \
    static void copy_##bits(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n)                         \
    {                                                                                                                          \
        if (src_step == 0 && dst_step == sizeof(type)) {                                                                       \
            type x = *(const type *)src;                                                                                       \
            for (int64_t i = 0; i < n; i++) ((type *)dst)[i] = x;                                                              \
        } else if (src_step == -(int64_t)sizeof(type) && dst_step == sizeof(type))                                             \
            for (int64_t i = 0; i < n; i++) ((type *)dst)[i] = ((const type *)src)[-i];                                        \
        else UNROLLED(for (int64_t i = 0; i < n; i++) * (type *)(dst + i * dst_step) = *(const type *)(src + i * src_step);)   \
    }
COPY(8, uint8_t) COPY(16, uint16_t) COPY(32, uint32_t) COPY(64, uint64_t) COPY(128, u128) static mover copier(int64_t size)
{
    return (mover[]){ copy_8, copy_16, copy_32, copy_64, copy_128 }[__builtin_ctzll((uint64_t)size)];
}

/* memcpy, except for rows and for sides with different alignment: there the string instructions it uses take up to ten times
 * as long on some CPUs. */
static void copy_bytes(char *dst, const char *src, size_t n)
{
    bool row = n >= 1024 && n < 1 << 16;
    if (row || (n >= 1024 && ((uintptr_t)dst ^ (uintptr_t)src) % 64)) lc_cpu_moves.copy(dst, src, (int64_t)n);
    else memcpy(dst, src, n);
}

/* Fills with one element. */
static void fill_bytes(char *dst, const char *element, int64_t size, int64_t bytes)
{
    _Alignas(64) char line[128]; /* twice, to start anywhere in it */
    int64_t           before = -(int64_t)(uintptr_t)dst & 63, lines = (bytes - before) / 64;
    copier(size)(line, size, element, 0, (int64_t)sizeof line / size);
    if (memcmp(line, line + 1, 64) == 0) { /* zeros, usually */
        memset(dst, line[0], (size_t)bytes);
        return;
    }
    _Alignas(64) char rotated[64];
    memcpy(rotated, line + before, 64);
    memcpy(dst, line, (size_t)before);
    lc_cpu_moves.fill_lines(dst + before, rotated, lines);
    memcpy(dst + before + lines * 64, rotated, (size_t)((bytes - before) % 64));
}

/* Floats of one byte are converted by way of float32. */
static __attribute__((noinline)) void move_float8(lc_dtype to, char *dst, int64_t dst_step, lc_dtype from, const char *src,
                                                  int64_t src_step, int64_t n)
{
    enum { PIECE = 256 };
    float x[PIECE];
    for (int64_t at = 0, take; at < n; at += take, dst += take * dst_step, src += take * src_step) {
        take = n - at < PIECE ? n - at : PIECE;
        if (lc_is_float8(from))
            for (int64_t i = 0; i < take; i++) x[i] = lc_f8_to_f32(from, *(const uint8_t *)(src + i * src_step));
        else cpu_move(LC_f32, (char *)x, sizeof *x, from, src, src_step, take);
        if (lc_is_float8(to)) {
            uint8_t code[PIECE];
            lc_f32_to_f8_row(to, x, dst_step == 1 ? (uint8_t *)dst : code, take);
            for (int64_t i = 0; dst_step != 1 && i < take; i++) dst[i * dst_step] = (char)code[i];
        } else cpu_move(to, dst, dst_step, LC_f32, (char *)x, sizeof *x, take);
    }
}

void cpu_move(lc_dtype to, char *dst, int64_t dst_step, lc_dtype from, const char *src, int64_t src_step, int64_t n)
{
    int64_t size = lc_size_of(to);
    bool    packed = dst_step == size && src_step == lc_size_of(from);
    if (to != from && packed && lc_cpu_converts[from][to]) lc_cpu_converts[from][to](dst, src, n);
    else if (to != from && (lc_is_float8(to) || lc_is_float8(from))) move_float8(to, dst, dst_step, from, src, src_step, n);
    else if (to != from) movers[from][to](dst, dst_step, src, src_step, n);
    else if (packed) copy_bytes(dst, src, (size_t)(n * size));
    else if (dst_step == size && src_step == -size && (size == 4 || size == 8)) lc_cpu_moves.reverse[size == 8](dst, src, n);
    else if (src_step == 0 && dst_step == size && n * size >= 1 << 13) fill_bytes(dst, src, size, n * size);
    else copier(size)(dst, dst_step, src, src_step, n);
}

/* ---- copies of tensors ---- */

typedef struct {
    lc_dtype to, from;
    char    *dst, *src; /* contiguous copies */
    lc_iter *it;        /* others */
    int      across;    /* transposed copies: the dimension along which src is contiguous */
    size_t   block;     /* copies of whole rows: their bytes */
} move_job;

static void contiguous_chunk(void *ctx, int64_t begin, int64_t end)
{
    const move_job *j = ctx;
    int64_t         to = lc_size_of(j->to), from = lc_size_of(j->from);
    cpu_move(j->to, j->dst + begin * to, to, j->from, j->src + begin * from, from, end - begin);
}

static int move_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const move_job *j = ctx;
    cpu_move(j->to, ptr[0], stride[0], j->from, ptr[1], stride[1], n);
    return 0;
}
static void rows_chunk(void *ctx, int64_t begin, int64_t end)
{
    const move_job *j = ctx;
    lc_iter_range(j->it, begin, end, move_row, ctx);
}

/* Rows that are contiguous on both sides (cat, slices): each is one wide element, and short ones are moved without a call. */
#define BLOCKS(bytes)                                                                                                          \
    case bytes:                                                                                                                \
        for (int64_t i = 0; i < n; i++) memcpy(ptr[0] + i * stride[0], ptr[1] + i * stride[1], bytes);                         \
        break;
static int move_blocks(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const move_job *j = ctx;
    switch (j->block) {
        BLOCKS(2)
        BLOCKS(4)
        BLOCKS(8)
        BLOCKS(16)
        BLOCKS(32)
        BLOCKS(64)
    default:
        for (int64_t i = 0; i < n; i++) copy_bytes(ptr[0] + i * stride[0], ptr[1] + i * stride[1], j->block);
    }
    return 0;
}
static void blocks_chunk(void *ctx, int64_t begin, int64_t end)
{
    const move_job *j = ctx;
    lc_iter_range(j->it, begin, end, move_blocks, ctx);
}
/* Each element several times in a row (repeat_interleave, a short expanded dimension): block is the number of repeats. */
#define TIMES(bits, type)                                                                                                      \
    case bits:                                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                                      \
            type x = *(const type *)(ptr[1] + i * stride[1]), *to = (type *)(ptr[0] + i * stride[0]);                          \
            for (size_t k = 0; k < j->block; k++) to[k] = x;                                                                   \
        }                                                                                                                      \
        break;
static int move_times(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const move_job *j = ctx;
    switch (8 * lc_size_of(j->to)) {
        TIMES(8, uint8_t)
        TIMES(16, uint16_t)
        TIMES(32, uint32_t)
        TIMES(64, uint64_t)
        TIMES(128, u128)
    }
    return 0;
}
static void times_chunk(void *ctx, int64_t begin, int64_t end)
{
    const move_job *j = ctx;
    lc_iter_range(j->it, begin, end, move_times, ctx);
}
static bool few_times(const lc_iter *it, const move_job *j)
{
    bool repeats = it->ndim > 1 && lc_iter_step(it, 0) == lc_size_of(j->to) && lc_iter_step(it, 1) == 0;
    return j->to == j->from && repeats && lc_iter_row(it) <= 64;
}
static bool whole_rows(const lc_iter *it, const move_job *j)
{
    int64_t size = lc_size_of(j->to);
    return j->to == j->from && it->ndim > 1 && lc_iter_step(it, 0) == size && lc_iter_step(it, 1) == size;
}

/* Widths without a block kernel (transpose.isa.c). */
#define TRANSPOSE(bits, type)                                                                                                  \
    static void transpose_##bits(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows, int64_t cols,   \
                                 UNUSED bool stream)                                                                           \
    {                                                                                                                          \
        for (int64_t r = 0; r < rows; r++)                                                                                     \
            for (int64_t c = 0; c < cols; c++) ((type *)(dst + r * dst_step))[c] = ((const type *)(src + c * src_step))[r];    \
    }
TRANSPOSE(8, uint8_t)
TRANSPOSE(16, uint16_t)
TRANSPOSE(128, u128)
static lc_transpose transposer(int64_t size)
{
    return size == 4   ? lc_cpu_moves.transpose[0]
           : size == 8 ? lc_cpu_moves.transpose[1]
           : size == 1 ? transpose_8
           : size == 2 ? transpose_16
                       : transpose_128;
}

/* Strips of SIDE columns, which are SIDE rows of src read along memory, for every position of the other dimensions. */
enum { SIDE = 16, CACHED = 1 << 22 }; /* larger copies bypass the cache; bytes */
static void transpose_chunk(void *ctx, int64_t begin, int64_t end)
{
    const move_job *j = ctx;
    const lc_iter  *it = j->it;
    int64_t         size = lc_size_of(j->to), cols = lc_iter_row(it), rows = it->shape[j->across];
    int64_t         strips = (cols + SIDE - 1) / SIDE, dst_step = it->stride[0][j->across], src_step = lc_iter_step(it, 1);
    lc_transpose    f = transposer(size);
    for (int64_t at = begin; at < end; at++) {
        int64_t c = at % strips * SIDE, rest = at / strips, m = cols - c < SIDE ? cols - c : SIDE;
        char   *dst = it->ptr[0] + c * size, *src = it->ptr[1] + c * src_step;
        for (int d = it->ndim - 2; d >= 0; d--) {
            if (d == j->across) continue;
            dst += rest % it->shape[d] * it->stride[0][d];
            src += rest % it->shape[d] * it->stride[1][d];
            rest /= it->shape[d];
        }
        f(dst, dst_step, src, src_step, rows, m, it->numel * size > CACHED);
    }
}

static int transposed_dim(const lc_iter *it, const move_job *j) /* -1: not a transposed copy */
{
    int64_t size = lc_size_of(j->to);
    if (j->to != j->from || it->ndim < 2 || lc_iter_step(it, 0) != size || lc_iter_step(it, 1) == size) return -1;
    if (lc_iter_step(it, 1) == 0 || lc_iter_row(it) < 4) return -1;
    for (int d = 0; d < it->ndim - 1; d++)
        if (it->stride[1][d] == size && it->shape[d] >= 4) return d;
    return -1;
}

int cpu_copy(lc_tensor *to, const lc_tensor *from)
{
    lc_iter  it;
    move_job j = { .to = (lc_dtype)to->dtype, .from = (lc_dtype)from->dtype, .dst = to->data, .src = from->data, .it = &it };
    if (to->numel == 0) return 0;
    if (to->is_contiguous && from->is_contiguous && to->numel == from->numel) {
        if (to->numel < CPU_GRAIN) contiguous_chunk(&j, 0, to->numel);
        else cpu_parallel(to->numel, CPU_GRAIN, to->numel, contiguous_chunk, &j);
        return 0;
    }
    lc_iter_start(&it, to->ndim, to->shape);
    lc_iter_add(&it, to);
    lc_iter_add(&it, from);
    lc_iter_prepare(&it, true);
    j.across = transposed_dim(&it, &j);
    if (j.across >= 0) {
        int64_t strips = (lc_iter_row(&it) + SIDE - 1) / SIDE, rows = it.shape[j.across];
        int64_t lines = it.numel / (rows * lc_iter_row(&it)) * strips, grain = CPU_GRAIN / (SIDE * rows) + 1;
        cpu_parallel(lines, grain, it.numel, transpose_chunk, &j);
    } else if (whole_rows(&it, &j)) {
        int64_t row = lc_iter_row(&it), n = it.numel / row;
        j.block = (size_t)(row * lc_size_of(j.to));
        it.ndim--;
        cpu_parallel(n, CPU_GRAIN / row + 1, it.numel, blocks_chunk, &j);
    } else if (few_times(&it, &j)) {
        int64_t row = lc_iter_row(&it);
        j.block = (size_t)row;
        it.ndim--;
        cpu_parallel(it.numel / row, CPU_GRAIN / row + 1, it.numel, times_chunk, &j);
    } else cpu_parallel(it.numel, CPU_GRAIN, it.numel, rows_chunk, &j);
    return 0;
}

int cpu_fill(lc_tensor *to, const lc_tensor *number)
{
    _Alignas(16) char value[16];
    lc_tensor         source = *number; /* the scalar in to's dtype: a broadcast copy does the rest */
    cpu_move((lc_dtype)to->dtype, value, 0, (lc_dtype)number->dtype, number->data, 0, 1);
    if (to->is_contiguous && to->numel < CPU_GRAIN) { /* without the walk, which takes longer than a few elements do */
        if (to->numel) cpu_move((lc_dtype)to->dtype, to->data, lc_size_of(to->dtype), (lc_dtype)to->dtype, value, 0, to->numel);
        return 0;
    }
    source.dtype = to->dtype;
    source.data = value;
    return cpu_copy(to, &source);
}
