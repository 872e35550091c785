"""Ops of one operand."""

from .sample import ALL, COMPLEX, FLOATS, REAL, S, T

EVERYWHERE = [
    "neg",
    "negative",
    "abs",
    "absolute",
    "sign",
    "sgn",
    "square",
    "exp",
    "exp2",
    "expm1",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "sigmoid",
    "relu",
    "floor",
    "ceil",
    "round",
    "trunc",
    "positive",
]
POSITIVE = ["log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal"]
QUESTIONS = ["isnan", "isinf", "isfinite", "signbit", "logical_not", "bitwise_not"]
REFUSES_COMPLEX = {"sign", "relu", "floor", "ceil", "round", "trunc"}
INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-40, 1e38, -1e38, 88.5, -104.0, 0.5, -2.5, 1.5, 3.0]


def swept(op):
    return REAL if op in REFUSES_COMPLEX else ALL


SAMPLES = [S(op, T(3, 4), dtypes=swept(op)) for op in EVERYWHERE]
SAMPLES += [S(op, T(3, 4, low=0.25, high=3.0), dtypes=swept(op)) for op in POSITIVE]
SAMPLES += [S(op, T(3, 4, low=-2, high=3), dtypes=ALL, grad=False) for op in QUESTIONS]
SAMPLES += [S(op, T(3, 4), dtypes=COMPLEX, grad=False) for op in sorted(REFUSES_COMPLEX)]
SAMPLES += [S(op, T(values=SPECIAL), id=op + "-special", grad=False) for op in EVERYWHERE + POSITIVE]
SAMPLES += [S(op, T(values=SPECIAL), grad=False) for op in QUESTIONS if op != "bitwise_not"]
SAMPLES += [S(op, T(shape), id=f"{op}-{shape}", grad=False) for op in ("exp", "tanh", "neg") for shape in (0, 1, 17, 1000)]
SAMPLES += [
    S(op, T(70000, low=-8, high=8), grad=False, inplace=False, out=False) for op in ("exp", "sin", "cos", "tanh", "sigmoid")
]
SAMPLES += [S(op, T(2, 0, 3), grad=False) for op in ("exp", "neg")] + [S(op, T(), dtypes=ALL) for op in ("exp", "neg", "abs")]
SAMPLES += [S("sin", T(values=[3e7, -1e10, 1e30, 1.0]), grad=False), S("cos", T(values=[3e7, -1e10, 1e30, 1.0]), grad=False)]
SAMPLES += [
    S("abs", T(values=[0.0, -1.0, 2.0])),
    S("relu", T(values=[0.0, -1.0, 2.0])),
    S("sqrt", T(values=[0.0, 4.0]), gradgrad=False),
]
SAMPLES += [
    S("conj_physical", T(3, 4), dtypes=COMPLEX),
    S("conj_physical", T(3, 4), dtypes=REAL),
    S("conj", T(3, 4), dtypes=ALL, strides=False),  # PyTorch: a view
    S("resolve_conj", T(3), dtypes=ALL),
    S("real", T(3, 4), dtypes=FLOATS + COMPLEX, fn=lambda m, x: m.real(x)),
    S("imag", T(3, 4), dtypes=COMPLEX, fn=lambda m, x: m.imag(x)),
    S("view_as_real", T(3, 4), dtypes=COMPLEX),
    S("view_as_complex", T(3, 2), fn=lambda m, x: m.view_as_complex(x.contiguous())),
]
