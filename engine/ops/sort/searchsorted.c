/* searchsorted, bucketize, isin. Nothing here has a gradient: results are integers and bools. */
#include "../rules.h"

/* An operand (tensor or Python scalar) as a contiguous tensor of the promoted dtype: new reference. float16 and bfloat16
 * become float32. */
static lc_tensor *operand_in(lc_tensor *t, lc_dtype dtype, lc_dtype working, lc_device device)
{
    lc_tensor *made;
    if (t->is_number) {
        if ((made = lc_tensor_new(dtype, device, 0, NULL)) && fill_tensor(made, t) < 0) lc_release(made), made = NULL;
    } else made = packed(t, dtype);
    if (!made || working == dtype) return made;
    lc_tensor *wide = packed(made, working);
    return lc_release(made), wide;
}

/* ---- searchsorted, bucketize ---- */
typedef struct {
    lc_tensor *sequence, *values, *sorter;
} searched;

static int place_spec(const lc_record *call, lc_spec *out, const lc_tensor *values, bool narrow)
{
    return spec_like(call, out, values, narrow ? LC_i32 : LC_i64), 0;
}
static int search_with(const lc_record *call, searched s, bool right)
{
    lc_dtype       working = working_dtype(call->dtype);
    lc_record      typed = *call;
    lc_device      device = call->out[0]->device;
    lc_search_args a = { .out = call->out[0], .right = right, .one = s.sequence->ndim == 1 };
    lc_tensor     *sequence = operand_in(s.sequence, call->dtype, working, device), *sorter = NULL;
    lc_tensor     *values = sequence ? operand_in(s.values, call->dtype, working, device) : NULL;
    int            rc = values ? 0 : -1;
    if (rc == 0 && s.sorter != LC_NONE && !(sorter = packed(s.sorter, LC_i64))) rc = -1;
    a.sequence = sequence, a.values = values, a.sorter = sorter, a.n = s.sequence->shape[s.sequence->ndim - 1];
    a.each = s.values->ndim ? s.values->shape[s.values->ndim - 1] : 1;
    typed.dtype = working;
    if (rc == 0) rc = run_kernel_with(&typed, &a);
    return lc_release(sequence), lc_release(values), lc_release(sorter), rc;
}
static int check_sequence(const lc_record *call, const lc_tensor *sequence, bool narrow)
{
    if (sequence->ndim == 0)
        return lc_fail_int(LC_ShapeMismatch, "%s(): boundaries tensor should have positive dimension, but got 0 dimension",
                           call->op->name);
    if (narrow && sequence->shape[sequence->ndim - 1] >= INT32_MAX)
        return lc_fail_int(LC_LucidError, "%s(): the size of the boundaries' last dimension does not fit int32",
                           call->op->name);
    return 0;
}

/* searchsorted(sorted_sequence, input, *, out_int32, right, side, sorter) */
static int search_side(const lc_value *right, const lc_value *side, bool *result)
{
    *result = right->b;
    if (side->tag != LC_IS_str) return 0;
    bool left = !strcmp(side->s, "left");
    if (!left && strcmp(side->s, "right"))
        return lc_fail_int(LC_LucidError, "searchsorted(): side can only be 'left' or 'right' but got %s", side->s);
    if (left && right->b)
        return lc_fail_int(LC_LucidError,
                           "searchsorted(): side and right can't be set to opposites, got side of left while right was True");
    return *result = !left, 0;
}
static int searchsorted_shape(const lc_record *call, lc_spec *out)
{
    const lc_tensor *sequence = call->in[0], *values = call->in[1], *sorter = call->in[2];
    bool             right, fits;
    if (search_side(&call->args[3], &call->args[4], &right) < 0) return -1;
    if (sorter != LC_NONE && !(lc_same_shape(sorter, sequence) && sorter->dtype == LC_i64))
        return lc_fail_int(LC_ShapeMismatch,
                           "searchsorted(): sorter must have dtype int64 and the size of the boundaries %s, but got %s",
                           LC_SHAPE(sequence), LC_SHAPE(sorter));
    if (check_sequence(call, sequence, call->args[2].b) < 0) return -1;
    fits = sequence->ndim == 1 ||
           (sequence->ndim == values->ndim && lc_same_sizes(sequence->shape, values->shape, values->ndim - 1));
    if (!fits)
        return lc_fail_int(LC_ShapeMismatch,
                           "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
                           "tensor and input value tensor must match, but we got %s and %s",
                           LC_SHAPE(sequence), LC_SHAPE(values));
    return place_spec(call, out, values, call->args[2].b);
}
static int searchsorted_run(const lc_record *call)
{
    bool right;
    if (search_side(&call->args[3], &call->args[4], &right) < 0) return -1;
    return search_with(call, (searched){ call->in[0], call->in[1], call->in[2] }, right);
}
LC_OP(searchsorted,
      .sig = "searchsorted(sorted_sequence: Tensor, input: Tensor | Number, *, out_int32: bool = False, right: bool = False, "
             "side: str | None = None, sorter: Tensor | None = None) -> Tensor",
      .doc = "Where each value would be inserted into the sorted last dimension: before equal values, or behind them if right.",
      .out = true, .shape = searchsorted_shape, .run = searchsorted_run);

/* bucketize(input, boundaries, *, out_int32, right) */
static int bucketize_shape(const lc_record *call, lc_spec *out)
{
    if (call->in[1]->ndim != 1)
        return lc_fail_int(LC_ShapeMismatch, "bucketize(): boundaries tensor must be 1 dimension, but got dim(%d)",
                           call->in[1]->ndim);
    if (check_sequence(call, call->in[1], call->args[2].b) < 0) return -1;
    return place_spec(call, out, call->in[0], call->args[2].b);
}
static int bucketize_run(const lc_record *call)
{
    return search_with(call, (searched){ call->in[1], call->in[0], LC_NONE }, call->args[3].b);
}
LC_OP(bucketize, .batching = LC_BATCH_FRONT, .batched = IN(0),
      .sig = "bucketize(input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor",
      .doc = "The bucket between sorted boundaries that each value falls into; a boundary belongs to the bucket on its left, "
             "or if right to "
             "that on its right.",
      .out = true, .kernel = LC_OP_searchsorted, .shape = bucketize_shape, .run = bucketize_run);

/* ---- isin ---- */
static int isin_shape(const lc_record *call, lc_spec *out)
{
    for (int k = 0; k < 2; k++)
        if (call->in[k]->dtype == LC_b8 || lc_is_complex(call->in[k]->dtype))
            return lc_fail_int(LC_LucidError, "isin(): unsupported input type %s", lc_dtypes[call->in[k]->dtype].name);
    if (call->in[0]->is_number && call->in[1]->is_number)
        return lc_fail_int(LC_TypeError, "isin(): elements or test_elements must be a tensor");
    return spec_like(call, out, call->in[0], LC_b8), 0;
}
static int isin_run(const lc_record *call)
{
    lc_isin_args a = { .out = call->out[0], .invert = call->args[3].b };
    if (call->in[1]->is_number) /* a comparison: the scalar need not fit the dtype */
        return elementwise_as(call, a.invert ? LC_OP_ne : LC_OP_eq, call->in, 2);
    lc_tensor *elements = operand_in(call->in[0], call->dtype, call->dtype, call->out[0]->device);
    lc_tensor *tests = elements ? operand_in(call->in[1], call->dtype, call->dtype, call->out[0]->device) : NULL;
    a.elements = elements, a.tests = tests;
    int rc = tests ? run_kernel_with(call, &a) : -1;
    return lc_release(elements), lc_release(tests), rc;
}
LC_OP(isin,
      .sig = "isin(elements: Tensor | Number, test_elements: Tensor | Number, *, assume_unique: bool = False, "
             "invert: bool = False) -> Tensor",
      .doc = "For each element whether it is among the test elements; invert: whether it is not. assume_unique may be said, "
             "but does "
             "not make it faster.",
      .out = true, .shape = isin_shape, .run = isin_run);
