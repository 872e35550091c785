#!/usr/bin/env python3
"""Duplicated source code: the share of tokens inside a run of 40 that also occurs elsewhere. At most 5 %.

usage: check_duplication.py [-v]     -v lists the runs
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("engine", "bindings", "lucid", "lightning_core", "tools", "tests", "benchmarks", "examples")
WINDOW, LIMIT = 40, 5.0
COMMENT = {".c": re.compile(r"/\*.*?\*/|//[^\n]*", re.S), ".py": re.compile(r"#[^\n]*")}
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\w+|[^\w\s]')


def tokens(path):
    """(token, line) pairs, comments blanked out but their line breaks kept."""
    comment = COMMENT[".py" if path.suffix == ".py" else ".c"]
    text = comment.sub(lambda m: "\n" * m[0].count("\n"), path.read_text())
    return [(t, number) for number, line in enumerate(text.splitlines(), 1) for t in TOKEN.findall(line) if t not in "{}();,"]


def measure():
    paths = [p for f in FOLDERS for p in sorted((ROOT / f).rglob("*")) if p.suffix in (".c", ".h", ".py", ".cuh")]
    paths = [p for p in paths if not p.is_symlink() and ".gen." not in p.name]
    streams = {p: tokens(p) for p in paths}
    places = {}
    for path, stream in streams.items():
        words = [t for t, _ in stream]
        for i in range(len(words) - WINDOW + 1):
            places.setdefault(hash(tuple(words[i : i + WINDOW])), []).append((path, i))
    covered, runs = {p: set() for p in paths}, []
    for found in places.values():
        if len(found) < 2:
            continue
        for path, i in found:
            covered[path].update(range(i, i + WINDOW))
        runs.append(found)
    return streams, covered, runs


def report(streams, runs):
    seen = set()
    for found in runs:
        where = sorted({f"{p.relative_to(ROOT)}:{streams[p][i][1]}" for p, i in found})
        key = tuple(w.split(":")[0] for w in where), int(where[0].split(":")[1]) // 10
        if len(where) > 1 and key not in seen:
            seen.add(key)
            print("  " + "  ".join(where))


if __name__ == "__main__":
    streams, covered, runs = measure()
    share = 100 * sum(map(len, covered.values())) / max(1, sum(map(len, streams.values())))
    if "-v" in sys.argv or share > LIMIT:
        report(streams, runs)
    print(f"duplication {share:.1f} % of tokens (limit {LIMIT} %)")
    sys.exit(share > LIMIT)
