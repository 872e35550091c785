"""Gradients of compiled functions: the trace goes on through backward, and a node of the tape runs what it recorded.

A plan's backward must give the gradient with respect to each argument as if arguments had no past: what lies behind them is not
its business, and hooks of arguments are not either. While the function is traced, an argument with a history or a hook
therefore stands behind a fence, a node that lets gradients through to the past except during the trace.

Backward is traced once for all results that want a gradient and, if there are several, once for each alone: a gradient of one
result must not see the others at all (zero times infinity is not zero).

How a sum is added up depends on how its operands lie in memory, so a backward plan is for one layout of the gradients that come
in. The first trace makes one for contiguous gradients and, if a result is not contiguous, one for gradients that lie like the
results. Gradients in another layout are made contiguous, once: the next call is traced again, for their layout too.
"""

import collections
import functools

from .. import _C
from .arguments import flatten

MOST_RESULTS = 16  # that want a gradient: backward is traced for each
MOST_LAYOUTS = 4  # of incoming gradients: the same


@functools.cache
def _fence_function():
    from ..autograd import Function

    class Fence(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.closed = True
            return x.detach()

        @staticmethod
        def backward(ctx, grad):
            return None if ctx.closed else grad

    return Fence


class fence:
    """Arguments as a traced function gets them: those with a history or a hook stand behind a fence.

    >>> x = lucid.ones(2, requires_grad=True)
    >>> y = x * 2
    >>> fenced = lucid._compile.gradients.fence([x, y])
    >>> fenced.inside[0] is x, fenced.inside[1] is y, fenced.inside[1].data_ptr() == y.data_ptr()
    (True, False, True)
    """

    def __init__(self, tensors):
        self.inside, self.fences = [], {}
        for k, t in enumerate(tensors):
            same = next((i for i in range(k) if tensors[i] is t), None)
            if same is not None:
                self.inside.append(self.inside[same])
            elif t.requires_grad and _C._grad_enabled() and (not t.is_leaf or _C._has_hooks(t)):
                behind = _fence_function().apply(t)
                self.fences[k] = (behind, behind.grad_fn)
                self.inside.append(behind)
            else:
                self.inside.append(t)
        # Nodes are numbered: what is older than this one is no part of the trace.
        self.first = _C.zeros((), requires_grad=True).neg().grad_fn._sequence_nr if _C._grad_enabled() else 0

    def open(self, tensors):
        """The trace is over: gradients pass. An argument that was written gets the history of the write."""
        for k, (behind, node) in self.fences.items():
            node.closed = False
            if behind.grad_fn is not node:
                version = tensors[k]._version
                tensors[k].copy_(behind)  # the same memory
                _C._set_version(tensors[k], version)


# cut: the step where backward begins; wanting: the made tensors that want a gradient; targets and places: where gradients go, a
# tensor from outside or the number of an argument; parts: per trace of backward its steps [first, last) and what it found;
# layouts: per layout of gradients that come in, of each; they have equally many parts
_Joint = collections.namedtuple("Joint", "cut wanting targets places parts layouts")


def layout_of(t):
    """How a tensor lies in memory: its strides; None if it is contiguous.

    >>> layout = lucid._compile.gradients.layout_of
    >>> layout(lucid.ones(2, 3)), layout(lucid.ones(2, 3).t()), layout(lucid.ones(1).expand(4))
    (None, (1, 3), (0,))
    """
    return None if t.is_contiguous() else tuple(0 if n == 1 else step for n, step in zip(t.shape, t.stride()))


def _is_dense(t):
    """Its elements fill their memory, in some order."""
    expected = 1
    for step, n in sorted((step, n) for step, n in zip(t.stride(), t.shape) if n != 1):
        if step != expected:
            return False
        expected *= n
    return True


def _span(shape, layout):
    return 1 + sum((n - 1) * step for n, step in zip(shape, layout))


def _seed(like, layout):
    if layout is None:
        return _C.ones(like.shape, dtype=like.dtype, device=like.device)
    return _C.ones((_span(like.shape, layout),), dtype=like.dtype, device=like.device).as_strided(like.shape, layout)


def _copied(t):
    """A copy in the same layout."""
    if t.is_contiguous():
        return t.clone()
    return t.as_strided((_span(t.shape, t.stride()),), (1,)).clone().as_strided(t.shape, t.stride())


def _leaves_of(outputs, first):
    """The leaves that outputs were made of."""
    seen, todo, found = set(), [o.grad_fn for o in outputs], []
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            found.append(leaf)
        elif isinstance(node, _fence_function()) or getattr(node, "closed", False):
            continue
        elif node._sequence_nr < first:
            raise LookupError("it uses a tensor from outside that has a history")
        else:
            todo += [n for n, _ in node.next_functions]
    return found


def trace_backward(form, inputs, first, layouts=()):
    """Continue the trace through the gradients of what was made, as far as it wants one. None: nothing does.
    layouts: of gradients that come in, besides the usual ones.

    >>> from lucid._compile.results import Result
    >>> x = lucid.ones(2)
    >>> lucid._compile.gradients.trace_backward(Result(x * 2, [x], []), [x], 0) is None
    True
    """
    wanting = [k for k, t in enumerate(form.made) if t.requires_grad]
    if not wanting or not _C._grad_enabled():
        return None
    from ..autograd import grad

    outputs = [form.made[k] for k in wanting]
    targets = [t for k, t in enumerate(inputs) if t.requires_grad and all(t is not i for i in inputs[:k])]
    for leaf in _leaves_of(outputs, first):
        if _C._has_hooks(leaf):
            raise LookupError("a parameter has a hook")
        if not _C._trace_made(leaf) and all(leaf is not t for t in targets):
            targets.append(leaf)
    if not targets:
        raise LookupError("a result wants a gradient, but nothing it was made of gets one")
    if len(wanting) > MOST_RESULTS:
        raise LookupError(f"more than {MOST_RESULTS} results want a gradient")
    cut = _C._trace_steps()
    layouts = [(None,) * len(outputs), *layouts]
    like_outputs = tuple(layout_of(o) if _is_dense(o) else None for o in outputs)
    if like_outputs not in layouts:
        layouts.append(like_outputs)
    parts, every = [], []
    for layout in layouts:
        _C._trace_pause(True)
        seeds = [_seed(o, of) for o, of in zip(outputs, layout)]
        _C._trace_pause(False)
        every += seeds  # the trace knows them by their memory: it must not be used again
        for seed in seeds:
            _C._trace_input(seed)
        for chosen in [range(len(outputs)), *([k] for k in range(len(outputs)) if len(outputs) > 1)]:
            begin, from_ = _C._trace_steps(), [outputs[k] for k in chosen]
            found = grad(from_, targets, [seeds[k] for k in chosen], retain_graph=True, allow_unused=True)
            parts.append((begin, _C._trace_steps(), found))
    kept = [k for k, g in enumerate(parts[0][2]) if g is not None]
    if not kept:
        raise LookupError("a result wants a gradient, but nothing it was made of gets one")
    parts = [(begin, end, [found[k] for k in kept]) for begin, end, found in parts]
    places = [next((i for i, t in enumerate(inputs) if t is targets[k]), None) for k in kept]
    return _Joint(cut, wanting, [None if p is not None else targets[k] for p, k in zip(places, kept)], places, parts, layouts)


class _Part:
    """A backward plan that knows which targets get nothing."""

    def __init__(self, graph, begin, end, cut, found, seeds):
        self.seeds = seeds  # inputs [first, last)
        self.none = [g is None for g in found]
        self.plan = None if all(self.none) else _C._Plan(graph, begin, end, cut, [g for g in found if g is not None])

    def run(self, inputs):
        made = self.plan.run(inputs) if self.plan else []
        if made is None:  # a seed shares memory with what backward writes
            first, last = self.seeds
            made = self.plan.run([*inputs[:first], *[_copied(t) for t in inputs[first:last]], *inputs[last:]])
        made = iter(made)
        return [None if none else next(made) for none in self.none]


def version_of(t):
    """How often a tensor was written; of one made in inference mode nobody counts.

    >>> lucid._compile.gradients.version_of(lucid.ones(1).add_(1))
    1
    """
    return 0 if t.is_inference() else t._version


class Recorded:
    """A call whose result wants gradients: the forward plan, and a node that runs the backward plan.

    >>> f = lucid.compile(lambda x: x * x)
    >>> for _ in range(2):
    ...     x = lucid.full((1,), 3.0, requires_grad=True)
    ...     f(x).backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, fn, form, graph, forward, joint, n_inputs):
        self.fn, self.form, self.forward, self.wanting = fn, form, forward, joint.wanting
        seeds = (n_inputs, n_inputs + len(joint.wanting) * len(joint.layouts))
        parts = [_Part(graph, begin, end, joint.cut, found, seeds) for begin, end, found in joint.parts]
        each = len(parts) // len(joint.layouts)
        self.layouts = {layout: parts[i * each :][:each] for i, layout in enumerate(joint.layouts)}
        self.backward = parts[0].plan
        self.shown = self.forward, self.backward  # by explain
        self.unseen, self.trace_again, self.successor = [], None, None  # layouts that came; what traces with them; what it made
        self.n_outputs = len(form.made)
        self.positions = [form.places.index(("made", k)) for k in joint.wanting]  # among all tensors of the result
        self.external, self.places = joint.targets, joint.places
        self.watched = [t for t in joint.targets if t is not None]
        self.constant = [k for k in range(self.n_outputs) if k not in set(joint.wanting)]
        self.results_kept = None  # which outputs backward reads as well, among what is kept; known from the first run on

    def __call__(self, *inputs):
        if self.successor is not None:
            return self.successor(*inputs)
        if self.unseen and self.trace_again is not None:
            layouts = [*list(self.layouts)[1:], *self.unseen]
            self.unseen, again, self.trace_again = [], self.trace_again, None
            return again(self, inputs, layouts)
        if not self.forward.fits(inputs):
            return self.fn(*inputs)
        made = _node().apply(self, inputs, *self.targets_of(inputs))
        if self.form.single:
            return made
        return self.form.again(made if isinstance(made, tuple) else (made,), inputs)

    def targets_of(self, inputs):
        return [inputs[p] if p is not None else t for p, t in zip(self.places, self.external)]

    def run(self, ctx, inputs):
        made = self.forward.run(inputs)
        outputs, saved = made[: self.n_outputs], made[self.n_outputs :]
        if self.results_kept is None:
            where = {t.untyped_storage().data_ptr() for t in outputs}
            self.results_kept = [k for k, t in enumerate(saved) if t.untyped_storage().data_ptr() in where]
        return self.kept(ctx, inputs, inputs, saved, outputs)

    def kept(self, ctx, inputs, read, saved, outputs):
        """What forward returns. ctx gets what backward needs; read: what the backward plan takes for the inputs."""
        ctx.set_materialize_grads(False)
        ctx.inputs, ctx.read, ctx.saved, ctx.recorded = inputs, read, saved, self
        ctx.versions = self.versions(ctx)
        ctx.mark_non_differentiable(*[outputs[i] for i in self.constant])
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def versions(self, ctx):
        return [version_of(t) for t in (*ctx.inputs, *self.watched, *(ctx.saved[k] for k in self.results_kept))]

    def gradients(self, ctx, grads):
        if ctx.versions != self.versions(ctx):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                "an input, parameter or result of a compiled function was written between forward and backward"
            )
        if _C._grad_enabled():
            return self.again(ctx, grads)
        seeds = [grads[k] for k in self.wanting]
        found = self.replayed(ctx, seeds)
        if (check := getattr(ctx, "check", None)) is not None:
            check(grads, found)
        return found

    def parts_for(self, seeds):
        """The backward plans for gradients that lie like these, and the gradients as they read them."""
        came = tuple(None if s is None else layout_of(s) for s in seeds)
        if any(came):
            for layout, parts in self.layouts.items():
                if all(s is None or has == wants for s, has, wants in zip(seeds, came, layout)):
                    return parts, seeds
            if came not in self.unseen and len(self.layouts) + len(self.unseen) < MOST_LAYOUTS:
                self.unseen.append(came)
        return next(iter(self.layouts.values())), [None if s is None else s.contiguous() for s in seeds]

    def read_by_backward(self, ctx, seeds):
        """The inputs of a backward plan. A part reads its own gradients alone; what lies in the places of other
        parts and layouts is not looked at."""
        return [*ctx.read, *[_C.empty(1) if s is None else s for s in seeds] * len(self.layouts), *ctx.saved]

    def replayed(self, ctx, seeds):
        parts, seeds = self.parts_for(seeds)
        asked = [k for k, seed in enumerate(seeds) if seed is not None]
        inputs = self.read_by_backward(ctx, seeds)
        if len(asked) == len(seeds):
            return parts[0].run(inputs)
        total = [None] * len(self.places)
        for k in asked:
            for i, g in enumerate(parts[1 + k].run(inputs)):
                total[i] = g if total[i] is None else total[i] if g is None else total[i] + g
        return total

    def eager_outputs(self, result):
        """Of the function's own result: what `wanting` are of the plan's."""
        tensors = []
        flatten(result, tensors, lambda o: True)
        return [tensors[i] for i in self.positions]

    def again(self, ctx, grads):
        """Gradients that are recorded themselves (create_graph): the function runs eagerly once more."""
        from ..autograd import grad

        outputs = self.eager_outputs(self.fn(*ctx.inputs))
        asked = [(o, grads[k]) for o, k in zip(outputs, self.wanting) if grads[k] is not None]
        outputs, seeds = zip(*asked)
        return grad(outputs, self.targets_of(ctx.inputs), seeds, create_graph=True, allow_unused=True)


@functools.cache
def _node():
    from ..autograd import Function

    class CompiledBackward(Function):
        @staticmethod
        def forward(ctx, recorded, inputs, *targets):
            return recorded.run(ctx, inputs)

        @staticmethod
        def backward(ctx, *grads):
            return (None, None, *ctx.recorded.gradients(ctx, grads))

    return CompiledBackward
