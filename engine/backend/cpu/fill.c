/* Kernels that make values: ranges and random numbers. Both go through a buffer into outputs that are strided or narrow. */
#include "cpu.h"
#include "../args.h"
#include "../../core/random.h"
#include "../../tensor/iter.h"
#include <string.h>
#define COMPLEX (1u << LC_c32 | 1u << LC_c64 | 1u << LC_c128)

/* ---- ranges ---- */
enum { RAMP_TILE = 512 };
static int cpu_arange(lc_dtype dtype, const void *args)
{
    const lc_ramp_args *a = args;
    bool                whole = lc_class_of(dtype) == LC_INT;
    int64_t             n = a->out->numel, step = n ? a->out->stride[0] * lc_size_of(dtype) : 0;
    union {
        double  f[RAMP_TILE];
        int64_t i[RAMP_TILE];
    } tile;
    for (int64_t first = 0, m; first < n; first += m) {
        m = n - first < RAMP_TILE ? n - first : RAMP_TILE;
        for (int64_t i = 0; i < m; i++)
            if (whole) tile.i[i] = (int64_t)((uint64_t)a->start_int + (uint64_t)a->step_int * (uint64_t)(first + i));
            else tile.f[i] = a->start + a->step * (double)(first + i);
        cpu_move(dtype, a->out->data + first * step, step, whole ? LC_i64 : LC_f64, (char *)&tile, 8, m);
    }
    return 0;
}

static double rounded(lc_dtype dtype, double value)
{
    char held[16];
    cpu_move(dtype, held, 0, LC_f64, (const char *)&value, 0, 1);
    cpu_move(LC_f64, (char *)&value, 0, dtype, held, 0, 1);
    return value;
}
/* From both ends, so that the last value is end. Ends and step have the precision of the result (integers: a float32 step), as in PyTorch. */
static int cpu_linspace(lc_dtype dtype, const void *args)
{
    const lc_ramp_args *a = args;
    int64_t             n = a->out->numel, stride = n ? a->out->stride[0] * lc_size_of(dtype) : 0;
    double              start = rounded(dtype, a->start), end = rounded(dtype, a->end), tile[RAMP_TILE];
    double              step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    step = rounded(lc_is_floating(dtype) ? dtype : LC_f32, step);
    for (int64_t first = 0, m; first < n; first += m) {
        m = n - first < RAMP_TILE ? n - first : RAMP_TILE;
        for (int64_t i = 0; i < m; i++) {
            int64_t at = first + i;
            tile[i] = at < n / 2 || n == 1 ? start + step * (double)at : end - step * (double)(n - 1 - at);
        }
        cpu_move(dtype, a->out->data + first * stride, stride, LC_f64, (char *)tile, 8, m);
    }
    return 0;
}
LC_CPU_RUN(arange, cpu_arange, ~(1u << LC_b8 | COMPLEX))
LC_CPU_RUN(linspace, cpu_linspace, ~(1u << LC_b8 | COMPLEX))

/* ---- random numbers: PyTorch's streams, drawn in the order of memory as its iterator goes ---- */
enum { RANDOM_TILE = 1024 };
typedef struct random_walk random_walk;
struct random_walk {
    const lc_random_args *args;
    lc_dtype              dtype, made; /* of the output; of what draw makes */
    void (*draw)(const random_walk *w, void *out, int64_t n);
};
static int random_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const random_walk *w = ctx;
    double             tile[RANDOM_TILE];
    for (int64_t first = 0, m; first < n; first += m) {
        m = n - first < RANDOM_TILE ? n - first : RANDOM_TILE;
        w->draw(w, tile, m);
        cpu_move(w->dtype, ptr[0] + first * stride[0], stride[0], w->made, (char *)tile, lc_size_of(w->made), m);
    }
    return 0;
}
static int run_random(random_walk *w)
{
    lc_tensor *out = w->args->out;
    int64_t    n = lc_is_complex(out->dtype) ? 2 * out->numel : out->numel; /* complex numbers are contiguous pairs here */
    if (out->is_contiguous && w->dtype == w->made) return w->draw(w, out->data, n), 0;
    lc_iter it;
    lc_iter_start(&it, out->ndim, out->shape);
    lc_iter_add(&it, out);
    lc_iter_prepare(&it, true);
    return lc_iter_range(&it, 0, n, random_row, w);
}
static void draw_uniform(const random_walk *w, void *out, int64_t n)
{
    lc_random_uniform(w->args->generator, w->made, out, n, w->args->a, w->args->b);
}
static int cpu_uniform(lc_dtype dtype, const void *args)
{
    return run_random(&(random_walk){ args, lc_real_of(dtype), lc_real_of(dtype), draw_uniform });
}

static void draw_normal(const random_walk *w, void *out, int64_t n)
{
    lc_random_normal(w->args->generator, w->made, out, n, w->args->a, w->args->b, w->args->out->is_contiguous);
}
static int cpu_normal(lc_dtype dtype, const void *args)
{
    return run_random(&(random_walk){ args, lc_real_of(dtype), lc_real_of(dtype), draw_normal });
}

static void draw_exponential(const random_walk *w, void *out, int64_t n)
{
    lc_random_exponential(w->args->generator, w->made, out, n, w->args->a);
}
static int cpu_exponential(lc_dtype dtype, const void *args)
{
    return run_random(&(random_walk){ args, dtype, dtype, draw_exponential });
}

static void draw_bernoulli(const random_walk *w, void *out, int64_t n)
{
    lc_random_bernoulli(w->args->generator, out, n, w->args->a);
}
static int cpu_bernoulli(lc_dtype dtype, const void *args)
{
    return run_random(&(random_walk){ args, dtype, LC_b8, draw_bernoulli });
}

typedef struct {
    const lc_random_args *args;
    lc_dtype              dtype; /* of the probabilities */
} coins;
static int coin_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const coins *c = ctx;
    double       p[RANDOM_TILE];
    uint8_t      tile[RANDOM_TILE];
    int64_t      size = lc_size_of(c->dtype);
    for (int64_t first = 0, m; first < n; first += m) {
        m = n - first < RANDOM_TILE ? n - first : RANDOM_TILE;
        cpu_move(c->dtype, (char *)p, size, c->dtype, ptr[1] + first * stride[1], stride[1], m);
        lc_random_bernoulli_each(c->args->generator, tile, m, c->dtype, p);
        cpu_move(c->args->out->dtype, ptr[0] + first * stride[0], stride[0], LC_b8, (char *)tile, 1, m);
    }
    return 0;
}
static int cpu_bernoulli_each(lc_dtype dtype, const void *args)
{
    const lc_random_args *a = args;
    lc_iter               it;
    lc_iter_start(&it, a->out->ndim, a->out->shape);
    lc_iter_add(&it, a->out);
    lc_iter_add(&it, a->each);
    lc_iter_prepare(&it, true);
    return lc_iter_range(&it, 0, a->out->numel, coin_row, &(coins){ a, dtype });
}

static void draw_ints(const random_walk *w, void *out, int64_t n)
{
    lc_random_ints(w->args->generator, out, n, w->args->low, w->args->range);
}
static void draw_any(const random_walk *w, void *out, int64_t n) { lc_random_any(w->args->generator, w->dtype, out, n); }
static int  cpu_random(lc_dtype dtype, const void *args)
{
    return run_random(&(random_walk){ args, dtype, LC_i64, ((const lc_random_args *)args)->any ? draw_any : draw_ints });
}

static int cpu_randperm(UNUSED lc_dtype dtype, const void *args) /* out int64, contiguous */
{
    const lc_random_args *a = args;
    return lc_random_permutation(a->generator, (int64_t *)a->out->data, a->out->numel), 0;
}
#define FLOATS (1u << LC_f16 | 1u << LC_bf16 | 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(uniform_, cpu_uniform, FLOATS | COMPLEX)
LC_CPU_RUN(normal_, cpu_normal, FLOATS | COMPLEX)
LC_CPU_RUN(exponential_, cpu_exponential, FLOATS)
LC_CPU_RUN(bernoulli_, cpu_bernoulli, ~COMPLEX)
LC_CPU_RUN(_bernoulli_each, cpu_bernoulli_each, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(random_, cpu_random, ~COMPLEX)
LC_CPU_RUN(randperm, cpu_randperm, 1u << LC_i64)
