/* Random fills: PyTorch's streams (core/random.h), drawn in PyTorch's memory order, through a tile into outputs that are
 * strided or of another dtype than the draws. Parameters per element (probabilities, rates) pass through tiles beside it. */
#include "../cpu.h"
#include "../../args.h"
#include "../../../core/random.h"
#include "../../../tensor/iter.h"
#include "../math/scalar_math.h"
#define FN static inline UNUSED
#include "../../math/gamma_grad.h"
#undef FN

enum { RANDOM_TILE = 512, MOST_PARAMETERS = 3 };
typedef struct random_walk random_walk;
struct random_walk {
    const lc_random_args *args;
    lc_dtype              made; /* what draw makes */
    int (*draw)(const random_walk *w, void *out, const void *const *parameters, int64_t n);
    lc_dtype dtype; /* of the parameters that draw takes */
    int      n_parameters;
};
static int random_row(void *ctx, char *const *ptr, const int64_t *stride, int64_t n)
{
    const random_walk *w = ctx;
    double             tile[RANDOM_TILE], parameter[MOST_PARAMETERS][RANDOM_TILE];
    const void        *parameters[MOST_PARAMETERS] = { parameter[0], parameter[1], parameter[2] };
    for (int64_t first = 0, m; first < n; first += m) {
        m = n - first < RANDOM_TILE ? n - first : RANDOM_TILE;
        for (int k = 0; k < w->n_parameters; k++)
            cpu_move(w->dtype, (char *)parameter[k], lc_size_of(w->dtype), (lc_dtype)w->args->parameters[k]->dtype,
                     ptr[k + 1] + first * stride[k + 1], stride[k + 1], m);
        if (w->draw(w, tile, parameters, m) < 0) return -1;
        cpu_move((lc_dtype)w->args->out->dtype, ptr[0] + first * stride[0], stride[0], w->made, (char *)tile,
                 lc_size_of(w->made), m);
    }
    return 0;
}
static int run_random(const random_walk *w)
{
    lc_tensor *out = w->args->out;
    if (out->is_contiguous && out->dtype == w->made && !w->n_parameters) return w->draw(w, out->data, NULL, out->numel);
    lc_iter it;
    lc_iter_start(&it, out->ndim, out->shape);
    lc_iter_add(&it, out);
    for (int k = 0; k < w->n_parameters; k++) lc_iter_add(&it, w->args->parameters[k]);
    lc_iter_prepare(&it, true);
    return lc_iter_range(&it, 0, out->numel, random_row, (void *)w);
}

#define DRAW(name)                                                                                                             \
    static int draw_##name(UNUSED const random_walk *w, void *out, UNUSED const void *const *parameters, int64_t n)
#define ARGS w->args->generator

DRAW(uniform) { return lc_random_uniform(ARGS, w->made, out, n, w->args->a, w->args->b), 0; }
DRAW(normal) { return lc_random_normal(ARGS, w->made, out, n, w->args->a, w->args->b, w->args->out->is_contiguous), 0; }
DRAW(exponential) { return lc_random_exponential(ARGS, w->made, out, n, w->args->a), 0; }
DRAW(cauchy) { return lc_random_cauchy(ARGS, out, n, w->args->a, w->args->b), 0; }
DRAW(log_normal) { return lc_random_log_normal(ARGS, out, n, w->args->a, w->args->b), 0; }
DRAW(geometric) { return lc_random_geometric(ARGS, out, n, w->args->a), 0; }
DRAW(bernoulli) { return lc_random_bernoulli(ARGS, out, n, w->args->a), 0; }
DRAW(ints) { return lc_random_ints(ARGS, out, n, w->args->low, w->args->range), 0; }
DRAW(any) { return lc_random_any(ARGS, (lc_dtype)w->args->out->dtype, out, n), 0; }
DRAW(bernoulli_each)
{
    for (int64_t i = 0; i < n; i++) {
        double p = w->dtype == LC_f64 ? ((const double *)parameters[0])[i] : (double)((const float *)parameters[0])[i];
        if (!(p >= 0 && p <= 1)) return lc_fail_int(LC_LucidError, "bernoulli: expected 0 <= p <= 1, got p = %g", p);
    }
    return lc_random_bernoulli_each(ARGS, out, n, w->dtype, parameters[0]), 0;
}
DRAW(poisson) { return lc_random_poisson(ARGS, out, n, parameters[0]); }
DRAW(binomial) { return lc_random_binomial(ARGS, w->made, out, n, parameters[0], parameters[1]), 0; }
DRAW(gamma) { return lc_random_gamma(ARGS, w->made, out, n, parameters[0]), 0; }
DRAW(slopes) { return lc_random_slopes(ARGS, out, n, parameters[0], w->args->a, w->args->b), 0; }
/* Not draws, but how draws depend on their parameters: maps of the same walk. */
DRAW(gamma_grad)
{
    const double *alpha = parameters[0], *x = parameters[1], eps = w->args->out->dtype == LC_f64 ? 4e-16 : 1e-10;
    double        psi = n ? gamma_psi_above(alpha[0]) : 0;
    for (int64_t i = 0; i < n; i++) {
        if (i && alpha[i] != alpha[i - 1]) psi = gamma_psi_above(alpha[i]);
        ((double *)out)[i] = gamma_grad_by(alpha[i], x[i], psi, eps);
    }
    return 0;
}
DRAW(dirichlet_grad)
{
    const double *x = parameters[0], *alpha = parameters[1], *total = parameters[2];
    for (int64_t i = 0; i < n; i++) ((double *)out)[i] = dirichlet_grad_at(x[i], alpha[i], total[i]);
    return 0;
}

/* Kernels: the fill, the dtype of its draws, and the dtype and number of its parameters per element. */
#define RANDOM(name, made_as, ...)                                                                                             \
    static int cpu_##name(UNUSED lc_dtype dtype, const void *args)                                                             \
    {                                                                                                                          \
        return run_random(&(random_walk){ args, made_as, draw_##name, __VA_ARGS__ });                                          \
    }
RANDOM(uniform, dtype, 0, 0)
RANDOM(normal, dtype, 0, 0)
RANDOM(exponential, dtype, 0, 0)
RANDOM(cauchy, LC_f64, 0, 0)
RANDOM(log_normal, LC_f64, 0, 0)
RANDOM(geometric, LC_f64, 0, 0)
RANDOM(bernoulli, LC_b8, 0, 0)
RANDOM(ints, LC_i64, 0, 0)
RANDOM(any, LC_i64, 0, 0)
RANDOM(bernoulli_each, LC_b8, dtype, 1)
RANDOM(poisson, LC_f64, LC_f64, 1)
RANDOM(binomial, dtype, dtype, 2)
RANDOM(gamma, dtype, dtype, 1)
RANDOM(slopes, LC_f64, LC_f64, 1)
RANDOM(gamma_grad, LC_f64, LC_f64, 2)
RANDOM(dirichlet_grad, LC_f64, LC_f64, 3)

static int cpu_random(lc_dtype dtype, const void *args)
{
    return (((const lc_random_args *)args)->any ? cpu_any : cpu_ints)(dtype, args);
}

static int cpu_randperm(UNUSED lc_dtype dtype, const void *args) /* out int64, contiguous */
{
    const lc_random_args *a = args;
    return lc_random_permutation(a->generator, (int64_t *)a->out->data, a->out->numel), 0;
}

/* out (rows, samples) int64 and parameters[0] (rows, categories): contiguous; the latter is overwritten. */
static int cpu_multinomial(lc_dtype dtype, const void *args)
{
    const lc_random_args *a = args;
    const lc_tensor      *weights = a->parameters[0];
    int64_t               categories = weights->shape[weights->ndim - 1], samples = a->out->shape[a->out->ndim - 1];
    int64_t               rows = weights->ndim > 1 ? weights->shape[0] : 1, rc = 0;
    for (int64_t r = 0; r < rows && rc == 0; r++)
        rc = lc_random_multinomial(a->generator, dtype, (int64_t *)a->out->data + r * samples, samples,
                                   weights->data + r * categories * lc_size_of(dtype), categories);
    return (int)rc;
}

#define FLOATS        (1u << LC_f16 | 1u << LC_bf16 | 1u << LC_f32 | 1u << LC_f64)
#define COMPLEX       (1u << LC_c32 | 1u << LC_c64 | 1u << LC_c128)
#define WIDE_UNSIGNED (1u << LC_u16 | 1u << LC_u32 | 1u << LC_u64)
LC_CPU_RUN(uniform_, cpu_uniform, FLOATS | COMPLEX) /* complex numbers arrive as pairs of reals */
LC_CPU_RUN(normal_, cpu_normal, FLOATS | COMPLEX)
LC_CPU_RUN(exponential_, cpu_exponential, FLOATS)
LC_CPU_RUN(cauchy_, cpu_cauchy, FLOATS)
LC_CPU_RUN(log_normal_, cpu_log_normal, FLOATS)
LC_CPU_RUN(geometric_, cpu_geometric, ~(COMPLEX | WIDE_UNSIGNED | 1u << LC_b8))
LC_CPU_RUN(bernoulli_, cpu_bernoulli, ~(COMPLEX | WIDE_UNSIGNED))
LC_CPU_RUN(_bernoulli_each, cpu_bernoulli_each, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(poisson, cpu_poisson, FLOATS)
LC_CPU_RUN(binomial, cpu_binomial, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_standard_gamma, cpu_gamma, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_standard_gamma_grad, cpu_gamma_grad, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_dirichlet_grad, cpu_dirichlet_grad, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(_rrelu_noise, cpu_slopes, FLOATS)
LC_CPU_RUN(multinomial, cpu_multinomial, 1u << LC_f32 | 1u << LC_f64)
LC_CPU_RUN(random_, cpu_random, ~COMPLEX)
LC_CPU_RUN(randperm, cpu_randperm, 1u << LC_i64)
