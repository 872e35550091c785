"""What `pytest --few` leaves out and keeps, and what a failing test prints."""

import pathlib
import re
import subprocess
import sys

from tests import few

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = """
import pytest
from tests.ops.samples.sample import S, T

@pytest.mark.parametrize("i", range(100))
def test_plain(i): pass

@pytest.mark.parametrize("i", range(3))
@pytest.mark.parametrize("name", [f"row {i}" for i in range(40)])
def test_named(name, i): pass

@pytest.mark.few(per=lambda x, y: x if x else None)
@pytest.mark.parametrize("y", range(5))
@pytest.mark.parametrize("x", range(4))
def test_marked(x, y): pass

@pytest.mark.full("test_plain has the same")
def test_left_out(): pass

@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("sample", [pytest.param(S("add", T(2, 3), T(3), alpha=2), id="binary:7:add")])
def test_fails(sample, dtype): assert sample is None
"""


def pytest_of(folder, *arguments):
    (folder / "test_it.py").write_text(PROGRAM)
    places = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={folder}", str(folder / "test_it.py")]
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", *places, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


def test_few_keeps_every_function_and_every_name(tmp_path):
    counts = {}
    for line in pytest_of(tmp_path, "--few", "--collect-only").splitlines():
        if found := re.search(r"::(test_\w+)", line):
            counts[found[1]] = counts.get(found[1], 0) + 1
    assert counts == {"test_plain": few.CASES, "test_named": 40, "test_marked": 3, "test_fails": 1}
    assert "242 tests" in pytest_of(tmp_path, "--collect-only")


def test_a_failure_names_the_op_the_sample_and_the_command(tmp_path):
    text = pytest_of(tmp_path, "-k", "fails")
    assert "op add, sample S('add', T(2, 3), T(3), alpha=2)" in text and "dtype float32" in text
    (command,) = re.findall(r"^(.*-m pytest.*test_fails.*)$", text, re.MULTILINE)
    assert "PYTHONPATH=build/" in command and command.endswith("'test_it.py::test_fails[binary:7:add-float32]'")


def test_evenly_has_both_ends():
    assert few.evenly(list(range(100)), 5) == [0, 24, 49, 74, 99] and few.evenly([1, 2], 5) == [1, 2]


def test_one_in_is_a_part():
    chosen = [n for n in map(str, range(1000)) if few.one_in(8)(n)]
    assert 80 < len(chosen) < 180
