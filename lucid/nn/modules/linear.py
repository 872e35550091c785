"""Linear layers."""

import math

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module


class Identity(Module):
    """The input as it is; takes any arguments and ignores them, so that it can stand for any layer.

    >>> lucid.nn.Identity(54, unused=True)(lucid.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):  # noqa: A002
        return input


def uniform_like_pytorch(weight, bias, fan_in):
    """PyTorch's initialisation of linear and convolution layers: uniform within 1 / sqrt(fan_in), the weight drawn first.

    >>> from lucid.nn.modules.linear import uniform_like_pytorch
    >>> w, b = lucid.empty(3, 4), lucid.empty(3)
    >>> uniform_like_pytorch(w, b, 4); float(b.abs().max()) <= 0.5
    True
    """
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


class Linear(Module):
    """y = x W^T + b.

    >>> layer = lucid.nn.Linear(20, 30)
    >>> tuple(layer(lucid.ones(128, 20)).shape)
    (128, 30)
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(_C.empty((out_features, in_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias anew."""
        uniform_like_pytorch(self.weight, self.bias, self.weight.shape[1])

    def forward(self, input):  # noqa: A002
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """Linear under the name that PyTorch's attention gives its output layer.

    >>> lucid.nn.MultiheadAttention(4, 2).out_proj
    NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)
    """


class Bilinear(Module):
    """y = x1^T A x2 + b.

    >>> tuple(lucid.nn.Bilinear(20, 30, 40)(lucid.ones(5, 20), lucid.ones(5, 30)).shape)
    (5, 40)
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(self, in1_features, in2_features, out_features, bias=True, device=None, dtype=None):
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(_C.empty((out_features, in1_features, in2_features), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias anew."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1, input2):
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self):
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class FusedLinear(Linear):
    """A linear layer with a fused activation, which is applied while the result is in the cache.

    activation: "relu", "gelu", "gelu_tanh" (the approximation by tanh) or "silu".

    >>> layer = lucid.nn.FusedLinear(2, 3, activation="relu")
    >>> bool((layer(lucid.ones(4, 2)) >= 0).all())
    True
    """

    _ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")

    def __init__(self, in_features, out_features, activation="relu", bias=True, device=None, dtype=None):
        if activation not in self._ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(self._ACTIVATIONS)}, not {activation!r}")
        super().__init__(in_features, out_features, bias, device, dtype)
        self.activation = activation

    def forward(self, input):  # noqa: A002
        if self.activation == "relu":  # its gradient needs no second product
            return F.fused_linear_relu(input, self.weight, self.bias)
        return F.fused_linear(input, self.weight, self.bias, self.activation)

    def extra_repr(self):
        return f"{super().extra_repr()}, activation={self.activation!r}"


__all__ = ["Bilinear", "FusedLinear", "Identity", "Linear", "NonDynamicallyQuantizableLinear"]
