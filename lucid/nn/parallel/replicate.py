"""A module on several devices."""

from ... import _C
from ...cuda._devices import index_of


class _Replica:
    """A module with its parameters and buffers on another device."""

    def __init__(self, module, tensors):
        self.module, self.tensors = module, tensors

    def __call__(self, *args, **kwargs):
        from ...func import functional_call

        return functional_call(self.module, self.tensors, args, kwargs)


def replicate(network, devices, detach=False):
    """A module on several devices, as callables: gradients of all come together in its parameters, buffers are copies.

    >>> lucid.nn.parallel.replicate(lucid.nn.ReLU(), [])
    []
    """
    tensors = {**dict(network.named_parameters()), **dict(network.named_buffers())}
    first = {name: t.detach() for name, t in tensors.items()} if detach else tensors
    return [
        _Replica(network, {name: t.to(_C.device("cuda", index_of(device))) for name, t in first.items()}) for device in devices
    ]
