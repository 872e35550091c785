"""Kernels of deep learning beside PyTorch's.

usage: kernels.py [--markdown] [--seconds=S] [FILTER...]      a filter is a part of a title

One thread against one thread; then Lucid with two against the better of PyTorch's with one and with two.
"""

import sys

import torch
from compare import Row, best_times, show, timer

import lucid

IMAGES = (8, 64, 112, 112)
# title: statement, target. F: nn.functional; x: randn of IMAGES; w: the same, recorded for gradients
CASES = {
    "max_pool2d 3x3 s2": ("F.max_pool2d(x, 3, 2, 1)", 0.1),
    "max_pool2d 3x3 s2 with indices": ("F.max_pool2d(x, 3, 2, 1, return_indices=True)", None),
    "max_pool2d 3x3 s2 f+b": ("F.max_pool2d(w, 3, 2, 1).sum().backward()", None),
    "max_pool2d 2x2": ("F.max_pool2d(x, 2)", 0.1),
    "avg_pool2d 3x3 s2": ("F.avg_pool2d(x, 3, 2, 1)", 0.3),
    "avg_pool2d 3x3 s2 f+b": ("F.avg_pool2d(w, 3, 2, 1).sum().backward()", None),
    "avg_pool2d 2x2": ("F.avg_pool2d(x, 2)", 0.3),
    "adaptive_avg_pool2d 7": ("F.adaptive_avg_pool2d(x, 7)", None),
    "adaptive_avg_pool2d 1": ("F.adaptive_avg_pool2d(x, 1)", None),
}


def names(m, values):
    x = m.tensor(values)
    return {"F": m.nn.functional, "x": x, "w": x.clone().requires_grad_()}


def measure(statement, ours, theirs, seconds):
    """Lucid with 1 and 2 threads, PyTorch with 1 and 2."""
    return best_times(
        [
            (lambda m=m, n=n: m.set_num_threads(n), timer(statement, given))
            for m, given in ((lucid, ours), (torch, theirs))
            for n in (1, 2)
        ],
        seconds,
    )


def main(*arguments):
    wanted = [a for a in arguments if not a.startswith("--")]
    options = dict(a[2:].split("=") for a in arguments if "=" in a and a.startswith("--"))
    values = torch.randn(IMAGES).numpy()
    ours, theirs = names(lucid, values), names(torch, values)
    rows = []
    for title, (statement, target) in CASES.items():
        if wanted and not any(w in title for w in wanted):
            continue
        a1, a2, b1, b2 = measure(statement, ours, theirs, float(options.get("seconds", 1)))
        rows += [Row(f"{title}, 1 thread", a1, b1, target, unit="s")]
        rows += [Row(f"{title}, 2 threads", a2, min(b1, b2), target, unit="s")]
    show(rows, "--markdown" in arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
