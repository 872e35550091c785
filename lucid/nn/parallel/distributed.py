"""`DistributedDataParallel`, which needs a process group: there is none in this build."""

from ..modules.module import Module


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over processes. The class exists for `isinstance(model, DistributedDataParallel)`;
    constructing one raises PyTorch's error for a program without a process group.

    >>> isinstance(lucid.nn.Linear(2, 1), lucid.nn.parallel.DistributedDataParallel)
    False
    """

    def __init__(self, module, *args, **kwargs):
        raise ValueError("DistributedDataParallel: there is no group of processes, lucid.distributed.is_available() is False")
