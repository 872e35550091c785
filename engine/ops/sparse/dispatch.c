/* Calls with a sparse input.
 *
 * lc_call branches once on the modes of the thread and the flags of its inputs. A sparse input takes the call off the plain path and ends
 * up here, in front of the tape and every kernel; a call without one does not execute a single instruction for it. What becomes of the call:
 *
 *   - the op has a sparse form (sparse.h): that function runs instead. It is a composite of recorded ops.
 *   - an elementwise op of one tensor that maps zero to zero (sin, neg, x * 2, isnan): it runs on the values. Whether it does is found out
 *     by computing f(0), so no list of such ops exists. sin(x + y) is not sin(x) + sin(y), so COO values are summed first.
 *   - anything else is refused by name. Nothing is made dense behind the user's back.
 *
 * An in-place form computes out of place; the tensor then takes over the parts. out= gets a copy.
 *
 * Rejected: an `if (sparse)` in every rule (each op would have to know), and a field of the op block (the form of an op is as
 * separate from its declaration as a backend's kernel, and registers in a table for the same reason). */
#include "sparse.h"
#include "../../op/promote.h"

lc_sparse_form lc_sparse_forms[LC_OP_COUNT];

int runs_as_it_is(UNUSED const lc_op *op, UNUSED const lc_value *in, UNUSED lc_tensor **out) { return 1; }
int runs_its_body(const lc_op *op, const lc_value *in, lc_tensor **out) { return lc_composite_body(op, in, out); }

static const lc_tensor *first_sparse(const lc_record *call)
{
    for (int k = 0; k < call->n_in; k++)
        if (is_sparse(call->in[k])) return call->in[k];
    for (int i = 0; i < call->n_out && call->out_given; i++)
        if (is_sparse(call->out[i])) return call->out[i];
    return NULL;
}

static int refuse(const lc_op *op, lc_layout layout, const char *why)
{
    const lc_op *of = op->inplace_of ? op->inplace_of : op;
    return lc_fail_int(LC_NotImplementedError, "%s%s is not implemented for %s tensors%s", of->py ? of->py : of->name,
                       of == op ? "" : "_", lc_layout_names[layout], why);
}
int refuse_layout(const char *op, const lc_tensor *t)
{
    return lc_fail_int(LC_NotImplementedError, "%s is not implemented for %s tensors", op, lc_layout_names[lc_layout_of(t)]);
}

/* ---- maps that keep zero ---- */
static bool is_map(const lc_record *call)
{
    for (int k = 1; k < call->n_in; k++)
        if (!call->in[k]->is_number && call->in[k] != LC_NONE) return false;
    return call->op->kind == LC_KIND_ELEMENTWISE && call->n_out == 1 && call->n_in >= 1 && !call->op->random;
}
static int call_on(const lc_op *op, const lc_value *in, lc_tensor *x, lc_tensor **out)
{
    lc_value args[op->args->n_params + 1];
    memcpy(args, in, (size_t)op->args->n_params * sizeof *args);
    if (!(args[0].t = x)) return -1;
    return lc_call_scoped(op, args, out);
}
static int keeps_zero(const lc_op *op, const lc_value *in, const lc_tensor *like) /* -1: a failure */
{
    lc_value   device = { .tag = LC_IS_device, .dev = like->device };
    lc_tensor *image;
    if (call_on(op, in, lc_zeros(NULL, 0, LC_OF_DTYPE(like->dtype), device), &image) < 0) return -1;
    lc_tensor *other = lc_ne(image, LC_INTEGER(0));
    int64_t    differs;
    return read_int(other, &differs) < 0 ? -1 : !differs;
}
static int map_form(const lc_op *op, const lc_value *in, lc_tensor **out)
{
    parts    p;
    unsigned modes = lc_modes;
    lc_modes |= LC_NO_GRAD;
    int keeps = keeps_zero(op, in, in(0));
    lc_modes = modes;
    if (keeps < 0) return -1;
    if (!keeps) return refuse(op, lc_layout_of(in(0)), ": it does not map 0 to 0, so the result would be dense");
    bool linear = op->kernel == LC_OP_neg;
    if ((is_coo(in(0)) && !linear ? coalesced_parts(in(0), &p) : parts_of(in(0), &p)) < 0) return -1;
    lc_tensor *values;
    if (call_on(op, in, p.values, &values) < 0) return -1;
    GIVE(with_values(&p, values));
}

/* ---- the call ---- */
static void fill_operands(const lc_record *call, lc_value *operands) /* numbers as the tensors they are in call->in */
{
    int slot = 0;
    for (int k = 0; k < call->op->args->n_params; k++) {
        operands[k] = call->args[k];
        if (call->op->args->params[k].kind == LC_IS_tensor)
            operands[k] = (lc_value){ .tag = LC_IS_tensor, .t = call->in[slot++] };
        else if (operands[k].tag == LC_IS_tensors) slot += operands[k].n;
    }
}

static int take_over(const lc_record *call, lc_tensor *made) /* in place */
{
    lc_tensor *to = call->in[0];
    if (to == made) return 0;
    if (!(lc_modes & (LC_NO_GRAD | LC_INFERENCE_MODE)) && (to->flags | made->flags) & LC_REQUIRES_GRAD)
        return lc_fail_int(LC_NotImplementedError, "%s: writing in place to a sparse tensor is not recorded for gradients",
                           call->op->name);
    if (!lc_same_shape(to, made))
        return lc_fail_int(LC_ShapeMismatch, "%s: output with shape %s doesn't match the broadcast shape %s", call->op->name,
                           LC_SIZES(to->shape, to->ndim), LC_SIZES(made->shape, made->ndim));
    if (!lc_can_cast((lc_dtype)made->dtype, (lc_dtype)to->dtype))
        return lc_fail_int(LC_DtypeMismatch, "%s: result type %s can't be cast to the desired output type %s", call->op->name,
                           lc_dtypes[made->dtype].name, lc_dtypes[to->dtype].name);
    if (!is_sparse(to)) return lc_copy_(to, is_sparse(made) ? lc_to_dense(made, LC_ABSENT, LC_ABSENT) : made, false) ? 0 : -1;
    if (lc_layout_of(made) != lc_layout_of(to))
        return lc_fail_int(LC_LucidError, "%s: the result is %s, the tensor that is written to %s", call->op->name,
                           lc_layout_names[lc_layout_of(made)], lc_layout_names[lc_layout_of(to)]);
    lc_tensor *fitting = made->dtype == to->dtype ? made : lc_to(made, (lc_dtype)to->dtype, false, false, LC_ABSENT);
    if (!fitting || lc_tensor_become(to, fitting) < 0) return -1;
    return lc_bump_version(to), 0;
}
static int give_out(const lc_record *call, lc_tensor *to, lc_tensor *made) /* out= */
{
    if (is_sparse(to) != is_sparse(made))
        return lc_fail_int(LC_LucidError, "%s: out= is %s, the result %s", call->op->name, lc_layout_names[lc_layout_of(to)],
                           lc_layout_names[lc_layout_of(made)]);
    lc_tensor *fitting = made->dtype == to->dtype ? made : lc_to(made, (lc_dtype)to->dtype, false, false, LC_ABSENT);
    if (!fitting) return -1;
    if (is_sparse(to)) return lc_tensor_become(to, fitting) < 0 ? -1 : (lc_bump_version(to), 0);
    if (!lc_same_shape(to, made) && lc_tensor_resize(to, made->ndim, made->shape) < 0) return -1;
    return lc_copy_(to, fitting, false) ? 0 : -1;
}

static int run_form(lc_record *call, lc_sparse_form form, bool then_takes_over)
{
    const lc_op *op = then_takes_over ? call->op->inplace_of : call->op;
    unsigned     failed = lc_failed_calls;
    lc_value     operands[op->args->n_params + 1];
    LC_ARRAY(lc_tensor *, made, call->n_out);
    LC_ARRAY(lc_tensor *, given, call->n_out);
    if (!made || !given) return -1;
    for (int i = 0; i < call->n_out; i++) made[i] = NULL, given[i] = call->out_given ? call->out[i] : NULL;
    fill_operands(call, operands);
    lc_scope scope = lc_scope_open();
    int      rc = form(op, operands, made);
    if (failed != lc_failed_calls) rc = -1;
    for (int i = 0; i < call->n_out && rc == 0; i++) {
        if (!made[i]) rc = -1;
        else if (then_takes_over) rc = take_over(call, made[i]), made[i] = call->in[0];
        else if (given[i]) rc = give_out(call, given[i], made[i]), made[i] = given[i];
    }
    for (int i = call->n_out - 1; i >= 0; i--) call->out[i] = rc == 0 ? lc_scope_take(scope, made[i]) : NULL;
    lc_scope_close(scope);
    return rc;
}

static lc_sparse_form form_of(const lc_op *op) /* another name has the form of its op, name_copy that of the view */
{
    lc_sparse_form form = lc_sparse_forms[op->id];
    if (!form && op->alias_of) form = lc_sparse_forms[op->alias_of->id];
    return form || !op->copy_of ? form : lc_sparse_forms[op->copy_of->id];
}
static int sparse_transform(lc_record *call)
{
    const lc_op     *op = call->op, *of = op->inplace_of;
    lc_sparse_form   form = form_of(op);
    const lc_tensor *first = first_sparse(call);
    if (call->watch & LC_TRACING) lc_reading_values("a sparse tensor"); /* a plan holds dense tensors */
    if (form == runs_as_it_is) return call->watch &= ~(unsigned)LC_SPARSE, 1;
    if (call->watch & LC_BATCHED)
        return lc_fail_int(LC_NotImplementedError, "vmap: %s of a sparse tensor has no batching rule", op->name);
    bool target = of && is_sparse(call->in[0]); /* a form of an in-place op is for dense targets */
    if (form && !target) return run_form(call, form, false);
    if (of && (form = form_of(of))) return run_form(call, form, true);
    if (first == call->in[0] && is_map(call)) return run_form(call, map_form, of != NULL);
    return refuse(op, lc_layout_of(first), "");
}

static __attribute__((constructor)) void start_sparse(void) { lc_sparse_transform = sparse_transform; }
