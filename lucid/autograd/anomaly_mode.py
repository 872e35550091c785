"""Finding where a bad gradient came from: backward then names the forward call that recorded the failing step."""

from .. import _C


class set_detect_anomaly:
    """Switch anomaly detection on or off, at once; usable in `with`.

    While on, every recorded operation remembers its call stack. If its gradient raises (or, with `check_nan`, holds a NaN)
    backward prints that stack. It is slow: for debugging only.

    >>> with lucid.autograd.set_detect_anomaly(True):
    ...     lucid.is_anomaly_enabled()
    True
    """

    def __init__(self, mode, check_nan=True):
        self._before = _C._anomaly()
        _C._set_anomaly(mode, check_nan)

    def __enter__(self):
        return None

    def __exit__(self, *error):
        _C._set_anomaly(*self._before)


class detect_anomaly:
    """Anomaly detection for the length of a `with` block.

    >>> x = lucid.tensor([0.0], requires_grad=True)
    >>> with lucid.autograd.detect_anomaly():
    ...     (x * 2).sum().backward()
    >>> x.grad
    tensor([2.])
    """

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        import warnings

        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        self._before = _C._anomaly()
        _C._set_anomaly(True, self.check_nan)

    def __exit__(self, *error):
        _C._set_anomaly(*self._before)


def is_anomaly_enabled():
    """Whether anomaly detection is on.

    >>> lucid.is_anomaly_enabled()
    False
    """
    return _C._anomaly()[0]


def is_anomaly_check_nan_enabled():
    """Whether anomaly detection also looks for NaN.

    >>> lucid.is_anomaly_check_nan_enabled()
    True
    """
    return _C._anomaly()[1]
