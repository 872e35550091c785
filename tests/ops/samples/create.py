"""Factories, conversions, copies and fills."""

from .sample import ALL, COMPLEX, FLOATS, HALVES, INTS, S, T

SIZES = ((), (3,), (2, 3), (0, 2))


def copied(m, x, y):
    return x.clone().copy_(y)


def number_dtypes(op, *args):
    return [S(op, *args, dtype="@" + d, id=f"{op}-{d}") for d in ALL]


SAMPLES = [
    *[S(op, size) for op in ("zeros", "ones") for size in SIZES],
    *[S(op, 2, 3, id=f"{op}-star") for op in ("zeros", "ones")],
    *number_dtypes("zeros", (2,)),
    *number_dtypes("ones", (2,)),
    *number_dtypes("full", (2,), 3),
    *[S("full", (2, 2), value) for value in (2, 2.5, True, 1 + 2j)],
    S("full", (2,), T(), dtypes=ALL, grad=False),
    S("full", (2,), 300, dtype="@uint8"),
    S("full", (2,), 1e300),
    S("full", (2,), 1j, dtype="@float32"),
    S("zeros", (-1,)),
    S("empty", (2, 3), fn=lambda m, size: m.empty(size).zero_()),
    S("empty", (2, 3, 4, 4), fn=lambda m, size: m.empty(size, memory_format=m.channels_last).zero_()),
    S("empty", (2, 3), fn=lambda m, size: m.empty(size, memory_format=m.channels_last).zero_()),
    S("empty_strided", (2, 3), (1, 2), fn=lambda m, *a: m.empty_strided(*a).zero_()),
    S("empty_strided", (2, 3), (1,), fn=lambda m, *a: m.empty_strided(*a).zero_()),
    S("scalar_tensor", 3),
    S("scalar_tensor", 3, dtype="@int16"),
    *[S(op, T(2, 3), dtypes=ALL, grad=False) for op in ("zeros_like", "ones_like")],
    S("zeros_like", T(3, 2), dtype="@int64", grad=False),
    S("ones_like", T(2, 3, 2, 2), fn=lambda m, x: m.ones_like(x, memory_format=m.channels_last), grad=False),
    S("full_like", T(3, 2), 7, dtypes=ALL, grad=False),
    S("full_like", T(3, 2), 2.5, dtype="@float64", grad=False),
    S("empty_like", T(3, 2), fn=lambda m, x: m.empty_like(x).zero_(), grad=False),
    S("new_zeros", T(3, 2), (2, 2), dtypes=ALL, grad=False),
    S("new_ones", T(3, 2), (2, 2), dtype="@int32", grad=False),
    S("new_full", T(3, 2), (2, 2), 5, dtypes=ALL, grad=False),
    S("new_empty", T(3, 2), (2, 2), fn=lambda m, x, size: x.new_empty(size).zero_(), grad=False),
    *[S("arange", *a) for a in ((5,), (0,), (2.5,), (1, 6), (1, 6, 2), (6, 1, -2), (0, 1, 0.1), (-1.5, 2), (3, 3))],
    *number_dtypes("arange", 0, 9, 2),
    S("arange", 0, 2.5, dtype="@int64"),
    S("arange", 0.5, 2.5, dtype="@int32"),
    S("arange", 2**53, 2**53 + 3),
    *[S("arange", *a) for a in ((0, 1, 0), (0, 1, -1), (float("inf"),), (0, float("nan")))],
    *[S("linspace", *a) for a in ((0, 1, 7), (-3.3, 8.1, 33), (5, -5, 10), (2, 3, 1), (0, 1, 0), (0, 1, 600))],
    *[S("linspace", 0, 10, 4, dtype="@" + d, id=f"linspace-{d}") for d in INTS + HALVES + FLOATS + ("bool",)],
    S("linspace", 0, 1, -1),
    S("eye", 3),
    S("eye", 2, 4),
    S("eye", 4, 2, dtype="@int64"),
    S("eye", 0),
    S("eye", -1),
    S("eye", 1, -1),
    # conversions
    *[
        S(name, T(2, 3, low=0.0), dtypes=ALL, grad=name in ("float", "double"), gradgrad=False)
        for name in ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble",
 "chalf")
    ],
    *[S("to", T(2, 3, low=0.0), "@" + d, dtypes=ALL, grad=False, id=f"to-{d}") for d in ALL],
    S("to", T(2, 3), "@float64", dtypes=FLOATS + COMPLEX[:0]),
    S("to", T(2, 3), dtype="@float32", dtypes=FLOATS, id="to-keyword"),
    S("to", T(2, 3), "cpu", id="to-device"),
    S("to", T(2, 3), "cpu", "@float32", id="to-both"),
    S("to", T(2, 3), T(1, dtype="float64"), dtypes=FLOATS, id="to-other"),
    S("to", T(2, 3), fn=lambda m, x: x.to(x.dtype, copy=True), id="to-copy"),
    S("to", T(2, 3, 4, 4), fn=lambda m, x: x.to(memory_format=m.channels_last), id="to-format"),
    S("to", T(2, 3), fn=lambda m, x: x.to(memory_format=m.channels_last), id="to-format-rank"),
    S("to", T(2, 3), fn=lambda m, x: m.tensor([x.to(x.dtype) is x, x.to("cpu") is x, x.to(x) is x]), grad=False, id="to-self"),
    S("type_as", T(2, 3), T(1, dtype="float64"), dtypes=FLOATS),
    S("cpu", T(2, 3), fn=lambda m, x: x.cpu()),
    # writes
    S("copy_", T(2, 3), T(2, 3), dtypes=ALL),
    S("copy_", T(2, 3), T(3), fn=copied),
    *[S("copy_", T(2, 3, low=0.0), T(3, low=0.0, dtype=d), fn=copied, dtypes=ALL, id=f"copy-{d}", grad=False) for d in ALL],
    S("copy_", T(2, 3), T(4)),
    S("copy_", T(3), T(2, 3)),
    S("copy_", T(5), fn=lambda m, x: (y := x.clone())[1:].copy_(y[:-1]), grad=False, id="copy-overlap"),
    S("copy_", T(5), T(2, 5), fn=lambda m, x, y: x.expand(2, 5).copy_(y), grad=False, id="copy-expanded"),
    S("fill", T(2, 3), 2, dtypes=ALL),
    S("fill", T(2, 3), T(), dtypes=FLOATS + ("complex128",)),
    S("fill", T(2, 3), T(2)),
    S("fill", T(2, 3, dtype="uint8"), -1),
    S("fill", T(2, 3, dtype="uint8"), 256),
    S("fill", T(2, 3, dtype="int32"), 2.7),
    S("fill", T(2, 3, dtype="int32"), float("nan")),
    S("fill", T(2, 3), 1j),
    S("zero_", T(2, 3), fn=lambda m, x: x.clone().zero_(), dtypes=ALL),
]  # fmt: skip
