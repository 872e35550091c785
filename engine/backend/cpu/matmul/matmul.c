/* The matmul op: how matrix products are shared between threads.
 *
 * All threads compute a large product together. They pack BLOCK_COLUMNS x DEPTH of b and BLOCK_ROWS x DEPTH of a into shared
 * memory, so everything is packed once. Tiles of the result are handed out in tasks, a few rows of panels by a few columns,
 * in an order that keeps the part of a that a task reads in its L2. A medium product is cut into a few that each thread
 * computes alone (gemm_serial.c), reading operands in place where that pays; a batch of small products is one loop. float16
 * and bfloat16: matmul_half.c. Integers and complex numbers are plain loops.
 * All block sizes depend on shapes only. */
#include "../cpu.h"
#include "../strategy.h"
#include "gemm.h"
#include "matmul.h"
#include <string.h>

enum { COLUMN_TILE = 256 };
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline _Complex float mul_c64(_Complex float a, _Complex float b) /* without C99's recovery of infinities */
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
    LC_EACH_integral(DIRECT, ) LC_EACH_complex(DIRECT, )
#undef DIRECT
};

typedef struct {
    const lc_matmul_args *g;
    direct_fn             direct;
    lc_dtype              dtype;
    int64_t               size;                        /* of an element */
    int64_t               rows, columns, across, each; /* of a task; tasks across the columns; tasks per product */
    int64_t               bytes;                       /* workspace for packing per task */
    atomic_int            failed;
} product;

static const void *operand_at(const product *p, const lc_tensor *t, const int64_t *stride, int64_t batch, int64_t row,
                              int64_t column)
{
    return t ? t->data + (batch * stride[0] + row * stride[1] + column * stride[2]) * p->size : NULL;
}
static lc_product part_of(const product *p, int64_t batch, int64_t row, int64_t rows, int64_t column, int64_t columns,
                          lc_epilogue *to)
{
    const lc_matmul_args     *g = p->g;
    const lc_matmul_epilogue *e = g->epilogue;
    int64_t                   size = p->size;
    if (e)
        *to = (lc_epilogue){ .scale = e->scale,
                             .addend_scale = e->addend_scale,
                             .addend = operand_at(p, e->addend, e->addend_stride, batch, row, column),
                             .addend_row = e->addend_stride[1],
                             .addend_col = e->addend_stride[2],
                             .residual = operand_at(p, e->residual, e->residual_stride, batch, row, column),
                             .residual_row = e->residual_stride[1],
                             .residual_col = e->residual_stride[2],
                             .activation = e->activation < LC_OP_COUNT ? lc_cpu_loops[e->activation][p->dtype] : NULL };
    return (lc_product){ .m = least(g->m - row, rows),
                         .n = least(g->n - column, columns),
                         .k = g->k,
                         .a = g->a->data + (batch * g->a_batch + row * g->a_row) * size,
                         .b = g->b->data + (batch * g->b_batch + column * g->b_col) * size,
                         .out = g->out->data + (batch * g->out_batch + row * g->out_row + column * g->out_col) * size,
                         .a_row = g->a_row,
                         .a_col = g->a_col,
                         .b_row = g->b_row,
                         .b_col = g->b_col,
                         .out_row = g->out_row,
                         .out_col = g->out_col,
                         .accumulate = g->accumulate,
                         .epilogue = e ? to : NULL };
}

/* ---- parts, each by one thread ---- */
static void run_parts(void *ctx, int64_t begin, int64_t end)
{
    product *p = ctx;
    size_t   bytes = (size_t)p->bytes;
    char    *scratch = bytes ? cpu_scratch(bytes) : NULL;
    if (bytes && !scratch) {
        p->failed = 1;
        return;
    }
    if (p->each == 1 && !p->g->epilogue) { /* whole products */
        lc_product first = part_of(p, begin, 0, p->rows, 0, p->columns, NULL);
        cpu_gemm_batch(p->dtype, &first, end - begin, p->g->a_batch, p->g->b_batch, p->g->out_batch, scratch);
        begin = end;
    }
    for (int64_t task = begin; task < end; task++) {
        lc_epilogue epilogue;
        int64_t     i = task % p->each;
        lc_product  part =
            part_of(p, task / p->each, i / p->across * p->rows, p->rows, i % p->across * p->columns, p->columns, &epilogue);
        cpu_gemm(p->dtype, &part, scratch);
    }
    if (scratch) cpu_scratch_free(scratch, bytes);
}
static int64_t last_piece(int64_t n, int64_t each) { return n > each ? (n - 1) / each * each : n; }
static void    in_parts(product *p)
{
    enum { WORTH = 1 << 18 }; /* multiplications: some microseconds */
    const lc_matmul_args *g = p->g;
    int64_t               work = g->m * g->n * g->k, parts = least(work / WORTH, 8);
    p->rows = g->m, p->columns = g->n;
    if (parts > 1 && g->batch < 8) {
        bool rows = g->m >= 128 && g->b_col == 1 && g->b_row < 1 << 11; /* every part reads all of b */
        if (g->n >= g->m && !rows) p->columns = ((g->n + parts - 1) / parts + 31) / 32 * 32;
        else p->rows = ((g->m + parts - 1) / parts + 7) / 8 * 8;
    }
    p->across = (g->n + p->columns - 1) / p->columns, p->each = p->across * ((g->m + p->rows - 1) / p->rows);
    int64_t tasks = p->each * g->batch, cost = g->batch * work / tasks;
    for (int64_t row = 0; row < g->m; row = row ? g->m : last_piece(g->m, p->rows)) /* the first parts and those at the edges */
        for (int64_t column = 0; column < g->n; column = column ? g->n : last_piece(g->n, p->columns)) {
            lc_epilogue epilogue;
            lc_product  part = part_of(p, 0, row, p->rows, column, p->columns, &epilogue);
            int64_t     bytes = cpu_gemm_scratch(p->dtype, &part);
            if (bytes > p->bytes) p->bytes = bytes;
        }
    cpu_parallel(tasks, cost >= WORTH ? 1 : WORTH / (cost + 1) + 1, g->batch * work, run_parts, p);
}

/* ---- one product, by all threads ---- */
enum { BLOCK_ROWS = 1024, BLOCK_COLUMNS = 2048, TASK_ROWS = 168, TASK_COLUMNS = 256, LARGE = 1 << 26, NARROW = 48 };
typedef struct {
    lc_product             g;
    lc_dtype               dtype;
    const lc_micro_kernel *micro;
    char                  *a, *b;                                      /* packed */
    int64_t                size, row, rows, column, columns, depth, k; /* the current block */
    int64_t                a_panels, b_panels;                         /* panels to pack: b first */
    int64_t                task_rows, task_columns, across;
} joint;
static void pack_panels(void *ctx, int64_t begin, int64_t end)
{
    const joint           *w = ctx;
    const lc_product      *g = &w->g;
    const lc_micro_kernel *micro = w->micro;
    for (int64_t i = begin; i < end; i++)
        if (i < w->b_panels) {
            int64_t j = i * micro->columns;
            micro->pack(w->b + j * w->k * w->size,
                        (const char *)g->b + (w->depth * g->b_row + (w->column + j) * g->b_col) * w->size,
                        least(w->columns - j, micro->columns), g->b_col, w->k, g->b_row, micro->columns);
        } else {
            int64_t j = (i - w->b_panels) * micro->rows;
            micro->pack(w->a + j * w->k * w->size,
                        (const char *)g->a + ((w->row + j) * g->a_row + w->depth * g->a_col) * w->size,
                        least(w->rows - j, micro->rows), g->a_row, w->k, g->a_col, micro->rows);
        }
}
static void multiply_panels(void *ctx, int64_t begin, int64_t end)
{
    const joint *w = ctx;
    for (int64_t task = begin; task < end; task++) {
        int64_t row = task / w->across * w->task_rows, column = task % w->across * w->task_columns;
        cpu_gemm_panels(w->dtype, &w->g, w->row + row, least(w->rows - row, w->task_rows), w->column + column,
                        least(w->columns - column, w->task_columns), w->k, w->a + row * w->k * w->size,
                        w->b + column * w->k * w->size, w->depth > 0 || w->g.accumulate);
        if (w->g.epilogue && w->depth + w->k == w->g.k)
            cpu_gemm_finish(w->dtype, &w->g, w->row + row, least(w->rows - row, w->task_rows), w->column + column,
                            least(w->columns - column, w->task_columns));
    }
}
static int64_t even_pieces(int64_t n, int64_t unit, int64_t most, int64_t wanted) /* size of even pieces, in units */
{
    int64_t units = (n + unit - 1) / unit, each = (units + wanted - 1) / wanted, limit = most / unit > 1 ? most / unit : 1;
    if (each > limit) each = limit;
    int64_t count = (units + each - 1) / each;
    return (units + count - 1) / count * unit;
}
static int together(const product *p, int64_t batch)
{
    lc_epilogue epilogue, transposed_epilogue;
    joint       w = { .g = part_of(p, batch, 0, p->g->m, 0, p->g->n, &epilogue),
                      .dtype = p->dtype,
                      .micro = cpu_micro_kernel(p->dtype),
                      .size = p->size };
    lc_product *g = &w.g;
    if (g->out_col != 1 && g->out_row == 1) *g = cpu_gemm_transposed(g, &transposed_epilogue);
    int64_t a_bytes = (least(g->m, BLOCK_ROWS) + w.micro->rows) * LC_GEMM_DEPTH * w.size,
            bytes = a_bytes + (least(g->n, BLOCK_COLUMNS) + w.micro->columns) * LC_GEMM_DEPTH * w.size;
    w.a = cpu_scratch((size_t)bytes), w.b = w.a + a_bytes;
    if (!w.a) return -1;
    void *host = lc_host_unlock ? lc_host_unlock() : NULL;
    for (w.column = 0; w.column < g->n; w.column += w.columns) {
        w.columns = least(g->n - w.column, BLOCK_COLUMNS);
        w.task_columns = even_pieces(w.columns, w.micro->columns, TASK_COLUMNS, 4);
        w.across = (w.columns + w.task_columns - 1) / w.task_columns;
        for (w.depth = 0; w.depth < g->k; w.depth += w.k) {
            w.k = least(g->k - w.depth, LC_GEMM_DEPTH);
            for (w.row = 0; w.row < g->m; w.row += w.rows) {
                w.rows = least(g->m - w.row, BLOCK_ROWS);
                w.task_rows = even_pieces(w.rows, w.micro->rows, TASK_ROWS, 4);
                w.b_panels = w.row ? 0 : (w.columns + w.micro->columns - 1) / w.micro->columns;
                w.a_panels = (w.rows + w.micro->rows - 1) / w.micro->rows;
                lc_parallel_for(w.a_panels + w.b_panels, 4, pack_panels, &w);
                lc_parallel_for(w.across * ((w.rows + w.task_rows - 1) / w.task_rows), 1, multiply_panels, &w);
            }
        }
    }
    if (host) lc_host_relock(host);
    cpu_scratch_free(w.a, (size_t)bytes);
    return 0;
}

/* ---- one product with a transposed b, as weights are. All threads pack one operand into strips, once, and read the other
 * in place. With more rows than columns, b is packed. (Parts that pack for themselves pack b once per part: 280 µs for 256 x
 * 784 by 784 x 64, where this takes 229.) With fewer, the product is computed transposed, because then the smaller operand,
 * a, is packed; tiles are transposed as they are stored. ---- */
enum { STRIP_DEPTH = 512 }; /* a strip of it stays in L2, and tiles are transposed less often */
typedef struct {
    lc_product             whole, g; /* g: as computed, possibly transposed */
    bool                   transpose;
    lc_dtype               dtype;
    const lc_micro_kernel *micro;
    char                  *panels; /* strips of g.b: (k + rank) x strip each */
    int64_t                size, depth, k, piece;
    const lc_low_rank     *low; /* its first product is packed behind the strips, as more steps of k */
    int64_t                rank;
} strip_job;
static void pack_low(const strip_job *w, char *panel)
{
    const lc_low_rank *low = w->low;
    int64_t            strip = w->micro->strip;
    char              *out = panel + w->k * strip * w->size;
    w->micro->in_place(&(lc_product){ .m = low->rank,
                                      .n = strip,
                                      .k = w->k,
                                      .a = low->down->data,
                                      .a_row = low->down_stride[1],
                                      .a_col = low->down_stride[0],
                                      .b = panel,
                                      .b_row = strip,
                                      .b_col = 1,
                                      .out = out,
                                      .out_row = strip,
                                      .out_col = 1 },
                       1, 0, 0, 0);
    lc_epilogue scaled = { .scale = low->scale };
    w->micro->finish_row(&scaled, 0, 0, low->rank * strip, out, 1);
}
static void pack_strips(void *ctx, int64_t begin, int64_t end)
{
    const strip_job       *w = ctx;
    const lc_product      *g = &w->g;
    const lc_micro_kernel *micro = w->micro;
    for (int64_t i = begin, strip = micro->strip; i < end; i++) {
        char *panel = w->panels + i * strip * (w->k + w->rank) * w->size;
        micro->pack(panel, (const char *)g->b + (i * strip * g->b_col + w->depth * g->b_row) * w->size,
                    least(g->n - i * strip, strip), g->b_col, w->k, g->b_row, micro->strip);
        if (w->low) pack_low(w, panel);
    }
}
static void multiply_strips(void *ctx, int64_t begin, int64_t end)
{
    const strip_job  *w = ctx;
    const lc_product *g = &w->g, *whole = &w->whole;
    int64_t           size = w->size, strip = w->micro->strip;
    for (int64_t row = begin * w->piece; row < least(g->m, end * w->piece); row += w->piece) {
        int64_t rows = least(g->m - row, w->piece);
        for (int64_t d = 0; d < w->k; d += STRIP_DEPTH)
            for (int64_t column = 0; column < g->n; column += strip) {
                lc_product tiles = { .m = rows,
                                     .n = least(g->n - column, strip),
                                     .k = least(w->k - d, STRIP_DEPTH),
                                     .a = (const char *)g->a + (row * g->a_row + (w->depth + d) * g->a_col) * size,
                                     .a_row = g->a_row,
                                     .a_col = g->a_col,
                                     .b = w->panels + (column * (w->k + w->rank) + d * strip) * size,
                                     .b_row = strip,
                                     .b_col = 1,
                                     .out = (char *)g->out + (row * g->out_row + column * g->out_col) * size,
                                     .out_row = g->out_row,
                                     .out_col = g->out_col,
                                     .accumulate = g->accumulate || w->depth + d };
                if (!w->low || d + STRIP_DEPTH < w->k) w->micro->in_place(&tiles, 1, 0, 0, 0);
                else
                    w->micro->in_place_more(&tiles, &(lc_more_steps){ w->low->up->data + row * w->low->up_stride[1] * size,
                                                                      w->rank, w->low->up_stride[1], w->low->up_stride[0] });
            }
        if (!whole->epilogue || w->depth + w->k < g->k) continue;
        if (w->transpose) cpu_gemm_finish(w->dtype, whole, 0, whole->m, row, rows);
        else cpu_gemm_finish(w->dtype, whole, row, rows, 0, whole->n);
    }
}
static lc_product transposed(const lc_product *g)
{
    lc_product t = *g;
    t.m = g->n, t.n = g->m, t.out_row = g->out_col, t.out_col = g->out_row;
    t.a = g->b, t.a_row = g->b_col, t.a_col = g->b_row;
    t.b = g->a, t.b_row = g->a_col, t.b_col = g->a_row;
    return t;
}
static int by_strips(const product *p, bool transpose, int64_t deep)
{
    lc_epilogue epilogue;
    strip_job   w = { .whole = part_of(p, 0, 0, p->g->m, 0, p->g->n, &epilogue),
                      .transpose = transpose,
                      .dtype = p->dtype,
                      .micro = cpu_micro_kernel(p->dtype),
                      .size = p->size,
                      .low = p->g->low,
                      .rank = p->g->low ? p->g->low->rank : 0 };
    w.g = transpose ? transposed(&w.whole) : w.whole;
    int64_t strips = (w.g.n + w.micro->strip - 1) / w.micro->strip;
    size_t  bytes = (size_t)(strips * w.micro->strip * (deep + w.rank) * w.size);
    w.panels = cpu_scratch(bytes), w.piece = even_pieces(w.g.m, 8, 168, 8);
    if (!w.panels) return -1;
    void *host = lc_host_unlock ? lc_host_unlock() : NULL;
    for (; w.depth < w.g.k; w.depth += w.k) {
        w.k = least(w.g.k - w.depth, deep);
        lc_parallel_for(strips, 1, pack_strips, &w);
        lc_parallel_for((w.g.m + w.piece - 1) / w.piece, 1, multiply_strips, &w);
    }
    if (host) lc_host_relock(host);
    cpu_scratch_free(w.panels, bytes);
    return 0;
}
static bool strips_fit(const product *p)
{
    const lc_matmul_args *g = p->g;
    return g->batch == 1 && g->b_row == 1 && g->b_col != 1 && g->out_col == 1 && cpu_micro_kernel(p->dtype)->transposes;
}
static bool suits_transposing(const product *p)
{
    const lc_matmul_args *g = p->g;
    return g->m > 16 && 2 * g->m <= g->n && g->m * g->n * g->k >= 1 << 21 && g->out_row > 1 && strips_fit(p);
}
enum { MOST_PACKED = 1 << 19, LEAST_PACKED = 1 << 20 }; /* elements at a time; multiply-adds */
static int64_t transposed_depth(const product *p)       /* depth of k per strip */
{
    int64_t strip = cpu_micro_kernel(p->dtype)->strip, wide = (p->g->m + strip - 1) / strip * strip;
    return least(p->g->k, MOST_PACKED / wide > STRIP_DEPTH ? MOST_PACKED / wide / STRIP_DEPTH * STRIP_DEPTH : STRIP_DEPTH);
}
static bool suits_packing(const product *p)
{
    const lc_matmul_args *g = p->g;
    return g->n > 16 && g->m >= 64 && g->m * g->n * g->k >= LEAST_PACKED && g->n * g->k <= MOST_PACKED / 2 && strips_fit(p);
}

/* ---- plain loops ---- */
static void direct_rows(void *ctx, int64_t begin, int64_t end) /* rows of all batches in sequence */
{
    const product *p = ctx;
    for (int64_t m = p->g->m, n; begin < end; begin += n) {
        int64_t first = begin % m;
        n = m - first < end - begin ? m - first : end - begin;
        p->direct(p->g, begin / m, first, first + n);
    }
}
static void run_direct(product *p, int64_t cost)
{
    const lc_matmul_args *g = p->g;
    cpu_parallel(g->batch * g->m, CPU_GRAIN / (g->n * (g->k ? g->k : 1)) + 1, cost, direct_rows, p);
}

/* ---- a few rows of at most four features by weights ----
 * PYTORCH-QUIRK: the order of the sums is that of MKL and of PyTorch's own loop. They add the first product to the third and
 * the second to the fourth; one after the other if the rows are not contiguous. For logits in the thousands, exp amplifies
 * the rounding difference. */
enum { TINY = 256 };
static bool is_tiny(const product *p)
{
    const lc_matmul_args     *g = p->g;
    const lc_matmul_epilogue *e = g->epilogue;
    bool plain = !e || (e->scale == 1 && e->addend_scale == 1 && (!e->residual || e->residual->dtype == LC_f32) &&
                        (e->activation >= LC_OP_COUNT || lc_cpu_loops[e->activation][LC_f32]));
    return p->dtype == LC_f32 && g->batch == 1 && g->k <= 4 && g->m * g->n <= TINY && g->b_row && g->b_row < g->b_col &&
           plain && !g->accumulate;
}
static inline void tiny_row(float *restrict out, const float *x, float (*restrict weight)[TINY], int64_t n, bool paired)
{
    if (paired)
        for (int64_t j = 0; j < n; j++)
            out[j] = (x[0] * weight[0][j] + x[2] * weight[2][j]) + (x[1] * weight[1][j] + x[3] * weight[3][j]);
    else
        for (int64_t j = 0; j < n; j++)
            out[j] = x[0] * weight[0][j] + x[1] * weight[1][j] + x[2] * weight[2][j] + x[3] * weight[3][j];
}
static void run_tiny(const product *p)
{
    const lc_matmul_args     *g = p->g;
    const lc_matmul_epilogue *e = g->epilogue;
    const float              *a = (const float *)g->a->data, *b = (const float *)g->b->data;
    const float              *add = e && e->addend ? (const float *)e->addend->data : NULL;
    bool                      direct = g->out_col == 1;
    _Alignas(64) float        weight[4][TINY], line[TINY]; /* by feature, so that vectors run over columns */
    for (int64_t k = 0; k < 4; k++)
        for (int64_t j = 0; j < g->n; j++) weight[k][j] = k < g->k ? b[k * g->b_row + j * g->b_col] : 0;
    for (int64_t i = 0; i < g->m; i++, a += g->a_row) {
        float x[4] = { 0 }, *out = (float *)g->out->data + i * g->out_row, *to = direct ? out : line;
        for (int64_t k = 0; k < g->k; k++) x[k] = a[k * g->a_col];
        tiny_row(to, x, weight, g->n, g->a_col == 1);
        const float *row = add ? add + i * e->addend_stride[1] : NULL;
        if (row && e->addend_stride[2] == 1)
            for (int64_t j = 0; j < g->n; j++) to[j] += row[j];
        else if (row)
            for (int64_t j = 0; j < g->n; j++) to[j] += row[j * e->addend_stride[2]];
        if (e && e->activation < LC_OP_COUNT) lc_cpu_loops[e->activation][LC_f32](to, (const void *[]){ to }, 0, g->n);
        const float *more = e && e->residual ? (const float *)e->residual->data + i * e->residual_stride[1] : NULL;
        for (int64_t j = 0; j < g->n && more; j++) to[j] += more[j * e->residual_stride[2]];
        for (int64_t j = 0; j < g->n && !direct; j++) out[j * g->out_col] = line[j];
    }
}

static bool has_half_operand(const lc_matmul_args *g, lc_dtype dtype)
{
    const lc_matmul_epilogue *e = g->epilogue;
    bool                      other = g->a->dtype != dtype || g->b->dtype != dtype || g->out->dtype != dtype;
    return other || (e && ((e->addend && e->addend->dtype != dtype) || (e->residual && e->residual->dtype != dtype)));
}
static bool is_large(const product *p) { return p->g->m * p->g->n * p->g->k >= LARGE; }
static bool suits_transposed_strips(const void *p)
{
    return suits_transposing(p) && (!is_large(p) || ((const product *)p)->g->m <= 4 * NARROW);
}

/* ---- choice of strategy ---- */
static int packed_or_failed(const product *p)
{
    return p->failed ? lc_fail_int(LC_OutOfMemory, "mm: no memory for the packed blocks") : 0;
}
static bool suits_direct(const void *p) { return ((const product *)p)->direct; }
static bool suits_half(const void *p) { return has_half_operand(((const product *)p)->g, ((const product *)p)->dtype); }
static bool suits_tiny(const void *p) { return is_tiny(p); }
static bool is_small(const void *p) /* too small for any strategy that packs: skips their checks */
{
    const lc_matmul_args *g = ((const product *)p)->g;
    return g->m * g->n * g->k < LEAST_PACKED;
}
static bool suits_strips(const void *p) { return !is_large(p) && suits_packing(p); }
static bool suits_together(const void *p)
{
    const lc_matmul_args *g = ((const product *)p)->g;
    return is_large(p) && g->m >= NARROW && g->n >= NARROW;
}
static int multiply_direct(void *p)
{
    const lc_matmul_args *g = ((product *)p)->g;
    return run_direct(p, g->batch * g->m * g->n * (g->k ? g->k : 1)), 0;
}
static int multiply_half(void *p) { return cpu_matmul_half(((product *)p)->dtype, ((product *)p)->g); }
static int multiply_tiny(void *p) { return run_tiny(p), 0; }
static int multiply_transposed_strips(void *job)
{
    product *p = job;
    p->failed = by_strips(p, true, transposed_depth(p)) < 0;
    return packed_or_failed(p);
}
static int multiply_in_strips(void *job)
{
    product *p = job;
    p->failed = by_strips(p, false, p->g->k) < 0;
    return packed_or_failed(p);
}
static int multiply_together(void *job)
{
    product *p = job;
    for (int64_t i = 0; i < p->g->batch && !p->failed; i++) p->failed = together(p, i) < 0;
    return packed_or_failed(p);
}
static int multiply_in_parts(void *p) { return in_parts(p), packed_or_failed(p); }

static const lc_strategy products[] = { { "plain loops", suits_direct, multiply_direct },
                                        { "half precision, converted", suits_half, multiply_half },
                                        { "a few features", suits_tiny, multiply_tiny },
                                        { "small parts", is_small, multiply_in_parts },
                                        { "packed strips, transposed", suits_transposed_strips, multiply_transposed_strips },
                                        { "packed strips", suits_strips, multiply_in_strips },
                                        { "packed blocks of all threads", suits_together, multiply_together },
                                        { "parts of their own", NULL, multiply_in_parts } };
static int               multiply(product *p)
{
    const lc_low_rank *low = p->g->low;
    if (low && (suits_half(p) || !suits_transposed_strips(p) || p->g->k > transposed_depth(p) || low->rank > p->g->m))
        return LC_NO_KERNEL; /* only transposed strips support a low-rank term */
    return RUN_STRATEGIES("product", products, p);
}

/* The dot product of two long vectors: of pieces, as a batch, and then of the pieces' sums with ones. The cut depends on the
 * length alone. */
static int long_dot(const product *like)
{
    const lc_matmul_args *g = like->g;
    int64_t               whole = g->k / CPU_GRAIN, pieces = whole + (g->k % CPU_GRAIN != 0);
    lc_tensor            *sums = lc_tensor_new(like->dtype, g->out->device, 1, &pieces), one = *g->a, rest_a, rest_b, rest_out;
    lc_matmul_args        part = *g, rest = *g, all = *g;
    product               p = *like;
    if (!sums) return -1;
    part.epilogue = rest.epilogue = NULL, part.accumulate = rest.accumulate = false;
    part.out = sums, part.batch = whole, part.k = CPU_GRAIN, part.out_batch = 1;
    part.a_batch = CPU_GRAIN * g->a_col, part.b_batch = CPU_GRAIN * g->b_row;
    p.g = &part;
    int rc = multiply(&p);
    if (rc == 0 && pieces > whole) {
        rest_a = *g->a, rest_b = *g->b, rest_out = *sums;
        rest_a.data += whole * part.a_batch * lc_size_of(g->a->dtype);
        rest_b.data += whole * part.b_batch * lc_size_of(g->b->dtype), rest_out.data += whole * like->size;
        rest.a = &rest_a, rest.b = &rest_b, rest.out = &rest_out, rest.k = g->k - whole * CPU_GRAIN;
        p.g = &rest;
        rc = multiply(&p);
    }
    _Alignas(16) char unit[16];
    cpu_move(like->dtype, unit, like->size, LC_b8, (const char *)&(uint8_t){ 1 }, 1, 1);
    one.data = unit, one.dtype = sums->dtype;
    all.a = sums, all.a_col = 1, all.b = &one, all.b_row = 0, all.k = pieces;
    p.g = &all;
    if (rc == 0) rc = multiply(&p);
    return lc_release(sums), rc;
}

static int cpu_matmul(lc_dtype dtype, const void *args)
{
    const lc_matmul_args *g = args;
    product               p = { .g = g, .direct = directs[dtype], .size = lc_size_of(dtype), .dtype = dtype };
    if (!g->batch || !g->m || !g->n) return 0;
    return g->batch * g->m * g->n == 1 && g->k >= 2 * CPU_GRAIN && !g->low ? long_dot(&p) : multiply(&p);
}
#define DTYPE_BIT(op, dtype) | 1u << LC_##dtype
LC_CPU_RUN(mm, cpu_matmul, 0 LC_EACH_arith(DTYPE_BIT, ))
