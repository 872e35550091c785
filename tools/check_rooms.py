#!/usr/bin/env python3
"""A folder of the engine, the bindings, the package or the tests has at most 25 source files, so that a stranger sees it whole.
No op asks which device it runs on: it asks the backend what that can do (engine/backend/backend.h, lc_capabilities).
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_FILES = 25
SOURCES = (".c", ".h", ".def", ".cuh", ".py")
KIND = re.compile(
    r"\bkind\s*[=!]=\s*LC_(?:CPU|CUDA|META)\b|\bLC_(?:CPU|CUDA|META)\s*[=!]=|\bswitch\s*\([^)]*device\S*kind\)|device\.kind\s*[=!]="
)


def sources(folder):
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in SOURCES)


def crowded():
    rooms = {}
    for path in [*sources("engine"), *sources("bindings"), *sources("lucid"), *sources("lightning_core"), *sources("tests")]:
        rooms.setdefault(path.parent, []).append(path)
    for room, files in sorted(rooms.items()):
        if len(files) > MOST_FILES:
            yield f"{room.relative_to(ROOT)}: {len(files)} source files; at most {MOST_FILES}, then make folders"


def device_tests():
    for path in sources("engine/ops"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if KIND.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: compares a kind of device; ask its lc_capabilities"


def problems():
    yield from crowded()
    yield from device_tests()


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or "no folder is crowded, no op knows a device")
    sys.exit(bool(found))
