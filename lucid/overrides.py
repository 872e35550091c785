"""Classes and modes that take over calls: PyTorch's `torch.overrides`.

A class with a method `__torch_function__` (or `__lucid_function__`) is asked instead of a function, a method, an attribute or
an operator of Tensor that one of its instances is passed to. A Tensor subclass that defines none gets results of its own class.

>>> class Meters(lucid.Tensor):
...     pass
>>> length = lucid.tensor([1.0, 2.0]).as_subclass(Meters)
>>> type(length + length).__name__
'Meters'
>>> class Logged(lucid.overrides.TorchFunctionMode):
...     def __torch_function__(self, func, types, args=(), kwargs=None):
...         print(lucid.overrides.resolve_name(func))
...         return func(*args, **(kwargs or {}))
>>> with Logged():
...     total = lucid.ones(2).sum()
lucid.ones
lucid.sum
"""

import functools
import types as _types
from contextlib import contextmanager

from . import _C
from ._C import (
    Tensor,
    _get_function_stack_at,
    _get_overloaded_args,  # noqa: F401 (PyTorch's names)
    _is_torch_function_mode_enabled,  # noqa: F401
    _len_torch_function_stack,
)
from ._C import _handle_torch_function as handle_torch_function
from ._C import _has_torch_function as has_torch_function
from ._C import _has_torch_function_unary as has_torch_function_unary
from ._C import _has_torch_function_variadic as has_torch_function_variadic
from ._C import _pop_torch_function_stack as _pop_mode
from ._C import _push_on_torch_function_stack as _push_mode

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_NAMESPACES = ("", "nn.functional", "linalg", "special", "fft")
_SILENT_METHODS = ("__dir__", "__hash__", "__init_subclass__", "__iter__", "__delitem__", "__new__", "__init__", "as_subclass")
_SILENT = (  # functions of the main namespace that classes are not asked about
    "as_tensor asarray tensor from_numpy from_dlpack from_file frombuffer can_cast promote_types is_tensor is_storage typename "
    "get_default_device get_default_dtype set_default_device set_default_dtype get_num_threads set_num_threads manual_seed "
    "seed initial_seed get_rng_state set_rng_state load save is_grad_enabled set_grad_enabled no_grad enable_grad arange empty "
    "eye full linspace logspace ones zeros rand randn randint randperm tril_indices triu_indices"
).split()


class TorchFunctionMode:
    """A context whose `__torch_function__` is asked instead of every function inside it. What it calls itself reaches the
    mode outside of it.

    >>> class Counter(lucid.overrides.TorchFunctionMode):
    ...     calls = 0
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         self.calls += 1
    ...         return func(*args, **(kwargs or {}))
    >>> with Counter() as counter:
    ...     x = lucid.ones(2) + 1
    >>> counter.calls
    2
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError

    def __enter__(self):
        _push_mode(self)
        return self

    def __exit__(self, *exception):
        _pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """An instance: the old spelling."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that lets every call pass.

    >>> with lucid.overrides.BaseTorchFunctionMode():
    ...     lucid.ones(2)
    tensor([1., 1.])
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _get_current_function_mode():
    n = _len_torch_function_stack()
    return _get_function_stack_at(n - 1) if n else None


def _get_current_function_mode_stack():
    return [_get_function_stack_at(i) for i in range(_len_torch_function_stack())]


@contextmanager
def _pop_mode_temporarily():
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


def is_tensor_like(inp):
    """Whether `inp` is a tensor, or an object with `__torch_function__`.

    >>> lucid.overrides.is_tensor_like(lucid.ones(1)), lucid.overrides.is_tensor_like([1.0])
    (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__") or hasattr(inp, "__lucid_function__")


def wrap_torch_function(dispatcher):
    """A decorator for functions of your own: `dispatcher` gets the arguments and returns those that may take over the call.

    >>> @lucid.overrides.wrap_torch_function(lambda a: (a,))
    ... def double(a):
    ...     return a + a
    >>> double(lucid.ones(1))
    tensor([2.])
    """

    def decorate(func):
        @functools.wraps(func)
        def call(*args, **kwargs):
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(call, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return call

    return decorate


def get_default_nowrap_functions():
    """Attributes whose tensor keeps its class: it is another one, which lives on.

    >>> lucid.Tensor.grad.__get__ in lucid.overrides.get_default_nowrap_functions()
    True
    """
    return {Tensor._base.__get__, Tensor.grad.__get__}


def _is_function(value):
    return isinstance(value, (_types.FunctionType, _types.BuiltinFunctionType, type(_C.add), _C.overridable))


def _module(namespace):
    import importlib

    import lucid

    return importlib.import_module(f"lucid.{namespace}") if namespace else lucid


def _is_public(name):
    return not name.startswith("_")


@functools.lru_cache(None)
def _tables():
    overridable, silent, names = {}, set(), {}
    for namespace in _NAMESPACES:
        module = _module(namespace)
        listed = overridable[module] = []
        for name in filter(_is_public, dir(module)):
            function = getattr(module, name)
            if not _is_function(function) or function in names:
                continue
            names[function] = f"{module.__name__}.{name}"
            asked = isinstance(function, (type(_C.add), _C.overridable)) and (namespace or name not in _SILENT)
            (listed.append if asked else silent.add)(function)
    methods = overridable[Tensor] = []
    for name, value in vars(Tensor).items():
        function = value.__get__ if hasattr(value, "__set__") else value
        if name in ("__dict__", "__doc__") or not callable(function):
            continue
        names.setdefault(function, f"{_module('').__name__}.Tensor.{name}{'.__get__' if function is not value else ''}")
        (silent.add if name in _SILENT_METHODS else methods.append)(function)
    return overridable, silent, names


def get_overridable_functions():
    """The functions that ask classes, by module; those of Tensor under Tensor.

    >>> lucid.add in lucid.overrides.get_overridable_functions()[lucid]
    True
    """
    return {owner: list(functions) for owner, functions in _tables()[0].items()}


def get_ignored_functions():
    """The public functions that do not ask classes.

    >>> lucid.zeros in lucid.overrides.get_ignored_functions()
    True
    """
    return set(_tables()[1])


def get_testing_overrides():
    """{function: a function of the same arguments that returns -1}, for tests of a class.

    >>> lucid.overrides.get_testing_overrides()[lucid.sum](lucid.ones(1))
    -1
    """
    return {function: _dummy(function) for functions in _tables()[0].values() for function in functions}


def _dummy(function):
    import inspect

    def stand_in(*args, **kwargs):
        return -1

    try:
        stand_in.__signature__ = inspect.signature(function)
    except (ValueError, TypeError):
        pass  # overloaded: no single signature
    return stand_in


def resolve_name(f):
    """The public name of a function.

    >>> lucid.overrides.resolve_name(lucid.nn.functional.softmax)
    'lucid.nn.functional.softmax'
    >>> lucid.overrides.resolve_name(lucid.Tensor.shape.__get__)
    'lucid.Tensor.shape.__get__'
    """
    return f if isinstance(f, str) else _tables()[2].get(f)


def is_tensor_method_or_property(func):
    """Whether it is a method or an attribute of Tensor.

    >>> lucid.overrides.is_tensor_method_or_property(lucid.Tensor.sum)
    True
    """
    return func in _tables()[0][Tensor] or getattr(func, "__name__", None) in ("__get__", "__set__", "__delete__")
