"""Writes docs/packages.md: every use of every package, whether it gives PyTorch's numbers, and its time beside PyTorch's."""

import math
import pathlib
import sys
from functools import cache

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))

from tests.packages import pairs  # noqa: E402

DISTRIBUTIONS = {"pyro": "pyro-ppl", "backpack": "backpack-for-pytorch"}  # whose name is another than that of the module
HEAD = """# Packages on Lucid

Packages that are written for PyTorch, unchanged, with `python -m lucid` ([run-pytorch-programs.md](run-pytorch-programs.md)).
Each use runs in two processes, on PyTorch {torch} and on Lucid, from the same seed; all its numbers (losses, gradients,
weights, outputs) are compared: the largest difference, relative to numbers above 1, must be below {tolerance:g}. Time is
Lucid's as a part of PyTorch's, processor time of one thread, the best of two to seven runs after a first, on a shared
machine: a rough figure.

The uses of the first part, up to captum, run with CUDA as the default device as well, but for four that draw random numbers
on the device or ask for the CPU, and give the same numbers, on the emulation of a GPU where there is none. Lightning,
accelerate and transformers' Trainer find the GPU themselves.

`make packages-table` writes this page, `make test-packages` tests it; `requirements-packages.txt` has the versions.

| package | version | use | numbers | difference | time |
|---|---|---|---:|---:|---:|
"""


def row_title(name):
    """The package of a use, as it is installed, and what the use is."""
    package, _, use = name.partition("__")
    return DISTRIBUTIONS.get(package) or _installed(package), use.replace("_", " ")


@cache
def _installed(package):
    """The name under which a module is installed: with - for _, perhaps."""
    found = [name for name in pairs.versions() if name.replace("_", "-") == package.lower().replace("_", "-")]
    return package if not found or found[0] == package.lower() else found[0]


def titles_of(line):
    cells = line.split("|")
    return cells[1].strip(), cells[3].strip()


def row(name, have):
    package, use = row_title(name)
    version = have.get(package.lower(), "?").partition("+")[0]
    head = f"| {package} | {version} | {use} |"
    try:
        theirs, ours = pairs.run(name, False), pairs.run(name, True)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return f"{head} stops | {str(error).strip().splitlines()[-1][:100]} | |", None
    worst = pairs.difference(theirs["result"], ours["result"])
    ratio = ours["seconds"] / theirs["seconds"]
    count = len(pairs._flat(theirs["result"]))
    if worst > pairs.TOLERANCE:
        return f"{head} {count} | **{worst:.1e}** | {ratio:.2f} |", None
    return f"{head} {count} | {worst:.0e} | {ratio:.2f} |", ratio


def main(path, *chosen):
    """chosen: the uses whose rows are written again; all if there are none."""
    have, page = pairs.versions(), pathlib.Path(path)
    old = page.read_text().splitlines() if chosen else []
    lines, ratios = [], []
    for name in pairs.uses():
        title = row_title(name)
        line = next((line for line in old if line.startswith("| ") and title == titles_of(line)), None)
        if name in chosen or line is None:
            line, _ = row(name, have)
            print(line, flush=True)
        lines.append(line)
        time = line.rsplit("|", 2)[1].strip()
        ratios.append(float(time) if time and "**" not in line else None)
    equal = [r for r in ratios if r is not None]
    mean = math.exp(sum(map(math.log, equal)) / len(equal)) if equal else math.nan
    head = HEAD.format(torch=have["torch"].partition("+")[0], tolerance=pairs.TOLERANCE)
    foot = f"\n{len(equal)} of {len(ratios)} uses are equal; they take {mean:.2f} of PyTorch's time (geometric mean).\n"
    page.write_text(head + "\n".join(lines) + "\n" + foot)


if __name__ == "__main__":
    main(*sys.argv[1:])
