"""What a timer gives: times of a statement, their statistics, and a text that says how far to trust them."""

import math
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property

from ... import _C

_SHAKY, _BAD = 0.1, 0.25  # interquartile ranges, as parts of the median, from which a text warns
_CLOCK = 25e-9  # seconds below which differences mean nothing
_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1)}


def select_unit(t):
    """A unit of time in which t seconds have few digits, and its length in seconds.

    >>> lucid.utils.benchmark.select_unit(0.002)
    ('ms', 0.001)
    """
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(math.log10(t) // 3) if t > 0 else 0, "s")
    return unit, _UNITS[unit][1]


def unit_to_english(u):
    """The name of a unit of time.

    >>> lucid.utils.benchmark.unit_to_english("us")
    'microsecond'
    """
    return _UNITS[u][0]


def trim_sigfig(x, n):
    """x with n significant digits.

    >>> lucid.utils.benchmark.trim_sigfig(3.14159, 2)
    3.1
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    if x == 0:
        return 0.0
    places = n - math.ceil(math.log10(abs(x)))
    return float(round(x, places))


def ordered_unique(elements):
    """Every element once, in the order of first appearance.

    >>> lucid.utils.benchmark.ordered_unique("banana")
    ['b', 'a', 'n']
    """
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n):
    """A block with n threads.

    >>> with lucid.utils.benchmark.set_torch_threads(1):
    ...     lucid.get_num_threads()
    1
    """
    before = _C.get_num_threads()
    _C.set_num_threads(n)
    try:
        yield
    finally:
        _C.set_num_threads(before)


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """What was timed, without the values of its variables: statements, labels, number of threads.

    >>> lucid.utils.benchmark.TaskSpec("x + 1", "pass", label="add", sub_label="64 floats").title
    'add: 64 floats'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        if self.label is None and "\n" in self.stmt:
            detail = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{detail}\n{textwrap.indent(self.stmt, '  ')}"
        head = self.stmt if self.label is None else self.label
        return f"{head}: {self.sub_label}" if self.sub_label else head

    def setup_str(self):
        """The setup as lines of a text.

        >>> lucid.utils.benchmark.TaskSpec("x + 1", "x = 2").setup_str()
        'setup: x = 2'
        """
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        """Title, description and setup.

        >>> lucid.utils.benchmark.TaskSpec("x + 1", "pass", description="a number").summarize()
        'x + 1\\na number'
        """
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part + "\n" if "\n" in part else part for part in parts if part)


_OF_TASK = frozenset(field.name for field in fields(TaskSpec))


@dataclass(repr=False)
class Measurement:
    """Times of a statement: each of `raw_times` is for `number_per_run` runs. Times per run, median, mean, iqr are in seconds.

    >>> from lucid.utils.benchmark import Measurement, TaskSpec
    >>> m = Measurement(10, [1.0, 2.0, 3.0], TaskSpec("x + 1", "pass"))
    >>> round(m.median, 3), round(m.iqr, 3), m.stmt, m.has_warnings
    (0.2, 0.1, 'x + 1', True)
    """

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = None

    def __getattr__(self, name):
        if name in _OF_TASK:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self):
        return [seconds / self.number_per_run for seconds in self.raw_times]

    @cached_property
    def _sorted(self):
        return _C.tensor(sorted(self.times), dtype=_C.float64)

    def _at(self, part):
        return self._sorted.quantile(part).item() if self.raw_times else -1.0

    @cached_property
    def median(self):
        return self._at(0.5)

    @cached_property
    def mean(self):
        return self._sorted.mean().item() if self.raw_times else -1.0

    @cached_property
    def _quartiles(self):
        return self._at(0.25), self._at(0.75)

    @property
    def iqr(self):
        return self._quartiles[1] - self._quartiles[0]

    @property
    def significant_figures(self):
        """How many digits of the median mean something, from the spread of the middle half of the times: 1 to 4."""
        n = len(self.raw_times)
        middle = self._sorted[n // 4 : math.ceil(3 * n / 4)]
        doubt = max(1.645 * middle.std(correction=0).item() / math.sqrt(len(middle)), _CLOCK)
        return min(max(math.floor(math.log10(self.median / doubt)), 1), 4)

    def meets_confidence(self, threshold=_SHAKY):
        """Whether the interquartile range is a smaller part of the median than this.

        >>> from lucid.utils.benchmark import Measurement, TaskSpec
        >>> Measurement(1, [1.0, 1.0, 1.01, 1.0], TaskSpec("x", "pass")).meets_confidence()
        True
        """
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self):
        return bool(self.raw_times) and not self.meets_confidence()

    def _warning(self):
        cause = (
            "could indicate system fluctuation"
            if self.meets_confidence(_BAD)
            else "suggests significant environmental influence"
        )
        return (
            f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n"
            f"           This {cause}."
        )

    @property
    def title(self):
        return self.task_spec.title

    @property
    def as_row_name(self):
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self):
        n, (unit, scale) = len(self.raw_times), select_unit(self.median)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}")
        if n >= 4:
            low, high = (quartile / scale for quartile in self._quartiles)
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        each, threads = "per measurement," if n > 1 else ",", "thread" + "s" * (self.num_threads > 1)
        lines.append(f"  {n} measurement{'s' * (n > 1)}, {self.number_per_run} runs {each} {self.num_threads} {threads}")
        if self.has_warnings:
            lines.append(self._warning())
        return "\n".join(lines)

    @staticmethod
    def merge(measurements):
        """One measurement per task, with the times per run of all that measured it.

        >>> from lucid.utils.benchmark import Measurement, TaskSpec
        >>> task = TaskSpec("x", "pass")
        >>> [m.raw_times for m in Measurement.merge([Measurement(2, [1.0], task), Measurement(1, [3.0], task)])]
        [[0.5, 3.0]]
        """
        times = {}
        for measurement in measurements:
            times.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, found, task) for task, found in times.items()]
