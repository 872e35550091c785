"""Matrices that are hard on a factorisation, by name, and what a good factorisation of them keeps small."""

import numpy as np

import lucid

DTYPES = ("float32", "float64", "complex64", "complex128")
EPSILON = {"float32": 1.2e-7, "float64": 2.3e-16, "complex64": 1.2e-7, "complex128": 2.3e-16}


def drawn(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in dtype else x).astype(dtype)


def with_values(m, n, values, dtype, seed=0):
    """A matrix with these singular values."""
    u, _ = np.linalg.qr(drawn((m, m), "complex128" if "complex" in dtype else "float64", seed))
    v, _ = np.linalg.qr(drawn((n, n), "complex128" if "complex" in dtype else "float64", seed + 1))
    k = min(m, n)
    return ((u[:, :k] * values) @ v[:k]).astype(dtype)


def kinds(dtype):
    """(name, matrix) of many shapes."""
    for n in (1, 2, 3, 4, 5, 8, 16, 24, 25, 33, 70):
        yield f"square {n}", drawn((n, n), dtype)
    for m, n in ((5, 3), (3, 5), (40, 7), (7, 40), (33, 32), (1, 9), (9, 1)):
        yield f"{m} by {n}", drawn((m, n), dtype)
    yield "batch of tiny", drawn((37, 3, 3), dtype)
    yield "batch of 4", drawn((19, 4, 4), dtype)
    yield "batch of 16", drawn((2, 9, 16, 16), dtype)
    yield "batch of tall", drawn((5, 30, 6), dtype)
    k = 12
    yield "ill-conditioned", with_values(k, k, np.logspace(0, -12, k), dtype)
    yield "ill-conditioned, large", with_values(40, 40, np.logspace(0, -12, 40), dtype)
    yield "rank deficient", with_values(10, 8, np.array([3.0, 2, 1, 1, 0, 0, 0, 0]), dtype)
    yield "rank deficient, large", with_values(40, 50, np.r_[np.ones(10), np.zeros(30)], dtype)
    yield "repeated values", with_values(6, 6, np.ones(6), dtype)
    yield "zeros", np.zeros((4, 4), dtype)
    yield "identity", np.eye(5, dtype=dtype)
    yield "huge", drawn((5, 5), dtype) * (1e30 if "32" in dtype or "64" == dtype[-2:] and "complex" in dtype else 1e200)
    yield "small", drawn((5, 5), dtype) * (1e-30 if "32" in dtype or "64" == dtype[-2:] and "complex" in dtype else 1e-200)


def spread(a):
    """The same values as a Lucid tensor with strides of its own."""
    wide = np.zeros((*a.shape[:-2], a.shape[-1], 2 * a.shape[-2]), a.dtype)
    wide[..., ::2] = np.swapaxes(a, -1, -2)
    return lucid.from_numpy(wide)[..., ::2].mT


def size(a):
    return float(np.abs(a).max(initial=0)) or 1.0


def assert_small(difference, scale, dtype, n, factor=30):
    limit = factor * EPSILON[dtype] * max(n, 4) * scale
    worst = np.abs(difference).max(initial=0)
    assert worst <= limit, f"{worst} > {limit}"
