"""Random numbers of the CUDA backend. The same seed gives PyTorch's numbers on the same model of GPU: compared where PyTorch
sees one."""

import importlib.util

import pytest

import lucid
import lucid.nn.functional as F

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")
torch = None
if lucid.cuda.is_available() and importlib.util.find_spec("torch"):
    import torch

    torch = torch if torch.cuda.is_available() else None
beside_torch = pytest.mark.skipif(torch is None, reason="PyTorch sees no GPU here")


def ones(m, n, dtype="float32"):
    return m.ones(n, device="cuda", dtype=getattr(m, dtype))


DRAWS = {
    "rand": lambda m, n: m.rand(n, device="cuda"),
    "rand of doubles": lambda m, n: m.rand(n, device="cuda", dtype=m.float64),
    "rand of halves": lambda m, n: m.rand(n, device="cuda", dtype=m.bfloat16),
    "randn": lambda m, n: m.randn(n, device="cuda"),
    "randn of doubles": lambda m, n: m.randn(n, device="cuda", dtype=m.float64),
    "randint": lambda m, n: m.randint(-5, 1000, (n,), device="cuda"),
    "randint, wide": lambda m, n: m.randint(0, 1 << 30, (n,), device="cuda"),
    "randint, wider": lambda m, n: m.randint(-(1 << 40), 1 << 41, (n,), device="cuda"),
    "random_": lambda m, n: m.empty(n, device="cuda", dtype=m.int64).random_(),
    "random_ of floats": lambda m, n: m.empty(n, device="cuda").random_(),
    "random_ of bytes": lambda m, n: m.empty(n, device="cuda", dtype=m.uint8).random_(),
    "normal_": lambda m, n: m.empty(n, device="cuda").normal_(2, 3),
    "normal with a mean each": lambda m, n: m.normal(ones(m, n), 2.0),
    "uniform_": lambda m, n: m.empty(n, device="cuda", dtype=m.float16).uniform_(-2, 3),
    "exponential_": lambda m, n: m.empty(n, device="cuda").exponential_(2),
    "exponential_ of doubles": lambda m, n: m.empty(n, device="cuda", dtype=m.float64).exponential_(),
    "cauchy_": lambda m, n: m.empty(n, device="cuda").cauchy_(1, 2).clamp(-100, 100),
    "log_normal_": lambda m, n: m.empty(n, device="cuda").log_normal_(0, 0.5),
    "geometric_": lambda m, n: m.empty(n, device="cuda").geometric_(0.3),
    "bernoulli_": lambda m, n: m.empty(n, device="cuda").bernoulli_(0.3),
    "bernoulli_ of doubles": lambda m, n: m.empty(n, device="cuda", dtype=m.float64).bernoulli_(0.3),
    "bernoulli_ of bools": lambda m, n: m.empty(n, device="cuda", dtype=m.bool).bernoulli_(0.3),
    "bernoulli": lambda m, n: m.bernoulli(m.linspace(0, 1, n, device="cuda")),
    "bernoulli of doubles": lambda m, n: m.bernoulli(m.linspace(0, 1, n, device="cuda", dtype=m.float64)),
    "bernoulli of halves": lambda m, n: m.bernoulli(m.full((n,), 0.4, device="cuda", dtype=m.float16)),
    "dropout": lambda m, n: m.nn.functional.dropout(ones(m, n), 0.3),
    "dropout of doubles": lambda m, n: m.nn.functional.dropout(ones(m, n, "float64"), 0.3),
    "dropout of halves": lambda m, n: m.nn.functional.dropout(ones(m, n, "bfloat16"), 0.3),
    "dropout, transposed": lambda m, n: m.nn.functional.dropout(ones(m, 3 * n).reshape(3, n).t(), 0.3),
    "dropout of a part": lambda m, n: m.nn.functional.dropout(ones(m, 3 * n).reshape(n, 3)[:, :2], 0.3),
    "dropout in place": lambda m, n: m.nn.functional.dropout(ones(m, n), 0.3, inplace=True),
    "native_dropout": lambda m, n: m.native_dropout(ones(m, n), 0.6, True)[1],
    "dropout2d": lambda m, n: m.nn.functional.dropout2d(ones(m, 4 * n).reshape(1, n, 2, 2), 0.3),
    "alpha_dropout": lambda m, n: m.nn.functional.alpha_dropout(ones(m, n), 0.3, True),
    "rrelu": lambda m, n: m.nn.functional.rrelu(-ones(m, n), training=True),
    "randperm": lambda m, n: m.randperm(n, device="cuda"),
    "randperm of int32": lambda m, n: m.randperm(n, device="cuda", dtype=m.int32),
    "multinomial": lambda m, n: m.multinomial(m.arange(1.0, n + 1, device="cuda"), 1),
    "multinomial, distinct": lambda m, n: m.multinomial(m.arange(1.0, n + 1, device="cuda"), 3),
    "gumbel_softmax": lambda m, n: m.nn.functional.gumbel_softmax(ones(m, n), hard=True),
}


@beside_torch
@pytest.mark.parametrize("n", [5, 64, 1022, 1000, 300000, 3000001])
@pytest.mark.parametrize("name", DRAWS if torch else [])
def test_pytorch_draws_the_same_numbers(name, n):
    """Twice, so that the generator is seen to go on as far."""
    found = []
    for m in (lucid, torch):
        m.manual_seed(11)
        found.append([DRAWS[name](m, n) for _ in range(2)] + [m.rand(3, device="cuda")])
    for ours, theirs in zip(*found):
        ours, theirs = ours.cpu(), lucid.from_dlpack(theirs.cpu().contiguous())
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if ours.is_floating_point():
            lucid.testing.assert_close(ours.double(), theirs.double(), rtol=1e-5, atol=2e-6)
        else:
            assert lucid.equal(ours, theirs), f"{(ours != theirs).sum()} of {ours.numel()} differ"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("n", [4000, 4002, 4001, 7])
def test_dropout(dtype, n):
    x = ones(lucid, n, dtype).requires_grad_()
    lucid.manual_seed(1)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert lucid.equal(x.grad, y.detach())
    assert n < 10 or abs(y.detach().double().mean().item() - 1) < 0.1
    lucid.manual_seed(1)
    z, mask = lucid.native_dropout(x, 0.25, True)
    assert lucid.equal(z, y) and lucid.equal(mask, y > 0)


def test_dropout_keeps_strides_and_elements():
    t = lucid.arange(1.0, 13.0, device="cuda").reshape(3, 4).t()
    for x in (t, t[::2], t[:3, :1]):
        y = F.dropout(x, 0.5)
        assert y.shape == x.shape and lucid.equal(y[y != 0], 2 * x[y != 0])
    assert F.dropout(t, 0.5).stride() == (1, 4)


@pytest.mark.parametrize("n", [1, 2, 5, 1000, 70000])
def test_randperm_has_every_number_once(n):
    assert sorted(lucid.randperm(n, device="cuda").tolist()) == list(range(n))


def test_captured_dropout_draws_anew():
    x, g = lucid.ones(64, device="cuda"), lucid.cuda.CUDAGraph()
    with lucid.cuda.graph(g):
        y = F.dropout(x, 0.5)
    g.replay()
    first = y.tolist()
    g.replay()
    assert y.tolist() != first
