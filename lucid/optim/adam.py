"""Adam and its relatives."""

from .. import _C
from .._C import Tensor
from ._tensorwise import (
    Tensorwise,
    add_product,
    check_betas,
    descend_quotient,
    each,
    given,
    in_formula,
    number_for,
    rate_for,
    value_of,
)


def _betas(group):
    return tuple(in_formula(beta, group) for beta in group["betas"])


def _run(op, group, params, grads, states, lists, *names, **more):
    """A fused op over these lists of states and the counts, with betas, learning rate and settings of these names."""
    beta1, beta2 = _betas(group)
    options = {**{name: group[name] for name in ("weight_decay", "eps", "maximize", *names)}, **more}
    op(params, grads, *lists, each(states, "step"), lr=rate_for(params, group), beta1=beta1, beta2=beta2, count=True, **options)


def _decayed(p, grad, group, decoupled):
    """Weight decay: of the parameter itself, or as a part of the gradient, which is returned."""
    decay = group["weight_decay"]
    if decay != 0:
        if not decoupled:
            return grad.add(p, alpha=decay)
        p.mul_(1 - in_formula(group["lr"], group) * decay)
    return grad


class _WithBetas(Tensorwise):
    """Running means of two decay rates."""

    _checks, _zeros = ("lr", "eps", "weight_decay"), ("exp_avg", "exp_avg_sq")

    def _check_more(self, settings):
        check_betas(settings)


class Adam(_WithBetas):
    """Steps scaled by running means of the gradient and of its square.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adam([p], lr=0.1)
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        super().__init__(params, locals())

    def _check_more(self, settings):
        super()._check_more(settings)
        betas, alone = settings["betas"], settings["foreach"] and not settings["capturable"]
        if not any(all(isinstance(beta, kind) for beta in betas) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for name, value in (("lr", settings["lr"]), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
            if isinstance(value, Tensor) and alone:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
            if isinstance(value, Tensor) and value.numel() != 1:
                raise ValueError(f"Tensor {name} must be 1-element")

    def _start(self, state, p, group):
        super()._start(state, p, group)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = _C.zeros_like(p, memory_format=_C.preserve_format)

    def _fused(self, group, params, grads, states):
        op = _C._fused_adamw_ if group["decoupled_weight_decay"] else _C._fused_adam_
        largest = each(states, "max_exp_avg_sq") if group["amsgrad"] else []
        lists = (each(states, "exp_avg"), each(states, "exp_avg_sq"), largest)
        _run(op, group, params, grads, states, lists, "amsgrad", **self._scaling())

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group, group["decoupled_weight_decay"])
        (beta1, beta2), step = _betas(group), state["step"].item()
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        add_product(square.mul_(beta2), grad, grad, 1 - beta2)
        if group["amsgrad"]:
            square = _C.maximum(state["max_exp_avg_sq"], square)
            state["max_exp_avg_sq"].copy_(square)
        denominator = (square.sqrt() / (1 - beta2**step) ** 0.5) + group["eps"]
        descend_quotient(p, mean, denominator, in_formula(group["lr"], group) / (1 - beta1**step))


class AdamW(Adam):
    """Adam whose weight decay does not go through the running means.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.AdamW([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9990], requires_grad=True)
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=1e-2,
        amsgrad=False,
        *,
        maximize=False,
        foreach=None,
        capturable=False,
        differentiable=False,
        fused=None,
    ):
        super().__init__(params, **given(locals()), decoupled_weight_decay=True)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class SparseAdam(_WithBetas):
    """Adam for sparse gradients: only the rows that a gradient has are updated, and so are their running means. Dense
    gradients, which PyTorch refuses, update every element.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.SparseAdam([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9990], requires_grad=True)
    """

    _checks = (
        ("lr", "Invalid learning rate: {}", lambda lr: lr > 0.0),
        ("eps", "Invalid epsilon value: {}", lambda eps: eps > 0.0),
    )

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        super().__init__(params, locals())
        if any(p.is_complex() for group in self.param_groups for p in group["params"]):
            raise ValueError("SparseAdam does not support complex parameters")
        sparse = [i for i, p in enumerate(p for group in self.param_groups for p in group["params"]) if p.layout != _C.strided]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")

    def _fused(self, group, params, grads, states):
        (beta1, beta2), lists = _betas(group), [each(states, name) for name in ("exp_avg", "exp_avg_sq", "step")]
        options = {"lr": rate_for(params, group), "eps": group["eps"], "maximize": group["maximize"], "count": True}
        _C._fused_sparse_adam_(params, grads, *lists, beta1=beta1, beta2=beta2, **options)

    def _update(self, p, grad, state, group):
        (beta1, beta2), step = _betas(group), state["step"].item()
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = add_product(state["exp_avg_sq"].mul_(beta2), grad, grad, 1 - beta2)
        size = value_of(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        p.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-size)

    def _update_rows(self, p, grad, state, group):
        """The rows, and those of the running means, are taken out, updated by the fused step, and put back."""
        (beta1, beta2), grad = _betas(group), grad.coalesce()
        if grad._nnz() == 0:
            return
        values, whole = grad._values(), [p, state["exp_avg"], state["exp_avg_sq"]]
        options = {"lr": value_of(group["lr"]), "eps": group["eps"], "maximize": False, "count": False}
        if grad.sparse_dim() == 0:
            rows, values = whole, grad.to_dense()
        elif grad.sparse_dim() == 1:
            index = grad._indices()[0]
            rows = [t.index_select(0, index) for t in whole]
        else:
            index = tuple(grad._indices())
            rows = [t[index] for t in whole]
        _C._fused_sparse_adam_([rows[0]], [values], [rows[1]], [rows[2]], [state["step"]], beta1=beta1, beta2=beta2, **options)
        for t, row in zip(whole, rows):
            if grad.sparse_dim() == 1:
                t.index_copy_(0, index, row)
            elif grad.sparse_dim() > 1:
                t.index_put_(index, row)


class Adamax(_WithBetas):
    """Adam with the largest gradient so far in place of the mean square.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adamax([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9980], requires_grad=True)
    """

    _zeros = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        super().__init__(params, locals())

    def _fused(self, group, params, grads, states):
        _run(_C._fused_adamax_, group, params, grads, states, (each(states, "exp_avg"), each(states, "exp_inf")))

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group, False)
        (beta1, beta2), step = _betas(group), state["step"].item()
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        most = _C.maximum(state["exp_inf"] * beta2, grad.abs() + group["eps"])
        if group["differentiable"]:
            state["exp_inf"] = most
        else:
            state["exp_inf"].copy_(most)
        descend_quotient(p, mean, most, in_formula(group["lr"], group) / (1 - beta1**step))


class NAdam(_WithBetas):
    """Adam with Nesterov's momentum.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.NAdam([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9979], requires_grad=True)
    """

    _checks = ("lr", "eps", "weight_decay", "momentum_decay")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        super().__init__(params, locals())

    def _start(self, state, p, group):
        super()._start(state, p, group)
        state["mu_product"] = number_for(p, group, 1.0)

    def _fused(self, group, params, grads, states):
        lists = [each(states, name) for name in ("exp_avg", "exp_avg_sq", "mu_product")]
        _run(_C._fused_nadam_, group, params, grads, states, lists, "momentum_decay", "decoupled_weight_decay")

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group, group["decoupled_weight_decay"])
        (beta1, beta2), step, lr = _betas(group), state["step"].item(), in_formula(group["lr"], group)
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (s * group["momentum_decay"])) for s in (step, step + 1))
        state["mu_product"] *= mu
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = add_product(state["exp_avg_sq"].mul_(beta2), grad, grad, 1 - beta2)
        denominator = square.div(1 - beta2**step).sqrt() + group["eps"]
        product = state["mu_product"].item()
        descend_quotient(p, grad, denominator, lr * (1.0 - mu) / (1.0 - product))
        descend_quotient(p, mean, denominator, lr * mu_next / (1.0 - product * mu_next))


class RAdam(_WithBetas):
    """Rectified Adam: the first steps, in which the variance of the adaptive rate is not tractable, do not use it.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.RAdam([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9980], requires_grad=True)
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        super().__init__(params, locals())

    def _fused(self, group, params, grads, states):
        lists = (each(states, "exp_avg"), each(states, "exp_avg_sq"))
        _run(_C._fused_radam_, group, params, grads, states, lists, "decoupled_weight_decay")

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group, group["decoupled_weight_decay"])
        (beta1, beta2), step, lr = _betas(group), state["step"].item(), in_formula(group["lr"], group)
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = add_product(state["exp_avg_sq"].mul_(beta2), grad, grad, 1 - beta2)
        corrected = mean / (1 - beta1**step)
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / (1 - beta2**step)
        if length > 5.0:
            rectified = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
            scale = (1 - beta2**step) ** 0.5 / (square.sqrt() + group["eps"])
            p.add_(corrected * lr * scale * rectified, alpha=-1.0)
        else:
            p.add_(corrected * lr, alpha=-1.0)


__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"]
