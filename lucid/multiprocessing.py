"""Python's `multiprocessing`, with tensors passed between processes in shared memory instead of being copied.

>>> x = lucid.zeros(2).share_memory_()
>>> x.is_shared()
True

Importing this module, or calling `share_memory_`, is enough: from then on a tensor that is put into a queue, sent through a
pipe or passed to a process is moved to shared memory, and the other process maps it. A tensor whose memory other tensors
look at cannot be moved; it is copied.
"""

import multiprocessing
from multiprocessing import *  # noqa: F403
from multiprocessing.reduction import DupFd, ForkingPickler

from ._C import Tensor, _from_shared, _share, strided
from .nn.parameter import Parameter

__all__ = [*multiprocessing.__all__, "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]

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
    """Set the sharing strategy. Memory is passed as file descriptors under either name, so no file is left behind when a
    program ends, which PyTorch's "file_system" cannot promise.

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


def _reduce(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries. If you just want to transfer the data, call detach() on the tensor before serializing"
        )
    if tensor.layout != strided:  # indices and values travel as tensors of their own
        return tensor.__reduce_ex__(2)
    shared = _share(tensor) if tensor.device.type == "cpu" else None
    if shared is None:
        return tensor.__reduce_ex__(2)
    handle, *geometry = shared
    return _rebuild, (type(tensor), DupFd(handle), *geometry, tensor.requires_grad, tensor.__dict__)


for _cls in (Tensor, Parameter):
    ForkingPickler.register(_cls, _reduce)
