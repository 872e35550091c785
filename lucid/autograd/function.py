"""Differentiable functions of your own."""

from .. import _C
from .._C import Function, FunctionCtx
from .grad_mode import no_grad

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class _Once(Function):
    """The identity, with a backward that raises."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def _once(x):
    return _Once.apply(x.detach().requires_grad_()) if isinstance(x, _C.Tensor) else x


def once_differentiable(backward):
    """For a `Function.backward` that cannot be differentiated itself: it runs unrecorded, and differentiating its results
    raises.

    >>> class Square(lucid.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     @lucid.autograd.function.once_differentiable
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * g
    >>> x = lucid.tensor([3.0], requires_grad=True)
    >>> Square.apply(x).backward(); x.grad
    tensor([6.])
    """
    import functools

    @functools.wraps(backward)
    def run(ctx, *grads):
        with no_grad():
            results = backward(ctx, *grads)
        if not _C._grad_enabled() or not any(isinstance(g, _C.Tensor) and g.requires_grad for g in grads):
            return results
        return tuple(map(_once, results)) if isinstance(results, tuple) else _once(results)

    return run
