"""Vectors for texts, by a BERT-like encoder: pooled, normalised, in batches of similar length; and search among them."""

import inspect
import json
import os

from ... import _C
from ...autograd import no_grad
from ..loading import read_config
from .tokenizer import Tokenizer


class SentenceEncoder:
    """Texts to vectors, from a folder as sentence-transformers has it, or of any encoder.

    >>> import json, tempfile
    >>> words = {"[PAD]": 0, "[UNK]": 1, "a": 2, "cat": 3, "dog": 4}
    >>> file = {"model": {"type": "WordPiece", "vocab": words, "unk_token": "[UNK]"}, "pre_tokenizer": {"type": "Whitespace"}}
    >>> small = dict(vocab_size=5, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    >>> model = lucid.models.BertModel(lucid.models.BertConfig(**small)).eval()
    >>> encoder = lucid.models.SentenceEncoder(model, lucid.models.Tokenizer(file))
    >>> vectors = encoder.encode(["a cat", "a dog", "cat"])
    >>> tuple(vectors.shape), encoder.search(vectors[2], vectors, 1)[0][0]
    ((3, 8), 2)
    """

    def __init__(
        self, model, tokenizer, pooling="mean", max_length=None, normalize=True, lower=False, prompts=None, prompt=None
    ):
        """lower: texts in small letters. prompts: texts to put in front, by name; prompt: the name of the one for all texts."""
        if pooling not in ("mean", "cls", "max"):
            raise ValueError(f"pooling is mean, cls or max, not {pooling!r}")
        limit = getattr(model.config, "max_position_embeddings", 512)
        self.model, self.tokenizer, self.pooling, self.normalize = model, tokenizer, pooling, normalize
        self.lower, self.prompts, self.prompt = lower, dict(prompts or {}), prompt
        if prompt is not None and prompt not in self.prompts:
            raise ValueError(f"no prompt is named {prompt!r}; there are {', '.join(self.prompts) or 'none'}")
        self._takes = inspect.signature(model.forward).parameters  # DistilBERT has no kinds of tokens
        offset = getattr(model, "first_position", 0)  # RoBERTa counts from behind the padding token
        self.max_length = min(max_length or limit - offset, limit - offset)

    @classmethod
    def from_pretrained(cls, folder, *, dtype=None, device=None):
        """Reads modules.json and the folders it names, if there are any: which model, which pooling, how long texts may be."""
        from ..registry import AutoModel

        options, inner = {"normalize": True}, folder
        parts = _read(os.path.join(folder, "modules.json")) or []
        for part in parts:
            place = os.path.join(folder, part.get("path", ""))
            kind = part["type"].rpartition(".")[2]
            if kind == "Transformer":
                inner = place
                about = _read(os.path.join(place, "sentence_bert_config.json")) or {}
                options.update(max_length=about.get("max_seq_length"), lower=bool(about.get("do_lower_case")))
            elif kind == "Pooling":
                options["pooling"] = _pooling(_read(os.path.join(place, "config.json")) or {})
            elif kind != "Normalize":
                raise ValueError(f"{folder}: modules of type {kind} are not implemented")
        if parts:
            options["normalize"] = any(part["type"].endswith(".Normalize") for part in parts)
        about = _read(os.path.join(folder, "config_sentence_transformers.json")) or {}
        options.update(prompts=about.get("prompts"), prompt=about.get("default_prompt_name"))
        read_config(inner)  # no config: the error names the file
        model = AutoModel.from_pretrained(inner, dtype=dtype, device=device)
        return cls(model.eval(), Tokenizer.from_pretrained(inner), **options)

    @property
    def dimension(self):
        return self.model.config.hidden_size

    def encode(self, texts, batch_size=32, normalize=None, show_progress=False, prompt_name=None, prompt=None):
        """Vectors (count, dimension), or (dimension,) for one text. normalize: to length 1; unless given, as the folder says.

        prompt: a text to put in front of every text; prompt_name: the one the folder has under this name ("query").
        Texts are sorted by length, so that a batch has little padding; the result is in the order given.
        """
        single = isinstance(texts, str)
        texts = [texts] if single else list(texts)
        normalize = self.normalize if normalize is None else normalize
        name = self.prompt if prompt_name is None else prompt_name
        if prompt is None and name is not None:
            if name not in self.prompts:
                raise ValueError(f"no prompt is named {name!r}; there are {', '.join(self.prompts) or 'none'}")
            prompt = self.prompts[name]
        texts = [(prompt or "") + text for text in texts]
        texts = [text.lower() for text in texts] if self.lower else texts
        if not texts:
            raise ValueError("no texts to encode")
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows = [None] * len(texts)
        for begin in range(0, len(order), batch_size):
            chosen = order[begin : begin + batch_size]
            for i, row in zip(chosen, self._batch([texts[i] for i in chosen], normalize)):
                rows[i] = row
            if show_progress:
                import sys

                done = min(begin + batch_size, len(order))
                print(f"\r{done}/{len(order)} texts", end="\n" if done == len(order) else "", file=sys.stderr, flush=True)
        vectors = _C.stack(rows)
        return vectors[0] if single else vectors

    def _batch(self, texts, normalize):
        made = self.tokenizer(texts, padding=True, truncation=True, max_length=self.max_length)
        made = {name: made[name].to(self.model.device) for name in made if name in self._takes}
        with no_grad():
            hidden = self.model(**made).last_hidden_state
            mask = made["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            if self.pooling == "cls":
                vectors = hidden[:, 0]
            elif self.pooling == "max":
                vectors = hidden.masked_fill(mask == 0, float("-inf")).amax(1)
            else:
                vectors = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            if normalize:
                vectors = vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=1e-12)
        return vectors.unbind(0)

    @staticmethod
    def search(query, vectors, k=5):
        """The k rows of a matrix nearest to a vector by cosine: a list of (row, cosine), best first."""
        query = query / query.norm().clamp(min=1e-12)
        scores = (vectors / vectors.norm(dim=-1, keepdim=True).clamp(min=1e-12)) @ query
        best = scores.topk(min(k, scores.shape[0]))
        return list(zip(best.indices.tolist(), best.values.tolist()))


def _read(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _pooling(about):
    mode = about.get("pooling_mode")  # newer files name it
    if mode is not None:
        return mode
    chosen = [name for name, value in about.items() if name.startswith("pooling_mode_") and value is True]
    names = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max"}
    if len(chosen) != 1 or chosen[0] not in names:
        raise ValueError(f"pooling by {', '.join(chosen) or 'nothing'} is not implemented, only by mean, cls or max")
    return names[chosen[0]]
