"""Gradients of convolutions as functions of their own.

>>> x, w = lucid.ones(1, 1, 4), lucid.ones(1, 1, 3)
>>> lucid.nn.grad.conv1d_input(x.shape, w, lucid.ones(1, 1, 2))
tensor([[[1., 2., 2., 1.]]])
>>> lucid.nn.grad.conv1d_weight(x, w.shape, lucid.ones(1, 1, 2))
tensor([[[2., 2., 2.]]])
"""

from .. import _C
from ..autograd import grad
from ..autograd.grad_mode import enable_grad

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(conv, missing, operands, grad_output, place, options):
    """The gradient of a convolution for one operand; its values do not matter, because the convolution is linear in it."""
    with enable_grad():
        x = grad_output.new_zeros(missing).requires_grad_()
        pair = (x, *operands) if place == 0 else (*operands, x)
        y = conv(*pair, None, *options)
    recorded = _C._grad_enabled() and (grad_output.requires_grad or any(t.requires_grad for t in operands))
    return grad(y, x, grad_output, create_graph=recorded)[0]


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d for an input of this size.

    >>> lucid.nn.grad.conv1d_input((1, 1, 3), lucid.ones(1, 1, 2), lucid.ones(1, 1, 2))
    tensor([[[1., 2., 1.]]])
    """
    return _gradient(_C.conv1d, input_size, (weight,), grad_output, 0, (stride, padding, dilation, groups))


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):  # noqa: A002
    """The gradient of conv1d for a weight of this size.

    >>> lucid.nn.grad.conv1d_weight(lucid.ones(1, 1, 3), (1, 1, 2), lucid.ones(1, 1, 2))
    tensor([[[2., 2.]]])
    """
    return _gradient(_C.conv1d, weight_size, (input,), grad_output, 1, (stride, padding, dilation, groups))


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d for an input of this size.

    >>> lucid.nn.grad.conv2d_input((1, 1, 1, 3), lucid.ones(1, 1, 1, 2), lucid.ones(1, 1, 1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    return _gradient(_C.conv2d, input_size, (weight,), grad_output, 0, (stride, padding, dilation, groups))


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):  # noqa: A002
    """The gradient of conv2d for a weight of this size.

    >>> lucid.nn.grad.conv2d_weight(lucid.ones(1, 1, 1, 3), (1, 1, 1, 2), lucid.ones(1, 1, 1, 2))
    tensor([[[[2., 2.]]]])
    """
    return _gradient(_C.conv2d, weight_size, (input,), grad_output, 1, (stride, padding, dilation, groups))


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d for an input of this size.

    >>> lucid.nn.grad.conv3d_input((1, 1, 1, 1, 3), lucid.ones(1, 1, 1, 1, 2), lucid.ones(1, 1, 1, 1, 2))
    tensor([[[[[1., 2., 1.]]]]])
    """
    return _gradient(_C.conv3d, input_size, (weight,), grad_output, 0, (stride, padding, dilation, groups))


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):  # noqa: A002
    """The gradient of conv3d for a weight of this size.

    >>> lucid.nn.grad.conv3d_weight(lucid.ones(1, 1, 1, 1, 3), (1, 1, 1, 1, 2), lucid.ones(1, 1, 1, 1, 2))
    tensor([[[[[2., 2.]]]]])
    """
    return _gradient(_C.conv3d, weight_size, (input,), grad_output, 1, (stride, padding, dilation, groups))
