"""Runners as modules of other libraries (lightning_core_integrated_api has the same names).

>>> tf_runner_adapter_schema()["adapter"]
'tf'
"""

from lightning_core._integrated.adapters import (  # noqa: F401
    coreml_runner_adapter_schema,
    create_coreml_model_runner_adapter,
    create_mlx_model_runner_adapter,
    create_tf_keras_layer_wrapper,
    create_tf_model_runner_adapter,
    create_torch_module_wrapper,
    get_coreml_wrapper_telemetry,
    get_mlx_wrapper_telemetry,
    get_tf_wrapper_telemetry,
    get_torch_wrapper_telemetry,
    mlx_runner_adapter_schema,
    tf_runner_adapter_schema,
    torch_runner_adapter_schema,
)
