"""Configs, the registry, outputs, and files that fit or say why they do not."""

import json
import subprocess
import sys
import typing
import warnings

import pytest

import lucid
from lucid import models

SMALL = dict(vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2)


def gpt2(**fields):
    lucid.manual_seed(0)
    return models.GPT2LMHeadModel(models.GPT2Config(**{**SMALL, **fields})).eval()


def same(a, b):
    return all(bool((x == y).all()) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_config():
    config = models.LlamaConfig(hidden_size=32, num_attention_heads=4, rope_scaling={"rope_type": "linear", "factor": 2.0})
    assert models.LlamaConfig.from_dict(config.to_dict()) == config != config.replace(vocab_size=7)
    with pytest.raises(AttributeError):
        config.hidden_size = 3
    with pytest.raises(ValueError, match="no field 'layers'"):
        models.GPT2Config.from_dict({"layers": 2})
    with pytest.raises(ValueError, match="add_cross_attention=True is not implemented"):
        models.GPT2Config.from_dict({"add_cross_attention": True}, strict=False)
    with pytest.raises(ValueError, match="multiple"):
        models.GPT2Config(hidden_size=10, num_attention_heads=4)
    with pytest.raises(ValueError, match="longrope"):
        models.LlamaModel(models.LlamaConfig(**SMALL, rope_scaling={"rope_type": "longrope"}))
    with pytest.raises(TypeError, match="takes a GPT2Config"):
        models.GPT2Model(config)
    assert models.BertConfig.from_dict({"id2label": {"0": "a", "1": "b", "2": "c"}}, strict=False).num_labels == 3


def test_names():
    """The table of names has what the modules make, and asking for a name loads its family alone."""
    assert set(models.__all__) <= set(dir(models))
    values = {name: getattr(models, name) for name in models.__all__}
    assert not [name for name, value in values.items() if not value.__doc__ and typing.get_origin(value) is not typing.Literal]
    code = "import sys, lucid; lucid.models.lenet_5; print([m for m in sys.modules if m.startswith('lucid.models.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['lucid.models._names', 'lucid.models.lenet']"
    with pytest.raises(ValueError, match="gpt2_small_lm"):
        models.create_model("gpt2_smal_lm")
    with pytest.raises(AttributeError):
        models.nothing  # noqa: B018


def test_published_sizes():
    """Full-size models have the published number of parameters; on the meta device they take no memory."""
    published = {
        "gpt2_small_lm": 124439808,
        "gpt2_medium_lm": 354823168,
        "gpt2_large_lm": 774030080,
        "gpt2_xlarge_lm": 1557611200,
        "bert_tiny": 4385920,
        "bert_base": 109482240,
        "bert_large": 335141888,
        "llama_3_8b_lm": 8030261248,
        "llama_3_2_1b_lm": 1235814400,
        "mistral_7b_lm": 7241732096,
        "qwen2_0_5b_lm": 494032768,
        "qwen2_7b_lm": 7615616512,
        "qwen3_0_6b_lm": 596049920,
        "smollm_135m_lm": 134515008,
        "gemma_2b_lm": 2506172416,
    }
    with lucid.device("meta"):
        assert {name: models.create_model(name).num_parameters() for name in published} == published


@pytest.mark.parametrize("form", ["whole", "parts", "bin", "bin parts", "file"])
def test_folders(tmp_path, form):
    model = gpt2()
    model.save_pretrained(tmp_path, max_shard_size="1KB" if form == "parts" else "5GB")
    state = {key: value for key, value in model.state_dict().items() if key != "lm_head.weight"}
    if form.startswith("bin"):
        (tmp_path / "model.safetensors").unlink()
        names = list(state)
        if form == "bin":
            lucid.save(state, tmp_path / "pytorch_model.bin")
        else:
            half = len(names) // 2
            lucid.save({k: state[k] for k in names[:half]}, tmp_path / "a.bin")
            lucid.save({k: state[k] for k in names[half:]}, tmp_path / "b.bin")
            where = {k: "a.bin" if i < half else "b.bin" for i, k in enumerate(names)}
            (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": where}))
    path = tmp_path / "model.safetensors" if form == "file" else tmp_path
    again = models.GPT2LMHeadModel.from_pretrained(path)
    assert same(model, again) and again.config == model.config and not again.training
    assert again.lm_head.weight is again.transformer.wte.weight
    assert same(models.AutoModelForCausalLM.from_pretrained(path), model)
    assert models.GPT2Model.from_pretrained(path).wte.weight.tolist() == model.transformer.wte.weight.tolist()
    again.transformer.wte.weight.data.zero_()  # the pages are the model's own
    assert same(models.GPT2LMHeadModel.from_pretrained(path), model)


def test_network_alone_into_a_model_with_a_head(tmp_path):
    """As openai's own file: no prefix, and buffers of old versions."""
    model = gpt2()
    state = {key.removeprefix("transformer."): v for key, v in model.state_dict().items() if key != "lm_head.weight"}
    state["h.0.attn.bias"] = lucid.ones(1, 1, 4, 4)
    models.GPT2Config(**SMALL).save(tmp_path)
    lucid.save_safetensors(state, tmp_path / "model.safetensors")
    assert same(models.GPT2LMHeadModel.from_pretrained(tmp_path), model)


def test_what_does_not_fit(tmp_path):
    model = gpt2()
    state = dict(model.state_dict())
    state["extra"] = lucid.ones(1)
    del state["transformer.wpe.weight"]
    state["transformer.ln_f.bias"] = lucid.ones(3)
    with pytest.raises(models.WeightsError) as caught:
        model.load_weights(state)
    error = caught.value
    assert (error.missing, error.unexpected) == (["transformer.wpe.weight"], ["extra"])
    assert error.misshapen == ["transformer.ln_f.bias (3,) for (8,)"]
    with pytest.raises(models.WeightsError, match="look like transformers' BERT"):
        bert = models.BertModel(models.BertConfig(**SMALL, intermediate_size=16))
        model.load_weights(bert.state_dict())
    with pytest.raises(FileNotFoundError):
        models.GPT2Model.from_pretrained(tmp_path)
    models.GPT2Config(**SMALL).save(tmp_path)
    with pytest.raises(FileNotFoundError, match="model.safetensors"):
        models.GPT2Model.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
    with pytest.raises(lucid.serialization.CorruptFileError):
        models.GPT2Model.from_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no weights come with the package"):
        models.gpt2_small(pretrained=True)


def test_fresh_heads(tmp_path):
    bert = models.BertForSequenceClassification(models.BertConfig(**SMALL, intermediate_size=16, num_labels=3))
    bert.save_pretrained(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = models.BertForSequenceClassification.from_pretrained(tmp_path)
    assert same(bert, again)
    with pytest.warns(UserWarning, match="classifier.bias, classifier.weight"):
        other = models.BertForSequenceClassification.from_pretrained(tmp_path, num_labels=5)
    assert other.fresh_keys == ["classifier.bias", "classifier.weight"] and other.classifier.weight.shape == (5, 8)
    assert other(lucid.tensor([[1, 2]])).logits.isfinite().all()
    old = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
        for k, v in bert.state_dict().items()
    }
    assert same(models.BertForSequenceClassification(bert.config).load_weights(old), bert)


def test_weights_of_factories(tmp_path):
    model = gpt2()
    model.save_pretrained(tmp_path)
    for given in (tmp_path, tmp_path / "model.safetensors", dict(model.state_dict())):
        assert same(models.gpt2_small_lm(weights=given, **SMALL), model)
        assert same(models.gpt2_small_lm(given, **SMALL), model)
    assert models.GPT2LMHeadModel.from_pretrained(tmp_path, dtype=lucid.bfloat16).dtype == lucid.bfloat16


def test_outputs():
    out = gpt2()(lucid.tensor([[1, 2]]), labels=lucid.tensor([[1, 2]]), output_hidden_states=True)
    loss, logits, states = out
    assert out[0] is loss is out.loss and out["logits"] is logits and len(states) == 3 and "past_key_values" not in out
    with pytest.raises(TypeError):
        models.CausalLMOutput(nothing=1)
    with pytest.raises(ValueError, match="either"):
        gpt2()()
    with pytest.raises(ValueError, match="positions for 1024"):
        gpt2()(lucid.zeros(1, 1025, dtype=lucid.int64))
