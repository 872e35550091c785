"""Adapters compute, train, merge and are stored as in peft: from numbers it gave, and side by side where it is installed."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import lucid
from lucid import lora, models, nn

from . import cases

HERE = pathlib.Path(__file__).parent
NUMBERS = json.loads((HERE / "numbers.json").read_text())
IDS = lucid.tensor(cases.IDS)


def build(name):
    return cases.fill(lucid, lora.get_peft_model(cases.network(nn), lora.LoraConfig(**cases.config_of(name))))


def far(a, b):
    return float((a - b).abs().max())


@pytest.mark.parametrize("name", cases.CASES)
def test_as_peft(name):
    expected, model = NUMBERS[name], build(name)
    assert {k: list(v.shape) for k, v in model.state_dict().items()} == expected["keys"]
    out = model(IDS)
    assert far(out, lucid.tensor(expected["out"])) < 1e-5
    out.square().sum().backward()
    norms = {key: float(p.grad.norm()) for key, p in model.named_parameters() if p.grad is not None}
    assert set(norms) == set(expected["norms"])
    for key, norm in norms.items():
        assert norm == pytest.approx(expected["norms"][key], rel=1e-4, abs=1e-6), key
    if "merged" in expected:
        bare = model.merge_and_unload()
        assert far(bare(IDS), out) < 1e-5
        sums = {key: float(value.abs().sum()) for key, value in bare.state_dict().items()}
        assert sums.keys() == expected["merged"].keys()
        assert all(sums[k] == pytest.approx(v, rel=1e-5) for k, v in expected["merged"].items())


@pytest.mark.parametrize("name", cases.CASES)
def test_files(tmp_path, name):
    model = build(name)
    model.save_pretrained(tmp_path)
    base = cases.fill(lucid, cases.network(nn))
    again = lora.PeftModel.from_pretrained(base, tmp_path)
    assert far(again(IDS), model(IDS)) == 0
    assert not any(p.requires_grad for p in again.parameters())
    trained = lora.PeftModel.from_pretrained(cases.fill(lucid, cases.network(nn)), tmp_path, is_trainable=True)
    assert trained.get_nb_trainable_parameters() == model.get_nb_trainable_parameters()


def python_with_peft():
    python = os.environ.get("LUCID_REFERENCE_PYTHON", sys.executable)
    return python if subprocess.run([python, "-c", "import peft"], capture_output=True).returncode == 0 else None


def test_exchange_with_peft(tmp_path):
    python = python_with_peft()
    if python is None:
        pytest.skip("peft is not installed (LUCID_REFERENCE_PYTHON names a Python that has it)")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    subprocess.run([python, HERE / "reference.py", theirs], check=True, env=environment)
    for number, name in enumerate(cases.CASES):
        base = cases.fill(lucid, cases.network(nn))
        read = lora.PeftModel.from_pretrained(base, theirs / str(number))
        assert far(read(IDS), lucid.tensor(NUMBERS[name]["out"])) < 1e-5, name
        build(name).save_pretrained(ours / str(number))
    subprocess.run([python, HERE / "reference.py", theirs, ours], check=True, env=environment)
    for number, name in enumerate(cases.CASES):
        out = json.loads((ours / f"{number}.json").read_text())
        assert far(lucid.tensor(out), lucid.tensor(NUMBERS[name]["out"])) < 1e-5, name


def test_merge_and_back():
    for name in ("plain", "magnitudes", "own biases"):
        model = build(name)
        model.eval()
        before, state = model(IDS), {k: v.clone() for k, v in model.state_dict().items()}
        with model.disable_adapter():
            base = model(IDS)
        assert far(base, before) > 1e-3
        model.merge_adapter()
        assert far(model(IDS), before) < 1e-5 and model.base_model.model.lin.merged_adapters == ["default"]
        model.merge_adapter()  # once is enough
        assert far(model(IDS), before) < 1e-5
        model.unmerge_adapter()
        assert all(far(v, state[k]) < 1e-6 for k, v in model.state_dict().items())
        model.merge_adapter()
        with model.disable_adapter():
            assert far(model(IDS), base) < 1e-5
        assert far(model.unload()(IDS), base) < 1e-5


def test_several_adapters():
    model = build("plain")
    one = model(IDS)
    model.add_adapter("other", lora.LoraConfig(r=3, target_modules=["lin", "head"], init_lora_weights=False))
    assert far(model(IDS), one) == 0 and model.active_adapter == "default"
    model.set_adapter("other")
    two = model(IDS)
    assert [k for k, p in model.named_parameters() if p.requires_grad and ".default" in k] == []
    assert far(two, one) > 1e-3
    model.set_adapter(["default", "other"])
    assert model.active_adapters == ["default", "other"] and far(model(IDS), one) > 1e-3
    both = model(IDS)
    model.merge_adapter()
    assert far(model(IDS), both) < 1e-5
    model.set_adapter("default")
    assert far(model(IDS), one) < 1e-5
    model.delete_adapter("other")
    assert far(model(IDS), one) < 1e-5 and "other" not in model.peft_config
    with pytest.raises(ValueError, match="no adapter"):
        model.set_adapter("other")
    with pytest.raises(ValueError, match="already"):
        model.add_adapter("default", lora.LoraConfig(target_modules=["lin"]))


@pytest.mark.parametrize("kind", ["gpt2", "llama", "bert"])
def test_fine_tuning(kind, tmp_path):
    """The loss falls, the model's own weights stay, and the stored adapter is a small part of it."""
    lucid.manual_seed(0)
    small = dict(vocab_size=13, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, initializer_range=0.3)
    made = {
        "gpt2": lambda: models.GPT2LMHeadModel(models.GPT2Config(**small, hidden_dropout=0.0, attention_dropout=0.0)),
        "llama": lambda: models.LlamaForCausalLM(models.LlamaConfig(**small, intermediate_size=24)),
        "bert": lambda: models.BertForMaskedLM(
            models.BertConfig(**small, intermediate_size=24, hidden_dropout=0.0, attention_dropout=0.0)
        ),
    }[kind]()
    targets = {"gpt2": ["c_attn", "c_fc", "c_proj"], "llama": ["q_proj", "up_proj", "down_proj"], "bert": ["value", "dense"]}[
        kind
    ]
    before = {k: v.clone() for k, v in made.state_dict().items()}
    model = lora.get_peft_model(made, lora.LoraConfig(r=4, lora_alpha=32, lora_dropout=0.1, target_modules=targets))
    ids = lucid.tensor([[1, 2, 3, 4, 5, 6, 7, 8]])
    optimizer = lucid.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0]
    model.eval()
    out = model(ids).logits
    model.save_pretrained(tmp_path)
    assert sum(f.stat().st_size for f in tmp_path.iterdir()) < 30_000
    bare = model.unload()
    assert list(bare.state_dict()) == list(before) and all(far(v, before[k]) < 1e-6 for k, v in bare.state_dict().items())
    again = lora.PeftModel.from_pretrained(bare, tmp_path).eval()
    assert far(again(ids).logits, out) < 1e-5
    assert far(again.merge_and_unload()(ids).logits, out) < 1e-4


def test_all_linear():
    config = models.LlamaConfig(vocab_size=13, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2)
    model = lora.get_peft_model(models.LlamaForCausalLM(config), lora.LoraConfig(target_modules="all-linear"))
    names = {name.rpartition(".")[2] for name, _ in model.lora_layers()}
    assert names == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
    only = lora.LoraConfig(target_modules=["q_proj"], layers_to_transform=[1])
    two = lora.get_peft_model(models.LlamaForCausalLM(config.replace(num_hidden_layers=2)), only)
    assert [name for name, _ in two.lora_layers()] == ["model.layers.1.self_attn.q_proj"]


def test_errors(tmp_path):
    for bad in (dict(r=0), dict(lora_dropout=1.0), dict(bias="some"), dict(init_lora_weights="pissa")):
        with pytest.raises(ValueError):
            lora.LoraConfig(**bad)
    with pytest.raises(ValueError, match="use_qalora"):
        lora.LoraConfig.from_dict({"use_qalora": True})
    with pytest.raises(ValueError, match="no field 'rank'"):
        lora.LoraConfig.from_dict({"rank": 2})
    with pytest.raises(ValueError, match="no path"):
        lora.get_peft_model(cases.network(nn), lora.LoraConfig(target_modules=["q_proj"]))
    with pytest.raises(ValueError, match="Sequential"):
        lora.get_peft_model(nn.Sequential(nn.Sequential()), lora.LoraConfig(target_modules=["0"]))
    with pytest.raises(ValueError, match="target_modules is needed"):
        lora.get_peft_model(cases.network(nn), lora.LoraConfig())
    build("plain").save_pretrained(tmp_path)
    tensors = lucid.load_safetensors(tmp_path / "adapter_model.safetensors", mmap=False)
    tensors["base_model.model.lin.lora_A.weight"] = lucid.ones(9, 6)
    del tensors["base_model.model.lin.lora_B.weight"]
    lucid.save_safetensors(tensors, tmp_path / "adapter_model.safetensors")
    with pytest.raises(models.WeightsError) as caught:
        lora.PeftModel.from_pretrained(cases.network(nn), tmp_path)
    assert caught.value.missing == ["base_model.model.lin.lora_B.weight"] and len(caught.value.misshapen) == 1
