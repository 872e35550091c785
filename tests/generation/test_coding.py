"""Weights in 8 and 4 bits: the product is that of the weight the codes stand for, errors are as small as the codes allow."""

import json

import pytest

import lucid
from lucid import generation, models, nn

from ..models.test_text import build


@pytest.mark.parametrize("bits, group", [(8, None), (8, 32), (8, 48), (4, 32), (4, 96)])
@pytest.mark.parametrize("rows", [1, 2, 4, 7, 33, 70])
def test_product(bits, group, rows):
    lucid.manual_seed(0)
    layer = nn.Linear(96, 50)
    coded = generation.QuantizedLinear.from_layer(layer, bits, group)
    x = lucid.randn(rows, 96, requires_grad=True)
    y, other = coded(x), x.detach().clone().requires_grad_()
    expected = nn.functional.linear(other, coded.dequantized(), layer.bias)
    assert (y - expected).abs().max() < 2e-5
    weights = lucid.randn(rows, 50)
    (y * weights).sum().backward()
    (expected * weights).sum().backward()
    assert (x.grad - other.grad).abs().max() < 1e-4
    assert (coded.bias.grad - layer.bias.grad).abs().max() < 1e-4
    with lucid.no_grad():
        assert (coded(x) - expected).abs().max() < 2e-5
    step = coded.scales.repeat_interleave(coded.group_size, 1)
    assert ((coded.dequantized() - layer.weight).abs() <= 0.5001 * step).all()


def test_codes_lie_in_the_order_of_the_product():
    """GPT-2's weights are stored (in, out): codes in that order would be copied at every call."""
    from lucid.models.text.gpt2 import Conv1D

    for bits in (8, 4):
        coded = generation.QuantizedLinear.from_layer(Conv1D(50, 96), bits)
        assert coded.weight.is_contiguous() and coded.scales.is_contiguous()


def test_halves_and_strides():
    layer = nn.Linear(64, 10)
    coded = generation.QuantizedLinear.from_layer(layer, 4)
    x = lucid.randn(5, 3, 64).transpose(0, 1)
    assert (coded(x) - nn.functional.linear(x, coded.dequantized(), layer.bias)).abs().max() < 1e-5
    half = coded(x.to(lucid.bfloat16))
    assert half.dtype == lucid.bfloat16 and (half.float() - coded(x)).abs().max() < 0.05
    double = coded(x.double())
    assert double.dtype == lucid.float64 and (double - coded(x)).abs().max() < 1e-5


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize("bits", [8, 4])
def test_models(kind, bits):
    lucid.manual_seed(1)
    small = dict(vocab_size=60, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)
    if kind == "gpt2":
        model = models.GPT2LMHeadModel(models.GPT2Config(**small)).eval()
    else:
        model = models.LlamaForCausalLM(models.LlamaConfig(**small, intermediate_size=128)).eval()
    ids = lucid.randint(0, 60, (2, 9))
    before = model(ids).logits
    report = generation.quantize(model, bits=bits)
    after = model(ids).logits
    error = float((after - before).norm() / before.norm())
    assert 0 < error < (0.02 if bits == 8 else 0.25)
    assert report.bytes_after < 0.8 * report.bytes_before and not report.skipped
    assert max(report.errors.values()) < (0.01 if bits == 8 else 0.12)
    out = generation.generate(model, ids[:, :4], max_new_tokens=5, eos_token_id=None)
    assert out.tolist() == generation.generate(model, ids[:, :4], max_new_tokens=5, eos_token_id=None, use_cache=False).tolist()
    state = model.state_dict()
    again = type(model)(model.config)
    generation.quantize(again, bits=bits)
    again.load_state_dict(state)
    assert (again.eval()(ids).logits == after).all()


def test_left_alone():
    model = build("llama")[0]  # 16 inputs: too few for groups of 32
    report = generation.quantize(model, bits=4)
    assert not report.errors and len(report.skipped) == 15
    report = generation.quantize(model, bits=8, skip=["lm_head", "down_proj"])
    assert len(report.errors) == 12 and isinstance(model.lm_head, nn.Linear)
    for bad in (dict(bits=3), dict(bits=8, group_size=5), dict(bits=4, group_size=16)):
        with pytest.raises(ValueError):
            generation.quantize_weight(lucid.ones(4, 64), **bad)
    f = nn.functional
    with pytest.raises(lucid.LucidError):
        f.quantized_linear(lucid.ones(1, 8), lucid.ones(4, 8), lucid.ones(4, 1), None, 8)
    with pytest.raises(lucid.LucidError):
        f.quantized_linear(lucid.ones(1, 9), lucid.ones(4, 8, dtype=lucid.int8), lucid.ones(4, 1), None, 8)
    with pytest.raises(lucid.LucidError):
        f.quantized_linear(lucid.ones(1, 8), lucid.ones(4, 8, dtype=lucid.int8), lucid.ones(4, 2), None, 8)


def test_meta_device():
    coded = generation.QuantizedLinear.from_layer(nn.Linear(64, 10)).to("meta")
    assert tuple(coded(lucid.ones(3, 64, device="meta")).shape) == (3, 10)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_scales_and_biases_stay_single(dtype):
    net = lucid.nn.Sequential(lucid.nn.Linear(64, 8))
    generation.quantize(net, 8)
    bias, before = net[0].bias, net[0].bias.detach().clone()
    net.to(getattr(lucid, dtype))
    assert net[0].bias is bias and net[0].scales.dtype == bias.dtype == lucid.float32 and lucid.equal(bias, before)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("tied", [True, False])
def test_folders(tmp_path, bits, tied):
    """A model in codes is written and read as it is, its head too where that shared the embedding's weight."""
    lucid.manual_seed(0)
    config = models.LlamaConfig(
        vocab_size=40, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2,
        tie_word_embeddings=tied, attention_bias=True,
    )  # fmt: skip
    model = models.LlamaForCausalLM(config).eval()
    generation.quantize(model, bits, skip=("down_proj",))
    model.save_pretrained(tmp_path)
    again = models.AutoModelForCausalLM.from_pretrained(tmp_path)
    ids = lucid.tensor([[1, 2, 3]])
    assert (again(ids).logits == model(ids).logits).all()
    assert isinstance(again.lm_head, generation.QuantizedLinear) and isinstance(again.model.layers[0].mlp.down_proj, nn.Linear)
    assert (tmp_path / "model.safetensors").stat().st_size < 40000
    about = json.loads((tmp_path / "config.json").read_text())
    about["quantization_config"] = {"quant_method": "gptq", "bits": 4}
    (tmp_path / "config.json").write_text(json.dumps(about))
    with pytest.raises(ValueError, match="gptq"):
        models.AutoModelForCausalLM.from_pretrained(tmp_path)
