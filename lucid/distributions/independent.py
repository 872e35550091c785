"""`Independent`: several numbers as one sample."""

from . import constraints
from .distribution import NO_SHAPE, Distribution, of_part
from .utils import _sum_rightmost

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dimensions belong to one sample: log densities are summed over them.

    >>> normal = lucid.distributions.Normal(lucid.zeros(3, 2), 1.0)
    >>> lucid.distributions.Independent(normal, 1).log_prob(lucid.zeros(3, 2))
    tensor([-1.8379, -1.8379, -1.8379])
    """

    arg_constraints = {}

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        n = reinterpreted_batch_ndims
        if n > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {n} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - n
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, n
        super().__init__(shape[:cut], shape[cut:], validate_args)

    has_rsample, mean, mode, variance = (of_part("base_dist." + name) for name in ("has_rsample", "mean", "mode", "variance"))
    has_enumerate_support = property(
        lambda self: False if self.reinterpreted_batch_ndims else self.base_dist.has_enumerate_support
    )

    @constraints.dependent_property
    def support(self):
        n = self.reinterpreted_batch_ndims
        return constraints.independent(self.base_dist.support, n) if n else self.base_dist.support

    def sample(self, sample_shape=NO_SHAPE):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=NO_SHAPE):
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist!r}, {self.reinterpreted_batch_ndims})"
