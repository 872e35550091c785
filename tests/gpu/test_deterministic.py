"""use_deterministic_algorithms on CUDA: what atomics would add up in any order is summed in one, and what has no such form is
refused. Runs on a GPU, or on the emulation (test_emulated.py), whose threads run in random order."""

import pytest

import lucid
import lucid.nn.functional as F

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")


@pytest.fixture
def deterministic():
    lucid.use_deterministic_algorithms(True)
    yield
    lucid.use_deterministic_algorithms(False)


def spread(*shape, dtype=lucid.float32):
    """Numbers of sizes so different that every order of adding them gives another sum."""
    numbers = lucid.randn(*shape, dtype=lucid.float64) * 10 ** lucid.empty(*shape, dtype=lucid.float64).uniform_(-4, 4)
    return numbers.to(dtype)


lucid.manual_seed(0)
N = 400
WHERE, FEW = lucid.randint(7, (N,)), lucid.randint(4, (N,))
GRID = lucid.randint(5, (N, 6))


def slope(f):
    """The gradient of f at its first argument, for a fixed gradient of its result."""

    def gradient(x, g, *others):
        x = x.detach().requires_grad_(True)
        (d,) = lucid.autograd.grad(f(x, *others), x, g)
        return d

    return gradient


def written(x, i, v):
    x = x.clone()
    x[i] = v
    return x


EXACT = {  # the same bits as on the CPU: both add in the order of the walk
    "index_add": (lambda i, v: lucid.zeros(7, 6, device=v.device).index_add(0, i, v), WHERE, spread(N, 6)),
    "index_add along 1": (lambda i, v: lucid.ones(6, 7, device=v.device).index_add(1, i, v), WHERE, spread(6, N)),
    "index_add of doubles": (
        lambda i, v: lucid.zeros(7, 3, device=v.device, dtype=v.dtype).index_add(0, i, v),
        WHERE,
        spread(N, 3, dtype=lucid.float64) * 1e9,
    ),
    "index_add of complex": (
        lambda i, v: lucid.zeros(7, device=v.device, dtype=v.dtype).index_add(0, i, v),
        WHERE,
        lucid.complex(spread(N), spread(N)),
    ),
    "scatter_add": (lambda i, v: lucid.zeros(5, 6, device=v.device).scatter_add(0, i, v), GRID, spread(N, 6)),
    "index_put": (
        lambda i, j, v: lucid.zeros(7, 3, 4, device=v.device).index_put(
            (i, lucid.tensor(1).to(i.device), j), v, accumulate=True
        ),
        WHERE,
        FEW,
        spread(N),
    ),
    "put": (lambda i, v: lucid.zeros(4, 3, device=v.device).T.put(i, v, accumulate=True), WHERE, spread(N)),
    "scatter_reduce": (lambda i, v: lucid.ones(5, 6, device=v.device).scatter_reduce(0, i, v, "mean"), GRID, spread(N, 6)),
    "product": (
        lambda i, v: lucid.ones(7, device=v.device).scatter_reduce(0, i, v, "prod"),
        WHERE,
        1 + lucid.rand(N) / 50,
    ),
    "the last one is written": (written, spread(7, 6), WHERE, spread(N, 6)),
    "index_copy": (lambda x, i, v: x.index_copy(1, i, v), spread(2, 7), WHERE, spread(2, N)),
    "scatter": (lambda x, i, v: x.scatter(0, i, v), spread(5, 6), GRID, spread(N, 6)),
    "gradient of gather": (slope(lambda x, i: x.gather(0, i)), spread(5, 6), spread(N, 6), GRID),
    "gradient of x[i, :, j]": (slope(lambda x, i, j: x[i, :, j]), spread(7, 3, 4), spread(N, 3), WHERE, FEW),
    "gradient of index_select": (slope(lambda x, i: x.index_select(0, i)), spread(7, 5), spread(N, 5), WHERE),
    "gradient of embedding": (slope(lambda x, i: F.embedding(i, x, 2)), spread(7, 5), spread(N, 5), WHERE),
}
CLOSE = {  # the same bits in every run
    "index_add of halves": (
        lambda i, v: lucid.zeros(7, 6, device=v.device, dtype=v.dtype).index_add(0, i, v),
        WHERE,
        lucid.randn(N, 6).bfloat16(),
    ),
    "gradient of embedding, by frequency": (
        slope(lambda x, i: F.embedding(i, x, scale_grad_by_freq=True)),
        spread(7, 5),
        spread(N, 5),
        WHERE,
    ),
    "gradient of embedding_bag": (
        slope(lambda x, i, w: F.embedding_bag(i.view(-1, 8), x, mode="sum", per_sample_weights=w.view(-1, 8))),
        spread(7, 5),
        spread(N // 8, 5),
        WHERE,
        lucid.rand(N),
    ),
    "max_pool2d": (slope(lambda x: F.max_pool2d(x, 5, 1)), lucid.randn(2, 3, 12, 12), spread(2, 3, 8, 8)),
    "max_pool2d with indices": (
        slope(lambda x: F.max_pool2d(x, 5, 1, return_indices=True)[0]),
        lucid.randn(2, 3, 12, 12),
        spread(2, 3, 8, 8),
    ),
    "adaptive_max_pool2d": (slope(lambda x: F.adaptive_max_pool2d(x, 9)), lucid.randn(2, 3, 12, 12), spread(2, 3, 9, 9)),
    "replication": (slope(lambda x: F.pad(x, (9, 9), "replicate")), lucid.randn(1, 2, 3), spread(1, 2, 21)),
    **{
        f"interpolate, {mode}, to {size}{', antialias' * antialias}": (
            slope(lambda x, mode=mode, size=size, anti=antialias: F.interpolate(x, size, mode=mode, antialias=anti)),
            lucid.randn(2, 3, 5, 7),
            spread(2, 3, *size),
        )
        for mode, antialias in [(m, False) for m in ("nearest", "nearest-exact", "bilinear", "bicubic")] + [("bicubic", True)]
        for size in [(13, 12), (3, 4)]
    },
    "interpolate, aligned": (
        slope(lambda x: F.interpolate(x, scale_factor=2.5, mode="bicubic", align_corners=True)),
        lucid.randn(1, 2, 6, 6),
        spread(1, 2, 15, 15),
    ),
    "interpolate, channels last": (
        slope(lambda x: F.interpolate(x.contiguous(memory_format=lucid.channels_last), scale_factor=3, mode="bilinear")),
        lucid.randn(1, 5, 4, 4),
        spread(1, 5, 12, 12),
    ),
    "interpolate, trilinear": (
        slope(lambda x: F.interpolate(x, (5, 6, 7), mode="trilinear")),
        lucid.randn(1, 2, 3, 3, 3),
        spread(1, 2, 5, 6, 7),
    ),
}


def on_cuda(f, args):
    return f(*(a.cuda() for a in args)).cpu()


@pytest.mark.parametrize("name", EXACT)
def test_sums_in_the_order_of_the_walk(name, deterministic):
    f, *args = EXACT[name]
    expected = f(*args)
    for _ in range(3):
        assert lucid.equal(on_cuda(f, args), expected)


@pytest.mark.parametrize("name", CLOSE)
def test_the_same_bits_in_every_run(name, deterministic):
    f, *args = CLOSE[name]
    first = on_cuda(f, args)
    expected = f(*(a.float() if a.dtype == lucid.bfloat16 else a for a in args))
    lucid.testing.assert_close(first.float(), expected, rtol=1e-4 if first.dtype == lucid.float32 else 2e-2, atol=5e-2)
    for _ in range(3):
        assert lucid.equal(on_cuda(f, args), first)


def test_bad_indices_raise(deterministic):
    x = lucid.zeros(5, device="cuda")
    x.index_add_(0, lucid.tensor([0, 9, 0], device="cuda"), lucid.ones(3, device="cuda"))
    with pytest.raises(IndexError, match="9"):
        x.cpu()
    assert x.cpu().tolist() == [2, 0, 0, 0, 0]


def refused():
    image = lucid.randn(1, 1, 4, 4, device="cuda", requires_grad=True)
    grid = lucid.zeros(1, 2, 2, 2, device="cuda")
    yield lambda: F.grid_sample(image, grid, align_corners=False).sum().backward()
    scores = lucid.randn(5, 1, 4, device="cuda", requires_grad=True)
    targets = lucid.tensor([[1, 2]], device="cuda")
    yield lambda: F.ctc_loss(scores.log_softmax(-1), targets, [5], [2]).backward()
    yield lambda: lucid.bincount(lucid.tensor([1, 1], device="cuda"), lucid.ones(2, device="cuda"))


def test_ops_without_such_a_form(deterministic):
    """They raise what PyTorch raises, or warn; they run again when the mode is off."""
    for call in refused():
        with pytest.raises(RuntimeError, match="does not have a deterministic implementation"):
            call()
        lucid.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match="does not have a deterministic implementation"):
            call()
        lucid.use_deterministic_algorithms(True)
    lucid.bincount(lucid.tensor([1, 1], device="cuda"))  # whole numbers have one sum
    lucid.bincount(lucid.tensor([1, 1]), lucid.ones(2))  # the CPU adds in order
    lucid.use_deterministic_algorithms(False)
    for call in refused():
        call()
