"""What distributions share: shapes, checks of parameters and samples, and numbers broadcast to tensors."""

import math

from .. import _C
from ..autograd import no_grad
from . import constraints

NO_SHAPE = _C.Size()


def broadcast_all(*values):
    """Numbers and tensors as tensors of one shape; numbers take the dtype of the tensors.

    >>> lucid.distributions.distribution.broadcast_all(1.0, lucid.zeros(2))
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(isinstance(v, (_C.Tensor, int, float)) for v in values):
        raise ValueError("Input arguments must all be instances of Number or torch.Tensor.")
    like = next((v for v in values if isinstance(v, _C.Tensor)), None)
    options = {"dtype": _C.get_default_dtype()} if like is None else {"dtype": like.dtype, "device": like.device}
    return tuple(_C.broadcast_tensors(*(v if isinstance(v, _C.Tensor) else _C.tensor(v, **options) for v in values)))


def clamp_probs(probs):
    """Probabilities kept off 0 and 1 by the smallest step of their dtype.

    >>> lucid.distributions.distribution.clamp_probs(lucid.tensor([0.0, 0.5])) > 0
    tensor([True, True])
    """
    from .._info import finfo

    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def shape_of(parameters, *values):
    """The batch shape: none if every parameter is a plain number.

    >>> from lucid.distributions.distribution import shape_of
    >>> shape_of((1.0, 2), lucid.zeros(3)), shape_of((1.0, lucid.ones(3)), lucid.zeros(3))
    (lucid.Size([]), lucid.Size([3]))
    """
    return _C.Size() if all(isinstance(p, (int, float)) for p in parameters) else values[0].shape


def log_odds(probs):
    """The logarithm of odds, finite for every probability.

    >>> lucid.distributions.distribution.log_odds(lucid.tensor(0.5))
    tensor(0.)
    """
    probs = clamp_probs(probs)
    return _C.log(probs) - _C.log1p(-probs)


class Distribution:
    """A distribution over tensors: batch_shape is the shape of its parameters, event_shape that of one sample.

    >>> lucid.distributions.Normal(lucid.zeros(3), 1.0)
    Normal(loc: lucid.Size([3]), scale: lucid.Size([3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether parameters and samples are checked unless a distribution is told otherwise."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=NO_SHAPE, event_shape=NO_SHAPE, validate_args=None):
        self._batch_shape, self._event_shape = _C.Size(batch_shape), _C.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        for name, constraint in self.arg_constraints.items() if self._validate_args else ():
            value = self.__dict__.get(name)
            if value is None or constraint is None:
                continue
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of {self!r} "
                    f"to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @property
    def batch_shape(self):
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one sample of one set of parameters."""
        return self._event_shape

    arg_constraints = {}

    @property
    def support(self):
        """The set samples lie in."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def expand(self, batch_shape, _instance=None):
        """The same distribution with parameters of a larger shape."""
        new = object.__new__(type(self)) if _instance is None else _instance
        batch_shape = _C.Size(batch_shape)
        for name, trailing in self._parameters():
            setattr(new, name, getattr(self, name).expand(batch_shape + trailing))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _parameters(self):
        """Names of the parameters that were given, with what their shape has beyond the batch."""
        return [
            (name, self.__dict__[name].shape[len(self._batch_shape) :])
            for name in self.arg_constraints
            if name in self.__dict__
        ]

    def sample(self, sample_shape=NO_SHAPE):
        """Draw samples, without history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=NO_SHAPE):
        """Draw samples that parameters get gradients through."""
        raise NotImplementedError

    def log_prob(self, value):
        """The logarithm of the density, or of the probability."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of at most a value."""
        raise NotImplementedError

    def icdf(self, value):
        """The value that is exceeded with probability 1 - value."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values a discrete distribution can take."""
        raise NotImplementedError

    def entropy(self):
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self):
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=NO_SHAPE):
        return _C.Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value):
        if not self._validate_args:
            return
        if not isinstance(value, _C.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event = len(self._event_shape)
        if value.shape[value.dim() - event :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}.")
        for i, j in zip(reversed(value.shape), reversed(self._batch_shape + self._event_shape)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {self._batch_shape}."
                )
        support = self.support
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self):
        values = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        return f"{type(self).__name__}({', '.join(f'{k}: {v if v.numel() == 1 else v.size()}' for k, v in values.items())})"


class ExponentialFamily(Distribution):
    """Distributions whose density is the exponential of a product of parameters and statistics.

    >>> issubclass(lucid.distributions.Normal, lucid.distributions.ExponentialFamily)
    True
    """


class LocScale(Distribution):
    """Numbers moved by loc and stretched by scale.

    >>> lucid.distributions.Cauchy(0.0, lucid.ones(2)).loc
    tensor([0., 0.])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(shape_of((loc, scale), self.loc), validate_args=validate_args)

    mode = property(lambda self: self.loc)


class Either(ExponentialFamily):
    """What is given by probabilities or by their log odds: the other is computed when it is first asked for.

    >>> lucid.distributions.Bernoulli(logits=lucid.tensor(0.0)).probs
    tensor(0.5000)
    """

    def _read(self, probs, logits):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        return ("probs", probs) if logits is None else ("logits", logits)

    def __getattr__(self, name):
        if name not in ("probs", "logits") or not {"probs", "logits"} & set(self.__dict__):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = self.__dict__[name] = self._other(name)
        return value

    def _parameters(self):
        given = self.__dict__.get("_given")
        return [p for p in super()._parameters() if given is None or p[0] == given]

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new._given = self._given
        return new

    def __repr__(self):
        value = self.__dict__[self._given]
        return f"{type(self).__name__}({self._given}: {value if value.numel() == 1 else value.size()})"


HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
