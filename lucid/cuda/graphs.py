"""Captured graphs: work that was recorded once and is launched as a whole. One call, whatever the number of kernels.

>>> if lucid.cuda.is_available():
...     x = lucid.zeros(3, device="cuda")
...     g = lucid.cuda.CUDAGraph()
...     with lucid.cuda.graph(g):
...         y = x + 1
...     _ = x.copy_(lucid.tensor([1.0, 2.0, 3.0]))
...     g.replay()
...     assert y.tolist() == [2.0, 3.0, 4.0]
"""

import warnings

from .. import _C
from .streams import Stream, StreamContext, is_current_stream_capturing

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_EMPTY = "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or stream."
_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}


def graph_pool_handle():
    """A name for memory that several graphs share: pass it as `pool`. They must not run at the same time.

    >>> if lucid.cuda.is_available():
    ...     pool = lucid.cuda.graph_pool_handle()
    """
    return 0, _C._cuda_pool_new()


class CUDAGraph:
    """Recorded work. `cuda.graph` records; `replay` runs it, on the same memory, with the values that are there then.

    Tensors that are made while it is captured lie in a pool of the graph: a replay writes them anew. Random numbers go on from
    replay to replay as if the calls were made again.

    >>> if lucid.cuda.is_available():
    ...     g = lucid.cuda.CUDAGraph()
    """

    def __init__(self, keep_graph=False):
        _C._cuda_open()
        self._graph, self._ready = None, False

    def capture_begin(self, pool=None, capture_error_mode="global", check_input_liveness=False):
        """Record what this thread's current stream gets from now on. `cuda.graph` does this and more."""
        _not_watched(check_input_liveness)
        if capture_error_mode not in _MODES:
            raise RuntimeError(
                f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
            )
        if self._graph is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        self._graph = _C._cuda_graph_begin(_number(pool), _MODES[capture_error_mode])

    def capture_end(self):
        """End the recording."""
        if self._end():
            warnings.warn(_EMPTY, stacklevel=2)

    def _end(self):
        if self._graph is None or self._ready:
            raise RuntimeError("capture_end: no capture is under way")
        try:
            empty = _C._cuda_graph_finish(self._graph)
        except BaseException:
            self._graph = None
            raise
        self._ready = True
        return empty

    def instantiate(self):
        """The graph is ready when the capture ends: nothing is to be done."""
        self._captured()

    def _captured(self):
        if not self._ready:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        return self._graph

    def replay(self):
        """Run the recorded work on the current stream."""
        _C._cuda_graph_replay(self._captured())

    def reset(self):
        """Forget the graph and give up its memory. Tensors that were made in it keep theirs."""
        self._graph, self._ready = None, False

    def pool(self):
        """A name for its memory, for graphs that share it."""
        if self._graph is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return 0, _C._cuda_graph_pool(self._graph)

    def enable_debug_mode(self):
        """`debug_dump` works without."""

    def debug_dump(self, debug_path):
        """Write the graph as a DOT file."""
        _C._cuda_graph_print(self._captured(), str(debug_path))


def _not_watched(asked):
    if asked:
        raise NotImplementedError("cuda.graph: enable_annotations and check_input_liveness")


def _number(pool):
    if pool is None:
        return 0
    pool = getattr(pool, "id", pool)
    return int(pool[1] if isinstance(pool, tuple) else pool)


class graph:
    """A `with` block whose work is recorded into a graph instead of being run.

    capture_error_mode: which calls that cannot be recorded are refused meanwhile, those of all threads ("global"), of this one
    ("thread_local") or none ("relaxed").

    >>> if lucid.cuda.is_available():
    ...     with lucid.cuda.graph(lucid.cuda.CUDAGraph()):
    ...         y = lucid.ones(3, device="cuda") * 2
    """

    default_capture_stream = None

    def __init__(
        self,
        cuda_graph,
        pool=None,
        stream=None,
        capture_error_mode="global",
        enable_annotations=False,
        check_input_liveness=False,
    ):
        _not_watched(enable_annotations or check_input_liveness)
        if stream is None and graph.default_capture_stream is None:
            graph.default_capture_stream = Stream()
        self.capture_stream = graph.default_capture_stream if stream is None else stream
        self.cuda_graph, self.pool, self.capture_error_mode = cuda_graph, pool, capture_error_mode
        self.stream_ctx = StreamContext(self.capture_stream)

    def __enter__(self):
        _C._cuda_synchronize(self.capture_stream.device_index)
        _C._cuda_empty_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self.stream_ctx.__exit__()
            raise

    def __exit__(self, kind, error, trace):
        try:
            empty = self.cuda_graph._end()
            if empty and kind is None:
                warnings.warn(_EMPTY, stacklevel=2)
        except Exception:
            if kind is None:
                raise  # else the error of the block says more
        finally:
            self.stream_ctx.__exit__()


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """Functions or modules whose forward and backward are captured, each, and replayed from then on.

    sample_args: tensors as the calls will get, with the same shapes and requires_grad. Calls copy their arguments there, and
    results are overwritten by the next call.

    >>> if lucid.cuda.is_available():
    ...     layer = lucid.nn.Linear(3, 3, device="cuda")
    ...     fast = lucid.cuda.make_graphed_callables(layer, (lucid.zeros(2, 3, device="cuda"),))
    ...     fast(lucid.ones(2, 3, device="cuda")).sum().backward()
    """
    from .graphed import graphed

    return graphed(callables, sample_args, num_warmup_iters, allow_unused_input, pool)
