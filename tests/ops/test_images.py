"""Shapes that reach the blocked forms of grid_sample, pad and batch_norm, and their edges: values and gradients as PyTorch."""

import itertools

import numpy as np
import pytest
import torch

import lucid


def compare(call, *arrays, rtol=1e-5, atol=1e-5):
    """call(library, *tensors) in both libraries: the result, and gradients of all operands."""
    results = []
    for m in (torch, lucid):
        operands = [m.tensor(a, requires_grad=True) for a in arrays]
        y = call(m, *operands)
        weights = m.tensor(np.cos(np.arange(y.numel(), dtype=arrays[0].dtype)).reshape(tuple(y.shape)))
        results.append([y, *m.autograd.grad((y * weights).sum(), operands)])
    for theirs, mine in zip(*results):
        np.testing.assert_allclose(mine.detach().numpy(), theirs.detach().numpy(), rtol=rtol, atol=atol)


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


MODES = list(itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mode,padding,corners", MODES)
def test_grid_sample_of_many_channels(mode, padding, corners, dtype):
    def call(m, x, g):
        return m.nn.functional.grid_sample(x, g, mode, padding, align_corners=corners)

    compare(call, normal(2, 21, 9, 11, dtype=dtype), normal(2, 17, 16, 2, dtype=dtype), rtol=1e-4, atol=1e-4)


def test_grid_sample_of_volumes():
    def call(m, x, g):
        return m.nn.functional.grid_sample(x, g, align_corners=False)

    compare(call, normal(2, 16, 4, 5, 6), normal(2, 3, 4, 5, 3), rtol=1e-4, atol=1e-4)


def test_what_is_outside_of_the_image_is_zero_whatever_the_image_holds():
    x = np.full((2, 16, 4, 4), np.inf, np.float32)
    g = np.full((2, 3, 3, 2), 5.0, np.float32)
    assert lucid.nn.functional.grid_sample(lucid.tensor(x), lucid.tensor(g), align_corners=False).abs().sum().item() == 0


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("widths", [(2, 1), (1, 2, 3, 0), (2, 0, 1, 3, 2, 2)])
def test_pad(mode, widths):
    shape = (3, 2, 5, 6, 7)[: len(widths) // 2 + 2]
    compare(lambda m, x: m.nn.functional.pad(x, widths, mode=mode), normal(*shape))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float16", "int64", "complex128", "bool"])
def test_pad_of_elements_of_every_size(dtype):
    a = np.arange(24).reshape(2, 3, 4).astype(dtype)
    theirs = torch.nn.functional.pad(torch.tensor(a), (2, 1), mode="replicate") if dtype != "bool" else None
    mine = lucid.nn.functional.pad(lucid.tensor(a), (2, 1), mode="replicate")
    expected = theirs.numpy() if theirs is not None else np.pad(a, ((0, 0), (0, 0), (2, 1)), mode="edge")
    assert np.array_equal(mine.numpy(), expected)


@pytest.mark.parametrize("shape", [(5000, 40), (700, 1030), (900, 6, 5), (2, 33), (4100, 1024)])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_batch_norm_of_columns(shape, offset):
    def call(m, x, w, b):
        if m is torch:  # in float64: far from zero PyTorch's float32 is off by more than is allowed here
            return m.nn.functional.batch_norm((x + offset).double(), None, None, w.double(), b.double(), True).float()
        return m.nn.functional.batch_norm(x + offset, None, None, w, b, True)

    compare(call, normal(*shape), normal(shape[1]), normal(shape[1] + 1)[:-1], rtol=1e-3, atol=2e-3 if offset else 2e-4)


def test_batch_norm_of_columns_is_the_same_for_any_number_of_threads():
    x, before = lucid.tensor(normal(4096, 129)), lucid.get_num_threads()
    results = []
    for n in (1, 2, 3):
        lucid.set_num_threads(n)
        results.append(lucid.nn.functional.batch_norm(x, None, None, training=True))
    lucid.set_num_threads(before)
    assert all(lucid.equal(r, results[0]) for r in results)
