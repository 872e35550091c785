"""Parameters: tensors that a model owns and training changes."""

from .._C import Tensor, _disabled_torch_function_impl


class _IsParameter(type(Tensor)):
    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_IsParameter):
    """A tensor to be trained. It requires grad from the start, also when made inside `no_grad`.

    >>> p = lucid.nn.Parameter(lucid.tensor([1.0, 2.0]))
    >>> p
    Parameter containing:
    tensor([1., 2.], requires_grad=True)
    >>> (p * 2).sum().backward(); p.grad
    tensor([2., 2.])
    """

    _is_parameter = True

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            from .._C import empty

            data = empty(0)
        if type(data) is not Tensor and not issubclass(type(data), cls) and isinstance(data, Tensor):
            return cls._of_class(data, requires_grad)
        return Tensor._make_subclass(cls, data, requires_grad)

    @staticmethod
    def _of_class(data, requires_grad):
        """A parameter of another class of tensors stays an instance of that class."""
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(t).__name__} was found instead. To use the type as a "
                "Parameter, please correct the detach() semantics defined by its __torch_function__ implementation."
            )
        t._is_param = True
        return t

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    __torch_function__ = _disabled_torch_function_impl  # results are plain tensors


class _IsBuffer(type(Tensor)):
    def __instancecheck__(cls, instance):
        return type.__instancecheck__(cls, instance) or isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_IsBuffer):
    """A tensor that is part of a module's state but is not trained: setting it as an attribute registers it.

    >>> m = lucid.nn.Module()
    >>> m.scale = lucid.nn.Buffer(lucid.ones(1))
    >>> list(m.state_dict())
    ['scale']
    """

    def __new__(cls, data=None, *, persistent=True):
        from .._C import empty

        data = empty(0) if data is None else data
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent, t._is_buffer = persistent, True
        return t

    __torch_function__ = _disabled_torch_function_impl


def is_lazy(value):
    """Whether a parameter or buffer gets its shape at the first call.

    >>> lucid.nn.parameter.is_lazy(lucid.nn.LazyLinear(3).weight)
    True
    """
    return getattr(type(value), "_is_uninitialized", False)


def __getattr__(name):
    # The class overrides every op, and once it exists all ops must check for it: so it is made at first use.
    if name in ("UninitializedParameter", "UninitializedBuffer"):
        from . import _uninitialized

        return getattr(_uninitialized, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
