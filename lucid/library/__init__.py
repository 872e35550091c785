"""Ops written in Python: `custom_op`, and `Library` to define, implement and extend ops by name.

>>> @lucid.library.custom_op("mine::twice", mutates_args=())
... def twice(x: lucid.Tensor) -> lucid.Tensor:
...     return x + x
>>> twice(lucid.ones(1)), lucid.ops.mine.twice(lucid.ones(1))
(tensor([2.]), tensor([2.]))
"""

from .._ops.custom import CustomOpDef, custom_op
from .._ops.registry import Library, infer_schema, opcheck, registered

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]


def _name(op):
    return op if isinstance(op, str) else getattr(op, "_qualname", None) or op._name


def define(qualname, schema, *, lib=None, tags=()):
    """Declare an op: its name and its arguments.

    >>> lucid.library.define("mine::thrice", "(Tensor x) -> Tensor")
    >>> lucid.library.impl("mine::thrice", "cpu")(lambda x: x * 3)(lucid.ones(1))
    tensor([3.])
    """
    registered(qualname, make=True).schema = f"{qualname}{schema}"


def impl(qualname, types, func=None, *, lib=None):
    """Set the function that runs for a device ("cpu"), or for all ("default").

    >>> lucid.library.define("mine::half", "(Tensor x) -> Tensor")
    >>> _ = lucid.library.impl("mine::half", "default", lambda x: x / 2)
    >>> lucid.ops.mine.half(lucid.ones(1))
    tensor([0.5000])
    """

    def use(function):
        for kind in (types,) if isinstance(types, str) else types:
            registered(_name(qualname), make=True).implement(kind, function)
        return function

    return use if func is None else use(func)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Set the function of a custom op for a device.

    >>> @lucid.library.custom_op("mine::same", mutates_args=())
    ... def same(x: lucid.Tensor) -> lucid.Tensor:
    ...     return x.clone()
    >>> @lucid.library.register_kernel("mine::same", "cpu")
    ... def _(x):
    ...     return x * 1
    >>> same(lucid.ones(1))
    tensor([1.])
    """
    return impl(op, "default" if device_types is None else device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """Set the function that runs for tensors on device "meta": the shape and dtype of the result alone.

    >>> @lucid.library.custom_op("mine::copy", mutates_args=())
    ... def copy(x: lucid.Tensor) -> lucid.Tensor:
    ...     return x.clone()
    >>> @lucid.library.register_fake("mine::copy")
    ... def _(x):
    ...     return lucid.empty_like(x)
    >>> copy(lucid.ones(2, device="meta")).shape
    lucid.Size([2])
    """

    def use(function):
        registered(_name(op), make=True).implement("meta", function)
        return function

    return use if func is None else use(func)


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Set the gradient of an op: backward(ctx, *grads), after setup_context(ctx, inputs, output).

    >>> @lucid.library.custom_op("mine::square", mutates_args=())
    ... def square(x: lucid.Tensor) -> lucid.Tensor:
    ...     return x * x
    >>> def keep(ctx, inputs, output):
    ...     ctx.save_for_backward(inputs[0])
    >>> lucid.library.register_autograd("mine::square", lambda ctx, g: 2 * ctx.saved_tensors[0] * g, setup_context=keep)
    >>> x = lucid.tensor(3.0, requires_grad=True)
    >>> square(x).backward()
    >>> x.grad
    tensor(6.)
    """
    registered(_name(op), make=True).differentiate(backward, setup_context)


def register_vmap(op, func=None, /, *, lib=None):
    """Set how an op runs on a batch: func(info, in_dims, *args) gives the results and where their batches are.

    >>> @lucid.library.custom_op("mine::double", mutates_args=())
    ... def double(x: lucid.Tensor) -> lucid.Tensor:
    ...     return x + x
    >>> _ = lucid.library.register_vmap("mine::double", lambda info, in_dims, x: (double(x), in_dims[0]))
    """

    def use(function):
        registered(_name(op), make=True).vmap = function
        return function

    return use if func is None else use(func)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Cast floating inputs of an op under autocast.

    >>> @lucid.library.custom_op("mine::whole", mutates_args=())
    ... def whole(x: lucid.Tensor) -> lucid.Tensor:
    ...     return x.clone()
    >>> lucid.library.register_autocast("mine::whole", "cpu", lucid.float32)
    """
    registered(_name(op), make=True).casts[device_type] = cast_inputs


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Raises: there is no dispatch below autograd.

    >>> lucid.library.register_torch_dispatch("mine::op", None)
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    raise NotImplementedError("library.register_torch_dispatch is not in Lucid: there is no dispatch below autograd")


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """`custom_op` for functions that would call Triton.

    >>> lucid.library.triton_op("mine::t", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")(lucid.ones(1))
    tensor([1.])
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(kernel):
    """The kernel itself.

    >>> lucid.library.wrap_triton(abs) is abs
    True
    """
    return kernel


def fallthrough_kernel():
    """Stands for "the next function": the op's own.

    >>> lucid.library.fallthrough_kernel()
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def get_ctx():
    """Raises: sizes that depend on values are plain numbers here.

    >>> lucid.library.get_ctx()
    Traceback (most recent call last):
    RuntimeError: ...
    """
    raise RuntimeError("library.get_ctx: shapes are plain numbers; there is no context of a fake run")
