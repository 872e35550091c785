"""Time statements in Lucid and PyTorch, alternating in one process; print them beside targets, or as a table for documents.

Machines are shared and noisy, so each figure is the best of many short runs, and the two libraries alternate: a disturbance
hits both. Trust ratios more than nanoseconds.
"""

import os
import pathlib
import subprocess
import sys
import time
import timeit
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 60e-6  # seconds: short compared with a scheduler's time slice
SETTLE = 0.01  # seconds: worker threads of one library may still spin when it is the other's turn


@dataclass
class Row:
    title: str
    ours: float  # seconds, or whatever `unit` says
    theirs: float | None = None
    ratio: float | None = None  # target: ours / theirs at most this
    limit: float | None = None  # target: ours at most this
    unit: str = "ns"

    @property
    def passed(self):
        within = self.limit is None or self.ours <= self.limit
        return within and (self.ratio is None or self.theirs is None or self.ours <= self.ratio * self.theirs)

    def cells(self):
        target = [f"≤ {shown(self.limit, self.unit)}"] if self.limit is not None else []
        target += [f"≤ {self.ratio:.2f}"] if self.ratio is not None else []
        verdict = ("pass" if self.passed else "MISS") if target else ""
        return [*self.measured(), ", ".join(target), verdict]

    def measured(self):
        """The cells that documents show."""
        ratio = f"{self.ours / self.theirs:.2f}" if self.theirs else ""
        theirs = shown(self.theirs, self.unit) if self.theirs is not None else ""
        return [self.title, shown(self.ours, self.unit), theirs, ratio]


def shown(value, unit):
    if unit != "s":
        return f"{value:,.2f} {unit}" if value < 10 and unit == "MB" else f"{value:,.0f} {unit}"
    for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.2f} {name}" if value < 10 * scale else f"{value / scale:.0f} {name}"
    return f"{value * 1e9:.0f} ns"


def timer(statement, names):
    """A timer whose statement sees the names as local variables, as it would in a function."""
    setup = "; ".join(f"{n} = names[{n!r}]" for n in names)
    return timeit.Timer(statement, setup, globals={"names": names})


def best_times(turns, seconds=0.4, rounds=12):
    """Best time of one run of each turn, a (prepare, timer) pair each; turns alternate.

    A figure is the minimum over many short batches, so on a busy machine it is the time of an undisturbed moment.
    """
    counts = []
    for prepare, t in turns:
        n = 1
        prepare()
        t.timeit(2)  # warm-up: if the first call were timed, batches would be of one call
        while t.timeit(n) < BATCH / 2:
            n *= 2
        counts.append(n)
    best = [float("inf")] * len(turns)
    for _ in range(rounds):
        time.sleep(SETTLE)
        for k, (prepare, t) in enumerate(turns):
            prepare()
            t.timeit(1)  # wakes this library's threads
            until = time.perf_counter() + seconds / rounds / len(turns)
            while True:
                best[k] = min(best[k], t.timeit(counts[k]) / counts[k])
                if time.perf_counter() >= until:
                    break
    empty = min(timeit.repeat("pass", number=10_000, repeat=5)) / 10_000  # the loop overhead, some nanoseconds
    return [t - empty for t in best]


def alternate(statement, ours, theirs, seconds=0.4, rounds=25, switch=None):
    """Best time of one run in each library. `switch(i)` is called before round i of the second one (threads)."""
    a, b = timer(statement, ours), timer(statement, theirs)
    if not switch:
        return best_times([(nothing, a), (nothing, b)], seconds, rounds)
    mine, *others = best_times([(nothing, a), (lambda: switch(0), b), (lambda: switch(1), b)], seconds, rounds)
    return [mine, min(others)]


def start_up(statement, rounds):
    """Seconds a fresh interpreter takes for the statement, with bytecode kept as it is where a package is installed."""
    best, environment = float("inf"), {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], cwd=ROOT, check=True, env=environment)
        best = min(best, time.perf_counter() - start)
    return best


def nothing():
    pass


HEAD = ["case", "Lucid", "PyTorch", "ratio"]


def markdown_table(rows):
    """The table for documents: without targets, which are for developers."""
    table = [HEAD, ["---", "---:", "---:", "---:"]] + [r.measured() for r in rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in table)


def show(rows, markdown=False):
    if markdown:
        print(markdown_table(rows))
        return
    table = [[*HEAD, "target", ""]] + [r.cells() for r in rows]
    widths = [max(len(c[i]) for c in table) for i in range(len(table[0]))]
    for cells in table:
        print("  ".join(c.ljust(w) if i in (0, 4, 5) else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))))
    missed = [r.title for r in rows if not r.passed]
    print(f"{len(rows) - len(missed)} of {len(rows)} targets met" + (f"; missed: {', '.join(missed)}" if missed else ""))
