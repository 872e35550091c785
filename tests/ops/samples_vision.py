"""Images: other sizes."""

from .sample import FLOATS, HALVES, S, T

WITH_HALVES = HALVES + FLOATS
BYTES = (*WITH_HALVES, "uint8")
IMAGES = {1: T(2, 3, 7), 2: T(2, 3, 5, 7), 3: T(1, 2, 3, 4, 5)}
MODES = [("nearest", (1, 2, 3)), ("nearest-exact", (1, 2, 3)), ("area", (1, 2, 3)), ("linear", (1,)), ("bilinear", (2,))]
MODES += [("bicubic", (2,)), ("trilinear", (3,)), ("unknown", (2,))]
CORNERS = {"linear", "bilinear", "bicubic", "trilinear"}


def last(name, **kwargs):
    """Channels that lie last stay there."""

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
