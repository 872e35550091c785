"""Timer: runs a statement many times. `blocked_autorange` chooses how often, so that reading the clock costs nothing
beside it."""

import textwrap
import timeit
from enum import Enum
from time import perf_counter

from .measurement import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]


class Language(Enum):
    """What a statement is written in.

    >>> lucid.utils.benchmark.Language.PYTHON.value
    0
    """

    PYTHON = 0
    CPP = 1


def timer():
    """Seconds on a clock, after the GPU, if one is in use, has done what it was given.

    >>> lucid.utils.benchmark.timer() > 0
    True
    """
    from ... import cuda

    if cuda.is_initialized():
        cuda.synchronize()
    return perf_counter()


def _tidy(code):
    """A block of code without the indentation of the place where it is written."""
    return textwrap.dedent(code).removeprefix("\n").rstrip()


class Timer:
    """Times a statement, given as text; `setup` runs once per measurement, `globals` are the variables that it sees.

    `label`, `sub_label`, `description` and `env` say in tables what is measured; one thread is used unless `num_threads`
    says more. `torch` is Lucid in the statement, whatever the switch.

    >>> timer = lucid.utils.benchmark.Timer("x.sum()", setup="x = torch.ones(8)", label="sum")
    >>> timer.timeit(10).number_per_run
    10
    """

    _timer_cls = timeit.Timer

    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=timer,
        globals=None,  # noqa: A002 (PyTorch's name)
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language=Language.PYTHON,
    ):
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: C++ statements need PyTorch's C++ library, which Lucid lacks; time Python ones")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`: move it to `setup`")
        import lucid

        self._globals = {"torch": lucid, "lucid": lucid, **(globals or {})}
        stmt, setup = _tidy(stmt), _tidy(setup)
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(stmt, setup, "", label, sub_label, description, env, num_threads)

    def _timeit(self, number):
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number, times):
        return Measurement(number, times, self._task_spec)

    def timeit(self, number=1000000):
        """One measurement of `number` runs, after some that are not counted.

        >>> len(lucid.utils.benchmark.Timer("1 + 1").timeit(100).times)
        1
        """
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measured(number, [self._timeit(number)])

    def _runs_per_measurement(self, min_run_time):
        """A power of 10 of runs beside which the clock takes no time."""
        with set_torch_threads(self._task_spec.num_threads):
            clock = sorted(self._timeit(0) for _ in range(5))[2]
            number = 1
            while True:
                seconds = self._timeit(number)
                enough = clock / seconds <= 1e-4 and seconds >= min_run_time / 1000
                if enough or seconds > min_run_time or number * 10 > 2**31 - 1:
                    return number
                number *= 10

    def _measure(self, number, enough, min_run_time, max_run_time, callback):
        total, times = 0.0, []
        with set_torch_threads(self._task_spec.num_threads):
            while True:
                times.append(self._timeit(number))
                total += times[-1]
                if callback:
                    callback(number, times[-1])
                if (total >= min_run_time and enough(times)) or (max_run_time and total > max_run_time):
                    return self._measured(number, times)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """Measurements for at least `min_run_time` seconds, each of so many runs that the clock's own time does not show.

        >>> len(lucid.utils.benchmark.Timer("1 + 1").blocked_autorange(min_run_time=0.001).times) >= 1
        True
        """
        return self._measure(self._runs_per_measurement(min_run_time), lambda times: True, min_run_time, None, callback)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """Measurements until the interquartile range is below this part of the median, or `max_run_time` seconds are over.

        >>> len(lucid.utils.benchmark.Timer("1 + 1").adaptive_autorange(max_run_time=0.01).times) >= 1
        True
        """
        number = self._runs_per_measurement(0.05)

        def enough(times):
            return len(times) > 3 and self._measured(number, times).meets_confidence(threshold)

        return self._measure(number, enough, min_run_time, max_run_time, callback)

    def repeat(self, repeat=-1, number=-1):
        """Not there, as in PyTorch: use blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        """Not there, as in PyTorch: use blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def collect_callgrind(self, number=100, *, repeats=None, collect_baseline=True, retain_out_file=False):
        """Absent: it needs PyTorch's own Valgrind bindings."""
        raise NotImplementedError("collect_callgrind is not in Lucid: run the program under `valgrind --tool=callgrind`")
