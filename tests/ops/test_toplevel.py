"""Functions that PyTorch has at top level besides nn.functional, and lucid.func's small ones."""

import pytest
import torch

import lucid

X = [[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]
Y = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
SIGNS = [1.0, -1.0]
CALLS = {
    "binary_cross_entropy_with_logits": lambda m, x, y, **k: m.binary_cross_entropy_with_logits(x, y, None, None, **k),
    "kl_div": lambda m, x, y, **k: m.kl_div(x, y.exp(), **k),
    "kl_div of logarithms": lambda m, x, y, **k: m.kl_div(x, y, log_target=True, **k),
    "cosine_embedding_loss": lambda m, x, y, **k: m.cosine_embedding_loss(x, y, m.tensor(SIGNS), 0.1, **k),
    "hinge_embedding_loss": lambda m, x, y, **k: m.hinge_embedding_loss(x, 2 * y - 1, 0.5, **k),
    "margin_ranking_loss": lambda m, x, y, **k: m.margin_ranking_loss(x, y, 2 * y - 1, 0.5, **k),
    "triplet_margin_loss": lambda m, x, y, **k: m.triplet_margin_loss(x, y, x * y, 0.5, **k),
    "ctc_loss": lambda m, x, y, **k: m.ctc_loss(
        x.reshape(2, 1, 3).log_softmax(-1), m.tensor([[1]]), m.tensor([2]), m.tensor([1]), **k
    ),
}


def compare(call, *data, grad=True):
    results = []
    for m in (lucid, torch):
        args = [m.tensor(d, dtype=m.float64, requires_grad=grad) for d in data]
        y = call(m, *args)
        y = y[0] if isinstance(y, tuple) else y
        if grad:
            y.sum().backward()
        results.append([y.tolist()] + [None if a.grad is None else a.grad.tolist() for a in args])
    for a, b in zip(*results):
        if b is not None:
            a, b = (torch.tensor(v, dtype=torch.float64) for v in (a, b))
            torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_losses(name, reduction):
    compare(lambda m, x, y: CALLS[name](m, x, y, reduction=reduction), X, Y)
    with pytest.raises(ValueError):
        CALLS[name](lucid, lucid.tensor(X), lucid.tensor(Y), reduction=3)


def test_poisson_nll_loss():
    compare(lambda m, x, y: m.poisson_nll_loss(x, y, True, False, 1e-8, 1), X, Y)


def test_layers():
    compare(lambda m, x: m.adaptive_max_pool1d(x, 2), X)
    compare(lambda m, x: m.affine_grid_generator(x.reshape(1, 2, 3), [1, 1, 2, 2], False), X)
    compare(lambda m, x, w: m.convolution(x.reshape(1, 2, 3), w.reshape(1, 2, 3), None, [1], [1], [1], False, [0], 1), X, Y)
    compare(lambda m, x, w: m.convolution(x.reshape(1, 2, 3), w.reshape(2, 1, 3), None, [2], [0], [1], True, [1], 1), X, Y)
    compare(lambda m, x, w: m.conv_tbc(x.reshape(3, 1, 2), w.reshape(1, 2, 3), m.zeros(3, dtype=m.float64), 1), X, Y)
    compare(lambda m, x: m.native_channel_shuffle(x.reshape(1, 6, 1, 1), 2), X, grad=False)
    for mode in (0, 1, 2):
        compare(lambda m, x, mode=mode: m.embedding_bag(x, m.tensor([0, 1, 1]), m.tensor([0, 2]), False, mode), X)


def test_norms():
    compare(lambda m, x: m.frobenius_norm(x, 1), X)
    compare(lambda m, x: m.frobenius_norm(x, [0, 1], True), X)
    for dim in (0, 1, -1):
        compare(lambda m, x, dim=dim: m.norm_except_dim(x, 2, dim), X)


@pytest.mark.parametrize("initial", [None, 0.5])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segment_reduce(reduce, initial):
    how = {"initial": initial}
    data = torch.randn(5, 2, dtype=torch.float64).tolist()
    compare(lambda m, x: m.segment_reduce(x, reduce, lengths=m.tensor([2, 1, 2]), **how), data)
    compare(lambda m, x: m.segment_reduce(x, reduce, offsets=m.tensor([0, 2, 2, 5]), **how), data, grad=False)
    compare(lambda m, x: m.segment_reduce(x, reduce, lengths=m.tensor([[1, 1], [2, 0]] + [[0, 2]] * 3), axis=1, **how), data,
            grad=False)  # fmt: skip
    for bad in ([2, 2], [6, -1]):
        with pytest.raises(RuntimeError):
            lucid.segment_reduce(lucid.tensor(data), reduce, lengths=lucid.tensor(bad))


def test_hash_tensor():
    for data in ([[1, 2, 3], [4, 5, 6]], X, [[True, False, True]]):
        for kwargs in ({}, {"dim": 1}, {"dim": (0, 1), "keepdim": True}):
            a = lucid.hash_tensor(lucid.tensor(data), **kwargs)
            b = torch.hash_tensor(torch.tensor(data), **kwargs)
            assert a.tolist() == b.tolist()
            assert a.dtype == lucid.uint64


def test_slice_inverse_and_control_flow():
    x = lucid.arange(6.0)
    assert lucid.slice_inverse(x[2:4], x, 0, 2, 4).tolist() == x.tolist()
    assert lucid.cond(False, lambda v: v, lambda v: -v, (x,))[1] == -1
    assert lucid.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + i), (0, 0)) == (4, 6)


def test_vmap_chunks_and_randomness():
    x = lucid.arange(15.0).reshape(3, 5)
    f = lambda column: (column * 2, column.sum())
    whole = lucid.func.vmap(f, in_dims=1, out_dims=(1, 0))(x)
    for size in (1, 2, 5, 9):
        parts = lucid.func.vmap(f, in_dims=1, out_dims=(1, 0), chunk_size=size)(x)
        assert [p.tolist() for p in parts] == [w.tolist() for w in whole]
    noisy = lambda v: v + lucid.rand(4)
    with pytest.raises(RuntimeError, match="randomness"):
        lucid.func.vmap(noisy)(lucid.zeros(3))
    same = lucid.func.vmap(noisy, randomness="same")(lucid.zeros(3))
    assert same[0].tolist() == same[1].tolist() == same[2].tolist()
    different = lucid.func.vmap(lambda v: lucid.nn.functional.dropout(v + 1, 0.5), randomness="different")(lucid.zeros(3, 64))
    assert different[0].tolist() != different[1].tolist()
    with pytest.raises(ValueError):
        lucid.func.vmap(f, chunk_size=0)
    with pytest.raises(RuntimeError):
        lucid.func.vmap(f, randomness="maybe")
