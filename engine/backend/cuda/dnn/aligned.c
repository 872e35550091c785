/* Products whose rows do not start on 16 bytes. Tensor cores of Hopper read through the bulk copy engine, which wants that: for
 * the odd vocabulary of GPT-2, 50257 columns of bfloat16, cuBLAS falls back to kernels of 2018 that take four to six times as
 * long. So a large product works on copies with padded rows, and a result with padded rows is packed afterwards. A copy costs
 * twice its bytes of traffic, far less than what the product saves. Shifting columns into groups of eight rows that lie
 * aligned would save the copies, but makes eight products of one. */
#include "products.h"

/* Pays from this many multiplications on, if each copied element enters MOST_OFTEN of them at least. Tests lower it. */
int64_t lc_cuda_align_from = (int64_t)1 << 28;
enum { TIMES_USED = 64, UNIT = 16, LINE = 128, PIECES = 4, THREADS = 256 };

typedef struct {
    void   *to;
    void   *from;
    int64_t blocks_per_row, rows, cols, to_batch, to_row, from_batch, from_row; /* in units of 2 bytes */
} realign;                                                                      /* as in kernels/realign.cuh */
CUDA_BODY(realign);

typedef struct { /* one of the three matrices */
    lc_tensor   *t;
    int64_t      batch, step, lines, length; /* of `length` neighbours, `lead` apart */
    int64_t     *lead, *batch_stride;
    lc_tensor    padded;
    int64_t      old_lead, old_step;
    bool         copied;
    cuda_scratch memory; /* of padded */
} side;

static bool see(side *s, lc_tensor *t, int64_t batch, int64_t rows, int64_t cols, int64_t *batch_stride, int64_t *row,
                int64_t *col) /* false: no stride of 1 */
{
    bool plain = *col == 1 && (*row >= cols || rows == 1), flipped = *row == 1 && (*col >= rows || cols == 1);
    if (!plain && !flipped) return false;
    int64_t size = lc_size_of((lc_dtype)t->dtype);
    *s = (side){ .t = t, .batch = batch, .lines = plain ? rows : cols, .length = plain ? cols : rows };
    s->lead = plain ? row : col, s->batch_stride = batch_stride, s->step = batch > 1 ? *batch_stride : 0;
    s->copied = ((uintptr_t)t->data | (uint64_t)(s->lines > 1 ? *s->lead * size : 0) | (uint64_t)(s->step * size)) % UNIT != 0;
    return true;
}
static int between(const side *s, void *to, const void *from, bool packs)
{
    int64_t halves = lc_size_of((lc_dtype)s->t->dtype) / 2, cols = s->length * halves, pieces = (cols + 14) / 8,
            batch = s->step ? s->batch : 1, padded = *s->lead * halves;
    realign      p = { .to = to, .from = (void *)from, .rows = s->lines, .cols = cols };
    cuda_program q = { &realign_body, "realign", .type = { cuda_width_code(2) } };
    int64_t      odd[2] = { s->old_step * halves, s->old_lead * halves }, even[2] = { s->lines * padded, padded };
    p.to_batch = packs ? odd[0] : even[0], p.to_row = packs ? odd[1] : even[1];
    p.from_batch = packs ? even[0] : odd[0], p.from_row = packs ? even[1] : odd[1];
    p.blocks_per_row = (pieces + PIECES * THREADS - 1) / (PIECES * THREADS);
    int threads = pieces >= THREADS ? THREADS : (int)((pieces + 31) / 32 * 32);
    return cuda_blocks(&q, batch * s->lines * p.blocks_per_row, threads, &p);
}
static int pad(side *s, bool filled) /* the matrix moves to memory with padded rows */
{
    int64_t size = lc_size_of((lc_dtype)s->t->dtype), unit = (s->length * size >= 8 * LINE ? LINE : UNIT) / size,
            lead = (s->length + unit - 1) / unit * unit;
    int64_t all = (s->step ? s->batch : 1) * s->lines * lead * size;
    s->padded = *s->t, s->padded.data = cuda_scratch_new(&s->memory, s->t->device.index, (size_t)all);
    if (!s->padded.data) return -1;
    s->old_lead = *s->lead, s->old_step = s->step, *s->lead = lead;
    if (s->step) *s->batch_stride = s->lines * lead;
    return filled ? between(s, s->padded.data, s->t->data, false) : 0;
}

int cuda_aligned_product(const lc_matmul_args *asked, lc_dtype dtype)
{
    lc_matmul_args a = *asked;
    side           of[3];
    int64_t        used[] = { a.k, a.n, a.m };
    int            rc = 0;
    lc_tensor    **place[] = { &a.out, &a.a, &a.b };
    bool           any = false;
    if (a.k == 0 || a.m * a.n < lc_cuda_align_from / a.k / a.batch || lc_size_of((lc_dtype)a.a->dtype) != 2 || a.accumulate ||
        a.a->dtype != a.b->dtype || a.out->dtype != a.a->dtype)
        return 1;
    if (!see(&of[0], a.out, a.batch, a.m, a.n, &a.out_batch, &a.out_row, &a.out_col) ||
        !see(&of[1], a.a, a.batch, a.m, a.k, &a.a_batch, &a.a_row, &a.a_col) ||
        !see(&of[2], a.b, a.batch, a.k, a.n, &a.b_batch, &a.b_row, &a.b_col))
        return 1;
    for (int i = 0; i < 3; i++) {
        any |= of[i].copied;
        if (of[i].copied && (used[i] < TIMES_USED || of[i].length > INT32_MAX / 4)) return 1;
    }
    if (!any) return 1;
    for (int i = 0; i < 3 && rc == 0; i++)
        if (of[i].copied) rc = pad(&of[i], i > 0), *place[i] = &of[i].padded;
    if (rc == 0) rc = cuda_large_product(&a, dtype);
    if (rc == 0 && of[0].copied) rc = between(&of[0], of[0].t->data, of[0].padded.data, true);
    for (int i = 0; i < 3; i++) cuda_scratch_free(&of[i].memory);
    return rc;
}
