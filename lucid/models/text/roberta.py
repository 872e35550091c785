"""RoBERTa (Liu et al., 2019): BERT with other positions, and heads of its own. transformers' keys."""

import dataclasses

from ... import _C, nn
from ...nn import functional as F
from ..mixins import MaskedLMMixin
from ..outputs import MaskedLMOutput, SequenceClassifierOutput
from ..registry import family
from .bert import BertConfig, BertForQuestionAnswering, BertForTokenClassification, BertModel, Embeddings, Task, start
from .language import classification_loss


@dataclasses.dataclass(frozen=True)
class RobertaConfig(BertConfig):
    """The settings of RoBERTa; defaults are those of roberta-base.

    >>> lucid.models.RobertaConfig().max_position_embeddings
    514
    """

    vocab_size: int = 50265
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    layer_norm_eps: float = 1e-5
    pad_token_id: int | None = 1

    model_type = "roberta"


class _Embeddings(Embeddings):
    def __init__(self, config):
        super().__init__(config)
        self.padding = config.pad_token_id
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size, self.padding)

    def positions_of(self, input_ids, x):
        """Real tokens are counted from the number of the padding token on."""
        if input_ids is None:
            return _C.arange(self.padding + 1, self.padding + 1 + x.shape[1], device=x.device).unsqueeze(0)
        real = (input_ids != self.padding).to(_C.int64)
        return real.cumsum(1) * real + self.padding


class RobertaModel(BertModel):
    """RoBERTa without a head.

    >>> config = lucid.models.RobertaConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> tuple(lucid.models.RobertaModel(config)(lucid.tensor([[0, 5, 2]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = RobertaConfig
    base_model_prefix = "roberta"
    ignored_keys = (r"embeddings\.position_ids$", r"^lm_head\.")
    embeddings_class = _Embeddings

    @property
    def first_position(self):
        return self.config.pad_token_id + 1


class _Network:
    config_class = RobertaConfig
    network_class = RobertaModel
    base_model_prefix = "roberta"
    ignored_keys = (r"embeddings\.position_ids$", r"^lm_head\.", r"^roberta\.pooler\.")


class _Predictions(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = self.decoder.bias

    def forward(self, x):
        return self.decoder(self.layer_norm(F.gelu(self.dense(x))))


class RobertaForMaskedLM(_Network, MaskedLMMixin, Task):
    """RoBERTa that fills in masked words.

    >>> config = lucid.models.RobertaConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> tuple(lucid.models.RobertaForMaskedLM(config)(lucid.tensor([[0, 5, 2]])).logits.shape)
    (1, 3, 11)
    """

    ignored_keys = (r"embeddings\.position_ids$", r"^roberta\.pooler\.")
    tied_keys = {
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    }

    def __init__(self, config):
        super().__init__(config)
        self.lm_head = _Predictions(config)
        start(self.lm_head, config)
        self.tie_weights()

    def tied(self):
        return self.tied_keys if self.config.tie_word_embeddings else dict([*self.tied_keys.items()][1:])

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None, **options):
        out = self.roberta(input_ids, attention_mask, token_type_ids, **options)
        logits = self.lm_head(out.last_hidden_state)
        loss = None if labels is None else self.compute_lm_loss(logits, labels)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class FirstTokenHead(nn.Module):
    """A classifier of the first token: two layers with an activation between them.

    >>> from lucid.models.text.roberta import FirstTokenHead
    >>> tuple(FirstTokenHead(lucid.models.RobertaConfig(hidden_size=8, num_attention_heads=2))(lucid.zeros(1, 3, 8)).shape)
    (1, 2)
    """

    def __init__(self, config, act=_C.tanh):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        rate = config.hidden_dropout if config.classifier_dropout is None else config.classifier_dropout
        self.dropout, self.act = nn.Dropout(rate), act
        self.out_proj = nn.Linear(config.hidden_size, config.num_labels)

    def forward(self, x):
        return self.out_proj(self.dropout(self.act(self.dense(self.dropout(x[:, 0])))))


class FirstTokenClassifier:
    """The forward pass of networks with a FirstTokenHead.

    >>> from lucid.models.text.roberta import FirstTokenClassifier
    >>> FirstTokenClassifier.head_keys
    ('classifier.',)
    """

    head_keys = ("classifier.",)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None, **options):
        out = self.base_model(input_ids, attention_mask, token_type_ids, **options)
        logits = self.classifier(out.last_hidden_state)
        loss = None if labels is None else classification_loss(logits, labels, self.config.num_labels)
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class RobertaForSequenceClassification(FirstTokenClassifier, _Network, Task):
    """RoBERTa that classifies texts.

    >>> config = lucid.models.RobertaConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16, num_labels=3)
    >>> tuple(lucid.models.RobertaForSequenceClassification(config)(lucid.tensor([[0, 5, 2]])).logits.shape)
    (1, 3)
    """

    def __init__(self, config):
        super().__init__(config)
        self.classifier = FirstTokenHead(config)
        start(self.classifier, config)


class RobertaForTokenClassification(_Network, BertForTokenClassification):
    """RoBERTa that classifies every token.

    >>> lucid.models.RobertaForTokenClassification.base_model_prefix
    'roberta'
    """


class RobertaForQuestionAnswering(_Network, BertForQuestionAnswering):
    """RoBERTa that finds where an answer begins and ends.

    >>> lucid.models.RobertaForQuestionAnswering.base_model_prefix
    'roberta'
    """


globals().update(
    family(
        RobertaConfig,
        {
            "": (RobertaModel, "base"),
            "_mlm": (RobertaForMaskedLM, "masked-lm"),
            "_cls": (RobertaForSequenceClassification, "sequence-classification"),
            "_token_cls": (RobertaForTokenClassification, "token-classification"),
            "_qa": (RobertaForQuestionAnswering, "question-answering"),
        },
        {
            "roberta_base": {},
            "roberta_large": dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
        },
    )
)
