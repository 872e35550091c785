"""The runner of `make test-gpu` (parallel.py): failures, processes that die, and tests that never ran. Needs no GPU."""

import functools
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[2]
TESTS = """
import os, signal, pytest
@pytest.mark.parametrize("i", range(30))
def test_many(i):
    if i == 7: assert i == 8, "seven is not eight"
    if i == 12: os.kill(os.getpid(), signal.SIGKILL)
    if i == 13: pytest.skip("no")
@pytest.mark.parametrize("i", range(10))
def test_one_group(i):
    if i == 3: os._exit(5)
@pytest.fixture
def broken():
    yield
    raise ValueError("afterwards")
def test_teardown(broken): pass
"""


def run(tmp_path, *arguments):
    file = tmp_path / "test_planned.py"
    file.write_text(TESTS)
    command = [sys.executable, "-m", "tests.gpu.parallel", "--processes", "2", "--log", tmp_path / "log", file]
    done = subprocess.run(
        [*command, "--rootdir", tmp_path, *arguments], cwd=ROOT, capture_output=True, text=True, env=os.environ
    )
    return done.returncode, done.stdout.splitlines(), (tmp_path / "log").read_text()


def test_what_fails_and_dies_is_counted_once(tmp_path):
    code, lines, log = run(tmp_path)
    assert code == 1 and lines[-1].startswith("tests/gpu: 36 passed, 4 failed, 1 skipped in "), lines[-1]
    failed = [line.split("::")[1] for line in lines if line.startswith("FAILED ")]
    assert sorted(failed) == ["test_many[12]", "test_many[7]", "test_one_group[3]", "test_teardown"]
    assert "seven is not eight" in log and "died by signal 9" in log and "ended with status 5" in log and "afterwards" in log
    assert log.count("to run it alone") >= 2


def test_a_part_that_passes(tmp_path):
    code, lines, _ = run(tmp_path, "-k", "test_many and not 7 and not 12")
    assert code == 0 and lines[-1].startswith("tests/gpu: 25 passed, 0 failed, 1 skipped in "), lines[-1]


def test_nothing_chosen_and_files_that_do_not_load_fail(tmp_path):
    code, lines, _ = run(tmp_path, "-k", "no such test")
    assert code == 1 and lines[-1].startswith("tests/gpu: 0 passed")
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name")
    code, lines, log = run(tmp_path, str(tmp_path / "test_broken.py"))
    assert code == 1 and "nothing_of_this_name" in log


def test_the_first_failure_stops_all(tmp_path):
    code, lines, _ = run(tmp_path, "-x", "-k", "test_many and not 12")
    assert code == 1 and " 1 failed" in lines[-1]


def test_an_interrupted_run_tells_what_ran(tmp_path):
    (tmp_path / "test_slow.py").write_text(
        "import time\ndef test_a(): pass\ndef test_b(): open('started', 'w'); time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "tests.gpu.parallel", "--processes", "1", "--log", tmp_path / "log"]
    command += [tmp_path / "test_slow.py", "--rootdir", tmp_path]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    listen = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs do not
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=listen)
    while process.poll() is None and not (tmp_path / "started").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    lines = process.communicate()[0].splitlines()
    assert process.returncode == 1 and "ERROR interrupted" in lines
    assert lines[-1].startswith("tests/gpu: 1 passed, 0 failed, 0 skipped, 1 not run in "), lines[-1]
