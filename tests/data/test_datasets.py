"""Datasets, samplers and collation, beside PyTorch's."""

import collections

import numpy as np
import pytest
import torch

import lucid

OBJECT = object()
Pair = collections.namedtuple("Pair", "a b")


def outcome(function, lib):
    """What a function returns, as plain values, or the class of its error."""
    try:
        return plain(function(lib))
    except Exception as error:  # noqa: BLE001 (compared)
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def plain(value):
    if isinstance(value, (torch.Tensor, lucid.Tensor)):
        return str(value.dtype).split(".")[-1], value.tolist()
    if isinstance(value, np.ndarray):
        return type(value).__name__, value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, collections.deque)):
        return type(value).__name__, [plain(v) for v in value]
    return value


BATCHES = {
    "tensors": lambda m: [m.ones(2), m.zeros(2)],
    "numbers": lambda m: [1, 2, 3],
    "floats": lambda m: [1.5, 2.0],
    "bools": lambda m: [True, False],
    "complex": lambda m: [1j, 2j],
    "texts": lambda m: ["a", "b"],
    "bytes": lambda m: [b"a", b"b"],
    "tuples": lambda m: [(1, "a"), (2, "b")],
    "lists": lambda m: [[1, m.ones(1)], [2, m.zeros(1)]],
    "dicts": lambda m: [{"x": 1, "y": [1.0]}, {"x": 2, "y": [2.0]}],
    "ordered": lambda m: [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    "defaults": lambda m: [collections.defaultdict(int, a=1), collections.defaultdict(int, a=2)],
    "named": lambda m: [Pair(1, 2.0), Pair(3, 4.0)],
    "arrays": lambda m: [np.arange(3), np.arange(3)],
    "array scalars": lambda m: [np.float32(1), np.float32(2)],
    "doubles": lambda m: [np.float64(1), np.float64(2)],
    "array ints": lambda m: [np.int16(1), np.int16(2)],
    "numpy bools": lambda m: [np.bool_(True), np.bool_(False)],
    "texts of numpy": lambda m: [np.array(["a"]), np.array(["b"])],
    "objects": lambda m: [OBJECT, OBJECT],
    "none": lambda m: [None, None],
    "ragged": lambda m: [[1, 2], [3]],
    "shapes": lambda m: [m.ones(2), m.ones(3)],
    "empty": lambda m: [],
    "range": lambda m: [range(2), range(2)],
    "masked": lambda m: [np.ma.array([1, 2], mask=[0, 1])],
    "records": lambda m: [np.zeros(1, dtype=[("a", "i4")])],
    "big-endian": lambda m: [np.arange(3, dtype=">i4")],
    "deques": lambda m: [collections.deque([1, 2]), collections.deque([3, 4])],
}


@pytest.mark.parametrize("name", BATCHES)
@pytest.mark.parametrize("function", ["default_collate", "default_convert"])
def test_collation(name, function):
    def run(m):
        return getattr(m.utils.data, function)(BATCHES[name](m))

    assert outcome(run, lucid) == outcome(run, torch)


SAMPLERS = {
    "sequential": lambda d, g: d.SequentialSampler(range(7)),
    "random": lambda d, g: d.RandomSampler(range(50)),
    "more": lambda d, g: d.RandomSampler(range(5), num_samples=13),
    "replacement": lambda d, g: d.RandomSampler(range(9), replacement=True, num_samples=70),
    "generator": lambda d, g: d.RandomSampler(range(50), generator=g),
    "subset": lambda d, g: d.SubsetRandomSampler([5, 3, 9, 1], generator=g),
    "weighted": lambda d, g: d.WeightedRandomSampler([0.1, 0.5, 0.4, 2.0], 20, generator=g),
    "weighted once": lambda d, g: d.WeightedRandomSampler([0.1, 0.5, 0.4, 2.0], 3, replacement=False),
    "batches": lambda d, g: d.BatchSampler(d.RandomSampler(range(10)), 3, False),
    "whole batches": lambda d, g: d.BatchSampler(d.SequentialSampler(range(10)), 3, True),
    "distributed": lambda d, g: d.DistributedSampler(range(10), 3, 1),
    "distributed whole": lambda d, g: d.DistributedSampler(range(10), 3, 2, shuffle=False, drop_last=True),
    "distributed few": lambda d, g: d.DistributedSampler(range(2), 5, 4, seed=3),
}


def data_of(m):
    if m is lucid:
        return m.utils.data
    import torch.utils.data.distributed  # noqa: F401 (DistributedSampler)

    return m.utils.data


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_draw_what_pytorch_draws(name):
    def run(m):
        m.manual_seed(11)
        generator = m.Generator().manual_seed(5)
        sampler = SAMPLERS[name](data_of(m), generator)
        first = list(sampler)
        if hasattr(sampler, "set_epoch"):
            sampler.set_epoch(2)
        return [len(sampler), first, list(sampler), m.rand(1).item()]

    assert run(lucid) == run(torch)


THREE = {lib.utils.data: lib.arange(3) for lib in (lucid, torch)}
WRONG = {
    "no samples": lambda d: d.RandomSampler([]),
    "negative": lambda d: d.RandomSampler([1], num_samples=-1),
    "replacement": lambda d: d.RandomSampler([1], replacement=1),
    "batch": lambda d: d.BatchSampler([1], 0, False),
    "drop": lambda d: d.BatchSampler([1], 1, 1),
    "weights": lambda d: d.WeightedRandomSampler([[1.0]], 1),
    "count": lambda d: d.WeightedRandomSampler([1.0], True),
    "rank": lambda d: d.DistributedSampler([1], 2, 2),
    "sizes": lambda d: d.StackDataset([1], [1, 2]),
    "both": lambda d: d.StackDataset([1], a=[1]),
    "none": lambda d: d.StackDataset(),
    "no parts": lambda d: d.ConcatDataset([]),
    "split": lambda d: d.random_split(range(3), [1, 1]),
    "fractions": lambda d: d.random_split(range(3), [1.5, -0.5]),
    "beyond": lambda d: d.ConcatDataset([[1]])[-2],
    "workers": lambda d: d.DataLoader([1], num_workers=-1),
    "timeout": lambda d: d.DataLoader([1], timeout=-1),
    "prefetch": lambda d: d.DataLoader([1], prefetch_factor=2),
    "persistent": lambda d: d.DataLoader([1], persistent_workers=True),
    "shuffle and sampler": lambda d: d.DataLoader([1], shuffle=True, sampler=[0]),
    "batch sampler": lambda d: d.DataLoader([1], batch_size=2, batch_sampler=[[0]]),
    "no batch": lambda d: d.DataLoader([1], batch_size=None, drop_last=True),
    "context": lambda d: d.DataLoader([1], multiprocessing_context="fork"),
    "method": lambda d: d.DataLoader([1], num_workers=1, multiprocessing_context="none"),
    "context type": lambda d: d.DataLoader([1], num_workers=1, multiprocessing_context=3),
    "fixed": lambda d: setattr(d.DataLoader([1]), "batch_size", 2),
    "abstract": lambda d: d.Dataset()[0],
    "abstract stream": lambda d: d.IterableDataset(),
    "nothing to wait for": lambda d: list(d.DataLoader([1], timeout=1)),
    "no keys": lambda d: list(d.DataLoader(d.TensorDataset(THREE[d]), batch_sampler=[[]])),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    ours = outcome(lambda m: WRONG[name](data_of(m)) and None, lucid)
    assert ours == outcome(lambda m: WRONG[name](data_of(m)) and None, torch) and isinstance(ours, str)


def test_datasets():
    def run(m):
        d = m.utils.data
        tensors = d.TensorDataset(m.arange(4), m.arange(8).view(4, 2))
        stacked, named = d.StackDataset(tensors, range(4)), d.StackDataset(a=[1, 2], b=["x", "y"])
        joined = d.ConcatDataset([[1, 2], [3, 4, 5]]) + [6]
        m.manual_seed(0)
        parts = d.random_split(range(10), [0.35, 0.35, 0.3]) + d.random_split(range(5), [2, 3], m.Generator().manual_seed(1))
        subset = d.Subset(tensors, [3, 1])
        return [
            tensors[1], tensors[1:3], len(tensors), stacked[2], stacked.__getitems__([0, 3]), named[1], len(named),
            [joined[i] for i in range(6)], joined[-1], joined.cumulative_sizes, [list(p) for p in parts], subset[0],
            subset.__getitems__([0, 1]), subset[[0, 1]], len(subset),
            [batch[0] for batch in d.DataLoader(tensors, batch_sampler=[m.tensor([0, 2]), (1, 3), [-1, 0]])],
        ]  # fmt: skip

    assert plain(run(lucid)) == plain(run(torch))
