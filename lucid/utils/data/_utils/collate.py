"""What makes batches of samples, where PyTorch has it.

>>> lucid.utils.data._utils.collate.default_collate([1, 2])
tensor([1, 2])
"""

from ..collate import collate, default_collate, default_convert

__all__ = ["collate", "default_collate", "default_convert"]
