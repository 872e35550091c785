"""Gradient descent: SGD, averaged SGD, Rprop."""

from .. import _C
from ._tensorwise import Tensorwise, descend, each, in_formula, number_for, rate_for, value_of


class SGD(Tensorwise):
    """Stochastic gradient descent, with momentum.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.SGD([p], lr=0.1)
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.8000], requires_grad=True)
    """

    _checks = ("lr", "momentum", "weight_decay")
    _foreach_records = True

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        super().__init__(params, locals())

    def _check_more(self, settings):
        if settings["nesterov"] and (settings["momentum"] <= 0 or settings["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _states_of(self, params, group):
        return super()._states_of(params, group) if group["momentum"] != 0 else [{}] * len(params)

    def _start(self, state, p, group):
        state["momentum_buffer"] = None

    def _fused(self, group, params, grads, states):
        options = {name: group[name] for name in ("momentum", "dampening", "nesterov", "maximize")}
        options |= {"lr": rate_for(params, group), "weight_decay": value_of(group["weight_decay"]), **self._scaling()}
        if group["momentum"] == 0:
            _C._fused_sgd_(params, grads, [], is_first_step=False, **options)
            return
        fresh = [state.get("momentum_buffer") is None for state in states]
        if not any(fresh):
            _C._fused_sgd_(params, grads, each(states, "momentum_buffer"), is_first_step=False, **options)
            return
        if self._any_sparse(grads):
            raise NotImplementedError("sparse gradients have buffers of their own")
        for p, state, first in zip(params, states, fresh):
            if first:
                state["momentum_buffer"] = _C.zeros_like(p, memory_format=_C.preserve_format)
        for first in set(fresh):
            chosen = [i for i, f in enumerate(fresh) if f == first]
            lists = [[values[i] for i in chosen] for values in (params, grads, each(states, "momentum_buffer"))]
            _C._fused_sgd_(*lists, is_first_step=first, **options)

    def _update(self, p, grad, state, group):
        momentum, decay = group["momentum"], in_formula(group["weight_decay"], group)
        if decay != 0:
            grad = grad + p * decay if isinstance(decay, _C.Tensor) else grad.add(p, alpha=decay)
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - group["dampening"])
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        descend(p, grad, in_formula(group["lr"], group))

    def _update_rows(self, p, grad, state, group):
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay is not supported with sparse gradients")
        if group["momentum"] != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
            else:
                buffer = buffer.mul(group["momentum"]).add(grad, alpha=1 - group["dampening"])
                state["momentum_buffer"] = buffer = buffer.coalesce() if buffer.is_sparse else buffer
            grad = grad.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        p.add_(grad, alpha=-value_of(group["lr"]))


class ASGD(Tensorwise):
    """Averaged stochastic gradient descent: the state `ax` holds the mean of the parameters.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.ASGD([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9800], requires_grad=True)
    """

    _checks = ("lr", "weight_decay")

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd=1e-4,
        alpha=0.75,
        t0=1e6,
        weight_decay=0,
        foreach=None,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        super().__init__(params, locals())

    def _start(self, state, p, group):
        lr = in_formula(group["lr"], group)
        state["step"], state["mu"] = _C.zeros((), device=p.device), _C.ones((), device=p.device)
        state["eta"] = (lr.clone() if isinstance(lr, _C.Tensor) else _C.tensor(float(lr))).to(device=p.device)
        state["ax"] = _C.zeros_like(p, memory_format=_C.preserve_format)

    def _fused(self, group, params, grads, states):
        options = {name: group[name] for name in ("lambd", "t0", "alpha", "weight_decay", "maximize")}
        lists = [each(states, name) for name in ("ax", "mu", "eta", "step")]
        _C._fused_asgd_(params, grads, *lists, lr=rate_for(params, group), count=True, **options)

    def _update(self, p, grad, state, group):
        lr, lambd, step = in_formula(group["lr"], group), group["lambd"], state["step"].item()
        if group["weight_decay"] != 0:
            grad = grad.add(p, alpha=group["weight_decay"])
        eta, mu, mean = state["eta"], state["mu"], state["ax"]
        eta = eta if isinstance(lr, _C.Tensor) else eta.item()
        p.mul_(1 - lambd * eta)
        descend(p, grad, eta)
        if mu.item() != 1:
            mean.add_(p.sub(mean).mul_(mu))
        else:
            mean.copy_(p)
        eta = lr / ((1 + lambd * lr * step) ** group["alpha"])
        if isinstance(eta, _C.Tensor):
            state["eta"] = eta
        else:
            state["eta"].fill_(eta)
        mu.fill_(1 / max(1, step - group["t0"]))


class Rprop(Tensorwise):
    """Steps of a size that grows while the sign of the gradient stays the same and shrinks when it turns.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.Rprop([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9900], requires_grad=True)
    """

    _checks = ("lr", "etas")

    def __init__(
        self,
        params,
        lr=1e-2,
        etas=(0.5, 1.2),
        step_sizes=(1e-6, 50),
        *,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        super().__init__(params, locals())

    def _start(self, state, p, group):
        lr = in_formula(group["lr"], group)
        if self._any_sparse([p.grad]):
            raise RuntimeError("Rprop does not support sparse gradients")
        state["step"] = number_for(p, group)
        state["prev"] = _C.zeros_like(p, memory_format=_C.preserve_format)
        both = 1 + 1j if p.is_complex() else 1  # a size for each part
        state["step_size"] = _C.full_like(p.grad, both) * lr

    def _fused(self, group, params, grads, states):
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        options = {"etaminus": shrink, "etaplus": grow, "step_size_min": least, "step_size_max": most, "count": True}
        lists = [each(states, name) for name in ("prev", "step_size", "step")]
        _C._fused_rprop_(params, grads, *lists, maximize=group["maximize"], **options)

    def _update(self, p, grad, state, group):
        shrink, grow = group["etas"]
        previous, size = state["prev"], state["step_size"]
        agreement = grad.mul(previous).sign()
        one, grow, shrink = (p.new_tensor(v) for v in (1.0, grow, shrink))
        factor = _C.where(agreement > 0, grow, _C.where(agreement < 0, shrink, one))
        size.mul_(factor).clamp_(*group["step_sizes"])
        grad = grad.masked_fill(agreement < 0, 0.0)
        p.addcmul_(grad.sign(), size, value=-1)
        previous.copy_(grad)


__all__ = ["ASGD", "Rprop", "SGD"]
