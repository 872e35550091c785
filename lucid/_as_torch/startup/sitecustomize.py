"""Python's start-up hook: with this folder on PYTHONPATH and LUCID_AS_TORCH=1 set, `import torch` gives Lucid from the start.

Another `sitecustomize` further down the path runs as it would have.
"""

import os
import sys


def _next_one():
    """Run the sitecustomize that this one hides."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p or ".") != here])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


def _switch():
    if os.environ.get("LUCID_AS_TORCH", "") in ("", "0"):
        return
    try:
        import lucid
    except ImportError as error:
        print(f"LUCID_AS_TORCH is set, but this Python cannot import lucid: {error}", file=sys.stderr)
        return
    lucid.as_torch()


_next_one()
_switch()
