"""Optimizers that scale by the history of squared gradients: Adagrad, Adadelta, RMSprop, Adafactor."""

from .. import _C
from ._tensorwise import Tensorwise, descend, descend_quotient, each, in_formula, number_for, rate_for, value_of


class Adagrad(Tensorwise):
    """Steps scaled by the sum of all squared gradients.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adagrad([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9900], requires_grad=True)
    """

    _checks = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(params, locals())
        for group in self.param_groups:
            for p in group["params"]:
                self._start(self.state[p], p, group)

    def _start(self, state, p, group):
        start = group["initial_accumulator_value"]
        state["step"] = number_for(p, group)
        state["sum"] = _C.full_like(p, complex(start, start) if p.is_complex() else start, memory_format=_C.preserve_format)
        state["sum"].requires_grad_(False)

    def share_memory(self):
        """Move the state into memory that other processes can use."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _fused(self, group, params, grads, states):
        options = {name: group[name] for name in ("lr_decay", "weight_decay", "eps", "maximize")}
        options |= {"lr": rate_for(params, group), "count": True, **self._scaling()}
        _C._fused_adagrad_(params, grads, each(states, "sum"), each(states, "step"), **options)

    def _update(self, p, grad, state, group):
        step, total = state["step"].item(), state["sum"]
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        lr = in_formula(group["lr"], group) / (1 + (step - 1) * group["lr_decay"])
        total.addcmul_(grad, grad, value=1)
        descend_quotient(p, grad, total.sqrt() + group["eps"], lr)

    def _update_rows(self, p, grad, state, group):
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        rate = value_of(group["lr"]) / (1 + (state["step"].item() - 1) * group["lr_decay"])
        grad, total = grad.coalesce(), state["sum"]
        total.add_(grad * grad)
        size = total.sparse_mask(grad)._values().sqrt_().add_(group["eps"])
        p.add_(_C._sparse_coo(grad._indices(), grad._values() / size, grad.shape, True), alpha=-rate)


class Adadelta(Tensorwise):
    """Steps scaled by running means of squared gradients and of squared steps.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adadelta([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9968], requires_grad=True)
    """

    _checks, _zeros = ("lr", "rho", "eps", "weight_decay"), ("square_avg", "acc_delta")

    def __init__(
        self,
        params,
        lr=1.0,
        rho=0.9,
        eps=1e-6,
        weight_decay=0,
        foreach=None,
        *,
        capturable=False,
        maximize=False,
        differentiable=False,
    ):
        super().__init__(params, locals())

    def _fused(self, group, params, grads, states):
        options = {name: group[name] for name in ("rho", "weight_decay", "eps", "maximize")}
        lists = [each(states, name) for name in ("square_avg", "acc_delta", "step")]
        _C._fused_adadelta_(params, grads, *lists, lr=rate_for(params, group), count=True, **options)

    def _update(self, p, grad, state, group):
        rho, eps, square, steps = group["rho"], group["eps"], state["square_avg"], state["acc_delta"]
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        delta = steps.add(eps).sqrt() / square.add(eps).sqrt() * grad
        steps.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        descend(p, delta, in_formula(group["lr"], group))


class RMSprop(Tensorwise):
    """Steps scaled by a running mean of squared gradients.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.RMSprop([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9000], requires_grad=True)
    """

    _checks, _zeros = ("lr", "eps", "momentum", "weight_decay", "alpha"), ("square_avg",)

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        super().__init__(params, locals())

    def _start(self, state, p, group):
        super()._start(state, p, group)
        for name, wanted in (("momentum_buffer", group["momentum"] > 0), ("grad_avg", group["centered"])):
            if wanted:
                state[name] = _C.zeros_like(p, memory_format=_C.preserve_format)

    def _fused(self, group, params, grads, states):
        options = {name: group[name] for name in ("alpha", "weight_decay", "eps", "momentum", "centered", "maximize")}
        means = each(states, "grad_avg") if group["centered"] else []
        buffers = each(states, "momentum_buffer") if group["momentum"] > 0 else []
        lists = each(states, "square_avg"), means, buffers, each(states, "step")
        _C._fused_rmsprop_(params, grads, *lists, lr=rate_for(params, group), count=True, **options)

    def _update(self, p, grad, state, group):
        alpha, square, lr = group["alpha"], state["square_avg"], in_formula(group["lr"], group)
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        square.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"].lerp_(grad, 1 - alpha)
            deviation = square.addcmul(mean, mean, value=-1).sqrt()
        else:
            deviation = square.sqrt()
        deviation = deviation + group["eps"]
        if group["momentum"] > 0:
            buffer = state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(grad, deviation)
            descend(p, buffer, lr)
        else:
            descend_quotient(p, grad, deviation, lr)


class Adafactor(Tensorwise):
    """Steps scaled by squared gradients, stored as one row and one column per matrix, which saves memory.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adafactor([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9900], requires_grad=True)
    """

    _checks = (
        ("lr", "Learning rate should be >= 0 but is: {}", lambda lr: lr >= 0.0),
        ("beta2_decay", "beta2_decay should be <= 0 but is: {}", lambda decay: decay <= 0.0),
        ("eps", "epsilon1 should be >= 0 but is: {0[0]}", lambda eps: eps[0] is None or eps[0] >= 0.0),
        ("eps", "epsilon2 should be >= 0 but is: {0[1]}", lambda eps: eps[1] >= 0.0),
        ("d", "Clipping threshold d should be >= 1 but is: {}", lambda d: d >= 1.0),
        ("weight_decay", "weight_decay should be >= 0 but is: {}", lambda decay: decay >= 0.0),
    )

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        super().__init__(params, locals())

    def _start(self, state, p, group):
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        grad = p.grad
        state["step"] = number_for(p, group)
        if grad.dim() > 1:
            state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            state["variance"] = _C.zeros_like(grad, memory_format=_C.preserve_format)

    def _fused(self, group, params, grads, states):
        names = [("row_var", "col_var") if p.dim() > 1 else ("variance",) for p in params]
        variances = [state[name] for state, each_name in zip(states, names) for name in each_name]
        options = {name: group[name] for name in ("beta2_decay", "d", "weight_decay", "maximize")}
        options |= dict(zip(("eps1", "eps2"), group["eps"]), lr=value_of(group["lr"]), count=True)
        _C._fused_adafactor_(params, grads, variances, each(states, "step"), **options)

    def _update(self, p, grad, state, group):
        eps1, eps2 = group["eps"]
        if eps1 is None:
            from .. import finfo

            eps1 = finfo(next(q for q in group["params"] if q.grad is not None).dtype).eps  # the first one's, as in PyTorch
        step, lr = state["step"].item(), value_of(group["lr"])
        new = step ** group["beta2_decay"]
        alpha = max(eps2, p.norm(2).item() / p.numel() ** 0.5) * min(lr, 1 / step**0.5)
        if group["weight_decay"] != 0:
            p.mul_(1 - lr * group["weight_decay"])
        if grad.dim() > 1:
            rows = state["row_var"].lerp_(_C.norm(grad, dim=-1, keepdim=True).square_().div_(grad.size(-1)), new)
            columns = state["col_var"].lerp_(_C.norm(grad, dim=-2, keepdim=True).square_().div_(grad.size(-2)), new)
            variance = (rows @ columns).div_(rows.mean(dim=-2, keepdim=True).clamp_(min=eps1))
        else:
            variance = state["variance"].lerp_(grad * grad, new).clone()
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        p.add_(update, alpha=-alpha / max(1.0, update.norm(2).item() / (update.numel() ** 0.5 * group["d"])))


__all__ = ["Adadelta", "Adafactor", "Adagrad", "RMSprop"]
