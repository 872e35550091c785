"""Adam and its relatives."""

from .. import _C
from .._C import Tensor
from ._tensorwise import Tensorwise, check, check_lr, check_switches, each, step_count, value_of


def _check_betas(betas):
    for i, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def _moments(state, p, *names):
    for name in names:
        state[name] = _C.zeros_like(p, memory_format=_C.preserve_format)


def _betas(group):
    return tuple(value_of(beta) for beta in group["betas"])


def _run(op, group, params, grads, states, lists, *names):
    """A fused op over these lists of states and the counts, with betas, learning rate and settings of these names."""
    beta1, beta2 = _betas(group)
    options = {name: group[name] for name in ("weight_decay", "eps", "maximize", *names)}
    op(params, grads, *lists, each(states, "step"), lr=value_of(group["lr"]), beta1=beta1, beta2=beta2, **options)


def _decayed(p, grad, group, decoupled):
    """Weight decay: of the parameter itself, or as a part of the gradient, which is returned."""
    decay = group["weight_decay"]
    if decay != 0:
        if not decoupled:
            return grad.add(p, alpha=decay)
        p.mul_(1 - value_of(group["lr"]) * decay)
    return grad


class Adam(Tensorwise):
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
        check_lr(lr, capturable, foreach)
        check("epsilon value", eps, eps >= 0.0)
        _check_betas(betas)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        if len({isinstance(beta, Tensor) for beta in betas}) > 1:
            raise ValueError("betas must be either both floats or both Tensors")
        if isinstance(betas[0], Tensor):
            if not capturable and foreach:
                raise ValueError("betas[0] as a Tensor is not supported for capturable=False and foreach=True")
            if any(beta.numel() != 1 for beta in betas):
                raise ValueError("Tensor betas[0] must be 1-element")
        check_switches(foreach, fused, differentiable)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state, p, group):
        state["step"] = step_count()
        _moments(state, p, "exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []))

    def _fused(self, group, params, grads, states):
        op = _C._fused_adamw_ if group["decoupled_weight_decay"] else _C._fused_adam_
        largest = each(states, "max_exp_avg_sq") if group["amsgrad"] else []
        lists = (each(states, "exp_avg"), each(states, "exp_avg_sq"), largest)
        _run(op, group, params, grads, states, lists, "amsgrad")

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group, group["decoupled_weight_decay"])
        (beta1, beta2), step = _betas(group), state["step"].item()
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        if group["amsgrad"]:
            square = _C.maximum(state["max_exp_avg_sq"], square)
            state["max_exp_avg_sq"].copy_(square)
        if group["differentiable"]:
            square = square.clone()
        denominator = (square.sqrt() / (1 - beta2**step) ** 0.5).add_(group["eps"])
        p.addcdiv_(mean, denominator, value=-value_of(group["lr"]) / (1 - beta1**step))


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
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


class SparseAdam(Tensorwise):
    """Adam as PyTorch writes it for sparse gradients; Lucid's gradients are dense, so every element is updated.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.SparseAdam([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9990], requires_grad=True)
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 < lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        check("epsilon value", eps, eps > 0.0)
        _check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        if any(p.is_complex() for group in self.param_groups for p in group["params"]):
            raise ValueError("SparseAdam does not support complex parameters")

    def _start(self, state, p, group):
        state["step"] = step_count()
        _moments(state, p, "exp_avg", "exp_avg_sq")

    def _update(self, p, grad, state, group):
        (beta1, beta2), step = _betas(group), state["step"].item()
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        size = value_of(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        p.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-size)


class Adamax(Tensorwise):
    """Adam with the largest gradient so far in place of the mean square.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.Adamax([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9980], requires_grad=True)
    """

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
        check_lr(lr, capturable, foreach)
        check("epsilon value", eps, eps >= 0.0)
        _check_betas(betas)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state, p, group):
        state["step"] = step_count()
        _moments(state, p, "exp_avg", "exp_inf")

    def _fused(self, group, params, grads, states):
        _run(_C._fused_adamax_, group, params, grads, states, (each(states, "exp_avg"), each(states, "exp_inf")))

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group, False)
        (beta1, beta2), step = _betas(group), state["step"].item()
        mean, most = state["exp_avg"].lerp_(grad, 1 - beta1), state["exp_inf"]
        most.copy_(_C.maximum(most.mul_(beta2), grad.abs().add_(group["eps"])))
        p.addcdiv_(mean, most.clone() if group["differentiable"] else most, value=-value_of(group["lr"]) / (1 - beta1**step))


class NAdam(Tensorwise):
    """Adam with Nesterov's momentum.

    >>> p = lucid.tensor([1.0], requires_grad=True)
    >>> optimizer = lucid.optim.NAdam([p])
    >>> (p * p).sum().backward(); optimizer.step(); p
    tensor([0.9979], requires_grad=True)
    """

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
        check_lr(lr, capturable, foreach)
        check("epsilon value", eps, eps >= 0.0)
        _check_betas(betas)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        check("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state, p, group):
        state["step"] = step_count()
        state["mu_product"] = _C.ones(())
        _moments(state, p, "exp_avg", "exp_avg_sq")

    def _fused(self, group, params, grads, states):
        lists = [each(states, name) for name in ("exp_avg", "exp_avg_sq", "mu_product")]
        _run(_C._fused_nadam_, group, params, grads, states, lists, "momentum_decay", "decoupled_weight_decay")

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group, group["decoupled_weight_decay"])
        (beta1, beta2), step, lr = _betas(group), state["step"].item(), value_of(group["lr"])
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (s * group["momentum_decay"])) for s in (step, step + 1))
        state["mu_product"] *= mu
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = square.div(1 - beta2**step).sqrt().add_(group["eps"])
        product = state["mu_product"].item()
        p.addcdiv_(grad, denominator, value=-lr * (1.0 - mu) / (1.0 - product))
        p.addcdiv_(mean, denominator, value=-lr * mu_next / (1.0 - product * mu_next))


class RAdam(Tensorwise):
    """Adam whose first steps, while the mean square is not to be trusted, do without it.

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
        check_lr(lr, capturable, foreach)
        check("epsilon value", eps, eps >= 0.0)
        _check_betas(betas)
        check("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _start(self, state, p, group):
        state["step"] = step_count()
        _moments(state, p, "exp_avg", "exp_avg_sq")

    def _fused(self, group, params, grads, states):
        lists = (each(states, "exp_avg"), each(states, "exp_avg_sq"))
        _run(_C._fused_radam_, group, params, grads, states, lists, "decoupled_weight_decay")

    def _update(self, p, grad, state, group):
        grad = _decayed(p, grad, group, group["decoupled_weight_decay"])
        (beta1, beta2), step, lr = _betas(group), state["step"].item(), value_of(group["lr"])
        mean = state["exp_avg"].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        corrected = mean / (1 - beta1**step)
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / (1 - beta2**step)
        if length > 5.0:
            rectified = ((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)) ** 0.5
            scale = (1 - beta2**step) ** 0.5 / square.sqrt().add_(group["eps"])
            p.add_(corrected * lr * scale * rectified, alpha=-1.0)
        else:
            p.add_(corrected * lr, alpha=-1.0)


__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "SparseAdam"]
