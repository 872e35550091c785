"""Declared names: `utils`. The package's docstring explains the lines."""

TABLE = """
utils._foreach_utils
  from _declared.foreach_groups: _group_tensors_by_device_and_dtype _has_foreach_support _device_has_foreach_support
      _get_foreach_kernels_supported_devices _get_fused_kernels_supported_devices
utils._contextlib
  from _declared.contexts: _DecoratorContextManager _NoParamDecoratorContextManager
utils._python_dispatch dispatch below autograd; __torch_function__ and TorchFunctionMode work
  class TorchDispatchMode
  from _declared.contexts: _disable_current_modes=nothing
  false is_traceable_wrapper_subclass
  from _declared.contexts: return_and_correct_aliasing
utils._cxx_pytree
  from utils._pytree: tree_flatten tree_unflatten tree_map tree_leaves tree_map_only tree_structure
      register_pytree_node TreeSpec
  from _declared.private: PyTree
utils._typing_utils
  from _declared.shapes: not_none
utils._traceback
utils._triton
  false has_triton has_triton_package has_triton_tma
utils._import_utils
  from _declared.contexts: dill_available
utils._config_module
utils._ordered_set
  from _declared.contexts: OrderedSet
utils._mode_utils
utils._stats
utils._sympy
utils._sympy.numbers
  from _declared.shapes: IntInfinity
utils._sympy.value_ranges ranges of symbolic numbers
  class ValueRanges
utils._sympy.functions
utils.flop_counter
  from _declared.flops: FlopCounterMode
utils.cpp_extension compiling extensions needs the C++ library of PyTorch; see lucid.config for C
  call load load_inline include_paths library_paths check_compiler_abi_compatibility
  class BuildExtension(with_options) CppExtension CUDAExtension
  none _find_cuda_home
  value CUDA_HOME = None
  value ROCM_HOME = None
utils.collect_env
  from _declared.environment: get_pretty_env_info main get_env_info
utils.bundled_inputs
utils.mobile_optimizer TorchScript's files
  call optimize_for_mobile
utils.mkldnn
utils.throughput_benchmark
utils.weak
  from !weakref: WeakTensorKeyDictionary=WeakKeyDictionary WeakIdKeyDictionary=WeakKeyDictionary
utils.file_baton
utils.backcompat
utils.deterministic
  value fill_uninitialized_memory = True
utils.module_tracker modules that are being called are not tracked
  class ModuleTracker
utils.serialization
utils.serialization.config
utils.viz
utils.backend_registration devices of other vendors
  call rename_privateuse1_backend generate_methods_for_privateuse1_backend
utils.data.dataloader
  from utils.data.processes: _MultiProcessingDataLoaderIter=Workers
  from utils.data.dataloader: _BaseDataLoaderIter=Batches _SingleProcessDataLoaderIter=_Here
  from utils.data: default_collate Dataset IterableDataset Sampler BatchSampler SequentialSampler RandomSampler
      get_worker_info
  from _declared.data: _DatasetKind _InfiniteConstantSampler
utils.data.backward_compatibility
utils.data._utils.worker
  from utils.data.fetch: get_worker_info WorkerInfo _worker_info=_info
utils.data._utils.fetch
  from _declared.data: _MapDatasetFetcher _IterableDatasetFetcher
utils.data._utils.pin_memory
  from utils.data.dataloader: pin_memory=_pinned
utils.data._utils.signal_handling
utils.data.graph data pipes
  call traverse traverse_dps
utils.data.graph_settings data pipes
  call apply_shuffle_settings apply_random_seed get_all_graph_pipes
utils.data.datapipes data pipes
utils.data.datapipes.iter data pipes
  class Batcher Mapper Shuffler IterableWrapper FileLister Collator
utils.data.datapipes.iter.combinatorics data pipes
  class ShufflerIterDataPipe
utils.data.datapipes.datapipe data pipes
  class IterDataPipe MapDataPipe DFIterDataPipe
utils.data.datapipes.utils
utils.data.datapipes.utils.common
  false validate_input_col
utils.data
  from _declared.data: IterDataPipe MapDataPipe _DatasetKind
  same functional_datapipe
  call guaranteed_datapipes_determinism argument_validation
utils
  from _declared.tensors: swap_tensors set_module
utils._pytree
  from _declared.private: PyTree Context SequenceKey MappingKey GetAttrKey _dict_flatten _dict_flatten_with_keys
      _dict_unflatten _list_flatten _list_flatten_with_keys _list_unflatten _tuple_unflatten tree_flatten_with_path
      tree_leaves_with_path tree_map_with_path keystr key_get
  from utils._pytree: SUPPORTED_NODES=_NODES _get_node_type=_node_type _register_pytree_node=register_pytree_node
      _register_namedtuple=register_pytree_node
utils.benchmark random inputs for PyTorch's own kernels, and its Valgrind bindings
  class Fuzzer FuzzedTensor FuzzedParameter FuzzedSparseTensor ParameterAlias CallgrindStats FunctionCounts FunctionCount
      CopyIfCallgrind
utils.benchmark.utils
utils.benchmark.utils.common
  from utils.benchmark.measurement: Measurement TaskSpec ordered_unique select_unit set_torch_threads trim_sigfig
      unit_to_english
utils.benchmark.utils.timer
  from utils.benchmark.timer: Language Timer timer
utils.benchmark.utils.compare
  from utils.benchmark.compare: Colorize Compare
utils.checkpoint
  from _declared.private: check_backward_validity detach_variable get_device_states set_device_states
  value DefaultDeviceType = None
utils.model_zoo
  from _declared.private: tqdm
  from hub: load_state_dict_from_url download_url_to_file
  from _declared.private: _hash_regex=HASH_REGEX HASH_REGEX
utils.data._utils
  none MP_STATUS_CHECK_INTERVAL
utils.data._utils.collate
  from _declared.private: np_str_obj_array_pattern
  from utils.data.collate: collate_tensor_fn=_collate_tensors collate_numpy_array_fn=_collate_arrays
      collate_numpy_scalar_fn=_collate_scalars collate_float_fn=_collate_floats collate_int_fn=_collate_numbers
      collate_str_fn=_collate_texts default_collate_fn_map
  from utils.data: default_collate
hub
  from _declared.private: HASH_REGEX _get_torch_home load=hub_load tqdm
serialization
  from _declared.private: MAP_LOCATION get_unsafe_globals_in_checkpoint
  value DEFAULT_PROTOCOL = 2
  from !pathlib: FILE_LIKE=Path
optim.optimizer
  from _declared.private: ParamsT _use_grad_for_differentiable _default_to_fused_or_foreach
      _get_capturable_supported_devices _get_value _dispatch_sqrt _view_as_real
nn.init
  from _declared.private: _no_grad_uniform_ _no_grad_normal_
nn.modules.transformer
  from _declared.private: _get_activation_fn _get_clones
nn.modules.module
  from nn.modules._base.state: _IncompatibleKeys
  value _EXTRA_STATE_KEY_SUFFIX = '_extra_state'
nn.functional products of scaled float8 matrices
  from _declared.private: grouped_mm
  enum ScalingType TensorWise RowWise BlockWise1x16 BlockWise1x32 BlockWise1x128 BlockWise128x128
  enum SwizzleType NO_SWIZZLE SWIZZLE_32_4_4
  call scaled_mm scaled_grouped_mm
autograd
  from _declared.private: _is_checkpoint_valid _profiler_enabled
  none _disable_profiler
distributions.transforms
  from _declared.private: _InverseTransform
"""
