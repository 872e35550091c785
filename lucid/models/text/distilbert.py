"""DistilBERT (Sanh et al., 2019): BERT with half of the layers and no kinds of sentences. transformers' keys."""

import dataclasses

from ... import _C, nn
from ...nn import functional as F
from ..base import LanguageModelConfig, PretrainedModel
from ..mixins import MaskedLMMixin
from ..outputs import (
    BaseModelOutput,
    MaskedLMOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from ..registry import family
from .bert import ACTIVATIONS, answer_loss, start
from .language import classification_loss, inputs_of
from .projected import ProjectedAttention


@dataclasses.dataclass(frozen=True)
class DistilBertConfig(LanguageModelConfig):
    """The settings of DistilBERT; defaults are those of distilbert-base-uncased.

    >>> lucid.models.DistilBertConfig.from_dict({"n_layers": 3}).num_hidden_layers
    3
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 6
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float = 0.2
    qa_dropout: float = 0.1
    max_position_embeddings: int = 512
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True
    num_labels: int = 2

    model_type = "distilbert"
    aliases = {
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "hidden_dim": "intermediate_size",
        "activation": "hidden_act",
        "dropout": "hidden_dropout",
        "seq_classif_dropout": "classifier_dropout",
    }
    only = {"sinusoidal_pos_embds": False}

    def __post_init__(self):
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}"
            )
        if self.hidden_act not in ACTIVATIONS:
            raise ValueError(f"hidden_act is one of {', '.join(ACTIVATIONS)}, not {self.hidden_act!r}")


class _Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.LayerNorm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(config.hidden_dropout)

    def forward(self, input_ids, inputs_embeds):
        x = inputs_of(self.word_embeddings, input_ids, inputs_embeds)
        length = x.shape[1]
        if length > self.position_embeddings.num_embeddings:
            raise ValueError(f"{length} tokens; the model has positions for {self.position_embeddings.num_embeddings}")
        return self.dropout(self.LayerNorm(x + self.position_embeddings.weight[:length]))


class _FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.lin1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.lin2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.act = ACTIVATIONS[config.hidden_act]

    def forward(self, x):
        return self.dropout(self.lin2(self.act(self.lin1(x))))


class _Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        names = ("q_lin", "k_lin", "v_lin", "out_lin")
        self.attention = ProjectedAttention(width, config.num_attention_heads, names=names, dropout=config.attention_dropout)
        self.sa_layer_norm = nn.LayerNorm(width, eps=1e-12)
        self.ffn = _FeedForward(config)
        self.output_layer_norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        x = self.sa_layer_norm(self.attention(x, mask=mask) + x)
        return self.output_layer_norm(self.ffn(x) + x)


class _Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layer = nn.ModuleList([_Layer(config) for _ in range(config.num_hidden_layers)])


class DistilBertModel(PretrainedModel):
    """DistilBERT without a head.

    >>> config = lucid.models.DistilBertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    ...     intermediate_size=16)
    >>> tuple(lucid.models.DistilBertModel(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = DistilBertConfig
    base_model_prefix = "distilbert"
    ignored_keys = (r"embeddings\.position_ids$", r"^vocab_", r"^(pre_)?classifier\.", r"^qa_outputs\.")

    def __init__(self, config):
        super().__init__(config)
        self.embeddings, self.transformer = _Embeddings(config), _Transformer(config)
        start(self, config)

    def get_input_embeddings(self):
        return self.embeddings.word_embeddings

    def forward(self, input_ids=None, attention_mask=None, inputs_embeds=None, output_hidden_states=False):
        x = self.embeddings(input_ids, inputs_embeds)
        mask = None
        if attention_mask is not None and not bool(attention_mask.all()):
            mask = attention_mask.to(_C.bool)[:, None, None, :]
        states = [x]
        for layer in self.transformer.layer:
            x = layer(x, mask)
            states.append(x)
        return BaseModelOutput(last_hidden_state=x, hidden_states=tuple(states) if output_hidden_states else None)


class _Task(PretrainedModel):
    config_class = DistilBertConfig
    base_model_prefix = "distilbert"
    ignored_keys = DistilBertModel.ignored_keys

    def __init__(self, config):
        super().__init__(config)
        self.distilbert = DistilBertModel(config)


class DistilBertForMaskedLM(MaskedLMMixin, _Task):
    """DistilBERT that fills in masked words.

    >>> config = lucid.models.DistilBertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    ...     intermediate_size=16)
    >>> tuple(lucid.models.DistilBertForMaskedLM(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 3, 11)
    """

    ignored_keys = DistilBertModel.ignored_keys[:1]
    tied_keys = {"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.vocab_transform = nn.Linear(config.hidden_size, config.hidden_size)
        self.vocab_layer_norm = nn.LayerNorm(config.hidden_size, eps=1e-12)
        self.vocab_projector = nn.Linear(config.hidden_size, config.vocab_size)
        self.tie_weights()

    def tied(self):
        return self.tied_keys if self.config.tie_word_embeddings else {}

    def forward(self, input_ids=None, attention_mask=None, labels=None, **options):
        out = self.distilbert(input_ids, attention_mask, **options)
        x = ACTIVATIONS[self.config.hidden_act](self.vocab_transform(out.last_hidden_state))
        logits = self.vocab_projector(self.vocab_layer_norm(x))
        loss = None if labels is None else self.compute_lm_loss(logits, labels)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class DistilBertForSequenceClassification(_Task):
    """DistilBERT that classifies texts.

    >>> config = lucid.models.DistilBertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2,
    ...     intermediate_size=16, num_labels=3)
    >>> tuple(lucid.models.DistilBertForSequenceClassification(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 3)
    """

    head_keys = ("classifier.", "pre_classifier.")

    def __init__(self, config):
        super().__init__(config)
        self.pre_classifier = nn.Linear(config.hidden_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.dropout = nn.Dropout(config.classifier_dropout)

    def forward(self, input_ids=None, attention_mask=None, labels=None, **options):
        out = self.distilbert(input_ids, attention_mask, **options)
        logits = self.classifier(self.dropout(F.relu(self.pre_classifier(out.last_hidden_state[:, 0]))))
        loss = None if labels is None else classification_loss(logits, labels, self.config.num_labels)
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class DistilBertForTokenClassification(MaskedLMMixin, _Task):
    """DistilBERT that classifies every token.

    >>> lucid.models.DistilBertForTokenClassification.head_keys
    ('classifier.',)
    """

    head_keys = ("classifier.",)

    def __init__(self, config):
        super().__init__(config)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, input_ids=None, attention_mask=None, labels=None, **options):
        out = self.distilbert(input_ids, attention_mask, **options)
        logits = self.classifier(self.dropout(out.last_hidden_state))
        loss = None if labels is None else self.compute_lm_loss(logits, labels)
        return TokenClassifierOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class DistilBertForQuestionAnswering(_Task):
    """DistilBERT that finds where an answer begins and ends.

    >>> lucid.models.DistilBertForQuestionAnswering.head_keys
    ('qa_outputs.',)
    """

    head_keys = ("qa_outputs.",)

    def __init__(self, config):
        super().__init__(config)
        self.qa_outputs, self.dropout = nn.Linear(config.hidden_size, 2), nn.Dropout(config.qa_dropout)

    def forward(self, input_ids=None, attention_mask=None, start_positions=None, end_positions=None, **options):
        out = self.distilbert(input_ids, attention_mask, **options)
        begin, end = self.qa_outputs(self.dropout(out.last_hidden_state)).unbind(-1)
        loss = answer_loss(begin, end, start_positions, end_positions)
        return QuestionAnsweringModelOutput(loss=loss, start_logits=begin, end_logits=end, hidden_states=out.hidden_states)


globals().update(
    family(
        DistilBertConfig,
        {
            "": (DistilBertModel, "base"),
            "_mlm": (DistilBertForMaskedLM, "masked-lm"),
            "_cls": (DistilBertForSequenceClassification, "sequence-classification"),
            "_token_cls": (DistilBertForTokenClassification, "token-classification"),
            "_qa": (DistilBertForQuestionAnswering, "question-answering"),
        },
        {"distilbert_base": {}},
    )
)
