"""`DataParallel`."""

from ... import cuda
from ..modules.module import Module


class DataParallel(Module):
    """A module whose batches would be split over GPUs: `module` itself runs, on the CPU, as PyTorch does without GPUs.

    >>> model = lucid.nn.DataParallel(lucid.nn.Linear(2, 1))
    >>> model(lucid.ones(3, 2)).shape, model.module.in_features
    (lucid.Size([3, 1]), 2)
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids and cuda.is_available():
            raise NotImplementedError(f"DataParallel: modules run on the CPU, got device_ids={device_ids}")
        self.module, self.device_ids = module, []

    def forward(self, *inputs, **kwargs):
        """Call the module."""
        return self.module(*inputs, **kwargs)
