#!/usr/bin/env python3
"""The stub agrees with the extension: every op of _C.pyi exists with the same parameters, and no op is missing in it."""

import ast
import inspect
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import lucid  # noqa: E402


def stub_functions(body):
    """{name: its signatures}, more than one for an overloaded name"""
    found = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            args = [*node.args.args, *filter(None, [node.args.vararg]), *node.args.kwonlyargs]
            found.setdefault(node.name, []).append([a.arg for a in args])
    return found


def comparable(names):
    """out= belongs to every op; a method calls its first parameter self."""
    names = [n for n in names if n != "out"]
    return ["self", *names[1:]] if names[:1] == ["input"] else names


def compare(where, owner, functions):
    for name, signatures in functions.items():
        actual = getattr(owner, name, None)
        if actual is None:
            yield f"{where}.{name}: in the stub, not in the extension"
            continue
        try:
            names = list(inspect.signature(actual).parameters)
        except (ValueError, TypeError):
            continue  # overloaded at run time: no single signature
        wanted = [comparable(s) for s in signatures]
        if comparable(names) not in wanted:
            yield f"{where}.{name}: the stub says {wanted}, the extension {names}"


def problems():
    tree = ast.parse((ROOT / "lucid/_C.pyi").read_text())
    functions = stub_functions(tree.body)
    (tensor,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tensor")
    yield from compare("lucid._C", lucid._C, functions)
    yield from compare("Tensor", lucid._C.Tensor, stub_functions(tensor.body))
    ops = [n for n, o in vars(lucid._C).items() if type(o).__name__ == "Op" and not n.startswith("_")]
    yield from (f"lucid._C.{n}: an op without a line in the stub" for n in ops if n not in functions)


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or "stub and extension agree")
    sys.exit(bool(found))
