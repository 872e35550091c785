"""Reads the tables of declared modules: `tables/__init__.py` explains their lines."""

from functools import cache
from importlib import import_module


class Entry:
    """A declared module: why its absent names are absent, its docstring, and how to make every name.

    >>> from lucid._declared.reader import table
    >>> "BroadcastingList1" in table()["jit.annotations"].names
    True
    """

    def __init__(self, name, why):
        self.name, self.why, self.names = name, why, {}

    @property
    def doc(self):
        return f"PyTorch's `{self.name}`: names that programs import." + (f" Absent: {self.why}." if self.why else "")


def _says(where, why):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"torch.{where} is not in Lucid" + (f": {why}" if why else ""))

    return refuse


def _class(entry, name, attributes):
    refuse = _says(f"{entry.name}.{name}", entry.why)
    members = {a: _says(f"{entry.name}.{name}.{a}", entry.why) for a in attributes}
    doc = f"PyTorch's class, for `isinstance`, annotations and subclasses; making one says that it is absent: {entry.why}."
    members |= {
        "__doc__": doc,
        "__module__": f"lucid.{entry.name}",
        "__init__": refuse,
        "__class_getitem__": classmethod(lambda cls, item: cls),
    }
    return type(name, (), members)


def _call(entry, name):
    function = _says(f"{entry.name}.{name}", entry.why)
    function.__name__ = function.__qualname__ = name
    function.__module__ = f"lucid.{entry.name}"
    function.__doc__ = f"Absent: {entry.why}."
    return function


def _enum(entry, name, members):
    from enum import Enum

    return Enum(name, {m: i for i, m in enumerate(members)}, module=f"lucid.{entry.name}")


def same(*args, **kwargs):
    """A decorator that gives its function back, with or without arguments of its own.

    >>> from lucid._declared.reader import same
    >>> same(abs) is abs, same(drop=True)(abs) is abs
    (True, True)
    """
    if len(args) == 1 and not kwargs and callable(args[0]):
        return args[0]
    return lambda function: function


def _answer(value):
    def answer(*args, **kwargs):
        return value

    return answer


def _from(source, name):
    library = source.startswith("!")  # of Python
    module = import_module(source[1:] if library else f"lucid.{source}" if source else "lucid")
    return module if name == "*module*" else getattr(module, name)


def _words(text):
    """Words of a line; a word may have a list in round brackets behind it."""
    for word in text.split():
        head, _, inner = word.partition("(")
        yield head, inner.rstrip(")").split(",") if inner else []


def _add(entry, kind, rest):
    names = entry.names
    if kind == "class":
        for name, attributes in _words(rest):
            names[name] = lambda n=name, a=attributes: _class(entry, n, a)
    elif kind == "call":
        for name, _ in _words(rest):
            names[name] = lambda n=name: _call(entry, n)
    elif kind == "enum":
        name, *members = rest.split()
        names[name] = lambda: _enum(entry, name, members)
    elif kind == "same":
        for name, _ in _words(rest):
            names[name] = lambda: same
    elif kind in ("none", "false", "true"):
        for name, _ in _words(rest):
            names[name] = lambda: _answer({"none": None, "false": False, "true": True}[kind])
    elif kind == "value":
        from ast import literal_eval

        name, _, text = rest.partition(" = ")
        names[name.strip()] = lambda: literal_eval(text)
    elif kind == "from":
        source, _, wanted = rest.partition(":")
        source = source.strip()
        for word in wanted.split():
            name, _, other = word.partition("=")
            names[name] = lambda s=source, o=other or name: _from(s, o)
    else:
        raise ValueError(f"lucid._declared.tables: {kind!r} is no kind of name")


def _lines(texts):
    """Lines of the tables, each with the ones that go on with it."""
    whole = ""
    for line in (line for text in texts for line in text.splitlines() if line.strip()):
        if line.startswith("    "):
            whole += " " + line.strip()
            continue
        if whole:
            yield whole
        whole = line
    yield whole


@cache
def table():
    """All entries by the name of their module, without `lucid.`; parents of modules are modules.

    >>> from lucid._declared.reader import table
    >>> "ao" in table()
    True
    """
    from .tables import TABLES

    entries, entry = {}, None
    for line in _lines(import_module(f"lucid._declared.tables.{part}").TABLE for part in TABLES):
        if not line.startswith(" "):
            name, _, why = line.partition(" ")
            entry = entries.setdefault(name, Entry(name, why))
            continue
        kind, _, rest = line.strip().partition(" ")
        _add(entry, kind, rest)
    for name in list(entries):
        parent = name.rpartition(".")[0]
        while parent:
            entries.setdefault(parent, Entry(parent, ""))
            parent = parent.rpartition(".")[0]
    return entries
