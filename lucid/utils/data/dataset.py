"""Where samples come from."""

import bisect
import collections.abc
import itertools
import math
import warnings

from ... import _C
from .sampler import where


class Dataset:
    """Samples by key: `dataset[key]`; most also have a length. `__getitems__(keys)`, if there is one, is asked for batches.

    >>> class Squares(lucid.utils.data.Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> list(lucid.utils.data.DataLoader(Squares(), batch_size=None))
    [0, 1, 4]
    """

    def __class_getitem__(cls, _):
        return cls

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset, collections.abc.Iterable):
    """Samples one after the other: `iter(dataset)`. Each worker has a copy; get_worker_info says which part is its own.

    >>> class Words(lucid.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(["a", "b", "c"])
    >>> list(lucid.utils.data.DataLoader(Words(), batch_size=2))
    [['a', 'b'], ['c']]
    """

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Rows of tensors: a sample is the i-th row of each.

    >>> lucid.utils.data.TensorDataset(lucid.arange(3), lucid.zeros(3))[1]
    (tensor(1), tensor(0.))
    """

    def __init__(self, *tensors):
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Several datasets side by side: a sample is a tuple, or a dict where they have names, of the samples of each.

    >>> lucid.utils.data.StackDataset(x=[1, 2], y=[3, 4])[0]
    {'x': 1, 'y': 3}
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError("StackDataset takes datasets by position or by name, not both")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        parts = args or tuple(kwargs.values())
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError("Size mismatch between datasets")

    def _sample(self, of):
        if isinstance(self.datasets, dict):
            return {name: of(dataset) for name, dataset in self.datasets.items()}
        return tuple(of(dataset) for dataset in self.datasets)

    def __getitem__(self, index):
        return self._sample(lambda dataset: dataset[index])

    def __getitems__(self, indices):
        columns = self._sample(lambda dataset: _items(dataset, indices))
        if isinstance(columns, dict):
            return [{name: column[i] for name, column in columns.items()} for i in range(len(indices))]
        return list(zip(*columns, strict=True))

    def __len__(self):
        return self._length


def _items(dataset, indices):
    many = getattr(dataset, "__getitems__", None)
    if not callable(many):
        return [dataset[i] for i in indices]
    items = many(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset):
    """Datasets one after the other.

    >>> both = lucid.utils.data.ConcatDataset([[1, 2], [3]])
    >>> len(both), both[2], both[-1]
    (3, 3, 3)
    """

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(dataset) for dataset in self.datasets))

    @property
    def cummulative_sizes(self):
        warnings.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other.

    >>> class Words(lucid.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter("ab")
    >>> list(lucid.utils.data.ChainDataset([Words(), Words()]))
    ['a', 'b', 'a', 'b']
    """

    def __init__(self, datasets):
        self.datasets = datasets

    def _checked(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self):
        for dataset in self._checked():
            yield from dataset

    def __len__(self):
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset):
    """Some samples of a dataset, by their keys.

    >>> lucid.utils.data.Subset([10, 20, 30], [2, 0])[0]
    30
    """

    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        return _items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Cut a dataset at random into parts of given lengths, or of given fractions that sum to 1.

    >>> parts = lucid.utils.data.random_split(range(10), [0.8, 0.2], lucid.Generator().manual_seed(0))
    >>> [len(part) for part in parts]
    [8, 2]
    """
    size = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths = [math.floor(size * fraction) for fraction in lengths]
        for i in range(size - sum(lengths)):
            lengths[i % len(lengths)] += 1
        for i, length in enumerate(lengths):
            if length == 0:
                warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2)
    if sum(lengths) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = _C.randperm(size, **where(generator)).tolist()
    ends = itertools.accumulate(lengths)
    return [Subset(dataset, order[end - length : end]) for end, length in zip(ends, lengths, strict=True)]
