"""What happens when the imported package is a source tree without a build.

A clone has `lucid/` with Python files and no extension until `make build` links one into it, and Python finds that folder
first when it is started inside the clone. If Lucid is installed as well (`pip install .`), the installed package takes over.
Otherwise the import says what to do, instead of naming the file that is missing. An extension that is there and cannot be
loaded is another error: it is raised as it is.
"""

import sys


def _extensions(folder):
    import glob

    return glob.glob(f"{glob.escape(folder)}/_C.*.so")


def take_over(error):
    """Put the installed package in the place of this one in `sys.modules`, or raise an ImportError that says what to do.

    >>> from lucid import _unbuilt
    >>> _unbuilt.take_over(ImportError("of another kind"))
    Traceback (most recent call last):
    ImportError: of another kind
    """
    import os
    import sysconfig
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    built = _extensions(here)
    if os.path.join(here, "_C" + suffix) in built:
        raise error
    places = [p for p in sys.path if os.path.realpath(os.path.join(p or os.curdir, "lucid")) != os.path.realpath(here)]
    spec = PathFinder.find_spec("lucid", places)
    if spec and spec.origin and os.path.isfile(os.path.join(os.path.dirname(spec.origin), "_C" + suffix)):
        sys.modules["lucid"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return
    version = f"Python {sys.version_info[0]}.{sys.version_info[1]}"
    if not os.path.isfile(os.path.join(os.path.dirname(here), "meson.build")):
        raise ImportError(f"this installation of Lucid has no extension for {version}: install lucid-dl anew") from None
    state = f"it is built for another Python ({os.path.basename(built[0])}), this is {version}" if built else "it is not built"
    raise ImportError(
        f"this is Lucid's source tree ({os.path.dirname(here)}), and {state}: run `make build PYTHON={sys.executable}` there, "
        "or `pip install .` and import lucid from anywhere"
    ) from None
