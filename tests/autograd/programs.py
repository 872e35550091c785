"""Programs that run with Lucid and with PyTorch and must give the same result: the form of the autograd tests."""

import contextlib
import gc
import math
import warnings

import pytest
import torch

import lucid


def plain(value):
    """Tensors as lists, floats to five digits."""
    if isinstance(value, (lucid.Tensor, torch.Tensor)):
        return plain(value.tolist())
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.5g}")
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def quietly(function, module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(module)


def raised(function, module):
    try:
        quietly(function, module)
    except Exception as problem:
        return problem
    return None


def blocks():
    """Engine memory in use when all garbage is gone."""
    gc.collect()
    return lucid._C.live_blocks()


def leaf(L, *values, **kwargs):
    return L.tensor(list(values), requires_grad=True, **kwargs)


def names(fn):
    return [type(f).__name__ if f is not None else None for f, _ in fn.next_functions]


class Programs:
    """Collects the programs of a test module; `tests()` makes the tests of them."""

    def __init__(self):
        self.programs, self.errors = [], []

    def program(self, function):
        """Returns plain values, the same with either module."""
        self.programs.append(function)
        return function

    def error(self, text):
        """Raises with this text, the same with either module."""

        def register(function):
            self.errors.append((function, text))
            return function

        return register

    def tests(self):
        @pytest.mark.parametrize("function", self.programs, ids=lambda f: f.__name__)
        def test_program(function):
            assert plain(quietly(function, lucid)) == plain(quietly(function, torch))

        @pytest.mark.parametrize(("function", "text"), self.errors, ids=lambda v: getattr(v, "__name__", ""))
        def test_error(function, text):
            mine, theirs = raised(function, lucid), raised(function, torch)
            assert theirs is not None and text in str(theirs), "the expectation itself is wrong"
            assert mine is not None, "did not raise"
            assert text in str(mine), mine
            assert isinstance(mine, type(theirs))

        @pytest.mark.parametrize("function", self.programs + [f for f, _ in self.errors], ids=lambda f: f.__name__)
        def test_nothing_leaks(function):
            with contextlib.suppress(Exception):
                quietly(function, lucid)
            before = blocks()
            for _ in range(3):
                with contextlib.suppress(Exception):
                    quietly(function, lucid)
            assert blocks() == before

        return test_program, test_error, test_nothing_leaks
