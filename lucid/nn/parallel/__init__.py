"""A module on several CUDA devices (`DataParallel`), or in a group of processes, of which there is one.

>>> model = lucid.nn.DataParallel(lucid.nn.Linear(2, 1))
>>> list(model.state_dict())
['module.weight', 'module.bias']
"""

from .data_parallel import DataParallel, data_parallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply", "replicate", "scatter"]


def __getattr__(name):
    from ... import _declared

    return _declared.look("nn.parallel", name)
