"""Declared names: devices and backends. The package's docstring explains the lines."""

TABLE = """
cpu
  from _declared.cpu: is_available is_initialized device_count current_device set_device synchronize Stream
      StreamContext stream current_stream
  from cuda.amp: amp=*module*
mtia the accelerator MTIA is not supported
  false is_available is_initialized
  none synchronize empty_cache
backends.opt_einsum
  value enabled = False
  value strategy = None
  false is_available
  none get_opt_einsum
backends.quantized
  value engine = 'none'
  value supported_engines = ['none']
backends
  value fp32_precision = 'none'
backends.xeon
backends.miopen
  false is_available
  value immediate = False
backends.cusparselt
  false is_available
  none version
backends.xnnpack
  value enabled = False
backends.kleidiai
  false is_available
backends.nnpack
  false is_available
  from _declared.contexts: flags=nothing
backends.mha
  false get_fastpath_enabled
  none set_fastpath_enabled
backends.python_native
cuda handles and memory that PyTorch's libraries share
  from _declared.cuda: _lazy_call _initialized _is_in_bad_fork=bad_fork
  from cuda: _lazy_init=init
  from cuda._devices: _get_device_index=index_of
  from cuda.memory: host_memory_stats_as_nested_dict=host_memory_stats
  none reset_peak_host_memory_stats reset_accumulated_host_memory_stats
  true _is_compiled
  call current_blas_handle current_solver_handle
  value has_half = True
  value has_magma = False
cuda.random
  from cuda: get_rng_state_all set_rng_state_all manual_seed manual_seed_all seed seed_all get_rng_state set_rng_state
      initial_seed
cuda.nccl no NCCL here
  false is_available
  call version all_reduce broadcast
cuda.jiterator CUDA code of programs
  call _create_jit_fn
cuda.tunable
  false is_enabled
  none enable
cuda.sparse
cuda.amp.common
  from _declared.cuda: amp_definitely_not_available
cuda.amp.grad_scaler
  from cuda.amp: GradScaler
  from amp.grad_scaler: OptState
cuda.amp.autocast_mode
  from cuda.amp: autocast custom_fwd custom_bwd
cuda._utils
  from cuda._devices: _get_device_index=index_of
mps
  none empty_cache synchronize set_per_process_memory_fraction
  from _declared.cuda: current_allocated_memory=zero driver_allocated_memory=zero recommended_max_memory=zero
      get_rng_state=no_mps set_rng_state=no_mps seed=no_mps
xpu
  none empty_cache synchronize reset_peak_memory_stats manual_seed_all seed seed_all
  false is_bf16_supported is_current_stream_capturing is_initialized
  from _declared.cuda: memory_allocated=zero memory_reserved=zero max_memory_allocated=zero max_memory_reserved=zero
      current_device=no_xpu get_device_capability=no_xpu get_device_name=no_xpu get_device_properties=no_xpu
      device=no_xpu set_device=no_xpu get_rng_state=no_xpu set_rng_state=no_xpu mem_get_info=no_xpu
      get_rng_state_all=no_states set_rng_state_all=no_xpu Stream=Stream Event=Event stream=no_xpu
      current_stream=no_xpu memory_stats=no_xpu
accelerator.memory
  from accelerator: empty_cache empty_host_cache get_memory_info max_memory_allocated max_memory_reserved memory_allocated
      memory_reserved memory_stats reset_accumulated_memory_stats reset_peak_memory_stats
accelerator.graphs
  from accelerator: Graph
backends.mps
  false is_macos_or_newer is_macos13_or_newer
backends.cuda
  class SDPAParams
  false can_use_flash_attention can_use_efficient_attention can_use_cudnn_attention is_flash_attention_available
"""
