"""Networks, ready to train, and published ones whose files load as they are.

>>> model = lucid.models.lenet_5()
>>> tuple(model(lucid.zeros(2, 1, 32, 32)).shape)
(2, 10)

A name of this module is loaded with its family at first use: the table below says which file it is in.
"""

_LATER = {
    "base": ("ModelConfig", "PretrainedModel"),
    "lenet": ("LeNet", "lenet_5"),
    "loading": ("WeightsError",),
    "outputs": (
        "BaseModelOutput",
        "BaseModelOutputWithPooling",
        "CausalLMOutput",
        "ImageClassificationOutput",
        "MaskedLMOutput",
        "ModelOutput",
        "QuestionAnsweringModelOutput",
        "SequenceClassifierOutput",
        "TokenClassifierOutput",
    ),
    "registry": (
        "AutoConfig",
        "AutoModel",
        "AutoModelForCausalLM",
        "AutoModelForImageClassification",
        "AutoModelForMaskedLM",
        "AutoModelForQuestionAnswering",
        "AutoModelForSequenceClassification",
        "AutoModelForTokenClassification",
        "create_model",
        "is_model",
        "list_models",
        "model_entrypoint",
        "register_model",
    ),
    "text.bert": (
        "BertConfig",
        "BertForMaskedLM",
        "BertForQuestionAnswering",
        "BertForSequenceClassification",
        "BertForTokenClassification",
        "BertModel",
        "bert_base",
        "bert_base_cls",
        "bert_base_mlm",
        "bert_base_qa",
        "bert_base_token_cls",
        "bert_large",
        "bert_large_cls",
        "bert_large_mlm",
        "bert_large_qa",
        "bert_large_token_cls",
        "bert_medium",
        "bert_medium_cls",
        "bert_medium_mlm",
        "bert_medium_qa",
        "bert_medium_token_cls",
        "bert_mini",
        "bert_mini_cls",
        "bert_mini_mlm",
        "bert_mini_qa",
        "bert_mini_token_cls",
        "bert_small",
        "bert_small_cls",
        "bert_small_mlm",
        "bert_small_qa",
        "bert_small_token_cls",
        "bert_tiny",
        "bert_tiny_cls",
        "bert_tiny_mlm",
        "bert_tiny_qa",
        "bert_tiny_token_cls",
    ),
    "text.gpt2": (
        "GPT2Config",
        "GPT2ForSequenceClassification",
        "GPT2LMHeadModel",
        "GPT2Model",
        "gpt2_large",
        "gpt2_large_cls",
        "gpt2_large_lm",
        "gpt2_medium",
        "gpt2_medium_cls",
        "gpt2_medium_lm",
        "gpt2_small",
        "gpt2_small_cls",
        "gpt2_small_lm",
        "gpt2_xlarge",
        "gpt2_xlarge_cls",
        "gpt2_xlarge_lm",
    ),
    "text.llama": (
        "GemmaConfig",
        "GemmaForCausalLM",
        "GemmaModel",
        "LlamaConfig",
        "LlamaForCausalLM",
        "LlamaModel",
        "MistralConfig",
        "MistralForCausalLM",
        "MistralModel",
        "Qwen2Config",
        "Qwen2ForCausalLM",
        "Qwen2Model",
        "Qwen3Config",
        "Qwen3ForCausalLM",
        "Qwen3Model",
        "gemma_2b",
        "gemma_2b_lm",
        "llama_3_2_1b",
        "llama_3_2_1b_lm",
        "llama_3_8b",
        "llama_3_8b_lm",
        "mistral_7b",
        "mistral_7b_lm",
        "qwen2_0_5b",
        "qwen2_0_5b_lm",
        "qwen2_7b",
        "qwen2_7b_lm",
        "qwen3_0_6b",
        "qwen3_0_6b_lm",
        "smollm_135m",
        "smollm_135m_lm",
    ),
    "text.sentences": ("SentenceEncoder",),
    "text.tokenizer": ("Tokenizer",),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}
_FAMILIES = ("text.bert", "text.gpt2", "text.llama")  # modules that register factories

__all__ = list(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'lucid.models' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"lucid.models.{_HOME[name]}"), name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
