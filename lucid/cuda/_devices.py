"""Which device is meant: numbers of devices, and the current one of this thread."""

from .. import _C


def index_of(device=None, optional=False, allow_cpu=False):
    """The number of a device given as a number, a name, a device or None, which is the current one.

    >>> from lucid.cuda._devices import index_of
    >>> index_of("cuda:1"), index_of(None), index_of("cpu", allow_cpu=True)
    (1, 0, -1)
    """
    if device is None:
        return _C._cuda_current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return device if device >= 0 else _C._cuda_current_device()
    device = _C.device(device)
    if device.type == "cpu" and allow_cpu:
        return -1
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return _C._cuda_current_device() if device.index is None else device.index


class device:
    """A `with` block in which "cuda" means a device. None and negative numbers change nothing.

    >>> with lucid.cuda.device(None):
    ...     lucid.cuda.current_device()
    0
    """

    def __init__(self, device):
        self.idx = -1 if device is None or (isinstance(device, int) and device < 0) else index_of(device)
        self.prev_idx = -1

    def __enter__(self):
        if self.idx >= 0:
            self.prev_idx = _C._cuda_current_device()
            if self.idx != self.prev_idx:
                _C._cuda_set_device(self.idx)
        return self

    def __exit__(self, *error):
        if self.idx >= 0 and self.idx != self.prev_idx:
            _C._cuda_set_device(self.prev_idx)
        return False


class device_of(device):
    """A `with` block in which "cuda" means the device of a tensor; a tensor elsewhere changes nothing.

    >>> with lucid.cuda.device_of(lucid.ones(1)):
    ...     lucid.cuda.current_device()
    0
    """

    def __init__(self, obj):
        super().__init__(obj.device.index if obj.device.type == "cuda" else -1)
