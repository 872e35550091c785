"""The first calls of sweep.py, the same ones every time: none crashes, and none has another value than PyTorch's."""

import pathlib
import re
import subprocess
import sys

from tests import few

KNOWN = {}  # statement: why it differs. May only shrink


def test_bad_calls_have_pytorchs_values():
    sweep = pathlib.Path(__file__).with_name("sweep.py")
    command = [sys.executable, str(sweep), "--calls", "2" if few.wanted() else "10", "--kinds", "crash,value"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr
    assert re.search(r"^sweep: \d{3,} calls", run.stdout, re.MULTILINE), run.stdout
    found = re.findall(r"^(?:crash|value) +(.*)$", run.stdout, re.MULTILINE)
    assert set(found) == set(KNOWN), run.stdout
