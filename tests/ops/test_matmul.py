"""Products of matrices that reach the edges of blocks, strips and tiles, in every layout, beside NumPy's in float64."""

import numpy as np
import pytest

import lucid
import lucid.nn.functional as F

# (m, k, n): few rows of a transposed weight, blocks of rows and depth, rows close together and far apart, thin matrices
SHAPES = [
    (20, 513, 1000),
    (128, 512, 300),
    (64, 64, 64),
    (181, 400, 330),
    (300, 90, 2100),
    (1, 600, 600),
    (600, 600, 7),
    (9, 300, 515),
    (1, 70000, 1),
]
LAYOUTS = [(a, b) for a in (False, True) for b in (False, True)]


def operand(rng, rows, columns, transposed, dtype):
    """A matrix, transposed in memory if asked for; and its values as float64."""
    x = lucid.tensor(rng.standard_normal((columns, rows) if transposed else (rows, columns)).astype(np.float32)).to(dtype)
    x = x.t() if transposed else x
    return x, np.array(x.to(lucid.float64))


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-13), ("bfloat16", 8e-3), ("float16", 1e-3)])
@pytest.mark.parametrize("m, k, n", SHAPES)
def test_values(m, k, n, dtype, rtol):
    rng = np.random.default_rng(m + k + n)
    dtype = getattr(lucid, dtype)
    for a_transposed, b_transposed in LAYOUTS:
        a, x = operand(rng, m, k, a_transposed, dtype)
        b, y = operand(rng, k, n, b_transposed, dtype)
        c, z = operand(rng, m, n, False, dtype)
        v, w = operand(rng, 1, n, False, dtype)
        near = {"rtol": rtol, "atol": rtol * k**0.5 * 4}
        np.testing.assert_allclose(np.array((a @ b).to(lucid.float64)), x @ y, **near)
        np.testing.assert_allclose(
            np.array(lucid.addmm(c, a, b, beta=0.5, alpha=2).to(lucid.float64)), 0.5 * z + 2 * x @ y, **near
        )
        fused = F.fused_linear(a, b.t(), v[0], "relu", 1.0, c)
        np.testing.assert_allclose(np.array(fused.to(lucid.float64)), np.maximum(x @ y + w, 0) + z, **near)
        down, d = operand(rng, k, 5, b_transposed, dtype)
        up, u = operand(rng, 5, n, a_transposed, dtype)
        low_rank = F.lora_linear(a, b.t(), v[0], down, up, 0.5)
        np.testing.assert_allclose(np.array(low_rank.to(lucid.float64)), x @ y + w + 0.5 * x @ d @ u, **near)
        transposed = lucid.empty(n, m, dtype=dtype).t()
        lucid.mm(a, b, out=transposed)
        np.testing.assert_allclose(np.array(transposed.to(lucid.float64)), x @ y, **near)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("batch, m, k, n", [(700, 3, 4, 5), (7, 100, 200, 60), (3, 1, 5, 1), (2, 200, 20, 300)])
def test_batches(batch, m, k, n, dtype):
    rng = np.random.default_rng(batch)
    a, b = (
        lucid.tensor(rng.standard_normal(s).astype(np.float32)).to(getattr(lucid, dtype))
        for s in ((batch, m, k), (batch, k, n))
    )
    x, y = (np.array(t.to(lucid.float64)) for t in (a, b))
    near = {"rtol": 1e-5 if dtype == "float32" else 1e-2, "atol": 1e-4 if dtype == "float32" else 0.1}
    for left, right, expected in (
        (a, b, x @ y),
        (a[0], b, x[0] @ y),
        (a, b[0], x @ y[0]),
        (a[:1].expand(batch, m, k), b, x[:1] @ y),
    ):
        np.testing.assert_allclose(np.array((left @ right).to(lucid.float64)), expected, **near)
    c = lucid.tensor(rng.standard_normal((batch, 1, n)).astype(np.float32)).to(a.dtype)
    expected = 3 * x @ y + np.array(c.to(lucid.float64))
    np.testing.assert_allclose(np.array(lucid.baddbmm(c, a, b, alpha=3).to(lucid.float64)), expected, **near)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_threads_do_not_matter(dtype):
    rng = np.random.default_rng(0)
    before = lucid.get_num_threads()
    try:
        for m, k, n in SHAPES[:5]:
            for a_transposed, b_transposed in LAYOUTS:
                a, _ = operand(rng, m, k, a_transposed, getattr(lucid, dtype))
                b, _ = operand(rng, k, n, b_transposed, getattr(lucid, dtype))
                lucid.set_num_threads(1)
                one = a @ b
                for threads in (2, 3, 4):
                    lucid.set_num_threads(threads)
                    assert lucid.equal(a @ b, one)
    finally:
        lucid.set_num_threads(before)


def test_half_precision_is_not_copied_whole():
    """The workspace of a half-precision product is some tiles per thread, whatever the size of its operands."""
    a = lucid.ones(2048, 2048, dtype=lucid.bfloat16)
    threads = lucid.get_num_threads()
    lucid.set_num_threads(2)
    lucid.reset_peak_memory_stats()
    before = lucid.memory_stats()["allocated_bytes"]
    product = a @ a
    lucid.set_num_threads(threads)
    result, copies = 2 * 2048 * 2048, 3 * 4 * 2048 * 2048
    assert lucid.memory_stats()["peak_bytes"] - before < result + copies // 4
    assert product[0, 0] == 2048
