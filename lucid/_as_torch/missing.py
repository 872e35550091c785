"""Names of PyTorch that a program asks for and Lucid lacks: errors say who asked, `python -m lucid --missing` lists all."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from .. import _declared

_PACKAGE = "importlib"
_asked = {}  # name: the first place that asked
_go_on = False  # give a stand-in instead of raising: --missing


def collect(go_on):
    """Start a list of names asked for in vain. go_on: give stand-ins, so that the program runs further.

    >>> from lucid._as_torch import missing
    >>> missing.collect(go_on=False)
    """
    global _go_on
    _go_on = go_on
    _asked.clear()


def forget():
    """Stop giving stand-ins.

    >>> from lucid._as_torch import missing
    >>> missing.forget()
    """
    collect(False)


def asked():
    """Pairs of a name that Lucid lacks and the place that asked first.

    >>> from lucid._as_torch import missing
    >>> missing.collect(False)
    >>> missing.asked()
    []
    """
    return sorted(_asked.items())


def _caller():
    """The frame of the program that asked: not the import system's, not this package's; and whether it only tries."""
    frame = sys._getframe(2)
    while frame and (
        frame.f_code.co_filename.startswith("<frozen importlib")
        or frame.f_globals.get("__name__", "").startswith(("lucid._as_torch", "lucid._declared", _PACKAGE))
    ):
        frame = frame.f_back
    if frame is None:
        return "an unknown place", False
    import dis

    opcode = frame.f_code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else 0
    trying = dis.opname[opcode].startswith(("CALL", "PRECALL"))  # hasattr(torch, name), getattr(torch, name, default)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}", trying


def _note(name):
    place, trying = _caller()
    if not trying:
        _asked.setdefault(name, place)
    return place, trying


class Absent:
    """A stand-in for something Lucid lacks, under --missing: it can be called, used as a decorator, a base class, a context.

    >>> from lucid._as_torch.missing import Absent
    >>> thing = Absent("torch.nothing")
    >>> thing(abs) is abs, thing.more
    (True, <absent torch.nothing.more>)
    """

    def __init__(self, name):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"<absent {self._name}>"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Absent(f"{self._name}.{name}")

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return self

    def __mro_entries__(self, bases):
        return (type(self._name.rpartition(".")[2], (), {}),)

    def __getitem__(self, key):
        return self

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def __bool__(self):
        return False

    def __or__(self, other):
        return other

    __ror__ = __or__


def watcher(name, module, before):
    """The `__getattr__` of a module of Lucid while the switch is on: its own one, then its submodules, then an error.

    >>> from lucid._as_torch import missing
    >>> missing.watcher("lucid.nn", lucid.nn, None)("nothing")
    Traceback (most recent call last):
    AttributeError: ...
    """
    from .finder import torch_name

    shown, short = torch_name(name), name[len("lucid.") :] or "lucid"

    def __getattr__(wanted):
        if before is not None:
            try:
                return before(wanted)
            except AttributeError:
                pass
        if not wanted.startswith("__") or wanted == "__config__":
            value = _declared.extra(short, wanted)
            if value is not None:
                return value
            if hasattr(module, "__path__") and _is_submodule(f"{name}.{wanted}"):
                return import_module(f"{name}.{wanted}")
            place, trying = _note(f"{shown}.{wanted}")
            if _go_on and not trying:
                return Absent(f"{shown}.{wanted}")
            raise AttributeError(f"{shown}.{wanted} is not in Lucid (asked for at {place})", name=wanted, obj=module)
        raise AttributeError(f"module {shown!r} has no attribute {wanted!r}", name=wanted, obj=module)

    return __getattr__


def _is_submodule(name):
    if name in sys.modules:
        return True
    try:
        return find_spec(name) is not None
    except (ImportError, AttributeError):
        return False


def module(name):
    """What importing `torch.x` gives if Lucid has no such module: an error, or under --missing a module of stand-ins.

    >>> from lucid._as_torch import missing
    >>> missing.module("torch.nothing")
    Traceback (most recent call last):
    ModuleNotFoundError: ...
    """
    place, _ = _note(name)
    if not _go_on:
        raise ModuleNotFoundError(f"{name} is not in Lucid (asked for at {place})", name=name)
    made = ModuleType(name)
    made.__path__, made.__lucid_missing__ = [], True
    made.__getattr__ = lambda wanted: Absent(f"{name}.{wanted}") if not wanted.startswith("__") else _no(name, wanted)
    made.__spec__ = None
    return made


def _no(name, wanted):
    raise AttributeError(f"module {name!r} has no attribute {wanted!r}")
