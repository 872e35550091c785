"""The integrated functions: `lc.api.X` is `lc.lightning_X`. Importing lightning_core_integrated_api puts engine-aware wrappers
in their places.

>>> import lightning_core as lc
>>> lc.api.conv_relu_nchw([[[[1, 2]]]], [[[[1, 1]]]]).tolist()
[[[[3.0]]]]
"""

import importlib

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
_places = {name: ("lightning_core", real) for name, real in _NAMES.items()}
__all__ = sorted(_NAMES)


def __getattr__(name):
    if name not in _places:
        raise AttributeError(f"module 'lightning_core.api' has no attribute '{name}'")
    module, real = _places[name]
    value = getattr(importlib.import_module(module), real)
    if isinstance(value, dict):
        value = value[name]
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_places})


def _use_helper(homes):
    """The helper was imported: its names, its wrappers, and the functions they replace. They load at first use, as before."""
    wrapped = [name for name in _NAMES if name != "clear_attention_session_cache"]
    _places.update({f"{name}_lightning_direct": ("lightning_core", real) for name, real in _NAMES.items()})
    for name, home in homes.items():
        _places.setdefault(name, (f"lightning_core._integrated.{home}", name))
    for name in wrapped:
        _places[name] = ("lightning_core._integrated.routes", "WRAPPERS")
        globals().pop(name, None)
    _places["conv_attention_torchstrong_nchw_route_report"] = ("lightning_core._integrated.routes", "route_report")
