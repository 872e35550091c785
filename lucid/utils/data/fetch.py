"""Batches made in this process, worker or not, and WorkerInfo."""

from ... import _C
from .collate import default_collate
from .dataset import IterableDataset, TensorDataset

_info = None


class WorkerInfo:
    """Information for a worker about itself: id, num_workers, seed, and its copy of the dataset.

    >>> lucid.utils.data.WorkerInfo(id=0, num_workers=2, seed=1, dataset=None).num_workers
    2
    """

    def __init__(self, id, num_workers, seed, dataset):  # noqa: A002 (PyTorch's name)
        self.id, self.num_workers, self.seed, self.dataset = id, num_workers, seed, dataset

    def __repr__(self):
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed}, dataset={self.dataset!r})"


def get_worker_info():
    """The WorkerInfo of this process, or None outside of workers.

    >>> lucid.utils.data.get_worker_info() is None
    True
    """
    return _info


class Fetcher:
    """Batches of a dataset: of keys, or of what comes next.

    >>> Fetcher([10, 20, 30], True, list, False).fetch([0, 2])
    [10, 30]
    """

    def __init__(self, dataset, batched, collate_fn, drop_last):
        self.dataset, self.batched, self.collate_fn, self.drop_last = dataset, batched, collate_fn, drop_last
        self.iterable = isinstance(dataset, IterableDataset)
        self.rows = type(dataset) is TensorDataset and batched and collate_fn is default_collate
        self.source = iter(dataset) if self.iterable else None
        self.ended = False

    def fetch(self, keys):
        if self.rows and type(keys) is list and keys and all(type(key) is int and key >= 0 for key in keys):
            try:  # rows taken at once are the rows taken one by one and stacked
                chosen = _C.tensor(keys, dtype=_C.int64)
                return [tensor.index_select(0, chosen) for tensor in self.dataset.tensors]
            except (IndexError, RuntimeError):
                pass  # a missing key: the slow path names it
        return self.collate_fn(self._next(keys) if self.iterable else self._at(keys))

    def _at(self, keys):
        if not self.batched:
            return self.dataset[keys]
        many = getattr(self.dataset, "__getitems__", None)
        return many(keys) if many else [self.dataset[key] for key in keys]

    def _next(self, keys):
        if self.ended:
            raise StopIteration
        if not self.batched:
            return next(self.source)
        batch = []
        for _ in keys:
            try:
                batch.append(next(self.source))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(keys)):
            raise StopIteration
        return batch
