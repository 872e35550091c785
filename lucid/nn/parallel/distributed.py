"""`DistributedDataParallel` in a group of one process."""

from contextlib import contextmanager

from ..modules.module import Module
from .scatter_gather import scatter_kwargs


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over the processes of a group, of which there is one: the module runs as it is, on
    arguments that are brought to the device that device_ids names.

    >>> store = lucid.distributed.HashStore()
    >>> lucid.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    >>> model = lucid.nn.parallel.DistributedDataParallel(lucid.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    >>> lucid.distributed.destroy_process_group()
    """

    def __init__(
        self, module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, init_sync=True, process_group=None,
        bucket_cap_mb=None, find_unused_parameters=False, check_reduction=False, gradient_as_bucket_view=False,
        static_graph=False, delay_all_reduce_named_params=None, param_to_hook_all_reduce=None, mixed_precision=None,
        device_mesh=None, skip_all_reduce_unused_params=False,
    ):  # fmt: skip
        from ...distributed._group import checked

        super().__init__()
        self.process_group = checked(process_group)
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if mixed_precision is not None:
            raise NotImplementedError("DistributedDataParallel: mixed_precision is not in Lucid; use torch.autocast")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        self.module, self.device_ids, self.output_device = module, device_ids, output_device
        self.device_type = next(module.parameters()).device.type
        self.dim, self.broadcast_buffers, self.require_backward_grad_sync = dim, broadcast_buffers, True
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.static_graph = static_graph

    def forward(self, *inputs, **kwargs):
        """Call the module."""
        if self.device_ids:
            (inputs,), (kwargs,) = scatter_kwargs((inputs,), {"": kwargs}, self.device_ids)
            (inputs,), kwargs = inputs, kwargs[""]
        return self.module(*inputs, **kwargs)

    @contextmanager
    def no_sync(self):
        """A block whose gradients are not averaged until the next call outside it: with one process nothing changes."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """A block in which processes may have different numbers of batches."""
        yield

    def register_comm_hook(self, state, hook):
        """Raises: in a group of one nothing is communicated."""
        raise NotImplementedError("DistributedDataParallel.register_comm_hook: a group of one process communicates nothing")

    def _set_static_graph(self):
        self.static_graph = True
