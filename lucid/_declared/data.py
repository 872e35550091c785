"""Names of `torch.utils.data` that programs subclass or compare: kinds of datasets, fetchers, data pipes."""

from ..utils.data.dataset import Dataset, IterableDataset
from ..utils.data.sampler import Sampler


class _DatasetKind:
    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(kind, dataset, auto_collation, collate_fn, drop_last):
        cls = _MapDatasetFetcher if kind == _DatasetKind.Map else _IterableDatasetFetcher
        return cls(dataset, auto_collation, collate_fn, drop_last)


class _InfiniteConstantSampler(Sampler):
    """None for ever."""

    def __init__(self):
        pass

    def __iter__(self):
        while True:
            yield None


class _Source(IterableDataset):
    """An iterable that is a dataset by its loader's word."""

    def __init__(self, source):
        self.source = source

    def __iter__(self):
        return iter(self.source)

    def __getattr__(self, name):
        if name == "source" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.source, name)


class Loader:
    """A loader of a package's own, read by the attributes that PyTorch's loaders have, as the iterators here want it.

    >>> from types import SimpleNamespace
    >>> own = SimpleNamespace(_dataset_kind=1, _auto_collation=False, _IterableDataset_len_called=None, dataset=[1, 2])
    >>> list(Loader(own).dataset)
    [1, 2]
    """

    def __init__(self, loader):
        self.loader = loader
        self._iterable = loader._dataset_kind == _DatasetKind.Iterable
        self._batched, self._stated_length = loader._auto_collation, loader._IterableDataset_len_called
        foreign = self._iterable and not isinstance(loader.dataset, IterableDataset)
        self.dataset = _Source(loader.dataset) if foreign else loader.dataset

    def __getattr__(self, name):
        if name == "loader" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.loader, name)

    def __len__(self):
        return len(self.loader)

    def _seen(self):
        return self

    def _keys(self):
        return iter(self.loader._index_sampler)


class _MapDatasetFetcher:
    """Samples of a dataset by their indices, collated."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = dataset, auto_collation, collate_fn, drop_last

    def fetch(self, index):
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if getattr(self.dataset, "__getitems__", None):
            return self.collate_fn(self.dataset.__getitems__(index))
        return self.collate_fn([self.dataset[i] for i in index])


class _IterableDatasetFetcher:
    """The next samples of an iterable dataset, collated."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset_iter, self.ended = iter(dataset), False
        self.auto_collation, self.collate_fn, self.drop_last = auto_collation, collate_fn, drop_last

    def fetch(self, index):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate_fn(samples)


class IterDataPipe(IterableDataset):
    """The base class of data pipes that are iterated over: an iterable dataset. Pipes as methods (`pipe.map`) are absent.

    >>> issubclass(lucid.utils.data.datapipes.datapipe.IterDataPipe, object)
    True
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__()


class MapDataPipe(Dataset):
    """The base class of data pipes with indices: a dataset.

    >>> from lucid._declared.data import MapDataPipe
    >>> issubclass(MapDataPipe, lucid.utils.data.Dataset)
    True
    """
