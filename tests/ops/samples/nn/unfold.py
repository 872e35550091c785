"""unfold and fold of nn.functional: windows as columns and back."""

from ..sample import COMPLEX, FLOATS, HALVES, S, T

DTYPES = HALVES + FLOATS + COMPLEX + ("bool", "int64")
WINDOWS = [
    {"kernel_size": 2},
    {"kernel_size": (2, 3), "padding": 1, "stride": 2},
    {"kernel_size": 3, "dilation": 2, "padding": (2, 1)},
    {"kernel_size": (1, 4), "stride": (3, 1), "padding": (0, 5)},
]
BLOCKS = (20, 9, 20, 26)  # how many places each has in an image of 5 x 6
SAMPLES = []


def function(name, *args, **kwargs):
    """Tensor.unfold is another function."""
    return lambda m, x: getattr(m.nn.functional, name)(x, *args, **kwargs)


def taps(size):
    return size * size if isinstance(size, int) else size[0] * size[1]


for window, places in zip(WINDOWS, BLOCKS):
    SAMPLES += [S("unfold", t, fn=function("unfold", **window), dtypes=DTYPES) for t in (T(2, 3, 5, 6), T(3, 5, 6))]
    columns = 3 * taps(window["kernel_size"])
    for t in (T(2, columns, places), T(columns, places)):
        whole = function("fold", (5, 6), **window)
        SAMPLES += [S("fold", t, fn=whole, dtypes=FLOATS + COMPLEX + ("bool", "int64"))]
        SAMPLES += [S("fold", t, fn=whole, dtypes=HALVES, rtol=3e-2, atol=3e-2)]  # PyTorch sums in half precision
for wrong in ({"kernel_size": 0}, {"kernel_size": 9}, {"kernel_size": 2, "padding": -1}, {"kernel_size": 2, "stride": 0}):
    SAMPLES += [
        S("unfold", T(2, 3, 5, 6), fn=function("unfold", **wrong)),
        S("fold", T(2, 12, 20), fn=function("fold", 5, **wrong)),
    ]
SAMPLES += [
    S("unfold", t, fn=function("unfold", 2)) for t in (T(0, 3, 5, 6), T(2, 0, 5, 6), T(5, 6), T(2, 3, 0, 6), T(1, 2, 3, 4, 5))
]
SAMPLES += [
    S("fold", t, fn=function("fold", (5, 6), 2)) for t in (T(0, 12, 20), T(2, 0, 20), T(20), T(2, 11, 20), T(2, 12, 19))
]
SAMPLES += [S("fold", T(2, 12, 16), fn=function("fold", 5, 2)), S("fold", T(2, 12, 20), fn=function("fold", (5, 6, 7), 2))]
