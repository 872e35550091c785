"""Muon: momentum whose update is made orthogonal."""

import math

from .. import _C
from ._tensorwise import Tensorwise, each, value_of


def _orthogonalised(update, coefficients, steps, eps):
    """An approximation of the nearest orthogonal matrix, by Newton-Schulz iterations in bfloat16."""
    a, b, c = coefficients
    x, tall = update.bfloat16(), update.size(0) > update.size(1)
    if tall:
        x = x.T
    x = x.div(x.norm().clamp(min=eps))
    for _ in range(steps):
        gram = x @ x.T
        x = _C.addmm(x, _C.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x


def _adjusted(lr, how, shape):
    rows, columns = shape[:2]
    if how is None or how == "original":
        return lr * math.sqrt(max(1, rows / columns))
    return lr * 0.2 * math.sqrt(max(rows, columns))


class Muon(Tensorwise):
    """Momentum for matrices, its update made orthogonal before it is applied.

    >>> p = lucid.eye(2).requires_grad_()
    >>> optimizer = lucid.optim.Muon([p], lr=0.1)
    >>> (p * p).sum().backward(); optimizer.step()
    >>> bool((p.diagonal() < 1).all())
    True
    """

    _checks = (
        ("lr", "Learning rate should be >= 0 but is: {}", lambda lr: lr >= 0.0),
        ("momentum", "momentum should be >= 0 but is: {}", lambda momentum: momentum >= 0.0),
        ("weight_decay", "weight decay should be >= 0 but is: {}", lambda decay: decay >= 0.0),
        (
            "adjust_lr_fn",
            "Adjust learning rate function {} is not supported",
            (None, "original", "match_rms_adamw").__contains__,
        ),
    )

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.7750, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        super().__init__(params, locals())
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _start(self, state, p, group):
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        state["momentum_buffer"] = _C.zeros_like(p.grad, memory_format=_C.preserve_format)

    def _in_one_call(self, group, params):
        if any(p.grad.dim() != 2 for p in params):
            raise ValueError("Param gradient must be a 2D matrix")
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        return super()._in_one_call(group, params)

    def _fused(self, group, params, grads, states):
        options = {name: group[name] for name in ("weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps")}
        options |= {"lr": value_of(group["lr"]), "match_rms_adamw": group["adjust_lr_fn"] == "match_rms_adamw"}
        _C._fused_muon_(params, grads, each(states, "momentum_buffer"), **options)

    def _update(self, p, grad, state, group):
        momentum, lr = group["momentum"], value_of(group["lr"])
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonalised(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(update, alpha=-_adjusted(lr, group["adjust_lr_fn"], p.shape))


__all__ = ["Muon"]
