"""The process group: who is in it, how it starts and ends. There is one process, rank 0 of 1."""

import datetime
import os
from contextlib import contextmanager
from enum import IntEnum
from urllib.parse import parse_qs, urlparse

from .. import _C
from . import _stores


class DistError(RuntimeError):
    """The base of errors of process groups.

    >>> issubclass(lucid.distributed.DistError, RuntimeError)
    True
    """


class DistBackendError(DistError):
    """An error of what carries messages.

    >>> issubclass(lucid.distributed.DistBackendError, lucid.distributed.DistError)
    True
    """


class DistNetworkError(DistError):
    """An error of the network.

    >>> issubclass(lucid.distributed.DistNetworkError, lucid.distributed.DistError)
    True
    """


class DistStoreError(DistError):
    """An error of a store.

    >>> issubclass(lucid.distributed.DistStoreError, lucid.distributed.DistError)
    True
    """


class ReduceOp(IntEnum):
    """How values of several processes become one.

    >>> lucid.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


ReduceOp.RedOpType = ReduceOp


class Backend(str):
    """The name of what carries messages between processes.

    >>> lucid.distributed.Backend("GLOO")
    'gloo'
    """

    UNDEFINED, GLOO, NCCL, MPI, UCC, XCCL = "undefined", "gloo", "nccl", "mpi", "ucc", "xccl"
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got {name!r}")
        return str.__new__(cls, name.lower())


class Work:
    """An operation that may be under way: in a group of one it is done.

    >>> lucid.distributed._group.Work().wait()
    True
    """

    def __init__(self, result=None):
        self._result = result

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    is_success = is_completed

    def exception(self):
        return None

    def result(self):
        return [] if self._result is None else self._result

    def synchronize(self):
        pass

    def get_future(self):
        from ..futures import Future

        future = Future()
        future.set_result(self._result)
        return future


class ProcessGroup:
    """A group of processes: this one.

    >>> lucid.distributed.ProcessGroup("gloo").size()
    1
    """

    timeout = datetime.timedelta(minutes=30)

    def __init__(self, backend="gloo", name="0", store=None):
        self._backend, self.group_name, self.store = Backend(backend), name, store

    def rank(self):
        return 0

    def size(self):
        return 1

    def name(self):
        return str(self._backend)

    def __repr__(self):
        return f"<ProcessGroup {self.group_name}: rank 0 of 1, {self._backend}>"


default_pg_timeout = ProcessGroup.timeout
_pg_map = {}


class GroupMember:
    """Marks of groups: the whole world, and a group this process is not in.

    >>> lucid.distributed.GroupMember.NON_GROUP_MEMBER is not None
    True
    """

    WORLD = None
    NON_GROUP_MEMBER = -100


class _Group:
    """`group.WORLD`: the group of all processes, or None before there is one."""

    @property
    def WORLD(self):  # noqa: N802 (PyTorch's name)
        return GroupMember.WORLD

    @WORLD.setter
    def WORLD(self, value):  # noqa: N802
        GroupMember.WORLD = value


group = _Group()


def is_available():
    """Whether there are process groups: of one process.

    >>> lucid.distributed.is_available()
    True
    """
    return True


def is_initialized():
    """Whether `init_process_group` was called.

    >>> lucid.distributed.is_initialized()
    False
    """
    return GroupMember.WORLD is not None


def _get_default_group():
    if GroupMember.WORLD is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return GroupMember.WORLD


def checked(group):
    """The group, or the default one.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed._group.checked(None).size()
    1
    """
    return _get_default_group() if group is None or group is GroupMember.WORLD else group


def _rank_not_in_group(group):
    return group == GroupMember.NON_GROUP_MEMBER


def _one(world_size):
    if world_size != 1:
        raise NotImplementedError(
            f"init_process_group: a world of {world_size} processes is not there yet; Lucid has process groups of one"
        )


def rendezvous(url, rank=-1, world_size=-1, **kwargs):
    """Yields (store, rank, world size) for an address: env://, file://PATH or tcp://host:port.

    >>> store, rank, size = next(lucid.distributed._group.rendezvous("tcp://localhost:29500", 0, 1))
    >>> rank, size
    (0, 1)
    """
    parts = urlparse(url)
    query = {key: value[0] for key, value in parse_qs(parts.query).items()}
    rank = int(query.get("rank", rank))
    world_size = int(query.get("world_size", world_size))
    if parts.scheme == "env":
        for name, value in (("RANK", rank), ("WORLD_SIZE", world_size)):
            if value == -1 and name not in os.environ:
                raise ValueError(
                    f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
                    "but not set"
                )
        rank = int(os.environ["RANK"]) if rank == -1 else rank
        world_size = int(os.environ["WORLD_SIZE"]) if world_size == -1 else world_size
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            if name not in os.environ:
                raise ValueError(
                    f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} expected, "
                    "but not set"
                )
        _one(world_size)
        store = _stores.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world_size)
    elif parts.scheme == "file":
        if not parts.path:
            raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
        _one(world_size)
        store = _stores.FileStore(parts.path, world_size)
    elif parts.scheme == "tcp":
        if rank == -1 or world_size == -1:
            raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: rank or world size missing")
        _one(world_size)
        store = _stores.TCPStore(parts.hostname, parts.port, world_size)
    else:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    yield store, rank, world_size


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None,
    device_id=None, _ranks=None,
):  # fmt: skip
    """Start the group of processes: this one, rank 0 of 1. The environment, a file, an address or a store says so.

    >>> lucid.distributed.init_process_group("gloo", store=lucid.distributed.HashStore(), rank=0, world_size=1)
    >>> lucid.distributed.get_rank()
    0
    >>> lucid.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None:
        if world_size < 1 or rank < 0:
            raise AssertionError("world_size and rank must be given if a store is")
    else:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size))
    _one(world_size)
    if rank != 0:
        raise ValueError(f"init_process_group: rank {rank} is not in a world of 1")
    GroupMember.WORLD = ProcessGroup(backend or "gloo", "0", store)
    _pg_map[GroupMember.WORLD] = (backend or "gloo", store)


def destroy_process_group(group=None):
    """End a group; without an argument, all.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.destroy_process_group()
    ...     lucid.distributed.is_initialized()
    False
    """
    world = _get_default_group()
    if group is None or group is world:
        GroupMember.WORLD = None
        _pg_map.clear()
    else:
        _pg_map.pop(group, None)


@contextmanager
def alone():
    """A block with a group of this process.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.get_world_size()
    1
    """
    init_process_group("gloo", store=_stores.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        if is_initialized():
            destroy_process_group()


def get_rank(group=None):
    """The number of this process in a group: 0.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.get_rank()
    0
    """
    if _rank_not_in_group(group):
        return -1
    return checked(group).rank()


def get_world_size(group=None):
    """How many processes a group has: 1.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.get_world_size()
    1
    """
    if _rank_not_in_group(group):
        return -1
    return checked(group).size()


def get_backend(group=None):
    """The name given to `init_process_group`.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.get_backend()
    'gloo'
    """
    return checked(group)._backend


def get_backend_config(group=None):
    """The same for every kind of device, as text.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.get_backend_config()
    'cpu:gloo,cuda:gloo'
    """
    return ",".join(f"{device}:{get_backend(group)}" for device in ("cpu", "cuda"))


def get_process_group_ranks(group):
    """The ranks of a group.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.get_process_group_ranks(None)
    [0]
    """
    checked(group)
    return [0]


def get_global_rank(group, group_rank):
    """The rank in the world of a rank of a group.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.get_global_rank(None, 0)
    0
    """
    checked(group)
    if group_rank != 0:
        raise ValueError(f"Group rank {group_rank} is not part of group")
    return 0


get_group_rank = get_global_rank


def get_node_local_rank(fallback_rank=None):
    """The rank on this machine, from LOCAL_RANK.

    >>> lucid.distributed.get_node_local_rank(0)
    0
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank")
    return int(fallback_rank)


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, **settings):
    """A group of some of the processes.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.new_group([0]).size()
    1
    """
    world = _get_default_group()
    ranks = [0] if ranks is None else list(ranks)
    if any(rank != 0 for rank in ranks):
        raise ValueError(f"new_group: the world has rank 0, got {ranks}")
    if not ranks:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(backend or world._backend, str(len(_pg_map)), world.store)
    _pg_map[made] = (made._backend, made.store)
    return made


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, **settings):
    """The world in groups of a size: one group of one.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.new_subgroups(1)[0].size()
    1
    """
    if group_size not in (None, 1):
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size (1)")
    mine = new_group([0], backend=backend)
    return mine, [mine]


def is_torchelastic_launched():
    """Whether a launcher started this process.

    >>> lucid.distributed.is_torchelastic_launched()
    False
    """
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_gloo_available():
    """Whether programs may name Gloo: a group of one needs nothing to carry messages.

    >>> lucid.distributed.is_gloo_available()
    True
    """
    return True


def _is_absent():
    """Whether there is such a library: no.

    >>> lucid.distributed.is_mpi_available()
    False
    """
    return False


is_mpi_available = is_nccl_available = is_ucc_available = is_xccl_available = _is_absent


def is_backend_available(backend):
    """Whether a backend can be named: gloo.

    >>> lucid.distributed.is_backend_available("gloo"), lucid.distributed.is_backend_available("mpi")
    (True, False)
    """
    return str(backend).lower() == "gloo"


def values_of(tensor_list):
    """A list of tensors, checked.

    >>> lucid.distributed._group.values_of([lucid.ones(1)])
    [tensor([1.])]
    """
    if not isinstance(tensor_list, (list, tuple)) or not all(isinstance(t, _C.Tensor) for t in tensor_list):
        raise TypeError("Invalid function argument. Expected parameter of type List[torch.Tensor]")
    return list(tensor_list)
