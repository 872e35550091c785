"""LUCID_COMPILE_CHECK=1: eager runs beside every call that a plan answers, and a difference raises.

The compiled call runs first, on the tensors of the caller. Then everything that it could have written is put back (memory of
inputs and of tensors from outside, generators), the function runs eagerly on copies of the inputs, and both sides are
compared bit for bit: results, what was written, where the generators stand, and later the gradients. NaNs are equal to each
other, whatever their bits. Meant for hunting errors: a call takes more than twice the time, and memory for all copies.
"""

import os

from .. import _C
from .arguments import flatten, unflatten
from .function import Compiled
from .step import CompiledStep


class Difference(AssertionError):
    """A plan and the function it was made of gave different bits.

    >>> issubclass(lucid._compile.check.Difference, AssertionError)
    True
    """


def wanted():
    """Whether LUCID_COMPILE_CHECK is set.

    >>> lucid._compile.check.wanted()
    False
    """
    return os.environ.get("LUCID_COMPILE_CHECK", "0") not in ("", "0")


# --- comparing ---
def _bits(t):
    t = _C.view_as_real(t) if t.is_complex() else t
    return t, _C.empty(t.numel(), dtype=t.dtype, device=t.device).copy_(t.reshape(-1)).view(_C.uint8)


def difference(found, expected):
    """How two tensors differ, in words; None: they do not. NaNs are equal to each other.

    >>> from lucid._compile.check import difference
    >>> difference(lucid.ones(2), lucid.ones(2)), difference(lucid.zeros(2), lucid.tensor([0.0, -0.0]))
    (None, '1 of 2 elements differ, the first at 1: 0.0, eager -0.0')
    """
    if (found is None) != (expected is None):
        return f"it is {'None' if found is None else 'a tensor'}, eager {'None' if expected is None else 'a tensor'}"
    if found is None:
        return None
    found, expected = found.detach(), expected.detach()
    for what in ("dtype", "shape", "device"):
        if getattr(found, what) != getattr(expected, what):
            return f"{what} {getattr(found, what)}, eager {getattr(expected, what)}"
    if found.layout != _C.strided:
        return None if found.to_dense().equal(expected.to_dense()) else "values differ"
    if not found.numel():
        return None
    (a, x), (b, y) = _bits(found), _bits(expected)
    if x.equal(y):
        return None
    a, b = a.reshape(-1), b.reshape(-1)
    unequal = (x != y).view(-1, a.dtype.itemsize).any(1)
    if a.is_floating_point():
        unequal &= ~(a.isnan() & b.isnan())
    where = unequal.nonzero().flatten()
    if not len(where):
        return None
    first = where[0].item()
    return f"{len(where)} of {a.numel()} elements differ, the first at {first}: {a[first].item()!r}, eager {b[first].item()!r}"


def demand(name, what, found, expected):
    """Raises Difference, naming function and tensor, if the two differ.

    >>> lucid._compile.check.demand("f", "output 0", lucid.ones(1), lucid.ones(1))
    """
    words = difference(found, expected)
    if words is not None:
        raise Difference(f"LUCID_COMPILE_CHECK: {name}: {what}: {words}")


# --- memory that a call may write ---
class Memory:
    """The memory of some tensors and the state of the generators, as they are now.

    >>> x = lucid.ones(2)
    >>> before = lucid._compile.check.Memory([x])
    >>> _ = x.zero_()
    >>> before.restore()
    >>> x
    tensor([1., 1.])
    """

    def __init__(self, tensors, generators=()):
        self.bytes, self.copies = {}, {}
        for t in tensors:
            key = t.untyped_storage().data_ptr()
            if key not in self.bytes:
                # .data: putting memory back is no write that autograd should count.
                self.bytes[key] = _C.empty(0, dtype=_C.uint8, device=t.device).set_(t.untyped_storage()).data
                self.copies[key] = self.bytes[key].clone()
        self.generators = [(g, g.get_state()) for g in (_C.default_generator, *generators)]

    def restore(self):
        for key, memory in self.bytes.items():
            memory.copy_(self.copies[key])
        for generator, state in self.generators:
            generator.set_state(state)

    def twins(self, tensors):
        """Tensors like these on the copies: what shares memory shares it there. They are leaves."""
        made = []
        for t in tensors:
            copied = self.copies[t.untyped_storage().data_ptr()]
            twin = _C.empty(0, dtype=t.dtype, device=t.device)
            twin = twin.set_(copied.untyped_storage(), t.storage_offset(), t.shape, t.stride())
            if type(t) is not _C.Tensor:
                twin = type(t)(twin, requires_grad=t.requires_grad)
            made.append(twin.requires_grad_(t.requires_grad))
        for i, t in enumerate(tensors):  # one tensor given twice is one tensor there
            made[i] = made[next(k for k, other in enumerate(tensors) if other is t)]
        return made


def _generators_in(values):
    return [v for v in values if isinstance(v, _C.Generator) and v is not _C.default_generator]


# --- functions ---
def _any(o):
    return True


class CheckedFunction(Compiled):
    """A compiled function that compares every answer of a plan with eager.

    >>> f = lucid._compile.check.CheckedFunction(lambda x: x * 2)
    >>> f(lucid.ones(1)), f(lucid.zeros(1))
    (tensor([2.]), tensor([0.]))
    """

    def _start(self):
        super()._start()
        self._outside = {}  # tensors and generators that the plans touch besides their inputs

    def _add(self, entries, tensors, held, graph, form, joint, structure, outside):
        super()._add(entries, tensors, held, graph, form, joint, structure, outside)
        self._outside |= {id(o): o for o in graph.outside()}

    def entrance(self):
        return self

    def _hits(self):
        return self.cache_info().hits

    def __call__(self, *args, **kwargs):
        if self._why is not None or _C._trace_running() or not self._traced:
            return super().__call__(*args, **kwargs)
        inputs = []
        structure = flatten((args, kwargs), inputs)
        outside = [t for t in self._outside.values() if isinstance(t, _C.Tensor)]
        generators = _generators_in(self._outside.values())
        before, hits = Memory([*inputs, *outside], generators), self._hits()
        result = super().__call__(*args, **kwargs)
        if self._hits() == hits:
            return result  # the function itself has run
        after = Memory([*inputs, *outside], generators)
        twins = before.twins(inputs)
        for key, memory in before.bytes.items():  # not the inputs: they have twins
            if any(t.untyped_storage().data_ptr() == key for t in outside):
                memory.copy_(before.copies[key])
        for generator, state in before.generators:
            generator.set_state(state)
        twin_args, twin_kwargs = unflatten(structure, iter(twins))
        try:
            expected = self._fn(*twin_args, **twin_kwargs)
            self._compare(result, expected, inputs, twins, outside, after)
        finally:
            after.restore()
        return result

    def _name(self):
        return getattr(self._fn, "__qualname__", repr(self._fn))

    def _compare(self, result, expected, inputs, twins, outside, after):
        found, wanted_, name = [], [], self._name()
        form, expected_form = flatten(result, found, _any), flatten(expected, wanted_, _any)
        if form != expected_form:
            raise Difference(f"LUCID_COMPILE_CHECK: {name}: the result is a {form}, eager a {expected_form}")
        for i, (a, b) in enumerate(zip(found, wanted_)):
            if a.requires_grad != b.requires_grad:
                raise Difference(f"LUCID_COMPILE_CHECK: {name}: output {i}: requires_grad is {a.requires_grad}")
            places = [[k for k, t in enumerate(side) if t is o] for side, o in ((inputs, a), (twins, b))]
            if places[0] != places[1]:
                raise Difference(f"LUCID_COMPILE_CHECK: {name}: output {i} is input {places[0]}, eager's is {places[1]}")
            demand(name, f"output {i}", a, b)
            if a.stride() != b.stride():
                raise Difference(f"LUCID_COMPILE_CHECK: {name}: output {i}: strides {a.stride()}, eager {b.stride()}")
        for i, (a, b) in enumerate(zip(inputs, twins)):
            demand(name, f"input {i} after the call", a, b)
        compiled_side = after.twins(outside)
        for a, b in zip(compiled_side, outside):
            demand(name, f"a tensor of shape {tuple(b.shape)} from outside, after the call", a, b)
        for generator, state in after.generators:
            demand(name, "the state of a generator", state, generator.get_state())
        for node in {id(a.grad_fn): a.grad_fn for a in found if a.requires_grad}.values():
            owner = getattr(node, "recorded", None)
            if owner is not None:
                node.check = _Gradients(name, owner.wanting, owner.eager_outputs(expected), owner.targets_of(twins))


class _Gradients:
    """What the gradients of one call must be: those of the eager run on the twins."""

    def __init__(self, name, wanting, outputs, targets):
        self.name, self.wanting, self.outputs, self.targets = name, wanting, outputs, targets

    def __call__(self, grads, found):
        from ..autograd import grad

        asked = [(o, grads[k]) for o, k in zip(self.outputs, self.wanting) if grads[k] is not None]
        outputs, seeds = zip(*asked)
        state = _C.default_generator.get_state()
        expected = grad(outputs, self.targets, seeds, retain_graph=True, allow_unused=True)
        _C.default_generator.set_state(state)
        for i, (a, b) in enumerate(zip(found, expected)):
            demand(self.name, f"gradient {i}, of a tensor of shape {tuple(self.targets[i].shape)}", a, b)


# --- steps ---
class CheckedStep(CompiledStep):
    """A compiled training step that is compared with the eager one, every time.

    >>> lucid._compile.check.CheckedStep.__mro__[1].__name__
    'CompiledStep'
    """

    def _state(self):
        named = {}
        for i, p in enumerate(self._params):
            named[f"parameter {i}"], named[f"gradient {i}"] = p, p.grad
            for key, value in self.optimizer.state.get(p, {}).items():
                named[f"the optimizer's {key} of parameter {i}"] = value
        if self.scaler is not None:
            named |= {f"the scaler's {name}": t for name, t in vars(self.scaler).items() if isinstance(t, _C.Tensor)}
        named |= {f"buffer {name}": b for name, b in getattr(self.model, "named_buffers", dict)()}
        return named

    def _scaler_state(self):
        """The scale and its counts; what is noted per optimizer is new after every step."""
        kinds = (_C.Tensor, int, float)
        return {k: v for k, v in vars(self.scaler).items() if isinstance(v, kinds)} if self.scaler is not None else {}

    def _set_scaler(self, state):
        if self.scaler is not None:
            vars(self.scaler).update(state)

    def __call__(self, *inputs):
        loss = self._checked(*inputs)
        if self.scheduler is not None:
            self.scheduler.step()
        return loss

    def _checked(self, *inputs):
        if self._why is not None or _C._trace_running() or not self._plan_of:
            return self._entries(*inputs)
        old = self._state()
        tensors = [t for t in old.values() if isinstance(t, _C.Tensor)] + [t for t in inputs if isinstance(t, _C.Tensor)]
        before, hits = Memory(tensors), self._entries.hits
        scaler_before = self._scaler_state()
        loss = self._entries(*inputs)
        if self._entries.hits == hits:
            return loss
        new = self._state()
        after = Memory([t for t in new.values() if isinstance(t, _C.Tensor)] + tensors)
        kept = {k: t.detach().clone() if isinstance(t, _C.Tensor) else t for k, t in new.items()}
        grads = [p.grad for p in self._params]
        scaler_after = self._scaler_state()
        try:
            before.restore()
            self._set_scaler(scaler_before)
            demand("a training step", "the loss", loss, self._eager(*inputs))
            for name, value in self._state().items():
                if isinstance(value, _C.Tensor) or isinstance(kept.get(name), _C.Tensor):
                    demand("a training step", name, kept.get(name), value)
                elif value != kept.get(name):
                    raise Difference(f"LUCID_COMPILE_CHECK: a training step: {name}: {kept.get(name)}, eager {value}")
            for generator, state in after.generators:
                demand("a training step", "the state of a generator", state, generator.get_state())
        finally:
            after.restore()
            self._set_scaler(scaler_after)
            for p, g in zip(self._params, grads):
                p.grad = g
        return loss
