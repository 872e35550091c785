"""What users of peft rely on besides the layers: heads by task, which arguments exclude each other, weights in halves and in
codes, sums of adapters, what files of peft hold besides the matrices."""

import json
import os
import subprocess

import pytest

import lucid
from lucid import generation, lora, models, nn

from .test_lora import python_with_peft

IDS = lucid.tensor([[5, 9, 31, 2, 17, 8], [7, 1, 12, 30, 4, 22]])
SMALL = dict(vocab_size=37, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4)


def llama(**fields):
    lucid.manual_seed(0)
    config = models.LlamaConfig(**SMALL, num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.3, **fields)
    return models.LlamaForCausalLM(config).eval()


def stirred(model):
    lucid.manual_seed(1)
    with lucid.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(lucid.randn_like(parameter) * 0.2)
    return model


def far(a, b):
    return float((a.float() - b.float()).abs().max())


@pytest.mark.parametrize("task", ["SEQ_CLS", lora.TaskType.SEQ_CLS])
def test_heads_are_trained_and_saved(tmp_path, task):
    def fresh():
        lucid.manual_seed(0)
        return models.BertForSequenceClassification(models.BertConfig(**SMALL, num_labels=3)).eval()

    model = stirred(lora.get_peft_model(fresh(), lora.LoraConfig(r=2, task_type=task, target_modules="all-linear")))
    trained = {name for name, p in model.named_parameters() if p.requires_grad and "lora_" not in name}
    assert trained == {f"base_model.model.classifier.modules_to_save.default.{name}" for name in ("weight", "bias")}
    model.save_pretrained(tmp_path)
    about = json.loads((tmp_path / "adapter_config.json").read_text())
    assert about["task_type"] == "SEQ_CLS" and about["modules_to_save"] == ["classifier"]
    about["modules_to_save"] = ["classifier", "score"]  # as peft writes it, whatever the model has
    (tmp_path / "adapter_config.json").write_text(json.dumps(about))
    again = lora.PeftModel.from_pretrained(fresh(), tmp_path)
    assert far(again(IDS).logits, model(IDS).logits) < 1e-6 < far(fresh()(IDS).logits, model(IDS).logits)
    with pytest.raises(ValueError):
        lora.LoraConfig(task_type="SEQ_CLASS")
    with pytest.raises(ValueError, match="no module"):
        lora.get_peft_model(fresh(), lora.LoraConfig(task_type=task, modules_to_save=["clasifier"]))


def test_arguments_that_exclude_each_other():
    with pytest.raises(ValueError, match="as a list"):
        lora.LoraConfig(target_modules=".*q_proj", layers_to_transform=[0])
    with pytest.raises(ValueError, match="give both"):
        lora.LoraConfig(target_modules=["q_proj"], layers_pattern="layers")
    model = lora.get_peft_model(llama(), lora.LoraConfig(target_modules=["q_proj"], layers_to_transform=[1]))
    assert [path for path, _ in model.lora_layers()] == ["model.layers.1.self_attn.q_proj"]


def test_dropout_follows_the_model():
    model = lora.get_peft_model(llama(), lora.LoraConfig(r=2, lora_dropout=0.5, use_dora=True))
    stirred(model)
    assert not model.training and far(model(IDS).logits, model(IDS).logits) == 0
    model.add_adapter("other", lora.LoraConfig(r=2, lora_dropout=0.5, init_lora_weights=False))
    model.set_adapter("other")
    assert far(model(IDS).logits, model(IDS).logits) == 0
    assert far(model.train()(IDS).logits, model(IDS).logits) > 0


@pytest.mark.parametrize("dora", [False, True])
def test_weights_in_halves(tmp_path, dora):
    """The matrices are float32, so that steps smaller than a half's rounding count; results are halves."""
    config = lora.LoraConfig(r=2, target_modules=["q_proj", "down_proj", "embed_tokens"][: 2 if dora else 3], use_dora=dora)
    model = stirred(lora.get_peft_model(llama().to(lucid.bfloat16), config))
    kinds = {p.dtype for p in model.parameters() if p.requires_grad}
    assert kinds == {lucid.float32} and model(IDS).logits.dtype == lucid.bfloat16
    model(IDS, labels=IDS).loss.backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
    single = stirred(lora.get_peft_model(llama().to(lucid.bfloat16).float(), config))
    assert far(model(IDS).logits, single(IDS).logits) < 0.2
    before = model(IDS).logits
    model.merge_adapter()
    assert model.base_model.model.dtype == lucid.bfloat16 and far(model(IDS).logits, before) < 0.2
    halves = lora.get_peft_model(llama().to(lucid.bfloat16), config, autocast_adapter_dtype=False)
    assert {p.dtype for p in halves.parameters()} == {lucid.bfloat16}


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dora", [False, True])
def test_beside_codes(tmp_path, bits, dora):
    """Adapters train beside weights in 8 and 4 bits; quantize leaves adapters alone."""
    fields = dict(SMALL, hidden_size=32, intermediate_size=64)
    lucid.manual_seed(0)
    base = models.LlamaForCausalLM(models.LlamaConfig(**fields, initializer_range=0.2)).eval()
    generation.quantize(base, bits)
    plain = base(IDS).logits
    model = lora.get_peft_model(base, lora.LoraConfig(r=2, target_modules="all-linear", use_dora=dora))
    assert far(model(IDS).logits, plain) < 1e-5
    assert len(model.lora_layers()) == 14
    history = lora.Trainer(model, [{"input_ids": IDS, "labels": IDS}], epochs=12, lr=2e-2, progress=False).train()
    assert history[-1].loss < 0.7 * history[0].loss
    with pytest.raises(ValueError, match="8 or 4 bits"):
        model.merge_and_unload()
    model.save_pretrained(tmp_path)
    trained = model.eval()(IDS).logits
    assert far(model.unload()(IDS).logits, plain) < 1e-6
    assert far(lora.PeftModel.from_pretrained(base, tmp_path)(IDS).logits, trained) < 1e-5
    adapted = lora.get_peft_model(llama(), lora.LoraConfig(r=2, target_modules=["q_proj"]))
    generation.quantize(adapted, 8)
    _, layer = adapted.lora_layers()[0]
    assert isinstance(layer.base_layer, generation.QuantizedLinear) and type(layer.lora_A["default"]) is nn.Linear


def test_sums_of_adapters(tmp_path):
    config = lora.LoraConfig(r=2, lora_alpha=3, target_modules=["q_proj", "embed_tokens"], init_lora_weights=False)
    model = lora.get_peft_model(llama(), config, "a")
    model.add_adapter("b", lora.LoraConfig(r=3, target_modules=["q_proj", "up_proj"], init_lora_weights=False))
    layers = dict(model.lora_layers())
    model.add_weighted_adapter(["a", "b"], [0.7, -0.5], "cat", "cat")
    model.add_weighted_adapter(["a", "b"], [0.7, -0.5], "svd", "svd", svd_rank=5)
    for layer in layers.values():
        whole = sum(w * layer.delta(n) for n, w in (("a", 0.7), ("b", -0.5)) if n in layer.scaling)
        assert far(layer.delta("cat"), whole) < 1e-5 and far(layer.delta("svd"), whole) < 1e-5
    model.add_adapter("c", lora.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
    model.add_weighted_adapter(["a"], [4.0], "four", "linear")
    assert far(layers["model.embed_tokens"].delta("four"), 4 * layers["model.embed_tokens"].delta("a")) < 1e-5
    model.set_adapter("cat")
    out = model(IDS).logits
    model.save_pretrained(tmp_path)
    assert far(lora.PeftModel.from_pretrained(llama(), tmp_path / "cat")(IDS).logits, out) < 1e-5
    for bad in (
        dict(adapters=["a", "x"], weights=[1, 1], adapter_name="n"),
        dict(adapters=["a"], weights=[1, 1], adapter_name="n"),
        dict(adapters=["a", "b"], weights=[1, 1], adapter_name="n", combination_type="linear"),
        dict(adapters=["a", "b"], weights=[1, 1], adapter_name="n", combination_type="ties"),
        dict(adapters=["a", "b"], weights=[1, 1], adapter_name="cat"),
    ):
        with pytest.raises(ValueError):
            model.add_weighted_adapter(**bad)


def test_merging_safely():
    model = stirred(lora.get_peft_model(llama(), lora.LoraConfig(r=2)))
    path, layer = model.lora_layers()[0]
    before = layer.weight.clone()
    with lucid.no_grad():
        layer.lora_B["default"].weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="not finite"):
        model.merge_and_unload(safe_merge=True)
    assert (layer.weight == before).all()
    tied = stirred(lora.get_peft_model(llama(tie_word_embeddings=True), lora.LoraConfig(r=2, target_modules=["embed_tokens"])))
    with pytest.warns(UserWarning, match="shares its weight with lm_head"):
        tied.merge_adapter()


def test_state_dicts(tmp_path):
    model = stirred(lora.get_peft_model(llama(), lora.LoraConfig(r=2)))
    state = {key: value.clone() for key, value in lora.get_peft_model_state_dict(model).items()}
    other = lora.get_peft_model(llama(), lora.LoraConfig(r=2))
    lora.set_peft_model_state_dict(other, state)
    assert far(other(IDS).logits, model(IDS).logits) == 0
    with pytest.raises(models.WeightsError, match="missing"):
        lora.set_peft_model_state_dict(other, dict(list(state.items())[1:]))
    model.save_pretrained(tmp_path, safe_serialization=False)
    assert sorted(os.listdir(tmp_path)) == ["adapter_config.json", "adapter_model.bin"]
    assert far(lora.PeftModel.from_pretrained(llama(), tmp_path)(IDS).logits, model(IDS).logits) == 0


def test_files_of_peft_with_embeddings(tmp_path):
    """peft saves embeddings beside the adapter if they are adapted."""
    config = lora.LoraConfig(r=2, target_modules=["embed_tokens", "q_proj"])
    model = stirred(lora.get_peft_model(llama(), config))
    model.save_pretrained(tmp_path)
    file = tmp_path / "adapter_model.safetensors"
    tensors = {key: value.clone() for key, value in lucid.load_safetensors(file).items()}
    table = llama().model.embed_tokens.weight.detach() + 1.0
    tensors["base_model.model.model.embed_tokens.base_layer.weight"] = table
    lucid.save_safetensors(tensors, file)
    read = lora.PeftModel.from_pretrained(llama(), tmp_path)
    assert (read.base_model.model.model.embed_tokens.weight == table).all()
    tensors["base_model.model.model.nothing.weight"] = table.clone()
    lucid.save_safetensors(tensors, file)
    with pytest.raises(models.WeightsError, match="unexpected"):
        lora.PeftModel.from_pretrained(llama(), tmp_path)


THEIRS = """
import sys, peft, torch, transformers
model = transformers.AutoModelForSequenceClassification.from_pretrained(sys.argv[1])
model = peft.get_peft_model(model, peft.LoraConfig(r=2, task_type="SEQ_CLS", init_lora_weights=False))
torch.nn.init.normal_(model.base_model.model.classifier.modules_to_save["default"].out_proj.weight)
model.eval().save_pretrained(sys.argv[2])
print(model(torch.arange(12).view(2, 6)).logits.tolist())
"""


def test_a_classifier_of_peft(tmp_path):
    python = python_with_peft()
    if python is None:
        pytest.skip("peft is not installed (LUCID_REFERENCE_PYTHON names a Python that has it)")
    lucid.manual_seed(0)
    models.RobertaForSequenceClassification(models.RobertaConfig(**SMALL, num_labels=3)).save_pretrained(tmp_path / "base")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [python, "-c", THEIRS, tmp_path / "base", tmp_path / "adapter"]
    out = subprocess.run(command, check=True, env=environment, capture_output=True, text=True).stdout
    base = models.RobertaForSequenceClassification.from_pretrained(tmp_path / "base")
    read = lora.PeftModel.from_pretrained(base, tmp_path / "adapter")
    assert far(read(lucid.arange(12).view(2, 6)).logits, lucid.tensor(json.loads(out.splitlines()[-1]))) < 1e-5
