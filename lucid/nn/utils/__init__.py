"""Tools around modules."""

from . import rnn
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import copy_parameters_and_buffers, parameters_to_vector, vector_to_parameters
from .rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence
from .skip_init import skip_init
from .spectral_norm import remove_spectral_norm, spectral_norm
from .weight_norm import remove_weight_norm, weight_norm

_LATER = {  # loaded when first asked for: modules, and names that live in them
    "fusion": ("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"),
    "memory_format": ("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"),
    "parametrizations": (),
    "parametrize": (),
    "prune": (),
    "stateless": (),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "PackedSequence",
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "copy_parameters_and_buffers",
    "get_total_norm",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
    *_HOME,
    *_LATER,
]


def __getattr__(name):
    from importlib import import_module

    if name in _LATER:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_LATER, *_HOME})
