"""The worker process of a DataLoader, and the transport of its batches.

A worker and the loader share one socket that preserves message boundaries. Messages are short: the bytes of all tensors of a
batch, and of its pickle if that is long, are in shared memory that both sides have mapped (an arena). The tensors of a batch
are views of it. When the last of them is freed, the loader tells the worker, and the arena is reused, so each page is faulted
in only once. Arenas have no names in the system, so a process that dies leaves nothing behind.
"""

import io
import mmap
import os
import pickle
import random
import signal
import struct
import sys
import traceback
import weakref

from ... import _C
from . import fetch
from .fetch import Fetcher, WorkerInfo

INLINE = 1024  # largest pickle that is sent in the message itself
MESSAGE = 4096  # bytes of a message at most
SMALLEST = 64 << 10  # bytes of an arena; sizes are powers of two, so that batches of about the same size find one
CHECK = 5.0  # seconds between looks whether the loader's process is alive
FETCH, RESUME = "fetch", "resume"  # what the loader asks for
DONE, FAILED, EXHAUSTED, RESUMED = "done", "failed", "exhausted", "resumed"  # what a worker answers


# --- messages -----------------------------------------------------------------------------------------------------------------
class _Pickler(pickle.Pickler):
    """Takes the tensors out of what it pickles."""

    def __init__(self, file):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.tensors = []

    def reducer_override(self, value):
        if not isinstance(value, _C.Tensor) or value.layout != _C.strided or value.device.type != "cpu" or not value.numel():
            return NotImplemented
        if value.requires_grad and not value.is_leaf:
            raise RuntimeError(
                "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
                "process boundaries. If you just want to transfer the data, call detach() on the tensor before serializing"
            )
        self.tensors.append(value.detach().contiguous())  # in the order in which they will be read
        return _taken, (type(value), value.dtype, tuple(value.shape), value.requires_grad, value.__dict__ or None)


def _taken(*about):
    raise pickle.UnpicklingError("a batch without its memory")  # replaced while a message is read


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, storage):
        super().__init__(file)
        self.rebuilt = _Rebuilder(storage).rebuilt  # not of this object: its memo would be a cycle that keeps the batch

    def find_class(self, module, name):
        if name == "_taken" and module == __name__:
            return self.rebuilt
        return super().find_class(module, name)


class _Rebuilder:
    """The tensors of a message, from its memory, in the order in which they were taken out."""

    def __init__(self, storage):
        self.storage, self.place = storage, 0

    def rebuilt(self, kind, dtype, shape, requires_grad, state):
        strides, step = [], 1
        for n in reversed(shape):
            strides.insert(0, step)
            step *= n
        tensor = _C._on_storage(self.storage, dtype, shape, tuple(strides), self.place // dtype.itemsize)
        self.place += -(-step * dtype.itemsize // 64) * 64
        if kind is not _C.Tensor:
            tensor = tensor.as_subclass(kind)
        if state:
            tensor.__dict__.update(state)
        return tensor.requires_grad_() if requires_grad else tensor


class _Lease:
    """The use of an arena by a batch: its tensors hold a reference to this."""

    def __init__(self, memory):
        self.memory = memory

    @property
    def __array_interface__(self):
        pointer = _C.frombuffer(self.memory, dtype=_C.uint8).data_ptr()
        return {"data": (pointer, False), "shape": (len(self.memory),), "typestr": "|u1", "version": 3}


class _End(weakref.ref):
    """Called when a lease ends. The callback is a list's append: no line of Python runs in which Ctrl-C could get lost."""

    __slots__ = ("number",)


class Arenas:
    """The shared memory of one direction of a channel. The sender makes it and takes it again when it is free.

    >>> arenas = Arenas()
    >>> number, memory, fresh = arenas.take(100)
    >>> len(memory), fresh is not None
    (65536, True)
    >>> os.close(fresh); arenas.free.append(number)
    >>> arenas.take(200)[2] is None
    True
    """

    def __init__(self):
        self.known, self.free = {}, []
        self.leases, self.ended = {}, []  # of the receiver

    def take(self, size):
        """An arena of at least so many bytes: its number, its memory, and its descriptor where it is new."""
        for i, number in enumerate(self.free):
            if len(self.known[number]) >= size:
                del self.free[i]
                return number, self.known[number], None
        capacity = max(SMALLEST, 1 << (size - 1).bit_length())
        handle = os.memfd_create("lucid batch", os.MFD_CLOEXEC)
        try:
            os.ftruncate(handle, capacity)
            memory = mmap.mmap(handle, capacity)
        except BaseException:
            os.close(handle)
            raise
        number = len(self.known)
        self.known[number] = memory
        return number, memory, handle

    def received(self, number, handle):
        """The memory of an arena as the receiver sees it; it is free again when what this returns is gone."""
        if handle is not None:
            self.known[number] = mmap.mmap(handle, 0, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        lease = _Lease(self.known[number])
        self.leases[number] = end = _End(lease, self.ended.append)
        end.number = number
        return lease

    def freed(self):
        """What became free since the last time, to be told to the sender."""
        count = len(self.ended)
        numbers = [end.number for end in self.ended[:count]]
        del self.ended[:count]
        return numbers


def send(channel, message, arenas=None):
    """Send an object; tensors in it by shared memory.

    >>> import socket
    >>> here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    >>> send(here, ("a", lucid.ones(2)))
    >>> receive(there)
    ('a', tensor([1., 1.]))
    >>> here.close(), there.close()
    (None, None)
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    pickler.dump(message)
    pickled = file.getbuffer()
    places, size = [], 0
    for tensor in pickler.tensors:
        places.append(size)
        size += -(-tensor.numel() * tensor.element_size() // 64) * 64
    apart = len(pickled) > INLINE
    if not size and not apart:
        channel.sendall(_HEADER.pack(-1, 0, 0) + pickled)
        return
    number, memory, handle = (arenas or Arenas()).take(size + (len(pickled) if apart else 0))
    try:
        if size:
            whole = _C.frombuffer(memory, dtype=_C.uint8)
            for place, tensor in zip(places, pickler.tensors, strict=True):
                count = tensor.numel() * tensor.element_size()
                whole[place : place + count].copy_(tensor.view(-1).view(_C.uint8))
        if apart:
            memory[size : size + len(pickled)] = pickled
        header = _HEADER.pack(number, size, len(pickled) if apart else 0)
        body = [header] if apart else [header, pickled]
        if handle is None:
            channel.sendmsg(body)
        else:
            channel.sendmsg(body, [(1, 1, handle.to_bytes(4, sys.byteorder))])  # SOL_SOCKET, SCM_RIGHTS
    finally:
        if handle is not None:
            os.close(handle)


_HEADER = struct.Struct("<iqq")  # the arena, the bytes of tensors in it, those of the pickle behind them


def receive(channel, arenas=None):
    """The object of the next message. EOFError: the other side is gone.

    >>> import socket
    >>> here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    >>> here.close()
    >>> try:
    ...     receive(there)
    ... except EOFError:
    ...     print("gone")
    gone
    >>> there.close()
    """
    try:
        data, ancillary, _, _ = channel.recvmsg(MESSAGE, 64)
    except ConnectionResetError:
        raise EOFError from None
    if not data:
        raise EOFError
    handle = int.from_bytes(ancillary[0][2][:4], sys.byteorder) if ancillary else None
    number, size, apart = _HEADER.unpack_from(data)
    pickled, storage = memoryview(data)[_HEADER.size :], None
    if number >= 0:
        try:
            lease = (arenas or Arenas()).received(number, handle)
        finally:
            if handle is not None:
                os.close(handle)
        pickled = lease.memory[size : size + apart] if apart else pickled
        storage = _C.as_tensor(lease).untyped_storage() if size else None
    return _Unpickler(io.BytesIO(pickled), storage).load()


# --- the worker ---------------------------------------------------------------------------------------------------------------
class Failure:
    """An exception of a worker: its class, and its traceback as text.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError:
    ...     failure = Failure(0)
    >>> failure.kind
    <class 'ZeroDivisionError'>
    """

    def __init__(self, worker):
        kind, error, _ = sys.exc_info()
        self.kind, self.worker = kind, worker
        self.text = "".join(traceback.format_exception(error))

    def __reduce__(self):
        return _failure, (self.kind, self.worker, self.text)

    def throw(self):
        message = f"Caught {self.kind.__name__} in DataLoader worker process {self.worker}.\nOriginal {self.text}"
        if self.kind is KeyError:
            message = _Shown(message)  # KeyError shows the repr of its argument
        try:
            error = self.kind(message)
        except Exception:  # noqa: BLE001 (a class that wants other arguments)
            error = RuntimeError(message)
        raise error


class _Shown(str):
    def __repr__(self):
        return str(self)


def _failure(kind, worker, text):
    failure = Failure.__new__(Failure)
    failure.kind, failure.worker, failure.text = kind, worker, text
    return failure


def run(channel, others, dataset, batched, collate_fn, drop_last, seed, number, count, init_fn, parent):
    """The main loop of a worker: make requested batches until the loader is gone.

    >>> callable(run)
    True
    """
    for other in others:  # what was inherited of the loader's ends
        os.close(other)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the loader's to handle: it ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _C.set_num_threads(1)
    random.seed(seed + number)
    from ...random import manual_seed

    manual_seed(seed + number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(_numpy_seed(seed, number))
    fetch._info = WorkerInfo(number, count, seed + number, dataset)
    channel.settimeout(CHECK)
    fetcher, problem, arenas = None, None, Arenas()
    try:
        if init_fn is not None:
            init_fn(number)
        fetcher = Fetcher(dataset, batched, collate_fn, drop_last)
    except Exception:  # noqa: BLE001 (told to the loader with the first batch)
        problem = Failure(number)
    while True:
        try:
            kind, task, keys, free = receive(channel)
        except TimeoutError:
            if os.getppid() != parent:
                return
            continue
        except (EOFError, OSError):
            return
        arenas.free += free
        try:
            if problem is not None:
                answer = (FAILED, task, problem)
                problem = None
            elif kind == RESUME:
                fetcher = Fetcher(dataset, batched, collate_fn, drop_last)
                answer = (RESUMED, task, None)
            else:
                answer = (DONE, task, fetcher.fetch(keys))
        except Exception as error:  # noqa: BLE001 (raised by the loader)
            ended = isinstance(error, StopIteration) and fetcher is not None and fetcher.iterable
            answer = (EXHAUSTED, task, None) if ended else (FAILED, task, Failure(number))
        if not _answered(channel, answer, number, arenas):
            return
        del answer, keys  # the memory of a batch is the loader's now


def _answered(channel, answer, number, arenas):
    channel.settimeout(None)
    try:
        try:
            send(channel, answer, arenas)
        except (BrokenPipeError, ConnectionResetError):
            return False
        except Exception:  # noqa: BLE001 (a batch that cannot be pickled)
            send(channel, (FAILED, answer[1], Failure(number)), arenas)
    except OSError:
        return False
    finally:
        channel.settimeout(CHECK)
    return True


def _numpy_seed(seed, number):
    """Words for NumPy's generator of a worker: PyTorch's."""
    sequence = sys.modules["numpy"].random.SeedSequence([number, seed & 0xFFFFFFFF, seed >> 32, 0])
    return sequence.generate_state(4)
