"""Settings that are one number for all dimensions, or one per dimension."""

from collections.abc import Iterable


def sizes(n):
    """A function that makes a tuple of n of what it is given."""

    def repeat(value):
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    return repeat


single, pair, triple, quadruple = sizes(1), sizes(2), sizes(3), sizes(4)


def reversed_twice(values):
    """Padding as nn.functional.pad takes it, from one number per dimension: the last dimension first, both sides."""
    return tuple(v for v in reversed(values) for _ in range(2))
