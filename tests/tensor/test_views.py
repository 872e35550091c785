"""Chains of views against PyTorch: geometry, values, shared memory, gradients; many dimensions, none, sizes that overflow."""

import math
import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lucid
from tests.properties import examples

BOTH = (lucid, torch)
chains = examples(150)


def dims(ndim):
    return st.integers(-max(ndim, 1), max(ndim, 1) - 1)


def factors(draw, n):
    """A list of sizes whose product is n."""
    sizes = []
    while n > 1 and len(sizes) < 4:
        sizes.append(draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0])))
        n //= sizes[-1]
    return sizes + [n]


def draw_transpose(draw, x):
    a, b = draw(dims(x.ndim)), draw(dims(x.ndim))
    return lambda t: t.transpose(a, b)


def draw_permute(draw, x):
    order = draw(st.permutations(range(x.ndim)))
    return lambda t: t.permute(*order) if order else t.permute(())


def draw_view(draw, x):
    sizes = factors(draw, x.numel()) if x.numel() else [0, draw(st.integers(0, 3))]
    return lambda t: t.view(sizes)


def draw_squeeze(draw, x):
    dim = draw(st.none() | dims(x.ndim) | st.lists(st.integers(0, max(x.ndim, 1) - 1), unique=True).map(tuple))
    return lambda t: t.squeeze() if dim is None else t.squeeze(dim)


def draw_unsqueeze(draw, x):
    dim = draw(st.integers(-x.ndim - 1, x.ndim))
    return lambda t: t.unsqueeze(dim)


def draw_expand(draw, x):
    lead = draw(st.lists(st.integers(0, 3), max_size=2))
    sizes = lead + [draw(st.sampled_from([-1, 1, 3])) if s == 1 else -1 for s in x.shape]
    return lambda t: t.expand(sizes)


def draw_select(draw, x):
    dim = draw(dims(x.ndim))
    index = draw(st.integers(-x.shape[dim], x.shape[dim] - 1)) if x.ndim and x.shape[dim] else 0
    return lambda t: t.select(dim, index)


def draw_slice(draw, x):
    ends = st.none() | st.integers(-6, 6)
    index = slice(draw(ends), draw(ends), draw(st.none() | st.integers(1, 4)))
    return lambda t: t[index]


def draw_narrow(draw, x):
    dim = draw(dims(x.ndim))
    size = x.shape[dim] if x.ndim else 1
    start = draw(st.integers(-size, size))
    length = draw(st.integers(0, size - (start + size if start < 0 else start)))
    return lambda t: t.narrow(dim, start, length)


def draw_diagonal(draw, x):
    offset, a, b = draw(st.integers(-3, 3)), draw(dims(x.ndim)), draw(dims(x.ndim))
    return lambda t: t.diagonal(offset, a, b)


def draw_unfold(draw, x):
    dim = draw(dims(x.ndim))
    size, step = draw(st.integers(0, x.shape[dim] if x.ndim else 1)), draw(st.integers(1, 3))
    return lambda t: t.unfold(dim, size, step)


def draw_unbind(draw, x):
    dim, i = draw(dims(x.ndim)), draw(st.integers(0, 2))
    return lambda t: t.unbind(dim)[i]


def draw_split(draw, x):
    size, dim, i = draw(st.integers(0, 3)), draw(dims(x.ndim)), draw(st.integers(0, 1))
    return lambda t: t.split(size, dim)[i]


def draw_chunk(draw, x):
    n, dim, i = draw(st.integers(1, 4)), draw(dims(x.ndim)), draw(st.integers(0, 1))
    return lambda t: t.chunk(n, dim)[i]


def draw_flatten(draw, x):
    a, b = draw(dims(x.ndim)), draw(dims(x.ndim))
    return lambda t: t.flatten(a, b)


def draw_as_strided(draw, x):
    sizes = draw(st.lists(st.integers(0, 3), max_size=3))
    strides = [draw(st.integers(0, 4)) for _ in sizes]
    offset = draw(st.none() | st.integers(0, 6))
    return lambda t: t.as_strided(sizes, strides, offset)


STEPS = [f for name, f in sorted(globals().items()) if name.startswith("draw_")]


@st.composite
def view_chains(draw):
    """A base shape and functions that PyTorch accepts one after the other, plus at most one that it refuses."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    x = torch.zeros(shape)
    steps, refused = [], None
    for _ in range(draw(st.integers(1, 5))):
        step = draw(st.sampled_from(STEPS))(draw, x)
        try:
            x = step(x)
        except (RuntimeError, IndexError):
            refused = step
            break
        steps.append(step)
    return shape, steps, refused


def numbers(m, shape):
    return m.arange(math.prod(shape), dtype=m.float64).reshape(shape)


def walk(x, steps):
    for step in steps:
        x = step(x)
    return x


def same_values(ours, theirs):
    return ours.tolist() == theirs.tolist()


@chains
@given(view_chains())
def test_geometry_and_values(chain):
    shape, steps, refused = chain
    ours, theirs = (walk(numbers(m, shape), steps) for m in BOTH)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert tuple(ours.stride()) == tuple(theirs.stride())
    assert ours.storage_offset() == theirs.storage_offset()
    assert ours.is_contiguous() == theirs.is_contiguous()
    assert same_values(ours, theirs)
    if refused:
        with pytest.raises((RuntimeError, IndexError)) as theirs_error:
            refused(theirs)
        with pytest.raises((RuntimeError, IndexError)) as ours_error:
            refused(ours)
        if theirs_error.type is IndexError:
            assert isinstance(ours_error.value, IndexError)


def reaches_twice(x):
    """Unless each stride is larger than all that the smaller ones span together."""
    span = 0
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape) if n > 1) if x.numel() else ():
        if stride <= span:
            return True
        span += stride * (size - 1)
    return False


@chains
@given(view_chains())
def test_writes_go_through(chain):
    shape, steps, _ = chain
    ours, theirs = (numbers(m, shape) for m in BOTH)
    ours_view, theirs_view = walk(ours, steps), walk(theirs, steps)
    if reaches_twice(theirs_view):  # PyTorch refuses this only where a stride is zero; else it writes in no particular order
        with pytest.raises(RuntimeError, match="single memory location"):
            ours_view.mul_(-1)
        return
    theirs_view.mul_(-1)
    ours_view.mul_(-1)
    assert ours._version == theirs._version
    assert same_values(ours, theirs)


@chains
@given(view_chains())
def test_gradients(chain):
    shape, steps, _ = chain
    grads = []
    for m in BOTH:
        base = numbers(m, shape).detach().requires_grad_()
        seen = walk(base * 1, steps)
        weights = numbers(m, tuple(seen.shape)) + 1
        (first,) = m.autograd.grad((seen * seen * weights).sum(), [base], create_graph=True)
        # first may be a constant: base itself keeps the second loss differentiable
        (second,) = m.autograd.grad((first * first * (numbers(m, shape) - 3) + base).sum(), [base])
        grads.append((first, second))
    for ours, theirs in zip(*grads):
        assert torch.allclose(torch.tensor(ours.tolist(), dtype=torch.float64).reshape(shape), theirs.detach())


def test_many_dimensions():
    shape = [2] + [1] * 62 + [3]
    for m in BOTH:
        x = m.arange(6).view(shape)
        assert x.ndim == 64 and tuple(x.stride()) == tuple(torch.arange(6).view(shape).stride())
        assert x.permute(*range(63, -1, -1)).shape[0] == 3
        assert x.transpose(0, 63).contiguous().view(-1).tolist() == [0, 3, 1, 4, 2, 5]
        assert x.squeeze().tolist() == [[0, 1, 2], [3, 4, 5]]
        assert x.unbind(-1)[2].flatten().tolist() == [2, 5]
        assert m.cat([x, x], 63).shape[63] == 6
        assert x.flip(0, 63).flatten().tolist() == [5, 4, 3, 2, 1, 0]
        assert x.repeat(*[1] * 63, 2).flatten().tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]
        y = x.to(m.float64).detach().requires_grad_()
        y.select(63, 1).sum().backward()
        assert y.grad.flatten().tolist() == [0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize(
    "refused",
    [
        lambda m, x: x.unsqueeze(0),
        lambda m, x: x.view([1] * 65),
        lambda m, x: x.expand([1] * 65),
        lambda m, x: x.unfold(0, 1, 1),
        lambda m, x: m.stack([x, x]),
        lambda m, x: x.as_strided([1] * 65, [1] * 65),
        lambda m, x: x.repeat([1] * 65),
        lambda m, x: x.reshape([1] * 100),
    ],
)
def test_too_many_dimensions(refused):
    with pytest.raises((RuntimeError, ValueError), match="at most 64"):
        refused(lucid, lucid.zeros([1] * 64))


HUGE = 2**62
REFUSED = [
    lambda m: m.zeros(6).view(HUGE, HUGE),
    lambda m: m.zeros(6).view(-HUGE, 6),
    lambda m: m.zeros(1).expand(HUGE, HUGE),
    lambda m: m.zeros(1).expand(-7),
    lambda m: m.zeros(6).as_strided((HUGE,), (HUGE,)),
    lambda m: m.zeros(6).as_strided((2,), (HUGE,), HUGE),
    lambda m: m.zeros(6).as_strided((2,), (1,), -HUGE),
    lambda m: m.zeros(6).as_strided((-2,), (1,)),
    lambda m: m.zeros(6).narrow(0, HUGE, 1),
    lambda m: m.zeros(6).narrow(0, 1, HUGE),
    lambda m: m.zeros(6).narrow(0, -HUGE, 1),
    lambda m: m.zeros(6).select(0, -HUGE),
    lambda m: m.zeros(6).select(HUGE, 0),
    lambda m: m.zeros(6).unfold(0, HUGE, 1),
    lambda m: m.zeros(6).unfold(0, 1, -HUGE),
    lambda m: m.zeros(6).split(-HUGE),
    lambda m: m.zeros(6).split([HUGE, HUGE, HUGE, HUGE]),
    lambda m: m.zeros(6).chunk(-HUGE),
    lambda m: m.zeros(6).repeat(HUGE),
    lambda m: m.zeros(6).repeat(-1),
    lambda m: m.zeros(1).expand(HUGE).repeat(8),
    lambda m: m.zeros(6).tensor_split(-1),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_huge_and_negative_sizes(k):
    for m in BOTH:
        with pytest.raises((RuntimeError, IndexError)):
            REFUSED[k](m)


def test_extreme_arguments_that_are_fine():
    assert lucid.arange(6)[: 2**63 - 1 : 2**63 - 1].tolist() == [0]  # as for a list; PyTorch's count overflows
    for m in BOTH:
        x = m.arange(6)
        assert x[-(2**40) : 2**63 - 1].tolist() == list(range(6))
        assert [t.tolist() for t in x.split(2**63 - 1)] == [list(range(6))]
        assert len(x.chunk(2**62)) == 6
        assert x.unfold(0, 6, 2**63 - 1).tolist() == [list(range(6))]
        assert tuple(x.view(2, 3).diagonal(2**62).shape) == (0,)
        assert tuple(x.view(2, 3).diagonal(-(2**63)).shape) == (0,)
        assert x.roll(2**63 - 1).tolist() == torch.arange(6).roll(2**63 - 1).tolist()
        assert tuple(m.zeros(1).expand(2**40, 2**20)[5, 7:9].shape) == (2,)


IN_PLACE = [
    lambda x: x.squeeze_(),
    lambda x: x.squeeze_(0),
    lambda x: x.squeeze_((0, 2)),
    lambda x: x.unsqueeze_(-1),
    lambda x: x.transpose_(0, 1),
    lambda x: x.swapaxes_(0, -1),
    lambda x: x.swapdims_(1, 2),
    lambda x: x.select(0, 0).t_(),
]


@pytest.mark.parametrize("k", range(len(IN_PLACE)))
def test_in_place_forms_change_the_tensor_itself(k):
    results = []
    for m in BOTH:
        leaf = numbers(m, (1, 2, 1)).detach().requires_grad_()
        x = leaf * 2
        version = x._version
        y = IN_PLACE[k](x)
        if k != len(IN_PLACE) - 1:
            assert y is x and x._version == version + 1
        (y * numbers(m, tuple(y.shape))).sum().backward()
        results.append((y, leaf.grad))
        with pytest.raises(RuntimeError):
            IN_PLACE[k](leaf)
    (ours, ours_grad), (theirs, theirs_grad) = results
    assert tuple(ours.shape) == tuple(theirs.shape) and tuple(ours.stride()) == tuple(theirs.stride())
    assert same_values(ours, theirs) and same_values(ours_grad, theirs_grad)


def test_refused_in_place_forms_change_nothing():
    for m in BOTH:
        x = numbers(m, (2, 1))
        for name, args in (("squeeze_", (2,)), ("unsqueeze_", (5,)), ("transpose_", (0, 2)), ("swapaxes_", (-3, 0))):
            with pytest.raises((RuntimeError, IndexError)):
                getattr(x, name)(*args)
        assert tuple(x.shape) == (2, 1) and x._version == 0


def test_what_is_a_view_and_what_is_itself():
    for m in BOTH:
        x = numbers(m, (2, 3)).clone()
        assert x.contiguous() is x and x.flatten(1, 1) is x
        assert x.t()._is_view() and x.reshape(6)._is_view() and x.t().t()._base is x
        assert not x.t().reshape(6)._is_view() and not x.clone()._is_view()
        assert not x.detach()._is_view() and x.detach() is not x
        x.detach().fill_(5)
        assert x.tolist() == [[5] * 3] * 2 and x._version == 1


def test_detach_in_place():
    for m in BOTH:
        x = m.ones(3).requires_grad_() * 2
        assert x.detach_() is x and not x.requires_grad and x.grad_fn is None
        with pytest.raises(RuntimeError, match="detach views in-place"):
            (m.ones(3).requires_grad_() * 2)[1:].detach_()


def test_writing_one_of_many_views_is_refused():
    for m in BOTH:
        for make in (lambda x: x.unbind(), lambda x: x.split(1), lambda x: x.split([1, 2]), lambda x: x.chunk(3)):
            x = m.ones(3, 2).requires_grad_() * 1
            with pytest.raises(RuntimeError):
                make(x)[0].mul_(2)
        x = m.ones(3, 2).requires_grad_() * 1
        x.tensor_split(3)[0].mul_(2)
        assert x.tolist() == [[2, 2], [1, 1], [1, 1]]


def test_large_lists():
    """More parts than a stack of pointers would hold."""
    x = lucid.ones(300_000).requires_grad_()
    parts = x.unbind()
    assert len(parts) == 300_000
    (parts[7] * 3).backward()
    assert x.grad.sum().item() == 3 and x.grad[7].item() == 3


class Same(lucid.autograd.Function):
    @staticmethod
    def forward(ctx, *xs):
        return tuple(x.clone() for x in xs)

    @staticmethod
    def backward(ctx, *grads):
        if len(grads) == 1:
            raise ValueError("one alone")
        return grads


def test_lists_longer_than_a_stack():
    x, made = lucid.ones(1, requires_grad=True), []

    def join():
        many = [x] * 60_000
        for joined in (lucid.cat(many), lucid.hstack(many), lucid.cat(many[1:] + [x.double()]), lucid.stack(many).unbind()[5]):
            joined.sum().backward()
        lucid.cat(Same.apply(*many)).sum().backward()
        made.append(x.grad.item())
        parts = x.expand(60_000).unbind()
        with pytest.raises(ValueError):  # what has arrived for the other parts is dropped
            lucid.stack([Same.apply(parts[0])[0], *parts[1:]]).sum().backward()
        made.append(lucid.vmap(lambda t: lucid.stack([t] * 60_000).sum())(lucid.ones(2)).tolist())

    before = threading.stack_size(1 << 18)
    try:
        thread = threading.Thread(target=join)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert made == [240_001, [60_000] * 2]


EXAMPLES = {
    "t": lambda x: x.t(),
    "view": lambda x: x[0].view(3, 1),
    "reshape": lambda x: x.t().reshape(6),
    "slice": lambda x: x[:, 1:],
    "permute": lambda x: x.permute(1, 0),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "expand": lambda x: x.expand(4, 2, 3),
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "unbind": lambda x: x.unbind(1)[2],
    "split": lambda x: x.split(2, 1)[1],
    "detach": lambda x: x.detach() * x,
    "chain": lambda x: (x.t()[1:] * x[0, 0]).flatten(),
}


@pytest.mark.filterwarnings("ignore:vmap")
@pytest.mark.parametrize("in_dim", (0, 1, 2))
@pytest.mark.parametrize("name", EXAMPLES)
def test_vmap_of_views(name, in_dim):
    f = EXAMPLES[name]
    shape = [2, 3]
    shape.insert(in_dim, 5)
    results = []
    for m, mapped in ((lucid, lucid.func.vmap(f, in_dims=in_dim)), (torch, torch.func.vmap(f, in_dims=in_dim))):
        x = numbers(m, shape).detach().requires_grad_()
        y = mapped(x)
        (y * y).sum().backward()
        results.append((y.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


def test_vmap_inside_vmap():
    nested = [m.func.vmap(m.func.vmap(lambda x: x.view(2, 2).t()))(numbers(m, (2, 3, 4))).tolist() for m in BOTH]
    assert nested[0] == nested[1]


def test_a_scalar_expands_with_strides_of_zero():
    for m in BOTH:
        assert tuple(m.zeros(()).expand(1, 1).stride()) == (0, 0)
        assert tuple(m.zeros(3).expand(1, 1, 3).stride()) == (3, 3, 1)


SIDES = {  # two views of one 6 x 6 matrix: written, read
    "halves of columns": lambda x: (x[:, 3:], x[:, :3]),
    "every other column": lambda x: (x[:, ::2], x[:, 1::2]),
    "every third row": lambda x: (x[::3], x[2::3]),
    "a column by the others": lambda x: (x[:, 1:], x[:, :1]),
    "corners": lambda x: (x[:3, :3], x[3:, 3:].t()),
    "diagonals": lambda x: (x.diagonal(1), x.diagonal(-1)),
    "of other strides": lambda x: (x.reshape(36)[1:13:2], x.reshape(36)[24:30]),
    "columns to the left": lambda x: (x[:, :-1], x[:, 1:]),
    "columns to the right": lambda x: (x[:, 1:], x[:, :-1]),
    "rows and columns": lambda x: (x[:3, :3], x[1:4, 1:4].t()),
    "rows down": lambda x: (x[1:, :4], x[:-1, :4]),
    "a column by all": lambda x: (x[:, 1:], x[:, 2:3]),
}

WRITES = (
    lambda m, a, b: a.add_(b),
    lambda m, a, b: a.copy_(b),
    lambda m, a, b: m.mul(a, b, out=a),
    lambda m, a, b: m.maximum(b, b, out=a),
)


@pytest.mark.parametrize("name", SIDES)
def test_views_beside_each_other(name):
    """What is read is what was there before anything was written. PyTorch agrees where no element is both read and written."""
    for write in WRITES:
        ours, theirs = (m.arange(36.0).reshape(6, 6) for m in BOTH)
        a, b = SIDES[name](theirs)
        written = b.clone().expand(a.shape).contiguous()
        write(torch, a, written)
        a, b = SIDES[name](ours)
        write(lucid, a, b if b.shape == a.shape else b.expand(a.shape))
        assert ours.tolist() == theirs.tolist()
    with pytest.raises(RuntimeError, match="single memory location"):  # of dense tensors PyTorch knows, and refuses
        x = lucid.arange(6.0)
        x[1:] += x[:-1]
