"""Compiled functions whose forward and backward are captured graphs (mode="reduce-overhead" on a CUDA device).

The two graphs are a pair: backward reads what forward keeps where forward's graph writes it. Another replay of forward would
change that, so a pair belongs to one call from its forward until nobody can ask for its gradients any more: they were computed
without retain_graph, or the results are gone. A call that finds no pair free gets another one, up to MOST_PAIRS; further calls
run as plans. Results and gradients are copied out of the graphs.

How it is known that a call is over: its node saves a tensor on memory of a `_Lease`, and saved tensors are freed exactly then.
"""

import threading
import weakref

from .. import _C
from .cuda_graphs import Captured, NoGraph
from .gradients import Recorded

MOST_PAIRS = 2  # each keeps what backward reads


class _Lease(bytearray):
    """One call's right to a pair."""

    __slots__ = ("__weakref__",)


class _Pair:
    def __init__(self, forward):
        self.forward, self.backward, self.turn, self._lease = forward, None, 0, None

    def is_free(self):
        return self._lease is None or self._lease() is None

    def lend(self):
        """A tensor: the pair is free again when its memory is."""
        lease = _Lease(1)
        self._lease, self.turn = weakref.ref(lease), self.turn + 1
        return _C.frombuffer(lease, dtype=_C.uint8)

    def stands(self):
        """Whether what the graphs read from outside lies where it was captured."""
        return self.forward.places() == self.forward.where


class _Stated:
    """A plan as `explain` shows it."""

    def __init__(self, plan, owner):
        self._plan, self._owner = plan, weakref.ref(owner)

    def __getattr__(self, name):
        return getattr(self._plan, name)

    @property
    def state(self):
        owner = self._owner()
        return owner.state(self._plan) if owner else ""


class GraphedRecorded(Recorded):
    """A call with gradients that is two graphs, from the second on.

    >>> issubclass(lucid._compile.graphed_gradients.GraphedRecorded, lucid._compile.gradients.Recorded)
    True
    """

    def __init__(self, *about, outside):
        super().__init__(*about)
        self.outside, self.pairs, self.refused, self.replays = list(outside), [], None, [0, 0]
        self.ran, self.lock = [False, False], threading.Lock()  # forward, backward: as plans, so that all kernels are compiled
        self.shown = _Stated(self.forward, self), _Stated(self.backward, self)

    def state(self, plan):
        """Whether that plan is a graph."""
        if self.refused:
            return f"no graph: {self.refused}"
        backward = plan is self.backward
        count = sum((p.backward if backward else p) is not None for p in self.pairs)
        return f"{count} CUDA graphs, {self.replays[backward]} replays" if count else "not captured yet"

    def _borrowed(self, inputs):
        """A free pair and its lease. None: this call runs as a plan."""
        from ..autograd import graph

        if self.refused or not self.ran[0] or _C._cuda_capturing() or graph._state.active:
            return None  # saved_tensors_hooks may let go of the lease too early
        with self.lock:
            self.pairs = [p for p in self.pairs if p.stands() or not p.is_free()]
            pair = next((p for p in self.pairs if p.is_free() and p.stands()), None)
            if pair is None and len(self.pairs) < MOST_PAIRS:
                try:
                    pair = _Pair(Captured(self.forward, inputs, self.outside))
                except NoGraph as why:
                    self.refused = str(why)
                    return None
                self.pairs.append(pair)
            return pair and (pair, pair.lend())

    def run(self, ctx, inputs):
        borrowed = self._borrowed(inputs)
        ctx.pair = None
        if borrowed is None:
            made = super().run(ctx, inputs)
            self.ran[0] = True
            return made
        pair, lease = borrowed
        pair.forward.replay(inputs)
        self.replays[0] += 1
        ctx.save_for_backward(lease)
        ctx.pair, ctx.turn = pair, pair.turn
        saved, outputs = pair.forward.made[self.n_outputs :], pair.forward.results(0, self.n_outputs)
        return self.kept(ctx, inputs, pair.forward.inputs, saved, outputs)

    def replayed(self, ctx, seeds):
        pair = ctx.pair
        if pair is None:
            found = super().replayed(ctx, seeds)
            self.ran[1] = True
            return found
        _ = ctx.saved_tensors  # raises if they were freed
        if pair.turn != ctx.turn:
            raise RuntimeError("the memory that backward of a compiled function reads was used by a later call")
        forward = pair.forward
        (part, *_), given = self.parts_for(seeds)
        with self.lock:
            forward.wait()
            whole = part.plan is not None and all(s is not None for s in seeds)
            may = whole and self.ran[1] and pair.stands() and not _C._cuda_capturing()
            # Results may share one gradient in this call and not in the next: each has a place of its own.
            inputs = self.read_by_backward(ctx, [s.detach() for s in given]) if may else []
            if not (may and self._is_captured(pair, part, ctx, inputs)):
                found = super().replayed(ctx, seeds)
                self.ran[1] = True
                return [None if g is None else g.clone() for g in found]  # they may be views of what graphs keep
            pair.backward.replay(inputs)
            self.replays[1] += 1
            made = iter(pair.backward.results())
            return [None if none else next(made) for none in part.none]

    def parts_for(self, seeds):
        """A graph copies the gradients that come in: they are contiguous there, whatever they came as."""
        return next(iter(self.layouts.values())), [None if s is None else s.contiguous() for s in seeds]

    def _is_captured(self, pair, part, ctx, inputs):
        if pair.backward is None and not self.refused:
            own, forward = [*pair.forward.inputs, *ctx.saved], pair.forward
            try:
                pair.backward = Captured(part.plan, inputs, self.outside, own, forward.graph.pool(), turn=forward.turn)
            except NoGraph as why:
                self.refused = str(why)
        return pair.backward is not None
