"""Networks, ready to train, and published ones whose files load as they are.

>>> model = lucid.models.lenet_5()
>>> tuple(model(lucid.zeros(2, 1, 32, 32)).shape)
(2, 10)

A name of this module is loaded with its family at first use: the table below says which file it is in.
"""

from ._names import NAMES

_LATER = {
    "base": ("LanguageModelConfig", "ModelConfig", "PretrainedModel"),
    "lenet": ("LeNet", "lenet_5", "lenet_5_cls"),
    "loading": ("WeightsError",),
    "mixins": (
        "BackboneMixin",
        "ClassificationHeadMixin",
        "DiffusionMixin",
        "FeatureInfo",
        "GenerationMixin",
        "MaskedLMMixin",
    ),
    "outputs": (
        "BaseModelOutput",
        "BaseModelOutputWithPooling",
        "CausalLMOutput",
        "GenerationOutput",
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
        "AutoModelForImageGeneration",
        "AutoModelForMaskedLM",
        "AutoModelForObjectDetection",
        "AutoModelForQuestionAnswering",
        "AutoModelForSemanticSegmentation",
        "AutoModelForSeq2SeqLM",
        "AutoModelForSequenceClassification",
        "AutoModelForTokenClassification",
        "create_model",
        "is_model",
        "list_models",
        "model_entrypoint",
        "register_model",
    ),
    "weights": ("PretrainedEntry", "download", "load_from_pretrained_entry", "transforms_of", "weights_of"),
    "text.sentences": ("SentenceEncoder",),
    "text.tokenizer": ("Tokenizer",),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}
_HOME.update((name, module) for module, names in NAMES.items() for name in names.split())
_FAMILIES = tuple(NAMES)  # modules that register factories

__all__ = list(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'lucid.models' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"lucid.models.{_HOME[name]}"), name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
