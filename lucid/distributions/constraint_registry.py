"""Transforms from unconstrained numbers to the sets parameters lie in, so that an optimiser can move them freely.

>>> from lucid.distributions import Normal, transform_to
>>> free = lucid.zeros(3, requires_grad=True)
>>> scale = transform_to(Normal.arg_constraints["scale"])(free)
>>> Normal(0.0, scale).variance.detach()
tensor([1., 1., 1.])

`biject_to` gives bijections, with Jacobians; `transform_to` any map onto the set, which may be cheaper or have more
arguments than needed.
"""

from . import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A function from sets to transforms onto them, by the classes of sets.

    >>> from lucid.distributions import constraints, constraint_registry
    >>> registry = constraint_registry.ConstraintRegistry()
    >>> @registry.register(constraints.positive)
    ... def onto_positive(constraint):
    ...     return lucid.distributions.ExpTransform()
    >>> registry(constraints.positive)
    ExpTransform()
    """

    def __init__(self):
        self._registry = {}

    def register(self, constraint, factory=None):
        """Use a function for the class of a set. Without one: a decorator."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint):
        """A transform onto a set."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _to_interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _exp_then(bound, scale):
    return lambda c: transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(getattr(c, bound), scale)]
    )


# Sets and their transforms: one that is a bijection, one that need not be.
for _kind, _bijection, _transform in [
    (constraints.real, lambda c: transforms.identity_transform, ...),
    (constraints.greater_than, _exp_then("lower_bound", 1), ...),
    (constraints.greater_than_eq, _exp_then("lower_bound", 1), ...),
    (constraints.less_than, _exp_then("upper_bound", -1), ...),
    (constraints.interval, _to_interval, ...),
    (constraints.half_open_interval, _to_interval, ...),
    (constraints.simplex, lambda c: transforms.StickBreakingTransform(), lambda c: transforms.SoftmaxTransform()),
    (constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform(), ...),
    (constraints.lower_cholesky, None, lambda c: transforms.LowerCholeskyTransform()),
    (constraints.positive_definite, None, lambda c: transforms.PositiveDefiniteTransform()),
    (constraints.positive_semidefinite, None, lambda c: transforms.PositiveDefiniteTransform()),
]:
    if _bijection is not None:
        biject_to.register(_kind, _bijection)
    transform_to.register(_kind, _bijection if _transform is ... else _transform)

for _registry in (biject_to, transform_to):
    _registry.register(
        constraints.independent,
        lambda c, to=_registry: transforms.IndependentTransform(to(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    _registry.register(
        constraints.cat, lambda c, to=_registry: transforms.CatTransform([to(part) for part in c.cseq], c.dim, c.lengths)
    )
    _registry.register(
        constraints.stack, lambda c, to=_registry: transforms.StackTransform([to(part) for part in c.cseq], c.dim)
    )
