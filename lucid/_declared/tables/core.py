"""Declared names: the top level and its private modules. The package's docstring explains the lines."""

TABLE = """
lucid TorchScript and types of its compiler
  class PyTorchFileReader PyTorchFileWriter TensorType
  from jit: ScriptModule ScriptFunction
  from _C: AcceleratorError=LucidError
  from _declared.futures: Future
  from _declared.tensors: _assert _assert_async _is_all_true _is_any_true _check _check_with=_check
      _check_index=_check _check_value _check_type=_check_type _check_not_implemented _check_tensor_all
      _check_tensor_all_with=_check_tensor_all _check_is_size _shape_as_tensor _cast_Long _cast_Float
      _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo _dirichlet_grad _sample_dirichlet _grouped_mm
      _amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ SymInt=_SymInt SymFloat=_SymFloat SymBool=_SymBool
      solve=_solve symeig=_symeig matrix_rank=_matrix_rank dsmm _scaled_mm _make_per_tensor_quantized_tensor
  from quasirandom: _sobol_engine_draw=_draw _sobol_engine_initialize_state_=_initialize_state_
      _sobol_engine_scramble_=_scramble_ _sobol_engine_ff_=_fast_forward_
  from : legacy_contiguous_format=contiguous_format DeviceObjType=device
  from _C: _standard_gamma
  from _ops.packets: classes
  from _declared.cuda: has_cuda
  from _declared.dynamo: _is_compiling=is_compiling
_custom_ops
  from library: get_ctx custom_op impl_abstract register_fake
_library
_library.custom_ops
  from library: CustomOpDef custom_op
_library.utils
__config__
  from _declared.versions: show parallel_info
torch_version
  from _declared.versions: TorchVersion
functional
  from : einsum tensordot broadcast_tensors cdist meshgrid norm split stft istft unique unique_consecutive block_diag
      atleast_1d atleast_2d atleast_3d cartesian_prod chain_matmul align_tensors=broadcast_tensors unravel_index
_tensor
  from : Tensor
  from _declared.pickles: _rebuild_from_type_v2
_tensor_str
  from _declared.printing: PRINT_OPTS _tensor_str _str_intern _add_suffixes
  from : printoptions set_printoptions
_utils
  from _declared.pickles: _rebuild_tensor_v2 _rebuild_tensor _rebuild_parameter _rebuild_parameter_with_state
      _element_size _get_device_index _flatten_dense_tensors _unflatten_dense_tensors ExceptionWrapper render_call
_utils_internal
  none signpost_event log_compilation_event
_jit_internal
  same _copy_to_script_wrapper boolean_dispatch _overload _overload_method export ignore unused
  from !typing: Final List Dict Optional Tuple Union
  from jit.annotations: BroadcastingList1 BroadcastingList2 BroadcastingList3
  false is_scripting
_VF
  from : lstm gru rnn_tanh rnn_relu lstm_cell gru_cell
autograd.profiler_legacy the profiler of old: torch.profiler.profile
  class profile
futures
  from _declared.futures: Future collect_all wait_all
numa.binding binding to memory nodes
  enum AffinityMode NODE SOCKET EXCLUSIVE CORE_COMPLEX
  class NumaOptions
  false maybe_wrap_command_args_with_numa_binding
numa
monitor events for a log that nobody reads
  class Event Stat Aggregation
  none log_event
package packaging of models
  class PackageImporter PackageExporter
_lazy
_weights_only_unpickler
  from _declared.pickles: _get_user_allowed_globals get_globals_in_pkl
_prims_common
  from _declared.shapes: is_contiguous_or_false is_float_dtype is_integer_dtype make_contiguous_strides_for
  from : Tensor
_refs
_prims
optim._functional
optim._multi_tensor
  from optim: Adam AdamW SGD RMSprop Rprop ASGD Adamax Adadelta Adagrad
_C
  from _declared.engine: DispatchKey DispatchKeySet _ExcludeDispatchKeyGuard _log_api_usage_once _get_tracing_state
      _TensorMeta _nn _get_accelerator _are_functorch_transforms_active _get_default_device
      _get_privateuse1_backend_name _jit_set_profiling_executor _jit_set_profiling_mode _jit_set_texpr_fuser_enabled
      _jit_set_nvfuser_enabled _jit_override_can_fuse_on_cpu _jit_override_can_fuse_on_gpu _jit_can_fuse_on_cpu
      _jit_can_fuse_on_gpu _jit_set_nvfuser_guard_mode _set_math_sdp_allow_fp16_bf16_reduction _functorch
      _distributed_c10d _distributed_rpc _onnx _dynamo _TensorBase _GLIBCXX_USE_CXX11_ABI _len_torch_dispatch_stack
      _VariableFunctions _get_cpu_capability _add_docstr _get_cudnn_enabled
  class Graph Value ScriptObject ListType IntType FloatType StringType Type AnyType OptionalType DictType TupleType
      NoneType BoolType ClassType InterfaceType PyTorchFileWriter FileCheck TensorType PyTorchFileReader
  from _declared.futures: Future
  from jit: JITException=Error ScriptModule
"""
