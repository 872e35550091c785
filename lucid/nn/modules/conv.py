"""Convolution layers."""

import math

from ... import _C
from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._base.sizes import reversed_twice, sizes
from .module import Module


class _ConvNd(Module):
    """What all convolutions have: weight, bias and geometry."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    _transposed = False

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        output_padding,
        groups,
        bias,
        padding_mode,
        device,
        dtype,
    ):
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        sized = sizes(self._n)
        stride, dilation = sized(stride), sized(dilation)
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        else:
            padding = sized(padding)
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {set(modes)}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, sized(kernel_size)
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.transposed, self.output_padding = self._transposed, sized(output_padding)
        self.groups, self.padding_mode = groups, padding_mode
        if padding == "same":
            both = [d * (k - 1) for d, k in zip(dilation, self.kernel_size)]
            self._reversed_padding_repeated_twice = [v for t in reversed(both) for v in (t // 2, t - t // 2)]
        elif padding == "valid":
            self._reversed_padding_repeated_twice = [0] * (2 * self._n)
        else:
            self._reversed_padding_repeated_twice = reversed_twice(padding)
        channels = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(_C.empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw weight and bias anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        parts = [f"{self.in_channels}", f"{self.out_channels}", f"kernel_size={self.kernel_size}", f"stride={self.stride}"]
        if self.padding != (0,) * self._n:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self._n:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * self._n:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype
        )

    def _conv_forward(self, input, weight, bias):  # noqa: A002
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)  # noqa: A001
            padding = (0,) * self._n
        return getattr(F, self._name)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input):  # noqa: A002
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTranspose(_ConvNd):
    _transposed = True

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input, output_size):  # noqa: A002
        """The output_padding that gives the requested output size."""
        if output_size is None:
            return self.output_padding
        n, batched = self._n, input.dim() == self._n + 2
        extra = 2 if batched else 1
        if len(output_size) == n + extra:
            output_size = output_size[extra:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {n + extra} elements "
                f"(got {len(output_size)})"
            )
        sizes_ = zip(input.shape[extra:], self.stride, self.padding, self.dilation, self.kernel_size)
        least = [(i - 1) * s - 2 * p + d * (k - 1) + 1 for i, s, p, d, k in sizes_]
        most = [low + s - 1 for low, s in zip(least, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(least, output_size, most)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} "
                f"(for an input of {input.size()[2:]})"
            )
        return [size - low for size, low in zip(output_size, least)]

    def forward(self, input, output_size=None):  # noqa: A002
        padding = self._output_padding(input, output_size)
        return getattr(F, self._name)(
            input, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation
        )


class Conv1d(_Conv):
    """Convolution of sequences (N, C, L).

    >>> tuple(lucid.nn.Conv1d(16, 33, 3, stride=2)(lucid.ones(20, 16, 50)).shape)
    (20, 33, 24)
    """

    _n, _name = 1, "conv1d"


class Conv2d(_Conv):
    """Convolution of images (N, C, H, W).

    >>> tuple(lucid.nn.Conv2d(3, 8, 3, padding="same")(lucid.ones(2, 3, 7, 9)).shape)
    (2, 8, 7, 9)
    """

    _n, _name = 2, "conv2d"


class Conv3d(_Conv):
    """Convolution of volumes (N, C, D, H, W).

    >>> tuple(lucid.nn.Conv3d(2, 3, 3)(lucid.ones(1, 2, 5, 5, 5)).shape)
    (1, 3, 3, 3, 3)
    """

    _n, _name = 3, "conv3d"


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of sequences: inverts the shape of Conv1d.

    >>> tuple(lucid.nn.ConvTranspose1d(4, 3, 2, stride=2)(lucid.ones(1, 4, 5)).shape)
    (1, 3, 10)
    """

    _n, _name = 1, "conv_transpose1d"


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of images: inverts the shape of Conv2d.

    >>> tuple(lucid.nn.ConvTranspose2d(4, 3, 2, stride=2)(lucid.ones(1, 4, 5, 5)).shape)
    (1, 3, 10, 10)
    """

    _n, _name = 2, "conv_transpose2d"


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of volumes: inverts the shape of Conv3d.

    >>> tuple(lucid.nn.ConvTranspose3d(2, 3, 2, stride=2)(lucid.ones(1, 2, 2, 2, 2)).shape)
    (1, 3, 4, 4, 4)
    """

    _n, _name = 3, "conv_transpose3d"


_ConvTransposeNd = _ConvTranspose  # PyTorch's name

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]
