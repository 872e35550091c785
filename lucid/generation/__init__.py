"""Text from language models: generate, stream, caches, and what shapes the choice of the next token.

>>> config = lucid.models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
>>> model = lucid.models.GPT2LMHeadModel(config).eval()
>>> tuple(lucid.generation.generate(model, [[1, 2, 3]], max_new_tokens=4, eos_token_id=None).shape)
(1, 7)

Names are transformers'. `docs/generation.md` has more.
"""

_LATER = {
    "cache": ("Cache", "PrefixCache", "QuantizedCache", "RaggedCache", "SlidingCache"),
    "config": ("GenerationConfig",),
    "decoder": ("Decoder",),
    "loop": ("GenerateOutput", "Generation", "Statistics", "generate"),
    "processors": (
        "FrequencyPenaltyLogitsProcessor",
        "LogitsProcessorList",
        "MinNewTokensLengthLogitsProcessor",
        "MinPLogitsWarper",
        "NoRepeatNGramLogitsProcessor",
        "PresencePenaltyLogitsProcessor",
        "RepetitionPenaltyLogitsProcessor",
        "Sampler",
        "TemperatureLogitsWarper",
        "TopKLogitsWarper",
        "TopPLogitsWarper",
    ),
    "rules": (
        "ForcedEOSTokenLogitsProcessor",
        "MinLengthLogitsProcessor",
        "NoBadWordsLogitsProcessor",
        "PrefixConstrainedLogitsProcessor",
        "SequenceBiasLogitsProcessor",
        "SuppressTokensLogitsProcessor",
        "TypicalLogitsWarper",
    ),
    "coding": ("QuantizationReport", "QuantizedLinear", "quantize", "quantize_weight"),
    "streaming": ("TextIteratorStreamer", "TextStreamer", "TextTail", "Token", "TokenStream", "stream"),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}

__all__ = list(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'lucid.generation' has no attribute {name!r}")
    from importlib import import_module

    for each in _LATER[_HOME[name]]:  # all of a file: its own name may be one of them
        globals()[each] = getattr(import_module(f"lucid.generation.{_HOME[name]}"), each)
    return globals()[name]


def __dir__():
    return sorted({*globals(), *__all__})
