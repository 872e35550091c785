/* Copies and fills that the engine makes by itself, outside any op: plain kernels, unless a trace is running, which has to see them. */
#include "op.h"

#include "op_calls.gen.h"

static int call_unrecorded(const lc_op *op, const lc_value *args)
{
    lc_tensor *out;
    unsigned   modes = lc_modes;
    lc_modes |= LC_NO_GRAD;
    int rc = lc_call(op, args, &out);
    lc_modes = modes;
    if (rc == 0) lc_release(out);
    return rc;
}

int lc_copy_values(lc_tensor *to, lc_tensor *from)
{
    const lc_backend *backend = lc_backend_of(to->device);
    if (!backend) return -1;
    if (!(lc_modes & LC_TRACING)) return backend->copy(to, from);
    return call_unrecorded(&lc_op_copy_,
                           (lc_value[]){ { .tag = LC_IS_tensor, .t = to }, { .tag = LC_IS_tensor, .t = from }, LC_B(false) });
}

int lc_fill_values(lc_tensor *to, int64_t number)
{
    const lc_backend *backend = lc_backend_of(to->device);
    if (!backend) return -1;
    if (!(lc_modes & LC_TRACING)) return backend->fill(to, LC_INTEGER(number));
    return call_unrecorded(&lc_op_fill_, (lc_value[]){ { .tag = LC_IS_tensor, .t = to }, LC_I(number) });
}
