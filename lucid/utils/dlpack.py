"""Tensors of other libraries, without copies, by PyTorch's old names.

>>> x = lucid.ones(2)
>>> lucid.utils.dlpack.from_dlpack(lucid.utils.dlpack.to_dlpack(x)).data_ptr() == x.data_ptr()
True
"""

from .._C import from_dlpack
from .._namespace.functions import to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
