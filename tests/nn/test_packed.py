"""Packed and padded sequences beside PyTorch's."""

import pickle

import pytest
import torch

import lucid
from tests.nn.programs import assert_close, attempt

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def parts(packed):
    return [packed.data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices]


def sequences(m, lengths=(4, 2, 3), width=2):
    return [m.arange(float(n * width)).reshape(n, width) + 10 * i for i, n in enumerate(lengths)]


@program
def packing(m):
    R, results = m.nn.utils.rnn, []
    x = m.arange(24.0).reshape(4, 3, 2)
    for lengths in ([4, 3, 1], m.tensor([4, 4, 4]), m.tensor([3, 2, 2])):
        packed = R.pack_padded_sequence(x, lengths)
        results += [parts(packed), *R.pad_packed_sequence(packed), *R.pad_packed_sequence(packed, True, -1.0, 6)]
    for lengths in ([1, 4, 2], m.tensor([2, 3, 3])):
        packed = R.pack_padded_sequence(x, lengths, enforce_sorted=False)
        results += [parts(packed), *R.pad_packed_sequence(packed), *R.pad_packed_sequence(packed, batch_first=True)]
    packed = R.pack_padded_sequence(x.transpose(0, 1), [4, 3, 1], batch_first=True)
    return [*results, parts(packed)]


@program
def lists(m):
    R, results = m.nn.utils.rnn, []
    s = sequences(m)
    for kwargs in ({}, {"batch_first": True}, {"padding_value": -2.0}, {"padding_side": "left"}):
        results.append(R.pad_sequence(s, **kwargs))
    padded = R.pad_sequence(s)
    results += [R.unpad_sequence(padded, m.tensor([4, 2, 3]))]
    packed = R.pack_sequence(s, enforce_sorted=False)
    results += [parts(packed), R.unpack_sequence(packed), parts(R.pack_sequence(sorted(s, key=len, reverse=True)))]
    return results


@program
def gradients(m):
    R = m.nn.utils.rnn
    x = m.arange(24.0).reshape(4, 3, 2).requires_grad_()
    packed = R.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
    y, _ = R.pad_packed_sequence(packed, total_length=5)
    (y * y).sum().backward()
    return x.grad


@program
def moves(m):
    p = m.nn.utils.rnn.pack_sequence(sequences(m), enforce_sorted=False)
    results = [parts(p.double()), parts(p.to(m.float64)), parts(p.half().float()), parts(p.int()), p.is_cuda]
    results += [parts(p.short()), parts(p.char()), parts(p.int().byte())]
    return [*results, p.to("cpu") is p, p.float() is p, len(p), parts(pickle.loads(pickle.dumps(p)))]


@program
def through_layers(m):
    results = []
    for kind, width in (("LSTM", 3), ("GRU", 3), ("RNN", 3)):
        m.manual_seed(3)
        layer = getattr(m.nn, kind)(2, width, num_layers=2, bidirectional=True)
        p = m.nn.utils.rnn.pack_sequence(sequences(m), enforce_sorted=False)
        out, hidden = layer(p)
        results += [parts(out), hidden, *m.nn.utils.rnn.pad_packed_sequence(out)]
    return results


for _name, _do in {
    "not_sorted": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.ones(4, 2, 1), [1, 4]),
    "zero": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.ones(4, 2, 1), [4, 0]),
    "count": lambda m: m.nn.utils.rnn.pack_padded_sequence(m.ones(4, 2, 1), [4, 3, 2]),
    "total": lambda m: m.nn.utils.rnn.pad_packed_sequence(m.nn.utils.rnn.pack_sequence([m.ones(3)]), total_length=2),
    "empty_list": lambda m: m.nn.utils.rnn.pad_sequence([]),
    "side": lambda m: m.nn.utils.rnn.pad_sequence([m.ones(2)], padding_side="middle"),
    "number": lambda m: m.nn.utils.rnn.pad_sequence(3),
    "unordered": lambda m: m.nn.utils.rnn.pack_sequence([m.ones(1), m.ones(2)]),
}.items():
    PROGRAMS[f"refuses_{_name}"] = _do


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    assert_close(attempt(PROGRAMS[name], lucid), attempt(PROGRAMS[name], torch), rel=1e-4)


def test_lengths_beyond_the_end_are_refused():
    with pytest.raises(RuntimeError):  # PyTorch repeats what it has
        lucid.nn.utils.rnn.pack_padded_sequence(lucid.ones(4, 2, 1), [5, 4])


def test_programs_run():
    assert [n for n in PROGRAMS if "refuses" not in n and isinstance(attempt(PROGRAMS[n], torch), str)] == []
