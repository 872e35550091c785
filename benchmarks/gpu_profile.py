#!/usr/bin/env python3
"""Which kernels take the time of a case of gpu.py, in Lucid and in PyTorch.   usage: gpu_profile.py [--rows N] case ...

PyTorch's profiler records every kernel of the process (CUPTI), Lucid's too. The first line of a table is the time the device
worked per call and the wall time per call: where they differ, the host is what bounds the case.
"""

import argparse
import collections

import gpu
import torch

import lucid


def kernels(run, m, count):
    """Microseconds and launches per call, by the kernel's name."""
    gpu.timed(run, m, 3)
    wall = gpu.timed(run, m, count)
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as record:
        gpu.timed(run, m, count)
        torch.cuda.synchronize()
    times = collections.defaultdict(lambda: [0.0, 0.0])
    for event in record.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            row = times[event.name]
            row[0] += event.device_time / count
            row[1] += 1 / count
    return wall, times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("cases", nargs="+")
    options = parser.parse_args()
    for name, (make, _) in gpu.CASES.items():
        if not any(word in name for word in options.cases):
            continue
        for m in (lucid, torch):
            wall, times = kernels(make(m), m, 5)
            busy, launches = (sum(row[i] for row in times.values()) for i in (0, 1))
            print(f"\n{name}, {m.__name__}: {wall:.0f} us per call, device {busy:.0f} us, {launches:.0f} launches")
            for kernel, (time, calls) in sorted(times.items(), key=lambda item: -item[1][0])[: options.rows]:
                print(f"{time:9.1f} us {calls:6.1f} x  {kernel[:110]}")


if __name__ == "__main__":
    main()
