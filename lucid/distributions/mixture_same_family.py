"""`MixtureSameFamily`: one of several distributions of a family, chosen by chance."""

from .. import _C
from ..autograd.grad_mode import no_grad
from . import constraints
from .categorical import Categorical
from .distribution import NO_SHAPE, Distribution, of_part

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: components are along the last batch dimension of component_distribution, a `Categorical` has their weights.

    >>> from lucid.distributions import Categorical, MixtureSameFamily, Normal
    >>> mixture = MixtureSameFamily(Categorical(lucid.ones(2)), Normal(lucid.tensor([-1.0, 1.0]), 0.5))
    >>> mixture.mean, mixture.variance
    (tensor(0.), tensor(1.2500))
    """

    arg_constraints = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        weights, batch_shape = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(weights), reversed(batch_shape)):  # noqa: B905 (the shorter one broadcasts)
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch_shape})"
                )
        given, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if given != components:
            raise ValueError(
                f"`mixture_distribution component` ({given}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._num_component, self._event_ndims = given, len(component_distribution.event_shape)
        super().__init__(batch_shape, component_distribution.event_shape, validate_args)

    mixture_distribution, component_distribution = of_part("_mixture_distribution"), of_part("_component_distribution")

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    def _pad(self, x):
        """With a dimension for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def _average(self, values):
        """The mean over components: their dimension is before those of an event."""
        probs = self._mixture_distribution.probs
        probs = probs.reshape(probs.shape + (1,) * self._event_ndims)
        return (probs * values).sum(-1 - self._event_ndims)

    mean = property(lambda self: self._average(self._component_distribution.mean))

    @property
    def variance(self):
        component = self._component_distribution
        return self._average(component.variance) + self._average((component.mean - self._pad(self.mean)).square())

    def cdf(self, x):
        return (self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        self._check(x)
        weights = _C.log_softmax(self._mixture_distribution.logits, -1)
        return _C.logsumexp(self._component_distribution.log_prob(self._pad(x)) + weights, -1)

    def sample(self, sample_shape=NO_SHAPE):
        with no_grad():
            mixture = self._mixture_distribution
            if mixture.batch_shape != self._batch_shape:
                mixture = mixture.expand(self._batch_shape)  # each element of the batch chooses for itself
            chosen = mixture.sample(sample_shape)
            samples = self._component_distribution.sample(sample_shape)
            at = len(sample_shape) + len(self._batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (1 + self._event_ndims))
            return samples.gather(at, index.expand(chosen.shape + (1,) + self._event_shape)).squeeze(at)

    def __repr__(self):
        return f"{type(self).__name__}(\n  {self._mixture_distribution},\n  {self._component_distribution})"
