"""Memory behind tensors, as elements of a dtype: what `Tensor.storage()` returns. `untyped_storage()` is the same in bytes.

>>> storage = lucid.tensor([1.0, 2.0]).storage()
>>> len(storage), storage[1], storage.tolist()
(2, 2.0, [1.0, 2.0])
"""

from . import _C
from ._C import UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]


class TypedStorage:
    """The memory behind a tensor, element by element.

    >>> x = lucid.zeros(3)
    >>> x[1:].storage()[0] = 5.0
    >>> x
    tensor([5., 0., 0.])
    """

    is_sparse = False

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None):
        if wrap_storage is None:
            from ._namespace.legacy import construct

            made = construct(_C.get_default_dtype() if dtype is None else dtype, args, device)
            wrap_storage, dtype = made.untyped_storage(), made.dtype
        if not isinstance(wrap_storage, UntypedStorage) or not isinstance(dtype, _C.dtype):
            raise TypeError("TypedStorage: wrap_storage is an UntypedStorage, and comes with a dtype")
        self._untyped_storage, self.dtype = wrap_storage, dtype

    @classmethod
    def _of(cls, tensor):
        return cls(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)

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
