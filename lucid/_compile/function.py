"""`lucid.compile`: a function runs once under trace; afterwards its plan runs instead, in C.

A call is looked up in three steps. Tensors by position and nothing else: the plans are tried in C (`_Entries`). Any other
call is flattened first; calls of one structure (nesting, keywords, plain values) share an `_Entries` of their own. If no plan
fits, the function is traced again; if it cannot be, it runs as it is, and one warning says why.
"""

import collections
import functools
import threading
import warnings
import weakref

from .. import _C
from . import cuda_graphs, guards
from .arguments import flatten, objects_in, put_back, tensors_in, unflatten
from .drawing import drawing
from .gradients import Recorded, fence, trace_backward
from .graphed_gradients import GraphedRecorded
from .results import Replayed, Result
from .sizes import OtherForm, Sizes

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

    def __init__(self, fn, *, fullgraph=False, plans=PLANS, dynamic=False, graphs=False, roots=()):
        self._fn, self._fullgraph, self._plans, self._dynamic, self._roots = fn, fullgraph, plans, dynamic, roots
        self._graphs = graphs
        self._entries = _C._Entries(self._any_call, fn)
        self._start()
        functools.update_wrapper(self, fn, updated=())

    def _start(self):
        self._entries.clear()
        self._call, self._hits_of_dropped = threading.local(), 0
        self._by_structure, self._traced, self._misses, self._why, self._warned = {}, [], 0, None, False
        self._changed_something, self._kinds = False, []  # kinds: of the inputs of what was traced
        self._forms = set()  # of calls, if sizes may change
        self._sizes, self._instances = Sizes() if self._dynamic else None, 0

    def __call__(self, *args, **kwargs):
        return self._entries(*args, **kwargs)

    def entrance(self):
        """What answers calls most quickly.

        >>> lucid.compile(lambda x: x + 1).entrance()(lucid.ones(1))
        tensor([2.])
        """
        return self._entries

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __deepcopy__(self, memo):
        return compiled(self._fn, roots=self._roots, **self.settings())

    def __reduce__(self):
        return _compiled_again, (self._fn, self.settings())

    def settings(self):
        """What it was compiled with.

        >>> lucid.compile(abs, fullgraph=True).settings()
        {'fullgraph': True, 'plans': 8, 'dynamic': False}
        """
        kept = dict(fullgraph=self._fullgraph, plans=self._plans, dynamic=self._dynamic)
        return kept | {"graphs": True} if self._graphs else kept

    # --- what a user asks ---
    def invalidate_cache(self):
        """Forget all plans; the next call traces again."""
        self._start()

    def cache_info(self):
        """Hits, misses, and how many plans there are, as functools.lru_cache reports."""
        hits = self._hits_of_dropped + self._entries.hits + sum(e.hits for e in self._by_structure.values())
        return CacheInfo(hits, self._misses, self._plans, min(len(self._traced), self._plans))

    def graph(self, format="text"):
        """The steps of the newest plan as text, or as a drawing (format="svg")."""
        if not self._traced:
            return "" if format == "text" else drawing("")
        texts = [plan.text() for plan in self._traced[-1] if plan]
        if format == "text":
            return "\n".join(texts)
        if format == "svg":
            return drawing("".join(texts))
        raise ValueError(f"graph: format is 'text' or 'svg', not {format!r}")

    def explain(self, *args, **kwargs):
        """What the plans do, or why there is none. With arguments of a call, how long that call takes, compiled and eager, and
        the steps of its (forward) plan that take most.

        The times are the best of many calls; what the calls write is put back.

        >>> f = lucid.compile(lambda x: x + 1)
        >>> print(f.explain(lucid.ones(3)))  # doctest: +ELLIPSIS
        1 traced, ... calls answered by a plan
        forward: 1 steps (...)...
        a call takes ... µs, eager ... µs
        of its plan, step by step:
        ...
        """
        if args or kwargs:
            from .timing import call_times

            ours, eager, lines = call_times(self, self._fn, args, kwargs)
            lines = [*(["of its plan, step by step:"] if lines else []), *lines]
            return "\n".join([self.explain(), f"a call takes {ours * 1e6:.2f} µs, eager {eager * 1e6:.2f} µs", *lines])
        if self._why:
            return f"runs eagerly: {self._why}"
        lines = [f"{len(self._traced)} traced, {self._entries.hits} calls answered by a plan"]
        if self._instances:
            lines[0] += f"; {self._instances} sizes without running the function"
        for forward, backward in self._traced:
            lines += [described(name, plan) for name, plan in (("forward", forward), ("backward", backward)) if plan]
        return "\n".join(lines)

    def plan_for(self, tensors):
        """The forward plan of a call with tensors like these, if there is one.

        >>> lucid.compile(lambda x: x + 1).plan_for([lucid.ones(1)]) is None
        True
        """
        kind = [(t.dtype, t.shape) for t in tensors]
        return next((self._traced[k][0] for k in reversed(range(len(self._traced))) if self._kinds[k] == kind), None)

    # --- calls that no plan answered in C ---
    def _any_call(self, *args, **kwargs):
        if self._why is not None or _untraceable():
            return self._fn(*args, **kwargs)
        tensors = []
        structure = flatten((args, kwargs), tensors)
        plain = not kwargs and len(tensors) == len(args)
        if plain:
            return self._trace(structure, tensors, self._entries, (args, kwargs))
        for o in objects_in(structure):
            if hasattr(type(o), "__next__"):
                return self._eager(f"an argument is a {type(o).__name__}", args, kwargs)
        try:
            entries = self._by_structure.get(structure)
        except TypeError:  # a value that cannot be hashed
            return self._eager("an argument cannot be hashed", args, kwargs)
        if entries is None:
            while len(self._by_structure) >= self._plans:
                self._hits_of_dropped += self._by_structure.pop(next(iter(self._by_structure))).hits
            entries = self._by_structure[structure] = _C._Entries(_Slow(self, structure))
        self._call.arguments = (args, kwargs)
        try:
            return entries(*tensors)
        finally:
            self._call.arguments = None

    def _eager(self, why, args, kwargs):
        self._give_up(why)
        return self._fn(*args, **kwargs)

    def _give_up(self, why):
        name = getattr(self._fn, "__qualname__", repr(self._fn))
        if self._fullgraph:
            raise Broken(f"lucid.compile: {name}: {why}")
        self._why = why
        warnings.warn(f"lucid.compile: {name} runs eagerly: {why}{guards._calling_line()}", stacklevel=4)

    def _trace(self, structure, tensors, entries, arguments, again=True, layouts=()):
        args, kwargs = arguments
        if self._why is not None or _untraceable():
            return self._fn(*args, **kwargs)
        reason = _refusal(tensors)
        if reason:
            return self._eager(reason, args, kwargs)
        known = self._sizes.find(structure, tensors) if self._sizes and again else None
        fenced = fence(tensors)
        if not _C._trace_begin(fenced.inside):
            return self._fn(*args, **kwargs)  # another thread is tracing: this call runs as it is
        inside = fenced.inside
        if fenced.fences:
            args, kwargs = unflatten(structure, iter(inside))
        watch = known or guards.Watch(self._fn, *self._roots, *objects_in(structure))
        result, graph, error, form, joint, calls = [None] * 6
        before = [_history(t) for t in inside]
        recording = self._sizes is not None and not known and _C._calls_begin(inside)
        try:
            with watch:
                result = self._fn(*args, **kwargs) if not known else known.run(inside)
                calls = _C._calls_end(tensors_in(result, watch.is_born)) if recording else None
                outside = _C._trace_outside()
                form = Result(result, inside, outside, watch.is_born)
                for found in form.objects():
                    _C._trace_break(f"it returns a {type(found).__name__}")
                if any(_history(t) != was for t, was in zip(inside, before)):
                    _C._trace_break("it changes the history or gradient of an argument")
                if _changed((args, kwargs), structure, inside):
                    _C._trace_break("it changes a list or dict among its arguments")
                try:
                    joint = trace_backward(form, inside, fenced.first, layouts)
                except Exception as refused:  # noqa: BLE001  eager raises the same if the gradient is asked for
                    _C._trace_break(f"its gradient fails: {refused}" if not isinstance(refused, LookupError) else str(refused))
        except OtherForm:
            known = False
        except Exception:
            if not known:
                raise
            known = False  # the function itself says what is wrong
        finally:
            try:
                graph = _C._trace_end()
            except _C.LucidError as broken:
                error = str(broken)
            fenced.open(tensors)
        if known is False:
            return self._trace(structure, tensors, entries, arguments, again=False)
        if fenced.fences and form:
            result = form.of(tensors)
            if _changed((args, kwargs), structure, inside):
                put_back(arguments, (args, kwargs))
        held = watch.guards() if error is None else None
        if error is None and held is None:
            error = watch.changed
            if not self._changed_something:  # made at the first use, perhaps: the next call is traced again
                self._changed_something = True
                return result
        if error is None and any(t.requires_grad and not t.is_leaf for t in graph.written()):
            error = "it writes a tensor from outside that has a history"
        if error is None:
            try:
                self._add(entries, tensors, held, graph, form, joint, structure, outside)
                self._changed_something = False
            except LookupError as missing:
                error = str(missing)
        if error is not None and layouts:  # the plan that there is stays
            return result
        if error is not None:
            self._give_up(error)
            return result
        if known:
            self._instances += 1
            return result
        if layouts:  # the same calls as before, for gradients that lie in another way
            return result
        if self._sizes:
            self._sizes.add(structure, tensors, calls, held, form.form)
        self._misses += 1
        self._warn_of_many(structure, tensors)
        return result

    def _warn_of_many(self, structure, tensors):
        count = self._misses
        if self._dynamic:  # a new first dimension is no surprise
            self._forms.add((structure, tuple((t.dtype, t.shape[1:], t.dim(), t.requires_grad) for t in tensors)))
            count = len(self._forms)
        if count > self._plans and not self._warned:
            self._warned = True
            name = getattr(self._fn, "__qualname__", repr(self._fn))
            warnings.warn(
                f"lucid.compile: {name} was traced {count} times; shapes or values it depends on keep changing",
                stacklevel=4,
            )

    def _add(self, entries, tensors, held, graph, form, joint, structure, outside):
        def eager(*tensors, fn=self._fn):
            args, kwargs = unflatten(structure, iter(tensors))
            return fn(*args, **kwargs)

        found = [g for part in joint.parts for g in part[2] if g is not None] if joint else []
        _C._simplify(graph, [*form.made, *found], [part[0] for part in joint.parts] if joint else [])
        graphs = self._graphs and cuda_graphs.fits(tensors, outside)
        if joint is None:
            forward, backward = _C._Plan(graph, 0, -1, -1, form.made), None
            if any(t.requires_grad for t in form.made):
                raise LookupError("a result wants a gradient, but nothing it was made of gets one")
            graphs = graphs and not forward.facts()["given_outputs"]  # results that share memory with what the caller has
            forward = cuda_graphs.GraphedPlan(forward, outside) if graphs else forward
            direct = form.all_made and not graphs
            plan, finish = (forward, form.finisher()) if direct else (None, Replayed(eager, forward, form))
        else:
            forward = _C._Plan(graph, 0, joint.cut, joint.cut, form.made)
            if forward.facts()["given_outputs"]:
                raise LookupError("a result that wants a gradient shares memory with an input or a parameter")
            about = eager, form, graph, forward, joint, len(tensors)
            plan, finish = None, GraphedRecorded(*about, outside=outside) if graphs else Recorded(*about)
            if self._sizes is None:
                finish.trace_again = _Again(self, structure)
            forward, backward = finish.shown
        form.forget()
        entries.add(tensors, held, plan, finish, self._plans)
        self._traced.append((forward, backward))
        self._kinds.append([(t.dtype, t.shape) for t in tensors])
        del self._traced[: -self._plans], self._kinds[: -self._plans]


class _Again:
    """Traces a recorded call again, for gradients in other layouts; its successor answers from then on, where it did. It does
    not hold the function either."""

    def __init__(self, owner, structure):
        self.owner, self.structure = weakref.ref(owner), structure

    def __call__(self, recorded, inputs, layouts):
        owner, entries = self.owner(), _Successor(recorded)
        arguments = unflatten(self.structure, iter(inputs))
        return owner._trace(self.structure, list(inputs), entries, arguments, again=False, layouts=layouts)


class _Successor:
    """Takes the place of a function's entries: what is added there follows a recorded call."""

    def __init__(self, recorded):
        self.recorded = recorded

    def add(self, tensors, held, plan, finish, most):
        self.recorded.successor = finish


class _Slow:
    """Where calls of one structure go that no plan answers. It does not hold the function, which holds it: plans go with the
    function, at once."""

    def __init__(self, owner, structure):
        self.owner, self.structure = weakref.ref(owner), structure

    def __call__(self, *tensors):
        owner = self.owner()
        entries = owner._by_structure.get(self.structure)
        if entries is None:  # another thread has made room for other structures
            entries = _C._Entries(owner._fn)
        return owner._trace(self.structure, list(tensors), entries, owner._call.arguments)


def described(name, plan):
    """A line about a plan.

    >>> f = lucid.compile(lambda x: x + 1)
    >>> _ = f(lucid.ones(1))
    >>> lucid._compile.function.described("forward", f._traced[-1][0])[:16]
    'forward: 1 steps'
    """
    f, state = plan.facts(), getattr(plan, "state", "")
    return (
        f"{name}: {f['steps']} steps ({f['dropped']} dropped, {f['fused_steps']} fused into {f['fused_regions']} regions); "
        f"intermediates {f['made_bytes']} bytes one by one; with results at most {f['peak_bytes']} bytes at a time, "
        f"{f['arena_bytes']} of them in the arena, {f['in_place']} in place of others, {f['recomputed']} steps run twice"
        f"{state and '; ' + state}"
    )


def _untraceable():
    """A trace is running, or vmap is: its tensors are not what they seem."""
    return _C._trace_running() or _C._batch_level()


def _changed(arguments, structure, tensors):
    found = []
    now = flatten(arguments, found)
    return now != structure or len(found) != len(tensors) or any(a is not b for a, b in zip(found, tensors))


def _history(t):
    return t.grad_fn, t.requires_grad, id(t.grad) if t.is_leaf and t.grad is not None else None


def compiled(fn, **settings):
    """A Compiled; with LUCID_COMPILE_CHECK=1 one that compares itself with eager.

    >>> lucid._compile.function.compiled(lambda x: x + 1)(lucid.ones(1))
    tensor([2.])
    """
    from . import check

    return (check.CheckedFunction if check.wanted() else Compiled)(fn, **settings)


def _compiled_again(fn, settings):
    return compiled(fn, **settings)


def _refusal(tensors):
    for t in tensors:
        if type(t) is not _C.Tensor and not isinstance(t, _parameter()):
            return f"an argument is a {type(t).__name__}"
        if t.device.type == "meta":
            return "an argument is on the meta device"
    wanting = {id(t): t for t in tensors if t.requires_grad}.values()
    if any(not t.is_leaf for t in wanting):
        if len({t.untyped_storage().data_ptr() for t in wanting}) < len(wanting):
            return "arguments that want gradients share memory"
    return None


@functools.cache
def _parameter():
    from ..nn.parameter import Parameter

    return Parameter
