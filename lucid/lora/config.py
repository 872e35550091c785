"""The settings of an adapter, with the names of peft's adapter_config.json."""

import dataclasses
import enum
import json
import os
import re

# Fields of peft's files that have no meaning here at any other value.
_ONLY = {
    "alora_invocation_tokens": None,
    "arrow_config": None,
    "corda_config": None,
    "ensure_weight_tying": False,
    "eva_config": None,
    "kasa_config": None,
    "layer_replication": None,
    "loftq_config": {},
    "lora_ga_config": None,
    "megatron_config": None,
    "monteclora_config": None,
    "target_parameters": None,
    "trainable_token_indices": None,
    "use_bdlora": None,
    "use_qalora": False,
    "velora_config": None,
}
_PASSED_OVER = ("auto_mapping", "megatron_core", "peft_version", "qalora_group_size", "revision", "runtime_config")
_BIASES = ("none", "all", "lora_only")
_HEADS = {  # what is trained whole beside the adapter, by the task; where the model has it
    "SEQ_CLS": ("classifier", "score"),
    "TOKEN_CLS": ("classifier", "score"),
    "QUESTION_ANS": ("qa_outputs",),
}
_TARGETS = {  # what is adapted unless target_modules says, by the model's type
    "gpt2": ["c_attn"],
    "llama": ["q_proj", "v_proj"],
    "mistral": ["q_proj", "v_proj"],
    "qwen2": ["q_proj", "v_proj"],
    "qwen3": ["q_proj", "v_proj"],
    "gemma": ["q_proj", "v_proj"],
    "bert": ["query", "value"],
    "roberta": ["query", "value"],
    "t5": ["q", "v"],
}


class TaskType(str, enum.Enum):
    """What a model is for. Heads of SEQ_CLS, TOKEN_CLS and QUESTION_ANS are trained beside the adapter, and saved with it.

    >>> lucid.lora.LoraConfig(task_type=lucid.lora.TaskType.SEQ_CLS).task_type
    'SEQ_CLS'
    """

    SEQ_CLS = "SEQ_CLS"
    SEQ_2_SEQ_LM = "SEQ_2_SEQ_LM"
    CAUSAL_LM = "CAUSAL_LM"
    TOKEN_CLS = "TOKEN_CLS"
    QUESTION_ANS = "QUESTION_ANS"
    FEATURE_EXTRACTION = "FEATURE_EXTRACTION"


@dataclasses.dataclass
class LoraConfig:
    """What is adapted and how.

    r: the rank; the correction is scaled by lora_alpha / r (with use_rslora by lora_alpha / sqrt(r)). target_modules: names of
    modules (the end of their path), a regular expression for whole paths, or "all-linear". bias: which biases are trained:
    "none", "all", "lora_only". use_dora: magnitude and direction apart. modules_to_save: modules trained whole beside it;
    task_type adds the heads of classifiers and of answers (`TaskType`). layers_to_transform: numbers of the layers that
    target_modules, a list then, is meant for.

    >>> lucid.lora.LoraConfig(r=4, lora_alpha=16).scaling()
    4.0
    >>> lucid.lora.LoraConfig(r=4, lora_alpha=16, use_rslora=True).scaling()
    8.0
    """

    r: int = 8
    lora_alpha: float = 8
    lora_dropout: float = 0.0
    target_modules: list | str | None = None
    exclude_modules: list | str | None = None
    bias: str = "none"
    use_rslora: bool = False
    use_dora: bool = False
    lora_bias: bool = False
    modules_to_save: list | None = None
    init_lora_weights: bool | str = True
    layers_to_transform: list | int | None = None
    layers_pattern: list | str | None = None
    rank_pattern: dict = dataclasses.field(default_factory=dict)
    alpha_pattern: dict = dataclasses.field(default_factory=dict)
    fan_in_fan_out: bool = False
    task_type: str | None = None
    inference_mode: bool = False
    base_model_name_or_path: str | None = None

    def __post_init__(self):
        if not isinstance(self.r, int) or self.r < 1:
            raise ValueError(f"r must be a positive int, got {self.r!r}")
        if not 0 <= self.lora_dropout < 1:
            raise ValueError(f"lora_dropout must be at least 0 and below 1, got {self.lora_dropout}")
        if self.bias not in _BIASES:
            raise ValueError(f"bias is one of {', '.join(_BIASES)}, not {self.bias!r}")
        if self.init_lora_weights not in (True, False, "gaussian"):
            raise ValueError(f"init_lora_weights is True, False or 'gaussian', not {self.init_lora_weights!r}")
        if isinstance(self.target_modules, str) and self.layers_to_transform is not None:
            raise ValueError("layers_to_transform needs target_modules as a list: a text says by itself which paths it means")
        if self.layers_pattern and self.layers_to_transform is None:
            raise ValueError("layers_pattern says where layers_to_transform are counted: give both")
        if self.task_type is not None:
            self.task_type = TaskType(self.task_type).value
        if self.use_dora and self.lora_bias:
            raise ValueError("use_dora and lora_bias do not go together")

    def with_heads(self, model):
        """The same config with the heads of its task among modules_to_save, those that this model has."""
        heads = _HEADS.get(self.task_type, ())
        there = {name.rpartition(".")[2] for name, _ in model.named_modules()}
        named = [name for name in self.modules_to_save or () if name in there or name not in heads]
        named += [name for name in heads if name in there and name not in named]
        return dataclasses.replace(self, modules_to_save=named or None)

    def scaling(self, name=""):
        """The factor of the correction, of the module of this path."""
        r, alpha = self.rank_of(name), _by_pattern(self.alpha_pattern, name, self.lora_alpha)
        return alpha / r**0.5 if self.use_rslora else alpha / r

    def rank_of(self, name=""):
        """The rank for the module of this path."""
        return _by_pattern(self.rank_pattern, name, self.r)

    def targets(self, name, module_type):
        """Whether the module of this path is adapted."""
        wanted = self.target_modules
        if wanted is None:
            if module_type not in _TARGETS:
                raise ValueError("target_modules is needed: the model is none whose layers are known")
            wanted = _TARGETS[module_type]
        if self.exclude_modules and _matches(self.exclude_modules, name):
            return False
        if any(re.match(rf"(^|.*\.){m}($|\..*)", name) for m in self.modules_to_save or ()):
            return False
        if not _matches(wanted, name):
            return False
        layers = self.layers_to_transform
        if layers is None or layers == []:
            return True
        patterns = self.layers_pattern or [r"[^.]*"]
        patterns = [patterns] if isinstance(patterns, str) else patterns
        found = next(filter(None, (re.match(rf"(?:^|.*?\.){p}\.(\d+)\.", name) for p in patterns)), None)
        return found is not None and int(found[1]) in ([layers] if isinstance(layers, int) else layers)

    def to_dict(self):
        """The fields as peft's files have them."""
        return {**dataclasses.asdict(self), "peft_type": "LORA"}

    @classmethod
    def from_dict(cls, values):
        """A config from the fields of a file; a field that asks for what is not implemented is an error."""
        known, chosen = {f.name for f in dataclasses.fields(cls)}, {}
        for name, value in values.items():
            if name == "peft_type":
                if value != "LORA":
                    raise ValueError(f"an adapter of type {value!r}; only LORA is implemented")
            elif name in known:
                chosen[name] = value
            elif name in _ONLY:
                if value not in (_ONLY[name], None):
                    raise ValueError(f"LoraConfig: {name}={value!r} is not implemented, only {_ONLY[name]!r}")
            elif name not in _PASSED_OVER:
                raise ValueError(f"LoraConfig has no field {name!r}")
        return cls(**chosen)

    def save_pretrained(self, folder):
        """Write adapter_config.json."""
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "adapter_config.json"), "w", encoding="utf-8") as file:
            json.dump(dict(sorted(self.to_dict().items())), file, indent=2)

    @classmethod
    def from_pretrained(cls, folder):
        """Read adapter_config.json of a folder."""
        with open(os.path.join(folder, "adapter_config.json"), encoding="utf-8") as file:
            return cls.from_dict(json.load(file))


def _by_pattern(patterns, name, default):
    return next((value for pattern, value in patterns.items() if re.match(rf"(.*\.)?({pattern})$", name)), default)


def _matches(wanted, name):
    if isinstance(wanted, str):
        return re.fullmatch(wanted, name) is not None
    return any(name == each or name.endswith(f".{each}") for each in wanted)
