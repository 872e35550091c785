"""Reductions."""

from .sample import ALL, COMPLEX, FLOATS, HALVES, INTS, REAL, S, T

INF, NAN = float("inf"), float("nan")
DIMS = [{}, {"dim": 0}, {"dim": -1}, {"dim": (0, 2)}, {"dim": 1, "keepdim": True}]
ONE_DIM = [d for d in DIMS if not isinstance(d.get("dim"), tuple)]
LARGE = [
    ((100000,), {}),
    ((40, 3000), {"dim": 1}),
    ((3000, 40), {"dim": 0}),
    ((600, 700), {"dim": 0}),
    ((60, 70, 30), {"dim": 1}),
    ((5000, 3), {"dim": 1}),
    ((60, 70, 30), {"dim": (0, 2)}),
]


def name(op, k, *more):
    return "-".join([op, *more] + [f"{a}={b}" for a, b in k.items()]).replace(" ", "")


SAMPLES = []
for op in ("sum", "mean"):
    SAMPLES += [S(op, T(2, 3, 4), dtypes=ALL, id=name(op, k), **k) for k in DIMS]
    SAMPLES += [
        S(op, T(2, 3, 4), dtypes=ALL, id=name(op, {"dtype": d}), grad=d == "float64", dtype="@" + d)
        for d in ("float64", "float32", "int32", "complex64")
    ]
    SAMPLES += [
        S(op, T(2, 3, 4), 1, dtype="@float64"),
        S(op, T(2, 3), dim=(), dtypes=FLOATS),
        S(op, T(2, 3), dim=(0, 0), grad=False),
    ]
    SAMPLES += [S(op, T(0, 3), dtypes=FLOATS, **k) for k in ({}, {"dim": 0}, {"dim": 1})] + [
        S(op, T(), dtypes=ALL),
        S(op, T(), dim=0),
    ]
    SAMPLES += [
        S(op, T(*shape), grad=False, dtypes=FLOATS + HALVES + COMPLEX, id=name(op, k, str(shape)), rtol=1e-4, atol=1e-4, **k)
        for shape, k in LARGE
    ]
SAMPLES += [
    S("sum", T(3, dtype="bool"), dtypes=("bool",), grad=False),
    S("sum", T(300, low=20, high=100), dtypes=INTS, grad=False),
]
SAMPLES += [S("sum", T(2, 3), dim=5, grad=False), S("sum", T(values=[1e20, 1.0, -1e20, INF]), grad=False)]
SAMPLES += [S("prod", T(2, 3, 4), dtypes=ALL, id=name("prod", k), **k) for k in ONE_DIM]
SAMPLES += [
    S("prod", T(2, 3), dtype="@float64", dtypes=REAL),
    S("prod", T(0, 3)),
    S("prod", T(), dtypes=ALL),
    S("prod", T(0, 3), 0),
]
SAMPLES += [S("prod", T(values=v)) for v in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [[1.0, 0.0], [2.0, 3.0]])]
SAMPLES += [S("prod", T(values=[[1.0, 0.0, 2.0], [2.0, 3.0, 4.0]]), d) for d in (0, 1)]

for op in ("amax", "amin"):
    SAMPLES += [S(op, T(2, 3, 4, unique=True), dtypes=REAL, id=name(op, k), **k) for k in DIMS]
    SAMPLES += [
        S(op, T(values=[[1.0, 3.0, 3.0], [1.0, 1.0, 1.0]]), id=name(op, k, "ties"), **k) for k in ({}, {"dim": 0}, {"dim": 1})
    ]
    SAMPLES += [
        S(op, T(values=[1.0, NAN, 3.0]), grad=False),
        S(op, T(0, 3), grad=False),
        S(op, T(0, 3), 0, grad=False),
        S(op, T(0, 3), 1),
    ]
    SAMPLES += [S(op, T(*shape), grad=False, id=name(op, k, str(shape)), **k) for shape, k in LARGE] + [
        S(op, T(2, 2), dtypes=COMPLEX, grad=False)
    ]
for op in ("max", "min"):
    SAMPLES += [
        S(op, T(2, 3, 4, unique=True), dtypes=REAL, id=op),
        S(op, T(values=[1.0, 3.0, 3.0])),
        S(op, T(values=[1.0, NAN, 3.0]), grad=False),
    ]
    SAMPLES += [S(op, T(2, 3, 4, unique=True), d, dtypes=REAL, id=f"{op}-{d}") for d in (0, 1, -1)] + [
        S(op, T(2, 3, unique=True), 1, True)
    ]
    SAMPLES += [
        S(op, T(2, 3, unique=True), dim=1, keepdim=True),
        S(op, T(values=[[1.0, 3.0, 3.0], [NAN, 1.0, NAN]]), 1, grad=False),
    ]
    SAMPLES += [
        S(op, T(0, 3), grad=False),
        S(op, T(0, 3), 0, grad=False),
        S(op, T(0, 3), 1, grad=False),
        S(op, T(), 0),
        S(op, T(), dtypes=REAL),
    ]
    SAMPLES += [S(op, T(2, 3), dtypes=COMPLEX, grad=False), S(op, T(2, 3), 1, dtypes=COMPLEX, grad=False)]
    SAMPLES += [
        S(op, T(*shape), k["dim"], grad=False, id=f"{op}-{shape}") for shape, k in LARGE if isinstance(k.get("dim"), int)
    ]
for op in ("argmax", "argmin"):
    SAMPLES += [S(op, T(2, 3, 4, unique=True), dtypes=ALL, grad=False, id=name(op, k), **k) for k in ONE_DIM]
    SAMPLES += [S(op, T(values=[[1.0, 3.0, 3.0], [NAN, 1.0, NAN]]), d, grad=False) for d in (None, 0, 1)] + [
        S(op, T(0, 3), grad=False)
    ]
    SAMPLES += [
        S(op, T(0, 3), 0, grad=False),
        S(op, T(100000, unique=True), grad=False),
        S(op, T(200, 300, unique=True), 0, grad=False),
    ]
for op in ("any", "all"):
    SAMPLES += [S(op, T(2, 3, 4), dtypes=ALL, grad=False, id=name(op, k), **k) for k in DIMS]
    SAMPLES += [S(op, T(values=[[1, 0, 1], [1, 1, 1]]), dtypes=ALL, grad=False, **k) for k in ({}, {"dim": 0}, {"dim": 1})]
    SAMPLES += [S(op, T(0, 3), grad=False, **k) for k in ({}, {"dim": 0})] + [S(op, T(300, 300), grad=False)]
for op in ("var", "std"):
    SAMPLES += [S(op, T(2, 3, 4), dtypes=REAL, id=name(op, k), **k) for k in DIMS]
    SAMPLES += [S(op, T(2, 3, 4), dtypes=COMPLEX, id=name(op, k, "complex"), **k) for k in DIMS]
    SAMPLES += [S(op, T(4, 3), correction=c, id=f"{op}-{c}") for c in (0, 1, 2, 0.5)] + [
        S(op, T(4, 3), 0, correction=0, keepdim=True)
    ]
    SAMPLES += [
        S(op, T(4, 3), 0, False),
        S(op, T(4, 3), 0, True, True),
        S(op, T(4, 3), unbiased=False),
        S(op, T(4, 3), dim=1, unbiased=False),
    ]
    SAMPLES += [S(op, T(1), grad=False), S(op, T(0), grad=False), S(op, T(3), correction=3, grad=False)]
    SAMPLES += [S(op, T(*shape), grad=False, id=name(op, k, str(shape)), **k) for shape, k in LARGE]
SAMPLES += [
    S("std", T(values=[2.0, 2.0, 2.0]), gradgrad=False),
    S("var", T(values=[1e4 + 1.0, 1e4 + 2.0, 1e4 + 3.0]), grad=False),
]
SAMPLES += [S("logsumexp", T(2, 3, 4), dtypes=REAL, id=name("logsumexp", k), **k) for k in DIMS if k]
SAMPLES += [
    S("logsumexp", T(values=[[1000.0, 1000.0], [-INF, -INF], [INF, 1.0]]), 1, grad=False),
    S("logsumexp", T(0, 3), 0, grad=False),
]
SAMPLES += [S("logsumexp", T(), 0)]

for op in ("cummax", "cummin"):
    SAMPLES += [S(op, T(3, 4, 5, unique=True), d, dtypes=ALL, id=f"{op}-{d}") for d in (0, 1, -1)]
    SAMPLES += [S(op, T(values=[[1.0, 3.0, 3.0, 1.0, NAN, 2.0, NAN]]), d, dtypes=FLOATS, grad=False) for d in (0, 1)]
    SAMPLES += [
        S(op, T(), 0),
        S(op, T(0, 3), 1),
        S(op, T(3), 1, grad=False),
        S(op, T(3, 700, low=-1, high=1), 1, dtypes=REAL, grad=False),
    ]
    SAMPLES += [S(op, T(40, 600), 0, dtypes=REAL, grad=False)]
SAMPLES += [S("logcumsumexp", T(3, 4, 5), d, dtypes=ALL, id=f"logcumsumexp-{d}", rtol=1e-5, atol=1e-6) for d in (0, 1, -1)]
SAMPLES += [
    S(
        "logcumsumexp",
        T(values=[[-INF, -INF, 1.0, 1000.0, -1000.0], [INF, 1.0, INF, 2.0, -INF], [1.0, NAN, 2.0, 3.0, 4.0]]),
        1,
        grad=False,
    ),
    S("logcumsumexp", T(3, 700, low=-40, high=40), 1, grad=False, rtol=1e-5),
    S("logcumsumexp", T(), 0),
    S("logcumsumexp", T(0, 3), 0),
]
for op in ("cumsum", "cumprod"):
    SAMPLES += [
        S(op, T(100003, low=0.99, high=1.01), 0, dtypes=FLOATS + INTS, grad=False, rtol=1e-4),
        S(op, T(5, 700), 1, dtypes=FLOATS, grad=False, rtol=1e-4),
    ]
    SAMPLES += [S(op, T(2, 30, 600), 1, dtypes=FLOATS, grad=False, rtol=1e-4)]
