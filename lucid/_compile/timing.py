"""How long a call takes, compiled and eager, for `explain`."""

import time

from .arguments import flatten
from .check import Memory

_SECONDS = 0.05  # per side


def call_times(compiled, eager, args, kwargs):
    """Seconds of a call of each: the best of many, in turns. What they write in the arguments and the generator is put back.

    >>> a, b = lucid._compile.timing.call_times(abs, abs, (lucid.ones(3),), {})
    >>> a > 0 and b > 0
    True
    """
    tensors = []
    flatten((args, kwargs), tensors)
    outside = getattr(compiled, "_roots", ())
    state = [t for module in outside for t in (*module.parameters(), *module.buffers())]
    before = Memory([*tensors, *state])
    best = [float("inf")] * 2
    try:
        for fn in (compiled, compiled, eager):  # the first call traces
            fn(*args, **kwargs)
        until = time.perf_counter() + 2 * _SECONDS
        while time.perf_counter() < until:
            for k, fn in enumerate((compiled, eager)):
                start = time.perf_counter()
                fn(*args, **kwargs)
                best[k] = min(best[k], time.perf_counter() - start)
    finally:
        before.restore()
    return best
