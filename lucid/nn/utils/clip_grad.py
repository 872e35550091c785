"""Gradient clipping.

`foreach` has PyTorch's meaning: True and None process a list of tensors in one call (`_foreach_norm`, `_foreach_mul_`,
`_foreach_clamp_`), False one by one. The values are the same. True is refused on devices without ops over lists.
"""

import warnings

from ... import _C
from ...autograd import no_grad

_DEVICES = ("cpu", "cuda")  # where the ops over lists run


def _as_list(tensors):
    if isinstance(tensors, _C.Tensor):
        return [tensors]
    given = list(tensors)
    if not given and not isinstance(tensors, (list, tuple)):
        warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=3)
    return given


def _grads(parameters):
    return [p.grad for p in parameters if p.grad is not None]


def _groups(tensors, foreach):
    """Tensors of one device, dtype and layout together, and whether they go as a list."""
    groups = {}
    for t in tensors:
        groups.setdefault((t.device, t.dtype, t.layout), []).append(t)
    for (device, _, layout), group in groups.items():
        if foreach and device.type not in _DEVICES:
            raise RuntimeError(f"foreach=True was passed, but can't use the foreach API on {device.type} tensors")
        yield device, group, foreach is not False and device.type in _DEVICES and layout == _C.strided


def _total(tensors, norm_type, error_if_nonfinite, foreach):
    norm_type = float(norm_type)
    if not tensors:
        return _C.tensor(0.0)
    norms = []
    with no_grad():
        for _, group, together in _groups(tensors, foreach):
            norms += _C._foreach_norm(group, norm_type) if together else [_C.norm(t, norm_type) for t in group]
        device = tensors[0].device
        total = _C.norm(_C.stack([n.to(device) for n in norms]), norm_type)
    if error_if_nonfinite and not bool(total.isfinite()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
            "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def _scale(grads, max_norm, total_norm, foreach):
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for device, group, together in _groups(grads, foreach):
            by = factor.to(device)
            if together:
                _C._foreach_mul_(group, by)
            else:
                for g in group:
                    g.mul_(by)


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of several tensors as if they were one vector.

    foreach: True or None: one call for all tensors of a device and dtype; False: one call each.

    >>> lucid.nn.utils.get_total_norm([lucid.tensor([3.0]), lucid.tensor([4.0])])
    tensor(5.)
    """
    tensors = [tensors] if isinstance(tensors, _C.Tensor) else list(tensors)
    return _total(tensors, norm_type, error_if_nonfinite, foreach)


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale gradients by max_norm / total_norm if that makes them smaller.

    foreach: True or None: one call for all gradients of a device and dtype; False: one call each.

    >>> p = lucid.nn.Parameter(lucid.zeros(2)); p.grad = lucid.tensor([3.0, 4.0])
    >>> lucid.nn.utils.clip_grads_with_norm_([p], 1.0, lucid.tensor(5.0)); p.grad
    tensor([0.6000, 0.8000])
    """
    grads = _grads([parameters] if isinstance(parameters, _C.Tensor) else parameters)
    if grads:
        _scale(grads, max_norm, total_norm, foreach)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients so that together their norm is at most max_norm. Returns the norm they had.

    foreach: True or None: one call for all gradients of a device and dtype; False: one call each.

    >>> p = lucid.nn.Parameter(lucid.zeros(2)); p.grad = lucid.tensor([3.0, 4.0])
    >>> lucid.nn.utils.clip_grad_norm_([p], 1.0), p.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    grads = _grads(_as_list(parameters))
    total = _total(grads, norm_type, error_if_nonfinite, foreach)
    if grads:
        _scale(grads, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The old name of `clip_grad_norm_`.

    >>> p = lucid.nn.Parameter(lucid.zeros(2)); p.grad = lucid.tensor([3.0, 4.0])
    >>> lucid.nn.utils.clip_grad_norm([p], 1.0)
    tensor(5.)
    """
    warnings.warn("clip_grad_norm is now deprecated in favor of clip_grad_norm_.", FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limit every value of the gradients to [-clip_value, clip_value].

    foreach: True or None: one call for all gradients of a device and dtype; False: one call each.

    >>> p = lucid.nn.Parameter(lucid.zeros(2)); p.grad = lucid.tensor([3.0, 4.0])
    >>> lucid.nn.utils.clip_grad_value_([p], 3.5); p.grad
    tensor([3.0000, 3.5000])
    """
    limit = float(clip_value)
    grads = _grads([parameters] if isinstance(parameters, _C.Tensor) else parameters)
    with no_grad():
        for _, group, together in _groups(grads, foreach):
            if together:
                _C._foreach_clamp_(group, -limit, limit)
            else:
                for g in group:
                    g.clamp_(-limit, limit)


__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]
