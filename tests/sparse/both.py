"""The same program with both libraries: a case is a function of the library. Sparse results are compared part by part."""

import warnings

import torch

import lucid


def described(value, m):
    """Nested plain values: what a result is, layout and order of entries included."""
    if isinstance(value, m.Tensor):
        value = value.detach()
        if value.layout == m.sparse_coo:
            parts = [value._indices().tolist(), value._values().tolist(), value.is_coalesced()]
        elif value.layout in (m.sparse_csr, m.sparse_bsr):
            parts = [value.crow_indices().tolist(), value.col_indices().tolist(), value.values().tolist()]
        elif value.layout in (m.sparse_csc, m.sparse_bsc):
            parts = [value.ccol_indices().tolist(), value.row_indices().tolist(), value.values().tolist()]
        else:
            parts = [value.tolist()]
        return [str(value.layout).split(".")[1], str(value.dtype).split(".")[1], list(value.shape), *parts]
    if isinstance(value, (list, tuple)):
        return [described(v, m) for v in value]
    return value


def near(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(near, a, b))
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return a == b or abs(a - b) <= 1e-5 * max(1.0, abs(b)) or (a != a and b != b)
    return a == b


def run(case, m):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m.manual_seed(0)
        return described(case(m), m)


def assert_same(case):
    mine, theirs = run(case, lucid), run(case, torch)
    assert near(mine, theirs), f"\nlucid {mine}\ntorch {theirs}"


def coo(m, *, dtype=None, sum_twice=False):
    """2 x 3, out of order; with sum_twice an index occurs twice."""
    index = [[1, 0, 1, 1], [2, 1, 0, 2 if sum_twice else 1]]
    return m.sparse_coo_tensor(index, m.tensor([3.0, -1.5, 2.0, 0.5], dtype=dtype), (2, 3))


def csr(m, dtype=None):
    return m.sparse_csr_tensor([0, 1, 3], [1, 0, 2], m.tensor([-1.5, 2.0, 3.5], dtype=dtype), (2, 3))


def hybrid(m):
    """3 x 2 x 2: one sparse dimension."""
    return m.sparse_coo_tensor([[2, 0, 2]], m.arange(12.0).reshape(3, 2, 2), (3, 2, 2))


def dense(m, *shape):
    n = 1
    for s in shape:
        n *= s
    return (m.arange(float(n)) * 0.7 - 2).reshape(shape)
