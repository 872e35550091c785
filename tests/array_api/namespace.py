"""`xp`: Lucid as an array library of the Python array API standard.

The shim is the one PyTorch uses, the public package array_api_compat: its wrapper of PyTorch, loaded once more with Lucid in
PyTorch's place. So this also says whether Lucid can stand where a library expects PyTorch. What Lucid lacks (`MISSING`) is a
function that raises there.
"""

import importlib
import sys
import types

import lucid

MISSING = set()


class Place(types.ModuleType):
    """A stand-in for the module torch that resolves names in Lucid."""

    def __init__(self, name, library):
        super().__init__(name)
        self.__dict__.update(_library=library, __all__=[n for n in dir(library) if not n.startswith("_")])

    def __getattr__(self, name):
        if hasattr(self._library, name):
            return getattr(self._library, name)
        if name.startswith("_"):
            raise AttributeError(name)
        MISSING.add(f"{self.__name__}.{name}")

        def absent(*args, **kwargs):
            raise NotImplementedError(f"{self.__name__} has no {name} in Lucid")

        absent.__name__ = name
        return absent

    def __dir__(self):
        return self.__all__


def part(name):
    return importlib.import_module(f"lucid.{name}") if hasattr(lucid, name) else types.ModuleType(name)


def load():
    theirs = lambda name: name.split(".")[0] in ("torch", "array_api_compat")
    hidden = {n: m for n, m in sys.modules.items() if theirs(n)}
    for name in hidden:
        del sys.modules[name]
    places = {"torch": Place("torch", lucid), **{f"torch.{n}": Place(f"torch.{n}", part(n)) for n in ("linalg", "fft")}}
    places["torch"].linalg, places["torch"].fft = places["torch.linalg"], places["torch.fft"]
    sys.modules.update(places)
    try:
        made = importlib.import_module("array_api_compat.torch")
        sys.modules["array_api_compat.common._aliases"].array_namespace = lambda *arrays, **options: made  # it knows no Lucid
        return made
    finally:
        for name in [n for n in sys.modules if theirs(n)]:
            del sys.modules[name]
        sys.modules.update(hidden)


xp = load()
