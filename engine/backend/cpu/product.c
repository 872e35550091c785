/* One matrix product on the calling thread, for kernels that are made of products.
 *
 * Blocks of b (DEPTH x COLUMNS) and of a (ROWS x DEPTH) are packed in the order in which the micro-kernel reads them, whatever their
 * strides; a block of a stays in L2 while all panels of b pass by. Whole tiles go straight into a row-major result; a result that is
 * row-major only when seen transposed is computed transposed (out' = b' a'), and any other through a tile. The order in which the
 * products of one element are summed depends on k alone: callers may cut rows and columns as they like and get the same bits. */
#include "cpu.h"
#include "gemm.h"
#include <string.h>

enum { ROWS = 168, COLUMNS = 512, DEPTH = 256, MARGIN = 64, MAX_TILE = 32 * 32 };

extern const lc_gemm lc_cpu_gemm_base, lc_cpu_gemm_avx2 __attribute__((weak)), lc_cpu_gemm_avx512 __attribute__((weak)),
    lc_cpu_gemm_neon __attribute__((weak));
const lc_micro_kernel *cpu_micro_kernel(lc_dtype dtype)
{
    const lc_gemm *const tables[] = { [LC_ISA_base] = &lc_cpu_gemm_base,
                                      [LC_ISA_avx2] = &lc_cpu_gemm_avx2,
                                      [LC_ISA_avx512] = &lc_cpu_gemm_avx512,
                                      [LC_ISA_neon] = &lc_cpu_gemm_neon };
    const lc_gemm       *found = tables[lc_cpu_isa()] ? tables[lc_cpu_isa()] : &lc_cpu_gemm_base;
    return dtype == LC_f32 ? &found->f32 : &found->f64;
}

/* ---- epilogue ---- */
#define EPILOGUE_ROW(T, sfx)                                                                                                   \
    static void epilogue_row_##sfx(const lc_epilogue *e, int64_t row, int64_t column, int64_t n, T *out, int64_t step)         \
    {                                                                                                                          \
        T        scale = (T)e->scale, addend_scale = (T)e->addend_scale;                                                       \
        const T *addend = e->addend ? (const T *)e->addend + row * e->addend_row + column * e->addend_col : NULL;              \
        const T *residual = e->residual ? (const T *)e->residual + row * e->residual_row + column * e->residual_col : NULL;    \
        if (addend)                                                                                                            \
            for (int64_t j = 0; j < n; j++) out[j * step] = scale * out[j * step] + addend_scale * addend[j * e->addend_col];  \
        else if (scale != 1)                                                                                                   \
            for (int64_t j = 0; j < n; j++) out[j * step] *= scale;                                                            \
        if (e->activation && step == 1) e->activation(out, (const void *[]){ out }, 0, n);                                     \
        else if (e->activation)                                                                                                \
            for (int64_t j = 0; j < n; j++) e->activation(out + j * step, (const void *[]){ out + j * step }, 0, 1);           \
        if (residual)                                                                                                          \
            for (int64_t j = 0; j < n; j++) out[j * step] += residual[j * e->residual_col];                                    \
    }
EPILOGUE_ROW(float, f32)
EPILOGUE_ROW(double, f64)
void cpu_epilogue_row(lc_dtype dtype, const lc_epilogue *e, int64_t row, int64_t column, int64_t n, void *out, int64_t out_col)
{
    if (dtype == LC_f32) epilogue_row_f32(e, row, column, n, out, out_col);
    else epilogue_row_f64(e, row, column, n, out, out_col);
}

/* ---- blocks ---- */
#define STORE_TILE(T)                                                                                                          \
    for (int64_t i = 0; i < rows; i++)                                                                                         \
        for (int64_t j = 0; j < columns; j++) {                                                                                \
            T *at = (T *)out + i * g->out_row + j * g->out_col;                                                                \
            *at = ((const T *)tile)[i * width + j] + (add ? *at : 0);                                                          \
        }
static void store_tile(const lc_product *g, char *out, const void *tile, int64_t size, int64_t rows, int64_t columns,
                       int64_t width, bool add)
{
    if (size == 4) STORE_TILE(float) else STORE_TILE(double)
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void run_panels(const lc_micro_kernel *micro, const lc_product *g, int64_t size, const char *a, const char *b, char *out,
                       int64_t rows, int64_t columns, int64_t depth, bool add)
{
    _Alignas(64) char tile[MAX_TILE * sizeof(double)];
    for (int64_t j = 0; j < columns; j += micro->columns)
        for (int64_t i = 0; i < rows; i += micro->rows) {
            char       *at = out + (i * g->out_row + j * g->out_col) * size;
            const char *left = a + i * depth * size, *right = b + j * depth * size;
            if (g->out_col == 1 && rows - i >= micro->rows && columns - j >= micro->columns) {
                micro->run_into(depth, left, right, at, g->out_row, add);
                continue;
            }
            micro->run(depth, left, right, tile);
            store_tile(g, at, tile, size, least(rows - i, micro->rows), least(columns - j, micro->columns), micro->columns,
                       add);
        }
}

int64_t cpu_gemm_scratch(lc_dtype dtype) { return (ROWS + COLUMNS + 2 * MARGIN) * DEPTH * lc_size_of(dtype); }

static void finish(lc_dtype dtype, const lc_product *g, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    for (int64_t i = row; i < row + rows; i++)
        cpu_epilogue_row(dtype, g->epilogue, i, column, columns,
                         (char *)g->out + (i * g->out_row + column * g->out_col) * lc_size_of(dtype), g->out_col);
}
static void fill_zero(lc_dtype dtype, const lc_product *g)
{
    int64_t size = lc_size_of(dtype);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) memset((char *)g->out + (i * g->out_row + j * g->out_col) * size, 0, (size_t)size);
}
void cpu_gemm(lc_dtype dtype, const lc_product *product, void *scratch)
{
    const lc_micro_kernel *micro = cpu_micro_kernel(dtype);
    lc_product             g = *product;
    lc_epilogue            turned;
    int64_t                size = lc_size_of(dtype);
    if (g.out_col != 1 && g.out_row == 1) { /* transposed */
        const lc_product *t = product;
        g.m = t->n, g.n = t->m, g.a = t->b, g.b = t->a, g.a_row = t->b_col, g.a_col = t->b_row, g.b_row = t->a_col;
        g.b_col = t->a_row, g.out_row = t->out_col, g.out_col = t->out_row;
        if (t->epilogue) {
            turned = *t->epilogue;
            turned.addend_row = t->epilogue->addend_col, turned.addend_col = t->epilogue->addend_row;
            turned.residual_row = t->epilogue->residual_col, turned.residual_col = t->epilogue->residual_row;
            g.epilogue = &turned;
        }
    }
    if (!g.k && !g.accumulate) fill_zero(dtype, &g);
    if (!g.k && g.epilogue) finish(dtype, &g, 0, g.m, 0, g.n);
    char *a_panels = scratch, *b_panels = a_panels + (ROWS + MARGIN) * DEPTH * size;
    for (int64_t column = 0, columns; column < g.n; column += columns) {
        columns = least(g.n - column, COLUMNS);
        for (int64_t depth = 0, k; depth < g.k; depth += k) {
            k = least(g.k - depth, DEPTH);
            micro->pack(b_panels, (const char *)g.b + (depth * g.b_row + column * g.b_col) * size, columns, g.b_col, k, g.b_row,
                        micro->columns);
            for (int64_t row = 0, rows; row < g.m; row += rows) {
                rows = least(g.m - row, ROWS);
                micro->pack(a_panels, (const char *)g.a + (row * g.a_row + depth * g.a_col) * size, rows, g.a_row, k, g.a_col,
                            micro->rows);
                run_panels(micro, &g, size, a_panels, b_panels, (char *)g.out + (row * g.out_row + column * g.out_col) * size,
                           rows, columns, k, g.accumulate || depth > 0);
                if (g.epilogue && depth + k == g.k) finish(dtype, &g, row, rows, column, columns);
            }
        }
    }
}
