"""Writes docs/packages.md: every use of every package, whether it gives PyTorch's numbers, and its time beside PyTorch's."""

import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))

from tests.packages import pairs  # noqa: E402

DISTRIBUTIONS = {"pyro": "pyro-ppl", "vit_pytorch": "vit-pytorch", "x_transformers": "x-transformers"}
HEAD = """# Packages on Lucid

Packages that are written for PyTorch, unchanged, with `python -m lucid` ([run-pytorch-programs.md](run-pytorch-programs.md)).
Each use runs in two processes, on PyTorch {torch} and on Lucid, from the same seed; all its numbers (losses, gradients,
weights, outputs) are compared: the largest difference, relative to numbers above 1, must be below {tolerance:g}. Time is
Lucid's as a part of PyTorch's, processor time of one thread, the best of two to seven runs after a first, on a shared
machine: a rough figure.

`make packages-table` writes this page, `make test-packages` tests it; `requirements-packages.txt` has the versions.

| package | version | use | numbers | difference | time |
|---|---|---|---:|---:|---:|
"""


def row(name, have):
    package, _, use = name.partition("__")
    version = have.get(DISTRIBUTIONS.get(package, package).lower(), "?").partition("+")[0]
    head = f"| {DISTRIBUTIONS.get(package, package)} | {version} | {use.replace('_', ' ')} |"
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


def main(path):
    have, lines, ratios = pairs.versions(), [], []
    for name in pairs.uses():
        line, ratio = row(name, have)
        print(line, flush=True)
        lines.append(line)
        ratios.append(ratio)
    equal = [r for r in ratios if r is not None]
    mean = math.exp(sum(map(math.log, equal)) / len(equal)) if equal else math.nan
    head = HEAD.format(torch=have["torch"].partition("+")[0], tolerance=pairs.TOLERANCE)
    foot = f"\n{len(equal)} of {len(ratios)} uses are equal; they take {mean:.2f} of PyTorch's time (geometric mean).\n"
    pathlib.Path(path).write_text(head + "\n".join(lines) + "\n" + foot)


if __name__ == "__main__":
    main(*sys.argv[1:])
