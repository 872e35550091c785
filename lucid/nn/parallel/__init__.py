"""Copies of a module on several devices. On the CPU there is one device: modules run as they are.

>>> model = lucid.nn.DataParallel(lucid.nn.Linear(2, 1))
>>> list(model.state_dict())
['module.weight', 'module.bias']
"""

from .data_parallel import DataParallel
from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]


def __getattr__(name):
    from ... import _declared

    return _declared.look("nn.parallel", name)
