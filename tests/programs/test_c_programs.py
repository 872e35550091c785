"""C and C++ programs that use liblucid, compiled as a user compiles them: what they print, save and learn is what Python
prints, loads and learns.
"""

import functools
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest
import torch

import lucid
from lucid import config
from lucid.serialization import versions

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
FOLDER = tempfile.TemporaryDirectory()


@functools.cache
def compiled(source, *command):
    program = pathlib.Path(FOLDER.name, pathlib.Path(source).name.replace(".", "_"))
    flags = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", *config.cflags()]
    subprocess.run([*command, *flags, str(source), "-o", str(program), *config.libs()], check=True)
    return program


def run(source, *arguments):
    program = compiled(HERE / source, "cc", "-std=gnu11")
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)


def shown():
    g = lucid.Generator().manual_seed(0)
    tensors = {
        "numbers": lucid.randn(3, 4, generator=g),
        "whole": lucid.arange(12.0).view(3, 4),
        "scientific": lucid.tensor([1e-9, 1.0, 12345.0]),
        "large": lucid.tensor([123456789.0, 1.0]),
        "small": lucid.tensor([0.00001, 0.0]),
        "mixed": lucid.tensor([math.inf, -math.inf, math.nan, 0.0, -2.5]),
        "only infinite": lucid.tensor([math.inf, math.nan, 0.0]),
        "not a number": lucid.tensor(-math.nan),
        "zero": lucid.tensor(-0.0),
        "scalar": lucid.tensor(3.14159),
        "empty": lucid.empty(0),
        "empty whole": lucid.empty(2, 0, 3, dtype=lucid.int64),
        "deep": lucid.randn(2, 1, 3, 2, generator=g),
        "many": lucid.arange(1001.0) / 7,
        "many small": lucid.randn(50, 60, generator=g) * 1e-6,
        "three": lucid.arange(8 * 9 * 20.0).view(8, 9, 20),
        "tall": lucid.arange(2000).view(1000, 2),
        "long": lucid.arange(100),
        "many in a line": lucid.randn(200, generator=g),
        "double": lucid.randn(5, generator=g).double() * 1e300,
        "half": lucid.randn(7, generator=g).half(),
        "bfloat": lucid.randn(7, generator=g).bfloat16() * 1e9,
        "eight": lucid.randn(7, generator=g).to(lucid.float8_e4m3fn),
        "signed": lucid.tensor([-1, 100], dtype=lucid.int8),
        "longest": lucid.tensor([-(2**63), 2**63 - 1]),
        "unsigned": lucid.tensor([2**63 - 1, 1], dtype=lucid.int64).to(lucid.uint64),
        "truths": lucid.tensor([[True, False]]),
        "complex": lucid.complex(lucid.randn(3, 2, generator=g), lucid.randn(3, 2, generator=g)),
        "whole complex": lucid.complex(lucid.arange(3.0), -lucid.arange(3.0)),
        "complex with holes": lucid.complex(lucid.tensor([math.nan, 1e9]), lucid.tensor([-math.inf, 0.5])),
    }
    for dtype in (lucid.uint8, lucid.int16, lucid.uint16, lucid.int32, lucid.uint32):
        tensors[str(dtype)] = lucid.tensor([1, 2, 127], dtype=lucid.int64).to(dtype)
    for i in range(40):
        shape = [(i * 7 + k * 3) % 5 + 1 for k in range(i % 4)]
        tensors[f"random {i}"] = lucid.randn(shape, generator=g) * 10.0 ** (i % 13 - 6)
    return tensors


def test_c_prints_what_python_prints(tmp_path):
    tensors = shown()
    lucid.save_safetensors(tensors, tmp_path / "t.safetensors")
    ran = run("print_all.c", tmp_path / "t.safetensors")
    assert ran.returncode == 0, ran.stderr
    texts = ran.stdout.split("\n----\n")[:-1]
    assert len(texts) == len(tensors)
    for text, (name, tensor) in zip(texts, lucid.load_safetensors(tmp_path / "t.safetensors").items(), strict=True):
        assert text == repr(tensor), name


def test_an_error_of_a_c_program(tmp_path):
    (tmp_path / "t.safetensors").write_bytes(b"nothing of the kind")
    ran = run("print_all.c", tmp_path / "t.safetensors")
    assert ran.returncode == 1 and ran.stderr.startswith("ValueError: ") and "not a whole safetensors file" in ran.stderr


ADAM = ("exp_avg", "exp_avg_sq", "step")
CASES = {
    "sgd": ("sgd", "SGD", {"lr": 0.01}, ()),
    "sgd with momentum": ("sgd", "SGD", {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}, ("momentum_buffer",)),
    "sgd damped": ("sgd", "SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.3}, ("momentum_buffer",)),
    "sgd nesterov": ("sgd", "SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}, ("momentum_buffer",)),
    "sgd uphill": ("sgd", "SGD", {"lr": 0.001, "maximize": True}, ()),
    "adam": ("adam", "Adam", {"lr": 0.1}, ADAM),
    "adam decayed": ("adam", "Adam", {"lr": 0.1, "weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-3}, ADAM),
    "adam amsgrad": ("adam", "Adam", {"lr": 0.1, "amsgrad": True}, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")),
    "adamw": ("adamw", "AdamW", {"lr": 0.1}, ADAM),
}  # fmt: skip


def trained(name, settings, values):
    a, b = (torch.tensor(v.tolist(), requires_grad=True) for v in values)
    optimizer = getattr(torch.optim, name)([a, b], **settings)
    for i in range(8):
        optimizer.zero_grad()
        loss = (a * a * a).sum()
        (loss + (b * b).sum() if i >= 2 else loss).backward()
        optimizer.step()
    return a, b, optimizer.state_dict()["state"]


@pytest.mark.parametrize("case", CASES)
def test_optimizers_make_pytorchs_steps(case, tmp_path):
    kind, name, settings, states = CASES[case]
    values = lucid.linspace(-1, 2, 12).view(3, 4), lucid.linspace(1, 2, 5)
    lucid.save_safetensors({"a": values[0], "b": values[1]}, tmp_path / "in")
    flat = {k: v for k, v in settings.items() if k != "betas"} | dict(zip(("beta1", "beta2"), settings.get("betas", ())))
    words = [f"{k}={v:d}" if isinstance(v, bool) else f"{k}={v!r}" for k, v in flat.items()]
    ran = run("train.c", tmp_path / "in", tmp_path / "out", kind, *words)
    assert ran.returncode == 0, ran.stderr
    found = lucid.load_safetensors(tmp_path / "out")
    a, b, state = trained(name, settings, values)
    wanted = {"a": a, "b": b} | {f"optimizer.{i}.{s}": state[i][s] for i in range(2) for s in states}
    assert found.keys() == wanted.keys()
    for key, expected in wanted.items():
        torch.testing.assert_close(torch.tensor(found[key].tolist()), expected.detach(), rtol=2e-6, atol=1e-7, msg=key)


def test_files_of_python_and_c_are_the_same(tmp_path):
    """train.c writes what it read: nothing but the states of the optimizer is added, and safetensors' own reader reads it."""
    from safetensors.torch import load_file

    lucid.save_safetensors({"a": lucid.ones(2), "b": lucid.zeros(3)}, tmp_path / "in")
    assert run("train.c", tmp_path / "in", tmp_path / "out", "sgd", "lr=0").returncode == 0
    assert {k: v.tolist() for k, v in load_file(tmp_path / "out").items()} == {"a": [1, 1], "b": [0, 0, 0]}
    assert f"FORMAT = {versions.FORMAT} }}" in (ROOT / "engine/programs/safetensors.c").read_text()


def test_lenet_keeps_its_weights_where_python_reads_them(tmp_path):
    sys.path.insert(0, str(ROOT / "examples"))
    import digits

    program, file = compiled(ROOT / "examples/c/lenet.c", "cc", "-std=gnu11"), tmp_path / "lenet.safetensors"
    data = ROOT / "examples/data/digits.gz"
    trained = subprocess.run([str(program), "4", str(data), str(file)], capture_output=True, text=True, check=True).stdout
    nn = lucid.nn
    layers = {"c1": nn.Conv2d(1, 6, 5), "c3": nn.Conv2d(6, 16, 5), "c5": nn.Conv2d(16, 120, 5)}
    layers |= {"f6": nn.Linear(120, 84), "output": nn.Linear(84, 10)}
    model = nn.ModuleDict(layers)
    model.load_state_dict(lucid.load_safetensors(file))
    (_, _), (x, labels) = digits.load()
    x = nn.functional.interpolate(x.view(-1, 1, 8, 8) * 2 - 1, size=32, mode="bilinear")
    for name in ("c1", "c3"):
        x = nn.functional.avg_pool2d(model[name](x).tanh(), 2)
    scores = model["output"](model["f6"](model["c5"](x).tanh().flatten(1)).tanh())
    accuracy = (scores.argmax(1) == labels).float().mean().item()
    assert f"test accuracy {accuracy:.1%}".replace("%", " %") in trained.splitlines()[-1]
    before = file.read_bytes()
    subprocess.run([str(program), "0", str(data), str(file)], check=True)  # fails below 90 %: the weights are those of the file
    assert file.read_bytes() == before
    file.write_bytes(before[:-1])
    refused = subprocess.run([str(program), "0", str(data), str(file)], capture_output=True, text=True)
    assert refused.returncode == 1 and "not a whole safetensors file" in refused.stderr


@pytest.mark.skipif(not shutil.which("c++"), reason="no C++ compiler")
def test_a_cpp_program():
    program = compiled(HERE / "program.cpp", "c++", "-std=c++17")
    ran = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        "tensor([2., 1.], grad_fn=<RoundBackward0>)",
        "tensor([[1.5000, 1.5000],",
        "        [1.5000, 1.5000]], dtype=lucid.float64)",
        "ShapeMismatch: " + str(error_of(lambda: lucid.matmul(lucid.zeros(4), lucid.zeros(2, 2)))),
    ]


def error_of(call):
    with pytest.raises(Exception) as raised:  # noqa: B017 (compared above)
        call()
    return raised.value
