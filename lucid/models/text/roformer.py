"""RoFormer (Su et al., 2021): BERT whose positions turn queries and keys. transformers' keys."""

import dataclasses

from ... import _C, nn
from ...nn import functional as F
from ..outputs import ModelOutput
from ..registry import family
from .bert import (
    ACTIVATIONS,
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForTokenClassification,
    BertModel,
    Encoder,
    Task,
    start,
)
from .language import inputs_of
from .roberta import FirstTokenClassifier, FirstTokenHead


class MultipleChoiceModelOutput(ModelOutput):
    """What a model that chooses one of several texts returns.

    >>> lucid.models.MultipleChoiceModelOutput(logits=1).logits
    1
    """

    fields = ("loss", "logits", "hidden_states")


@dataclasses.dataclass(frozen=True)
class RoFormerConfig(BertConfig):
    """The settings of RoFormer; defaults are those of roformer_chinese_base. rotary_value: values are turned as well.

    >>> lucid.models.RoFormerConfig().vocab_size
    50000
    """

    vocab_size: int = 50000
    max_position_embeddings: int = 1536
    rotary_value: bool = False

    model_type = "roformer"
    only = {**BertConfig.only, "embedding_size": None}

    @classmethod
    def understood(cls, values):
        values = super().understood(values)
        if values.get("embedding_size") == values.get("hidden_size", 768):
            values.pop("embedding_size")
        return values


class _Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, input_ids, token_type_ids, position_ids, inputs_embeds):
        if position_ids is not None:
            raise ValueError("RoFormer takes no position_ids")
        x = inputs_of(self.word_embeddings, input_ids, inputs_embeds)
        kinds = self.token_type_embeddings
        return self.dropout(self.LayerNorm(x + (kinds.weight[0] if token_type_ids is None else kinds(token_type_ids))))


def _turned(x, positions):
    """Neighbouring numbers of the last dimension turned by the angle of their position; positions: sines, then cosines."""
    sin, cos = (part.repeat_interleave(2, -1) for part in positions.chunk(2, -1))
    neighbours = _C.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)
    return x * cos + neighbours * sin


class _Encoder(Encoder):
    def __init__(self, config):
        super().__init__(config)
        width = config.hidden_size // config.num_attention_heads
        self.embed_positions = nn.Embedding(config.max_position_embeddings, width)
        rates = 10000.0 ** (-_C.arange(0, width, 2, dtype=_C.float64) / width)
        angles = _C.outer(_C.arange(config.max_position_embeddings, dtype=_C.float64), rates)
        table = _C.cat([angles.sin(), angles.cos()], -1).to(_C.get_default_dtype())
        self.embed_positions.weight = nn.Parameter(table, requires_grad=False)
        del self.turn
        self.values_too = config.rotary_value

    def turn(self, q, k, v):
        positions = self.embed_positions.weight[: q.shape[2]]
        return _turned(q, positions), _turned(k, positions), _turned(v, positions) if self.values_too else v


class RoFormerModel(BertModel):
    """RoFormer without a head: a vector per token.

    >>> config = lucid.models.RoFormerConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16, max_position_embeddings=8)
    >>> tuple(lucid.models.RoFormerModel(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = RoFormerConfig
    base_model_prefix = "roformer"
    ignored_keys = (r"^cls\.",)
    embeddings_class, encoder_class = _Embeddings, _Encoder

    def __init__(self, config, add_pooling_layer=False):
        super().__init__(config, add_pooling_layer=False)

    def forward(self, input_ids=None, attention_mask=None, *rest, **options):
        length = (options.get("inputs_embeds") if input_ids is None else input_ids).shape[1]
        if length > self.config.max_position_embeddings:
            raise ValueError(f"{length} tokens; the model has positions for {self.config.max_position_embeddings}")
        return super().forward(input_ids, attention_mask, *rest, **options)


class _Network:
    config_class = RoFormerConfig
    network_class = RoFormerModel
    base_model_prefix = "roformer"
    ignored_keys = (r"^cls\.",)


class RoFormerForMaskedLM(_Network, BertForMaskedLM):
    """RoFormer that fills in masked words.

    >>> config = lucid.models.RoFormerConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16, max_position_embeddings=8)
    >>> tuple(lucid.models.RoFormerForMaskedLM(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 3, 11)
    """

    ignored_keys = ()
    tied_keys = {
        "cls.predictions.decoder.weight": "roformer.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }


class RoFormerForSequenceClassification(FirstTokenClassifier, _Network, Task):
    """RoFormer that classifies texts.

    >>> lucid.models.RoFormerForSequenceClassification.base_model_prefix
    'roformer'
    """

    def __init__(self, config):
        super().__init__(config)
        self.classifier = FirstTokenHead(config, ACTIVATIONS[config.hidden_act])
        start(self.classifier, config)


class RoFormerForTokenClassification(_Network, BertForTokenClassification):
    """RoFormer that classifies every token.

    >>> lucid.models.RoFormerForTokenClassification.base_model_prefix
    'roformer'
    """


class RoFormerForQuestionAnswering(_Network, BertForQuestionAnswering):
    """RoFormer that finds where an answer begins and ends.

    >>> lucid.models.RoFormerForQuestionAnswering.base_model_prefix
    'roformer'
    """


class RoFormerForMultipleChoice(_Network, Task):
    """RoFormer that chooses one of several texts, by their last tokens: input_ids (batch, choices, length).

    >>> config = lucid.models.RoFormerConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16, max_position_embeddings=8)
    >>> tuple(lucid.models.RoFormerForMultipleChoice(config)(lucid.tensor([[[1, 2, 3], [4, 5, 6]]])).logits.shape)
    (1, 2)
    """

    head_keys = ("classifier.",)

    def __init__(self, config):
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, 1)
        start(self.classifier, config)

    def forward(self, input_ids, attention_mask=None, token_type_ids=None, labels=None, **options):
        flat = [None if t is None else t.view(-1, t.shape[-1]) for t in (input_ids, attention_mask, token_type_ids)]
        out = self.roformer(*flat, **options)
        logits = self.classifier(out.last_hidden_state[:, -1]).view(-1, input_ids.shape[1])
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return MultipleChoiceModelOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


globals().update(
    family(
        RoFormerConfig,
        {
            "": (RoFormerModel, "base"),
            "_mlm": (RoFormerForMaskedLM, "masked-lm"),
            "_cls": (RoFormerForSequenceClassification, "sequence-classification"),
            "_token_cls": (RoFormerForTokenClassification, "token-classification"),
            "_qa": (RoFormerForQuestionAnswering, "question-answering"),
        },
        {"roformer": {}},
    )
)
