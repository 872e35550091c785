#!/usr/bin/env python3
"""Write type stubs of the whole package: a stub package `lucid-stubs` that mypy, pyright and editors find beside `lucid`.

usage: genstubs.py OUT_DIR [BUILD_DIR]      OUT_DIR is emptied first; without BUILD_DIR of the package that Python finds

Ops come from the op table of the build (signature, description, `out=`, what a factory takes), everything else from the running
package: its signatures, classes and docstrings. `tools/stubs/knowledge.py` says which type a parameter of which name has,
`tools/stubs/tensor.txt` and `tools/stubs/written.py` what no table says. A class is declared in the module that defines it, and
imported by the others, so that a checker sees one class.
"""

import ast
import dis
import importlib
import inspect
import io
import keyword
import pathlib
import pkgutil
import re
import shutil
import sys
import tempfile
import types
import warnings

if sys.argv[2:]:
    import build

    PACKAGE = tempfile.TemporaryDirectory()
    build.make_importable(pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(PACKAGE.name).resolve() / "lucid", package=True)
    sys.path.insert(0, PACKAGE.name)

from stubs import knowledge, written  # noqa: E402

import lucid  # noqa: E402

HERE = pathlib.Path(__file__).parent
BUILTINS = re.compile(r"(: |-> |\| |\[|, )(int|float|bool|complex|type)(?=$|[ \],|)=]|\[|:(?! \w))")
SKIPPED = ("lucid.liblucid", "lucid._declared", "lucid._as_torch", "lucid.testing.internal")
OP, OVERRIDABLE = type(lucid.add), lucid._C.overridable
TABLE = lucid._C._op_table()
DECLARED = ("device", "dtype", "layout", "memory_format", "Size", "Generator")


def plain(text):
    """int, float, ... written so that a method or dtype of that name does not hide them."""
    for _ in range(2):  # neighbours overlap
        text = BUILTINS.sub(r"\1builtins.\2", text)
    return text


def annotation(text):
    """An annotation of .sig as a checker reads it."""
    parts = []
    for part in re.split(r" \| (?![^\[]*\])", text):
        if part.startswith("tuple["):
            items = part[len("tuple[") : -1].split(", ")
            part = "Sequence[int]" if items[1:] == ["..."] else f"{items[0]} | Sequence[{items[0]}]"
        if part == "truth" and "Literal" in text:
            continue
        parts.append(knowledge.ANNOTATIONS.get(part, part))
    return " | ".join(dict.fromkeys(" | ".join(parts).split(" | ")))


def default(node):
    return "..." if not isinstance(node, ast.Constant) else ast.unparse(node)


def op_parameters(row, method):
    """(name, annotation, default, kind) of the parameters of an op; kind: '', '*' before keyword-only ones, or '*name'."""
    args = ast.parse(f"def {row['signature'].rsplit(' -> ', 1)[0]}: ...").body[0].args
    defaults = [None] * (len(args.args) - len(args.defaults)) + args.defaults
    found = []
    for arg, value, only in [
        *((a, d, False) for a, d in zip(args.args, defaults)),
        *((a, d, True) for a, d in zip(args.kwonlyargs, args.kw_defaults)),
    ]:
        name = arg.arg[:-1] if arg.arg.endswith("_") and keyword.iskeyword(arg.arg[:-1]) else arg.arg
        name = arg.arg if keyword.iskeyword(name) else name
        found.append([name, annotation(ast.unparse(arg.annotation)), None if value is None else default(value), only])
    if args.vararg:
        found.insert(len(args.args), ["*" + args.vararg.arg, annotation(ast.unparse(args.vararg.annotation)), None, False])
    if method and found and not found[0][0].startswith("*"):
        found[0] = ["self", "", None, False]
    return found


def result_of(row):
    result = row["signature"].rsplit(" -> ", 1)[1]
    if result.startswith("("):
        return row["public"] + "_result"
    if row["inplace_of"] and result == "Tensor":
        return "Tensor"
    return {"list[Tensor]": "tuple[Tensor, ...]", "Tensor | list[Tensor]": "Any", "bool": "builtins.bool"}.get(result, result)


def joined(parameters):
    texts, starred = [], False
    for name, kind, value, only in parameters:
        if only and not starred:
            texts.append("*")
        starred |= only or name.startswith("*")
        texts.append(name + (f": {kind}" if kind else "") + ("" if value is None else f" = {value}" if kind else f"={value}"))
    return ", ".join(texts)


def op_variants(row, method):
    """Parameter lists of one overload: as it is, and with the last list of ints written out, x.view(2, 3)."""
    parameters = op_parameters(row, method)
    extra = []
    if row["out"] and not method:
        extra.append(["out", "Tensor | Sequence[Tensor] | None", "None", True])
    if row["factory"]:
        extra += [
            ["requires_grad", "bool", "False", True],
            ["pin_memory", "bool", "False", True],
            ["layout", "_layout | None", "None", True],
        ]
    yield parameters + extra
    place = [i for i, p in enumerate(parameters) if not p[3]]
    if place and parameters[place[-1]][1] in ("_Ints", "_Ints | None") and not parameters[place[-1]][0].startswith("*"):
        last = place[-1]
        written_out = ["*" + parameters[last][0], "int", None, False]
        yield parameters[:last] + [written_out] + parameters[last + 1 :] + extra


def documented(line, doc, indent):
    """A declaration with the first line of its description, which editors show."""
    first = (doc or "").strip().split("\n\n")[0].replace("\n", " ").replace("\\", "\\\\").replace('"', "'").strip()
    if not first:
        return f"{indent}{line} ...\n"
    return f'{indent}{line}\n{indent}    """{first}"""\n{indent}    ...\n'


def op_stub(name, rows, indent="", method=False):
    lines = []
    for row in rows:
        for parameters in op_variants(row, method):
            lines.append((plain(f"def {name}({joined(parameters)}) -> {result_of(row)}:"), row["doc"]))
    mark = f"{indent}@overload\n" if len(lines) > 1 else ""
    return "".join(mark + documented(line, doc, indent) for line, doc in lines)


def tuples():
    """Named results: sort_result and so on."""
    seen = {}
    for row in TABLE:
        result = row["signature"].rsplit(" -> ", 1)[1]
        if result.startswith("("):
            fields = re.findall(r"(\w+): ([\w\[\]]+)", result)
            seen.setdefault(row["public"] + "_result", fields)
    for name, fields in sorted(seen.items()):
        yield f"class {name}(NamedTuple):\n" + "".join(f"    {f}: {annotation(t)}\n" for f, t in fields)


def grouped(rows):
    groups = {}
    for row in rows:
        groups.setdefault(row["public"], []).append(row)
    return sorted(groups.items())


def extension():
    """The stub of lucid._C: Tensor, ops of the main namespace, and what is no op."""
    out = io.StringIO()
    head = knowledge.HEADER.replace("import lucid\n", "import lucid\n", 1)
    head = re.sub(r"from lucid import Tensor, Size\nfrom lucid\._C import [^\n]*\n", "", head).split("_Device =")[0]
    out.write(head)
    out.write("Number = builtins.int | builtins.float | builtins.complex\n_dtype = dtype\n_device = device\n_layout = layout\n")
    out.write("_memory_format = memory_format\n_Device = _device | str | builtins.int\n")
    out.write("_TensorT = TypeVar('_TensorT', bound='Tensor')\n")
    out.write(plain(written.BUILTIN).replace("dtype: dtype", "dtype: _dtype"))
    for name in sorted(n for n in dir(lucid._C) if not n.startswith("_")):
        value = getattr(lucid._C, name)
        for kind in ("dtype", "memory_format", "layout"):
            if isinstance(value, getattr(lucid._C, kind)):
                out.write(f"{name}: _{kind}\n")
    out.write("".join(tuples()))
    out.write("class Tensor:\n" + plain((HERE / "stubs/tensor.txt").read_text()))
    shown = [n for n in dir(lucid.Tensor) if isinstance(inspect.getattr_static(lucid.Tensor, n), OP)]
    for name, rows in grouped([r for r in TABLE if r["method"]]):
        if name in shown:
            out.write(op_stub(name, rows, "    ", True))
    for name, rows in grouped([r for r in TABLE if r["function"] and not r["space"]]):
        if getattr(lucid._C, name, None) is getattr(lucid, name, None) or name.startswith("_"):
            out.write(op_stub(name, rows))
    out.write("def __getattr__(name: str) -> Any: ...\n")  # private helpers
    return out.getvalue()


def kind_of_default(value):
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return "str" if isinstance(value, str) else "Any"


def shown_default(value):
    if value is None or type(value) in (bool, int, str):
        return repr(value)
    return repr(value) if type(value) is float and value == value and abs(value) != float("inf") else "..."


def parameter_type(p):
    if isinstance(p.annotation, str) and p.annotation in ("int", "float", "bool", "str", "int | None", "str | None"):
        return p.annotation
    if p.annotation in (int, float, bool, str):
        return p.annotation.__name__
    known = knowledge.BY_NAME.get(p.name)
    if known and p.default is None and "None" not in known:
        known += " | None"
    guess = kind_of_default(p.default) if p.default is not p.empty else "Any"
    if known and guess == "bool" and "bool" not in known:
        return "Any"
    if known and guess == "str" and "str" not in known:
        return known + " | str"
    if known and guess in ("int", "float") and not re.search(r"_Ints|int|float|Number", known):
        return guess
    return known or guess


def parameters_of(function, drop_first=False):
    """The parameter list as text; None if Python cannot say."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    texts, mark, optional = [], False, False
    positional = [p for p in found if p.kind is p.POSITIONAL_ONLY]
    for i, p in enumerate(found):
        if p.kind is p.KEYWORD_ONLY and not mark:
            texts.append("*")
            mark = True
        if p.kind is p.VAR_POSITIONAL:
            mark = True
        name = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        if i == 0 and drop_first:
            texts.append(name)
        elif name.startswith("*"):
            texts.append(f"{name}: Any")
        else:
            value = "" if p.default is p.empty else f" = {shown_default(p.default)}"
            if optional and not value and p.kind is not p.KEYWORD_ONLY:
                value = " = ..."  # a required parameter after an optional one, which only C functions can have
            optional |= bool(value)
            texts.append(f"{name}: {parameter_type(p)}{value}")
        if positional and p is positional[-1]:
            texts.append("/")
    return ", ".join(texts)


def owned(qualified, name, indent):
    text = written.OF.get(qualified) or (written.MEMBERS.get(name) if "." in qualified else None)
    return None if text is None else "".join(f"{indent}{line}\n" for line in plain(text).splitlines())


def function_stub(name, function, module, indent="", owner=None, decorator=""):
    names = [f"{base.__name__}.{name}" for base in owner.__mro__] if owner else [name]
    if name == "__init__":
        names = names[:1]
    found = next(filter(None, (owned(qualified, name, indent) for qualified in names)), None)
    if found and (owner or module.split(".")[1] not in ("generation", "lora")):
        return found
    drop = owner is not None and decorator != "@staticmethod"
    parameters = parameters_of(function, drop)
    if parameters is None:
        parameters = ("self, " if drop else "") + "*args: Any, **kwargs: Any"
    result = knowledge.BY_RESULT.get(name, "Any")
    if not owner and module in knowledge.GIVE_TENSORS:
        result = knowledge.GIVE_OTHERS.get(f"{module}.{name}", "Tensor")
    if decorator:
        decorator = f"{indent}{decorator}\n"
    return decorator + documented(plain(f"def {name}({parameters}) -> {result}:"), inspect.getdoc(function), indent)


def is_context(cls):
    return cls.__name__ in written.CONTEXTS


def layer_call(cls):
    """What a layer gives when it is called: a tensor, unless it is said otherwise."""
    for base in cls.__mro__:
        if base.__name__ in knowledge.TENSOR_LAYERS_EXCEPT:
            result = knowledge.TENSOR_LAYERS_EXCEPT[base.__name__]
            break
    if cls.__module__.startswith("lucid.nn.modules") and cls.__name__ not in knowledge.TENSOR_LAYERS_EXCEPT:
        result = "Tensor" if result == "Any" and cls.__name__[0] != "_" else result
    forward = cls.forward if cls.__name__ in knowledge.TENSOR_LAYERS_EXCEPT else vars(cls).get("forward")
    if forward is None or result == "Any":
        return ""
    parameters = parameters_of(forward, True) or "self, *args: Any, **kwargs: Any"
    return plain(f"    def __call__({parameters}) -> {result}: ...\n    def forward({parameters}) -> {result}: ...\n")


def attributes(cls):
    """Attributes that __init__ sets: of layers those of known names, of other classes all public ones."""
    init = vars(cls).get("__init__")
    if not isinstance(init, types.FunctionType):
        return ""
    if issubclass(cls, lucid.nn.Module):
        known = {n: t for n, t in knowledge.ATTRIBUTES.items() if n in init.__code__.co_names and n not in vars(cls)}
        return "".join(plain(f"    {n}: {t}\n") for n, t in known.items())
    names = {i.argval for i in dis.get_instructions(init) if i.opname == "STORE_ATTR"}
    names = {n for n in names if n[0] != "_" and not any(n in vars(base) for base in cls.__mro__)}
    inherited = written.CLASSES.get(f"{cls.__module__}.{cls.__name__}", "")
    return "".join(f"    {n}: Any\n" for n in sorted(names) if f" {n}:" not in inherited and not keyword.iskeyword(n))


def class_stub(cls, context):
    bases = []
    for base in cls.__bases__:
        if base is object or base.__module__ == "builtins" and not issubclass(base, BaseException):
            if base in (dict, list, tuple):
                bases.append({dict: "dict[Any, Any]", list: "list[Any]", tuple: "tuple[Any, ...]"}[base])
            elif base in (int, str, float):
                bases.append(f"builtins.{base.__name__}")
            continue
        bases.append(context.reference(base))
    if cls.__name__ in written.GENERIC:
        bases = ["Generic[_D]"] if not any(bases) else [f"{b}[_D]" if b in written.GENERIC else b for b in bases]
    head = f"class {cls.__name__}" + (f"({', '.join(b for b in bases if b)})" if any(bases) else "") + ":\n"
    qualified = f"{cls.__module__}.{cls.__name__}"
    body = written.CLASSES.get(qualified, "") + attributes(cls)
    is_layer = isinstance(cls, type) and issubclass(cls, lucid.nn.Module)
    call = layer_call(cls) if is_layer else ""
    body += call
    if is_context(cls):
        body += "    def __enter__(self) -> Any: ...\n    def __exit__(self, *args: Any) -> None: ...\n"
        body += "    def __call__(self, func: _F) -> _F: ...\n"
    for name, value in vars(cls).items():
        if (
            name in ("forward", "__call__")
            and (call or is_layer)
            or is_context(cls)
            and name in ("__enter__", "__exit__", "__call__")
        ):
            continue
        private = name.startswith("_") and name not in (
            "__init__", "__call__", "__iter__", "__len__", "__getitem__", "__setitem__", "__enter__", "__exit__", "__next__",
            "__add__", "__contains__", "__bool__",
        )  # fmt: skip
        if private or keyword.iskeyword(name) or f"    {name}:" in body or f"def {name}(" in body:
            continue
        function = getattr(value, "__func__", value)
        mark = {staticmethod: "@staticmethod", classmethod: "@classmethod"}.get(type(value), "")
        if isinstance(value, property):
            body += f"    @property\n    def {name}(self) -> Any: ...\n"
            if value.fset:
                body += f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...\n"
        elif isinstance(function, types.FunctionType):
            body += function_stub(name, function, cls.__module__, "    ", cls, mark)
        elif isinstance(value, type):
            body += f"    {name}: Any\n"
        elif isinstance(value, OP):
            continue
        else:
            body += f"    {name}: Any\n"
    return head + (body or "    ...\n")


class Module:
    """The stub of one module while it is written."""

    def __init__(self, module):
        self.module, self.name = module, module.__name__
        self.imports, self.body = [], []
        self.stars = []

    def reference(self, cls):
        """A base class by the name under which this stub sees it."""
        own = vars(self.module)
        if cls.__module__ == self.name:
            return cls.__name__ if own.get(cls.__name__) is cls else next((n for n, v in own.items() if v is cls), "Any")
        if not cls.__module__.startswith("lucid"):
            return f"builtins.{cls.__name__}" if cls.__module__ == "builtins" else "Any"
        home = "lucid._C" if cls.__module__ == "lucid" else cls.__module__
        if home != "lucid._C" and home not in STUBBED:
            return "Any"
        name = cls.__name__ if own.get(cls.__name__) in (None, cls) else f"_Base{cls.__name__}"  # two classes of one name
        self.imports.append(f"from {home} import {cls.__name__} as {name}")
        return name

    def add(self, name, value):
        home = getattr(value, "__module__", None)
        if home != self.name or self.module is lucid:
            if vars(lucid._C).get(name) is value:  # the extension's stub has it; in the main namespace by its star
                if self.module is not lucid:
                    self.imports.append(f"from lucid._C import {name} as {name}")
                return
        if isinstance(value, types.ModuleType):
            if value.__name__ == f"{self.name}.{name}" and value.__name__ in STUBBED:
                self.imports.append(f"from {self.name} import {name} as {name}")
        elif isinstance(value, OP):
            self.op(name, value)
        elif isinstance(value, OVERRIDABLE):
            function = getattr(value, "__wrapped__", value)
            home = value.__module__
            if home == self.name or home not in STUBBED or not hasattr(sys.modules[home], name):
                self.body.append(function_stub(name, function, self.name))
            else:
                self.imports.append(f"from {home} import {name} as {name}")
        elif isinstance(value, type):
            if home == self.name and value.__name__ == name:
                self.body.append(class_stub(value, self))
            elif home in STUBBED and vars(sys.modules[home]).get(value.__name__) is value:
                self.imports.append(f"from {home} import {value.__name__} as {name}")
            elif home in ("lucid", "lucid._C") and hasattr(lucid._C, value.__name__):
                self.imports.append(f"from lucid._C import {value.__name__} as {name}")
            elif home and home.startswith("lucid"):
                self.body.append(f"{name}: Any\n")
        elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            if home == self.name:
                self.body.append(function_stub(name, value, self.name))
            elif home in STUBBED and hasattr(sys.modules[home], value.__name__) and value.__name__[0] != "_":
                self.imports.append(f"from {home} import {value.__name__} as {name}")
            elif home and home.startswith("lucid") or home is None:
                self.body.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...\n")
        elif home is None or isinstance(value, (int, float, str, tuple, dict, list, set)):
            for kind in DECLARED:
                if isinstance(value, getattr(lucid._C, kind)):
                    self.body.append(f"{name}: _{kind}\n" if kind not in ("Size", "Generator") else f"{name}: {kind}\n")
                    return
            guess = kind_of_default(value)
            self.body.append(plain(f"{name}: {guess}\n"))
        elif home.startswith("lucid"):
            self.body.append(f"{name}: Any\n")

    def op(self, name, value):
        space = self.name.removeprefix("lucid.")
        rows = [r for r in TABLE if r["public"] == value.__name__ and r["function"]]
        own = [r for r in rows if r["space"] == space]
        if not own and hasattr(lucid._C, value.__name__) and any(not r["space"] for r in rows):
            self.imports.append(f"from lucid._C import {value.__name__} as {name}")
        elif rows:
            rows = own or rows[:1]
            self.imports += [f"from lucid._C import {result_of(r)}" for r in rows if result_of(r).endswith("_result")]
            self.body.append(op_stub(name, rows))
        else:
            self.body.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...\n")

    def text(self):
        names = {
            n
            for n in dir(self.module)
            if not n.startswith("_") or n in vars(self.module) and isinstance(vars(self.module)[n], type)
        }
        names |= {n for n in vars(self.module) if isinstance(vars(self.module)[n], type)}
        names |= set(vars(self.module).get("__all__", ()))
        for name in sorted(names):
            if keyword.iskeyword(name) or name.startswith("__"):
                continue
            try:
                value = getattr(self.module, name)
            except (AttributeError, ImportError, NotImplementedError):
                continue
            self.add(name, value)
        head = knowledge.HEADER
        own = {re.match(r"(?:class|def) (\w+)|(\w+):", b) for b in self.body}
        own = {m[1] or m[2] for m in own if m}
        given = own | {
            i.split(" as ")[-1] for i in self.imports
        }  # a name that is re-exported must not be imported plainly before
        lines = [line for line in head.splitlines() if not (line.endswith(" import Parameter") and "Parameter" in given)]
        doc = (self.module.__doc__ or "").split("\n\n")[0].replace("\\", "\\\\").replace('"""', "'''")
        body = "".join(self.body)
        if self.module is not lucid:
            lines = needed(lines, body + "\n".join(self.imports))
        imports = [i for i in dict.fromkeys(self.imports) if i.split(" as ")[-1] not in own]
        return f'"""{doc}"""\n' + "\n".join([*lines, *imports]) + "\n" + body


def needed(head, rest):
    """The lines of the header that give names to the rest; of an import, these names alone."""
    kept, words = [], set(re.findall(r"\w+", rest))
    for line in reversed(head):
        start, imported, names = line.rpartition(" import ")
        if imported:
            names = [name for name in names.split(", ") if name.split(" as ")[-1] in words]
            line = start + imported + ", ".join(names)
        elif line.split(" ")[1 if line.startswith("import ") else 0] not in words:
            names = ""
        if names:
            kept.append(line)
            words |= set(re.findall(r"\w+", line))
    return kept[::-1]


def main_namespace(text):
    """lucid/__init__.pyi: what lucid._C has, and Tensor and Size under their names."""
    names = ", ".join(f"{n} as {n}" for n in DECLARED[:4])
    star = f"from lucid._C import *\nfrom lucid._C import {names}\n"
    text = text.replace("from lucid import Tensor, Size\n", "from lucid._C import Tensor as Tensor, Size as Size\n", 1)
    return text.replace("\n_P = ", "\n" + star + "_P = ", 1)


def stubbed_modules():
    for info in sorted(pkgutil.walk_packages(lucid.__path__, "lucid."), key=lambda m: m.name):
        if info.name.startswith(SKIPPED) or info.name.endswith("__main__") or info.name == "lucid._C":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield importlib.import_module(info.name)
            except ModuleNotFoundError as error:  # it needs a package that is not installed
                if (error.name or "").startswith("lucid"):
                    raise
                yield types.ModuleType(info.name, f"Needs the package {error.name}, which was not there when this was written.")


def path_of(out, module):
    parts = module.__name__.split(".")[1:]
    if hasattr(module, "__path__"):
        return out.joinpath(*parts, "__init__.pyi")
    return out.joinpath(*parts[:-1], parts[-1] + ".pyi")


def main(out):
    out = pathlib.Path(out)
    shutil.rmtree(out, ignore_errors=True)
    modules = list(stubbed_modules())
    STUBBED.update({m.__name__: m for m in modules})
    out.mkdir(parents=True)
    (out / "py.typed").touch()
    (out / "_C.pyi").write_text(extension())
    for module in [lucid, *modules]:
        path = path_of(out, module)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = Module(module).text()
        if "__file__" not in vars(module):
            text += "def __getattr__(name: str) -> Any: ...\n"
        path.write_text(main_namespace(text) if module is lucid else text)
    print(f"{len(modules) + 2} stubs in {out}")


STUBBED = {}

if __name__ == "__main__":
    main(sys.argv[1])
