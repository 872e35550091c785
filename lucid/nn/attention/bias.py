"""Causal masks for queries and keys of different lengths.

>>> lucid.nn.attention.bias.causal_lower_right(1, 2)._materialize()
tensor([[True, True]])
"""

from enum import IntEnum, auto

from ... import _C

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal starts: in the upper left corner, or where it ends in the lower right one.

    >>> lucid.nn.attention.bias.CausalVariant.UPPER_LEFT.name
    'UPPER_LEFT'
    """

    UPPER_LEFT = auto()
    LOWER_RIGHT = auto()


class CausalBias:
    """A causal mask by its kind and lengths; `scaled_dot_product_attention` takes `bias._materialize()`.

    >>> lucid.nn.attention.bias.CausalBias(lucid.nn.attention.bias.CausalVariant.UPPER_LEFT, 2, 2)._materialize()
    tensor([[ True, False],
            [ True,  True]])
    """

    def __init__(self, variant, seq_len_q, seq_len_kv):
        self.variant, self.seq_len_q, self.seq_len_kv = CausalVariant(variant), seq_len_q, seq_len_kv

    @property
    def shape(self):
        return (self.seq_len_q, self.seq_len_kv)

    def _materialize(self, device=None):
        offset = self.seq_len_kv - self.seq_len_q if self.variant is CausalVariant.LOWER_RIGHT else 0
        return _C.ones(self.seq_len_q, self.seq_len_kv, dtype=_C.bool, device=device).tril(offset)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        mask = [a._materialize() if isinstance(a, CausalBias) else a for a in args]
        named = {n: v._materialize() if isinstance(v, CausalBias) else v for n, v in (kwargs or {}).items()}
        return func(*mask, **named)

    __lucid_function__ = __torch_function__


def causal_upper_left(*size):
    """A causal mask whose diagonal starts in the upper left corner.

    >>> lucid.nn.attention.bias.causal_upper_left(1, 2)._materialize()
    tensor([[ True, False]])
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size):
    """A causal mask whose diagonal ends in the lower right corner.

    >>> lucid.nn.attention.bias.causal_lower_right(1, 2).shape
    (1, 2)
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
