"""Normal vectors: with a full covariance matrix, and with one that is a diagonal plus a product of low rank.

Both keep factors as they were given, not expanded to the batch (`_unbroadcasted_...`), so that a factorisation that is
shared is done once. Matrices that were not given are computed from the Cholesky factor when they are first asked for.
"""

import math

from .. import _C, broadcast_shapes
from . import constraints
from .distribution import HALF_LOG_2PI, NO_SHAPE, Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


def _linalg():
    from .. import linalg

    return linalg


def _batch_mv(matrix, vector):
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor, x):
    """|factor^-1 x|^2 of vectors x (..., n) and lower triangular matrices (..., n, n); batches broadcast.

    Dimensions of x beyond those of the factor become columns, so that each factor is used once, for all of its right-hand
    sides."""
    extra = x.dim() + 1 - factor.dim()
    batch, wanted = x.shape[extra:-1], factor.shape[:-2]
    if extra < 0 or batch != wanted:
        return _linalg().solve_triangular(factor, x.unsqueeze(-1), upper=False).squeeze(-1).square().sum(-1)
    columns = x.reshape((-1, *x.shape[extra:])).movedim(0, -1)  # (batch..., n, extra)
    solved = _linalg().solve_triangular(factor, columns, upper=False).square().sum(-2)
    return solved.movedim(-1, 0).reshape(x.shape[:-1])


def _batch_trace_xxt(matrix):
    return matrix.square().sum((-2, -1))


def _log_diagonal(factor):
    """Half of the logarithm of the determinant."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse: that of the matrix turned by 180 degrees is its transposed inverse, turned back."""
    inverse = _linalg().cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    identity = _C.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return _linalg().solve_triangular(inverse, identity, upper=False)


class MatrixGiven(Distribution):
    """Families with a positive definite matrix, given as itself, as its inverse or as its Cholesky factor.

    >>> issubclass(lucid.distributions.Wishart, lucid.distributions.multivariate_normal.MatrixGiven)
    True
    """

    def _set_matrix(self, covariance_matrix, precision_matrix, scale_tril):
        """Keep the one that was given as an attribute, expanded to the batch; its name and itself."""
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        ((name, matrix),) = ((k, v) for k, v in given.items() if v is not None)
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        return name, matrix

    def _factor(self, name, matrix):
        if name == "scale_tril":
            return matrix
        return _linalg().cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)

    def _full(self, matrix):
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self):
        """The lower triangular factor of the covariance matrix."""
        return self._full(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariance matrix."""
        return self._full(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        identity = _C.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
        inverse = _linalg().solve_triangular(factor, identity, upper=False)
        return self._full(inverse.mT @ inverse)


class MultivariateNormal(MatrixGiven):
    """Normal vectors of mean loc, with a covariance matrix, its inverse, or its Cholesky factor.

    >>> normal = lucid.distributions.MultivariateNormal(lucid.zeros(2), scale_tril=lucid.tensor([[2.0, 0.0], [1.0, 1.0]]))
    >>> normal.covariance_matrix
    tensor([[4., 2.],
            [2., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if sum(m is not None for m in (covariance_matrix, precision_matrix, scale_tril)) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = self._set_matrix(covariance_matrix, precision_matrix, scale_tril)
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand(batch_shape + (-1, -1))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args)
        self._unbroadcasted_scale_tril = self._factor(name, matrix)

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=NO_SHAPE):
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value):
        self._check(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * distance - self._event_shape[0] * HALF_LOG_2PI - _log_diagonal(self._unbroadcasted_scale_tril)

    def entropy(self):
        entropy = self._event_shape[0] * (0.5 + HALF_LOG_2PI) + _log_diagonal(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors of mean loc and covariance matrix cov_factor @ cov_factor.T + diag(cov_diag), with products and
    inverses that cost as much as the rank asks for (the lemmas of Woodbury and of determinants).

    >>> normal = lucid.distributions.LowRankMultivariateNormal(lucid.zeros(2), lucid.ones(2, 1), lucid.ones(2))
    >>> normal.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            shapes = f"loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            raise ValueError(f"Incompatible batch shapes: {shapes}") from error
        self.loc, self.cov_diag = loc.expand(batch_shape + (-1,)), cov_diag.expand(batch_shape + (-1,))
        self.cov_factor = cov_factor.expand(batch_shape + (-1, -1))
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        super().__init__(batch_shape, event_shape, validate_args)

    @lazy_property
    def _capacitance_tril(self):
        """The Cholesky factor of I + W^T D^-1 W."""
        return _linalg().cholesky(_plus_identity(self._scaled_transpose() @ self._unbroadcasted_cov_factor))

    def _scaled_transpose(self):
        """W^T D^-1, of the factor W and the diagonal D."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _log_det(self):
        return 2 * _log_diagonal(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def _mahalanobis(self, x):
        inner = _batch_mv(self._scaled_transpose(), x)
        return (x.square() / self._unbroadcasted_cov_diag).sum(-1) - _batch_mahalanobis(self._capacitance_tril, inner)

    def _whitened(self):
        """A with A^T A = D^-1 W (I + W^T D^-1 W)^-1 W^T D^-1, what the low rank takes away from the precision D^-1."""
        return _linalg().solve_triangular(self._capacitance_tril, self._scaled_transpose(), upper=False)

    def _full(self, matrix):
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The lower triangular factor of the covariance matrix."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        return self._full(root * _linalg().cholesky(_plus_identity(scaled @ scaled.mT)))

    @lazy_property
    def covariance_matrix(self):
        """The covariance matrix."""
        factor = self._unbroadcasted_cov_factor
        return self._full(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance matrix."""
        a = self._whitened()
        return self._full(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - a.mT @ a)

    def rsample(self, sample_shape=NO_SHAPE):
        shape, loc = self._extended_shape(sample_shape), self.loc
        eps_w = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], loc.dtype, loc.device)
        eps_d = _standard_normal(shape, loc.dtype, loc.device)
        return loc + _batch_mv(self._unbroadcasted_cov_factor, eps_w) + self._unbroadcasted_cov_diag.sqrt() * eps_d

    def log_prob(self, value):
        self._check(value)
        distance = self._mahalanobis(value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self):
        entropy = self._event_shape[0] * (0.5 + HALF_LOG_2PI) + 0.5 * self._log_det()
        return entropy.expand(self._batch_shape)


def _plus_identity(matrix):
    return matrix + _C.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
