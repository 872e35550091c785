"""Numbers that may be symbols while PyTorch's compilers trace: `sym_int` and its like, on the plain numbers they are here.

>>> lucid.sym_max(2, 3.5)
3.5
"""

import math

__all__ = ["sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum"]


def sym_float(a):
    """A number as float.

    >>> lucid.sym_float(2)
    2.0
    """
    return float(a)


def sym_int(a):
    """A number as int, towards zero.

    >>> lucid.sym_int(-2.5)
    -2
    """
    return int(a)


def sym_not(a):
    """The negation of a truth value.

    >>> lucid.sym_not(True)
    False
    """
    return not a


def sym_ite(b, t, f):
    """t if b is true, else f, which is of the same type.

    >>> lucid.sym_ite(False, 1, 2)
    2
    """
    if type(t) is not type(f):
        raise AssertionError(f"sym_ite: both values must be of one type, got {type(t).__name__} and {type(f).__name__}")
    return t if b else f


def _alike(value, a, b):
    return float(value) if isinstance(a, float) or isinstance(b, float) else value


def sym_max(a, b):
    """The larger number; a float if one of them is.

    >>> lucid.sym_max(3, 2.0)
    3.0
    """
    return _alike(max(a, b), a, b)


def sym_min(a, b):
    """The smaller number; a float if one of them is.

    >>> lucid.sym_min(3, 2)
    2
    """
    return _alike(min(a, b), a, b)


def sym_sqrt(a):
    """The square root of a number.

    >>> lucid.sym_sqrt(9)
    3.0
    """
    return math.sqrt(a)


def sym_sum(args):
    """The sum of a list of numbers.

    >>> lucid.sym_sum([1, 2, 3])
    6
    """
    return sum(args)
