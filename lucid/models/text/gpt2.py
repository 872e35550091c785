"""GPT-2 (Radford et al., 2019), with the keys and shapes of transformers: matrices are stored (in, out)."""

import dataclasses
import math

from ... import _C, nn
from ...nn import functional as F
from ..base import ModelConfig, PretrainedModel
from ..outputs import BaseModelOutput
from ..registry import family
from .language import CausalLM, DecoderClassifier, Pass, inputs_of

_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu", "silu": "silu"}


@dataclasses.dataclass(frozen=True)
class GPT2Config(ModelConfig):
    """The settings of GPT-2; defaults are those of the smallest published model.

    >>> lucid.models.GPT2Config.from_dict({"n_embd": 48}).hidden_size
    48
    """

    vocab_size: int = 50257
    max_position_embeddings: int = 1024
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int | None = None
    activation_function: str = "gelu_new"
    hidden_dropout: float = 0.1
    embedding_dropout: float | None = None
    attention_dropout: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    bos_token_id: int | None = 50256
    eos_token_id: int | None = 50256
    pad_token_id: int | None = None
    tie_word_embeddings: bool = True
    num_labels: int = 2

    model_type = "gpt2"
    aliases = {
        "n_positions": "max_position_embeddings",
        "n_embd": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "n_inner": "intermediate_size",
        "resid_pdrop": "hidden_dropout",
        "embd_pdrop": "embedding_dropout",
        "attn_pdrop": "attention_dropout",
    }
    only = {"reorder_and_upcast_attn": False, "add_cross_attention": False}

    def __post_init__(self):
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}"
            )
        if self.activation_function not in _ACTIVATIONS:
            raise ValueError(f"activation_function is one of {', '.join(_ACTIVATIONS)}, not {self.activation_function!r}")

    @property
    def head_dim(self):
        return self.hidden_size // self.num_attention_heads


class Conv1D(nn.Module):
    """A fully connected layer whose weight is stored (in, out), as GPT-2's files have it.

    >>> from lucid.models.text.gpt2 import Conv1D
    >>> layer = Conv1D(3, 2)
    >>> tuple(layer.weight.shape), tuple(layer(lucid.ones(1, 2)).shape)
    ((2, 3), (1, 3))
    """

    def __init__(self, nf, nx):
        super().__init__()
        self.nf, self.nx = nf, nx
        self.weight = nn.Parameter(_C.empty(nx, nf))
        self.bias = nn.Parameter(_C.zeros(nf))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)

    def extra_repr(self):
        return f"nf={self.nf}, nx={self.nx}"


class _Attention(nn.Module):
    def __init__(self, config, layer):
        super().__init__()
        width = config.hidden_size
        self.layer, self.heads, self.dropout = layer, config.num_attention_heads, config.attention_dropout
        self.c_attn = Conv1D(3 * width, width)
        self.c_proj = Conv1D(width, width)
        self.resid_dropout = nn.Dropout(config.hidden_dropout)
        self.scale = 1 / math.sqrt(config.head_dim) if config.scale_attn_weights else 1.0
        if config.scale_attn_by_inverse_layer_idx:
            self.scale /= layer + 1

    def forward(self, x, frame):
        batch, length, width = x.shape
        heads = self.c_attn(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        y = frame.attend(self.layer, q, k, v, self.scale, self.dropout if self.training else 0.0)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).reshape(batch, length, width)))


class _MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner = config.intermediate_size or 4 * config.hidden_size
        self.c_fc = Conv1D(inner, config.hidden_size)
        self.c_proj = Conv1D(config.hidden_size, inner)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.act = _Activation(config.activation_function)

    def forward(self, x):
        return self.dropout(self.c_proj(self.act(self.c_fc, x)))


class _Activation:
    """An activation behind a layer; in one pass with it where the layer is the plain one."""

    def __init__(self, name):
        self.name = _ACTIVATIONS[name]
        self.alone = {
            "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
            "gelu": F.gelu,
            "relu": F.relu,
            "silu": F.silu,
        }[self.name]

    def __call__(self, layer, x):
        if type(layer) is Conv1D:
            return F.fused_linear(x, layer.weight.t(), layer.bias, self.name)
        return self.alone(layer(x))


class Block(nn.Module):
    """A layer of GPT-2: attention, then two connected layers, each normalised before.

    >>> from lucid.models.text.gpt2 import Block
    >>> len(Block(lucid.models.GPT2Config(hidden_size=8, num_attention_heads=2), 0).state_dict())
    12
    """

    def __init__(self, config, layer):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon)
        self.attn = _Attention(config, layer)
        self.ln_2 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon)
        self.mlp = _MLP(config)

    def forward(self, x, frame):
        x = x + self.attn(self.ln_1(x), frame)
        return x + self.mlp(self.ln_2(x))


class GPT2Model(PretrainedModel):
    """GPT-2 without a head.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.GPT2Model(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = GPT2Config
    base_model_prefix = "transformer"
    ignored_keys = (r"(^|\.)attn\.(masked_)?bias$", r"^lm_head\.weight$")

    def __init__(self, config):
        super().__init__(config)
        self.wte = nn.Embedding(config.vocab_size, config.hidden_size)
        self.wpe = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        embedding = config.hidden_dropout if config.embedding_dropout is None else config.embedding_dropout
        self.drop = nn.Dropout(embedding)
        self.h = nn.ModuleList([Block(config, i) for i in range(config.num_hidden_layers)])
        self.ln_f = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon)
        self._start(config)

    def _start(self, config):
        nn.init.normal_(self.wte.weight, std=config.initializer_range)
        nn.init.normal_(self.wpe.weight, std=config.initializer_range)
        for block in self.h:
            for layer in (block.attn.c_attn, block.mlp.c_fc):
                nn.init.normal_(layer.weight, std=config.initializer_range)
            for layer in (block.attn.c_proj, block.mlp.c_proj):  # they end a residual branch
                nn.init.normal_(layer.weight, std=config.initializer_range / math.sqrt(2 * config.num_hidden_layers))

    def get_input_embeddings(self):
        return self.wte

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
        x = inputs_of(self.wte, input_ids, inputs_embeds)
        frame = Pass(x, attention_mask, position_ids, past_key_values, use_cache)
        if frame.last >= self.config.max_position_embeddings and position_ids is None:
            raise ValueError(f"{frame.last + 1} tokens; the model has positions for {self.config.max_position_embeddings}")
        x = self.drop(x + self.wpe(frame.positions))
        states = [x]
        for block in self.h:
            x = block(x, frame)
            states.append(x)
        x = states[-1] = self.ln_f(x)
        return BaseModelOutput(
            last_hidden_state=x, past_key_values=frame.cache, hidden_states=tuple(states) if output_hidden_states else None
        )


class GPT2LMHeadModel(CausalLM):
    """GPT-2 that says what comes next: `.logits`, `.loss` with labels, `.generate`.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.GPT2LMHeadModel(config)
    >>> model.lm_head.weight is model.transformer.wte.weight
    True
    """

    config_class = GPT2Config
    base_model_prefix = "transformer"
    ignored_keys = GPT2Model.ignored_keys[:1]
    tied_keys = {"lm_head.weight": "transformer.wte.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.transformer = GPT2Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        nn.init.normal_(self.lm_head.weight, std=config.initializer_range)
        self.tie_weights()


class GPT2ForSequenceClassification(DecoderClassifier):
    """GPT-2 that classifies texts by their last token.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_labels=5)
    >>> tuple(lucid.models.GPT2ForSequenceClassification(config)(lucid.tensor([[1, 2]])).logits.shape)
    (1, 5)
    """

    config_class = GPT2Config
    base_model_prefix = "transformer"
    ignored_keys = GPT2Model.ignored_keys

    def __init__(self, config):
        super().__init__(config)
        self.transformer = GPT2Model(config)
        self.score = nn.Linear(config.hidden_size, config.num_labels, bias=False)
        nn.init.normal_(self.score.weight, std=config.initializer_range)


globals().update(
    family(
        GPT2Config,
        {
            "": (GPT2Model, "base"),
            "_lm": (GPT2LMHeadModel, "causal-lm"),
            "_cls": (GPT2ForSequenceClassification, "sequence-classification"),
        },
        {
            "gpt2_small": {},
            "gpt2_medium": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16},
            "gpt2_large": {"hidden_size": 1280, "num_hidden_layers": 36, "num_attention_heads": 20},
            "gpt2_xlarge": {"hidden_size": 1600, "num_hidden_layers": 48, "num_attention_heads": 25},
        },
    )
)
