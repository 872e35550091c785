"""Sparse tensors beside PyTorch's: construction, conversions, arithmetic, products, slices, reductions."""

import pytest
import torch

import lucid

from .both import assert_same, coo, csr, dense, hybrid, run

CONSTRUCTION = {
    "lists": lambda m: m.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)),
    "inferred size": lambda m: m.sparse_coo_tensor([[0, 4], [2, 0]], [3.0, 4.0]),
    "size alone": lambda m: m.sparse_coo_tensor(size=(2, 3)),
    "size first": lambda m: m.sparse_coo_tensor((2, 3), dtype=m.float64),
    "dtype": lambda m: m.sparse_coo_tensor([[0]], [3], dtype=m.float64),
    "integers": lambda m: m.sparse_coo_tensor([[0, 0]], [3, 4]).coalesce(),
    "complex": lambda m: m.sparse_coo_tensor([[0, 0]], [3 + 1j, 4]).coalesce(),
    "bool": lambda m: m.sparse_coo_tensor([[0, 0, 1]], [True, True, False]).coalesce(),
    "hybrid": hybrid,
    "hybrid coalesced": lambda m: hybrid(m).coalesce(),
    "empty": lambda m: m.sparse_coo_tensor(m.zeros((2, 0), dtype=m.int64), m.zeros((0, 3)), (2, 2, 3)),
    "is_coalesced": lambda m: m.sparse_coo_tensor([[0, 1]], [1.0, 2.0], is_coalesced=True),
    "coalesce": lambda m: coo(m, sum_twice=True).coalesce(),
    "coalesce once": lambda m: (c := coo(m).coalesce(), c.coalesce() is c)[1],
    "zeros with a layout": lambda m: [
        m.zeros(2, 3, layout=m.sparse_coo),
        m.zeros((4, 2, 3), layout=m.sparse_csr, dtype=m.float64),
        m.zeros(2, 3, layout=m.sparse_csc),
        m.empty(2, 3, layout=m.sparse_coo),
        m.zeros_like(dense(m, 2, 3), layout=m.sparse_coo),
        dense(m, 2).new_zeros((3, 2), layout=m.sparse_coo),
        m.zeros(2, 3, layout=m.sparse_coo, requires_grad=True).requires_grad,
        m.zeros(10**6, 10**6, layout=m.sparse_coo)._nnz(),
    ],
    "csr": csr,
    "csr int32": lambda m: m.sparse_csr_tensor(m.tensor([0, 1], dtype=m.int32), m.tensor([0], dtype=m.int32), [1.0]),
    "csr dense dims": lambda m: m.sparse_csr_tensor([0, 1, 2], [1, 0], dense(m, 2, 3), (2, 2, 3)),
    "csr batch": lambda m: m.sparse_csr_tensor([[0, 1, 2], [0, 0, 2]], [[0, 1], [0, 1]], dense(m, 2, 2), (2, 2, 2)),
    "csc": lambda m: m.sparse_csc_tensor([0, 1, 3], [1, 0, 1], [1.0, 2.0, 3.0]),
    "bsr": lambda m: m.sparse_bsr_tensor([0, 1, 2], [1, 0], dense(m, 2, 2, 3)),
    "bsc": lambda m: m.sparse_bsc_tensor([0, 1, 2], [1, 0], dense(m, 2, 2, 3)),
    "compressed": lambda m: m.sparse_compressed_tensor([0, 1], [0], [1.0], layout=m.sparse_csc),
    "FloatTensor": lambda m: [
        m.sparse.FloatTensor(m.tensor([[0, 1]]), m.tensor([1.0, 2.0]), m.Size([3])),
        m.sparse.FloatTensor(2, 3),
    ],
    "sparse_resize_": lambda m: [coo(m).sparse_resize_((4, 3), 2, 0), coo(m).sparse_resize_and_clear_((5,), 1, 0)],
    "numbers": lambda m: [coo(m)._nnz(), coo(m).sparse_dim(), hybrid(m).dense_dim(), csr(m)._nnz(), csr(m).sparse_dim()],
    "flags": lambda m: [coo(m).is_sparse, coo(m).is_sparse_csr, csr(m).is_sparse, csr(m).is_sparse_csr, m.ones(2).is_sparse],
    "numel": lambda m: [coo(m).numel(), csr(m).ndim, tuple(hybrid(m).shape), coo(m).element_size(), len(csr(m))],
}
CONVERSIONS = {
    **{
        f"{a} to {b}": lambda m, a=a, b=b: (
            getattr(make(m, a), "to_sparse_" + b)(*((1, 3),) * (b[0] == "b")) if b else make(m, a).to_dense()
        )
        for a in ("dense", "coo", "coo twice", "csr", "csc", "bsr", "bsc")
        for b in ("coo", "csr", "csc", "bsr", "bsc", "")
        if not (a[:3] in ("bsr", "bsc") and b in ("bsr", "bsc", "csr", "csc", "coo"))  # PyTorch lacks some: see below
    },
    "sparse_dim 1": lambda m: dense(m, 3, 2).to_sparse(1),
    "rows of zeros": lambda m: m.tensor([[0.0, 0.0], [0.0, 1.0]]).to_sparse(1),
    "layout": lambda m: dense(m, 2, 2).to_sparse(layout=m.sparse_csr),
    "batch to csr": lambda m: dense(m, 2, 2, 3).to_sparse_csr(),
    "dense_dim": lambda m: dense(m, 2, 2, 3).to_sparse_csr(dense_dim=1),
    "batch to dense": lambda m: dense(m, 2, 2, 3).to_sparse_csr().to_dense(),
    "hybrid to dense": lambda m: hybrid(m).to_dense(),
    "bsr blocks": lambda m: dense(m, 4, 6).to_sparse_bsr((2, 3)),
    "bsc blocks": lambda m: dense(m, 4, 6).to_sparse_bsc((2, 3)),
    "bsr to dense": lambda m: dense(m, 4, 6).to_sparse_bsr((2, 3)).to_dense(),
    "bsc to dense": lambda m: dense(m, 4, 6).to_sparse_bsc((2, 3)).to_dense(),
    "zeros": lambda m: m.zeros(2, 3).to_sparse_csr(),
    "dtype": lambda m: [coo(m).to(m.float64), csr(m).double(), coo(m).bool(), coo(m).to("cpu"), coo(m).half()],
    "clone": lambda m: [coo(m).clone(), csr(m).clone(), coo(m).detach(), csr(m).detach()],
}


def make(m, layout):
    if layout == "dense":
        return coo(m).to_dense()
    if layout[:3] == "coo":
        return coo(m, sum_twice=len(layout) > 3)
    return getattr(coo(m).to_dense(), "to_sparse_" + layout)(*((1, 3),) * (layout[0] == "b"))


UNARY = (
    "abs neg sgn sign sqrt square expm1 log1p sin tan sinh tanh asin atan asinh atanh erf ceil floor trunc round "
    "deg2rad rad2deg isnan isinf signbit relu isposinf isneginf positive nan_to_num frac"
).split()
ARITHMETIC = {
    **{f"{op} coo": lambda m, op=op: getattr(coo(m, sum_twice=True), op)() for op in UNARY},
    **{f"{op} csr": lambda m, op=op: getattr(csr(m), op)() for op in UNARY if op not in ("nan_to_num", "square")},
    **{
        f"{op}_ in place": lambda m, op=op: getattr(coo(m).coalesce(), op + "_")()
        for op in UNARY
        if op[:2] != "is" and op not in ("signbit", "positive", "square")
    },
    "neg uncoalesced": lambda m: -coo(m, sum_twice=True),
    "times number": lambda m: [coo(m) * 2, 2 * coo(m), coo(m) * m.tensor(2.5), csr(m) * 3, coo(m).mul(2), coo(m) * 1j],
    "over number": lambda m: [
        coo(m) / 2,
        coo(m).div(m.tensor(4.0)),
        coo(m, sum_twice=True).div(2, rounding_mode="floor"),
    ],
    "in place": lambda m: [coo(m).mul_(2), coo(m).div_(2), csr(m).mul_(3), coo(m).neg_()],
    "pow": lambda m: [coo(m, sum_twice=True) ** 2, coo(m).pow(3)],
    "sum of coalesced": lambda m: coo(m).coalesce() + coo(m, sum_twice=True).coalesce(),
    "sum": lambda m: (coo(m) + coo(m, sum_twice=True)).coalesce(),
    "sum with alpha": lambda m: m.add(coo(m), coo(m, sum_twice=True), alpha=3).coalesce(),
    "difference": lambda m: (coo(m) - coo(m, sum_twice=True)).coalesce(),
    "sum in place": lambda m: coo(m).add_(coo(m, sum_twice=True)).coalesce(),
    "csr sum": lambda m: csr(m) + csr(m) * 2,
    "csr sum of others": lambda m: csr(m) + m.sparse_csr_tensor([0, 2, 3], [0, 1, 1], [1.0, 2.0, 3.0], (2, 3)),
    "dense + sparse": lambda m: [
        dense(m, 2, 3) + coo(m, sum_twice=True),
        dense(m, 2, 3) - coo(m),
        dense(m, 2, 3).add(coo(m), alpha=2),
    ],
    "dense + csr": lambda m: dense(m, 2, 3) + csr(m),
    "dense in place": lambda m: [
        dense(m, 2, 3).add_(coo(m, sum_twice=True), alpha=-2),
        dense(m, 3, 2, 2).add_(hybrid(m), alpha=0.5),
    ],
    "times dense": lambda m: [coo(m).coalesce() * dense(m, 2, 3), dense(m, 2, 3) * coo(m).coalesce(), csr(m) * dense(m, 2, 3)],
    "times sparse": lambda m: [coo(m).coalesce() * coo(m, sum_twice=True).coalesce(), csr(m) * csr(m)],
    "times other sparse": lambda m: coo(m).coalesce() * m.sparse_coo_tensor([[0, 1], [0, 2]], [5.0, 7.0], (2, 3)).coalesce(),
    "hybrid sum": lambda m: (hybrid(m) + hybrid(m) * 2).coalesce(),
    "zero_": lambda m: [coo(m).zero_(), csr(m).zero_(), m.zeros_like(coo(m)), m.zeros_like(csr(m)), m.empty_like(coo(m))],
    "copy_": lambda m: m.zeros_like(coo(m)).copy_(coo(m)),
    "integers": lambda m: (coo(m).to(m.int64) * 3 + coo(m).to(m.int64)).coalesce(),
    "promotion": lambda m: (coo(m).to(m.int64).coalesce() + coo(m).coalesce()).coalesce(),
}
PRODUCTS = {
    "coo @ dense": lambda m: coo(m, sum_twice=True) @ dense(m, 3, 4),
    "csr @ dense": lambda m: csr(m) @ dense(m, 3, 4),
    "csc @ dense": lambda m: csr(m).to_sparse_csc() @ dense(m, 3, 4),
    "dense @ coo": lambda m: dense(m, 4, 2) @ coo(m),
    "dense @ csr": lambda m: dense(m, 4, 2) @ csr(m),
    "dense @ csc": lambda m: dense(m, 4, 2) @ csr(m).to_sparse_csc(),
    "coo @ coo": lambda m: (coo(m) @ coo(m).t()).coalesce(),
    "csr @ csr": lambda m: (csr(m) @ csr(m).to_dense().t().to_sparse_csr()).to_dense(),
    "mv": lambda m: [coo(m) @ dense(m, 3), csr(m) @ dense(m, 3), m.mv(coo(m), dense(m, 3)), dense(m, 2) @ coo(m)],
    "mm": lambda m: [m.mm(coo(m), dense(m, 3, 2)), m.sparse.mm(coo(m), dense(m, 3, 2)), m.mm(csr(m), dense(m, 3, 2))],
    "transposed dense": lambda m: csr(m) @ dense(m, 4, 3).t(),
    "addmm": lambda m: [
        m.addmm(dense(m, 2, 4), coo(m), dense(m, 3, 4), beta=0.5, alpha=2),
        m.sparse.addmm(dense(m, 2, 4), coo(m), dense(m, 3, 4), beta=0.5, alpha=2),
        m.addmm(dense(m, 2, 4), csr(m), dense(m, 3, 4)),
    ],
    "bmm": lambda m: m.bmm(m.stack([coo(m).to_dense(), dense(m, 2, 3)]).to_sparse(), dense(m, 2, 3, 4)),
    "double": lambda m: [coo(m, dtype=m.float64) @ dense(m, 3, 4).double(), csr(m, dtype=m.float64) @ dense(m, 3).double()],
    "complex": lambda m: coo(m, dtype=m.complex64) @ dense(m, 3, 4).to(m.complex64),
    "no entries": lambda m: m.sparse_coo_tensor(size=(2, 3)) @ dense(m, 3, 4),
    "sampled": lambda m: m.sparse.sampled_addmm(csr(m), dense(m, 2, 4), dense(m, 4, 3), beta=0.5, alpha=2.0),
    "layer": lambda m: m.nn.functional.linear(dense(m, 4, 3), csr(m), dense(m, 2)),
    "out": lambda m: m.mm(coo(m), dense(m, 3, 2), out=m.empty(2, 2)),
    "spdiags": lambda m: m.sparse.spdiags(dense(m, 3, 4), m.tensor([0, 2, -1]), (4, 5)).to_dense(),
    "spdiags csr": lambda m: m.sparse.spdiags(dense(m, 1, 3), m.tensor([1]), (3, 3), m.sparse_csr).to_dense(),
}
SHAPES = {
    "t": lambda m: [coo(m).t(), csr(m).t(), coo(m).T, coo(m).mT, csr(m).mT, csr(m).t().t()],
    "transpose": lambda m: [coo(m).transpose(0, 1), csr(m).transpose(0, 1), coo(m).permute(1, 0)],
    "bsr t": lambda m: dense(m, 4, 6).to_sparse_bsr((2, 3)).t().to_dense(),
    "select": lambda m: [
        coo(m)[1].coalesce(),
        coo(m)[:, 2].coalesce(),
        coo(m)[1][2],
        coo(m)[0, 1],
        hybrid(m)[2].to_dense(),
        coo(m)[-1].to_dense(),
    ],
    "csr rows": lambda m: [csr(m)[1], csr(m)[0, 1]],
    "hybrid select": lambda m: [hybrid(m).select(1, 0), hybrid(m).select(2, 1)],
    "narrow_copy": lambda m: [coo(m).narrow_copy(0, 1, 1), coo(m).narrow_copy(1, 1, 2), hybrid(m).narrow_copy(1, 0, 1)],
    "index_select": lambda m: [
        coo(m).index_select(0, m.tensor([1, 0, 1])).coalesce(),
        coo(m).index_select(1, m.tensor([2])).coalesce(),
        hybrid(m).index_select(2, m.tensor([1])),
    ],
    "unsqueeze": lambda m: [coo(m).unsqueeze(0), coo(m).unsqueeze(1), coo(m).unsqueeze(2), hybrid(m).unsqueeze(-1)],
    "iteration": lambda m: [r.to_dense() for r in coo(m)],
    "cat": lambda m: [
        m.cat([coo(m), coo(m)]).coalesce(),
        m.cat([coo(m), coo(m)], 1).coalesce(),
        m.stack([coo(m), coo(m)]).coalesce(),
    ],
}
REDUCTIONS = {
    "sum": lambda m: [coo(m).sum(), csr(m).sum(), m.sparse.sum(coo(m)), hybrid(m).sum()],
    "sum over a dimension": lambda m: [m.sparse.sum(coo(m), 0), m.sparse.sum(coo(m), 1), m.sparse.sum(coo(m), (0, 1))],
    "sum over dense dimensions": lambda m: [
        m.sparse.sum(hybrid(m), 1).coalesce(),
        m.sparse.sum(hybrid(m), (1, 2)).coalesce(),
        m.sparse.sum(hybrid(m), 0),
    ],
    "sum dtype": lambda m: m.sparse.sum(coo(m), dtype=m.float64),
    "norm": lambda m: [coo(m, sum_twice=True).norm(), m.norm(coo(m))],
    "any": lambda m: coo(m).any(),
    "softmax": lambda m: [
        m.sparse.softmax(coo(m).coalesce(), 1),
        m.sparse.softmax(coo(m).coalesce(), 0),
        m.sparse.softmax(hybrid(m).coalesce(), 1),
    ],
    "softmax of a hybrid": lambda m: m.sparse.softmax(hybrid(m).coalesce(), 0),
    "log_softmax": lambda m: [
        m.sparse.log_softmax(coo(m).coalesce(), 1),
        m.sparse.log_softmax(coo(m).coalesce(), -1, dtype=m.float64),
    ],
    "sparse_mask": lambda m: [
        dense(m, 2, 3).sparse_mask(coo(m).coalesce()),
        coo(m).coalesce().sparse_mask(m.eye(3)[:2].to_sparse()),
        dense(m, 2, 3).sparse_mask(csr(m)),
    ],
}
CASES = {
    f"{family}: {name}": case
    for family, cases in (
        ("construction", CONSTRUCTION), ("conversion", CONVERSIONS), ("arithmetic", ARITHMETIC), ("product", PRODUCTS),
        ("shape", SHAPES), ("reduction", REDUCTIONS),
    )
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    assert_same(CASES[name])


REFUSED = {
    "not that size": lambda m: m.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,), check_invariants=True),
    "negative": lambda m: m.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,), check_invariants=True),
    "counts": lambda m: m.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0], (3,)),
    "dims": lambda m: m.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 2)),
    "indices of one dimension": lambda m: m.sparse_coo_tensor([0, 1], [1.0, 2.0]),
    "crow": lambda m: m.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0], (2, 2), check_invariants=True),
    "col": lambda m: m.sparse_csr_tensor([0, 1, 2], [0, 7], [1.0, 2.0], (2, 2), check_invariants=True),
    "col order": lambda m: m.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), check_invariants=True),
    "indices of uncoalesced": lambda m: coo(m).indices(),
    "values of uncoalesced": lambda m: coo(m).values(),
    "crow of coo": lambda m: coo(m).crow_indices(),
    "indices of dense": lambda m: m.ones(2).indices(),
    "coalesce of dense": lambda m: m.ones(2).coalesce(),
    "is_coalesced of csr": lambda m: csr(m).is_coalesced(),
    "plus number": lambda m: coo(m) + 1,
    "cos": lambda m: coo(m).cos(),
    "power of zero": lambda m: coo(m).pow(0),
    "over sparse": lambda m: coo(m) / coo(m),
    "mean": lambda m: coo(m).mean(),
    "equal": lambda m: coo(m) == coo(m),
    "fill": lambda m: coo(m).fill_(2),
    "view": lambda m: coo(m).view(6),
    "reshape": lambda m: coo(m).reshape(6),
    "index": lambda m: coo(m)[m.tensor([0])],
    "tolist": lambda m: coo(m).tolist(),
    "numpy": lambda m: coo(m).numpy(),
    "storage": lambda m: coo(m).untyped_storage(),
    "data_ptr": lambda m: coo(m).data_ptr(),
    "item": lambda m: coo(m).item(),
    "truth": lambda m: bool(coo(m)),
    "sizes": lambda m: coo(m) + m.sparse_coo_tensor(size=(3, 3)),
    "product": lambda m: coo(m) @ m.ones(4, 2),
    "dtypes of a product": lambda m: coo(m) @ m.ones(3, 2, dtype=m.float64),
    "blocks": lambda m: m.ones(3, 3).to_sparse_bsr((2, 2)),
    "nbytes": lambda m: coo(m).nbytes,
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        run(REFUSED[name], torch)
    classes = (RuntimeError, NotImplementedError) if theirs.type in (RuntimeError, NotImplementedError) else theirs.type
    if name == "tolist":
        classes = (TypeError,)
    with pytest.raises(classes):
        run(REFUSED[name], lucid)


def test_refusal_names_the_op():
    with pytest.raises(NotImplementedError, match="^cos is not implemented for sparse_coo tensors"):
        coo(lucid).cos()
    with pytest.raises(NotImplementedError, match="^cumsum is not implemented for sparse_csr tensors"):
        csr(lucid).cumsum(0)


REPR = {
    "coo": coo,
    "csr": csr,
    "csc": lambda m: csr(m).to_sparse_csc(),
    "bsr": lambda m: m.eye(4).to_sparse_bsr((2, 2)),
    "empty": lambda m: m.zeros(2, 3).to_sparse(),
    "double": lambda m: coo(m, dtype=m.float64),
    "long": lambda m: m.arange(2000).to_sparse(),
    "requires grad": lambda m: coo(m).requires_grad_(),
    "hybrid": hybrid,
    "integers": lambda m: m.arange(4).to_sparse(),
    "int32": lambda m: m.arange(4, dtype=m.int32).to_sparse(),
}


@pytest.mark.parametrize("name", REPR)
def test_repr(name):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert repr(REPR[name](lucid)) == repr(REPR[name](torch)).replace("torch.", "lucid.")


def test_conversions_that_pytorch_lacks():
    whole = (torch.arange(24.0) % 5 - 1).reshape(4, 6)
    x = lucid.tensor(whole.tolist())
    layouts = {"coo": (), "csr": (), "csc": (), "bsr": ((2, 3),), "bsc": ((2, 3),)}
    for a, given in layouts.items():
        s = getattr(x, "to_sparse_" + a)(*given)
        for b, wanted in layouts.items():
            assert getattr(s, "to_sparse_" + b)(*wanted).to_dense().tolist() == whole.tolist()
        assert (s @ lucid.ones(6, 2)).tolist() == (whole @ torch.ones(6, 2)).tolist()
        assert s[1:3].to_dense().tolist() == whole[1:3].tolist() if a[0] != "b" else True


def test_slices_of_rows():
    whole = (torch.arange(24.0) % 5 - 1).reshape(4, 6)
    for s in (lucid.tensor(whole.tolist()).to_sparse(), lucid.tensor(whole.tolist()).to_sparse_csr()):
        assert s[1:3].to_dense().tolist() == whole[1:3].tolist()
        assert s[::2].to_dense().tolist() == whole[::2].tolist()
        assert s[:, 1:4].layout == s.layout
        assert s[:, 1:4].to_dense().tolist() == whole[:, 1:4].tolist()
        assert s.narrow(0, 1, 2).to_dense().tolist() == whole[1:3].tolist()
        assert s.index_select(0, lucid.tensor([3, 0])).to_dense().tolist() == whole[[3, 0]].tolist()


def test_random_matrices_against_dense():
    generator = torch.Generator().manual_seed(5)
    for rows, columns, n in ((1, 1, 1), (7, 5, 3), (64, 33, 17), (200, 3, 1), (3, 200, 65)):
        whole = torch.rand(rows, columns, generator=generator).sub(0.7).relu()
        other = torch.rand(columns, n, generator=generator)
        expected = whole @ other
        x, y = lucid.tensor(whole.tolist()), lucid.tensor(other.tolist())
        for s in (x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc()):
            got = torch.tensor((s @ y).tolist())
            torch.testing.assert_close(got, expected)
            assert torch.tensor((y.t() @ s.t()).tolist()).allclose(expected.t(), atol=1e-5)


def test_aliases_share_values_and_in_place_takes_over():
    s = coo(lucid).coalesce()
    alias, version = s.detach(), s._version
    s.mul_(2)
    assert s._version == version + 1
    assert alias._values().tolist() == [-1.5, 2.0, 0.5, 3.0]
    s._values().zero_()
    assert s.to_dense().tolist() == [[0.0] * 3] * 2


def test_invariants_switch():
    check = lucid.sparse.check_sparse_tensor_invariants
    assert not check.is_enabled()
    with check():
        assert check.is_enabled()
        with check(False):
            assert not check.is_enabled()
    check.enable()
    assert check.is_enabled()
    check.disable()
    assert check(True)(check.is_enabled)() is not False


def test_indices_changed_behind_the_back():
    """Whoever writes into the indices gets wrong values or an error, never memory of others."""
    uses = (
        lambda s: s.to_dense(),
        lambda s: s @ lucid.ones(3, 2),
        lambda s: lucid.ones(2, 2) @ s,
        lambda s: s + s,
        lambda s: s * lucid.ones(2, 3),
        lambda s: s[0],
        lambda s: s[0:1],
        lambda s: s.t().to_dense(),
        lambda s: s.to_sparse_csc(),
        lambda s: s.to_sparse_coo(),
        lambda s: lucid.sparse.sum(s, 0),
        lambda s: lucid.sparse.softmax(s, 1),
        lambda s: s.index_select(0, lucid.tensor([0])),
        lambda s: lucid.ones(2, 3).sparse_mask(s),
        lambda s: s @ s.t(),
        lambda s: lucid.ones(2, 3).add_(s),
        repr,
    )
    for bad in (10**6, -1, 2**62):
        for part in ("_indices", "crow_indices", "col_indices"):
            for use in uses:
                s = coo(lucid).coalesce() if part == "_indices" else csr(lucid)
                getattr(s, part)().view(-1)[1] = bad
                try:
                    use(s)
                except (RuntimeError, IndexError, ValueError):
                    pass


def test_assert_close():
    close = lucid.testing.assert_close
    for s in (coo(lucid).coalesce(), csr(lucid)):
        close(s, s * (1 + 1e-7))
        with pytest.raises(AssertionError, match="not close"):
            close(s, s * 2)
        with pytest.raises(AssertionError, match="layout"):
            close(s, s.to_dense())
        close(s, s.to_dense(), check_layout=False)
    with pytest.raises(AssertionError, match="number of specified values"):
        close(coo(lucid).coalesce(), lucid.zeros_like(coo(lucid)))


@pytest.mark.parametrize("call", ["ones((2, 2), layout=m.sparse_coo)", "zeros((2, 2), layout=m.sparse_bsr)"])
def test_layouts_without_a_form(call):
    for m in (torch, lucid):
        with pytest.raises(RuntimeError):
            eval("m." + call, {"m": m})
    with pytest.raises(TypeError):
        lucid.zeros(2, 2, layout=lucid.sparse_coo, out=lucid.ones(2, 2))


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_mm_reduce(reduce):
    def gradients(m):
        a, b = csr(m).detach().requires_grad_(), dense(m, csr(m).shape[1], 4).detach().requires_grad_()
        made = m.sparse.mm(a, b, reduce)
        made.backward(dense(m, *made.shape))
        return [made.detach(), a.grad.values(), b.grad]

    assert_same(gradients)


def test_mm_reduce_refuses():
    a = csr(lucid)
    b = dense(lucid, a.shape[1], 2)
    for wrong in [(a, b, "prod"), (a.to_sparse_coo(), b, "mean"), (a, b[:1], "amax")]:
        with pytest.raises(RuntimeError):
            lucid.sparse.mm(*wrong)
    with pytest.raises(NotImplementedError, match="cuDSS"):
        lucid.sparse.spsolve(a, b)


def test_vmap_says_what_it_lacks():
    s = coo(lucid)
    with pytest.raises(NotImplementedError, match="vmap over a sparse tensor"):
        lucid.func.vmap(lambda row: row.sum())(s)


def test_indices_that_were_changed_afterwards_are_refused():
    a = csr(lucid)
    a.col_indices()[0] = a.shape[1] + 5
    with pytest.raises(IndexError):
        a @ lucid.ones(a.shape[1])
