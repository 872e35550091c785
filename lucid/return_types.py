"""The named tuples that ops with several results return.

>>> lucid.max(lucid.tensor([[1.0, 2.0]]), dim=1)
lucid.return_types.max(
values=tensor([2.]),
indices=tensor([1]))
"""

from ._C import _return_types

globals().update(_return_types)
