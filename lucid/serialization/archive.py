"""Zip archives of stored (not compressed) records, each beginning at a multiple of 64 bytes: PyTorch's container.

Python's zipfile is not used: it takes longer to import than a checkpoint to open, unpacks compressed records of any size,
and does not say where the bytes of a record lie, which mapping needs. The reader checks everything it uses: every record lies
inside the file, no two overlap (so it never reads more than the file), and it never writes to a path that a file names.
"""

import functools
import itertools
import struct

from .._C import _crc32
from .errors import CorruptFileError
from .files import PIECE, in_parallel, takes_pieces, write_parts, write_pieces

ALIGNMENT = 64
LOCAL = struct.Struct("<4s5H3I2H")
CENTRAL = struct.Struct("<4s6H3I5H2I")
END = struct.Struct("<4s4H2IH")
END64 = struct.Struct("<4sQ2H2I4Q")
LOCATOR64 = struct.Struct("<4sIQI")
SMALL, MANY = 0xFFFFFFFF, 0xFFFF  # marks a value that is in the 64-bit field
UTF8 = 1 << 11
MOST_DEFLATED = 1100  # largest compression ratio
DATE = (1 << 5) | 1  # 1 January 1980: the same content is the same file


class Record:
    """Where the bytes of a record are. packed: how many they are where they are compressed, else None.

    >>> Record("a", 0, 64, 3, 0).packed is None
    True
    """

    __slots__ = ("crc", "header", "name", "offset", "packed", "size")

    def __init__(self, name, header, offset, size, crc, packed=None):
        self.name, self.header, self.offset, self.size, self.crc, self.packed = name, header, offset, size, crc, packed


class Writer:
    """Records one after the other; close() writes them and the directory.

    >>> import io, zipfile
    >>> file = io.BytesIO()
    >>> writer = Writer(file)
    >>> writer.add("a", b"text")
    >>> writer.close()
    >>> zipfile.ZipFile(file).read("archive/a")
    b'text'
    """

    def __init__(self, file, folder="archive"):
        self.file, self.folder, self.records, self.contents = file, folder, [], []

    def add(self, name, *parts):
        """A record of the parts one after the other, beginning at a multiple of 64 bytes. The parts are read by close()."""
        self.records.append((f"{self.folder}/{name}" if self.folder else name).encode())
        self.contents.append([memoryview(part).cast("B") for part in parts])

    def close(self):
        placed, position = [], 0
        for name, parts in zip(self.records, self.contents, strict=True):
            length = sum(len(part) for part in parts)
            begin = position + LOCAL.size + len(name) + (20 if length >= SMALL else 0) + 4
            begin += -begin % ALIGNMENT
            placed.append(Record(name, position, begin, length, 0))
            position = begin + length
        if takes_pieces(self.file, position):
            self._write_pieces(placed)
        else:
            for record, crc in zip(placed, in_parallel(_checksum, self.contents), strict=True):
                record.crc = crc
            for record, parts in zip(placed, self.contents, strict=True):
                write_parts(self.file, [_local(record), *parts])
        entries = b"".join(_entry(record) for record in placed)
        write_parts(self.file, [entries, _ending(position, len(entries), len(placed))])

    def _write_pieces(self, placed):
        """Write the records with several threads. Checksums are computed on the way, so headers are written after their
        records."""
        start, located = self.file.tell(), []
        for record, parts in zip(placed, self.contents, strict=True):
            offsets = itertools.accumulate((len(part) for part in parts), initial=start + record.offset)
            located += [(record, offset, part) for offset, part in zip(offsets, parts, strict=False)]
        found = write_pieces(self.file, [(offset, part) for _, offset, part in located], lambda data: (len(data), _crc32(data)))
        for (record, _, _), pieces in zip(located, found, strict=True):
            for length, crc in pieces:
                record.crc = joined(record.crc, crc, length)
        write_pieces(self.file, [(start + record.header, _local(record)) for record in placed])
        self.file.seek(start + placed[-1].offset + placed[-1].size)


def _checksum(parts):
    crc = 0
    for part in parts:
        crc = _crc32(part, crc)
    return crc


def _local(record):
    """The local header of a record."""
    wide = struct.pack("<2H2Q", 1, 16, record.size, record.size) if record.size >= SMALL else b""
    padding = record.offset - record.header - LOCAL.size - len(record.name) - len(wide) - 4
    extra = wide + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    version, size, name = 45 if wide else 20, min(record.size, SMALL), record.name
    fields = (version, UTF8, 0, 0, DATE, record.crc, size, size, len(name), len(extra))
    return LOCAL.pack(b"PK\3\4", *fields) + name + extra


def joined(first, second, length):
    """The checksum of two concatenated pieces from their checksums; length: bytes of the second.

    >>> joined(_crc32(b"ab"), _crc32(b"cde"), 3) == _crc32(b"abcde")
    True
    """
    return _times(_shift(length), first) ^ second if first else second


@functools.lru_cache(64)
def _shift(length):
    """x ** (8 * length) modulo the checksum's polynomial."""
    power, square = 1 << 31, 1 << 23  # 1 and x^8: bits are reflected
    while length:
        if length & 1:
            power = _times(square, power)
        square, length = _times(square, square), length >> 1
    return power


def _times(a, b):
    """The product of two polynomials modulo the checksum's."""
    product = 0
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (0xEDB88320 if b & 1 else 0)
    return product


def _entry(record):
    """A record in the directory."""
    large = [n for n in (record.size, record.size, record.header) if n >= SMALL]
    extra = struct.pack(f"<2H{len(large)}Q", 1, 8 * len(large), *large) if large else b""
    size, header = min(record.size, SMALL), min(record.header, SMALL)
    version = 45 if large else 20
    fields = (version, version, UTF8, 0, 0, DATE, record.crc, size, size, len(record.name), len(extra), 0, 0, 0, 0, header)
    return CENTRAL.pack(b"PK\1\2", *fields) + record.name + extra


def _ending(begin, size, count):
    """The end record of a directory with this position, size and number of records."""
    ending = b""
    if begin >= SMALL or count >= MANY:
        ending = END64.pack(b"PK\6\6", END64.size - 12, 45, 45, 0, 0, count, count, size, begin)
        ending += LOCATOR64.pack(b"PK\6\7", 0, begin + size, 1)
    return ending + END.pack(b"PK\5\6", 0, 0, min(count, MANY), min(count, MANY), min(size, SMALL), min(begin, SMALL), 0)


class Reader:
    """The records of an archive by name, without the folder all of them are in.

    >>> import io
    >>> from .files import Source
    >>> file = io.BytesIO()
    >>> lucid.save(1, file)
    >>> with Source(io.BytesIO(file.getvalue())) as source:
    ...     Reader(source).read("version")
    b'3\\n'
    """

    def __init__(self, source, deflated=False):
        self.source, self.deflated = source, deflated
        self.records = {}
        folders = set()
        for record in self._directory():
            folder, slash, rest = record.name.partition("/")
            folders.add(folder if slash else "")
            name = rest if slash else folder
            if name in self.records:
                raise CorruptFileError(f"two records of the archive are named {name!r}")
            self.records[name] = record
        if len(folders) > 1:
            raise CorruptFileError("the records of the archive lie in several folders")
        end = 0
        for record in sorted(self.records.values(), key=lambda r: r.header):
            if record.header < end:
                raise CorruptFileError(f"the record {record.name!r} overlaps the one before it")
            end = record.offset + (record.size if record.packed is None else record.packed)

    def _end(self):
        tail = min(self.source.size, END.size + 0xFFFF)
        data = self.source.read(self.source.size - tail, tail)
        at = data.rfind(b"PK\5\6")
        if at < 0 or at + END.size > len(data):
            raise CorruptFileError("not a whole zip archive: its end record is missing (a truncated file?)")
        _, disk, first, here, count, size, begin, _ = END.unpack_from(data, at)
        if disk or first or here != count:
            raise CorruptFileError("an archive in several parts")
        position = self.source.size - tail + at
        if MANY in (count,) or SMALL in (size, begin):
            where = LOCATOR64.unpack(self.source.read(position - LOCATOR64.size, LOCATOR64.size))
            if where[0] != b"PK\6\7":
                raise CorruptFileError("the 64-bit end record of the archive is missing")
            fields = END64.unpack(self.source.read(where[2], END64.size))
            if fields[0] != b"PK\6\6":
                raise CorruptFileError("the 64-bit end record of the archive is damaged")
            count, size, begin = fields[7], fields[8], fields[9]
        self.source.check(begin, size)
        if count * CENTRAL.size > size:
            raise CorruptFileError(f"a directory of {size} bytes cannot have {count} records")
        return count, begin, size

    def _directory(self):
        count, begin, size = self._end()
        data = self.source.read(begin, size)
        at = 0
        for _ in range(count):
            if at + CENTRAL.size > size or data[at : at + 4] != b"PK\1\2":
                raise CorruptFileError("the directory of the archive is damaged")
            fields = CENTRAL.unpack_from(data, at)
            flags, method, crc, packed, length = fields[3], fields[4], fields[7], fields[8], fields[9]
            name_size, extra_size, comment_size, header = fields[10], fields[11], fields[12], fields[16]
            at += CENTRAL.size
            name, extra = data[at : at + name_size], data[at + name_size : at + name_size + extra_size]
            at += name_size + extra_size + comment_size
            if at > size:
                raise CorruptFileError("the directory of the archive is damaged")
            packed, length, header = _wide(extra, packed, length, header)
            try:
                name = name.decode("utf-8")
            except UnicodeDecodeError:
                raise CorruptFileError("a name in the archive is not UTF-8") from None
            if flags & 1:
                raise CorruptFileError(f"the record {name!r} is encrypted")
            if self.deflated and method == 8:
                if length > MOST_DEFLATED * packed:
                    raise CorruptFileError(
                        f"the record {name!r} claims to unpack to more than it can: {length} of {packed} bytes"
                    )
            elif method or packed != length:
                raise CorruptFileError(f"the record {name!r} is compressed: checkpoints are stored as they are")
            yield Record(name, header, self._begin(name, header, packed), length, crc, packed if method else None)

    def _begin(self, name, header, length):
        fields = LOCAL.unpack(self.source.read(header, LOCAL.size))
        if fields[0] != b"PK\3\4":
            raise CorruptFileError(f"the record {name!r} is not where the directory says")
        begin = header + LOCAL.size + fields[9] + fields[10]
        self.source.check(begin, length)
        return begin

    def __contains__(self, name):
        return name in self.records

    def record(self, name):
        if name not in self.records:
            raise CorruptFileError(f"the archive has no record {name!r}")
        return self.records[name]

    def read(self, name, limit=None):
        record = self.record(name)
        if limit is not None and record.size > limit:
            raise CorruptFileError(f"the record {name!r} has {record.size} bytes; at most {limit} make sense")
        data = self.source.read(record.offset, record.size)
        self.verify(record, data)
        return data

    def read_through(self, record):
        """Verify a record without keeping it."""
        crc, end = 0, record.offset + record.size
        for at in range(record.offset, end, PIECE):
            crc = _crc32(self.source.read(at, min(PIECE, end - at)), crc)
        _compare(record, crc)

    @staticmethod
    def verify(record, data):
        _compare(record, _crc32(data))


def _compare(record, crc):
    if crc != record.crc:
        raise CorruptFileError(f"the record {record.name!r} is damaged: its checksum differs")


def _wide(extra, packed, length, header):
    """Sizes and offset with their 64-bit values where the directory has them in the extra field."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            body = extra[at + 4 : at + 4 + size]
            wanted = [n == SMALL for n in (length, packed, header)]
            if len(body) < 8 * sum(wanted):
                raise CorruptFileError("a 64-bit size of the archive is missing")
            values = iter(struct.unpack_from(f"<{sum(wanted)}Q", body))
            length, packed, header = (next(values) if w else n for w, n in zip(wanted, (length, packed, header), strict=True))
            break
        at += 4 + size
    return packed, length, header
