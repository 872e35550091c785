"""Starting values for parameters, drawn as PyTorch draws them: the same seed gives the same weights."""

from math import erf, sqrt

from .. import _C
from ..autograd import no_grad

__all__ = ["trunc_normal_"]


def _below(x):
    """The part of a standard normal distribution below x."""
    return (1.0 + erf(x / sqrt(2.0))) / 2.0


def _redraw_outside(tensor, mean, std, low, high, generator):
    low, high = (tensor.new_tensor(bound, device="cpu").item() for bound in (low, high))  # as the dtype holds them
    kept = tensor.normal_(mean, std, generator=generator)
    while (outside := (kept < low) | (kept > high)).any():
        kept = _C.where(outside, _C.empty_like(kept).normal_(mean, std, generator=generator), kept)
    return kept


def _choose_from_uniform(tensor, mean, std, low, high, generator):
    """Candidates between the bounds, each accepted with a chance of its density over the greatest one."""
    peak = -0.5 * ((max(low, min(mean, high)) - mean) / std) ** 2
    candidates, chance, kept, pending = _C.empty_like(tensor), _C.empty_like(tensor), None, None
    while pending is None or pending.any():
        candidates.uniform_(low, high, generator=generator)
        kept = candidates.clone() if pending is None else _C.where(pending, candidates, kept)
        density = candidates.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        refused = chance.uniform_(generator=generator).log_().gt(density)
        pending = refused if pending is None else pending & refused
    return kept


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill a tensor with normal numbers between a and b; others are drawn again. Returns the tensor.

    >>> w = lucid.nn.init.trunc_normal_(lucid.empty(3, 5), std=0.02, a=-0.03, b=0.03)
    >>> bool((w.abs() <= 0.03).all())
    True
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        from warnings import warn

        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )
    with no_grad():
        inside = _below((b - mean) / std) - _below((a - mean) / std)
        draw = _redraw_outside if inside > 0.3 else _choose_from_uniform
        kept = draw(tensor, mean, std, a, b, generator)
        return tensor if kept is tensor else tensor.copy_(kept)
