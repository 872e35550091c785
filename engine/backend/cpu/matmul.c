/* Matrix products.
 *
 * Large float products are cut into tasks of BLOCK_ROWS x BLOCK_COLUMNS of the result. A task packs the panels of a and b it needs, BLOCK_DEPTH
 * deep, in the order the micro-kernel reads them (any strides go in, transposes included), and adds tile after tile into the result. Packing
 * anew per task costs a few percent at these sizes and saves every agreement between threads. Small, thin and integer products are
 * plain loops. Which of the two it is, and every cut, depends on shapes only. */
#include "cpu.h"
#include "gemm.h"
#include "../args.h"
#include <string.h>

enum { COLUMN_TILE = 256, BLOCK_ROWS = 168, BLOCK_COLUMNS = 256 };

static inline _Complex float mul_c64(_Complex float a, _Complex float b) /* without C's repair of infinities, as everybody */
{
    return __builtin_complex(__real__ a * __real__ b - __imag__ a * __imag__ b,
                             __real__ a * __imag__ b + __imag__ a * __real__ b);
}
static inline _Complex double mul_c128(_Complex double a, _Complex double b)
{
    return __builtin_complex(__real__ a * __real__ b - __imag__ a * __imag__ b,
                             __real__ a * __imag__ b + __imag__ a * __real__ b);
}
#define WRAPPING(a, b)   ((uint32_t)(a) * (uint32_t)(b))
#define WRAPPING64(a, b) ((uint64_t)(a) * (uint64_t)(b))
#define PLAIN(a, b)      ((a) * (b))

#define T       uint8_t
#define SUM     uint32_t
#define NAME(f) f##_u8
#define MUL     WRAPPING
#include "matmul.inc.c"
#define T       int8_t
#define SUM     uint32_t
#define NAME(f) f##_i8
#define MUL     WRAPPING
#include "matmul.inc.c"
#define T       int16_t
#define SUM     uint32_t
#define NAME(f) f##_i16
#define MUL     WRAPPING
#include "matmul.inc.c"
#define T       int32_t
#define SUM     uint32_t
#define NAME(f) f##_i32
#define MUL     WRAPPING
#include "matmul.inc.c"
#define T       int64_t
#define SUM     uint64_t
#define NAME(f) f##_i64
#define MUL     WRAPPING64
#include "matmul.inc.c"
#define T       float
#define SUM     float
#define NAME(f) f##_f32
#define MUL     PLAIN
#include "matmul.inc.c"
#define T       double
#define SUM     double
#define NAME(f) f##_f64
#define MUL     PLAIN
#include "matmul.inc.c"
#define T       _Complex float
#define SUM     _Complex float
#define NAME(f) f##_c64
#define MUL     mul_c64
#include "matmul.inc.c"
#define T       _Complex double
#define SUM     _Complex double
#define NAME(f) f##_c128
#define MUL     mul_c128
#include "matmul.inc.c"

typedef void (*direct_fn)(const lc_matmul_args *, int64_t batch, int64_t begin, int64_t end);
static const direct_fn directs[LC_DTYPE_COUNT] = {
#define DIRECT(op, dtype) [LC_##dtype] = direct_##dtype,
    LC_EACH_arith(DIRECT, )
#undef DIRECT
};

typedef struct {
    const lc_matmul_args  *g;
    direct_fn              direct;
    const lc_micro_kernel *micro;
    int64_t                row_blocks, column_blocks, size; /* size of an element */
    atomic_int             failed;
} product;

static void run_block(const product *p, int64_t block, void *scratch)
{
    const lc_matmul_args *g = p->g;
    int64_t               batch = block / (p->row_blocks * p->column_blocks), size = p->size;
    int64_t    row = block / p->column_blocks % p->row_blocks * BLOCK_ROWS, column = block % p->column_blocks * BLOCK_COLUMNS;
    lc_product part = { .m = g->m - row < BLOCK_ROWS ? g->m - row : BLOCK_ROWS,
                        .n = g->n - column < BLOCK_COLUMNS ? g->n - column : BLOCK_COLUMNS,
                        .k = g->k,
                        .a = g->a->data + (batch * g->a_batch + row * g->a_row) * size,
                        .b = g->b->data + (batch * g->b_batch + column * g->b_col) * size,
                        .out = g->out->data + (batch * g->out_batch + row * g->out_row + column * g->out_col) * size,
                        .a_row = g->a_row,
                        .a_col = g->a_col,
                        .b_row = g->b_row,
                        .b_col = g->b_col,
                        .out_row = g->out_row,
                        .out_col = g->out_col };
    cpu_gemm((lc_dtype)g->out->dtype, &part, scratch);
}
static void run_blocks(void *ctx, int64_t begin, int64_t end)
{
    product *p = ctx;
    size_t   bytes = (size_t)cpu_gemm_scratch((lc_dtype)p->g->out->dtype);
    char    *scratch = lc_alloc(bytes);
    if (!scratch) p->failed = 1;
    for (int64_t block = begin; scratch && block < end; block++) run_block(p, block, scratch);
    if (scratch) lc_free(scratch, bytes);
}

/* One column, with rows and column contiguous: the micro-kernels' dot. */
static void by_dots(const product *p, const lc_matmul_args *g, int64_t batch, int64_t begin, int64_t end)
{
    char *a = g->a->data + batch * g->a_batch * p->size, *out = g->out->data + batch * g->out_batch * p->size;
    char *b = g->b->data + batch * g->b_batch * p->size;
    for (int64_t i = begin; i < end; i++) p->micro->dot(g->k, a + i * g->a_row * p->size, b, out + i * g->out_row * p->size);
}
static void multiply_rows(const product *p, const lc_matmul_args *g, int64_t batch, int64_t begin, int64_t end)
{
    if (p->micro && g->n == 1 && g->a_col == 1 && g->b_row == 1) by_dots(p, g, batch, begin, end);
    else p->direct(g, batch, begin, end);
}
static void direct_rows(void *ctx, int64_t begin, int64_t end) /* of all batches, one after the other */
{
    const product *p = ctx;
    for (int64_t m = p->g->m, n; begin < end; begin += n) {
        int64_t first = begin % m;
        n = m - first < end - begin ? m - first : end - begin;
        multiply_rows(p, p->g, begin / m, first, first + n);
    }
}
static void run_direct(product *p, int64_t cost)
{
    const lc_matmul_args *g = p->g;
    cpu_parallel(g->batch * g->m, CPU_GRAIN / (g->n * (g->k ? g->k : 1)) + 1, cost, direct_rows, p);
}

/* The product of two long vectors: of pieces, as a batch, and then of the pieces' sums with ones. The cut depends on the length alone. */
static int long_dot(const lc_matmul_args *g, const product *like)
{
    int64_t    whole = g->k / CPU_GRAIN, pieces = whole + (g->k % CPU_GRAIN != 0), size = like->size;
    lc_tensor *sums = lc_tensor_new((lc_dtype)g->out->dtype, g->out->device, 1, &pieces), one = *g->a, rest_a, rest_b, rest_out;
    lc_matmul_args part = *g, rest = *g, all = *g;
    product        p = *like;
    if (!sums) return -1;
    part.out = sums, part.batch = whole, part.k = CPU_GRAIN, part.out_batch = 1;
    part.a_batch = CPU_GRAIN * g->a_col, part.b_batch = CPU_GRAIN * g->b_row;
    p.g = &part;
    run_direct(&p, g->k);
    if (pieces > whole) {
        rest_a = *g->a, rest_b = *g->b, rest_out = *sums;
        rest_a.data += whole * part.a_batch * size, rest_b.data += whole * part.b_batch * size, rest_out.data += whole * size;
        rest.a = &rest_a, rest.b = &rest_b, rest.out = &rest_out, rest.k = g->k - whole * CPU_GRAIN;
        multiply_rows(like, &rest, 0, 0, 1);
    }
    _Alignas(16) char unit[16];
    cpu_move((lc_dtype)g->out->dtype, unit, size, LC_b8, (const char *)&(uint8_t){ 1 }, 1, 1);
    one.data = unit;
    all.a = sums, all.a_col = 1, all.b = &one, all.b_row = 0, all.k = pieces;
    like->direct(&all, 0, 0, 1);
    return lc_release(sums), 0;
}

static int cpu_matmul(lc_dtype dtype, const void *args)
{
    const lc_matmul_args *g = args;
    int64_t               cost = g->batch * g->m * g->n * (g->k ? g->k : 1);
    bool                  floating = dtype == LC_f32 || dtype == LC_f64;
    if (!cost) return 0;
    product p = { .g = g, .direct = directs[dtype], .size = lc_size_of(dtype) };
    if (floating) p.micro = cpu_micro_kernel(dtype);
    if (!floating || g->m < 4 || g->n < 8 || g->k < 4 || g->m * g->n * g->k < 4096) {
        if (g->batch * g->m * g->n == 1 && g->k >= 2 * CPU_GRAIN) return long_dot(g, &p);
        run_direct(&p, cost);
        return 0;
    }
    p.row_blocks = (g->m + BLOCK_ROWS - 1) / BLOCK_ROWS, p.column_blocks = (g->n + BLOCK_COLUMNS - 1) / BLOCK_COLUMNS;
    int64_t blocks = g->batch * p.row_blocks * p.column_blocks, each = cost / blocks,
            grain = each >= 1 << 18 ? 1 : (1 << 18) / each;
    cpu_parallel(blocks, grain, cost, run_blocks, &p);
    return p.failed ? lc_fail_int(LC_OutOfMemory, "mm: no memory for the packed blocks") : 0;
}
#define DTYPE_BIT(op, dtype) | 1u << LC_##dtype
LC_CPU_RUN(mm, cpu_matmul, 0 LC_EACH_arith(DTYPE_BIT, ))
