"""Runs a use of a package in two processes, on PyTorch and on Lucid, and compares what they gave."""

import ast
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PYTHON = pathlib.Path(os.environ.get("LUCID_PACKAGES_PYTHON", ROOT / ".venv-packages/bin/python"))
TOLERANCE = 1e-4  # of the larger of 1 and PyTorch's number


def _files():
    return sorted(HERE.glob("uses*.py"))


def uses():
    """Names of the functions in uses.py and its neighbours, without importing them."""
    trees = [ast.parse(path.read_text()) for path in _files()]
    return [node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef) and "__" in node.name]


def home(name):
    """The module of a use."""
    return next(path.stem for path in _files() if f"def {name}(" in path.read_text())


def run(name, on_lucid, device="", more=()):
    """What compare.py wrote about a use; raises with the end of its output if it failed. device: the default device; more: of
    the environment."""
    import lucid

    package = str(pathlib.Path(lucid.__file__).parent.parent)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHONPATH", "LUCID_AS_TORCH"))}
    environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"} | ({"PYTHONPATH": package} if on_lucid else {}) | dict(more)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        command = [str(PYTHON), *(["-m", "lucid"] if on_lucid else []), str(HERE / "compare.py"), name, path]
        command += [device] if device else []
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=600)
        if done.returncode:
            raise RuntimeError(f"{name} on {'Lucid' if on_lucid else 'PyTorch'}:\n{done.stderr[-3000:]}")
        return json.loads(pathlib.Path(path).read_text())


def _flat(value):
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, list):
        return [number for item in value for number in _flat(item)]
    return [value]


def difference(theirs, ours):
    """The largest difference of two results, relative to numbers above 1; infinite if their shapes differ."""
    a, b = _flat(theirs), _flat(ours)
    if len(a) != len(b):
        return math.inf
    worst = 0.0
    for x, y in zip(a, b):
        if math.isnan(x) or math.isnan(y):
            worst = worst if math.isnan(x) and math.isnan(y) else math.inf
        elif x != y:
            worst = max(worst, abs(x - y) / max(1.0, abs(x)))
    return worst


def versions():
    """Versions of what is installed in the environment of packages, by name."""
    code = "import importlib.metadata as m, json; print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
    return json.loads(subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    print("\n".join(uses()), file=sys.stdout)
