"""Text to tokens and back, from the tokenizer.json that comes with a model.

The package `tokenizers` reads the file if it is installed; else `lucid.models.text.reader` does, more slowly.
"""

import json
import os

from ... import _C


class Tokenizer:
    """Text to tokens and back.

    >>> vocabulary = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "[PAD]": 3, "low": 4, "##er": 5, "new": 6}
    >>> file = {"model": {"type": "WordPiece", "vocab": vocabulary, "unk_token": "[UNK]", "continuing_subword_prefix": "##",
    ...     "max_input_chars_per_word": 100}, "normalizer": {"type": "Lowercase"}, "pre_tokenizer": {"type": "Whitespace"},
    ...     "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}, "added_tokens": [], "post_processor": None}
    >>> tokenizer = lucid.models.Tokenizer(file)
    >>> tokenizer.encode("New lower"), tokenizer.decode([6, 4, 5])
    ([6, 4, 5], 'new lower')
    >>> tokenizer(["new", "lower"], padding=True)["attention_mask"]
    tensor([[1, 0],
            [1, 1]])
    """

    def __init__(self, file, config=None, own=False):
        """file: the content of tokenizer.json; config: of tokenizer_config.json; own: read without the package tokenizers."""
        self.config = config or {}
        self._engine = _engine(file, own)
        self._roles = {}
        for role in ("bos", "eos", "pad", "unk", "cls", "sep", "mask"):
            token = self.config.get(f"{role}_token")
            token = token.get("content") if isinstance(token, dict) else token
            if token is not None:
                self._roles[role] = (token, self._engine.token_to_id(token))
        for role, usual in (("pad", "[PAD]"), ("pad", "<pad>")):
            if role not in self._roles and self._engine.token_to_id(usual) is not None:
                self._roles[role] = (usual, self._engine.token_to_id(usual))
        self.max_length = self.config.get("model_max_length")

    @classmethod
    def from_pretrained(cls, folder, own=False):
        """Of a folder with tokenizer.json, and tokenizer_config.json if there is one."""
        with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
            content = json.load(file)
        path, config = os.path.join(folder, "tokenizer_config.json"), {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
        template = os.path.join(folder, "chat_template.jinja")
        if os.path.exists(template):
            with open(template, encoding="utf-8") as file:
                config["chat_template"] = file.read()
        return cls(content, config, own)

    def _id_of(role):  # noqa: N805
        return property(lambda self: self._roles.get(role, (None, None))[1])

    bos_token_id, eos_token_id, pad_token_id, unk_token_id = map(_id_of, ("bos", "eos", "pad", "unk"))
    cls_token_id, sep_token_id, mask_token_id = map(_id_of, ("cls", "sep", "mask"))
    del _id_of

    @property
    def vocab_size(self):
        return self._engine.get_vocab_size()

    def __len__(self):
        return self.vocab_size

    def token_to_id(self, token):
        return self._engine.token_to_id(token)

    def id_to_token(self, index):
        return self._engine.id_to_token(index)

    def encode(self, text, pair=None, add_special_tokens=True):
        """Token ids of a text."""
        return list(self._engine.encode(text, pair, add_special_tokens=add_special_tokens).ids)

    def decode(self, ids, skip_special_tokens=True):
        """The text of token ids."""
        ids = ids.tolist() if isinstance(ids, _C.Tensor) else list(ids)
        return self._engine.decode(ids, skip_special_tokens=skip_special_tokens)

    def __call__(
        self, texts, pairs=None, padding=False, truncation=False, max_length=None, padding_side="right", add_special_tokens=True
    ):
        """input_ids, attention_mask and token_type_ids as tensors. texts: one or a list; padding fills to the longest."""
        single = isinstance(texts, str)
        texts = [texts] if single else list(texts)
        pairs = [pairs] if single and pairs is not None else pairs or [None] * len(texts)
        if not texts:
            raise ValueError("no texts")
        limit = max_length or (self.max_length if truncation and self.max_length and self.max_length < 1e9 else None)
        ends = self._engine.encode("", None, add_special_tokens=add_special_tokens)
        rows = []
        for text, pair in zip(texts, pairs):
            made = self._engine.encode(text, pair, add_special_tokens=add_special_tokens)
            ids, types = list(made.ids), list(made.type_ids)
            if truncation and limit and len(ids) > limit:
                last = len(ends.ids) - _common_start(ends.ids, ids)  # the tokens that close a text stay
                ids, types = (row[: limit - last] + row[len(row) - last :] for row in (ids, types))
            rows.append((ids, types))
        longest = max(len(ids) for ids, _ in rows)
        if not padding and any(len(ids) != longest for ids, _ in rows):
            raise ValueError("texts of different lengths need padding=True to become one tensor")
        pad = self.pad_token_id if self.pad_token_id is not None else self.eos_token_id or 0

        def rectangle(rows, value):
            fill = [[value] * (longest - len(row)) for row in rows]
            joined = zip(fill, rows) if padding_side == "left" else zip(rows, fill)
            return _C.tensor([[*a, *b] for a, b in joined], dtype=_C.int64)

        return {
            "input_ids": rectangle([ids for ids, _ in rows], pad),
            "attention_mask": rectangle([[1] * len(ids) for ids, _ in rows], 0),
            "token_type_ids": rectangle([types for _, types in rows], 0),
        }

    def apply_chat_template(self, messages, add_generation_prompt=True, tokenize=False):
        """A conversation as the text the model was trained on: by the file's template (which needs the package jinja2)."""
        template = self.config.get("chat_template")
        if isinstance(template, list):
            template = next((t["template"] for t in template if t.get("name") == "default"), template[0]["template"])
        if template is None:
            text = "".join(f"{m['role']}: {m['content']}\n" for m in messages) + ("assistant:" if add_generation_prompt else "")
        else:
            try:
                from jinja2.sandbox import ImmutableSandboxedEnvironment
            except ImportError:
                raise RuntimeError("this model's chat template needs the package jinja2") from None
            room = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
            names = {f"{role}_token": token for role, (token, _) in self._roles.items()}
            text = room.from_string(template).render(messages=messages, add_generation_prompt=add_generation_prompt, **names)
        return self.encode(text, add_special_tokens=template is None) if tokenize else text


def _common_start(a, b):
    n = 0
    for x, y in zip(a, b):
        if x != y:
            break
        n += 1
    return n


def _engine(file, own):
    if not own:
        try:
            import tokenizers

            made = tokenizers.Tokenizer.from_str(json.dumps(file))
            made.no_padding()
            made.no_truncation()
            return made
        except ImportError:
            pass
    from .reader import Reader

    return Reader(file)
