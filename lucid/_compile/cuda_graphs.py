"""Plans on a CUDA device as captured graphs: one launch for all kernels.

A plan runs once as it is, so that every kernel is compiled; then it is captured on tensors of its own, into which later calls
copy their arguments. Parameters and other tensors from outside are read where they lie: when one has moved, the plan is
captured again. What cannot be captured goes on as a plan, and `explain` says why.
"""

import threading

from .. import _C


def fits(tensors, outside):
    """Whether everything a plan reads is on one CUDA device.

    >>> lucid._compile.cuda_graphs.fits([lucid.ones(1)], [])
    False
    """
    devices = {str(t.device) for t in (*tensors, *outside) if t.numel()}
    return len(devices) == 1 and next(iter(devices)).startswith("cuda")


class GraphedPlan:
    """A plan that is replayed as a graph from its second run on.

    >>> lucid._compile.cuda_graphs.GraphedPlan(None, []).state
    'not captured yet'
    """

    def __init__(self, plan, outside):
        self.plan, self.outside = plan, list(outside)
        self.state, self.replays, self._runs = "not captured yet", 0, 0
        self._graph, self._lock = None, threading.Lock()

    def __getattr__(self, name):  # facts, text, ... are the plan's
        return getattr(self.plan, name)

    def _places(self):
        return [t.data_ptr() for t in self.outside]

    def run(self, inputs, copies=True):
        """What the plan's run returns. copies=False: the graph's own tensors, which the next run overwrites."""
        if self._runs == 0 or self.state.startswith("no graph") or _C._cuda_capturing():
            self._runs += 1
            return self.plan.run(inputs)
        with self._lock:
            if self._graph is None or self._places() != self._where:
                made = self._capture(inputs)
                if made is None or self._graph is None:
                    return made
            index = self._inputs[0].device.index if self._inputs else _C._cuda_current_device()
            stream = _C._cuda_stream_get(index)
            if stream != self._last:  # its memory may still be in use there
                _C._cuda_stream_wait_stream(index, stream or 0, index, self._last or 0)
                self._last = stream
            for place, given in zip(self._inputs, inputs):
                if place is not given:
                    place.detach().copy_(given.detach(), True)
            self._graph.replay()
            self.replays += 1
            return [t.clone() for t in self._made] if copies else self._made

    def _capture(self, inputs):
        """Capture anew. Returns the results of a run as a plan if that fails, and None if the plan does not fit."""
        from ..cuda import CUDAGraph, graph

        self._graph, self._made = None, None
        statics = []
        for k, t in enumerate(inputs):  # one tensor twice stays one tensor
            same = next((j for j in range(k) if inputs[j] is t), None)
            statics.append(t.detach().clone().requires_grad_(t.requires_grad) if same is None else statics[same])
        captured = CUDAGraph()
        try:
            with graph(captured, capture_error_mode="thread_local"):
                made = self.plan.run(statics)
        except Exception as refused:  # noqa: BLE001  the plan itself raises the same if it is at fault
            self.state = f"no graph: {refused}"
            return self.plan.run(inputs)
        if made is None:
            self.state = "no graph: its memory is arranged in another way than it was traced"
            return self.plan.run(inputs)
        self._graph, self._inputs, self._made, self._where = captured, statics, made, self._places()
        self._last = _C._cuda_stream_get(_C._cuda_current_device())
        self.state = "a CUDA graph"
        return made
