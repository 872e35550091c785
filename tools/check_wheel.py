#!/usr/bin/env python3
"""Build the wheel, install it into an empty environment (no NumPy), use it from Python and from C.   usage: check_wheel.py

Then the same wheel for every other Python of this machine that Lucid is for: the engine is built once, an extension per Python.
Needs no network: the build tools are those of the Python that runs this.
"""

import pathlib
import posixpath
import subprocess
import sys
import tempfile
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
model = lucid.nn.Sequential(lucid.nn.Linear(4, 16), lucid.nn.Tanh(), lucid.nn.Linear(16, 3))
optimizer = lucid.optim.AdamW(model.parameters(), lr=1e-2)
inputs, targets, losses = lucid.randn(16, 4), lucid.randint(0, 3, (16,)), []
for _ in range(100):
    optimizer.zero_grad()
    loss = lucid.nn.functional.cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.5 * losses[0], losses[::20]
file = io.BytesIO()
lucid.save(model.state_dict(), file)
file.seek(0)
assert lucid.load(file).keys() == model.state_dict().keys()
with lucid.profiler.profile(with_stack=True) as profile:
    model(inputs)
assert "linear" in profile.key_averages().table()
compiled = lucid.compile(lambda x: (x * 2).sin().sum())
assert abs(compiled(inputs) - (inputs * 2).sin().sum()) < 1e-5
print("Python", sys.version.split()[0] + ":", y)
"""
DOCTESTS = """
import doctest, importlib, sys
import lucid
for name in (
    "_print", "_compile.function", "autograd.functional", "func", "nn.modules.linear", "nn.modules.loss", "nn.utils.clip_grad",
    "optim.adam", "utils.data.dataloader",
):
    module = importlib.import_module(f"lucid.{name}")
    done = doctest.testmod(module, optionflags=doctest.IGNORE_EXCEPTION_DETAIL, extraglobs={"lucid": lucid})
    if done.failed or not done.attempted:
        sys.exit(f"{name}: {done}")
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


def install(wheel, folder, creator=sys.executable):
    """An empty environment of the Python `creator` with the wheel alone; its interpreter."""
    run(creator, "-m", "venv", "--without-pip", folder, env=environment())
    target = next((folder / "lib").glob("python*/site-packages"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return folder / "bin/python"


def use(python, folder):
    run(python, "-W", "error", "-c", SMOKE, cwd=folder, env=environment())
    run(python, "-c", DOCTESTS, cwd=folder, env=environment())


def use_from_c(python, folder):
    config = (python, "-m", "lucid.config", "--cflags", "--libs")
    flags = run(*config, cwd=folder, env=environment(), capture_output=True, text=True).stdout.split()
    for name in ("regression", "runtime"):
        run("cc", "-std=gnu11", ROOT / f"examples/c/{name}.c", "-o", folder / name, *flags)
        run(folder / name)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wheel = build_wheel(folder)
        python = install(wheel, folder / "bare")
        use(python, folder)
        use_from_c(python, folder)
        versions = [sys.version_info[:2]]
        for version, other in make_wheel.other_pythons().items():
            use(install(make_wheel.for_python(wheel, other, folder), folder / f"bare-{version[1]}", other), folder)
            versions.append(version)
    said = ", ".join(f"{major}.{minor}" for major, minor in sorted(versions))
    print(f"wheel: installs, runs without NumPy on Python {said}, compiles C programs")


if __name__ == "__main__":
    main()
