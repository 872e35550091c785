"""Starting values for parameters, drawn as PyTorch draws them: the same seed gives the same weights."""

import warnings
from math import ceil, erf, prod, sqrt

from .. import _C
from ..autograd import no_grad

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")


def calculate_gain(nonlinearity, param=None):
    """The recommended gain for a nonlinearity, which compensates how much it shrinks the standard deviation of its input.

    >>> lucid.nn.init.calculate_gain("leaky_relu", 1.0)
    1.0
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif not isinstance(param, bool) and isinstance(param, (int, float)):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return sqrt(2.0 / (1 + slope**2))
    gains = {"tanh": 5.0 / 3, "relu": sqrt(2.0), "selu": 3.0 / 4}
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill a tensor with numbers between a and b. Returns the tensor.

    >>> bool((lucid.nn.init.uniform_(lucid.empty(2, 3)) < 1).all())
    True
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill a tensor with normal numbers. Returns the tensor.

    >>> tuple(lucid.nn.init.normal_(lucid.empty(2, 3), std=0.02).shape)
    (2, 3)
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor, val):
    """Fill a tensor with one value. Returns the tensor.

    >>> lucid.nn.init.constant_(lucid.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Fill a tensor with ones. Returns the tensor.

    >>> lucid.nn.init.ones_(lucid.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Fill a tensor with zeros. Returns the tensor.

    >>> lucid.nn.init.zeros_(lucid.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor):
    """Make a matrix the identity. Returns the tensor.

    >>> lucid.nn.init.eye_(lucid.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(_C.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor, groups=1):
    """Fill a convolution's weight with Dirac deltas, so that it preserves as many channels as possible. Returns the tensor.

    >>> lucid.nn.init.dirac_(lucid.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(per_group, tensor.size(1))):
                tensor[(group * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    area = prod(tensor.shape[2:])
    return tensor.size(1) * area, tensor.size(0) * area


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Fill with uniform numbers that keep the variance of signals and gradients equal (Glorot). Returns the tensor.

    >>> bool((lucid.nn.init.xavier_uniform_(lucid.empty(2, 3)).abs() < 1.1).all())
    True
    """
    bound = sqrt(3.0) * gain * sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Fill with normal numbers that keep the variance of signals and gradients equal (Glorot). Returns the tensor.

    >>> tuple(lucid.nn.init.xavier_normal_(lucid.empty(2, 3)).shape)
    (2, 3)
    """
    return normal_(tensor, 0.0, gain * sqrt(2.0 / float(sum(_calculate_fan_in_and_fan_out(tensor)))), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / sqrt(_calculate_correct_fan(tensor, mode))


def _warn_if_empty(tensor):
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill with uniform numbers that keep the variance of signals through rectifiers (He). Returns the tensor.

    >>> bool((lucid.nn.init.kaiming_uniform_(lucid.empty(2, 3)).abs() < 1.5).all())
    True
    """
    if _warn_if_empty(tensor):
        return tensor
    bound = sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill with normal numbers that keep the variance of signals through rectifiers (He). Returns the tensor.

    >>> tuple(lucid.nn.init.kaiming_normal_(lucid.empty(2, 3)).shape)
    (2, 3)
    """
    if _warn_if_empty(tensor):
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Fill with a (semi-)orthogonal matrix: rows are orthonormal, or columns if there are fewer. Returns the tensor.

    >>> w = lucid.nn.init.orthogonal_(lucid.empty(2, 3))
    >>> bool(((w @ w.t() - lucid.eye(2)).abs() < 1e-6).all())
    True
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    from ..linalg import qr

    rows, columns = tensor.size(0), tensor.numel() // tensor.size(0)
    with no_grad():
        drawn = tensor.new_empty((rows, columns)).normal_(0, 1, generator=generator)
        q, r = qr(drawn.t() if rows < columns else drawn)
        q = q * r.diagonal().sign()
        tensor.view_as(q.t() if rows < columns else q).copy_(q.t() if rows < columns else q)
        return tensor.mul_(gain)


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix with normal numbers and set a fraction of each column to zero. Returns the tensor.

    >>> int((lucid.nn.init.sparse_(lucid.empty(4, 2), 0.5) == 0).sum())
    4
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    n_zeros = ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[_C.randperm(rows)[:n_zeros], column] = 0
    return tensor


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
    """Rejection sampling: uniform candidates between the bounds, accepted with probability density / largest density."""
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


def _deprecated(function, *settings):
    name = function.__name__.removesuffix("_")

    def old(*args, **kwargs):
        warnings.warn(f"`nn.init.{name}` is now deprecated in favor of `nn.init.{name}_`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    given = ", ".join(["lucid.empty(2, 2, 1)" if name == "dirac" else "lucid.empty(2, 2)", *map(str, settings)])
    example = f">>> lucid.nn.init.{name}({given}).shape[0]\n2"
    old.__name__, old.__doc__ = name, f"The old name of `{name}_`.\n\n{example}"
    return old


constant = _deprecated(constant_, 1.0)
dirac = _deprecated(dirac_)
eye = _deprecated(eye_)
kaiming_normal = _deprecated(kaiming_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
normal = _deprecated(normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_, 0.5)
uniform = _deprecated(uniform_)
xavier_normal = _deprecated(xavier_normal_)
xavier_uniform = _deprecated(xavier_uniform_)
