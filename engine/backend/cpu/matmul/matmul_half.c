/* Matrix products in half precision: float16 and bfloat16 operands, summed in float.
 *
 * A task is a tile of the result over the whole of k. The parts of a and b that it reads are converted a tile at a time, in
 * their memory order, and multiplied like any other product (gemm_serial.c), which packs if that pays. The sums stay in a
 * tile of floats, the epilogue runs on them, and each is rounded once when it is stored. So the workspace is a few tiles of
 * floats per thread; each element of a is converted once per tile of columns and each of b once per tile of rows: a few
 * percent of the time of a large product. Converting inside the kernels would need a copy of each kernel per dtype. Small
 * products of a batch are converted and multiplied many at a time. */
#include "../cpu.h"
#include "gemm.h"
#include "matmul.h"

enum { ROWS = 168, COLUMNS = 256, DEPTH = LC_GEMM_DEPTH, ELEMENTS = ROWS * COLUMNS };
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t pieces(int64_t n, int64_t each) { return (n + each - 1) / each; }

typedef struct {
    const lc_matmul_args *g;
    lc_dtype              dtype;
    int64_t               rows, columns, depth, together; /* of a task: its tile, and the number of products of the batch */
    int64_t               down, across;                   /* tasks of a product */
    int64_t               a_size, b_size, tile_size, addend_size; /* elements of the tiles; then the residual's */
    size_t                bytes;
    atomic_int            failed;
} half_job;
typedef struct { /* a thread's workspace: tiles, and packing space of their products */
    char  *tiles, *packed;
    size_t bytes; /* of packed */
} half_workspace;

/* A part of an operand: (batch, rows, columns), strides in elements; dims of stride zero are stored once. */
typedef struct {
    char    *data;
    lc_dtype dtype;
    int64_t  size[3], step[3];
} block;

static block block_of(const lc_tensor *t, int64_t batch, int64_t row, int64_t column, int64_t batch_step, int64_t row_step,
                      int64_t column_step, int64_t count, int64_t rows, int64_t columns)
{
    return (block){ t->data + (batch * batch_step + row * row_step + column * column_step) * lc_size_of(t->dtype),
                    (lc_dtype)t->dtype,
                    { count, rows, columns },
                    { batch_step, row_step, column_step } };
}
static int finest(const block *b) /* the one of the last two dimensions with the smaller stride */
{
    bool by_rows = b->size[2] <= 1 || (b->size[1] > 1 && b->step[1] == 1 && b->step[2] != 1);
    return by_rows ? 1 : 2;
}
/* A tile of `dtype` at space, in b's memory order. */
static block tile_for(const block *b, lc_dtype dtype, void *space)
{
    block   t = *b;
    int     fine = finest(b), other = 3 - fine;
    int64_t n[3];
    for (int d = 0; d < 3; d++) n[d] = b->step[d] || b->size[d] <= 1 ? b->size[d] : 1;
    t.data = space, t.dtype = dtype;
    t.step[fine] = n[fine] > 1 || b->size[fine] <= 1, t.step[other] = n[other] > 1 || b->size[other] <= 1 ? n[fine] : 0;
    t.step[0] = n[0] > 1 ? n[1] * n[2] : 0;
    return t;
}
static void convert(const block *to, const block *from) /* between a block and its tile, either way */
{
    int64_t size_to = lc_size_of(to->dtype), size_from = lc_size_of(from->dtype), n[3];
    int     fine = to->step[1] == 1 && to->step[2] != 1 ? 1 : finest(from), other = 3 - fine;
    for (int d = 0; d < 3; d++) n[d] = to->step[d] || to->size[d] <= 1 ? to->size[d] : 1;
#define DENSE(b, d, inside) ((b)->step[d] == (b)->step[inside] * n[inside])
    if (DENSE(to, other, fine) && DENSE(from, other, fine)) n[fine] *= n[other], n[other] = 1;
    if (n[other] == 1 && DENSE(to, 0, fine) && DENSE(from, 0, fine)) n[fine] *= n[0], n[0] = 1;
#undef DENSE
    for (int64_t i = 0; i < n[0]; i++)
        for (int64_t j = 0; j < n[other]; j++)
            cpu_move(to->dtype, to->data + (i * to->step[0] + j * to->step[other]) * size_to, to->step[fine] * size_to,
                     from->dtype, from->data + (i * from->step[0] + j * from->step[other]) * size_from,
                     from->step[fine] * size_from, n[fine]);
}
static block converted(const block *b, lc_dtype dtype, void *space)
{
    if (b->dtype == dtype) return *b;
    block tile = tile_for(b, dtype, space);
    convert(&tile, b);
    return tile;
}

static char *packing_space(half_workspace *r, size_t bytes) /* NULL: out of memory, or none needed */
{
    if (bytes <= r->bytes) return r->packed;
    cpu_scratch_free(r->packed, r->bytes);
    r->packed = cpu_scratch(bytes), r->bytes = r->packed ? bytes : 0;
    return r->packed;
}
static int run_tile(const half_job *h, int64_t batch, int64_t row, int64_t column, half_workspace *space)
{
    const lc_matmul_args     *g = h->g;
    const lc_matmul_epilogue *e = g->epilogue;
    int64_t size = lc_size_of(h->dtype), count = least(g->batch - batch, h->together), m = least(g->m - row, h->rows),
            n = least(g->n - column, h->columns);
    char *a_tile = space->tiles, *b_tile = a_tile + h->a_size * size, *sums = b_tile + h->b_size * size,
         *addend_tile = sums + h->tile_size * size, *residual_tile = addend_tile + h->addend_size * size;
    block       out = block_of(g->out, batch, row, column, g->out_batch, g->out_row, g->out_col, count, m, n);
    block       tile = out.dtype == h->dtype ? out : tile_for(&out, h->dtype, sums), addend = { 0 }, residual = { 0 };
    lc_epilogue ending;
    if (g->accumulate && out.dtype != h->dtype) convert(&tile, &out);
    if (e)
        ending = (lc_epilogue){ .scale = e->scale,
                                .addend_scale = e->addend_scale,
                                .activation = e->activation < LC_OP_COUNT ? lc_cpu_loops[e->activation][h->dtype] : NULL };
    if (e && e->addend) {
        const int64_t *s = e->addend_stride;
        block          b = block_of(e->addend, batch, row, column, s[0], s[1], s[2], count, m, n);
        addend = converted(&b, h->dtype, addend_tile), ending.addend_row = addend.step[1], ending.addend_col = addend.step[2];
    }
    if (e && e->residual) {
        const int64_t *s = e->residual_stride;
        block          b = block_of(e->residual, batch, row, column, s[0], s[1], s[2], count, m, n);
        residual = converted(&b, h->dtype, residual_tile);
        ending.residual_row = residual.step[1], ending.residual_col = residual.step[2];
    }
    for (int64_t depth = 0, k; depth == 0 || depth < g->k; depth += k) {
        k = least(g->k - depth, h->depth);
        block      a = block_of(g->a, batch, row, depth, g->a_batch, g->a_row, g->a_col, count, m, k);
        block      b = block_of(g->b, batch, depth, column, g->b_batch, g->b_row, g->b_col, count, k, n);
        bool       last = depth + k >= g->k;
        lc_product p = { .m = m, .n = n, .k = k, .accumulate = g->accumulate || depth };
        if (k) a = converted(&a, h->dtype, a_tile), b = converted(&b, h->dtype, b_tile);
        p.a = a.data, p.a_row = a.step[1], p.a_col = a.step[2];
        p.b = b.data, p.b_row = b.step[1], p.b_col = b.step[2];
        p.out = tile.data, p.out_row = tile.step[1], p.out_col = tile.step[2];
        size_t packs = (size_t)cpu_gemm_scratch(h->dtype, &p);
        char  *scratch = packing_space(space, packs);
        if (packs && !scratch) return -1;
        if (!e || !last) {
            cpu_gemm_batch(h->dtype, &p, count, a.step[0], b.step[0], tile.step[0], scratch);
        } else
            for (int64_t i = 0; i < count; i++) {
                p.a = a.data + i * a.step[0] * size, p.b = b.data + i * b.step[0] * size;
                p.out = tile.data + i * tile.step[0] * size, p.epilogue = &ending;
                if (e->addend) ending.addend = addend.data + i * addend.step[0] * size;
                if (e->residual) ending.residual = residual.data + i * residual.step[0] * size;
                cpu_gemm(h->dtype, &p, scratch);
            }
        if (!k) break;
    }
    if (out.dtype != h->dtype) convert(&out, &tile);
    return 0;
}
static void run_tiles(void *ctx, int64_t begin, int64_t end)
{
    half_job      *h = ctx;
    half_workspace space = { .tiles = cpu_scratch(h->bytes) };
    if (!space.tiles) h->failed = 1;
    for (int64_t task = begin; !h->failed && task < end; task++) {
        int64_t i = task % (h->down * h->across), batch = task / (h->down * h->across) * h->together;
        if (run_tile(h, batch, i / h->across * h->rows, i % h->across * h->columns, &space) < 0) h->failed = 1;
    }
    cpu_scratch_free(space.packed, space.bytes);
    if (space.tiles) cpu_scratch_free(space.tiles, h->bytes);
}

static int64_t even(int64_t n, int64_t most, int64_t unit) /* the size of even pieces */
{
    int64_t each = pieces(n, pieces(n, most));
    return least(n, pieces(each, unit) * unit);
}
int cpu_matmul_half(lc_dtype dtype, const lc_matmul_args *g)
{
    enum { WORTH = 1 << 18, LINE = 64, THIN = 16, LEAST = 32, TILE = 60 << 10 };
    half_job h = { .g = g, .dtype = dtype };
    int64_t  size = lc_size_of(dtype), largest, most;
    /* With few rows or few columns, the other operand is all the work: its tile is long along its contiguous dimension. */
    bool    thin = g->m <= THIN || g->n <= THIN, vector = g->m == 1 || g->n == 1;
    int64_t lengthy = vector ? 476 : 512, brief = vector ? 14 : 64; /* with a vector, 64 KiB are enough */
    int64_t tall = !thin ? ROWS : g->a_row == 1 ? lengthy : brief, wide = !thin ? COLUMNS : g->b_col == 1 ? lengthy : brief;
    h.rows = even(g->m, tall, 14), h.columns = even(g->n, wide, 32);
    h.down = pieces(g->m, h.rows), h.across = pieces(g->n, h.columns);
    largest = h.rows > h.columns ? h.rows : h.columns;
    most = vector ? TILE / size : ELEMENTS;
    h.depth = most / largest / LEAST * LEAST;
    h.depth = least(thin ? (h.depth > LEAST ? h.depth : LEAST) : h.depth > DEPTH ? h.depth : DEPTH, g->k);
    largest = largest * h.depth > h.rows * h.columns ? largest * h.depth : h.rows * h.columns;
    h.together = h.down * h.across == 1 && g->k <= h.depth ? least(g->batch, most / 4 / largest) : 1;
    if (h.together < 1) h.together = 1;
    h.a_size = pieces(h.together * h.rows * h.depth, LINE) * LINE;
    h.b_size = pieces(h.together * h.columns * h.depth, LINE) * LINE;
    h.tile_size = pieces(h.together * h.rows * h.columns, LINE) * LINE;
    const lc_matmul_epilogue *e = g->epilogue;
    bool addend = e && e->addend && e->addend->dtype != dtype, residual = e && e->residual && e->residual->dtype != dtype;
    h.addend_size = addend ? h.tile_size : 0;
    int64_t last = residual ? h.tile_size : 0;
    if (g->a->dtype == dtype) h.a_size = 0;
    if (g->b->dtype == dtype) h.b_size = 0;
    if (g->out->dtype == dtype) h.tile_size = 0;
    h.bytes = (size_t)((h.a_size + h.b_size + h.tile_size + h.addend_size + last + LINE) * size);
    int64_t tasks = pieces(g->batch, h.together) * h.down * h.across, work = g->batch * g->m * g->n * (g->k + 1),
            cost = work / tasks;
    cpu_parallel(tasks, cost >= WORTH ? 1 : WORTH / (cost + 1) + 1, work, run_tiles, &h);
    return h.failed ? lc_fail_int(LC_OutOfMemory, "mm: no memory for the tiles") : 0;
}
