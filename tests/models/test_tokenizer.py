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


TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
    "{% if tools is not none %}{{ tools | tojson }}{% endif %}"
    "{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}{{ bos_token }}{{ mood }}"
    "{% generation %}said{% endgeneration %}{{ strftime_now('%Y') | length }}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
    "{% if messages[0].role == 'nobody' %}{{ raise_exception('who?') }}{% endif %}"
)


def test_chat_templates():
    pytest.importorskip("jinja2")
    about = {"chat_template": TEMPLATE, "bos_token": "[CLS]"}
    made = models.Tokenizer(KINDS["word piece"]["file"], about, own=True)
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b "}]
    end = "01[CLS]said4"
    assert made.apply_chat_template(talk) == "<user>a</s><assistant>b </s>" + end
    assert made.apply_chat_template(talk[:1], add_generation_prompt=True) == "<user>a</s>" + end + "<assistant>"
    assert made.apply_chat_template(talk, continue_final_message=True) == "<user>a</s><assistant>b "
    assert made.apply_chat_template(talk[:1], tools=[{"a": "<é"}]) == '<user>a</s>[{"a": "<é"}]' + end
    assert made.apply_chat_template(talk[:1], mood="!") == "<user>a</s>01[CLS]!said4"
    assert made.apply_chat_template(talk, chat_template="{{ messages | length }}") == "2"
    with pytest.raises(ValueError, match="who?"):
        made.apply_chat_template([{"role": "nobody", "content": ""}])
    with pytest.raises(ValueError, match="give one"):
        made.apply_chat_template(talk, add_generation_prompt=True, continue_final_message=True)
    several = [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]
    made = models.Tokenizer(KINDS["word piece"]["file"], {"chat_template": several}, own=True)
    answers = made.apply_chat_template(talk), made.apply_chat_template(talk, tools=[{}])
    assert answers == ("d", "t") and made.apply_chat_template(talk, chat_template="tool_use") == "t"
    with pytest.raises(ValueError, match="named"):
        made.apply_chat_template(talk, chat_template="rag")
    with pytest.raises(ValueError, match="none"):
        models.Tokenizer(KINDS["word piece"]["file"], own=True).apply_chat_template(talk, tools=[{}])


def test_as_a_model_takes_it(tmp_path):
    """model(**tokenizer(text)) works: kinds of sentences only where a model has them."""
    bert = models.Tokenizer(KINDS["word piece"]["file"], own=True)
    both = bert("new", "the dog", padding="max_length", max_length=12)
    assert both.input_ids.shape == (1, 12) and both.token_type_ids.sum() > 0 and both.attention_mask.sum() < 12
    assert "token_type_ids" not in bert("new", return_token_type_ids=False)
    distilled = models.Tokenizer(KINDS["word piece"]["file"], {"tokenizer_class": "DistilBertTokenizer"}, own=True)
    assert list(distilled("new")) == ["input_ids", "attention_mask"]
    letters = models.Tokenizer(KINDS["byte level"]["file"], {"padding_side": "left"}, own=True)
    config = models.GPT2Config(vocab_size=len(letters), hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    model = models.GPT2LMHeadModel(config).eval()
    batch = letters(["the quick", "a"], padding=True, return_tensors="pt").to("cpu")
    assert batch.attention_mask[1, 0] == 0  # on the left, as the file says
    assert model(**batch).logits.shape[:2] == batch.input_ids.shape
    assert model.generate(**batch, max_new_tokens=2).shape[1] == batch.input_ids.shape[1] + 2
    for wrong in (dict(return_tensors="tf"), dict(padding="sometimes"), dict(truncation="middle")):
        with pytest.raises(ValueError):
            letters("a", **wrong)
    letters.eos_token = letters.id_to_token(5)
    assert letters.eos_token_id == 5 and 5 in letters.all_special_ids
    with pytest.raises(ValueError, match="no token"):
        letters.pad_token = "[nothing]"
    ids = letters.encode("the quick", add_special_tokens=False)
    assert letters.convert_tokens_to_ids(letters.tokenize("the quick")) == ids
    assert letters.batch_decode([ids, ids]) == ["the quick"] * 2
    letters.save_pretrained(tmp_path)
    again = models.Tokenizer.from_pretrained(tmp_path, own=True)
    assert again.encode("the quick") == letters.encode("the quick")
    assert (again.eos_token_id, again.padding_side) == (5, "left")


def test_truncation_of_two_texts():
    made = models.Tokenizer(KINDS["word piece"]["file"], own=True)
    one, two = "the quick brown fox", "low new"
    a, b = made.encode(one, add_special_tokens=False), made.encode(two, add_special_tokens=False)
    first, last = made.token_to_id("[CLS]"), made.token_to_id("[SEP]")
    whole = len(a) + len(b) + 3
    for limit, how, kept in (
        (whole - 1, True, (len(a) - 1, len(b))),
        (whole - 2, "only_first", (len(a) - 2, len(b))),
        (whole - 1, "only_second", (len(a), len(b) - 1)),
        (5, "longest_first", (1, 1)),
    ):
        made_of = made(one, two, truncation=how, max_length=limit)
        assert made_of["input_ids"][0].tolist() == [first, *a[: kept[0]], last, *b[: kept[1]], last]
        assert int(made_of["token_type_ids"].sum()) == kept[1] + 1
    with pytest.raises(ValueError, match="second"):
        made(one, two, truncation="only_second", max_length=4)


def test_sentences_of_other_encoders(folder, tmp_path_factory):
    """Prompts and small letters as the folder says; DistilBERT, which has no kinds of tokens; RoBERTa's positions."""
    (folder / "modules.json").write_text(json.dumps([{"path": "", "type": "sentence_transformers.models.Transformer"}]))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": True}))
    about = {"prompts": {"query": "the dog ", "passage": ""}, "default_prompt_name": None}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(about))
    encoder = models.SentenceEncoder.from_pretrained(folder)
    plain = encoder.encode("the dog new")
    assert (encoder.encode("new", prompt_name="query") == plain).all()
    assert (encoder.encode("NEW", prompt="THE dog ") == plain).all()
    assert (encoder.encode("new") != plain).any()
    with pytest.raises(ValueError, match="prompt"):
        encoder.encode("new", prompt_name="title")
    about["default_prompt_name"] = "query"
    (folder / "config_sentence_transformers.json").write_text(json.dumps(about))
    assert (models.SentenceEncoder.from_pretrained(folder).encode("new") == plain).all()
    tokenizer = encoder.tokenizer
    small = dict(vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    distilled = models.DistilBertModel(models.DistilBertConfig(**small, intermediate_size=8)).eval()
    assert models.SentenceEncoder(distilled, tokenizer).encode(["new", "the dog"]).shape == (2, 8)
    config = models.RobertaConfig(**small, intermediate_size=8, max_position_embeddings=10, pad_token_id=1, type_vocab_size=2)
    encoder = models.SentenceEncoder(models.RobertaModel(config).eval(), tokenizer)
    assert encoder.max_length == 8
    assert encoder.encode("the quick brown fox jumps over the lazy dog").isfinite().all()
