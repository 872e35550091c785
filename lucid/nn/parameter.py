"""Parameters: tensors that a model owns and training changes."""

from .._C import Tensor


class Parameter(Tensor):
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
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()


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
