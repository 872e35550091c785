"""Arguments in parts, one for each device, and results put together. Autograd goes through: it is `chunk`, copies and `cat`."""

from ... import _C, cuda
from ...cuda._devices import index_of
from ..utils.rnn import PackedSequence


def is_namedtuple(obj):
    """Whether an object is a named tuple.

    >>> lucid.nn.parallel.scatter_gather.is_namedtuple((1, 2))
    False
    """
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def scatter(inputs, target_gpus, dim=0):
    """Inputs in parts: tensors are split along `dim`, also those in tuples, lists and dicts; other objects go to all.

    >>> lucid.nn.parallel.scatter_gather.scatter((1,), [0])
    [(1,)]
    """
    if isinstance(inputs, _C.Tensor):
        return cuda.comm.scatter(inputs, target_gpus, dim=dim)
    if isinstance(inputs, PackedSequence) and len(target_gpus) == 1:  # its sizes stay on the CPU
        return [inputs.to(_C.device("cuda", index_of(target_gpus[0])))]
    if is_namedtuple(inputs):
        return [type(inputs)(*part) for part in zip(*(scatter(x, target_gpus, dim) for x in inputs))]
    if isinstance(inputs, (tuple, list)) and inputs:
        return [type(inputs)(part) for part in zip(*(scatter(x, target_gpus, dim) for x in inputs))]
    if isinstance(inputs, dict) and inputs:
        return [type(inputs)(part) for part in zip(*(scatter(pair, target_gpus, dim) for pair in inputs.items()))]
    return [inputs for _ in target_gpus]


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """Positional and named arguments in as many parts each.

    >>> lucid.nn.parallel.scatter_gather.scatter_kwargs((1,), {"a": 2}, [0])
    (((1,),), ({'a': 2},))
    """
    inputs = scatter(tuple(inputs), target_gpus, dim) if inputs else []
    kwargs = scatter(dict(kwargs), target_gpus, dim) if kwargs else []
    count = max(len(inputs), len(kwargs))
    inputs += [()] * (count - len(inputs))
    return tuple(inputs), tuple([*kwargs, *({} for _ in range(count - len(kwargs)))])


def gather(outputs, target_device, dim=0):
    """The results of the parts put together on a device: tensors along `dim`, also those in tuples, lists and dicts.

    >>> lucid.nn.parallel.scatter_gather.gather([lucid.ones(1), lucid.zeros(1)], "cpu")
    tensor([1., 0.])
    """
    first = outputs[0]
    if isinstance(first, _C.Tensor):
        return cuda.comm.gather(outputs, dim, target_device)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(o) != len(first) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([o[key] for o in outputs], target_device, dim)) for key in first)
    gathered = (gather(list(part), target_device, dim) for part in zip(*outputs))
    return type(first)(*gathered) if is_namedtuple(first) else type(first)(gathered)
