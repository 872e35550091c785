"""What `import lucid` loads, and what it leaves for later."""

import os
import pathlib
import pickle
import shutil
import subprocess
import sys

import pytest

import lucid

HEAVY = [
    "numpy",
    "torch",
    "typing",
    "dataclasses",
    "inspect",
    "contextlib",
    "functools",
    "re",
    "collections",
    "enum",
    "ctypes",
    "pickle",
]


def run(code):
    """In a fresh Python without site packages' start-up files."""
    path = [p for p in sys.path if p]
    start = f"import sys; sys.path[:0] = {path!r}; before = set(sys.modules); import lucid; after = set(sys.modules) - before\n"
    done = subprocess.run([sys.executable, "-S", "-E", "-c", start + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_loads_nothing_heavy():
    loaded = run("print(*sorted(after))").split()
    assert "lucid._C" in loaded
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]
    assert not [
        name for name in loaded if name.startswith(("lucid.nn", "lucid.testing", "lucid.types", "lucid.autograd.functional"))
    ]


def test_submodules_load_when_asked_for():
    assert (
        run("print('lucid.nn' in sys.modules, lucid.nn.Parameter.__name__, 'lucid.nn' in sys.modules)")
        == "False Parameter True"
    )
    assert (
        run("print('typing' in sys.modules, lucid.Scalar, 'typing' in sys.modules)")
        == "False int | float | complex | bool True"
    )
    assert run("print(callable(lucid.autograd.gradcheck), callable(lucid.autograd.gradgradcheck))") == "True True"
    assert run("from lucid.autograd import gradcheck; import lucid.autograd.functional; print(callable(gradcheck))") == "True"


def test_unknown_names():
    assert run("print(hasattr(lucid, 'nothing'), hasattr(lucid.autograd, 'nothing'))") == "False False"
    assert {"nn", "testing", "Scalar", "tensor"} <= set(dir(lucid))
    assert {"gradcheck", "functional", "grad"} <= set(dir(lucid.autograd))


def in_a_clone(folder, *command, path=""):
    """In a copy of the package's Python files beside a meson.build, as a clone without a build has them."""
    package = pathlib.Path(lucid.__file__).parent
    for name in ("__init__.py", "_unbuilt.py"):
        (folder / "lucid").mkdir(exist_ok=True)
        shutil.copy(package / name, folder / "lucid" / name)
    (folder / "meson.build").touch()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | ({"PYTHONPATH": path} if path else {})
    return subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)


def test_a_clone_without_a_build_says_what_to_do(tmp_path):
    text = in_a_clone(tmp_path, "-c", "import lucid").stderr
    assert "ImportError: this is Lucid's source tree" in text and "it is not built: run `make build" in text
    (tmp_path / "lucid/_C.cpython-30-x86_64-linux-gnu.so").touch()
    assert "built for another Python (_C.cpython-30-" in in_a_clone(tmp_path, "-c", "import lucid").stderr


def test_in_a_clone_the_installed_package_takes_over(tmp_path):
    installed = str(pathlib.Path(lucid.__file__).parent.parent)
    told = in_a_clone(tmp_path, "-c", "import lucid; from lucid import nn; print(lucid.__file__, nn.Linear)", path=installed)
    assert told.stdout.startswith(lucid.__file__), told.stderr
    assert "-llucid" in in_a_clone(tmp_path, "-m", "lucid.config", "--libs", path=installed).stdout


def test_names_of_types_and_numbers():
    pairs = [
        ("float", "float32"),
        ("double", "float64"),
        ("half", "float16"),
        ("short", "int16"),
        ("int", "int32"),
        ("long", "int64"),
    ]
    pairs += [("cfloat", "complex64"), ("cdouble", "complex128"), ("bool_", "bool")]
    assert all(getattr(lucid, a) is getattr(lucid, b) for a, b in pairs)
    assert (
        lucid.inf == float("inf")
        and lucid.nan != lucid.nan
        and round(lucid.pi + lucid.e, 6) == 5.859874
        and lucid.newaxis is None
    )


def test_verbose_tells_ops_and_paths():
    program = (
        "import lucid; x = lucid.zeros(4, 4); x + lucid.arange(4); x.t().sum(); lucid.cumsum(x, 0, out=lucid.empty(8, 4)[::2]);"
        "x @ x; x.sort(); lucid.nn.functional.conv2d(x.view(1, 1, 4, 4), lucid.ones(1, 1, 3, 3))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    quiet = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment | {"LUCID_VERBOSE": "0"}
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment | {"LUCID_VERBOSE": "1"}
    )
    assert quiet.returncode == told.returncode == 0 and quiet.stderr == ""
    for line in (
        "lucid: add(float32[4, 4], int64[4]): a kernel",
        "lucid:   through tiles: operand 1 is int64, the loop wants float32",
        "lucid: t(float32[4, 4]): a view",
        "lucid: sum(float32[4, 4] strided): a kernel",
        "lucid:   computed aside, then copied: the destination is strided, of another dtype or one of the inputs",
        "lucid:   product: small parts",
        "lucid:   sort: insertion, a tile of lines at a time",
        "lucid:   convolution: tiles over strips",
    ):
        assert line in told.stderr.splitlines()


def test_missing_names_say_what_to_use():
    from lucid._declared.instead import INSTEAD

    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/from-pytorch.md").read_text()
    for key, text in INSTEAD.items():
        assert f"| `{key}` | {text} |" in page
        space, _, name = key.rstrip("*").rpartition(".")
        holder = lucid
        for part in space.split(".") if space else ():
            holder = getattr(holder, part)
        assert not hasattr(holder, name), f"{key} is there: take it out of the table"
    for holder, name, near in ((lucid, "softmaxx", "softmax"), (lucid.nn, "Linaer", "Linear"), (lucid.optim, "AdmaW", "AdamW")):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'. Did you mean '{near}'"):
            getattr(holder, name)
    with pytest.raises(AttributeError, match="use lucid.generation.quantize"):
        lucid.quantize_per_tensor  # noqa: B018
    again = pickle.loads(pickle.dumps(lucid._declared.instead.MissingName("nn", "x")))
    assert type(again) is AttributeError and "no attribute 'x'" in str(again)
