#!/usr/bin/env python3
"""Rules on the text of tracked files: at most 800 lines, no path of a machine, no generated file, no trailing blanks."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINES = 800
MACHINE = re.compile(r"/(?:work|root|home|Users|mnt)/\w|file:///|https?://[^\s\"')]*(?:pypi|artifactory|nexus)")


def tracked():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / n for n in names if n and (ROOT / n).is_file()]


def problems():
    for path in tracked():
        name = path.relative_to(ROOT)
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        if ".gen." in path.name:
            yield f"{name}: generated files are not tracked"
        if len(lines) > LINES and path.suffix in (".c", ".h", ".def", ".py", ".cuh", ".build"):
            yield f"{name}: {len(lines)} lines, more than {LINES}"
        for number, line in enumerate(lines, 1):
            if MACHINE.search(line) and path != pathlib.Path(__file__).resolve():
                yield f"{name}:{number}: a machine's path or host: {line.strip()[:80]}"
            if line != line.rstrip() and path.suffix != ".md":
                yield f"{name}:{number}: trailing blanks"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or f"no file over {LINES} lines, no machine paths")
    sys.exit(bool(found))
