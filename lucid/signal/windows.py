"""Window functions: M numbers by which a piece of a signal is multiplied before its spectrum is taken.

sym=True gives a symmetric window, for filters; sym=False a periodic one, for spectra: the first M of M + 1 symmetric points.

>>> lucid.signal.windows.hann(4, sym=False)
tensor([0.0000, 0.5000, 1.0000, 0.5000])
"""

from math import pi, sqrt

from .. import _C

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class _Options:
    """Where a window is made, and in which dtype. Refuses what no window can be."""

    def __init__(self, name, M, dtype, layout, device, requires_grad):  # noqa: N803
        dtype = _C.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not None and layout is not _C.strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (_C.float32, _C.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        self.M, self.made = M, {"dtype": dtype, "device": device, "requires_grad": requires_grad}

    def trivial(self):
        return _C.ones(self.M, **self.made)

    def points(self, start, end):
        """M of them, both ends included."""
        return _C.linspace(start, end, self.M, **self.made)


def _intervals(M, sym):  # noqa: N803
    return M - 1 if sym or M <= 1 else M


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """exp(-|n - center| / tau): the Poisson window. center is the middle; another needs sym=False.

    >>> lucid.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    options = _Options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return options.trivial()
    if center is None:
        center = _intervals(M, sym) / 2
    return (-options.points(-center / tau, (M - 1 - center) / tau).abs()).exp()


def cosine(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """sin(pi (n + 1/2) / M): half a wave, also known as the sine window.

    >>> lucid.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    options = _Options("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return options.trivial()
    step = pi / (_intervals(M, sym) + 1)
    return options.points(0.5 * step, (M - 0.5) * step).sin()


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """exp(-(n / std)^2 / 2), n counted from the middle.

    >>> lucid.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    options = _Options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return options.trivial()
    start, by = -_intervals(M, sym) / 2, 1 / (std * sqrt(2))
    return (-(options.points(start * by, (start + M - 1) * by) ** 2)).exp()


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """i0(beta sqrt(1 - x^2)) / i0(beta), x from -1 to 1: beta trades the width of the main lobe for low side lobes.

    >>> lucid.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    options = _Options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M <= 1:
        return options.trivial()
    beta = _C.scalar_tensor(beta, dtype=options.made["dtype"], device=device)
    end = _C.minimum(beta, -beta + (M - 1) * (2.0 * beta / _intervals(M, sym)))
    k = options.points(-beta.item(), end.item())
    return (beta * beta - k**2).sqrt().i0() / beta.i0()


def bartlett(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """1 - |2 n / N - 1|: a triangle whose ends are zero.

    >>> lucid.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = _Options("bartlett", M, dtype, layout, device, requires_grad)
    if M <= 1:
        return options.trivial()
    return 1 - options.points(-1, -1 + (M - 1) * 2 / _intervals(M, sym)).abs()


def general_cosine(M, *, a, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """a[0] - a[1] cos(t) + a[2] cos(2 t) - ..., t = 2 pi n / N.

    >>> lucid.signal.windows.general_cosine(5, a=[0.5, 0.5])
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = _Options("general_cosine", M, dtype, layout, device, requires_grad)
    if M <= 1:
        return options.trivial()
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    made = {"dtype": options.made["dtype"], "device": device}
    k = options.points(0, 2 * pi * (M - 1) / _intervals(M, sym))
    signed = _C.tensor([(-1) ** i * w for i, w in enumerate(a)], requires_grad=requires_grad, **made)
    orders = _C.arange(len(signed), **made)
    return (signed.unsqueeze(-1) * (orders.unsqueeze(-1) * k).cos()).sum(0)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """alpha - (1 - alpha) cos(2 pi n / N).

    >>> lucid.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """0.54 - 0.46 cos(2 pi n / N).

    >>> lucid.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """1/2 - 1/2 cos(2 pi n / N).

    >>> lucid.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def blackman(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N).

    >>> lucid.signal.windows.blackman(5)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(M, *, sym=True, dtype=None, layout=None, device=None, requires_grad=False):  # noqa: N803
    """The 4-term cosine window of Nuttall with the least side lobes that fall off no further: -98 dB.

    >>> lucid.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    terms = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=terms, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)
