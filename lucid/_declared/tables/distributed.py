"""Declared names: `distributed`. The package's docstring explains the lines."""

TABLE = """
distributed.distributed_c10d
  from distributed: ProcessGroup ReduceOp Work Backend GroupMember group Store FileStore TCPStore HashStore
      PrefixStore P2POp is_initialized is_available get_rank get_world_size init_process_group destroy_process_group
      barrier all_reduce all_gather broadcast reduce scatter gather new_group get_backend all_gather_object
      broadcast_object_list gather_object scatter_object_list get_global_rank get_process_group_ranks reduce_scatter
      all_to_all send recv isend irecv batch_isend_irecv
  from distributed._group: _get_default_group _pg_map default_pg_timeout _get_global_rank=get_global_rank
      _rank_not_in_group
  false is_xccl_available is_nccl_available is_mpi_available is_ucc_available is_gloo_available
distributed.constants
  from distributed._group: default_pg_timeout
distributed.rendezvous
  from distributed._group: rendezvous
distributed.device_mesh
  from distributed._mesh: DeviceMesh init_device_mesh
distributed._functional_collectives
  from distributed._functional: AsyncCollectiveTensor all_reduce all_gather_tensor all_to_all_single
      all_to_all_single_autograd permute_tensor wait_tensor reduce_scatter_tensor broadcast
distributed.nn
  from distributed._functional: all_reduce=nn_all_reduce all_gather=nn_all_gather broadcast=nn_broadcast
      reduce_scatter=nn_reduce_scatter
  class RemoteModule(named_children,named_modules)
distributed.nn.functional
  from distributed._functional: all_reduce=nn_all_reduce all_gather=nn_all_gather broadcast=nn_broadcast
      reduce_scatter=nn_reduce_scatter
distributed.utils
  from distributed._functional: _sync_module_states
distributed.tensor tensors over several processes
  class DTensor(from_local,to_local,redistribute) Placement
  from distributed._mesh: DeviceMesh init_device_mesh
  from distributed._placements: Replicate Shard Partial
  call distribute_tensor distribute_module zeros ones empty full rand randn
distributed.tensor.device_mesh
  from distributed._mesh: DeviceMesh init_device_mesh
distributed.tensor.placement_types tensors over several processes
  from distributed._placements: Replicate Shard
  from distributed.tensor: Partial Placement DTensor
  class _StridedShard
distributed.tensor._utils tensors over several processes
  call compute_local_shape_and_global_offset
distributed.tensor.experimental tensors over several processes
  call context_parallel implicit_replication local_map
distributed.tensor.experimental._attention tensors over several processes
  call set_rotate_method context_parallel
distributed.tensor.parallel tensors over several processes
  class ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput PrepareModuleOutput ParallelStyle
  call parallelize_module loss_parallel
distributed.tensor.parallel.style tensors over several processes
  from distributed.tensor.parallel: ColwiseParallel RowwiseParallel SequenceParallel PrepareModuleInput
      PrepareModuleOutput ParallelStyle
distributed._tensor tensors over several processes
  from distributed.tensor: DTensor Replicate Shard Placement Partial distribute_tensor distribute_module
  from distributed._mesh: DeviceMesh init_device_mesh
distributed._tensor.experimental tensors over several processes
  call implicit_replication
distributed._tensor.placement_types
  from distributed.tensor: Replicate Shard Placement Partial
distributed._tensor.api
  from distributed.tensor: DTensor
distributed._composable
distributed._composable.fsdp weights split over several processes
  from distributed.fsdp: FSDPModule fully_shard MixedPrecisionPolicy CPUOffloadPolicy OffloadPolicy
distributed._composable.replicate
distributed._shard weights split over several processes
distributed._shard.sharded_tensor weights split over several processes
  class ShardedTensor Shard
distributed._shard.api
distributed._state_dict_utils
distributed._symmetric_memory memory of several devices
  call enable_symm_mem_for_group
distributed._tools
distributed.fsdp weights split over several processes
  class
      FullyShardedDataParallel(optim_state_dict,optim_state_dict_to_load,rekey_optim_state_dict,summon_full_params,state_dict_type,fsdp_modules,set_state_dict_type,clip_grad_norm_,full_optim_state_dict,scatter_full_optim_state_dict,shard_full_optim_state_dict,flatten_sharded_optim_state_dict)
      FSDPModule UnshardHandle MixedPrecisionPolicy OffloadPolicy CPUOffloadPolicy CPUOffload MixedPrecision
      FullStateDictConfig LocalStateDictConfig ShardedStateDictConfig FullOptimStateDictConfig
      LocalOptimStateDictConfig ShardedOptimStateDictConfig StateDictConfig OptimStateDictConfig StateDictSettings
      FlatParameter
  enum ShardingStrategy FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD _HYBRID_SHARD_ZERO2
  enum BackwardPrefetch BACKWARD_PRE BACKWARD_POST
  enum StateDictType FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT
  enum OptimStateKeyType PARAM_NAME PARAM_ID
  call fully_shard register_fsdp_forward_method share_comm_ctx
distributed.fsdp.fully_sharded_data_parallel weights split over several processes
  from distributed.fsdp: FullyShardedDataParallel CPUOffload MixedPrecision ShardingStrategy BackwardPrefetch
      FullStateDictConfig FullOptimStateDictConfig ShardedStateDictConfig ShardedOptimStateDictConfig
      LocalStateDictConfig StateDictType OptimStateKeyType StateDictSettings
distributed.fsdp.api
  from distributed.fsdp: CPUOffload MixedPrecision ShardingStrategy BackwardPrefetch FullStateDictConfig
      FullOptimStateDictConfig ShardedStateDictConfig ShardedOptimStateDictConfig LocalStateDictConfig StateDictType
      OptimStateKeyType StateDictSettings
distributed.fsdp.wrap weights split over several processes
  class ModuleWrapPolicy CustomPolicy _Policy
  call transformer_auto_wrap_policy size_based_auto_wrap_policy lambda_auto_wrap_policy always_wrap_policy enable_wrap
      wrap _or_policy _module_wrap_policy
distributed.fsdp.sharded_grad_scaler
  from amp: ShardedGradScaler=GradScaler
distributed.fsdp._fully_shard weights split over several processes
distributed.fsdp._common_utils weights split over several processes
  class _FSDPState
  false _is_fsdp_flattened
  call _get_module_fsdp_state
distributed.fsdp._runtime_utils weights split over several processes
  call _lazy_init
distributed.fsdp._unshard_param_utils weights split over several processes
distributed.checkpoint checkpoints of several processes; torch.save and save_sharded write files
  class FileSystemReader FileSystemWriter DefaultLoadPlanner DefaultSavePlanner StorageReader StorageWriter
      LoadPlanner SavePlanner CheckpointException Metadata
  call save load async_save save_state_dict load_state_dict
distributed.checkpoint.state_dict
  from distributed._state_dict: StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict
      set_model_state_dict set_optimizer_state_dict set_state_dict
distributed.checkpoint.stateful
  from distributed._state_dict: Stateful
distributed.checkpoint.default_planner checkpoints of several processes
  class DefaultLoadPlanner DefaultSavePlanner
distributed.checkpoint.format_utils checkpoints of several processes
  class _EmptyStateDictLoadPlanner BroadcastingTorchSaveReader DynamicMetaLoadPlanner
  call _load_state_dict dcp_to_torch_save torch_save_to_dcp
distributed.checkpoint.optimizer checkpoints of several processes
  call load_sharded_optimizer_state_dict
distributed.checkpoint.state_dict_loader checkpoints of several processes
  call load load_state_dict _load_state_dict
distributed.checkpoint.state_dict_saver checkpoints of several processes
  call save save_state_dict async_save
distributed.checkpoint.hf_storage checkpoints of several processes
  class HuggingFaceStorageReader HuggingFaceStorageWriter
distributed.checkpoint._consolidate_hf_safetensors checkpoints of several processes
  call consolidate_safetensors_files
distributed.checkpoint.filesystem checkpoints of several processes
  class FileSystemReader FileSystemWriter
distributed.checkpoint.metadata checkpoints of several processes
  class Metadata STATE_DICT_TYPE
distributed.checkpoint.planner checkpoints of several processes
  class LoadPlanner SavePlanner
distributed.checkpoint.staging checkpoints of several processes
distributed.checkpoint.api
  from distributed.checkpoint: CheckpointException
distributed.algorithms
distributed.algorithms._checkpoint
distributed.algorithms._checkpoint.checkpoint_wrapper
  from distributed._checkpointed: CheckpointImpl CheckpointWrapper apply_activation_checkpointing checkpoint_wrapper
      offload_wrapper
distributed.algorithms.join several processes
  class Join Joinable JoinHook
distributed.algorithms.ddp_comm_hooks
distributed.algorithms.ddp_comm_hooks.default_hooks several processes
  call allreduce_hook bf16_compress_hook bf16_compress_wrapper fp16_compress_hook fp16_compress_wrapper
distributed.algorithms.ddp_comm_hooks.powerSGD_hook several processes
  class PowerSGDState
  call powerSGD_hook batched_powerSGD_hook
distributed.algorithms.ddp_comm_hooks.post_localSGD_hook several processes
  class PostLocalSGDState
  call post_localSGD_hook
distributed.algorithms.model_averaging
distributed.algorithms.model_averaging.averagers several processes
  class ModelAverager PeriodicModelAverager
distributed.optim several processes
  class DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer
distributed.pipelining several processes
  class ScheduleGPipe Schedule1F1B PipelineStage Pipe
  enum SplitPoint BEGINNING END
  call pipeline pipe_split
distributed.rpc several processes
  class RRef TensorPipeRpcBackendOptions WorkerInfo RpcBackendOptions
  enum BackendType TENSORPIPE
  call init_rpc shutdown remote rpc_sync rpc_async get_worker_info
  false is_available _is_current_rpc_agent_set
distributed.rpc.api several processes
  call _all_gather
  same _require_initialized
distributed.autograd several processes
  class context
  call backward get_gradients
  false is_available
distributed.elastic
distributed.elastic.multiprocessing several processes
  class Std SignalException
  call start_processes
distributed.elastic.multiprocessing.errors
  same record
  class ChildFailedError ProcessFailure
distributed.elastic.multiprocessing.api several processes
  class Std SignalException
distributed.elastic.agent
distributed.elastic.rendezvous
distributed.elastic.utils
distributed.launcher several processes
  class LaunchConfig elastic_launch
distributed.launcher.api several processes
  class LaunchConfig elastic_launch
distributed.run
  from distributed._launch: get_args_parser main run parse_args
distributed.launch
  from distributed._launch: main launch=run
distributed.argparse_util
  from distributed._launch: env check_env
distributed.remote_device
distributed.logging_handlers
distributed._tensor.ops
"""
