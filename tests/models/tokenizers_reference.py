"""Small tokenizers of every kind and what the package tokenizers makes of texts: `python tokenizers_reference.py FILE`."""

import json
import sys

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TRAINING = [
    "the quick brown fox jumps over the lazy dog",
    "low lower lowest, new newer newest; wide wider widest!",
    "It's 2026 and we've counted 1234567 tokens, haven't we?",
    "Größe naïve café — déjà vu, 東京 tower, Привет мир",
    "def f(x):\n    return x ** 2  # comment\n\n\tindented",
] * 4
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


def byte_level(prefix=False):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TRAINING, trainers.BpeTrainer(vocab_size=330, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet)
    )
    return made


def word_piece():
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(TRAINING, trainers.WordPieceTrainer(vocab_size=160, special_tokens=special))
    ends = [(t, made.token_to_id(t)) for t in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return made


def unigram():
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(" {2,}", " ")])
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.train_from_iterator(
        TRAINING, trainers.UnigramTrainer(vocab_size=150, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>")
    )
    return made


def llama():
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2, **{f"<0x{b:02X}>": 3 + b for b in range(256)}}
    base = Tokenizer(models.BPE())
    base.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    base.train_from_iterator([t for line in TRAINING[:2] for t in line.split()], trainers.BpeTrainer(vocab_size=60))
    about = json.loads(base.to_str())["model"]
    for token in about["vocab"]:
        vocab.setdefault(token, len(vocab))
    merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in about["merges"]]
    made = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    made.normalizer = base.normalizer
    made.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    made.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return made


def llama3():
    made = byte_level()
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    from tokenizers import Regex

    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return made


if __name__ == "__main__":
    kinds = {"byte level": byte_level(), "word piece": word_piece(), "unigram": unigram(), "llama": llama(), "llama3": llama3()}
    kinds["prefix space"] = byte_level(True)
    found = {}
    for name, made in kinds.items():
        rows = []
        for text in TEXTS:
            plain, closed = made.encode(text, add_special_tokens=False), made.encode(text)
            pair = made.encode(text, "the dog")
            rows.append(
                [plain.ids, closed.ids, pair.ids, pair.type_ids, made.decode(closed.ids), made.decode(closed.ids, False)]
            )
        found[name] = {"file": json.loads(made.to_str()), "rows": rows}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in found.items())
    with open(sys.argv[1], "w") as file:
        file.write("{\n" + lines + "\n}\n")
