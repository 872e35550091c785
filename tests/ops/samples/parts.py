"""Copies of views, *_scatter, and parts of tensors: splits, diagonals, triangles, padding, repetitions."""

from .sample import ALL, COMPLEX, REAL, S, T

D = ("float32", "float64", "complex128")
MANY = {"out": False, "dtypes": D}
REAL_GRAD = {"dtypes": REAL}  # PyTorch has no gradient of these for complex numbers
NO_GRAD = {"dtypes": COMPLEX, "grad": False}


def counts(*values):
    return T(values=list(values), dtype="int64")


def pad(m, *args, **kwargs):  # Lucid has it as a function of its own
    return (m.pad if hasattr(m, "pad") else m.nn.functional.pad)(*args, **kwargs)


def split_into(m, x):
    parts = [m.zeros(2, 2, dtype=x.dtype), m.zeros(2, 2, dtype=x.dtype)]
    m.split_copy(x, 2, out=parts)
    return parts


def resized(name, *args):
    """A copy of one tensor, or of two, resized; values of new memory are not defined."""

    def run(m, x, *rest):
        y = x.clone(memory_format=m.contiguous_format)
        getattr(y, name)(*rest, *args)
        return y if y.numel() <= x.numel() else m.zeros_like(y)

    return run


def with_format(name):
    def run(m, x, *rest):
        return getattr(x.clone(memory_format=m.contiguous_format), name)(*rest, memory_format=m.channels_last)

    return run


COPIES = [
    S("alias_copy", T(2, 3), dtypes=ALL),
    S("detach_copy", T(2, 3), dtypes=ALL, grad=False),
    S("as_strided_copy", T(12), fn=lambda m, x: m.as_strided_copy(x.contiguous(), (3, 3), (2, 1), 1), dtypes=ALL),
    S("diagonal_copy", T(4, 5), 1, dtypes=ALL),
    S("diagonal_copy", T(2, 3, 4), -1, 2, 0),
    S("diagonal_copy", T(3), 0),
    S("expand_copy", T(3, 1), (2, 3, 4), dtypes=ALL),
    S("expand_copy", T(3, 2), (2, 3, 4)),
    S("narrow_copy", T(5, 3), 0, 1, 3, dtypes=ALL, out=False),  # PyTorch overlooks the strides of out
    S("narrow_copy", T(5, 3), 1, 2, 3),
    S("permute_copy", T(2, 3, 4), (2, 0, 1), dtypes=ALL),
    S("select_copy", T(4, 3), 0, -1, **REAL_GRAD),
    S("select_copy", T(4, 3), 0, -1, **NO_GRAD),
    S("select_copy", T(4, 3), 0, 4),
    S("slice_copy", T(7, 3), 0, 1, 6, 2, **REAL_GRAD),
    S("slice_copy", T(7, 3), 0, 1, 6, 2, **NO_GRAD),
    S("slice_copy", T(7, 3)),
    S("split_copy", T(7, 2), 3, **MANY),
    S("split_with_sizes_copy", T(7, 2), (1, 6), **MANY),
    S("squeeze_copy", T(1, 2, 1), dtypes=ALL),
    S("squeeze_copy", T(1, 2, 1), 0),
    S("t_copy", T(2, 3), dtypes=ALL),
    S("t_copy", T(2, 3, 4)),
    S("transpose_copy", T(2, 3, 4), 0, -1, dtypes=ALL),
    S("unbind_copy", T(3, 2), 1, **MANY),
    S("unfold_copy", T(3, 6), -1, 2, 3, dtypes=D),
    S("unsqueeze_copy", T(2, 3), 1, dtypes=ALL),
    S("view_copy", T(2, 6), (3, -1), dtypes=ALL),
    S("view_copy", T(2, 6), (5, 2)),
    S("view_copy", T(3, 4), "@int32", id="view_copy dtype", dtypes=("float32",)),
    S("view_as_real_copy", T(2, 3), dtypes=("complex64", "complex128")),
    S("view_as_complex_copy", T(3, 2), fn=lambda m, x: m.view_as_complex_copy(x.contiguous()), grad=False),
    S("split_copy", T(4, 2), fn=split_into, id="split_copy out", grad=False),
]

PUT = [
    S("select_scatter", T(4, 3), T(3), 0, 2, **REAL_GRAD),
    S("select_scatter", T(4, 3), T(3), 0, 2, **NO_GRAD),
    S("select_scatter", T(4, 3, 2), T(4, 2), -2, -1),
    S("select_scatter", T(4, 3), T(3, dtype="float64"), 0, 0, grad=False),
    S("select_scatter", T(4, 3), T(4), 0, 0),
    S("select_scatter", T(4, 3), T(3), 0, 4),
    S(
        "select_scatter",
        T(4, 1),
        T(3),
        fn=lambda m, x, y: m.select_scatter(x.expand(4, 3), y, 0, 1),
        id="select_scatter expanded",
    ),
    S("slice_scatter", T(7, 3), T(3, 3), 0, 1, 6, 2, **REAL_GRAD),
    S("slice_scatter", T(7, 3), T(3, 3), 0, 1, 6, 2, **NO_GRAD),
    S("slice_scatter", T(7, 3), T(7, 1), 1, -1),
    S("slice_scatter", T(7, 3), T(7, 3)),
    S("slice_scatter", T(7, 3), T(6, 3)),
    S("slice_scatter", T(7, 3), T(7, 3), 0, 0, 7, 0),
    S("diagonal_scatter", T(4, 5), T(4), dtypes=ALL),
    S("diagonal_scatter", T(2, 3, 4), T(3, 2), 0, 0, 2, dtypes=D),
    S("diagonal_scatter", T(4, 5), T(4), -1),
    S(
        "as_strided_scatter",
        T(3, 4),
        T(2, 2),
        fn=lambda m, x, y: m.as_strided_scatter(x.contiguous(), y, (2, 2), (1, 5), 1),
        dtypes=ALL,
        grad=False,
    ),
    S(
        "as_strided_scatter",
        T(3, 4),
        T(3),
        fn=lambda m, x, y: m.as_strided_scatter(x.contiguous()[1:], y, (3,), (2,)),
        grad=False,
    ),
    S("as_strided_scatter", T(4), T(5), (5,), (1,)),
    S("as_strided_scatter", T(4), T(3), (2,), (1,)),
    S("as_strided_", T(12), fn=lambda m, x: (x * 1).contiguous().as_strided_((3, 2), (4, 1), 1), dtypes=D),
]

SPLITS = [
    S("tensor_split", T(7, 2), counts(1, 5), fn=lambda m, x, at: m.tensor_split(x, at), id="tensor_split tensor", **MANY),
    S(
        "tensor_split",
        T(7, 2),
        T(values=3, dtype="int64"),
        fn=lambda m, x, n: x.tensor_split(n, -1),
        id="tensor_split 0-d",
        **MANY,
    ),
    S("tensor_split", T(7, 2), T(2, 2, dtype="int64"), **MANY),
    S("tensor_split", T(7, 2), T(2, dtype="int32"), **MANY),
    S("hsplit", T(2, 6), 3, **MANY),
    S("hsplit", T(6), 2, **MANY),
    S("hsplit", T(2, 6), (1, 4), **MANY),
    S("hsplit", T(2, 6), 4, **MANY),
    S("hsplit", T(2, 6), 0, **MANY),
    S("hsplit", T(), 1, **MANY),
    S("vsplit", T(6, 2), 3, **MANY),
    S("vsplit", T(6, 2), (2, 3), **MANY),
    S("vsplit", T(6), 3, **MANY),
    S("dsplit", T(2, 2, 4), 2, **MANY),
    S("dsplit", T(2, 2, 4), (1,), **MANY),
    S("dsplit", T(2, 4), 2, **MANY),
    S("unsafe_chunk", T(7, 2), 3, **MANY),
    S("unsafe_split", T(7, 2), 3, **MANY),
    S(
        "unsafe_split",
        T(7, 2),
        fn=lambda m, x: [y.mul_(2) for y in m.unsafe_split(x * 1, 3)],
        id="unsafe_split, written",
        dtypes=D,
    ),
    S("unsafe_split_with_sizes", T(7, 2), (1, 6), **MANY),
    S("atleast_1d", T(), **MANY),
    S("atleast_1d", T(3), **MANY),
    S("atleast_2d", T(3), **MANY),
    S("atleast_2d", T(), T(2), T(2, 2), **MANY),
    S("atleast_3d", T(3), **MANY),
    S("atleast_3d", [T(), T(2), T(2, 2), T(2, 1, 1)], **MANY),
]

TRIANGLES = [
    *[S(op, T(3, 4), k, dtypes=ALL) for op in ("tril", "triu") for k in (0, 1, -1, 9, -9)],
    S("tril", T(2, 4, 3), -1, dtypes=D),
    S("triu", T(2, 1, 3, 2), dtypes=D, inplace=False, out=False),  # PyTorch writes out of bounds where batches are strided
    S("tril", T(0, 3)),
    S("triu", T(3)),
    S("tril", T(2, 3, 3), fn=lambda m, x: x.clone().mT.tril_(), id="tril_ of a transposed view"),
    *[S(op, 3, 4, k) for op in ("tril_indices", "triu_indices") for k in (0, 2, -1, 7, -7)],
    S("tril_indices", 0, 4),
    S("triu_indices", 4, 0, dtype="@int32"),
    S("tril_indices", -1, 4),
    S("diag", T(3), dtypes=ALL),
    S("diag", T(3), -2, dtypes=D),
    S("diag", T(3, 4), 1, dtypes=ALL),
    S("diag", T(0)),
    S("diag", T(2, 2, 2)),
    S("diag_embed", T(2, 3), dtypes=ALL),
    S("diag_embed", T(2, 3), 1, 0, -1, dtypes=D),
    S("diag_embed", T(2, 3), -1, 2, 0),
    S("diag_embed", T(2, 3), 0, 1, 1),
    S("diag_embed", T()),
    S("diagflat", T(2, 2), dtypes=ALL),
    S("diagflat", T(3), -1),
    S("diagflat", T()),
    S("fill_diagonal_", T(4, 3), fn=lambda m, x: (x * 1).fill_diagonal_(3), dtypes=D),
    S("fill_diagonal_", T(9, 3), fn=lambda m, x: (x * 1).contiguous().fill_diagonal_(3, wrap=True)),
    S("fill_diagonal_", T(3, 3, 3), fn=lambda m, x: (x * 1).fill_diagonal_(3)),
    S("fill_diagonal_", T(3, 3, 2), fn=lambda m, x: (x * 1).fill_diagonal_(3)),
    S("fill_diagonal_", T(3), fn=lambda m, x: (x * 1).fill_diagonal_(3)),
    S("block_diag", T(2, 3), T(), T(2), T(0, 2), dtypes=ALL),
    S("block_diag", T(2, 3), T(1, dtype="int64"), dtypes=D),
    S("block_diag"),
    S("block_diag", T(2, 3, 4)),
    S("vander", T(4), dtypes=ALL, grad=False),  # PyTorch's own gradient fails
    S("vander", T(4), 3, True, dtypes=D, grad=False),
    S("vander", T(4), N=0),
    S("vander", T(4, 1)),
]

PADS = [
    S("constant_pad_nd", T(2, 3), (1, 2), dtypes=ALL),
    S("constant_pad_nd", T(2, 3), (1, 0, 2, 1), 2.5, dtypes=D),
    S("constant_pad_nd", T(4, 5), (-1, 1, 2, -2), dtypes=D),
    S("constant_pad_nd", T(4, 5), (-1, -2)),
    S("constant_pad_nd", T(2, 3), ()),
    S("constant_pad_nd", T(0, 3), (1, 1, 1, 1)),
    S("constant_pad_nd", T(2, 3), (1,)),
    S("constant_pad_nd", T(2), (1, 1, 1, 1)),
    S("constant_pad_nd", T(2, 3), (-2, -2)),
    S(
        "constant_pad_nd",
        T(1, 2, 3, 3),
        fn=lambda m, x: m.constant_pad_nd(x.contiguous(memory_format=m.channels_last), (1, 1)),
        id="constant_pad_nd channels_last",
    ),
    S("pad", T(2, 3), (1, 2), fn=pad, dtypes=ALL),
    S("pad", T(2, 3), (1, 2), value=3, fn=pad),
    *[
        S("pad", T(2, 4), p, mode=mode, fn=pad)
        for mode in ("reflect", "replicate", "circular")
        for p in ((2, 1), (0, 0), (-1, 3))
    ],
    *[S("pad", T(2, 3, 4, 5), (1, 2, 0, 1), mode=mode, fn=pad) for mode in ("reflect", "replicate", "circular")],
    *[S("pad", T(2, 4), (5, 1), mode=mode, fn=pad) for mode in ("reflect", "replicate", "circular")],
    S("pad", T(4), (1, 1), mode="reflect", fn=pad),
    S("pad", T(4, 4), (1, 1), mode="wrong", fn=pad),
]

COUNTED = [
    S("cartesian_prod", T(3), T(2), T(2), dtypes=ALL),
    S("cartesian_prod", T(3)),
    S("cartesian_prod", T(3, 1), T(2)),
    S("combinations", T(4), dtypes=ALL),
    S("combinations", T(4), 3, dtypes=D),
    S("combinations", T(3), 2, True, dtypes=D),
    S("combinations", T(3), 1),
    S("combinations", T(3), 0, grad=False),
    S("combinations", T(2), 3, grad=False),
    S("combinations", T(0), 2, True, grad=False),
    S("combinations", T(3), -1),
    S("combinations", T(3, 2)),
    S("repeat_interleave", T(2, 3), 2, dtypes=ALL),
    S("repeat_interleave", T(2, 3), 2, 1, dtypes=D),
    S("repeat_interleave", T(2, 3), 0, 0),
    S("repeat_interleave", T(2, 3), 2, dim=0, output_size=4),
    S("repeat_interleave", T(2, 3), -1),
    S("repeat_interleave", T(2, 3), counts(2, 0, 3), 1, dtypes=ALL),
    S("repeat_interleave", T(2, 3), counts(2), 0, dtypes=D),
    S("repeat_interleave", T(3), counts(1, 2, 0)),
    S("repeat_interleave", T(3), counts(1, 2)),
    S("repeat_interleave", T(3), counts(1, 2, -1)),
    S("repeat_interleave", T(3), T(3)),
    S("repeat_interleave", counts(1, 2, 0), grad=False, method=False),
    S("repeat_interleave", counts(1, 2, 0), output_size=3, grad=False, method=False),
    S("repeat_interleave", T(2), grad=False),
    S("rot90", T(2, 3), dtypes=ALL),
    *[S("rot90", T(2, 3, 4), k, (0, 2), dtypes=D) for k in (0, 1, 2, 3, -1)],
    S("rot90", T(2, 3), 1, (0,)),
    S("rot90", T(2, 3), 1, (0, 0)),
    S("rot90", T(2, 3), 1, (0, 2)),
    S("rot90", T(3)),
    S("sum_to_size", T(2, 3, 4), (3, 1), dtypes=D),
    S("sum_to_size", T(2, 3), (2, 3)),
    S("sum_to_size", T(2, 3), ()),
    S("sum_to_size", T(2, 3), (2, 2)),
    S("expand_dims", T(2, 3), fn=lambda m, x: (x.expand_dims if hasattr(x, "expand_dims") else x.unsqueeze)(1)),
    S("squeeze_all", T(2, 1), fn=lambda m, x: (x.squeeze_all if hasattr(x, "squeeze_all") else x.squeeze)()),
    S("eval", T(2, 1), fn=lambda m, x: x.eval() if hasattr(x, "eval") else x),
]

MADE = [
    *[S("logspace", 0, 2, n) for n in (0, 1, 2, 5, 6)],
    S("logspace", -1.5, 2.5, 7, 2),
    *[S("logspace", 0, 3, 4, dtype="@" + d) for d in ("float16", "bfloat16", "float64", "int64", "int32", "uint8")],
    S("logspace", 0, 3, -1),
    S("empty_permuted", (2, 3, 4), (1, 2, 0), fn=lambda m, *a: m.empty_permuted(*a).zero_()),
    S("empty_permuted", (2, 3), (1,), fn=lambda m, *a: m.empty_permuted(*a).zero_()),
    S("empty_permuted", (2, 3), (1, 1), fn=lambda m, *a: m.empty_permuted(*a).zero_()),
    S("new_empty_strided", T(2), (2, 3), (1, 2), fn=lambda m, x, *a: x.new_empty_strided(*a).zero_(), dtypes=ALL, grad=False),
    S("resize_", T(3, 4), fn=resized("resize_", (2, 3)), dtypes=ALL, grad=False),
    S("resize_", T(3, 4), fn=resized("resize_", (5, 3)), grad=False),
    S("resize_", T(3, 4), fn=lambda m, x: (x * 1).resize_(3, 4), grad=False),
    S("resize_", T(3, 4), fn=lambda m, x: x.requires_grad_().resize_(3, 3), grad=False),
    S("resize_", T(3, 4), fn=resized("resize_", (-1, 3)), grad=False),
    S("resize_", T(2, 3, 4, 5), (2, 3, 4, 5), fn=with_format("resize_"), grad=False),
    S("resize_as_", T(3, 4), T(2, 3), fn=resized("resize_as_"), dtypes=ALL, grad=False),
    S("resize_as_", T(2, 3, 4, 5), T(2, 3, 4, 5), fn=with_format("resize_as_"), grad=False),
]  # fmt: skip

SAMPLES = [*COPIES, *PUT, *SPLITS, *TRIANGLES, *PADS, *COUNTED, *MADE]
