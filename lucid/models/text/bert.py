"""BERT (Devlin et al., 2018) and models of its shape, MiniLM among them, with transformers' keys."""

import dataclasses
from typing import Literal

from ... import _C, nn
from ...autograd import no_grad
from ...nn import functional as F
from .. import loading
from ..base import LanguageModelConfig, PretrainedModel
from ..mixins import MaskedLMMixin
from ..outputs import (
    BaseModelOutputWithPooling,
    CausalLMOutput,
    MaskedLMOutput,
    ModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)
from ..registry import family
from .attention import Sight, attend
from .language import classification_loss, inputs_of, next_token_loss

ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "relu": F.relu,
    "silu": F.silu,
}
TextActivation = Literal["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"]
PUBLIC = ("TextActivation",)


@dataclasses.dataclass(frozen=True)
class BertConfig(LanguageModelConfig):
    """The settings of BERT; defaults are those of bert-base-uncased.

    >>> lucid.models.BertConfig.from_dict({"hidden_dropout_prob": 0.0}).hidden_dropout
    0.0
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: TextActivation = "gelu"
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    classifier_dropout: float | None = None
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True
    num_labels: int = 2

    model_type = "bert"
    aliases = {"hidden_dropout_prob": "hidden_dropout", "attention_probs_dropout_prob": "attention_dropout"}
    only = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}

    def __post_init__(self):
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_attention_heads {self.num_attention_heads}"
            )
        if self.hidden_act not in ACTIVATIONS:
            raise ValueError(f"hidden_act is one of {', '.join(ACTIVATIONS)}, not {self.hidden_act!r}")


class Embeddings(nn.Module):
    """Words, their positions and the kind of their sentence, added and normalised.

    >>> from lucid.models.text.bert import Embeddings
    >>> list(Embeddings(lucid.models.BertConfig(vocab_size=5)).state_dict())[0]
    'word_embeddings.weight'
    """

    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, width)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, width)
        self.LayerNorm = nn.LayerNorm(width, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, input_ids, token_type_ids, position_ids, inputs_embeds):
        x = inputs_of(self.word_embeddings, input_ids, inputs_embeds)
        length = x.shape[1]
        if position_ids is None:
            position_ids = self.positions_of(input_ids, x)
        if length > self.position_embeddings.num_embeddings:
            raise ValueError(f"{length} tokens; the model has positions for {self.position_embeddings.num_embeddings}")
        if token_type_ids is None:
            x = x + self.token_type_embeddings.weight[0]
        else:
            x = x + self.token_type_embeddings(token_type_ids)
        positions = self.position_embeddings.weight[:length] if position_ids is None else self.position_embeddings(position_ids)
        return self.dropout(self.LayerNorm(x + positions))

    def positions_of(self, input_ids, x):
        """Positions of tokens; None: 0, 1, 2, ..."""
        return None


class _SelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads, self.dropout = config.num_attention_heads, config.attention_dropout
        self.query, self.key, self.value = (nn.Linear(config.hidden_size, config.hidden_size) for _ in range(3))

    def forward(self, x, sight):
        batch, length, width = x.shape
        q, k, v = (
            p(x).view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for p in (self.query, self.key, self.value)
        )
        if sight.turn is not None:
            q, k, v = sight.turn(q, k, v)
        y = attend(q, k, v, sight, None, self.dropout if self.training else 0.0)
        return y.transpose(1, 2).reshape(batch, length, width)


class _Output(nn.Module):  # a layer, added to what it was computed from, and normalised
    def __init__(self, inner, config):
        super().__init__()
        self.dense = nn.Linear(inner, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, x, residual):
        return self.LayerNorm(self.dropout(self.dense(x)) + residual)


class _Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self = _SelfAttention(config)
        self.output = _Output(config.hidden_size, config)

    def forward(self, x, sight):
        return self.output(self.self(x, sight), x)


class _Dense(nn.Module):
    def __init__(self, inner, outer, act):
        super().__init__()
        self.dense = nn.Linear(inner, outer)
        self.act = act

    def forward(self, x):
        return self.act(self.dense(x))


class _Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.attention = _Attention(config)
        self.intermediate = _Dense(config.hidden_size, config.intermediate_size, ACTIVATIONS[config.hidden_act])
        self.output = _Output(config.intermediate_size, config)

    def forward(self, x, sight):
        x = self.attention(x, sight)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    """The layers of BERT.

    >>> from lucid.models.text.bert import Encoder
    >>> len(Encoder(lucid.models.BertConfig(num_hidden_layers=2)).layer)
    2
    """

    def __init__(self, config):
        super().__init__()
        self.turn = None
        self.layer = nn.ModuleList([_Layer(config) for _ in range(config.num_hidden_layers)])


class BertModel(PretrainedModel):
    """BERT without a head: a vector per token, and one for the text (`pooler_output`).

    >>> config = lucid.models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> out = lucid.models.BertModel(config)(lucid.tensor([[1, 2, 3]]))
    >>> tuple(out.last_hidden_state.shape), tuple(out.pooler_output.shape)
    ((1, 3, 8), (1, 8))
    """

    config_class = BertConfig
    base_model_prefix = "bert"
    ignored_keys = (r"embeddings\.position_ids$", r"^cls\.")
    renamed_keys = ((r"LayerNorm\.gamma$", "LayerNorm.weight"), (r"LayerNorm\.beta$", "LayerNorm.bias"))
    head_keys = ("pooler.",)
    embeddings_class, encoder_class = Embeddings, Encoder

    def __init__(self, config, add_pooling_layer=True):
        super().__init__(config)
        self.embeddings = self.embeddings_class(config)
        self.encoder = self.encoder_class(config)
        self.pooler = _Dense(config.hidden_size, config.hidden_size, _C.tanh) if add_pooling_layer else None
        start(self, config)

    def get_input_embeddings(self):
        return self.embeddings.word_embeddings

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        token_type_ids=None,
        position_ids=None,
        inputs_embeds=None,
        output_hidden_states=False,
    ):
        x = self.embeddings(input_ids, token_type_ids, position_ids, inputs_embeds)
        mask = None if attention_mask is None else attention_mask.to(_C.bool)
        if mask is not None and mask.ndim == 2:
            mask = None if bool(mask.all()) else mask[:, None, None, :]
        sight, states = Sight(mask), [x]
        sight.turn = self.encoder.turn
        for layer in self.encoder.layer:
            x = layer(x, sight)
            states.append(x)
        return BaseModelOutputWithPooling(
            last_hidden_state=x,
            pooler_output=None if self.pooler is None else self.pooler(x[:, 0]),
            hidden_states=tuple(states) if output_hidden_states else None,
        )


def start(model, config):
    """First values: small normal weights, zero biases.

    >>> from lucid.models.text.bert import start
    >>> layer = lucid.nn.Sequential(lucid.nn.Linear(2, 2))
    >>> start(layer, lucid.models.BertConfig())
    >>> layer[0].bias.tolist()
    [0.0, 0.0]
    """
    for module in model.modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=config.initializer_range)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)
            if getattr(module, "padding_idx", None) is not None:
                with no_grad():
                    module.weight[module.padding_idx].zero_()


def answer_loss(begin, end, start_positions, end_positions):
    """The mean cross entropy of where an answer begins and ends; positions outside the text do not count.

    >>> from lucid.models.text.bert import answer_loss
    >>> answer_loss(lucid.zeros(1, 2), lucid.zeros(1, 2), lucid.tensor([0]), lucid.tensor([1]))
    tensor(0.6931)
    """
    if start_positions is None or end_positions is None:
        return None
    beyond = begin.shape[1]
    places = (p.view(-1).clamp(0, beyond) for p in (start_positions, end_positions))
    return sum(F.cross_entropy(l, p, ignore_index=beyond) for l, p in zip((begin, end), places)) / 2


class _Predictions(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transform = _Dense(config.hidden_size, config.hidden_size, ACTIVATIONS[config.hidden_act])
        self.transform.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = self.decoder.bias

    def forward(self, x):
        return self.decoder(self.transform.LayerNorm(self.transform(x)))


class _MaskedHead(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.predictions = _Predictions(config)


class Task(PretrainedModel):
    """What models with a head have: the network, under its own name, and dropout.

    >>> issubclass(lucid.models.BertForMaskedLM, lucid.models.text.bert.Task)
    True
    """

    config_class = BertConfig
    network_class = BertModel
    base_model_prefix = "bert"
    renamed_keys = BertModel.renamed_keys
    ignored_keys = (r"embeddings\.position_ids$", r"^cls\.", r"^bert\.pooler\.")

    pools = False  # whether the head stands on the vector of the whole text

    def __init__(self, config, pools=None):
        super().__init__(config)
        pools = self.pools if pools is None else pools
        setattr(self, self.base_model_prefix, self.network_class(config, add_pooling_layer=pools))
        rate = config.hidden_dropout if config.classifier_dropout is None else config.classifier_dropout
        self.dropout = nn.Dropout(rate)


class BertForMaskedLM(MaskedLMMixin, Task):
    """BERT that fills in masked words.

    >>> config = lucid.models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> ids = lucid.tensor([[1, 2, 3]])
    >>> tuple(lucid.models.BertForMaskedLM(config)(ids, labels=ids).logits.shape)
    (1, 3, 11)
    """

    ignored_keys = (r"embeddings\.position_ids$", r"^cls\.seq_relationship\.", r"^bert\.pooler\.")
    tied_keys = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }

    def __init__(self, config):
        super().__init__(config)
        self.cls = _MaskedHead(config)
        start(self.cls, config)
        self.tie_weights()

    def tied(self):
        return self.tied_keys if self.config.tie_word_embeddings else dict([*self.tied_keys.items()][1:])

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None, **options):
        out = self.base_model(input_ids, attention_mask, token_type_ids, **options)
        logits = self.cls.predictions(out.last_hidden_state)
        loss = None if labels is None else self.compute_lm_loss(logits, labels)
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class BertForPreTrainingOutput(ModelOutput):
    """What BERT's own training gives: logits of words and of whether the second sentence follows the first, and both losses.

    >>> lucid.models.BertForPreTrainingOutput(prediction_logits=1).prediction_logits
    1
    """

    fields = ("loss", "prediction_logits", "seq_relationship_logits", "mlm_loss", "nsp_loss", "hidden_states", "attentions")


class BertForPreTraining(BertForMaskedLM):
    """BERT as it was trained: masked words, and whether the second sentence follows the first.

    >>> config = lucid.models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> out = lucid.models.BertForPreTraining(config)(lucid.tensor([[1, 2, 3]]), next_sentence_label=lucid.tensor([0]))
    >>> tuple(out.prediction_logits.shape), tuple(out.seq_relationship_logits.shape), out.loss is out.nsp_loss
    ((1, 3, 11), (1, 2), True)
    """

    ignored_keys = (r"embeddings\.position_ids$",)
    pools = True

    def __init__(self, config):
        super().__init__(config)
        self.cls.seq_relationship = nn.Linear(config.hidden_size, 2)
        start(self.cls.seq_relationship, config)

    def forward(
        self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None, next_sentence_label=None, **options
    ):
        """next_sentence_label: (batch,), 0 where the second sentence follows."""
        out = self.base_model(input_ids, attention_mask, token_type_ids, **options)
        words, follows = self.cls.predictions(out.last_hidden_state), self.cls.seq_relationship(out.pooler_output)
        first = None if labels is None else F.cross_entropy(words.view(-1, words.shape[-1]), labels.view(-1))
        second = None if next_sentence_label is None else F.cross_entropy(follows, next_sentence_label.view(-1))
        loss = first + second if first is not None and second is not None else second if first is None else first
        return BertForPreTrainingOutput(
            loss=loss,
            prediction_logits=words,
            seq_relationship_logits=follows,
            mlm_loss=first,
            nsp_loss=second,
            hidden_states=out.hidden_states,
        )


class BertForNextSentencePrediction(Task):
    """BERT that says whether the second sentence follows the first (label 0) or not.

    >>> config = lucid.models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> tuple(lucid.models.BertForNextSentencePrediction(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 2)
    """

    ignored_keys = (r"embeddings\.position_ids$", r"^cls\.predictions\.")
    pools = True

    def __init__(self, config):
        super().__init__(config)
        self.cls = nn.Module()
        self.cls.seq_relationship = nn.Linear(config.hidden_size, 2)
        start(self.cls, config)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None, **options):
        out = self.base_model(input_ids, attention_mask, token_type_ids, **options)
        logits = self.cls.seq_relationship(out.pooler_output)
        loss = None if labels is None else F.cross_entropy(logits, labels.view(-1))
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class BertForCausalLM(BertForMaskedLM):
    """BERT whose tokens see those before them alone, and say what comes next (transformers' BertLMHeadModel).

    >>> config = lucid.models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> ids = lucid.tensor([[1, 2, 3]])
    >>> tuple(lucid.models.BertForCausalLM(config)(ids, labels=ids).logits.shape)
    (1, 3, 11)
    """

    @classmethod
    def from_pretrained(cls, folder, *, config=None, **options):
        if config is None:  # the file says that tokens see those before them alone: this model's do
            values = {**loading.read_config(folder), "is_decoder": False}
            config = cls.config_class.from_dict(values, strict=False)
        return super().from_pretrained(folder, config=config, **options)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None, **options):
        given = input_ids if input_ids is not None else options["inputs_embeds"]
        seen = _C.ones(given.shape[1], given.shape[1], dtype=_C.bool, device=given.device).tril()[None, None]
        if attention_mask is not None:
            seen = seen & attention_mask.to(_C.bool)[:, None, None, :]
        out = self.base_model(input_ids, seen, token_type_ids, **options)
        logits = self.cls.predictions(out.last_hidden_state)
        loss = None if labels is None else next_token_loss(logits, labels)
        return CausalLMOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class BertForSequenceClassification(Task):
    """BERT that classifies texts.

    >>> config = lucid.models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16, num_labels=3)
    >>> out = lucid.models.BertForSequenceClassification(config)(lucid.tensor([[1, 2, 3]]), labels=lucid.tensor([2]))
    >>> tuple(out.logits.shape), out.loss.ndim
    ((1, 3), 0)
    """

    ignored_keys = Task.ignored_keys[:2]
    head_keys = ("classifier.", "bert.pooler.")

    def __init__(self, config):
        super().__init__(config, pools=True)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        start(self.classifier, config)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None, **options):
        out = self.base_model(input_ids, attention_mask, token_type_ids, **options)
        logits = self.classifier(self.dropout(out.pooler_output))
        loss = None if labels is None else classification_loss(logits, labels, self.config.num_labels)
        return SequenceClassifierOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class BertForTokenClassification(MaskedLMMixin, Task):
    """BERT that classifies every token.

    >>> config = lucid.models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> tuple(lucid.models.BertForTokenClassification(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 3, 2)
    """

    head_keys = ("classifier.",)

    def __init__(self, config):
        super().__init__(config)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        start(self.classifier, config)

    def forward(self, input_ids=None, attention_mask=None, token_type_ids=None, labels=None, **options):
        out = self.base_model(input_ids, attention_mask, token_type_ids, **options)
        logits = self.classifier(self.dropout(out.last_hidden_state))
        loss = None if labels is None else self.compute_lm_loss(logits, labels)
        return TokenClassifierOutput(loss=loss, logits=logits, hidden_states=out.hidden_states)


class BertForQuestionAnswering(Task):
    """BERT that finds where an answer begins and ends.

    >>> config = lucid.models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1,
    ...     num_attention_heads=2, intermediate_size=16)
    >>> tuple(lucid.models.BertForQuestionAnswering(config)(lucid.tensor([[1, 2, 3]])).start_logits.shape)
    (1, 3)
    """

    head_keys = ("qa_outputs.",)

    def __init__(self, config):
        super().__init__(config)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        start(self.qa_outputs, config)

    def forward(
        self, input_ids=None, attention_mask=None, token_type_ids=None, start_positions=None, end_positions=None, **options
    ):
        out = self.base_model(input_ids, attention_mask, token_type_ids, **options)
        begin, end = self.qa_outputs(out.last_hidden_state).unbind(-1)
        loss = answer_loss(begin, end, start_positions, end_positions)
        return QuestionAnsweringModelOutput(loss=loss, start_logits=begin, end_logits=end, hidden_states=out.hidden_states)


def _size(width, layers, heads):
    return dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * width)


globals().update(
    family(
        BertConfig,
        {
            "": (BertModel, "base"),
            "_mlm": (BertForMaskedLM, "masked-lm"),
            "_cls": (BertForSequenceClassification, "sequence-classification"),
            "_token_cls": (BertForTokenClassification, "token-classification"),
            "_qa": (BertForQuestionAnswering, "question-answering"),
        },
        {
            "bert_tiny": _size(128, 2, 2),
            "bert_mini": _size(256, 4, 4),
            "bert_small": _size(512, 4, 8),
            "bert_medium": _size(512, 8, 8),
            "bert_base": {},
            "bert_large": _size(1024, 24, 16),
        },
        more={"pretraining": BertForPreTraining, "causal-lm": BertForCausalLM},
    )
)
