"""Gradients of and through sparse tensors: beside PyTorch, by finite differences, into leaves, twice."""

import pytest
import torch

import lucid

from .both import assert_same, coo, csr, dense, described, hybrid

INDEX = [[1, 0, 1], [2, 1, 0]]


def leaf(m, t):
    return t.detach().requires_grad_()


def through_values(m, f):
    """The gradient of the values of a 2 x 3 tensor."""
    v = m.tensor([3.0, -1.5, 2.0], dtype=m.float64, requires_grad=True)
    out = f(m.sparse_coo_tensor(INDEX, v, (2, 3)))
    (out.to_dense() if out.layout != m.strided else out).pow(2).sum().backward()
    return v.grad


def of_leaf(m, f, start=None):
    s = leaf(m, coo(m, dtype=m.float64).coalesce() if start is None else start)
    out = f(s)
    (out.to_dense() if out.layout != m.strided else out).pow(2).sum().backward()
    return [s.grad.coalesce() if s.grad.layout == m.sparse_coo else s.grad, s.is_leaf, s.requires_grad]


def both_grads(m, make, f):
    """Of a dense factor and a sparse one."""
    s, d = leaf(m, make(m)), leaf(m, dense(m, 3, 4).to(make(m).dtype))
    f(m, s, d).pow(2).sum().backward()
    return [s.grad.to_dense(), s.grad.layout == s.layout, d.grad]


def coalesced(m):
    return coo(m).coalesce()


def of_dense(m, f):
    d = leaf(m, dense(m, 2, 3))
    f(d).backward()
    return d.grad


CASES = {
    "values: to_dense": lambda m: through_values(m, lambda s: s),
    "values: product": lambda m: through_values(m, lambda s: s @ dense(m, 3, 4).double()),
    "values: coalesce": lambda m: through_values(m, lambda s: s.coalesce() * 3),
    "values: neg": lambda m: through_values(m, lambda s: s.neg()),
    "values: sum": lambda m: through_values(m, lambda s: m.sparse.sum(s, 0)),
    "values: transpose": lambda m: through_values(m, lambda s: s.t()),
    "values: sum of two": lambda m: through_values(m, lambda s: s + s * 2),
    "values: softmax": lambda m: through_values(m, lambda s: m.sparse.softmax(s.coalesce(), 1)),
    "values: log_softmax": lambda m: through_values(m, lambda s: m.sparse.log_softmax(s.coalesce(), 0)),
    "leaf: to_dense": lambda m: of_leaf(m, lambda s: s.to_dense()),
    "leaf: product": lambda m: of_leaf(m, lambda s: m.sparse.mm(s, dense(m, 3, 4).double())),
    "leaf: times": lambda m: of_leaf(m, lambda s: s * 3),
    "leaf: sum": lambda m: of_leaf(m, lambda s: m.sparse.sum(s)),
    "leaf: values": lambda m: of_leaf(m, lambda s: s.values()),
    "coo @ dense": lambda m: both_grads(m, coalesced, lambda m, s, d: m.sparse.mm(s, d)),
    "addmm": lambda m: both_grads(m, coalesced, lambda m, s, d: m.sparse.addmm(dense(m, 2, 4), s, d, alpha=2.0, beta=0.5)),
    "dense + sparse": lambda m: of_dense(m, lambda d: (d + coo(m)).pow(2).sum()),
    "to_sparse": lambda m: of_dense(m, lambda d: (d.to_sparse() * 3).to_dense().sum()),
    "sparse_mask": lambda m: of_dense(m, lambda d: m.sparse.sum(d.sparse_mask(coalesced(m)) * 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    assert_same(CASES[name])


FUNCTIONS = {
    "to_dense": lambda s, d: s.to_dense(),
    "coo @ dense": lambda s, d: s @ d,
    "dense @ coo": lambda s, d: d.t() @ s.t(),
    "csr @ dense": lambda s, d: s.to_sparse_csr() @ d,
    "csc @ dense": lambda s, d: s.to_sparse_csc() @ d,
    "mv": lambda s, d: s @ d[:, 0],
    "coo @ coo": lambda s, d: (s @ s.t()).to_dense(),
    "times dense": lambda s, d: (s * (d[:, :1] @ d[:1, :2]).t()).to_dense(),
    "times sparse": lambda s, d: (s * (s * s)).to_dense(),
    "plus": lambda s, d: (s + 2 * s).to_dense() + s,
    "bsr": lambda s, d: s.to_sparse_bsr((1, 3)).to_dense(),
    "slices": lambda s, d: s[1].to_dense() * s[:, 2].to_dense().sum() + s[0:1].to_dense(),
    "index_select": lambda s, d: s.index_select(0, lucid.tensor([1, 1, 0])).to_dense(),
    "cat": lambda s, d: lucid.cat([s, s * 2]).to_dense(),
    "sums": lambda s, d: lucid.sparse.sum(s, 0).to_dense() * lucid.sparse.sum(s),
    "softmax": lambda s, d: lucid.sparse.softmax(s, 1).to_dense() + lucid.sparse.log_softmax(s, 0).to_dense(),
    "maps": lambda s, d: s.sin().to_dense() + s.tanh().to_dense() + (s / 3).to_dense() + s.pow(3).to_dense(),
    "sampled": lambda s, d: lucid.sparse.sampled_addmm(s.to_sparse_csr(), d[:2], d.t()[:, :3], beta=2.0).to_dense(),
    "bmm": lambda s, d: lucid.bmm(lucid.stack([s, s]), lucid.stack([d, d])),
    "mask": lambda s, d: (d[:2, :3] * 2).sparse_mask(s.detach()).to_dense() + s.sparse_mask(s.detach()).to_dense(),
    "norm": lambda s, d: s.norm(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_finite_differences(name):
    def f(v, d):
        return FUNCTIONS[name](lucid.sparse_coo_tensor([[1, 0, 1, 1], [2, 1, 0, 2]], v, (2, 3)), d)

    v = lucid.tensor([3.0, -1.5, 2.0, 0.5], dtype=lucid.float64, requires_grad=True)
    d = ((lucid.arange(12.0, dtype=lucid.float64) * 0.7 - 2).reshape(3, 4) * 0.3).requires_grad_()
    assert lucid.autograd.gradcheck(f, (v, d))
    if name not in ("softmax", "slices"):
        assert lucid.autograd.gradgradcheck(f, (v, d))


def test_accumulation():
    for m in (lucid, torch):
        w = m.ones(3, 2, requires_grad=True)
        F = m.nn.functional
        ids = m.tensor([2, 0, 2])
        F.embedding(ids, w, sparse=True).sum().backward()
        assert w.grad.is_sparse
        assert w.grad._nnz() == 3
        F.embedding(ids, w, sparse=True).sum().backward()
        assert w.grad.is_sparse
        assert w.grad.to_dense().tolist() == [[2.0, 2.0], [0.0, 0.0], [4.0, 4.0]]
        (w * 2).sum().backward()
        assert not w.grad.is_sparse
        F.embedding(ids, w, sparse=True).sum().backward()
        assert w.grad.tolist() == [[5.0, 5.0], [2.0, 2.0], [8.0, 8.0]]
        w.grad = None
        (F.embedding(ids, w, sparse=True).sum() + (w * 2).sum() + F.embedding(ids, w, sparse=True).sum()).backward()
        assert w.grad.tolist() == [[4.0, 4.0], [2.0, 2.0], [6.0, 6.0]]


EMBEDDINGS = {
    "plain": lambda m, w: m.nn.functional.embedding(m.tensor([[2, 0], [2, 1]]), w, sparse=True),
    "padding": lambda m, w: m.nn.functional.embedding(m.tensor([[2, 0], [2, 1]]), w, padding_idx=2, sparse=True),
    "int32": lambda m, w: m.nn.functional.embedding(m.tensor([2, 0], dtype=m.int32), w, sparse=True),
    "bag sum": lambda m, w: m.nn.functional.embedding_bag(m.tensor([2, 0, 2, 1]), w, m.tensor([0, 1]), mode="sum", sparse=True),
    "bag mean": lambda m, w: m.nn.functional.embedding_bag(m.tensor([[2, 0], [2, 1]]), w, mode="mean", sparse=True),
    "bag weights": lambda m, w: bags(m, w, per_sample_weights=m.tensor([1.0, 2.0, 3.0, 4.0])),
    "bag padding": lambda m, w: bags(m, w, padding_idx=0),
}


def bags(m, w, **options):
    ids, offsets = m.tensor([2, 0, 2, 1]), m.tensor([0, 1])
    return m.nn.functional.embedding_bag(ids, w, offsets, mode="sum", sparse=True, **options)


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_embeddings(name):
    def case(m):
        w = dense(m, 3, 2).requires_grad_()
        EMBEDDINGS[name](m, w).pow(2).sum().backward()
        return [w.grad.to_dense(), w.grad.is_sparse]

    assert_same(case)


def test_embedding_refuses_frequency():
    w = lucid.ones(3, 2, requires_grad=True)
    out = lucid.nn.functional.embedding(lucid.tensor([0]), w, scale_grad_by_freq=True, sparse=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        out.sum().backward()


def trained(m, make, steps=4):
    m.manual_seed(1)
    e = m.nn.Embedding(7, 3, sparse=True)
    e.weight.data.copy_(dense(m, 7, 3))
    dense_part = dense(m, 3, 2).requires_grad_()
    optimizer = make(m, [e.weight])
    second = m.optim.SGD([dense_part], lr=0.1)
    for i in range(steps):
        optimizer.zero_grad()
        second.zero_grad()
        (e(m.tensor([i, 2, 5, 2])) @ dense_part).pow(2).sum().backward()
        assert e.weight.grad.is_sparse
        optimizer.step()
        second.step()
    return [e.weight.detach(), dense_part.detach()]


OPTIMIZERS = {
    "SGD": lambda m, p: m.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda m, p: m.optim.SGD(p, lr=0.02, momentum=0.9),
    "SGD nesterov": lambda m, p: m.optim.SGD(p, lr=0.02, momentum=0.9, nesterov=True, maximize=True),
    "SGD one by one": lambda m, p: m.optim.SGD(p, lr=0.02, foreach=False),
    "Adagrad": lambda m, p: m.optim.Adagrad(p, lr=0.1, lr_decay=0.01),
    "SparseAdam": lambda m, p: m.optim.SparseAdam(p, lr=0.1),
    "SparseAdam maximize": lambda m, p: m.optim.SparseAdam(p, lr=0.1, betas=(0.8, 0.9), maximize=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    assert_same(lambda m: trained(m, OPTIMIZERS[name]))


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adadelta", "NAdam", "Adamax", "ASGD", "Rprop", "RAdam"])
def test_optimizers_that_refuse(name):
    for m, words in ((lucid, "does not support sparse gradients"), (torch, "sparse")):
        with pytest.raises(RuntimeError, match=words):
            trained(m, lambda m, p: getattr(m.optim, name)(p))


def test_sparse_and_dense_parameters_in_one_group():
    def case(m):
        e, w = m.nn.Embedding(5, 3, sparse=True), dense(m, 3, 2).requires_grad_()
        e.weight.data.copy_(dense(m, 5, 3))
        for momentum in (0, 0.9):
            optimizer = m.optim.SGD([e.weight, w], lr=0.01, momentum=momentum)
            for _ in range(3):
                optimizer.zero_grad()
                (e(m.tensor([1, 4, 1])) @ w).pow(2).sum().backward()
                optimizer.step()
        return [e.weight.detach(), w.detach()]

    assert_same(case)


def test_hooks_and_autograd_grad():
    def case(m):
        s = leaf(m, coo(m).coalesce())
        seen = []
        s.register_hook(lambda g: seen.append(g.layout == m.sparse_coo) or None)
        out = m.sparse.mm(s, dense(m, 3, 4)).sum()
        (g,) = m.autograd.grad(out, s)
        return [g, seen]

    assert_same(case)


def test_custom_function_keeps_sparse_tensors():
    def case(m):
        class Product(m.autograd.Function):
            @staticmethod
            def forward(ctx, v, d):
                a = m.sparse_coo_tensor(INDEX, v, (2, 3))
                ctx.save_for_backward(a, d)
                return m.mm(a, d)

            @staticmethod
            def backward(ctx, g):
                a, d = ctx.saved_tensors
                return (g @ d.t())[a._indices()[0], a._indices()[1]], a.t() @ g

        v, d = m.tensor([3.0, -1.5, 2.0], requires_grad=True), leaf(m, dense(m, 3, 4))
        Product.apply(v, d).pow(2).sum().backward()
        return [v.grad, d.grad]

    assert_same(case)


def test_csr_leaf():
    """PyTorch gives a dense gradient here; the gradient of a sparse leaf has its indices in Lucid, whatever the layout."""
    s, d = leaf(lucid, csr(lucid)), leaf(lucid, dense(lucid, 3, 4))
    (s @ d).pow(2).sum().backward()
    t, e = leaf(torch, csr(torch)), leaf(torch, dense(torch, 3, 4))
    (t @ e).pow(2).sum().backward()
    assert s.grad.layout == lucid.sparse_csr
    assert torch.tensor(s.grad.to_dense().tolist()).allclose(t.grad * (t.detach().to_dense() != 0))
    assert torch.tensor(d.grad.tolist()).allclose(e.grad)


def test_custom_function_of_a_sparse_input():
    def case(m):
        class Product(m.autograd.Function):
            @staticmethod
            def forward(ctx, s, d):
                ctx.save_for_backward(s, d)
                return m.mm(s, d)

            @staticmethod
            def backward(ctx, g):
                s, d = ctx.saved_tensors
                return (g @ d.t()).sparse_mask(s), s.t() @ g

        s, d = leaf(m, coo(m).coalesce()), leaf(m, dense(m, 3, 4))
        Product.apply(s, d).pow(2).sum().backward()
        return [s.grad.to_dense(), d.grad]

    assert_same(case)


def test_gather():
    def case(m):
        x = dense(m, 3, 4).requires_grad_()
        m.gather(x, 1, m.tensor([[0, 2], [1, 1]]), sparse_grad=True).pow(2).sum().backward()
        y = dense(m, 3, 4).requires_grad_()
        m.gather(y, 0, m.tensor([[0, 2], [1, 1]]), sparse_grad=True).sin().sum().backward()
        return [x.grad.is_sparse, x.grad.to_dense(), y.grad.to_dense()]

    assert_same(case)


def test_zero_grad_of_a_sparse_gradient():
    e = lucid.nn.Embedding(4, 2, sparse=True)
    optimizer = lucid.optim.SGD(e.parameters(), lr=0.1)
    e(lucid.tensor([1, 1])).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert e.weight.grad.is_sparse
    assert e.weight.grad._nnz() == 0
    e(lucid.tensor([1, 1])).sum().backward()
    assert e.weight.grad.to_dense().tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


def test_masked_grad():
    def case(m):
        s = leaf(m, coo(m).coalesce())
        (s.to_dense(masked_grad=False) * dense(m, 2, 3)).sum().backward()
        return s.grad.to_dense()

    assert_same(case)


def test_history_is_forgotten():
    before = lucid._C.live_blocks()
    v = lucid.ones(3, requires_grad=True)
    for _ in range(3):
        s = lucid.sparse_coo_tensor(INDEX, v, (2, 3))
        ((s @ lucid.ones(3, 2)) * 2).sum().backward()
        del s
    del v
    assert lucid._C.live_blocks() <= before


def test_results_do_not_depend_on_threads():
    def results():
        lucid.manual_seed(0)
        index = lucid.randint(0, 300, (2, 20000))
        v = lucid.randn(20000, requires_grad=True)
        s = lucid.sparse_coo_tensor(index, v, (300, 300))
        c = s.coalesce()
        out = c @ lucid.randn(300, 33)
        out.pow(2).sum().backward()
        return described([c, out, v.grad], lucid)

    threads = lucid.get_num_threads()
    try:
        lucid.set_num_threads(1)
        one = results()
        lucid.set_num_threads(3)
        assert results() == one
    finally:
        lucid.set_num_threads(threads)


def test_hybrid_gradient():
    def case(m):
        v = dense(m, 3, 2).requires_grad_()
        m.sparse_coo_tensor([[2, 0, 2]], v, (3, 2)).to_dense().pow(2).sum().backward()
        return v.grad

    assert_same(case)
    assert hybrid(lucid).coalesce()._nnz() == 2


def test_clipping():
    """PyTorch has no norm of sparse gradients in one call; dense ones say what is right."""

    def clipped(sparse):
        e, w = lucid.nn.Embedding(5, 3, sparse=sparse), dense(lucid, 3, 2).requires_grad_()
        e.weight.data.copy_(dense(lucid, 5, 3))
        (e(lucid.tensor([1, 4, 1])) @ w).pow(2).sum().backward()
        total = lucid.nn.utils.clip_grad_norm_([e.weight, w], 1.5)
        assert e.weight.grad.is_sparse == sparse
        return [total, e.weight.grad.to_dense(), w.grad]

    for a, b in zip(clipped(True), clipped(False)):
        lucid.testing.assert_close(a, b)
