"""Activations as modules."""

from ... import _C
from .. import functional as F
from ..parameter import Parameter
from ._layer import layer
from .module import Module

# name, function of nn.functional, settings, repr, what it does
_ROWS = [
    (
        "Threshold",
        "threshold",
        "threshold, value, inplace=False",
        "threshold={threshold}, value={value}{inplace}",
        "x where it is greater than threshold, else value.",
    ),
    ("ReLU", "relu", "inplace=False", "{inplace}", "The greater of x and 0."),
    ("ReLU6", "relu6", "inplace=False", "{inplace}", "x, but not outside [0, 6]."),
    ("Sigmoid", "sigmoid", "", "", "1 / (1 + exp(-x))."),
    ("Hardsigmoid", "hardsigmoid", "inplace=False", "", "A sigmoid of straight lines."),
    ("Tanh", "tanh", "", "", "The hyperbolic tangent."),
    ("SiLU", "silu", "inplace=False", "{inplace}", "x times its sigmoid."),
    ("Mish", "mish", "inplace=False", "{inplace}", "x tanh(softplus(x))."),
    ("Hardswish", "hardswish", "inplace=False", "", "SiLU of straight lines."),
    ("ELU", "elu", "alpha=1.0, inplace=False", "alpha={alpha}{inplace}", "x above 0, alpha (exp(x) - 1) below."),
    ("CELU", "celu", "alpha=1.0, inplace=False", "alpha={alpha}{inplace}", "x above 0, alpha (exp(x / alpha) - 1) below."),
    ("SELU", "selu", "inplace=False", "{inplace}", "A scaled ELU that keeps mean 0 and variance 1."),
    ("GLU", "glu", "dim=-1", "dim={dim}", "The first half times the sigmoid of the second."),
    (
        "GELU",
        "gelu",
        "approximate='none'",
        "approximate={approximate!r}",
        "x times the part of a normal distribution below x.",
        "input, approximate=self.approximate",
    ),
    ("Hardshrink", "hardshrink", "lambd=0.5", "{lambd}", "x, but 0 within [-lambd, lambd]."),
    (
        "LeakyReLU",
        "leaky_relu",
        "negative_slope=0.01, inplace=False",
        "negative_slope={negative_slope}{inplace}",
        "x above 0, negative_slope x below.",
    ),
    ("LogSigmoid", "logsigmoid", "", "", "The logarithm of the sigmoid."),
    (
        "Softplus",
        "softplus",
        "beta=1.0, threshold=20.0",
        "beta={beta}, threshold={threshold}",
        "log(1 + exp(beta x)) / beta: a smooth ReLU.",
    ),
    ("Softshrink", "softshrink", "lambd=0.5", "{lambd}", "x moved towards 0 by lambd."),
    ("Softsign", "softsign", "", "", "x / (1 + |x|)."),
    ("Tanhshrink", "tanhshrink", "", "", "x - tanh(x)."),
]
globals().update({row[0]: layer(*row[:5], call=row[5] if len(row) > 5 else None) for row in _ROWS})


class Hardtanh(Module):
    """x, but not outside [min_val, max_val].

    >>> lucid.nn.Hardtanh()(lucid.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None):
        super().__init__()
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input):  # noqa: A002
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}{', inplace=True' if self.inplace else ''}"


class RReLU(Module):
    """Leaky ReLU whose slope below 0 is drawn between lower and upper while training.

    >>> lucid.nn.RReLU().eval()(lucid.tensor([2.0, -24.0]))
    tensor([ 2.0000, -5.5000])
    """

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input):  # noqa: A002
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"


class PReLU(Module):
    """Leaky ReLU whose slope below 0 is learnt: one number, or one per channel.

    >>> lucid.nn.PReLU(init=0.5)(lucid.tensor([2.0, -4.0]))
    tensor([ 2., -2.], grad_fn=<PreluKernelBackward0>)
    """

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(_C.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """Set all slopes to `init`."""
        self.weight.data.fill_(self.init)

    def forward(self, input):  # noqa: A002
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class _OverDim(Module):
    """A function over one dimension, which `dim` names."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmin(_OverDim):
    """Softmax of -x: the smallest gets the most."""

    def forward(self, input):  # noqa: A002
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_OverDim):
    """Positive numbers that sum to 1 along a dimension.

    >>> lucid.nn.Softmax(dim=0)(lucid.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input):  # noqa: A002
        return F.softmax(input, self.dim, _stacklevel=5)


class LogSoftmax(_OverDim):
    """The logarithm of softmax."""

    def forward(self, input):  # noqa: A002
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of images."""

    def forward(self, input):  # noqa: A002
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


__all__ = [*(row[0] for row in _ROWS), "Hardtanh", "RReLU", "PReLU", "Softmin", "Softmax", "LogSoftmax", "Softmax2d"]
