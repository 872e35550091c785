"""Settings with one value for all dimensions, or one per dimension."""

from collections.abc import Iterable


def sizes(n):
    """A function that expands a value to a tuple of n.

    >>> from lucid.nn.modules._base.sizes import sizes
    >>> sizes(2)(3), sizes(2)([4, 5])
    ((3, 3), (4, 5))
    """

    def repeat(value):
        return tuple(value) if isinstance(value, Iterable) else (value,) * n

    repeat.__doc__ = f"""A tuple of {n}.

    >>> from lucid.nn.modules._base.sizes import sizes
    >>> len(sizes({n})(0))
    {n}
    """
    return repeat


single, pair, triple, quadruple = sizes(1), sizes(2), sizes(3), sizes(4)


def reversed_twice(values):
    """Padding as nn.functional.pad takes it, from one number per dimension: the last dimension first, both sides.

    >>> from lucid.nn.modules._base.sizes import reversed_twice
    >>> reversed_twice((1, 2))
    (2, 2, 1, 1)
    """
    return tuple(v for v in reversed(values) for _ in range(2))
