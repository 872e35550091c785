"""Lightning Core's API on Lucid's engine: few operators, called often, on NumPy arrays.

The operators that are called often are C functions (bindings/lightning) that read arrays where they lie; everything else is
Python over them. Names load at first use, NumPy with the first array. Nothing here runs on Metal: "metal", the default device,
is the faster of CUDA and the CPU, and "cuda" is CUDA; without a CUDA device both are the CPU, with the same results, and the
trace says so.

>>> import lightning_core as lc
>>> lc.matmul2d([[1, 2], [3, 4]], [[5], [6]]).tolist()
[[17.0], [39.0]]
>>> lc.backend_name() == ("cuda" if lc.cuda_available() else "cpu"), lc.metal_available()
(True, False)
"""

_HOMES = {
    "_policies": "MatMulIoPolicy MatrixElementwiseIoPolicy VectorAddIoPolicy AttentionIoPolicy "
    "matmul_with_policy matmul_np_with_policy matmul_np_into_with_policy attention_forward_with_policy",
    "_sessions": "MatMulMetalResidentSession MatrixElemwiseMetalResidentSession VectorAddMetalResidentSession "
    "Conv2dMetalResidentSession AttentionSession matmul2d_resident_session attention2d_session "
    "clear_attention2d_session_cache conv2d_nchw_metal_resident",
    "_tensors": "Tensor Tensor64 TensorView Tensor64View",
    "_graph": "GraphIR graph_validation_passes graph_registry_size graph_registry_schemas graph_registry_schema",
    "_pipeline": "lightning_conv_attention_torchstrong_nchw_ab_report clear_integrated_attention_session_cache",
    "_timeline": "runtime_trace_timeline",
    "_tuning": "matmul_reset_tuning",
    "_unsupported": "coreml_inference_benchmark mpsgraph_vector_add_benchmark mpsgraph_train_step_benchmark",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
_MODULES = ("api",)
_COMPILED = (
    "matmul2d matmul2d_into matmul matmul_np matmul_np_into vector_add matrix_sub attention2d attention2d_into "
    "attention_forward lightning_attention lightning_attention_into conv2d_nchw conv2d_nchw_into lightning_conv_relu_nchw "
    "lightning_conv_relu_nchw_into lightning_conv_attention_torchstrong_nchw lightning_conv_attention_torchstrong_nchw_into "
    "metal_available cuda_available backend_name memory_model_name runtime_backend_capabilities "
    "runtime_active_backend_capabilities runtime_backend_interfaces runtime_active_backend_interfaces runtime_sync_policy_set "
    "runtime_sync_policy_get runtime_sync_apply runtime_sync_apply_default runtime_trace_enable runtime_trace_enabled "
    "runtime_trace_clear runtime_trace_capacity runtime_trace_events"
).split()
__all__ = sorted([*_HOME, *_COMPILED, *_MODULES])
__version__ = "0.5.7"  # of the API


def __getattr__(name):
    import importlib

    if name in _COMPILED:
        from lucid import _C

        value = getattr(_C._lightning(), name)
    elif name in _HOME:
        value = getattr(importlib.import_module(f"lightning_core.{_HOME[name]}"), name)
    elif name in _MODULES:
        return importlib.import_module(f"lightning_core.{name}")
    else:
        raise AttributeError(f"module 'lightning_core' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
