#!/usr/bin/env python3
"""Build the wheel, install it into an empty environment (no NumPy), use it from Python and from C.   usage: check_wheel.py

Needs no network: the build tools are those of the Python that runs this.
"""

import pathlib
import posixpath
import subprocess
import sys
import tempfile
import venv
import zipfile

import make_wheel
from make_wheel import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent
NEEDED = {
    posixpath.normpath(f"lucid/{name}")
    for name in (
        "__init__.py",
        "liblucid.so",
        "py.typed",
        "../lucid-stubs/_C.pyi",
        "../lucid-stubs/nn/__init__.pyi",
        "engine/include/lucid.h",
        "engine/include/op_calls.gen.h",
    )
}
SMOKE = """
import io, pickle, sys
import lucid
assert "numpy" not in sys.modules
try:
    import numpy
except ImportError:
    pass
else:
    sys.exit("NumPy is here: this is not the environment the test is for")
x = lucid.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = (x * x).sum()
y.backward()
assert x.grad.tolist() == [2.0, 4.0, 6.0], x.grad
assert repr(x) == "tensor([1., 2., 3.], requires_grad=True)", repr(x)
assert pickle.loads(pickle.dumps(x)).tolist() == [1.0, 2.0, 3.0]
import lightning_core, lightning_core_integrated_api, lightning_core_api, lc_run
assert lightning_core.backend_name() in ("cpu", "cuda")
print("Python:", y)
"""


def run(*command, **options):
    return subprocess.run([str(c) for c in command], check=True, **options)


def build_wheel(folder):
    wheel, glibc = make_wheel.make(folder)
    missing = NEEDED - set(zipfile.ZipFile(wheel).namelist())
    if missing:
        sys.exit(f"not in the wheel: {sorted(missing)}")
    unpacked = sum(i.file_size for i in zipfile.ZipFile(wheel).infolist())
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {unpacked / 1e6:.2f} MB installed, glibc {glibc} or later")
    return wheel


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wheel = build_wheel(folder)
        venv.create(folder / "bare", with_pip=False)
        python = folder / "bare/bin/python"
        target = next((folder / "bare/lib").glob("python*/site-packages"))
        run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel)
        run(python, "-c", SMOKE, cwd=folder, env=environment())
        flags = run(
            python, "-m", "lucid.config", "--cflags", "--libs", cwd=folder, env=environment(), capture_output=True, text=True
        )
        run("cc", "-std=gnu11", ROOT / "examples/c/regression.c", "-o", folder / "regression", *flags.stdout.split())
        run(folder / "regression")
        run("cc", ROOT / "examples/c/runtime.c", "-o", folder / "runtime", *flags.stdout.split())
        run(folder / "runtime")
    print("wheel: installs, runs without NumPy, compiles C programs")


if __name__ == "__main__":
    main()
