"""Instance norms, where PyTorch has them.

>>> from lucid.nn.modules.instancenorm import _InstanceNorm
>>> isinstance(lucid.nn.InstanceNorm2d(2), _InstanceNorm)
True
"""

from .normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "_InstanceNorm"]
