#!/usr/bin/env python3
"""Write source files into a C file as strings, so that a program can compile them at run time (CUDA kernels, by NVRTC).

usage: embed.py OUT PREFIX FILE...      FILE dir/name.cuh becomes `const char PREFIX_name[]`

`#include "..."` is replaced by the text of that file each time; comments are dropped.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"\s*$')
COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)


def without_comments(text):
    return COMMENT.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)


def flattened(path, inside=()):
    """Lines of a file with those it includes in their place."""
    if path in inside:
        raise ValueError(f"{path} includes itself")
    for line in without_comments(path.read_text()).splitlines():
        found = INCLUDE.match(line)
        if found:
            yield from flattened((path.parent / found[1]).resolve(), (*inside, path))
        elif line.strip():
            yield line.rstrip()


def literal(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'


def embedded(prefix, path):
    name = f"{prefix}_{path.name.partition('.')[0]}"
    body = "\n".join(f"    {literal(line)}" for line in flattened(path.resolve()))
    return f"extern const char {name}[];\nconst char {name}[] =\n{body};\n"


if __name__ == "__main__":
    out, prefix, *files = sys.argv[1:]
    pathlib.Path(out).write_text("\n".join(embedded(prefix, pathlib.Path(f)) for f in files))
