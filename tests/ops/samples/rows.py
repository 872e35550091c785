"""Scans and the softmax family: along one dimension."""

from .sample import ALL, FLOATS, HALVES, S, T

DIFFERENTIABLE = FLOATS + ("complex128",)


def functional(name, *args, **kwargs):
    """A function of nn.functional whose name torch has too, with other arguments."""
    return lambda m, x: getattr(m.nn.functional, name)(x, *args, **kwargs)


def seeded(m, x, **kwargs):
    m.manual_seed(3)
    return m.nn.functional.gumbel_softmax(x, **kwargs)


ZEROS = [[1.0, 2.0, -1.5], [3.0, 0.0, 2.0], [0.0, 2.0, 0.0]]

SAMPLES = [
    S("cumsum", T(3, 4), 0, dtypes=ALL),
    S("cumsum", T(3, 4), -1, dtypes=DIFFERENTIABLE),
    S("cumsum", T(3, 40, 2), 1, dtypes=DIFFERENTIABLE),
    S("cumsum", T(3, 4), 0, dtype="@float64", inplace=False),
    S("cumsum", T(3, 4), 0, dtype="@int32", inplace=False, grad=False),
    S("cumsum", T(), 0),
    S("cumsum", T(0, 3), 0),
    S("cumsum", T(3), 1),
    S("cumprod", T(3, 4), 0, dtypes=ALL, gradgrad=False),
    S("cumprod", T(3, 4, low=0.5), -1, dtypes=DIFFERENTIABLE),
    S("cumprod", T(values=ZEROS), 1, gradgrad=False, id="zeros"),
    S("cumprod", T(), 0),
    S("softmax", T(3, 4), 1, dtypes=FLOATS + HALVES + ("int64",)),
    S("softmax", T(3, 40, 2), 1),
    S("softmax", T(3, 4), 0),
    S("softmax", T(3, 4), -1, dtype="@float64", out=False),
    S("softmax", T(3, 4, dtype="int32"), -1, dtype="@float32", out=False),
    S("softmax", T(), 0),
    S("softmax", T(0, 3), 1),
    S("softmax", T(3, 0), 1),
    S("softmax", T(values=[1.0, float("-inf"), float("nan")]), 0, grad=False),
    S("softmax", T(values=[1.0, float("-inf"), 3.0]), 0, gradgrad=False),
    S("softmax", T(values=[float("-inf"), float("-inf")]), 0, grad=False),
    S("softmax", T(3), 1),
    S("log_softmax", T(3, 4), 1, dtypes=FLOATS + HALVES + ("int64",)),
    S("log_softmax", T(3, 40, 2), 1),
    S("log_softmax", T(3, 4), 0),
    S("log_softmax", T(3, 4), -1, dtype="@float64", out=False),
    S("log_softmax", T(), 0),
    S("log_softmax", T(values=[1e4, -1e4, 0.0]), 0),
    S("nn_softmax", T(3, 4), fn=functional("softmax", 1)),
    S("nn_softmax", T(3, 4), fn=functional("softmax"), id="no dim"),
    S("nn_softmax", T(3, 4), fn=lambda m, x: m.nn.functional.softmax(x, -1, dtype=m.float64), id="dtype"),
    S("nn_log_softmax", T(3, 4, 2), fn=functional("log_softmax"), id="no dim"),
    S("softmin", T(3, 4), -1, dtypes=FLOATS + HALVES),
    S("gumbel_softmax", T(3, 4), fn=seeded, dtypes=FLOATS + HALVES + ("int64",)),
    S("gumbel_softmax", T(3, 4), fn=lambda m, x: seeded(m, x, tau=0.5, hard=True, dim=0), id="hard"),
]
