"""What op_db has no sample for: PyTorch's rules at the edges, one line each, the same outcome or the same class of error."""

import warnings

import pytest
import torch

import lucid

from .compare import assert_same, assert_same_error
from .exchange import Exchange

WIDE = torch.zeros(2, 1).expand(2, 3)  # two elements of memory
TURNED = torch.arange(120.0).reshape(4, 5, 6).permute(2, 0, 1)
I = torch.tensor([1, 0, 2])
ROW = torch.tensor([True, False, True])


def put(m, x, key, value):
    x[key] = value
    return x


CASES = {
    "number in place": (lambda m, x: m.add_(5, x), torch.tensor(1)),
    "two numbers": (lambda m, x: m.pow(2, 3), I),
    "expanded.fill_(number)": (lambda m, x: x.fill_(2), WIDE),
    "expanded.fill_(tensor)": (lambda m, x, v: x.fill_(v), WIDE, torch.tensor(2.0)),
    "expanded[...] = number": (put, WIDE, ..., 2),
    "expanded[0] = number": (put, WIDE, 0, 2),
    "expanded[0, 1] = number": (put, WIDE, (0, 1), 2),
    "x[False] = wrong shape": (put, TURNED, False, I),
    "int[mask] = float": (put, I, ROW, torch.tensor([1.5])),
    "x[:, :, mask] = int": (put, torch.zeros(2, 1, 3), (slice(None), slice(None), ROW), torch.tensor(4)),
    "x[None, i]": (lambda m, x, i: x[None, i], TURNED, I),
    "x[:, None, i]": (lambda m, x, i: x[:, None, i], TURNED, I),
    "clamp by number and tensor": (lambda m, x, v: m.clamp(x, 0.5, v), TURNED, TURNED),
    "clamp of complex": (lambda m, x: m.clamp(x, x, x), torch.zeros(3, dtype=torch.complex64)),
    "cat of empty vectors": (lambda m, x: m.cat([x, x], 1), torch.empty(0)),
    "int expanded + float": (lambda m, x, y: x + y, torch.arange(3).expand(2, 4, 3).permute(2, 0, 1), torch.zeros(1, 4)),
    "float(memory_format) of a strided tensor": (lambda m, x: x.float(memory_format=m.contiguous_format), TURNED[:, ::2]),
    "to(channels_last) of a strided tensor": (lambda m, x: x.to(memory_format=m.channels_last), TURNED[None]),
    "old names": (lambda m, x: [x.__div__(2), x.__rdiv__(2), x[1].sum().__long__(), x[1, 1, 1].__nonzero__()], TURNED),
}


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    f, *args = CASES[name]
    runs = {}
    for m in (torch, lucid):
        made = Exchange(ours=m is lucid)(args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                runs[m] = f(m, *made), None
            except Exception as error:  # noqa: BLE001  the class is compared
                runs[m] = None, error
    (ours, our_error), (theirs, their_error) = runs[lucid], runs[torch]
    if their_error is not None:
        return assert_same_error(our_error, their_error)
    assert our_error is None, our_error
    assert_same(ours, theirs, lambda dtype: (1e-6, 1e-6) if dtype.is_floating_point else (0, 0))
