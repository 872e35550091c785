"""Order statistics. Ties and NaNs: PyTorch's choice of index is compared too."""

from .sample import ALL, COMPLEX, FLOATS, INTS, REAL, S, T

NAN = float("nan")
TIES = [[1.0, 3.0, 3.0, 2.0, 1.0, 3.0], [2.0, 2.0, 2.0, 2.0, 2.0, 2.0], [0.0, -0.0, 5.0, -1.0, 0.0, 5.0]]
MISSING = [[1.0, NAN, 3.0], [NAN, NAN, NAN], [0.5, 0.25, 2.0]]
SAMPLES = []
for op in ("median", "nanmedian"):
    SAMPLES += [S(op, T(3, 5, unique=True), dtypes=ALL), S(op, T(4, unique=True)), S(op, T()), S(op, T(0, 3), grad=False)]
    SAMPLES += [S(op, T(values=TIES), gradgrad=False), S(op, T(values=MISSING), grad=False)]
    for k in ({"dim": 0}, {"dim": -1}, {"dim": 1, "keepdim": True}):
        SAMPLES += [S(op, T(3, 5, 4, unique=True), dtypes=ALL, **k), S(op, T(values=TIES), dtypes=REAL, grad=False, **k)]
        SAMPLES += [S(op, T(values=MISSING), dtypes=FLOATS, grad=False, **k)]
    SAMPLES += [S(op, T(), 0), S(op, T(0, 3), 0, grad=False), S(op, T(0, 3), 1, grad=False), S(op, T(2, 3), 2, grad=False)]
    SAMPLES += [S(op, T(3, 700), 1, dtypes=FLOATS + INTS, grad=False), S(op, T(9000), grad=False)]
for k in ({"k": 2}, {"k": 1, "dim": 0}, {"k": 3, "dim": 1, "keepdim": True}, {"k": 0}, {"k": 9}, {"k": 1, "dim": 4}):
    SAMPLES += [
        S("kthvalue", T(3, 5, unique=True), dtypes=ALL, **k),
        S("kthvalue", T(values=TIES), dtypes=REAL, grad=False, **k),
    ]
    SAMPLES += [S("kthvalue", T(values=MISSING), dtypes=FLOATS, grad=False, **k)]
SAMPLES += [S("kthvalue", T(), 1), S("kthvalue", T(3, 0), 1, 0), S("kthvalue", T(3, 700), 99, dtypes=FLOATS + INTS, grad=False)]
for k in ({}, {"dim": 0}, {"dim": 1, "keepdim": True}):
    SAMPLES += [S("mode", T(values=TIES), dtypes=REAL, **k), S("mode", T(3, 5), dtypes=COMPLEX, grad=False, **k)]
SAMPLES += [S("mode", T()), S("mode", T(0, 3), 0, grad=False), S("mode", T(3, 700), dtypes=FLOATS + INTS, grad=False)]
for op in ("quantile", "nanquantile"):
    for how in ("linear", "lower", "higher", "midpoint", "nearest", "other"):
        for k in ({}, {"dim": 0}, {"dim": 1, "keepdim": True}, {"keepdim": True}):
            sample = {"interpolation": how, "id": f"{op}-{how}-{k}", **k}
            SAMPLES += [S(op, T(3, 5, unique=True), 0.3, dtypes=ALL if how == "linear" else FLOATS, **sample)]
            SAMPLES += [S(op, T(3, 5, unique=True), T(values=[0.0, 0.45, 1.0], grad=False), **sample)]
        SAMPLES += [S(op, T(values=MISSING), T(values=[0.1, 0.5]), dim=1, interpolation=how, grad=False)]
    SAMPLES += [S(op, T(2, 3, 4, unique=True), T(values=[0.1, 0.2, 0.3, 0.5, 0.9], grad=False), dim=1)]
    SAMPLES += [S(op, T(values=TIES), 0.5, dim=1, gradgrad=False), S(op, T(), 0.5), S(op, T(0), 0.5, grad=False)]
    SAMPLES += [S(op, T(3), 1.5, grad=False), S(op, T(3), T(values=[-0.5]), grad=False), S(op, T(3), T(1, 1), grad=False)]
    SAMPLES += [S(op, T(3, 5), 0.3, 2, grad=False)]
