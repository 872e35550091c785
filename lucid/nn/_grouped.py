"""grouped_mm: products of groups of rows, each with a matrix of its own, as mixtures of experts need them."""

from .. import _C


def _ends(offs, groups, length):
    """Where groups end, as numbers; checked, since a slice would clip them."""
    if offs.dtype != _C.int32 or offs.ndim != 1:
        raise RuntimeError(f"Offsets have to be int32, in one dimension; got {offs.dtype} of shape {tuple(offs.shape)}")
    ends = offs.tolist()
    if groups is not None and len(ends) != groups:
        raise RuntimeError(f"matrix batch sizes have to match: {len(ends)} offsets for {groups} matrices")
    if any(b < a for a, b in zip([0, *ends], ends, strict=False)) or (ends and ends[-1] > length):
        raise RuntimeError(f"Offsets must not decrease nor pass {length}, got {ends}")
    return ends


def _filled(parts, dim, length, like):
    """Parts after one another, zeros behind them up to length."""
    have = sum(p.shape[dim] for p in parts)
    shape = list(like.shape)
    shape[dim] = length - have
    return _C.cat([*parts, like.new_zeros(shape)] if have < length or not parts else parts, dim)


@_C.overridable
def grouped_mm(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None):
    """Products of groups: group i of a matrix ends at offs[i]; a 3-d operand has a matrix per group.

    Rows of mat_a and matrices of mat_b give rows; matrices and columns give columns; columns of mat_a and rows of mat_b give a
    matrix per group; two 3-d operands need no offs. What lies behind the last group is zero (PyTorch: anything).

    >>> tokens, experts = lucid.ones(3, 2), lucid.stack([lucid.eye(2), 5 * lucid.eye(2)])
    >>> lucid.nn.functional.grouped_mm(tokens, experts, offs=lucid.tensor([1, 3], dtype=lucid.int32))
    tensor([[1., 1.],
            [5., 5.],
            [5., 5.]])
    """
    if mat_a.ndim not in (2, 3) or mat_b.ndim not in (2, 3):
        raise RuntimeError(f"grouped_mm: operands have 2 or 3 dimensions, got {mat_a.ndim} and {mat_b.ndim}")
    for name, t in (("mat_a", mat_a), ("mat_b", mat_b)):
        if t.dtype not in (_C.float32, _C.float16, _C.bfloat16):
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {t.dtype}")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if (offs is None) != (mat_a.ndim == mat_b.ndim == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError(f"contraction dimension of mat_a and mat_b must match: {mat_a.shape[-1]} and {mat_b.shape[-2]}")
    if offs is None:
        return _C.bmm(mat_a, mat_b)
    if mat_a.ndim == mat_b.ndim:
        ends = _ends(offs, None, mat_a.shape[1])
        return _C.stack([_C.mm(mat_a[:, s:e], mat_b[s:e]) for s, e in zip([0, *ends], ends, strict=False)])
    if mat_a.ndim == 2:
        ends = _ends(offs, len(mat_b), len(mat_a))
        parts = [_C.mm(mat_a[s:e], b) for s, e, b in zip([0, *ends], ends, mat_b, strict=False)]
        return _filled(parts, 0, len(mat_a), mat_a.new_empty(0, mat_b.shape[2]))
    ends = _ends(offs, len(mat_a), mat_b.shape[1])
    parts = [_C.mm(a, mat_b[:, s:e]) for s, e, a in zip([0, *ends], ends, mat_a, strict=False)]
    return _filled(parts, 1, mat_b.shape[1], mat_a.new_empty(mat_a.shape[1], 0))
