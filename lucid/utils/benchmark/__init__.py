"""Measure how long statements take, with repeats and statistics, and print several side by side: PyTorch's API.

>>> from lucid.utils import benchmark
>>> timer = benchmark.Timer("x + 1", globals={"x": lucid.ones(64)}, label="add", description="64 floats")
>>> measured = timer.blocked_autorange(min_run_time=0.001)
>>> measured.median < 1, len(measured.times) == len(measured.raw_times)
(True, True)

`timer.py` runs, `measurement.py` holds times and their statistics, `compare.py` prints tables. C++ statements and
Callgrind need PyTorch's C++ library and are refused, and so are the fuzzers, which describe PyTorch's own kernels.
"""

from .compare import Colorize, Compare
from .measurement import Measurement, TaskSpec, ordered_unique, select_unit, set_torch_threads, trim_sigfig, unit_to_english
from .timer import Language, Timer, timer

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]


def __getattr__(name):
    from ... import _declared

    return _declared.look("utils.benchmark", name)
