"""Text to tokens and back, from the tokenizer.json that comes with a model.

The package `tokenizers` reads the file if it is installed; else `lucid.models.text.reader` does, more slowly.
"""

import json
import os

from ... import _C
from . import chat


class Encoding(dict):
    """Tensors by name, as a tokenizer gives and a model takes them: model(**encoding). Also as attributes.

    >>> from lucid.models.text.tokenizer import Encoding
    >>> Encoding(input_ids=lucid.tensor([[1]])).to("cpu").input_ids
    tensor([[1]])
    """

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(f"no {name!r} in this encoding; there are {', '.join(self)}")
        return self[name]

    def to(self, device):
        return Encoding({name: tensor.to(device) for name, tensor in self.items()})


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
        self.config, self._file = config or {}, file
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
        self.padding_side = self.config.get("padding_side", "right")

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

    def save_pretrained(self, folder):
        """Write tokenizer.json, tokenizer_config.json and, if there is one, chat_template.jinja."""
        os.makedirs(folder, exist_ok=True)
        about = {**self.config, **{f"{role}_token": token for role, (token, _) in self._roles.items()}}
        template = about.get("chat_template")
        if isinstance(template, str):
            with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as file:
                file.write(about.pop("chat_template"))
        for name, content in (("tokenizer.json", self._file), ("tokenizer_config.json", about)):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                json.dump(content, file, ensure_ascii=False, indent=2)

    def _id_of(role):  # noqa: N805
        return property(lambda self: self._roles.get(role, (None, None))[1])

    def _token_of(role):  # noqa: N805
        def put(self, token):
            if self._engine.token_to_id(token) is None:
                raise ValueError(f"{token!r} is no token of this vocabulary")
            self._roles[role] = (token, self._engine.token_to_id(token))

        return property(lambda self: self._roles.get(role, (None, None))[0], put)

    bos_token_id, eos_token_id, pad_token_id, unk_token_id = map(_id_of, ("bos", "eos", "pad", "unk"))
    cls_token_id, sep_token_id, mask_token_id = map(_id_of, ("cls", "sep", "mask"))
    bos_token, eos_token, pad_token, unk_token = map(_token_of, ("bos", "eos", "pad", "unk"))
    cls_token, sep_token, mask_token = map(_token_of, ("cls", "sep", "mask"))
    del _id_of, _token_of

    @property
    def all_special_ids(self):
        return sorted({index for _, index in self._roles.values() if index is not None})

    @property
    def vocab_size(self):
        return self._engine.get_vocab_size()

    def __len__(self):
        return self.vocab_size

    def token_to_id(self, token):
        return self._engine.token_to_id(token)

    def id_to_token(self, index):
        return self._engine.id_to_token(index)

    def convert_tokens_to_ids(self, tokens):
        return self.token_to_id(tokens) if isinstance(tokens, str) else [self.token_to_id(token) for token in tokens]

    def convert_ids_to_tokens(self, ids):
        ids = ids.tolist() if isinstance(ids, _C.Tensor) else ids
        return self.id_to_token(ids) if isinstance(ids, int) else [self.id_to_token(index) for index in ids]

    def tokenize(self, text):
        """The tokens of a text as they stand in the vocabulary, without those that open and close it."""
        return self.convert_ids_to_tokens(self.encode(text, add_special_tokens=False))

    def encode(self, text, pair=None, add_special_tokens=True):
        """Token ids of a text."""
        return list(self._engine.encode(text, pair, add_special_tokens=add_special_tokens).ids)

    def decode(self, ids, skip_special_tokens=True):
        """The text of token ids."""
        ids = ids.tolist() if isinstance(ids, _C.Tensor) else list(ids)
        return self._engine.decode(ids, skip_special_tokens=skip_special_tokens)

    def batch_decode(self, rows, skip_special_tokens=True):
        """The texts of rows of token ids."""
        return [self.decode(row, skip_special_tokens) for row in rows]

    def __call__(
        self, texts, pairs=None, padding=False, truncation=False, max_length=None, padding_side=None, add_special_tokens=True,
        return_tensors="pt", return_token_type_ids=None,
    ):  # fmt: skip
        """input_ids and attention_mask as tensors, and token_type_ids for models that tell two sentences apart.

        texts: one or a list. padding: True fills to the longest, "max_length" to max_length. truncation: True ("longest_first")
        takes tokens from the longer of two texts, "only_first" and "only_second" from that one. padding_side: the tokenizer's
        own unless given. Results are always tensors of rows.
        """
        if return_tensors != "pt":
            raise ValueError(f"return_tensors is 'pt': results are tensors, not {return_tensors!r}")
        for name, value, known in (
            ("padding", padding, ("longest", "max_length", "do_not_pad")),
            ("truncation", truncation, ("longest_first", "only_first", "only_second", "do_not_truncate")),
        ):
            if not isinstance(value, bool) and value not in known:
                raise ValueError(f"{name} is True, False, {', '.join(known)}, not {value!r}")
        single = isinstance(texts, str)
        texts = [texts] if single else list(texts)
        pairs = [pairs] if single and pairs is not None else pairs or [None] * len(texts)
        if not texts:
            raise ValueError("no texts")
        known = self.max_length if self.max_length and self.max_length < 1e9 else None
        limit = max_length or known
        if padding == "max_length" and limit is None:
            raise ValueError("padding='max_length' needs max_length: the tokenizer's files name none")
        cuts = truncation if truncation in ("only_first", "only_second") else "longest_first"
        if truncation is False or truncation == "do_not_truncate" or limit is None:
            cuts = None
        rows = [self._row(text, pair, add_special_tokens, limit, cuts) for text, pair in zip(texts, pairs, strict=True)]
        longest = max(len(ids) for ids, _ in rows)
        padding = padding if padding != "do_not_pad" else False
        if not padding and any(len(ids) != longest for ids, _ in rows):
            raise ValueError("texts of different lengths need padding=True to become one tensor")
        width = max(longest, limit) if padding == "max_length" else longest
        pad = self.pad_token_id if self.pad_token_id is not None else self.eos_token_id or 0
        side = padding_side or self.padding_side

        def rectangle(rows, value):
            fill = [[value] * (width - len(row)) for row in rows]
            joined = zip(fill, rows) if side == "left" else zip(rows, fill)
            return _C.tensor([[*a, *b] for a, b in joined], dtype=_C.int64)

        made = Encoding(
            input_ids=rectangle([ids for ids, _ in rows], pad), attention_mask=rectangle([[1] * len(ids) for ids, _ in rows], 0)
        )
        if self._tells_types if return_token_type_ids is None else return_token_type_ids:
            made["token_type_ids"] = rectangle([types for _, types in rows], 0)
        return made

    @property
    def _tells_types(self):
        """Whether models of this tokenizer take token_type_ids: as its file says, else as BERT's do."""
        names = self.config.get("model_input_names")
        if names is not None:
            return "token_type_ids" in names
        kind = self.config.get("tokenizer_class") or ""
        return self._engine.token_to_id("[CLS]") is not None and not kind.startswith("DistilBert")

    def _row(self, text, pair, closed, limit, cuts):
        """(ids, types) of a text or two, cut to the limit; the tokens that open and close them stay."""
        made = self._engine.encode(text, pair, add_special_tokens=closed)
        ids, types = list(made.ids), list(made.type_ids)
        over = len(ids) - limit if cuts else 0
        if over <= 0:
            return ids, types
        one = self.encode(text, add_special_tokens=False)
        two = [] if pair is None else self.encode(pair, add_special_tokens=False)
        first, second = _shares(len(one), len(two), over, cuts)
        begin = _place(ids, one, 0)
        after = _place(ids, two, begin + len(one)) if pair is not None else len(ids)
        kept = [*range(begin + first), *range(begin + len(one), after + second), *range(after + len(two), len(ids))]
        return [ids[i] for i in kept], [types[i] for i in kept]

    def apply_chat_template(
        self, messages, add_generation_prompt=False, tokenize=False, continue_final_message=False, chat_template=None,
        tools=None, documents=None, **names,
    ):  # fmt: skip
        """A conversation as the text (with tokenize=True the ids) the model was trained on.

        By chat_template, a template or the name of one, else by the one of the files; that needs the package jinja2. Without
        any a line per message says who speaks: "user: ...". add_generation_prompt: the answer begins at the end;
        continue_final_message: the last message is not closed. Other names are passed to the template.
        """
        template, own = self.config.get("chat_template"), chat_template
        if own is not None and (template is None or isinstance(template, str) or "{" in own):
            template, own = own, None
        template = chat.chosen(template, "tool_use" if own is None and tools and _has(template, "tool_use") else own)
        if template is None:
            if tools or documents or continue_final_message:
                raise ValueError(
                    "tools, documents and continue_final_message need a chat template, and this tokenizer has none"
                )
            text = "".join(f"{m['role']}: {m['content']}\n" for m in messages) + ("assistant:" if add_generation_prompt else "")
        else:
            names = {**{f"{role}_token": token for role, (token, _) in self._roles.items()}, **names}
            text = chat.render(
                template, messages, add_generation_prompt, continue_final_message, tools=tools, documents=documents, **names
            )
        return self.encode(text, add_special_tokens=template is None) if tokenize else text


def _has(templates, name):
    return not (templates is None or isinstance(templates, str)) and (
        name in templates or any(isinstance(t, dict) and t.get("name") == name for t in templates)
    )


def _shares(one, two, over, cuts):
    """How many tokens two texts keep when so many have to go, as the package tokenizers has it."""
    if cuts == "only_first" or (not two and cuts == "longest_first"):
        if over > one:
            raise ValueError(f"{over} tokens are to go from a text of {one}")
        return one - over, two
    if cuts == "only_second":
        if over > two:
            raise ValueError(f"{over} tokens are to go from a second text of {two}")
        return one, two - over
    room = one + two - over
    if room < 0:
        raise ValueError(f"{over} tokens are to go from texts of {one} and {two}")
    short, long = sorted((one, two))
    long = short if short > room else max(short, room - short)
    if short + long > room:
        short = room // 2
        long = short + room % 2
    return (long, short) if one > two else (short, long)


def _place(ids, part, begin):
    """Where a text's own tokens stand among those that open and close it."""
    return next((i for i in range(begin, len(ids) - len(part) + 1) if ids[i : i + len(part)] == part), begin)


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
