"""Batches of a dataset, made here or in worker processes (processes.py)."""

import itertools
import os
import warnings

from ... import _C
from .collate import default_collate, default_convert
from .dataset import IterableDataset
from .fetch import Fetcher
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, drawn_seed

_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class _Forever(Sampler):
    """Keys for what has none."""

    def __iter__(self):
        return itertools.repeat(None)


class DataLoader:
    """Batches of a dataset.

    dataset: what has `dataset[key]` and a length, or an IterableDataset. batch_size None: samples alone. shuffle, sampler,
    batch_sampler: the order. num_workers: processes that make batches ahead, prefetch_factor each; 0: here. collate_fn: how
    samples become a batch. pin_memory: for the GPU's copies. drop_last: no short batch at the end. timeout: seconds to wait for
    a batch. worker_init_fn: called in each worker with its number. multiprocessing_context: "fork", "spawn", "forkserver" or a
    context. generator: for the order and the workers' seeds. persistent_workers: they stay for the next epoch. in_order: False
    hands out batches as they come.

    >>> loader = lucid.utils.data.DataLoader(range(5), batch_size=2, drop_last=True)
    >>> len(loader), [batch.tolist() for batch in loader]
    (2, [[0, 1], [2, 3]])
    """

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if pin_memory and pin_memory_device and pin_memory_device != "cuda":
            raise ValueError(f"pin_memory_device is 'cuda' or '', not {pin_memory_device!r}")
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if given is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._iterable:
                sampler = _Forever()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.num_workers, self.timeout, self.generator = dataset, num_workers, timeout, generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.persistent_workers, self.in_order = worker_init_fn, persistent_workers, in_order
        self.multiprocessing_context = multiprocessing_context
        self.batch_size, self.drop_last, self.sampler, self.batch_sampler = batch_size, drop_last, sampler, batch_sampler
        self._batched = batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)
        self._iterator = self._stated_length = None
        self._made = True
        self.check_worker_number_rationality()

    def check_worker_number_rationality(self):
        """Warn of more workers than there are cores for them."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if self.num_workers and cores and self.num_workers > cores:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker "
                f"in current system is {cores}, which is smaller than what this DataLoader is going to create. Please be aware "
                "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number to "
                "avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )

    def __class_getitem__(cls, _):
        return cls

    def __setattr__(self, name, value):
        if name in _FIXED and self.__dict__.get("_made"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            import multiprocessing

            if not self.num_workers:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                    f"but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                known = multiprocessing.get_all_start_methods()
                if context not in known:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {known!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start method, "
                    f"but got multiprocessing_context={context}"
                )
        self._context = context

    def _keys(self):
        return iter(self.batch_sampler if self._batched else self.sampler)

    def __iter__(self):
        if not self.num_workers:
            return _Here(self)
        from .processes import Workers

        if not self.persistent_workers:
            return Workers(self)
        if self._iterator is None or self._iterator.closed:
            self._iterator = Workers(self)
        else:
            self._iterator.begin_again(self)
        return self._iterator

    def _seen(self):
        """A copy of this loader without its iterator, for the iterator: so there is no reference cycle that keeps processes
        alive."""
        seen = object.__new__(type(self))
        seen.__dict__.update(self.__dict__, _iterator=None)
        return seen

    def __len__(self):
        if not self._iterable:
            return len(self.batch_sampler if self._batched else self.sampler)
        length = self._stated_length = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


class Batches:
    """What both kinds of iterators share: the order, the seeds, pinning, and the check of a dataset's stated length.

    >>> len(Batches(DataLoader(range(4), 2)))
    2
    """

    def __init__(self, loader):
        if not hasattr(loader, "_seen"):  # an object with the attributes that PyTorch's loaders have
            from ..._declared.data import Loader

            loader = Loader(loader)
        self.loader = loader._seen()
        self.keys = loader._keys()
        self.seed = drawn_seed(loader.generator)  # drawn here, to make the same draws in the same order as PyTorch
        self.count = 0
        self.pins = False
        if loader.pin_memory:
            from ... import cuda

            self.pins = cuda.is_available()
            if not self.pins:
                warnings.warn(
                    "'pin_memory' argument is set as true but no accelerator is found, "
                    "then device pinned memory won't be used.",
                    stacklevel=4,
                )

    def __iter__(self):
        return self

    def __len__(self):
        return len(self.loader)

    def __reduce__(self):
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")

    def handed_out(self, batch):
        self.count += 1
        stated = self.loader._stated_length
        if stated is not None and self.loader._iterable and self.count > len(self.loader):
            warnings.warn(
                f"Length of IterableDataset {self.loader.dataset} was reported to be {stated} "
                f"(when accessing len(dataloader)), but {self.count} samples have been fetched.",
                stacklevel=3,
            )
        return _pinned(batch) if self.pins else batch


def _pinned(value):
    """A batch with its tensors in page-locked memory."""
    if isinstance(value, _C.Tensor):
        return value.pin_memory()
    if hasattr(value, "pin_memory"):
        return value.pin_memory()
    if isinstance(value, dict):
        return type(value)({key: _pinned(part) for key, part in value.items()})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_pinned, value))
    if isinstance(value, (tuple, list)):
        return type(value)(map(_pinned, value))
    return value


class _Here(Batches):
    """Batches made in the calling process."""

    def __init__(self, loader):
        super().__init__(loader)
        loader = self.loader
        if loader.timeout:
            raise AssertionError("timeout is of workers: with num_workers=0 nothing is waited for (requires timeout == 0)")
        self.fetcher = Fetcher(loader.dataset, loader._batched, loader.collate_fn, loader.drop_last)

    def __next__(self):
        return self.handed_out(self.fetcher.fetch(next(self.keys)))
