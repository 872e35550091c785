"""What a sample is: one call of one op, described once and run on Lucid and on PyTorch.

    S("add", T(2, 3), T(3), alpha=2)               torch.add(x, y, alpha=2), x.add(y, alpha=2), x.add_(...), out=
    S("sum", T(2, 3), dim=1, dtypes=ALL)           swept over dtypes; where PyTorch refuses a dtype, Lucid must refuse it too
    S("index_select", T(4, 3), 0, T(2, dtype="int64", low=0, high=4))
    S("getitem", T(4, 3), fn=lambda m, x: x[1:3])  anything: m is the module, tensors follow

T(*shape) stands for a tensor of random values of the swept dtype (or of a fixed one). Values are the same in both libraries.
"""

import itertools
import math

import numpy as np

FLOATS = ("float32", "float64")
HALVES = ("float16", "bfloat16")
COMPLEX = ("complex64", "complex128")
INTS = ("uint8", "int8", "int16", "int32", "int64")
REAL = ("bool",) + INTS + HALVES + FLOATS
ALL = REAL + COMPLEX


class T:
    """A tensor argument. values: nested list instead of random numbers; unique: no ties; grad: None means if it can."""

    def __init__(self, *shape, dtype=None, low=-2.0, high=2.0, values=None, unique=False, grad=None):
        self.shape, self.dtype, self.low, self.high = shape, dtype, low, high
        self.values, self.unique, self.grad = values, unique, grad

    def __repr__(self):
        if self.values is not None:
            return f"T(values={self.values!r:.60})"
        return f"T({', '.join([*map(str, self.shape), *([f'dtype={self.dtype!r}'] if self.dtype else [])])})"

    def numbers(self, dtype, rng):
        """A NumPy array (bfloat16 as float32) of the values for this dtype."""
        dtype = self.dtype or dtype
        if self.values is not None:
            data = np.array(self.values)
        elif self.unique:
            n = math.prod(self.shape)
            data = (rng.permutation(n).reshape(self.shape) + 1) * ((self.high - self.low) / (n + 1)) + self.low
        else:
            data = rng.uniform(self.low, self.high, self.shape)
        if dtype == "bool":
            return data > 0 if data.dtype != bool else data
        if dtype in INTS:
            data = np.floor(data * (1 if self.dtype else 4))
            return (np.abs(data) if dtype == "uint8" else data).astype(dtype)
        if dtype in COMPLEX:
            data = data + 1j * (rng.uniform(self.low, self.high, data.shape) if self.values is None else 0)
            return data.astype(dtype)
        return data.astype("float32" if dtype == "bfloat16" else dtype)


class S:
    """A sample. grad: compare gradients (and second ones if gradgrad) in float64 and complex128 where those dtypes are swept."""

    def __init__(self, op, *args, fn=None, dtypes=FLOATS, grad=True, gradgrad=True, inplace=True, out=True, method=True,
                 id=None, rtol=None, atol=None, strides=True, random=False, **kwargs):  # fmt: skip
        self.op, self.args, self.kwargs, self.fn, self.dtypes = op, args, kwargs, fn, dtypes
        self.grad, self.gradgrad, self.inplace, self.out, self.method = grad, gradgrad, inplace, out, method
        self.rtol, self.atol, self.strides, self.random, self.id = rtol, atol, strides, random, id

    def __repr__(self):
        """As it is written in its table."""
        words = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"S({', '.join([repr(self.op), *words])})"

    def tensors(self):
        """The T objects in order, lists flattened."""
        flat = itertools.chain.from_iterable(a if isinstance(a, (list, tuple)) else [a] for a in self.args)
        return [a for a in flat if isinstance(a, T)] + [a for a in self.kwargs.values() if isinstance(a, T)]

    def function(self, m):
        if self.fn:
            return lambda *args, **kwargs: self.fn(m, *args, **kwargs)
        for space in (m, m.nn.functional if hasattr(m, "nn") and hasattr(m.nn, "functional") else m, m.Tensor):
            if hasattr(space, self.op):
                return getattr(space, self.op)
        raise AttributeError(f"no {self.op}")

    def substitute(self, tensors):
        """args and kwargs with each T replaced by the next tensor, and dtype names by the library's own objects (see `lib`)."""
        it = iter(tensors)

        def one(a):
            if isinstance(a, T):
                return next(it)
            if isinstance(a, list) and any(isinstance(x, T) for x in a):
                return [one(x) for x in a]
            if isinstance(a, tuple) and any(isinstance(x, T) for x in a):
                return tuple(one(x) for x in a)
            return a

        args = [one(a) for a in self.args]
        return args, {k: one(v) for k, v in self.kwargs.items()}
