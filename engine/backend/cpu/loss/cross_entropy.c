/* Cross entropy of scores per class with class indices.
 *
 * A line is the scores of one position. Forward reads it twice, once from memory and once from the cache, for its maximum
 * and the sum of its exponentials, and keeps one number per line, the logarithm of that sum. Backward reads the scores again
 * and writes the gradient, with one more exponential each: that costs less than writing and reading probabilities of the
 * same size. So the whole traffic is two reads and a write, and exponentials bound it (the loop runs at about the speed of
 * exp itself). Interleaved positions after the class dimension (images) are processed CROSS_ENTROPY_LANES at a time. Half
 * precision, and partial blocks, pass through a tile of a line, or of CROSS_ENTROPY_LANES of them.
 *
 * A class out of range is found before anything is written. Sums over lines are computed after the threads are done, in the
 * order of the lines. */
#include "../cpu.h"
#include "cross_entropy.h"
#include "loss.h"
#include "../../args.h"
#include <math.h>
#include <string.h>

ISA_TABLE(const lc_cross_entropy, cross_entropy)
const lc_cross_entropy_lines *cpu_cross_entropy_lines(lc_dtype dtype)
{
    return dtype == LC_f32 ? &cross_entropy_of_this_cpu()->f32 : &cross_entropy_of_this_cpu()->f64;
}

typedef struct {
    const lc_cross_entropy_args  *a;
    const lc_cross_entropy_lines *lines;
    lc_dtype                      from, work;
    int64_t                       item, size;   /* bytes of an element of in, and of the working dtype */
    int64_t                       blocks, wide; /* blocks of CROSS_ENTROPY_LANES lanes per n; 1 lane: wide is 1 */
    double                        all_weights;  /* sum of the weights of all classes */
    double                        scale;        /* backward: of all gradients */
    size_t                        tile_bytes;
    atomic_int                    failed;
} cross_entropy_job;

static double weight_of(const cross_entropy_job *j, int64_t class)
{
    return class == j->a->ignored ? 0 : j->a->weight ? number_at(j->work, j->a->weight->data, class) : 1;
}

/* Copies `lanes` lines to or from a tile with `wide` elements per class. */
static void move_tile(const cross_entropy_job *j, char *tile, char *at, int64_t lanes, bool store)
{
    const lc_cross_entropy_args *a = j->a;
    for (int64_t c = 0; c < a->classes && a->lanes > 1; c++) {
        char *t = tile + c * j->wide * j->size, *p = at + c * a->lanes * j->item;
        if (store) cpu_move(j->from, p, j->item, j->work, t, j->size, lanes);
        else cpu_move(j->work, t, j->size, j->from, p, j->item, lanes);
    }
    if (a->lanes > 1) return;
    if (store) cpu_move(j->from, at, j->item, j->work, tile, j->size, a->classes);
    else cpu_move(j->work, tile, j->size, j->from, at, j->item, a->classes);
}

/* The loss of position k with the score of its class at x. */
static double loss_at(const cross_entropy_job *j, int64_t k, int64_t class, double score, double lse, double weighed)
{
    const lc_cross_entropy_args *a = j->a;
    double                       eps = a->smoothing, w = weight_of(j, class);
    set_number(j->work, a->lse->data, k, lse);
    if (class == a->ignored) return 0;
    double plain = w * (lse - score);
    return eps == 0 ? plain : (1 - eps) * plain + eps / (double)a->classes * (j->all_weights * lse - weighed);
}

static void forward_block(const cross_entropy_job *j, int64_t unit, char *tile)
{
    const lc_cross_entropy_args *a = j->a;
    const int64_t               *target = (const int64_t *)a->target->data;
    int64_t                      n = unit / j->blocks, lane = unit % j->blocks * j->wide, first = n * a->lanes + lane;
    int64_t                      lanes = a->lanes - lane < j->wide ? a->lanes - lane : j->wide;
    char                        *at = a->in->data + (n * a->classes * a->lanes + lane) * j->item;
    bool                         direct = j->from == j->work && lanes == j->wide;
    _Alignas(64) char            lse[CROSS_ENTROPY_LANES * 8], weighed[CROSS_ENTROPY_LANES * 8];
    void                        *sums = a->smoothing != 0 ? weighed : NULL;
    const void                  *w = a->weight ? a->weight->data : NULL;
    int64_t                      step = direct ? a->lanes : j->wide;
    if (!direct) move_tile(j, tile, at, lanes, false);
    const char *x = direct ? at : tile;
    if (j->wide == 1) j->lines->line(x, a->classes, w, lse, sums);
    else j->lines->wide(x, a->classes, step, w, lse, sums);
    for (int64_t l = 0; l < lanes; l++) {
        int64_t class = target[first + l];
        double score = class == a->ignored ? 0 : number_at(j->work, x, class * step + l);
        double loss = loss_at(j, first + l, class, score, number_at(j->work, lse, l), sums ? number_at(j->work, sums, l) : 0);
        set_number(j->work, a->loss->data, first + l, loss);
    }
}

static void backward_block(const cross_entropy_job *j, int64_t unit, char *tile)
{
    const lc_cross_entropy_args *a = j->a;
    const int64_t               *target = (const int64_t *)a->target->data;
    int64_t                      n = unit / j->blocks, lane = unit % j->blocks * j->wide, first = n * a->lanes + lane;
    int64_t                      lanes = a->lanes - lane < j->wide ? a->lanes - lane : j->wide;
    int64_t                      offset = (n * a->classes * a->lanes + lane) * j->item;
    char                        *at = a->in->data + offset, *to = a->out->data + offset;
    bool                         direct = j->from == j->work && lanes == j->wide;
    int64_t                      step = direct ? a->lanes : j->wide;
    double                       eps = a->smoothing, hit[CROSS_ENTROPY_LANES];
    _Alignas(64) char            pull[CROSS_ENTROPY_LANES * 8] = { 0 }, push[CROSS_ENTROPY_LANES * 8] = { 0 },
                                                 lse[CROSS_ENTROPY_LANES * 8] = { 0 };
    const void *w = a->weight ? a->weight->data : NULL;
    memcpy(lse, a->lse->data + first * j->size, (size_t)(lanes * j->size));
    for (int64_t l = 0; l < lanes; l++) {
        int64_t class = target[first + l];
        double g = j->scale * number_at(j->work, a->grad->data, a->grad->numel == 1 ? 0 : first + l), own = weight_of(j, class);
        bool   counts = class != a->ignored;
        hit[l] = counts ? g * (1 - eps) * own : 0;
        set_number(j->work, pull, l, hit[l] + (counts ? g * eps / (double)a->classes * j->all_weights : 0));
        set_number(j->work, push, l, counts ? g * eps / (double)a->classes : 0);
    }
    if (j->wide == 1 && target[first] == a->ignored && isfinite(number_at(j->work, lse, 0))) {
        memset(to, 0, (size_t)(a->classes * j->item));
        return;
    }
    if (!direct) move_tile(j, tile, at, lanes, false);
    const char *x = direct ? at : tile;
    char       *y = direct ? to : tile;
    if (j->wide == 1)
        j->lines->line_backward(y, x, a->classes, w, number_at(j->work, lse, 0), number_at(j->work, pull, 0),
                                number_at(j->work, push, 0));
    else j->lines->wide_backward(y, x, a->classes, step, w, lse, pull, push);
    for (int64_t l = 0; l < lanes; l++) {
        int64_t class = target[first + l];
        if (class != a->ignored) set_number(j->work, y, class * step + l, number_at(j->work, y, class * step + l) - hit[l]);
    }
    if (!direct) move_tile(j, y, to, lanes, true);
}

static void cross_entropy_chunk(void *ctx, int64_t begin, int64_t end)
{
    cross_entropy_job *j = ctx;
    char              *tile = j->tile_bytes ? cpu_scratch(j->tile_bytes) : NULL;
    if (j->tile_bytes && !tile) {
        j->failed = 1;
        return;
    }
    if (tile) memset(tile, 0, j->tile_bytes); /* unused lanes */
    for (int64_t unit = begin; unit < end; unit++) (j->a->out ? backward_block : forward_block)(j, unit, tile);
    cpu_scratch_free(tile, j->tile_bytes);
}

static int check_classes(const lc_cross_entropy_args *a)
{
    const int64_t *target = (const int64_t *)a->target->data;
    for (int64_t k = 0; k < a->n * a->lanes; k++)
        if ((uint64_t)target[k] >= (uint64_t)a->classes && target[k] != a->ignored)
            return lc_fail_int(LC_IndexError, "Target %lld is out of bounds.", (long long)target[k]);
    return 0;
}
/* Eight partial sums, in this order whatever the number of threads. */
static void sum_up(const cross_entropy_job *j)
{
    const lc_cross_entropy_args *a = j->a;
    const int64_t               *target = (const int64_t *)a->target->data;
    double                       loss[8] = { 0 }, weight[8] = { 0 };
    for (int64_t k = 0; k < a->n * a->lanes; k++) {
        loss[k % 8] += number_at(j->work, a->loss->data, k);
        weight[k % 8] += weight_of(j, target[k]);
    }
    double sum = 0, total = 0;
    for (int k = 0; k < 8; k++) sum += loss[k], total += weight[k];
    if (a->mean) sum /= total;
    set_number(j->work, a->total->data, 0, total);
    if (a->reduced) cpu_move((lc_dtype)a->reduced->dtype, a->reduced->data, 0, LC_f64, (char *)&sum, 0, 1);
}

static int cpu_cross_entropy(UNUSED lc_dtype dtype, const void *args)
{
    const lc_cross_entropy_args *a = args;
    lc_dtype                     from = (lc_dtype)a->in->dtype, work = cpu_working_dtype(from);
    cross_entropy_job            j = { .a = a,
                                       .lines = cpu_cross_entropy_lines(work),
                                       .from = from,
                                       .work = work,
                                       .item = lc_size_of(from),
                                       .size = lc_size_of(work),
                                       .wide = a->lanes == 1 ? 1 : CROSS_ENTROPY_LANES,
                                       .scale = a->out && a->total ? 1 / number_at(work, a->total->data, 0) : 1 };
    if (check_classes(a) < 0) return -1;
    for (int64_t c = 0; c < a->classes; c++) j.all_weights += a->weight ? number_at(work, a->weight->data, c) : 1;
    j.blocks = (a->lanes + j.wide - 1) / j.wide;
    if (from != work || a->lanes % j.wide) j.tile_bytes = (size_t)(a->classes * j.wide * j.size);
    int64_t units = a->n * j.blocks, each = a->classes * j.wide;
    if (units && a->classes) cpu_parallel(units, CPU_GRAIN / each + 1, 4 * units * each, cross_entropy_chunk, &j);
    if (j.failed) return lc_fail_int(LC_OutOfMemory, "cross_entropy: no memory for %lld scores", (long long)each);
    if (!a->out) sum_up(&j);
    return 0;
}
#define FLOATS (1u << LC_f16 | 1u << LC_bf16 | 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_cross_entropy, cpu_cross_entropy, FLOATS)
LC_CPU_RUN(_cross_entropy_backward, cpu_cross_entropy, FLOATS)
