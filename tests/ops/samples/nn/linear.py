"""Linear layers: any rank of the input, with and without bias, fused activations and low-rank corrections; what does not fit."""

from ..sample import ALL, COMPLEX, FLOATS, HALVES, INTS, S, T

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


def coded(bits, group, bias=True):
    """quantized_linear, and for PyTorch the same from its parts. Codes are fixed: only x and the bias have gradients."""

    def call(m, x, *more):
        n, k = 6, x.shape[-1]
        count = n * k if bits == 8 else n * k // 2
        codes = (m.arange(count) * 37 % 251).to(m.uint8 if bits == 4 else m.int16)
        codes = (codes if bits == 4 else (codes - 125).to(m.int8)).view(n, -1)
        scales = 0.001 + 0.001 * m.arange(n * (k // group), dtype=m.float32).view(n, -1)
        f = m.nn.functional
        given = more[0] if bias else None
        if hasattr(f, "quantized_linear"):
            return f.quantized_linear(x, codes, scales, given, group)
        given = None if given is None else given.to(x.dtype)
        if bits == 4:
            blocks = codes.view(n, k // 32, 16)
            codes = m.cat([blocks & 15, blocks >> 4], -1).float() - 8
        w = (codes.float().reshape(n, k // group, group) * scales[:, :, None]).reshape(n, k)
        return f.linear(x, w.to(x.dtype), given)

    return call


def weight_of(bits):
    def call(m, x):
        codes = (m.arange(6 * 32) * 37 % 251).to(m.uint8)
        codes = codes.view(6, 32) if bits == 4 else (codes.to(m.int16) - 125).to(m.int8).view(3, 64)
        f = m.nn.functional
        if hasattr(f, "dequantize_weight"):
            return f.dequantize_weight(codes, x.float().view(codes.shape[0], -1), 64 if bits == 4 else 32)
        if bits == 4:
            codes = m.cat([codes.view(6, 2, 16) & 15, codes.view(6, 2, 16) >> 4], -1).float() - 8
        return (codes.float().reshape(x.numel(), -1) * x.float().reshape(-1, 1)).reshape(-1, 64)

    return call


SAMPLES += [
    S(
        "quantized_linear",
        T(*shape, k),
        *([T(6)] if bias else []),
        fn=coded(bits, group, bias),
        id=f"coded{bits}-{i}",
        rtol=1e-4,
        atol=1e-4,
    )
    for i, (bits, shape, k, group, bias) in enumerate(
        [
            (8, (2, 3), 64, 64, True),
            (8, (), 96, 32, True),
            (8, (9,), 40, 20, False),
            (8, (5,), 7, 7, True),
            (4, (2, 3), 64, 64, True),
            (4, (), 96, 32, True),
            (4, (9,), 64, 32, False),
        ]
    )
]
SAMPLES += [S("dequantize_weight", T(6), fn=weight_of(bits), id=f"codes{bits}", grad=False) for bits in (8, 4)]
