"""Checkpoints beside PyTorch's and the safetensors package's: 500 MB of weights saved and loaded.

usage: checkpoints.py [--megabytes=500] [--folder=F] [--markdown]

Files go to a folder in memory by default (/dev/shm): otherwise the disk would be measured instead of the code, and Lucid
syncs its file to disk, which PyTorch does not. The two libraries alternate; each figure is the best of a few.
"""

import os
import shutil
import sys
import tempfile
import time

import torch
from compare import Row, show

import lucid


def best(functions, rounds=5):
    """The best time of each function; the functions alternate."""
    times = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            kept = function()
            times[i] = min(times[i], time.perf_counter() - start)
            del kept
    return times


def main(argv):
    options = dict(a[2:].split("=", 1) for a in argv if a.startswith("--") and "=" in a)
    count = int(options.get("megabytes", 500)) // 4
    folder = tempfile.mkdtemp(dir=options.get("folder", "/dev/shm"))
    shapes = {f"layers.{i}.weight": (1000, 1000) for i in range(count)}
    ours = {name: lucid.full(shape, 0.5) for name, shape in shapes.items()}
    theirs = {name: torch.full(shape, 0.5) for name, shape in shapes.items()}
    mine, other = os.path.join(folder, "lucid.pt"), os.path.join(folder, "torch.pt")
    rows = []

    def case(title, ours_, theirs_, ratio=None, limit=None):
        a, b = best([ours_, theirs_])
        rows.append(Row(title, a, b, ratio=ratio, limit=limit, unit="s"))

    try:
        size = f"{4 * count} MB"
        case(f"save {size}", lambda: lucid.save(ours, mine), lambda: torch.save(theirs, other), 0.8)
        case(f"load {size}", lambda: lucid.load(mine), lambda: torch.load(other), 0.6)
        case(f"load {size}, mmap", lambda: lucid.load(mine, mmap=True), lambda: torch.load(other, mmap=True), limit=0.020)
        case(f"load {size} of PyTorch's", lambda: lucid.load(other), lambda: torch.load(other))
        try:
            from safetensors.torch import load_file, save_file
        except ImportError:
            print("the safetensors package is not installed: not compared")
        else:
            case(f"safetensors: save {size}", lambda: lucid.save_safetensors(ours, mine), lambda: save_file(theirs, other), 1.0)
            case(f"safetensors: load {size}", lambda: lucid.load_safetensors(mine), lambda: load_file(other), 1.0)
            values = lambda loaded: [x.sum() for x in loaded.values()]  # noqa: E731
            case(
                "safetensors: load and read every value",
                lambda: values(lucid.load_safetensors(mine)),
                lambda: values(load_file(other)),
                1.0,
            )
    finally:
        shutil.rmtree(folder)
    show(rows, "--markdown" in argv)


if __name__ == "__main__":
    main(sys.argv[1:])
