"""Pooling layers."""

from .. import functional as F
from ._base.layer import layer
from ._base.sizes import pair, single, triple
from .module import Module

_MAX = "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False"
_MAX_CALL = (
    "input, self.kernel_size, self.stride, self.padding, self.dilation, ceil_mode=self.ceil_mode, "
    "return_indices=self.return_indices"
)
_MAX_SHOWN = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"
_AVG_SHOWN = "kernel_size={kernel_size}, stride={stride}, padding={padding}"
_ADAPTIVE_MAX_CALL = "input, self.output_size, self.return_indices"


def _example(name, arguments, n, size):
    """What a pool makes of n dimensions of four elements."""
    before, after = (1, 2, *[4] * n), (1, 2, *[size] * n)
    return f"\n\n>>> tuple(lucid.nn.{name}({arguments})(lucid.ones{before}).shape)\n{after}"


_STEPS = {"stride": "kernel_size if stride is None else stride"}

globals().update(
    {
        f"MaxPool{n}d": layer(
            f"MaxPool{n}d",
            f"max_pool{n}d",
            _MAX,
            _MAX_SHOWN,
            f"The greatest value of each window ({n} dimensions)." + _example(f"MaxPool{n}d", "2", n, 2),
            call=_MAX_CALL,
            kept=_STEPS,
        )
        for n in (1, 2, 3)
    }
    | {
        f"AdaptiveMaxPool{n}d": layer(
            f"AdaptiveMaxPool{n}d",
            f"adaptive_max_pool{n}d",
            "output_size, return_indices=False",
            "output_size={output_size}",
            f"The greatest value of each window, as many windows as asked for ({n} dimensions)."
            + _example(f"AdaptiveMaxPool{n}d", "3", n, 3),
            call=_ADAPTIVE_MAX_CALL,
        )
        for n in (1, 2, 3)
    }
    | {
        f"AdaptiveAvgPool{n}d": layer(
            f"AdaptiveAvgPool{n}d",
            f"adaptive_avg_pool{n}d",
            "output_size",
            "output_size={output_size}",
            f"The mean of each window, as many windows as asked for ({n} dimensions)."
            + _example(f"AdaptiveAvgPool{n}d", "3", n, 3),
        )
        for n in (1, 2, 3)
    }
    | {
        f"AvgPool{n}d": layer(
            f"AvgPool{n}d",
            f"avg_pool{n}d",
            "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None",
            _AVG_SHOWN,
            f"The mean of each window ({n} dimensions)." + _example(f"AvgPool{n}d", "2", n, 2),
            kept=_STEPS,
        )
        for n in (2, 3)
    }
    | {
        f"LPPool{n}d": layer(
            f"LPPool{n}d",
            f"lp_pool{n}d",
            "norm_type, kernel_size, stride=None, ceil_mode=False",
            "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}",
            f"The p-norm of each window ({n} dimensions)." + _example(f"LPPool{n}d", "2, 2", n, 2),
            call="input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode",
        )
        for n in (1, 2, 3)
    }
)


class AvgPool1d(Module):
    """The mean of each window (1 dimension).

    >>> lucid.nn.AvgPool1d(2)(lucid.tensor([[1.0, 3.0, 5.0, 7.0]]))
    tensor([[2., 6.]])
    """

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = single(kernel_size)
        self.stride = single(stride if stride is not None else kernel_size)
        self.padding = single(padding)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input):  # noqa: A002
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self):
        return _AVG_SHOWN.format(**self.__dict__)


class _MaxUnpool(Module):
    """Puts values back where max pooling found them, zeros elsewhere."""

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = self._sized(kernel_size)
        self.stride = self._sized(stride if stride is not None else kernel_size)
        self.padding = self._sized(padding)

    def extra_repr(self):
        return _AVG_SHOWN.format(**self.__dict__)

    def forward(self, input, indices, output_size=None):  # noqa: A002
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)


def _unpool(n, sized):
    doc = (
        f"Puts values back where MaxPool{n}d found them, zeros elsewhere."
        f"\n\n>>> y, at = lucid.nn.MaxPool{n}d(2, return_indices=True)(lucid.ones{(1, 2, *[4] * n)})"
        f"\n>>> tuple(lucid.nn.MaxUnpool{n}d(2)(y, at).shape)\n{(1, 2, *[4] * n)}"
    )
    members = {
        "__doc__": doc,
        "_sized": staticmethod(sized),
        "_function": staticmethod(lambda *a: getattr(F, f"max_unpool{n}d")(*a)),
        "__module__": __name__,
    }
    return type(f"MaxUnpool{n}d", (_MaxUnpool,), members)


MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = _unpool(1, single), _unpool(2, pair), _unpool(3, triple)


class _FractionalMaxPool(Module):
    """Max pooling over windows at random places, such that the output has the size or ratio asked for."""

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        self.kernel_size = self._sized(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else self._sized(output_size)
        self.output_ratio = None if output_ratio is None else self._sized(output_ratio)
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input):  # noqa: A002
        return self._function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Max pooling over windows at random places (images).

    >>> tuple(lucid.nn.FractionalMaxPool2d(2, output_size=3)(lucid.ones(1, 2, 7, 7)).shape)
    (1, 2, 3, 3)
    """

    _sized, _function = staticmethod(pair), staticmethod(lambda *a, **k: F.fractional_max_pool2d(*a, **k))


class FractionalMaxPool3d(_FractionalMaxPool):
    """Max pooling over windows at random places (volumes).

    >>> tuple(lucid.nn.FractionalMaxPool3d(2, output_size=2)(lucid.ones(1, 2, 5, 5, 5)).shape)
    (1, 2, 2, 2, 2)
    """

    _sized, _function = staticmethod(triple), staticmethod(lambda *a, **k: F.fractional_max_pool3d(*a, **k))


__all__ = [n for n in dir() if n[0].isupper() and ("Pool" in n or "Unpool" in n)]
