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
      register_pytree_node TreeSpec PyTree
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
"""
