"""What the stubs know beyond signatures: the types of parameters by their names, and declarations that are written by hand.

Python functions of the package carry no annotations. Their parameters have the same names for the same things everywhere (PyTorch's),
so a name says the type; a default says it where the name does not. What is neither is `Any`: an argument's name is still checked.
"""

HEADER = """\
from collections.abc import Callable, Generator as PyGenerator, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from types import TracebackType
from typing import Any, ClassVar, Generic, IO, Literal, NamedTuple, ParamSpec, Protocol, Self, SupportsIndex, overload
from typing_extensions import TypeVar
import builtins
import os
import lucid
from lucid import Tensor, Size
from lucid._C import Generator, Number, dtype as _dtype, device as _device, layout as _layout, memory_format as _memory_format
from lucid.nn.parameter import Parameter

_P = ParamSpec("_P")
_T = TypeVar("_T")
_D = TypeVar("_D", default=Any)
_F = TypeVar("_F", bound=Callable[..., Any])
_Ints = int | Sequence[int]
_Device = _device | str | int
_Path = str | os.PathLike[str]
_Params = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
"""

# annotation of .sig: of a parameter, and of a result where it differs
ANNOTATIONS = {
    "Tensor": "Tensor",
    "Number": "Number",
    "list[Tensor]": "Sequence[Tensor]",
    "list[Tensor | None]": "Sequence[Tensor | None]",
    "list[int]": "_Ints",
    "list[float]": "float | Sequence[float]",
    "truth": "bool",
    "dtype": "_dtype",
    "device": "_Device",
    "memory_format": "_memory_format",
    "object": "Any",
}

# parameters of Python functions and layers, by name
PARAMETERS = {
    "Tensor": "input other x y target tensor mat query key value q k v src tgt memory weight_tensor running_mean running_var "
    "anchor positive negative input1 input2 logits log_probs targets input_lengths target_lengths indices embeddings boxes scores",
    "Tensor | None": "attn_mask key_padding_mask src_mask tgt_mask memory_mask src_key_padding_mask tgt_key_padding_mask "
    "memory_key_padding_mask pos_weight mask out per_sample_weights",
    "int": "in_features out_features in_channels out_channels num_features num_embeddings embedding_dim num_heads embed_dim d_model nhead "
    "dim_feedforward num_layers num_groups groups num_classes n_classes input_size hidden_size num_encoder_layers num_decoder_layers "
    "in1_features in2_features upscale_factor downscale_factor num_parameters step_size T_max T_0 total_iters last_epoch num_workers "
    "total_steps epochs steps_per_epoch channels kdim vdim proj_size",
    "int | None": "padding_idx batch_size num_samples",
    "_Ints": "kernel_size stride padding dilation output_padding output_size normalized_shape size shape dim_ints milestones unflattened_size",
    "int | Sequence[int] | None": "dims",
    "_Ints | str": "padding_or_name",
    "float": "p momentum_float lr_float alpha_float eps negative_slope lambd sharpness temperature beta_float max_norm clip_value norm_type "
    "label_smoothing margin eta_min gamma dropout weight_decay init_value growth_factor backoff_factor rtol_float atol_float max_lr_float",
    "bool": "bias inplace batch_first bidirectional affine track_running_stats elementwise_affine training keepdim ceil_mode return_indices "
    "count_include_pad norm_first add_bias_kv add_zero_attn maximize foreach_flag differentiable_flag capturable_flag nesterov amsgrad "
    "drop_last shuffle_flag pin_memory create_graph requires_grad strict full log_target zero_infinity sparse scale_grad_by_freq "
    "is_causal recurse set_to_none enabled",
    "bool | None": "size_average reduce foreach fused retain_graph shuffle align_corners recompute_scale_factor",
    "Literal['none', 'mean', 'sum']": "reduction_strict",
    "str": "reduction mode padding_mode nonlinearity approximate",
    "_dtype | None": "dtype",
    "_Device | None": "device",
    "Generator | None": "generator",
    "_Params": "params",
    "float | Tensor": "lr",
    "tuple[float | Tensor, float | Tensor]": "betas",
    "lucid.optim.Optimizer": "optimizer",
}
BY_NAME = {name: text for text, names in PARAMETERS.items() for name in names.split()}

# results of Python functions and methods, by name
RESULTS = {
    "None": "__init__ __setitem__ __delitem__ __setstate__ reset_parameters close add_module register_buffer register_parameter",
    "str": "extra_repr __repr__ __str__ _get_name",
    "int": "__len__",
    "bool": "__contains__ is_available __bool__ is_initialized is_tensor",
}
BY_RESULT = {name: text for text, names in RESULTS.items() for name in names.split()}

# modules whose functions give tensors unless it is said otherwise here
GIVE_TENSORS = ("lucid.nn.functional", "lucid.nn.init", "lucid.linalg", "lucid.special", "lucid.signal.windows")
GIVE_OTHERS = {
    "lucid.nn.functional.multi_head_attention_forward": "tuple[Tensor, Tensor | None]",
    "lucid.nn.functional.gumbel_softmax": "Tensor",
    "lucid.nn.init.calculate_gain": "float",
}

TENSOR_LAYERS_EXCEPT = {  # modules whose call gives something else than a tensor
    "LSTM": "tuple[Tensor, tuple[Tensor, Tensor]]",
    "GRU": "tuple[Tensor, Tensor]",
    "RNN": "tuple[Tensor, Tensor]",
    "RNNBase": "Any",
    "LSTMCell": "tuple[Tensor, Tensor]",
    "MultiheadAttention": "tuple[Tensor, Tensor | None]",
    "AdaptiveLogSoftmaxWithLoss": "Any",
    "ModuleList": "Any",
    "ModuleDict": "Any",
    "ParameterList": "Any",
    "ParameterDict": "Any",
    "Container": "Any",
    "Module": "Any",
}
ATTRIBUTES = {  # of layers: what __init__ sets
    "weight": "Parameter",
    "bias": "Parameter",
    "in_features": "int",
    "out_features": "int",
    "in_channels": "int",
    "out_channels": "int",
    "num_features": "int",
    "num_embeddings": "int",
    "embedding_dim": "int",
    "hidden_size": "int",
    "input_size": "int",
    "num_layers": "int",
    "embed_dim": "int",
    "num_heads": "int",
    "p": "float",
    "eps": "float",
    "inplace": "bool",
    "reduction": "str",
    "running_mean": "Tensor",
    "running_var": "Tensor",
}
