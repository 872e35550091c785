/* L-BFGS over the parameters as one vector: gathering it, the direction of a step, and the step. lucid/optim/lbfgs.py has
 * the rest, which evaluates a closure repeatedly; these parts would otherwise take a call per parameter and six per history
 * entry.
 *
 * Direction: the two-loop recursion over the history of steps s[i] and gradient differences y[i], the newest last. Each
 * iteration reads two vectors and writes one; its temporaries are scalars. */
#include "../rules.h"

static lc_tensor *as_reals(lc_tensor *t) { return t && lc_is_complex(t->dtype) ? lc_view_as_real(t) : t; }

static int gather_call(const lc_value *in, lc_tensor **out)
{
    int64_t     whole = -1;
    size_t      bytes = (size_t)in[0].n * sizeof(lc_tensor *);
    lc_tensor **flat = lc_alloc(bytes ? bytes : 1);
    if (!flat) return -1;
    bool fine = true;
    for (int i = 0; fine && i < in[0].n; i++) fine = (flat[i] = lc_reshape(as_reals(in[0].ts[i]), &whole, 1)) != NULL;
    out[0] = fine ? lc_cat(flat, in[0].n, 0) : NULL;
    lc_free(flat, bytes ? bytes : 1);
    return out[0] ? 0 : -1;
}
LC_OP(_lbfgs_gather, .sig = "_lbfgs_gather(tensors: list[Tensor]) -> Tensor",
      .doc = "All elements of tensors in one vector; complex ones as two.", .call = gather_call);

static int direction_count(const lc_value *in) { return 1 + in[1].n; }
static int direction_call(const lc_value *in, lc_tensor **out)
{
    lc_tensor *const *y = in[1].ts, *const *s = in[2].ts, *const *ro = in[3].ts, **al = out + 1;
    int               n = in[1].n;
    if (in[2].n != n || in[3].n != n)
        return lc_fail_int(LC_LucidError, "_lbfgs_direction: got %d differences, %d steps and %d products", n, in[2].n,
                           in[3].n);
    lc_tensor *d = out[0] = lc_neg(in(0));
    for (int i = n - 1; i >= 0; i--) {
        al[i] = lc_mul(lc_dot(s[i], d), ro[i]);
        if (!lc_addcmul_(d, y[i], al[i], LC_F(-1))) return -1;
    }
    if (!lc_mul_(d, in(4))) return -1;
    for (int i = 0; i < n; i++)
        if (!lc_addcmul_(d, s[i], lc_sub(al[i], lc_mul(lc_dot(y[i], d), ro[i])), LC_F(1))) return -1;
    return d ? 0 : -1;
}
LC_OP(_lbfgs_direction,
      .sig =
          "_lbfgs_direction(grad: Tensor, old_dirs: list[Tensor], old_stps: list[Tensor], ro: list[Tensor], H_diag: Tensor) -> "
          "list[Tensor]",
      .doc = "The L-BFGS direction from the history of steps; then one coefficient per history entry.",
      .count = direction_count, .call = direction_call);

/* All checks come before the first write. */
static int parts_of(const lc_record *call, lc_tensor **to, lc_tensor **parts)
{
    lc_tensor *direction = call->args[1].t;
    int64_t    at = 0;
    if (direction->ndim != 1 || !lc_is_floating(direction->dtype))
        return lc_fail_int(LC_ShapeMismatch, "_lbfgs_move_: expected a vector of floating point numbers, got %s",
                           LC_SHAPE(direction));
    for (int i = 0; i < call->args[0].n; i++) {
        if (!(to[i] = as_reals(call->args[0].ts[i]))) return -1;
        if (!(parts[i] = lc_reshape(lc_narrow(direction, 0, at, to[i]->numel), to[i]->shape, to[i]->ndim))) return -1;
        at += to[i]->numel;
    }
    return at == direction->numel ? 0 : lc_fail_int(LC_ShapeMismatch, "_lbfgs_move_: the direction has too many elements");
}
static int move_run(const lc_record *call)
{
    int         n = call->args[0].n;
    size_t      bytes = 2 * (size_t)n * sizeof(lc_tensor *);
    unsigned    modes = lc_modes;
    lc_scope    scope = lc_scope_open();
    lc_tensor **to = n ? lc_alloc(bytes) : NULL;
    int         rc = n && !to ? -1 : 0;
    lc_modes |= LC_NO_GRAD;
    if (rc == 0) rc = parts_of(call, to, to + n);
    for (int i = 0; i < n && rc == 0; i++) rc = lc_add_alpha_(to[i], to[n + i], LC_F(call->args[2].f)) ? 0 : -1;
    lc_modes = modes;
    if (to) lc_free(to, bytes);
    return lc_scope_close(scope), rc;
}
LC_OP(_lbfgs_move_, .sig = "_lbfgs_move_(self: list[Tensor], direction: Tensor, alpha: float) -> None",
      .doc = "Add alpha times a vector of all their elements to tensors, in place.", .writes = IN(0),
      .promote = LC_NO_PROMOTION, .run = move_run);
