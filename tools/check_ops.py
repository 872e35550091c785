#!/usr/bin/env python3
"""The fields of an op describe it: no code of the engine or the bindings compares an op's name as text, or its function
pointers.

An op is compared by address or id where it must be, and asked for a field where it can be (engine/op/op.h). Looking an op
up by the name that Python gives is the one exception.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOOKS_UP = "bindings/op/py_op.c"  # py_engine_op
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
COMPARED = re.compile(
    r"\b(?:strcmp|strncmp|strcasecmp|memcmp|PyUnicode_CompareWithASCIIString)\s*\(([^;]*?)\)(?=\s*(?:[;,)&|?=!<>{]|\w))"
)
NAME = r"(?:\b\w*op|\blc_ops\[[^\]]*\]|\binplace_of|\balias_of|\bcopy_of)\s*(?:->|\.)\s*(?:name|py|sig)\b|\bpy_public_name\s*\("
HELD = re.compile(r"\b(\w+)\s*=\s*[^;=]*?(?:" + NAME + ")")
POINTER = re.compile(r"\b\w*op\s*(?:->|\.)\s*(?:run|call|shape|lower|grad)\s*[!=]=\s*(?!NULL\b)&?([A-Za-z_]\w*)")


def blank(found):
    return re.sub(r"[^\n]", " ", found[0])


def functions(text):
    """(offset, text) of what stands between lines that begin with a closing brace: functions, roughly."""
    at = 0
    for end in re.finditer(r"^\}", text, re.MULTILINE):
        yield at, text[at : end.end()]
        at = end.end()
    yield at, text[at:]


def problems():
    for path in sorted(p for folder in ("engine", "bindings") for p in (ROOT / folder).rglob("*.[ch]")):
        name, source = path.relative_to(ROOT).as_posix(), path.read_text()
        text = COMMENT.sub(blank, source)
        for start, body in functions(text):
            held = {found[1] for found in HELD.finditer(body)}
            for found in COMPARED.finditer(body):
                words = set(re.findall(r'(?<![\w.>"])[A-Za-z_]\w*(?![\w"]|\s*(?:->|\.|\())', found[1]))
                if (re.search(NAME, found[1]) or held & words) and name != LOOKS_UP:
                    yield f"{name}:{text.count(chr(10), 0, start + found.start()) + 1}: an op's name is compared as text"
            for found in POINTER.finditer(body):
                line = text.count("\n", 0, start + found.start()) + 1
                yield f"{name}:{line}: an op's function pointer is compared with {found[1]}: ask a field of the op"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or "ops are asked for their fields, not for their names")
    sys.exit(bool(found))
