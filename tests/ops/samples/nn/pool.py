"""Pooling: windows of all kinds, with and without a batch, ties, NaNs and what does not fit."""

from ..sample import FLOATS, HALVES, INTS, S, T

NAN, INF = float("nan"), float("inf")
WITH_HALVES = HALVES + FLOATS
SHAPES = {1: (2, 3, 9), 2: (2, 3, 7, 9), 3: (1, 2, 5, 6, 7)}
TIES = [[[1.0, 3.0, 3.0, 2.0], [3.0, 3.0, 1.0, 0.0], [0.0, -0.0, 5.0, 5.0], [-INF, -INF, -INF, -INF]]]
MISSING = [[[1.0, NAN, 3.0, INF], [NAN, 0.5, NAN, 2.0], [-INF, -INF, 1.0, 0.0], [-INF, -INF, NAN, 4.0]]]
WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": 4, "stride": 3, "ceil_mode": True},
    {"kernel_size": 1, "stride": 2},
]
SAMPLES = []


def function(name, **kwargs):
    """PyTorch's torch.max_pool2d takes no return_indices; torch.nn.functional's does."""
    return lambda m, x: getattr(m.nn.functional, name)(x, **kwargs)


def both(name, *tensors, dtypes=FLOATS, **kwargs):
    ident = f"{name}-both-{kwargs}"
    return [
        S(
            name,
            t,
            fn=function(name, return_indices=True, **kwargs),
            dtypes=dtypes,
            grad=t.values is None and kwargs.get("output_size") != 0,
            id=ident,
        )
        for t in tensors
    ]


for n, shape in SHAPES.items():
    full, alone = T(*shape, unique=True), T(*shape[1:], unique=True)
    name = f"max_pool{n}d"
    whole = INTS if n > 1 else ()
    for window in WINDOWS:
        SAMPLES += [S(name, t, dtypes=WITH_HALVES + whole, **window) for t in (full, alone)] + both(name, full, alone, **window)
        SAMPLES += [S(f"avg_pool{n}d", t, dtypes=WITH_HALVES + ("int64", "int32"), **window) for t in (full, alone)]
    for window in ({"kernel_size": 2, "dilation": 2}, {"kernel_size": 3, "dilation": 2, "padding": 1, "stride": 1}):
        SAMPLES += [S(name, full, **window)] + both(name, full, **window)
    SAMPLES += both(f"max_pool{n}d_with_indices", full, kernel_size=2)
    SAMPLES += [S(f"avg_pool{n}d", full, 3, 2, 1, ceil, count) for ceil in (False, True) for count in (False, True)]
    if n > 1:
        SAMPLES += [S(f"avg_pool{n}d", full, 3, 2, 1, True, True, 5), S(f"avg_pool{n}d", full, 2, divisor_override=-3)]
        SAMPLES += [S(f"avg_pool{n}d", full, 2, divisor_override=0)]
    for name in (f"max_pool{n}d", f"avg_pool{n}d"):
        SAMPLES += [
            S(name, T(0, *shape[1:]), 2),
            S(name, T(2, 0, *shape[2:]), 2),
            S(name, full, 99),
            S(name, full, 2, padding=-1),
        ]
        SAMPLES += [
            S(name, full, 2, padding=2),
            S(name, full, 0),
            S(name, full, 2, 0),
            S(name, T(3), 2),
            S(name, full, (2,) * 4),
        ]
    for size in (1, 2, 3, 5, 12, 0):
        SAMPLES += [S(f"adaptive_avg_pool{n}d", t, size, dtypes=WITH_HALVES, grad=size > 0) for t in (full, alone)]
        SAMPLES += both(f"adaptive_max_pool{n}d", full, alone, dtypes=WITH_HALVES, output_size=size)
    SAMPLES += [S(f"adaptive_avg_pool{n}d", full, -1), S(f"adaptive_avg_pool{n}d", T(0, *shape[1:]), 2)]
    SAMPLES += [
        S(f"adaptive_max_pool{n}d", full, fn=function(f"adaptive_max_pool{n}d", output_size=s)) for s in (2, 4, (1,) * 5)
    ]
for window in ({"kernel_size": 2, "stride": 1}, {"kernel_size": 3, "stride": 1, "padding": 1}, {"kernel_size": (4, 1)}):
    SAMPLES += [S("max_pool2d", T(values=v), grad=False, **window) for v in (TIES, MISSING)]
    SAMPLES += both("max_pool2d", T(values=TIES), T(values=MISSING), **window)
SAMPLES += both("adaptive_max_pool2d", T(values=TIES), T(values=MISSING), output_size=3)
SAMPLES += [
    S("max_pool2d", T(2, 3, 40, 70, unique=True), (3, 2), (2, 1), (1, 0)),
    S("max_pool2d", T(1, 2, 5, 70), (2, 5), (1, 3)),
]
SAMPLES += [S("avg_pool2d", T(2, 3, 40, 70), (3, 2), (2, 1), (1, 0)), S("avg_pool2d", T(1, 2, 5, 70), (2, 5), (1, 3), (1, 2))]
FAR = {"kernel_size": 600, "stride": 1, "padding": 300, "dilation": 1}  # much wider than the input: clipped, not padded
SAMPLES += [S("max_pool1d", T(1, 2, 3, unique=True), **FAR)] + both("max_pool1d", T(1, 2, 3, unique=True), **FAR)
SAMPLES += [S("avg_pool1d", T(1, 2, 3), 600, 1, 300, False, count) for count in (False, True)]
for name in ("adaptive_avg_pool2d", "adaptive_max_pool2d"):
    SAMPLES += [S(name, T(2, 3, 6, 7, unique=True), fn=function(name, output_size=size)) for size in ((None, 3), (2, None))]


def backward(m, g, x):
    _, indices = m.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)
    if hasattr(m.nn.functional, "max_pool2d_with_indices_backward"):
        return m.nn.functional.max_pool2d_with_indices_backward(g, x, [3], [2], [1], [1], False, indices)
    return m.ops.aten.max_pool2d_with_indices_backward(g, x, [3, 3], [2, 2], [1, 1], [1, 1], False, indices)


SAMPLES += [S("max_pool2d_with_indices_backward", T(2, 3, 4, 5), T(2, 3, 7, 9, unique=True), fn=backward, dtypes=WITH_HALVES)]


def last(name, **kwargs):
    """Channels last in, channels last out, where PyTorch keeps them so."""

    def pool(m, x):
        form = m.channels_last if x.ndim == 4 else m.channels_last_3d
        return getattr(m.nn.functional, name)(x.contiguous(memory_format=form), **kwargs)

    return pool


for n in (2, 3):
    x = T(*SHAPES[n], unique=True)
    for name in (f"max_pool{n}d", f"avg_pool{n}d"):
        SAMPLES += [S(name, x, fn=last(name, kernel_size=2)), S(name, x, fn=last(name, kernel_size=3, stride=2, padding=1))]
    SAMPLES += [S(f"adaptive_{k}_pool{n}d", x, fn=last(f"adaptive_{k}_pool{n}d", output_size=2)) for k in ("avg", "max")]
    SAMPLES += [S(f"max_pool{n}d", x, fn=last(f"max_pool{n}d", kernel_size=2, return_indices=True))]
    signed = T(*SHAPES[n], dtype="int16", low=-50, high=50)
    SAMPLES += [S(f"max_pool{n}d", signed, fn=last(f"max_pool{n}d", kernel_size=2, return_indices=True), grad=False)]
for sample in SAMPLES:
    sample.out = sample.op != "avg_pool3d"  # PyTorch writes as if out= were contiguous
