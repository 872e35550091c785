#!/usr/bin/env python3
"""Run the examples of lucid/_docs/examples, write what they print; where PyTorch has the name, its output is to be the same.

usage: record_examples.py [--write]      without it: print what differs from the recorded output

An example begins with the op's name in a line of its own; `>>>` lines follow. Blank lines part examples. Only the `>>>` lines
are written by hand.
"""

import ast
import contextlib
import io
import pathlib
import sys
import traceback

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "lucid/_docs/examples"


def statements(block):
    return [line[4:] for line in block.splitlines() if line.startswith(">>> ")]


def outputs(lines, library):
    """What each line prints, the library being called lucid; an exception as its class and message."""
    names, found = {"lucid": library}, []
    for line in lines:
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            tree = ast.parse(line)
            if isinstance(tree.body[0], ast.Expr):
                value = eval(line, names)
                if value is not None:
                    print(repr(value))
            else:
                exec(line, names)
        found.append(told.getvalue().replace("torch.", "lucid."))
    return found


def run(block, library):
    try:
        return outputs(statements(block), library)
    except Exception:
        return [traceback.format_exc(limit=0)]


def recorded(block, found):
    name = block.partition("\n")[0]
    lines = [name]
    for statement, told in zip(statements(block), found, strict=True):
        lines += [f">>> {statement}", *(line.rstrip() or "<BLANKLINE>" for line in told.splitlines())]
    return "\n".join(lines)


def main(*options):
    import lucid

    try:
        import torch
    except ImportError:
        torch = None
    different = 0
    for path in sorted(FOLDER.glob("*.txt")):
        blocks = path.read_text().strip().split("\n\n")
        new = []
        for block in blocks:
            found = run(block, lucid)
            name = block.partition("\n")[0]
            if len(found) != len(statements(block)) or "Traceback" in found[-1]:
                print(f"{path.name}: {name} raises {found[-1].strip().splitlines()[-1]}")
                different += 1
                new.append(block)
                continue
            new.append(recorded(block, found))
            if "--write" not in options and new[-1] != block:
                print(f"{path.name}: {name} prints\n{new[-1]}")
                different += 1
            theirs = run(block, torch) if torch else found
            if theirs != found:
                print(f"{path.name}: {name} is different in PyTorch:\n{''.join(found)}{''.join(theirs)}")
        if "--write" in options:
            path.write_text("\n\n".join(new) + "\n")
    return different


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:])))
