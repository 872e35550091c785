"""`custom_op`."""

from .registry import infer_schema, registered


class CustomOpDef:
    """An op made of a Python function: called as the function, with a gradient and a function for shapes of its own.

    >>> @lucid.library.custom_op("mine::cube", mutates_args=())
    ... def cube(x: lucid.Tensor) -> lucid.Tensor:
    ...     return x**3
    >>> cube.register_autograd(lambda ctx, g: g * 12)
    >>> x = lucid.tensor(2.0, requires_grad=True)
    >>> cube(x).backward()
    >>> x.grad
    tensor(12.)
    """

    def __init__(self, namespace, name, schema, fn, mutates):
        self._namespace, self._name, self._qualname = namespace, name, f"{namespace}::{name}"
        self._init_fn, self._schema, self._mutates = fn, schema, mutates
        self.__name__, self.__doc__, self.__module__ = name, fn.__doc__, fn.__module__
        self._op = registered(self._qualname, make=True)
        self._op.functions.clear()
        self._op.schema = self._qualname + schema
        self._op.backward = self._op.setup = None

    def __call__(self, *args, **kwargs):
        return self._op(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    @property
    def _opoverload(self):
        from .packets import ops

        return getattr(getattr(ops, self._namespace), self._name).default

    def register_kernel(self, device_types, fn=None, /):
        """Set the function of a device."""

        def use(function):
            for kind in (device_types,) if isinstance(device_types, str) or device_types is None else device_types:
                self._op.implement("default" if kind is None else kind, function)
            return function

        return use if fn is None else use(fn)

    def register_fake(self, fn, /):
        """Set the function for shapes alone."""
        self._op.implement("meta", fn)
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """Set the gradient."""
        self._op.differentiate(backward, setup_context)

    def register_vmap(self, func=None):
        """Set how it runs on a batch."""

        def use(function):
            self._op.vmap = function
            return function

        return use if func is None else use(func)

    def register_autocast(self, device_type, cast_inputs):
        """Cast floating inputs under autocast."""
        self._op.casts[device_type] = cast_inputs

    def set_kernel_enabled(self, device_type, enabled=True):
        """Raises: functions of an op are replaced by `register_kernel`."""
        raise NotImplementedError("CustomOpDef.set_kernel_enabled is not in Lucid: register_kernel replaces a function")


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """An op of a Python function, which autograd does not look into; a decorator or a call.

    >>> @lucid.library.custom_op("mine::negative", mutates_args=())
    ... def negative(x: lucid.Tensor) -> lucid.Tensor:
    ...     return -x
    >>> lucid.ops.mine.negative(lucid.ones(1))
    tensor([-1.])
    """

    def make(function):
        space, _, short = name.partition("::")
        if not short:
            raise ValueError(f"custom_op: expected a name as 'namespace::name', got {name!r}")
        text = schema or infer_schema(function, mutates_args=mutates_args)
        made = CustomOpDef(space, short, text, function, mutates_args)
        made.register_kernel(device_types)(function)
        return made

    return make if fn is None else make(fn)
