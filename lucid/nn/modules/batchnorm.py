"""Batch norms, where PyTorch has them.

>>> from lucid.nn.modules.batchnorm import _BatchNorm
>>> isinstance(lucid.nn.BatchNorm2d(2), _BatchNorm)
True
"""

from .normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm, _BatchNorm, _NormBase

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "_BatchNorm", "_NormBase"]
