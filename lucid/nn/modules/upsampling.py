"""Upsampling, where PyTorch has it.

>>> from lucid.nn.modules.upsampling import Upsample
>>> Upsample is lucid.nn.Upsample
True
"""

from .shape import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
