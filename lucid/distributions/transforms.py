"""Invertible functions with the logarithms of their Jacobian determinants: what turns one distribution into another.

>>> from lucid.distributions import transforms
>>> t = transforms.AffineTransform(1.0, 2.0)
>>> x = lucid.tensor([0.0, 1.0])
>>> t(x), t.inv(t(x)), t.log_abs_det_jacobian(x, t(x))
(tensor([1., 3.]), tensor([0., 1.]), tensor([0.6931, 0.6931]))
"""

import math

from .. import _C, broadcast_shapes
from ..nn.functional import logsigmoid, pad, softplus
from . import constraints
from .transform_base import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
    Transform,
    _Monotone,
    _Plain,
    identity_transform,
)
from .utils import _sum_rightmost, broadcast_all, lazy_property, limits, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]
_depends = constraints.dependent_property


# --- elementwise ---


class ExpTransform(_Monotone):
    """y = exp(x).

    >>> lucid.distributions.ExpTransform()(lucid.tensor(0.0))
    tensor(1.)
    """

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """y = x ** exponent, of positive x.

    >>> lucid.distributions.PowerTransform(2.0)(lucid.tensor(3.0))
    tensor(9.)
    """

    domain = codomain = constraints.positive
    bijective = True
    _arguments = ("exponent",)

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _clipped_sigmoid(x):
    ends = limits(x.dtype)
    return _C.sigmoid(x).clamp(min=ends.tiny, max=1.0 - ends.eps)


class SigmoidTransform(_Monotone):
    """y = 1 / (1 + exp(-x)).

    >>> lucid.distributions.SigmoidTransform()(lucid.tensor(0.0))
    tensor(0.5000)
    """

    codomain = constraints.unit_interval

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        ends = limits(y.dtype)
        y = y.clamp(min=ends.tiny, max=1.0 - ends.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Monotone):
    """y = log(1 + exp(x)).

    >>> lucid.distributions.SoftplusTransform()(lucid.tensor(0.0))
    tensor(0.6931)
    """

    codomain = constraints.positive

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return (-(-y).expm1()).log() + y

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


class TanhTransform(_Monotone):
    """y = tanh(x).

    >>> lucid.distributions.TanhTransform().inv(lucid.tensor(0.5))
    tensor(0.5493)
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))  # of 1 - tanh(x) ** 2, without cancellation


class AbsTransform(_Plain):
    """y = |x|; the inverse gives the positive x.

    >>> lucid.distributions.AbsTransform()(lucid.tensor(-2.0))
    tensor(2.)
    """

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


def _same(a, b):
    equal = a == b
    return bool(equal.all()) if isinstance(equal, _C.Tensor) else equal


class AffineTransform(Transform):
    """y = loc + scale * x; event_dim: how many trailing dimensions make one element.

    >>> lucid.distributions.AffineTransform(1.0, 2.0)(lucid.tensor(3.0))
    tensor(7.)
    """

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @_depends(is_discrete=False)
    def domain(self):
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    def __eq__(self, other):
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    @property
    def sign(self):
        scale = self.scale
        return scale.sign() if isinstance(scale, _C.Tensor) else (scale > 0) - (scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        scale, shape, n = self.scale, x.shape, self._event_dim
        result = scale.abs().log() if isinstance(scale, _C.Tensor) else _C.full_like(x, math.log(abs(scale)))
        if n:
            result, shape = _sum_rightmost(result, n), shape[:-n]
        return result.expand(shape)

    def forward_shape(self, shape):
        return broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution with one number per sample.

    >>> from lucid.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(lucid.tensor(0.0))
    tensor(0.5000)
    """

    bijective, sign = True, 1
    codomain = constraints.unit_interval
    domain = property(lambda self: self.distribution.support)
    _arguments = ("distribution",)

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size)
        self.distribution = distribution

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)


# --- vectors and matrices ---


def _at_least(shape, n):
    if len(shape) < n:
        raise ValueError("Too few dimensions on input")
    return shape


class ReshapeTransform(Transform):
    """The last dimensions in another shape.

    >>> lucid.distributions.ReshapeTransform((2, 3), (6,))(lucid.zeros(5, 2, 3)).shape
    lucid.Size([5, 6])
    """

    bijective = True
    _arguments = ("in_shape", "out_shape")

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = _C.Size(in_shape), _C.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    domain = _depends(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = _depends(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _reshaped(shape, old, new):
        cut = len(_at_least(shape, len(old))) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {old}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._reshaped(shape, self.out_shape, self.in_shape)


class CorrCholeskyTransform(Transform):
    """Vectors of D * (D - 1) / 2 numbers to Cholesky factors of D x D correlation matrices: tanh makes partial correlations
    of them, which take their share of what is left of a row of length 1.

    >>> lucid.distributions.CorrCholeskyTransform()(lucid.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x):
        eps = limits(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        return (r + _C.eye(r.shape[-1], dtype=r.dtype, device=r.device)) * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - (-t).log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        # A row's factors sqrt(1 - y_1^2 - ... ) are there once per element to their right, the last of which is
        # below the diagonal.
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        return 0.5 * left.log().sum(-1) - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape):
        n = _at_least(shape, 1)[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape):
        d = _at_least(shape, 2)[-1]
        if shape[-2] != d:
            raise ValueError("Input is not square")
        return shape[:-2] + (d * (d - 1) // 2,)


class SoftmaxTransform(_Plain):
    """exp(x), normalised along the last dimension; the inverse is a logarithm.

    >>> lucid.distributions.SoftmaxTransform()(lucid.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        return _C.softmax(x, -1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        return _at_least(shape, 1)

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """Vectors of n numbers to n + 1 probabilities: each takes a share, a sigmoid, of what the ones before it left. Zeros
    become equal probabilities.

    >>> lucid.distributions.StickBreakingTransform()(lucid.zeros(3))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    @staticmethod
    def _offset(x, n):
        return (n + 1 - x.new_ones(n).cumsum(-1)).log()  # log of n, n - 1, ..., 1

    def _call(self, x):
        share = _clipped_sigmoid(x - self._offset(x, x.shape[-1]))
        return pad(share, [0, 1], value=1) * pad((1 - share).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        taken = y[..., :-1]
        left = (1 - taken.cumsum(-1)).clamp(min=limits(y.dtype).tiny)
        return taken.log() - left.log() + self._offset(y, taken.shape[-1])

    def log_abs_det_jacobian(self, x, y):
        x = x - self._offset(x, x.shape[-1])
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        return _at_least(shape, 1)[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        return _at_least(shape, 1)[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Plain):
    """Square matrices to lower triangular ones with a positive diagonal: its exponential.

    >>> lucid.distributions.LowerCholeskyTransform()(lucid.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """Square matrices to positive definite ones: L @ L.T of a `LowerCholeskyTransform`.

    >>> lucid.distributions.PositiveDefiniteTransform()(lucid.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        from ..linalg import cholesky

        return LowerCholeskyTransform().inv(cholesky(y))
