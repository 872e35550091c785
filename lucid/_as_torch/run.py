"""Runs a PyTorch program on Lucid: `python -m lucid program.py`, `-m module`, `-c code`."""

import io
import os
import sys
from types import ModuleType

from . import missing
from .switch import as_torch

STARTUP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "startup")


def _for_children():
    """Processes that the program starts (spawn, subprocess) have the switch on too."""
    os.environ["LUCID_AS_TORCH"] = "1"
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != STARTUP]
    if package not in path and package not in _site_folders():
        path.append(package)
    os.environ["PYTHONPATH"] = os.pathsep.join([STARTUP, *path])


def _site_folders():
    import site

    return [*site.getsitepackages(), site.getusersitepackages()]


def _fresh_main(**names):
    ours = sys.modules["__main__"]
    if getattr(ours.__spec__, "name", None) == "lucid.__main__":  # its frame stays on the stack: inspect finds its module
        ours.__name__ = "lucid.__main__"
        sys.modules[ours.__name__] = ours
        import inspect

        # two frames of runpy lie below: inspect.stack() would look through all modules for each of them, several times
        getattr(inspect, "modulesbyfile", {}).setdefault("<frozen runpy>", "runpy")
    module = ModuleType("__main__")
    module.__dict__.update(names, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    return module.__dict__


def _run_file(path):
    if os.path.isdir(path) or path.endswith((".zip", ".pyz")):
        import runpy

        runpy.run_path(path, run_name="__main__")
        return
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec")
    exec(code, _fresh_main(__file__=path, __cached__=None, __spec__=None, __loader__=None, __package__=None))


def _run_code(text):
    sys.path[0] = ""
    exec(compile(text, "<string>", "exec"), _fresh_main(__spec__=None, __loader__=None, __package__=None))


def _run_module(name):
    import runpy

    sys.path[0] = os.getcwd()
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _report():
    found = missing.asked()
    print(f"lucid: {len(found)} names of PyTorch that Lucid lacks were asked for" + (":" if found else ""), file=sys.stderr)
    for name, place in found:
        print(f"  {name}  ({place})", file=sys.stderr)


def run(arguments, usage):
    """Do what `python -m lucid` was asked for with these arguments; the exit status.

    >>> from lucid._as_torch.run import run
    >>> run(["--help"], "usage: ...")
    usage: ...
    0
    """
    listing = arguments[0] == "--missing"
    arguments = arguments[1:] if listing else arguments
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage.strip())
        return 0 if arguments else 2
    if arguments[0] == "--startup":
        print(STARTUP)
        return 0
    kind = arguments[0] if arguments[0] in ("-m", "-c") else None
    if (kind and len(arguments) < 2) or (kind is None and arguments[0].startswith("-")):
        print(usage.strip(), file=sys.stderr)
        return 2
    what, rest = (arguments[1], arguments[2:]) if kind else (arguments[0], arguments[1:])
    sys.argv[:] = [kind if kind == "-c" else what, *rest]
    as_torch()
    _for_children()
    missing.collect(go_on=listing)
    try:
        {None: _run_file, "-m": _run_module, "-c": _run_code}[kind](what)
    except BaseException as error:
        if not listing or isinstance(error, SystemExit):
            raise
        import traceback

        traceback.print_exc()
        print("lucid: the program stopped there", file=sys.stderr)
        return 1
    finally:
        if listing:
            _report()
    return 0
