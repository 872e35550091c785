"""Ops that programs define: functions by device, a gradient, a way through vmap."""

import inspect
import typing

from .. import _C
from ..autograd import Function

OPS = {}  # by "namespace::name"


def registered(qualname, make=False):
    """The op of a name.

    >>> from lucid._ops.registry import registered
    >>> registered("nobody::nothing")
    Traceback (most recent call last):
    RuntimeError: ...
    """
    qualname = qualname.partition(".")[0] if "::" in qualname else qualname
    if "::" not in qualname:
        raise ValueError(f"expected an op's name as 'namespace::name', got {qualname!r}")
    if qualname not in OPS:
        if not make:
            raise RuntimeError(f"there is no op {qualname}")
        OPS[qualname] = Registered(qualname)
    return OPS[qualname]


_KEYS = {
    "CompositeExplicitAutograd": "default",
    "CompositeImplicitAutograd": "composite",
    "Autograd": "autograd",
    "AutogradCPU": "autograd",
    "AutogradCUDA": "autograd",
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "": "default",
}


class _Differentiated(Function):
    """One call of an op that has a gradient of its own."""

    @staticmethod
    def forward(ctx, op, names, *inputs):
        ctx.op = op
        positional = len(inputs) - len(names)
        result = op.run(inputs[:positional], dict(zip(names, inputs[positional:])))
        if op.setup is not None:
            flat = inputs[:positional]
            if names:
                op.setup(ctx, flat, dict(zip(names, inputs[positional:])), result)
            else:
                op.setup(ctx, flat, result)
        return result

    @staticmethod
    def backward(ctx, *grads):
        result = ctx.op.backward(ctx, *grads)
        return (None, None, *(result if isinstance(result, (tuple, list)) else (result,)))


class Registered:
    """An op of a program.

    >>> lucid.library.define("mine::op", "(Tensor x) -> Tensor")
    >>> from lucid._ops.registry import registered
    >>> registered("mine::op").schema
    'mine::op(Tensor x) -> Tensor'
    """

    def __init__(self, name):
        self._qualname, self.schema = name, None
        self.__name__ = name.partition("::")[2]
        self.functions, self.backward, self.setup, self.vmap, self.casts = {}, None, None, None, {}

    def implement(self, kind, function):
        """Set the function of a device, or of a key of PyTorch's dispatcher."""
        self.functions[_KEYS.get(kind, kind)] = function

    def differentiate(self, backward, setup):
        """Set the gradient."""
        self.backward, self.setup = backward, setup

    def run(self, args, kwargs):
        """Call the function for the device of the arguments; autograd does not look inside."""
        device = next((a.device.type for a in (*args, *kwargs.values()) if isinstance(a, _C.Tensor)), "cpu")
        function = self.functions.get(device) or (None if device == "meta" else self.functions.get("default"))
        function = function or self.functions.get("default")
        if function is None:
            raise NotImplementedError(f"Could not run '{self._qualname}': it has no function for {device!r}")
        return function(*args, **kwargs)

    def __call__(self, *args, **kwargs):
        if "composite" in self.functions:
            return self.functions["composite"](*args, **kwargs)
        if "autograd" in self.functions:
            return self.functions["autograd"](*args, **kwargs)
        if self.casts:
            args = self._cast(args)
        if self.backward is None:
            return self._unrecorded(args, kwargs)
        args, kwargs = self._whole(args, kwargs)
        return _Differentiated.apply(self, tuple(kwargs), *args, *kwargs.values())

    def _whole(self, args, kwargs):
        """All arguments, with the defaults of the function: what `setup_context` gets."""
        function = self.functions.get("default") or next(iter(self.functions.values()), None)
        try:
            bound = inspect.signature(function).bind(*args, **kwargs)
        except (TypeError, ValueError):
            return args, kwargs
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _cast(self, args):
        from ..amp import _state

        for device, dtype in self.casts.items():
            if _state.is_autocast_enabled(device):
                args = [a.to(dtype) if isinstance(a, _C.Tensor) and a.dtype.is_floating_point else a for a in args]
        return args

    def _unrecorded(self, args, kwargs):
        wants = any(isinstance(a, _C.Tensor) and a.requires_grad for a in (*args, *kwargs.values()))
        if not wants or not _C._grad_enabled():
            return self.run(args, kwargs)
        return _NotDifferentiable.apply(self, tuple(kwargs), *args, *kwargs.values())

    def __repr__(self):
        return f"<op {self._qualname}>"


class _NotDifferentiable(_Differentiated):
    """An op without a gradient: the error comes in backward, as in PyTorch."""

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError(
            f"Trying to backward through {ctx.op._qualname} but no autograd formula was registered. "
            f"If you need autograd, use register_autograd({ctx.op._qualname!r}, backward, setup_context=...)"
        )


_TYPES = {
    _C.Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    _C.dtype: "ScalarType",
    _C.device: "Device",
    complex: "complex",
}


def _type_text(annotation):
    if annotation in _TYPES:
        return _TYPES[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if type(None) in inner:
        return _type_text(next(a for a in inner if a is not type(None))) + "?"
    if origin in (list, tuple) or getattr(origin, "__name__", "") == "Sequence":
        return (_type_text(inner[0]) if inner else "Tensor") + "[]"
    if inner:
        return "Scalar"
    raise ValueError(f"infer_schema: unsupported type {annotation!r}; give a schema")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None):
    """The schema of an op, from the annotations of a function.

    >>> def f(x: lucid.Tensor, n: int = 2) -> lucid.Tensor: ...
    >>> lucid.library.infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n=2) -> Tensor'
    """
    hints = typing.get_type_hints(prototype_function)
    parts, keyword_only = [], False
    for number, (name, parameter) in enumerate(inspect.signature(prototype_function).parameters.items()):
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation")
        text = _type_text(hints[name])
        if mutates_args == "unknown" or name in mutates_args:
            text = text.replace("Tensor", f"Tensor(a{number}!)", 1)
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}".replace("'", '"')
        parts.append(f"{text} {name}{default}")
    result = hints.get("return")
    if result in (None, type(None)):
        returns = "()"
    elif typing.get_origin(result) is tuple:
        returns = f"({', '.join(map(_type_text, typing.get_args(result)))})"
    else:
        returns = _type_text(result)
    return f"{op_name or ''}({', '.join(parts)}) -> {returns}"


class Library:
    """Ops of a namespace that are defined ("DEF"), added to ("FRAGMENT") or given functions ("IMPL").

    >>> mine = lucid.library.Library("mylib", "DEF")
    >>> mine.define("plus_one(Tensor x) -> Tensor")
    'plus_one'
    >>> mine.impl("plus_one", lambda x: x + 1, "CPU")
    >>> lucid.ops.mylib.plus_one(lucid.ones(1))
    tensor([2.])
    """

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def _qualified(self, op):
        name = op if isinstance(op, str) else op.__name__
        return name if "::" in name else f"{self.ns}::{name}"

    def define(self, schema, alias_analysis="", *, tags=()):
        """Declare an op by its schema; its name."""
        name = schema.partition("(")[0].strip()
        registered(self._qualified(name), make=True).schema = f"{self.ns}::{schema}"
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """Set a function of an op."""
        name = self._qualified(op_name)
        if name.startswith("aten::"):
            raise NotImplementedError(f"Library.impl: {name} is an op of the engine, which cannot be replaced")
        registered(name, make=True).implement(dispatch_key or self.dispatch_key, fn)

    def _register_fake(self, op_name, fn, _stacklevel=1, *, allow_override=False):
        registered(self._qualified(op_name), make=True).implement("meta", fn)

    def _destroy(self):
        for name in [n for n in OPS if n.startswith(self.ns + "::")]:
            del OPS[name]


def opcheck(op, args, kwargs=None, *, test_utils=(), raise_exception=True, atol=None, rtol=None):
    """Check that an op's function for shapes alone agrees with what it gives; a dict of the checks done.

    >>> @lucid.library.custom_op("mine::checked", mutates_args=())
    ... def checked(x: lucid.Tensor) -> lucid.Tensor:
    ...     return x.clone()
    >>> _ = checked.register_fake(lambda x: lucid.empty_like(x))
    >>> lucid.library.opcheck(checked, (lucid.ones(2),))
    {'test_faketensor': 'SUCCESS'}
    """
    if test_utils or atol is not None or rtol is not None:
        raise NotImplementedError("opcheck: shapes and dtypes alone are compared; test_utils, atol and rtol are not supported")
    kwargs = kwargs or {}
    result = op(*args, **kwargs)
    op = registered(getattr(op, "_qualname", None) or op._packet._qualname)
    if "meta" not in op.functions:
        return {"test_faketensor": "SKIPPED"}
    shadow = op.functions["meta"](*(a.to("meta") if isinstance(a, _C.Tensor) else a for a in args), **kwargs)
    for real, fake in zip(*((r if isinstance(r, (tuple, list)) else (r,)) for r in (result, shadow))):
        if isinstance(real, _C.Tensor) and (real.shape != fake.shape or real.dtype != fake.dtype):
            message = (
                f"opcheck: {op._qualname} gives {real.dtype} {tuple(real.shape)}, its fake {fake.dtype} {tuple(fake.shape)}"
            )
            if raise_exception:
                raise AssertionError(message)
            return {"test_faketensor": message}
    return {"test_faketensor": "SUCCESS"}
