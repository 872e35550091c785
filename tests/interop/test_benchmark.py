"""torch.utils.benchmark: the texts and tables of the same times are PyTorch's; timers count runs. TensorBoard:
tests/packages."""

import importlib.util
import random
import re

import pytest
import torch
import torch.utils.benchmark

import lucid

theirs, ours = torch.utils.benchmark, lucid.utils.benchmark


def measured(m):
    numbers = random.Random(0)
    for label in ("add", "mul"):
        for threads in (1, 2):
            for name in ("64 floats", "a much longer name"):
                for column in ("one", "another library"):
                    scale, spread = 10 ** numbers.uniform(-7, -5), 1.1 * threads
                    times = [scale * numbers.uniform(1, spread) for _ in range(numbers.choice([1, 3, 9]))]
                    task = m.TaskSpec("x + 1", "x = 2", label=label, sub_label=name, description=column, num_threads=threads)
                    yield m.Measurement(numbers.choice([1, 10]), times, task)


def test_measurements_print_alike():
    for a, b in zip(measured(theirs), measured(ours)):
        assert re.sub("<.*>", "", repr(a)) == re.sub("<.*>", "", repr(b))
        assert (a.significant_figures, a.has_warnings) == (b.significant_figures, b.has_warnings)
        assert b.iqr == pytest.approx(a.iqr) and b.mean == pytest.approx(a.mean)


@pytest.mark.parametrize("rowwise", [None, False, True])
@pytest.mark.parametrize("settings", [(), ("trim_significant_figures",), ("highlight_warnings", "trim_significant_figures")])
def test_tables_print_alike(settings, rowwise):
    tables = [m.Compare(list(measured(m))) for m in (theirs, ours)]
    for table in tables:
        for setting in settings:
            getattr(table, setting)()
        if rowwise is not None:
            table.colorize(rowwise=rowwise)
    assert str(tables[0]) == str(tables[1])


def test_environments_print_alike():
    texts = []
    for m in (theirs, ours):
        tasks = [
            m.TaskSpec("x", "pass", label="l", sub_label=s, description="d", env=e) for e in ("old", "newer") for s in "ab"
        ]
        texts.append(str(m.Compare([m.Measurement(1, [1e-3], task) for task in tasks])))
    assert texts[0] == texts[1]


def test_timers_count_runs():
    runs = []
    timer = ours.Timer("count()", setup="count(); x = torch.ones(1)", globals={"count": lambda: runs.append(1)}, num_threads=2)
    found = timer.timeit(200)
    assert found.number_per_run == 200 and len(runs) == 2 + 1 + 200 + 1  # warm-up and setup of each
    seen = []
    found = timer.blocked_autorange(callback=lambda number, seconds: seen.append((number, seconds)), min_run_time=0.002)
    assert [s for _, s in seen] == found.raw_times and sum(found.raw_times) >= 0.002
    found = timer.adaptive_autorange(threshold=0, max_run_time=0.01)
    assert sum(found.raw_times) > 0.01 and found.num_threads == 2
    assert ours.Timer("torch.ones(2)").timeit(1).median > 0


def test_refused():
    for bad, error in (
        ({"stmt": abs}, ValueError),
        ({"language": "rust"}, ValueError),
        ({"global_setup": "x"}, ValueError),
        ({"language": "c++"}, NotImplementedError),
    ):
        with pytest.raises(error):
            ours.Timer(**bad)
    with pytest.raises(NotImplementedError, match="Fuzzer"):
        ours.Fuzzer([], [])
    with pytest.raises(NotImplementedError):
        ours.Timer("1").collect_callgrind()


@pytest.mark.skipif(importlib.util.find_spec("tensorboard") is not None, reason="tensorboard is installed")
def test_tensorboard_says_what_it_needs():
    with pytest.raises(ImportError, match="pip install tensorboard"):
        _ = lucid.utils.tensorboard.SummaryWriter
