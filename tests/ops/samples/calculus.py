"""Differences, finite-difference gradients, the trapezoidal rule; variance with mean, covariance; norms; sums that skip
NaNs."""

from .sample import ALL, COMPLEX, FLOATS, HALVES, INTS, REAL, S, T

INF, NAN = float("inf"), float("nan")
DIMS = [{}, {"dim": 0}, {"dim": -1}, {"dim": (0, 2)}, {"dim": 1, "keepdim": True}]
SAMPLES = []

for k in ({}, {"dim": 0}, {"n": 2}, {"n": 0}, {"n": 9}, {"n": 2, "dim": 1}):
    SAMPLES += [S("diff", T(4, 3), dtypes=ALL, **k)]
SAMPLES += [
    S("diff", T(4, 3), prepend=T(4, 1)),
    S("diff", T(4, 3), dim=0, append=T(2, 3)),
    S("diff", T(4), prepend=T(1), append=T(2)),
    S("diff", T(0, 3), dim=0),
    S("diff", T(), grad=False),
    S("diff", T(4), n=-1, grad=False),
    S("diff", T(4), prepend=T(1, 1), grad=False),
]

for k in ({}, {"spacing": 0.5}, {"dim": 0}, {"dim": (1, 0)}, {"edge_order": 2}, {"spacing": 2, "dim": 1, "edge_order": 2},
          {"spacing": (2.0, 0.5)}, {"spacing": [2], "dim": 1}, {"spacing": (2.0,)}, {"edge_order": 3}, {"dim": 5},
          {"dim": (0, 0)}, {"spacing": (1.0, 2.0), "dim": (1, 0), "edge_order": 2}):  # fmt: skip
    SAMPLES += [S("gradient", T(4, 5), dtypes=ALL, **k)]
COORDINATES = [T(values=[0.0, 1.0, 1.5, 4.0]), T(values=[0.0, 2.0, 3.0, 3.5, 6.0])]
for order in (1, 2):
    SAMPLES += [
        S("gradient", T(4, 5), fn=lambda m, x, a, b, k=order: m.gradient(x, spacing=(a, b), edge_order=k), id=f"at-{order}"),
        S("gradient", T(4, 5), fn=lambda m, x, b, k=order: m.gradient(x, spacing=[b], dim=1, edge_order=k), id=f"dim-{order}"),
    ]
    SAMPLES[-2].args += tuple(COORDINATES)
    SAMPLES[-1].args += (COORDINATES[1],)
SAMPLES += [S("gradient", T(2, 5), edge_order=2, grad=False), S("gradient", T(1), grad=False)]

for op in ("trapezoid", "trapz", "cumulative_trapezoid"):
    for k in ({}, {"dim": 0}, {"dx": 0.5}, {"dx": 2, "dim": 1}):
        SAMPLES += [S(op, T(4, 3), dtypes=ALL, **k)]
    SAMPLES += [
        S(op, T(4, 3), T(3), dtypes=ALL),
        S(op, T(4, 3), T(4), dim=0),
        S(op, T(4, 3), T(4, 3)),
        S(op, T(2, 4, 3), T(4, 3)),
        S(op, T(4, 3), T(2), grad=False),
        S(op, T(4, 1)),
    ]
SAMPLES += [S("trapezoid", T(4, 0)), S("trapezoid", T(0, 3), T(0), dim=0)]

for op in ("var_mean", "std_mean"):
    SAMPLES += [S(op, T(2, 3, 4), dtypes=ALL, id=f"{op}-{k}", **k) for k in DIMS]
    SAMPLES += [
        S(op, T(4, 3), 0, False),
        S(op, T(4, 3), 0, True, True),
        S(op, T(4, 3), False),
        S(op, T(4, 3), unbiased=False),
        S(op, T(4, 3), correction=0),
        S(op, T(4, 3), dim=1, correction=2, keepdim=True),
    ]

SAMPLES += [S("cov", T(3, 5), dtypes=ALL), S("cov", T(5), dtypes=ALL), S("cov", T(3, 5), correction=0), S("cov", T())]
SAMPLES += [
    S("cov", T(3, 5), fweights=T(5, dtype="int64", low=1, high=5)),
    S("cov", T(3, 5), aweights=T(5, low=0.5, high=2)),
    S("cov", T(3, 5), correction=2, fweights=T(5, dtype="int64", low=1, high=5), aweights=T(5, low=0.5, high=2)),
    S("cov", T(3, 5), aweights=T(5, low=-2, high=-1), grad=False),
    S("cov", T(3, 5), fweights=T(4, dtype="int64"), grad=False),
    S("cov", T(2, 3, 4), grad=False),
    S("cov", T(3, 1), grad=False),
]
SAMPLES += [S("corrcoef", T(3, 5), dtypes=FLOATS + COMPLEX + INTS), S("corrcoef", T(5)), S("corrcoef", T(2, 2, 2), grad=False)]

for p in (None, "fro", 0, 1, 2, 3, 0.5, 1.5, -1, INF, -INF, "nuc", "what"):
    for k in ({}, {"dim": 0}, {"dim": (0, 1), "keepdim": True}):
        SAMPLES += [S("norm", T(3, 4, unique=True), p, dtypes=REAL, id=f"norm-{p}-{k}", grad=p != "nuc", **k)]
    SAMPLES += [S("norm", T(3, 4), p, dtypes=COMPLEX, grad=p != 0, id=f"norm-{p}-complex")]
SAMPLES += [
    S("norm", T(4, 4), "nuc"),
    S("norm", T(5, 3, 2), "nuc", (0, 2), dtypes=FLOATS + COMPLEX),
    S("norm", T(2, 3, 5), "nuc", (2, 1), keepdim=True),
    S("norm", T(0, 3), "nuc", grad=False),
    S("norm", T(2, 3, 5), "nuc", grad=False),
    S("norm", T(3, 4), "nuc", dtype="@float64", dtypes=FLOATS, grad=False),
    S("norm", T(3, 4)),
    S("norm", T()),
    S("norm", T(0, 3), 2, 0),
    S("norm", T(0, 3), INF, 0, grad=False),
    S("norm", T(3, 4), 2, dtype="@float64", dtypes=FLOATS),
    S("norm", T(3, 4), 2, dtype="@float32", dtypes=("float64", "int32", "float16"), grad=False),
    S("norm", T(3, 4), 1, 0, False, dtype="@complex128", dtypes=COMPLEX),
    S("norm", T(values=[3e4, 3e4]), dtypes=("float16", "bfloat16"), grad=False),
    S("norm", T(values=[[0.0, 0.0], [1.0, 0.0]]), 2, 1, gradgrad=False),
    S("norm", T(values=[[0.0, 0.0], [1.0, 1.0]]), INF, 1, gradgrad=False),
    S("norm", T(2, 3, 4), "fro", (0, 1)),
    S("norm", T(2, 3, 4), "fro", (0, 1, 2), grad=False),
]
SAMPLES += [S("dist", T(3, 4), T(4), p, dtypes=ALL, id=f"dist-{p}", grad=p != 0) for p in (0, 1, 2, 3, INF)]
SAMPLES += [S("dist", T(3, 4), T(3, 1))]
for args in ((2, 0, 1.0), (1, 1, 0.5), (3, -1, 2), (INF, 0, 1.0), (0.5, 0, 1)):
    SAMPLES += [S("renorm", T(3, 4), *args, dtypes=FLOATS + HALVES + INTS + COMPLEX, id=f"renorm-{args}")]
SAMPLES += [S("renorm", T(2, 3, 4), 2, 1, 1.0), S("renorm", T(3), 2, 0, 1.0, grad=False)]
SAMPLES += [S("renorm", T(3, 4), *a, grad=False) for a in ((-1, 0, 1.0), (2, 0, -1.0), (2, 5, 1.0))]

MISSING = [[1.0, NAN, 3.0], [NAN, NAN, NAN], [0.5, INF, 2.0]]
for op in ("nansum", "nanmean"):
    SAMPLES += [S(op, T(2, 3, 4), dtypes=ALL, id=f"{op}-{k}", **k) for k in DIMS]
    SAMPLES += [S(op, T(values=MISSING), dtypes=FLOATS + HALVES, gradgrad=False, **k) for k in ({}, {"dim": 0}, {"dim": 1})]
    SAMPLES += [S(op, T(2, 3), dtype="@" + d, dtypes=ALL, grad=d == "float64") for d in ("float64", "float32", "int32")]
    SAMPLES += [S(op, T(0, 3), dim=0), S(op, T(0, 3)), S(op, T(40, 3000), dim=1, grad=False, rtol=1e-4, atol=1e-4)]
for k in ({}, {"dim": 0}, {"dim": -1}, {"dim": (0, 2)}):
    SAMPLES += [S("count_nonzero", T(values=[[[1, 0], [0, 2]], [[0, 0], [3, 1]]]), dtypes=ALL, grad=False, **k)]
    SAMPLES += [S("count_nonzero", T(40, 30, 70), dtypes=("float32", "bool", "int8"), grad=False, **k)]
SAMPLES += [S("count_nonzero", T(0, 3), grad=False), S("count_nonzero", T(), grad=False)]
for k in ({}, {"dim": 0}, {"dim": -1}, {"dim": 1, "keepdim": True}, {"keepdim": True}):
    SAMPLES += [S("aminmax", T(2, 3, 4, unique=True), dtypes=ALL, **k)]
    SAMPLES += [S("aminmax", T(values=[[1.0, NAN], [3.0, 3.0]]), grad=False, **k)]
SAMPLES += [
    S("aminmax", T(), dim=0),
    S("aminmax", T()),
    S("aminmax", T(0, 3), grad=False),
    S("aminmax", T(0, 3), dim=0, grad=False),
]
SAMPLES += [S("aminmax", T(values=[[1.0, 3.0, 3.0], [1.0, 1.0, 1.0]]), dim=1, gradgrad=False)]
SAMPLES += [S("trace", T(3, 4), dtypes=ALL), S("trace", T(0, 3)), S("trace", T(3), grad=False)]
