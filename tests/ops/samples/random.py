"""Random tensors: the same seed gives PyTorch's numbers. (test_random.py looks at orders of draws and at streams.)"""

from .sample import FLOATS, INTS, S, T


def seeded(op, *args, fn=None, id=None, **kwargs):  # noqa: A002
    """Compare values, which samples marked random do not: the seed is set here."""

    def run(m, *a, **k):
        m.manual_seed(3)
        return fn(m, *a, **k) if fn else getattr(m, op)(*a, **k)

    tolerance = (
        {"rtol": 2e-3, "atol": 2e-3} if kwargs.get("dtype") in ("@float16", "@bfloat16") else {"rtol": 1e-5, "atol": 1e-6}
    )
    return S(op, *args, fn=run, id=id or op, grad=False, **tolerance, **kwargs)


def filled(name, *args):
    """x.name(*args) on tensors of every layout."""
    return seeded(name, T(7, 5), fn=lambda m, x: getattr(x, name)(*args), dtypes=FLOATS + ("float16", "bfloat16"))


def dropped(op, *args):
    """Dropout's gradient: the seed makes it a function."""
    return S(op, *args, fn=lambda m, *a: m.manual_seed(3) and getattr(m, op)(*a), dtypes=("float64",), id=op + "_grad")


def private(op):
    """A function that PyTorch has in its main namespace, and Lucid in that of the ops."""
    return lambda m, *a: (getattr(m, op, None) or getattr(m._C, op))(*a)


def within(m, x, low, high, kind):
    """PyTorch has comparisons for it."""
    if hasattr(m._C, "_within"):
        return m._C._within(x, low, high, kind)
    inside = (x > low if kind & 1 else x >= low) & (x < high if kind & 2 else x <= high)
    return bool((inside & (x % 1 == 0) if kind & 4 else inside).all())


GAMMA_GRAD, DIRICHLET_GRAD = (
    {"fn": private(op), "grad": False, "rtol": 2e-2, "atol": 3e-3} for op in ("_standard_gamma_grad", "_dirichlet_grad")
)
SAMPLES = [
    *[dropped(op, T(3, 4, 5), 0.4, True) for op in ("dropout", "feature_dropout", "alpha_dropout", "native_dropout")],
    S(
        "native_dropout_backward",
        T(3, 4),
        T(3, 4, dtype="bool"),
        2.5,
        fn=lambda m, *a: (
            m.native_dropout_backward if hasattr(m, "native_dropout_backward") else m.ops.aten.native_dropout_backward
        )(*a),
    ),
    *[seeded(op, size) for op in ("rand", "randn") for size in ((), (3,), (15,), (16,), (40,), (3, 7), (100, 101), (0,))],
    *[
        seeded(op, (21,), dtype="@" + d)
        for op in ("rand", "randn")
        for d in ("float64", "float16", "bfloat16", "complex64", "int64")
    ],
    *[seeded(op, T(3, 5), dtypes=FLOATS) for op in ("rand_like", "randn_like")],
    seeded("normal", 1.0, 2.0, (5, 5)),
    seeded("randint", 10, (3, 4)),
    seeded("randint", -5, 10, (3, 4)),
    seeded("randint", 0, 2**40, (30,)),
    seeded("randint", 10, (30,), dtype="@float32"),
    seeded("randint", 2, (30,), dtype="@bool"),
    seeded("randint", 300, (30,), dtype="@uint8"),
    seeded("randint", 5, 5, (2,)),
    seeded("randint_like", T(3, 4), 5),
    seeded("randint_like", T(3, 4), 3, 7),
    *[seeded("randperm", n) for n in (0, 1, 5, 1000)],
    seeded("randperm", 7, dtype="@int32"),
    seeded("randperm", -1),
    *[seeded("randperm", 7, dtype="@" + d) for d in ("bool", "complex64", "uint16", "float16")],
    *[seeded("randint", 7, (30,), dtype="@" + d) for d in ("uint16", "uint32", "uint64", "complex64")],
    seeded("randint", 2**40, (30,), dtype="@uint64"),
    seeded("randint", 70000, (30,), dtype="@uint16"),
    *[seeded(op, (21,), dtype="@complex32") for op in ("rand", "randn")],
    *[seeded(op, T(3, 5), dtypes=("complex64",)) for op in ("rand_like", "randn_like")],
    filled("uniform_"),
    filled("uniform_", -2, 3),
    filled("uniform_", 1, 0),
    filled("uniform_", -5e4, 6e4),
    filled("uniform_", 0, float("inf")),
    filled("uniform_", float("nan"), 1),
    filled("normal_"),
    filled("normal_", 2, 0.5),
    filled("normal_", 0, -1),
    filled("exponential_"),
    filled("exponential_", 0.5),
    filled("exponential_", -1),
    filled("bernoulli_"),
    filled("bernoulli_", 0.2),
    filled("bernoulli_", 2),
    filled("random_", 10),
    filled("random_", 5, 100),
    filled("random_"),
    seeded("random_", T(7, 5), fn=lambda m, x: x.random_(), dtypes=("int64", "int32", "int8", "uint8", "bool")),
    seeded("bernoulli", T(7, 5, low=0.0, high=1.0), dtypes=FLOATS, out=False),
    seeded("bernoulli_", T(7, 5), T(5, low=0.0, high=1.0), fn=lambda m, x, p: x.bernoulli_(p)),
    seeded("bernoulli", T(7, 5), 0.2, dtypes=FLOATS, out=False),
    seeded("bernoulli", T(7, 5, dtype="int64"), 0.2),
    seeded("bernoulli", T(7, 5), 2.0),
    filled("cauchy_"),
    filled("cauchy_", 1, 0.5),
    filled("cauchy_", 1, 0),
    seeded("cauchy_", T(7, 5, dtype="int64"), fn=lambda m, x: x.cauchy_()),
    filled("log_normal_"),
    filled("log_normal_", 0, 0.5),
    filled("log_normal_", 0, -1),
    filled("geometric_", 0.3),
    filled("geometric_", 0.0),
    seeded("geometric_", T(7, 5), fn=lambda m, x: x.geometric_(0.3), dtypes=INTS + ("bool", "complex64")),
    *[seeded("normal", T(5, 7), std) for std in (2.0, 0.0, -1.0)],
    seeded("normal", T(3)),
    seeded("normal", 1.5, T(5, 7, low=0.0)),
    seeded("normal", T(5, 7), T(5, 7, low=0.0), dtypes=FLOATS + ("complex64", "int64"), out=False),
    seeded("normal", T(5, 1), T(7, low=0.0)),
    seeded("normal", T(5, 7), T(5, 7)),
    *[
        seeded("multinomial", T(*shape, low=0.0), n, replacement, dtypes=FLOATS + ("float16", "bfloat16"), out=False)
        for shape in ((6,), (5, 6))
        for n, replacement in ((1, False), (3, False), (6, False), (1, True), (3, True), (20, True), (7, False), (0, False))
    ],
    *[seeded("multinomial", T(2, 3), 2, r) for r in (False, True)],
    *[
        seeded("multinomial", T(3, values=[0.0, v, w]), 2, r)
        for v, w in ((0.0, 0.0), (1.0, float("inf")), (1.0, float("nan")), (1.0, 0.0))
        for r in (False, True)
    ],
    *[seeded("multinomial", T(*shape, low=0.0), 1) for shape in ((), (0,), (0, 3), (1, 2, 3))],
    seeded("multinomial", T(3, dtype="int64"), 1),
    seeded("poisson", T(5, 7, low=0.0, high=30.0), dtypes=FLOATS + INTS),
    seeded("poisson", T(5, 7)),
    seeded("binomial", T(5, 7, low=0.0, high=100.0), T(5, 7, low=-0.1, high=1.1), dtypes=FLOATS + ("float16", "int64")),
    seeded("binomial", T(5, 7, low=0.0, high=10.0), T(7, low=-0.1, high=1.1), dtypes=FLOATS),
    seeded("binomial", T(7, low=0.0, high=10.0), T(5, 7, low=0.0, high=1.0)),
    seeded("binomial", T(7, dtype="float64"), T(7, dtype="float32")),
    *[
        seeded(op, T(5, 7, low=low, high=high), fn=private(op), dtypes=FLOATS + ("float16", "int64"))
        for op in ("_standard_gamma", "_sample_dirichlet")
        for low, high in ((0.01, 2.0), (1.0, 100.0), (-1.0, 1.0))
    ],
    # PyTorch's are approximations: tests/distributions/test_implicit_gradients.py compares with derivatives of quantiles.
    *[
        S("_standard_gamma_grad", T(5, 7, low=a, high=b), T(5, 7, low=a, high=b), **GAMMA_GRAD)
        for a, b in ((0.1, 3.0), (4.0, 30.0))
    ],
    S(
        "_dirichlet_grad",
        T(5, 7, low=0.05, high=0.95),
        T(5, 7, low=0.2, high=8.0),
        T(5, 7, low=9.0, high=12.0),
        **DIRICHLET_GRAD,
    ),
    *[
        S("_within", T(5, 7, low=0.0, high=1.0), *bounds, kind, fn=within, grad=False, dtypes=(*FLOATS, "float16", "int64"))
        for bounds in ((0.0, 1.0), (-1.0, 2.0), (0.5, 2.0))
        for kind in (0, 1, 2, 3, 4)
    ],
    *[
        seeded(op + form, T(3, 4, 5), p, train, out=False, dtypes=FLOATS + ("float16",))
        for op in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
        for form in ("", "_")
        for p, train in ((0.4, True), (0.4, False), (0.0, True), (1.0, True), (1.5, True))
    ],
    seeded("feature_dropout", T(4), 0.4, True),
    *[
        seeded("native_dropout", T(3, 4), p, train, dtypes=FLOATS + ("float16", "int64"))
        for p, train in ((0.4, True), (0.4, None), (0.4, False), (1.0, True), (1.5, True))
    ],
    seeded("native_dropout", T(0, 4), 0.4, True),
    seeded("dropout", T(7, 5), 0.4, True),
    seeded("dropout", T(7, 5), 0.0, True),
    seeded("dropout", T(7, 5), 1.0, True),
    seeded("dropout", T(7, 5), 0.4, False),
    seeded("dropout", T(7, 5), 1.5, True),
]
