/* Random fills with real distributions: uniform, normal, exponential and others, in place, as factories and in the shape of
 * another tensor. */
#include "random.h"
#include <float.h>
#include <math.h>

lc_generator *generator_for(const lc_value *v, lc_device device)
{
    lc_generator *g = v->tag == LC_IS_generator && v->gen ? v->gen : lc_generator_default();
    if (g == lc_generator_default() || !lc_backends[device.kind]->can.values || lc_same_device(g->device, device)) return g;
    return lc_fail(LC_DeviceMismatch, "Expected a '%s' device type for generator but found '%s'", lc_device_names[device.kind],
                   lc_device_names[g->device.kind]);
}

static lc_tensor *as_reals(lc_tensor *t) /* new reference */
{
    int64_t shape[LC_MAX_DIMS], stride[LC_MAX_DIMS];
    if (!lc_is_complex(t->dtype)) return lc_retain(t);
    if (t->ndim == LC_MAX_DIMS) return lc_fail(LC_ValueError, "at most %d dimensions of complex numbers", LC_MAX_DIMS - 1);
    for (int d = 0; d < t->ndim; d++) shape[d] = t->shape[d], stride[d] = 2 * t->stride[d];
    shape[t->ndim] = 2, stride[t->ndim] = 1;
    return lc_tensor_view_as(t, lc_real_of(t->dtype), t->ndim + 1, shape, stride, 0);
}

int draw(const lc_record *call, const lc_op *op, const lc_value *generator, lc_random_args args)
{
    lc_record drawn = *call;
    drawn.op = op, args.out = call->out[0];
    return (args.generator = generator_for(generator, args.out->device)) ? run_factory(&drawn, &args) : -1;
}
static int draw_parts(const lc_record *call, const lc_op *op, const lc_value *generator, lc_random_args args)
{
    lc_record  drawn = *call;
    lc_tensor *parts = as_reals(call->out[0]);
    drawn.out = &parts;
    int rc = parts ? draw(&drawn, op, generator, args) : -1;
    return lc_release(parts), rc;
}

int in_place(const lc_record *call, lc_spec *out) { return spec_like(call, out, call->in[0], call->in[0]->dtype), 0; }
int drawn_in_order(const lc_record *call, lc_spec *out, int rc)
{
    if (rc == 0 && call->out_given) out->order = LC_ORDER_INPUTS;
    return rc;
}
void constant_grad(UNUSED lc_tensor *const *g, UNUSED lc_tensor *const *y, const lc_value *in, const bool *need, lc_tensor **dx)
{
    for (int k = 0; in[k].tag == LC_IS_tensor; k++)
        if (need[k]) dx[k] = zeros_like(in(k));
}
static int of_size_drawn(const lc_record *call, lc_spec *out) { return drawn_in_order(call, out, of_size(call, out)); }
static int continuous(const lc_record *call, const char *name)
{
    lc_dtype dtype = (lc_dtype)call->out[0]->dtype;
    if (lc_is_floating(dtype)) return 0;
    return lc_fail_int(LC_DtypeMismatch,
                       "%s distribution is a continuous probability distribution. dtype must be a floating point but you "
                       "specified %s",
                       name, lc_dtypes[dtype].name);
}

/* ---- uniform ---- */
static double largest(lc_dtype dtype)
{
    lc_dtype real = lc_real_of(dtype);
    return real == LC_f16 ? 65504 : real == LC_bf16 ? 0x1.fep127 : real == LC_f32 ? FLT_MAX : DBL_MAX;
}
static int draw_uniform(const lc_record *call, double from, double to, const lc_value *generator)
{
    lc_dtype dtype = (lc_dtype)call->out[0]->dtype;
    double   most = largest(dtype), end[2] = { from, to };
    for (int i = 0; i < 2; i++)
        if (!(fabs(end[i]) <= most))
            return lc_fail_int(LC_LucidError, "%s is out of bounds for %s", i ? "to" : "from", lc_dtypes[dtype].name);
    if (!(from <= to))
        return lc_fail_int(LC_LucidError, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
    if (!(to - from <= most))
        return lc_fail_int(LC_LucidError, "uniform_ expects to - from <= %g, but found to=%g and from=%g", most, to, from);
    return draw_parts(call, &lc_op_uniform_, generator, (lc_random_args){ .a = from, .b = to });
}
static int uniform_run(const lc_record *call) { return draw_uniform(call, call->args[1].f, call->args[2].f, &call->args[3]); }
LC_OP(uniform_,
      .sig = "uniform_(input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with uniform numbers from [from_, to).", FILL, .run = uniform_run);

static int rand_run(const lc_record *call) { return draw_uniform(call, 0, 1, &call->args[3]); }
LC_OP(rand, .kernel = LC_OP_uniform_,
      .sig = "rand(size: list[int], *, dtype: dtype | None = None, device: device | None = None, "
             "generator: Generator | None = None) -> Tensor",
      .doc = "Uniform numbers from [0, 1).", .factory = true, .out = true, .random = true, .shape = of_size_drawn,
      .run = rand_run);

static int rand_like_run(const lc_record *call) { return draw_uniform(call, 0, 1, &call->args[4]); }
LC_OP(rand_like, .kernel = LC_OP_uniform_,
      .sig = "rand_like(input: Tensor, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None, generator: Generator | None = None) -> Tensor",
      .doc = "Uniform numbers from [0, 1) in the shape of input.", .factory = true, .random = true, .promote = LC_NO_PROMOTION,
      .shape = like_another, .run = rand_like_run);

/* ---- normal ---- */
static int draw_normal(const lc_record *call, double mean, double std, const lc_value *generator)
{
    if (!(std >= 0)) return lc_fail_int(LC_LucidError, "normal expects std >= 0.0, but found std %g", std);
    if (lc_is_complex(call->out[0]->dtype)) std *= M_SQRT1_2; /* of each part */
    return draw_parts(call, &lc_op_normal_, generator, (lc_random_args){ .a = mean, .b = std });
}
static int normal__run(const lc_record *call) { return draw_normal(call, call->args[1].f, call->args[2].f, &call->args[3]); }
LC_OP(normal_,
      .sig = "normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with normally distributed numbers.", FILL, .run = normal__run);

static int randn_run(const lc_record *call) { return draw_normal(call, 0, 1, &call->args[3]); }
LC_OP(randn, .kernel = LC_OP_normal_,
      .sig = "randn(size: list[int], *, dtype: dtype | None = None, device: device | None = None, "
             "generator: Generator | None = None) -> Tensor",
      .doc = "Normal numbers with mean 0 and variance 1.", .factory = true, .out = true, .random = true, .shape = of_size_drawn,
      .run = randn_run);
static int randn_like_run(const lc_record *call) { return draw_normal(call, 0, 1, &call->args[4]); }
LC_OP(randn_like, .kernel = LC_OP_normal_,
      .sig = "randn_like(input: Tensor, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None, generator: Generator | None = None) -> Tensor",
      .doc = "Normal numbers in the shape of input.", .factory = true, .random = true, .promote = LC_NO_PROMOTION,
      .shape = like_another, .run = randn_like_run);

static int normal_size(const lc_record *call, lc_spec *out)
{
    const lc_value *a = call->args;
    return drawn_in_order(call, out, factory_shape(call, out, &a[3], lc_default_dtype, &a[4], a[2].n, a[2].is));
}
static int normal_run(const lc_record *call) { return draw_normal(call, call->args[0].f, call->args[1].f, &call->args[5]); }
LC_OP(normal, .kernel = LC_OP_normal_,
      .sig =
          "normal(mean: float, std: float, size: tuple[int, ...], *, dtype: dtype | None = None, device: device | None = None, "
          "generator: Generator | None = None) -> Tensor",
      .doc = "Normal numbers with this mean and standard deviation.", .factory = true, .out = true, .random = true,
      .shape = normal_size, .run = normal_run);

/* Mean, standard deviation or both per element: draws with mean 0, then scales and shifts. */
static int normal_each_shape(const lc_record *call, lc_spec *out)
{
    if (broadcast(call, out) < 0) return -1;
    out->dtype = (lc_dtype)(call->out_given ? call->out[0] : call->in[0])->dtype, out->order = LC_ORDER_CONTIGUOUS;
    return drawn_in_order(call, out, 0);
}
static int normal_mean_shape(const lc_record *call, lc_spec *out) /* PyTorch broadcasts the mean against out= */
{
    lc_tensor *in[] = { call->in[0], call->out_given ? call->out[0] : call->in[0] };
    lc_record  with_out = *call;
    with_out.in = in, with_out.n_in = 2;
    return normal_each_shape(&with_out, out);
}
static int check_std(lc_tensor *std)
{
    int64_t fine = 1;
    if (lc_is_complex(std->dtype)) return lc_fail_int(LC_DtypeMismatch, "normal expects standard deviation to be non-complex");
    if (std->numel && lc_can(std)->values && read_int(lc_ge(lc_min(std), LC_INTEGER(0)), &fine) < 0) return -1;
    return fine ? 0 : lc_fail_int(LC_LucidError, "normal expects all elements of std >= 0.0");
}
static int normal_each(const lc_record *call, double scale, lc_tensor *std, lc_tensor *mean, const lc_value *generator)
{
    lc_scope   scope = lc_scope_open();
    unsigned   modes = lc_modes;
    lc_tensor *out = call->out[0];
    lc_modes |= LC_NO_GRAD;
    int rc = std && check_std(std) < 0 ? -1 : draw_normal(call, 0, scale, generator);
    if (rc == 0 && std && !lc_mul_(out, std)) rc = -1;
    if (rc == 0 && !lc_add_(out, mean)) rc = -1;
    lc_modes = modes;
    return lc_scope_close(scope), rc;
}
static int normal_mean_run(const lc_record *call)
{
    return normal_each(call, call->args[1].f, NULL, call->in[0], &call->args[2]);
}
LC_OP(normal_mean, .kernel = LC_OP_normal_,
      .sig = "normal_mean(mean: Tensor, std: float = 1.0, *, generator: Generator | None = None) -> Tensor", .py = "normal",
      .doc = "Normal numbers with a mean per element.", .out = true, .random = true, .promote = LC_NO_PROMOTION,
      .shape = normal_mean_shape, .run = normal_mean_run, .grad = constant_grad);
static int normal_std_run(const lc_record *call)
{
    return normal_each(call, 1, call->in[0], LC_NUMBER(call->args[0].f), &call->args[2]);
}
GRAD(normal_std) { dx[0] = zeros_like(in(1)); }
LC_OP(normal_std, .kernel = LC_OP_normal_,
      .sig = "normal_std(mean: float, std: Tensor, *, generator: Generator | None = None) -> Tensor", .py = "normal",
      .doc = "Normal numbers with a standard deviation per element.", .out = true, .random = true, .promote = LC_NO_PROMOTION,
      .shape = normal_each_shape, .run = normal_std_run, .grad = normal_std_grad);
static int normal_both_run(const lc_record *call) { return normal_each(call, 1, call->in[1], call->in[0], &call->args[2]); }
LC_OP(normal_both, .kernel = LC_OP_normal_,
      .sig = "normal_both(mean: Tensor, std: Tensor, *, generator: Generator | None = None) -> Tensor", .py = "normal",
      .doc = "Normal numbers with a mean and a standard deviation per element.", .out = true, .random = true,
      .promote = LC_NO_PROMOTION, .shape = normal_each_shape, .run = normal_both_run, .grad = constant_grad);

/* ---- exponential and others ---- */
static int exponential_run(const lc_record *call)
{
    double lambda = call->args[1].f;
    if (continuous(call, "Exponential") < 0) return -1;
    if (!(lambda > 0)) return lc_fail_int(LC_LucidError, "exponential_ expects lambda > 0.0, but found lambda=%g", lambda);
    return draw(call, &lc_op_exponential_, &call->args[2], (lc_random_args){ .a = lambda });
}
LC_OP(exponential_, .sig = "exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with exponentially distributed numbers.", FILL, .run = exponential_run);

static int cauchy_run(const lc_record *call)
{
    double median = call->args[1].f, sigma = call->args[2].f;
    if (continuous(call, "Cauchy") < 0) return -1;
    if (!(sigma > 0)) return lc_fail_int(LC_LucidError, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
    return draw(call, &lc_op_cauchy_, &call->args[3], (lc_random_args){ .a = median, .b = sigma });
}
LC_OP(cauchy_,
      .sig = "cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with numbers of a Cauchy distribution.", FILL, .run = cauchy_run);

static int log_normal_run(const lc_record *call)
{
    double mean = call->args[1].f, std = call->args[2].f;
    if (!(std > 0)) return lc_fail_int(LC_LucidError, "log_normal_ expects std > 0.0, but found std=%g", std);
    return draw(call, &lc_op_log_normal_, &call->args[3], (lc_random_args){ .a = mean, .b = std });
}
LC_OP(log_normal_,
      .sig = "log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with numbers whose logarithms have this mean and standard deviation.", FILL, .run = log_normal_run);

static int geometric_run(const lc_record *call)
{
    double p = call->args[1].f;
    if (!(p > 0 && p < 1)) return lc_fail_int(LC_LucidError, "geometric_ expects p to be in (0, 1), but got p=%g", p);
    return draw(call, &lc_op_geometric_, &call->args[2], (lc_random_args){ .a = p });
}
LC_OP(geometric_, .sig = "geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with the number of trials up to the first success, each succeeding with probability p.", FILL,
      .run = geometric_run);
