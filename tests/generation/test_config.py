"""What a call is asked for and where it comes from; beams; streamers; limits of length and time."""

import json
import time

import pytest

import lucid
from lucid import generation, models

from ..models.test_text import build


@pytest.fixture(scope="module")
def model():
    return build("gpt2")[0]


PLAIN = dict(max_new_tokens=6, eos_token_id=None)


def test_the_folder_says_how(tmp_path, model):
    model.save_pretrained(tmp_path)
    about = {
        "eos_token_id": [20, 3], "do_sample": True, "temperature": 0.6, "max_length": 30, "bos_token_id": 5,
        "transformers_version": "5.0", "chat_format": "own",
    }  # fmt: skip
    (tmp_path / "generation_config.json").write_text(json.dumps(about))
    read = models.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert read.generation_config == generation.GenerationConfig(
        eos_token_id=[20, 3], do_sample=True, temperature=0.6, max_length=30, bos_token_id=5
    )
    by_hand = dict(do_sample=True, temperature=0.6, eos_token_id=[20, 3])
    assert read.generate([[1, 2]], seed=1).tolist() == model.generate([[1, 2]], seed=1, max_length=30, **by_hand).tolist()
    once = read.generate([[1, 2]], seed=1, max_new_tokens=4, eos_token_id=None)  # the call's limit, not the file's
    assert once.tolist() == model.generate([[1, 2]], seed=1, **{**by_hand, "max_new_tokens": 4, "eos_token_id": None}).tolist()
    assert read.generate([[1, 2]], do_sample=False, **PLAIN).tolist() == model.generate([[1, 2]], **PLAIN).tolist()
    greedy = generation.GenerationConfig(max_new_tokens=3, eos_token_id=[20, 3])  # in place of the folder's
    assert read.generate([[1, 2]], greedy).tolist() == model.generate([[1, 2]], **greedy.to_dict()).tolist()
    assert read.generate(seed=1, max_new_tokens=2)[0, 0] == 5
    assert [t.token_id for t in generation.stream(read, [1, 2], seed=1)] == read.generate([[1, 2]], seed=1)[0, 2:].tolist()
    read.save_pretrained(tmp_path / "again")
    assert generation.GenerationConfig.from_pretrained(tmp_path / "again") == read.generation_config


def test_what_is_not_there_is_said(model):
    with pytest.raises(TypeError, match=r"generate\(\) got an unexpected keyword argument 'temperatur'"):
        model.generate([[1]], temperatur=1.0)
    with pytest.raises(NotImplementedError, match="penalty_alpha"):
        model.generate([[1]], penalty_alpha=0.6)
    with pytest.raises(TypeError, match="no field"):
        generation.GenerationConfig(temperatur=1.0)
    with pytest.raises(NotImplementedError, match="assistant_model"):
        generation.stream(model, [1], assistant_model=model)
    model.generation_config = generation.GenerationConfig(guidance_scale=3.0)  # a file's: an error once it is used
    with pytest.raises(NotImplementedError, match="guidance_scale"):
        model.generate([[1]])
    assert model.generate([[1, 2]], guidance_scale=1.0, **PLAIN).shape == (1, 8)
    model.generation_config = None
    ours = model.generate([[1, 2]], assistant_model=None, guidance_scale=1.0, num_beams=1, streamer=None, **PLAIN)
    assert ours.tolist() == model.generate([[1, 2]], **PLAIN).tolist()
    with pytest.raises(ValueError, match="begins"):
        models.GPT2LMHeadModel(model.config.replace(bos_token_id=None)).generate()


def test_beams(model):
    """The best of enough beams is the best of all texts, batches give what rows give alone, and rows keep their caches."""
    ids = lucid.tensor([[5, 9, 31], [0, 2, 17]])
    mask = lucid.tensor([[1, 1, 1], [0, 1, 1]])
    options = dict(num_beams=4, max_new_tokens=5, eos_token_id=[3, 9, 20, 14], num_return_sequences=2)
    out = model.generate(ids, attention_mask=mask, return_dict_in_generate=True, output_logits=True, **options)
    for i, row in enumerate(([5, 9, 31], [2, 17])):
        alone = model.generate([row], return_dict_in_generate=True, **options)
        pair = slice(2 * i, 2 * i + 2)
        assert (out.sequences_scores[pair] - alone.sequences_scores).abs().max() < 1e-5
        assert out.finish_reasons[pair] == alone.finish_reasons
        for ours, theirs in zip(out.sequences[pair, 3:].tolist(), alone.sequences[:, len(row) :].tolist()):
            assert ours[: len(theirs)] == theirs
    uncached = model.generate(ids, attention_mask=mask, use_cache=False, **options)
    assert uncached.tolist() == out.sequences.tolist() and len(out.logits) <= 5
    logs = model(lucid.tensor([[5, 9, 31]])).logits[0, -1].log_softmax(-1)
    nexts = model(lucid.tensor([[5, 9, 31, i] for i in range(37)])).logits[:, -1].log_softmax(-1)
    best = int((logs[:, None] + nexts).flatten().argmax())
    found = model.generate(ids[:1], num_beams=37, max_new_tokens=2, eos_token_id=None)
    assert found[0, 3:].tolist() == [best // 37, best % 37]
    stopped = model.generate(ids, num_beams=2, stopping_criteria=[lambda ids, scores: ids.shape[1] >= 5], eos_token_id=None)
    assert stopped.shape == (2, 5)
    drawn = [model.generate(ids, num_beams=2, do_sample=True, seed=s, **PLAIN).tolist() for s in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    for bad in (dict(num_beams=0), dict(num_beams=2, num_return_sequences=3), dict(num_beams=2, early_stopping="soon"),
                dict(num_beams=2, callback=print), dict(num_beams=2, prefix_cache=generation.PrefixCache())):  # fmt: skip
        with pytest.raises(ValueError):
            model.generate(ids[:1], **bad)
    with pytest.raises(ValueError, match="beams"):
        generation.stream(model, [1], num_beams=2)


@pytest.mark.parametrize("kind", [None, "quantized", "sliding_window"])
def test_beams_over_other_caches(kind):
    model = build("mistral")[0]
    options = dict(num_beams=3, max_new_tokens=6, eos_token_id=None)
    out = model.generate([[5, 9, 31, 2, 17]], cache_implementation=kind, return_dict_in_generate=True, **options)
    plain = model.generate([[5, 9, 31, 2, 17]], use_cache=False, return_dict_in_generate=True, **options)
    assert abs(float(out.sequences_scores[0] - plain.sequences_scores[0])) < (1e-5 if kind != "quantized" else 0.05)


def test_positions_that_are_angles_have_no_end():
    model = build("llama dynamic")[0]  # 8 positions, more by scaling
    assert model.generate([[1, 2, 3]], max_new_tokens=20, eos_token_id=None).shape == (1, 23)
    assert model.generate([list(range(20))], max_new_tokens=2, eos_token_id=None).shape == (1, 22)


def test_time(model):
    def slow(ids, scores):
        time.sleep(0.02)
        return scores

    out = model.generate([[1]], max_new_tokens=30, eos_token_id=None, max_time=0.05, logits_processor=[slow],
                         return_dict_in_generate=True)  # fmt: skip
    assert out.finish_reasons == ["time"] and out.sequences.shape[1] < 30
    with pytest.raises(ValueError, match="max_time"):
        model.generate([[1]], max_time=0)


class Bytes:
    def decode(self, ids, skip_special_tokens=True):
        return bytes(ids).decode("utf-8", "replace")


def test_streamers(model, capsys):
    heard = []

    class Streamer:
        def put(self, value):
            heard.append(value.tolist())

        def end(self):
            heard.append("end")

    out = model.generate([[1, 2]], streamer=Streamer(), **PLAIN)[0, 2:].tolist()
    assert heard == [[[1, 2]], *([token] for token in out), "end"]
    text = Bytes().decode(out)
    model.generate([[1, 2]], streamer=generation.TextStreamer(Bytes(), skip_prompt=True), **PLAIN)
    assert capsys.readouterr().out == text + "\n"
    pieces = generation.TextIteratorStreamer(Bytes(), timeout=5)
    model.generate([[1, 2]], streamer=pieces, **PLAIN)
    assert "".join(pieces) == "\x01\x02" + text
    with pytest.raises(ValueError, match="one text"):
        model.generate([[1, 2], [3, 4]], streamer=generation.TextStreamer(Bytes()), **PLAIN)


def test_stop_strings_of_many_tokens():
    """A character may be four tokens: a stop string of ten is found; of two that end a text the first one counts."""
    stop, given = "😀" * 10, []

    def spell(ids, scores):
        scores = lucid.full_like(scores, -1e9)
        scores[:, (b"ab" + stop.encode() + b"cd" * 9)[len(given)]] = 0.0
        given.append(1)
        return scores

    wide = models.GPT2LMHeadModel(models.GPT2Config(vocab_size=256, hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    out = wide.eval().generate([[1]], max_new_tokens=60, stop_strings=stop, tokenizer=Bytes(), eos_token_id=None,
                               logits_processor=[spell])  # fmt: skip
    assert Bytes().decode(out[0, 1:].tolist()) == "ab" + stop
    tail = generation.TextTail(type("Pairs", (), {"decode": lambda self, ids: "xyzw" * len(ids)})(), ["z", "y"])
    assert tail.push(0) == "x" and tail.stopped


def test_scores_of_halves_are_single():
    """A sum of a thousand probabilities in bfloat16 never reaches 0.9: draws are made from float32."""
    logits = lucid.zeros(1, 1000).to(lucid.bfloat16)
    choose = generation.Sampler(do_sample=True, top_k=0, top_p=0.9, seed=0)
    choose(lucid.tensor([[0]]), logits)
    assert choose.scores.dtype == lucid.float32 and abs(int(choose.scores.isfinite().sum()) - 900) <= 1


def test_padding_is_no_text_for_ngrams(model):
    pad = int(model.generate([[7, 4]], max_new_tokens=1, eos_token_id=None)[0, -1])
    options = dict(max_new_tokens=3, eos_token_id=None, no_repeat_ngram_size=1)
    alone = model.generate([[7, 4]], **options)[0, 2:].tolist()
    assert alone[0] == pad
    both = model.generate([[7, 4], [1, 2, 3, 5]], pad_token_id=pad, **options)
    assert both[0, 4:].tolist() == alone
