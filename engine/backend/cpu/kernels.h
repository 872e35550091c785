/* How CPU kernels see memory, and the lists of them.
 *
 * An elementwise loop sees contiguous elements, or one element broadcast to all (bit k of `scalars`: operand k). A fold sees
 * contiguous elements too. Everything else (strides, other dtypes, half precision) passes through tiles that stay in L1:
 * elementwise.c and reduce.c move elements into them. Compiling a kernel per layout instead multiplies size and build time
 * by the number of layouts, and measured no faster once the tile is warm.
 *
 * Loops and folds are compiled once per instruction set. Each build exports a list of its kernels; cpu.c enters the lists in
 * order, so that a wider set overrides what it has and inherits the rest. */
#pragma once
#include "../folds.h"
#include "../../core/core.h"

/* For files compiled per instruction set: names end in the set or in a dtype, loops have no dependence between elements. */
#define CAT_(a, b) a##_##b
#define CAT(a, b)  CAT_(a, b)
#ifdef __clang__
#define INDEPENDENT  _Pragma("clang loop vectorize(assume_safety)")
#define IN_REGISTERS _Pragma("clang loop vectorize(assume_safety) unroll(full)")
#else
#define INDEPENDENT  _Pragma("GCC ivdep")
#define IN_REGISTERS _Pragma("GCC ivdep") _Pragma("GCC unroll 8") /* a few lanes: without it, their array stays in memory */
#endif
#define INLINE static inline __attribute__((always_inline, unused))

#ifdef __clang__
#define SMALL __attribute__((noinline, minsize))
#else
#define SMALL __attribute__((noinline, optimize("Os"))) /* for code that vectorising would only enlarge */
#endif

typedef void (*lc_cpu_loop)(void *out, const void *const *in, unsigned scalars, int64_t n);

/* A reduction keeps a state per output: up to FOLD_COLUMNS of them side by side, in two arrays whose meaning depends on the
 * op (a sum and its compensation, a maximum and its index, a mean and a sum of squares). first: index along the reduction of
 * the first element.
 *   start   n empty states
 *   inner   fold n contiguous elements into state 0
 *   outer   fold `rows` rows of n contiguous elements, row_bytes apart, into states 0 .. n-1
 *   merge   fold the states of `from`, which saw later elements, into `to`
 *   finish  write results: value (of the result dtype) and index (int64; the maximum in aminmax), n of each, contiguous;
 *   either may
 *           be NULL
 *   rows    all of that for rows of n contiguous elements, at most FOLD_ROW of them, one value each; strides in bytes. May
 *   be NULL */
enum { FOLD_COLUMNS = 512, FOLD_ROW = 1 << 14 };
typedef struct {
    _Alignas(64) char a[FOLD_COLUMNS * 16];
    _Alignas(64) char b[FOLD_COLUMNS * 16];
    int64_t count; /* elements folded into each state */
} lc_fold_state;
typedef struct {
    void (*start)(lc_fold_state *s, int64_t n);
    void (*inner)(lc_fold_state *s, const void *in, int64_t n, int64_t first);
    void (*outer)(lc_fold_state *s, const void *in, int64_t rows, int64_t row_bytes, int64_t n, int64_t first);
    void (*merge)(lc_fold_state *to, const lc_fold_state *from, int64_t n);
    void (*finish)(const lc_fold_state *s, int64_t n, double parameter, void *value, void *index);
    void (*rows)(const void *in, int64_t in_step, void *value, int64_t value_step, int64_t rows, int64_t n, double parameter);
} lc_fold;

/* The kernels of one instruction set; lists end with a NULL function. Rows of scalar.def and folds have their own numbering
 * here, so that a new op does not recompile every kernel; cpu.c maps numbers to ops. */
enum {
#define ROW(kind, op, types, ...) ROW_##op##_##types,
#include "../scalar.def"
};
enum {
#define X(op) FOLD_##op,
    EACH_FOLD(X)
#undef X
};
typedef struct {
    uint16_t    row;
    uint8_t     dtype;
    lc_cpu_loop loop;
} lc_loop_entry;
typedef struct {
    uint16_t       number;
    uint8_t        dtype;
    const lc_fold *fold;
} lc_fold_entry;
typedef void (*lc_convert)(void *to, const void *from, int64_t n); /* contiguous */
typedef struct {
    uint8_t    from, to;
    lc_convert convert;
} lc_convert_entry;
/* dst[r][c] = src[c][r]; strides in bytes between rows of dst, between columns c of src. stream: bypass the cache. */
typedef void (*lc_transpose)(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows, int64_t cols,
                             bool stream);
/* Fills whole cache lines of dst with copies of line. */
typedef void (*lc_fill_lines)(char *dst, const char *line, int64_t lines);
/* n bytes of any alignment. */
typedef void (*lc_copy_bytes)(char *dst, const char *src, int64_t n);
/* dst[i] = src[-i]. */
typedef void (*lc_reverse)(char *dst, const char *src, int64_t n);
/* to[i] = start + step * (first + way * i), computed in float64; way: 1 or -1, n < 2^31. */
typedef void (*lc_ramp)(void *to, double start, double step, int64_t first, int way, int64_t n);
typedef struct {
    lc_transpose  transpose[2]; /* for elements of 4 and 8 bytes */
    lc_fill_lines fill_lines;
    lc_copy_bytes copy;
    lc_reverse    reverse[2]; /* for elements of 4 and 8 bytes */
    lc_ramp       ramp[2];    /* for float32 and float64 */
} lc_moves;
