"""Compiled modules: the module's own class, state and hooks, with a compiled forward.

`lucid.compile(module)` gives a second object that shares everything with the first (its `__dict__` is the same), so parameters,
buffers, training mode and attributes are one; only calls differ. `module.compile()` compiles in place.
"""

import copy

from .function import Compiled, compiled

_classes = {}


def _class_of(cls):
    """A subclass whose forward is the compiled one."""
    if cls not in _classes:
        names = {
            # forward is what answers calls: a member, so that no Python runs before the plan
            "__slots__": ("_lucid_compiled", "_orig_mod", "forward"),
            "__module__": cls.__module__,
            "__doc__": cls.__doc__,
        }
        names |= {name: _passed_on(name) for name in ("invalidate_cache", "cache_info", "graph", "explain")}
        names |= {"__deepcopy__": _deepcopy, "__reduce_ex__": _reduce}
        _classes[cls] = type(cls.__name__, (cls,), names)
    return _classes[cls]


def _passed_on(name):
    def method(self, *args, **kwargs):
        return getattr(self._lucid_compiled, name)(*args, **kwargs)

    method.__name__, method.__doc__ = name, getattr(Compiled, name).__doc__
    return method


def _deepcopy(self, memo):
    c = self._lucid_compiled
    return compiled_module(copy.deepcopy(self._orig_mod, memo), **c.settings())


def _reduce(self, protocol):
    c = self._lucid_compiled
    return _again, (self._orig_mod, c.settings())


def _again(module, settings):
    return compiled_module(module, **settings)


def _attributes(cls):
    """The descriptor of `__dict__`: setting it by name is refused for modules."""
    return next(vars(c)["__dict__"] for c in cls.__mro__ if "__dict__" in vars(c))


def compiled_module(module, **settings):
    """A module that shares everything with this one and runs its forward as plans.

    >>> layer = lucid.nn.Linear(2, 2)
    >>> lucid._compile.module.compiled_module(layer, fullgraph=False, plans=8).weight is layer.weight
    True
    """
    cls = _class_of(type(module))
    made = cls.__new__(cls)
    _attributes(cls).__set__(made, module.__dict__)
    made_forward = compiled(module.forward, roots=(module,), **settings)
    cls._lucid_compiled.__set__(made, made_forward)
    cls._orig_mod.__set__(made, module)
    cls.forward.__set__(made, made_forward.entrance())
    return made


def compile_in_place(module, **settings):
    """The module itself, with a compiled forward from now on.

    >>> layer = lucid.nn.Linear(2, 2)
    >>> lucid._compile.module.compile_in_place(layer, fullgraph=False, plans=8) is layer
    True
    """
    forward = type(module).forward.__get__(module)
    module.__dict__["forward"] = compiled(forward, roots=(module,), **settings)
    return module
