"""Llama and its relatives, with transformers' keys. Mistral, Qwen2, Qwen3 and Gemma are configs: flags say what differs.

RMSNorm before each branch, rotary positions, heads of keys shared by several heads of queries, a gated MLP. What a relative has
besides is a class attribute of its config: biases of projections, norms of queries and keys, norms that scale by 1 + weight.
"""

import dataclasses
import math
import struct

from ... import _C, nn
from ...nn import functional as F
from ..base import LanguageModelConfig, PretrainedModel
from ..outputs import BaseModelOutput
from ..registry import family
from .attention import Rotary, rotate
from .language import CausalLM, Pass, branch, inputs_of, watched

_ACTIVATIONS = {
    "silu": F.silu,
    "gelu": F.gelu,
    "relu": F.relu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
}


@dataclasses.dataclass(frozen=True)
class LlamaConfig(LanguageModelConfig):
    """The settings of Llama and, with other defaults, of its relatives.

    >>> config = lucid.models.LlamaConfig(hidden_size=64, num_attention_heads=4)
    >>> config.head_dim, config.num_key_value_heads
    (16, 4)
    """

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    hidden_act: str = "silu"
    max_position_embeddings: int = 2048
    initializer_range: float = 0.02
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: dict | None = None
    attention_bias: bool = False
    mlp_bias: bool = False
    attention_dropout: float = 0.0
    sliding_window: int | None = None
    layer_types: tuple | None = None
    bos_token_id: int | None = 1
    eos_token_id: int | tuple | None = 2
    pad_token_id: int | None = None
    tie_word_embeddings: bool = False

    model_type = "llama"
    aliases = {"hidden_activation": "hidden_act"}
    only = {"pretraining_tp": 1}
    qkv_bias = False  # of queries, keys and values alone
    qk_norm = False
    norm_offset = 0.0  # norms scale by weight plus this
    scale_embeddings = False
    sliding = "none"  # which layers a sliding_window concerns: none, all, or those that the file names

    def __post_init__(self):
        put = object.__setattr__
        if self.num_key_value_heads is None:
            put(self, "num_key_value_heads", self.num_attention_heads)
        if self.head_dim is None:
            put(self, "head_dim", self.hidden_size // self.num_attention_heads)
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"{self.num_attention_heads} heads of queries are not a multiple of {self.num_key_value_heads} of keys"
            )
        if self.hidden_act not in _ACTIVATIONS:
            raise ValueError(f"hidden_act is one of {', '.join(_ACTIVATIONS)}, not {self.hidden_act!r}")

    @classmethod
    def understood(cls, values):
        values = super().understood(values)
        rope = values.pop("rope_parameters", None)
        if rope:  # newer files: one field for both
            rope = dict(rope)
            values["rope_theta"] = rope.pop("rope_theta", values.get("rope_theta", 10000.0))
            values["rope_scaling"] = rope if rope.get("rope_type", "default") != "default" else None
        if values.get("hidden_activation") is None:
            values.pop("hidden_activation", None)
        return values

    def to_hub(self):
        rope = {"rope_type": "default", **(self.rope_scaling or {}), "rope_theta": self.rope_theta}
        values = {name: value for name, value in self.to_dict().items() if value is not None}
        for name in ("rope_theta", "rope_scaling"):
            values.pop(name, None)
        return {**values, "rope_parameters": rope}

    def slides(self, layer):
        """Whether the window limits this layer."""
        if self.layer_types is not None:
            return self.layer_types[layer] == "sliding_attention"
        return self.sliding == "all"


@dataclasses.dataclass(frozen=True)
class MistralConfig(LlamaConfig):
    """The settings of Mistral: a window of 4096 tokens in every layer.

    >>> lucid.models.MistralConfig().sliding_window
    4096
    """

    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    sliding_window: int | None = 4096

    model_type = "mistral"
    sliding = "all"


@dataclasses.dataclass(frozen=True)
class Qwen2Config(LlamaConfig):
    """The settings of Qwen2 and Qwen2.5: biases of queries, keys and values; a window, if used, from max_window_layers on.

    >>> lucid.models.Qwen2Config(num_hidden_layers=2, use_sliding_window=True, max_window_layers=1).slides(1)
    True
    """

    vocab_size: int = 151936
    intermediate_size: int = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    sliding_window: int | None = 4096
    use_sliding_window: bool = False
    max_window_layers: int = 28

    model_type = "qwen2"
    qkv_bias = True

    def slides(self, layer):
        if self.layer_types is not None:
            return self.use_sliding_window and super().slides(layer)
        return self.use_sliding_window and layer >= self.max_window_layers


@dataclasses.dataclass(frozen=True)
class Qwen3Config(Qwen2Config):
    """The settings of Qwen3: norms of queries and keys instead of biases.

    >>> lucid.models.Qwen3Config().head_dim
    128
    """

    head_dim: int | None = 128

    model_type = "qwen3"
    qkv_bias = False
    qk_norm = True


@dataclasses.dataclass(frozen=True)
class GemmaConfig(LlamaConfig):
    """The settings of Gemma: norms scale by 1 + weight, embeddings by the root of their width.

    >>> lucid.models.GemmaConfig().hidden_act
    'gelu_pytorch_tanh'
    """

    vocab_size: int = 256000
    hidden_size: int = 3072
    intermediate_size: int = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    head_dim: int | None = 256
    hidden_act: str = "gelu_pytorch_tanh"
    max_position_embeddings: int = 8192
    bos_token_id: int | None = 2
    eos_token_id: int | tuple | None = 1
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True

    model_type = "gemma"
    norm_offset = 1.0
    scale_embeddings = True


class _Norm(nn.Module):
    def __init__(self, width, config):
        super().__init__()
        self.eps, self.offset = config.rms_norm_eps, config.norm_offset
        self.weight = nn.Parameter(_C.full((width,), 1.0 - self.offset))

    def forward(self, x):
        weight = self.weight + self.offset if self.offset else self.weight
        return F.rms_norm(x, (x.shape[-1],), weight, self.eps)


class _Attention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.config, self.layer, self.windowed = config, layer, config.slides(layer)
        width, dim = config.hidden_size, config.head_dim
        bias = config.attention_bias
        self.q_proj = nn.Linear(width, config.num_attention_heads * dim, bias=bias or config.qkv_bias)
        self.k_proj = nn.Linear(width, config.num_key_value_heads * dim, bias=bias or config.qkv_bias)
        self.v_proj = nn.Linear(width, config.num_key_value_heads * dim, bias=bias or config.qkv_bias)
        self.o_proj = nn.Linear(config.num_attention_heads * dim, width, bias=bias)
        if config.qk_norm:
            self.q_norm, self.k_norm = _Norm(dim, config), _Norm(dim, config)

    def forward(self, x, frame, cos, sin, residual=None):
        batch, length, _ = x.shape
        q, k, v = (p(x).view(batch, length, -1, self.config.head_dim) for p in (self.q_proj, self.k_proj, self.v_proj))
        if self.config.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = rotate(q.transpose(1, 2), cos, sin), rotate(k.transpose(1, 2), cos, sin), v.transpose(1, 2)
        dropout = self.config.attention_dropout if self.training else 0.0
        y = frame.attend(self.layer, q, k, v, None, dropout, self.windowed)
        return _ended(self.o_proj, y.transpose(1, 2).reshape(batch, length, -1), residual)


class _MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = nn.Linear(width, inner, bias=bias)
        self.up_proj = nn.Linear(width, inner, bias=bias)
        self.down_proj = nn.Linear(inner, width, bias=bias)
        self.act = _ACTIVATIONS[config.hidden_act]

    def forward(self, x, residual=None):
        return _ended(self.down_proj, self.act(self.gate_proj(x)) * self.up_proj(x), residual)


def _ended(layer, x, residual):
    """The end of a branch; with a residual in the same pass (`branch` gives one, in calls without gradients)."""
    if residual is not None and type(layer) is nn.Linear and not watched(layer):
        return F.fused_linear(x, layer.weight, layer.bias, residual=residual)
    return layer(x) if residual is None else residual + layer(x)


class _Layer(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        self.self_attn = _Attention(config, layer)
        self.mlp = _MLP(config)
        self.input_layernorm = _Norm(config.hidden_size, config)
        self.post_attention_layernorm = _Norm(config.hidden_size, config)

    def forward(self, x, frame, cos, sin):
        x = branch(self.self_attn, x, self.input_layernorm(x), frame, cos, sin)
        return branch(self.mlp, x, self.post_attention_layernorm(x))


def _rounded(value, dtype):
    """A number as a dtype holds it, without a tensor: a compiled model reads none."""
    if dtype is _C.float64:
        return value
    form = "<e" if dtype is _C.float16 else "<f"
    data = struct.pack(form, value)
    if dtype is _C.bfloat16:
        (bits,) = struct.unpack("<I", data)
        data = struct.pack("<I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000)
    return struct.unpack(form, data)[0]


class LlamaModel(PretrainedModel):
    """Llama without a head.

    >>> config = lucid.models.LlamaConfig(vocab_size=11, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> tuple(lucid.models.LlamaModel(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = LlamaConfig
    base_model_prefix = "model"
    ignored_keys = (r"rotary_emb\.inv_freq$", r"^lm_head\.weight$")

    def __init__(self, config):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([_Layer(config, i) for i in range(config.num_hidden_layers)])
        self.norm = _Norm(config.hidden_size, config)
        self.rotary = Rotary(config.head_dim, config.rope_theta, config.max_position_embeddings, config.rope_scaling)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=config.initializer_range)
                if getattr(module, "bias", None) is not None:
                    nn.init.zeros_(module.bias)

    def get_input_embeddings(self):
        return self.embed_tokens

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        position_ids=None,
        past_key_values=None,
        inputs_embeds=None,
        use_cache=False,
        output_hidden_states=False,
    ):
        x = inputs_of(self.embed_tokens, input_ids, inputs_embeds)
        if self.config.scale_embeddings:
            x = x * _rounded(math.sqrt(self.config.hidden_size), x.dtype)
        frame = Pass(x, attention_mask, position_ids, past_key_values, use_cache, self.config.sliding_window)
        cos, sin = self.rotary(frame.positions, x.dtype, frame.last if position_ids is None else None)
        states = [x]
        for layer in self.layers:
            x = layer(x, frame, cos, sin)
            states.append(x)
        x = states[-1] = self.norm(x)
        return BaseModelOutput(
            last_hidden_state=x, past_key_values=frame.cache, hidden_states=tuple(states) if output_hidden_states else None
        )


class LlamaForCausalLM(CausalLM):
    """Llama that says what comes next; with the config of a relative it is that relative.

    >>> config = lucid.models.Qwen2Config(vocab_size=11, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2, num_key_value_heads=1)
    >>> model = lucid.models.LlamaForCausalLM(config)
    >>> "model.layers.0.self_attn.q_proj.bias" in model.state_dict()
    True
    """

    config_class = LlamaConfig
    base_model_prefix = "model"
    ignored_keys = LlamaModel.ignored_keys[:1]
    tied_keys = {"lm_head.weight": "model.embed_tokens.weight"}
    bounded = False  # positions are angles

    def __init__(self, config):
        super().__init__(config)
        self.model = LlamaModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        nn.init.normal_(self.lm_head.weight, std=config.initializer_range)
        self.tie_weights()

    @classmethod
    def from_pretrained(cls, folder, *, config=None, **options):
        if config is None and cls.config_class is LlamaConfig:  # a folder of a relative
            from ..registry import AutoConfig

            config = AutoConfig.from_pretrained(folder)
        return super().from_pretrained(folder, config=config, **options)


def _relative(name, config_class, of, example):
    example = f">>> lucid.models.{name}.config_class.model_type\n    {example!r}"
    doc = f"{of.__name__} with the config of a relative.\n\n    {example}\n    "
    return type(name, (of,), {"config_class": config_class, "__doc__": doc, "__module__": __name__})


MistralModel = _relative("MistralModel", MistralConfig, LlamaModel, "mistral")
MistralForCausalLM = _relative("MistralForCausalLM", MistralConfig, LlamaForCausalLM, "mistral")
Qwen2Model = _relative("Qwen2Model", Qwen2Config, LlamaModel, "qwen2")
Qwen2ForCausalLM = _relative("Qwen2ForCausalLM", Qwen2Config, LlamaForCausalLM, "qwen2")
Qwen3Model = _relative("Qwen3Model", Qwen3Config, LlamaModel, "qwen3")
Qwen3ForCausalLM = _relative("Qwen3ForCausalLM", Qwen3Config, LlamaForCausalLM, "qwen3")
GemmaModel = _relative("GemmaModel", GemmaConfig, LlamaModel, "gemma")
GemmaForCausalLM = _relative("GemmaForCausalLM", GemmaConfig, LlamaForCausalLM, "gemma")

_SIZES = (
    (
        (LlamaConfig, LlamaModel, LlamaForCausalLM),
        {
            "smollm_135m": dict(
                vocab_size=49152,
                hidden_size=576,
                intermediate_size=1536,
                num_hidden_layers=30,
                num_attention_heads=9,
                num_key_value_heads=3,
                rms_norm_eps=1e-5,
                tie_word_embeddings=True,
            ),
            "llama_3_2_1b": dict(
                vocab_size=128256,
                hidden_size=2048,
                intermediate_size=8192,
                num_hidden_layers=16,
                num_attention_heads=32,
                num_key_value_heads=8,
                max_position_embeddings=131072,
                rms_norm_eps=1e-5,
                rope_theta=500000.0,
                rope_scaling={
                    "rope_type": "llama3",
                    "factor": 32.0,
                    "low_freq_factor": 1.0,
                    "high_freq_factor": 4.0,
                    "original_max_position_embeddings": 8192,
                },
                bos_token_id=128000,
                eos_token_id=128001,
                tie_word_embeddings=True,
            ),
            "llama_3_8b": dict(
                vocab_size=128256,
                intermediate_size=14336,
                num_key_value_heads=8,
                max_position_embeddings=8192,
                rms_norm_eps=1e-5,
                rope_theta=500000.0,
                bos_token_id=128000,
                eos_token_id=128001,
            ),
        },
    ),
    (
        (MistralConfig, MistralModel, MistralForCausalLM),
        {"mistral_7b": dict(max_position_embeddings=32768, rms_norm_eps=1e-5)},
    ),
    (
        (Qwen2Config, Qwen2Model, Qwen2ForCausalLM),
        {
            "qwen2_0_5b": dict(
                hidden_size=896,
                intermediate_size=4864,
                num_hidden_layers=24,
                num_attention_heads=14,
                num_key_value_heads=2,
                max_position_embeddings=131072,
                rope_theta=1000000.0,
                tie_word_embeddings=True,
            ),
            "qwen2_7b": dict(
                vocab_size=152064,
                hidden_size=3584,
                intermediate_size=18944,
                num_hidden_layers=28,
                num_attention_heads=28,
                num_key_value_heads=4,
                max_position_embeddings=131072,
                rope_theta=1000000.0,
            ),
        },
    ),
    (
        (Qwen3Config, Qwen3Model, Qwen3ForCausalLM),
        {
            "qwen3_0_6b": dict(
                hidden_size=1024,
                intermediate_size=3072,
                num_hidden_layers=28,
                num_attention_heads=16,
                num_key_value_heads=8,
                max_position_embeddings=40960,
                rope_theta=1000000.0,
                tie_word_embeddings=True,
            )
        },
    ),
    (
        (GemmaConfig, GemmaModel, GemmaForCausalLM),
        {
            "gemma_2b": dict(
                hidden_size=2048, intermediate_size=16384, num_hidden_layers=18, num_attention_heads=8, num_key_value_heads=1
            )
        },
    ),
)
for (_config, _base, _lm), _sizes in _SIZES:
    globals().update(family(_config, {"": (_base, "base"), "_lm": (_lm, "causal-lm")}, _sizes))
