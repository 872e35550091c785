"""`torch.utils.flop_counter`: the class is there for annotations and `isinstance`."""


class FlopCounterMode:
    """Raises: the ops of a call are not counted here.

    >>> lucid.utils.flop_counter.FlopCounterMode()
    Traceback (most recent call last):
    NotImplementedError: ...
    """

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("utils.flop_counter.FlopCounterMode is not in Lucid: ops are not counted")
