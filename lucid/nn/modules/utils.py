"""Settings with one value for all dimensions or one per dimension, by PyTorch's names; and keys of state dicts.

>>> from lucid.nn.modules.utils import _pair
>>> _pair(3), _pair((1, 2))
((3, 3), (1, 2))
"""

from ._base.sizes import pair as _pair
from ._base.sizes import quadruple as _quadruple
from ._base.sizes import single as _single
from ._base.sizes import sizes as _ntuple
from ._base.sizes import triple as _triple

__all__ = ["_ntuple", "_pair", "_quadruple", "_single", "_triple", "consume_prefix_in_state_dict_if_present"]


def _reverse_repeat_tuple(t, n):
    return tuple(v for v in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Take a prefix off the names of a state dict, in place: what a `DataParallel` saved is what its module loads.

    >>> from lucid.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = lucid.nn.DataParallel(lucid.nn.Linear(1, 1)).state_dict()
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> list(state)
    ['weight', 'bias']
    """
    for name in list(state_dict):
        if name.startswith(prefix):
            state_dict[name[len(prefix) :]] = state_dict.pop(name)
    metadata = getattr(state_dict, "_metadata", {})
    for name in list(metadata):
        if name and (name == prefix.replace(".", "") or name.startswith(prefix)):
            metadata[name[len(prefix) :]] = metadata.pop(name)
