"""What is called for each function of the standard, as strategies: the same call goes to Lucid (`xp`) and to array_api_strict.

A case is (xp, arrays) -> result, plus the NumPy arrays it is given. dtypes that the standard does not define for a function are
what array_api_strict refuses: those calls are not compared.
"""

import functools
import math

import array_api_strict as strict
import hypothesis.strategies as st
import numpy as np
from hypothesis.extra import numpy as hnp

INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
NUMERIC = INTEGERS + FLOATS + COMPLEX
ALL = ("bool", *NUMERIC)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
SMALL = 1e3


def elements(dtype, special=True, low=None, high=None):
    """Edge values: special floats, limits of integers. Complex numbers and `special=False` use ordinary values."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        width = 8 * np.dtype(dtype).itemsize
        tame = st.floats(-SMALL if low is None else low, SMALL if high is None else high, width=32, allow_subnormal=False)
        odd = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5])
        wide = st.floats(width=width, allow_subnormal=False)
        return st.one_of(tame, odd, wide) if special else tame
    if kind == "c":
        part = st.floats(-9, 9, width=32, allow_subnormal=False)
        return st.builds(complex, part, part)
    if kind == "b":
        return st.booleans()
    info = np.iinfo(dtype)
    tame = st.integers(max(info.min, -9 if low is None else low), min(info.max, 9 if high is None else high))
    return st.one_of(tame, st.integers(info.min, info.max)) if special and low is None else tame


@st.composite
def array(draw, dtypes=ALL, shape=SHAPES, **options):
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    made = draw(hnp.arrays(dtype, shape, elements=elements(dtype, **options)))
    if made.ndim > 1 and draw(st.booleans()):
        made = made.T  # another order in memory
    return made


def shaped(least=1, **options):
    return array(shape=hnp.array_shapes(min_dims=least, max_dims=4, min_side=1, max_side=4), **options)


@st.composite
def two(draw, dtypes=ALL, least=0, **options):
    """Two arrays that broadcast, of dtypes that the standard promotes: the same kind."""
    first = draw(st.sampled_from(dtypes))
    groups = [g for g in (("bool",), INTEGERS, FLOATS + COMPLEX) if first in g]
    second = draw(st.sampled_from([d for d in groups[0] if d in dtypes]))
    shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=least, max_dims=3, max_side=4)).input_shapes
    return [draw(hnp.arrays(d, s, elements=elements(d, **options))) for d, s in zip((first, second), shapes)]


def call(name, **kwargs):
    return lambda xp, *arrays: functools.reduce(getattr, name.split("."), xp)(*arrays, **kwargs)


@functools.cache
def defined(name, count):
    """The dtypes the standard defines a function of `count` arrays for: those the reference takes."""

    def takes(dtype):
        try:
            call(name)(strict, *[strict.ones((1,), dtype=getattr(strict, dtype))] * count)
        except TypeError:
            return False
        return True

    return tuple(filter(takes, ALL))


@st.composite
def unary(draw, name):
    return call(name), [draw(array(dtypes=defined(name, 1)))]


@st.composite
def binary(draw, name, **options):
    return call(name), draw(two(**{"dtypes": defined(name, 2), **options}))


@st.composite
def with_scalar(draw, name, dtypes=NUMERIC, **options):
    x = draw(array(dtypes=dtypes, special=False))
    number = draw(st.integers(1, 9)) if x.dtype.kind in "iu" else draw(st.sampled_from([2, 0.5, -1.25]))
    left = draw(st.booleans())
    return (lambda xp, a: getattr(xp, name)(number, a) if left else getattr(xp, name)(a, number)), [x]


@st.composite
def reduction(draw, name, dtypes=NUMERIC, axes=True, empty=False, **options):
    least = 0 if empty else 1
    x = draw(array(dtypes=dtypes, shape=hnp.array_shapes(min_dims=1, max_dims=4, min_side=least, max_side=4), **options))
    axis = st.none() | st.integers(-x.ndim, x.ndim - 1)
    if axes:
        axis |= st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple)
    return call(name, axis=draw(axis), keepdims=draw(st.booleans())), [x]


@st.composite
def along(draw, name, dtypes=ALL, more=None, **options):
    x = draw(shaped(dtypes=dtypes, **options))
    kwargs = {"axis": draw(st.integers(-x.ndim, x.ndim - 1))}
    for key, strategy in (more or {}).items():
        kwargs[key] = draw(strategy)
    return call(name, **kwargs), [x]


@st.composite
def shaping(draw, build, **options):
    """build(x, draw) gives the call for one array."""
    x = draw(shaped(**options))
    return build(x, draw), [x]


def reshapes(x, draw):
    sizes = draw(st.permutations(list(x.shape) + [1]))
    if draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return lambda xp, a: xp.reshape(a, tuple(sizes))


def permutes(x, draw):
    axes = draw(st.permutations(range(x.ndim)))
    return lambda xp, a: xp.permute_dims(a, tuple(axes))


def rolls(x, draw):
    axes = draw(st.none() | st.lists(st.integers(-x.ndim, x.ndim - 1), min_size=1, max_size=3).map(tuple))
    shift = draw(st.integers(-5, 5)) if axes is None else tuple(draw(st.integers(-5, 5)) for _ in axes)
    return lambda xp, a: xp.roll(a, shift, axis=axes)


def flips(x, draw):
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1) | st.lists(st.integers(0, x.ndim - 1), unique=True).map(tuple))
    return lambda xp, a: xp.flip(a, axis=axis)


def moves(x, draw):
    count = draw(st.integers(1, x.ndim))
    source, target = (tuple(draw(st.permutations(range(x.ndim)))[:count]) for _ in range(2))
    return lambda xp, a: xp.moveaxis(a, source, target)


def squeezes(x, draw):
    axes = tuple(d for d in range(x.ndim) if x.shape[d] == 1)
    return lambda xp, a: xp.squeeze(a, axis=axes)


def expands(x, draw):
    axis = draw(st.integers(-x.ndim - 1, x.ndim))
    return lambda xp, a: xp.expand_dims(a, axis=axis)


def joins(name):
    def build(x, draw):
        axis = draw(st.integers(-x.ndim, x.ndim - 1))
        return lambda xp, a: getattr(xp, name)([a, a, a], axis=axis)

    return build


def tiles(x, draw):
    times = tuple(draw(st.lists(st.integers(0, 3), min_size=0, max_size=x.ndim + 1)))
    return lambda xp, a: xp.tile(a, times)


def repeats(x, draw):
    axis = draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    times = draw(st.integers(0, 3))
    return lambda xp, a: xp.repeat(a, times, axis=axis)


def unstacks(x, draw):
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    return lambda xp, a: list(xp.unstack(a, axis=axis))


def broadcasts(x, draw):
    more = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    return lambda xp, a: [xp.broadcast_to(a, more + x.shape), *xp.broadcast_arrays(a, xp.ones(more + x.shape))]


def takes(x, draw):
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    picks = draw(hnp.arrays("int64", draw(st.integers(1, 5)), elements=st.integers(0, x.shape[axis] - 1)))
    return lambda xp, a: xp.take(a, xp.asarray(picks.tolist(), dtype=xp.int64), axis=axis)


def takes_along(x, draw):
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    picks = draw(hnp.arrays("int64", x.shape, elements=st.integers(0, x.shape[axis] - 1)))
    return lambda xp, a: xp.take_along_axis(a, xp.asarray(picks.tolist(), dtype=xp.int64), axis=axis)


def triangles(name):
    def build(x, draw):
        k = draw(st.integers(-5, 5))
        return lambda xp, a: getattr(xp, name)(a, k=k)

    return build


def clips(x, draw):
    bounds = st.none() | (st.integers(0, 5) if x.dtype.kind in "iu" else st.sampled_from([-1.5, 0.0, 2.0]))
    low, high = draw(bounds), draw(bounds)
    if low is not None and high is not None:
        low, high = min(low, high), max(low, high)
    return lambda xp, a: xp.clip(a, low, high)


def wheres(x, draw):
    mask = draw(hnp.arrays("bool", x.shape))
    return lambda xp, a: xp.where(xp.asarray(mask.tolist(), dtype=xp.bool), a, xp.zeros_like(a))


def diffs(x, draw):
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    n = draw(st.integers(0, x.shape[axis]))
    return lambda xp, a: xp.diff(a, axis=axis, n=n)


def searches(x, draw):
    side = draw(st.sampled_from(["left", "right"]))
    return lambda xp, a: xp.searchsorted(xp.sort(xp.reshape(a, (-1,))), xp.reshape(a, (-1,)), side=side)


def sets(name):
    def build(x, draw):
        def run(xp, a):
            a = xp.add(a, xp.zeros_like(a))  # which of two zeros is kept is open
            made = getattr(xp, name)(a)
            if name == "unique_values":
                return xp.sort(made)
            order = xp.argsort(made.values)  # the standard leaves the order open
            found = [made.values[order]]
            if "counts" in made._fields:
                found.append(made.counts[order])
            if "inverse_indices" in made._fields:
                found.append(made.values[made.inverse_indices])
            if "indices" in made._fields:
                found.append(xp.reshape(a, (-1,))[made.indices[order]])
            return found

        return run

    return build


@st.composite
def products(draw, name):
    """matmul, vecdot, tensordot, outer: shapes that fit."""
    dtypes = (draw(st.sampled_from(NUMERIC)),)
    n, k, m = (draw(st.integers(1, 4)) for _ in range(3))
    batch = draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3, min_side=1)).input_shapes
    last = {"matmul": ((n, k), (k, m)), "vecdot": ((k,), (k,)), "tensordot": ((n, k), (k, m)), "linalg.outer": ((n,), (m,))}[
        name
    ]
    if name in ("tensordot", "linalg.outer"):
        batch = ((), ())
    arrays = [draw(array(dtypes=dtypes, shape=b + s, special=False)) for b, s in zip(batch, last)]
    arrays = [a if a.shape == b + s else a.T for a, b, s in zip(arrays, batch, last)]
    return call(name, **({"axes": 1} if name == "tensordot" else {})), arrays


@st.composite
def indexing(draw, write=False):
    x = draw(shaped(dtypes=ALL, special=False))
    key = draw(hnp.basic_indices(x.shape, allow_ellipsis=True, allow_newaxis=not write))
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, slice) and part.step is not None and part.step < 0:
            return (lambda xp, a: a), [x]  # negative steps: PyTorch has none either
    full = key if isinstance(key, tuple) else (key,)
    if Ellipsis not in full:
        full = (*full, Ellipsis)  # the standard wants every axis named

    def run(xp, a):
        if not write:
            return a[full]
        b = xp.asarray(a, copy=True)
        b[full] = xp.zeros((), dtype=a.dtype)
        return b

    return run, [x]


@st.composite
def masks(draw):
    x = draw(shaped(dtypes=ALL, special=False))
    mask = draw(hnp.arrays("bool", x.shape))
    return (lambda xp, a, m: a[m]), [x, mask]


@st.composite
def creation(draw):
    shape = draw(SHAPES)
    dtype = draw(st.none() | st.sampled_from(NUMERIC))
    start, stop = draw(st.integers(-20, 20)), draw(st.integers(-20, 20))
    step = draw(st.integers(-3, 3).filter(bool))
    num, endpoint = draw(st.integers(0, 9)), draw(st.booleans())
    rows, columns, k = draw(st.integers(0, 4)), draw(st.none() | st.integers(0, 4)), draw(st.integers(-4, 4))

    def run(xp):
        d = dtype and getattr(xp, dtype)
        integers = None if dtype is None or dtype.startswith(("c", "u")) else d
        floats = d if dtype and dtype.startswith(("f", "c")) else None
        return [
            xp.zeros(shape, dtype=d),
            xp.ones(shape, dtype=d),
            xp.full(shape, 3, dtype=d),
            xp.full(shape, True),
            xp.zeros_like(xp.ones(shape, dtype=d)),
            xp.ones_like(xp.zeros(shape, dtype=d)),
            xp.full_like(xp.zeros(shape, dtype=d), 2),
            xp.arange(start, stop, step, dtype=integers),
            xp.arange(abs(stop), dtype=integers),
            xp.linspace(start, stop, num, dtype=floats, endpoint=endpoint),
            xp.eye(rows, columns, k=k, dtype=d),
            *xp.meshgrid(xp.arange(3), xp.arange(2), indexing="ij"),
            *xp.meshgrid(xp.arange(3), xp.arange(2)),
            xp.asarray([[1, 2], [3, 4]], dtype=d),
        ]

    return run, []


@st.composite
def conversions(draw):
    x = draw(array(dtypes=ALL, special=False, low=0, high=9))
    to = draw(st.sampled_from(ALL if x.dtype.kind != "c" else COMPLEX))
    return (lambda xp, a: xp.astype(a, getattr(xp, to))), [x]


# Operators are the library's own, not the shim's: a 0-d array does not take part in promotion, as in PyTorch.
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>", "<", "<=", "==", "!=", ">", ">="]


@st.composite
def operators(draw):
    symbol = draw(st.sampled_from(OPERATORS))
    if symbol == "@":
        return draw(products("matmul").map(lambda case: ((lambda xp, a, b: a @ b), case[1])))
    whole = symbol in ("<<", ">>", "**", "//", "%")
    a, b = draw(two(least=1, special=False, low=1 if whole else None, high=5 if whole else None))
    return eval(f"lambda xp, a, b: a {symbol} b"), [a, b]  # noqa: S307  a constant of this file
