"""Modules and names of PyTorch that programs import and rarely use, declared in tables (`tables/`) instead of a file each.

>>> from lucid.ao.quantization import QConfig
>>> QConfig()
Traceback (most recent call last):
NotImplementedError: torch.ao.quantization.QConfig is not in Lucid: quantization

A finder at the end of `sys.meta_path` makes such a module when it is imported. What is declared is truthful: names that do
work are taken from where they are written, and the others say in their error what is missing.
"""

import sys

_ROOT = "lucid."


class _Finder:
    """Answers for `lucid.x.y` that no file has."""

    def find_spec(self, name, path=None, target=None):
        if not name.startswith(_ROOT) or not is_module(name[len(_ROOT) :]):
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        fill(module, module.__name__[len(_ROOT) :])


def _table():
    from .reader import table

    return table()


def is_module(name):
    """Whether the table has a module of this name.

    >>> from lucid import _declared
    >>> _declared.is_module("ao.quantization"), _declared.is_module("nothing")
    (True, False)
    """
    return name in _table()


def fill(module, name):
    """Give a module its declared names: now those that are cheap, and the rest when they are asked for.

    >>> import types
    >>> from lucid import _declared
    >>> module = types.ModuleType("lucid.compiler")
    >>> _declared.fill(module, "compiler")
    >>> module.is_compiling()
    False
    """
    entry = _table()[name]
    module.__doc__ = entry.doc
    module.__all__ = [n for n in entry.names if not n.startswith("_")]
    own = module.__dict__

    def later(wanted):
        if wanted in entry.names:
            value = own[wanted] = entry.names[wanted]()
            return value
        if is_module(f"{name}.{wanted}"):
            from importlib import import_module

            return import_module(f"{_ROOT}{name}.{wanted}")
        raise AttributeError(f"module {module.__name__!r} has no attribute {wanted!r}")

    own["__getattr__"] = later
    own["__dir__"] = lambda: sorted({*own, *entry.names})


def extra(space, wanted):
    """A declared name of a module that has a file, such as `_C`, or None.

    >>> from lucid import _declared
    >>> _declared.extra("_C", "nothing") is None
    True
    """
    entry = _table().get(space)
    if entry is None or wanted not in entry.names:
        return None
    return entry.names[wanted]()


def look(space, wanted):
    """A declared name or module of a package that has files, for its `__getattr__`; raises AttributeError.

    >>> from lucid import _declared
    >>> _declared.look("utils", "cpp_extension").__name__
    'lucid.utils.cpp_extension'
    """
    if not wanted.startswith("__") or wanted == "__config__":
        value = extra(space, wanted)
        if value is not None:
            return value
        path = wanted if space == "lucid" else f"{space}.{wanted}"
        if is_module(path):
            from importlib import import_module

            return import_module(_ROOT + path)
    from .instead import MissingName

    raise MissingName(space, wanted)


def watch():
    """Answer for declared modules from now on; `import lucid` calls it.

    >>> from lucid import _declared
    >>> _declared.watch()
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
