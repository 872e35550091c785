/* One matrix product on the calling thread, for kernels that are built on products.
 *
 * The result is treated as row-major: a column-major result is computed transposed (out' = b' a'). There are four methods,
 * chosen by shape and strides alone (the list `methods` below):
 *
 *   dot products  rows of a and columns of b are contiguous, and there are too few of either to pay for transposing b
 *   in place      rows of b are contiguous, and either few rows of a use them, or everything is small, or rows of b are so
 *                 close to each other that reading them repeatedly does not miss the cache: nothing is packed, which reaches
 *                 97 % of the machine's peak
 *   b packed      a is read in place: packing it would cost more than it saves
 *   both packed   blocks of b (DEPTH x COLUMNS) and of a (ROWS x DEPTH) are packed in the order in which the micro-kernel
 *                 reads them, whatever their strides; a block of a stays in L2 while all panels of b pass by. Whole tiles go
 *                 straight into a row-major result, its edges are in-place products on the packed panels; a result with other
 *                 strides is written through a tile.
 *
 * In all methods but dot products, an element is a sum over blocks of DEPTH products, each a chain in the order of k: the
 * same bits in every tile. LUCID_VERBOSE=1 prints the method when a driver asks for its workspace. */
#include "../cpu.h"
#include "gemm.h"
#include <string.h>

enum { ROWS = 168, COLUMNS = 512, DEPTH = LC_GEMM_DEPTH, COPIED = 64 << 10 /* bytes of a vector */, MAX_TILE = 32 * 32 };

ISA_TABLE(const lc_gemm, gemm)
const lc_micro_kernel *cpu_micro_kernel(lc_dtype dtype)
{
    const lc_gemm *found = gemm_of_this_cpu();
    return dtype == LC_f32 ? &found->f32 : &found->f64;
}

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static const char    *at(const void *from, int64_t elements, int64_t size) { return (const char *)from + elements * size; }

void cpu_gemm_finish(lc_dtype dtype, const lc_product *g, int64_t row, int64_t rows, int64_t column, int64_t columns)
{
    const lc_micro_kernel *micro = cpu_micro_kernel(dtype);
    for (int64_t i = row; i < row + rows; i++)
        micro->finish_row(g->epilogue, i, column, columns,
                          (char *)g->out + (i * g->out_row + column * g->out_col) * lc_size_of(dtype), g->out_col);
}

#define STORE_TILE(T)                                                                                                          \
    for (int64_t i = 0; i < rows; i++)                                                                                         \
        for (int64_t j = 0; j < columns; j++) {                                                                                \
            T *to = (T *)out + i * g->out_row + j * g->out_col;                                                                \
            *to = ((const T *)tile)[i * width + j] + (add ? *to : 0);                                                          \
        }
static void store_tile(const lc_product *g, char *out, const void *tile, int64_t size, int64_t rows, int64_t columns,
                       int64_t width, bool add)
{
    if (size == 4) STORE_TILE(float) else STORE_TILE(double)
}

void cpu_gemm_panels(lc_dtype dtype, const lc_product *g, int64_t row, int64_t rows, int64_t column, int64_t columns,
                     int64_t depth, const void *a, const void *b, bool add)
{
    const lc_micro_kernel *micro = cpu_micro_kernel(dtype);
    int64_t                size = lc_size_of(dtype);
    char                  *out = (char *)g->out + (row * g->out_row + column * g->out_col) * size;
    _Alignas(64) char      tile[MAX_TILE * sizeof(double)];
    for (int64_t j = 0; j < columns; j += micro->columns)
        for (int64_t i = 0; i < rows; i += micro->rows) {
            char       *to = out + (i * g->out_row + j * g->out_col) * size;
            const char *left = at(a, i * depth, size), *right = at(b, j * depth, size);
            int64_t     m = least(rows - i, micro->rows), n = least(columns - j, micro->columns);
            if (g->out_col == 1 && m == micro->rows && n == micro->columns)
                micro->run_into(depth, left, right, to, g->out_row, add);
            else if (g->out_col == 1 && m > 1)
                micro->in_place(&(lc_product){ .m = m,
                                               .n = n,
                                               .k = depth,
                                               .a = left,
                                               .b = right,
                                               .out = to,
                                               .a_row = 1,
                                               .a_col = micro->rows,
                                               .b_row = micro->columns,
                                               .b_col = 1,
                                               .out_row = g->out_row,
                                               .out_col = 1,
                                               .accumulate = add },
                                1, 0, 0, 0);
            else {
                micro->run(depth, left, right, tile);
                store_tile(g, to, tile, size, m, n, micro->columns, add);
            }
        }
}

/* Bytes of the panels of n rows or columns, at most `most` at a time. */
static int64_t panel_bytes(lc_dtype dtype, int64_t n, int64_t most, int64_t lanes, int64_t k)
{
    int64_t bytes = (least(n, most) + lanes - 1) / lanes * lanes * least(k, DEPTH) * lc_size_of(dtype);
    return (bytes + 63) / 64 * 64;
}
static void run_panels(lc_dtype dtype, const lc_product *g, bool both, char *scratch)
{
    const lc_micro_kernel *micro = cpu_micro_kernel(dtype);
    int64_t                size = lc_size_of(dtype);
    char *a_panels = scratch, *b_panels = a_panels + (both ? panel_bytes(dtype, g->m, ROWS, micro->rows, g->k) : 0);
    for (int64_t column = 0, columns; column < g->n; column += columns) {
        columns = least(g->n - column, COLUMNS);
        for (int64_t depth = 0, k; depth < g->k; depth += k) {
            k = least(g->k - depth, DEPTH);
            bool add = g->accumulate || depth;
            micro->pack(b_panels, at(g->b, depth * g->b_row + column * g->b_col, size), columns, g->b_col, k, g->b_row,
                        both ? micro->columns : micro->strip);
            for (int64_t row = 0, rows; row < g->m; row += rows) {
                rows = least(g->m - row, ROWS);
                if (both) {
                    micro->pack(a_panels, at(g->a, row * g->a_row + depth * g->a_col, size), rows, g->a_row, k, g->a_col,
                                micro->rows);
                    cpu_gemm_panels(dtype, g, row, rows, column, columns, k, a_panels, b_panels, add);
                }
                for (int64_t j = 0; !both && j < columns; j += micro->strip) {
                    lc_product part = *g;
                    part.m = rows, part.n = least(columns - j, micro->strip), part.k = k, part.accumulate = add;
                    part.a = at(g->a, row * g->a_row + depth * g->a_col, size), part.b = b_panels + j * k * size;
                    part.out = (char *)g->out + (row * g->out_row + column + j) * size;
                    part.b_row = micro->strip, part.b_col = 1;
                    micro->in_place(&part, 1, 0, 0, 0);
                }
                if (g->epilogue && depth + k == g->k) cpu_gemm_finish(dtype, g, row, rows, column, columns);
            }
        }
    }
}
static void run_in_place(lc_dtype dtype, const lc_product *g, int64_t count, const int64_t *step)
{
    int64_t size = lc_size_of(dtype);
    for (int64_t depth = 0; depth < g->k; depth += DEPTH) {
        lc_product part = *g;
        part.k = least(g->k - depth, DEPTH), part.accumulate = g->accumulate || depth;
        part.a = at(g->a, depth * g->a_col, size), part.b = at(g->b, depth * g->b_row, size);
        cpu_micro_kernel(dtype)->in_place(&part, count, step[0], step[1], step[2]);
    }
    if (g->epilogue) cpu_gemm_finish(dtype, g, 0, g->m, 0, g->n);
}
static void run_dots(lc_dtype dtype, const lc_product *g, void *scratch) /* a vector that is not contiguous is copied */
{
    int64_t size = lc_size_of(dtype), all = g->b_row == 1 ? g->k : COPIED / size;
    for (int64_t depth = 0; depth < g->k; depth += all) {
        lc_product part = *g;
        part.k = least(g->k - depth, all), part.accumulate = g->accumulate || depth;
        part.a = at(g->a, depth, size), part.b = at(g->b, depth * g->b_row, size);
        if (g->b_row != 1) {
            cpu_move(dtype, scratch, size, dtype, part.b, g->b_row * size, part.k);
            part.b = scratch, part.b_row = 1;
        }
        cpu_micro_kernel(dtype)->by_dots(&part);
    }
}

static void fill_zero(lc_dtype dtype, const lc_product *g)
{
    int64_t size = lc_size_of(dtype);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) memset((char *)g->out + (i * g->out_row + j * g->out_col) * size, 0, (size_t)size);
}
lc_product cpu_gemm_transposed(const lc_product *g, lc_epilogue *epilogue_out)
{
    lc_product         t = { .m = g->n,
                             .n = g->m,
                             .k = g->k,
                             .a = g->b,
                             .b = g->a,
                             .out = g->out,
                             .a_row = g->b_col,
                             .a_col = g->b_row,
                             .b_row = g->a_col,
                             .b_col = g->a_row,
                             .out_row = g->out_col,
                             .out_col = g->out_row,
                             .accumulate = g->accumulate };
    const lc_epilogue *e = g->epilogue;
    if (!e) return t;
    *epilogue_out = *e;
    epilogue_out->addend_row = e->addend_col, epilogue_out->addend_col = e->addend_row;
    epilogue_out->residual_row = e->residual_col, epilogue_out->residual_col = e->residual_row;
    return t.epilogue = epilogue_out, t;
}
/* ---- methods ---- */
enum { MODEST = 1 << 20, FEW = 16, REUSED = 1 << 18 };
typedef struct {
    const char *name;
    bool (*suits)(const lc_product *g); /* NULL: always */
    int64_t (*workspace)(lc_dtype dtype, const lc_product *g);
    void (*run)(lc_dtype dtype, const lc_product *g, void *scratch);
    bool finishes;                                                                       /* applies the epilogue */
    void (*run_batch)(lc_dtype, const lc_product *, int64_t count, const int64_t *step); /* NULL: one by one */
} gemm_method;

static bool suits_dots(const lc_product *g)
{
    int64_t fewer = least(g->m, g->n);
    return g->a_col == 1 && (g->n == 1 || (g->b_row == 1 && (fewer < 4 || (fewer <= FEW && g->k >= 128))));
}
static bool suits_in_place(const lc_product *g)
{
    bool near = g->m * (g->b_row < 0 ? -g->b_row : g->b_row) <= REUSED;
    return g->out_col == 1 && g->b_col == 1 && (g->m <= FEW || near || g->m * g->n * g->k <= MODEST);
}
static bool suits_b_packed(const lc_product *g) { return g->out_col == 1 && (g->n <= 96 || g->m <= 256 || g->a_col == 1); }

static int64_t dots_workspace(lc_dtype dtype, const lc_product *g)
{
    return g->b_row == 1 ? 0 : least(g->k * lc_size_of(dtype), COPIED);
}
static int64_t no_workspace(lc_dtype dtype, const lc_product *g) { return (void)dtype, (void)g, 0; }
static int64_t b_packed_workspace(lc_dtype dtype, const lc_product *g)
{
    return panel_bytes(dtype, g->n, COLUMNS, cpu_micro_kernel(dtype)->strip, g->k);
}
static int64_t both_packed_workspace(lc_dtype dtype, const lc_product *g)
{
    const lc_micro_kernel *micro = cpu_micro_kernel(dtype);
    return panel_bytes(dtype, g->n, COLUMNS, micro->columns, g->k) + panel_bytes(dtype, g->m, ROWS, micro->rows, g->k);
}
static void run_one_in_place(lc_dtype dtype, const lc_product *g, void *scratch)
{
    (void)scratch;
    run_in_place(dtype, g, 1, (int64_t[3]){ 0 });
}
static void run_b_packed(lc_dtype dtype, const lc_product *g, void *scratch) { run_panels(dtype, g, false, scratch); }
static void run_both_packed(lc_dtype dtype, const lc_product *g, void *scratch) { run_panels(dtype, g, true, scratch); }

static const gemm_method methods[] = {
    { "dot products", suits_dots, dots_workspace, run_dots, false, NULL },
    { "in place", suits_in_place, no_workspace, run_one_in_place, true, run_in_place },
    { "b packed", suits_b_packed, b_packed_workspace, run_b_packed, true, NULL },
    { "both packed", NULL, both_packed_workspace, run_both_packed, true, NULL },
};
static inline const gemm_method *method_of(const lc_product *g)
{
    const gemm_method *method = methods;
    while (method->suits && !method->suits(g)) method++;
    return method;
}
/* Treats a column as a row, unless dot products are better; there, the longer side becomes the rows. */
static bool suits_transposed(const lc_product *g)
{
    bool column = g->n == 1 && g->a_col != 1, row = g->m < g->n && g->b_row == 1 && suits_dots(g);
    row |= g->m == 1 && g->b_row == 1 && g->b_col != 1;
    return column || row || (g->out_col != 1 && g->out_row == 1 && g->n > 1 && !suits_dots(g));
}
int64_t cpu_gemm_scratch(lc_dtype dtype, const lc_product *product)
{
    lc_product g = *product;
    if (g.m < 1 || g.n < 1 || g.k < 1) return 0;
    g.epilogue = NULL;
    if (suits_transposed(&g)) g = cpu_gemm_transposed(&g, NULL);
    const gemm_method *method = method_of(&g);
    lc_verbose_log("    a product of %lld x %lld x %lld: %s", (long long)g.m, (long long)g.n, (long long)g.k, method->name);
    return method->workspace(dtype, &g);
}
void cpu_gemm_batch(lc_dtype dtype, const lc_product *product, int64_t count, int64_t a_step, int64_t b_step, int64_t out_step,
                    void *scratch)
{
    lc_product  g = *product;
    lc_epilogue epilogue_out;
    int64_t     size = lc_size_of(dtype), step[] = { a_step, b_step, out_step };
    if (g.m < 1 || g.n < 1) return;
    if (suits_transposed(product)) {
        g = cpu_gemm_transposed(product, &epilogue_out);
        step[0] = b_step, step[1] = a_step;
    }
    const gemm_method *method = method_of(&g);
    if (method->run_batch && count > 1 && g.k > 0) return method->run_batch(dtype, &g, count, step);
    for (; count-- > 0; g.a = at(g.a, step[0], size), g.b = at(g.b, step[1], size), g.out = (char *)g.out + step[2] * size)
        if (g.k > 0) {
            method->run(dtype, &g, scratch);
            if (!method->finishes && g.epilogue) cpu_gemm_finish(dtype, product, 0, product->m, 0, product->n);
        } else {
            if (!g.accumulate) fill_zero(dtype, &g);
            if (g.epilogue) cpu_gemm_finish(dtype, &g, 0, g.m, 0, g.n);
        }
}
void cpu_gemm(lc_dtype dtype, const lc_product *product, void *scratch) { cpu_gemm_batch(dtype, product, 1, 0, 0, 0, scratch); }
