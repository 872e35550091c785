"""Tensor methods that are written in Python; bindings/py_python.c adds them to `lucid.Tensor`."""

import math

from . import _C


def _elementwise(name, function, tensors):
    """Write function of the elements into the first tensor, element by element."""
    first = tensors[0]
    if first.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if any(t.device.type != "cpu" for t in tensors):
        raise TypeError(f"{name} is only implemented on CPU tensors")
    for t in tensors[1:]:
        if t.dtype != first.dtype:
            raise TypeError(f"{name}: expected {first.dtype} for 'other' (got {t.dtype})")
    columns = [t.expand(first.shape).reshape(-1).tolist() for t in tensors]
    values = _C.tensor([function(*each) for each in zip(*columns)], dtype=first.dtype)
    return first.copy_(values.reshape(first.shape))


def lu(self, pivot=True, get_infos=False):
    """The LU factorisation with pivots, in one matrix: lucid.lu.

    >>> lucid.eye(2).lu()[1]
    tensor([1, 2], dtype=lucid.int32)
    """
    from .linalg._lu import lu as factorise

    return tuple(factorise(self, pivot, get_infos))


def apply_(self, callable):  # noqa: A002 (PyTorch's name)
    """Apply a Python function to every element, in place. Slow: for tests and one-off jobs on the CPU.

    >>> lucid.tensor([1.0, 2.0]).apply_(lambda v: 10 * v)
    tensor([10., 20.])
    """
    return _elementwise("apply_", callable, (self,))


def map_(self, tensor, callable):  # noqa: A002
    """Apply a Python function to every element and the matching one of another tensor, in place.

    >>> lucid.tensor([1.0, 2.0]).map_(lucid.tensor([3.0, 4.0]), lambda a, b: a * b)
    tensor([3., 8.])
    """
    return _elementwise("map_", callable, (self, tensor))


def map2_(self, x, y, callable):  # noqa: A002
    """Apply a Python function to every element and the matching ones of two tensors, in place.

    >>> x = lucid.tensor([1.0, 2.0])
    >>> x.map2_(x, x, lambda a, b, c: a + b + c)
    tensor([3., 6.])
    """
    return _elementwise("map2_", callable, (self, x, y))


def _tensor(value, name, argument):
    if not isinstance(value, _C.Tensor):
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be Tensor, not {type(value).__name__}")
    return value


def is_same_size(self, other):
    """Whether another tensor has the same shape.

    >>> lucid.ones(2, 3).is_same_size(lucid.ones(3, 2))
    False
    """
    return self.shape == _tensor(other, "is_same_size", "other").shape


def is_set_to(self, tensor):
    """Whether another tensor has the same storage, offset, shape and strides.

    >>> x = lucid.ones(2, 3)
    >>> x.is_set_to(x.detach()), x.is_set_to(x.t())
    (True, False)
    """
    _tensor(tensor, "is_set_to", "tensor")
    same = self.untyped_storage() == tensor.untyped_storage() and self.storage_offset() == tensor.storage_offset()
    return same and self.shape == tensor.shape and self.stride() == tensor.stride()


def is_nonzero(self):
    """Whether the one value is not zero.

    >>> lucid.tensor([0.5]).is_nonzero()
    True
    """
    if self.numel() != 1:
        ambiguous = "no values" if self.numel() == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {ambiguous} is ambiguous")
    return bool(self)


def is_distributed(self):
    """Whether the values are distributed over processes: never.

    >>> lucid.ones(2).is_distributed()
    False
    """
    return False


def const_data_ptr(self):
    """The address of the first element, to read.

    >>> x = lucid.ones(2)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return self.data_ptr()


def _to_layout(self, layout, sparse_dim=None, dense_dim=None, blocksize=None):
    from .sparse.construct import to_layout

    return to_layout(self, layout, sparse_dim, dense_dim, blocksize)


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor in a sparse layout: COO with sparse_dim sparse dimensions, or the given layout.

    >>> lucid.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([2.]),
           size=(2, 2), nnz=1, layout=lucid.sparse_coo)
    """
    if sparse_dim is not None and (layout is not None or blocksize is not None or dense_dim is not None):
        raise RuntimeError("to_sparse: sparse_dim goes with no other argument")
    if sparse_dim is not None:
        return _to_layout(self, _C.sparse_coo, sparse_dim)
    return _to_layout(self, _C.sparse_coo if layout is None else layout, None, dense_dim, blocksize)


def to_sparse_coo(self):
    """The tensor as indices and values.

    >>> lucid.eye(2).to_sparse_coo().layout
    lucid.sparse_coo
    """
    return _to_layout(self, _C.sparse_coo)


def to_sparse_csr(self, dense_dim=None):
    """The tensor in compressed sparse row format.

    >>> lucid.eye(3).to_sparse_csr().crow_indices()
    tensor([0, 1, 2, 3])
    """
    return _to_layout(self, _C.sparse_csr, None, dense_dim)


def to_sparse_csc(self, dense_dim=None):
    """The tensor in compressed sparse column format.

    >>> lucid.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csc().ccol_indices()
    tensor([0, 0, 2])
    """
    return _to_layout(self, _C.sparse_csc, None, dense_dim)


def to_sparse_bsr(self, blocksize, dense_dim=None):
    """The tensor in block compressed sparse row format.

    >>> lucid.eye(4).to_sparse_bsr((2, 2)).values().shape
    lucid.Size([2, 2, 2])
    """
    return _to_layout(self, _C.sparse_bsr, None, dense_dim, blocksize)


def to_sparse_bsc(self, blocksize, dense_dim=None):
    """The tensor in block compressed sparse column format.

    >>> lucid.eye(4).to_sparse_bsc((2, 2)).row_indices()
    tensor([0, 1])
    """
    return _to_layout(self, _C.sparse_bsc, None, dense_dim, blocksize)


def sparse_resize_(self, size, sparse_dim, dense_dim):
    """Give a COO tensor another size in place. Its entries stay, so only sparse dimensions can change, and only grow.

    >>> lucid.eye(2).to_sparse().sparse_resize_((3, 3), 2, 0).to_dense().shape
    lucid.Size([3, 3])
    """
    from .sparse.construct import resized

    self.data = resized(self, size, sparse_dim, dense_dim)
    return self


def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
    """Give a COO tensor another size and no entries, in place.

    >>> lucid.eye(2).to_sparse().sparse_resize_and_clear_((3, 3), 2, 0)._nnz()
    0
    """
    from .sparse.construct import resized

    self.data = resized(self, size, sparse_dim, dense_dim, clear=True)
    return self


def dim_order(self, *, ambiguity_check=False):
    """Dimensions from the outermost to the innermost in memory.

    ambiguity_check: True raises if several orders fit; a list of memory formats raises unless exactly one of them fits.

    >>> lucid.empty(2, 3, 5, 7).transpose(1, 2).dim_order()
    (0, 2, 1, 3)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, type(_C.channels_last)) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = self.stride()
    ambiguous = 1 in self.shape or any(a == b for a, b in zip(strides, strides[1:]))
    if (ambiguity_check or formats) and ambiguous and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    return tuple(sorted(range(self.ndim), key=lambda d: -strides[d]))


def storage(self):
    """The memory behind the tensor, as elements of its dtype; `untyped_storage` has it in bytes.

    >>> lucid.zeros(2, 3)[1].storage().size()
    6
    """
    from .storage import TypedStorage

    return TypedStorage._of(self)


def storage_type(self):
    """The legacy class of its storage.

    >>> lucid.ones(1).storage_type() is lucid.FloatStorage
    True
    """
    from . import storage

    name = storage.TypedStorage._of(self).pickle_storage_type()
    return getattr(storage, name)


def record_stream(self, stream):
    """Keep the memory until the work that a stream has then has ended. On the CPU it has: nothing is to be done.

    >>> lucid.ones(1).record_stream(lucid.Stream())
    """
    from ._namespace.streams import Stream

    if isinstance(stream, Stream) and stream.device.type == "cpu":
        return
    if not isinstance(getattr(stream, "cuda_stream", None), int):
        raise RuntimeError(f"record_stream: expected a stream, not {type(stream).__name__}")
    if self.numel():
        _C._cuda_record_stream(self, stream.cuda_stream)


def new(self, *args, device=None):
    """PyTorch's old constructor, with this tensor's dtype: of sizes, of data, or of another tensor.

    >>> lucid.ones(1).new(2, 3).shape, lucid.ones(1).new([2, 3])
    (lucid.Size([2, 3]), tensor([2., 3.]))
    """
    from ._namespace.legacy import construct

    return construct(self.dtype, args, self.device if device is None else device)


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Use the memory of another tensor, or of a storage, from now on.

    >>> x = lucid.ones(1)
    >>> x.set_(lucid.arange(6.0), 1, (2, 2))
    tensor([[1., 2.],
            [3., 4.]])
    """
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("set_: a result that has history cannot be given other memory")
    if isinstance(source, _C.Tensor):
        if source.dtype != self.dtype:
            raise RuntimeError(f"Could not set tensor of type {source.dtype} to a tensor of type {self.dtype}")
        if size is None:
            self.data = source.detach()
            return self
        source = source.untyped_storage()
    if source is None:
        self.data = self.new_empty(0)
        return self
    if size is None:
        size = (source.nbytes() // self.element_size() - storage_offset,)
    elif isinstance(size, int):
        size = (size,)
    if any(s < 0 for s in stride or ()):
        raise RuntimeError(f"set_: negative strides are not supported: {stride}")
    if not stride:
        stride = [math.prod(size[d + 1 :]) for d in range(len(size))]
    self.data = _C._on_storage(source, self.dtype, tuple(size), tuple(stride), storage_offset)
    return self


def hash_tensor(self, dim=(), *, keepdim=False, mode=0):
    """The elements, as 64-bit patterns, joined by exclusive or: over dim, or all of them. uint64.

    >>> lucid.tensor([1, 2, 4]).hash_tensor()
    tensor(7, dtype=lucid.uint64)
    """
    from ._namespace import toplevel

    return toplevel.hash_tensor(self, dim, keepdim=keepdim, mode=mode)


def slice_inverse(self, src, dim=0, start=None, end=None, step=1):
    """A view of the memory in the shape of `src`, of which the tensor is a slice.

    >>> x = lucid.arange(4.0)
    >>> x[1:3].slice_inverse(x, 0, 1, 3)
    tensor([0., 1., 2., 3.])
    """
    from ._namespace import toplevel

    return toplevel.slice_inverse(self, src, dim, start, end, step)


def module_load(self, other, assign=False):
    """What `load_state_dict` puts in the place of this parameter or buffer: its values are written, or, with assign, others.

    >>> lucid.zeros(2).module_load(lucid.ones(2))
    tensor([1., 1.])
    """
    return other.detach() if assign else self.copy_(other).detach()
