"""Sets that parameters and samples lie in: `check` says which elements do.

>>> lucid.distributions.constraints.positive.check(lucid.tensor([1.0, -1.0]))
tensor([ True, False])
"""

__all__ = [
    "Constraint",
    "boolean",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "less_than",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "open_unit_interval",
    "positive",
    "positive_integer",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]


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

    def __repr__(self):
        return type(self).__name__.removeprefix("_") + "()"


class _Named(Constraint):
    """A set that is a function, and is called by its name."""

    def __init__(self, name, check, is_discrete=False, event_dim=0):
        self._name, self.check, self.is_discrete, self.event_dim = name, check, is_discrete, event_dim

    def __repr__(self):
        return self._name


def _bounded(name, check, parameters, is_discrete=False):
    def made(*bounds):
        values = ", ".join(f"{p}={b}" for p, b in zip(parameters, bounds, strict=True))
        title = "".join(word.capitalize() for word in name.split("_"))
        return _Named(f"{title}({values})", lambda value: check(value, *bounds), is_discrete)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"""A set with bounds: {", ".join(parameters)}.

    >>> lucid.distributions.constraints.{name}({", ".join(map(str, range(len(parameters))))}).check(lucid.tensor(0.5)).dtype
    lucid.bool
    """
    return made


def _whole(value):
    return value % 1 == 0


boolean = _Named("Boolean()", lambda v: (v == 0) | (v == 1), True)
real = _Named("Real()", lambda v: v == v)
real_vector = _Named("IndependentConstraint(Real(), 1)", lambda v: (v == v).all(-1), event_dim=1)
simplex = _Named("Simplex()", lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6), event_dim=1)
one_hot = _Named("OneHot()", lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1), True, 1)
greater_than = _bounded("greater_than", lambda v, low: low < v, ["lower_bound"])
greater_than_eq = _bounded("greater_than_eq", lambda v, low: low <= v, ["lower_bound"])
less_than = _bounded("less_than", lambda v, high: v < high, ["upper_bound"])
interval = _bounded("interval", lambda v, low, high: (low <= v) & (v <= high), ["lower_bound", "upper_bound"])
half_open_interval = _bounded(
    "half_open_interval", lambda v, low, high: (low <= v) & (v < high), ["lower_bound", "upper_bound"]
)
integer_interval = _bounded(
    "integer_interval", lambda v, low, high: _whole(v) & (low <= v) & (v <= high), ["lower_bound", "upper_bound"], True
)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
open_unit_interval = _Named("OpenInterval(lower_bound=0.0, upper_bound=1.0)", lambda v: (v > 0) & (v < 1))
nonnegative_integer = _Named("IntegerGreaterThan(lower_bound=0)", lambda v: _whole(v) & (v >= 0), True)
positive_integer = _Named("IntegerGreaterThan(lower_bound=1)", lambda v: _whole(v) & (v >= 1), True)


def independent(base, reinterpreted_batch_ndims):
    """The set of tensors whose last dimensions all lie in a set.

    >>> positive = lucid.distributions.constraints.positive
    >>> lucid.distributions.constraints.independent(positive, 1).check(lucid.tensor([[1.0, 2.0], [1.0, -2.0]]))
    tensor([ True, False])
    """
    n = reinterpreted_batch_ndims

    def check(value):
        inside = base.check(value)
        return inside.reshape(inside.shape[: inside.dim() - n] + (-1,)).all(-1) if n else inside

    return _Named(f"IndependentConstraint({base}, {n})", check, base.is_discrete, base.event_dim + n)
