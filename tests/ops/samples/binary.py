"""Ops of two operands, clamp and where."""

from .sample import ALL, COMPLEX, FLOATS, INTS, REAL, S, T

INF, NAN = float("inf"), float("nan")
NOT_HALVES = tuple(d for d in ALL if d not in ("float16", "bfloat16"))  # PyTorch computes complex32 here, Lucid does not
ARITHMETIC = ["add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge", "not_equal", "less", "less_equal", "greater", "greater_equal"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
LOGIC = ["logical_and", "logical_or", "logical_xor"]
SHAPES = [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), ()), ((), (3,)), ((0, 4), (4,)), ((5, 3), (5, 1))]
SPECIAL_X = [0.0, -0.0, 1.0, INF, -INF, NAN, 2.0, -7.0, 7.0, 5.5, -5.5]
SPECIAL_Y = [1.0, 0.0, NAN, INF, 3.0, 1.0, -INF, 3.0, -3.0, -2.0, 2.0]


def away_from_zero(*shape, dtype=None):
    return T(*shape, low=0.5, high=3.0, dtype=dtype)


SAMPLES = []
for op in ARITHMETIC:
    SAMPLES += [
        S(op, T(*a), away_from_zero(*b), dtypes=ALL, id=f"{op}-{a}-{b}")
        for a, b in (SHAPES if op in ("add", "div") else SHAPES[:3])
    ]
    SAMPLES += [S(op, T(3, 4), n, dtypes=ALL, id=f"{op}-{n}") for n in (2, 2.5)]
    SAMPLES += [S(op, T(3, 4), True, dtypes=ALL, grad=not op.startswith("sub"), id=f"{op}-True")]
    SAMPLES += [S(op, T(3, 4), 1 + 2j, dtypes=NOT_HALVES, id=f"{op}-complex")]
    SAMPLES += [S(op, T(3, 4), away_from_zero(4, dtype=d), dtypes=ALL, id=f"{op}-with-{d}") for d in ("int32", "float64")]
    SAMPLES += [S(op, T(values=SPECIAL_X), T(values=SPECIAL_Y), grad=False, id=op + "-special")]
SAMPLES += [
    S("add", T(70000), T(70000), grad=False),
    S("mul", T(300, 300), T(300), grad=False),
    S("add", T(300, 1), T(1, 300), grad=False),
]
for op in ("add", "sub", "subtract"):
    SAMPLES += [S(op, T(3, 4), T(4), alpha=a, dtypes=ALL, id=f"{op}-alpha-{a}") for a in (2, -1.5)]
    SAMPLES += [S(op, T(3, 4), T(4), alpha=a, dtypes=NOT_HALVES, grad=False, id=f"{op}-alpha-{a}") for a in (True, 1 + 2j)]
    SAMPLES += [S(op, T(3, 4), T(4), alpha=1 + 2j, dtypes=COMPLEX, id=f"{op}-alpha-complex")]
SAMPLES += [S("rsub", T(3), 2, dtypes=ALL), S("rsub", T(3), T(3), alpha=3, dtypes=ALL)]
SAMPLES += [S(op, 2, T(3), dtypes=REAL, id=f"{op}-number-first") for op in ("add", "sub", "mul", "div", "pow")]
SAMPLES += [
    S(op, 2, away_from_zero(3), dtypes=FLOATS, grad=False, id=f"{op}-number-first") for op in ("remainder", "floor_divide")
]

for op in ("floor_divide", "remainder", "fmod"):
    grad = op != "floor_divide"
    SAMPLES += [S(op, T(values=[7.0, -7.0, 5.0, -5.0]), T(values=[3.0, 3.0, -2.0, -2.0]), dtypes=REAL, grad=grad)]
    SAMPLES += [S(op, T(3, 4), away_from_zero(4), dtypes=REAL, grad=grad), S(op, T(3, 4), 3, dtypes=REAL, grad=grad)]
    SAMPLES += [
        S(op, T(3, 4), 2.5, dtypes=REAL, grad=grad),
        S(op, T(values=[1, 2]), T(values=[1, 0]), dtypes=INTS, grad=False, id=op + "-by-zero"),
    ]
    SAMPLES += [S(op, T(values=SPECIAL_X), T(values=SPECIAL_Y), grad=False, id=op + "-special")]
for mode in (None, "trunc", "floor"):
    SAMPLES += [
        S(
            "div",
            T(values=[7.0, -7.0, 5.0, -5.0]),
            T(values=[3.0, 3.0, -2.0, -2.0]),
            rounding_mode=mode,
            dtypes=REAL,
            id=f"div-{mode}",
        )
    ]
SAMPLES += [S("div", T(3), T(3), rounding_mode="up", grad=False)]

SAMPLES += [S("pow", T(3, 4, low=0.5, high=2), T(4, low=-1, high=2), dtypes=FLOATS + COMPLEX + ("float16",))]
SAMPLES += [S("pow", T(3, 4, low=0.5, high=3), e, dtypes=ALL, id=f"pow-{e}") for e in (0, 1, 2, 3, -1, 0.5, -0.5, 2.5, -2, 0.1)]
SAMPLES += [
    S("pow", T(3, 4, low=0.5, high=3), 1 + 1j, dtypes=NOT_HALVES),
    S("pow", 1 + 1j, T(3, 4), dtypes=NOT_HALVES, strides=False),
]
SAMPLES += [S("pow", T(values=[0.0, 1.0, 2.0, -2.0]), e, id=f"pow-at-zero-{e}", gradgrad=False) for e in (0, 1, 2, 3)]
SAMPLES += [S("pow", T(values=[0.0, 1.0, 2.0]), T(values=[0.0, 0.0, 2.0]), gradgrad=False)]
SAMPLES += [S("pow", T(values=[-2, -1, 0, 1, 2, 3]), T(values=[3, 2, 1, 0, 4, 5]), dtypes=INTS, grad=False)]
SAMPLES += [S("pow", T(values=[-2, -1, 1, 3]), T(values=[-3, -2, -1, -4]), dtypes=INTS[1:], grad=False)]

for op in ("maximum", "minimum"):
    SAMPLES += [S(op, T(3, 4), T(4), dtypes=REAL), S(op, T(values=SPECIAL_X), T(values=SPECIAL_Y), grad=False)]
    SAMPLES += [
        S(op, T(3), T(3), dtypes=COMPLEX, grad=False),
        S(op, T(values=[1.0, 2.0, 3.0]), T(values=[1.0, 3.0, 2.0]), id=op + "-ties"),
    ]
SAMPLES += [S("max", T(3, 4), T(4), dtypes=REAL), S("min", T(3, 4), T(4), dtypes=REAL)]

for op in ("clamp", "clip"):
    SAMPLES += [S(op, T(3, 4), -0.5, 0.75, dtypes=REAL), S(op, T(3, 4), min=0, dtypes=REAL), S(op, T(3, 4), max=1, dtypes=REAL)]
    SAMPLES += [
        S(op, T(3, 4), T(4, low=-1, high=0), T(4, low=-0.5, high=1), dtypes=REAL, method=False),
        S(op, T(3, 4), T(3, 1), None, dtypes=REAL),
    ]
    SAMPLES += [
        S(op, T(3, 4), None, T(4), dtypes=REAL),
        S(op, T(3), grad=False),
        S(op, T(values=[1.0, NAN, -1.0, 0.5, 0.0]), 0.0, 0.5),
    ]
SAMPLES += [S("clamp", T(3), NAN, 1.0, grad=False), S("clamp", T(3), 2, 1)]
SAMPLES += [S("clamp_min", T(3, 4), 0.25, dtypes=REAL), S("clamp_min", T(3, 4), T(4), dtypes=REAL)]
SAMPLES += [S("clamp_max", T(3, 4), 0.25, dtypes=REAL), S("clamp_max", T(3, 4), T(4), dtypes=REAL)]

SAMPLES += [S("clamp", T(3), 0, 1, dtypes=COMPLEX, grad=False), S("clamp_min", T(3), 0, dtypes=COMPLEX, grad=False)]

for op in COMPARISONS:
    SAMPLES += [S(op, T(3, 4), T(4), dtypes=ALL, grad=False), S(op, T(3, 4), 1, dtypes=ALL, grad=False)]
    SAMPLES += [S(op, T(3, 4), 0.5, dtypes=ALL, grad=False), S(op, T(values=SPECIAL_X), T(values=SPECIAL_Y), grad=False)]
SAMPLES += [S(op, T(3, 4), T(4), dtypes=ALL, grad=False) for op in LOGIC + BITS]
SAMPLES += [S(op, T(3, 4), 6, dtypes=REAL, grad=False) for op in BITS]
for op in ("bitwise_left_shift", "bitwise_right_shift"):
    SAMPLES += [S(op, T(values=[1, 5, 100, 77, 3]), T(values=[0, 1, 3, 7, 64]), dtypes=REAL, grad=False)]
    SAMPLES += [
        S(op, T(values=[-1, -5, 100, -77, 3]), T(values=[0, 1, -3, 70, 31]), dtypes=INTS[1:], grad=False),
        S(op, T(4), 2, dtypes=INTS, grad=False),
    ]

SAMPLES += [
    S("where", T(3, 4, dtype="bool"), T(3, 4), T(4), dtypes=ALL),
    S("where", T(3, 1, dtype="bool"), T(3, 4), 2.5, dtypes=ALL),
    S("where", T(4, dtype="bool"), 1, T(3, 4), dtypes=ALL),
    S("where", T(4, dtype="bool"), 1, 2, dtypes=("float32",), grad=False),
    S("where", T(4, dtype="bool"), T(4, dtype="float64"), T(4), dtypes=ALL, grad=False),
    S("where", T(3, dtype="float32"), T(3), T(3), grad=False),
    S("where", T(3, 4), T(3, 4, dtype="bool"), T(4), dtypes=ALL, fn=lambda m, x, c, y: x.where(c, y), id="where-method"),
]
