"""Convolutions: windows of all kinds, groups, with and without a batch, what does not fit, channels last, and the edges of tiles."""

from ..sample import COMPLEX, HALVES, INTS, S, T

SIZES = {1: (9,), 2: (7, 9), 3: (5, 4, 6)}
ROUNDING = {"rtol": 1e-5, "atol": 1e-5}  # sums of products, in another order
SAMPLES = []


def conv(name, *tensors, **kwargs):
    return S(name, *tensors, **ROUNDING, **kwargs)


for n, size in SIZES.items():
    name, kernel = f"conv{n}d", (3,) * n
    x, alone, w, b = T(2, 4, *size), T(4, *size), T(6, 4, *kernel), T(6)
    half = {"dtypes": HALVES, "rtol": 2e-2, "atol": 2e-2, "grad": False}
    SAMPLES += [conv(name, x, w), conv(name, x, w, b), conv(name, alone, w, b), S(name, x, w, b, **half)]
    SAMPLES += [S(name, x, w, b, dtypes=INTS + ("bool",)), S(name, x, w, b, dilation=2, dtypes=INTS)]
    SAMPLES += [S(name, x, w, b, dtypes=COMPLEX, rtol=1e-5, atol=1e-5)]
    for window in (
        {"padding": 1},
        {"stride": 2, "padding": 2},
        {"stride": 3, "padding": 1, "dilation": 1},
        {"padding": 2, "dilation": 2},
        {"stride": 2, "padding": 3, "dilation": 2},
        {"padding": "same"},
        {"padding": "same", "dilation": 2},
        {"padding": "valid", "stride": 2},
    ):
        SAMPLES += [conv(name, x, w, b, **window)]
    SAMPLES += [
        conv(name, x, T(6, 4, *(2,) * n), padding="same"),
        conv(name, x, T(6, 4, *(4, 2, 1)[:n]), padding=(2, 1, 0)[:n]),
    ]
    SAMPLES += [conv(name, x, T(5, 4, *(1,) * n)), conv(name, x, T(5, 4, *(1,) * n), stride=2)]
    SAMPLES += [conv(name, x, T(6, 2, *kernel), b, groups=2, padding=1)]
    SAMPLES += [conv(name, x, T(4, 1, *kernel), groups=4, padding=1), conv(name, x, T(8, 1, *kernel), T(8), groups=4, stride=2)]
    SAMPLES += [
        conv(name, T(0, 4, *size), w, b),
        conv(name, T(2, 0, *size), T(6, 0, *kernel)),
        conv(name, T(2, 4, *(0,) * n), w),
    ]
    transposed, t = f"conv_transpose{n}d", T(4, 6, *kernel)
    SAMPLES += [conv(transposed, x, t), conv(transposed, alone, t, b), S(transposed, x, t, b, **half)]
    SAMPLES += [S(transposed, x, t, b, dtypes=INTS + ("bool",)), S(transposed, x, t, b, dtypes=COMPLEX, rtol=1e-5, atol=1e-5)]
    for window in (
        {"padding": 1},
        {"stride": 2},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": 3, "padding": 2, "dilation": 2},
        {"dilation": 2, "output_padding": 1},
        {"stride": 4},
    ):
        SAMPLES += [conv(transposed, x, t, b, **window)]
    SAMPLES += [conv(transposed, x, T(4, 3, *kernel), b, groups=2, stride=2), conv(transposed, x, T(4, 1, *kernel), groups=4)]
    SAMPLES += [
        conv(transposed, T(0, 4, *size), t, b),
        conv(transposed, T(2, 4, *(0,) * n), t),
        conv(transposed, x, t, output_padding=1),
    ]
    SAMPLES += [
        conv(transposed, x, t, padding=99),
        conv(transposed, x, t, stride=2, output_padding=-1),
        conv(transposed, x, T(3, 6, *kernel)),
    ]
    for wrong in (
        {"groups": 3},
        {"groups": 0},
        {"stride": 0},
        {"stride": (1,) * 4},
        {"padding": -1},
        {"dilation": 0},
        {"padding": "other"},
        {"padding": "same", "stride": 2},
    ):
        SAMPLES += [conv(name, x, w, **wrong)]
    SAMPLES += [
        conv(name, x, T(6, 3, *kernel)),
        conv(name, x, T(6, 4, *(99,) * n)),
        conv(name, x, w, T(5)),
        conv(name, x, w, T(6, 1)),
    ]
    SAMPLES += [conv(name, T(4), w), conv(name, x, T(6, 4, 3, 3, 3, 3)), conv(name, x, T(0, 4, *kernel))]
    SAMPLES += [conv(name, x, T(6, 4, *kernel, dtype="int64")), conv(name, x, w, T(6, dtype="float16"))]

# the edges of tiles and strips: many rows, wide rows, blocks of channels, all in float32 too
FEW = {"rtol": 1e-4, "atol": 1e-4, "gradgrad": False, "strides": False}
SAMPLES += [
    S("conv2d", T(1, 3, 33, 40), T(29, 3, 7, 7), T(29), 2, 3, **FEW),
    S("conv2d", T(2, 70, 9, 11), T(15, 70, 3, 3), None, 1, 1, **FEW),
    S("conv2d", T(1, 20, 5, 6), T(131, 20, 3, 3), None, 1, 1, **FEW),
    S("conv1d", T(1, 2, 2100), T(3, 2, 5), None, 1, 2, **FEW),
    S("conv_transpose2d", T(1, 5, 13, 17), T(5, 16, 4, 4), None, 2, 1, **FEW),
    S("conv2d", T(3, 17, 12, 12), T(14, 17, 1, 1), **FEW),
]


def last(name, form, **kwargs):
    def call(m, x, w):
        return getattr(m.nn.functional, name)(x.contiguous(memory_format=getattr(m, form)), w, **kwargs)

    return call


def last_weight(m, x, w):
    return m.nn.functional.conv2d(x, w.contiguous(memory_format=m.channels_last), padding=1)


for n, form in ((2, "channels_last"), (3, "channels_last_3d")):
    x, w = T(2, 4, *SIZES[n]), T(6, 4, *(3,) * n)
    SAMPLES += [
        S(f"conv{n}d", x, w, fn=last(f"conv{n}d", form, **window), **ROUNDING) for window in ({}, {"stride": 2, "padding": 1})
    ]
    SAMPLES += [S(f"conv_transpose{n}d", x, T(4, 6, *(3,) * n), fn=last(f"conv_transpose{n}d", form, stride=2), **ROUNDING)]
SAMPLES += [S("conv2d", T(2, 4, 5, 6), T(6, 4, 3, 3), fn=last_weight, **ROUNDING)]
SAMPLES += [S("conv2d", T(2, 20, 9, 6), T(18, 20, 3, 3), fn=last("conv2d", "channels_last", padding=1), rtol=1e-4, atol=1e-4)]

HOLES = [[[[float("inf"), 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, float("nan")], [0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, float("-inf")]]]]
SAMPLES += [
    S("conv2d", T(values=HOLES), T(1, 1, 2, 2), gradgrad=False, **ROUNDING)
]  # infinities and NaN do not leak into other outputs
