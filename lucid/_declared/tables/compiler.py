"""Declared names: `jit`, `fx`, `compiler`, `export`, `onnx`. The package's docstring explains the lines."""

TABLE = """
_logging
  none set_logs trace_structured warning_once
  from _declared.dynamo: getArtifactLogger
_guards
  from _declared.dynamo: CompileContext
  none detect_fake_mode
_decomp decompositions into other ops
  value decomposition_table = {}
  call get_decompositions register_decomposition core_aten_decompositions
_higher_order_ops
  from : cond while_loop
  call associative_scan scan flex_attention
  from _declared.shapes: out_dtype
_subclasses
  from _declared.shapes: FakeTensor FakeTensorMode
_subclasses.fake_tensor tensors without memory are made on device "meta"
  false is_fake
  from _declared.shapes: FakeTensor FakeTensorMode
  class FakeTensorConverter DataDependentOutputException
_subclasses.functional_tensor
  class FunctionalTensor
_functorch
_functorch.aot_autograd ahead-of-time graphs
  call aot_function aot_module aot_module_simplified
_functorch.deprecated
  from func: vjp jvp jacrev jacfwd hessian grad grad_and_value functionalize
  from : vmap
  from func.functional_modules: make_functional make_functional_with_buffers combine_state_for_ensemble
_functorch.make_functional
  from func.functional_modules: FunctionalModule FunctionalModuleWithBuffers make_functional
      make_functional_with_buffers combine_state_for_ensemble
_functorch.python_key tracing through ops; fx traces modules
  call make_fx
_functorch.config
_functorch.utils
_functorch.vmap
  from : vmap
_functorch.apis
  from : vmap
  from func: grad grad_and_value
_functorch.predispatch
_functorch.pyfunctorch
_functorch.eager_transforms
  from func: grad grad_and_value vjp jvp jacrev jacfwd hessian
_functorch._aot_autograd
_functorch.functional_call
  from func: functional_call stack_module_state
compiler
  false is_exporting is_dynamo_compiling
  from _declared.dynamo: is_compiling
  same disable allow_in_graph assume_constant_result substitute_in_graph nested_compile_region wrap_numpy
  none cudagraph_mark_step_begin set_stance save_cache_artifacts load_cache_artifacts keep_portable_guards_unsafe
  from _declared.dynamo: reset list_backends compile
  call load_compiled_function
compiler.config
  value force_disable_caches = False
_compile
_dynamo
  same disable allow_in_graph assume_constant_result forbid_in_graph disallow_in_graph run optimize_assert
      substitute_in_graph nonstrict_trace dont_skip_tracing
  none mark_dynamic mark_static mark_static_address maybe_mark_dynamic mark_unbacked graph_break
  from _declared.dynamo: is_compiling reset list_backends optimize OptimizedModule explain
  call export register_backend
_dynamo.config
  value cache_size_limit = 8
  value recompile_limit = 8
  value accumulated_cache_size_limit = 256
  value suppress_errors = False
  value verbose = False
  value capture_scalar_outputs = False
  value capture_dynamic_output_shape_ops = False
  value automatic_dynamic_shapes = True
  value assume_static_by_default = True
  value optimize_ddp = True
  value inline_inbuilt_nn_modules = True
  value skip_fwd_side_effects_in_bwd_under_checkpoint = False
  value compiled_autograd = False
  from _declared.dynamo: patch
_dynamo.eval_frame
  from _declared.dynamo: OptimizedModule
  same disable innermost_fn
_dynamo.utils
  from _declared.dynamo: is_compile_supported
  value counters = {}
_dynamo.external_utils
  from _declared.dynamo: is_compiling
_dynamo.testing
  from _declared.dynamo: CompileCounter
_dynamo.backends
_dynamo.backends.registry
  from _declared.dynamo: list_backends
_dynamo.decorators
  same disable allow_in_graph
_dynamo.exc
  from _declared.dynamo: TorchDynamoException BackendCompilerFailed Unsupported
      TensorifyScalarRestartAnalysis=TorchDynamoException UserError=TorchDynamoException
_dynamo._trace_wrapped_higher_order_op
  from _declared.dynamo: TransformGetItemToIndex
_dynamo.compiled_autograd
  value compiled_autograd_enabled = False
  value in_compiled_autograd_region = False
_inductor
  none cudagraph_mark_step_begin
  from _declared.dynamo: list_mode_options list_options
  call compile aoti_compile_and_package
_inductor.config
  value triton = {}
_inductor.utils
  from _declared.dynamo: fresh_inductor_cache
_inductor.cpu_vec_isa
  false pick_vec_isa
_inductor.runtime
_inductor.runtime.cache_dir_utils
  from _declared.dynamo: cache_dir
_inductor.codecache
_inductor.exc
  class InductorError
export programs without Python; lucid.compile records functions
  class ExportedProgram ExportGraphSignature ModuleCallEntry ShapesCollection AdditionalInputs
  enum _DimHint AUTO DYNAMIC STATIC
  from _declared.shapes: Dim
  call export export_for_training save load register_dataclass unflatten draft_export
  same custom_class
export._trace programs without Python
  call _export
export.decomp_utils programs without Python
  class CustomDecompTable
export.dynamic_shapes
  from _declared.shapes: Dim
export.graph_signature
export.unflatten
export.passes
jit TorchScript's graphs; fx.symbolic_trace records modules, lucid.compile functions
  call _get_trace_graph
jit.annotations
  from !typing: List Dict Optional Tuple Union Any
  from _declared.dynamo: BroadcastingList1=BroadcastingList BroadcastingList2=BroadcastingList
      BroadcastingList3=BroadcastingList
jit.frontend TorchScript's compiler
  call get_jit_def get_default_args
  class UnsupportedNodeError NotSupportedError
jit._recursive TorchScript's compiler
  from _declared.dynamo: concrete_type_store
  call wrap_cpp_module create_script_module
jit._script
  from jit: ScriptModule RecursiveScriptModule ScriptFunction script
jit._trace
  from jit: trace trace_module TopLevelTracedModule
  none _trace_module_map
jit._serialization
jit.mobile TorchScript's files
jit._state
  none disable enable
fx.experimental
fx.experimental.proxy_tensor tracing through ops; fx traces modules
  none get_proxy_mode get_innermost_proxy_mode
  call make_fx
  from _declared.contexts: disable_proxy_modes_tracing=nothing
  class PythonKeyTracer ProxyTorchDispatchMode
fx.experimental.symbolic_shapes shapes are plain numbers
  class ShapeEnv DimDynamic StatelessSymbolicContext SymNode EqualityConstraint ConstraintViolationError
  from _declared.shapes: GuardOnDataDependentSymNode free_symbols free_unbacked_symbols guard_or_false=truth
      guard_or_true=truth statically_known_true=truth guard_size_oblivious=truth guard_int=same_value guard_bool=truth
      is_symbolic has_free_symbols has_hint definitely_true=truth definitely_false=falsehood
fx.experimental.optimization
  from nn.utils.fusion: fuse_conv_bn_eval
fx.experimental._config
fx.passes
fx.passes.infra
fx.passes.infra.pass_base
  from _declared.shapes: PassResult PassBase
fx.passes.infra.pass_manager
fx.passes.shape_prop
  from fx._shape_prop: ShapeProp TensorMetadata
fx.passes.graph_drawer drawing needs pydot
  class FxGraphDrawer
fx.passes.split_module splitting of graphs
  call split_module
fx.passes.tools_common
fx.operator_schemas
fx.traceback
  value has_preserved_node_meta = False
fx._pytree
  from fx._extra: register_pytree_flatten_spec tree_flatten_spec _dict_flatten_spec _list_flatten_spec
      _tuple_flatten_spec
fx._compatibility
  from fx._extra: compatibility
fx.immutable_collections
  from fx.node: immutable_list immutable_dict
onnx export to ONNX comes later
  call export dynamo_export export_to_pretty_string save_diagnostics
  none register_custom_op_symbolic unregister_custom_op_symbolic
  false is_in_onnx_export is_onnxrt_backend_supported
  class ONNXProgram JitScalarType ExportOptions
  enum OperatorExportTypes ONNX ONNX_ATEN ONNX_ATEN_FALLBACK ONNX_FALLTHROUGH
  enum TensorProtoDataType UNDEFINED FLOAT UINT8 INT8 UINT16 INT16 INT32 INT64 STRING BOOL FLOAT16 DOUBLE
  enum TrainingMode EVAL PRESERVE TRAINING
  from _declared.dynamo: OnnxExporterError
  from _declared.contexts: select_model_mode_for_export=nothing
onnx.errors
  from _declared.dynamo: OnnxExporterError UnsupportedOperatorError=OnnxExporterError
      SymbolicValueError=OnnxExporterError
onnx.symbolic_helper export to ONNX comes later
  same parse_args quantized_args
  value cast_pytorch_to_onnx = {}
  call _get_tensor_sizes _maybe_get_const _unimplemented _is_constant _get_const _slice_helper
onnx.operators
  from _declared.shapes: shape_as_tensor reshape_from_tensor_shape
onnx.utils export to ONNX comes later
  call export
onnx._globals
onnx.symbolic_opset9 export to ONNX comes later
  call masked_fill softmax dropout select squeeze unsqueeze expand add mul div sub reshape
onnx.symbolic_opset11 export to ONNX comes later
  call select squeeze unsqueeze add hardtanh
onnx.symbolic_opset12 export to ONNX comes later
  call dropout
onnx.symbolic_opset13 export to ONNX comes later
  call softmax
onnx.symbolic_opset14 export to ONNX comes later
"""
