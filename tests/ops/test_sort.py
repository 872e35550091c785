"""Sorting by size and kind of value: short and long lines, records of parts of keys, blocks, PyTorch's choice among equals."""

import numpy as np
import pytest
import torch

import lucid

INTS = ["uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SIZES = [1, 2, 8, 9, 64, 65, 256, 257, 700, 5000]


def values(dtype, n, kind):
    rng = np.random.default_rng(n)
    dtype = getattr(torch, dtype)
    if dtype is torch.bool:
        return torch.from_numpy(rng.random(n) > 0.5)
    if kind == "distinct":
        return torch.from_numpy(rng.permutation(n)).to(dtype)
    if kind == "crowded":  # equal leading bits, except in one value
        x = torch.from_numpy(rng.integers(0, 99, n)).to(dtype)
        x = 1 + x * torch.finfo(dtype).eps if dtype.is_floating_point else x
        x[n // 2] = torch.finfo(dtype).min if dtype.is_floating_point else torch.iinfo(dtype).max
        return x
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        low, high = (limits.min, limits.max) if kind == "wide" else (0 if limits.min == 0 else -5, 5)
        return torch.from_numpy(rng.integers(low, high, n)).to(dtype)
    x = torch.from_numpy(rng.normal(size=n) * 10)
    if kind == "ties":
        x = x.round()
    if kind == "special":
        x[::5], x[::7], x[::11], x[::13] = float("nan"), -0.0, 0.0, float("inf")
    return x.to(dtype)


def ours(x):
    return lucid.tensor(x.tolist(), dtype=lucid.bfloat16) if x.dtype is torch.bfloat16 else lucid.from_numpy(x.numpy())


def theirs_of(x):
    return torch.tensor(x.tolist()) if x.dtype is lucid.bfloat16 else torch.from_numpy(x.numpy())


def same(a, b):
    wide = torch.float64 if b.dtype.is_floating_point else torch.int64
    b = b.to(wide)
    a = theirs_of(a).to(wide)
    assert a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())
    if wide is torch.float64:
        assert torch.equal(a.signbit() & ~a.isnan(), b.signbit() & ~b.isnan())


@pytest.mark.parametrize("kind", ["wide", "ties", "special", "crowded"])
@pytest.mark.parametrize("dtype", ["bool", *INTS, *FLOATS])
def test_sort(dtype, kind):
    for n in SIZES:
        x = values(dtype, n, kind)
        y = ours(x)
        for descending in (False, True):
            theirs = torch.sort(x, descending=descending, stable=True)
            found = lucid.sort(y, descending=descending)
            same(found.values, theirs.values)
            same(found.indices, theirs.indices)
            same(lucid.argsort(y, descending=descending), theirs.indices)
        same(lucid.msort(y), torch.sort(x, stable=True).values)


@pytest.mark.parametrize("kind", ["wide", "ties", "special", "crowded", "distinct"])
@pytest.mark.parametrize("dtype", INTS + FLOATS)
def test_topk(dtype, kind):
    for n in SIZES:
        x = values(dtype, n, kind)
        y = ours(x)
        for k in {1, 2, n // 100, n // 64, n // 3, n - 1, n} & set(range(n + 1)):
            for largest in (False, True):
                theirs, found = torch.topk(x, k, largest=largest), lucid.topk(y, k, largest=largest)
                same(found.values, theirs.values)
                same(found.indices, theirs.indices)
                found = lucid.topk(y, k, largest=largest, sorted=False)
                same(found.values.sort().values + 0, theirs.values.sort().values + 0)  # -0 + 0 is 0
                same(y[found.indices], theirs_of(found.values))


@pytest.mark.parametrize("threads", [1, 2, 100])
@pytest.mark.parametrize("kind", ["wide", "crowded", "distinct"])
@pytest.mark.parametrize("dtype", ["int16", "int64", "float32", "float64"])
def test_long_lines(dtype, kind, threads):
    x = values(dtype, 300000, kind)
    if kind != "distinct":
        x[5:1000] = x[0]
    y = lucid.from_numpy(x.numpy())
    before = lucid.get_num_threads()
    try:
        lucid.set_num_threads(threads)
        found, theirs = lucid.sort(y), torch.sort(x, stable=True)
        assert np.array_equal(found.values.numpy(), theirs.values.numpy())
        assert np.array_equal(found.indices.numpy(), theirs.indices.numpy())
        assert np.array_equal(lucid.argsort(y).numpy(), theirs.indices.numpy())
        for k in (6000, 100000, 300000):
            for a, b in zip(lucid.topk(y, k), torch.topk(x, k), strict=True):
                assert np.array_equal(a.numpy(), b.numpy())
        for a, b in zip(lucid.unique(y, True, True, True), torch.unique(x, True, True, True), strict=True):
            assert np.array_equal(a.numpy(), b.numpy())
        assert np.array_equal(lucid.nonzero(y > 0).numpy(), torch.nonzero(x > 0).numpy())
        assert np.array_equal(lucid.searchsorted(found.values, y).numpy(), torch.searchsorted(theirs.values, x).numpy())
        assert np.array_equal(lucid.isin(y, y[7:5000]).numpy(), torch.isin(x, x[7:5000]).numpy())
        if x.dtype.is_floating_point and kind == "wide":
            assert np.array_equal(lucid.histc(y, 50).numpy(), torch.histc(x, 50).numpy())
    finally:
        lucid.set_num_threads(before)


@pytest.mark.parametrize("kind", ["wide", "ties", "special", "crowded"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quantiles(dtype, kind):
    for n, shape, dim in ((6000, (6000,), 0), (30000, (3, 10000), 1), (30000, (6000, 5), 0), (900, (300, 3), 0)):
        x = values(dtype, n, kind).reshape(shape)
        y = ours(x)
        for m in (2, 9, 150, 300):  # one table of spans, several, a sorted line
            q = torch.linspace(1, 0, m, dtype=x.dtype)
            for name, how in (("quantile", "lower"), ("nanquantile", "higher"), ("nanquantile", "linear")):
                found = getattr(lucid, name)(y, ours(q), dim, interpolation=how)
                theirs = getattr(torch, name)(x, q, dim, interpolation=how)
                assert torch.allclose(theirs_of(found), theirs, rtol=1e-6 if how == "linear" else 0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float16", "float32", "float64"])
def test_values_that_repeat(dtype):
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.integers(-900, 900, 60000)).to(getattr(torch, dtype))
    if x.dtype.is_floating_point:
        x = x * 1.5
        x[::7000] = float("nan")
    else:
        x[::9], x[1::10] = torch.iinfo(x.dtype).max, torch.iinfo(x.dtype).min
    y = ours(x)
    same(lucid.unique(y), torch.unique(x))
    for a, b in zip(lucid.unique(y, return_counts=True), torch.unique(x, return_counts=True), strict=True):
        same(a, b)


@pytest.mark.parametrize("dim", [-3, -2, -1, 0, 1, 2])
def test_strides(dim):
    x = torch.randn(7, 9, 11)
    y = lucid.from_numpy(x.numpy())
    for view in (lambda t: t, lambda t: t.transpose(0, 2), lambda t: t[:, ::2], lambda t: t[:1].expand(4, 9, 11)):
        a, b = view(y), view(x)
        for found, theirs in ((a.sort(dim), b.sort(dim)), (a.topk(3, dim), b.topk(3, dim))):
            same(found[0], theirs[0])
            same(found[1], theirs[1])
            assert found[0].stride() == theirs[0].stride() and found[1].stride() == theirs[1].stride()


@pytest.mark.parametrize("dtype", ["int64", "int8", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kind", ["ties", "special"])
def test_many_tiny_lines(dtype, kind):
    for n in (1, 2, 3, 5, 8, 9, 16):
        x = values(dtype, 300 * n, kind).reshape(300, n)
        for a, b in ((ours(x), x), (ours(x.t().contiguous()).t(), x), (ours(x)[::2], x[::2])):
            for descending in (False, True):
                found, theirs = lucid.sort(a, descending=descending), torch.sort(b, descending=descending, stable=True)
                same(found.values, theirs.values)
                same(found.indices, theirs.indices)
                same(lucid.argsort(a, descending=descending), theirs.indices)
                for k in {1, 2, n // 2, n} & set(range(1, n + 1)):
                    found, theirs = a.topk(k, largest=descending), b.topk(k, largest=descending)
                    same(found.values, theirs.values)
                    same(found.indices, theirs.indices)
