#!/usr/bin/env python3
"""Type checkers read the stubs as a user's program does: mypy --strict and pyright over the README's program and all examples.

usage: check_types.py BUILD_DIR      exits with 77 if neither checker is installed

The stubs are made anew from the build. `tests/repo/typing/program.py` also says which types expressions have and which mistakes
mypy must report. Errors inside the stubs (overrides that Python allows and checkers do not) do not reach users of an installed
package and are not shown.
"""

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIP = 77


def readme_program():
    """The first program of the README."""
    return re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]


def generate(build):
    """The stubs of a build, below its folder; the path for MYPYPATH."""
    stubs = build / "stubs"
    command = [sys.executable, ROOT / "tools/genstubs.py", stubs / "lucid"]
    subprocess.run(
        [str(c) for c in command], check=True, env=os.environ | {"PYTHONPATH": str(build / "pkg")}, stdout=subprocess.DEVNULL
    )
    return stubs


def programs(folder):
    """What is checked, copied to a folder of its own so that checkers do not find the package's source beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.py"):
        old.unlink()
    (folder / "readme.py").write_text(readme_program())
    for path in [*ROOT.glob("examples/*.py"), *ROOT.glob("tests/repo/typing/*.py")]:
        (folder / path.name).write_text(path.read_text())
    return sorted(p.name for p in folder.glob("*.py"))


def mypy(folder, stubs, names):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(folder / ".mypy_cache")]
    done = subprocess.run(
        [*command, *names], cwd=folder, env=os.environ | {"MYPYPATH": str(stubs)}, capture_output=True, text=True
    )
    found = [line for line in done.stdout.splitlines() if line.split(":")[0] in names]
    broken = done.returncode > 1 or "[syntax]" in done.stdout
    return found if not broken else [*done.stdout.splitlines(), *done.stderr.splitlines()]


def pyright(folder, stubs):
    settings = {"stubPath": str(stubs), "typeCheckingMode": "standard", "include": ["."], "reportMissingModuleSource": "none",
                "reportPossiblyUnbound": "none"}  # fmt: skip
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if not re.search(r"\d+ errors?,", done.stdout):
        return None  # it could not start: its package fetches Node.js
    return [line.strip().removeprefix(f"{folder}/") for line in done.stdout.splitlines() if " - error" in line]


def main(build):
    have = [name for name in ("mypy", "pyright") if importlib.util.find_spec(name)]
    if not have:
        print("mypy and pyright are not installed: types were NOT checked")
        return SKIP
    build = ROOT / build
    stubs = generate(build)
    folder = build / "typecheck"
    names = programs(folder)
    found = mypy(folder, stubs, names) if "mypy" in have else []
    ran = ["mypy --strict"] * ("mypy" in have)
    if "pyright" in have:
        told = pyright(folder, stubs)
        ran += ["pyright"] * (told is not None)
        found += told or []
    print("\n".join(found) or f"{' and '.join(ran)}: {len(names)} programs without an error")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
