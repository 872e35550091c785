"""Random tensors: the same seed gives PyTorch's numbers. (test_random.py looks at orders of draws and at streams.)"""

from .sample import FLOATS, S, T


def seeded(op, *args, fn=None, id=None, **kwargs):  # noqa: A002
    """Compare values, which samples marked random do not: the seed is set here."""

    def run(m, *a, **k):
        m.manual_seed(3)
        return fn(m, *a, **k) if fn else getattr(m, op)(*a, **k)

    halves = {"rtol": 2e-3, "atol": 2e-3} if kwargs.get("dtype") in ("@float16", "@bfloat16") else {"rtol": 1e-5, "atol": 1e-6}
    return S(op, *args, fn=run, id=id or op, grad=False, **halves, **kwargs)


def filled(name, *args):
    """x.name(*args) on tensors of every layout."""
    return seeded(name, T(7, 5), fn=lambda m, x: getattr(x, name)(*args), dtypes=FLOATS + ("float16", "bfloat16"))


SAMPLES = [
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
    filled("uniform_"),
    filled("uniform_", -2, 3),
    filled("uniform_", 1, 0),
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
    seeded("dropout", T(7, 5), 0.4, True),
    seeded("dropout", T(7, 5), 0.0, True),
    seeded("dropout", T(7, 5), 1.0, True),
    seeded("dropout", T(7, 5), 0.4, False),
    seeded("dropout", T(7, 5), 1.5, True),
]
