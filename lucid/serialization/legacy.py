"""PyTorch's files from before its zip format (and with _use_new_zipfile_serialization=False): five pickles, then the storages.

The storages come after the pickle that names them, so they are made empty first and filled from the rest of the file.
"""

import io
import pickle
import struct

from .. import _C
from . import versions
from .errors import CorruptFileError
from .files import bytes_of, make_bools
from .torch_format import TYPED, Pickler, Storages, flat, unpickled

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
_HEAD = 1 << 12  # more than the first three pickles take
_SYSTEM = {"protocol_version": PROTOCOL, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


class _Pickler(Pickler):
    """The pickler of archives, with the sixth part that persistent ids had: which view of a storage, None."""

    def persistent_id(self, value):
        found = super().persistent_id(value)
        return None if found is None else (*found, None)


def write(value, file, protocol):
    """Write an object the old way, for programs that do not read archives.

    >>> import io
    >>> file = io.BytesIO()
    >>> write([lucid.ones(1)], file, 2)
    >>> lucid.load(io.BytesIO(file.getvalue()))
    [tensor([1.])]
    """
    for part in (MAGIC, PROTOCOL, _SYSTEM):
        file.write(pickle.dumps(part, protocol))
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, protocol)
    pickler.dump(value)
    file.write(pickled.getbuffer())
    storages = sorted(pickler.storages.values(), key=lambda stored: stored[0])
    file.write(pickle.dumps([key for key, _, _ in storages], protocol))
    for _, storage, dtype in storages:
        itemsize = dtype.itemsize if dtype in TYPED else 1
        file.write(struct.pack("<q", storage.nbytes() // itemsize))
        file.write(bytes_of(flat(storage)))


def read(source, map_location, trusted, allowed, **options):
    """The object of a file that is a pickle: one of PyTorch's old ones, or Lucid's version 1.

    >>> import io, pickle
    >>> from .files import Source
    >>> with Source(io.BytesIO(pickle.dumps([lucid.ones(1)]))) as source:
    ...     read(source, None, False, {})
    [tensor([1.])]
    """
    data = bytearray(source.size)  # writable: tensors use it while they are filled
    source.read_into(0, data)
    empty = Storages(_no_storages, None)
    first, at = unpickled(data[:_HEAD], empty, False, {}) if data[:1] == b"\x80" and _is_magic(data) else (None, 0)
    if first != MAGIC:
        value, _ = unpickled(data, empty, trusted, allowed, version=1, **options)
        return versions.migrate(value, 1)
    protocol, at = unpickled(data, empty, False, {}, position=at)
    if type(protocol) is not int or protocol != PROTOCOL:
        raise CorruptFileError("an old PyTorch file of a protocol that is not known")
    system, at = unpickled(data, empty, False, {}, position=at)
    if type(system) is not dict or type(system.get("little_endian", True)) is not bool:
        raise CorruptFileError("an old PyTorch file that does not say on what machine it was written")
    if not system.get("little_endian", True):
        raise NotImplementedError("a file of a big-endian machine: save it again on a little-endian one")
    sizes = {}

    def reserve(key, size):
        if size > source.size:
            raise CorruptFileError(f"a storage of {size} bytes in a file of {source.size}")
        sizes[key] = size
        if sum(sizes.values()) > source.size:
            raise CorruptFileError("the storages are larger than the file")
        return _C.empty(size, dtype=_C.uint8, device="cpu").untyped_storage()

    storages = Storages(reserve, map_location)
    value, at = unpickled(data, storages, trusted, allowed, position=at, **options)
    keys, at = unpickled(data, empty, False, {}, position=at)
    if type(keys) is not list or any(type(key) is not str for key in keys) or set(keys) != set(sizes):
        raise CorruptFileError("the file does not have the storages its tensors name")
    for key in keys:
        source.check(at, 8)
        count = struct.unpack_from("<q", data, at)[0]
        size = sizes[key]
        if count * storages.itemsizes[key] != size:
            raise CorruptFileError(f"the storage {key!r} has another size than its tensors say")
        source.check(at + 8, size)
        if size:
            values = _C.frombuffer(data, dtype=_C.uint8, count=size, offset=at + 8)
            if key in storages.bools:
                make_bools(values)
            _C._on_storage(storages.known[key], _C.uint8, (size,), (1,), 0).copy_(values)
        at += 8 + size
    return value


def _is_magic(data):
    """Whether the first pickle is the number that old PyTorch files begin with."""
    return MAGIC.to_bytes(10, "little") in data[:32]


def _no_storages(key, size):
    raise CorruptFileError("the file names a storage but has none")
