"""`DataParallel`."""

from itertools import chain

from ... import _C, cuda
from ...cuda._devices import index_of
from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs


class DataParallel(Module):
    """A module whose batches are split along `dim` over CUDA devices, all of them unless device_ids says which; results come
    together on output_device, the first of them by default. Without a GPU `module` itself runs.

    >>> model = lucid.nn.DataParallel(lucid.nn.Linear(2, 1))
    >>> model.module.in_features
    2
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module, self.device_ids, self.dim = module, [], dim
        if not cuda.is_available():
            return
        device_ids = range(cuda.device_count()) if device_ids is None else device_ids
        self.device_ids = [index_of(device) for device in device_ids]
        if not self.device_ids:
            raise RuntimeError("no available devices were found")
        self.output_device = index_of(self.device_ids[0] if output_device is None else output_device)
        self.src_device_obj = _C.device("cuda", self.device_ids[0])
        if len(self.device_ids) == 1:
            module.to(self.src_device_obj)

    def forward(self, *inputs, **kwargs):
        """Call the module on parts of the arguments."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for tensor in chain(self.module.parameters(), self.module.buffers()):
            if tensor.device != self.src_device_obj:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {self.src_device_obj} (device_ids[0]) but found "
                    f"one of them on device: {tensor.device}"
                )
        inputs, kwargs = self.scatter(inputs, kwargs, self.device_ids)
        if not inputs:
            inputs, kwargs = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*inputs[0], **kwargs[0])
        # The module itself computes the first part: it keeps what that writes to its buffers.
        replicas = [self.module, *self.replicate(self.module, self.device_ids[1 : len(inputs)])]
        return self.gather(self.parallel_apply(replicas, inputs, kwargs), self.output_device)

    def replicate(self, module, device_ids):
        """The module on several devices."""
        return replicate(module, device_ids)

    def scatter(self, inputs, kwargs, device_ids):
        """The arguments in parts, one for each device."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        """What the replicas make of the parts."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs, output_device):
        """The results put together."""
        return gather(outputs, output_device, self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """Call a module as `DataParallel` would.

    >>> place = "cuda" if lucid.cuda.is_available() else "cpu"
    >>> lucid.nn.parallel.data_parallel(lucid.nn.ReLU(), lucid.ones(2, 1, device=place)).shape
    lucid.Size([2, 1])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
