"""The helper of Lightning Core: engines, blocks that keep their weights, checkpoints, automatic differentiation, a small
transformer. Importing it puts engine-aware functions in the place of those of `lightning_core.api`; the originals stay there as
`<name>_lightning_direct`. Names load at first use.

>>> import lightning_core_integrated_api as lc_api
>>> lc_api.lightning_matmul([[1, 2]], [[3], [4]]).tolist()
[[11.0]]
>>> import lightning_core as lc
>>> lc.api.attention([[1, 2]], [[3, 4]], [[5, 6]], 1, 2).tolist()
[[5.0, 6.0]]
"""

import importlib

from lightning_core import api as _api

_HOMES = {
    "engines": "set_engine get_engine set_backend get_backend tensor lightning_matmul lightning_matmul_into "
    "lightning_attention lightning_conv_relu_nchw lightning_conv_relu_torchstrong_nchw",
    "routes": "RoutePolicyValidationError validate_route_policy lightning_conv_attention_torchstrong_nchw "
    "lightning_conv_attention_torchstrong_nchw_ab_report lightning_conv_attention_torchstrong_nchw_route_report",
    "blocks": "Linear TinyMLPModel ConvReLUResidentBlock AttentionResidentBlock ConvAttentionResidentPipeline "
    "clear_attention_session_cache",
    "checkpoints": "CheckpointValidationError save_checkpoint load_checkpoint validate_checkpoint save_model_checkpoint "
    "load_model_checkpoint save_runner_checkpoint_v2 load_runner_checkpoint checkpoint_conversion_diagnostics "
    "validate_checkpoint_conversion checkpoint_compatibility_matrix runner_checkpoint_compatibility_matrix",
    "autograd": "AutoTensor ag_tensor ag_parameter ag_matmul ag_add ag_relu ag_reshape ag_conv2d ag_attention ag_mse_loss "
    "ag_zero_grad ag_grad_norm ag_clip_grad_norm ag_sgd_step TinyAutogradMLP TinyAutogradConvAttention "
    "autograd_train_loop",
    "runner": "TinyTransformerRunner runner_replay_report runner_config_schema runner_contract_manifest "
    "runner_artifact_schema validate_runner_config",
    "adapters": "create_torch_module_wrapper create_tf_keras_layer_wrapper create_tf_model_runner_adapter "
    "create_mlx_model_runner_adapter create_coreml_model_runner_adapter get_torch_wrapper_telemetry "
    "get_tf_wrapper_telemetry get_mlx_wrapper_telemetry get_coreml_wrapper_telemetry torch_runner_adapter_schema "
    "tf_runner_adapter_schema mlx_runner_adapter_schema coreml_runner_adapter_schema",
    "federation": "engine_federation_policy_schema engine_federation_policy_v3_schema resolve_engine_federation_policy_v3 "
    "import_export_compatibility_matrix coreml_roundtrip_schema coreml_roundtrip_beta_report",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'lightning_core_integrated_api' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"lightning_core._integrated.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})


_api._use_helper(_HOME)
