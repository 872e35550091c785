"""`lucid.ops`: ops by name, `lucid.ops.aten.add.Tensor` for those of the engine, `lucid.ops.mine.op` for those of programs.

>>> lucid.ops.aten.add.Tensor(lucid.ones(1), lucid.ones(1))
tensor([2.])
>>> lucid.ops.aten.add
<OpOverloadPacket(op='aten.add')>
"""

from .packets import OpOverload, OpOverloadPacket, ops


class HigherOrderOperator:
    """PyTorch's class of ops that take functions, for `isinstance`.

    >>> isinstance(lucid.cond, lucid._ops.HigherOrderOperator)
    False
    """


__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket", "ops"]
