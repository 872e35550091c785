"""Batch normalisation folded into the layer before it: in eval mode both are linear, and so is their composition."""

import copy

from ... import _C
from ..parameter import Parameter


def _scale_and_shift(bias, mean, variance, eps, weight, shift, like):
    """The scale of a channel, and the resulting bias."""
    bias = _C.zeros_like(mean) if bias is None else bias
    weight = _C.ones_like(mean) if weight is None else weight
    shift = _C.zeros_like(mean) if shift is None else shift
    factor = _C.rsqrt(variance + eps)
    return weight * factor, Parameter(((bias - mean) * factor * weight + shift).to(like), bias.requires_grad)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of a convolution that does what a convolution and a batch normalisation did.

    transpose: the weight is of a transposed convolution, whose second dimension counts outputs.

    >>> w, b = lucid.nn.utils.fuse_conv_bn_weights(
    ...     lucid.ones(2, 1, 3), None, lucid.zeros(2), lucid.full((2,), 4.0), 0.0, None, lucid.ones(2))
    >>> w[0].detach(), b.detach()
    (tensor([[0.5000, 0.5000, 0.5000]]), tensor([1., 1.]))
    """
    scale, bias = _scale_and_shift(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, conv_w.dtype if conv_b is None else conv_b.dtype)
    shape = [1, -1] if transpose else [-1, 1]
    weight = conv_w * scale.reshape(shape + [1] * (conv_w.ndim - 2))
    return Parameter(weight.to(conv_w.dtype), conv_w.requires_grad), bias


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of a linear layer that does what a linear layer and a batch normalisation did.

    >>> w, b = lucid.nn.utils.fuse_linear_bn_weights(
    ...     lucid.ones(2, 3), None, lucid.zeros(2), lucid.full((2,), 4.0), 0.0, lucid.ones(2), lucid.zeros(2))
    >>> float(w[0, 0]), b.detach()
    (0.5, tensor([0., 0.]))
    """
    dtype = linear_w.dtype if linear_b is None else linear_b.dtype
    scale, bias = _scale_and_shift(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, dtype)
    return Parameter(linear_w * scale.unsqueeze(-1).to(linear_w.dtype), linear_w.requires_grad), bias


def _ready(layer, bn):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    return copy.deepcopy(layer)


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A convolution that does what a convolution and a batch normalisation, both in eval mode, do.

    >>> conv, bn = lucid.nn.Conv2d(1, 2, 3).eval(), lucid.nn.BatchNorm2d(2).eval()
    >>> x = lucid.rand(1, 1, 5, 5)
    >>> bool(((lucid.nn.utils.fuse_conv_bn_eval(conv, bn)(x) - bn(conv(x))).abs() < 1e-5).all())
    True
    """
    fused = _ready(conv, bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_eval(linear, bn):
    """A linear layer that does what a linear layer and a batch normalisation, both in eval mode, do.

    >>> linear, bn = lucid.nn.Linear(3, 2).eval(), lucid.nn.BatchNorm1d(2).eval()
    >>> x = lucid.rand(4, 3)
    >>> bool(((lucid.nn.utils.fuse_linear_bn_eval(linear, bn)(x) - bn(linear(x))).abs() < 1e-5).all())
    True
    """
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got linear.out_features="
            f"{linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = _ready(linear, bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]
