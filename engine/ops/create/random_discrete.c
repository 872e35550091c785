/* Discrete draws: Bernoulli, Poisson, binomial, multinomial. */
#include "random.h"
#include <math.h>

/* ---- coins ---- */
static int check_probability(double p)
{
    return p >= 0 && p <= 1 ? 0 : lc_fail_int(LC_LucidError, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
}
static int bernoulli_run(const lc_record *call)
{
    if (check_probability(call->args[1].f) < 0) return -1;
    return draw(call, &lc_op_bernoulli_, &call->args[2], (lc_random_args){ .a = call->args[1].f });
}
LC_OP(bernoulli_, .sig = "bernoulli_(input: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with ones, with probability p, and zeros.", FILL, .run = bernoulli_run);

/* A probability per element: the last input. */
static int bernoulli_each_run(const lc_record *call)
{
    lc_tensor     *p = call->in[call->n_in - 1], *out = call->out[0];
    lc_record      drawn = *call;
    lc_random_args args = { .out = out, .parameters = { p }, .generator = generator_for(&call->args[call->n_in], out->device) };
    drawn.dtype = p->dtype == LC_f64 ? LC_f64 : LC_f32, drawn.op = &lc_op__bernoulli_each;
    return args.generator ? run_kernel_with(&drawn, &args) : -1;
}
static int bernoulli_shape(const lc_record *call, lc_spec *out)
{
    lc_tensor *p = call->in[call->n_in - 1];
    if (!lc_is_floating(p->dtype))
        return lc_fail_int(LC_DtypeMismatch, "bernoulli: expected probabilities tensor to have floating type, got %s",
                           LC_SHAPE(p));
    if (broadcast(call, out) < 0) return -1;
    out->dtype = (lc_dtype)(call->out_given ? call->out[0] : call->in[0])->dtype, out->order = LC_ORDER_CONTIGUOUS;
    return drawn_in_order(call, out, 0);
}
LC_OP(bernoulli, .sig = "bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor",
      .doc = "Ones and zeros, with input's elements as probabilities of one.", .method = true, .out = true, .random = true,
      .promote = LC_NO_PROMOTION, .shape = bernoulli_shape, .run = bernoulli_each_run, .grad = constant_grad);
LC_OP(_bernoulli_each, .sig = "_bernoulli_each(input: Tensor, p: Tensor, *, generator: Generator | None = None) -> Tensor",
      .py = "bernoulli_", .doc = "Overwrite with ones and zeros, with p's elements as probabilities of one.", .method = true,
      .function = false, .random = true, .writes = IN(0), .promote = LC_NO_PROMOTION, .shape = bernoulli_shape,
      .run = bernoulli_each_run, .grad = constant_grad);

static int bernoulli_p_call(const lc_value *in, lc_tensor **out)
{
    lc_value contiguous = { .tag = LC_IS_format, .fmt = LC_CONTIGUOUS_FORMAT };
    return (out[0] = lc_bernoulli_(lc_empty_like(in(0), LC_ABSENT, LC_ABSENT, contiguous), in[1].f, in[2].gen)) ? 0 : -1;
}
LC_OP(bernoulli_p, .sig = "bernoulli_p(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor",
      .py = "bernoulli", .doc = "Ones, with probability p, and zeros in the shape of input.", .method = true, .random = true,
      .call = bernoulli_p_call, .grad = constant_grad);

/* ---- counts: parameters per element ---- */
static int count_shape(const lc_record *call, lc_spec *out)
{
    spec_like(call, out, call->in[0], (lc_dtype)call->in[0]->dtype);
    return drawn_in_order(call, out, 0);
}
static int poisson_run(const lc_record *call)
{
    lc_random_args args = { .out = call->out[0],
                            .parameters = { call->in[0] },
                            .generator = generator_for(&call->args[1], call->device) };
    return args.generator ? run_kernel_with(call, &args) : -1;
}
LC_OP(poisson, .sig = "poisson(input: Tensor, generator: Generator | None = None) -> Tensor",
      .doc = "Poisson distributed counts, with input's elements as rates.", .random = true, .promote = LC_NO_PROMOTION,
      .shape = count_shape, .run = poisson_run, .grad = constant_grad);

static int binomial_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *count = call->in[0], *p = call->in[1];
    if (!lc_is_floating(count->dtype) || !lc_is_floating(p->dtype))
        return lc_fail_int(LC_ValueError, "binomial only supports floating-point dtypes for count and prob, got %s and %s",
                           lc_dtypes[count->dtype].name, lc_dtypes[p->dtype].name);
    if (count->dtype != p->dtype)
        return lc_fail_int(LC_DtypeMismatch, "Found dtype %s but expected %s", lc_dtypes[p->dtype].name,
                           lc_dtypes[count->dtype].name);
    if (broadcast(call, out) < 0) return -1;
    bool of_count = out->ndim == count->ndim && lc_same_sizes(out->shape, count->shape, out->ndim);
    return out->order = of_count ? LC_ORDER_CONTIGUOUS : LC_ORDER_INPUTS, 0;
}
static int binomial_run(const lc_record *call)
{
    lc_random_args args = { .out = call->out[0],
                            .parameters = { call->in[0], call->in[1] },
                            .generator = generator_for(&call->args[2], call->device) };
    return args.generator ? run_kernel_with(call, &args) : -1;
}
LC_OP(binomial, .sig = "binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor",
      .doc = "Successes in count trials, each with probability prob.", .random = true, .promote = LC_NO_PROMOTION,
      .shape = binomial_shape, .run = binomial_run, .grad = constant_grad);

/* ---- multinomial ---- */
static int multinomial_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *p = call->in[0];
    int64_t          n = call->args[1].i;
    if (p->ndim < 1 || p->ndim > 2) return lc_fail_int(LC_ShapeMismatch, "prob_dist must be 1 or 2 dim, got %s", LC_SHAPE(p));
    if (!lc_is_floating(p->dtype))
        return lc_fail_int(LC_DtypeMismatch, "multinomial only supports floating-point dtypes for input, got: %s",
                           lc_dtypes[p->dtype].name);
    if (call->out_given && call->out[0]->dtype != LC_i64)
        return lc_fail_int(LC_DtypeMismatch, "multinomial expects int64 tensor out, got: %s", LC_SHAPE(call->out[0]));
    if (n <= 0) return lc_fail_int(LC_LucidError, "cannot sample n_sample <= 0 samples");
    if (!call->args[2].b && n > p->shape[p->ndim - 1])
        return lc_fail_int(LC_LucidError, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    if (p->shape[p->ndim - 1] > 1 << 24) return lc_fail_int(LC_LucidError, "number of categories cannot exceed 2^24");
    if (p->numel == 0 && (p->ndim == 1 || p->shape[0]))
        return lc_fail_int(LC_IndexError, "multinomial: there is nothing to choose from: %s", LC_SHAPE(p));
    spec_like(call, out, p, LC_i64);
    return out->shape[p->ndim - 1] = n, 0;
}

static int draw_replacing(const lc_record *call, lc_generator *generator)
{
    lc_record  drawn = *call;
    lc_tensor *p = call->in[0];
    drawn.dtype = p->dtype == LC_f64 ? LC_f64 : LC_f32;
    lc_tensor *weights = lc_tensor_new(drawn.dtype, p->device, p->ndim, p->shape); /* the kernel sums them up in place */
    int        rc = weights ? move_values(weights, p) : -1;
    if (rc == 0)
        rc = run_kernel_with(&drawn,
                             &(lc_random_args){ .out = call->out[0], .parameters = { weights }, .generator = generator });
    return lc_release(weights), rc;
}

static int check_weights(lc_tensor *p)
{
    int64_t fine = 0, some = 0;
    if (read_int(lc_logical_and(lc_lt(lc_max(p), LC_NUMBER(INFINITY)), lc_ge(lc_min(p), LC_NUMBER(0))), &fine) < 0) return -1;
    if (!fine) return lc_fail_int(LC_LucidError, "probability tensor contains either `inf`, `nan` or element < 0");
    if (read_int(lc_all(lc_ne(lc_sum(p, (int64_t[]){ -1 }, 1, false), LC_NUMBER(0)), NULL, 0, false), &some) < 0) return -1;
    return some ? 0 : lc_fail_int(LC_LucidError, "invalid multinomial distribution (sum of probabilities <= 0)");
}
/* Without replacement: the n smallest of exponential draws with rates p. */
static int draw_distinct(const lc_record *call, lc_generator *generator)
{
    lc_tensor *p = call->in[0], *first;
    int64_t    n = call->args[1].i;
    if (check_weights(p) < 0) return -1;
    lc_tensor *clock = lc_exponential_(lc_empty_like(p, LC_ABSENT, LC_ABSENT, LC_ABSENT), 1, generator);
    lc_tensor *race = lc_div(p, clock);
    first = n == 1 ? lc_argmax(race, LC_I(-1), true) : lc_topk(race, n, -1, true, true).indices;
    return first ? move_values(call->out[0], first) : -1;
}

static int multinomial_run(const lc_record *call)
{
    lc_generator *generator = generator_for(&call->args[3], call->device);
    unsigned      modes = lc_modes;
    if (!generator || !call->out[0]->numel || !call->backend->can.values) return generator ? 0 : -1;
    if (call->args[2].b && call->args[1].i > 1) return draw_replacing(call, generator);
    lc_scope scope = lc_scope_open();
    lc_modes |= LC_NO_GRAD;
    int rc = draw_distinct(call, generator);
    lc_modes = modes;
    return lc_scope_close(scope), rc;
}
LC_OP(multinomial,
      .sig =
          "multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> "
          "Tensor",
      .doc = "Indices drawn with input's elements, or those of each row, as weights.", .method = true, .out = true,
      .random = true, .reads_values = true, .promote = LC_NO_PROMOTION, .shape = multinomial_shape, .run = multinomial_run);
