"""Copies of tensors between devices: to several, in parts, put together, added. Autograd goes through them.

>>> lucid.cuda.comm.gather([lucid.ones(1), lucid.zeros(1)], destination="cpu")
tensor([1., 0.])
"""

from .. import _C
from ._devices import index_of

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _place(device):
    index = index_of(device, allow_cpu=True)
    return _C.device("cpu") if index < 0 else _C.device("cuda", index)


def _written(made, out):
    for place, part in zip(out, made, strict=True):
        place.copy_(part)
    return tuple(out)


def broadcast(tensor, devices=None, *, out=None):
    """The tensor on every device, or in every tensor of `out`.

    >>> lucid.cuda.comm.broadcast(lucid.ones(1), out=[lucid.zeros(1)])
    (tensor([1.]),)
    """
    if (devices is None) == (out is None):
        raise RuntimeError(f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and out={out}")
    return tuple(tensor.to(_place(device)) for device in devices) if out is None else _written([tensor] * len(out), out)


def broadcast_coalesced(tensors, devices, buffer_size=10485760):
    """All tensors on every device: a list for each.

    >>> lucid.cuda.comm.broadcast_coalesced([lucid.ones(1)], ["cpu"])
    [[tensor([1.])]]
    """
    return [[tensor.to(_place(device)) for tensor in tensors] for device in devices]


def reduce_add(inputs, destination=None):
    """The sum of tensors of different devices, on one of them.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.comm.reduce_add([lucid.ones(2, device="cuda")]).tolist() == [1.0, 1.0]
    """
    place, total = _place(destination), None
    for x in inputs:
        if x.shape != inputs[0].shape:
            raise ValueError(f"reduce_add: shapes differ: {tuple(x.shape)} and {tuple(inputs[0].shape)}")
        total = x.to(place) if total is None else total + x.to(place)
    return total


def reduce_add_coalesced(inputs, destination=None, buffer_size=10485760):
    """The sums of the first tensors of all lists, of the second ones, and so on.

    >>> if lucid.cuda.is_available():
    ...     assert lucid.cuda.comm.reduce_add_coalesced([[lucid.ones(2, device="cuda")]])[0].tolist() == [1.0, 1.0]
    """
    return tuple(reduce_add(part, destination) for part in zip(*inputs, strict=True))


def scatter(tensor, devices=None, chunk_sizes=None, dim=0, streams=None, *, out=None):
    """Parts of a tensor, one for each device; chunk_sizes: how long they are. streams: the copies run there.

    >>> lucid.cuda.comm.scatter(lucid.arange(3), ["cpu", "cpu"], [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    from .streams import stream

    if out is not None:
        if devices is not None or chunk_sizes is not None:
            raise RuntimeError("scatter: 'out' says which devices and how long; 'devices' and 'chunk_sizes' must not be given")
        return _written(tensor.split([place.shape[dim] for place in out], dim), out)
    if len(devices) == 1:
        parts = (tensor,)  # also a number
    else:
        parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    made = []
    for part, device, where in zip(parts, devices, streams or [None] * len(parts)):
        with stream(where):
            made.append(part.to(_place(device), non_blocking=True))
    return tuple(made)


def gather(tensors, dim=0, destination=None, *, out=None):
    """Tensors of several devices put together along `dim` on one; numbers come together in a vector.

    >>> lucid.cuda.comm.gather([lucid.tensor(1), lucid.tensor(2)], destination="cpu")
    tensor([1, 2])
    """
    place = _place(destination) if out is None else out.device
    parts = [x.to(place) for x in tensors]
    if parts[0].dim() == 0:
        parts, dim = [x.reshape(1) for x in parts], 0
    return _C.cat(parts, dim) if out is None else out.copy_(_C.cat(parts, dim))
