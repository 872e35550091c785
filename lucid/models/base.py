"""The base of all published models: a config that is data, and a module that is made from it and read from folders.

A config is a frozen dataclass. Its own field names are the same for all families of a kind; files of the Hub use older ones
in places (`n_embd`), which a config lists in `aliases`. A field of such a file that would change what is computed, and that
the family does not implement, is listed in `only` with the one value that is understood: another value is an error, never
ignored.
"""

import dataclasses
import json
import os
import warnings

from .. import _C, nn
from . import loading


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """The settings of a model: frozen, compared by value, written to and read from JSON.

    >>> config = lucid.models.GPT2Config(num_hidden_layers=2)
    >>> config == lucid.models.GPT2Config.from_dict(config.to_dict())
    True
    >>> lucid.models.GPT2Config.from_dict({"layers": 2})
    Traceback (most recent call last):
    ValueError: GPT2Config has no field 'layers'
    """

    model_type = None  # class attributes, not fields: without annotations
    aliases = {}  # the Hub's name of a field: ours
    also = {}  # further names that are understood, and never written: ours
    only = {}  # fields of the Hub that are understood at one value alone
    names_labels = True  # whether the Hub's file has a name per class, not their number

    def to_dict(self):
        """The fields by name, and the model_type."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {"model_type": self.model_type, **{name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()}}

    @classmethod
    def from_dict(cls, values, strict=True):
        """A config from fields by name, or by the Hub's names. strict=False passes over fields that are not known."""
        known = {f.name for f in dataclasses.fields(cls)}
        chosen = {}
        values = cls.understood(values)
        for name, value in values.items():
            if name == "model_type":
                if value != cls.model_type and strict:
                    raise ValueError(f"{cls.__name__} is the config of {cls.model_type!r}, not of {value!r}")
            elif name in cls.only:
                if value not in (cls.only[name], None):
                    raise ValueError(f"{cls.__name__}: {name}={value!r} is not implemented, only {cls.only[name]!r}")
            elif (own := cls.aliases.get(name) or cls.also.get(name, name)) in known:
                if own == name or own not in values:
                    chosen[own] = tuple(value) if isinstance(value, list) else value
            elif strict:
                raise ValueError(f"{cls.__name__} has no field {name!r}; it has {', '.join(sorted(known))}")
        return cls(**chosen)

    @classmethod
    def understood(cls, values):
        """The fields of a file with what other versions of it say in another form put into ours."""
        values = dict(values)
        labels = values.pop("id2label", None)
        values.pop("label2id", None)
        if isinstance(labels, dict) and "num_labels" in {f.name for f in dataclasses.fields(cls)} | cls.aliases.keys():
            values.setdefault("num_labels", len(labels))
        return values

    def to_hub(self):
        """The fields by the names that transformers gives them."""
        names = {own: hub for hub, own in self.aliases.items()}
        values = {names.get(name, name): value for name, value in self.to_dict().items() if value is not None}
        if "num_labels" in values and self.names_labels:  # transformers counts names
            labels = {str(i): f"LABEL_{i}" for i in range(values.pop("num_labels"))}
            values.update(id2label=labels, label2id={name: int(i) for i, name in labels.items()})
        return values

    def replace(self, **changes):
        """The same config with some fields changed; names of the Hub are understood too."""
        if changes:
            known = {**self.also, **self.aliases}
            return type(self).from_dict({**self.to_dict(), **{known.get(n, n): v for n, v in changes.items()}})
        return self

    def save(self, path):
        """Write JSON to a path, or to config.json of a folder."""
        path = os.path.join(path, "config.json") if os.path.isdir(path) else path
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.to_dict(), file, indent=2)
            file.write("\n")

    @classmethod
    def load(cls, path):
        """Read JSON from a path or a folder, as `save` or the Hub wrote it."""
        return cls.from_dict(loading.read_config(path), strict=False)

    from_pretrained = load


@dataclasses.dataclass(frozen=True)
class LanguageModelConfig(ModelConfig):
    """The settings that networks of text have in common, with BERT's defaults.

    >>> isinstance(lucid.models.LlamaConfig(), lucid.models.LanguageModelConfig)
    True
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int | None = 3072
    max_position_embeddings: int = 512


class PretrainedModel(nn.Module):
    """A module made from a config, read from and written to folders as the Hub has them.

    >>> import tempfile
    >>> model = lucid.models.GPT2Model(lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save_pretrained(folder)
    ...     again = lucid.models.GPT2Model.from_pretrained(folder)
    >>> bool((again.wte.weight == model.wte.weight).all())
    True
    """

    config_class = ModelConfig
    base_model_prefix = ""  # the attribute under which models with a head keep the network
    ignored_keys = ()  # patterns of keys of published files that hold nothing to learn
    renamed_keys = ()  # (pattern, replacement): older spellings
    head_keys = ()  # prefixes of the keys that start fresh if a file lacks them or has them in another shape
    stem_keys = ()  # keys of the first layer: those start fresh if a file has them in another shape
    tied_keys = {}  # key: the key it shares its tensor with

    def __init__(self, config):
        super().__init__()
        if not isinstance(config, self.config_class):
            raise TypeError(f"{type(self).__name__} takes a {self.config_class.__name__}, not {type(config).__name__}")
        self.config = config
        self.fresh_keys = []

    @classmethod
    def from_config(cls, config):
        return cls(config)

    @property
    def device(self):
        return next(self.parameters()).device

    @property
    def dtype(self):
        return next(p.dtype for p in self.parameters() if p.is_floating_point())

    @property
    def base_model(self):
        return getattr(self, self.base_model_prefix, self) if self.base_model_prefix else self

    def num_parameters(self, only_trainable=False):
        return sum(p.numel() for p in self.parameters() if p.requires_grad or not only_trainable)

    def tied(self):
        """The keys that share their tensor with another, and which, for this config."""
        return self.tied_keys

    def shared_keys(self):
        """The same without the layers whose weight is in codes (lucid.generation.quantize): those have their own."""
        pairs = [(key, *key.rpartition("."), source) for key, source in self.tied().items()]
        owns = [isinstance(getattr(self.get_submodule(owner), name), nn.Parameter) for _, owner, _, name, _ in pairs]
        return {key: source for (key, *_, source), shares in zip(pairs, owns) if shares}

    def headless_keys(self):
        """Patterns of keys of a file's head that this model, having none, passes over."""
        return ()

    def tie_weights(self):
        for key, source in self.shared_keys().items():
            owner, _, name = key.rpartition(".")
            setattr(self.get_submodule(owner), name, self.get_parameter(source))

    @classmethod
    def from_pretrained(cls, folder, *, config=None, dtype=None, device=None, **overrides):
        """The model of a folder: config.json and model.safetensors, or pytorch_model.bin, whole or in parts with an index.

        Tensors are the file's pages until they are written to. dtype converts; overrides are fields of the config. A file that
        does not fit raises WeightsError, which lists what is missing, unexpected and of another shape.
        """
        if config is None:
            config = cls.config_class.load(folder)
        config = config.replace(**overrides)
        with _C.device("meta"):
            model = cls(config)
            loading.put_codes(model, folder)
        model.load_weights(loading.read_weights(folder), source=str(folder))
        model.eval()
        return model if dtype is None and device is None else model.to(device=device, dtype=dtype)

    def load_weights(self, weights, source="the weights"):
        """Take tensors by their published names; the error lists everything that does not fit."""
        fitted, fresh = loading.fit(self, weights, source)
        self.load_state_dict(fitted, strict=False, assign=True)
        self.fresh_keys = sorted(fresh)
        if fresh:
            warnings.warn(f"{source} has no weights for {', '.join(self.fresh_keys)}: they start fresh", stacklevel=3)
            loading.make_fresh(self, fresh)
        self.tie_weights()
        return self

    def save_pretrained(self, folder, max_shard_size="5GB"):
        """Write config.json and model.safetensors (in parts beyond max_shard_size), as transformers reads them.

        A model whose weights are in codes (lucid.generation.quantize) is written as it is; transformers cannot read that.
        """
        from ..serialization import save_safetensors, save_sharded

        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
            about = {"architectures": [type(self).__name__], **self.config.to_hub(), **loading.about_codes(self)}
            json.dump(about, file, indent=2)
        shared = self.shared_keys()
        state = {key: value for key, value in self.state_dict().items() if key not in shared}
        size = sum(value.numel() * value.element_size() for value in state.values())
        if size <= loading.bytes_of(max_shard_size):
            save_safetensors(state, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
        else:
            save_sharded(state, folder, max_shard_size)
