"""Python's `multiprocessing`, with tensors passed between processes in shared memory instead of being copied.

>>> x = lucid.zeros(2).share_memory_()
>>> x.is_shared()
True

Importing this module, or calling `share_memory_`, is enough: from then on a tensor that is put into a queue, sent through a
pipe or passed to a process is moved to shared memory, and the other process maps it. A tensor whose memory other tensors
look at cannot be moved; it is copied.
"""

import multiprocessing
import os
import tempfile
from multiprocessing import *  # noqa: F403
from multiprocessing.reduction import DupFd, ForkingPickler

from .._C import Tensor, _from_shared, _share, strided
from ..nn.parameter import Parameter
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies():
    """How memory may be passed to other processes.

    >>> sorted(lucid.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)


def get_sharing_strategy():
    """The strategy set by `set_sharing_strategy`; "file_descriptor" at first.

    >>> lucid.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _strategy


def set_sharing_strategy(new_strategy):
    """Set the sharing strategy.

    "file_descriptor": the other process maps the same memory; the sender must live until the tensor is received.
    "file_system": values travel in a file of the system's memory, which the receiver removes; the sender may have ended.
    A tensor that is in shared memory already is shared under either.

    >>> lucid.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    global _strategy
    assert new_strategy in _STRATEGIES, f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}"
    _strategy = new_strategy


def _rebuild(cls, handle, bytes_, shape, stride, offset, dtype, requires_grad, state):
    tensor = _from_shared(cls, handle.detach(), bytes_, shape, stride, offset, dtype, requires_grad)
    if state:
        tensor.__dict__.update(state)
    return tensor


_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


def _rebuild_from_file(cls, path, *rest):
    *geometry, requires_grad, state = rest
    descriptor = os.open(path, os.O_RDWR)
    os.unlink(path)
    tensor = _from_shared(cls, descriptor, *geometry, requires_grad)
    if state:
        tensor.__dict__.update(state)
    return tensor


def _in_a_file(tensor):
    """The values in a file of the system's memory, and how another process finds them."""
    copy = tensor.detach().clone()  # owns the descriptor
    handle, *geometry = _share(copy)
    into, path = tempfile.mkstemp(prefix="lucid_", dir=_MEMORY)
    try:
        left = os.fstat(handle).st_size
        os.ftruncate(into, left)
        at = 0
        while at < left:
            at += os.sendfile(into, handle, at, left - at)
    finally:
        os.close(into)
    return _rebuild_from_file, (type(tensor), path, *geometry, tensor.requires_grad, tensor.__dict__)


def _reduce(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries. If you just want to transfer the data, call detach() on the tensor before serializing"
        )
    if tensor.layout != strided:  # indices and values travel as tensors of their own
        return tensor.__reduce_ex__(2)
    if _strategy == "file_system" and tensor.device.type == "cpu" and tensor.numel() and not tensor.is_shared():
        return _in_a_file(tensor)
    shared = _share(tensor) if tensor.device.type == "cpu" else None
    if shared is None:
        return tensor.__reduce_ex__(2)
    handle, *geometry = shared
    return _rebuild, (type(tensor), DupFd(handle), *geometry, tensor.requires_grad, tensor.__dict__)


for _cls in (Tensor, Parameter):
    ForkingPickler.register(_cls, _reduce)
