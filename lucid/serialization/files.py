"""Files read at any offset, and files that appear whole or not at all."""

import contextlib
import io
import itertools
import math
import os
import stat
import threading

from .. import _C
from .errors import CorruptFileError

PIECE = 1 << 20  # bytes handed to the system at once: they fit into a core's cache
PARALLEL = 1 << 20  # bytes from which several threads are worth starting


class Source:
    """Bytes at offsets of a path or of a file object, every read checked against the size.

    >>> with Source(io.BytesIO(b"abcdef")) as source:
    ...     source.size, source.read(2, 3)
    (6, b'cde')
    """

    def __init__(self, f):
        self.name, self.owned, self.mapped = "", None, None
        if isinstance(f, (str, os.PathLike)):
            self.name = os.fspath(f)
            self.owned = self.file = open(f, "rb", buffering=0)  # noqa: SIM115 (closed by close)
        elif all(hasattr(f, name) for name in ("read", "seek", "tell")):
            self.file, self.name = f, str(getattr(f, "name", ""))
        elif hasattr(f, "read"):
            self.file = io.BytesIO(f.read())
        else:
            raise TypeError(f"expected a path or a file object that can be read, not {type(f).__name__}")
        try:
            self.start = 0 if self.owned else self.file.tell()
            self.size = self.file.seek(0, os.SEEK_END) - self.start
        except (OSError, io.UnsupportedOperation):
            if self.owned:
                self.owned.close()
                raise
            self.file, self.start = io.BytesIO(self.file.read()), 0
            self.size = len(self.file.getbuffer())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.owned:
            self.owned.close()

    def check(self, offset, count):
        if offset < 0 or count < 0 or offset + count > self.size:
            raise CorruptFileError(f"{count} bytes at offset {offset} are beyond the end of a file of {self.size} bytes")

    def read(self, offset, count):
        self.check(offset, count)
        data = bytearray(count)
        self.read_into(offset, memoryview(data))
        return bytes(data)

    def read_into(self, offset, target):
        """Fill a writable buffer from an offset on."""
        target = memoryview(target).cast("B")
        self.check(offset, len(target))
        self.file.seek(self.start + offset)
        into = getattr(self.file, "readinto", None)
        done = 0
        while done < len(target):
            part = target[done : done + PIECE]
            if into:
                got = into(part)
            else:
                data = self.file.read(len(part))
                got = len(data)
                part[:got] = data
            if not got:
                raise CorruptFileError(f"the file ended {len(target) - done} bytes early")
            done += got

    def map(self):
        """The file as memory: pages are read when they are touched, and writing to them changes a private copy."""
        import mmap

        if not self.owned:
            raise ValueError("mmap=True needs the path of a file, not a file object")
        if not self.mapped:
            self.mapped = memoryview(mmap.mmap(self.file.fileno(), 0, access=mmap.ACCESS_COPY))
        return self.mapped


def in_parallel(function, items):
    """function(item) for all, on as many threads as the library uses; the first error is raised when all have stopped.

    >>> in_parallel(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    items = list(items)
    count = min(_C.get_num_threads(), len(items))
    if count < 2:
        return [function(item) for item in items]
    waiting, results, errors = iter(enumerate(items)), [None] * len(items), []

    def work():
        for i, item in waiting:  # the interpreter's lock makes taking the next one safe
            try:
                results[i] = function(item)
            except BaseException as error:  # noqa: BLE001 (raised below)
                errors.append(error)
            if errors:
                return

    threads = [threading.Thread(target=work) for _ in range(count - 1)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def bytes_of(tensor):
    """The values of a tensor, one after the other, as a buffer.

    >>> bytes(bytes_of(_C.tensor([1, 258], dtype=_C.int16)))
    b'\\x01\\x00\\x02\\x01'
    """
    tensor = tensor.detach().cpu().contiguous()
    return memoryview(tensor.view(-1).view(_C.uint8)) if tensor.numel() else b""


def countable(shape):
    """Whether the product of the sizes, zeros counted as one, fits a stride.

    >>> countable([3, 0]), countable([1 << 62, 1 << 62, 0])
    (True, False)
    """
    return math.prod(max(n, 1) for n in shape) < 1 << 58


def make_bools(flat):
    """Normalise bytes to bools: nonzero becomes 1, as kernels require.

    >>> values = _C.tensor([0, 7], dtype=_C.uint8)
    >>> make_bools(values)
    >>> values.tolist()
    [0, 1]
    """
    if flat.numel() and flat.max().item() > 1:
        flat.copy_(flat.ne(0))


def takes_pieces(file, size):
    """Whether this many bytes are worth several threads, and the file supports writes at any offset.

    >>> takes_pieces(io.BytesIO(), 1 << 30)
    False
    """
    return size >= PARALLEL and isinstance(file, io.FileIO) and file.seekable() and "a" not in file.mode


def write_pieces(file, placed, look=None):
    """Write buffers at offsets, in pieces, by several threads; a list of what look(piece) returned for each buffer's pieces.

    The system takes one write at a time to a file. While it copies the piece of one thread, another thread runs look() on its
    own piece, and so brings it into the cache from which it will be copied.

    >>> import tempfile
    >>> with tempfile.TemporaryFile(buffering=0) as file:
    ...     found = write_pieces(file, [(2, b"cd"), (0, b"ab")], len)
    ...     found, file.read()
    ([[2], [2]], b'abcd')
    """

    def put(piece):
        offset, data = piece
        seen = look(data) if look else None
        while len(data):
            written = os.pwrite(file.fileno(), data, offset)
            offset, data = offset + written, data[written:]
        return seen

    placed = [(offset, memoryview(part).cast("B")) for offset, part in placed]
    pieces = [[(offset + i, part[i : i + PIECE]) for i in range(0, len(part), PIECE)] for offset, part in placed]
    results = iter(in_parallel(put, [piece for part in pieces for piece in part]))
    return [[next(results) for _ in part] for part in pieces]


def write_parts(file, parts):
    """Write buffers one after the other.

    >>> file = io.BytesIO()
    >>> write_parts(file, [b"ab", b"cd"])
    >>> file.getvalue()
    b'abcd'
    """
    parts = [memoryview(part).cast("B") for part in parts]
    sizes = [len(part) for part in parts]
    if takes_pieces(file, sum(sizes)):
        *offsets, end = itertools.accumulate(sizes, initial=file.tell())
        write_pieces(file, zip(offsets, parts, strict=True))
        file.seek(end)
        return
    for part in parts:
        _write(file, part)


def _write(file, data):
    while len(data):
        written = file.write(data[:PIECE])
        data = data[len(data[:PIECE]) if written is None else written :]


def _sync_folder(path):
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def written_at_once(path):
    """A file to write that takes its name when it is complete and on disk: until then the old file stays, whatever happens.

    A pipe or a device is written directly. A link keeps pointing to the file, which is replaced.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "file")
    >>> with written_at_once(path) as file:
    ...     os.path.exists(path), file.write(b"x")
    (False, 1)
    >>> os.path.exists(path)
    True
    """
    path = os.path.realpath(os.fspath(path))
    try:
        old = os.stat(path)
    except FileNotFoundError:
        old = None
    if old and not stat.S_ISREG(old.st_mode):
        with open(path, "wb", buffering=0) as file:
            yield file
        return
    folder, name = os.path.split(path)
    name = os.fsdecode(os.fsencode(name)[:200])  # leaves space for the suffix
    temporary = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    try:
        with open(handle, "wb", buffering=0) as file:
            yield file
            if old:
                os.chmod(temporary, stat.S_IMODE(old.st_mode))
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(path)


@contextlib.contextmanager
def target(f):
    """The file to write: the temporary file of a path, or the file object itself.

    >>> memory = io.BytesIO()
    >>> with target(memory) as file:
    ...     file is memory
    True
    """
    if isinstance(f, (str, os.PathLike)):
        with written_at_once(f) as file:
            yield file
    elif hasattr(f, "write"):
        yield f
        if hasattr(f, "flush"):
            f.flush()
    else:
        raise TypeError(f"expected a path or a file object that can be written, not {type(f).__name__}")
