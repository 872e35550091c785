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
