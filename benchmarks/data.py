"""Data loading beside PyTorch's.

usage: data.py [--rounds=N] [--markdown]

A figure is a whole epoch, the best of a few; the two libraries alternate. The first batch is timed from creating the iterator,
each library in its own process: a fork copies the page tables of everything in memory, including the other library.
"""

import subprocess
import sys
import time

import torch
from compare import Row, show

import lucid


class Work:
    """Samples that take a fifth of a millisecond of Python to make, as decoding a small image does."""

    def __init__(self, count, lib):
        self.count, self.lib = count, lib

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        end = time.perf_counter() + 200e-6
        while time.perf_counter() < end:
            pass
        return self.lib.full((3, 32, 32), float(i)), i % 10


def epoch(loader):
    start = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - start


FIRST = """
import gc, time, {lib} as lib
data = lib.utils.data.TensorDataset(lib.rand(60_000, 784), lib.arange(60_000))
times = []
for _ in range(5):
    loader = lib.utils.data.DataLoader(data, 64, shuffle=True, num_workers=2)
    start = time.perf_counter()
    iterator = iter(loader)
    next(iterator)
    times.append(time.perf_counter() - start)
    del iterator
    gc.collect()
print(min(times))
"""


def printed(code):
    """The number that a program prints."""
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def imports(statement):
    code = f"import time, lucid; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    return min(printed(code) for _ in range(7))


def main(argv):
    rounds = next((int(a[9:]) for a in argv if a.startswith("--rounds=")), 5)
    rows = []

    def case(title, make, measure, ratio):
        times = {lucid: float("inf"), torch: float("inf")}
        for _ in range(rounds):
            for lib in times:
                times[lib] = min(times[lib], measure(make(lib)))
        rows.append(Row(title, times[lucid], times[torch], ratio=ratio, unit="s"))

    def images(lib):
        return lib.utils.data.TensorDataset(lib.rand(60_000, 784), lib.arange(60_000))

    data = {lib: images(lib) for lib in (lucid, torch)}

    def loader(workers):
        return lambda lib: lib.utils.data.DataLoader(data[lib], 64, shuffle=True, num_workers=workers)

    case("TensorDataset 60k x 784, batches of 64, no workers", loader(0), epoch, 0.3)
    case("TensorDataset 60k x 784, batches of 64, 2 workers", loader(2), epoch, 0.8)
    work = {lib: Work(2000, lib) for lib in (lucid, torch)}
    case(
        "0.2 ms of Python per sample, 2 workers",
        lambda lib: lib.utils.data.DataLoader(work[lib], 32, num_workers=2),
        epoch,
        1.05,
    )
    case("2 workers to the first batch", lambda lib: FIRST.format(lib=lib.__name__), printed, 0.5)
    rows.append(Row("import of lucid.utils.data after lucid", imports("import lucid.utils.data"), limit=0.020, unit="s"))
    show(rows, "--markdown" in argv)


if __name__ == "__main__":
    main(sys.argv[1:])
