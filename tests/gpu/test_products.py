"""Products of the CUDA backend by each of their ways. Runs on a GPU, or on the emulation (test_emulated.py)."""

import ctypes

import pytest

import lucid
import lucid.nn.functional as F

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")


@pytest.fixture
def align_everything():
    """Products of any size go through copies with padded rows."""
    limit = ctypes.c_int64.in_dll(ctypes.CDLL(lucid._C.__file__), "lc_cuda_align_from")
    before, limit.value = limit.value, 1
    yield
    limit.value = before


def whole(*shape):
    """Small whole numbers, whose sums are exact in every dtype."""
    return lucid.randint(-1, 2, shape).to(lucid.float32)


ODD = {
    "result": (lambda x: x, lambda w: w, (70, 72), (97, 72)),
    "left": (lambda x: x, lambda w: w, (70, 97), (72, 97)),
    "left, transposed": (lambda x: x.mT, lambda w: w, (96, 71), (72, 96)),
    "right, transposed": (lambda x: x, lambda w: w.mT, (72, 96), (96, 67)),
    "columns within": (lambda x: x[:, 3:], lambda w: w[:, 3:], (70, 99), (72, 99)),
    "rows from an odd place": (lambda x: x[1:], lambda w: w[1:], (72, 97), (74, 97)),
    "batch": (lambda x: x, lambda w: w, (3, 65, 67), (3, 71, 67)),
    "batch, shared": (lambda x: x, lambda w: w.expand(3, 71, 67), (3, 65, 67), (71, 67)),
    "long rows": (lambda x: x, lambda w: w, (65, 1031), (70, 1031)),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rows_that_start_anywhere(align_everything, name, dtype):
    left, right, x, w = ODD[name]
    x, w = whole(*x), whole(*w)
    expected = left(x) @ right(w).mT
    x, w = (t.to("cuda", getattr(lucid, dtype)) for t in (x, w))
    assert lucid.equal((left(x) @ right(w).mT).float().cpu(), expected)


def test_a_layer_of_odd_width(align_everything):
    x, w, b = whole(70, 72), whole(97, 72), whole(97)
    expected = F.linear(x, w, b)
    g = whole(70, 97)
    on = [t.to("cuda", lucid.bfloat16).requires_grad_() for t in (x, w, b)]
    y = F.linear(*on)
    y.backward(g.to("cuda", lucid.bfloat16))
    assert lucid.equal(y.detach().float().cpu(), expected)
    for found, correct in zip(on, (g @ w, g.mT @ x, g.sum(0))):
        assert lucid.equal(found.grad.float().cpu(), correct.bfloat16().float())


SMALL = [(m, n, k) for m in (1, 2, 9) for n in (1, 5, 40) for k in (1, 30, 33, 84, 400, 1100)]


@pytest.mark.parametrize("m, n, k", SMALL)
def test_small_products(m, n, k):
    x, w, b = whole(m, k), whole(n, k), whole(n)
    y = F.linear(x, w, b)
    on = [t.cuda().requires_grad_() for t in (x, w, b)]
    found = F.linear(*on)
    found.backward(found.detach())
    assert lucid.equal(found.detach().cpu(), y)
    for t, correct in zip(on, (y @ w, y.mT @ x, y.sum(0))):
        assert lucid.equal(t.grad.cpu(), correct)


@pytest.mark.parametrize(
    "m, n, k, rank", [(1, 70, 512, 8), (1, 6, 33, 3), (32, 600, 260, 8), (3, 30, 100, 16), (11, 20, 36, 9), (90, 300, 512, 8)]
)
def test_corrections_of_low_rank(m, n, k, rank):
    args = whole(m, k), whole(n, k), whole(n), whole(k, rank), whole(rank, n)
    y = F.lora_linear(*args, 0.5)
    assert lucid.equal(F.lora_linear(*(t.cuda() for t in args), 0.5).cpu(), y)


@pytest.mark.parametrize("m, n, k, rank", [(1, 70, 512, 8), (1, 40, 33, 3), (20, 64, 256, 4)])
@pytest.mark.parametrize("dtype", [lucid.bfloat16, lucid.float16])
def test_corrections_of_low_rank_in_halves(m, n, k, rank, dtype):
    """The narrow product, the wide one and the sum round once each."""
    args = [(lucid.randn(*shape) / shape[0] ** 0.5).to(dtype) for shape in ((m, k), (n, k), (n,), (k, rank), (rank, n))]
    y = F.lora_linear(*(t.double() for t in args), 0.5)
    found = F.lora_linear(*(t.cuda() for t in args), 0.5)
    assert found.dtype == dtype and (found.cpu().double() - y).abs().max() <= 3 * lucid.finfo(dtype).eps * y.abs().max()


@pytest.mark.parametrize("n, k", [(16, 64), (40, 768), (24, 3072), (12, 100), (50, 72), (8, 8), (16, 1), (1, 16), (2056, 40)])
@pytest.mark.parametrize("dtype", [lucid.bfloat16, lucid.float16, lucid.float32])
def test_one_row(n, k, dtype):
    """A row times a matrix that is read along its rows or along its columns, with all that may follow."""
    x, w, b, residual = whole(1, k), whole(n, k), whole(n), whole(1, n)
    on = [t.to("cuda", dtype) for t in (x, w, b, residual)]
    for matrix in (on[1], on[1].t().contiguous().t(), lucid.cat([on[1], on[1]], 1)[:, k:]):
        for activation in ("none", "relu"):
            y = F.fused_linear(x, w, b, activation, 0.5, residual)
            found = F.fused_linear(on[0], matrix, on[2], activation, 0.5, on[3])
            assert lucid.equal(found.cpu(), y.to(dtype))
        assert lucid.equal(F.linear(on[0], matrix).cpu(), F.linear(x, w).to(dtype))
