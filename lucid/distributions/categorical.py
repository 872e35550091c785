"""One of several: as a number, as a vector with a 1, as counts of many draws, and relaxed to points on a simplex."""

import math

from .. import _C
from ..nn.functional import one_hot
from . import constraints
from .binomial import Binomial
from .distribution import NO_SHAPE, Distribution, EitherMixin, of_part
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs, limits

__all__ = [
    "Categorical",
    "ExpRelaxedCategorical",
    "Multinomial",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "RelaxedOneHotCategorical",
]
PROBS_OR_LOGITS = {"probs": constraints.simplex, "logits": constraints.real_vector}


class Categorical(EitherMixin, Distribution):
    """One of the numbers 0 .. n - 1, with the probabilities, or their logarithms, in the last dimension.

    >>> policy = lucid.distributions.Categorical(lucid.tensor([1.0, 3.0]))
    >>> policy.probs, policy.log_prob(lucid.tensor(1)).exp()
    (tensor([0.2500, 0.7500]), tensor(0.7500))
    """

    arg_constraints = PROBS_OR_LOGITS
    has_enumerate_support = True
    _binary = False

    def __init__(self, probs=None, logits=None, validate_args=None):
        ((name, value),) = self._given(probs, logits).items()
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = value.shape[-1]
        super().__init__(value.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    mode = property(lambda self: self.probs.argmax(dim=-1))

    @property
    def mean(self):
        return _C.full(self._extended_shape(), math.nan, dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    def sample(self, sample_shape=NO_SHAPE):
        sample_shape = _C.Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        return _C.multinomial(rows, sample_shape.numel(), True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._check(value)
        value, logits = _C.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        logits = self.logits.clamp(min=limits(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return self._enumerate(_C.arange(self._num_events, dtype=_C.int64, device=self._param.device), expand)


class _OfCategorical(Distribution):
    """A family over vectors that keeps its probabilities in a `Categorical`."""

    arg_constraints = PROBS_OR_LOGITS
    probs, logits, param_shape, _param = (
        of_part("_categorical." + name) for name in ("probs", "logits", "param_shape", "_param")
    )

    def _set_categorical(self, probs, logits, validate_args):
        self._categorical = Categorical(probs, logits)
        Distribution.__init__(self, self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)


class OneHotCategorical(_OfCategorical):
    """As `Categorical`, with samples that are 1 at the number drawn and 0 elsewhere.

    >>> lucid.distributions.OneHotCategorical(lucid.tensor([0.0, 1.0])).sample()
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._set_categorical(probs, logits, validate_args)

    mean = property(lambda self: self.probs)
    mode = property(lambda self: self._one_hot(self.probs.argmax(-1)))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def _one_hot(self, indices):
        return one_hot(indices, self._event_shape[0]).to(self.probs)

    def sample(self, sample_shape=NO_SHAPE):
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._event_shape[0]
        values = _C.eye(n, dtype=self._param.dtype, device=self._param.device).view((n,) + (1,) * len(self._batch_shape) + (n,))
        return values.expand((n, *self._batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """As `OneHotCategorical`; gradients by samples go to the probabilities as if samples were probabilities.

    >>> lucid.distributions.OneHotCategoricalStraightThrough(lucid.tensor([0.0, 1.0])).rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape=NO_SHAPE):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(_OfCategorical):
    """How often each of several outcomes happens in total_count draws.

    >>> lucid.distributions.Multinomial(4, lucid.tensor([0.25, 0.75])).mean
    tensor([1., 3.])
    """

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._set_categorical(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape=NO_SHAPE):
        sample_shape = _C.Size(sample_shape)
        drawn = self._categorical.sample(_C.Size((self.total_count,)) + sample_shape).movedim(0, -1)
        counts = _C.zeros(self._extended_shape(sample_shape), dtype=_C.int64, device=drawn.device)
        return counts.scatter_add_(-1, drawn, _C.ones_like(drawn)).type_as(self.probs)

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self):
        n = self.total_count
        one = Binomial(n, self.probs)
        counts = one.enumerate_support(expand=False)[1:]
        terms = one.log_prob(counts).exp() * (counts + 1).lgamma()
        return n * self._categorical.entropy() - math.lgamma(n + 1) + terms.sum([0, -1])


class ExpRelaxedCategorical(_OfCategorical):
    """The logarithm of a `RelaxedOneHotCategorical`.

    >>> from lucid.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> ExpRelaxedCategorical(lucid.tensor(1.0), lucid.ones(3)).rsample().shape
    lucid.Size([3])
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._set_categorical(probs, logits, validate_args)

    def rsample(self, sample_shape=NO_SHAPE):
        u = clamp_probs(_C.rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        n = self._event_shape[0]
        score = logits - value.mul(self.temperature)
        constant = math.lgamma(n) + (n - 1) * self.temperature.log()
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + constant


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points on a simplex that come close to its corners at a low temperature, with gradients by probs.

    >>> lucid.distributions.RelaxedOneHotCategorical(lucid.tensor(0.5), lucid.ones(3)).rsample().shape
    lucid.Size([3])
    """

    arg_constraints = PROBS_OR_LOGITS
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args)

    temperature, probs, logits = (of_part("base_dist." + name) for name in ("temperature", "probs", "logits"))
