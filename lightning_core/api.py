"""The integrated functions: `lc.api.X` is `lc.lightning_X`. Importing lightning_core_integrated_api puts engine-aware wrappers
in their places.

>>> import lightning_core as lc
>>> lc.api.attention([[1, 2]], [[3, 4]], [[5, 6]], 1, 2).tolist()
[5.0, 6.0]
"""

_NAMES = {
    "conv_relu_nchw": "lightning_conv_relu_nchw",
    "conv_relu_nchw_into": "lightning_conv_relu_nchw_into",
    "attention": "lightning_attention",
    "attention_into": "lightning_attention_into",
    "conv_attention_torchstrong_nchw": "lightning_conv_attention_torchstrong_nchw",
    "conv_attention_torchstrong_nchw_into": "lightning_conv_attention_torchstrong_nchw_into",
    "conv_attention_torchstrong_nchw_ab_report": "lightning_conv_attention_torchstrong_nchw_ab_report",
    "clear_attention_session_cache": "clear_integrated_attention_session_cache",
}
__all__ = sorted(_NAMES)


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module 'lightning_core.api' has no attribute '{name}'")
    import lightning_core

    globals()[name] = value = getattr(lightning_core, _NAMES[name])
    return value


def __dir__():
    return sorted({*globals(), *__all__})
