"""Contexts and decorators that programs import from PyTorch's private modules."""

from functools import wraps


class nothing:  # noqa: N801 (a context)
    """A context and decorator that changes nothing.

    >>> from lucid._declared.contexts import nothing
    >>> with nothing("a label"):
    ...     1 + 1
    2
    """

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __call__(self, function):
        return function


class _DecoratorContextManager:
    """A context manager that can decorate a function too: every call runs in a fresh one."""

    def __call__(self, function):
        @wraps(function)
        def inside(*args, **kwargs):
            with self.clone():
                return function(*args, **kwargs)

        return inside

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, *error):
        raise NotImplementedError

    def clone(self):
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments: `@no_grad` and `@no_grad()` are the same."""

    def __new__(cls, orig_func=None):
        return super().__new__(cls) if orig_func is None else cls()(orig_func)


def return_and_correct_aliasing(func, args, kwargs, out):
    """The result itself: views know their memory.

    >>> from lucid._declared.contexts import return_and_correct_aliasing
    >>> return_and_correct_aliasing(abs, (), {}, 1)
    1
    """
    return out


def dill_available():
    """Whether the package dill is installed.

    >>> from lucid._declared.contexts import dill_available
    >>> dill_available() in (True, False)
    True
    """
    from importlib.util import find_spec

    return find_spec("dill") is not None


class OrderedSet(dict):
    """A set that keeps the order of insertion.

    >>> from lucid._declared.contexts import OrderedSet
    >>> list(OrderedSet([3, 1, 3]))
    [3, 1]
    """

    def __init__(self, items=()):
        super().__init__((item, None) for item in items)

    def add(self, item):
        self[item] = None

    def discard(self, item):
        self.pop(item, None)

    remove = dict.__delitem__
