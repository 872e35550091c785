"""__lucid_function__: a class takes over the ops its instances are passed to."""

import pytest

import lucid


class Logged(lucid.Tensor):
    log = []

    @classmethod
    def __lucid_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append((func.__name__, types, len(args), sorted(kwargs or {})))
        return super().__lucid_function__(func, types, args, kwargs)


@pytest.fixture
def x():
    Logged.log.clear()
    return lucid.ones(2, 3).as_subclass(Logged)


def test_functions_methods_operators(x):
    plain = lucid.ones(2, 3)
    calls = {
        "add": lambda: lucid.add(plain, x),
        "mul": lambda: x * 2,
        "sub": lambda: plain - x,
        "sum": lambda: x.sum(dim=1, keepdim=True),
        "cat": lambda: lucid.cat([plain, x]),
        "exp": lambda: lucid.exp(input=x),
        "__getitem__": lambda: x[0],
        "neg": lambda: -x,
        "eq": lambda: x == 1,
    }
    for name, call in calls.items():
        Logged.log.clear()
        result = call()
        assert Logged.log[0][0] == name and Logged.log[0][1] == (Logged,) and len(Logged.log) == 1
        assert type(result) is Logged
    Logged.log.clear()
    x.sum(dim=1, keepdim=True)
    assert Logged.log[0][2:] == (1, ["dim", "keepdim"])
    Logged.log.clear()
    x[0] = 5
    assert Logged.log[0][0] == "__setitem__" and x.tolist()[0] == [5, 5, 5]


def test_several_results(x):
    parts = x.unbind(0)
    assert type(parts) is tuple and all(type(p) is Logged for p in parts)
    best = x.max(dim=0)
    assert type(best) is lucid.return_types.max and type(best.values) is Logged


def test_in_place_keeps_the_object(x):
    y = x
    x += 1
    assert x is y and type(x) is Logged and x.tolist() == [[2.0] * 3] * 2


def test_gradients_flow_through(x):
    leaf = lucid.ones(3, requires_grad=True)
    y = leaf.as_subclass(Logged)
    (y * 3).sum().backward()
    assert leaf.grad.tolist() == [3.0] * 3


def test_subclasses_first(x):
    class Inner(Logged):
        @classmethod
        def __lucid_function__(cls, func, types, args=(), kwargs=None):
            return cls.__name__, types

    y = lucid.ones(2, 3).as_subclass(Inner)
    assert lucid.add(x, y) == ("Inner", (Inner, Logged))
    assert y + x == ("Inner", (Inner, Logged))


def test_any_object():
    class Duck:
        def __init__(self):
            self.seen = []

        @classmethod
        def __lucid_function__(cls, func, types, args=(), kwargs=None):
            return func, args

    duck = Duck()
    assert lucid.add(lucid.ones(2), duck)[0] is lucid.add
    assert lucid.sum(duck)[1] == (duck,)
    assert lucid.cat([lucid.ones(1), duck])[0] is lucid.cat


def test_not_implemented():
    class Shy(lucid.Tensor):
        @classmethod
        def __lucid_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        lucid.add(lucid.ones(2).as_subclass(Shy), 1)


def test_errors_pass_through():
    class Broken(lucid.Tensor):
        @classmethod
        def __lucid_function__(cls, func, types, args=(), kwargs=None):
            raise ZeroDivisionError(func.__name__)

    with pytest.raises(ZeroDivisionError, match="exp"):
        lucid.ones(2).as_subclass(Broken).exp()


def test_plain_tensors_are_as_before():
    """A class with an override changes nothing for tensors of other classes, down to the rounding of 2.5 / x."""
    x = lucid.tensor([1.0, 2.0, 3.0])
    assert (2.5 / x).tolist() == (x.reciprocal() * 2.5).tolist()
    assert type(2.5 / x) is lucid.Tensor and type(2.5 / x.as_subclass(Logged)) is Logged
