"""Random matrices: covariance matrices (Wishart) and Cholesky factors of correlation matrices (Lewandowski, Kurowicka and
Joe)."""

import math
import warnings

from .. import _C, broadcast_shapes
from . import constraints
from .dirichlet import Beta
from .distribution import NO_SHAPE, Distribution, ExponentialFamily
from .gamma import Chi2
from .multivariate_normal import MatrixGiven, _linalg, _log_diagonal
from .utils import broadcast_all, lazy_property, limits

__all__ = ["LKJCholesky", "Wishart"]
LOG_2 = math.log(2)


class Wishart(MatrixGiven, ExponentialFamily):
    """The sum of df outer products of normal vectors with a covariance matrix; df need not be an integer.

    >>> lucid.distributions.Wishart(3.0, scale_tril=lucid.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if sum(m is not None for m in (covariance_matrix, precision_matrix, scale_tril)) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = self._set_matrix(covariance_matrix, precision_matrix, scale_tril)
        if not isinstance(df, _C.Tensor):
            df = _C.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape, event_shape = broadcast_shapes(matrix.shape[:-2], df.shape), matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        least = event_shape[-1] - 1
        if (self.df <= least).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {least}.")
        if (self.df < event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2
            )
        self.__dict__[name] = matrix.expand(batch_shape + (-1, -1))
        Distribution.__init__(self, batch_shape, event_shape, validate_args)
        self._unbroadcasted_scale_tril = self._factor(name, matrix)

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    @lazy_property
    def _dist_chi2(self):
        steps = _C.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - steps)

    _column = property(lambda self: self.df.reshape(self._batch_shape + (1, 1)))
    mean = property(lambda self: self._column * self.covariance_matrix)

    @property
    def mode(self):
        factor = self._column - self._event_shape[-1] - 1
        return factor.masked_fill(factor <= 0, math.nan) * self.covariance_matrix

    @property
    def variance(self):
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self._column * (covariance.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape=NO_SHAPE):
        """L A A^T L^T: A has roots of chi-squared variables on its diagonal and normal ones below."""
        p = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = roots.clamp(min=limits(roots.dtype).eps).diag_embed()
        i, j = _C.tril_indices(p, p, offset=-1)
        shape = _C.Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., i, j] = _C.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape=NO_SHAPE, max_try_correction=None):
        """Draw samples. Singular ones are drawn again, max_try_correction times at most.

        PyTorch's first look mistakes regular samples for singular ones and draws them again: so does this, to leave the
        same samples."""
        sample = self._bartlett_sampling(_C.Size(sample_shape))
        batch_dims = [-1 - d for d in range(len(self._batch_shape))]

        def over_batch(flags):
            return flags.amax(batch_dims) if batch_dims else flags

        again = over_batch(self.support.check(sample))
        for attempt in range(10 if max_try_correction is None else max_try_correction):
            if not again.any():
                break
            if attempt == 1:
                warnings.warn("Singular sample detected.", stacklevel=2)
            new = self._bartlett_sampling(again[again].shape)
            sample[again] = new
            again[again.clone()] = over_batch(~self.support.check(new))
        return sample

    def log_prob(self, value):
        self._check(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        constant = nu * (p * LOG_2 / 2 + _log_diagonal(factor)) + _C.mvlgamma(nu / 2, p)
        half = _linalg().solve_triangular(factor, value, upper=False)
        trace = _linalg().solve_triangular(factor.mT, half, upper=True).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (nu - p - 1) / 2 * _linalg().slogdet(value).logabsdet - trace / 2 - constant

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        halves = _C.arange(p, dtype=nu.dtype, device=nu.device) / 2
        digammas = (nu.unsqueeze(-1) / 2 - halves).digamma().sum(-1)
        scale = (p + 1) * (p * LOG_2 / 2 + _log_diagonal(self._unbroadcasted_scale_tril))
        return scale + _C.mvlgamma(nu / 2, p) - (nu - p - 1) / 2 * digammas + nu * p / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        half_df = y + (p + 1) / 2
        return half_df * (LOG_2 * p - _linalg().slogdet(-2 * x).logabsdet) + _C.mvlgamma(half_df, p)


class LKJCholesky(Distribution):
    """Cholesky factors of dim x dim correlation matrices M, with a density of M proportional to det(M) ** (concentration -
    1): for concentration 1 all correlation matrices are alike.

    >>> factor = lucid.distributions.LKJCholesky(3, 0.5).sample()
    >>> lucid.allclose((factor @ factor.T).diagonal(), lucid.ones(3))
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of a row without its diagonal: beta variables (the onion method; the first row has none).
        offset = _C.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = _C.cat([offset.new_zeros((1,)), offset])
        rest = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * offset
        self._beta = Beta(offset + 0.5, rest, validate_args=validate_args)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape=NO_SHAPE):
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        normal = _C.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        direction[..., 0, :] = 0.0
        rows = y.sqrt() * direction
        diagonal = (1 - rows.square().sum(-1)).clamp(min=limits(rows.dtype).tiny).sqrt()
        return rows + diagonal.diag_embed()

    def log_prob(self, value):
        self._check(value)
        n = self.dim - 1
        order = _C.arange(n - 1, -1, -1, device=self.concentration.device)  # of the diagonal's elements but the first
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + order
        density = (powers * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = self.concentration + 0.5 * n
        return density - 0.5 * n * math.log(math.pi) - _C.mvlgamma(alpha - 0.5, n) + alpha.lgamma() * n
