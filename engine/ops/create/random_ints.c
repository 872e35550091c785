/* Random integers and permutations. */
#include "random.h"

/* The largest n for which the dtype represents all integers up to n. */
static int64_t whole_limit(lc_dtype dtype)
{
    static const int64_t limits[LC_DTYPE_COUNT] = {
        [LC_b8] = 1,          [LC_u8] = 255,        [LC_i8] = 127,      [LC_i16] = 32767,
        [LC_i32] = INT32_MAX, [LC_i64] = INT64_MAX, [LC_u16] = 65535,   [LC_u32] = UINT32_MAX,
        [LC_u64] = INT64_MAX, [LC_f16] = 1 << 11,   [LC_bf16] = 1 << 8, [LC_f32] = 1 << 24,
        [LC_f64] = 1LL << 53, [LC_c32] = 1 << 11,   [LC_c64] = 1 << 24, [LC_c128] = 1LL << 53
    };
    return limits[dtype];
}
/* PyTorch moves a bound that a floating dtype cannot represent inwards, to the next value it can. That changes the range,
 * and so the draws. */
static int64_t rounded(int64_t x, lc_dtype dtype)
{
    float f = (float)x;
    if (dtype == LC_f64) return (int64_t)(double)x;
    return (int64_t)(dtype == LC_f16    ? lc_f16_to_f32(lc_f32_to_f16(f))
                     : dtype == LC_bf16 ? lc_bf16_to_f32(lc_f32_to_bf16(f))
                                        : f);
}
static int64_t spacing_near(int64_t x, lc_dtype dtype)
{
    int n = 63 - __builtin_clzll((uint64_t)(x < 0 ? -x : x) | 1), digits = 63 - __builtin_clzll((uint64_t)whole_limit(dtype));
    return 1LL << (n - digits + 1);
}
static void move_inwards(lc_dtype dtype, int64_t *from, int64_t *to)
{
    int64_t least = rounded(*from + 1, dtype), most = rounded(*to - 1, dtype);
    if (least < *from) *from = least + spacing_near(*from + 1, dtype);
    if (most >= *to) *to = most - spacing_near(*to - 1, dtype);
}

static int draw_ints(const lc_record *call, int64_t from, int64_t to, const lc_value *generator)
{
    lc_dtype dtype = call->out[0]->dtype;
    int64_t  high = whole_limit(dtype),
            low = lc_class_of(dtype) == LC_BOOL || lc_is_unsigned(dtype) ? 0 : -high - (lc_class_of(dtype) == LC_INT);
    if (lc_is_complex(dtype))
        return lc_fail_int(LC_DtypeMismatch, "random_ handles only integral, floating-point and boolean types, got %s",
                           lc_dtypes[dtype].name);
    if (from >= to)
        return lc_fail_int(LC_LucidError, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                           (long long)from, (long long)to);
    if (lc_class_of(dtype) <= LC_INT && (from < low || from > high))
        return lc_fail_int(LC_LucidError, "from is out of bounds for %s", lc_dtypes[dtype].name);
    if (lc_class_of(dtype) <= LC_INT && (to - 1 < low || to - 1 > high))
        return lc_fail_int(LC_LucidError, "to - 1 is out of bounds for %s", lc_dtypes[dtype].name);
    if (dtype == LC_f16 && (from < -65504 || from > 65504 || to - 1 < -65504 || to - 1 > 65504))
        return lc_fail_int(LC_LucidError, "%s is out of bounds for float16", from < -65504 || from > 65504 ? "from" : "to - 1");
    if (lc_is_floating(dtype)) move_inwards(dtype, &from, &to);
    if (from >= to)
        return lc_fail_int(LC_LucidError, "random_: no integer of [from, to) is a number of %s", lc_dtypes[dtype].name);
    return draw(call, &lc_op_random_, generator, (lc_random_args){ .low = from, .range = (uint64_t)to - (uint64_t)from });
}
static int refuse_wide_unsigned(const lc_record *call, bool more) /* as PyTorch does */
{
    lc_dtype  dtype = (lc_dtype)call->out[0]->dtype;
    lc_record refused = *call;
    refused.dtype = dtype;
    return more || (lc_is_unsigned(dtype) && dtype != LC_u8) ? no_kernel(&refused) : 0;
}
static int random_run(const lc_record *call)
{
    if (refuse_wide_unsigned(call, false) < 0) return -1;
    return draw(call, &lc_op_random_, &call->args[1], (lc_random_args){ .any = true });
}
LC_OP(random_, .sig = "random_(input: Tensor, *, generator: Generator | None = None) -> Tensor",
      .doc = "Overwrite with integers from the range that the dtype represents exactly.", FILL, .run = random_run);
static int random_to_run(const lc_record *call) { return draw_ints(call, 0, call->args[1].i, &call->args[2]); }
LC_OP(random_to_, .kernel = LC_OP_random_,
      .sig = "random_to_(input: Tensor, to: int, *, generator: Generator | None = None) -> Tensor", .py = "random_",
      .doc = "Overwrite with integers from [0, to).", FILL, .run = random_to_run);
static int random_range_run(const lc_record *call)
{
    int64_t to = whole_limit(call->out[0]->dtype);
    int_argument(&call->args[2], &to);
    return draw_ints(call, call->args[1].i, to, &call->args[3]);
}
LC_OP(random_range_, .kernel = LC_OP_random_,
      .sig = "random_range_(input: Tensor, from_: int, to: int | None, *, generator: Generator | None = None) -> Tensor",
      .py = "random_", .doc = "Overwrite with integers from [from_, to).", FILL, .run = random_range_run);

static int randint_size(const lc_record *call, lc_spec *out) /* size comes after one or two bounds */
{
    const lc_value *a = call->args + (call->args[1].tag == LC_IS_int ? 2 : 1);
    return drawn_in_order(call, out, factory_shape(call, out, &a[1], LC_i64, &a[2], a[0].n, a[0].is));
}
static int randint_run(const lc_record *call)
{
    bool two = call->args[1].tag == LC_IS_int;
    return draw_ints(call, two ? call->args[0].i : 0, call->args[two].i, &call->args[two ? 5 : 4]);
}
LC_OP(randint, .kernel = LC_OP_random_,
      .sig = "randint(high: int, size: tuple[int, ...], *, dtype: dtype | None = None, device: device | None = None, "
             "generator: Generator | None = None) -> Tensor",
      .doc = "Integers from [0, high).", .factory = true, .out = true, .random = true, .shape = randint_size,
      .run = randint_run);
LC_OP(
    randint_low, .kernel = LC_OP_random_,
    .sig =
        "randint_low(low: int, high: int, size: tuple[int, ...], *, dtype: dtype | None = None, device: device | None = None, "
        "generator: Generator | None = None) -> Tensor",
    .py = "randint", .doc = "Integers from [low, high).", .factory = true, .out = true, .random = true, .shape = randint_size,
    .run = randint_run);

static int randint_like_shape(const lc_record *call, lc_spec *out) /* the bounds stand between input and dtype */
{
    lc_value  packed_args[4] = { call->args[0] };
    lc_record like = *call;
    memcpy(packed_args + 1, call->args + call->op->args->n_params - 4, 3 * sizeof *packed_args);
    like.args = packed_args;
    return like_another(&like, out);
}
static int randint_like_run(const lc_record *call)
{
    bool two = call->args[2].tag == LC_IS_int;
    return draw_ints(call, two ? call->args[1].i : 0, call->args[1 + two].i, &call->args[call->op->args->n_params - 1]);
}
LC_OP(randint_like, .kernel = LC_OP_random_,
      .sig = "randint_like(input: Tensor, high: int, *, dtype: dtype | None = None, device: device | None = None, "
             "memory_format: memory_format | None = None, generator: Generator | None = None) -> Tensor",
      .doc = "Integers from [0, high) in the shape of input.", .factory = true, .random = true, .promote = LC_NO_PROMOTION,
      .shape = randint_like_shape, .run = randint_like_run);
LC_OP(randint_like_low, .kernel = LC_OP_random_,
      .sig =
          "randint_like_low(input: Tensor, low: int, high: int, *, dtype: dtype | None = None, device: device | None = None, "
          "memory_format: memory_format | None = None, generator: Generator | None = None) -> Tensor",
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
    if (refuse_wide_unsigned(call, out->dtype == LC_b8 || lc_is_complex(out->dtype)) < 0) return lc_release(made), -1;
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
