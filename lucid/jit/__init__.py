"""TorchScript's functions and decorators, for programs written with them. Lucid has no TorchScript compiler: code runs as
Python, queries return False, decorators change nothing, and `script` and `trace` give back what they get. `lucid.compile`
is what makes a function faster.

>>> lucid.jit.is_scripting() or lucid.jit.is_tracing()
False
"""

from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from .._declared.reader import same
from ._eager import ScriptFunction, ScriptModule, fork, freeze, optimize_for_inference, trace, trace_module, wait

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "TracerWarning",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

RecursiveScriptModule = TopLevelTracedModule = ScriptModule
_overload = _overload_method = _script_if_tracing = script_if_tracing = script_method = interface = same


class Error(RuntimeError):
    """TorchScript's error.

    >>> issubclass(lucid.jit.Error, RuntimeError)
    True
    """


class TracerWarning(Warning):
    """What tracing warns with in PyTorch: for filters of warnings.

    >>> issubclass(lucid.jit.TracerWarning, Warning)
    True
    """


class Attribute(NamedTuple):
    """A value and its type.

    >>> lucid.jit.Attribute(1, int).value
    1
    """

    value: Any
    type: Any


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function, class or module itself, which runs as Python; a decorator with or without arguments.

    >>> @lucid.jit.script
    ... def double(x):
    ...     return x + x
    >>> double(lucid.ones(1))
    tensor([2.])
    """
    return same if obj is None else obj


def save(m, f, _extra_files=None):
    """Raises: TorchScript files hold a program in a language of their own. `lucid.save(model.state_dict(), f)` keeps weights.

    >>> lucid.jit.save(lucid.nn.Identity(), "model.pt")
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "jit.save: TorchScript files are not supported; save the weights: torch.save(model.state_dict(), f)"
    )


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Raises: TorchScript files hold a program in a language of their own. `lucid.load` reads checkpoints.

    >>> lucid.jit.load("model.pt")
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    raise NotImplementedError(
        f"jit.load: {f} would be a TorchScript file, which is not supported; torch.load reads checkpoints"
    )


def isinstance(obj, target_type):  # noqa: A001 (PyTorch's name)
    """Whether an object is of a type, which may be `list[int]`, `dict[str, Tensor]`, `Optional[...]` or a union.

    >>> lucid.jit.isinstance([1, 2], list[int]), lucid.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    from ._eager import is_of

    return is_of(obj, target_type)


def set_fusion_strategy(strategy):
    """Take note of how TorchScript should fuse: there is nothing to fuse. Gives the strategy back, as PyTorch does.

    >>> lucid.jit.set_fusion_strategy([("STATIC", 2)])
    [('STATIC', 2)]
    """
    return strategy


@contextmanager
def optimized_execution(should_optimize):
    """A block with TorchScript's optimizations on or off: there are none.

    >>> with lucid.jit.optimized_execution(False):
    ...     1 + 1
    2
    """
    yield


def is_scripting():
    """Whether this is compiled code: no.

    >>> lucid.jit.is_scripting()
    False
    """
    return False


def is_tracing():
    """Whether calls are recorded for TorchScript: no.

    >>> lucid.jit.is_tracing()
    False
    """
    return False


def annotate(the_type, the_value):
    """The value; the type is for a compiler.

    >>> lucid.jit.annotate(list[int], [])
    []
    """
    return the_value


def export(fn):
    """Mark a method that a compiler should take along.

    >>> @lucid.jit.export
    ... def f():
    ...     return 1
    >>> f()
    1
    """
    return fn


def unused(fn):
    """Mark a method that a compiler should leave out.

    >>> lucid.jit.unused(abs) is abs
    True
    """
    return fn


def ignore(drop=False, **kwargs):
    """Mark a method that a compiler should leave to Python; with or without arguments.

    >>> lucid.jit.ignore(abs) is abs, lucid.jit.ignore(drop=True)(abs) is abs
    (True, True)
    """
    return drop if callable(drop) else lambda fn: fn


def __getattr__(name):
    from .. import _declared

    return _declared.look("jit", name)
