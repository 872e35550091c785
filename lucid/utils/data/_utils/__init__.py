"""Parts of the data loader, where PyTorch has them: programs take `collate.default_collate` from here.

>>> from lucid.utils.data._utils.collate import default_collate
>>> default_collate([1, 2])
tensor([1, 2])
"""

from . import collate

__all__ = ["collate"]
