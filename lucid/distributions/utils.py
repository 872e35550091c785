"""What families of distributions compute with: broadcasting, probabilities and logits, values computed once, triangular
matrices."""

import functools

from .. import _C
from .._info import finfo
from ..autograd.grad_mode import enable_grad

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "euler_constant",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060
Tensor = _C.Tensor
limits = functools.cache(finfo)  # of a dtype


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the first tensor.

    >>> lucid.distributions.utils.broadcast_all(1.0, lucid.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    like = shape = None
    alike = True
    for v in values:
        if isinstance(v, Tensor):
            if like is None:
                like, shape = v, v.shape
            elif v.shape != shape:
                alike = False
        elif isinstance(v, (int, float)):
            alike = False
        else:
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
            )
    if alike:
        return values
    if like is None:
        return tuple(_C.tensor(v, dtype=_C.get_default_dtype()) for v in values)
    dtype, device = like.dtype, like.device
    return tuple(
        _C.broadcast_tensors(*(v if isinstance(v, Tensor) else _C.tensor(v, dtype=dtype, device=device) for v in values))
    )


def clamp_probs(probs):
    """Probabilities kept off 0 and 1 by the smallest step of their dtype.

    >>> lucid.distributions.utils.clamp_probs(lucid.tensor([0.0, 0.5])) > 0
    tensor([True, True])
    """
    eps = limits(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits, is_binary=False):
    """Probabilities from log odds (binary), or from logarithms along the last dimension.

    >>> lucid.distributions.utils.logits_to_probs(lucid.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return _C.sigmoid(logits) if is_binary else _C.softmax(logits, -1)


def probs_to_logits(probs, is_binary=False):
    """Log odds (binary) or logarithms of probabilities, finite for every probability.

    >>> lucid.distributions.utils.probs_to_logits(lucid.tensor(0.5), is_binary=True)
    tensor(0.)
    """
    probs = clamp_probs(probs)
    return _C.log(probs) - _C.log1p(-probs) if is_binary else _C.log(probs)


class lazy_property:
    """A property that is computed when it is first asked for, with gradients, and then kept as an attribute.

    >>> class Circle:
    ...     @lucid.distributions.utils.lazy_property
    ...     def area(self):
    ...         return print("computed") or 3.14
    >>> circle = Circle()
    >>> circle.area, circle.area
    computed
    (3.14, 3.14)
    """

    def __init__(self, wrapped):
        self.wrapped, self.name, self.__doc__ = wrapped, wrapped.__name__, wrapped.__doc__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with enable_grad():
            value = instance.__dict__[self.name] = self.wrapped(instance)
        return value


def tril_matrix_to_vec(mat, diag=0):
    """The elements of square matrices on and below a diagonal, row by row.

    >>> lucid.distributions.utils.tril_matrix_to_vec(lucid.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 3., 4.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _below(n, diag, mat.device)]


def vec_to_tril_matrix(vec, diag=0):
    """Square matrices with a vector's elements on and below a diagonal, row by row, and zeros above.

    >>> lucid.distributions.utils.vec_to_tril_matrix(lucid.tensor([1.0, 3.0, 4.0]))
    tensor([[1., 0.],
            [3., 4.]])
    """
    size, step = vec.shape[-1], 1 + 2 * diag
    n = round((-step + (step * step + 8 * size + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2)
    if sum(max(0, min(n, row + diag + 1)) for row in range(n)) != size:
        raise ValueError(
            f"The size of last dimension is {size} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    mat = vec.new_zeros(vec.shape[:-1] + (n, n))
    mat[..., _below(n, diag, vec.device)] = vec
    return mat


def _below(n, diag, device):
    at = _C.arange(n, device=device)
    return at < at.view(-1, 1) + (diag + 1)


def _standard_normal(shape, dtype, device):
    return _C.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dim):
    return value.reshape(value.shape[: value.dim() - dim] + (-1,)).sum(-1) if dim else value
