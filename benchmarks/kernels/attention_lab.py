"""Attention: the rate of its products, as a fraction of the peak of one core that peak.py measures at the same time.

usage: attention_lab.py [THREADS]

Operations counted are those of the products that have to be computed: 2 (e + ev) per query and key that it sees, backward
2 (3 e + 2 ev) on top.
"""

import sys
from functools import partial

from lab import best, peak_now, table

import lucid
import lucid.nn.functional as F

SHAPES = [(4, 8, 512, 64), (1, 8, 2048, 64), (4, 8, 512, 128), (32, 12, 128, 64), (1, 8, 4096, 64)]


def attend(q, k, v, causal):
    with lucid.no_grad():
        F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def train(q, k, v, causal, g):
    F.scaled_dot_product_attention(q, k, v, is_causal=causal).backward(g)


def main(threads=1):
    lucid.set_num_threads(threads)
    rows = []
    for b, h, s, e in SHAPES:
        for causal in (False, True):
            operands = [lucid.randn(b, h, s, e, requires_grad=True) for _ in range(3)] + [causal]
            work = 4 * e * b * h * (s * (s + 1) // 2 if causal else s * s)
            title, peak = f"{b}x{h}x{s}x{e}" + (" causal" if causal else ""), peak_now() * threads
            seconds = best(partial(attend, *operands), 0.5)
            rows.append([title, seconds, work / seconds, work / seconds / peak])
            seconds, work = best(partial(train, *operands, lucid.randn(b, h, s, e)), 0.5), work * 7 // 2
            rows.append([title + " f+b", seconds, work / seconds, work / seconds / peak])
    table(["attention", "time", "GFLOP/s", "of peak"], rows)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
