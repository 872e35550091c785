"""The named tuples that ops with several results return.

>>> lucid.max(lucid.tensor([[1.0, 2.0]]), dim=1)
lucid.return_types.max(
values=tensor([2.]),
indices=tensor([1]))
"""

from ._C import _return_types


def __getattr__(name):
    if name in _return_types:
        return _return_types[name]
    raise AttributeError(f"module 'lucid.return_types' has no attribute {name!r}")


def __dir__():
    return sorted(_return_types)
