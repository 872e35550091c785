"""`torch.distributed` in one process: a group of one, in which every collective operation is done at once.

Programs that start a process group, wrap a model in `DistributedDataParallel` and average over ranks run unchanged with
`world_size=1`. A larger world says that it is not there yet.

>>> store = lucid.distributed.HashStore()
>>> lucid.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
>>> x = lucid.ones(2)
>>> lucid.distributed.all_reduce(x)
>>> x, lucid.distributed.get_world_size()
(tensor([1., 1.]), 1)
>>> lucid.distributed.destroy_process_group()
"""

from ._collectives import (
    P2POp,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    gather,
    gather_object,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
)
from ._group import (
    Backend,
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    GroupMember,
    ProcessGroup,
    ReduceOp,
    Work,
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
)
from ._mesh import DeviceMesh, init_device_mesh
from ._stores import FileStore, HashStore, PrefixStore, Store, TCPStore

_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor
default_pg_timeout = ProcessGroup.timeout
_backend = None


def _broadcast_coalesced(process_group, tensors, buffer_size, authoritative_rank=0):
    """In a group of one the tensors are as they should be."""


__all__ = [name for name in globals() if not name.startswith("_") and name != "annotations"]


def __getattr__(name):
    from .. import _declared

    return _declared.look("distributed", name)
