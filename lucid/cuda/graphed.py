"""Functions and modules whose forward and backward are captured graphs: what `make_graphed_callables` makes."""

from .. import _C, autograd
from .graphs import CUDAGraph, graph, graph_pool_handle
from .streams import Stream, current_stream, stream


def graphed(callables, sample_args, warmup, allow_unused, pool):
    """`make_graphed_callables`.

    >>> if lucid.cuda.is_available():
    ...     double = lucid.cuda.graphed.graphed(lambda x: x * 2, (lucid.ones(1, device="cuda"),), 1, False, None)
    """
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    if len(callables) != len(sample_args):
        raise ValueError(
            f"make_graphed_callables: {len(callables)} callables and {len(sample_args)} tuples of sample arguments"
        )
    on, _, keeps = _C._autocast_get(1)  # of CUDA
    if on and keeps:
        raise RuntimeError("make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`.")
    pool = graph_pool_handle() if pool is None else pool
    parts = [_Part(*pair, warmup, allow_unused) for pair in zip(callables, sample_args)]
    for part in parts:
        part.warm_up()
    for part in parts:  # forward in the order of the calls, backward in the other: then they may share memory
        part.capture_forward(pool)
    for part in reversed(parts):
        part.capture_backward(pool)
    made = tuple(part.callable() for part in parts)
    return made[0] if single else made


class _Part:
    def __init__(self, function, sample_args, warmup, allow_unused):
        from ..nn import Module

        self.function, self.warmup, self.allow_unused = function, warmup, allow_unused
        self.module = function if isinstance(function, Module) else None
        if self.module is not None:
            hooked = self.module._forward_hooks or self.module._forward_pre_hooks or self.module._backward_hooks
            if hooked:
                raise RuntimeError("Modules must not have hooks registered at the time they are passed.")
            if any(b.requires_grad for b in self.module.buffers()):
                raise RuntimeError(
                    "In any :class:`~Module` passed to make_graphed_callables, only parameters may be trainable."
                )
        args = sample_args if isinstance(sample_args, tuple) else (sample_args,)
        if not all(isinstance(a, _C.Tensor) and a.device.type == "cuda" for a in args):
            raise TypeError("make_graphed_callables: sample arguments are tensors on cuda")
        self.args = args
        self.weights = tuple(self.module.parameters()) if self.module is not None else ()
        self.inputs = args + self.weights
        self.wanting = [t for t in self.inputs if t.requires_grad]

    def warm_up(self):
        side = Stream(self.args[0].device if self.args else None)
        side.wait_stream(current_stream())
        with stream(side):
            for _ in range(self.warmup):
                results = self.listed(self.function(*self.args))
                wanted = [r for r in results if r.requires_grad]
                if wanted and self.wanting:
                    ones = tuple(_C.empty_like(r) for r in wanted)
                    autograd.grad(wanted, self.wanting, ones, allow_unused=self.allow_unused)
        current_stream().wait_stream(side)

    def listed(self, result):
        if isinstance(result, _C.Tensor):
            self.form = None
            return (result,)
        if not isinstance(result, (tuple, list)) or not all(isinstance(r, _C.Tensor) for r in result):
            raise TypeError("make_graphed_callables: results are a tensor, or a tuple or list of tensors")
        self.form = type(result)
        return tuple(result)

    def capture_forward(self, pool):
        self.forward = CUDAGraph()
        with graph(self.forward, pool=pool):
            self.results = self.listed(self.function(*self.args))

    def capture_backward(self, pool):
        wanted = [r for r in self.results if r.requires_grad]
        self.arriving = tuple(_C.empty_like(r) if r.requires_grad else None for r in self.results)
        self.backward, found = None, ()
        if wanted and self.wanting:
            self.backward = CUDAGraph()
            with graph(self.backward, pool=pool):
                arriving = tuple(g for g in self.arriving if g is not None)
                found = autograd.grad(wanted, self.wanting, arriving, allow_unused=self.allow_unused)
        found = iter(found)
        self.gradients = tuple(next(found) if self.backward and t.requires_grad else None for t in self.inputs)

    def callable(self):
        part = self

        class Replayed(autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                for place, given in zip(part.args, inputs):
                    if place.data_ptr() != given.data_ptr():
                        place.copy_(given)
                part.forward.replay()
                return tuple(r.detach() for r in part.results)

            @staticmethod
            @autograd.function.once_differentiable
            def backward(ctx, *arrived):
                for place, given in zip(part.arriving, arrived):
                    if place is not None and given is not None and place.data_ptr() != given.data_ptr():
                        place.copy_(given)
                if part.backward is not None:
                    part.backward.replay()
                return tuple(g if g is None else g.detach() for g in part.gradients)

        def call(*args):
            results = Replayed.apply(*args, *part.weights)
            return results[0] if part.form is None else part.form(results)

        if self.module is None:
            return call
        training, eager = self.module.training, self.module.forward

        def forward(*args):
            return call(*args) if self.module.training == training else eager(*args)

        self.module.forward = forward
        return self.module
