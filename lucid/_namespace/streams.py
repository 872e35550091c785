"""`lucid.Stream` and `lucid.Event` on the CPU, where every call has ended when it returns."""

import time

from .. import _C

__all__ = ["Event", "Stream"]


def _cpu(device, what):
    device = _C.device("cpu" if device is None else device)
    if device.type != "cpu":
        raise RuntimeError(f"{what}: streams of {device.type} are not available, only the CPU's")
    return device


class Stream:
    """An order of work. The CPU has one, and runs every call at once.

    >>> with lucid.Stream() as stream:
    ...     x = lucid.ones(2)
    >>> stream.query()
    True
    """

    stream_id = 0
    device_index = -1
    device_type = 0

    def __init__(self, device=None, *, priority=0):
        self.device, self.priority = _cpu(device, "Stream"), priority

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
        event = Event() if event is None else event
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


class Event:
    """A point in time between calls.

    >>> start, end = lucid.Event(enable_timing=True), lucid.Event(enable_timing=True)
    >>> start.record(); x = lucid.ones(2); end.record()
    >>> start.elapsed_time(end) >= 0
    True
    """

    event_id = 0

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        self.device, self.enable_timing, self._at = _cpu(device, "Event"), enable_timing, None
        if interprocess:
            raise RuntimeError("Event: other processes cannot see events of the CPU")

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
