"""The CUDA array interface, version 3: tensors on the memory of CuPy, Numba and others, and theirs on tensors', without a copy.

>>> if lucid.cuda.is_available():
...     x = lucid.arange(6.0, device="cuda").reshape(2, 3)
...     assert x.__cuda_array_interface__["shape"] == (2, 3)
"""

from .. import _C
from .streams import ExternalStream, current_stream

_CODES = {
    _C.bool: "|b1",
    _C.uint8: "|u1",
    _C.int8: "|i1",
    _C.int16: "<i2",
    _C.int32: "<i4",
    _C.int64: "<i8",
    _C.uint16: "<u2",
    _C.uint32: "<u4",
    _C.uint64: "<u8",
    _C.float16: "<f2",
    _C.float32: "<f4",
    _C.float64: "<f8",
    _C.complex64: "<c8",
    _C.complex128: "<c16",
}
_DTYPES = {code[1:]: dtype for dtype, code in _CODES.items()}


def array_interface(tensor):
    """What `tensor.__cuda_array_interface__` is.

    >>> lucid.ones(2).__cuda_array_interface__
    Traceback (most recent call last):
    AttributeError: ...
    """
    if tensor.device.type != "cuda":
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {tensor.type()} If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )
    if tensor.layout != _C.strided:
        raise AttributeError("Can't get __cuda_array_interface__ on sparse tensor: use tensor.to_dense()")
    if tensor.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use var.detach()"
        )
    if tensor.dtype not in _CODES:
        raise TypeError(f"__cuda_array_interface__ has no code for {tensor.dtype}")
    size = tensor.element_size()
    return {
        "typestr": _CODES[tensor.dtype],
        "shape": tuple(tensor.shape),
        "strides": None if tensor.is_contiguous() else tuple(s * size for s in tensor.stride()),
        "data": (tensor.data_ptr() if tensor.numel() else 0, False),
        "version": 3,
        "stream": current_stream(tensor.device).cuda_stream or 1,
    }


def from_array_interface(owner):
    """A tensor on the memory of an object that has `__cuda_array_interface__`; this thread's stream waits for the object's.

    >>> if lucid.cuda.is_available():
    ...     x = lucid.ones(3, device="cuda")
    ...     assert lucid.cuda.interop.from_array_interface(x).data_ptr() == x.data_ptr()
    """
    interface = owner.__cuda_array_interface__
    try:
        code, shape, (address, read_only) = interface["typestr"], tuple(interface["shape"]), interface["data"]
    except (KeyError, TypeError, ValueError):
        raise ValueError("malformed __cuda_array_interface__: typestr, shape and data are needed") from None
    if interface.get("mask") is not None:
        raise NotImplementedError("__cuda_array_interface__: masked arrays")
    dtype = _DTYPES.get(code[1:]) if code[:1] in "<|=" else None
    if dtype is None:
        raise TypeError(f"__cuda_array_interface__: type {code!r} is not supported")
    strides = interface.get("strides")
    if strides is None:
        steps, step = [], 1
        for size in reversed(shape):
            steps.append(step)
            step *= max(size, 1)
        strides = tuple(reversed(steps))
    else:
        if any(s % dtype.itemsize for s in strides):
            raise ValueError("__cuda_array_interface__: strides are no multiples of the element size")
        strides = tuple(s // dtype.itemsize for s in strides)
    made = _C._cuda_adopt(owner, address or 0, -1, dtype, shape, strides, bool(read_only))
    stream = interface.get("stream")
    if stream == 0:
        raise ValueError("__cuda_array_interface__: stream 0 is ambiguous; 1 is the default stream")
    if stream is not None:
        theirs = ExternalStream(0 if stream == 1 else stream, made.device)
        if theirs != current_stream(made.device):
            current_stream(made.device).wait_stream(theirs)
    return made
