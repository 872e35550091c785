"""L-BFGS: steps from an estimate of the curvature that a short history of gradients gives."""

from .. import _C
from ..autograd import enable_grad, no_grad
from ._tensorwise import value_of
from .optimizer import Optimizer


def _cubic(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with these slopes is least, within bounds."""
    low, high = bounds if bounds is not None else (x1, x2) if x1 <= x2 else (x2, x1)
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    d2_square = d1**2 - g1 * g2
    if d2_square < 0:
        return (low + high) / 2.0
    d2 = d2_square**0.5
    if x1 <= x2:
        least = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        least = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(least, low), high)


def _strong_wolfe(evaluate, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """A step length along d with which both the value and the slope are small enough."""
    d_norm = d.abs().max()
    g = g.clone()
    f_new, g_new = evaluate(x, t, d)
    n_evaluated, gtd_new = 1, g_new.dot(d)
    t_prev, f_prev, g_prev, gtd_prev, done = 0, f, g, gtd, False
    for step in range(max_ls + 1):  # bracket
        if step == max_ls:
            bracket, bracket_f, bracket_g = [0, t], [f, f_new], [g, g_new]
            bracket_gtd = []
            break
        if f_new > f + c1 * t * gtd or (step > 1 and f_new >= f_prev):
            bracket, bracket_f, bracket_g, bracket_gtd = (
                [t_prev, t],
                [f_prev, f_new],
                [g_prev, g_new.clone()],
                [gtd_prev, gtd_new],
            )
            break
        if abs(gtd_new) <= -c2 * gtd:
            bracket, bracket_f, bracket_g, done, bracket_gtd = [t], [f_new], [g_new], True, []
            break
        if gtd_new >= 0:
            bracket, bracket_f, bracket_g, bracket_gtd = (
                [t_prev, t],
                [f_prev, f_new],
                [g_prev, g_new.clone()],
                [gtd_prev, gtd_new],
            )
            break
        least, most, before = t + 0.01 * (t - t_prev), t * 10, t
        t = _cubic(t_prev, f_prev, gtd_prev, t, f_new, gtd_new, bounds=(least, most))
        t_prev, f_prev, g_prev, gtd_prev = before, f_new, g_new.clone(), gtd_new
        f_new, g_new = evaluate(x, t, d)
        n_evaluated += 1
        gtd_new = g_new.dot(d)
    stuck = False
    low, high = (0, 1) if bracket_f[0] <= bracket_f[-1] else (1, 0)
    while not done and step < max_ls:  # zoom
        if abs(bracket[1] - bracket[0]) * d_norm < tolerance_change:
            break
        t = _cubic(bracket[0], bracket_f[0], bracket_gtd[0], bracket[1], bracket_f[1], bracket_gtd[1])
        eps = 0.1 * (max(bracket) - min(bracket))
        if min(max(bracket) - t, t - min(bracket)) < eps:
            if stuck or t >= max(bracket) or t <= min(bracket):
                t = max(bracket) - eps if abs(t - max(bracket)) < abs(t - min(bracket)) else min(bracket) + eps
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        f_new, g_new = evaluate(x, t, d)
        n_evaluated += 1
        gtd_new = g_new.dot(d)
        step += 1
        if f_new > f + c1 * t * gtd or f_new >= bracket_f[low]:
            bracket[high], bracket_f[high], bracket_g[high], bracket_gtd[high] = t, f_new, g_new.clone(), gtd_new
            low, high = (0, 1) if bracket_f[0] <= bracket_f[1] else (1, 0)
        else:
            if abs(gtd_new) <= -c2 * gtd:
                done = True
            elif gtd_new * (bracket[high] - bracket[low]) >= 0:
                for side in (bracket, bracket_f, bracket_g, bracket_gtd):
                    side[high] = side[low]
            bracket[low], bracket_f[low], bracket_g[low], bracket_gtd[low] = t, f_new, g_new.clone(), gtd_new
    return bracket_f[low], bracket_g[low], bracket[low], n_evaluated


class LBFGS(Optimizer):
    """L-BFGS. `step` needs a closure, which it calls several times.

    >>> x = lucid.tensor([3.0], requires_grad=True)
    >>> optimizer = lucid.optim.LBFGS([x])
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure); round(x.item(), 3)
    1.0
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        if isinstance(lr, _C.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state):
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _gather_flat_grad(self):
        return _C._lbfgs_gather([p.new_zeros(p.shape) if p.grad is None else p.grad for p in self._params])

    def _add_grad(self, step_size, direction):
        _C._lbfgs_move_(self._params, direction, value_of(step_size))

    def _directional_evaluate(self, closure, x, t, d):
        self._add_grad(t, d)
        loss, grad = float(closure()), self._gather_flat_grad()
        for p, kept in zip(self._params, x):
            p.copy_(kept)
        return loss, grad

    def _direction(self, state, group, grad):
        """Minus the gradient, times the estimate of the inverse curvature."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        y, s = grad.sub(state["prev_flat_grad"]), state["d"].mul(value_of(state["t"]))
        ys = y.dot(s)
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        if ys > 1e-10:
            if len(dirs) == group["history_size"]:
                for history in (dirs, steps, ro):
                    history.pop(0)
            dirs.append(y), steps.append(s), ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        al = state.setdefault("al", [None] * group["history_size"])
        if not dirs:
            return grad.neg().mul(state["H_diag"])
        d, *al[: len(dirs)] = _C._lbfgs_direction(grad, dirs, steps, ro, state["H_diag"])
        return d

    @no_grad()
    def step(self, closure):
        """Several steps; closure: forgets the gradients, computes the loss and its gradients, returns it."""
        group = self.param_groups[0]
        closure = enable_grad()(closure)
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0), state.setdefault("n_iter", 0)
        first = closure()
        loss, n_evaluated = float(first), 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first
        n = 0
        while n < group["max_iter"]:
            n += 1
            state["n_iter"] += 1
            d = self._direction(state, group, grad)
            previous, previous_loss = grad.clone(memory_format=_C.contiguous_format), loss
            t = group["lr"] if state["n_iter"] > 1 else min(1.0, 1.0 / float(grad.abs().sum())) * group["lr"]
            slope = grad.dot(d)
            state.update(d=d, t=t, prev_flat_grad=previous, prev_loss=previous_loss)
            if slope > -group["tolerance_change"]:
                break
            evaluated = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                x = [p.clone(memory_format=_C.contiguous_format) for p in self._params]
                loss, grad, t, evaluated = _strong_wolfe(
                    lambda x, t, d: self._directional_evaluate(closure, x, t, d), x, t, d, loss, grad, slope
                )
                self._add_grad(t, d)
                stop = grad.abs().max() <= group["tolerance_grad"]
            else:
                self._add_grad(t, d)
                stop = False
                if n != group["max_iter"]:
                    with enable_grad():
                        loss = float(closure())
                    grad = self._gather_flat_grad()
                    stop = grad.abs().max() <= group["tolerance_grad"]
                    evaluated = 1
            state["t"] = t
            n_evaluated += evaluated
            state["func_evals"] += evaluated
            if n == group["max_iter"] or n_evaluated >= group["max_eval"] or stop:
                break
            if d.mul(value_of(t)).abs().max() <= group["tolerance_change"]:
                break
            if abs(loss - previous_loss) < group["tolerance_change"]:
                break
        return first


__all__ = ["LBFGS"]
