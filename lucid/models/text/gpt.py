"""The first GPT (Radford et al., 2018): GPT-2's layers, normalised after what they add. transformers' keys (`openai-gpt`)."""

import dataclasses

from ... import nn
from ..base import PretrainedModel
from ..outputs import BaseModelOutput
from ..registry import family
from .gpt2 import Block, GPT2Config
from .language import CausalLM, DecoderClassifier, Pass, inputs_of


@dataclasses.dataclass(frozen=True)
class GPTConfig(GPT2Config):
    """The settings of GPT.

    >>> lucid.models.GPTConfig.from_dict({"n_embd": 48, "afn": "gelu"}).activation_function
    'gelu_new'
    """

    vocab_size: int = 40478
    max_position_embeddings: int = 512
    bos_token_id: int | None = None
    eos_token_id: int | None = None

    model_type = "openai-gpt"

    @classmethod
    def understood(cls, values):
        values = super().understood(values)
        if "afn" in values:  # its gelu is the one by tanh
            values["activation_function"] = {"gelu": "gelu_new", "swish": "silu"}.get(values["afn"], values["afn"])
            del values["afn"]
        return values


class _Block(Block):
    def forward(self, x, frame):
        x = self.ln_1(x + self.attn(x, frame))
        return self.ln_2(x + self.mlp(x))


class GPTModel(PretrainedModel):
    """GPT without a head.

    >>> config = lucid.models.GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.GPTModel(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = GPTConfig
    base_model_prefix = "transformer"
    ignored_keys = (r"(^|\.)attn\.bias$", r"^lm_head\.weight$", r"(^|\.)position_ids$")

    def __init__(self, config):
        super().__init__(config)
        self.tokens_embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.positions_embed = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.drop = nn.Dropout(config.hidden_dropout if config.embedding_dropout is None else config.embedding_dropout)
        self.h = nn.ModuleList([_Block(config, i) for i in range(config.num_hidden_layers)])
        for table in (self.tokens_embed, self.positions_embed):
            nn.init.normal_(table.weight, std=config.initializer_range)

    def get_input_embeddings(self):
        return self.tokens_embed

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
        x = inputs_of(self.tokens_embed, input_ids, inputs_embeds)
        frame = Pass(x, attention_mask, position_ids, past_key_values, use_cache)
        if frame.last >= self.config.max_position_embeddings and position_ids is None:
            raise ValueError(f"{frame.last + 1} tokens; the model has positions for {self.config.max_position_embeddings}")
        x = self.drop(x + self.positions_embed(frame.positions))
        states = [x]
        for block in self.h:
            x = block(x, frame)
            states.append(x)
        return BaseModelOutput(
            last_hidden_state=x, past_key_values=frame.cache, hidden_states=tuple(states) if output_hidden_states else None
        )


class GPTLMHeadModel(CausalLM):
    """GPT that says what comes next.

    >>> config = lucid.models.GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.GPTLMHeadModel(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 3, 11)
    """

    config_class = GPTConfig
    base_model_prefix = "transformer"
    ignored_keys = (GPTModel.ignored_keys[0], GPTModel.ignored_keys[2])
    tied_keys = {"lm_head.weight": "transformer.tokens_embed.weight"}

    def __init__(self, config):
        super().__init__(config)
        self.transformer = GPTModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        nn.init.normal_(self.lm_head.weight, std=config.initializer_range)
        self.tie_weights()


class GPTForSequenceClassification(DecoderClassifier):
    """GPT that classifies texts by their last token.

    >>> config = lucid.models.GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_labels=5)
    >>> tuple(lucid.models.GPTForSequenceClassification(config)(lucid.tensor([[1, 2]])).logits.shape)
    (1, 5)
    """

    config_class = GPTConfig
    base_model_prefix = "transformer"
    ignored_keys = GPTModel.ignored_keys

    def __init__(self, config):
        super().__init__(config)
        self.transformer = GPTModel(config)
        self.score = nn.Linear(config.hidden_size, config.num_labels, bias=False)


globals().update(
    family(
        GPTConfig,
        {
            "": (GPTModel, "base"),
            "_lm": (GPTLMHeadModel, "causal-lm"),
            "_cls": (GPTForSequenceClassification, "sequence-classification"),
        },
        {"gpt": {}},
    )
)
