"""The repr of a tensor: PyTorch's format, character for character.

The contents are fetched once as nested Python lists (only the corners of a large tensor, with `...` standing for what is
left out), so printing needs nothing from a tensor but `shape`, `dtype`, slicing and `tolist()`. Two passes follow.
`_Numbers` chooses one notation and one width for all numbers that will be shown; `_body` lays them out.
The rules, all PyTorch's:

- Floats are shown as integers (`1.`) if all are, else with `precision` digits; in scientific notation if the largest is
  above 1e8, the smallest below 1e-4 or their ratio above 1000. Zeros, infinities and NaNs do not count, not even for the width.
- Defaults are left out: the default dtype, int64 and bool, the CPU. An empty tensor shows its dtype even
  then.

Any object with these few attributes can be printed: the tests pass PyTorch's own tensors.
"""

import math

from . import _C


class _Options:
    precision, threshold, edgeitems, linewidth, sci_mode = 4, 1000, 3, 80, None


_options = _Options()
_PROFILES = {
    "default": (4, 1000, 3),
    "short": (2, 1000, 2),
    "full": (4, float("inf"), 3),
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Choose how tensors are written.

    `profile` ("default", "short" or "full") sets everything; the other arguments then override it. Every call sets `sci_mode`:
    None lets the numbers decide.

    >>> import lucid
    >>> lucid.set_printoptions(precision=2)
    >>> lucid.tensor([1.12345])
    tensor([1.12])
    >>> lucid.set_printoptions(profile="default")
    >>> lucid.tensor([1.12345])
    tensor([1.1235])
    """
    if profile in _PROFILES:
        _options.precision, _options.threshold, _options.edgeitems = _PROFILES[profile]
        _options.linewidth = 80
    if precision is not None:
        _options.precision = precision
    if threshold is not None:
        _options.threshold = threshold
    if edgeitems is not None:
        _options.edgeitems = edgeitems
    if linewidth is not None:
        _options.linewidth = linewidth
    _options.sci_mode = sci_mode


def get_printoptions():
    """The options in force, as keyword arguments for `set_printoptions`.

    >>> get_printoptions()["precision"]
    4
    """
    return {name: getattr(_options, name) for name in ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")}


class printoptions:
    """`set_printoptions` for the length of a `with` block.

    >>> import lucid
    >>> with printoptions(precision=1):
    ...     print(lucid.tensor([0.25, 1.5]))
    tensor([0.2, 1.5])
    """

    def __init__(self, **options):
        self._wanted = options

    def __enter__(self):
        self._before = get_printoptions()
        set_printoptions(**self._wanted)

    def __exit__(self, *error):
        set_printoptions(**self._before)


class _Numbers:
    """One notation and one width for a column of real numbers."""

    def __init__(self, values, floating):
        self.width = 1
        if not floating:
            self.spec = None
            self.width = max([1, *(len(str(v)) for v in values)])
            return
        self.spec, self.dot = ".0f", True
        decisive = [v for v in values if v == v and v not in (0.0, _INF, -_INF)]
        if not decisive:
            return
        whole = all(v.is_integer() for v in decisive)
        if self._scientific(decisive):
            self.spec, self.dot = f".{_options.precision}e", False
        elif not whole:
            self.spec, self.dot = f".{_options.precision}f", False
        self.width = max(len(format(v, self.spec)) + self.dot for v in decisive)

    @staticmethod
    def _scientific(values):
        if _options.sci_mode is not None:
            return _options.sci_mode
        sizes = [abs(v) for v in values]
        low, high = min(sizes), max(sizes)
        return high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4

    def format(self, value):
        if self.spec is None:
            return str(value).rjust(self.width)
        text = format(value, self.spec)
        if self.dot and value - value == 0:  # neither infinite nor NaN
            text += "."
        return text.rjust(self.width)


_INF = float("inf")


class _ComplexNumbers:
    """The same for complex numbers: a column for each part."""

    def __init__(self, values):
        self.real = _Numbers([v.real for v in values], True)
        self.imag = _Numbers([v.imag for v in values], True)
        self.width = self.real.width + self.imag.width + 1

    def format(self, value):
        imag = self.imag.format(value.imag).lstrip() + "j"
        return self.real.format(value.real) + ("" if imag[0] in "+-" else "+") + imag


def _contents(t, ndim, summarize):
    """Nested lists of the values to show, `...` for omitted ones."""
    edge = _options.edgeitems
    if ndim == 0 or not summarize:
        return t.tolist()
    long = t.shape[0] > 2 * edge
    if long and not edge:
        return [...]
    if ndim == 1:
        return [*t[:edge].tolist(), ..., *t[-edge:].tolist()] if long else t.tolist()
    n = t.shape[0]
    shown = [*range(edge), *range(n - edge, n)] if long else range(n)
    rows = [_contents(t[i], ndim - 1, summarize) for i in shown]
    return [*rows[:edge], ..., *rows[edge:]] if long else rows


def _flatten(nested, into):
    if isinstance(nested, list):
        for part in nested:
            _flatten(part, into)
    elif nested is not ...:
        into.append(nested)
    return into


def _body(nested, ndim, indent, numbers):
    if ndim == 0:
        return numbers.format(nested)
    if ndim > 1:
        parts = ["..." if part is ... else _body(part, ndim - 1, indent + 1, numbers) for part in nested]
        return "[" + ("," + "\n" * (ndim - 1) + " " * (indent + 1)).join(parts) + "]"
    per_line = max(1, math.floor((_options.linewidth - indent) / (numbers.width + 2)))
    left_out = " ..." if _options.edgeitems else "..."
    words = [left_out if value is ... else numbers.format(value) for value in nested]
    lines = [", ".join(words[i : i + per_line]) for i in range(0, len(words), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _values_text(t, indent):
    shape = t.shape
    nested = _contents(t, len(shape), t.numel() > _options.threshold)
    values = _flatten(nested, [])
    numbers = _ComplexNumbers(values) if t.dtype.is_complex else _Numbers(values, t.dtype.is_floating_point)
    return _body(nested, len(shape), indent, numbers)


def _dtype_name(dtype):
    return str(dtype).rsplit(".", 1)[-1]


def _parts(t, indent):
    """The text of the values, and the suffixes (size, dtype, device, grad_fn)."""
    suffixes = []
    default = _dtype_name(_C.get_default_dtype())
    name = _dtype_name(t.dtype)
    dtype_text = "dtype=" + str(t.dtype)
    size_text = "size=" + str(tuple(t.shape))
    if t.device.type != "cpu":
        suffixes.append(f"device='{t.device}'")
    if t.device.type == "meta":
        suffixes += [size_text] + [dtype_text] * (name != default)
        return "...", suffixes
    if t.numel() == 0:
        suffixes += [size_text] * (len(t.shape) != 1) + [dtype_text] * (name != default)
        return "[]", suffixes
    if not _options.edgeitems:
        suffixes.append(size_text)
    if name not in (default, "complex128" if default == "float64" else "complex64", "int64", "bool"):
        suffixes.append(dtype_text)
    return _values_text(t, indent), suffixes


def _history(t):
    try:
        node = t.grad_fn
    except RuntimeError:  # a view whose base was changed in a way that cannot be differentiated
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{node.name().rsplit('::', 1)[-1]}>"]
    return ["requires_grad=True"] if t.requires_grad else []


def _join(text, suffixes, indent):
    """Suffixes go on the last line while they fit."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def _batch_text(value, level):
    """Inside vmap: the whole batch. Its dimension is the first."""
    lines = tensor_repr(value).split("\n")
    return f"BatchedTensor(lvl={level}, bdim=0, value=\n" + "".join(f"    {line}\n" for line in lines) + ")"


def _sparse_parts(t, indent):
    """The same for a sparse tensor: its indices and values, each written like a tensor of its own without dtype."""
    if t.layout == _C.sparse_coo:
        indices, values = {"indices": t._indices()}, t._values()
    elif t.layout in (_C.sparse_csr, _C.sparse_bsr):
        indices, values = {"crow_indices": t.crow_indices(), "col_indices": t.col_indices()}, t.values()
    else:
        indices, values = {"ccol_indices": t.ccol_indices(), "row_indices": t.row_indices()}, t.values()
    between = ",\n" + " " * indent
    fields = []
    for name, part in {**indices, "values": values}.items():
        prefix = f"{name}=tensor("
        body = _parts(part.detach(), indent + len(prefix))[0]
        size = f", size={tuple(part.shape)}" if part.numel() == 0 else ""
        fields.append(prefix + body + size + ")")
    suffixes = [f"size={tuple(t.shape)}", f"nnz={t._nnz()}"]
    default = _dtype_name(_C.get_default_dtype())
    if _dtype_name(t.dtype) not in (default, "complex128" if default == "float64" else "complex64", "int64", "bool"):
        suffixes.append(f"dtype={t.dtype}")
    suffixes.append(f"layout={t.layout}")
    if t.layout == _C.sparse_coo:  # whose size starts a line of its own
        fields.append(suffixes.pop(0))
    return between.join(fields), suffixes


def tensor_repr(t):
    """What `repr(t)` and `str(t)` return. A subclass is called by its own name, a plain Parameter `tensor`.

    >>> import lucid
    >>> tensor_repr(lucid.tensor([[1.0, 2.5], [float("nan"), 4.0]]))
    'tensor([[1.0000, 2.5000],\\n        [   nan, 4.0000]])'
    """
    batch = _C._batch_of(t)
    if batch is not None:
        return _batch_text(*batch)
    kind = type(t)
    is_parameter = getattr(t, "_is_parameter", False)
    plain = kind.__name__ == "Tensor" or (is_parameter and kind.__name__ == "Parameter")
    prefix = "tensor(" if plain else kind.__name__ + "("
    before = _C._set_grad_enabled(False)
    try:
        body, suffixes = _parts(t, len(prefix)) if str(t.layout).endswith(".strided") else _sparse_parts(t, len(prefix))
    finally:
        _C._set_grad_enabled(before)
    text = _join(prefix + body, suffixes + _history(t), len(prefix))
    return f"Parameter({text})" if is_parameter and not plain else text
