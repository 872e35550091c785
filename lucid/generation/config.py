"""What a generation is asked for: the arguments of generate as data, and what a folder's generation_config.json says."""

import json
import os

# The arguments that a file can hold, and what they are unless it says so (None: nothing).
_FIELDS = {
    "max_new_tokens": None, "max_length": None, "min_new_tokens": 0, "min_length": 0, "max_time": None,
    "stop_strings": None, "do_sample": False, "num_beams": 1, "length_penalty": 1.0, "early_stopping": False,
    "num_return_sequences": 1, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "min_p": None, "typical_p": 1.0,
    "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "no_repeat_ngram_size": 0,
    "bad_words_ids": None, "suppress_tokens": None, "begin_suppress_tokens": None, "sequence_bias": None,
    "forced_eos_token_id": None, "renormalize_logits": False, "eos_token_id": None, "pad_token_id": None,
    "bos_token_id": None, "use_cache": True, "cache_implementation": None, "return_dict_in_generate": False,
    "output_scores": False, "output_logits": False,
}  # fmt: skip
_CALLS = (  # arguments of a call that no file holds
    "tokenizer", "stopping_criteria", "logits_processor", "past_key_values", "prefix_cache", "prefill_chunk", "cuda_graph",
    "seed", "callback", "streamer", "prefix_allowed_tokens_fn",
)  # fmt: skip
# Arguments of transformers that are not implemented, and the values at which they say nothing.
_ONLY = {
    "num_beam_groups": (1,), "diversity_penalty": (0.0,), "penalty_alpha": (0.0,), "guidance_scale": (1.0,),
    "epsilon_cutoff": (0.0,), "eta_cutoff": (0.0,), "top_h": (), "forced_bos_token_id": (), "force_words_ids": (),
    "constraints": (), "exponential_decay_length_penalty": (), "remove_invalid_values": (),
    "encoder_no_repeat_ngram_size": (0,), "encoder_repetition_penalty": (1.0,), "watermarking_config": (),
    "prompt_lookup_num_tokens": (), "dola_layers": (), "assistant_model": (), "assistant_tokenizer": (),
    "assistant_early_exit": (), "synced_gpus": (), "token_healing": (), "negative_prompt_ids": (),
    "negative_prompt_attention_mask": (), "custom_generate": (), "output_attentions": (), "output_hidden_states": (),
    "inputs_embeds": (), "token_type_ids": (), "low_memory": (),
}  # fmt: skip


def _says_nothing(name, value):
    """Whether an argument that is not implemented has a value that changes nothing."""
    return name in _ONLY and (value is None or value is False or value in _ONLY[name])


class GenerationConfig:
    """The arguments of generate as an object: given as generation_config=, or read from a model's folder.

    What is not set is None, and means the default. A field of transformers that is not implemented is kept, and an error
    once it is used.

    >>> config = lucid.generation.GenerationConfig(max_new_tokens=3, do_sample=True)
    >>> config.max_new_tokens, config.top_p, config
    (3, None, GenerationConfig(do_sample=True, max_new_tokens=3))
    """

    def __init__(self, **options):
        unknown = options.keys() - _FIELDS.keys() - _ONLY.keys()
        if unknown:
            raise TypeError(f"GenerationConfig has no field {min(unknown)!r}")
        self.__dict__.update(dict.fromkeys(_FIELDS), **{n: v for n, v in options.items() if not _says_nothing(n, v)})

    def to_dict(self):
        """The fields that are set."""
        return {name: value for name, value in self.__dict__.items() if value is not None}

    def update(self, **options):
        """Set fields."""
        self.__dict__.update(type(self)(**{**self.to_dict(), **options}).__dict__)

    def __repr__(self):
        return f"GenerationConfig({', '.join(f'{name}={value!r}' for name, value in sorted(self.to_dict().items()))})"

    def __eq__(self, other):
        return isinstance(other, GenerationConfig) and self.to_dict() == other.to_dict()

    @classmethod
    def from_pretrained(cls, folder):
        """Of a folder with generation_config.json, or of such a file; fields it has for other programs are passed over."""
        path = os.fspath(folder)
        path = os.path.join(path, "generation_config.json") if os.path.isdir(path) else path
        with open(path, encoding="utf-8") as file:
            values = json.load(file)
        if values.get("sequence_bias") is not None:  # JSON has no tuples as keys
            values["sequence_bias"] = [(tuple(ids), value) for ids, value in values["sequence_bias"]]
        return cls(**{name: value for name, value in values.items() if name in _FIELDS or name in _ONLY})

    @classmethod
    def of(cls, folder):
        """The same, or None if the folder has no such file."""
        there = os.path.isdir(folder) and os.path.exists(os.path.join(folder, "generation_config.json"))
        return cls.from_pretrained(folder) if there else None

    def save_pretrained(self, folder):
        """Write generation_config.json."""
        values = self.to_dict()
        if isinstance(values.get("sequence_bias"), dict):
            values["sequence_bias"] = [[list(ids), value] for ids, value in values["sequence_bias"].items()]
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "generation_config.json"), "w", encoding="utf-8") as file:
            json.dump(values, file, indent=2, sort_keys=True)


def resolved(model, options, generation_config=None):
    """The arguments of a call: those given, then generation_config's or, without one, those of the model's folder.

    None counts as not given, but for eos_token_id, where it means no end.

    >>> from lucid.generation.config import resolved
    >>> resolved(None, {"top_k": 3}, lucid.generation.GenerationConfig(top_k=5, max_length=9))
    {'max_length': 9, 'top_k': 3}
    """
    for name in options:
        if name not in _FIELDS and name not in _CALLS and name not in _ONLY:
            raise TypeError(f"generate() got an unexpected keyword argument {name!r}")
    given = {name: value for name, value in options.items() if not _says_nothing(name, value)}
    config = generation_config if generation_config is not None else getattr(model, "generation_config", None)
    chosen = {} if config is None else config.to_dict()
    if given.get("max_new_tokens") is not None or given.get("max_length") is not None:  # one limit, the call's
        chosen.pop("max_new_tokens", None)
        chosen.pop("max_length", None)
    if "max_new_tokens" in chosen:
        chosen.pop("max_length", None)
    chosen.update({name: value for name, value in given.items() if value is not None or name == "eos_token_id"})
    for name in _ONLY.keys() & chosen.keys():
        if name not in options or name in given:
            raise NotImplementedError(f"generate: {name}={chosen[name]!r} is not implemented")
        del chosen[name]  # the call says that the file's value does not hold
    chosen.pop("bos_token_id", None)
    return chosen


def end_tokens(model):
    """The ids after which a model's texts end: those of generation_config.json, else of its config.

    >>> from lucid.generation.config import end_tokens
    >>> config = lucid.models.GPT2Config(hidden_size=8, num_attention_heads=2, vocab_size=9, eos_token_id=3)
    >>> end_tokens(lucid.models.GPT2LMHeadModel(config))
    [3]
    """
    ends = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = getattr(model.config, "eos_token_id", None) if ends is None else ends
    return [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
