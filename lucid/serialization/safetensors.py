"""safetensors files: a JSON header and the values, nothing that could run.

>>> import io
>>> file = io.BytesIO()
>>> lucid.save_safetensors({"w": lucid.ones(2)}, file)
>>> _ = file.seek(0)
>>> lucid.load_safetensors(file)
{'w': tensor([1., 1.])}
"""

import itertools
import json
import struct

from .. import _C
from . import versions
from .errors import CorruptFileError
from .files import Source, bytes_of, countable, make_bools, target, write_parts

HEADER_LIMIT = 100_000_000  # bytes, as the format's own library
VERSION = "lucid.version"  # among the metadata: by what the file was written
_NAMES = {
    _C.bool: "BOOL",
    _C.uint8: "U8",
    _C.int8: "I8",
    _C.int16: "I16",
    _C.uint16: "U16",
    _C.float16: "F16",
    _C.bfloat16: "BF16",
    _C.int32: "I32",
    _C.uint32: "U32",
    _C.float32: "F32",
    _C.float64: "F64",
    _C.int64: "I64",
    _C.uint64: "U64",
    _C.complex64: "C64",
    _C.float8_e4m3fn: "F8_E4M3",
    _C.float8_e5m2: "F8_E5M2",
    _C.float8_e4m3fnuz: "F8_E4M3FNUZ",
    _C.float8_e5m2fnuz: "F8_E5M2FNUZ",
    _C.float8_e8m0fnu: "F8_E8M0",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def save_safetensors(tensors, f, metadata=None):
    """Write a dict of tensors. metadata: texts by name. A path is replaced at once, when the new file is complete.

    >>> import io
    >>> lucid.save_safetensors({"w": lucid.ones(2)}, io.BytesIO(), metadata={"format": "pt"})
    """
    metadata, at, values = {**(metadata or {}), VERSION: versions.current().decode()}, 0, []
    if not all(isinstance(key, str) and isinstance(text, str) for key, text in metadata.items()):
        raise TypeError("metadata of a safetensors file are texts by name")
    header = {"__metadata__": metadata}
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        if not isinstance(name, str) or name == "__metadata__":
            raise ValueError(f"a tensor cannot be named {name!r} in a safetensors file")
        if tensor.dtype not in _NAMES:
            raise TypeError(f"safetensors has no type for {tensor.dtype} ({name})")
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        values.append(tensor)
        at += size
    _check_apart(tensors)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > HEADER_LIMIT:
        raise ValueError(f"a header of {len(text)} bytes; the format allows {HEADER_LIMIT}")
    with target(f) as file:
        write_parts(file, [struct.pack("<Q", len(text)) + text, *(bytes_of(tensor) for tensor in values)])


def _check_apart(tensors):
    """Refuse tensors that share memory; parts of one storage beside each other do not."""
    places = []
    for name, tensor in tensors.items():
        if tensor.numel():
            last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
            begin = tensor.data_ptr()
            places.append((str(tensor.device), begin, begin + (last + 1) * tensor.element_size(), name))
    places.sort()
    for (device, _, end, name), (other_device, begin, _, other) in itertools.pairwise(places):
        if device == other_device and begin < end:
            raise RuntimeError(
                f"{name!r} and {other!r} share memory, which a safetensors file cannot say: save one of them, or a clone"
            )


def _header(source):
    if source.size < 8:
        raise CorruptFileError(f"a safetensors file of {source.size} bytes")
    length = struct.unpack("<Q", source.read(0, 8))[0]
    if length > HEADER_LIMIT or 8 + length > source.size:
        raise CorruptFileError(f"a safetensors header of {length} bytes in a file of {source.size}")
    try:
        header = json.loads(source.read(8, length).decode("utf-8"), object_pairs_hook=_no_repeats)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"the header of the safetensors file is damaged: {error}") from None
    if not isinstance(header, dict):
        raise CorruptFileError("the header of the safetensors file is not an object")
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise CorruptFileError("the metadata of the safetensors file are damaged")
    if VERSION in metadata:
        versions.check(metadata.pop(VERSION).encode())
    return header, metadata, 8 + length


def _no_repeats(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name appears twice")
    return result


def _entries(header, size):
    """(name, dtype, shape, begin, end) in the order of the file, checked: in bounds, of the right sizes, without gaps."""
    entries = []
    for name, about in header.items():
        try:
            dtype, shape, (begin, end) = _DTYPES[about["dtype"]], about["shape"], about["data_offsets"]
            valid = (
                isinstance(shape, list) and len(shape) <= 64 and all(type(n) is int and n >= 0 for n in [*shape, begin, end])
            )
        except (KeyError, TypeError, ValueError):
            valid = False
        if not valid:
            raise CorruptFileError(f"the entry {name!r} of the safetensors header is damaged, or of a type that is not known")
        count = 1
        for n in shape:
            count *= n
        if end < begin or end > size or count * dtype.itemsize != end - begin or not countable(shape):
            raise CorruptFileError(
                f"the entry {name!r} of the safetensors header does not fit: {shape!s:.200} in bytes {begin} to {end} of {size}"
            )
        entries.append((name, dtype, shape, begin, end))
    entries.sort(key=lambda entry: (entry[3], entry[4]))
    at = 0
    for name, _, _, begin, end in entries:
        if begin != at:
            raise CorruptFileError(f"the entry {name!r} of the safetensors header leaves a gap or overlaps another")
        at = end
    if at != size:
        raise CorruptFileError(f"the safetensors file has {size - at} bytes that belong to nothing (or lacks them)")
    return entries


def load_safetensors(f, device="cpu", mmap=True):
    """The tensors of a safetensors file by name.

    From a path their memory is the file's pages, which are read when they are touched (mmap=False reads the file at once);
    writing to a tensor never changes the file.

    >>> import io
    >>> file = io.BytesIO()
    >>> lucid.save_safetensors({"w": lucid.ones(2)}, file)
    >>> lucid.load_safetensors(io.BytesIO(file.getvalue()))
    {'w': tensor([1., 1.])}
    """
    with Source(f) as source:
        header, _, start = _header(source)
        entries = _entries(header, source.size - start)
        memory = source.map() if mmap and source.owned and source.size > start else None
        result = {}
        for name, dtype, shape, begin, end in entries:
            begin += start
            if begin == end + start:
                tensor = _C.empty(shape, dtype=dtype, device="cpu")
            elif memory is not None and begin % dtype.itemsize == 0:
                tensor = _C.frombuffer(memory[begin : end + start], dtype=dtype).view(shape)
            else:
                flat = _C.empty(end + start - begin, dtype=_C.uint8, device="cpu")
                source.read_into(begin, memoryview(flat))
                tensor = flat.view(dtype).view(shape)
            if dtype is _C.bool and begin != end + start:
                make_bools(tensor.view(_C.uint8).view(-1))
            result[name] = tensor if _C.device(device).type == "cpu" else tensor.to(device)
    return {name: result[name] for name in header}


def safetensors_metadata(f):
    """The texts that a safetensors file carries besides its tensors.

    >>> import io
    >>> file = io.BytesIO()
    >>> lucid.save_safetensors({}, file, metadata={"format": "pt"})
    >>> lucid.serialization.safetensors_metadata(io.BytesIO(file.getvalue()))
    {'format': 'pt'}
    """
    with Source(f) as source:
        return _header(source)[1]
