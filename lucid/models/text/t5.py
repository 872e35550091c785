"""T5 (Raffel et al., 2019) and its later form (T5 1.1, Flan-T5): a text in, a text out. transformers' keys.

Positions are learned biases of attention by distance, in buckets that grow with it; the first layer's are used by all.
Attention is not scaled, normalisation has no mean and no bias.
"""

import dataclasses
import math

from ... import _C, nn
from ..._info import finfo
from ...nn import functional as F
from ..base import ModelConfig, PretrainedModel
from ..outputs import BaseModelOutput, ModelOutput
from ..registry import family
from .bert import ACTIVATIONS
from .projected import EncoderDecoder, ProjectedAttention, shifted


class Seq2SeqLMOutput(ModelOutput):
    """What a model that turns one sequence into another returns.

    >>> lucid.models.Seq2SeqLMOutput(logits=1).logits
    1
    """

    fields = ("loss", "logits", "encoder_last_hidden_state")


@dataclasses.dataclass(frozen=True)
class T5Config(ModelConfig):
    """The settings of T5; defaults are those of t5-small.

    >>> lucid.models.T5Config(d_model=768).d_kv
    64
    """

    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    layer_norm_epsilon: float = 1e-6
    initializer_factor: float = 1.0
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int = 0

    model_type = "t5"

    def __post_init__(self):
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"feed_forward_proj {self.feed_forward_proj!r} is not implemented")

    @property
    def gated(self):
        return self.feed_forward_proj.startswith("gated-")

    @property
    def activation(self):
        name = self.feed_forward_proj.removeprefix("gated-")
        return "gelu_new" if self.feed_forward_proj == "gated-gelu" else name


def _buckets(queries, keys, past, both_ways, count, furthest, device):
    """The bucket of every distance: exact near by, logarithmic further away."""
    distance = _C.arange(keys, device=device)[None, :] - _C.arange(past, past + queries, device=device)[:, None]
    if both_ways:
        count //= 2
        first = (distance > 0).to(_C.int64) * count
        distance = distance.abs()
    else:
        first, distance = 0, (-distance).clamp(min=0)
    exact = count // 2
    far = _C.log(distance.to(_C.float32).clamp(min=1) / exact) / math.log(furthest / exact) * (count - exact)
    far = (exact + far.to(_C.int64)).clamp(max=count - 1)
    return first + _C.where(distance < exact, distance, far)


class _Attention(ProjectedAttention):
    def __init__(self, config, biased):
        inner = config.d_kv * config.num_heads
        names, none = ("q", "k", "v", "o"), (False,) * 4
        super().__init__(config.d_model, config.num_heads, names, none, inner, 1.0, config.dropout_rate)
        if biased:
            self.relative_attention_bias = nn.Embedding(config.relative_attention_num_buckets, config.num_heads)


class _Step(nn.Module):  # normalise, a layer, drop, add
    def __init__(self, config, name, layer):
        super().__init__()
        self.name = name
        setattr(self, name, layer)
        self.layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x, *rest):
        return x + self.dropout(getattr(self, self.name)(self.layer_norm(x), *rest))


class _FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gated, self.act = config.gated, ACTIVATIONS[config.activation]
        for name in ("wi_0", "wi_1") if self.gated else ("wi",):
            setattr(self, name, nn.Linear(config.d_model, config.d_ff, bias=False))
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x):
        x = self.act(self.wi_0(x)) * self.wi_1(x) if self.gated else self.act(self.wi(x))
        return self.wo(self.dropout(x))


class _Block(nn.Module):
    def __init__(self, config, decodes, first):
        super().__init__()
        layers = [_Step(config, "SelfAttention", _Attention(config, first))]
        if decodes:
            layers.append(_Step(config, "EncDecAttention", _Attention(config, False)))
        self.layer = nn.ModuleList([*layers, _Step(config, "DenseReluDense", _FeedForward(config))])

    def forward(self, x, bias, source, seen, past):
        x = self.layer[0](x, None, bias, False, past)
        if source is not None:
            x = self.layer[1](x, source, seen, False, past)
        return self.layer[-1](x)


class _Stack(nn.Module):
    def __init__(self, config, shared, decodes):
        super().__init__()
        self.embed_tokens, self.decodes, self.config = shared, decodes, config
        depth = config.num_decoder_layers if decodes and config.num_decoder_layers is not None else config.num_layers
        self.block = nn.ModuleList([_Block(config, decodes, i == 0) for i in range(depth)])
        self.final_layer_norm = nn.RMSNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, ids, padding=None, source=None, source_padding=None, past=None):
        config, x = self.config, self.embed_tokens(ids)
        table = self.block[0].layer[0].SelfAttention
        known = past[table][0].shape[2] if past and table in past else 0
        total = known + x.shape[1]
        buckets = config.relative_attention_num_buckets, config.relative_attention_max_distance
        places = _buckets(x.shape[1], total, known, not self.decodes, *buckets, x.device)
        bias = table.relative_attention_bias(places).permute(2, 0, 1).unsqueeze(0)
        least = finfo(bias.dtype).min
        if self.decodes and x.shape[1] > 1:
            later = _C.ones(x.shape[1], total, dtype=_C.bool, device=x.device).triu(known + 1)
            bias = bias.masked_fill(later, least)
        if padding is not None:
            bias = bias.masked_fill(padding[:, None, None, :] == 0, least)
        seen = None if source_padding is None else source_padding[:, None, None, :] != 0
        x = self.dropout(x)
        for block in self.block:
            x = block(x, bias, source, seen, past)
        return self.dropout(self.final_layer_norm(x))


def _start(model, config):
    factor, d, inner = config.initializer_factor, config.d_model, config.d_kv
    for module in model.modules():
        if isinstance(module, _Attention):
            nn.init.normal_(module.q.weight, std=factor * (d * inner) ** -0.5)
            for layer in (module.k, module.v):
                nn.init.normal_(layer.weight, std=factor * d**-0.5)
            nn.init.normal_(module.o.weight, std=factor * (config.num_heads * inner) ** -0.5)
            if hasattr(module, "relative_attention_bias"):
                nn.init.normal_(module.relative_attention_bias.weight, std=factor * d**-0.5)
        elif isinstance(module, _FeedForward):
            for name, layer in module.named_children():
                if isinstance(layer, nn.Linear):
                    nn.init.normal_(layer.weight, std=factor * (config.d_ff if name == "wo" else d) ** -0.5)


class T5EncoderModel(PretrainedModel):
    """T5's encoder: a vector per token.

    >>> config = lucid.models.T5Config(vocab_size=11, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2)
    >>> tuple(lucid.models.T5EncoderModel(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = T5Config
    ignored_keys = (r"^decoder\.", r"^lm_head\.")
    tied_keys = {"encoder.embed_tokens.weight": "shared.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = _Stack(config, self.shared, False)
        _start(self, config)

    def forward(self, input_ids, attention_mask=None):
        return BaseModelOutput(last_hidden_state=self.encoder(input_ids, attention_mask))


class T5ForConditionalGeneration(EncoderDecoder):
    """T5 that writes: `.logits`, `.loss` with labels, `.generate`.

    >>> config = lucid.models.T5Config(vocab_size=11, d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2)
    >>> model = lucid.models.T5ForConditionalGeneration(config).eval()
    >>> out = model(lucid.tensor([[1, 2, 3]]), labels=lucid.tensor([[4, 5]]))
    >>> tuple(out.logits.shape), out.loss.ndim, model.generate(lucid.tensor([[1, 2]]), max_new_tokens=2).shape[0]
    ((1, 2, 11), 0, 1)
    """

    config_class = T5Config
    ignored_keys = (r"^decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.",)
    tied_keys = {
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
        "lm_head.weight": "shared.weight",
    }

    def __init__(self, config):
        super().__init__(config)
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = _Stack(config, self.shared, False)
        self.decoder = _Stack(config, self.shared, True)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        _start(self, config)
        self.tie_weights()

    def tied(self):
        keys = dict(self.tied_keys)
        if not self.config.tie_word_embeddings:
            del keys["lm_head.weight"]
        return keys

    def get_input_embeddings(self):
        return self.shared

    def encode(self, ids, padding=None):
        return self.encoder(ids, padding)

    def decode(self, ids, encoded, padding=None, past=None, own_padding=None):
        x = self.decoder(ids, own_padding, encoded, padding, past)
        return self.lm_head(x * self.config.d_model**-0.5 if self.config.tie_word_embeddings else x)

    def forward(self, input_ids, attention_mask=None, decoder_input_ids=None, labels=None, decoder_attention_mask=None):
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("give decoder_input_ids or labels")
            decoder_input_ids = shifted(labels, self.config.decoder_start_token_id, self.config.pad_token_id)
        encoded = self.encode(input_ids, attention_mask)
        logits = self.decode(decoder_input_ids, encoded, attention_mask, None, decoder_attention_mask)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Seq2SeqLMOutput(loss=loss, logits=logits, encoder_last_hidden_state=encoded)


def _size(d_model, d_ff, layers, heads, d_kv=64):
    return dict(d_model=d_model, d_ff=d_ff, num_layers=layers, num_heads=heads, d_kv=d_kv)


def _later(*shape):
    return dict(_size(*shape), feed_forward_proj="gated-gelu", tie_word_embeddings=False)


globals().update(
    family(
        T5Config,
        {"_encoder": (T5EncoderModel, "base"), "": (T5ForConditionalGeneration, "seq2seq-lm")},
        {
            "t5_small": {},
            "t5_base": _size(768, 3072, 12, 12),
            "t5_large": _size(1024, 4096, 24, 16),
            "t5_3b": _size(1024, 16384, 24, 32, 128),
            "flan_t5_small": _later(512, 1024, 8, 6),
            "flan_t5_base": _later(768, 2048, 12, 12),
            "flan_t5_large": _later(1024, 2816, 24, 16),
            "flan_t5_xl": _later(2048, 5120, 24, 32),
        },
    )
)
