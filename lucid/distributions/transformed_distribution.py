"""`TransformedDistribution`: samples of another distribution, sent through transforms."""

from .. import _C
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import NO_SHAPE, Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """Draws from `base_distribution` and applies transforms, one after the other.

    >>> from lucid.distributions import AffineTransform, SigmoidTransform, TransformedDistribution, Uniform
    >>> logistic = TransformedDistribution(Uniform(0.0, 1.0), [SigmoidTransform().inv, AffineTransform(2.0, 1.0)])
    >>> logistic.log_prob(lucid.tensor(2.0)), logistic.cdf(lucid.tensor(2.0))
    (tensor(-1.3863), tensor(0.5000))
    """

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        elif not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        whole = ComposeTransform(transforms)
        taken, made = whole.domain.event_dim, whole.codomain.event_dim
        shape, event_dim = base_distribution.batch_shape + base_distribution.event_shape, len(base_distribution.event_shape)
        if len(shape) < taken:
            raise ValueError(f"base_distribution needs to have shape with size at least {taken}, but got {shape}.")
        result = whole.forward_shape(shape)
        needed = whole.inverse_shape(result)
        if needed != shape:
            base_distribution = base_distribution.expand(needed[: len(needed) - event_dim])
        if taken > event_dim:
            base_distribution = Independent(base_distribution, taken - event_dim)
        self.base_dist = base_distribution
        cut = len(result) - max(made, event_dim + made - taken)
        super().__init__(result[:cut], result[cut:], validate_args)

    def expand(self, batch_shape, _instance=None):
        shape = _C.Size(batch_shape) + self._event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        base = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new = super().expand(batch_shape, _instance)
        new.base_dist = base
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        extra = len(self._event_shape) - support.event_dim
        return constraints.independent(support, extra) if extra > 0 else support

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=NO_SHAPE):
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=NO_SHAPE):
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        event_dim, total, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            taken = transform.domain.event_dim
            event_dim += taken - transform.codomain.event_dim
            total = total - _sum_rightmost(transform.log_abs_det_jacobian(x, y), event_dim - taken)
            y = x
        return total + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _mirrored(self, probability):
        """p, or 1 - p where the transforms together decrease."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._mirrored(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transformed(self.base_dist.icdf(self._mirrored(value)))
