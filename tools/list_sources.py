#!/usr/bin/env python3
"""Print files of the tree, one per line, so that meson.build does not have to list them.

usage: list_sources.py FOLDER      C sources below FOLDER (.inc.c files are included by others: not listed)
       list_sources.py FOLDER .h   its headers, or files that end in something else
       list_sources.py --package   files of the Python package
       list_sources.py --public    lucid.h, lightning_core.h and every header they include: what a C program needs
       list_sources.py --all       all of these; a build folder is configured again when this list changes
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ("lucid", "lightning_core", "lightning_core_integrated_api", "lightning_core_api", "lc_run")


def sources(folder, *endings):
    found = (p for p in (ROOT / folder).rglob("*") if p.name.endswith(endings))
    paths = (p.relative_to(ROOT).as_posix() for p in found if p.is_file() and not p.is_symlink())  # a link is build output
    return sorted(p for p in paths if ".gen." not in p and (".inc.c" in endings or not p.endswith(".inc.c")))


def package():
    return [p for name in PACKAGES for p in sources(name, ".py", ".pyi", "py.typed", ".txt")]


def public():
    return sorted({p for header in sources("engine/include", ".h") for p in included(ROOT / header)})


def included(header, seen=None):
    seen = {} if seen is None else seen
    if header not in seen and header.exists():
        seen[header] = header.relative_to(ROOT).as_posix()
        for name in re.findall(r'#include "([^"]+)"', header.read_text()):
            included((header.parent / name).resolve(), seen)
    return sorted(seen.values())


def everything():
    texts = sources("engine", ".cuh") + sources("engine/backend/math", ".h", ".inc.c")
    compiled = [p for folder in ("engine", "bindings", "tests/c", "examples/c") for p in sources(folder, ".c")]
    return compiled + texts + package() + public()


if __name__ == "__main__":
    what = sys.argv[1]
    lists = {"--package": package, "--public": public, "--all": everything}
    print("\n".join(lists[what]() if what in lists else sources(what, *(sys.argv[2:] or [".c"]))))
