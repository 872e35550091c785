"""The first GPT (Radford et al., 2018): GPT-2's layers, normalised after what they add. transformers' keys (`openai-gpt`)."""

import dataclasses

from ..registry import family
from .gpt2 import (
    Block,
    GPT2Config,
    GPT2DoubleHeadsModel,
    GPT2DoubleHeadsOutput,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    GPT2Model,
)


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


class GPTModel(GPT2Model):
    """GPT without a head.

    >>> config = lucid.models.GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.GPTModel(config)(lucid.tensor([[1, 2, 3]])).last_hidden_state.shape)
    (1, 3, 8)
    """

    config_class = GPTConfig
    ignored_keys = (r"(^|\.)attn\.bias$", r"^lm_head\.weight$", r"(^|\.)position_ids$")
    block_class, tables, normalises = _Block, ("tokens_embed", "positions_embed"), False


class GPTLMHeadModel(GPT2LMHeadModel):
    """GPT that says what comes next.

    >>> config = lucid.models.GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.GPTLMHeadModel(config)(lucid.tensor([[1, 2, 3]])).logits.shape)
    (1, 3, 11)
    """

    config_class, network_class = GPTConfig, GPTModel
    ignored_keys = (GPTModel.ignored_keys[0], GPTModel.ignored_keys[2])
    tied_keys = {"lm_head.weight": "transformer.tokens_embed.weight"}


class GPTDoubleHeadsOutput(GPT2DoubleHeadsOutput):
    """What GPT with two heads returns.

    >>> lucid.models.GPTDoubleHeadsOutput(mc_logits=1).mc_logits
    1
    """


class GPTDoubleHeadsModel(GPT2DoubleHeadsModel):
    """GPT that says what comes next, and which of several texts is right: ids (batch, choices, length).

    >>> config = lucid.models.GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    >>> tuple(lucid.models.GPTDoubleHeadsModel(config)(lucid.tensor([[[1, 2, 3], [1, 2, 4]]])).mc_logits.shape)
    (1, 2)
    """

    config_class, network_class = GPTConfig, GPTModel
    ignored_keys, tied_keys = GPTLMHeadModel.ignored_keys, GPTLMHeadModel.tied_keys
    output_class = GPTDoubleHeadsOutput


class GPTForSequenceClassification(GPT2ForSequenceClassification):
    """GPT that classifies texts by their last token.

    >>> config = lucid.models.GPTConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_labels=5)
    >>> tuple(lucid.models.GPTForSequenceClassification(config)(lucid.tensor([[1, 2]])).logits.shape)
    (1, 5)
    """

    config_class, network_class = GPTConfig, GPTModel
    ignored_keys = GPTModel.ignored_keys


globals().update(
    family(
        GPTConfig,
        {
            "": (GPTModel, "base"),
            "_lm": (GPTLMHeadModel, "causal-lm"),
            "_cls": (GPTForSequenceClassification, "sequence-classification"),
        },
        {"gpt": {}},
        more={"double-heads": GPTDoubleHeadsModel},
    )
)
