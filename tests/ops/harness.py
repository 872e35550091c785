"""Build the same tensors in both libraries, compare what comes back."""

import functools
import zlib

import numpy as np
import torch

import lucid

TOLERANCE = {
    "float16": (1e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2), "float32": (2e-6, 2e-6), "float64": (1e-9, 1e-9),
    "complex64": (3e-6, 3e-6), "complex128": (1e-9, 1e-9),
}  # fmt: skip
LAYOUTS = ("contiguous", "transposed", "sliced")


def dtype_of(m, name):
    return getattr(m, name)


def name_of(dtype):
    return str(dtype).split(".")[-1]


def from_numbers(m, array, numbers, dtype):
    """A contiguous tensor of its own with these numbers, which are given as an array and as a list."""
    if m is torch:
        return torch.tensor(array, dtype=dtype_of(m, dtype)).reshape(array.shape)
    return lucid.tensor(numbers, dtype=dtype_of(m, dtype)).reshape(array.shape)


def laid_out(m, x, layout):
    """The same values with other strides."""
    if layout == "transposed" and x.ndim >= 2:
        return x.transpose(0, -1).clone(memory_format=m.contiguous_format).transpose(0, -1)
    if layout == "sliced" and x.ndim >= 1:
        wide = m.zeros(tuple(x.shape[:-1]) + (2 * x.shape[-1],), dtype=x.dtype)
        view = wide[..., ::2]
        view.copy_(x)
        return view
    return x


@functools.lru_cache(maxsize=8)
def numbers_of(sample, dtype):
    """For each tensor of the sample: its dtype, and its numbers as an array and as a list."""
    rng = np.random.default_rng(zlib.crc32(f"{sample.op}".encode()))
    arrays = [(t.dtype or dtype, t.numbers(dtype, rng)) for t in sample.tensors()]
    return [(d, a, a.tolist()) for d, a in arrays]


def build(m, sample, dtype, layout="contiguous", grad=False):
    leaves = []
    for t, (own, array, numbers) in zip(sample.tensors(), numbers_of(sample, dtype)):
        x = laid_out(m, from_numbers(m, array, numbers, own), layout)
        differentiable = name_of(x.dtype).startswith(("float", "bfloat", "complex"))
        if grad and differentiable and t.grad is not False:
            x = x.detach()
            x.requires_grad_()
        leaves.append(x)
    return leaves


def to_torch(x):
    """A Lucid tensor as a PyTorch tensor with its strides, without using the interchange that is itself under test."""
    data = torch.tensor(x.detach().tolist(), dtype=dtype_of(torch, name_of(x.dtype))).reshape(tuple(x.shape))
    return data


def assert_same(ours, theirs, sample, where, strides=True):
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, (tuple, list)) and len(ours) == len(theirs), (
            f"{where}: structure {type(ours)} vs {type(theirs)}"
        )
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert_same(a, b, sample, f"{where}[{i}]", strides)
        return
    if not isinstance(theirs, torch.Tensor):
        assert ours == theirs or (ours != ours and theirs != theirs), f"{where}: {ours} vs {theirs}"
        return
    assert isinstance(ours, lucid.Tensor), f"{where}: {type(ours)}"
    assert tuple(ours.shape) == tuple(theirs.shape), f"{where}: shape {tuple(ours.shape)} vs {tuple(theirs.shape)}"
    assert name_of(ours.dtype) == name_of(theirs.dtype), f"{where}: dtype {ours.dtype} vs {theirs.dtype}"
    if strides and theirs.numel():
        real = [d for d in range(theirs.ndim) if theirs.shape[d] > 1]
        assert [ours.stride()[d] for d in real] == [theirs.stride()[d] for d in real], (
            f"{where}: strides {ours.stride()} vs {theirs.stride()} of {tuple(theirs.shape)}"
        )
    if sample.random:
        return
    rtol, atol = TOLERANCE.get(name_of(theirs.dtype), (0, 0))
    rtol, atol = sample.rtol or rtol, sample.atol if sample.atol is not None else atol
    found, expected = to_torch(ours), theirs.detach().resolve_conj().contiguous()
    if found.dtype != torch.complex32 and torch.equal(found, expected):  # most are; what follows takes ten times as long
        return
    torch.testing.assert_close(
        found,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=True,
        msg=lambda t: f"{where}: {t}",
    )


def flat(result):
    if isinstance(result, (tuple, list)):
        return [y for r in result for y in flat(r)]
    return [result] if hasattr(result, "requires_grad") else []


def error_class(error):
    for kind in (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError):
        if isinstance(error, kind):
            return kind
    return type(error)
