"""Methods of UntypedStorage that are written in Python (bindings/tensor/py_storage.c)."""

from .. import _C
from .._C import UntypedStorage


def _bytes(storage):
    return _C._on_storage(storage, _C.uint8, (storage.nbytes(),), (1,), 0)


def _typed(tensor):
    from ..storage import TypedStorage

    return TypedStorage._of(tensor)


def tolist(self):
    """The bytes as numbers.

    >>> lucid.UntypedStorage([1, 2]).tolist()
    [1, 2]
    """
    return _bytes(self).tolist()


def fill_(self, value):
    """Write one number to every byte.

    >>> lucid.UntypedStorage(2).fill_(7).tolist()
    [7, 7]
    """
    _bytes(self).fill_(value)
    return self


def copy_(self, source, non_blocking=None):
    """Write the bytes of another storage of the same size.

    >>> lucid.UntypedStorage(2).copy_(lucid.UntypedStorage([1, 2])).tolist()
    [1, 2]
    """
    if self.nbytes() != source.nbytes():
        raise RuntimeError(f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes")
    _bytes(self).copy_(_bytes(source.untyped()))
    return self


def clone(self):
    """A copy of the memory.

    >>> s = lucid.UntypedStorage([1, 2]); s.clone() == s
    False
    """
    return _bytes(self).clone().untyped_storage()


def cpu(self):
    """The bytes in main memory.

    >>> lucid.UntypedStorage([1, 2]).cpu().tolist()
    [1, 2]
    """
    return self if self.device.type == "cpu" else _bytes(self).cpu().untyped_storage()


def to(self, *, device, non_blocking=False):
    """The bytes on a device.

    >>> lucid.UntypedStorage([1, 2]).to(device="cpu").tolist()
    [1, 2]
    """
    values = _bytes(self)
    moved = values.to(device, non_blocking=non_blocking)
    return self if moved is values else moved.untyped_storage()


def cuda(self, device=None, non_blocking=False):
    """The bytes in the memory of a CUDA device.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.UntypedStorage([1, 2]).cuda().is_cuda
    """
    return to(self, device="cuda" if device is None else device, non_blocking=non_blocking)


def pin_memory(self, device="cuda"):
    """A copy in page-locked memory, or the storage itself if it is there.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.UntypedStorage([1, 2]).pin_memory().is_pinned()
    """
    return self if self.is_pinned() else _bytes(self).pin_memory(device).untyped_storage()


def new(self):
    """An empty storage.

    >>> len(lucid.UntypedStorage([1, 2]).new())
    0
    """
    return UntypedStorage(0)


def resize_(self, size):
    """Refused, unless the size is what it is: tensors hold addresses of this memory.

    >>> len(lucid.UntypedStorage(2).resize_(2))
    2
    """
    if size != self.nbytes():
        raise RuntimeError("Trying to resize storage that is not resizable")
    return self


def share_memory_(self):
    """Refused: the memory stays where it is. `Tensor.share_memory_` moves a tensor's.

    >>> lucid.ones(2).share_memory_().untyped_storage().share_memory_().is_shared()
    True
    """
    if not self.is_shared():
        raise RuntimeError("a storage cannot be moved to shared memory; call share_memory_() of the tensor")
    return self


def byteswap(self, dtype):
    """Reverse the order of the bytes of every element of a dtype.

    >>> s = lucid.UntypedStorage([1, 2]); s.byteswap(lucid.int16); s.tolist()
    [2, 1]
    """
    part = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    groups = _bytes(self).view(-1, part)
    groups.copy_(groups.flip(1))


def type(self, dtype=None, non_blocking=False):  # noqa: A001 (PyTorch's name)
    """The name of the class, or the bytes as elements of another dtype.

    >>> lucid.UntypedStorage([1, 2]).type(lucid.float32).tolist()
    [1.0, 2.0]
    """
    return "lucid.storage.UntypedStorage" if dtype is None else _typed(_bytes(self).to(dtype))


def from_file(filename, shared=False, nbytes=0):
    """The bytes of a file, mapped: nbytes of them, 0 is all. shared: writes go to the file; else they stay here.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "bytes")
    >>> with open(path, "wb") as file: size = file.write(b"abc")
    >>> s = lucid.UntypedStorage.from_file(path)
    >>> lucid.asarray(s[1:], dtype=lucid.uint8)
    tensor([98, 99], dtype=lucid.uint8)
    """
    import os

    size = nbytes or (os.stat(filename).st_size if os.path.exists(filename) else 0)
    return _C.from_file(filename, bool(shared), size, dtype=_C.uint8).untyped_storage()
