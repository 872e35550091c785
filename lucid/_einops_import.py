"""Register Lucid with the package einops when a program imports einops, and not before: `import lucid` does not import it.

einops keeps its list of libraries in `einops._backends`. The finder below ignores every other module. For this one it lets the
usual finders do their work, and adds Lucid's backend once the module has run.
"""

import sys

NAME = "einops._backends"


def _register():
    from importlib import import_module

    import_module("lucid.einops._backend").make_backend()


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name != NAME:
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def run_and_register(module):
                run(module)
                _register()

            spec.loader.exec_module = run_and_register
        return spec


def watch():
    """Register now if einops is imported already, else when it is.

    >>> from lucid import _einops_import
    >>> _einops_import.watch()  # `import lucid` did
    """
    if NAME in sys.modules:
        _register()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
