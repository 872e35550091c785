"""One of several."""

from .. import _C
from . import constraints
from .distribution import NO_SHAPE, Either, clamp_probs


class Categorical(Either):
    """One of the numbers 0 .. n - 1, with the probabilities, or their logarithms, in the last dimension.

    >>> policy = lucid.distributions.Categorical(lucid.tensor([1.0, 3.0]))
    >>> policy.probs, policy.log_prob(lucid.tensor(1)).exp()
    (tensor([0.2500, 0.7500]), tensor(0.7500))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._given, value = self._read(probs, logits)
        if value.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if self._given == "probs":
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = value.size(-1)
        super().__init__(value.shape[:-1], validate_args=validate_args)

    def _other(self, name):
        return _C.softmax(self.logits, -1) if name == "probs" else _C.log(clamp_probs(self.probs))

    def expand(self, batch_shape, _instance=None):
        new = super().expand(batch_shape, _instance)
        new._num_events = self._num_events
        return new

    support = property(lambda self: constraints.integer_interval(0, self._num_events - 1))
    param_shape = property(lambda self: self.__dict__[self._given].size())
    mode = property(lambda self: self.probs.argmax(dim=-1))

    @property
    def mean(self):
        return _C.full(self._extended_shape(), float("nan"), dtype=self.probs.dtype, device=self.probs.device)

    variance = mean

    def sample(self, sample_shape=NO_SHAPE):
        sample_shape = _C.Size(sample_shape)
        rows = self.probs.detach().reshape(-1, self._num_events)
        return _C.multinomial(rows, sample_shape.numel(), True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._validate_sample(value)
        value, logits = _C.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        from .._info import finfo

        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        values = _C.arange(self._num_events, dtype=_C.int64, device=self.__dict__[self._given].device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
