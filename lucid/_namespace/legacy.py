"""PyTorch's legacy tensor types: one name for a dtype and a device. They construct tensors; `isinstance` and `Tensor.type`
accept them.

>>> lucid.FloatTensor([1, 2])
tensor([1., 2.])
>>> isinstance(lucid.ones(2), lucid.FloatTensor), isinstance(lucid.ones(2), lucid.LongTensor)
(True, False)
>>> lucid.ones(2).type(lucid.LongTensor)
tensor([1, 1])
"""

from .. import _C

_DTYPES = {
    "FloatTensor": _C.float32,
    "DoubleTensor": _C.float64,
    "HalfTensor": _C.float16,
    "BFloat16Tensor": _C.bfloat16,
    "LongTensor": _C.int64,
    "IntTensor": _C.int32,
    "ShortTensor": _C.int16,
    "CharTensor": _C.int8,
    "ByteTensor": _C.uint8,
    "BoolTensor": _C.bool,
}
__all__ = [*_DTYPES, "set_default_tensor_type", "typename"]


def construct(dtype, args, device=None):
    """The legacy constructor: sizes give an uninitialised tensor; data give a copy; a tensor of that dtype gives itself.

    >>> from lucid._namespace.legacy import construct
    >>> construct(lucid.int64, (2, 3)).shape, construct(lucid.int64, ([2, 3],))
    (lucid.Size([2, 3]), tensor([2, 3]))
    """
    if len(args) == 1 and not isinstance(args[0], _C.Size):
        data = args[0]
        if isinstance(data, _C.Tensor):
            if data.dtype != dtype:
                raise TypeError(f"expected a tensor of {dtype} (got {data.dtype})")
            return data.detach()
        if hasattr(data, "untyped"):
            return _C._on_storage(data.untyped(), dtype, (data.nbytes() // dtype.itemsize,), (1,), 0)
        if isinstance(data, (bool, str, bytes)):
            raise TypeError(f"new(): data must be a sequence of numbers (got {type(data).__name__})")
        if hasattr(data, "__len__"):
            return _C.tensor(data if hasattr(data, "__array__") else list(data), dtype=dtype, device=device)
        if not hasattr(data, "__index__"):
            raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return _C.empty(*(args or (0,)), dtype=dtype, device=device)


class _TensorType(type):
    """The class of the legacy types: classes without instances of their own."""

    def __call__(cls, *args, device=None):
        if cls.is_cuda and not _C._device_count(1):
            raise TypeError(f"type {cls.__module__}.{cls.__name__} not available. There is no CUDA device.")
        return construct(cls.dtype, args, ("cuda" if cls.is_cuda else "cpu") if device is None else device)

    def __instancecheck__(cls, value):
        return isinstance(value, _C.Tensor) and value.dtype == cls.dtype and value.is_cuda == cls.is_cuda


def _make(name, module="lucid"):
    dtype = _DTYPES[name]
    doc = f"""Tensors of {str(dtype).rpartition(".")[2]}: the old way to say so.

    >>> lucid.{name}([1, 0]).dtype
    {dtype!r}
    """
    is_cuda = module != "lucid"
    return _TensorType(name, (), {"__doc__": "" if is_cuda else doc, "__module__": module, "dtype": dtype, "is_cuda": is_cuda})


globals().update({name: _make(name) for name in _DTYPES})
_ON_CUDA = {}


def on_cuda(name):
    """The legacy type of that name for CUDA devices.

    >>> lucid.cuda.FloatTensor
    <class 'lucid.cuda.FloatTensor'>
    """
    if name not in _ON_CUDA:
        _ON_CUDA[name] = _make(name, "lucid.cuda")
    return _ON_CUDA[name]


def set_default_tensor_type(t, /):
    """Set the default dtype by the old name of a tensor type, or by the type. A type of lucid.cuda makes CUDA the default
    device, too, and others the CPU.

    >>> lucid.set_default_tensor_type(lucid.DoubleTensor)
    >>> lucid.ones(1).dtype
    lucid.float64
    >>> lucid.set_default_tensor_type("lucid.FloatTensor")
    """
    if isinstance(t, str):
        _, *path, name = t.split(".")
        t = None if name not in _DTYPES or path not in ([], ["cuda"]) else on_cuda(name) if path else globals()[name]
    if not isinstance(t, _TensorType):
        raise TypeError("invalid type object")
    if not t.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if t.is_cuda or _C.get_default_device().type == "cuda":
        _C.set_default_device("cuda" if t.is_cuda else None)
    _C.set_default_dtype(t.dtype)


def typename(obj, /):
    """The name of a tensor's type, or of an object's class with its module.

    >>> lucid.typename(lucid.ones(1)), lucid.typename(lucid.nn.Linear(1, 1)), lucid.typename(1)
    ('lucid.FloatTensor', 'lucid.nn.modules.linear.Linear', 'int')
    """
    if isinstance(obj, _C.Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "", "builtins") else f"{module}.{named.__qualname__}"
