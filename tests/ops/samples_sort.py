"""Sorting and searching: order along a dimension, distinct values, places in a sorted sequence, counts."""

from .sample import ALL, S, T

SPECIAL = [0.0, float("nan"), -0.0, float("inf"), 1.0, float("-inf"), float("nan"), 0.0, -1.0]
TIES = [[3, 1, 2, 1, 3, 3, 0], [1, 1, 1, 1, 1, 1, 1], [0, 5, 4, 3, 2, 1, 0]]

SORTS = [
    S("sort", T(4, 7), dtypes=ALL),
    S("sort", T(4, 7), 0, True),
    S("sort", T(300), stable=True, dtypes=ALL),
    S("sort", T(3, 500), descending=True),
    S("sort", T(2, 5000, low=-1e3, high=1e3)),
    S("sort", T(3, 1, 4), dim=1, stable=True),
    S("sort", T(values=TIES), descending=True, stable=True, dtypes=ALL, grad=False),
    S("sort", T(values=SPECIAL), grad=False),
    S("sort", T(values=SPECIAL), descending=True, grad=False),
    S("sort", T()),
    S("sort", T(0, 3), 0),
    S("sort", T(3, 0)),
    S("sort", T(3), 1),
    S("sort", T(values=[2**62, -(2**62), 5, -5, 2**40], dtype="int64")),
    S("argsort", T(4, 7), dtypes=ALL, grad=False),
    S("argsort", T(values=TIES), dim=0, descending=True, stable=True, dtypes=ALL, grad=False),
    S("argsort", T(), grad=False),
    S("argsort", T(3), -2),
    S("msort", T(4, 7), dtypes=ALL),
    S("msort", T(), out=False),
    S("topk", T(4, 7, unique=True), 3, dtypes=ALL),
    S("topk", T(values=TIES), 4, dtypes=ALL, grad=False),
    S("topk", T(values=TIES), 4, largest=False, dtypes=ALL, grad=False),
    S("topk", T(values=TIES), 4, largest=False, sorted=False, dtypes=ALL, grad=False),
    S("topk", T(values=SPECIAL), 5, grad=False),
    S("topk", T(values=SPECIAL), 5, largest=False, grad=False),
    S("topk", T(300, 2, unique=True), 4, 0),
    S("topk", T(2, 300, unique=True), 200, -1, False),
    S("topk", T(2, 300), 290, dtypes=("int8", "int64", "float16"), grad=False),
    S("topk", T(3, 2, unique=True), 0, 0),
    S("topk", T(), 1),
    S("topk", T(), 0),
    S("topk", T(3), 4),
    S("topk", T(3), -1),
    S("topk", T(0, 2), 0, 0),
    S("topk", T(3), 1, 1),
]

REPEATED = [[1, 2, 2, 3], [1, 2, 2, 3], [0, 2, 2, 3], [1, 2, 2, 3]]
UNSIGNED = ("uint16", "uint32", "uint64")
WANTED = [{}, {"return_inverse": True}, {"return_counts": True}, {"return_inverse": True, "return_counts": True}]
UNIQUE = [
    *[S("unique", T(values=REPEATED), **w, dtypes=ALL + UNSIGNED, grad=False) for w in WANTED],
    *[S("unique", T(values=REPEATED), dim=d, **w, grad=False) for d in (0, 1, -1) for w in WANTED],
    *[S("unique_consecutive", T(values=REPEATED), **w, dtypes=ALL, grad=False) for w in WANTED],
    *[S("unique_consecutive", T(values=REPEATED), dim=d, **w, grad=False) for d in (0, 1) for w in WANTED],
    S("unique", T(5, 4, 3), True, True, True, dtypes=ALL, grad=False),
    S("unique", T(500), return_inverse=True, return_counts=True, dtypes=ALL, grad=False),
    S("unique", T(values=[-(2**62), 5, 2**62, 5, -7] * 80, dtype="int64"), return_inverse=True, return_counts=True),
    S("unique", T(5, 4, 3), dim=1, return_inverse=True, dtypes=ALL, grad=False),
    S("unique", T(values=SPECIAL), return_inverse=True, return_counts=True, grad=False),
    S("unique_consecutive", T(values=SPECIAL), return_inverse=True, return_counts=True, grad=False),
    S("unique", T(values=3.0), return_inverse=True, return_counts=True, grad=False),
    S("unique", T(0), return_inverse=True, return_counts=True, grad=False),
    S("unique", T(0, 3), dim=0, return_inverse=True, return_counts=True, grad=False),
    S("unique", T(0, 3), dim=1, grad=False),
    S("unique", T(0, 0), dim=1, grad=False),
    S("unique", T(3), dim=2, grad=False),
    S("unique", T(), dim=0, grad=False),
    S("unique", T(3), sorted=False, grad=False),
    S("unique_consecutive", T(0), return_inverse=True, grad=False),
    S("unique_consecutive", T(0, 3), dim=0, grad=False),
    S("unique_consecutive", T(0, 3), dim=1, grad=False),
    S("unique_consecutive", T(values=3.0), return_counts=True, grad=False),
]

POSITIONS = [
    S("nonzero", T(4, 3), as_tuple=False, grad=False),
    S("nonzero", T(3, 40000, dtype="bool", low=-1.0, high=1.0)),
    S("nonzero", T(3), as_tuple=1, grad=False),
    S("argwhere", T(4, 3, 2), dtypes=ALL, grad=False),
    S("argwhere", T(), grad=False),
    S("argwhere", T(0, 3), grad=False),
    S("nonzero_static", T(4, 3, dtype="bool", low=-1.0, high=1.0), size=3),
    S("nonzero_static", T(4, 3), size=20, fill_value=7, dtypes=ALL, grad=False),
    S("nonzero_static", T(), size=2, grad=False),
    S("nonzero_static", T(3), size=0, grad=False),
    S("nonzero_static", T(3), size=-1, grad=False),
    S("unravel_index", T(2, 3, dtype="int64", low=0, high=24), (2, 3, 4)),
    S("unravel_index", T(5, dtype="int32", low=0, high=6), (3, 2)),
    S("unravel_index", T(5, dtype="uint8", low=0, high=6), 6),
    S("unravel_index", T(dtype="int64", values=5), (3, 2)),
    S("unravel_index", T(5, dtype="int64", low=0, high=6), (3, -2)),
    S("unravel_index", T(5), (3, 2)),
    S("unravel_index", T(0, dtype="int64"), (3, 2)),
]

SAMPLES = SORTS + UNIQUE + POSITIONS
