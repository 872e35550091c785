"""Whether ops whose results may differ from run to run are allowed, on this thread.

Lucid's CPU kernels give the same bits for any number of threads. The refused ops are PyTorch's: `put_` without `accumulate`,
whose result depends on the order of writes if an index repeats. On CUDA, sums at repeated indices are sorted first, and ops
whose sums have no such form are refused (docs/gpu.md). Random ops with a seed (dropout) are allowed. Uninitialised
memory (`empty`) is filled with NaN, or the largest integer.
"""

from .. import _C

_LEVELS = ("default", "warn", "error")


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Refuse ops whose results may differ from run to run, on this thread; warn_only: they warn and run.

    >>> lucid.use_deterministic_algorithms(True)
    >>> lucid.are_deterministic_algorithms_enabled()
    True
    >>> lucid.zeros(3).put_(lucid.tensor([1]), lucid.tensor([5.0]))
    Traceback (most recent call last):
    lucid.LucidError: put_ does not have a deterministic implementation
    >>> lucid.use_deterministic_algorithms(False)
    """
    _C._set_deterministic(0 if not mode else 1 if warn_only else 2)


def are_deterministic_algorithms_enabled():
    """Whether ops whose results may differ from run to run are refused, or warn, on this thread.

    >>> lucid.are_deterministic_algorithms_enabled()
    False
    """
    return _C._deterministic() > 0


def is_deterministic_algorithms_warn_only_enabled():
    """Whether ops whose results may differ from run to run warn instead of raising.

    >>> lucid.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _C._deterministic() == 1


def set_deterministic_debug_mode(debug_mode):
    """Set deterministic mode by one value: 0 or "default", 1 or "warn", 2 or "error".

    >>> lucid.set_deterministic_debug_mode("warn")
    >>> lucid.get_deterministic_debug_mode()
    1
    >>> lucid.set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _LEVELS:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, or `error`, but got {debug_mode}"
            )
        debug_mode = _LEVELS.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _C._set_deterministic(debug_mode)


def get_deterministic_debug_mode():
    """The mode for ops whose results may differ from run to run: 0 run, 1 warn, 2 raise.

    >>> lucid.get_deterministic_debug_mode()
    0
    """
    return _C._deterministic()
