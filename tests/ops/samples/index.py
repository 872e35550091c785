"""Indexing: gather and scatter, slices by index, masks, x[...] and x[...] = v."""

from .sample import ALL, COMPLEX, FLOATS, HALVES, INTS, REAL, S, T

DIFFERENTIABLE = FLOATS + ("complex128",)


def I(*shape, high, low=0):  # noqa: E743  index tensors
    return T(*shape, dtype="int64", low=low, high=high)


def mask(*shape):
    return T(*shape, dtype="bool", low=-1.0, high=1.0)


def at(id, index, *tensors, **kwargs):  # noqa: A002
    """x[index(*tensors)]; index builds what stands between the brackets."""
    return S("index", *tensors, fn=lambda m, x, *i: x[index(m, *i)], id=f"getitem-{id}", **kwargs)


def put(id, index, *tensors, value, **kwargs):  # noqa: A002
    """y = x.clone(); y[index(*tensors)] = value, the last tensor if it is a T."""

    def write(m, x, *rest):
        y = x.clone()
        *i, v = rest if isinstance(value, T) else (*rest, value)
        y[index(m, *i)] = v
        return y

    tensors = (*tensors, value) if isinstance(value, T) else tensors
    return S("index_put_", *tensors, fn=write, id=f"setitem-{id}", **kwargs)


def all_of(m, *i):
    return i if len(i) > 1 else i[0]


SAMPLES = [
    S("gather", T(3, 4), 0, I(2, 4, high=3), dtypes=ALL),
    S("gather", T(3, 4), -1, I(3, 6, high=4), dtypes=DIFFERENTIABLE),
    S("gather", T(3, 4, 2), 1, I(2, 5, 2, high=4)),
    S("gather", T(), 0, I(2, high=1)),
    S("gather", T(3), 0, T(dtype="int64", values=2)),
    S("gather", T(3, 4), 1, T(3, 2, dtype="int32", low=0, high=4)),
    S("gather", T(3, 4), 1, I(0, 4, high=4)),
    S("gather", T(3, 4), 1, T(dtype="int64", values=[[4]])),
    S("gather", T(3, 4), 1, T(dtype="int64", values=[[-1]])),
    S("gather", T(3, 4), 2, I(3, 4, high=3)),
    S("gather", T(3, 4), 1, T(3, 4, dtype="float32")),
    S("gather", T(3, 4), 0, I(3, 5, high=3)),
    S("gather", T(3, 4), 0, I(3, high=3)),
    S("scatter", T(3, 4), 1, T(dtype="int64", values=[[0, 3], [2, 1], [1, 0]]), T(3, 2), dtypes=ALL),
    S("scatter", T(3, 4), 0, T(dtype="int64", values=[[2, 0, 1], [0, 1, 2]]), T(2, 3), dtypes=DIFFERENTIABLE),
    S("scatter", T(3, 4), 0, T(dtype="int64", values=[[2, 0, 1]]), 7, dtypes=ALL, id="value"),
    S("scatter", T(3, 4), 0, T(dtype="int64", values=[[2, 0, 1]]), 2.5, id="float"),
    S("scatter", T(3, 4), 0, T(dtype="int64", values=[[2, 2, 2], [2, 1, 2]]), T(2, 4), reduce="add", grad=False, dtypes=ALL),
    S(
        "scatter",
        T(3, 4),
        0,
        T(dtype="int64", values=[[2, 2, 2], [2, 1, 2]]),
        T(2, 4),
        reduce="multiply",
        grad=False,
        dtypes=FLOATS,
    ),
    S("scatter", T(3, 4), 0, T(dtype="int64", values=[[2, 2, 2], [2, 1, 2]]), 3, reduce="multiply", grad=False),
    S("scatter", T(3, 4), 0, T(dtype="int64", values=[[3]]), T(2, 4)),
    S("scatter", T(3, 4), 0, T(dtype="int64", values=[[0]]), T(2, 4), reduce="mean"),
    S("scatter", T(3, 4), 1, T(dtype="int64", values=[[0, 1]]), T(1, 1)),
    S("scatter", T(3, 4), 1, T(dtype="int64", values=[[0]]), T(1, 1, dtype="float16")),
    S("scatter", T(), 0, T(dtype="int64", values=0), T()),
    S("scatter_add", T(3, 4), 0, I(5, 4, high=3), T(5, 4), dtypes=ALL),
    S("scatter_add", T(3, 4), 1, I(3, 6, high=4), T(3, 6), dtypes=DIFFERENTIABLE),
    S("scatter_add", T(3, 4), 1, I(2, 6, high=4), T(3, 7), grad=False),
    S("scatter_add", T(3, 4), 1, T(dtype="int64", values=[[9]]), T(3, 7)),
    *(
        S("scatter_reduce", T(3, 4), dim, index, src, reduce, include_self=own, dtypes=dtypes)
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
        for dim, index, src, dtypes in (
            (0, I(5, 4, high=3), T(5, 4), REAL),
            (1, I(2, 6, high=4), T(3, 7), ("int64", "float32")),
            (-1, I(3, 6, high=4), T(3, 6), FLOATS),
        )
    ),
    *(
        S("scatter_reduce", T(3), 0, I(6, high=3), T(6), how, dtypes=COMPLEX, grad=False)
        for how in ("sum", "prod", "mean", "amax")
    ),
    S("index_reduce", T(3), 0, I(6, high=3), T(6), "prod", dtypes=COMPLEX, grad=False),
    S("scatter_reduce", T(), 0, T(dtype="int64", values=0), T(), "amax"),
    S(
        "scatter_reduce",
        T(3),
        0,
        I(4, high=3),
        T(dtype="float64", values=[1.0, float("nan"), 2.0, 3.0]),
        "amin",
        dtypes=("float64",),
    ),
    S("scatter_reduce", T(3), 0, I(2, high=3), T(2), "median"),
    S("scatter_reduce", T(3), 0, T(dtype="int64", values=[3]), T(1), "sum"),
    *(
        S("index_reduce", T(4, 3), dim, index, source, reduce, include_self=own, dtypes=dtypes)
        for reduce in ("prod", "mean", "amax", "amin")
        for own in (True, False)
        for dim, index, source, dtypes in (
            (0, I(6, high=4), T(6, 3), INTS + HALVES + FLOATS),
            (1, I(5, high=3), T(4, 5), FLOATS),
        )
    ),
    S("index_reduce", T(3), 0, I(2, high=3), T(2), "sum"),
    S("index_reduce", T(3), 0, I(2, high=3), T(3), "prod"),
    S("index_fill", T(4, 3), 0, T(dtype="int64", values=[2, 1, 2]), T(), dtypes=DIFFERENTIABLE, id="twice"),
    S("index_select", T(4, 3), 0, I(5, high=4), dtypes=ALL),
    S("index_select", T(4, 3, 2), 1, I(2, high=3), dtypes=DIFFERENTIABLE),
    S("index_select", T(4, 3), 1, T(4, dtype="int32", low=0, high=3)),
    S("index_select", T(), 0, I(1, high=1)),
    S("index_select", T(), 0, I(2, high=1)),
    S("index_select", T(4, 3), 0, T(dtype="int64", values=1)),
    S("index_select", T(4, 3), 0, T(dtype="int64", values=[])),
    S("index_select", T(4, 3), 0, T(dtype="int64", values=[4])),
    S("index_select", T(4, 3), 0, T(dtype="int64", values=[-1])),
    S("index_select", T(4, 3), 0, I(2, 2, high=4)),
    S("index_select", T(4, 3), 0, T(2, dtype="int8", low=0, high=3)),
    S("index_add", T(4, 3), 0, I(6, high=4), T(6, 3), dtypes=ALL),
    S("index_add", T(4, 3), 1, I(5, high=3), T(4, 5), alpha=2, dtypes=DIFFERENTIABLE + ("int64",)),
    S("index_add", T(4, 3), 0, I(2, high=4), T(3, 3)),
    S("index_add", T(4, 3), 0, I(2, high=4), T(2, 4)),
    S("index_add", T(4, 3), 0, T(dtype="int64", values=[4, 0]), T(2, 3)),
    S("index_copy", T(4, 3), 0, T(dtype="int64", values=[2, 0]), T(2, 3), dtypes=ALL),
    S("index_copy", T(4, 3), 1, T(dtype="int64", values=[2, 0]), T(4, 2), dtypes=DIFFERENTIABLE),
    S("index_copy", T(4, 3), 0, T(dtype="int64", values=[2, -1]), T(2, 3)),
    S("index_fill", T(4, 3), 0, T(dtype="int64", values=[2, -1]), 3, dtypes=ALL),
    S("index_fill", T(4, 3), 1, T(dtype="int64", values=[2]), T(), dtypes=DIFFERENTIABLE, id="tensor"),
    S("index_fill", T(4, 3), 1, T(dtype="int64", values=1), 2.5),
    S("index_fill", T(4, 3), 1, T(dtype="int64", values=1), T(2)),
    S("masked_fill", T(4, 3), mask(4, 3), 2, dtypes=ALL),
    S("masked_fill", T(4, 3), mask(3), T(), dtypes=DIFFERENTIABLE, id="tensor"),
    S("masked_fill", T(3), mask(4, 3), -1.5, inplace=False),
    S("masked_fill", T(3), T(3), 1),
    S("masked_fill", T(3), mask(3), T(3)),
    S("masked_fill", T(3, dtype="uint8"), mask(3), 300),
    S("masked_select", T(4, 3), mask(4, 3), dtypes=ALL),
    S("masked_select", T(4, 3), mask(3), dtypes=DIFFERENTIABLE),
    S("masked_select", T(), mask()),
    S("masked_select", T(3), T(3)),
    S("nonzero", T(4, 3, dtype="bool", low=-1.0, high=1.0)),
    S("nonzero", T(5, 4, 3), dtypes=ALL, grad=False),
    S("nonzero", T(values=3.0)),
    S("nonzero", T(0, 3)),
    S("where", T(4, 3, dtype="bool", low=-1.0, high=1.0), id="positions", method=False),
    S("nonzero", T(4, 3, 2), as_tuple=True, dtypes=ALL, grad=False),
    S("nonzero", T(values=3.0), as_tuple=True),
    S("take", T(4, 3), I(2, 5, low=-12, high=12), dtypes=ALL),
    S("take", T(4, 3), T(dtype="int64", values=[12])),
    S("take_along_dim", T(4, 3), I(4, 2, high=3), 1),
    S("take_along_dim", T(4, 1), I(1, 3, high=4), 0, dtypes=DIFFERENTIABLE),
    S("take_along_dim", T(12), I(5, high=12)),
    S("take_along_dim", T(4, 3), I(5, high=12), 0),
    S("take", T(0), T(dtype="int64", values=[0])),
    S("take", T(), T(dtype="int64", values=[[0, -1]]), dtypes=DIFFERENTIABLE),
    S("take_along_dim", T(4, 3), I(4, 2, low=-3, high=3), -1),
    S("put", T(4, 3), T(dtype="int64", values=[[2, -1], [7, 0]]), T(2, 2), dtypes=ALL),
    S("put", T(4, 3), T(dtype="int64", values=[2, -1, 2, 0]), T(2, 2), dtypes=DIFFERENTIABLE, grad=False),
    S("put", T(4, 3), I(20, low=-12, high=12), T(5, 4), accumulate=True, dtypes=ALL),
    S("put", T(), T(dtype="int64", values=[0]), T(1), dtypes=DIFFERENTIABLE),
    S("put", T(4, 3), T(dtype="int64", values=[12]), T(1)),
    S("put", T(4, 3), I(3, high=12), T(4)),
    S("put", T(4, 3), T(3, dtype="int32", low=0, high=4), T(3)),
    S("put", T(0), T(dtype="int64", values=[0]), T(1)),
    S("masked_scatter", T(4, 3), mask(4, 3), T(15), dtypes=ALL),
    S("masked_scatter", T(4, 3), mask(3), T(4, 4), dtypes=DIFFERENTIABLE),
    S("masked_scatter", T(3), mask(4, 3), T(12), dtypes=DIFFERENTIABLE, inplace=False),
    S("masked_scatter", T(4, 3), T(dtype="bool", values=True), T(4)),
    S("masked_scatter", T(4, 3), T(4, 3), T(12)),
    S("masked_scatter", T(4, 3), mask(4, 3), T(12, dtype="float16")),
    S("masked_scatter", T(), T(dtype="bool", values=True), T(2)),
    S("index_put", T(4, 3), (I(5, high=4),), T(5, 3), accumulate=True, dtypes=ALL),
    S("index_put", T(4, 3), (T(dtype="int64", values=[0, 3]), T(dtype="int64", values=[1, 1])), T(2), dtypes=DIFFERENTIABLE),
    S("index_put", T(4, 3), (T(dtype="int64", values=[0, -1]),), T(3), dtypes=DIFFERENTIABLE),
    S("index_put", T(4, 3), (T(dtype="int64", values=[0, -1]),), T(2)),
    S("index_put", T(4, 3), (T(dtype="int64", values=[0, -5]),), T(3)),
    S("index_put", T(4, 3), (T(dtype="int64", values=[0]),), T(3, dtype="float16")),
    at("vector", all_of, T(4, 3), I(5, low=-4, high=4), dtypes=ALL),
    at("two", all_of, T(4, 3), I(5, high=4), I(5, low=-3, high=3), dtypes=DIFFERENTIABLE),
    at("broadcast", all_of, T(4, 3), I(5, 1, high=4), I(2, high=3)),
    at("int32", all_of, T(4, 3), T(3, dtype="int32", low=0, high=4)),
    at("middle", lambda m, i: (slice(None), i), T(4, 3, 2), I(2, 2, high=3)),
    at("last", lambda m, i: (Ellipsis, i), T(4, 3, 2), I(2, 2, high=2)),
    at("apart", lambda m, i, j: (i, slice(None), j), T(4, 3, 2), I(2, 2, high=4), I(2, high=2), dtypes=DIFFERENTIABLE),
    at("apart-later", lambda m, i, j: (slice(None), i, slice(None), j), T(2, 4, 3, 2), I(2, high=4), I(2, high=2)),
    at("neighbours", lambda m, i, j: (slice(None), i, j), T(2, 4, 3, 2), I(3, high=4), I(3, high=3)),
    at("with-int", lambda m, i: (i, 1), T(4, 3), I(2, high=4)),
    at("with-slice", lambda m, i: (slice(1, 4, 2), i), T(4, 3), I(2, high=3)),
    at("with-none", lambda m, i: (None, i, slice(None)), T(4, 3), I(2, high=3), strides=False),
    at("mask", all_of, T(4, 3), mask(4, 3), dtypes=ALL),
    at("mask-rows", all_of, T(4, 3), mask(4), dtypes=DIFFERENTIABLE),
    at("mask-columns", lambda m, k: (slice(None), k), T(4, 3), mask(3)),
    at("mask-and-index", all_of, T(4, 3), T(dtype="bool", values=[True, False, True, False]), I(2, high=3)),
    at("mask-middle", lambda m, k: (slice(None), k), T(2, 4, 3, 2), mask(4, 3)),
    at("empty", all_of, T(4, 3), T(dtype="int64", values=[])),
    at("zero-size", all_of, T(3, 0), T(dtype="int64", values=[1, 2])),
    at("0-d", all_of, T(4, 3), T(dtype="int64", values=2)),
    at("list", lambda m: [0, 2, 1], T(4, 3)),
    at("lists", lambda m: ([0, 2], [1, 1]), T(4, 3)),
    at("out-of-range", all_of, T(4, 3), T(dtype="int64", values=[4])),
    at("out-of-range-below", all_of, T(4, 3), T(dtype="int64", values=[-5])),
    at("empty-dimension", all_of, T(0, 3), T(dtype="int64", values=[0])),
    at("no-broadcast", all_of, T(4, 3), I(2, high=3), I(3, high=3)),
    at("wrong-mask", all_of, T(4, 3), mask(3)),
    at("float-index", all_of, T(4, 3), T(2)),
    at("int8-index", all_of, T(4, 3), T(2, dtype="int8")),
    at("too-many", all_of, T(4), I(2, high=3), I(2, high=3)),
    put("vector", all_of, T(4, 3), T(dtype="int64", values=[2, -4]), value=T(2, 3), dtypes=ALL),
    put("row", all_of, T(4, 3), T(dtype="int64", values=[2, 0]), value=T(3), dtypes=DIFFERENTIABLE),
    put("number", all_of, T(4, 3), T(dtype="int64", values=[2, 0]), value=5, dtypes=ALL),
    put("two", all_of, T(4, 3), T(dtype="int64", values=[2, 0]), T(dtype="int64", values=[1, 1]), value=T(2)),
    put(
        "apart",
        lambda m, i, j: (i, slice(None), j),
        T(4, 3, 2),
        T(dtype="int64", values=[2, 0]),
        T(dtype="int64", values=[1, 1]),
        value=T(2, 3),
    ),  # fmt: skip
    put("mask-number", all_of, T(4, 3), mask(4, 3), value=5, dtypes=ALL),
    put("mask-0-d", all_of, T(4, 3), mask(4), value=T(), dtypes=DIFFERENTIABLE),
    put("mask-values", all_of, T(4), T(dtype="bool", values=[True, False, True, True]), value=T(3), dtypes=DIFFERENTIABLE),
    put(
        "sliced", lambda m, i: (slice(1, 3), i), T(4, 3), T(dtype="int64", values=[2, 0]), value=T(2, 2), dtypes=DIFFERENTIABLE
    ),
    put("out-of-range", all_of, T(4, 3), T(dtype="int64", values=[2, 4]), value=5),
    put("no-fit", all_of, T(4, 3), T(dtype="int64", values=[2, 3]), value=T(4)),
]
