#!/usr/bin/env python3
"""A folder includes only folders to its left in this order: core, tensor, backend, then {cpu, cuda, meta} and op, then {ops,
autograd}, then {jit, transform, programs}, then bindings. lightning, the functions of lightning_core.h, stands on backend.
Python.h appears only in bindings. Generated typed callers belong to op; op ids to backend.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT = {"core": set()}
LEFT["tensor"] = {"core"}
LEFT["backend"] = {"core", "tensor"}
LEFT["backend/cpu"] = LEFT["backend/cuda"] = LEFT["backend/meta"] = {"core", "tensor", "backend"}
LEFT["op"] = {"core", "tensor", "backend"}
LEFT["ops"] = LEFT["autograd"] = {"core", "tensor", "backend", "op"}
LEFT["jit"] = LEFT["transform"] = {"core", "tensor", "backend", "op", "ops", "autograd"}
LEFT["programs"] = LEFT["jit"]
LEFT["lightning"] = {"core", "tensor", "backend", "include"}
LEFT["include"] = LEFT["bindings"] = set(LEFT) | {"include"}
GENERATED = {"op_ids.gen.h": "backend", "op_calls.gen.h": "op", "op_tables.gen.c": "op"}


def layer(path):
    parts = path.relative_to(ROOT).parts
    if parts[0] == "bindings":
        return "bindings"
    inner = "/".join(parts[1:-1])
    return inner if inner in LEFT else "/".join(parts[1:3]) if "/".join(parts[1:3]) in LEFT else parts[1]


def target(path, name):
    """The layer an include leads to; None for a file of the system."""
    if name in GENERATED:
        return GENERATED[name]
    for folder in (path.parent, ROOT / "engine", ROOT / "engine/include"):
        found = (folder / name).resolve()
        if found.exists() and found.is_relative_to(ROOT):
            return layer(found)
    return None


def problems():
    for path in sorted(p for folder in ("engine", "bindings") for p in (ROOT / folder).rglob("*") if p.suffix in (".c", ".h")):
        mine = layer(path)
        if mine not in LEFT:
            yield f"{path.relative_to(ROOT)}: the folder {mine} has no place in the layers"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
            if not found:
                continue
            where, name = f"{path.relative_to(ROOT)}:{number}", found[1]
            to = target(path, name)
            if name == "Python.h" and mine != "bindings":
                yield f"{where}: Python.h belongs to bindings only"
            elif to and to != mine and to not in LEFT[mine]:
                yield f"{where}: {mine} includes {to} ({name})"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or "include layers hold")
    sys.exit(bool(found))
