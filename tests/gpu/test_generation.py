"""Language models on a CUDA device: steps with spans that the device knows, captured graphs, layers in codes. Everything gives
what the CPU gives. Runs on a GPU, or on the emulation (test_emulated.py)."""

import math

import pytest

import lucid
from lucid import generation, models

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")
TINY = dict(vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=64)


def gpt2():
    lucid.manual_seed(0)
    return models.GPT2LMHeadModel(models.GPT2Config(**TINY, eos_token_id=None)).eval()


def llama():
    lucid.manual_seed(0)
    more = dict(intermediate_size=48, num_key_value_heads=2, sliding_window=4, eos_token_id=None)
    return models.LlamaForCausalLM(models.LlamaConfig(**TINY, **more)).eval()


@pytest.mark.parametrize("window", [0, 5])
@pytest.mark.parametrize(("dtype", "width", "error"), [("float32", 64, 1e-5), ("bfloat16", 64, 2e-2), ("float64", 24, 1e-9)])
def test_one_query_per_row(dtype, width, error, window):
    dtype = getattr(lucid, dtype)
    lucid.manual_seed(1)
    keys, values, q, new = (lucid.randn(2, h, n, width).to(dtype) for h, n in ((2, 40), (2, 40), (4, 1), (2, 1)))
    spans = lucid.tensor([[3, 30], [0, 7]])

    def on(device):
        k, v, at = (t.to(device).clone() for t in (keys, values, spans))
        lucid._C._cache_write(k, v, new.to(device), 2 * new.to(device), at)
        at[:, 1] += 1
        return [t.cpu() for t in (lucid._C._cached_attention(q.to(device), k, v, at, 1 / math.sqrt(width), window), k, v)]

    here, there = on("cpu"), on("cuda")
    assert float((here[0].double() - there[0].double()).abs().max()) < error
    assert lucid.equal(here[1], there[1]) and lucid.equal(here[2], there[2])
    assert lucid.equal(there[1][0, :, 30], new[0, :, 0]) and lucid.equal(there[1][0, :, 29], keys[0, :, 29])


def test_long_rows_are_split_over_blocks():
    lucid.manual_seed(2)
    keys, values, q = lucid.randn(1, 1, 5000, 8), lucid.randn(1, 1, 5000, 8), lucid.randn(1, 1, 1, 8)
    for end in (0, 1, 4999):
        spans = lucid.tensor([[0, end]])
        here, there = (
            lucid._C._cached_attention(*(t.to(d) for t in (q, keys, values, spans)), 0.5, 0).cpu() for d in ("cpu", "cuda")
        )
        assert lucid.allclose(here, there, atol=1e-5)


def test_a_span_beyond_the_buffers_is_reported():
    keys, new = lucid.zeros(1, 1, 4, 8, device="cuda"), lucid.zeros(1, 1, 1, 8, device="cuda")
    lucid._C._cache_write(keys, keys.clone(), new, new, lucid.tensor([[0, 4]], device="cuda"))
    with pytest.raises(IndexError):
        keys.cpu()


PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8]]
OPTIONS = [
    {},
    {"cuda_graph": False},
    {"do_sample": True, "seed": 3, "repetition_penalty": 1.2, "min_p": 0.05},
    {"num_return_sequences": 2},
    {"prefill_chunk": 2},
    {"cache_implementation": "quantized"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o) or "greedy")
@pytest.mark.parametrize("make", [gpt2, llama])
def test_the_tokens_of_the_cpu(make, options):
    wanted = generation.generate(make(), PROMPTS, max_new_tokens=9, **options)
    assert generation.generate(make().cuda(), PROMPTS, max_new_tokens=9, **options).tolist() == wanted.tolist()


def test_a_graph_is_captured_and_the_cache_goes_on():
    model = gpt2().cuda()
    run = generation.Generation(model, [[1, 2, 3]], max_new_tokens=8)
    first = [run.step()[0] for _ in range(8)]
    assert run.decoder.graph is not None and run.cache.length == 10 and run.step() is None
    seen = [token.token_id for token in generation.stream(gpt2(), [1, 2, 3], max_new_tokens=12)]
    assert first == seen[:8]
    more = generation.generate(model, run.ids, max_new_tokens=4, past_key_values=run.cache)
    assert more[0, 11:].tolist() == seen[8:]


def test_scores_are_not_overwritten():
    out = generation.generate(gpt2().cuda(), [[1, 2]], max_new_tokens=6, output_scores=True, return_dict_in_generate=True)
    here = generation.generate(gpt2(), [[1, 2]], max_new_tokens=6, output_scores=True, return_dict_in_generate=True)
    for there, wanted in zip(out.scores, here.scores):
        assert lucid.allclose(there.cpu(), wanted, atol=1e-5)


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_layers_in_codes(bits, dtype):
    lucid.manual_seed(4)
    layer = generation.QuantizedLinear.from_layer(lucid.nn.Linear(96, 41), bits)
    x = lucid.randn(7, 96).to(getattr(lucid, dtype))
    wanted, got = layer(x), layer.to("cuda", getattr(lucid, dtype))(x.cuda())
    assert got.dtype == wanted.dtype and layer.scales.dtype == lucid.float32
    assert float((got.cpu().float() - wanted.float()).abs().max()) < (1e-5 if dtype == "float32" else 2e-2)


def test_groups_that_no_vector_fits():
    layer = generation.QuantizedLinear.from_layer(lucid.nn.Linear(30, 7), 8, 10)
    x = lucid.randn(3, 30)
    wanted = layer(x)
    assert lucid.allclose(layer.cuda()(x.cuda()).cpu(), wanted, atol=1e-5)


def test_a_quantized_model():
    wanted = gpt2()
    generation.quantize(wanted)
    model = gpt2().cuda()
    generation.quantize(model)
    ids = generation.generate(model, PROMPTS, max_new_tokens=6)
    assert ids.tolist() == generation.generate(wanted, PROMPTS, max_new_tokens=6).tolist()
