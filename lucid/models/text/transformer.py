"""The Transformer of "Attention Is All You Need" (Vaswani et al., 2017): one table of words for both languages and the
output, sinusoids for positions, normalisation after every step. Keys are its own.
"""

import dataclasses
import math

from ... import _C, nn
from ...nn import functional as F
from ..base import ModelConfig, PretrainedModel
from ..outputs import BaseModelOutput, SequenceClassifierOutput, TokenClassifierOutput
from ..registry import family
from .language import classification_loss
from .projected import EncoderDecoder, ProjectedAttention, shifted
from .t5 import Seq2SeqLMOutput


@dataclasses.dataclass(frozen=True)
class TransformerConfig(ModelConfig):
    """The settings of the Transformer; defaults are the paper's base model.

    >>> lucid.models.TransformerConfig(num_hidden_layers=2).num_decoder_layers
    2
    """

    vocab_size: int = 37000
    hidden_size: int = 512
    num_hidden_layers: int = 6
    num_decoder_layers: int | None = None
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.0
    max_position_embeddings: int = 512
    pad_token_id: int = 0
    bos_token_id: int = 1
    eos_token_id: int = 2
    num_labels: int = 2

    model_type = "transformer"

    def __post_init__(self):
        if self.num_decoder_layers is None:
            object.__setattr__(self, "num_decoder_layers", self.num_hidden_layers)

    @property
    def decoder_start_token_id(self):
        return self.bos_token_id


class _Layer(nn.Module):
    def __init__(self, config, decodes):
        super().__init__()
        width, heads, rate = config.hidden_size, config.num_attention_heads, config.attention_dropout
        self.self_attn, self.self_norm = ProjectedAttention(width, heads, dropout=rate), nn.LayerNorm(width)
        if decodes:
            self.cross_attn, self.cross_norm = ProjectedAttention(width, heads, dropout=rate), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, config.intermediate_size), nn.Linear(config.intermediate_size, width)
        self.norm, self.dropout, self.decodes = nn.LayerNorm(width), nn.Dropout(config.hidden_dropout), decodes

    def forward(self, x, mask=None, source=None, past=None):
        seen = None if self.decodes else mask
        x = self.self_norm(x + self.dropout(self.self_attn(x, mask=seen, causal=self.decodes, past=past)))
        if self.decodes:
            x = self.cross_norm(x + self.dropout(self.cross_attn(x, source, mask=mask, past=past)))
        return self.norm(x + self.dropout(self.fc2(F.relu(self.fc1(x)))))


class _Stack(nn.Module):
    def __init__(self, config, depth, decodes):
        super().__init__()
        self.layers = nn.ModuleList([_Layer(config, decodes) for _ in range(depth)])
        self.dropout, self.width = nn.Dropout(config.hidden_dropout), config.hidden_size

    def forward(self, table, ids, mask=None, source=None, past=None):
        first = past[self.layers[0].self_attn][0].shape[2] if past else 0
        rates = _C.exp(-math.log(10000) / self.width * _C.arange(0, self.width, 2, device=ids.device))
        angles = _C.arange(first, first + ids.shape[1], device=ids.device)[:, None] * rates
        positions = _C.stack([angles.sin(), angles.cos()], -1).flatten(1).to(table.weight.dtype)
        x = self.dropout(table(ids) * math.sqrt(self.width) + positions[:, : self.width])
        for layer in self.layers:
            x = layer(x, mask, source, past)
        return x


def _mask(padding):
    return None if padding is None or bool((padding != 0).all()) else padding[:, None, None, :] != 0


def _start(model):
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    nn.init.normal_(model.embed.weight, std=model.config.hidden_size**-0.5)


class TransformerModel(PretrainedModel):
    """The Transformer's encoder: a vector per token.

    >>> config = lucid.models.TransformerConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.TransformerModel(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = TransformerConfig

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.encoder = _Stack(config, config.num_hidden_layers, False)
        _start(self)

    def forward(self, input_ids, attention_mask=None):
        return BaseModelOutput(last_hidden_state=self.encoder(self.embed, input_ids, _mask(attention_mask)))


class TransformerForSeq2SeqLM(EncoderDecoder):
    """The Transformer: a sequence in, the logits of another out.

    >>> config = lucid.models.TransformerConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> model = lucid.models.TransformerForSeq2SeqLM(config).eval()
    >>> tuple(model(lucid.tensor([[4, 5, 6]]), lucid.tensor([[1, 4]])).logits.shape)
    (1, 2, 11)
    >>> model.generate(lucid.tensor([[4, 5, 6]]), max_new_tokens=3).shape[0]
    1
    """

    config_class = TransformerConfig
    tied_keys = {"lm_head.weight": "embed.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.encoder = _Stack(config, config.num_hidden_layers, False)
        self.decoder = _Stack(config, config.num_decoder_layers, True)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.tie_weights()
        _start(self)

    def encode(self, ids, padding=None):
        return self.encoder(self.embed, ids, _mask(padding))

    def decode(self, ids, encoded, padding=None, past=None):
        return self.lm_head(self.decoder(self.embed, ids, _mask(padding), encoded, past))

    def forward(self, input_ids, decoder_input_ids=None, attention_mask=None, labels=None):
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("give decoder_input_ids or labels")
            decoder_input_ids = shifted(labels, self.config.decoder_start_token_id, self.config.pad_token_id)
        encoded = self.encode(input_ids, attention_mask)
        logits = self.decode(decoder_input_ids, encoded, attention_mask)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return Seq2SeqLMOutput(loss=loss, logits=logits, encoder_last_hidden_state=encoded)


class _Classifier(TransformerModel):
    head_keys = ("classifier.",)

    def __init__(self, config):
        super().__init__(config)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)


class TransformerForSequenceClassification(_Classifier):
    """The Transformer's encoder that classifies texts by the mean of their tokens.

    >>> config = lucid.models.TransformerConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.TransformerForSequenceClassification(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 2)
    """

    def forward(self, input_ids, attention_mask=None, labels=None):
        x = self.encoder(self.embed, input_ids, _mask(attention_mask))
        kept = _C.ones(x.shape[:2], device=x.device) if attention_mask is None else attention_mask
        kept = kept.to(x.dtype).unsqueeze(-1)
        logits = self.classifier(self.dropout((x * kept).sum(1) / kept.sum(1).clamp(min=1)))
        loss = None if labels is None else classification_loss(logits, labels, self.config.num_labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


class TransformerForTokenClassification(_Classifier):
    """The Transformer's encoder that classifies every token.

    >>> config = lucid.models.TransformerConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.TransformerForTokenClassification(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 3, 2)
    """

    def forward(self, input_ids, attention_mask=None, labels=None):
        logits = self.classifier(self.dropout(self.encoder(self.embed, input_ids, _mask(attention_mask))))
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return TokenClassifierOutput(loss=loss, logits=logits)


globals().update(
    family(
        TransformerConfig,
        {
            "": (TransformerModel, "base"),
            "_seq2seq": (TransformerForSeq2SeqLM, "seq2seq-lm"),
            "_cls": (TransformerForSequenceClassification, "sequence-classification"),
            "_token_cls": (TransformerForTokenClassification, "token-classification"),
        },
        {
            "transformer_base": {},
            "transformer_large": dict(hidden_size=1024, num_attention_heads=16, intermediate_size=4096, hidden_dropout=0.3),
        },
    )
)
