"""Passes over graphs: what each removes or fuses, and that the bits stay. Programs are small so that the graph can be read."""

import pytest

import lucid
from lucid.nn import functional as F


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.isnan().equal(b.isnan()) and a.nan_to_num().equal(b.nan_to_num())


def compare(fn, *args, calls=3):
    """fn compiled, after it gave eager's bits several times."""
    compiled = lucid.compile(fn, fullgraph=True)
    for _ in range(calls):
        for ours, theirs in zip(_list(compiled(*args)), _list(fn(*args))):
            assert same(ours, theirs), compiled.graph()
    return compiled


def _list(result):
    return result if isinstance(result, (tuple, list)) else [result]


def steps(compiled):
    """Lines of the graph that are work of their own: a fused region is one."""
    return [line for line in compiled.graph().splitlines() if line[:4].strip().isdigit()]


# --- fusion ---
def chain(x):
    return (((x * 2 + 1) * x - 0.5).abs() + x).exp()


def layer_norm(x):
    d = x - x.mean(-1, keepdim=True)
    return d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt()


def softmax(x):
    e = (x - x.amax(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def squeezed(x):
    return (x - x.mean(-1).unsqueeze(-1)) * x.std(-1, keepdim=True)


def mixed_dtypes(x):
    return ((x > 0) & (x < 1)) * x.double() + 1


SHAPES = [(1,), (7,), (3, 5), (30, 33), (5, 1), (4, 8, 96), (2, 3, 4, 5), (600, 7), (3, 2000), (20, 1, 70)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fn", [chain, layer_norm, softmax, squeezed, mixed_dtypes], ids=lambda f: f.__name__)
def test_fused_bits(fn, shape):
    lucid.manual_seed(0)
    compare(fn, lucid.randn(shape))
    permuted = lucid.randn(shape[::-1]).permute(*reversed(range(len(shape))))
    compare(fn, permuted)
    compare(fn, lucid.randn(*shape[:-1], 2 * shape[-1])[..., ::2])
    compare(fn, lucid.randn(shape[-1]).expand(shape))


@pytest.mark.parametrize("dtype", [lucid.float64, lucid.int64, lucid.int32, lucid.bfloat16, lucid.complex64], ids=str)
def test_fused_dtypes(dtype):
    compare(lambda x: ((x * 2 + x) * x - 3) * x, (lucid.randn(5, 9) * 4).to(dtype))


def rounded(x, y):
    return ((x * y + x) * 0.3 - y).tanh() * x.float() + (x > y)


def columns(x, y):
    return (x - x.mean(-1, keepdim=True)) * y.sum(-1, keepdim=True) / x.amax(-1, keepdim=True)


@pytest.mark.parametrize("dtype", [lucid.bfloat16, lucid.float16], ids=str)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (4, 8, 96), (600, 7), (3, 2000), (2, 4096), (2, 5000), (20, 1, 70)], ids=str)
def test_halves_fuse_and_round_after_every_step(shape, dtype):
    lucid.manual_seed(0)
    x, y = lucid.randn(shape).to(dtype), lucid.randn(shape).to(dtype)
    special = lucid.tensor([1e5, float("nan"), float("inf"), -0.0, 1e-7, 65504.0, 1.0], dtype=dtype)
    x.view(-1)[:7] = special
    assert len(steps(compare(rounded, x, y))) == 1
    compare(columns, x, y)
    compare(columns, x.transpose(0, -1), y.transpose(0, -1))
    compare(lambda x, y: (x * y[..., :1] + y.sum() - 2.5) * lucid.tensor(0.1), x, y)
    compare(layer_norm, x)
    compare(softmax, x)


@pytest.mark.parametrize("dtype", [lucid.bfloat16, lucid.float16], ids=str)
def test_rows_of_halves_close_a_region(dtype):
    x = lucid.randn(64, 96).to(dtype)
    assert [len(steps(compare(f, x))) for f in (layer_norm, softmax)] == [1, 1]


def test_casts_are_steps_of_a_region():
    """autocast rounds the operands of a product: that joins what made them."""
    x, w = lucid.randn(40, 30), lucid.randn(30, 20)

    def f(x):
        with lucid.autocast("cpu", dtype=lucid.bfloat16):
            y = (x.sin() * 2) @ w
            return (y + 1).relu().float() * 2

    compiled = compare(f, x)
    assert len(steps(compiled)) == 4  # sin, times 2, cast; the cast of w; the product; what follows
    assert sum("_to_copy" in line for line in steps(compiled)) == 1
    permuted = lucid.randn(5, 6, 7).transpose(0, 2)
    for to in (lucid.bfloat16, lucid.float64, lucid.int32, lucid.complex64, lucid.bool):
        compare(lambda x, to=to: ((x * 3).to(to), (x.clone() + 1).to(to)), permuted)
        compare(lambda x, to=to: (x + x.mean(-1, keepdim=True).to(to)) * x, permuted.contiguous())


def between(x, w):
    """Elementwise steps with a product in between that has nothing to do with them."""
    a = (x * 2).sin()
    b = w @ w
    return a * x + 1, b


def two_chains(x, w):
    a = x.exp()
    b = (w @ w).tanh()
    c = a.sqrt()
    d = b @ w
    return (c + 1) * x, d * 2


def written_between(x, w):
    """The product writes what the first step has read: the step stays where it is."""
    y = x.clone()
    a = (y * 2).sin()
    y.add_(w @ w)
    return a * y + 1


def read_between(x, w):
    a = x.sin()
    return a @ w + (a * 2).cos() @ w


@pytest.mark.parametrize("fn, most", [(between, 2), (two_chains, 5), (written_between, 4), (read_between, 5)])
def test_steps_meet_across_independent_ones(fn, most):
    assert len(steps(compare(fn, lucid.randn(40, 40), lucid.randn(40, 40)))) <= most


def test_a_step_does_not_wait_if_that_keeps_more_memory():
    """The small result of two large inputs is made at once."""

    def fn(x, w):
        a = (x @ w).sum(1) * (w @ x).sum(0)
        b = w[:1] @ w
        return a + 1, b

    compare(fn, lucid.randn(64, 64), lucid.randn(64, 64))


def test_a_chain_is_one_step():
    assert len(steps(compare(chain, lucid.randn(8, 8)))) == 1


@pytest.mark.parametrize("fn", [layer_norm, softmax], ids=lambda f: f.__name__)
def test_reductions_of_rows_close_a_region(fn):
    assert len(steps(compare(fn, lucid.randn(32, 64)))) == 1


def test_broadcast_operands():
    x, row, column, one = lucid.randn(6, 40), lucid.randn(40), lucid.randn(6, 1), lucid.randn(())
    assert len(steps(compare(lambda *t: ((t[0] + t[1]) * t[2] - t[3]).tanh(), x, row, column, one))) == 1
    compare(lambda *t: (t[0] * t[1]) * t[2].T + t[3], lucid.randn(6, 6), lucid.randn(6), lucid.randn(6, 1), one)


def test_square_rows_and_columns_are_not_confused():
    def fn(x, w):
        m = x.mean(-1)
        return x * w + m.unsqueeze(-1) * w, m * w

    compare(fn, lucid.randn(24, 24), lucid.randn(24))


def test_writes_in_place_fuse():
    def adam(p, g, m, v):
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-3)

    lucid.manual_seed(0)
    ours = [lucid.rand(5, 7) for _ in range(4)]
    theirs = [t.clone() for t in ours]
    compiled = lucid.compile(adam, fullgraph=True)
    for _ in range(4):
        compiled(*ours), adam(*theirs)
        assert all(map(same, ours, theirs))
    assert len(steps(compiled)) == 1


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x[1:] + x[:-1]) * 2 + x[1:],
        lambda x: x.mul_(2)[1:] + x[:-1].exp(),
        lambda x: (x + x.flip(0)) * x.T,
        lambda x: x[0].add_(1).mul_(x[1]).add_(x.sum()),
        lambda x: x.t().contiguous().mul_(x).add_(x.t()),
        lambda x: x.view(-1)[::2].add_(x.view(-1)[1::2]).mul_(3) + 1,
    ],
)
def test_memory_seen_in_two_ways(fn):
    lucid.manual_seed(0)
    start = lucid.randn(6, 6)
    compiled = lucid.compile(fn)
    for _ in range(3):
        ours, theirs = start.clone(), start.clone()
        assert same(compiled(ours), fn(theirs)), compiled.graph()
        assert same(ours, theirs)


def test_results_of_a_region_stay():
    compiled = lucid.compile(lambda x: (x + 1, (x + 1) * 2, ((x + 1) * 2).exp()))
    first = compiled(lucid.zeros(4))
    kept = [t.clone() for t in first]
    compiled(lucid.ones(4)), compiled(lucid.ones(4))
    assert all(map(same, first, kept))
    assert len({t.data_ptr() for t in first}) == 3


def test_gradients_through_fused_steps():
    lucid.manual_seed(0)
    compiled = lucid.compile(layer_norm)
    for _ in range(3):
        x = lucid.randn(9, 31)
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        seed = lucid.randn(9, 31)
        compiled(a).backward(seed), layer_norm(b).backward(seed)
        assert same(a.grad, b.grad)


def test_threads_do_not_change_bits():
    lucid.manual_seed(0)
    x, before = lucid.randn(300, 700), lucid.get_num_threads()
    compiled = lucid.compile(layer_norm)
    compiled(x)
    try:
        found = []
        for n in (1, 2, 3):
            lucid.set_num_threads(n)
            found.append(compiled(x))
    finally:
        lucid.set_num_threads(before)
    assert all(same(found[0], f) for f in found[1:])


# --- constants ---
def test_constants_are_folded():
    def fn(x):
        return x + lucid.arange(4.0).mul(2).exp()

    compiled = compare(fn, lucid.randn(4))
    assert len(steps(compiled)) == 1
    assert "arange" not in compiled.graph()


def test_a_constant_that_is_written_or_returned_is_not_folded():
    def written(x):
        total = lucid.zeros(4)
        total += x
        return total * 2

    def returned(x):
        return lucid.ones(3), x + 1

    compare(written, lucid.randn(4))
    compiled = compare(returned, lucid.randn(4))
    first, _ = compiled(lucid.randn(4))
    first.fill_(7)
    assert compiled(lucid.randn(4))[0].tolist() == [1, 1, 1]


# --- common steps ---
def test_repeated_steps_are_shared():
    def fn(x, y):
        return (x @ y).sin() + (x @ y).cos()

    compiled = compare(fn, lucid.randn(3, 4), lucid.randn(4, 3))
    assert compiled.graph().count("mm(") == 1


def test_a_write_between_repeated_steps_separates_them():
    def fn(x, y):
        a = x @ y
        x.add_(1)
        return a + x @ y

    compiled = lucid.compile(fn)
    for _ in range(3):
        x, y = lucid.randn(3, 3), lucid.randn(3, 3)
        assert same(compiled(x.clone(), y), fn(x.clone(), y))


def test_random_steps_are_not_shared():
    compiled = lucid.compile(lambda x: F.dropout(x, 0.5) - F.dropout(x, 0.5))
    compiled(lucid.ones(100))
    assert compiled(lucid.ones(100)).abs().sum() > 0


def test_results_are_never_one_tensor():
    a, b = compare(lambda x: (x * 2, x * 2), lucid.randn(4))(lucid.ones(4))
    a.add_(1)
    assert b.tolist() == [2, 2, 2, 2]


# --- epilogues ---
@pytest.mark.parametrize("after", [F.relu, F.gelu, F.silu, lambda y: F.gelu(y, approximate="tanh")])
@pytest.mark.parametrize("shape", [(4, 16), (1, 16), (2, 5, 16), (70, 16)], ids=str)
def test_activations_go_into_linear_layers(after, shape):
    lucid.manual_seed(0)
    w, b = lucid.randn(33, 16), lucid.randn(33)
    with lucid.no_grad():
        compiled = compare(lambda x: after(F.linear(x, w, b)), lucid.randn(shape))
        assert len(steps(compiled)) == 1
        compare(lambda x: after(F.linear(x, w)), lucid.randn(shape))


@pytest.mark.parametrize("shape", [(4, 16), (2, 5, 16), (130, 16)], ids=str)
def test_residuals_go_into_linear_layers(shape):
    lucid.manual_seed(0)
    w, b = lucid.randn(16, 16), lucid.randn(16)
    with lucid.no_grad():
        x = lucid.randn(shape)
        assert len(steps(compare(lambda x: x + F.linear(x, w, b), x))) == 1
        assert len(steps(compare(lambda x: F.relu(F.linear(x, w, b)) + x, x))) == 1
        compare(lambda x: F.relu(x + F.linear(x, w, b)), x)
        compare(lambda x: (lambda y: y + y)(F.linear(x, w, b)), x)
        compare(lambda x: F.linear(x, w, b) + b, x)


def test_a_result_that_is_read_again_stays():
    w = lucid.randn(8, 8)

    def fn(x):
        y = F.linear(x, w)
        return F.relu(y), y

    with lucid.no_grad():
        compare(fn, lucid.randn(3, 8))
