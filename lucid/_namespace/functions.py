"""Queries and switches that need no op."""

from .. import _C


def _tensor(value, function, argument="input"):
    if isinstance(value, _C.Tensor):
        return value
    raise TypeError(f"{function}(): argument {argument!r} must be Tensor, not {type(value).__name__}")


def is_tensor(obj):
    """Whether `obj` is a tensor.

    >>> lucid.is_tensor(lucid.ones(2)), lucid.is_tensor([1.0, 1.0])
    (True, False)
    """
    return isinstance(obj, _C.Tensor)


def is_storage(obj):
    """Whether `obj` is the memory behind a tensor.

    >>> lucid.is_storage(lucid.ones(2).untyped_storage()), lucid.is_storage(lucid.ones(2))
    (True, False)
    """
    from ..storage import TypedStorage

    return isinstance(obj, (_C.UntypedStorage, TypedStorage))


@_C.overridable
def is_floating_point(input):  # noqa: A002 (PyTorch's name)
    """Whether a tensor holds floating point numbers.

    >>> lucid.is_floating_point(lucid.ones(2)), lucid.is_floating_point(lucid.tensor(1))
    (True, False)
    """
    return _tensor(input, "is_floating_point").dtype.is_floating_point


@_C.overridable
def is_complex(input):  # noqa: A002
    """Whether a tensor holds complex numbers.

    >>> lucid.is_complex(lucid.ones(2, dtype=lucid.complex64))
    True
    """
    return _tensor(input, "is_complex").dtype.is_complex


@_C.overridable
def is_conj(input):  # noqa: A002
    """Whether a conjugation is pending: never, conj() computes at once.

    >>> lucid.is_conj(lucid.ones(2, dtype=lucid.complex64).conj())
    False
    """
    return input.is_conj()


@_C.overridable
def is_neg(input):  # noqa: A002
    """Whether a negation is pending: never.

    >>> lucid.is_neg(lucid.ones(2))
    False
    """
    return input.is_neg()


@_C.overridable
def is_signed(input):  # noqa: A002
    """Whether a tensor's dtype has negative numbers.

    >>> lucid.is_signed(lucid.ones(2)), lucid.is_signed(lucid.tensor(True))
    (True, False)
    """
    return _tensor(input, "is_signed").dtype.is_signed


@_C.overridable
def is_inference(input):  # noqa: A002
    """Whether a tensor was made in inference mode.

    >>> lucid.is_inference(lucid.ones(2))
    False
    """
    return _tensor(input, "is_inference").is_inference()


@_C.overridable
def is_same_size(input, other):  # noqa: A002
    """Whether two tensors have the same shape.

    >>> lucid.is_same_size(lucid.ones(2, 3), lucid.ones(2, 3))
    True
    """
    return _tensor(input, "is_same_size").shape == _tensor(other, "is_same_size", "other").shape


@_C.overridable
def is_nonzero(input):  # noqa: A002
    """Whether a tensor's one value is not zero.

    >>> lucid.is_nonzero(lucid.tensor([0.5]))
    True
    """
    if _tensor(input, "is_nonzero").numel() != 1:
        ambiguous = "no values" if input.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {ambiguous} is ambiguous")
    return bool(input)


@_C.overridable
def numel(input):  # noqa: A002
    """How many values a tensor has.

    >>> lucid.numel(lucid.ones(2, 3))
    6
    """
    return _tensor(input, "numel").numel()


_interop_threads = 1


def get_num_interop_threads():
    """The number of inter-op threads that `set_num_interop_threads` set; 1 at first.

    >>> lucid.get_num_interop_threads() >= 1
    True
    """
    return _interop_threads


def set_num_interop_threads(int, /):  # noqa: A002
    """Set the value that `get_num_interop_threads` returns. An op runs on the thread that calls it, as in eager PyTorch.

    >>> lucid.set_num_interop_threads(lucid.get_num_interop_threads())
    """
    global _interop_threads
    if not hasattr(type(int), "__index__"):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(int).__name__}")
    if int < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _interop_threads = int.__index__()


def to_dlpack(tensor):
    """A capsule with a tensor's memory, for another library's `from_dlpack`. It can be used once.

    >>> x = lucid.ones(2)
    >>> lucid.from_dlpack(lucid.to_dlpack(x)).data_ptr() == x.data_ptr()
    True
    """
    return _tensor(tensor, "to_dlpack", "tensor").__dlpack__()


def test(verbose=False):
    """Check this installation: run the examples of every module's documentation. Returns whether all examples passed.

    `python -c "import lucid; assert lucid.test()"` says whether a build works on a machine without its test-suite. The
    examples set global switches and draw random numbers.

    >>> lucid.test()  # doctest: +SKIP
    True
    """
    from doctest import IGNORE_EXCEPTION_DETAIL, testmod
    from importlib import import_module
    from pkgutil import walk_packages

    lucid = import_module("lucid")
    names = [m.name for m in walk_packages(lucid.__path__, "lucid.")]
    modules = [import_module(n) for n in ["lucid", *sorted(names)] if n not in ("lucid._C", "lucid.liblucid")]
    results = [testmod(m, extraglobs={"lucid": lucid}, optionflags=IGNORE_EXCEPTION_DETAIL) for m in modules]
    failed, attempted = (sum(r[i] for r in results) for i in (0, 1))
    if verbose or failed:
        print(f"lucid {lucid.__version__}: {attempted} examples in {len(modules)} modules, {failed} failed")
    return failed == 0


def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to.

    >>> lucid.broadcast_shapes((2, 1), (3,), 1)
    lucid.Size([2, 3])
    """
    if any(isinstance(s, float) for s in shapes):
        raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shapes}")
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes if s is not None]
    ndim = max(map(len, shapes), default=0)
    sizes = [1] * ndim
    for shape in shapes:
        for d, size in enumerate(shape, ndim - len(shape)):
            if size < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if size != 1 and sizes[d] not in (1, size):
                raise RuntimeError(f"Shape mismatch: objects cannot be broadcast to a single shape: {shapes}")
            sizes[d] = size if sizes[d] == 1 else sizes[d]
    return _C.Size(sizes)
