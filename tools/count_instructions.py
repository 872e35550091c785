#!/usr/bin/env python3
"""Instructions per statement, counted by callgrind: the same on a busy machine as on an idle one.

A statement runs in a loop of 0 and of N rounds; the difference, less that of an empty loop, is its cost. `op_call` is the part
inside the extension's outermost function, for statements that are one call: what Lucid adds to the interpreter. The kernel
table is the AVX2 one (valgrind has no AVX-512).   usage: count_instructions.py
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 2000
SETUP = """
import sys
import lucid
VALUES = [i / 64 for i in range(64)]
x, y = lucid.tensor(VALUES), lucid.tensor(VALUES)
w = lucid.tensor(VALUES, requires_grad=True)
def loop(n, x, y, w):
    for _ in range(n):
        {statement}
loop(20, x, y, w)  # fill caches and specialise the byte code
loop(int(sys.argv[1]), x, y, w)
"""
CASES = {
    "add": "x + y",
    "add with grad": "w + y",
    "backward": "(w * y).sum().backward()",
}


def available():
    return shutil.which("valgrind") is not None and shutil.which("callgrind_annotate") is not None


def profile(statement, rounds):
    """(instructions in all, {function of the extension: instructions inside it and below})"""
    with tempfile.TemporaryDirectory() as folder:
        script, out = pathlib.Path(folder, "case.py"), pathlib.Path(folder, "out")
        script.write_text(SETUP.format(statement=statement))
        settings = {"PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT), "LUCID_NUM_THREADS": "1", "LUCID_ISA": "avx2"}
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable, str(script), str(rounds)]
        ran = subprocess.run(command, cwd=folder, env=os.environ | settings, capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"{statement!r} failed under valgrind:\n{ran.stderr[-2000:]}")
        listing = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(out)]
        text = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    total = int(re.search(r"Collected : (\d+)", ran.stderr)[1])
    rows = re.findall(r"^\s*([\d,]+) .*?:(\S+) \[.*/_C\.\S+\]$", text, re.M)
    return total, {name: int(cost.replace(",", "")) for cost, name in rows}


def per_round(statement):
    (before, inside_before), (after, inside_after) = profile(statement, 0), profile(statement, ROUNDS)
    inside = max((cost - inside_before.get(name, 0) for name, cost in inside_after.items()), default=0)
    return (after - before) / ROUNDS, inside / ROUNDS


def measure(cases=CASES):
    empty, _ = per_round("pass")
    counts = {}
    for name, statement in cases.items():
        whole, inside = per_round(statement)
        counts[name] = {"statement": round(whole - empty)}
        if "(" not in statement:
            counts[name]["op_call"] = round(inside)
    return counts


if __name__ == "__main__":
    for name, counts in measure().items():
        print(f"{name:16}" + "".join(f"{k:>12} {v}" for k, v in counts.items()))
