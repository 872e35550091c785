"""Training steps as one plan: forward, loss, backward, clipping and the optimizer."""

import warnings
import weakref

from .. import _C
from . import cuda_graphs, guards
from .drawing import drawing
from .function import PLANS, Broken, CacheInfo, _refusal, described

_RUN_TIME = ("lr",)  # settings of an optimizer that are given to the plan at every call


class CompiledStep:
    """`step(*inputs, target)`: see `lucid.compile_step`.

    >>> layer = lucid.nn.Linear(1, 1)
    >>> step = lucid.compile_step(layer, lucid.nn.functional.mse_loss, lucid.optim.SGD(layer.parameters(), lr=0.0))
    >>> x = lucid.zeros(1, 1)
    >>> [step(x, layer(x).detach()).item() for _ in range(3)], step.cache_info().hits
    ([0.0, 0.0, 0.0], 1)
    """

    def __init__(self, model, loss_fn, optimizer, *, grad_clip=None, scaler=None, scheduler=None):
        self.model, self.loss_fn, self.optimizer = model, loss_fn, optimizer
        self.grad_clip, self.scaler, self.scheduler = grad_clip, scaler, scheduler
        self._params = [p for group in optimizer.param_groups for p in group["params"]]
        self._why = None
        # On a CUDA device forward and backward are captured; what counts steps stays outside of the graph.
        self._graphs = scaler is None and bool(self._params) and all(p.device.type == "cuda" for p in self._params)
        self._apart = scaler is not None or self._graphs
        self._start()

    def _start(self):
        self._entries, self._ready, self._misses, self._plan_of = _C._Entries(self._slow), False, 0, []
        self._changed_something, self._graph_of = False, []

    def invalidate_cache(self):
        """Forget all plans; the next call traces again."""
        self._start()

    def cache_info(self):
        """Hits, misses, and how many plans there are."""
        return CacheInfo(self._entries.hits, self._misses, PLANS, min(len(self._plan_of), PLANS))

    def graph(self, format="text"):
        """The steps of the newest plan as text, or as a drawing (format="svg")."""
        text = self._plan_of[-1].text() if self._plan_of else ""
        if format not in ("text", "svg"):
            raise ValueError(f"graph: format is 'text' or 'svg', not {format!r}")
        return text if format == "text" else drawing(text)

    @property
    def replays(self):
        """How many steps were replayed as a captured graph."""
        return sum(getattr(plan, "replays", 0) for plan in self._plan_of)

    def explain(self, *inputs):
        """What the plan does, or why there is none. With inputs and target like those of the newest plan: the steps that take
        most of its time; what they write is put back."""
        if self._why:
            return f"runs eagerly: {self._why}"
        if not self._plan_of:
            return "not traced yet"
        lines = [described("step", self._plan_of[-1])]
        if inputs:
            from .check import Memory
            from .timing import step_lines, step_times

            before = Memory([*inputs, *self._graph_of[-1].written()])
            try:
                lines += step_lines(self._plan_of[-1], step_times(self._plan_of[-1], inputs))
            finally:
                before.restore()
        return "\n".join(lines)

    def __call__(self, *inputs):
        loss = self._entries(*inputs)
        if self.scheduler is not None:
            self.scheduler.step()
        return loss

    # --- one step, eagerly ---
    def _eager(self, *inputs):
        loss = self._gradients(*inputs)
        self._update()
        return loss

    def _gradients(self, *inputs):
        *inputs, target = inputs
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(*inputs), target)
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        return loss.detach()

    def _update(self):
        if self.grad_clip is not None:
            if self.scaler is not None:
                self.scaler.unscale_(self.optimizer)
            self._clip()
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()

    def _clip(self):
        from ..nn.utils import clip_grad_norm_

        clip_grad_norm_(self._params, self.grad_clip)

    # --- tracing ---
    def _slow(self, *inputs):
        if self._why is not None or _C._trace_running():
            return self._eager(*inputs)
        if not self._ready:  # the optimizer makes its state in the first step
            self._ready = True
            return self._eager(*inputs)
        reason = "an argument is not a tensor" if not all(isinstance(t, _C.Tensor) for t in inputs) else _refusal(inputs)
        if reason is None and any(p.grad is not None and p.grad.requires_grad for p in self._params):
            reason = "a gradient has a history"
        if reason is not None:
            self._give_up(reason)
            return self._eager(*inputs)
        self.optimizer.zero_grad()
        if not _C._trace_begin(inputs):
            return self._eager(*inputs)
        watch, error, graph, loss = guards.Watch(self.model, self.loss_fn), None, None, None
        watch.may_call_backward = True
        groups = [(g, [k for k in g if k not in _RUN_TIME]) for g in self.optimizer.param_groups]
        try:
            with watch:
                loss = self._gradients(*inputs) if self._apart else self._eager(*inputs)
                outside = _C._trace_outside()
        finally:
            try:
                graph = _C._trace_end()
            except _C.LucidError as broken:
                error = str(broken)
        self._forget_run_time(watch)
        held = watch.guards() if error is None else None
        if error is None and held is None:
            error = watch.changed
            if not self._changed_something:  # as in functions: the next call is traced again
                self._changed_something = True
                if self.scaler is not None:
                    self._update()
                return loss
        if error is None:
            try:
                self._add(inputs, held, graph, loss, groups, outside)
                self._changed_something = False
            except LookupError as missing:
                error = str(missing)
        if error is not None:
            self._give_up(error)
        if self._apart:
            self._update()
        return loss

    def _forget_run_time(self, watch):
        """Settings that the plan gets anew, counts of the optimizer and of its hooks, and gradients are no guards."""
        own = [self.optimizer.__dict__, self.optimizer.state, self.__dict__, *self.optimizer.param_groups]
        own += list(self.optimizer.state.values())
        for where in own:
            watch.found.pop(id(where), None)
        for other in (self.scheduler, self.scaler):
            if other is not None:
                watch.found.pop(id(other.__dict__), None)
                for value in vars(other).values():  # counts, lists of rates
                    watch.found.pop(id(value), None)
        for group in self.optimizer.param_groups:
            watch.note_dict(group, [k for k in group if k not in _RUN_TIME], "a setting of the optimizer")

    def _give_up(self, why):
        self._why = why
        warnings.warn(f"lucid.compile_step runs eagerly: {why}{guards._calling_line()}", stacklevel=4)

    def _add(self, inputs, held, graph, loss, groups, outside):
        params = [p for p in self._params if p.grad is not None]
        results = [loss, *[p.grad for p in params]]
        _C._simplify(graph, results, [])
        plan = _C._Plan(graph, 0, -1, -1, results)
        if (
            not self._apart
            and plan.set_number("lr", -1, 0.0) != len(groups)
            and not all(isinstance(g["lr"], _C.Tensor) for g, _ in groups)
        ):
            raise LookupError("the optimizer's learning rate is not an argument of one call per group")
        rates, counted = [g["lr"] for g, _ in groups], 0 if self._apart else len(groups)
        heavy = sum(p.numel() * p.dtype.itemsize for p in params) > 1 << 20
        optimizer, steps, apart = self.optimizer, plan.set_number, self._apart
        this = weakref.ref(self)  # plans go with the step, at once

        graphed = self._graphs and cuda_graphs.fits(inputs, outside)
        if graphed:
            plan = cuda_graphs.GraphedPlan(plan, outside)

        def finish(*inputs):
            for k in range(counted):
                rate = optimizer.param_groups[k]["lr"]
                if rate != rates[k]:
                    rates[k] = rate
                    steps("lr", k, float(rate))
            if graphed:
                made = plan.run(inputs, copies=False)
                if made is None:
                    return this()._eager(*inputs)
                for p, g in zip(params, made[1:]):
                    p.grad = g
                this()._update()
                return made[0].clone()
            if heavy:  # the memory of the old gradients is free for the new ones
                for p in params:
                    p.grad = None
            made = plan.run(inputs)
            if made is None:
                return this()._eager(*inputs)
            for p, g in zip(params, made[1:]):
                p.grad = g
            if apart:
                this()._update()
            return made[0]

        self._misses += 1
        self._plan_of.append(plan)
        self._graph_of.append(graph)
        self._entries.add(list(inputs), held, None, finish, PLANS)


__all__ = ["Broken", "CompiledStep"]
