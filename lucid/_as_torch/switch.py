"""The switch: turns `torch` into a second name of `lucid`, and back."""

import sys

import lucid

from .. import _C
from . import missing
from .finder import Finder

TORCH_VERSION = "2.13.0"  # the release whose behaviour Lucid follows


def _real_torch():
    module = sys.modules.get("torch")
    return module if module is not None and module is not lucid else None


class _Switch:
    """Make `import torch`, and every module below it, give Lucid's modules; a context manager, or until `as_torch.undo()`.

    The modules are the very same: `torch.nn is lucid.nn`. PyTorch itself is neither needed nor loaded. While the switch is on,
    `lucid.__name__` is "torch", `lucid.__version__` is the release of PyTorch that Lucid follows, and names print as PyTorch's
    do (`torch.float32`). `installed` says whether it is on.

    >>> import subprocess, sys
    >>> program = '''
    ... import lucid
    ... with lucid.as_torch():
    ...     import torch
    ...     print(torch.float64, torch.__name__, torch.Tensor is lucid.Tensor, lucid.as_torch.installed)
    ... print(lucid.as_torch.installed)
    ... '''
    >>> print(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip())
    torch.float64 torch True True
    False
    """

    def __init__(self):
        self._undo = None

    @property
    def installed(self):
        return self._undo is not None

    def __call__(self):
        if self.installed:
            return _Handle(None)
        if _real_torch() is not None:
            raise RuntimeError(
                f"lucid.as_torch(): PyTorch is imported already ({getattr(_real_torch(), '__file__', 'torch')}); "
                "call as_torch() before anything imports torch"
            )
        self._undo = _install()
        return _Handle(self)

    def undo(self):
        """Turn the switch off: `import torch` looks for PyTorch again. Modules that were imported keep what they have."""
        if self._undo is not None:
            undo, self._undo = self._undo, None
            undo()

    def __repr__(self):
        return f"<lucid.as_torch: {'on' if self.installed else 'off'}>"


class _Handle:
    """What `as_torch()` gives: undoes it at the end of a `with` block, unless the switch was on before."""

    def __init__(self, switch):
        self._switch = switch

    def __enter__(self):
        return lucid

    def __exit__(self, *error):
        if self._switch is not None:
            self._switch.undo()

    def undo(self):
        """Turn the switch off."""
        as_torch.undo()


def _install():
    from .._declared.versions import TorchVersion

    version = TorchVersion(f"{TORCH_VERSION}+lucid")
    from .. import version as version_module

    finder = Finder()
    sys.meta_path.insert(0, finder)
    kept = lucid.__version__, lucid.__name__, version_module.__version__
    lucid.__version__ = version_module.__version__ = version
    _C._set_package_name("torch")
    for name, module in list(sys.modules.items()):
        if name == "lucid" or name.startswith("lucid."):
            finder.adopt(name, module)
    lucid.__name__ = "torch"
    lucid.torch = lucid  # programs say torch.torch

    def undo():
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        finder.release()
        lucid.__version__, lucid.__name__, version_module.__version__ = kept
        lucid.__dict__.pop("torch", None)
        _C._set_package_name("lucid")
        missing.forget()

    return undo


as_torch = _Switch()
