"""`lucid.Stream` and `lucid.Event` of any device: made for CUDA they are those of `lucid.cuda`, which are subclasses. On the
CPU every call has ended when it returns."""

import time

from .. import _C

__all__ = ["Event", "Stream"]


class _OfADevice(type):
    """Calling the class itself makes an object of the kind of device; without one, of the machine's accelerator."""

    def __call__(cls, *args, **kwargs):
        if cls.__module__ != __name__:
            return super().__call__(*args, **kwargs)
        device = args[0] if args else kwargs.get("device")
        from .. import cuda

        if device is None:
            kind = "cuda" if cuda.is_available() and kwargs.get("device_type", 1) == 1 else "cpu"
        else:
            kind = _C.device(device).type
        if kind == "cpu":
            return super().__call__()._with(**{k: v for k, v in kwargs.items() if k != "device"})
        if kind != "cuda":
            raise RuntimeError(f"{cls.__name__}: there are no streams of {kind}, only of cuda and the CPU")
        if cls is Stream:
            return cuda.Stream(*args, **kwargs)
        kwargs.pop("device", None)
        return cuda.Event(**kwargs)


class Stream(metaclass=_OfADevice):
    """A queue of work of a device, by default of the accelerator. The CPU has one, and runs every call at once.

    >>> with lucid.Stream("cpu") as stream:
    ...     x = lucid.ones(2)
    >>> stream.query()
    True
    """

    stream_id = 0
    device_index = -1
    device_type = 0

    priority = 0
    device = _C.device("cpu")

    def _with(self, priority=0, stream_id=0, device_index=-1, device_type=0):
        self.priority = priority
        return self

    def is_capturing(self):
        """Whether calls go into a graph: never on the CPU."""
        return False

    def query(self):
        """Whether all work has ended: always."""
        return True

    def synchronize(self):
        """Wait for the work: there is none to wait for."""

    def wait_event(self, event):
        """Let later work wait for an event: it has happened, or was never recorded."""

    def wait_stream(self, stream):
        """Let later work wait for another stream's: it has ended."""

    def record_event(self, event=None):
        """Note the present time in an event, and return it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def __eq__(self, other):
        return isinstance(other, Stream) and self.device == other.device

    def __hash__(self):
        return hash((Stream, str(self.device)))

    def __repr__(self):
        return "lucid.Stream device_type=cpu, device_index=-1, stream_id=0"


class Event(metaclass=_OfADevice):
    """A point in the work of a device, by default of the accelerator.

    >>> start, end = (lucid.Event("cpu", enable_timing=True) for _ in range(2))
    >>> start.record(); x = lucid.ones(2); end.record()
    >>> start.elapsed_time(end) >= 0
    True
    """

    event_id = 0

    device = _C.device("cpu")
    enable_timing, _at = False, None

    def _with(self, enable_timing=False, blocking=False, interprocess=False):
        if interprocess:
            raise RuntimeError("Event: other processes cannot see events of the CPU")
        self.enable_timing = enable_timing
        return self

    def record(self, stream=None):
        """Note the present time."""
        self._at = time.perf_counter_ns()

    def wait(self, stream=None):
        """Let later work wait for it: it has happened."""

    def query(self):
        """Whether it has happened: always."""
        return True

    def synchronize(self):
        """Wait until it has happened."""

    def elapsed_time(self, end_event):
        """Milliseconds from this event to another; both need `enable_timing=True`."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._at - self._at) / 1e6

    def __repr__(self):
        return f"lucid.Event device_type=cpu, device_index=-1, event_flag={int(self.enable_timing)}, event_id=0"
