"""What a traced function returned: a form that gives the same result again after every run of its plan.

A tensor of the result is made by the plan (returned twice, it is one tensor twice), or it is something the caller has already:
an input, a tensor from outside, or a view of one. Those are taken from where they are, so that they stay the objects they are
in eager and gradients reach them directly.
"""

from .. import _C
from .arguments import Held, flatten, objects_in, unflatten


class Result:
    """The form of one traced result.

    made: the tensors that a plan has to give. again(made, inputs): the result, from the tensors that a run gave.

    >>> x, y = lucid.ones(1), lucid.zeros(1)
    >>> form = lucid._compile.results.Result([x, y, y], [x], [])
    >>> form.again([lucid.full((1,), 5.0)], [x])
    [tensor([1.]), tensor([5.]), tensor([5.])]
    """

    def __init__(self, result, inputs, outside, born=None):
        self.tensors, self.made = [], []
        self.form = flatten(result, self.tensors, born)
        self.places = [self._place(t, inputs, outside) for t in self.tensors]
        self.all_made = all(place[0] == "made" for place in self.places)
        self.single = self.form == "tensor" and self.all_made

    def _place(self, t, inputs, outside):
        for k, i in enumerate(inputs):
            if i is t:
                return ("input", k)
        if _C._trace_running() and not _C._trace_made(t):
            return ("outside", Held(t))
        for k, m in enumerate(self.made):
            if m is t:
                return ("made", k)
        of = _owner_of(t, inputs, outside)
        if of is not None and t.requires_grad:  # gradients would be added in another order
            _C._trace_break("it returns a view of an argument or parameter that wants a gradient")
        if of is not None and of.dtype == t.dtype:
            source = next((k for k, i in enumerate(inputs) if i is of), None)
            delta = t.storage_offset() - of.storage_offset()
            return ("view", Held(of) if source is None else source, tuple(t.shape), tuple(t.stride()), delta)
        self.made.append(t)
        return ("made", len(self.made) - 1)

    def objects(self):
        """What the result holds besides tensors, containers and plain values."""
        return objects_in(self.form)

    def forget(self):
        """Let go of the tensors of the traced run."""
        self.made = self.tensors = None

    def of(self, inputs):
        """The traced result itself, with these tensors for the inputs."""
        taken = [inputs[p[1]] if p[0] == "input" else t for p, t in zip(self.places, self.tensors)]
        return unflatten(self.form, iter(taken))

    def finisher(self):
        """Makes a result of a plan's list, if the plan makes all of it. None: its one tensor is the result."""
        return None if self.single else lambda made: self.again(made, ())

    def again(self, made, inputs):
        return unflatten(self.form, iter([_tensor_at(place, made, inputs) for place in self.places]))


def _owner_of(t, inputs, outside):
    """The input or tensor from outside whose memory t shares."""
    where = t.untyped_storage().data_ptr() if t.layout == _C.strided and t.numel() else 0
    return next((o for o in (*inputs, *outside) if where and o.untyped_storage().data_ptr() == where), None)


def _tensor_at(place, made, inputs):
    kind, which = place[:2]
    if kind == "made":
        return made[which]
    if kind == "input":
        return inputs[which]
    if kind == "outside":
        return which.value
    _, _, shape, stride, delta = place
    of = (which.value if isinstance(which, Held) else inputs[which]).detach()
    return of.as_strided(shape, stride, of.storage_offset() + delta)


class Replayed:
    """A call without gradients whose result holds something the caller has already.

    >>> f = lucid.compile(lambda x: (x, x + 1))
    >>> x = lucid.ones(1)
    >>> f(x)[0] is x, f(x)[0] is x
    (True, True)
    """

    def __init__(self, fn, plan, form):
        self.fn, self.plan, self.form = fn, plan, form

    def __call__(self, *inputs):
        made = self.plan.run(inputs)
        return self.fn(*inputs) if made is None else self.form.again(made, inputs)
