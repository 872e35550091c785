"""x[...] and x[...] = v against PyTorch: every kind of index, mixed, in random combinations, and what is refused."""
# ruff: noqa: B023 (every lambda here is called before its loop goes on)

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lucid
from tests.oracle import assert_same, both, of_torch
from tests.properties import examples

X = torch.arange(60.0).reshape(3, 4, 5)
MASK = torch.arange(12).reshape(3, 4) % 3 == 0


def mine(key):
    """The same index with Lucid's tensors."""
    if isinstance(key, torch.Tensor):
        return of_torch(key)
    if isinstance(key, slice):
        return slice(mine(key.start), mine(key.stop), mine(key.step))
    if isinstance(key, tuple | list):
        return type(key)(map(mine, key))
    return key


INDICES = [
    0,
    -1,
    2,
    (1, 2),
    (1, 2, 3),
    (-1, slice(1, 3)),
    slice(None),
    slice(1, None, 2),
    slice(-2, None),
    slice(10, 20),
    slice(3, 1),
    (slice(None), slice(None, None, 3)),
    None,
    (None, 0, None),
    ...,
    (),
    (..., 0),
    (0, ..., 1),
    (..., None),
    (0, 1, 2, ...),
    True,
    False,
    (True, 0),
    (0, True),
    (0, False),
    (slice(None), True, [0, 1]),
    [0, 2],
    [0],
    [],
    [[0, 1], [1, 2]],
    [True, False, True],
    ([0, 1], [2, 3]),
    (slice(None), [0, 1], [1, 2]),
    ([0, 1], slice(None), [1, 2]),
    (0, slice(None), [0, 1]),
    ([0, 1], 1),
    ([[0], [1]], [0, 1]),
    ([0, 1], None, [1, 2]),
    (slice(0, 2), [0, 3], ...),
    (..., [0, 1]),
    torch.tensor(1),
    torch.tensor(True),
    torch.tensor(1, dtype=torch.uint8),
    torch.tensor([0, 2]),
    torch.tensor([[0, -1], [1, 2]]),
    torch.tensor([0, 1], dtype=torch.int32),
    torch.tensor([0, 1, 1], dtype=torch.uint8),
    torch.tensor([], dtype=torch.int64),
    (torch.tensor([0, 1]), torch.tensor([[0], [1]])),
    MASK,
    (MASK, 1),
    (MASK, slice(1, 3)),
    (MASK, [0] * int(MASK.sum())),
    (slice(None), torch.tensor([True, False, True, False])),
    (0, torch.tensor([True, False, True, False])),
    (..., torch.tensor([True, False, True, False, True])),
    torch.zeros(3, 4, 5, dtype=torch.bool),
    numpy.int64(1),
    numpy.array([0, 1]),
    numpy.array([True, False, True]),
    (numpy.array([0, 1]), numpy.array([1, 2])),
    range(2),
    [torch.tensor([0, 1]), torch.tensor([0, 1])],
    [slice(None), 0],
    slice(torch.tensor(0), torch.tensor(2)),
]


@pytest.mark.parametrize("key", INDICES, ids=repr)
def test_getitem(key):
    assert_same(of_torch(X)[mine(key)], X[key])


@pytest.mark.parametrize("key", INDICES, ids=repr)
def test_getitem_of_strided(key):
    y = X.permute(2, 0, 1)[:4, :, 1:].permute(1, 2, 0)  # 3, 3, 4 elements, not contiguous
    both(lambda: of_torch(y)[mine(key)], lambda: y[key])


@pytest.mark.parametrize("key", INDICES, ids=repr)
@pytest.mark.parametrize("value", ["number", "tensor", "scalar", "leading ones"])
def test_setitem(key, value):
    y, x = X.clone(), of_torch(X)
    shape = tuple(y[key].shape)
    v = {
        "number": 7,
        "tensor": -torch.arange(1.0, 1 + y[key].numel()).reshape(shape),
        "scalar": torch.tensor(3.5),
        "leading ones": torch.full((1, 1, *shape), 2.0),
    }[value]
    if isinstance(key, torch.Tensor) and key.dtype is torch.uint8 and key.ndim:
        return  # PyTorch reads with such masks and then refuses to write one value with them
    error = both(lambda: x.__setitem__(mine(key), mine(v)), lambda: y.__setitem__(key, v))
    if not error:
        assert_same(x, y)


REFUSED = [
    5,
    -4,
    (0, 4),
    (0, 0, 0, 0),
    (0, 0, 0, None, 0),
    1.0,
    slice(None, None, -1),
    slice(None, None, 0),
    slice(1.5, 2),
    torch.tensor([1.0]),
    torch.tensor([0, 5]),
    torch.tensor([-4]),
    ([0, 1], [0, 1, 2]),
    torch.ones(2, 4, dtype=torch.bool),
    torch.ones(3, 4, 5, 1, dtype=torch.bool),
    torch.tensor([0, 1], dtype=torch.uint8),
]


@pytest.mark.parametrize("key", REFUSED, ids=repr)
def test_refused(key):
    messages = both(lambda: of_torch(X)[mine(key)], lambda: X[key])
    assert messages
    x = of_torch(X)
    with pytest.raises((IndexError, TypeError, ValueError)):
        x[mine(key)] = 1.0
    assert_same(x, X)  # a refused assignment changes nothing


@pytest.mark.parametrize("key", [5, -4, (0, 4), (0, 0, 0, 0)])
def test_error_text(key):
    assert len(set(both(lambda: of_torch(X)[key], lambda: X[key]))) == 1


def test_zero_dimensions():
    t, x = torch.tensor(1.5), lucid.tensor(1.5)
    for key in (..., (), None, (None, None), True, False):
        assert_same(x[key], t[key])
    for key in (0, slice(None), [0]):
        assert both(lambda key=key: x[key], lambda key=key: t[key])


def test_basic_indexing_is_a_view():
    x = lucid.zeros(3, 4)
    for key in (0, slice(1, 3), (slice(None), 2), ..., None, ()):
        y = x[key]
        assert y._base is x and y is not x
    x[1:, ::2].fill_(1)
    assert x.tolist() == [[0] * 4, [1, 0, 1, 0], [1, 0, 1, 0]]
    assert x[[0, 1]]._base is None


VALUES = ["a", None, [1, 2], numpy.ones(5), torch.ones(3), torch.ones(2, 4, 5)]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_refused(value):
    x = of_torch(X)
    assert both(lambda: x.__setitem__(0, mine(value)), lambda: X.clone().__setitem__(0, value))
    assert_same(x, X)


def test_conversions_on_assignment():
    for dtype in ("int64", "uint8", "bool", "float16", "complex64"):
        for key in (0, torch.tensor([0, 1])):
            for value in (1, 1.75, True, 300, 1j, -1):
                y = torch.zeros(3, dtype=getattr(torch, dtype))
                x = of_torch(y)
                error = both(lambda: x.__setitem__(mine(key), value), lambda: y.__setitem__(key, value))
                if not error:
                    assert_same(x, y)
    x = lucid.zeros(3)
    x[0] = lucid.tensor(2)  # a copy converts
    assert x.tolist() == [2, 0, 0]
    with pytest.raises(RuntimeError):
        x[lucid.tensor([0])] = lucid.tensor(2)  # index_put_ does not
    with pytest.raises(TypeError):
        del x[0]


def test_gradients():
    for key in (
        0,
        (slice(1, 3), slice(None, None, 2)),
        torch.tensor([0, 0, 2]),
        MASK,
        (MASK, 1),
        None,
        ([0, 1], slice(None), [1, 1]),
    ):
        t = X.clone().requires_grad_()
        x = of_torch(X).requires_grad_()
        (t[key] * 2).sum().backward()
        (x[mine(key)] * 2).sum().backward()
        assert_same(x.grad, t.grad)
        t, v = X.clone().requires_grad_(), torch.ones((), requires_grad=True)
        x, w = of_torch(X).requires_grad_(), lucid.ones((), requires_grad=True)
        y, z = t * 1, x * 1
        y[key] = v
        z[mine(key)] = w
        (y * y).sum().backward()
        (z * z).sum().backward()
        assert_same(x.grad, t.grad)
        assert_same(w.grad, v.grad)


def test_iteration_and_membership():
    x = of_torch(X)
    assert len(x) == 3 and [r.tolist() for r in x] == X.tolist()
    assert 7.0 in x and 99 not in x and lucid.tensor(3.0) in x
    assert [r.tolist() for r in reversed(x)] == X.flip(0).tolist()
    a, b, c = x[:, 0, 0]
    assert (a.item(), b.item(), c.item()) == (0, 20, 40)
    with pytest.raises(TypeError, match="iteration over a 0-d tensor"):
        iter(lucid.tensor(1))
    with pytest.raises(RuntimeError):
        "a" in x  # noqa: B015


sizes = st.lists(st.integers(0, 4), min_size=0, max_size=4)


@st.composite
def cases(draw):
    shape = draw(sizes)
    dims = draw(st.permutations(range(len(shape))))
    items, left = [], list(shape)
    while left and draw(st.booleans()):
        n = left.pop(0)
        kind = draw(st.sampled_from(["int", "slice", "none", "list", "mask", "bool"]))
        ints = st.integers(-n, n - 1) if n else st.nothing()
        if kind == "int" and n:
            items.append(draw(ints))
        elif kind == "slice":
            bound = st.none() | st.integers(-6, 6)
            items.append(slice(draw(bound), draw(bound), draw(st.none() | st.integers(1, 3))))
        elif kind == "none":
            items.append(None)
            left.insert(0, n)
        elif kind == "list" and n:
            items.append(torch.tensor(draw(st.lists(ints, min_size=2, max_size=2))))
        elif kind == "mask":
            items.append(torch.tensor(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=torch.bool))
        elif kind == "bool":
            items.append(draw(st.booleans()))
            left.insert(0, n)
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), ...)
    return shape, dims, tuple(items)


@examples(300)
@given(cases())
def test_random_indices(case):
    shape, dims, key = case
    y = torch.arange(float(torch.Size(shape).numel())).reshape(shape).permute(dims)
    x = of_torch(y)
    both(lambda: x[mine(key)], lambda: y[key])
    if not both(lambda: x.__setitem__(mine(key), -1.0), lambda: y.__setitem__(key, -1.0)):
        assert_same(x, y)
