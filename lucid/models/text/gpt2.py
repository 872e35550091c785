"""GPT-2 (Radford et al., 2019), with the keys and shapes of transformers: matrices are stored (in, out)."""

import dataclasses
import math

from ... import _C, nn
from ...autograd import is_grad_enabled
from ...nn import functional as F
from ..base import LanguageModelConfig, PretrainedModel
from ..outputs import BaseModelOutput, ModelOutput
from ..registry import family
from .language import CausalLM, DecoderClassifier, Pass, branch, inputs_of, watched

_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu", "silu": "silu"}


@dataclasses.dataclass(frozen=True)
class GPT2Config(LanguageModelConfig):
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
    summary_first_dropout: float = 0.1

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

    @property
    def learns(self):
        """Whether the weight gets a gradient in calls from now on."""
        return self.weight.requires_grad and is_grad_enabled()

    def forward(self, x):
        if not self.learns:
            return F.linear(x, self.weight.t(), self.bias)
        y = _C.addmm(self.bias, x.reshape(-1, self.nx), self.weight)  # its gradient is made as the weight is stored: no copy
        return y.view(*x.shape[:-1], self.nf)

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

    def forward(self, x, frame, residual=None):
        batch, length, width = x.shape
        heads = self.c_attn(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = heads.permute(2, 0, 3, 1, 4).unbind(0)
        y = frame.attend(self.layer, q, k, v, self.scale, self.dropout if self.training else 0.0)
        return _ended(self.c_proj, self.resid_dropout, y.transpose(1, 2).reshape(batch, length, width), residual)


class _MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner = config.intermediate_size or 4 * config.hidden_size
        self.c_fc = Conv1D(inner, config.hidden_size)
        self.c_proj = Conv1D(config.hidden_size, inner)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.act = _Activation(config.activation_function)

    def forward(self, x, residual=None):
        return _ended(self.c_proj, self.dropout, self.act(self.c_fc, x), residual)


def _ended(layer, dropout, x, residual):
    """The end of a branch; with a residual in the same pass (`branch` gives one, in calls without gradients)."""
    if residual is None:
        return dropout(layer(x))
    if type(layer) is Conv1D and not watched(layer) and not (dropout.training and dropout.p):
        return F.fused_linear(x, layer.weight.t(), layer.bias, residual=residual)
    return residual + dropout(layer(x))


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
        if type(layer) is Conv1D and not layer.learns and not watched(layer):
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
        x = branch(self.attn, x, self.ln_1(x), frame)
        return branch(self.mlp, x, self.ln_2(x))


class GPT2Model(PretrainedModel):
    """GPT-2 without a head.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.GPT2Model(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = GPT2Config
    base_model_prefix = "transformer"
    ignored_keys = (r"(^|\.)attn\.(masked_)?bias$", r"^lm_head\.weight$")
    block_class, tables = Block, ("wte", "wpe")  # the layers, and the keys of the embeddings of tokens and positions
    normalises = True  # after the last layer

    def __init__(self, config):
        super().__init__(config)
        for name, count in zip(self.tables, (config.vocab_size, config.max_position_embeddings)):
            setattr(self, name, nn.Embedding(count, config.hidden_size))
        embedding = config.hidden_dropout if config.embedding_dropout is None else config.embedding_dropout
        self.drop = nn.Dropout(embedding)
        self.h = nn.ModuleList([self.block_class(config, i) for i in range(config.num_hidden_layers)])
        if self.normalises:
            self.ln_f = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_epsilon)
        self._start(config)

    def _start(self, config):
        for name in self.tables:
            nn.init.normal_(getattr(self, name).weight, std=config.initializer_range)
        for block in self.h:
            for layer in (block.attn.c_attn, block.mlp.c_fc):
                nn.init.normal_(layer.weight, std=config.initializer_range)
            for layer in (block.attn.c_proj, block.mlp.c_proj):  # they end a residual branch
                nn.init.normal_(layer.weight, std=config.initializer_range / math.sqrt(2 * config.num_hidden_layers))

    def get_input_embeddings(self):
        return getattr(self, self.tables[0])

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
        tokens, places = (getattr(self, name) for name in self.tables)
        x = inputs_of(tokens, input_ids, inputs_embeds)
        frame = Pass(x, attention_mask, position_ids, past_key_values, use_cache)
        if frame.last >= self.config.max_position_embeddings and position_ids is None:
            raise ValueError(f"{frame.last + 1} tokens; the model has positions for {self.config.max_position_embeddings}")
        x = self.drop(x + places(frame.positions))
        states = [x]
        for block in self.h:
            x = block(x, frame)
            states.append(x)
        if self.normalises:
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
    network_class = GPT2Model

    def __init__(self, config):
        super().__init__(config)
        self.transformer = self.network_class(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        nn.init.normal_(self.lm_head.weight, std=config.initializer_range)
        self.tie_weights()


class GPT2DoubleHeadsOutput(ModelOutput):
    """Logits of the next token, and one number for every text, of which one is right; their losses.

    >>> lucid.models.GPT2DoubleHeadsOutput(mc_logits=1).mc_logits
    1
    """

    fields = ("loss", "mc_loss", "logits", "mc_logits", "past_key_values", "hidden_states", "attentions")


class _Summary(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.summary, self.dropout = nn.Linear(config.hidden_size, 1), nn.Dropout(config.summary_first_dropout)
        nn.init.normal_(self.summary.weight, std=config.initializer_range)
        nn.init.zeros_(self.summary.bias)

    def forward(self, x, places):
        """The hidden states (..., length, width) at one place of every text, as a number."""
        if places is None:
            x = x[..., -1, :]
        else:
            x = x.gather(-2, places[..., None, None].expand(*x.shape[:-2], 1, x.shape[-1])).squeeze(-2)
        return self.summary(self.dropout(x)).squeeze(-1)


class GPT2DoubleHeadsModel(GPT2LMHeadModel):
    """GPT-2 that says what comes next, and which of several texts is right: ids (batch, choices, length).

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> out = lucid.models.GPT2DoubleHeadsModel(config)(lucid.tensor([[[1, 2, 3], [1, 2, 4]]]), mc_labels=lucid.tensor([1]))
    >>> tuple(out.logits.shape), tuple(out.mc_logits.shape), out.mc_loss.ndim
    ((1, 2, 3, 11), (1, 2), 0)
    """

    head_keys = ("multiple_choice_head.",)
    output_class = GPT2DoubleHeadsOutput

    def __init__(self, config):
        super().__init__(config)
        self.multiple_choice_head = _Summary(config)

    def forward(self, input_ids, attention_mask=None, mc_token_ids=None, labels=None, mc_labels=None, **options):
        """mc_token_ids: the place of every text that stands for it (the last one); mc_labels: the right text (batch,)."""
        shape = input_ids.shape
        flat = lambda t: None if t is None else t.reshape(-1, shape[-1])
        out = super().forward(flat(input_ids), flat(attention_mask), labels=flat(labels), output_hidden_states=True, **options)
        chosen = self.multiple_choice_head(out.hidden_states[-1].unflatten(0, shape[:-1]), mc_token_ids)
        right = None
        if mc_labels is not None:
            right = F.cross_entropy(chosen.view(-1, chosen.shape[-1]), mc_labels.view(-1))
        return self.output_class(
            loss=out.loss,
            mc_loss=right,
            logits=out.logits.unflatten(0, shape[:-1]),
            mc_logits=chosen,
            past_key_values=out.past_key_values,
            hidden_states=out.hidden_states,
        )


class GPT2ForSequenceClassification(DecoderClassifier):
    """GPT-2 that classifies texts by their last token.

    >>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_labels=5)
    >>> tuple(lucid.models.GPT2ForSequenceClassification(config)(lucid.tensor([[1, 2]])).logits.shape)
    (1, 5)
    """

    config_class = GPT2Config
    base_model_prefix = "transformer"
    ignored_keys = GPT2Model.ignored_keys
    network_class = GPT2Model

    def __init__(self, config):
        super().__init__(config)
        self.transformer = self.network_class(config)
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
        more={"double-heads": GPT2DoubleHeadsModel},
    )
)
