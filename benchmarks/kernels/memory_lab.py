"""Kernels that move memory: bytes per second beside a copy of the same size in the same run, and beside reading alone.

usage: memory_lab.py [FILTER...]      a filter is a part of a title

One core. Bytes are those of the operands and results, each counted as often as an ideal kernel touches it; write
allocation is not counted, nor is it for the copy. A kernel at 100 % of the copy is bound by memory and done. Times
are thread times, not wall-clock times, and the minimum of many: other processes only share the bandwidth.
"""

import sys
import time

import numpy as np
from lab import shown
from peak import reads

import lucid

F = lucid.nn.functional


def best(run, seconds=0.3):
    run()  # warm-up: allocates its memory
    run()
    least, until, runs = float("inf"), time.perf_counter() + seconds, 0
    while time.perf_counter() < until or runs < 3:
        runs += 1
        start = time.thread_time_ns()
        run()
        least = min(least, (time.thread_time_ns() - start) / 1e9)
    return least


def of(*shape, grad=False):
    return lucid.tensor(np.random.default_rng(0).standard_normal(shape, dtype=np.float32), requires_grad=grad)


def cases():
    """Title: bytes, and what to run."""
    x, w, b, g = of(4096, 1024), of(1024), of(1024), of(4096, 1024)
    images, scores = of(8, 64, 112, 112), of(512, 10000)
    target = lucid.tensor(np.arange(512) % 10000)
    r = of(4096, 1024, grad=True)
    n, i = 4 * x.numel(), 4 * images.numel()

    def backward(make):
        y = make(r)
        return lambda: lucid.autograd.grad(y, r, g, retain_graph=True)

    yield "copy 16 MB", 2 * n, x.clone
    yield "relu", 2 * n, lambda: F.relu(x)
    yield "add", 3 * n, lambda: x + g
    yield "exp", 2 * n, x.exp
    yield "tanh", 2 * n, x.tanh
    yield "sigmoid", 2 * n, x.sigmoid
    yield "silu", 2 * n, lambda: F.silu(x)
    yield "gelu", 2 * n, lambda: F.gelu(x)
    yield "gelu backward", 3 * n, backward(F.gelu)
    yield "silu backward", 3 * n, backward(F.silu)
    yield "softmax", 2 * n, lambda: F.softmax(x, 1)
    yield "softmax backward", 3 * n, backward(lambda t: F.softmax(t, 1))
    yield "layer_norm", 2 * n, lambda: F.layer_norm(x, (1024,), w, b)
    yield "layer_norm backward", 3 * n, backward(lambda t: F.layer_norm(t, (1024,), w, b))
    yield "rms_norm", 2 * n, lambda: F.rms_norm(x, (1024,), w)
    yield "batch_norm of columns", 3 * n, lambda: F.batch_norm(x, None, None, w, b, True)
    yield "batch_norm of columns backward", 5 * n, backward(lambda t: F.batch_norm(t, None, None, w, b, True))
    yield "cross_entropy", 4 * scores.numel(), lambda: F.cross_entropy(scores, target)
    yield "max_pool2d 2x2", i + i // 4, lambda: F.max_pool2d(images, 2)
    yield "avg_pool2d 3x3 s2", i + i // 4, lambda: F.avg_pool2d(images, 3, 2, 1)
    yield "interpolate nearest x2", i + 4 * i, lambda: F.interpolate(images, scale_factor=2)
    yield "interpolate bilinear x2", i + 4 * i, lambda: F.interpolate(images, scale_factor=2, mode="bilinear")
    yield "pad reflect", 2 * i, lambda: F.pad(images, (1, 1, 1, 1), mode="reflect")
    yield "pixel_shuffle", 2 * i, lambda: F.pixel_shuffle(images, 2)


def main(*filters):
    lucid.set_num_threads(1)
    print(f"reading alone: {reads(64, 40) / 1e9:.1f} GB/s")
    copied = None
    for title, size, run in cases():
        if copied and filters and not any(f in title for f in filters):
            continue
        seconds = best(run)
        copied = copied or size / seconds
        print(f"{title:32}{shown(seconds):>10}{size / seconds / 1e9:8.1f} GB/s{size / seconds / copied:6.0%} of the copy")


if __name__ == "__main__":
    main(*sys.argv[1:])
