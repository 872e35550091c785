"""Activations as modules."""

from ... import _C
from .. import functional as F
from ..parameter import Parameter
from ._base.layer import layer
from .module import Module

# name, function of nn.functional, settings, repr, what it does
_ROWS = [
    (
        "Threshold",
        "threshold",
        "threshold, value, inplace=False",
        "threshold={threshold}, value={value}{inplace}",
        "x where it is greater than threshold, else value."
        "\n\n>>> lucid.nn.Threshold(0.1, 20.0)(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([20.0000,  0.5000,  2.0000])",
    ),
    (
        "ReLU",
        "relu",
        "inplace=False",
        "{inplace}",
        "The greater of x and 0.\n\n>>> lucid.nn.ReLU()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([0.0000, 0.5000, 2.0000])",
    ),
    (
        "ReLU6",
        "relu6",
        "inplace=False",
        "{inplace}",
        "x, but not outside [0, 6].\n\n>>> lucid.nn.ReLU6()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([0.0000, 0.5000, 2.0000])",
    ),
    (
        "Sigmoid",
        "sigmoid",
        "",
        "",
        "1 / (1 + exp(-x)).\n\n>>> lucid.nn.Sigmoid()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([0.2689, 0.6225, 0.8808])",
    ),
    (
        "Hardsigmoid",
        "hardsigmoid",
        "inplace=False",
        "",
        "A sigmoid of straight lines."
        "\n\n>>> lucid.nn.Hardsigmoid()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([0.3333, 0.5833, 0.8333])",
    ),
    (
        "Tanh",
        "tanh",
        "",
        "",
        "The hyperbolic tangent.\n\n>>> lucid.nn.Tanh()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.7616,  0.4621,  0.9640])",
    ),
    (
        "SiLU",
        "silu",
        "inplace=False",
        "{inplace}",
        "x times its sigmoid.\n\n>>> lucid.nn.SiLU()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.2689,  0.3112,  1.7616])",
    ),
    (
        "Mish",
        "mish",
        "inplace=False",
        "{inplace}",
        "x tanh(softplus(x)).\n\n>>> lucid.nn.Mish()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.3034,  0.3752,  1.9440])",
    ),
    (
        "Hardswish",
        "hardswish",
        "inplace=False",
        "",
        "SiLU of straight lines."
        "\n\n>>> lucid.nn.Hardswish()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.3333,  0.2917,  1.6667])",
    ),
    (
        "ELU",
        "elu",
        "alpha=1.0, inplace=False",
        "alpha={alpha}{inplace}",
        "x above 0, alpha (exp(x) - 1) below."
        "\n\n>>> lucid.nn.ELU()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.6321,  0.5000,  2.0000])",
    ),
    (
        "CELU",
        "celu",
        "alpha=1.0, inplace=False",
        "alpha={alpha}{inplace}",
        "x above 0, alpha (exp(x / alpha) - 1) below."
        "\n\n>>> lucid.nn.CELU()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.6321,  0.5000,  2.0000])",
    ),
    (
        "SELU",
        "selu",
        "inplace=False",
        "{inplace}",
        "A scaled ELU that keeps mean 0 and variance 1."
        "\n\n>>> lucid.nn.SELU()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-1.1113,  0.5254,  2.1014])",
    ),
    (
        "GLU",
        "glu",
        "dim=-1",
        "dim={dim}",
        "The first half times the sigmoid of the second.\n\n>>> lucid.nn.GLU()(lucid.tensor([2.0, 0.0]))\ntensor([1.])",
    ),
    (
        "GELU",
        "gelu",
        "approximate='none'",
        "approximate={approximate!r}",
        "x times the part of a normal distribution below x."
        "\n\n>>> lucid.nn.GELU()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.1587,  0.3457,  1.9545])",
        "input, approximate=self.approximate",
    ),
    (
        "Hardshrink",
        "hardshrink",
        "lambd=0.5",
        "{lambd}",
        "x, but 0 within [-lambd, lambd]."
        "\n\n>>> lucid.nn.Hardshrink()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-1.,  0.,  2.])",
    ),
    (
        "LeakyReLU",
        "leaky_relu",
        "negative_slope=0.01, inplace=False",
        "negative_slope={negative_slope}{inplace}",
        "x above 0, negative_slope x below."
        "\n\n>>> lucid.nn.LeakyReLU()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.0100,  0.5000,  2.0000])",
    ),
    (
        "LogSigmoid",
        "logsigmoid",
        "",
        "",
        "The logarithm of the sigmoid."
        "\n\n>>> lucid.nn.LogSigmoid()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-1.3133, -0.4741, -0.1269])",
    ),
    (
        "Softplus",
        "softplus",
        "beta=1.0, threshold=20.0",
        "beta={beta}, threshold={threshold}",
        "log(1 + exp(beta x)) / beta: a smooth ReLU."
        "\n\n>>> lucid.nn.Softplus()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([0.3133, 0.9741, 2.1269])",
    ),
    (
        "Softshrink",
        "softshrink",
        "lambd=0.5",
        "{lambd}",
        "x moved towards 0 by lambd."
        "\n\n>>> lucid.nn.Softshrink()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.5000,  0.0000,  1.5000])",
    ),
    (
        "Softsign",
        "softsign",
        "",
        "",
        "x / (1 + |x|).\n\n>>> lucid.nn.Softsign()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.5000,  0.3333,  0.6667])",
    ),
    (
        "Tanhshrink",
        "tanhshrink",
        "",
        "",
        "x - tanh(x).\n\n>>> lucid.nn.Tanhshrink()(lucid.tensor([-1.0, 0.5, 2.0]))\ntensor([-0.2384,  0.0379,  1.0360])",
    ),
]
globals().update({row[0]: layer(*row[:5], call=row[5] if len(row) > 5 else None) for row in _ROWS})


class Hardtanh(Module):
    """x, clamped to [min_val, max_val].

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
    """Leaky ReLU with a learnt slope below 0: one for all, or one per channel.

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
    """Softmax of -x: the smallest value gets the largest probability.

    >>> lucid.nn.Softmin(dim=0)(lucid.tensor([0.0, 1.0]))
    tensor([0.7311, 0.2689])
    """

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
    """The logarithm of softmax.

    >>> lucid.nn.LogSoftmax(dim=0)(lucid.tensor([0.0, 1.0]))
    tensor([-1.3133, -0.3133])
    """

    def forward(self, input):  # noqa: A002
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of images.

    >>> lucid.nn.Softmax2d()(lucid.zeros(1, 2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input):  # noqa: A002
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


__all__ = [*(row[0] for row in _ROWS), "Hardtanh", "RReLU", "PReLU", "Softmin", "Softmax", "LogSoftmax", "Softmax2d"]
