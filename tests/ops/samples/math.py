"""Inverse circular functions, special functions, representation, interpolation, closeness, activations."""

from .sample import ALL, COMPLEX, FLOATS, HALVES, INTS, REAL, S, T

INF, NAN = float("inf"), float("nan")
FLOATING = HALVES + FLOATS
EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    INF,
    -INF,
    NAN,
    1e-40,
    -1e-40,
    1e-30,
    0.5,
    -0.5,
    0.999,
    2.0,
    -2.5,
    10.0,
    -30.0,
    100.0,
    1e30,
    -1e38,
]
PAIRS = [
    (a, b) for a in (0.0, -0.0, 1.0, -2.5, INF, -INF, NAN, 1e-40, 3e38) for b in (0.0, -0.0, 1.0, -1.5, INF, -INF, NAN, 1e38)
]
FIRST, SECOND = [a for a, _ in PAIRS], [b for _, b in PAIRS]

SAMPLES = []
for op in ("acos", "arccos", "asin", "arcsin", "atanh", "arctanh"):
    SAMPLES += [S(op, T(3, 4, low=-0.9, high=0.9), dtypes=ALL)]
for op in ("atan", "arctan", "asinh", "arcsinh", "acosh", "arccosh"):
    SAMPLES += [S(op, T(3, 4, low=1.25, high=4) if "cos" in op else T(3, 4), dtypes=ALL)]
ONE = ["acos", "asin", "atan", "acosh", "asinh", "atanh", "angle", "deg2rad", "rad2deg", "erf", "erfc", "erfinv", "lgamma",
       "frac", "sinc"]  # fmt: skip
SAMPLES += [S(op, T(values=EDGES), id=op + "-edges", grad=False, rtol=1e-5) for op in ONE]
SAMPLES += [S("digamma", T(values=[0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 0.5, -0.5, -2.5, 10.0, 1e20]), grad=False)]
SAMPLES += [S("i0", T(values=[0.0, -0.0, 1.0, NAN, 0.5, 8.0, -8.5, 30.0]), grad=False, rtol=1e-6)]
SAMPLES += [S("atan2", T(3, 4), T(4), dtypes=REAL), S("arctan2", T(3, 4), T(4), dtypes=REAL)]
SAMPLES += [S(op, T(values=FIRST), T(values=SECOND), grad=False, id=op + "-edges")
            for op in ("atan2", "hypot", "copysign", "fmax", "fmin", "heaviside", "logaddexp", "logaddexp2", "xlogy")]  # fmt: skip
SAMPLES += [S("angle", T(3, 4), dtypes=ALL), S("angle", T(values=[0.0, 1.0]), dtypes=COMPLEX)]
SAMPLES += [S(op, T(3, 4), dtypes=ALL) for op in ("deg2rad", "rad2deg")]
SAMPLES += [
    S("complex", T(3, 4), T(4), dtypes=FLOATING),
    S("complex", T(3), T(3, dtype="float64"), dtypes=("float32",), grad=False),
    S("polar", T(3, 4, low=0.5), T(4, low=-9, high=9), dtypes=FLOATING),
]

# the gamma family and other special functions
SAMPLES += [S(op, T(3, 4), dtypes=REAL) for op in ("erf", "erfc", "i0")]
SAMPLES += [S("erf", T(70000, low=-6, high=6), grad=False, inplace=False, out=False, rtol=1e-5)]
SAMPLES += [S("erfinv", T(3, 4, low=-0.95, high=0.95), dtypes=REAL)]
SAMPLES += [S(op, T(3, 4, low=0.3, high=12), dtypes=REAL, rtol=1e-5) for op in ("lgamma", "digamma")]
SAMPLES += [S(op, T(3, 4, low=-5.9, high=-5.1), rtol=1e-5, id=op + "-negative") for op in ("lgamma", "digamma")]
SAMPLES += [S("polygamma", n, T(3, 4, low=0.5, high=12), dtypes=REAL, rtol=2e-5) for n in range(5)]
SAMPLES += [
    S("polygamma", T(3, 4, low=0.5, high=9), fn=lambda m, x: x.polygamma(2), rtol=2e-5, id="polygamma-method"),
    S("polygamma", T(3, low=0.5, high=9), fn=lambda m, x: x.polygamma_(1), grad=False, rtol=2e-5, id="polygamma-in-place"),
    S("polygamma", -1, T(3), grad=False),
]
SAMPLES += [
    S("mvlgamma", T(3, 4, low=3, high=9), p, dtypes=REAL if p == 1 else FLOATS + INTS, rtol=1e-5) for p in (1, 3, 5)
] + [S("mvlgamma", T(3), 0, grad=False)]
for op in ("igamma", "igammac"):
    SAMPLES += [
        S(op, T(3, 4, low=0.2, high=6, grad=False), T(4, low=0.2, high=9), dtypes=FLOATING, rtol=1e-5),
        S(
            op,
            T(values=[30.0, 300.0, 300.0, 2000.0, 500.0]),
            T(values=[31.0, 290.0, 340.0, 2010.0, 400.0]),
            grad=False,
            rtol=1e-5,
        ),
        S(op, T(values=[0.0, 0.0, 1.0, INF, INF, 1.0, -1.0]), T(values=[0.0, 1.0, 0.0, 1.0, INF, INF, 1.0]), grad=False),
    ]
SAMPLES += [
    S("logit", T(3, 4, low=0.05, high=0.95), dtypes=REAL),
    S("logit", T(3, 4, low=-0.2, high=1.2), eps=0.1, dtypes=REAL),
    S("logit", T(values=[-1.0, 0.0, 0.5, 1.0, 2.0, NAN]), grad=False),
    S("sinc", T(3, 4), dtypes=ALL),
    S("sinc", T(values=[0.0, 0.5, 1.0]), gradgrad=False),
]
SAMPLES += [S("xlogy", T(3, 4), T(4, low=0.3), dtypes=REAL), S("xlogy", T(3), 2.5, dtypes=REAL), S("xlogy", 2.5, T(3, low=0.3))]
SAMPLES += [S("xlogy", T(values=[0.0, 0.0, 2.0]), T(values=[0.0, NAN, 3.0]), gradgrad=False)]

# two to four operands
SAMPLES += [
    S("copysign", T(3, 4), T(4), dtypes=REAL),
    S("copysign", T(3, 4), -2.0, dtypes=REAL),
    S("copysign", T(values=[0.0, 1.0]), -1),
]
SAMPLES += [S("hypot", T(3, 4), T(4), dtypes=REAL)]
SAMPLES += [S(op, T(3, 4), T(4), dtypes=ALL) for op in ("fmax", "fmin")]
SAMPLES += [S(op, T(values=[1.0, 2.0, NAN, 1.0]), T(values=[1.0, 3.0, 2.0, NAN]), id=op + "-ties") for op in ("fmax", "fmin")]
SAMPLES += [
    S("heaviside", T(3, 4), T(4), dtypes=ALL, grad=False),
    S("heaviside", T(values=[0, 1, -1]), T(3), dtypes=REAL, grad=False),
]
SAMPLES += [S("heaviside", T(3), T(3, dtype="float64"), dtypes=("float32",), grad=False)]
for op in ("gcd", "lcm"):
    SAMPLES += [S(op, T(3, 4, low=-20, high=20), T(4, low=-20, high=20), dtypes=REAL, grad=False)]
    SAMPLES += [S(op, T(values=[0, 0, 12, 18, 100]), T(values=[0, 5, 0, 12, 75]), dtypes=INTS, grad=False)]
SAMPLES += [
    S("lerp", T(3, 4), T(4), T(3, 1, low=0, high=1), dtypes=REAL + COMPLEX),
    S("lerp", T(3, 4), T(4), 0.75, dtypes=REAL + COMPLEX),
    S("lerp", T(3), T(3, dtype="float64"), 0.5, dtypes=("float32",), grad=False),
    S("lerp", T(3), T(3), T(dtype="float64"), dtypes=("float32",), grad=False),
    S("lerp", T(3), T(3), 0.5j, grad=False),
]
for op in ("addcmul", "addcdiv"):
    SAMPLES += [
        S(op, T(3, 4), T(4), T(3, 1, low=0.5, high=3), dtypes=ALL),
        S(op, T(3, 4), T(4), T(3, 1, low=0.5, high=3), value=2.5, dtypes=ALL),
        S(op, T(3, 4), T(4), T(3, 1, low=0.5, high=3), value=1 + 2j, dtypes=FLOATS + COMPLEX),
    ]
SAMPLES += [S("addcmul", T(70000), T(70000), T(70000), value=0.5, grad=False)]
SAMPLES += [S("logaddexp", T(3, 4), T(4), dtypes=FLOATING + COMPLEX), S("logaddexp2", T(3, 4), T(4), dtypes=REAL)]
SAMPLES += [S("logaddexp", T(3), T(3), dtypes=INTS, grad=False)]
SAMPLES += [
    S("float_power", T(3, 4, low=0.5, high=3), T(4), dtypes=ALL),
    S("float_power", T(3, 4, low=0.5, high=3), 2.5, dtypes=ALL),
    S("float_power", 2, T(3), dtypes=REAL),
]
SAMPLES += [
    S("ldexp", T(3, 4), T(4), dtypes=ALL),
    S("ldexp", T(3, 4), T(4, dtype="int32", low=0, high=4), dtypes=REAL),
    S("ldexp", T(4), T(values=[-150, 150, 3, -3], dtype="int64"), grad=False),
]
SAMPLES += [
    S("frexp", T(3, 4), dtypes=FLOATING),
    S("frexp", T(values=[0.0, -0.0, 1e-42, INF, NAN, -6.0, 3e38]), grad=False),
    S("frexp", T(3), dtypes=INTS, grad=False),
]
SAMPLES += [S("nextafter", T(3, 4), T(4), dtypes=REAL, rtol=1e-9, atol=0)]
SAMPLES += [S("nextafter", T(values=FIRST), T(values=SECOND), dtypes=FLOATING, grad=False, rtol=1e-9, atol=0)]
SAMPLES += [
    S("nan_to_num", T(values=[NAN, INF, -INF, 1.0, -0.0]), dtypes=FLOATING),
    S("nan_to_num", T(values=[NAN, INF, -INF, 1.0]), 2.0, 3.0, -4.0, dtypes=FLOATING),
    S("nan_to_num", T(3, 4), dtypes=REAL),
    S("nan_to_num", T(3, 4), dtypes=COMPLEX, grad=False),
]

# steps and questions
SAMPLES += [S("frac", T(3, 4), dtypes=REAL), S("fix", T(3, 4), dtypes=REAL)]
SAMPLES += [S("round", T(3, 4, low=-2000, high=2000), decimals=d, dtypes=FLOATS + ("bfloat16", "int32")) for d in (0, 3, -3)]
for op in ("isposinf", "isneginf"):
    SAMPLES += [S(op, T(values=[INF, -INF, NAN, 0.0]), dtypes=FLOATING, grad=False), S(op, T(3), dtypes=ALL, grad=False)]
SAMPLES += [S("isreal", T(values=[1.0, NAN]), dtypes=ALL, grad=False), S("isreal", T(3), dtypes=COMPLEX, grad=False)]
SAMPLES += [
    S("resolve_neg", T(3), dtypes=ALL),
    S("is_neg", T(3), dtypes=ALL, grad=False),
    S("is_conj", T(3), dtypes=ALL, grad=False),
]
CLOSE = [1.0, 2.0, INF, NAN, INF, 1e-9, 0.0]
NEARLY = [1.0 + 1e-7, 2.1, INF, NAN, -INF, 0.0, 1e-7]
for op in ("isclose", "allclose"):
    SAMPLES += [
        S(op, T(values=CLOSE), T(values=NEARLY), dtypes=FLOATING, grad=False),
        S(op, T(values=CLOSE), T(values=NEARLY), equal_nan=True, dtypes=FLOATING, grad=False),
        S(op, T(values=CLOSE), T(values=NEARLY), 0.1, 0.0, grad=False),
        S(op, T(values=CLOSE), T(values=NEARLY), 0.0, 0.0, grad=False),
        S(op, T(3, 4), T(4), dtypes=ALL, grad=False),
        S(op, T(values=[1, 2, 100]), T(values=[1, 3, 101]), 1e-5, 1.0, dtypes=ALL, grad=False),
        S(op, T(3), T(3), -1.0, grad=False),
        S(op, T(3), T(3, dtype="float64"), dtypes=("float32",), grad=False),
    ]
SAMPLES += [
    S("equal", T(3, 4), T(3, 4), dtypes=ALL, grad=False),
    S("equal", T(values=[1.0, 2.0]), T(values=[1.0, 2.0]), dtypes=ALL, grad=False),
    S("equal", T(3), T(3, 1), grad=False),
    S("equal", T(0), T(0), grad=False),
    S("equal", T(values=[NAN]), T(values=[NAN]), grad=False),
]

SAMPLES += [
    S(
        "cube_",
        T(3, 4),
        fn=lambda m, x: x.clone().pow_(3) if m.__name__ == "torch" else x.clone().cube_(),
        dtypes=FLOATS + COMPLEX,
    )
]
SAMPLES += [S(op, T(3, 4), T(4), fn=lambda m, x, y, op=op: getattr(m, op[:-1])(x, y) if m.__name__ == "torch" else getattr(x.clone(), op)(y))
            for op in ("maximum_", "minimum_")]  # fmt: skip
