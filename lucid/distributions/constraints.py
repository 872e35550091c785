"""Sets that parameters and samples lie in: `check` says which elements do, `holds` whether all do.

>>> lucid.distributions.constraints.positive.check(lucid.tensor([1.0, -1.0]))
tensor([ True, False])

A class is a kind of set; kinds without arguments are there once, as an object: `positive` is `greater_than(0.0)`. The set
of a parameter that depends on others is a `dependent_property`. Intervals with numbers as bounds are checked by one kernel,
which needs no mask: checks are most of the time that small distributions take.
"""

import math

from .. import _C
from .utils import limits

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "open_unit_interval",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]

Tensor, _within = _C.Tensor, _C._within
_ABOVE, _BELOW, _WHOLE = 1, 2, 4  # kinds of `_within`: the lower bound is excluded, the upper one is, only integers


class Constraint:
    """A set. is_discrete: of isolated points; event_dim: how many trailing dimensions make one element.

    >>> class Even(lucid.distributions.constraints.Constraint):
    ...     def check(self, value):
    ...         return value % 2 == 0
    >>> Even().check(lucid.arange(3))
    tensor([ True, False,  True])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Which elements lie in the set."""
        raise NotImplementedError

    def holds(self, value):
        """Whether all elements do, as a bool."""
        return bool(self.check(value).all())

    def __repr__(self):
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """The set of a value that depends on other values. What is not known beforehand cannot be asked for."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self):
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property whose value is a set; asked of the class it is a dependent set itself.

    >>> lucid.distributions.constraints.is_dependent(lucid.distributions.Uniform.support)
    True
    """

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint):
    """Whether a set depends on values that are not known.

    >>> from lucid.distributions import Uniform, constraints
    >>> constraints.is_dependent(Uniform.support), constraints.is_dependent(constraints.real)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


# --- intervals ---


class _Interval(Constraint):
    """Numbers between bounds, which are numbers or tensors. `_kind` says which bounds do not belong to the set.

    >>> lucid.distributions.constraints.interval(0.0, 1.0).check(lucid.tensor([1.0, 2.0]))
    tensor([ True, False])
    """

    lower_bound, upper_bound, _kind = -math.inf, math.inf, 0
    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound, upper_bound):
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value):
        low, high, inside = self.lower_bound, self.upper_bound, None
        if "lower_bound" in self._shown:
            inside = low < value if self._kind & _ABOVE else low <= value
        if "upper_bound" in self._shown:
            below = value < high if self._kind & _BELOW else value <= high
            inside = below if inside is None else inside & below
        return inside & (value % 1 == 0) if self._kind & _WHOLE else inside

    def holds(self, value):
        low, high = self.lower_bound, self.upper_bound
        if isinstance(low, Tensor) or isinstance(high, Tensor):
            return super().holds(value)
        return _within(value, low, high, self._kind)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({', '.join(f'{name}={getattr(self, name)}' for name in self._shown)})"


class _HalfOpenInterval(_Interval):
    """Numbers from a bound to below another.

    >>> lucid.distributions.constraints.half_open_interval(0.0, 1.0).check(lucid.tensor([0.0, 1.0]))
    tensor([ True, False])
    """

    _kind = _BELOW


class _OpenInterval(_Interval):
    _kind = _ABOVE | _BELOW


class _IntegerInterval(_Interval):
    """Integers between bounds.

    >>> lucid.distributions.constraints.integer_interval(0, 2).check(lucid.tensor([1.0, 1.5]))
    tensor([ True, False])
    """

    is_discrete, _kind = True, _WHOLE


class _GreaterThanEq(_Interval):
    """Numbers from a bound on.

    >>> lucid.distributions.constraints.greater_than_eq(1.0).check(lucid.tensor([1.0, 0.5]))
    tensor([ True, False])
    """

    _shown = ("lower_bound",)

    def __init__(self, lower_bound):
        self.lower_bound = lower_bound


class _GreaterThan(_GreaterThanEq):
    """Numbers above a bound.

    >>> lucid.distributions.constraints.greater_than(1.0).check(lucid.tensor([1.5, 1.0]))
    tensor([ True, False])
    """

    _kind = _ABOVE


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete, _kind = True, _WHOLE


class _LessThan(_Interval):
    """Numbers below a bound.

    >>> lucid.distributions.constraints.less_than(1.0).check(lucid.tensor([0.5, 1.0]))
    tensor([ True, False])
    """

    _shown, _kind = ("upper_bound",), _BELOW

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound


class _IntegerLessThan(_LessThan):
    is_discrete, _kind = True, _WHOLE


class _Real(Constraint):
    def check(self, value):
        return value == value  # not of NaN

    def holds(self, value):
        return _within(value, -math.inf, math.inf)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)

    def holds(self, value):
        return _within(value, 0.0, 1.0, _WHOLE)


# --- vectors and matrices ---


class _IndependentConstraint(Constraint):
    """Tensors whose last dimensions all lie in a set.

    >>> positive = lucid.distributions.constraints.positive
    >>> lucid.distributions.constraints.independent(positive, 1).check(lucid.tensor([[1.0, 2.0], [1.0, -2.0]]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be an int >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value):
        inside, n = self.base_constraint.check(value), self.reinterpreted_batch_ndims
        if inside.dim() < n:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return inside.reshape(inside.shape[: inside.dim() - n] + (-1,)).all(-1)

    def holds(self, value):
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return self.base_constraint.holds(value)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What every component of a mixture may produce: the dimension of components is put back before a check.

    >>> from lucid.distributions import constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(lucid.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value):
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        inside = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return inside.reshape(inside.shape[: value.dim() - self.event_dim] + (-1,)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


class _OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value):
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)

    def holds(self, value):
        sums = value.sum(-1)
        return _within(value, 0.0, math.inf) and _within(sums - 1, -1e-6, 1e-6, _ABOVE | _BELOW)


class _Multinomial(Constraint):
    """Vectors of counts with a sum of at most a bound.

    >>> lucid.distributions.constraints.multinomial(3).check(lucid.tensor([[1.0, 2.0], [2.0, 2.0]]))
    tensor([ True, False])
    """

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, x):
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


def _everywhere(matrices):
    return matrices.flatten(-2).all(-1)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value):
        return _everywhere(value.tril() == value)


class _LowerCholesky(_LowerTriangular):
    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value):
        tolerance = limits(value.dtype).eps * value.size(-1) * 10  # 10: what rounding adds up to
        norms = value.detach().square().sum(-1).sqrt()
        return super().check(value) & ((norms - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value):
        return _C.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=_C.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value):
        square = super().check(value)
        return _everywhere(_C.isclose(value, value.mT, atol=1e-6)) if square.all() else square


class _PositiveSemidefinite(_Symmetric):
    def check(self, value):
        from ..linalg import eigvalsh

        symmetric = super().check(value)
        return (eigvalsh(value) >= 0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value):
        from ..linalg import cholesky_ex

        symmetric = super().check(value)
        return cholesky_ex(value).info == 0 if symmetric.all() else symmetric


# --- several sets in one tensor ---


class _Joined(Constraint):
    """Sets for parts of a tensor along `dim`."""

    def __init__(self, cseq, dim=0):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")
        return self._join([c.check(part) for c, part in zip(self.cseq, self._parts(value), strict=False)])


class _Cat(_Joined):
    """Sets for stretches of a dimension, of given lengths.

    >>> c = lucid.distributions.constraints
    >>> c.cat([c.positive, c.real], lengths=[1, 2]).check(lucid.tensor([-1.0, -1.0, -1.0]))
    tensor([False,  True,  True])
    """

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    def _parts(self, value):
        starts = (sum(self.lengths[:i]) for i in range(len(self.lengths)))
        return [value.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths, strict=True)]

    def _join(self, checks):
        return _C.cat(checks, self.dim)


class _Stack(_Joined):
    """Sets for the slices of a dimension.

    >>> c = lucid.distributions.constraints
    >>> c.stack([c.positive, c.real]).check(lucid.tensor([-1.0, -1.0]))
    tensor([False,  True])
    """

    @property
    def event_dim(self):
        event = max(c.event_dim for c in self.cseq)
        return event + (self.dim + event < 0)

    def _parts(self, value):
        return value.unbind(self.dim)

    def _join(self, checks):
        return _C.stack(checks, self.dim)


dependent, dependent_property = _Dependent(), _DependentProperty
independent, cat, stack, multinomial = _IndependentConstraint, _Cat, _Stack, _Multinomial
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
boolean, one_hot, real, simplex = _Boolean(), _OneHot(), _Real(), _Simplex()
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
real_vector = independent(real, 1)
positive, nonnegative = greater_than(0.0), greater_than_eq(0.0)
unit_interval, open_unit_interval = interval(0.0, 1.0), _OpenInterval(0.0, 1.0)
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
