"""Streams and events. Work of one stream runs in order; streams run side by side, unless events order them.

A thread has a current stream on every device, at first the default stream. What is called on tensors of a device goes to the
current stream there; gradients run on the stream of their forward call.

>>> if lucid.cuda.is_available():
...     side = lucid.cuda.Stream()
...     x = lucid.ones(3, device="cuda")
...     side.wait_stream(lucid.cuda.current_stream())  # x is ready
...     with lucid.cuda.stream(side):
...         y = x * 2
...     lucid.cuda.current_stream().wait_stream(side)
...     y.record_stream(lucid.cuda.current_stream())  # y's memory was given out for `side`
"""

import ctypes

from .. import _C
from .._namespace import streams as any_device
from ._devices import index_of

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "get_stream_from_external",
    "is_current_stream_capturing",
    "set_stream",
    "stream",
]

_CUDA = 1  # PyTorch's number of the kind


class Stream(any_device.Stream):
    """A queue of work of a device. priority: -1 is served before 0 where both could run.

    They come from a pool of 32 per device and priority and are given out in turn, as PyTorch's.

    >>> if lucid.cuda.is_available():
    ...     side = lucid.cuda.Stream(priority=-1)
    ...     with side:
    ...         assert lucid.cuda.current_stream() == side
    """

    device_type = _CUDA

    def __init__(self, device=None, priority=0, **kwargs):
        if kwargs:
            known = {"stream_id", "device_index", "device_type", "stream_ptr"}
            if set(kwargs) - known:
                raise TypeError(f"Stream: unexpected argument {min(set(kwargs) - known)!r}")
            self.device_index = kwargs.get("device_index", index_of(device))
            self.cuda_stream = int(kwargs.get("stream_ptr", kwargs.get("stream_id", 0)))
        else:
            self.device_index = index_of(device)
            self.cuda_stream = _C._cuda_stream_new(self.device_index, priority) or 0
        self._entered = []

    @property
    def stream_id(self):
        """What tells streams of a device apart; 0 is the default stream."""
        return self.cuda_stream or 0

    @property
    def device(self):
        """The device whose work it queues."""
        return _C.device("cuda", self.device_index)

    @property
    def priority(self):
        """-1 or 0."""
        return _C._cuda_stream_priority(self.device_index, self.cuda_stream)

    def query(self):
        """Whether all work in it has ended."""
        return _C._cuda_stream_query(self.device_index, self.cuda_stream)

    def synchronize(self):
        """Wait until all work in it has ended."""
        _C._cuda_stream_wait(self.device_index, self.cuda_stream)

    def wait_event(self, event):
        """What is queued from now on waits for an event."""
        event.wait(self)

    def wait_stream(self, stream):
        """What is queued from now on waits for what is in another stream now."""
        _C._cuda_stream_wait_stream(self.device_index, self.cuda_stream, stream.device_index, stream.cuda_stream)

    def record_event(self, event=None):
        """An event that has happened when what is in the stream now has ended."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def is_capturing(self):
        """Whether calls go into a graph instead of being run."""
        return _C._cuda_stream_captures(self.device_index, self.cuda_stream)

    @staticmethod
    def priority_range():
        """The lowest and the highest priority."""
        return 0, -1

    @property
    def native_handle(self):
        """The address of the driver's stream."""
        return self.cuda_stream

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self):
        """The address of the driver's stream, by the protocol of NVIDIA's Python packages."""
        return 0, self.cuda_stream

    def __enter__(self):
        block = StreamContext(self)
        block.__enter__()
        self._entered.append(block)
        return self

    def __exit__(self, *error):
        return self._entered.pop().__exit__(*error)

    def __eq__(self, other):
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream and self.device_index == other.device_index

    def __hash__(self):
        return hash((self.cuda_stream, self.device_index))

    def __repr__(self):
        return f"<lucid.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by its address. That library must keep it alive.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.ExternalStream(0) == lucid.cuda.default_stream()
    """

    def __init__(self, stream_ptr, device=None, **kwargs):
        super().__init__(stream_ptr=stream_ptr, device_index=index_of(device))


class Event(any_device.Event):
    """A point in the work of a stream: to wait for, and with enable_timing=True to measure from and to.

    >>> if lucid.cuda.is_available():
    ...     start, end = (lucid.cuda.Event(enable_timing=True) for _ in range(2))
    ...     start.record()
    ...     y = lucid.ones(3, device="cuda").exp()
    ...     end.record()
    ...     end.synchronize()
    ...     assert start.elapsed_time(end) >= 0
    """

    cuda_event = 0

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        if interprocess:
            raise NotImplementedError("cuda.Event: events are not shared between processes")
        if external:
            raise NotImplementedError("cuda.Event: external events of captured graphs")
        _C._cuda_open()
        self.enable_timing, self.blocking, self._device = enable_timing, blocking, None

    @property
    def event_id(self):
        """The address of the driver's event, 0 before it was recorded."""
        return self.cuda_event

    @property
    def device(self):
        """The device of the stream that it was first recorded on; None before."""
        return None if self._device is None else _C.device("cuda", self._device)

    def _made(self, device):
        if self._device is None:
            self.cuda_event = _C._cuda_event_new(device, self.enable_timing, self.blocking)
            self._device = device

    def record(self, stream=None):
        """It has happened when what is in a stream now has ended."""
        stream = current_stream() if stream is None else stream
        self._made(stream.device_index)
        if stream.device_index != self._device:
            raise RuntimeError(f"Event device {self._device} does not match recording stream's device {stream.device_index}.")
        _C._cuda_event_record(self._device, self.cuda_event, stream.cuda_stream)

    def wait(self, stream=None):
        """What is queued in a stream from now on waits for it. An event that was never recorded has happened."""
        stream = current_stream() if stream is None else stream
        if self._device is not None:
            _C._cuda_stream_wait_event(stream.device_index, stream.cuda_stream, self.cuda_event)

    def query(self):
        """Whether it has happened."""
        return self._device is None or _C._cuda_event_query(self._device, self.cuda_event)

    def synchronize(self):
        """Wait until it has happened."""
        if self._device is not None:
            _C._cuda_event_wait(self._device, self.cuda_event)

    def elapsed_time(self, end_event):
        """Milliseconds on the device from this event to another; both have happened."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._device is None or end_event._device is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return _C._cuda_event_time(self._device, self.cuda_event, end_event.cuda_event)

    def ipc_handle(self):
        """Events are not shared between processes."""
        raise NotImplementedError("cuda.Event: events are not shared between processes")

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """Events are not shared between processes."""
        raise NotImplementedError("cuda.Event: events are not shared between processes")

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.cuda_event)

    def __del__(self):
        if self.cuda_event:
            _C._cuda_event_free(self._device, self.cuda_event)

    def __repr__(self):
        return f"<lucid.cuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<lucid.cuda.Event uninitialized>"


class StreamContext:
    """What `stream` returns.

    >>> with lucid.cuda.StreamContext(None):
    ...     1
    1
    """

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        stream = self.stream
        if stream is None:
            return
        self._before = _C._cuda_current_device()
        self._there = _C._cuda_stream_get(stream.device_index)
        set_stream(stream)

    def __exit__(self, *error):
        if self.stream is not None:
            _C._cuda_stream_set(self.stream.device_index, self._there or 0)
            _C._cuda_set_device(self._before)


def stream(stream):
    """A `with` block whose work goes to a stream, and in which its device is the current one. None changes nothing.

    >>> if lucid.cuda.is_available():
    ...     with lucid.cuda.stream(lucid.cuda.Stream()):
    ...         x = lucid.ones(3, device="cuda")
    """
    return StreamContext(stream)


def set_stream(stream):
    """Work of this thread goes to a stream from now on, and its device is the current one.

    >>> lucid.cuda.set_stream(None)
    """
    if stream is None:
        return
    _C._cuda_set_device(stream.device_index)
    _C._cuda_stream_set(stream.device_index, stream.cuda_stream)


def current_stream(device=None):
    """This thread's current stream on a device.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.current_stream() == lucid.cuda.default_stream()
    """
    index = index_of(device)
    _C._cuda_open()
    return Stream(stream_ptr=_C._cuda_stream_get(index) or 0, device_index=index)


def default_stream(device=None):
    """The stream that work goes to unless another one is set.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.default_stream().cuda_stream == 0
    """
    _C._cuda_open()
    return Stream(stream_ptr=0, device_index=index_of(device))


def get_stream_from_external(data_ptr, device=None):
    """A stream that another library made, by its address.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.get_stream_from_external(0).cuda_stream == 0
    """
    return ExternalStream(data_ptr, device)


def is_current_stream_capturing():
    """Whether what is called now goes into a graph instead of being run.

    >>> lucid.cuda.is_current_stream_capturing()
    False
    """
    if not _C._cuda_initialized():
        return False
    index = _C._cuda_current_device()
    return _C._cuda_stream_captures(index, _C._cuda_stream_get(index) or 0)
