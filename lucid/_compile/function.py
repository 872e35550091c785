"""`lucid.compile`: a function runs once under trace; afterwards its plan runs instead, in C.

A call is looked up in three steps. Tensors by position and nothing else: the plans are tried in C (`_Entries`). Any other
call is flattened first; calls of one structure (nesting, keywords, plain values) share an `_Entries` of their own. If no plan
fits, the function is traced again; if it cannot be, it runs as it is, and one warning says why.
"""

import collections
import functools
import warnings

from .. import _C
from . import guards

CacheInfo = collections.namedtuple("CacheInfo", "hits misses maxsize currsize")
CacheInfo.__doc__ = """Counts of a compiled function, named as those of functools.lru_cache.

>>> lucid.compile(lambda x: x).cache_info()
CacheInfo(hits=0, misses=0, maxsize=8, currsize=0)
"""
PLANS = 8


class Broken(RuntimeError):
    """A function that cannot be replayed, with fullgraph=True.

    >>> lucid.compile(lambda x: x if x.sum() > 0 else -x, fullgraph=True)(lucid.ones(1))
    Traceback (most recent call last):
    lucid._compile.function.Broken: ...
    """


# --- nested arguments and results ---
def flatten(value, tensors):
    """The structure of value, hashable; its tensors are appended to the list.

    >>> from lucid._compile.function import flatten
    >>> found = []
    >>> flatten({"a": [lucid.ones(1), 2]}, found), len(found)
    (('dict', ('a',), (('list', ('tensor', ('value', <class 'int'>, 2))),)), 1)
    """
    if isinstance(value, _C.Tensor):
        tensors.append(value)
        return "tensor"
    kind = type(value)
    if kind is tuple or kind is list:
        return (kind.__name__, tuple(flatten(v, tensors) for v in value))
    if kind is dict:
        return ("dict", tuple(value), tuple(flatten(v, tensors) for v in value.values()))
    if isinstance(value, tuple):
        return ("named" if hasattr(value, "_fields") else "sequence", kind, tuple(flatten(v, tensors) for v in value))
    if guards.is_plain(value):
        return ("value", kind, value)
    return ("object", _Held(value))


class _Held:
    """An object that is a part of a structure: equal to itself only."""

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return id(self.value)

    def __eq__(self, other):
        return isinstance(other, _Held) and other.value is self.value


def unflatten(structure, tensors):
    """The value again; tensors: an iterator.

    >>> from lucid._compile.function import flatten, unflatten
    >>> found = []
    >>> unflatten(flatten((1, [lucid.zeros(1)]), found), iter(found))
    (1, [tensor([0.])])
    """
    if structure == "tensor":
        return next(tensors)
    kind = structure[0]
    if kind == "value":
        return structure[2]
    if kind == "object":
        return structure[1].value
    if kind == "dict":
        return dict(zip(structure[1], [unflatten(s, tensors) for s in structure[2]]))
    items = [unflatten(s, tensors) for s in structure[-1]]
    if kind == "named" or kind == "sequence":
        return structure[1](*items) if kind == "named" else structure[1](items)
    return tuple(items) if kind == "tuple" else items


def _objects_in(structure):
    """What of a structure is neither a tensor, a container nor a plain value."""
    if structure == "tensor" or structure[0] == "value":
        return []
    if structure[0] == "object":
        return [structure[1].value]
    return [o for part in structure[-1] for o in _objects_in(part)]


def _finisher(structure):
    return None if structure == "tensor" else lambda outputs: unflatten(structure, iter(outputs))


# --- one function ---
class Compiled:
    """A compiled function: call it like the function.

    >>> @lucid.compile
    ... def f(x):
    ...     return x.sin() + 1
    >>> f(lucid.zeros(2)), f(lucid.zeros(2))
    (tensor([1., 1.]), tensor([1., 1.]))
    >>> f.cache_info()
    CacheInfo(hits=1, misses=1, maxsize=8, currsize=1)
    """

    def __init__(self, fn, *, fullgraph=False, plans=PLANS, roots=()):
        self._fn, self._fullgraph, self._plans, self._roots = fn, fullgraph, plans, roots
        self._start()
        functools.update_wrapper(self, fn, updated=())

    def _start(self):
        self._entries = _C._Entries(self._any_call)
        self._by_structure, self._traced, self._misses, self._why, self._warned = {}, [], 0, None, False

    def __call__(self, *args, **kwargs):
        return self._entries(*args, **kwargs)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __deepcopy__(self, memo):
        return compiled(self._fn, fullgraph=self._fullgraph, plans=self._plans, roots=self._roots)

    def __reduce__(self):
        return _compiled_again, (self._fn, self._fullgraph, self._plans)

    # --- what a user asks ---
    def invalidate_cache(self):
        """Forget all plans; the next call traces again."""
        self._start()

    def cache_info(self):
        """Hits, misses, and how many plans there are, as functools.lru_cache reports."""
        hits = self._entries.hits + sum(e.hits for e in self._by_structure.values())
        return CacheInfo(hits, self._misses, self._plans, min(len(self._traced), self._plans))

    def graph(self, format="text"):
        """The steps of the newest plan as text, or as a _drawing (format="svg")."""
        if not self._traced:
            return "" if format == "text" else _drawing("")
        texts = [plan.text() for plan in self._traced[-1] if plan]
        if format == "text":
            return "\n".join(texts)
        if format == "svg":
            return _drawing("".join(texts))
        raise ValueError(f"graph: format is 'text' or 'svg', not {format!r}")

    def explain(self):
        """What the plans do, and why there is none."""
        if self._why:
            return f"runs eagerly: {self._why}"
        lines = [f"{len(self._traced)} traced, {self._entries.hits} calls answered by a plan"]
        for forward, backward in self._traced:
            for name, plan in (("forward", forward), ("backward", backward)):
                if plan:
                    f = plan.facts()
                    lines.append(
                        f"{name}: {f['steps']} steps ({f['dropped']} dropped, {f['fused_steps']} fused into "
                        f"{f['fused_regions']} regions); "
                        f"intermediates {f['made_bytes']} bytes one by one, {f['arena_bytes']} in the arena"
                    )
        return "\n".join(lines)

    # --- calls that no plan answered in C ---
    def _any_call(self, *args, **kwargs):
        if self._why is not None or _C._trace_running():
            return self._fn(*args, **kwargs)
        tensors = []
        structure = flatten((args, kwargs), tensors)
        plain = not kwargs and len(tensors) == len(args)
        if plain:
            return self._trace(structure, tensors, self._entries)
        try:
            entries = self._by_structure.get(structure)
        except TypeError:  # a value that cannot be hashed
            return self._eager("an argument cannot be hashed", args, kwargs)
        if entries is None:
            entries = self._by_structure[structure] = _C._Entries(
                lambda *tensors: self._trace(structure, list(tensors), entries)
            )
        return entries(*tensors)

    def _eager(self, why, args, kwargs):
        self._give_up(why)
        return self._fn(*args, **kwargs)

    def _give_up(self, why):
        name = getattr(self._fn, "__qualname__", repr(self._fn))
        if self._fullgraph:
            raise Broken(f"lucid.compile: {name}: {why}")
        self._why = why
        warnings.warn(f"lucid.compile: {name} runs eagerly: {why}{guards._calling_line()}", stacklevel=4)

    def _trace(self, structure, tensors, entries):
        args, kwargs = unflatten(structure, iter(tensors))
        if self._why is not None or _C._trace_running():
            return self._fn(*args, **kwargs)
        reason = _refusal(tensors)
        if reason:
            return self._eager(reason, args, kwargs)
        if not _C._trace_begin(tensors):
            return self._fn(*args, **kwargs)  # another thread is tracing: this call runs as it is
        watch, result, joint, graph, error = (
            guards.Watch(self._fn, *self._roots, *_objects_in(structure)),
            None,
            None,
            None,
            None,
        )
        try:
            with watch:
                result = self._fn(*args, **kwargs)
            outputs = []
            form = flatten(result, outputs)
            if _objects_in(form):
                _C._trace_break(f"it returns a {type(_objects_in(form)[0]).__name__}")
            joint = _trace_backward(outputs, tensors)
        finally:
            try:
                graph = _C._trace_end()
            except _C.LucidError as broken:
                error = str(broken)
        held = watch.guards() if error is None else None
        if error is None and held is None:
            error = watch.changed
        if error is not None:
            self._give_up(error)
            return result
        self._misses += 1
        try:
            self._add(entries, tensors, held, graph, form, outputs, joint, structure)
        except LookupError as missing:
            self._give_up(str(missing))
            return result
        if self._misses > self._plans and not self._warned:
            self._warned = True
            name = getattr(self._fn, "__qualname__", repr(self._fn))
            warnings.warn(
                f"lucid.compile: {name} was traced {self._misses} times; shapes or values it depends on keep changing",
                stacklevel=3,
            )
        return result

    def _add(self, entries, tensors, held, graph, form, outputs, joint, structure):
        def eager(*tensors):
            args, kwargs = unflatten(structure, iter(tensors))
            return self._fn(*args, **kwargs)

        cut = joint.cut if joint else -1
        if joint is None:
            plan = _C._Plan(graph, 0, -1, -1, outputs)
            entries.add(tensors, held, plan, _finisher(form), self._plans)
            self._traced.append((plan, None))
        else:
            forward = _C._Plan(graph, 0, cut, cut, outputs)
            if forward.facts()["given_outputs"]:
                raise LookupError("a result that wants a gradient shares memory with an input or a parameter")
            if not joint.found:
                raise LookupError("a result wants a gradient, but nothing it was made of gets one")
            backward = _C._Plan(graph, cut, -1, cut, joint.found)
            call = _Recorded(eager, form, outputs, forward, backward, joint, len(tensors))
            entries.add(tensors, held, None, call, self._plans)
            self._traced.append((forward, backward))
        del self._traced[: -self._plans]


def compiled(fn, **settings):
    """A Compiled; with LUCID_COMPILE_CHECK=1 one that compares itself with eager.

    >>> lucid._compile.function.compiled(lambda x: x + 1)(lucid.ones(1))
    tensor([2.])
    """
    from . import check

    return (check.CheckedFunction if check.wanted() else Compiled)(fn, **settings)


def _compiled_again(fn, fullgraph, plans):
    return compiled(fn, fullgraph=fullgraph, plans=plans)


def _refusal(tensors):
    for t in tensors:
        if type(t) is not _C.Tensor and not isinstance(t, _parameter()):
            return f"an argument is a {type(t).__name__}"
        if t.device.type == "meta":
            return "an argument is on the meta device"
    return None


@functools.cache
def _parameter():
    from ..nn.parameter import Parameter

    return Parameter


# --- gradients ---
_Joint = collections.namedtuple("Joint", "cut wanting targets places found")


def _trace_backward(outputs, inputs):
    """Continue the trace through the gradients of the outputs, as far as they want one. None: no output does."""
    wanting = [i for i, o in enumerate(outputs) if o.requires_grad]
    if not wanting or not _C._grad_enabled():
        return None
    from ..autograd import grad

    cut = _C._trace_steps()
    targets = [t for t in inputs if t.requires_grad] + [t for t in _C._trace_wanting() if all(t is not i for i in inputs)]
    _C._trace_pause(True)
    # Contiguous, as gradients() hands them to the plan: an output itself may be column-major.
    seeds = [_C.ones(outputs[i].shape, dtype=outputs[i].dtype, device=outputs[i].device) for i in wanting]
    _C._trace_pause(False)
    for seed in seeds:
        _C._trace_input(seed)
    found = grad([outputs[i] for i in wanting], targets, seeds, retain_graph=True, allow_unused=True)
    kept = [(t, g) for t, g in zip(targets, found) if g is not None]
    places = [next((k for k, i in enumerate(inputs) if i is t), None) for t, _ in kept]
    return _Joint(cut, wanting, [None if p is not None else t for p, (t, _) in zip(places, kept)], places, [g for _, g in kept])


class _Recorded:
    """A call whose result wants gradients: the forward plan, and a node that runs the backward plan."""

    def __init__(self, fn, form, outputs, forward, backward, joint, n_inputs):
        from ..autograd import Function

        self.fn, self.form, self.forward, self.backward = fn, form, forward, backward
        self.n_inputs, self.n_outputs, self.wanting = n_inputs, len(outputs), joint.wanting
        self.external, self.places = joint.targets, joint.places  # a target is an input of the call, or a tensor from outside
        self.watched = [t for t in joint.targets if t is not None]
        self.constant = [i for i in range(len(outputs)) if i not in set(joint.wanting)]
        owner = self

        class CompiledBackward(Function):
            @staticmethod
            def forward(ctx, inputs, *targets):
                return owner.run(ctx, inputs)

            @staticmethod
            def backward(ctx, *grads):
                return (None, *owner.gradients(ctx, grads))

        self.function = CompiledBackward

    def __call__(self, *inputs):
        if not self.forward.fits(inputs):
            return self.fn(*inputs)
        targets = self.targets_of(inputs)
        outputs = self.function.apply(inputs, *targets)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        return outputs[0] if self.form == "tensor" else unflatten(self.form, iter(outputs))

    def targets_of(self, inputs):
        return [inputs[p] if p is not None else t for p, t in zip(self.places, self.external)]

    def run(self, ctx, inputs):
        made = self.forward.run(inputs)
        ctx.inputs, ctx.saved, ctx.recorded = inputs, made[self.n_outputs :], self
        ctx.versions = [t._version for t in (*inputs, *self.watched)]
        outputs = made[: self.n_outputs]
        ctx.mark_non_differentiable(*[outputs[i] for i in self.constant])
        return tuple(outputs) if len(outputs) > 1 or self.form != "tensor" else outputs[0]

    def gradients(self, ctx, grads):
        if ctx.versions != [t._version for t in (*ctx.inputs, *self.watched)]:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                "an input or parameter of a compiled function was written between forward and backward"
            )
        if _C._grad_enabled():
            return self.again(ctx, grads)
        seeds = [grads[i].contiguous() for i in self.wanting]
        found = self.backward.run([*ctx.inputs, *seeds, *ctx.saved])
        if (check := getattr(ctx, "check", None)) is not None:
            check(grads, found)
        return found

    def again(self, ctx, grads):
        """Gradients that are recorded themselves (create_graph): the function runs eagerly once more."""
        from ..autograd import grad

        outputs = []
        flatten(self.fn(*ctx.inputs), outputs)
        wanted = [outputs[i] for i in self.wanting]
        return grad(wanted, self.targets_of(ctx.inputs), [grads[i] for i in self.wanting], create_graph=True, allow_unused=True)


def _drawing(text):
    """The steps as an SVG: a box per step, top to bottom."""
    lines = text.splitlines()
    width, height = 12 + 8 * max([20, *map(len, lines)]), 16 + 26 * len(lines)
    from html import escape

    boxes = "".join(
        f'<rect x="6" y="{8 + 26 * i}" width="{width - 12}" height="20" rx="4" fill="#eef3fb" stroke="#5b7db1"/>'
        f'<text x="14" y="{22 + 26 * i}" font-family="monospace" font-size="12">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{boxes}</svg>'
