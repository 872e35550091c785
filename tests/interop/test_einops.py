"""lucid.einops, and the package einops on Lucid's tensors, against einops on PyTorch's."""

import subprocess
import sys

import einops
import pytest
import torch

import lucid

REARRANGE = [
    ("a b c -> c a b", (2, 3, 4), {}),
    ("a b c -> a b c", (2, 3, 4), {}),
    ("a b c -> (c a) b", (2, 3, 4), {}),
    ("a (b c) -> b (a c)", (2, 6), {"c": 2}),
    ("(a b) c -> a b c", (6, 4), {"a": 3, "b": 2}),
    ("... c -> c ...", (2, 3, 4), {}),
    ("a ... -> (...) a", (2, 3, 4), {}),
    ("a b ... -> b (a ...)", (2, 3), {}),
    ("a 1 b -> (a b) 1", (2, 1, 3), {}),
    ("a () b -> a b", (2, 1, 3), {}),
    ("a b -> 1 a () b", (2, 3), {}),
    ("->", (), {}),
    ("-> 1", (), {}),
    ("b (h h2) (w w2) c -> (b h2) h (w2 w) c", (2, 4, 6, 3), {"h2": 2, "w2": 3}),
    ("a b -> b a", (0, 3), {}),
]
REPEAT = [
    ("a b -> a b c", (2, 3), {"c": 4}),
    ("a b -> (2 a) (b 3)", (2, 3), {}),
    ("a -> b a c", (3,), {"b": 2, "c": 2}),
    ("... -> ... k", (2, 3), {"k": 2}),
    ("a b -> a b", (2, 3), {}),
    ("a 1 -> a n", (2, 1), {"n": 3}),
]
REDUCE = [
    ("a b c -> a c", (2, 3, 4), {}),
    ("a b c ->", (2, 3, 4), {}),
    ("a (b c) -> c a", (2, 6), {"c": 2}),
    ("... c -> ...", (2, 3, 4), {}),
    ("a (h 2) -> a h", (2, 6), {}),
    ("a b -> a 1", (2, 3), {}),
    ("a b -> b a", (2, 3), {}),
]
WRONG = [
    ("rearrange", "a b -> a", (2, 3), {}),
    ("rearrange", "a b -> a b c", (2, 3), {}),
    ("rearrange", "a b c -> a b c", (2, 3), {}),
    ("rearrange", "a a -> a a", (2, 2), {}),
    ("rearrange", "a (b c) -> a b c", (2, 6), {}),
    ("rearrange", "a (b c) -> a b c", (2, 6), {"b": 4}),
    ("rearrange", "a (b c) -> a b c", (2, 6), {"b": 2, "c": 4}),
    ("rearrange", "a b -> b a", (2, 3), {"c": 4}),
    ("rearrange", "a b -> (b a", (2, 3), {}),
    ("rearrange", "a b -> b) a", (2, 3), {}),
    ("rearrange", "((a) b) -> b a", (6,), {}),
    ("rearrange", "a b -> b, a", (2, 3), {}),
    ("rearrange", "a _b -> _b a", (2, 3), {}),
    ("rearrange", "a 2 -> 2 a", (3, 2), {}),
    ("rearrange", "a b -> ...", (2, 3), {}),
    ("rearrange", "(a ...) -> a ...", (6,), {"a": 2}),
    ("rearrange", "a .. -> .. a", (2, 3), {}),
    ("rearrange", "a b c ... -> a b c ...", (2, 3), {}),
    ("repeat", "a b -> a", (2, 3), {}),
    ("repeat", "a b -> a b c", (2, 3), {}),
    ("repeat", "a 2 -> a", (2, 3), {}),
]


def both(call, shape, seed=3):
    """The call on lucid.einops, on einops with a Lucid tensor, and on einops with a PyTorch tensor."""
    torch.manual_seed(seed)
    theirs = torch.rand(shape) + 0.5
    ours = lucid.from_numpy(theirs.numpy().copy())
    return call(lucid.einops, ours), call(einops, ours), call(einops, theirs)


def assert_equal(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    torch.testing.assert_close(torch.from_numpy(ours.detach().numpy().copy()), theirs)


@pytest.mark.parametrize("pattern, shape, lengths", REARRANGE)
def test_rearrange(pattern, shape, lengths):
    mine, adapted, theirs = both(lambda m, x: m.rearrange(x, pattern, **lengths), shape)
    assert_equal(mine, theirs)
    assert_equal(adapted, theirs)


@pytest.mark.parametrize("pattern, shape, lengths", REPEAT)
def test_repeat(pattern, shape, lengths):
    mine, adapted, theirs = both(lambda m, x: m.repeat(x, pattern, **lengths), shape)
    assert_equal(mine, theirs)
    assert_equal(adapted, theirs)


@pytest.mark.parametrize("operation", ["min", "max", "sum", "mean", "prod"])
@pytest.mark.parametrize("pattern, shape, lengths", REDUCE)
def test_reduce(pattern, shape, lengths, operation):
    mine, adapted, theirs = both(lambda m, x: m.reduce(x, pattern, operation, **lengths), shape)
    assert_equal(mine, theirs)
    assert_equal(adapted, theirs)


@pytest.mark.parametrize("operation", ["any", "all"])
def test_reduce_of_booleans(operation):
    for mine in both(lambda m, x: m.reduce(x > 1, "a b c -> b", operation), (2, 3, 4))[:2]:
        assert_equal(mine, both(lambda m, x: m.reduce(x > 1, "a b c -> b", operation), (2, 3, 4))[2])


def test_reduce_by_a_function():
    mine, adapted, theirs = both(lambda m, x: m.reduce(x, "a b c -> c", lambda t, dims: t.sum(dims) * 2), (2, 3, 4))
    assert_equal(mine, theirs)
    assert_equal(adapted, theirs)


@pytest.mark.parametrize("function, pattern, shape, lengths", WRONG)
def test_wrong_patterns(function, pattern, shape, lengths):
    for m, x, error in (
        (lucid.einops, lucid.ones(shape), lucid.einops.EinopsError),
        (einops, lucid.ones(shape), einops.EinopsError),
        (einops, torch.ones(shape), einops.EinopsError),
    ):
        with pytest.raises(error):
            getattr(m, function)(x, pattern, **lengths)


def test_wrong_reductions():
    x = lucid.ones(2, 3)
    with pytest.raises(lucid.einops.EinopsError):
        lucid.einops.reduce(x, "a b -> a", "median")
    with pytest.raises(lucid.einops.EinopsError):
        lucid.einops.reduce(x, "a b -> a c", "sum")
    with pytest.raises(NotImplementedError):
        lucid.einops.reduce(x.long(), "a b -> a", "mean")
    with pytest.raises(TypeError):
        lucid.einops.rearrange([], "a b -> b a")


def test_views_and_lists():
    x = lucid.arange(6.0).reshape(2, 3)
    assert lucid.einops.rearrange(x, "a b -> b 1 a").data_ptr() == x.data_ptr()
    assert lucid.einops.repeat(x, "a b -> a k b", k=4).stride() == (3, 0, 1)
    mine = lucid.einops.rearrange([x, x + 1], "n a b -> a (n b)")
    assert mine.tolist() == [[0, 1, 2, 1, 2, 3], [3, 4, 5, 4, 5, 6]]


def test_gradients():
    def gradient(m, function):
        x = m.arange(24.0).reshape(2, 3, 4).requires_grad_()
        y = function.reduce(function.repeat(x, "a b c -> (a 2) c b"), "(a n) c b -> b a", "mean", n=4)
        (y**3).sum().backward()
        return x.grad

    theirs = gradient(torch, einops)
    assert_equal(gradient(lucid, einops), theirs)
    assert_equal(gradient(lucid, lucid.einops), theirs)


@pytest.mark.parametrize(
    "pattern, shapes",
    [
        ("batch row k, k column -> batch row column", [(2, 3, 4), (4, 5)]),
        ("i i -> i", [(3, 3)]),
        ("... k, k -> ...", [(2, 3, 4), (4,)]),
    ],
)
def test_einsum(pattern, shapes):
    torch.manual_seed(1)
    theirs = [torch.rand(shape) for shape in shapes]
    ours = [lucid.from_numpy(t.numpy().copy()) for t in theirs]
    expected = einops.einsum(*theirs, pattern)
    assert_equal(lucid.einops.einsum(*ours, pattern), expected)
    assert_equal(lucid.einops.einsum(pattern, *ours), expected)
    assert_equal(einops.einsum(*ours, pattern), expected)


def test_wrong_einsum():
    x = lucid.ones(2, 3)
    for error, *args in (
        (ValueError, x),
        (ValueError, x, "a b"),
        (ValueError, x, x),
        (lucid.einops.EinopsError, x, "a b -> c"),
        (NotImplementedError, x, "a (b c) -> a"),
        (NotImplementedError, x, "a 3 -> a"),
    ):
        with pytest.raises(error):
            lucid.einops.einsum(*args)


@pytest.mark.parametrize(
    "pattern, shapes", [("* c", [(4,), (2, 4), (3, 2, 4)]), ("b * c", [(2, 4), (2, 3, 4)]), ("*", [(), (3,)])]
)
def test_pack(pattern, shapes):
    ours = [lucid.rand(shape) for shape in shapes]
    theirs = [torch.from_numpy(t.numpy().copy()) for t in ours]
    expected, packed = einops.pack(theirs, pattern)
    for m in (lucid.einops, einops):
        mine, my_packed = m.pack(ours, pattern)
        assert_equal(mine, expected)
        assert [tuple(s) for s in my_packed] == [tuple(s) for s in packed]
        for a, b in zip(m.unpack(mine, my_packed, pattern), theirs):
            assert_equal(a, b)


def test_wrong_pack():
    x = lucid.ones(2, 6)
    for call in (
        lambda: lucid.einops.pack([x], "a b c *"),
        lambda: lucid.einops.pack([x], "a b"),
        lambda: lucid.einops.pack([x], "a a *"),
        lambda: lucid.einops.unpack(x, [(2,), (3,)], "b *"),
        lambda: lucid.einops.unpack(x, [(-1,), (-1,)], "b *"),
        lambda: lucid.einops.unpack(x, [(4, -1)], "b *"),
        lambda: lucid.einops.unpack(x, [(6,)], "b * c"),
    ):
        with pytest.raises(lucid.einops.EinopsError):
            call()


@pytest.mark.parametrize("pattern", ["a b c", "a _ c", "... c", "a ...", "a ... c", "2 b 4"])
def test_parse_shape(pattern):
    assert lucid.einops.parse_shape(lucid.ones(2, 3, 4), pattern) == einops.parse_shape(torch.ones(2, 3, 4), pattern)


@pytest.mark.parametrize("pattern", ["a b", "a (b c) d", "1 b c", "3 b c", "a b c d ..."])
def test_wrong_shapes(pattern):
    for m, x in ((lucid.einops, lucid.ones(2, 3, 4)), (einops, torch.ones(2, 3, 4))):
        with pytest.raises(RuntimeError):
            m.parse_shape(x, pattern)


@pytest.mark.parametrize("order", ["lucid, einops", "einops, lucid"])
def test_einops_is_not_imported_but_told(order):
    program = f"""
import sys
import {order.split(",")[0]}
assert "lucid" not in sys.modules or "einops" not in sys.modules
import {order}
x = lucid.ones(2, 3)
assert einops.rearrange(x, "a b -> b a").shape == (3, 2)
assert einops.asnumpy(x).shape == (2, 3)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_patterns_are_read_once():
    from lucid.einops._plan import plan

    x = lucid.ones(2, 3)
    lucid.einops.rearrange(x, "once upon -> upon once")
    before = plan.cache_info()
    lucid.einops.rearrange(x, "once upon -> upon once")
    after = plan.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)
