#!/usr/bin/env python3
"""What the CUDA runtime costs: copies, launches of graphs, whole steps, gradients of biases, and the first step of a process.

usage: gpu_runtime.py [copies | graphs | steps | biases | first]...
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import lucid
from lucid import nn

cuda = lucid.cuda
ROOT = pathlib.Path(__file__).resolve().parent.parent


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    ).cuda()  # fmt: skip


def best(run, calls, turns=5):
    """Seconds per call: the best of some turns that end in a synchronisation."""
    for _ in range(3):
        run()
    times = []
    for _ in range(turns):
        cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            run()
        cuda.synchronize()
        times.append((time.perf_counter() - start) / calls)
    return min(times)


def copies():
    """GB/s of one GiB, and of 1 MiB, by kind of host memory."""
    for size, calls in ((1 << 30, 2), (1 << 20, 200)):
        pageable = lucid.zeros(size, dtype=lucid.uint8)
        pinned, there = pageable.pin_memory(), lucid.zeros(size, dtype=lucid.uint8, device="cuda")
        rows = {
            "pageable, up": lambda p=pageable, t=there: t.copy_(p),
            "pageable, down": lambda p=pageable, t=there: p.copy_(t),
            "page-locked, up": lambda p=pinned, t=there: t.copy_(p, non_blocking=True),
            "page-locked, down": lambda p=pinned, t=there: p.copy_(t, non_blocking=True),
        }
        for name, run in rows.items():
            print(f"copy of {size >> 20:5} MiB, {name:20} {size / best(run, calls) / 1e9:8.2f} GB/s")
    mapped = lucid.zeros(1 << 28, dtype=lucid.uint8)
    seen = cuda.map_host(mapped)
    copied = best(lambda: mapped.cuda().sum(), 3)
    direct = best(lambda: seen.sum(), 3)
    print(f"sum of 256 MiB on the host: copied {copied * 1e3:.2f} ms, mapped {direct * 1e3:.2f} ms")


def graphs():
    """Twenty kernels: one by one, and as a graph."""
    x = lucid.zeros(64, device="cuda")

    def twenty():
        y = x
        for _ in range(20):
            y = y + 1
        return y

    g = cuda.CUDAGraph()
    twenty()
    with cuda.graph(g):
        twenty()
    print(f"20 kernels one by one {best(twenty, 500) * 1e6:8.2f} µs, as a graph {best(g.replay, 500) * 1e6:8.2f} µs")


def steps():
    """A LeNet-5 training step on 64 images: eager, and forward and backward as a graph (compile_step)."""
    x, y = lucid.randn(64, 1, 28, 28).cuda(), lucid.randint(0, 10, (64,)).cuda()
    for kind in ("eager", "compile_step"):
        lucid.manual_seed(0)
        net = lenet()
        optimizer = lucid.optim.Adam(net.parameters(), lr=1e-3)

        def eager(net=net, optimizer=optimizer):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        step = lucid.compile_step(net, nn.functional.cross_entropy, optimizer)
        run = eager if kind == "eager" else lambda step=step: step(x, y)
        seconds = best(run, 200)
        print(f"LeNet-5 step, {kind:13} {seconds * 1e6:8.1f} µs, loss {run().item():.5f}")
    print(step.explain())


def biases():
    """The gradients of a layer's weight and bias: a product and a sum, and one call of cuBLASLt (lc_cuda_sums_up_to)."""
    limit = ctypes.c_int64.in_dll(ctypes.CDLL(lucid._C.__file__), "lc_cuda_sums_up_to")
    before = limit.value
    for dtype in (lucid.bfloat16, lucid.float16):
        for rows in (256, 1024, 4096, 16384):
            for inputs, outputs in ((768, 768), (768, 3072), (3072, 768), (4096, 4096)):
                x, g = (lucid.randn(rows, n, dtype=dtype, device="cuda") for n in (inputs, outputs))
                w, b = (lucid.zeros(*shape, dtype=dtype, device="cuda") for shape in ((outputs, inputs), (outputs,)))
                layer = w.requires_grad_(), b.requires_grad_()
                y = nn.functional.linear(x, *layer)
                run = lambda y=y, layer=layer, g=g: lucid.autograd.grad(y, layer, g, retain_graph=True)
                times = []
                for limit.value in (0, 1 << 62):
                    times.append(best(run, 100) * 1e6)
                size = f"{rows:5} rows, {inputs:4} to {outputs:4}, 2^{(rows * inputs * outputs).bit_length() - 1}"
                what = f"gradients of weight and bias, {str(dtype)[6:]:8} {size}"
                print(f"{what} {times[0]:8.1f} µs, in one call {times[1]:8.1f} µs")
    limit.value = before


FIRST = """
import time; start = time.perf_counter()
import lucid
from lucid import nn
import gpu_runtime
net = gpu_runtime.lenet()
optimizer = lucid.optim.Adam(net.parameters(), lr=1e-3)
x, y = lucid.randn(64, 1, 28, 28).cuda(), lucid.randint(0, 10, (64,)).cuda()
loss = nn.functional.cross_entropy(net(x), y); loss.backward(); optimizer.step(); loss.item()
print(time.perf_counter() - start)
"""


def first():
    """The first LeNet-5 step of a process, import included: with an empty cache folder, then again."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"LUCID_CACHE_DIR": folder}
        environment["PYTHONPATH"] = f"{ROOT / 'benchmarks'}{os.pathsep}{environment.get('PYTHONPATH', ROOT)}"
        for kind in ("cold", "warm", "warm"):
            done = subprocess.run([sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=True)
            print(f"first LeNet-5 step, {kind} cache: {float(done.stdout):.2f} s")


def main():
    parts = {"copies": copies, "graphs": graphs, "steps": steps, "biases": biases, "first": first}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
