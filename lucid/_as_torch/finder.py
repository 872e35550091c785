"""Finds `torch.x` as `lucid.x`, the very module, and tells packages that ask for it a version of the distribution torch."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution

from .. import _declared
from . import missing


def torch_name(name):
    """PyTorch's name of one of Lucid's modules.

    >>> from lucid._as_torch.finder import torch_name
    >>> torch_name("lucid.nn.functional")
    'torch.nn.functional'
    """
    return "torch" + name[len("lucid") :]


class _Distribution(Distribution):
    """What `importlib.metadata` says about torch: a name and a version."""

    def read_text(self, filename):
        import lucid

        if filename in ("METADATA", "PKG-INFO"):
            return f"Metadata-Version: 2.1\nName: torch\nVersion: {lucid.__version__}\nSummary: Lucid under PyTorch's name\n"
        return "torch\n" if filename == "top_level.txt" else None

    def locate_file(self, path):
        import pathlib

        return pathlib.Path(__file__).parent.parent.parent / path


class _Alias:
    """Loads `torch.x` by giving Lucid's module, which is loaded already or now."""

    def __init__(self, name):
        self.name = name

    def create_module(self, spec):
        try:
            self.module = import_module(self.name)
        except ModuleNotFoundError as error:
            if error.name != self.name:
                raise
            self.module = missing.module(spec.name)
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec  # the import system has set the one of the alias


class Finder:
    """Stands first on `sys.meta_path` while the switch is on.

    >>> from lucid._as_torch.finder import Finder
    >>> Finder().find_spec("json") is None
    True
    """

    def __init__(self):
        self._adopted = {}

    def find_spec(self, name, path=None, target=None):
        if name == "torch" or name.startswith("torch."):
            return ModuleSpec(name, _Alias("lucid" + name[len("torch") :]), is_package=True)
        if name == "functorch":  # PyTorch brings a package of this name
            return ModuleSpec(name, _Alias("lucid._functorch.deprecated"), is_package=True)
        if not name.startswith("lucid."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return self._declared(name)
        return self._watched(spec)

    def _declared(self, name):
        if not _declared.is_module(name[len("lucid.") :]):
            return None
        return self._watched(_declared._Finder().find_spec(name))

    def _watched(self, spec):
        """The module gets its second name once it has run."""
        run = spec.loader.exec_module

        def run_and_adopt(module):
            run(module)
            self.adopt(spec.name, module)

        spec.loader.exec_module = run_and_adopt
        return spec

    def find_distributions(self, context=None):
        """For `importlib.metadata.version("torch")`."""
        if context is None or getattr(context, "name", None) in (None, "torch"):
            yield _Distribution()

    def adopt(self, name, module):
        """Enter a module of Lucid under PyTorch's name, and tell who asks for what it lacks."""
        alias = torch_name(name)
        if alias in self._adopted:
            return
        sys.modules[alias] = module
        before = module.__dict__.get("__getattr__")
        self._adopted[alias] = module, before
        module.__dict__["__getattr__"] = missing.watcher(name, module, before)

    def release(self):
        """Take the second names away again."""
        for alias, (module, before) in self._adopted.items():
            if sys.modules.get(alias) is module:
                del sys.modules[alias]
            module.__dict__.pop("__getattr__", None)
            if before is not None:
                module.__dict__["__getattr__"] = before
        self._adopted.clear()
        for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
            if getattr(sys.modules[name], "__lucid_missing__", False):
                del sys.modules[name]
