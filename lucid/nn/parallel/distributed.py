"""`DistributedDataParallel`, which needs a group of processes: there is none in this build."""

from ..modules.module import Module


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over processes. It can be asked for, as in
    `isinstance(model, DistributedDataParallel)`; to make one raises PyTorch's error for a program without
    a group of processes.

    >>> isinstance(lucid.nn.Linear(2, 1), lucid.nn.parallel.DistributedDataParallel)
    False
    """

    def __init__(self, module, *args, **kwargs):
        raise ValueError("DistributedDataParallel: there is no group of processes, lucid.distributed.is_available() is False")
