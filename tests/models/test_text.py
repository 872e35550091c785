"""Text models compute what transformers computes: from numbers it once gave, and side by side where it is installed."""

import json
import os
import pathlib
import subprocess
import sys
import warnings

import pytest

import lucid
from lucid import models

from . import cases

HERE = pathlib.Path(__file__).parent
NUMBERS = json.loads((HERE / "numbers.json").read_text())


def build(name):
    kind, fields = cases.CASES[name]
    model_class = getattr(models, cases.OURS.get(kind, kind))
    model = model_class(model_class.config_class.from_dict(fields)).eval()
    done = set()
    with lucid.no_grad():
        for key, tensor in model.state_dict().items():
            if tensor.data_ptr() not in done:
                done.add(tensor.data_ptr())
                tensor.copy_(lucid.tensor(cases.values(key, tensor.numel()), dtype=lucid.float64).view(tensor.shape))
    return model, {key: lucid.tensor(value) for key, value in cases.labels_for(kind).items()}


@pytest.mark.parametrize("name", cases.CASES)
def test_as_transformers(name):
    expected = NUMBERS[name]
    model, extra = build(name)
    ids, mask = lucid.tensor(cases.IDS), lucid.tensor(cases.MASK)
    shapes = {key: list(t.shape) for key, t in model.state_dict().items()}
    assert shapes == expected["keys"]
    assert sum(p.numel() for p in model.parameters()) == expected["count"]
    out = model(ids, attention_mask=mask, **extra)
    compared = 0
    for field in cases.FIELDS:
        if field in expected:
            value = getattr(out, field)
            picked = value[:, (-1, -3)] if value.ndim == 3 else value
            assert (picked.flatten() - lucid.tensor(expected[field])).abs().max() < 1e-4
            compared += 1
    assert compared
    if extra:
        assert abs(float(out.loss) - expected["loss"]) < 1e-5
        (out.loss if "mc_loss" not in expected else out.loss + out.mc_loss).backward()
        norms = {key: float(p.grad.norm()) for key, p in model.named_parameters() if p.grad is not None}
        assert set(norms) == set(expected["norms"])
        for key, norm in norms.items():
            assert norm == pytest.approx(expected["norms"][key], rel=1e-3, abs=1e-4), key


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral", "qwen3", "gemma", "bert", "bert masked words"])
def test_compiled(name):
    """A compiled model gives the same bits; a part that ran eagerly would warn."""
    model, ids = build(name)[0], lucid.tensor(cases.IDS)
    with lucid.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = lucid.compile(lambda ids: model(ids)[0])
        for _ in range(2):
            assert (compiled(ids) == model(ids)[0]).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_rounded(dtype):
    from lucid.models.text.llama import _rounded

    for width in (2048, 3072, 7, 257, 100003):
        dtype_ = getattr(lucid, dtype)
        assert _rounded(width**0.5, dtype_) == lucid.tensor(width**0.5, dtype=lucid.float64).to(dtype_).item()


def python_with_transformers():
    """A Python that has transformers: this one, or the one of the environment's LUCID_REFERENCE_PYTHON."""
    python = os.environ.get("LUCID_REFERENCE_PYTHON", sys.executable)
    found = subprocess.run([python, "-c", "import torch, transformers"], capture_output=True)
    return python if found.returncode == 0 else None


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    python = python_with_transformers()
    if python is None:
        pytest.skip("transformers is not installed (LUCID_REFERENCE_PYTHON names a Python that has it)")
    root = tmp_path_factory.mktemp("cases")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([python, str(HERE / "reference.py"), str(root)], check=True, env=environment)
    return root, python


@pytest.mark.parametrize("name", cases.CASES)
def test_folders_of_transformers(folders, name):
    folder = folders[0] / f"case{list(cases.CASES).index(name)}"
    kind = cases.CASES[name][0]
    model = getattr(models, cases.OURS.get(kind, kind)).from_pretrained(folder)
    expected = json.loads((folder / "outputs.json").read_text())
    out = model(lucid.tensor(cases.IDS), attention_mask=lucid.tensor(cases.MASK))
    for field in cases.FIELDS:
        if field in expected and field != "mc_loss":  # of labels
            assert (getattr(out, field) - lucid.tensor(expected[field])).abs().max() < 1e-4
