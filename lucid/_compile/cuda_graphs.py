"""Plans on a CUDA device as captured graphs: one launch for all kernels.

A plan runs once as it is, so that every kernel is compiled; then it is captured on tensors of its own, into which later calls
copy their arguments, and results are copied out. Parameters and other tensors from outside are read and written where they lie:
when one has moved, the plan is captured again. What cannot be captured goes on as a plan, and `explain` says why.
"""

import collections
import threading

from .. import _C
from .gradients import version_of


def fits(tensors, outside):
    """Whether everything a plan reads is on one CUDA device.

    >>> lucid._compile.cuda_graphs.fits([lucid.ones(1)], [])
    False
    """
    devices = {str(t.device) for t in (*tensors, *outside) if t.numel()}
    return len(devices) == 1 and next(iter(devices)).startswith("cuda")


class NoGraph(Exception):
    """Why a plan cannot be captured.

    >>> str(lucid._compile.cuda_graphs.NoGraph("it reads a value"))
    'it reads a value'
    """


def place_for(given):
    """Memory for a tensor that lies as this one does: a plan reads it with the strides that were traced.

    >>> lucid._compile.cuda_graphs.place_for(lucid.ones(4, 6)[:, ::2]).stride()
    (6, 2)
    """
    if given.is_conj() or given.is_neg():
        raise NoGraph("an argument is conjugated or negated lazily")
    span = 0
    for stride, size in sorted((s, n) for s, n in zip(given.stride(), given.shape) if n > 1):
        if stride <= span:
            raise NoGraph("elements of an argument share memory")
        span += stride * (size - 1)
    from ..autograd import inference_mode

    with inference_mode(False):  # a tensor that counts when it is written
        place = _C.empty_strided(given.shape, given.stride(), dtype=given.dtype, device=given.device)
    place.copy_(given.detach(), True)
    return place


class Captured:
    """A plan that was captured once, on places for its inputs. `own`: tensors of earlier graphs, which are places already.

    After construction `made` has what the plan gives; `replay` writes it anew.

    >>> class Twice:
    ...     def facts(self):
    ...         return {"host_steps": 0}
    ...     def run(self, inputs):
    ...         return [inputs[0] * 2]
    >>> if lucid.cuda.is_available():
    ...     x = lucid.ones(3, device="cuda")
    ...     graph = lucid._compile.cuda_graphs.Captured(Twice(), [x], [])
    ...     graph.replay([x + 1])
    ...     assert graph.results()[0].tolist() == [4.0, 4.0, 4.0]
    """

    def __init__(self, plan, inputs, outside, own=(), pool=None, turn=None):
        from ..cuda import CUDAGraph, graph

        if plan.facts()["host_steps"]:  # a replay would not do them again
            raise NoGraph("a part of it runs on the CPU")
        places, self.outside = {id(t): t for t in own}, outside
        for t in inputs:  # one tensor twice stays one tensor
            if id(t) not in places:
                places[id(t)] = place_for(t)
        self.inputs = [places[id(t)] for t in inputs]
        self.numbers = list({id(place): k for k, place in reversed(list(enumerate(self.inputs)))}.values())  # each place once
        on = next((t.device for t in (*inputs, *outside) if t.numel()), None)
        self.device = on.index if on else _C._cuda_current_device()
        seen = [*self.inputs, *outside]
        versions = [version_of(t) for t in seen]
        self.graph = CUDAGraph()
        try:
            with graph(self.graph, pool=pool, capture_error_mode="thread_local"):
                self.made = plan.run(self.inputs)
        except Exception as refused:  # noqa: BLE001  the plan itself raises the same if it is at fault
            raise NoGraph(str(refused)) from refused
        if self.made is None:
            raise NoGraph("its memory is arranged in another way than it was traced")
        by = [version_of(t) - was for t, was in zip(seen, versions)]
        if any(by[: len(inputs)]):
            raise NoGraph("it writes an argument")
        self.written = [(t, n) for t, n in zip(outside, by[len(inputs) :]) if n]
        self.where = self.places()
        self.turn = [_C._cuda_stream_get(self.device)] if turn is None else turn  # the stream of the last run in this memory
        where = collections.Counter(t.untyped_storage().data_ptr() for t in self.made)
        # A plain copy is all it takes: no other result shares the memory, and a copy lies as the original does.
        self.alone = [
            not t.numel() or (where[t.untyped_storage().data_ptr()] == 1 and t.clone().stride() == t.stride())
            for t in self.made
        ]

    def places(self):
        """Where the tensors from outside lie now."""
        return [t.data_ptr() for t in self.outside]

    def wait(self):
        """The current stream waits for the last run."""
        stream, last = _C._cuda_stream_get(self.device), self.turn[0]
        if stream != last:
            _C._cuda_stream_wait_stream(self.device, stream or 0, self.device, last or 0)
            self.turn[0] = stream

    def replay(self, inputs):
        """Run on these inputs."""
        self.wait()
        for k in self.numbers:
            place, given = self.inputs[k], inputs[k]
            if place is not given:
                place.detach().copy_(given.detach(), True)
        self.graph.replay()
        for t, by in self.written:
            _C._set_version(t, t._version + by)

    def results(self, first=0, last=None):
        """Copies of what was made, which the next replay leaves alone. They lie, and share memory, as eager's results do."""
        found, wholes = [], {}
        for t, alone in zip(self.made[first:last], self.alone[first:last]):
            if alone:
                found.append(t.clone())
                continue
            memory = t.untyped_storage()
            whole = wholes.get(memory.data_ptr())
            if whole is None:
                flat = t.detach().as_strided((memory.nbytes() // t.itemsize,), (1,), 0)
                whole = wholes[memory.data_ptr()] = flat.clone()
            found.append(whole.view(t.dtype).as_strided(t.shape, t.stride(), t.storage_offset()))
        return found


class GraphedPlan:
    """A plan that is replayed as a graph from its second run on.

    >>> lucid._compile.cuda_graphs.GraphedPlan(None, []).state
    'not captured yet'
    """

    def __init__(self, plan, outside):
        self.plan, self.outside = plan, list(outside)
        self.state, self.replays, self._runs = "not captured yet", 0, 0
        self._captured, self._lock = None, threading.Lock()

    def __getattr__(self, name):  # facts, text, ... are the plan's
        return getattr(self.plan, name)

    def run(self, inputs, copies=True):
        """What the plan's run returns. copies=False: the graph's own tensors, which the next run overwrites."""
        if self._runs == 0 or self.state.startswith("no graph") or _C._cuda_capturing():
            self._runs += 1
            return self.plan.run(inputs)
        with self._lock:
            if self._captured is None or self._captured.places() != self._captured.where:
                self._captured = None
                try:
                    self._captured = Captured(self.plan, inputs, self.outside)
                except NoGraph as refused:
                    self.state = f"no graph: {refused}"
                    return self.plan.run(inputs)
            self._captured.replay(inputs)
            self.replays += 1
            self.state = f"a CUDA graph, {self.replays} replays"
            return self._captured.results() if copies else self._captured.made
