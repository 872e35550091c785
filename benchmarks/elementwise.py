"""Large tensors: 4M floats, beside the better of PyTorch's 1- and 2-thread times.   usage: elementwise.py [--markdown] [FILTER]

Lucid chooses its number of threads, at most 2.
"""

import sys

import torch
from compare import Row, alternate, show

import lucid

SIDE = 2048  # 4M floats as a matrix
# title, statement, ratio at most
CASES = [
    ("add", "x + y", 1.05),
    ("exp", "x.exp()", 0.6),
    ("tanh", "x.tanh()", 0.6),
    ("sum", "x.sum()", 1.05),
    ("sum, dim 0", "x.sum(dim=0)", 1.05),
    ("sum, dim 1", "x.sum(dim=1)", 1.05),
    ("copy", "z.copy_(x)", 1.05),
    ("broadcast add", "x + row", 1.05),
    ("transposed copy", "x.t().contiguous()", 0.6),
]


def names(library):
    library.manual_seed(0)
    x, y, row = library.randn(SIDE, SIDE), library.randn(SIDE, SIDE), library.randn(SIDE)
    return {"x": x, "y": y, "z": library.empty(SIDE, SIDE), "row": row}


def main(*arguments):
    wanted = [a for a in arguments if not a.startswith("--")]
    lucid.set_num_threads(min(2, lucid.get_num_threads()))
    ours, theirs = names(lucid), names(torch)
    rows = []
    for title, statement, ratio in CASES:
        if not wanted or wanted[0] in title:
            switch = lambda i: torch.set_num_threads(1 + i % 2)
            mine, other = alternate(statement, ours, theirs, seconds=1.5, rounds=30, switch=switch)
            rows.append(Row(f"{title}, 4M floats", mine, other, ratio, None, "s"))
    show(rows, "--markdown" in arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
