/* Random tensors. The draws, and their order, are PyTorch's CPU streams (core/random.h): the same seed gives the same numbers. Without a
 * generator= the process-wide one is used. */
#include "create.h"
#include <math.h>

static lc_generator *generator_for(const lc_value *v, lc_device device)
{
    lc_generator *g = v->tag == LC_IS_generator && v->gen ? v->gen : lc_generator_default();
    if (g == lc_generator_default() || device.kind == LC_META || lc_same_device(g->device, device)) return g;
    return lc_fail(LC_DeviceMismatch, "Expected a '%s' device type for generator but found '%s'", lc_device_names[device.kind],
                   lc_device_names[g->device.kind]);
}

/* Run the kernel of `op` into call->out[0]. Complex kernels want pairs side by side. */
static int draw(const lc_record *call, const lc_op *op, const lc_value *generator, lc_random_args args)
{
    lc_tensor *out = call->out[0];
    bool       direct = out->is_contiguous || !lc_is_complex(out->dtype);
    lc_record  drawn = *call;
    lc_tensor *made = direct ? lc_retain(out) : lc_tensor_new(out->dtype, out->device, out->ndim, out->shape);
    drawn.op = op, drawn.out = &made;
    args.out = made, args.generator = generator_for(generator, out->device);
    return deliver(out, made, made && args.generator ? run_factory(&drawn, &args) : -1);
}

static int in_place(const lc_record *call, lc_spec *out) { return spec_like(call, out, call->in[0], call->in[0]->dtype), 0; }

/* ---- uniform ---- */
static int draw_uniform(const lc_record *call, double from, double to, const lc_value *generator)
{
    if (!(from <= to))
        return lc_fail_int(LC_LucidError, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
    return draw(call, &lc_op_uniform_, generator, (lc_random_args){ .a = from, .b = to });
}
static int uniform_run(const lc_record *call) { return draw_uniform(call, call->args[1].f, call->args[2].f, &call->args[3]); }
GRAD(uniform_) { dx[0] = zeros_like(in(0)); } /* what was overwritten has no influence any more */
LC_OP(uniform_,
      .sig = "uniform_(input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with uniform numbers from [from_, to).", .method = true, .function = false, .random = true,
      .writes = IN(0), .promote = LC_NO_PROMOTION, .shape = in_place, .run = uniform_run, .grad = uniform__grad);

static int rand_run(const lc_record *call) { return draw_uniform(call, 0, 1, &call->args[3]); }
LC_OP(rand,
      .sig = "rand(size: list[int], *, dtype: dtype | None = None, device: device | None = None, "
             "generator: Generator | None = None) -> Tensor",
      .doc = "Uniform numbers from [0, 1).", .factory = true, .out = true, .random = true, .shape = of_size, .run = rand_run);

static const lc_value no_generator = { .tag = LC_IS_none };
static int            rand_like_run(const lc_record *call) { return draw_uniform(call, 0, 1, &no_generator); }
LC_OP(rand_like,
      .sig = "rand_like(input: Tensor, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "Uniform numbers from [0, 1) in the shape of input.", .factory = true, .random = true, .promote = LC_NO_PROMOTION,
      .shape = like_another, .run = rand_like_run);

/* ---- normal ---- */
static int draw_normal(const lc_record *call, double mean, double std, const lc_value *generator)
{
    if (!(std >= 0)) return lc_fail_int(LC_LucidError, "normal expects std >= 0.0, but found std %g", std);
    if (lc_is_complex(call->out[0]->dtype)) std *= M_SQRT1_2; /* of each part */
    return draw(call, &lc_op_normal_, generator, (lc_random_args){ .a = mean, .b = std });
}
static int normal__run(const lc_record *call) { return draw_normal(call, call->args[1].f, call->args[2].f, &call->args[3]); }
GRAD(normal_) { dx[0] = zeros_like(in(0)); }
LC_OP(normal_,
      .sig = "normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with normally distributed numbers.", .method = true, .function = false, .random = true, .writes = IN(0),
      .promote = LC_NO_PROMOTION, .shape = in_place, .run = normal__run, .grad = normal__grad);

static int randn_run(const lc_record *call) { return draw_normal(call, 0, 1, &call->args[3]); }
LC_OP(randn,
      .sig = "randn(size: list[int], *, dtype: dtype | None = None, device: device | None = None, "
             "generator: Generator | None = None) -> Tensor",
      .doc = "Normal numbers with mean 0 and variance 1.", .factory = true, .out = true, .random = true, .shape = of_size,
      .run = randn_run);
static int randn_like_run(const lc_record *call) { return draw_normal(call, 0, 1, &no_generator); }
LC_OP(randn_like,
      .sig = "randn_like(input: Tensor, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "Normal numbers in the shape of input.", .factory = true, .random = true, .promote = LC_NO_PROMOTION,
      .shape = like_another, .run = randn_like_run);

static int normal_size(const lc_record *call, lc_spec *out)
{
    const lc_value *a = call->args;
    return factory_shape(call, out, &a[3], lc_default_dtype, &a[4], a[2].n, a[2].is);
}
static int normal_run(const lc_record *call) { return draw_normal(call, call->args[0].f, call->args[1].f, &call->args[5]); }
LC_OP(normal,
      .sig = "normal(mean: float, std: float, size: list[int], *, dtype: dtype | None = None, device: device | None = None, "
             "generator: Generator | None = None) -> Tensor",
      .doc = "Normal numbers with this mean and standard deviation.", .factory = true, .out = true, .random = true,
      .shape = normal_size, .run = normal_run);

/* ---- exponential ---- */
static int exponential_run(const lc_record *call)
{
    double lambda = call->args[1].f;
    if (!(lambda > 0)) return lc_fail_int(LC_LucidError, "exponential_ expects lambda > 0.0, but found lambda=%g", lambda);
    return draw(call, &lc_op_exponential_, &call->args[2], (lc_random_args){ .a = lambda });
}
GRAD(exponential_) { dx[0] = zeros_like(in(0)); }
LC_OP(exponential_, .sig = "exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with exponentially distributed numbers.", .method = true, .function = false, .random = true,
      .writes = IN(0), .promote = LC_NO_PROMOTION, .shape = in_place, .run = exponential_run, .grad = exponential__grad);

/* ---- integers ---- */
/* The largest integer up to which the dtype holds every one. */
static int64_t whole_limit(lc_dtype dtype)
{
    static const int64_t limits[LC_DTYPE_COUNT] = {
        [LC_b8] = 1,          [LC_u8] = 255,      [LC_i8] = 127,        [LC_i16] = 32767,   [LC_i32] = INT32_MAX,
        [LC_i64] = INT64_MAX, [LC_f16] = 1 << 11, [LC_bf16] = 1 << 8,   [LC_f32] = 1 << 24, [LC_f64] = 1LL << 53,
        [LC_c32] = 1 << 11,   [LC_c64] = 1 << 24, [LC_c128] = 1LL << 53
    };
    return limits[dtype];
}
static int draw_ints(const lc_record *call, int64_t from, int64_t to, const lc_value *generator)
{
    lc_dtype dtype = call->out[0]->dtype;
    int64_t  high = whole_limit(dtype),
            low = lc_class_of(dtype) == LC_BOOL || dtype == LC_u8 ? 0 : -high - (lc_class_of(dtype) == LC_INT);
    if (from >= to)
        return lc_fail_int(LC_LucidError, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                           (long long)from, (long long)to);
    if (lc_class_of(dtype) <= LC_INT && (from < low || from > high))
        return lc_fail_int(LC_LucidError, "from is out of bounds for %s", lc_dtypes[dtype].name);
    if (lc_class_of(dtype) <= LC_INT && (to - 1 < low || to - 1 > high))
        return lc_fail_int(LC_LucidError, "to - 1 is out of bounds for %s", lc_dtypes[dtype].name);
    return draw(call, &lc_op_random_, generator, (lc_random_args){ .low = from, .range = (uint64_t)to - (uint64_t)from });
}
static int random_run(const lc_record *call)
{
    return draw(call, &lc_op_random_, &call->args[1], (lc_random_args){ .any = true });
}
GRAD(random_) { dx[0] = zeros_like(in(0)); }
LC_OP(random_, .sig = "random_(input: Tensor, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with integers from all the dtype holds exactly.", .method = true, .function = false, .random = true,
      .writes = IN(0), .promote = LC_NO_PROMOTION, .shape = in_place, .run = random_run, .grad = random__grad);
static int random_to_run(const lc_record *call) { return draw_ints(call, 0, call->args[1].i, &call->args[2]); }
LC_OP(random_to_, .sig = "random_to_(input: Tensor, to: int, *, generator: Generator | None = None) -> Tensor", .py = "random_",
      .doc = "Overwrite with integers from [0, to).", .method = true, .function = false, .random = true, .writes = IN(0),
      .promote = LC_NO_PROMOTION, .shape = in_place, .run = random_to_run, .grad = random__grad);
static int random_range_run(const lc_record *call)
{
    int64_t to = whole_limit(call->out[0]->dtype);
    int_argument(&call->args[2], &to);
    return draw_ints(call, call->args[1].i, to, &call->args[3]);
}
LC_OP(random_range_,
      .sig = "random_range_(input: Tensor, from_: int, to: int | None, *, generator: Generator | None = None) -> Tensor",
      .py = "random_", .doc = "Overwrite with integers from [from_, to).", .method = true, .function = false, .random = true,
      .writes = IN(0), .promote = LC_NO_PROMOTION, .shape = in_place, .run = random_range_run, .grad = random__grad);

static int randint_size(const lc_record *call, lc_spec *out) /* size comes after one or two bounds */
{
    const lc_value *a = call->args + (call->args[1].tag == LC_IS_int ? 2 : 1);
    return factory_shape(call, out, &a[1], LC_i64, &a[2], a[0].n, a[0].is);
}
static int randint_run(const lc_record *call)
{
    bool two = call->args[1].tag == LC_IS_int;
    return draw_ints(call, two ? call->args[0].i : 0, call->args[two].i, &call->args[two ? 5 : 4]);
}
LC_OP(randint,
      .sig = "randint(high: int, size: list[int], *, dtype: dtype | None = None, device: device | None = None, "
             "generator: Generator | None = None) -> Tensor",
      .doc = "Integers from [0, high).", .factory = true, .out = true, .random = true, .shape = randint_size,
      .run = randint_run);
LC_OP(randint_low,
      .sig = "randint_low(low: int, high: int, size: list[int], *, dtype: dtype | None = None, device: device | None = None, "
             "generator: Generator | None = None) -> Tensor",
      .py = "randint", .doc = "Integers from [low, high).", .factory = true, .out = true, .random = true, .shape = randint_size,
      .run = randint_run);

static int randint_like_shape(const lc_record *call, lc_spec *out) /* the bounds stand between input and dtype */
{
    lc_value  packed_args[4] = { call->args[0] };
    lc_record like = *call;
    memcpy(packed_args + 1, call->args + call->op->args->n_params - 3, 3 * sizeof *packed_args);
    like.args = packed_args;
    return like_another(&like, out);
}
static int randint_like_run(const lc_record *call)
{
    bool two = call->args[2].tag == LC_IS_int;
    return draw_ints(call, two ? call->args[1].i : 0, call->args[1 + two].i, &no_generator);
}
LC_OP(randint_like,
      .sig = "randint_like(input: Tensor, high: int, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None) -> Tensor",
      .doc = "Integers from [0, high) in the shape of input.", .factory = true, .random = true, .promote = LC_NO_PROMOTION,
      .shape = randint_like_shape, .run = randint_like_run);
LC_OP(randint_like_low,
      .sig =
          "randint_like_low(input: Tensor, low: int, high: int, *, dtype: dtype | None = None, device: device | None = None, "
          "memory_format: memory_format | None = None) -> Tensor",
      .py = "randint_like", .doc = "Integers from [low, high) in the shape of input.", .factory = true, .random = true,
      .promote = LC_NO_PROMOTION, .shape = randint_like_shape, .run = randint_like_run);

static int randperm_size(const lc_record *call, lc_spec *out)
{
    const lc_value *a = call->args;
    return factory_shape(call, out, &a[1], LC_i64, &a[2], 1, &a[0].i);
}
static int randperm_run(const lc_record *call) /* drawn as int64, stored as asked */
{
    lc_tensor *out = call->out[0], *made = out->dtype == LC_i64 && out->is_contiguous ? lc_retain(out) : NULL;
    lc_record  drawn = *call;
    if (whole_limit(out->dtype) < out->numel - 1)
        return lc_release(made),
               lc_fail_int(LC_LucidError, "n is too large for result tensor type: '%s'", lc_dtypes[out->dtype].name);
    if (!made) made = lc_tensor_new(LC_i64, out->device, 1, out->shape);
    lc_generator *g = generator_for(&call->args[3], out->device);
    drawn.out = &made;
    return deliver(out, made, made && g ? run_factory(&drawn, &(lc_random_args){ .out = made, .generator = g }) : -1);
}
LC_OP(randperm,
      .sig =
          "randperm(n: int, *, dtype: dtype | None = None, device: device | None = None, generator: Generator | None = None) "
          "-> Tensor",
      .doc = "The integers from 0 to n - 1 in random order.", .factory = true, .out = true, .random = true,
      .shape = randperm_size, .run = randperm_run);

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
GRAD(bernoulli_) { dx[0] = zeros_like(in(0)); }
LC_OP(bernoulli_, .sig = "bernoulli_(input: Tensor, p: float = 0.5, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with ones, with probability p, and zeros.", .method = true, .function = false, .random = true,
      .writes = IN(0), .promote = LC_NO_PROMOTION, .shape = in_place, .run = bernoulli_run, .grad = bernoulli__grad);

/* A probability per element: the last input. */
static int bernoulli_each_run(const lc_record *call)
{
    lc_tensor     *p = call->in[call->n_in - 1], *out = call->out[0];
    lc_record      drawn = *call;
    lc_random_args args = { .out = out, .generator = generator_for(&call->args[call->n_in], out->device) };
    drawn.dtype = p->dtype == LC_f64 ? LC_f64 : LC_f32, drawn.op = &lc_op__bernoulli_each;
    lc_tensor *each = in_dtype(p, drawn.dtype);
    args.each = each;
    int rc = each && args.generator ? run_kernel_with(&drawn, &args) : -1;
    return lc_release(each), rc;
}
static int bernoulli_shape(const lc_record *call, lc_spec *out)
{
    lc_tensor *p = call->in[call->n_in - 1];
    if (!lc_is_floating(p->dtype))
        return lc_fail_int(LC_DtypeMismatch, "bernoulli: expected probabilities tensor to have floating type, got %s",
                           LC_SHAPE(p));
    if (broadcast(call, out) < 0) return -1;
    return out->dtype = call->in[0]->dtype, out->order = LC_ORDER_CONTIGUOUS, 0;
}
GRAD(bernoulli) { dx[0] = zeros_like(in(0)); }
LC_OP(bernoulli, .sig = "bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor",
      .doc = "Ones and zeros, with input's elements as probabilities of one.", .method = true, .random = true,
      .promote = LC_NO_PROMOTION, .shape = bernoulli_shape, .run = bernoulli_each_run, .grad = bernoulli_grad);
GRAD(_bernoulli_each)
{
    if (need[0]) dx[0] = zeros_like(in(0));
    if (need[1]) dx[1] = zeros_like(in(1));
}
LC_OP(_bernoulli_each, .sig = "_bernoulli_each(input: Tensor, p: Tensor, *, generator: Generator | None = None) -> Tensor",
      .py = "bernoulli_", .doc = "Overwrite with ones and zeros, with p's elements as probabilities of one.", .method = true,
      .function = false, .random = true, .writes = IN(0), .promote = LC_NO_PROMOTION, .shape = bernoulli_shape,
      .run = bernoulli_each_run, .grad = _bernoulli_each_grad);

static int dropout_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *x = in(0);
    double     p = in[1].f;
    if (!(p >= 0 && p <= 1)) return lc_fail_int(LC_LucidError, "dropout probability has to be between 0 and 1, but got %g", p);
    if (!in[2].b || p == 0 || !x->numel) return out[0] = x, 0;
    if (p == 1) return (out[0] = lc_mul(x, LC_NUMBER(0))) ? 0 : -1;
    lc_value   none = { .tag = LC_IS_none };
    lc_tensor *keep = lc_bernoulli_(lc_empty_like(x, none, none, none), 1 - p, NULL);
    return (out[0] = lc_mul(x, lc_div(keep, LC_NUMBER(1 - p)))) ? 0 : -1;
}
LC_OP(dropout, .sig = "dropout(input: Tensor, p: float, train: bool) -> Tensor",
      .doc = "In training: zero with probability p, the rest scaled so that the mean stays.", .random = true,
      .call = dropout_call);
