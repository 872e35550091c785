"""Linear layers: any rank of the input, with and without bias, fused activations and low-rank corrections; what does not fit."""

from .sample import ALL, COMPLEX, FLOATS, HALVES, INTS, S, T

MOST = HALVES + FLOATS
SAMPLES = [S("linear", T(*x, 3), T(4, 3), T(4), dtypes=ALL, out=len(x) < 2) for x in ((5,), (), (2, 3), (2, 1, 2, 1))]
SAMPLES += [S("linear", T(*x, 3), T(4, 3), T(4), dtypes=INTS + MOST + COMPLEX) for x in ((0,), (2, 0))]
SAMPLES += [
    S("linear", T(5, 3), T(4, 3), dtypes=MOST + COMPLEX),
    S("linear", T(5, 3), T(3)),
    S("linear", T(2, 5, 3), T(3), T(), out=False),
    S("linear", T(3), T(3)),
    S("linear", T(5, 3), T(4, 3), T(1)),
    S("linear", T(5, 0), T(4, 0), T(4)),
    S("linear", T(5, 3), T(0, 3), T(0)),
    S("linear", T(5, 40), T(70, 40), T(70), atol=6e-6),  # sums of forty are not fused everywhere
    S("linear", T(5, 40), T(70, 40), T(70), dtypes=(*HALVES, "float64")),
    S("linear", T(40, 300), T(70, 300), T(70), dtypes=MOST, rtol=1e-2, atol=1e-1),
    S("linear", T(5, 3), T(4, 2), T(4)),
    S("linear", T(5, 3), T(4, 3), T(3)),
    S("linear", T(5, 3), T(4, 3, dtype="float64"), dtypes=("float32",)),
    S(
        "linear",
        T(4, 2, 3),
        T(5, 3),
        T(5),
        fn=lambda m, x, w, b: m.nn.functional.linear(x.transpose(0, 1), w, b),
        id="transposed",
    ),
    S("linear", T(4, 3), T(5, 3), fn=lambda m, x, w: m.nn.functional.linear(x.expand(2, 4, 3), w), id="expanded"),
    S("linear", T(3, 4), T(3, 5), fn=lambda m, x, w: m.nn.functional.linear(x.t(), w.t()), id="both-transposed"),
    S(
        "linear",
        T(2, 3, 4, 5),
        T(6, 5),
        fn=lambda m, x, w: m.nn.functional.linear(x.permute(1, 2, 0, 3), w),
        id="permuted",
    ),
]


def fused(name, apart, **kwargs):
    """In PyTorch, from its parts."""
    return lambda m, *t: getattr(m.nn.functional, name)(*t, **kwargs) if hasattr(m.nn.functional, name) else apart(m, *t)


def unfused(activation, scale=1.0):
    def call(m, x, w, b=None, residual=None):
        f = m.nn.functional
        y = f.linear(x, w) * scale
        y = y if b is None else y + b
        y = {
            "none": lambda z: z,
            "relu": f.relu,
            "gelu": f.gelu,
            "gelu_tanh": lambda z: f.gelu(z, approximate="tanh"),
            "silu": f.silu,
        }[activation](y)
        return y if residual is None else y + residual

    return call


def with_residual(activation, scale):
    apart = unfused(activation, scale)

    def call(m, x, w, b, residual):
        if hasattr(m.nn.functional, "fused_linear"):
            return m.nn.functional.fused_linear(x, w, b, activation, scale, residual)
        return apart(m, x, w, b, residual)

    return call


LAYER = T(2, 3, 5), T(4, 5), T(4)
LOOSE = {"rtol": 2e-2, "atol": 2e-2}
for act in ("none", "relu", "gelu", "gelu_tanh", "silu"):
    SAMPLES += [
        S(
            "fused_linear",
            *LAYER,
            fn=fused("fused_linear", unfused(act), activation=act),
            dtypes=MOST,
            id=f"fused-{act}",
            **LOOSE,
        ),
        S("fused_linear", T(3, 5), T(4, 5), fn=fused("fused_linear", unfused(act), activation=act), id=f"fused-{act}-plain"),
        S("fused_linear", T(3, 5), T(4, 5), T(4), T(3, 4), fn=with_residual(act, 0.5), id=f"fused-{act}-residual"),
        S(
            "fused_linear",
            T(50, 40),
            T(90, 40),
            T(90),
            T(50, 90),
            fn=with_residual(act, 2.0),
            id=f"fused-{act}-larger",
            rtol=1e-4,
            atol=1e-4,
        ),
    ]
SAMPLES += [
    S("fused_linear_relu", *LAYER, fn=fused("fused_linear_relu", unfused("relu")), dtypes=MOST, **LOOSE),
    S("fused_linear_relu", T(3, 5), T(4, 5), fn=fused("fused_linear_relu", unfused("relu")), id="relu-plain"),
    S("fused_linear_gelu", *LAYER, fn=fused("fused_linear_gelu", unfused("gelu")), dtypes=MOST, **LOOSE),
    S("fused_linear_gelu", *LAYER, fn=fused("fused_linear_gelu", unfused("gelu_tanh"), approximate="tanh"), id="gelu-tanh"),
]


def lora(scale):
    def call(m, x, w, b, down, up):
        f = m.nn.functional
        if hasattr(f, "lora_linear"):
            return f.lora_linear(x, w, b, down, up, scale)
        return f.linear(x, w, b) + scale * ((x @ down) @ up)

    return call


SAMPLES += [
    S("lora_linear", *LAYER, T(5, 2), T(2, 4), fn=lora(0.5), dtypes=MOST, id="lora", rtol=3e-2, atol=6e-2),
    S("lora_linear", T(3, 5), T(4, 5), T(4), T(5, 1), T(1, 4), fn=lora(1.0), dtypes=FLOATS + COMPLEX, id="lora-one"),
    S("lora_linear", T(40, 50), T(70, 50), T(70), T(50, 8), T(8, 70), fn=lora(2.0), id="lora-larger", rtol=1e-4, atol=1e-4),
    S("lora_linear", T(0, 5), T(4, 5), T(4), T(5, 2), T(2, 4), fn=lora(1.0), id="lora-empty"),
]
