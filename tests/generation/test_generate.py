"""Generation: tokens as transformers gives them; cache and no cache, batch and single, stream and whole agree."""

import asyncio
import json
import pathlib

import pytest

import lucid
from lucid import generation, models

from ..models.test_text import build
from . import reference

NUMBERS = json.loads((pathlib.Path(__file__).parent / "numbers.json").read_text())
NAMES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma", "llama dynamic")


@pytest.fixture(scope="module")
def of():
    made = {}

    def model(name):
        if name not in made:
            made[name] = build(name)[0]
        return made[name]

    yield model
    made.clear()


@pytest.mark.parametrize("name", reference.NAMES)
@pytest.mark.parametrize("label", reference.OPTIONS)
def test_as_transformers(of, name, label):
    expected = NUMBERS[f"{name} {label}"]
    options = {"eos_token_id": None, "pad_token_id": 0, "max_new_tokens": 8, **reference.OPTIONS[label]}
    ids, mask = lucid.tensor(reference.PROMPTS), lucid.tensor(reference.MASK)
    lucid.manual_seed(3)
    assert generation.generate(of(name), ids[:1], **options).tolist() == expected["one"]
    both = generation.generate(of(name), ids, mask, **options).tolist()
    if label in ("repetition", "ngrams"):  # there padding counts as text: the row without any is compared
        assert both[0] == expected["both"][0]
    else:
        assert both == expected["both"]


@pytest.mark.parametrize("name", reference.WARPERS)
def test_processors(name):
    process = getattr(generation, name)(*reference.WARPERS[name])
    scores = process(lucid.tensor([[3, 1, 3]]), lucid.tensor(reference.SCORES))[0].tolist()
    assert len(set(scores)) > 1
    for ours, theirs in zip(scores, NUMBERS["warpers"][name], strict=True):
        assert ours == (float("-inf") if theirs is None else pytest.approx(theirs, rel=1e-5))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("pieces", [(10,), (1,) * 10, (3, 1, 4, 2), (9, 1)])
def test_cached_logits(of, name, pieces):
    model = of(name)
    ids = lucid.tensor([[5, 9, 31, 2, 17, 8, 3, 11, 24, 6], [7, 1, 12, 30, 4, 22, 35, 13, 2, 2]])
    whole = model(ids).logits
    if name == "llama dynamic":
        pytest.skip("its angles depend on the length of the text: they change as it grows, as in transformers")
    kinds = [generation.Cache(step=4)]
    if name == "mistral":
        kinds.append(generation.SlidingCache(model.config.sliding_window))
    for cache in kinds:
        at, parts = 0, []
        for n in pieces:
            parts.append(model(ids[:, at : at + n], past_key_values=cache).logits)
            at += n
        assert (lucid.cat(parts, 1) - whole).abs().max() < 1e-5
        assert cache.length == 10


def test_quantized_cache(of):
    model, ids = of("llama"), lucid.tensor([[5, 9, 31, 2, 17, 8, 3, 11, 24, 6]])
    whole, cache = model(ids).logits, generation.QuantizedCache(step=4)
    parts = [model(ids[:, i : i + 1], past_key_values=cache).logits for i in range(10)]
    worst = (lucid.cat(parts, 1) - whole).abs().max()
    assert 0 < worst < 0.05 * whole.abs().max()
    plain = generation.Cache(step=4)
    model(ids, past_key_values=plain)
    assert cache.nbytes < 0.6 * plain.nbytes  # heads of 4 numbers share a scale here
    tokens = generation.generate(model, ids, max_new_tokens=4, cache_implementation="quantized")
    assert tokens.shape == (1, 14)


def test_window_of_the_cache():
    """A sliding cache narrower than the model's attention is the model with that window."""
    config = models.MistralConfig(
        vocab_size=23, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2
    )
    lucid.manual_seed(0)
    wide = models.MistralForCausalLM(config).eval()
    narrow = models.MistralForCausalLM(config.replace(sliding_window=3)).eval()
    narrow.load_state_dict(wide.state_dict())
    ids = lucid.randint(0, 23, (1, 20))
    whole = narrow(ids).logits
    for pieces in ((20,), (1,) * 20, (5, 7, 1, 1, 6)):
        cache, at, parts = generation.SlidingCache(3), 0, []
        for n in pieces:
            parts.append(wide(ids[:, at : at + n], past_key_values=cache).logits)
            at += n
        assert (lucid.cat(parts, 1) - whole).abs().max() < 1e-5
        assert cache.capacity <= 24  # of a long prompt: it and what it still sees
    assert cache.nbytes < 3 * 24 * 2 * 2 * 2 * 4 * 4


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral"])
@pytest.mark.parametrize(
    "options", [{}, {"do_sample": True, "seed": [3, 4]}, {"do_sample": True, "top_p": 0.8, "seed": [5, 6]}]
)
def test_batch_and_single(of, name, options):
    rows = [[5, 9, 31, 2, 17], [12, 30, 4]]
    common = dict(max_new_tokens=8, eos_token_id=None, repetition_penalty=1.2)
    both = generation.generate(of(name), rows, **common, **options)[:, 5:].tolist()
    for i, row in enumerate(rows):
        alone = {**options, "seed": [options["seed"][i]]} if "seed" in options else options
        assert generation.generate(of(name), [row], **common, **alone)[0, len(row) :].tolist() == both[i]
    without = generation.generate(of(name), rows, use_cache=False, **common, **options)[:, 5:].tolist()
    assert without == both


def test_seeds(of):
    def draw(**options):
        return generation.generate(
            of("gpt2"), [[1, 2]], max_new_tokens=12, do_sample=True, eos_token_id=None, **options
        ).tolist()

    assert draw(seed=1) == draw(seed=1) != draw(seed=2)
    lucid.manual_seed(3)
    first = draw()
    lucid.manual_seed(3)
    assert draw() == first
    many = generation.generate(of("gpt2"), [[1, 2]], max_new_tokens=6, do_sample=True, seed=1, num_return_sequences=3)
    assert many.shape == (3, 8) and many[0].tolist() == draw(seed=1)[0][:8]


class Letters:
    """A tokenizer whose token i is the i-th letter."""

    def decode(self, ids):
        return "".join(chr(97 + i % 26) for i in ids)


def test_streaming(of):
    model, options = of("gpt2"), dict(max_new_tokens=9, eos_token_id=None)
    whole = generation.generate(model, [[1, 2]], **options)[0, 2:].tolist()
    tokens = generation.stream(model, [1, 2], tokenizer=Letters(), **options)
    seen = list(tokens)
    assert [t.token_id for t in seen] == whole and "".join(t.text for t in seen) == Letters().decode(whole)
    assert tokens.finish_reason == "length" and tokens.statistics.new_tokens == 9
    assert 0 < tokens.statistics.time_to_first_token <= tokens.statistics.total_time
    assert all(0 < t.probability <= 1 for t in seen)

    async def collect():
        return [t.token_id async for t in generation.stream(model, [1, 2], **options)]

    assert asyncio.run(collect()) == whole
    few = []
    done = generation.stream(model, [1, 2], callback=lambda t: few.append(t.token_id) or len(few) < 4, **options)
    assert few == whole[:4] and done.finish_reason == "cancelled"
    steps = []
    generation.generate(model, [[1, 2], [3, 4]], callback=steps.append, **options)
    assert len(steps) == 9 and all(len(s) == 2 for s in steps)
    with pytest.raises(ValueError, match="one text"):
        generation.stream(model, [[1], [2]])


def test_stop_strings(of):
    model = of("gpt2")
    text = Letters().decode(generation.generate(model, [[1, 2]], max_new_tokens=9, eos_token_id=None)[0, 2:].tolist())
    stop = text[3:5]
    end = text.index(stop) + 2
    options = dict(max_new_tokens=9, eos_token_id=None, stop_strings=stop, tokenizer=Letters())
    out = generation.generate(model, [[1, 2]], return_dict_in_generate=True, **options)
    assert Letters().decode(out.sequences[0, 2:].tolist()) == text[:end] and out.finish_reasons == ["stop"]
    assert "".join(t.text for t in generation.stream(model, [1, 2], **options)) == text[: end - 2]
    with pytest.raises(ValueError, match="tokenizer"):
        generation.generate(model, [[1]], stop_strings="a")


class Bytes:
    def decode(self, ids):
        return bytes(ids).decode("utf-8", "replace")


def test_text_of_parts_of_characters():
    for text in ("aé€😀z", "€", "😀😀", "ab"):
        tail = generation.TextTail(Bytes())
        parts = [tail.push(b) for b in text.encode()]
        assert "".join(parts) + tail.flush() == text and "\ufffd" not in "".join(parts)
    tail = generation.TextTail(Bytes(), ["END"])
    assert "".join(tail.push(b) for b in b"someENmoreENDrest") + tail.flush() == "someENmore"
    tail = generation.TextTail(Bytes(), ["END"])
    assert "".join(tail.push(b) for b in b"someEN") == "some" and tail.flush() == "EN"


def test_prefix_cache(of):
    model, kept = of("llama"), generation.PrefixCache(limit=2)
    start = [5, 9, 31, 2, 17, 8]

    def ask(ids):
        out = generation.generate(
            model, [ids], max_new_tokens=4, eos_token_id=None, prefix_cache=kept, return_dict_in_generate=True
        )
        assert out.sequences.tolist() == generation.generate(model, [ids], max_new_tokens=4, eos_token_id=None).tolist()
        return out.statistics.reused_tokens, out.sequences[0].tolist()

    assert ask(start)[0] == 0
    assert ask([*start[:4], 1, 2])[0] == 4
    reused, text = ask(start)
    assert reused == 5
    assert ask([*text, 3])[0] == len(text) - 1  # the last token came out, but did not go in
    assert len(kept.entries) <= 2


def test_ragged_rows(of):
    """Rows with caches of their own, one joining later, give what each gives alone."""
    for name in ("gpt2", "llama", "mistral"):
        model = of(name)
        texts = [[5, 9, 31], [2, 17, 8, 3, 11, 24], [7]]
        alone = [generation.generate(model, [t], max_new_tokens=6, eos_token_id=None)[0].tolist() for t in texts]
        caches = [generation.Cache(step=4) for _ in texts]
        rows = [list(t) for t in texts]
        with lucid.no_grad():
            for i in range(3):
                rows[i].append(int(model(lucid.tensor([rows[i]]), past_key_values=caches[i]).logits[0, -1].argmax()))
            for step in range(5):
                live = [0, 1, 2] if step > 1 else [0, 2]
                ids = lucid.tensor([[rows[i][-1]] for i in live])
                logits = model(ids, past_key_values=generation.RaggedCache([caches[i] for i in live])).logits
                for i, token in zip(live, logits[:, -1].argmax(-1).tolist()):
                    rows[i].append(token)
        assert rows[0] == alone[0] and rows[2] == alone[2] and rows[1] == alone[1][: len(rows[1])]


def test_limits_and_errors(of):
    model = of("gpt2")
    assert generation.generate(model, [[1] * 30], max_new_tokens=10, eos_token_id=None).shape[1] == 33  # 32 positions
    assert generation.generate(model, [[1, 2]], max_length=5, eos_token_id=None).shape == (1, 5)
    assert generation.generate(model, lucid.tensor([1, 2]), max_new_tokens=2, eos_token_id=None).shape == (1, 4)
    stop = generation.generate(model, [[1, 2]], stopping_criteria=[lambda ids, scores: ids.shape[1] >= 6], eos_token_id=None)
    assert stop.shape == (1, 6)
    chunked = generation.generate(model, [[3, 1, 4, 1, 5, 9, 2]], max_new_tokens=5, prefill_chunk=3, eos_token_id=None)
    assert chunked.tolist() == generation.generate(model, [[3, 1, 4, 1, 5, 9, 2]], max_new_tokens=5, eos_token_id=None).tolist()
    for bad in (
        dict(max_new_tokens=0),
        dict(max_new_tokens=3, max_length=9),
        dict(do_sample=True, temperature=0.0),
        dict(do_sample=True, top_p=0.0),
        dict(do_sample=True, top_k=-1),
        dict(repetition_penalty=0.0),
        dict(cache_implementation="hybrid"),
        dict(use_cache=False, past_key_values=generation.Cache()),
        dict(attention_mask=lucid.tensor([[1, 0]])),
        dict(seed=[1, 2]),
    ):
        with pytest.raises(ValueError):
            generation.generate(model, [[1, 2]], **bad)
    with pytest.raises(TypeError):
        generation.generate(model, [[1, 2]], beams=2)
    with pytest.raises(ValueError):
        generation.generate(model, [[1] * 33])
    with pytest.raises(ValueError):
        generation.generate(model, lucid.zeros(1, 0, dtype=lucid.int64))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "llama dynamic"])
def test_steps_whose_lengths_the_tensors_know(of, name):
    """What a captured graph replays (generation/decoder.py), call by call."""
    model, rows = of(name), [[5, 9, 31, 2, 17], [0, 0, 7, 1, 12]]
    new, padding = [[3, 4], [8, 9], [11, 6]], [0, 2]
    mask = lucid.tensor([[1] * 5, [0, 0, 1, 1, 1]])
    cache = generation.Cache(16, 16)
    with lucid.no_grad():
        model(lucid.tensor(rows), attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0), past_key_values=cache)
        decoder = generation.Decoder(model, cache, padding)
        for tokens in new:
            logits = decoder.next(tokens)
            for i, token in enumerate(tokens):
                rows[i].append(token)
                whole = model(lucid.tensor([rows[i][padding[i] :]])).logits[0, -1]
                assert lucid.allclose(logits[i], whole, atol=1e-4), (i, token)
    assert cache.length == 8


def test_a_full_cache_and_wrong_shapes_are_refused(of):
    op, cached = lucid._C._cache_write, lucid._C._cached_attention
    keys, new, full = lucid.zeros(1, 2, 4, 8), lucid.ones(1, 2, 1, 8), lucid.tensor([[0, 4]])
    with pytest.raises(IndexError, match="full"):
        op(keys, keys.clone(), new, new, full)
    assert not keys.any()
    with pytest.raises(IndexError, match="does not fit a capacity of 4"):
        cached(new, keys, keys.clone(), lucid.tensor([[3, 5]]), 1.0, 0)
    with pytest.raises(lucid.ShapeMismatch, match="spans"):
        cached(new, keys, keys.clone(), lucid.tensor([0, 4]), 1.0, 0)
    with pytest.raises(lucid.ShapeMismatch, match="does not fit keys"):
        cached(lucid.ones(1, 3, 1, 8), keys, keys.clone(), full, 1.0, 0)
    with pytest.raises(lucid.ShapeMismatch, match="one key and value per row"):
        op(keys, keys.clone(), lucid.ones(1, 2, 2, 8), new, full)
    cache, model = generation.Cache(3, 3), of("gpt2")
    model(lucid.tensor([[1, 2, 3]]), past_key_values=cache)
    with pytest.raises(ValueError, match="the cache is full"):
        generation.Decoder(model, cache).next([0])
