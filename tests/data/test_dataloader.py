"""The DataLoader: PyTorch's batches for the same seed, and what happens when things go wrong."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import pytest
import torch

import lucid
from lucid.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

warnings.filterwarnings("ignore", message="This DataLoader will create")


def rows(m):
    return m.utils.data.TensorDataset(m.arange(22.0).view(11, 2), m.arange(11))


class TorchDraws(torch.utils.data.Dataset):
    """Samples that show the random numbers of the process that makes them."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        import random

        import numpy

        return i, torch.rand(1).item(), random.random(), numpy.random.rand()


class LucidDraws(Dataset):
    __len__ = TorchDraws.__len__

    def __getitem__(self, i):
        import random

        import numpy

        return i, lucid.rand(1).item(), random.random(), numpy.random.rand()


class TorchStream(torch.utils.data.IterableDataset):
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        yield from range(*((0, 7) if info is None else (info.id * 10, info.id * 10 + 3 + 2 * info.id)))


class LucidStream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        yield from range(*((0, 7) if info is None else (info.id * 10, info.id * 10 + 3 + 2 * info.id)))


def shown(value):
    if isinstance(value, (torch.Tensor, lucid.Tensor)):
        return value.tolist()
    return [shown(v) for v in value] if isinstance(value, (list, tuple)) else value


def same(make, epochs=2):
    """The batches of both libraries from the same seed, and the number drawn after them."""
    results = []
    for m in (lucid, torch):
        m.manual_seed(7)
        loader = make(m)
        results.append([[shown(batch) for batch in loader] for _ in range(epochs)] + [m.rand(1).item()])
    assert results[0] == results[1]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 4},
        {"batch_size": 4, "shuffle": True},
        {"batch_size": 4, "shuffle": True, "drop_last": True},
        {"batch_size": None},
        {"batch_sampler": [[1, 2], [3], [0, 10, 5]]},
        {"batch_size": 2, "sampler": [5, 4, 3]},
    ],
    ids=str,
)
def test_batches_are_pytorchs(workers, options):
    same(lambda m: m.utils.data.DataLoader(rows(m), num_workers=workers, **options))


@pytest.mark.parametrize("workers", [1, 2])
def test_random_numbers_of_workers_are_pytorchs(workers):
    same(lambda m: m.utils.data.DataLoader((TorchDraws if m is torch else LucidDraws)(), 2, True, num_workers=workers))


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batch_size, drop_last", [(2, False), (2, True), (None, False)])
def test_iterable_datasets(workers, batch_size, drop_last):
    def make(m):
        stream = (TorchStream if m is torch else LucidStream)()
        return m.utils.data.DataLoader(stream, batch_size, num_workers=workers, drop_last=drop_last)

    same(make)


def test_persistent_workers_generator_and_prefetch():
    def make(m):
        generator = m.Generator().manual_seed(3)
        options = {"persistent_workers": True, "prefetch_factor": 4, "generator": generator}
        return m.utils.data.DataLoader(rows(m), 3, True, num_workers=2, **options)

    same(make, epochs=3)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_methods(method):
    loader = DataLoader(TensorDataset(lucid.arange(6.0)), 2, num_workers=2, multiprocessing_context=method)
    assert [shown(batch) for batch in loader] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    context = multiprocessing.get_context(method)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(DataLoader(range(6), num_workers=2, multiprocessing_context=context, worker_init_fn=os._exit))
    with pytest.raises((AttributeError, pickle.PicklingError)):  # before anything waits for a process that cannot be made
        list(DataLoader(range(6), num_workers=2, multiprocessing_context=context, collate_fn=lambda batch: batch))
    assert children() == 0


class Odd(Dataset):
    """A dataset with every kind of value."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        big = "x" * 5000 if i else ""
        return {
            "t": lucid.full((3, 0), 1.0),
            "p": lucid.nn.Parameter(lucid.ones(2)),
            "s": big,
            "h": lucid.ones(2).half().t(),
            "n": None,
        }


def test_what_travels_between_processes():
    for i, sample in enumerate(DataLoader(Odd(), None, num_workers=1, collate_fn=lambda sample: sample)):
        assert sample["t"].shape == (3, 0) and isinstance(sample["p"], lucid.nn.Parameter) and sample["p"].requires_grad
        assert sample["s"] == ("x" * 5000 if i else "") and sample["h"].dtype == lucid.float16 and sample["n"] is None


def test_batches_live_as_long_as_they_are_held():
    loader = DataLoader(TensorDataset(lucid.arange(4000.0).view(100, 40)), 10, num_workers=2)
    batches = [batch for (batch,) in loader]
    del loader
    gc.collect()
    assert lucid.cat(batches).tolist() == lucid.arange(4000.0).view(100, 40).tolist()


class Fails(Dataset):
    def __init__(self, kind, at=3):
        self.kind, self.at = kind, at

    def __len__(self):
        return 20

    def __getitem__(self, i):
        if i == self.at:
            if self.kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.kind == "exit":
                os._exit(3)
            if self.kind == "hang":
                time.sleep(1000)
            if self.kind == "unpicklable":
                return threading.Lock()
            raise (
                {"key": KeyError, "value": ValueError, "odd": NeedsTwo}[self.kind]("of sample 3")
                if self.kind != "odd"
                else NeedsTwo(1, 2)
            )
        return i


class NeedsTwo(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def children():
    return len(multiprocessing.active_children())


@pytest.mark.parametrize(
    "kind, error", [("key", KeyError), ("value", ValueError), ("odd", RuntimeError), ("unpicklable", TypeError)]
)
def test_an_exception_of_a_worker_is_raised_with_its_traceback(kind, error):
    loader = DataLoader(Fails(kind), None, num_workers=2, collate_fn=lambda sample: sample)
    with pytest.raises(error, match="in DataLoader worker process 1(.|\n)*Traceback") as caught:
        list(loader)
    if kind in ("key", "value"):
        assert "of sample 3" in str(caught.value) and "__getitem__" in str(caught.value)
    del caught
    gc.collect()
    assert children() == 0


@pytest.mark.parametrize("kind, told", [("kill", "signal 9"), ("exit", "exit code 3")])
def test_a_worker_that_dies_is_an_error_at_once(kind, told):
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=f"exited unexpectedly.*{told}"):
        list(DataLoader(Fails(kind), 2, num_workers=2))
    assert time.monotonic() - start < 60 and children() == 0


def test_a_worker_that_hangs_is_a_timeout():
    with pytest.raises(RuntimeError, match="timed out after 1"):
        list(DataLoader(Fails("hang"), 2, num_workers=2, timeout=1))
    assert children() == 0


def test_a_failing_worker_init_fn():
    def init(number):
        raise OSError(f"worker {number} cannot start")

    with pytest.raises(OSError, match="cannot start"):
        list(DataLoader(range(4), num_workers=1, worker_init_fn=init))


def test_an_early_break_ends_the_workers():
    for _ in DataLoader(range(1000), num_workers=3, prefetch_factor=8):
        break
    gc.collect()
    assert children() == 0
    iterator = iter(DataLoader(range(1000), 2, num_workers=2, persistent_workers=True))
    next(iterator)
    gc.disable()
    try:  # they must end without the cycle collector
        del iterator
        assert children() == 0
    finally:
        gc.enable()


def test_loaders_side_by_side_end_by_themselves(monkeypatch, capfd):
    """Workers of one loader inherit the channels of another: neither keeps the other's workers from ending, or ends them."""
    killed = []
    monkeypatch.setattr(
        multiprocessing.process.BaseProcess, "terminate", lambda process: killed.append(process) or process.kill()
    )
    first = iter(DataLoader(range(100), num_workers=2))
    next(first)
    second = DataLoader(range(8), num_workers=2, persistent_workers=True, worker_init_fn=lambda number: gc.collect())
    assert len(list(second)) == 8
    assert len(list(first)) == 99
    del first
    assert len(list(second)) == 8 and children() == 2
    del second
    gc.collect()
    assert children() == 0 and not killed and capfd.readouterr().err == ""


@pytest.mark.parametrize("size, count, ahead", [(20_000, 40, 20), (100, 1500, 700)])
def test_many_and_large_messages_both_ways(size, count, ahead):
    """Keys and batches beyond the capacity of a channel, in size and number: no deadlock, also after an early end."""
    options = {"num_workers": 2, "prefetch_factor": ahead, "persistent_workers": True}
    loader = DataLoader(
        range(200), batch_sampler=[[7] * size] * count, collate_fn=lambda b: ["y" * 15 * size, len(b)], **options
    )
    for _ in loader:
        break  # with keys that were not sent yet
    assert sum(batch[1] for batch in loader) == count * size


def resident(pid="self"):
    """Bytes of a process that are in memory."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}], ids=str)
def test_many_epochs_leave_nothing_behind(options):
    """Nothing is kept that an epoch made: that would be a MiB of batches each time, and their descriptors."""

    def state():
        gc.collect()
        return len(os.listdir("/proc/self/fd")), children(), threading.active_count(), lucid.memory_stats()["allocated_bytes"]

    def memory():
        return resident() + sum(resident(process.pid) for process in multiprocessing.active_children())

    def epoch(loader):
        assert sum(len(x) for (x,) in loader) == 64
        for _ in loader:
            break  # half-used iterators leave nothing either

    data = TensorDataset(lucid.ones(64, 4096))
    epoch(DataLoader(data, 4, **options))  # what is opened once and stays
    before, loader = state(), DataLoader(data, 4, shuffle=True, **options)
    for number in range(int(os.environ.get("LUCID_EPOCHS", "12"))):  # 100 where there is time
        epoch(loader)
        assert len(os.listdir("/proc/self/fd")) < before[0] + 20  # of two workers, with a few batches each under way
        if number == 3:
            size = memory()
    assert memory() - size < 4 << 20
    del loader
    assert state() == before


INTERRUPTED = """
import signal, sys, time, lucid
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
class Slow(lucid.utils.data.Dataset):
    def __len__(self): return 100000
    def __getitem__(self, i):
        time.sleep(0.01)
        return i
try:
    for batch in lucid.utils.data.DataLoader(Slow(), num_workers=2):
        print("batch", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == "batch\n"
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and out.endswith("interrupted\n") and err == ""


def test_workers_end_when_the_loader_is_killed():
    code = INTERRUPTED.replace(
        'print("batch", flush=True)',
        "import multiprocessing; print(*[p.pid for p in multiprocessing.active_children()], flush=True)",
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    process.kill()
    process.communicate()
    end = time.monotonic() + 60
    while any(alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.1)
    assert len(pids) == 2 and not any(alive(pid) for pid in pids)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_out_of_order():
    first_came = multiprocessing.Event()

    class Uneven(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            if i == 0:
                first_came.wait(60)
            return i

    found = []
    for i in DataLoader(Uneven(), None, num_workers=2, in_order=False):
        found.append(i)
        first_came.set()
    assert sorted(found) == list(range(8)) and found[0] != 0


def test_lengths_and_warnings():
    assert len(DataLoader(range(10), 3)) == 4 and len(DataLoader(range(10), 3, drop_last=True)) == 3

    class Short(IterableDataset):
        def __len__(self):
            return 2

        def __iter__(self):
            return iter(range(4))

    loader = DataLoader(Short())
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 2"):
        list(loader)
    with pytest.warns(UserWarning, match="suggested max number of worker"):
        DataLoader(range(2), num_workers=1 + len(os.sched_getaffinity(0)))
    if not lucid.cuda.is_available():
        with pytest.warns(UserWarning, match="no accelerator"):
            list(DataLoader(range(2), pin_memory=True))
    with pytest.raises(NotImplementedError, match="pickled"):
        pickle.dumps(iter(loader))
