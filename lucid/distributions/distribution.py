"""What distributions share: shapes, checks of parameters and samples, expansion.

A family's constructor hands its parameters to `_set`, which broadcasts them and keeps them as attributes, checked against
`arg_constraints`. `expand` needs no code in a family: it copies the attributes, expanding parameters and the distributions
a family is made of.
"""

import math
import warnings
from operator import attrgetter

from .. import _C
from ..autograd.grad_mode import no_grad
from . import constraints
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

NO_SHAPE = _C.Size()
HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
Size, Tensor = _C.Size, _C.Tensor


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
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _set(self, validate_args, **given):
        """Keep broadcast parameters and check them; the batch has their shape."""
        values = broadcast_all(*given.values())
        self.__dict__.update(zip(given, values))  # noqa: B905 (one value per name)
        self._batch_shape, self._event_shape = values[0].shape, NO_SHAPE
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self):
        try:
            known = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        mine = self.__dict__
        for name, constraint in known.items():
            value = mine.get(name)
            if value is None:
                if isinstance(getattr(type(self), name, None), lazy_property):
                    continue  # made of another parameter
                value = getattr(self, name)
            if not (constraints.is_dependent(constraint) or constraint.holds(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @property
    def batch_shape(self):
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one sample of one set of parameters."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """The sets parameters lie in, by name."""
        raise NotImplementedError

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
        batch_shape, n, parameters = Size(batch_shape), len(self._batch_shape), self.arg_constraints
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor) and name in parameters:
                value = value.expand(batch_shape + value.shape[n:])
            elif isinstance(value, Distribution):
                value = value.expand(batch_shape + value.batch_shape[n:])
            elif isinstance(getattr(type(self), name, None), lazy_property):
                continue
            new.__dict__[name] = value
        new._batch_shape = batch_shape
        return new

    def _get_checked_instance(self, cls, _instance=None):
        """The object that `expand` of a subclass elsewhere fills in."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define "
                "a custom .expand() method."
            )
        return object.__new__(type(self)) if _instance is None else _instance

    def sample(self, sample_shape=NO_SHAPE):
        """Draw samples, without history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=NO_SHAPE):
        """Draw samples that parameters get gradients through."""
        raise NotImplementedError

    def sample_n(self, n):
        """Draw n samples; `sample((n,))` is the newer name."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

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

    def _enumerate(self, values, expand):
        """Numbers as the first dimension of a tensor that broadcasts to the batch, or has its shape."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def entropy(self):
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self):
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=NO_SHAPE):
        if not sample_shape and not self._event_shape:
            return self._batch_shape
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value):
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, batch, event = value.shape, self._batch_shape, self._event_shape
        if event and shape[max(0, len(shape) - len(event)) :] != event:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {event}.")
        if shape != batch or event:
            for i, j in zip(reversed(shape), reversed(batch + event)):  # noqa: B905 (the shorter one broadcasts)
                if i != j and i != 1 and j != 1:
                    raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {batch + event}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not support.holds(value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _check(self, value):
        """`_validate_sample`, if this distribution validates."""
        if self._validate_args:
            self._validate_sample(value)

    def __repr__(self):
        mine = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        return f"{type(self).__name__}({', '.join(f'{k}: {v if v.numel() == 1 else v.size()}' for k, v in mine)})"


class ExponentialFamily(Distribution):
    """Distributions whose density is the exponential of a product of parameters and statistics. Entropies and divergences
    follow from the gradient of the logarithm of the normalising factor.

    >>> issubclass(lucid.distributions.Normal, lucid.distributions.ExponentialFamily)
    True
    """

    @property
    def _natural_params(self):
        """The parameters of the product."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        """The logarithm of the normalising factor."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """The mean of the logarithm of what does not depend on parameters."""
        raise NotImplementedError

    def _normalizer_with_gradients(self):
        """Natural parameters, the logarithm of the normaliser, and its gradients: the means of the statistics."""
        from ..autograd import grad

        parameters = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*parameters)
        return parameters, normalizer, grad(normalizer.sum(), parameters, create_graph=True)

    def entropy(self):
        parameters, result, gradients = self._normalizer_with_gradients()
        result = result - self._mean_carrier_measure
        for p, g in zip(parameters, gradients, strict=True):
            result = result - (p * g).reshape(self._batch_shape + (-1,)).sum(-1)
        return result


def of_part(path):
    """A property that is an attribute of a part, such as the distribution that is transformed.

    >>> class Wrapped:
    ...     inner = lucid.zeros(3)
    ...     size = lucid.distributions.distribution.of_part("inner.shape")
    >>> Wrapped().size
    lucid.Size([3])
    """
    return property(attrgetter(path))


class LocScale(Distribution):
    """Numbers moved by loc and stretched by scale.

    >>> lucid.distributions.Cauchy(0.0, lucid.ones(2)).loc
    tensor([0., 0.])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self._set(validate_args, loc=loc, scale=scale)

    mode = property(lambda self: self.loc)


class EitherMixin:
    """Families given by probabilities or by their log odds: the other is computed when it is first asked for.

    >>> lucid.distributions.Bernoulli(logits=lucid.tensor(0.0)).probs
    tensor(0.5000)
    """

    _binary = True

    @staticmethod
    def _given(probs, logits):
        """What was given, by name."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        return {"probs": probs} if logits is None else {"logits": logits}

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, self._binary)

    @lazy_property
    def logits(self):
        """Log odds, or logarithms of probabilities."""
        return probs_to_logits(self.probs, self._binary)

    @property
    def _param(self):
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    @property
    def param_shape(self):
        """The shape of probs or logits."""
        return self._param.size()


__all__ = ["Distribution", "ExponentialFamily"]
