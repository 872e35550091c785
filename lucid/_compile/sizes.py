"""Calls with inputs of other sizes (dynamic=True): the function's calls are made again in C, without its Python.

The first two traces for different leading sizes are compared, call by call. If the function has not looked at a size, and both
did the same calls with the same arguments, it does them for every size: a new one is traced by making the calls again, and
gets kernels of its own. A function that looks at sizes (`x.shape`, `len(x)`, a slice) is traced anew for every size.
"""

from .. import _C
from .arguments import unflatten


class OtherForm(Exception):
    """A call gave something of another form for this size: the function itself must run.

    >>> raise lucid._compile.sizes.OtherForm
    Traceback (most recent call last):
    lucid._compile.sizes.OtherForm
    """


class Calls:
    """What a trace recorded, in the place of the watch that it had: guards hold, nothing is born outside.

    >>> lucid._compile.sizes.Calls(None, None, "tensor", ()).is_born(3)
    True
    """

    grew, changed = False, None

    def __init__(self, calls, held, form, leads):
        self.calls, self.held, self.form, self.leads, self.sure = calls, held, form, leads, False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def guards(self):
        return self.held

    def is_born(self, o):
        return True

    def run(self, inputs):
        made = self.calls.run(inputs)
        if made is None:
            raise OtherForm
        return unflatten(self.form, iter(made))


class Sizes:
    """The records of one function, by everything of a call but the leading sizes of its tensors.

    >>> sizes = lucid._compile.sizes.Sizes()
    >>> sizes.find("tensor", [lucid.ones(2)]) is None
    True
    """

    MOST = 16  # kinds of calls that are remembered

    def __init__(self):
        self.known = {}

    @staticmethod
    def key(structure, tensors):
        same = tuple(next(i for i, other in enumerate(tensors) if other is t) for t in tensors)
        kinds = tuple((t.dtype, t.dim(), tuple(t.shape[1:]), t.requires_grad, t.device) for t in tensors)
        return structure, same, kinds, _C._plan_modes()

    @staticmethod
    def leads(tensors):
        return tuple(t.shape[0] if t.dim() else None for t in tensors)

    def find(self, structure, tensors):
        """The record that can be made again for these tensors."""
        found = self.known.get(self.key(structure, tensors))
        if not found or not found.sure or found.held.check() >= 0:
            return None
        now = self.leads(tensors)
        fixed = any(a != b and not moved for a, b, moved in zip(now, found.leads, found.moving))
        return None if fixed or 0 in now or 1 in now else found  # none and one are special in many ways

    def add(self, structure, tensors, calls, held, form):
        """After a trace of the function itself. calls: None if it looked at a size."""
        key, leads = self.key(structure, tensors), self.leads(tensors)
        made = Calls(calls, held, form, leads) if calls is not None else False
        known = self.known.pop(key, None)
        if known is False or made is False:
            made = False  # for good
        elif known is not None:
            moving = tuple(a != b for a, b in zip(known.leads, leads))
            made.sure, made.moving = calls.alike(known.calls) and (any(moving) or known.sure), moving
            if known.sure and made.sure:
                made.moving = tuple(a or b for a, b in zip(moving, known.moving))
        while len(self.known) >= self.MOST:
            self.known.pop(next(iter(self.known)))
        self.known[key] = made
