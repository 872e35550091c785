/* What the files of the CPU backend share: the kernel tables, and how kernels see memory.
 *
 * An elementwise loop sees contiguous elements, or one element that stands for all (bit k of `scalars`: operand k). A fold sees
 * contiguous elements too. Everything else (strides, other dtypes, halves) passes through tiles that stay in L1: elementwise.c and
 * reduce.c move elements into them. Compiling a kernel per layout instead multiplies size and build time by the number of layouts and
 * measured no faster once the tile is warm.
 *
 * Loops and folds are compiled once per instruction set. Each build exports a list of what it has; cpu.c enters the lists in turn, so
 * that a wider set overrides what it has and inherits the rest. */
#pragma once
#include "../backend.h"

#ifdef __clang__
#define SMALL __attribute__((noinline, minsize))
#else
#define SMALL __attribute__((noinline, optimize("Os"))) /* where vectors would only cost room */
#endif

typedef void (*lc_cpu_loop)(void *out, const void *const *in, unsigned scalars, int64_t n);

/* A reduction keeps a state per output: up to FOLD_COLUMNS of them side by side, in two arrays whose meaning is the op's own (a sum
 * and its compensation, a maximum and its index, a mean and a sum of squares). first: index along the reduction of the first element.
 *   start   n empty states
 *   inner   fold n contiguous elements into state 0
 *   outer   fold `rows` rows of n contiguous elements, row_bytes apart, into states 0 .. n-1
 *   merge   fold the states of `from`, which saw later elements, into `to`
 *   finish  write results: value (of the result dtype) and index (int64), n of each, contiguous; either may be NULL */
enum { FOLD_COLUMNS = 512 };
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
    void (*finish)(const lc_fold_state *s, int64_t n, double parameter, void *value, int64_t *index);
} lc_fold;

/* What one instruction set has; lists end with a NULL function. */
typedef struct {
    uint16_t    op;
    uint8_t     dtype;
    lc_cpu_loop loop;
} lc_loop_entry;
typedef struct {
    uint16_t       op;
    uint8_t        dtype;
    const lc_fold *fold;
} lc_fold_entry;
typedef void (*lc_convert)(void *to, const void *from, int64_t n); /* contiguous */
typedef struct {
    uint8_t    from, to;
    lc_convert convert;
} lc_convert_entry;
/* dst[r][c] = src[c][r]; steps in bytes between rows of dst, between columns c of src. stream: write past the cache. */
typedef void (*lc_transpose)(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t rows, int64_t cols,
                             bool stream);

extern lc_transpose   lc_cpu_transposes[2]; /* of elements of 4 and 8 bytes */
extern lc_cpu_loop    lc_cpu_loops[LC_OP_COUNT][LC_DTYPE_COUNT];
extern const lc_fold *lc_cpu_folds[LC_OP_COUNT][LC_DTYPE_COUNT];
extern lc_convert     lc_cpu_converts[LC_DTYPE_COUNT][LC_DTYPE_COUNT];

/* The type a kernel computes in: halves are widened. */
static inline lc_dtype cpu_working_dtype(lc_dtype dtype) { return dtype == LC_f16 || dtype == LC_bf16 ? LC_f32 : dtype; }

/* Convert n elements; steps in bytes. */
void cpu_move(lc_dtype to, char *dst, int64_t dst_step, lc_dtype from, const char *src, int64_t src_step, int64_t n);

/* Work of this many elements or more is split between threads; a chunk of a split has this many. */
enum { CPU_GRAIN = 1 << 15 };
/* lc_parallel_for over chunks, with the host language's lock released if the work is worth it. cost: elements. */
void cpu_parallel(int64_t n, int64_t grain, int64_t cost, void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

int cpu_elementwise(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in);
int cpu_reduce(lc_op_id op, lc_dtype compute, const lc_reduce_args *args);
int cpu_copy(lc_tensor *to, const lc_tensor *from);
int cpu_fill(lc_tensor *to, const lc_tensor *number);

/* Whole-call kernels (args.h) register themselves at load: LC_CPU_RUN(matmul, cpu_matmul, dtypes), where bit d of dtypes says that
 * dtype d is supported (halves count for themselves). */
typedef int (*lc_cpu_run)(lc_dtype compute, const void *args);
extern lc_cpu_run lc_cpu_runs[LC_OP_COUNT];
extern uint32_t   lc_cpu_run_dtypes[LC_OP_COUNT];
#define LC_CPU_RUN(op, function, dtypes)                                                                                       \
    static __attribute__((constructor)) void enter_##op(void)                                                                  \
    {                                                                                                                          \
        lc_cpu_runs[LC_OP_##op] = function;                                                                                    \
        lc_cpu_run_dtypes[LC_OP_##op] = (dtypes);                                                                              \
    }
