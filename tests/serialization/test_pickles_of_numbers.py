"""Tuples of many whole numbers, as the state of Python's random numbers is: the bytes are those of Python's own pickler."""

import io
import pickle
import random

import pytest

import lucid
from lucid.serialization.torch_format import Pickler


@pytest.mark.parametrize("protocol", [0, 1, 2, 3])
def test_tuples_of_numbers(protocol):
    many = tuple(range(250, 270))
    value = [random.getstate(), many, (1, 2), (True,) * 10, (2**70, -1, -(2**31), 2**31) * 4, (1.0, *many), many]
    ours, theirs = io.BytesIO(), io.BytesIO()
    Pickler(ours, protocol).dump(value)
    pickle._Pickler(theirs, protocol).dump(value)
    assert ours.getvalue() == theirs.getvalue()
    file = io.BytesIO()
    lucid.save(value, file)
    file.seek(0)
    assert lucid.load(file) == value
