"""`_foreach_*`: functions over lists of tensors, named as in PyTorch. Each is the function of one tensor, applied to all.

>>> lucid._foreach_mul([lucid.ones(1), lucid.ones(2)], 2.0)
[tensor([2.]), tensor([2., 2.])]
>>> x = [lucid.ones(1)]
>>> lucid._foreach_add_(x, [lucid.ones(1)], alpha=3)
[tensor([4.])]
"""

from .. import _C

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
_BINARY = "add sub mul div pow maximum minimum clamp_min clamp_max lerp copy".split()
_LIMITS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # of a number


def _each(other, n):
    """The operand for every tensor: a list, or one for all."""
    if isinstance(other, (list, tuple)):
        if len(other) != n:
            raise RuntimeError(f"Tensor lists must have the same number of tensors, got {n} and {len(other)}")
        return other
    return [other] * n


def _binary(name, tensors, other, settings):
    def one(tensor, operand):
        number = not isinstance(operand, _C.Tensor)
        if name in _LIMITS and number:
            return getattr(_C, _LIMITS[name])(tensor, operand)
        if name in ("clamp_min", "clamp_max") and not number:
            return (_C.maximum if name == "clamp_min" else _C.minimum)(tensor, operand)
        if name == "copy":
            return operand.to(tensor.dtype).expand(tensor.shape).clone()
        if name == "pow" and not isinstance(tensor, _C.Tensor):
            return _C.pow(tensor, operand)
        return getattr(_C, name)(tensor, operand, **settings)

    if name == "pow" and not isinstance(tensors, (list, tuple)):  # a number to the power of each
        tensors, other = [tensors] * len(other), other
    return [one(t, o) for t, o in zip(tensors, _each(other, len(tensors)))]


def _ternary(name, tensors, first, second, value):
    """addcmul and addcdiv: `value` is a number, a list of numbers, or a tensor of them."""
    if isinstance(value, _C.Tensor):
        value = value.tolist()
    rows = zip(tensors, first, second, _each(value, len(tensors)))
    return [getattr(_C, name)(t, a, b, value=v) for t, a, b, v in rows]


def _lerp(tensors, ends, weights):
    return [_C.lerp(t, e, w) for t, e, w in zip(tensors, ends, _each(weights, len(tensors)))]


def _powers(tensors, exponent):
    """Sums of powers of the sizes of the elements."""
    return [t.abs().pow(exponent).sum() for t in tensors]


def _computed(name):
    """The function that gives new tensors, and the names of its arguments that may be given by name; None."""
    if name in _UNARY or name == "max":
        return (lambda tensors: [getattr(_C, name)(t) for t in tensors]), ("self",)
    if name == "lerp":
        return _lerp, ("self", "tensors1", "weights weight")
    if name in ("addcmul", "addcdiv"):
        return (
            lambda tensors, first, second, value=1: _ternary(name, tensors, first, second, value),
            ("self", "tensor1", "tensor2", "value scalars"),
        )
    if name == "powsum":
        return _powers, ("self", "ord")
    if name in _BINARY:
        other = {"pow": "exponent", "copy": "src"}.get(name, "other scalar scalars")
        return (lambda tensors, other, **settings: _binary(name, tensors, other, settings)), ("self", other)
    return None


def _by_name(compute, name, names):
    """The function, whose arguments may be given by any of their names: PyTorch's overloads differ in them."""
    places = {word: place for place, words in enumerate(names) for word in words.split()}

    def call(*args, **settings):
        if settings:
            for key in sorted(settings.keys() & places.keys(), key=places.get):
                if places[key] != len(args):
                    raise TypeError(f"_foreach_{name}() got argument {key!r} twice, or misses one before it")
                args = (*args, settings.pop(key))
        return compute(*args, **settings)

    return call


def find(name):
    """The function of a name that starts with `_foreach_`, or None.

    >>> from lucid._namespace import foreach
    >>> foreach.find("_foreach_sqrt")([lucid.ones(1)])
    [tensor([1.])]
    >>> foreach.find("_foreach_lerp")([lucid.zeros(1)], [lucid.ones(1)], weight=0.5)
    [tensor([0.5000])]
    >>> foreach.find("_foreach_nothing") is None
    True
    """
    short = name[len("_foreach_") :]
    if short == "zero_":
        return _zero
    if short == "copy_":
        return _copy
    in_place = short.endswith("_")
    found = _computed(short.rstrip("_"))
    if found is None:
        return None
    compute, names = found
    if not in_place:
        return _named(_by_name(compute, short, names), name)

    engine = getattr(_C, name, None)  # one call for all, when the operand is one number

    def write(tensors, *args, **settings):
        if engine and len(args) == 1 and not settings and not isinstance(args[0], (list, tuple)):
            engine(tensors, *args)
            return tensors
        values = compute(tensors, *args, **settings)
        for tensor, value in zip(tensors, values):  # all or none are written
            if not _C.can_cast(value.dtype, tensor.dtype):
                raise RuntimeError(f"result type {value.dtype} can't be cast to the desired output type {tensor.dtype}")
        for tensor, value in zip(tensors, values):
            tensor.copy_(value)
        return tensors

    return _named(_by_name(write, short, names), name)


def _named(function, name):
    function.__name__ = function.__qualname__ = name
    return function


def _zero(self):
    for tensor in self:
        tensor.zero_()
    return self


def _copy(self, src, non_blocking=False):
    for tensor, source in zip(self, _each(src, len(self))):
        tensor.copy_(source, non_blocking)
    return self
