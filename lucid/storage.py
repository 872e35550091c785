"""Memory behind tensors: `Tensor.untyped_storage()` in bytes, `Tensor.storage()` as elements of a dtype.

>>> storage = lucid.tensor([1.0, 2.0]).storage()
>>> len(storage), storage[1], storage.tolist()
(2, 2.0, [1.0, 2.0])
>>> lucid.FloatStorage([3, 4]).untyped().nbytes()
8

The memory of a storage does not move: `resize_` gives it no other size.
"""

from . import _C
from ._C import UntypedStorage

_LEGACY = {
    "BFloat16Storage": _C.bfloat16,
    "BoolStorage": _C.bool,
    "ByteStorage": _C.uint8,
    "CharStorage": _C.int8,
    "ComplexDoubleStorage": _C.complex128,
    "ComplexFloatStorage": _C.complex64,
    "DoubleStorage": _C.float64,
    "FloatStorage": _C.float32,
    "HalfStorage": _C.float16,
    "IntStorage": _C.int32,
    "LongStorage": _C.int64,
    "ShortStorage": _C.int16,
}
__all__ = ["TypedStorage", "UntypedStorage", *_LEGACY]
_METHODS = {  # storage.float() and kin: the elements in another dtype
    "bfloat16": "bfloat16",
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "complex_double": "complex128",
    "complex_float": "complex64",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
}


class TypedStorage:
    """The memory behind a tensor, element by element.

    >>> x = lucid.zeros(3)
    >>> x[1:].storage()[0] = 5.0
    >>> x
    tensor([5., 0., 0.])
    """

    is_sparse = False
    dtype = None

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None):
        dtype = type(self).dtype if dtype is None else dtype
        if wrap_storage is None and len(args) == 1 and isinstance(args[0], UntypedStorage):
            wrap_storage, dtype = args[0], _C.get_default_dtype() if dtype is None else dtype
        if wrap_storage is None:
            from ._namespace.legacy import construct

            made = construct(_C.get_default_dtype() if dtype is None else dtype, args, device)
            wrap_storage, dtype = made.untyped_storage(), made.dtype
        if not isinstance(wrap_storage, UntypedStorage) or not isinstance(dtype, _C.dtype):
            raise TypeError("TypedStorage: wrap_storage is an UntypedStorage, and comes with a dtype")
        self._untyped_storage, self.dtype = wrap_storage, dtype

    @staticmethod
    def _of(tensor):
        return TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """The elements of a file, mapped; size: how many. shared: writes go to the file."""
        dtype = cls.dtype or _C.get_default_dtype()
        return TypedStorage(wrap_storage=UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype=dtype)

    @classmethod
    def from_buffer(cls, buffer, byte_order=None, count=-1, offset=0):
        """A copy of the elements in an object's bytes; byte_order: "native", "little" or "big".

        >>> lucid.ShortStorage.from_buffer(bytes([0, 1, 0, 2]), "big").tolist()
        [1, 2]
        """
        dtype, data = cls.dtype or _C.get_default_dtype(), memoryview(buffer).cast("B")
        if byte_order is None and dtype.itemsize > 1:
            raise RuntimeError(f"from_buffer needs a byte_order for {dtype}: 'native', 'little' or 'big'")
        if byte_order not in (None, "native", "little", "big"):
            raise ValueError(f"invalid byte_order {byte_order!r} (expected 'big', 'little', or 'native')")
        if not 0 <= offset <= len(data):
            raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(data)}), but got {offset}")
        there = len(data) - offset
        if count < 0 and there % dtype.itemsize:
            raise ValueError(f"buffer size ({there}) must be a multiple of element size ({dtype.itemsize})")
        if count * dtype.itemsize > there:
            there //= dtype.itemsize
            raise ValueError(f"buffer has only {there} elements after offset {offset}, but specified a size of {count}")
        size = there if count < 0 else count * dtype.itemsize
        data = bytearray(data[offset : offset + size])
        if byte_order == "big":
            part = dtype.itemsize // (2 if dtype.is_complex else 1)
            for i in range(0, size, part):
                data[i : i + part] = data[i : i + part][::-1]
        if dtype == _C.bool:
            data = bytearray(map(bool, data))
        values = _C.frombuffer(data, dtype=dtype).clone() if data else _C.empty(0, dtype=dtype)
        return TypedStorage(wrap_storage=values.untyped_storage(), dtype=dtype)

    _from_buffer = from_buffer

    def _values(self):
        return _C._on_storage(self._untyped_storage, self.dtype, (len(self),), (1,), 0)

    @property
    def device(self):
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def is_cuda(self):
        """Whether the memory is a CUDA device's."""
        return self.device.type == "cuda"

    @property
    def filename(self):
        """None: which file is mapped is not kept."""
        return None

    def untyped(self):
        """The same memory in bytes."""
        return self._untyped_storage

    def __len__(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    size = __len__

    def nbytes(self):
        """How many bytes there are."""
        return self._untyped_storage.nbytes()

    def element_size(self):
        """Bytes per element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """The address of the first byte."""
        return self._untyped_storage.data_ptr()

    def get_device(self):
        """The index of its GPU, -1 on the CPU."""
        return -1 if self.device.type == "cpu" else self.device.index

    def tolist(self):
        """The elements as Python scalars."""
        return self._values().tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        return self._values()[index].item()

    def __setitem__(self, index, value):
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._values()[index] = value

    def fill_(self, value):
        """Write one number to every element."""
        self._values().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Write the elements of another storage."""
        self._values().copy_(source._values())
        return self

    def clone(self):
        """A copy of the memory."""
        return self._of(self._values().clone())

    def cpu(self):
        """The elements in main memory."""
        return self if self.device.type == "cpu" else self._of(self._values().cpu())

    def cuda(self, device=None, non_blocking=False):
        """The elements in the memory of a CUDA device."""
        return TypedStorage(wrap_storage=self._untyped_storage.cuda(device, non_blocking), dtype=self.dtype)

    def to(self, *, device, non_blocking=False):
        """The elements on a device."""
        return TypedStorage(wrap_storage=self._untyped_storage.to(device=device, non_blocking=non_blocking), dtype=self.dtype)

    def pin_memory(self, device="cuda"):
        """The elements in page-locked memory."""
        return TypedStorage(wrap_storage=self._untyped_storage.pin_memory(device), dtype=self.dtype)

    def type(self, dtype=None, non_blocking=False):
        """The name of the legacy class, or the elements in another dtype."""
        if dtype is None:
            return f"{_C.Tensor.__module__}.{self.pickle_storage_type()}"
        return self._of(self._values().to(dtype if isinstance(dtype, _C.dtype) else dtype.dtype))

    def pickle_storage_type(self):
        """The name under which PyTorch's files know the dtype."""
        return next((name for name, dtype in _LEGACY.items() if dtype == self.dtype), "UntypedStorage")

    def resizable(self):
        """Whether `resize_` can change the size: no."""
        return False

    def resize_(self, size):
        """Refused, unless the size is what it is."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def is_shared(self):
        """Whether other processes can map the memory."""
        return self._untyped_storage.is_shared()

    def is_pinned(self):
        """Whether the memory is page-locked."""
        return self._untyped_storage.is_pinned()

    def _new_shared(self, size, *, device=None):
        return self._of(_C.empty(size, dtype=self.dtype).share_memory_())  # copies of PyTorch's collate call this

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr() and self.dtype == other.dtype

    __hash__ = object.__hash__

    def __repr__(self):
        data = "\n".join(f" {value}" for value in self)
        return f"{data}\n[lucid.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


def _conversion(name, dtype):
    def convert(self):
        return self._of(self._values().to(dtype))

    convert.__name__, convert.__qualname__ = name, f"TypedStorage.{name}"
    convert.__doc__ = f"The elements as {dtype}."
    return convert


for _name, _dtype in _METHODS.items():
    setattr(TypedStorage, _name, _conversion(_name, getattr(_C, _dtype)))


class _StorageType(type):
    """The class of the legacy storages: they make storages of one dtype, and `isinstance` asks for it."""

    def __instancecheck__(cls, instance):
        return type.__instancecheck__(cls, instance) or isinstance(instance, TypedStorage) and instance.dtype == cls.dtype


def _legacy(name, dtype):
    doc = f"A storage of {dtype}.\n\n    >>> len(lucid.{name}(3))\n    3\n    "
    return _StorageType(name, (TypedStorage,), {"dtype": dtype, "__doc__": doc, "__module__": _C.Tensor.__module__})


globals().update({name: _legacy(name, dtype) for name, dtype in _LEGACY.items()})
