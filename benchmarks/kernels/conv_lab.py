"""Convolutions in parts: forward, gradient of the image, gradient of the weights, beside PyTorch's, on one thread.

usage: conv_lab.py [--seconds=S] [FILTER...]      a filter is a part of a title

GFLOP/s count the multiplications of the definition; Winograd's method does fewer, so its rate may exceed the peak, which is
that of fused multiply-adds in registers, measured in the same run.
"""

import sys
import time
import timeit
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import torch
from compare import best_times, shown
from peak import multiply_adds

import lucid

CASES = {  # image, weight, stride, padding, groups
    "3x3 8x64x56x56": ((8, 64, 56, 56), (64, 64, 3, 3), 1, 1, 1),
    "1x1 8x256x28x28": ((8, 256, 28, 28), (128, 256, 1, 1), 1, 0, 1),
    "7x7 s2 8x3x224x224": ((8, 3, 224, 224), (64, 3, 7, 7), 2, 3, 1),
    "5x5 64x1x28x28": ((64, 1, 28, 28), (6, 1, 5, 5), 1, 2, 1),
    "5x5 64x6x14x14": ((64, 6, 14, 14), (16, 6, 5, 5), 1, 0, 1),
    "depthwise 8x64x56x56": ((8, 64, 56, 56), (64, 1, 3, 3), 1, 1, 64),
    "depthwise 8x128x28x28": ((8, 128, 28, 28), (128, 1, 3, 3), 1, 1, 128),
    "3x3 8x256x14x14": ((8, 256, 14, 14), (256, 256, 3, 3), 1, 1, 1),
}


def timer(statement, names):
    return timeit.Timer(statement, timer=time.process_time, globals=names)  # the time of this process: machines are shared


def phases(m, x, w, window):
    """Statements with their names: each computes one of the three."""
    x, w = m.tensor(x), m.tensor(w)
    call = f"F.conv2d(x, w, None, {window})"
    yield "forward", timer(call, {"F": m.nn.functional, "x": x, "w": w})
    for title, of in (("image", x), ("weight", w)):
        recorded = [t.clone().requires_grad_() if t is of else t for t in (x, w)]
        y = eval(call, {"F": m.nn.functional, "x": recorded[0], "w": recorded[1]})
        names = {"grad": m.autograd.grad, "y": y, "x": recorded[of is w], "g": m.ones_like(y)}
        yield title, timer("grad(y, x, g, retain_graph=True)", names)


def main(*arguments):
    wanted = [a for a in arguments if not a.startswith("--")]
    options = dict(a[2:].split("=") for a in arguments if "=" in a and a.startswith("--"))
    torch.set_num_threads(1), lucid.set_num_threads(1)
    most = multiply_adds() / 1e9
    print(f"peak of multiply-adds: {most:.0f} GFLOP/s")
    for title, (image, weight, stride, padding, groups) in CASES.items():
        if wanted and not any(w in title for w in wanted):
            continue
        x, w = torch.randn(image).numpy(), torch.randn(weight).numpy()
        window = f"{stride}, {padding}, 1, {groups}"
        size = [(n + 2 * padding - k) // stride + 1 for n, k in zip(image[2:], weight[2:])]
        work = 2 * image[0] * torch.Size(size).numel() * torch.Size(weight).numel() / 1e9
        for (name, ours), (_, theirs) in zip(phases(lucid, x, w, window), phases(torch, x, w, window)):
            a, b = best_times([(lambda: None, ours), (lambda: None, theirs)], float(options.get("seconds", 1)))
            rate = work / a
            times = f"{shown(a, 's'):>8} {shown(b, 's'):>8}  {a / b:.2f}"
            print(f"{title:24}{name:9}{times}  {rate:4.0f} GFLOP/s, {rate / most:.2f} of peak")


if __name__ == "__main__":
    main(*sys.argv[1:])
