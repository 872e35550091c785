"""Tensors of the runtime: dense float32 or float64 numbers with a shape, and views that are metadata alone. A view has no
numbers: its owner reads them (`to_host_view`), so it sees what was written since.

Shapes are lists of positive ints, strides count elements, everything is a method. A request that cannot be answered raises
TensorRequestError, which is a RuntimeError with the name of a status, and a ValueError.
"""

from math import prod

from lucid import _C

from . import _copies

_c = _C._lightning()


class TensorRequestError(RuntimeError, ValueError):
    """A tensor was asked for what it cannot do.

    >>> raise TensorRequestError("invalid value")
    Traceback (most recent call last):
    lightning_core._tensors.TensorRequestError: invalid value
    """


def _refuse():
    raise TensorRequestError("invalid value")


def _ints(values, least):
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"a list of ints is expected, not {type(values).__name__}")
    found = []
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"a list of ints is expected, not one with {value!r}")
        found.append(int(value))
    if not found or min(found) < least:
        _refuse()
    return found


def _strides(shape):
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def _device(device):
    if not isinstance(device, str):
        raise TypeError(f"device must be a string, not {type(device).__name__}")
    if not _c.runtime_backend_capabilities(device)["available"]:
        raise TensorRequestError("not supported")
    return device


class _Geometry:
    """What tensors and views say of themselves."""

    def shape(self):
        """The sizes."""
        return list(self._shape)

    def strides(self):
        """Elements between neighbours, per dimension."""
        return list(self._strides)

    def rank(self):
        """How many dimensions."""
        return len(self._shape)

    def numel(self):
        """How many elements."""
        return prod(self._shape)

    def is_contiguous(self):
        """Whether the elements lie one after the other."""
        return self._strides == _strides(self._shape)

    def layout(self):
        """ "contiguous" or "strided"."""
        return "contiguous" if self.is_contiguous() else "strided"

    def dtype(self):
        """ "float32" or "float64"."""
        return self._dtype

    def device(self):
        """Where the numbers are."""
        return self._device

    def _reach(self):
        """One past the last element, from the first."""
        return 1 + sum((n - 1) * s for n, s in zip(self._shape, self._strides))

    def _contract(self, **more):
        names = ("shape", "strides", "rank", "numel", "is_contiguous", "layout", "dtype", "device")
        return {name: getattr(self, name)() for name in names} | more


class _View(_Geometry):
    def __init__(self, *args, **kwargs):
        raise TypeError(f"{type(self).__name__} has no constructor: a tensor's view() and slice() make it")

    @classmethod
    def _of(cls, owner, shape, strides, offset):
        view = object.__new__(cls)
        view._shape, view._strides, view._offset = shape, strides, offset
        view._dtype, view._device = owner._dtype, owner._device
        return view

    def offset_elements(self):
        """Where the first element is in the owner."""
        return self._offset

    def validate_contract(self):
        """None, or an error if the view is not one."""
        if not self._shape or min(self._shape) < 1 or min(self._strides) < 1 or self._offset < 0:
            _refuse()

    def validate_contract_for_storage(self, storage_numel):
        """None, or an error if the view reaches beyond that many elements."""
        if isinstance(storage_numel, bool) or not hasattr(storage_numel, "__index__"):
            raise TypeError(f"storage_numel must be an int, not {storage_numel!r}")
        self.validate_contract()
        if self._offset + self._reach() > storage_numel:
            _refuse()

    def contract(self):
        """Everything above, as a dict."""
        return self._contract(offset_elements=self._offset)


class TensorView(_View):
    """A view of a Tensor.

    >>> Tensor([2, 3]).slice(1, 1, 3).strides()
    [3, 1]
    """


class Tensor64View(_View):
    """A view of a Tensor64.

    >>> Tensor64([2, 3]).view([6]).dtype()
    'float64'
    """


class _OnHost:
    """Numbers in an array."""

    def __init__(self, size, dtype):
        import numpy as np

        self.array = np.zeros(size, dtype)

    def take(self, array):
        self.array[:] = array

    def fetch(self):
        return self.array

    def gather(self, shape, strides, offset):
        import numpy as np

        size = self.array.itemsize
        seen = np.lib.stride_tricks.as_strided(self.array[offset:], shape, [s * size for s in strides], writeable=False)
        return np.array(seen).reshape(-1)

    def added(self, other):
        made = object.__new__(_OnHost)
        single = self.array.dtype == "float32"
        made.array = _c.vector_add(self.array, other.array, "cpu") if single else self.array + other.array
        return made


class _OnDevice:
    """Numbers on the CUDA device."""

    def __init__(self, size, dtype):
        import lucid

        self.tensor = lucid.zeros(size, dtype=getattr(lucid, dtype), device="cuda")

    def take(self, array):
        import numpy as np

        self.tensor = _copies.send(np.array(array, str(self.tensor.dtype).rpartition(".")[2]))

    def fetch(self):
        return _copies.fetch(self.tensor)

    def gather(self, shape, strides, offset):
        return _copies.fetch(self.tensor.as_strided(shape, strides, offset).reshape(-1))

    def added(self, other):
        made = object.__new__(_OnDevice)
        _c._note(2, "cuda", self.tensor.numel(), "cuda")
        made.tensor = self.tensor + other.tensor
        return made


class _Dense(_Geometry):
    def __init__(self, shape, device="cpu"):
        self._shape = _ints(shape, 1)
        self._strides, self._device, self._size = _strides(self._shape), _device(device), prod(self._shape)
        try:
            self._data = (_OnDevice if device == "cuda" else _OnHost)(self._size, self._dtype)
        except (MemoryError, ValueError, RuntimeError):
            raise TensorRequestError("out of memory") from None

    @classmethod
    def zeros(cls, shape, device="cpu"):
        """A tensor of zeros."""
        return cls(shape, device)

    @classmethod
    def from_numpy_array(cls, values, shape, device="cpu"):
        """A tensor with a copy of the values."""
        made = cls(shape, device)
        made.from_numpy(values)
        return made

    def storage_numel(self):
        """How many elements are kept."""
        return self._size

    def _take(self, values):
        import numpy as np

        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"numbers are expected, not {array.dtype}")
        if array.size != self._size:
            _refuse()
        self._data.take(array.reshape(-1))

    def from_list(self, values):
        """Copies a list of numbers in."""
        self._take(values)

    def from_numpy(self, array):
        """Copies an array in."""
        self._take(array)

    def to_list(self):
        """The elements, flat."""
        return self._data.fetch().tolist()

    def to_numpy(self):
        """A copy of the elements, flat."""
        return self._data.fetch().copy()

    def reshape(self, shape):
        """Another shape of as many elements, in place."""
        new = _ints(shape, 1)
        if prod(new) != self._size:
            _refuse()
        self._shape, self._strides = new, _strides(new)

    def view(self, shape):
        """A view with another shape of as many elements."""
        new = _ints(shape, 1)
        if prod(new) != self._size:
            _refuse()
        return self._view._of(self, new, _strides(new), 0)

    def slice(self, axis, start, end):
        """A view of start <= i < end along one dimension."""
        axis, start, end = (_ints([v], 0)[0] for v in (axis, start, end))
        if axis >= len(self._shape) or not start < end <= self._shape[axis]:
            _refuse()
        shape = [end - start if d == axis else n for d, n in enumerate(self._shape)]
        return self._view._of(self, shape, list(self._strides), start * self._strides[axis])

    def to_host_view_numpy(self, view):
        """A copy of a view's elements, flat."""
        self.validate_view_contract(view)
        return self._data.gather(view._shape, view._strides, view._offset)

    def to_host_view(self, view):
        """A view's elements as a list."""
        return self.to_host_view_numpy(view).tolist()

    def slice_copy_numpy(self, axis, start, end):
        """A copy of a slice, flat."""
        return self.to_host_view_numpy(self.slice(axis, start, end))

    def slice_copy(self, axis, start, end):
        """A slice as a list."""
        return self.slice_copy_numpy(axis, start, end).tolist()

    def read_strided(self, out_shape, source_strides, offset_elements=0):
        """Elements at any positive strides, as a list."""
        shape, strides = _ints(out_shape, 1), _ints(source_strides, 1)
        offset = _ints([offset_elements], 0)[0]
        if len(shape) != len(strides) or offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides)) > self._size:
            _refuse()
        return self._data.gather(shape, strides, offset).tolist()

    def add(self, other):
        """The sum with a tensor of as many elements, as a new tensor of this shape."""
        if not isinstance(other, type(self)):
            raise TypeError(f"a {type(self).__name__} is expected, not {type(other).__name__}")
        if other._size != self._size or other._device != self._device:
            _refuse()
        made = object.__new__(type(self))
        made._shape, made._strides, made._device = list(self._shape), list(self._strides), self._device
        made._size, made._data = self._size, self._data.added(other._data)
        return made

    def validate_contract(self):
        """None: a tensor that was made is in order."""

    def validate_view_contract(self, view):
        """None, or an error if the view does not fit this tensor."""
        if not isinstance(view, self._view):
            raise TypeError(f"a {self._view.__name__} is expected, not {type(view).__name__}")
        if view._device != self._device:
            _refuse()
        view.validate_contract_for_storage(self._size)

    def contract(self):
        """Everything that a tensor says of itself, as a dict."""
        return self._contract(storage_numel=self._size)


class Tensor(_Dense):
    """Dense float32 numbers.

    >>> x = Tensor([2, 3])
    >>> x.from_list([1, 2, 3, 4, 5, 6])
    >>> column = x.slice(1, 1, 2)
    >>> x.to_host_view(column), column.is_contiguous()
    ([2.0, 5.0], False)
    >>> x.add(x).to_list()
    [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    """

    _dtype, _view = "float32", TensorView


class Tensor64(_Dense):
    """Dense float64 numbers.

    >>> Tensor64.from_numpy_array([0.1, 0.2], [2, 1]).to_list()
    [0.1, 0.2]
    """

    _dtype, _view = "float64", Tensor64View
