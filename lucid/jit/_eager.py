"""What TorchScript's functions are where code runs as Python."""

from types import UnionType
from typing import Any, Union, get_args, get_origin

from .._C import _set_grad_enabled
from ..nn.modules.module import Module


class ScriptModule(Module):
    """The class of TorchScript's modules: a base class, and for `isinstance`. Modules of it run as Python.

    >>> isinstance(lucid.nn.Identity(), lucid.jit.ScriptModule)
    False
    """


class ScriptFunction:
    """The class of TorchScript's functions: for `isinstance`; `script` gives functions themselves.

    >>> isinstance(lucid.jit.script(abs), lucid.jit.ScriptFunction)
    False
    """


def trace(func, example_inputs=None, *, example_kwarg_inputs=None, check_trace=True, strict=True, **settings):
    """The function or module itself, called once with the example without recording, as a check that it runs.

    >>> layer = lucid.nn.Linear(2, 1)
    >>> lucid.jit.trace(layer, lucid.ones(1, 2)) is layer
    True
    """
    known = {"optimize", "check_inputs", "check_tolerance", "_force_outplace", "_module_class", "_compilation_unit"}
    if set(settings) - known:
        raise TypeError(f"trace() got an unexpected keyword argument {min(set(settings) - known)!r}")
    if check_trace and (example_inputs is not None or example_kwarg_inputs is not None):
        inputs = () if example_inputs is None else example_inputs
        inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        before = _set_grad_enabled(False)
        try:
            func(*inputs, **(example_kwarg_inputs or {}))
        finally:
            _set_grad_enabled(before)
    return func


def trace_module(mod, inputs, **settings):
    """The module itself; `inputs` has example inputs by the names of methods, which are called once.

    >>> layer = lucid.nn.Linear(2, 1)
    >>> lucid.jit.trace_module(layer, {"forward": lucid.ones(1, 2)}) is layer
    True
    """
    for method, example in inputs.items():
        trace(mod if method == "forward" else getattr(mod, method), example, **settings)
    return mod


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module itself.

    >>> layer = lucid.nn.Linear(2, 1).eval()
    >>> lucid.jit.freeze(layer) is layer
    True
    """
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. Please call .eval() first.")
    return mod


def optimize_for_inference(mod, other_methods=None):
    """The module itself, in eval mode.

    >>> lucid.jit.optimize_for_inference(lucid.nn.Linear(2, 1)).training
    False
    """
    return mod.eval()


def fork(func, *args, **kwargs):
    """A future of what a function returns; it is called at once.

    >>> lucid.jit.wait(lucid.jit.fork(abs, -1))
    1
    """
    from ..futures import Future

    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """What `fork` called returned.

    >>> lucid.jit.wait(lucid.jit.fork(max, 1, 2))
    2
    """
    return future.wait()


def is_of(obj, kind):
    """Whether an object is of a type with arguments.

    >>> from lucid.jit._eager import is_of
    >>> is_of({"a": 1}, dict[str, int]), is_of((1, "a"), tuple[int, int]), is_of(None, int | None)
    (True, False, True)
    """
    if isinstance(kind, (tuple, list)):
        return any(is_of(obj, k) for k in kind)
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(is_of(obj, k) for k in inner)
    if origin is None:
        return obj is None if kind is None else isinstance(obj, kind)
    if not isinstance(obj, origin):
        return False
    if origin is dict:
        return all(is_of(k, inner[0]) and is_of(v, inner[1]) for k, v in obj.items())
    if origin is tuple and not (len(inner) == 2 and inner[1] is ...):
        return len(obj) == len(inner) and all(map(is_of, obj, inner))
    return all(is_of(item, inner[0]) for item in obj)
