"""NumPy's .npy and .npz files, read and written without NumPy.

>>> import io
>>> file = io.BytesIO()
>>> lucid.serialization.save_npy(lucid.arange(3), file)
>>> _ = file.seek(0)
>>> lucid.serialization.load_npy(file)
tensor([0, 1, 2])
"""

import ast
import re
import struct
import zlib

from .. import _C
from .archive import Reader, Writer
from .errors import CorruptFileError
from .files import Source, bytes_of, countable, make_bools, target, write_parts

MAGIC = b"\x93NUMPY"
_HEADER_LIMIT = 64 << 10
_DTYPES = {
    "|b1": _C.bool,
    "|u1": _C.uint8,
    "|i1": _C.int8,
    "<u2": _C.uint16,
    "<u4": _C.uint32,
    "<u8": _C.uint64,
    "<i2": _C.int16,
    "<i4": _C.int32,
    "<i8": _C.int64,
    "<f2": _C.float16,
    "<f4": _C.float32,
    "<f8": _C.float64,
    "<c8": _C.complex64,
    "<c16": _C.complex128,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


def _header_of(tensor):
    if tensor.dtype not in _NAMES:
        raise TypeError(f"NumPy has no type for {tensor.dtype}: convert the tensor first")
    text = f"{{'descr': '{_NAMES[tensor.dtype]}', 'fortran_order': False, 'shape': {tuple(tensor.shape)}, }}"
    padding = -(len(MAGIC) + 4 + len(text) + 1) % 64
    return MAGIC + struct.pack("<2BH", 1, 0, len(text) + padding + 1) + text.encode() + b" " * padding + b"\n"


def save_npy(tensor, f):
    """Write one tensor as a .npy file, which NumPy reads. A path is replaced at once, when the new file is complete.

    >>> import io
    >>> lucid.serialization.save_npy(lucid.ones(2), io.BytesIO())
    """
    header = _header_of(tensor)
    with target(f) as file:
        write_parts(file, [header, bytes_of(tensor)])


def save_npz(tensors, f):
    """Write a dict of tensors as an .npz archive (not compressed).

    >>> import io
    >>> lucid.serialization.save_npz({"x": lucid.ones(2)}, io.BytesIO())
    """
    headers = {name: _header_of(tensor) for name, tensor in tensors.items()}
    with target(f) as file:
        writer = Writer(file, folder=None)
        for name, tensor in tensors.items():
            writer.add(f"{name}.npy", headers[name], bytes_of(tensor))
        writer.close()


def _parsed(source, offset, size):
    """dtype, shape, Fortran order, and where the values begin."""
    start = source.read(offset, min(size, 12))
    if start[:6] != MAGIC or len(start) < 12 or start[6] not in (1, 2, 3):
        raise CorruptFileError("not a .npy file of a version that is known")
    length, begin = (
        (struct.unpack_from("<H", start, 8)[0], 10) if start[6] == 1 else (struct.unpack_from("<I", start, 8)[0], 12)
    )
    if length > _HEADER_LIMIT or begin + length > size:
        raise CorruptFileError(f"a .npy header of {length} bytes")
    try:
        text = source.read(offset + begin, length).decode("utf-8")
        header = ast.literal_eval(re.sub(r"(\d)L\b", r"\1", text))  # Python 2 wrote long numbers so
        descr, fortran, shape = header["descr"], header["fortran_order"], header["shape"]
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
        raise CorruptFileError("the header of the .npy file is damaged") from None
    if type(fortran) is not bool:
        raise CorruptFileError("the header of the .npy file is damaged")
    descr = descr.replace("=", "<") if isinstance(descr, str) else descr
    if not isinstance(descr, str) or descr not in _DTYPES:
        raise TypeError(f"no dtype for NumPy's {descr!r}")
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape) or len(shape) > 64:
        raise CorruptFileError(f"the shape of the .npy file is damaged: {shape!r:.200}")
    return _DTYPES[descr], shape, bool(fortran), offset + begin + length


def _read_array(source, offset, size):
    dtype, shape, fortran, begin = _parsed(source, offset, size)
    count = 1
    for n in shape:
        count *= n
    if count * dtype.itemsize > size - (begin - offset) or not countable(shape):
        raise CorruptFileError(f"a .npy file of {size} bytes cannot have the shape {shape!s:.200}")
    flat = _C.empty(count, dtype=dtype, device="cpu")
    if count:
        source.read_into(begin, memoryview(flat.view(_C.uint8)))
        if dtype is _C.bool:
            make_bools(flat.view(_C.uint8))
    if not fortran:
        return flat.view(shape)
    return flat.view(shape[::-1]).permute(*reversed(range(len(shape)))) if len(shape) > 1 else flat.view(shape)


def load_npy(f):
    """The tensor of a .npy file. Arrays of Python objects are refused: they are pickles.

    >>> import io
    >>> file = io.BytesIO()
    >>> lucid.serialization.save_npy(lucid.ones(2), file)
    >>> lucid.serialization.load_npy(io.BytesIO(file.getvalue()))
    tensor([1., 1.])
    """
    with Source(f) as source:
        return _read_array(source, 0, source.size)


class _Unpacked(Source):
    """A record that was compressed, as a source of its own."""

    def __init__(self, data):
        import io

        super().__init__(io.BytesIO(data))


def _read_npz(source, limit=4 << 30):
    reader = Reader(source, deflated=True)
    result = {}
    unpacked = sum(record.size for record in reader.records.values() if record.packed is not None)
    if unpacked > limit:
        raise CorruptFileError(f"compressed records of {unpacked} bytes: limit= allows {limit}")
    for name, record in reader.records.items():
        key = name[:-4] if name.endswith(".npy") else name
        if record.packed is None:
            reader.read_through(record)
            result[key] = _read_array(source, record.offset, record.size)
            continue
        unpack = zlib.decompressobj(-15)
        try:
            data = unpack.decompress(source.read(record.offset, record.packed), record.size)
        except zlib.error:
            raise CorruptFileError(f"the record {name!r} is damaged") from None
        if len(data) != record.size:
            raise CorruptFileError(f"the record {name!r} is damaged: {len(data)} bytes of {record.size}")
        reader.verify(record, data)
        result[key] = _read_array(_Unpacked(data), 0, len(data))
    return result


def load_npz(f, limit=4 << 30):
    """The tensors of an .npz archive by name. limit: the bytes that compressed records may unpack to.

    >>> import io
    >>> file = io.BytesIO()
    >>> lucid.serialization.save_npz({"x": lucid.ones(2)}, file)
    >>> lucid.serialization.load_npz(io.BytesIO(file.getvalue()))
    {'x': tensor([1., 1.])}
    """
    with Source(f) as source:
        return _read_npz(source, limit)
