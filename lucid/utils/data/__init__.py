"""Datasets, samplers, and a DataLoader with worker processes.

>>> data = lucid.utils.data.TensorDataset(lucid.arange(4.0), lucid.arange(4))
>>> for x, y in lucid.utils.data.DataLoader(data, batch_size=2):
...     print(x.tolist(), y.tolist())
[0.0, 1.0] [0, 1]
[2.0, 3.0] [2, 3]

With the same seed the order of samples, and the seeds of workers, are PyTorch's.
"""

from . import distributed
from .collate import collate, default_collate, default_convert
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .fetch import WorkerInfo, get_worker_info
from .sampler import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "collate",
    "default_collate",
    "default_convert",
    "distributed",
    "get_worker_info",
    "random_split",
]


def __getattr__(name):
    from ... import _declared

    return _declared.look("utils.data", name)
