/* equal: whether two tensors of one shape hold the same values. The loop of eq compares tiles; the first difference ends it,
 * so the beginning is compared before threads start. */
#include "../cpu.h"
#include "../../args.h"
#include "../../../tensor/iter.h"
#include <string.h>

enum { EQUAL_TILE = 1024 };
typedef struct {
    const lc_tensor *in[2];
    lc_iter          it;
    lc_dtype         work;
    lc_cpu_loop      loop;
    atomic_bool      differ;
} comparison;

static int compare_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    comparison       *c = ctx;
    int64_t           size = lc_size_of(c->work);
    _Alignas(64) char tile[2][EQUAL_TILE * 16];
    uint8_t           same[EQUAL_TILE];
    for (int64_t at = 0, m; at < n; at += m) {
        const void *in[2];
        m = n - at < EQUAL_TILE ? n - at : EQUAL_TILE;
        for (int k = 0; k < 2; k++) {
            const char *p = ptr[k] + at * stride[k];
            bool        direct = c->in[k]->dtype == c->work && (stride[k] == size || m == 1);
            if (!direct) cpu_move(c->work, tile[k], size, (lc_dtype)c->in[k]->dtype, p, stride[k], m);
            in[k] = direct ? p : tile[k];
        }
        c->loop(same, in, 0, m);
        if (memchr(same, 0, (size_t)m)) return 1;
    }
    return 0;
}
static void compare_chunk(void *ctx, int64_t begin, int64_t end)
{
    comparison *c = ctx;
    if (atomic_load_explicit(&c->differ, memory_order_relaxed)) return;
    if (lc_iter_range(&c->it, begin, end, compare_row, c)) atomic_store_explicit(&c->differ, true, memory_order_relaxed);
}
static int cpu_equal(lc_dtype compute, const void *args)
{
    const lc_equal_args *a = args;
    comparison           c;
    c.in[0] = a->x, c.in[1] = a->y, c.work = cpu_working_dtype(compute), c.differ = false;
    if (!(c.loop = lc_cpu_loops[LC_OP_eq][c.work])) return LC_NO_KERNEL;
    lc_iter_start(&c.it, a->x->ndim, a->x->shape);
    for (int k = 0; k < 2; k++) lc_iter_add(&c.it, c.in[k]);
    lc_iter_prepare(&c.it, true);
    int64_t n = c.it.numel;
    compare_chunk(&c, 0, n < EQUAL_TILE ? n : EQUAL_TILE);
    if (n > EQUAL_TILE && !c.differ) cpu_parallel(n, CPU_GRAIN, n, compare_chunk, &c);
    *(uint8_t *)a->equal->data = !c.differ;
    return 0;
}
LC_CPU_RUN(equal, cpu_equal, ~0u)
