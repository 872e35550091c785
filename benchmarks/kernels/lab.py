"""What the labs share: the best of many runs, the peak at the same time, a table."""

import time
from functools import lru_cache

from peak import multiply_adds


def best(run, seconds=0.15):
    """Seconds of one run: the minimum over many short batches, which ignores other load on the machine."""
    n = 1
    while True:
        start = time.perf_counter()
        for _ in range(n):
            run()
        took = time.perf_counter() - start
        if took > 50e-6:
            break
        n *= 2
    least, until = took / n, time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        for _ in range(n):
            run()
        least = min(least, (time.perf_counter() - start) / n)
    return least


@lru_cache(1)
def peak_now():
    """Float operations per second of one core."""
    return multiply_adds()


def shown(seconds):
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {name}"
    return f"{seconds * 1e9:.0f} ns"


def table(head, rows):
    """Rows of a title, a time, a rate and fractions."""
    print(f"peak of one core: {peak_now() / 1e9:.1f} GFLOP/s")
    cells = [head] + [[r[0], shown(r[1]), f"{r[2] / 1e9:.1f}", *(f"{x:.0%}" for x in r[3:])] for r in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for row in cells:
        print("  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))))
