#!/usr/bin/env python3
"""The stubs, made anew, agree with the running library: no public name is missing, nothing is declared that does not exist.

usage: check_stubs.py BUILD_DIR

Parameters of ops come from the op table and those of Python functions from the functions, so what can be wrong is what is
written by hand (tools/stubs): a declaration of something that does not exist, another parameter name, a forgotten attribute.
"""

import ast
import importlib
import inspect
import pathlib
import sys
import types
import warnings

import check_types

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
import lucid  # noqa: E402

sys.path.insert(0, str(ROOT / "tools"))
from stubs import written  # noqa: E402

OBJECT = set(dir(object)) | {"__dict__", "__weakref__", "__module__", "__torch_function__", "__lucid_function__", "__buffer__"}


def declared(body):
    """The names that a stub's module or class declares."""
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.ImportFrom):
            found |= {a.asname or a.name for a in node.names}
    return found


def class_named(tree, name):
    return next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)


def tensor_problems(tree):
    stub, actual = declared(class_named(tree, "Tensor").body), set(dir(lucid.Tensor))
    for name in sorted(stub - actual - OBJECT):
        yield f"Tensor.{name}: in the stub, not in the extension"
    operators = {
        "__div__",
        "__rdiv__",
        "__idiv__",
        "__long__",
        "__nonzero__",
        "__setstate__",
        "__array_wrap__",
    }  # of old, or internal
    for name in sorted(n for n in actual - stub - OBJECT - operators if not n.startswith("_") or n.startswith("__")):
        yield f"Tensor.{name}: not in the stub"


def module_problems(stubs):
    """Public names that a module has and its stub lacks."""
    extension = declared(ast.parse((stubs / "_C.pyi").read_text()).body)
    for path in sorted(stubs.rglob("*.pyi")):
        parts = path.relative_to(stubs).with_suffix("").parts
        name = ".".join(["lucid", *(p for p in parts if p != "__init__")])
        if path.name == "_C.pyi":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = importlib.import_module(name)
        stub = declared(ast.parse(path.read_text()).body) | (extension if name == "lucid" else set())
        listed = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
        for public in listed:
            try:
                value = getattr(module, public, None)
            except ImportError:  # it needs a package that is not installed
                continue
            if (
                public not in stub
                and not isinstance(value, types.ModuleType)
                and str(getattr(value, "__module__", "")).startswith("lucid")
            ):
                yield f"{name}.{public}: not in the stub"


def written_problems():
    """Functions of tools/stubs/written.py whose parameters are not those of the function."""
    for qualified, text in written.OF.items():
        owner, _, name = qualified.rpartition(".")
        places = [lucid, lucid.nn, lucid.optim, lucid.optim.lr_scheduler, lucid.utils.data, lucid.nn.utils, lucid.autograd]
        holder = (
            next((getattr(p, owner) for p in places if hasattr(p, owner)), None)
            if owner
            else next(p for p in places if hasattr(p, name))
        )
        if owner == "StateDict":
            holder = lucid.nn.Module
        function = getattr(holder, name, None)
        if function is None:
            yield f"{qualified}: written by hand, and not there"
            continue
        stub = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)][-1].args
        wanted = [a.arg for a in (*stub.posonlyargs, *stub.args, *stub.kwonlyargs) if a.arg not in ("self", "ctx")]
        try:
            found = inspect.signature(function).parameters
        except (TypeError, ValueError):
            continue
        loose = any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in found.values())
        unknown = [n for n in wanted if n not in found]
        if unknown and not loose:
            yield f"{qualified}: parameters {unknown} are not those of the function: {list(found)}"


def main(build):
    stubs = check_types.generate(ROOT / build) / "lucid"
    found = [*tensor_problems(ast.parse((stubs / "_C.pyi").read_text())), *module_problems(stubs), *written_problems()]
    print("\n".join(found) or f"{len(list(stubs.rglob('*.pyi')))} stubs and the library agree")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
