"""Images: interpolation, padding, pixel shuffles; adaptive, fractional and lp pooling, unpooling."""

from ..sample import FLOATS, HALVES, S, T

WITH_HALVES = HALVES + FLOATS
BYTES = (*WITH_HALVES, "uint8")
IMAGES = {1: T(2, 3, 7), 2: T(2, 3, 5, 7), 3: T(1, 2, 3, 4, 5)}
MODES = [("nearest", (1, 2, 3)), ("nearest-exact", (1, 2, 3)), ("area", (1, 2, 3)), ("linear", (1,)), ("bilinear", (2,))]
MODES += [("bicubic", (2,)), ("trilinear", (3,)), ("unknown", (2,))]
CORNERS = {"linear", "bilinear", "bicubic", "trilinear"}


def last(name, **kwargs):
    """Channels-last inputs give channels-last results."""

    def call(m, x):
        lies = m.channels_last if x.ndim == 4 else m.channels_last_3d
        return getattr(m.nn.functional, name)(x.contiguous(memory_format=lies), **kwargs)

    return call


SAMPLES = []
for mode, dims in MODES:
    for n in dims:
        for align in (None, False, True) if mode in CORNERS else (None, True):
            given = {"mode": mode, "align_corners": align}
            sizes = [{"size": 4}, {"size": 9}, {"scale_factor": 1.7}, {"scale_factor": 0.6, "recompute_scale_factor": True}]
            SAMPLES += [S("interpolate", IMAGES[n], **given, **size) for size in sizes]
        SAMPLES += [S("interpolate", IMAGES[n], size=6, mode=mode, dtypes=("int64", *BYTES), grad=False, id=f"{mode}-dtypes")]
    if mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        SAMPLES += [
            S("interpolate", IMAGES[2], fn=last("interpolate", size=(4, 9), mode=mode), dtypes=BYTES, id=f"{mode}-last")
        ]
    if mode in ("nearest", "trilinear"):
        SAMPLES += [S("interpolate", IMAGES[3], fn=last("interpolate", size=(4, 9, 3), mode=mode), id=f"{mode}-last")]
for mode in ("bilinear", "bicubic", "lanczos"):
    for align in (None, True):
        for size in ({"size": (3, 4)}, {"size": (2, 20)}, {"scale_factor": 0.4}, {"scale_factor": (2.5, 0.3)}):
            given = {"mode": mode, "align_corners": align, "antialias": True, **size}
            SAMPLES += [S("interpolate", IMAGES[2], dtypes=BYTES, **given)]
    SAMPLES += [
        S("interpolate", IMAGES[2], fn=last("interpolate", size=(3, 9), mode=mode, antialias=True), id=f"{mode}-aa-last")
    ]
SAMPLES += [
    # blocks of permuted results, their ends, and rows that are too short for them
    S("interpolate", T(1, 2, 37, 67), size=size, mode=mode, rtol=1e-5, atol=1e-5)
    for size in ((74, 134), (50, 90), (20, 40), (36, 133), (9, 10), (37, 200))
    for mode in ("nearest", "bilinear", "bicubic")
]
SAMPLES += [S("interpolate", T(1, 1, 4, 33), size=(8, 66), mode="bilinear", rtol=1e-5, atol=1e-5)]
SAMPLES += [
    S("interpolate", IMAGES[2]),
    S("interpolate", IMAGES[2], 4, 2.0),
    S("interpolate", IMAGES[2], (4, 4, 4)),
    S("interpolate", IMAGES[2], scale_factor=(1.0, 2.0, 3.0)),
    S("interpolate", IMAGES[2], size=0),
    S("interpolate", IMAGES[2], size=-3),
    S("interpolate", IMAGES[2], scale_factor=0.01),
    S("interpolate", IMAGES[2], scale_factor=-1.0),
    S("interpolate", IMAGES[2], size=3, recompute_scale_factor=True),
    S("interpolate", IMAGES[2], size=3, antialias=True),
    S("interpolate", IMAGES[2], size=3, mode="lanczos"),
    S("interpolate", IMAGES[1], size=3, mode="bilinear"),
    S("interpolate", IMAGES[3], size=3, mode="linear"),
    S("interpolate", T(2, 3), size=3),
    S("interpolate", T(2, 0, 4, 4), size=3),
    S("interpolate", T(0, 3, 4, 4), size=3, mode="bilinear", grad=False),
    S("interpolate", T(2, 3, 0, 4), size=3),
    S(
        "interpolate",
        T(values=[[[[1.0, float("nan"), 3.0], [float("inf"), 1.0, -float("inf")]]]]),
        size=5,
        mode="bilinear",
        grad=False,
    ),
    S("upsample", IMAGES[2], 4),
    S("upsample", IMAGES[2], scale_factor=2.0, mode="bilinear", align_corners=True),
    S("upsample_nearest", IMAGES[2], scale_factor=2),
    S("upsample_bilinear", IMAGES[2], (3, 9)),
]


# ---- rearranged channels ----
PLAIN = ("bool", "int32", "complex64", *WITH_HALVES)
for name, shapes in {
    "pixel_shuffle": ((2, 8, 3, 2), (9, 2, 2), (1, 2, 4, 2, 3)),
    "pixel_unshuffle": ((2, 3, 6, 4), (2, 4, 2), (1, 2, 4, 2, 6)),
}.items():
    for shape in shapes:
        SAMPLES += [S(name, T(*shape), factor, dtypes=PLAIN if factor == 2 else FLOATS) for factor in (1, 2, 3, 0, -1)]
    SAMPLES += [S(name, T(4, 4), 2), S(name, T(2, 4, 4, 4), 1 << 40)]
    key = "upscale_factor" if name == "pixel_shuffle" else "downscale_factor"
    SAMPLES += [S(name, T(2, 8, 6, 4), fn=last(name, **{key: 2}), id=f"{name}-last")]
for name in ("channel_shuffle", "native_channel_shuffle"):
    SAMPLES += [S(name, T(2, 6, 3, 2), groups, dtypes=PLAIN if groups == 2 else FLOATS) for groups in (1, 2, 3, 6, 4, 0)]
    SAMPLES += [S(name, T(2, 6), 2), S(name, T(2, 4, 3), 2), S(name, T(1, 4, 2, 3, 2), 2)]
SAMPLES += [S("pixel_shuffle", T(2, 0, 4, 4), 2, grad=False)]  # PyTorch gives gradients, and unshuffled pixels, another shape
for sample in SAMPLES:
    sample.grad &= sample.op != "native_channel_shuffle"  # PyTorch has no gradient of it
SAMPLES += [S("channel_shuffle", T(2, 6, 3, 2), fn=last("channel_shuffle", groups=3), id="channel_shuffle-last")]

# ---- pooling of other kinds ----
POSITIVE = {1: T(2, 3, 9, low=0.1), 2: T(2, 3, 7, 9, low=0.1), 3: T(1, 2, 5, 6, 7, low=0.1)}
for n, x in POSITIVE.items():
    for p, window in ((2, {"kernel_size": 2}), (3.5, {"kernel_size": 3, "stride": 2, "ceil_mode": True})):
        SAMPLES += [S(f"lp_pool{n}d", x, p, **window, rtol=1e-5)]
    SAMPLES += [S(f"lp_pool{n}d", x, float(p), 3, 2) for p in ("inf", "-inf")] + [S(f"lp_pool{n}d", x, 2, (1,) * 4)]


def unpooled(n, draw=None, **kwargs):
    """Where max_pool found the values; or at places that are given."""

    def call(m, x):
        f = m.nn.functional
        values, indices = getattr(f, f"max_pool{n}d")(x, 2, return_indices=True)
        if draw is not None:
            indices = m.full_like(indices, draw)
        return getattr(f, f"max_unpool{n}d")(values, indices, 2, **kwargs)

    return call


for n, x in POSITIVE.items():
    name = f"max_unpool{n}d"
    x = T(*x.shape, unique=True)
    SAMPLES += [S(name, x, fn=unpooled(n), dtypes=WITH_HALVES, id=name), S(name, T(*x.shape[1:], unique=True), fn=unpooled(n))]
    SAMPLES += [
        S(name, x, fn=unpooled(n, output_size=x.shape[2:]), id=f"{name}-size"),
        S(name, x, fn=unpooled(n, output_size=x.shape)),
    ]
    SAMPLES += [
        S(name, x, fn=unpooled(n, output_size=(1,) * n), id=f"{name}-bad"),
        S(name, x, fn=unpooled(n, stride=3), id=f"{name}-apart"),
    ]
    SAMPLES += [S(name, x, fn=unpooled(n, draw=bad), id=f"{name}-{bad}") for bad in (10**6, -1)]
    SAMPLES += [
        S(name, x, T(*x.shape, dtype="int32"), 2, id=f"{name}-int32"),
        S(name, x, T(2, dtype="int64"), 2, id=f"{name}-shape"),
    ]
SAMPLES += [
    S("max_unpool2d", T(2, 3, 6, 4, unique=True), fn=lambda m, x: unpooled(2)(m, x.contiguous(memory_format=m.channels_last)))
]


def fractional(name, **kwargs):
    def call(m, x, samples=None):
        m.manual_seed(5)
        return getattr(m.nn.functional, name)(x, _random_samples=samples, **kwargs)

    return call


for n, shape in {2: (2, 3, 8, 9), 3: (2, 2, 7, 6, 8)}.items():
    name = f"fractional_max_pool{n}d"
    windows = [
        {"kernel_size": 2, "output_size": 3},
        {"kernel_size": 3, "output_ratio": (0.5,) * n},
        {"kernel_size": 1, "output_size": 1},
    ]
    windows += [{"kernel_size": (2, 3, 1)[:n], "output_ratio": (0.5, 0.4, 0.7)[:n], "return_indices": True}]
    for window in windows:
        for x in (T(*shape, unique=True), T(*shape[1:], unique=True)):
            SAMPLES += [S(name, x, fn=fractional(name, **window), dtypes=WITH_HALVES, id=f"{name}-{window}")]
    SAMPLES += [S(name + "_with_indices", T(*shape, unique=True), fn=fractional(name + "_with_indices", **windows[0]))]
    draws = T(2, shape[1], n, low=0, high=0.999, grad=False)
    SAMPLES += [S(name, T(*shape, unique=True), draws, fn=fractional(name, **windows[0]), id=f"{name}-drawn")]
    for bad in (
        {"kernel_size": 2},
        {"kernel_size": 9, "output_size": 2},
        {"kernel_size": 2, "output_size": 0},
    ):
        SAMPLES += [S(name, T(*shape), fn=fractional(name, **bad), id=f"{name}-bad-{bad}")]
    SAMPLES += [
        S(name, T(2, 0, *shape[2:]), fn=fractional(name, **windows[0])),
        S(name, T(0, *shape[1:]), fn=fractional(name, **windows[0])),
    ]

# ---- borders ----
BORDER = {1: T(2, 3, 5), 2: T(2, 3, 5, 4), 3: T(1, 2, 4, 3, 5)}
for n, x in BORDER.items():
    for mode in ("reflect", "replicate", "circular", "constant"):
        for widths in ((1, 2), (2, 1, 0, 2), (1, 1, 2, 0, 1, 2), (-1, 2), (0, 0), (-1, -1, 1, 1), (7, 0)):
            SAMPLES += [
                S("pad", x, fn=lambda m, x, w=widths, k=mode: m.nn.functional.pad(x, w, mode=k), id=f"pad-{n}-{mode}-{widths}")
            ]
