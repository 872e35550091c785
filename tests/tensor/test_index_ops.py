"""Indexing under random shapes, strides, dtypes and indices, against PyTorch; errors leave operands as they were."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

import lucid
from tests.properties import examples

DTYPES = ("bool", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=4)


def ours(x):
    return lucid.tensor(x.tolist(), dtype=getattr(lucid, str(x.dtype).split(".")[1])).reshape(tuple(x.shape))


def theirs(x):
    return torch.tensor(x.tolist(), dtype=getattr(torch, str(x.dtype).split(".")[1])).reshape(tuple(x.shape))


def assert_equal(a, b):
    assert tuple(a.shape) == tuple(b.shape) and str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
    assert torch.equal(theirs(a), b.contiguous()), f"{a} vs {b}"


def attempt(f):
    try:
        return f(), None
    except Exception as error:  # noqa: BLE001  the class is compared
        return None, error


def same(f, *pairs):
    """f on our tensors and on theirs: equal results or an error each; afterwards the tensors are equal too."""
    a, our_error = attempt(lambda: f(lucid, *(p[0] for p in pairs)))
    b, their_error = attempt(lambda: f(torch, *(p[1] for p in pairs)))
    assert (our_error is None) == (their_error is None), f"{our_error!r} vs {their_error!r}"
    if their_error is not None:
        kind = IndexError if isinstance(their_error, IndexError) else RuntimeError
        assert isinstance(our_error, kind), f"{our_error!r} instead of {their_error!r}"
    else:
        assert_equal(a, b)
    if their_error is None:
        for mine, other in pairs:
            assert_equal(mine, other)


@st.composite
def tensors(draw, shape, dtype):
    """A pair of equal tensors with the same random strides: transposed, sliced or plain."""
    layout = draw(st.sampled_from(("plain", "reversed", "sliced")))
    numbers = torch.randint(0, 7, shape, generator=torch.Generator().manual_seed(draw(st.integers(0, 99))))
    b = numbers.to(getattr(torch, dtype))
    a = ours(b)
    if layout == "reversed":
        order = list(reversed(range(len(shape))))
        return tuple(x.permute(*order).contiguous().permute(*order) for x in (a, b))
    if layout == "sliced":
        pair = []
        for m, x in ((lucid, a), (torch, b)):
            wide = m.zeros((*shape[:-1], 2 * shape[-1]), dtype=x.dtype)
            wide[..., ::2].copy_(x)
            pair.append(wide[..., ::2])
        return tuple(pair)
    return a, b


@st.composite
def index_pair(draw, shape, size, wild=1):
    """int64 indices for a dimension of this size; now and then one that is out of range."""
    low, high = -size, max(size - 1, -size)
    if draw(st.integers(0, 9)) == 0:
        low, high = low - wild, high + wild
    n = 1
    for s in shape:
        n *= s
    numbers = draw(st.lists(st.integers(low, high), min_size=n, max_size=n))
    b = torch.tensor(numbers, dtype=torch.int64).reshape(shape)
    return ours(b), b


@st.composite
def brackets(draw, shape):
    """What may stand between the brackets for a tensor of this shape: a function of the module and a list of index pairs."""
    parts, pairs, broadcast = [], [], draw(st.lists(st.integers(1, 3), max_size=2))
    dim = 0
    while dim < len(shape):
        kind = draw(st.sampled_from(("slice", "int", "tensor", "tensor", "mask", "none")))
        if kind == "none":
            parts.append(None)
            if len(parts) > 6:
                break
            continue
        if kind == "slice":
            parts.append(
                slice(draw(st.integers(-3, 3)), draw(st.one_of(st.none(), st.integers(-3, 4))), draw(st.integers(1, 2)))
            )
        elif kind == "int":
            if shape[dim] == 0:
                break
            parts.append(draw(st.integers(-shape[dim], shape[dim] - 1)))
        elif kind == "tensor":
            own = [1 if draw(st.booleans()) else s for s in broadcast[draw(st.integers(0, len(broadcast))) :]]
            parts.append(len(pairs) + 1000)
            pairs.append(draw(index_pair(own, shape[dim])))
        else:
            rank = draw(st.integers(1, len(shape) - dim))
            b = torch.rand(shape[dim : dim + rank], generator=torch.Generator().manual_seed(draw(st.integers(0, 99)))) > 0.5
            parts.append(len(pairs) + 1000)
            pairs.append((ours(b), b))
            dim += rank - 1
        dim += 1

    def build(tensors):
        return tuple(tensors[p - 1000] if isinstance(p, int) and p >= 1000 else p for p in parts)

    return build, pairs


@examples(300)
@given(st.data())
def test_getitem(data):
    shape, dtype = data.draw(SHAPES), data.draw(st.sampled_from(DTYPES))
    x, (build, pairs) = data.draw(tensors(shape, dtype)), data.draw(brackets(shape))
    same(lambda m, x, *i: x[build(i)], x, *pairs)


@examples(300)
@given(st.data())
def test_setitem(data):
    shape, dtype = data.draw(SHAPES), data.draw(st.sampled_from(DTYPES))
    x, (build, pairs) = data.draw(tensors(shape, dtype)), data.draw(brackets(shape))
    try:
        target = x[1][build([b for _, b in pairs])]
    except IndexError:
        target = torch.zeros(())
    flat = target.reshape(-1)
    value = (torch.arange(flat.numel()) % 5).to(x[1].dtype).reshape(target.shape)
    if data.draw(st.booleans()) and value.ndim:
        value = value[:1]
    if any(p.dtype != torch.bool and p.numel() > 1 for _, p in pairs):
        value = torch.ones_like(value)  # duplicates: whichever wins, the value is the same

    def write(m, x, v, *i):
        x[build(i)] = v
        return x

    same(write, x, (ours(value), value), *pairs)


@examples(200)
@given(st.data())
def test_accumulate(data):
    size, width = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    dtype = data.draw(st.sampled_from(("int32", "int64", "float32", "float64", "complex64")))
    x, n = data.draw(tensors([size, width], dtype)), data.draw(st.integers(0, 9))
    index, value = data.draw(index_pair([n], size)), data.draw(tensors([n, width], dtype))
    same(lambda m, x, i, v: x.index_put((i,), v, accumulate=True), x, index, value)
    positive = index[0].abs(), index[1].abs()
    same(lambda m, x, i, v: x.index_add(0, i, v), x, positive, value)


@examples(300)
@given(st.data())
def test_gather_and_scatter(data):
    shape, dtype = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)), data.draw(st.sampled_from(DTYPES))
    dim = data.draw(st.integers(0, len(shape) - 1))
    small = [data.draw(st.integers(0, 5 if d == dim else s)) for d, s in enumerate(shape)]
    x, index, src = (
        data.draw(tensors(shape, dtype)),
        data.draw(index_pair(small, shape[dim])),
        data.draw(tensors([s + 1 for s in small], dtype)),
    )
    if not data.draw(st.booleans()):
        index = tuple(i.abs() for i in index)
    same(lambda m, x, i: x.gather(dim, i), x, index)
    same(lambda m, x, i, s: x.scatter_add(dim, i, s), x, index, src)
    same(lambda m, x, i: x.scatter(dim, i, 1), x, index)
    same(lambda m, x, i: x.scatter_(dim, i, 1), x, index)


@examples(200)
@given(st.data())
def test_slices_by_index(data):
    shape, dtype = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)), data.draw(st.sampled_from(DTYPES))
    dim, n = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.integers(0, 4))
    x, index = data.draw(tensors(shape, dtype)), data.draw(index_pair([n], shape[dim]))
    same(lambda m, x, i: x.index_fill(dim, i, 1), x, index)
    same(lambda m, x, i: x.index_select(dim, i.abs()), x, index)
    same(lambda m, x, i: x.take(i), x, index)


@examples(200)
@given(st.data())
def test_masks(data):
    shape, dtype = data.draw(SHAPES), data.draw(st.sampled_from(DTYPES))
    x, mask = (
        data.draw(tensors(shape, dtype)),
        data.draw(tensors(shape[data.draw(st.integers(0, len(shape))) :] or [1], "bool")),
    )
    same(lambda m, x, k: x.masked_select(k), x, mask)
    same(lambda m, x, k: x.masked_fill(k, 1), x, mask)
    same(lambda m, x: x.nonzero(), x)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.scatter_(0, i, 9.0),
        lambda x, i: x.scatter_add_(0, i, lucid.ones(3)),
        lambda x, i: x.index_fill_(0, i, 9.0),
        lambda x, i: x.index_copy_(0, i, lucid.ones(3)),
        lambda x, i: x.index_add_(0, i, lucid.ones(3)),
        lambda x, i: x.index_put_((i,), lucid.ones(3)),
        lambda x, i: x.__setitem__(i, 9.0),
    ],
)
def test_a_bad_index_writes_nothing(write):
    x = lucid.arange(5.0)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 5"):
        write(x, lucid.tensor([0, 1, 5]))
    assert x.tolist() == [0, 1, 2, 3, 4]


def test_out_is_untouched_when_an_index_is_bad():
    out = lucid.full((5,), 7.0)
    with pytest.raises(IndexError):
        lucid.scatter(lucid.zeros(5), 0, lucid.tensor([9]), 1.0, out=out)
    assert out.tolist() == [7.0] * 5


def test_sums_do_not_depend_on_the_number_of_threads():
    """Large enough to be split, in an order where float addition shows."""
    lucid.manual_seed(1)
    index, rows = lucid.randint(50, (4000,)), lucid.randn(4000, 64)
    flat, values = lucid.randint(500, (200000,)), lucid.randn(200000)
    results = []
    before = lucid.get_num_threads()
    try:
        for threads in (1, 2, 5):
            lucid.set_num_threads(threads)
            by_rows = lucid.zeros(50, 64).index_add_(0, index, rows)
            by_element = lucid.zeros(500).index_put_((flat,), values, accumulate=True)
            scattered = lucid.zeros(50, 64).scatter_add_(0, index[:, None].expand(4000, 64), rows)
            results.append([t.tolist() for t in (by_rows, by_element, scattered)])
    finally:
        lucid.set_num_threads(before)
    assert results[0] == results[1] == results[2]
    assert results[0][0] == results[0][2]


@pytest.mark.parametrize("threads", [1, 3])
def test_large_reads_and_products_in_threads(threads):
    before = lucid.get_num_threads()
    try:
        lucid.set_num_threads(threads)
        torch.manual_seed(0)
        table, index = torch.randn(300, 129), torch.randint(300, (2000,))
        a, i = ours(table), ours(index)
        assert_equal(a[i], table[index])
        assert_equal(a.gather(0, i[:1900].reshape(100, 19)), table.gather(0, index[:1900].reshape(100, 19)))
        b = torch.randn(129, 400)
        product = theirs(a @ ours(b))
        torch.testing.assert_close(product, table @ b, rtol=1e-5, atol=1e-4)
        strided = theirs(a.t() @ ours(table))
        torch.testing.assert_close(strided, table.t() @ table, rtol=1e-5, atol=2e-4)
    finally:
        lucid.set_num_threads(before)


@examples(300)
@given(st.data())
def test_numbered_and_masked_elements_in_place(data):
    """take, put_, masked_select, masked_scatter_, scatter_reduce_ on tensors of any strides."""
    shape, dtype = data.draw(SHAPES), data.draw(st.sampled_from(("int64", "float32", "uint8")))
    x = data.draw(tensors(shape, dtype))
    n, numel = data.draw(st.integers(0, 6)), x[1].numel()
    if numel:
        at, source = data.draw(index_pair([n], numel)), data.draw(tensors([n], dtype))
        same(lambda m, x, i: m.take(x, i), x, at)
        if all(-numel <= i < numel for i in at[1].tolist()):  # else PyTorch writes up to the bad one
            same(lambda m, x, i, s: x.put_(i, s, accumulate=True), x, at, source)
    mask = data.draw(tensors(shape, "bool"))
    left = data.draw(tensors([int(mask[1].sum()) + data.draw(st.integers(0, 2))], dtype))
    same(lambda m, x, k: m.masked_select(x, k), x, mask)
    same(lambda m, x, k, s: x.masked_scatter_(k, s), x, mask, left)
    d = data.draw(st.integers(0, len(shape) - 1))
    reached = [n if e == d else data.draw(st.integers(0, s)) for e, s in enumerate(shape)]
    b = torch.randint(0, max(1, shape[d]), reached, generator=torch.Generator().manual_seed(n))
    source, how = data.draw(tensors(reached, dtype)), data.draw(st.sampled_from(("sum", "amax", "amin")))
    own = data.draw(st.booleans())
    if shape[d]:
        same(lambda m, x, i, s: x.scatter_reduce_(d, i, s, how, include_self=own), x, (ours(b), b), source)
