"""Collective operations in a group of one process: each copies what it would have sent."""

from ._group import GroupMember, ReduceOp, Work, checked, values_of


def _done(group, async_op, result=None):
    return Work(result) if async_op else None


def _outside(group):
    if group == GroupMember.NON_GROUP_MEMBER:
        return True
    checked(group)
    return False


def _peer(rank, what):
    if rank not in (None, 0):
        raise ValueError(f"{what}: rank {rank} is not in a world of 1")


def _copy(into, value):
    if into is not value:
        into.copy_(value.detach().reshape(into.shape) if into.shape != value.shape else value.detach())


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """The sum (or another `ReduceOp`) over all processes, in place: the tensor as it is.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.all_reduce(lucid.ones(1))
    """
    if _outside(group):
        return None
    values_of([tensor])
    return _done(group, async_op, [tensor])


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """`all_reduce` of a list.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.all_reduce_coalesced([lucid.ones(1)])
    """
    if _outside(group):
        return None
    return _done(group, async_op, values_of(tensors))


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """The tensor of one process, in place in all.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.broadcast(lucid.ones(1), 0)
    """
    if _outside(group):
        return None
    _peer(group_src if src is None else src, "broadcast")
    values_of([tensor])
    return _done(group, async_op, [tensor])


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """The sum over all processes, in one.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.reduce(lucid.ones(1), 0)
    """
    if _outside(group):
        return None
    _peer(group_dst if dst is None else dst, "reduce")
    values_of([tensor])
    return _done(group, async_op, [tensor])


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """The tensors of all processes, in a list.

    >>> parts = [lucid.zeros(1)]
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.all_gather(parts, lucid.ones(1))
    >>> parts
    [tensor([1.])]
    """
    if _outside(group):
        return None
    if len(values_of(tensor_list)) != 1:
        raise ValueError(f"all_gather: expected a list of 1 tensor, got {len(tensor_list)}")
    _copy(tensor_list[0], tensor)
    return _done(group, async_op, tensor_list)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """`all_gather` of a list.

    >>> parts = [[lucid.zeros(1)]]
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.all_gather_coalesced(parts, [lucid.ones(1)])
    >>> parts
    [[tensor([1.])]]
    """
    if _outside(group):
        return None
    for into, value in zip(output_tensor_lists[0], input_tensor_list):
        _copy(into, value)
    return _done(group, async_op, output_tensor_lists)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The tensors of all processes, in one tensor.

    >>> whole = lucid.zeros(2)
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.all_gather_into_tensor(whole, lucid.ones(2))
    >>> whole
    tensor([1., 1.])
    """
    if _outside(group):
        return None
    _copy(output_tensor, input_tensor)
    return _done(group, async_op, [output_tensor])


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """The tensors of all processes, in a list of one process.

    >>> parts = [lucid.zeros(1)]
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.gather(lucid.ones(1), parts)
    >>> parts
    [tensor([1.])]
    """
    if _outside(group):
        return None
    _peer(group_dst if dst is None else dst, "gather")
    if not gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    return all_gather(gather_list, tensor, group, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """A tensor of one process's list for each process.

    >>> mine = lucid.zeros(1)
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.scatter(mine, [lucid.ones(1)])
    >>> mine
    tensor([1.])
    """
    if _outside(group):
        return None
    _peer(group_src if src is None else src, "scatter")
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    if len(scatter_list) != 1:
        raise ValueError(f"scatter: expected a list of 1 tensor, got {len(scatter_list)}")
    _copy(tensor, scatter_list[0])
    return _done(group, async_op, [tensor])


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """The sum over all processes of a list, of which each gets one.

    >>> mine = lucid.zeros(1)
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.reduce_scatter(mine, [lucid.ones(1)])
    >>> mine
    tensor([1.])
    """
    return scatter(output, input_list, 0, group, async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):  # noqa: A002 (PyTorch's name)
    """The sum over all processes of a tensor, of which each gets a part.

    >>> mine = lucid.zeros(1)
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.reduce_scatter_tensor(mine, lucid.ones(1))
    >>> mine
    tensor([1.])
    """
    return scatter(output, [input], 0, group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Each process sends a tensor to each.

    >>> parts = [lucid.zeros(1)]
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.all_to_all(parts, [lucid.ones(1)])
    >>> parts
    [tensor([1.])]
    """
    return all_gather_coalesced([output_tensor_list], input_tensor_list, group, async_op)


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False,  # noqa: A002
):  # fmt: skip
    """Each process sends a part of a tensor to each.

    >>> mine = lucid.zeros(2)
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.all_to_all_single(mine, lucid.ones(2))
    >>> mine
    tensor([1., 1.])
    """
    return all_gather_into_tensor(output, input, group, async_op)


def barrier(group=None, async_op=False, device_ids=None):
    """Wait for all processes.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.barrier()
    """
    return None if _outside(group) else _done(group, async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Wait for all processes, and say which did not come.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.monitored_barrier()
    """
    _outside(group)


def all_gather_object(object_list, obj, group=None):
    """The objects of all processes, in a list.

    >>> objects = [None]
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.all_gather_object(objects, {"a": 1})
    >>> objects
    [{'a': 1}]
    """
    if not _outside(group):
        object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """The objects of all processes, in a list of one.

    >>> objects = [None]
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.gather_object(1, objects)
    >>> objects
    [1]
    """
    _peer(group_dst if dst is None else dst, "gather_object")
    all_gather_object(object_gather_list, obj, group)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """The objects of one process, in all.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.broadcast_object_list([1])
    """
    if not _outside(group):
        _peer(group_src if src is None else src, "broadcast_object_list")


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None):
    """An object of one process's list for each process.

    >>> objects = [None]
    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.scatter_object_list(objects, ["a"])
    >>> objects
    ['a']
    """
    if not _outside(group):
        _peer(group_src if src is None else src, "scatter_object_list")
        scatter_object_output_list[0] = scatter_object_input_list[0]


def _to_itself(*args, **kwargs):
    """Raises: a message needs another process.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.send(lucid.ones(1), 0)
    Traceback (most recent call last):
    ValueError: ...
    """
    checked(kwargs.get("group"))
    raise ValueError("Invalid rank: in a world of 1 there is nobody to send to or to receive from")


send = recv = isend = irecv = _to_itself


class P2POp:
    """A message to be sent or received by `batch_isend_irecv`: in a world of one there is nobody to send it to.

    >>> lucid.distributed.P2POp(lucid.distributed.isend, lucid.ones(1), 0).peer
    0
    """

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def batch_isend_irecv(p2p_op_list):
    """Send and receive several messages.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.batch_isend_irecv([])
    []
    """
    return [item.op(item.tensor, item.peer, group=item.group) for item in p2p_op_list]
