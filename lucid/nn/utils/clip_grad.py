"""Limits for gradients."""

import warnings

from ... import _C
from ...autograd import no_grad


def _with_grads(parameters):
    if isinstance(parameters, _C.Tensor):
        parameters = [parameters]
    else:
        parameters = list(parameters)
        if not parameters:
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=4)
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of several tensors as if they were one vector.

    >>> lucid.nn.utils.get_total_norm([lucid.tensor([3.0]), lucid.tensor([4.0])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, _C.Tensor) else list(tensors)
    if not tensors:
        return _C.tensor(0.0)
    device, norm_type = tensors[0].device, float(norm_type)
    with no_grad():
        norms = [_C.norm(t, norm_type).to(device) for t in tensors]
        total = _C.norm(_C.stack(norms), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale gradients by max_norm / total_norm if that makes them smaller.

    >>> p = lucid.nn.Parameter(lucid.zeros(2)); p.grad = lucid.tensor([3.0, 4.0])
    >>> lucid.nn.utils.clip_grads_with_norm_([p], 1.0, lucid.tensor(5.0)); p.grad
    tensor([0.6000, 0.8000])
    """
    grads = _with_grads(parameters)
    if not grads:
        return
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(factor.to(g.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients so that together their norm is at most max_norm. Returns the norm they had.

    >>> p = lucid.nn.Parameter(lucid.zeros(2)); p.grad = lucid.tensor([3.0, 4.0])
    >>> lucid.nn.utils.clip_grad_norm_([p], 1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    if not isinstance(parameters, _C.Tensor):
        parameters = list(parameters)
    total = get_total_norm(_with_grads(parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of `clip_grad_norm_`."""
    warnings.warn("clip_grad_norm is now deprecated in favor of clip_grad_norm_.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limit every value of the gradients to [-clip_value, clip_value].

    >>> p = lucid.nn.Parameter(lucid.zeros(2)); p.grad = lucid.tensor([3.0, 4.0])
    >>> lucid.nn.utils.clip_grad_value_([p], 3.5); p.grad
    tensor([3.0000, 3.5000])
    """
    limit = float(clip_value)
    with no_grad():
        for g in _with_grads(parameters):
            g.clamp_(-limit, limit)


__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
