"""The reader of tokenizer.json agrees with the package tokenizers, from tokens it once gave; and vectors of texts."""

import json
import pathlib

import pytest

import lucid
from lucid import models

KINDS = json.loads((pathlib.Path(__file__).parent / "tokenizers.json").read_text())
TEXTS = [
    "the lowest fox",
    "  It's   2027: newer, WIDER!? ",
    "Größe café 東京 мир 😀 ½ ²",
    "return x ** 3\n\n\n  ok\t",
    "",
    "unknownzzz\u0301 words...don't",
    "<s>the fox</s> lower",
    "[CLS] new [MASK] [SEP]",
]


@pytest.mark.parametrize("kind", KINDS)
def test_reader(kind):
    made = models.Tokenizer(KINDS[kind]["file"], own=True)
    engine = made._engine
    for text, (plain, closed, pair, types, decoded, whole) in zip(TEXTS, KINDS[kind]["rows"], strict=True):
        assert made.encode(text, add_special_tokens=False) == plain, text
        assert made.encode(text) == closed, text
        both = engine.encode(text, "the dog")
        assert (both.ids, both.type_ids) == (pair, types), text
        assert made.decode(closed) == decoded, text
        assert made.decode(closed, skip_special_tokens=False) == whole, text


def test_batches():
    made = models.Tokenizer(KINDS["word piece"]["file"], {"pad_token": "[PAD]", "model_max_length": 6}, own=True)
    out = made(["new", "the quick brown fox jumps"], padding=True)
    assert out["attention_mask"].sum(1).tolist() == [3, len(made.encode("the quick brown fox jumps"))]
    assert out["input_ids"][0, 3:].unique().tolist() == [made.pad_token_id]
    left = made(["new", "the quick brown fox jumps"], padding=True, padding_side="left")
    assert left["attention_mask"][0].tolist() == out["attention_mask"][0].flip(0).tolist()
    cut = made("the quick brown fox jumps", truncation=True)["input_ids"][0].tolist()
    assert len(cut) == 6 and cut[0] == made.token_to_id("[CLS]") and cut[-1] == made.token_to_id("[SEP]")
    with pytest.raises(ValueError, match="padding"):
        made(["new", "the quick"])
    assert made.apply_chat_template([{"role": "user", "content": "hi"}], add_generation_prompt=True) == "user: hi\nassistant:"
    with pytest.raises(ValueError, match="Sentenceish"):
        models.Tokenizer({"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": {"type": "Sentenceish"}}, own=True)


@pytest.fixture
def folder(tmp_path):
    """An encoder as sentence-transformers lays it out."""
    lucid.manual_seed(0)
    size = len(models.Tokenizer(KINDS["word piece"]["file"], own=True))
    config = models.BertConfig(
        vocab_size=size, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
    )
    models.BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(KINDS["word piece"]["file"]))
    return tmp_path


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_sentences(folder, pooling):
    texts = ["the lazy dog", "new", "the quick brown fox jumps over", "low lower lowest"]
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    about = [{"idx": i, "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (path, kind) in enumerate(parts)]
    (folder / "modules.json").write_text(json.dumps(about))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 9}))
    (folder / "1_Pooling").mkdir()
    names = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "max": "pooling_mode_max_tokens"}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({n: m == pooling for m, n in names.items()}))
    encoder = models.SentenceEncoder.from_pretrained(folder)
    assert encoder.pooling == pooling and encoder.max_length == 9
    vectors = encoder.encode(texts, batch_size=2)
    assert (vectors.norm(dim=-1) - 1).abs().max() < 1e-6
    for i, text in enumerate(texts):  # alone, and by hand
        assert (encoder.encode(text) - vectors[i]).abs().max() < 1e-6
        ids = encoder.tokenizer.encode(text)
        ids = lucid.tensor([ids if len(ids) <= 9 else [*ids[:8], ids[-1]]])
        with lucid.no_grad():
            hidden = encoder.model(ids).last_hidden_state[0]
        pooled = {"mean": hidden.mean(0), "cls": hidden[0], "max": hidden.amax(0)}[pooling]
        assert (pooled / pooled.norm() - vectors[i]).abs().max() < 1e-6
        assert (encoder.encode(text, normalize=False) - pooled).abs().max() < 1e-5
    assert encoder.search(vectors[1], vectors, 2)[0][0] == 1
    with pytest.raises(ValueError, match="no texts"):
        encoder.encode([])
