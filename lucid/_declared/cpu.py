"""`torch.cpu`: the CPU by the names of a device module."""

from .contexts import nothing

__all__ = [
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """The CPU's one stream: calls run in order, so that there is nothing to wait for.

    >>> lucid.cpu.current_stream().query()
    True
    """

    def __init__(self, priority=-1):
        self.priority = priority

    def wait_stream(self, stream):
        pass

    def record_event(self, event=None):
        return event

    def wait_event(self, event):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True


StreamContext = nothing
_only = Stream()


def stream(stream):
    """A block on a stream: there is one.

    >>> with lucid.cpu.stream(lucid.cpu.current_stream()):
    ...     1
    1
    """
    return nothing()


def current_stream(device=None):
    """The one stream.

    >>> lucid.cpu.current_stream() is lucid.cpu.current_stream()
    True
    """
    return _only


def is_available():
    """Whether there is a CPU.

    >>> lucid.cpu.is_available()
    True
    """
    return True


is_initialized = is_available


def device_count():
    """How many CPUs there are as devices: one.

    >>> lucid.cpu.device_count()
    1
    """
    return 1


def current_device():
    """The name of the device.

    >>> lucid.cpu.current_device()
    'cpu'
    """
    return "cpu"


def set_device(device):
    """Nothing to choose.

    >>> lucid.cpu.set_device("cpu")
    """


def synchronize(device=None):
    """Wait until all work is done: it is.

    >>> lucid.cpu.synchronize()
    """
