"""Collectives that give a new tensor, with gradients: in a group of one, copies."""

from ._group import ReduceOp, checked


class AsyncCollectiveTensor:
    """The class of PyTorch's results that are waited for, for `isinstance`.

    >>> isinstance(lucid.ones(1), lucid.distributed._functional_collectives.AsyncCollectiveTensor)
    False
    """


def _alone(tensor):
    return tensor.clone()


def all_reduce(self, reduceOp, group=None, tag=""):  # noqa: N803 (PyTorch's name)
    """The sum over all processes.

    >>> lucid.distributed._functional_collectives.all_reduce(lucid.ones(1), "sum")
    tensor([1.])
    """
    return _alone(self)


def all_gather_tensor(self, gather_dim, group=None, tag=""):
    """The tensors of all processes behind each other.

    >>> lucid.distributed._functional_collectives.all_gather_tensor(lucid.ones(1), 0)
    tensor([1.])
    """
    return _alone(self)


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group=None, tag=""):  # noqa: N803
    """The part of this process of the sum over all.

    >>> lucid.distributed._functional_collectives.reduce_scatter_tensor(lucid.ones(1), "sum", 0)
    tensor([1.])
    """
    return _alone(self)


def all_to_all_single(self, output_split_sizes=None, input_split_sizes=None, group=None, tag=""):
    """Parts from each process for each.

    >>> lucid.distributed._functional_collectives.all_to_all_single(lucid.ones(1))
    tensor([1.])
    """
    return _alone(self)


all_to_all_single_autograd = all_to_all_single


def permute_tensor(self, src_dst, group=None, tag=""):
    """The tensor of the process that sends to this one.

    >>> lucid.distributed._functional_collectives.permute_tensor(lucid.ones(1), [0])
    tensor([1.])
    """
    return _alone(self)


def broadcast(self, src, group=None, tag=""):
    """The tensor of one process.

    >>> lucid.distributed._functional_collectives.broadcast(lucid.ones(1), 0)
    tensor([1.])
    """
    return _alone(self)


def wait_tensor(tensor):
    """The tensor, when it is there.

    >>> lucid.distributed._functional_collectives.wait_tensor(lucid.ones(1))
    tensor([1.])
    """
    return tensor


def nn_all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The sum over all processes, with a gradient.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.nn.all_reduce(lucid.ones(1))
    tensor([1.])
    """
    checked(group)
    return _alone(tensor)


def nn_all_gather(tensor, group=None):
    """The tensors of all processes, with gradients.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.nn.all_gather(lucid.ones(1))
    (tensor([1.]),)
    """
    checked(group)
    return (_alone(tensor),)


def nn_broadcast(tensor, src, group=None):
    """The tensor of one process, with a gradient.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.nn.broadcast(lucid.ones(1), 0)
    tensor([1.])
    """
    checked(group)
    return _alone(tensor)


def nn_reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """The part of this process of the sum over all, with a gradient.

    >>> with lucid.distributed._group.alone():
    ...     lucid.distributed.nn.reduce_scatter(lucid.zeros(1), [lucid.ones(1)])
    tensor([1.])
    """
    checked(group)
    return _alone(input_list[0])


def _sync_module_states(module, process_group, broadcast_bucket_size=0, src=0, params_and_buffers_to_ignore=(), **kwargs):
    """In a group of one all processes have the same weights."""
