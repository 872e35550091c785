"""`Variable`, the wrapper of tensors in old PyTorch versions."""

from .._C import Tensor, empty


class _Variable(type):
    def __instancecheck__(cls, value):
        return isinstance(value, Tensor)

    def __call__(cls, data=None, requires_grad=False, volatile=None):
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if volatile:
            from warnings import warn

            warn("volatile was removed (Variable.volatile is always False), please use no_grad", stacklevel=2)
        return (empty(0) if data is None else data.detach()).requires_grad_(requires_grad)


class Variable(metaclass=_Variable):
    """Deprecated: returns a tensor that shares the data's memory, with `requires_grad` as given.

    >>> x = lucid.autograd.Variable(lucid.ones(2), requires_grad=True)
    >>> x, isinstance(x, lucid.Tensor), isinstance(x, lucid.autograd.Variable)
    (tensor([1., 1.], requires_grad=True), True, True)
    """
