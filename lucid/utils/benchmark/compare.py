"""Compare: a table of measurements, a row per task and a column per description, one table per label."""

import math
from enum import Enum

from .measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

_END, _BOLD = "\033[0m", "\033[1m"
_BEST, _GOOD, _POOR, _WORST = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"


class Colorize(Enum):
    """Which times are compared by colour.

    >>> lucid.utils.benchmark.Colorize.ROWWISE.value
    'rowwise'
    """

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _colored(text, time, best):
    """A cell in a colour that says how near its time is to the best."""
    if time <= best * 1.01 or time <= best + 1e-7:
        return _BEST + _BOLD + text + _END * 2
    if time <= best * 1.1:
        return _GOOD + _BOLD + text + _END * 2
    if time >= best * 5:
        return _WORST + _BOLD + text + _END * 2
    return _POOR + text + _END * 2 if time >= best * 2 else text


class _Column:
    """Formats the times of a column with as many digits as all of them deserve."""

    def __init__(self, found, scale, trim, warn):
        self._scale, self._trim = scale, trim
        self._warn = warn and any(m.has_warnings for m in found)
        digits = [math.ceil(math.log10(m.median / scale)) for m in found]
        after = min(max(m.significant_figures - d, 0) for m, d in zip(found, digits)) if trim else 1
        self._after, self._width = after, max(digits) + after + (1 if after else 0)

    def text(self, m):
        if m is None:
            return " " * len(self._formatted(1, ""))
        value = m.median / self._scale
        value = trim_sigfig(value, m.significant_figures) if self._trim else value
        spread = f" (! {m.iqr / m.median * 100:.0f}%)" if self._warn and m.has_warnings else ""
        return self._formatted(value, spread)

    def _formatted(self, value, spread):
        return f"{value:>{self._width}.{self._after}f}{spread:>{7 if self._warn else 0}}"


class _Table:
    """The measurements of one label: rows are (threads, environment, name), columns are descriptions."""

    def __init__(self, found, colorize, trim, warn):
        self._label, self._colorize = found[0].label, colorize
        self._unit, scale = select_unit(min(m.median for m in found))
        self._warn = warn and any(m.has_warnings for m in found)
        rows = ordered_unique((m.num_threads, m.env, m.as_row_name) for m in found)
        self._rows = sorted(rows, key=lambda row: row[:2])
        self._descriptions = ordered_unique(m.description for m in found)
        self._cells = {((m.num_threads, m.env, m.as_row_name), m.description): m for m in found}
        self._columns = [_Column(list(filter(None, self._column(d))), scale, trim, warn) for d in self._descriptions]
        environments = {m.env for m in found}
        self._several = len(environments) > 1
        self._indent = max(len(str(e)) for e in environments) + 4 if self._several else 4

    def _row(self, row):
        return [self._cells.get((row, d)) for d in self._descriptions]

    def _column(self, description, threads=None):
        return [self._cells.get((row, description)) for row in self._rows if threads in (None, row[0])]

    def _best(self, row):
        """The best time that each cell of a row is compared with."""
        if self._colorize == Colorize.ROWWISE:
            return [min(m.median for m in self._row(row) if m)] * len(self._columns)
        groups = (self._column(d, row[0]) for d in self._descriptions)
        return [min((m.median for m in group if m), default=None) for group in groups]

    def _names(self):
        """First cells of the rows; the environment stands in the first row that has it."""
        before = None
        for row in self._rows:
            shown = self._several and row[:2] != before
            before = row[:2]
            yield "  " + (f"({row[1] or 'Unspecified env'})" if shown else "").ljust(self._indent) + row[2]

    def render(self):
        texts = [[c.text(m) for c, m in zip(self._columns, self._row(row))] for row in self._rows]
        table = [[name, *cells] for name, cells in zip(self._names(), texts)]
        head = ["", *(d or "" for d in self._descriptions)]
        widths = [max(map(len, column)) for column in zip(head, *table)]
        lines = ["  |  ".join(cell.center(width) for cell, width in zip(head, widths))]
        whole, threads = len(lines[0]), None
        for row, cells in zip(self._rows, table):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(whole, "-"))
            padded = [cell.center(width) for cell, width in zip(cells[1:], widths[1:])]
            if self._colorize != Colorize.NONE:
                best = self._best(row)
                padded = [_colored(p, m.median, b) if m else p for p, m, b in zip(padded, self._row(row), best)]
            lines.append("  |  ".join([cells[0].ljust(widths[0]), *padded]))
        title = f" {self._label or ''} ".center(whole - 2, "-")
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" if self._warn else ""
        return "\n".join([f"[{title}]", *lines, "", f"Times are in {unit_to_english(self._unit)}s ({self._unit}).", note])


class Compare:
    """Tables of measurements: print them, or take their text with str().

    >>> from lucid.utils.benchmark import Compare, Measurement, TaskSpec
    >>> def measured(seconds, name):
    ...     return Measurement(1, [seconds], TaskSpec("x", "pass", label="add", sub_label="64 floats", description=name))
    >>> print(Compare([measured(2e-6, "one"), measured(4e-6, "two")]))
    [------------ add ------------]
                     |  one  |  two
    1 threads: --------------------
          64 floats  |  2.0  |  4.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results):
        self._results, self._trim, self._colorize, self._warn = [], False, Colorize.NONE, False
        self.extend_results(results)

    def extend_results(self, results):
        """Add measurements.

        >>> lucid.utils.benchmark.Compare([]).extend_results([1])
        Traceback (most recent call last):
        ValueError: Expected an instance of `Measurement`, got <class 'int'> instead.
        """
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Show only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Colour times by their distance from the best of their column, or of their row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Mark times that vary much."""
        self._warn = True

    def __str__(self):
        labels = {}
        for m in Measurement.merge(self._results):
            labels.setdefault(m.label, []).append(m)
        return "\n".join(_Table(found, self._colorize, self._trim, self._warn).render() for found in labels.values())

    def print(self):
        """Print the tables.

        >>> lucid.utils.benchmark.Compare([]).print()
        <BLANKLINE>
        """
        print(self)
