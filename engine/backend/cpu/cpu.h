/* What the files of the CPU backend share: the tables by op id that the drivers read, and the drivers. The kernels
 * themselves: kernels.h. */
#pragma once
#include "../args.h"
#include "../backend.h"
#include "kernels.h"

extern lc_moves       lc_cpu_moves;
extern lc_cpu_loop    lc_cpu_loops[LC_OP_COUNT][LC_DTYPE_COUNT];
extern const lc_fold *lc_cpu_folds[LC_OP_COUNT][LC_DTYPE_COUNT];
extern lc_convert     lc_cpu_converts[LC_DTYPE_COUNT][LC_DTYPE_COUNT];

static inline lc_dtype cpu_working_dtype(lc_dtype dtype) { return lc_working_dtype(dtype); }

/* ISA_TABLE(const lc_gemm, gemm): a file compiled per instruction set defines lc_cpu_gemm_<set>, CAT(lc_cpu_gemm, LC_ISA);
 * gemm_of_this_cpu() returns the table for this CPU, or the base table if its set has none. */
#define WEAK __attribute__((weak))
#define ISA_TABLE(type, stem)                                                                                                  \
    extern type lc_cpu_##stem##_base, lc_cpu_##stem##_avx2 WEAK, lc_cpu_##stem##_avx512 WEAK, lc_cpu_##stem##_neon WEAK;       \
    static inline type *stem##_of_this_cpu(void)                                                                               \
    {                                                                                                                          \
        type *const tables[] = { [LC_ISA_base] = &lc_cpu_##stem##_base,                                                        \
                                 [LC_ISA_avx2] = &lc_cpu_##stem##_avx2,                                                        \
                                 [LC_ISA_avx512] = &lc_cpu_##stem##_avx512,                                                    \
                                 [LC_ISA_neon] = &lc_cpu_##stem##_neon };                                                      \
        type *const table = tables[lc_cpu_isa()];                                                                              \
        return table ? table : &lc_cpu_##stem##_base;                                                                          \
    }

/* Converts n elements; strides in bytes. */
void cpu_move(lc_dtype to, char *dst, int64_t dst_step, lc_dtype from, const char *src, int64_t src_step, int64_t n);

/* Scratch memory of a kernel for the duration of a call. memory_stats counts it as workspace. */
static inline void *cpu_scratch(size_t bytes)
{
    void *p = lc_alloc(bytes);
    if (p) lc_memory_count(LC_CPU, (int64_t)bytes);
    return p;
}
static inline void cpu_scratch_free(void *p, size_t bytes)
{
    if (p) lc_memory_count(LC_CPU, -(int64_t)bytes);
    lc_free(p, bytes);
}

/* A contiguous tensor as (outer, n, inner), n along dim. */
static inline void cpu_split_at(const lc_tensor *t, int dim, int64_t *outer, int64_t *n, int64_t *inner)
{
    *outer = *n = *inner = 1;
    for (int d = 0; d < t->ndim; d++) *(d < dim ? outer : d == dim ? n : inner) *= t->shape[d];
}

/* Work of at least this many elements is split between threads; a chunk has this many. */
enum { CPU_GRAIN = 1 << 15 };
/* lc_parallel_for over chunks, with the host language's lock released if the work is worth it. cost: elements. */
void cpu_parallel(int64_t n, int64_t grain, int64_t cost, void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

int cpu_elementwise(lc_op_id op, lc_dtype compute, lc_tensor *out, lc_tensor *const *in, int n_in);
int cpu_reduce(lc_op_id op, lc_dtype compute, const lc_reduce_args *args);
/* What fused programs take from the drivers: the loop of a row, and folds of rows. False: only the driver itself can run this
 * call. Halves: `half` asks for the loop that reads and writes them as they lie, else want is float32. */
typedef struct {
    lc_cpu_loop loop;
    lc_dtype    want[6], scalar; /* of the result and the operands; of operands that are one element (selects: of the others) */
    unsigned    rough;           /* operands that are rounded to `compute` first if they have another dtype */
} cpu_row;
typedef struct {
    const lc_fold *fold;
    lc_dtype       work, result; /* what the fold reads and what it finds */
    bool           plain;        /* of tensors of these dtypes: cpu_fold_rows; else element by element of the result */
} cpu_rows;
bool cpu_row_loop(lc_op_id op, lc_dtype compute, int n_in, bool half, cpu_row *row);
bool cpu_row_fold(lc_op_id op, lc_dtype compute, const lc_reduce_args *args);
bool cpu_find_fold(lc_op_id op, lc_dtype compute, lc_dtype from, lc_dtype to, cpu_rows *rows);
void cpu_fold_rows(const lc_fold *fold, const char *in, int64_t in_step, char *value, int64_t value_step, int64_t rows,
                   int64_t n, double parameter);
extern const struct lc_fuser lc_cpu_fuser;
/* The epilogue of a kernel (lc_finish), ready to run on pieces of its result. */
typedef struct cpu_epilogue cpu_epilogue;
struct cpu_epilogue {
    int         n;
    int64_t     size;
    const char *out;
    struct {
        lc_cpu_loop loop;
        int         n_in;
        unsigned    scalars, here; /* operands that are one number; that are the result itself */
        const char *in[4];
    } step[4];
    _Alignas(16) char number[4][4][16];
};
bool cpu_takes_epilogue(lc_op_id kernel, lc_op_id row, lc_dtype dtype, int n_in);
void cpu_epilogue_start(cpu_epilogue *e, const lc_row_epilogue *steps, lc_tensor *const *in, const lc_tensor *out);
void cpu_epilogue_run(const cpu_epilogue *e, char *at, int64_t n);     /* n elements of the result, which are ready */
void cpu_epilogue_run_all(const cpu_epilogue *e, char *at, int64_t n); /* the same, on all threads */
static inline void cpu_finish(const cpu_epilogue *e, char *at, int64_t n)
{
    if (e) cpu_epilogue_run(e, at, n);
}
int cpu_copy(lc_tensor *to, const lc_tensor *from);
int cpu_fill(lc_tensor *to, const lc_tensor *number);

/* Whole-call kernels (args.h) register themselves at load: LC_CPU_RUN(matmul, cpu_matmul, dtypes), where bit d of dtypes
 * means that dtype d is supported (float16 and bfloat16 have bits of their own). */
typedef int (*lc_cpu_run)(lc_dtype compute, const void *args);
extern lc_cpu_run lc_cpu_runs[LC_OP_COUNT];
extern uint32_t   lc_cpu_run_dtypes[LC_OP_COUNT];
extern bool       lc_cpu_finishes[LC_OP_COUNT]; /* kernels that run an epilogue, in float32 and float64: LC_CPU_FINISHES(op) */
#define LC_CPU_FINISHES(op)                                                                                                    \
    static __attribute__((constructor)) void finishes_##op(void) { lc_cpu_finishes[LC_OP_##op] = true; }
#define LC_CPU_RUN(op, function, dtypes)                                                                                       \
    static __attribute__((constructor)) void enter_##op(void)                                                                  \
    {                                                                                                                          \
        lc_cpu_runs[LC_OP_##op] = function;                                                                                    \
        lc_cpu_run_dtypes[LC_OP_##op] = (dtypes);                                                                              \
    }
