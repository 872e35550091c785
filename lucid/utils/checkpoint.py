"""Activation checkpointing: keep the inputs of a function instead of its saved tensors, and recompute those in backward.

>>> x = lucid.ones(3, requires_grad=True)
>>> y = lucid.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False)
>>> y.sum().backward()
>>> x.grad.shape
lucid.Size([3])
"""

import contextlib
import threading
import warnings

from .. import _C, autograd, cuda, random
from ..autograd import graph


class CheckpointError(RuntimeError):
    """Raised if the recomputation saved other tensors than the first run.

    >>> issubclass(lucid.utils.checkpoint.CheckpointError, RuntimeError)
    True
    """


_SELECTIVE = ("CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts")
_threads = threading.local()


def __getattr__(name):
    if name in _SELECTIVE:
        from . import selective_checkpoint

        return getattr(selective_checkpoint, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def running():
    """The innermost checkpoint that runs its function on this thread, for the first time or again.

    >>> from lucid.utils.checkpoint import checkpoint, running
    >>> y = checkpoint(lambda x: (print(type(running()).__name__), x.sin())[1], lucid.ones(1), use_reentrant=False)
    _Frame
    """
    return _threads.frames[-1]


class _Enough(Exception):  # noqa: N818 (not an error)
    """Raised when all saved tensors have been recomputed."""


def noop_context_fn():
    """The contexts of a checkpoint that needs none: for the forward, and for computing it again.

    >>> forward, again = lucid.utils.checkpoint.noop_context_fn()
    """
    return contextlib.nullcontext(), contextlib.nullcontext()


_KINDS = (0, 1)  # of devices that have autocast: the CPU, CUDA


def _random_state():
    """The states of the random streams of the CPU and of all GPUs in use."""
    return random.get_rng_state(), cuda.get_rng_state_all() if _C._cuda_initialized() else []


def _set_random_state(state):
    random.set_rng_state(state[0])
    cuda.set_rng_state_all(state[1])


@contextlib.contextmanager
def _as_then(random_state, autocast):
    """Restores the random states and autocast of the first run."""
    now = None if random_state is None else _random_state()
    outside = [_C._autocast_get(kind) for kind in _KINDS]
    if random_state is not None:
        _set_random_state(random_state)
    _C._autocast_nest(True)
    try:
        for kind in _KINDS:
            _C._autocast_set(kind, *autocast[kind])
        yield
    finally:
        if _C._autocast_nest(False) == 0:
            _C._autocast_forget()
        for kind in _KINDS:
            _C._autocast_set(kind, *outside[kind])
        if now is not None:
            _set_random_state(now)


class _Frame:
    """One checkpointed call: how to run it again, and what that has given."""

    def __init__(self, run, preserve, again, check, early_stop):
        self.run, self.again, self.check, self.early_stop = run, again, check, early_stop
        self.random_state = _random_state() if preserve else None
        self.autocast = [_C._autocast_get(kind) for kind in _KINDS]
        self.saved, self.found = [], {}
        self.watched = None  # a list: what is packed goes there, too
        self.keep = None  # while the function runs again: takes what would be packed

    def __enter__(self):
        if not hasattr(_threads, "frames"):
            _threads.frames = []
        _threads.frames.append(self)

    def __exit__(self, *error):
        _threads.frames.pop()

    def pack(self, tensor):
        if self.watched is not None:
            self.watched.append(tensor)
        self.saved.append((tuple(tensor.shape), tensor.dtype, tensor.device))
        return len(self.saved) - 1

    def unpack(self, index):
        if index not in self.found:
            self.compute_again()
        return self.found.pop(index)  # wanted once more only by another backward, which computes again

    def compute_again(self):
        count = 0
        self.found.clear()

        def keep(tensor):
            nonlocal count
            self.found[count] = tensor.detach()
            count += 1
            if self.early_stop and count == len(self.saved):
                raise _Enough
            return count

        def refuse(_):
            raise CheckpointError("a graph that was only made to compute tensors again cannot be used for backward")

        hooks, self.keep = graph.saved_tensors_hooks(keep, refuse), keep
        with self, _as_then(self.random_state, self.autocast), autograd.enable_grad(), self.again, hooks:
            try:
                self.run()
            except _Enough:
                pass
            finally:
                self.keep = None
        self.compare(count)

    def compare(self, count):
        if count != len(self.saved):
            self.found.clear()
            raise CheckpointError(
                f"checkpoint: the function saved {len(self.saved)} tensors at first and {count} when it was run again; "
                "it must do the same every time"
            )
        if not self.check:
            return
        for i, (shape, dtype, device) in enumerate(self.saved):
            other = self.found[i]
            if (tuple(other.shape), other.dtype, other.device) != (shape, dtype, device):
                told = f"{tuple(other.shape)} {other.dtype} on {other.device}"
                self.found.clear()
                raise CheckpointError(f"checkpoint: saved tensor {i} was {shape} {dtype} on {device} and is now {told}")


class _Reentrant(autograd.Function):
    """The older form: backward runs the function with a graph and then that graph's backward."""

    @staticmethod
    def forward(ctx, function, preserve, *args):
        ctx.function, ctx.autocast = function, [_C._autocast_get(kind) for kind in _KINDS]
        ctx.random_state = _random_state() if preserve else None
        ctx.others = [None if isinstance(a, _C.Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, _C.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with autograd.no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if _C._backward_partial():
            raise RuntimeError(
                "When use_reentrant=True, checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without "
                "passing the `inputs` argument."
            )
        inputs = list(ctx.others)
        for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[i] = tensor.detach().requires_grad_(tensor.requires_grad)
        with _as_then(ctx.random_state, ctx.autocast), autograd.enable_grad():
            outputs = ctx.function(*inputs)
        outputs = (outputs,) if isinstance(outputs, _C.Tensor) else outputs
        pairs = [(y, g) for y, g in zip(outputs, grads, strict=True) if isinstance(y, _C.Tensor) and y.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        autograd.backward([y for y, _ in pairs], [g for _, g in pairs])
        return (None, None, *(i.grad if isinstance(i, _C.Tensor) else None for i in inputs))


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    preserve_rng_state=True,
    **kwargs,
):
    """Run a function and keep only its arguments; backward runs it again for what it needs.

    use_reentrant: False recomputes when a saved tensor is first needed, and stops when all are there (early_stop); it
    works with autograd.grad, keyword arguments and nested containers. True is PyTorch's older form. preserve_rng_state: dropout
    draws the same numbers again. determinism_check: "default" compares shapes, dtypes and devices, "none" does not. context_fn:
    gives two contexts, for the first run and for the second; those of `create_selective_checkpoint_contexts` keep the results
    of chosen ops.

    >>> x = lucid.ones(3, requires_grad=True)
    >>> lucid.utils.checkpoint.checkpoint(lambda x: (x * x).sum(), x, use_reentrant=False).backward()
    >>> x.grad
    tensor([2., 2., 2.])
    """
    if use_reentrant is None:
        warnings.warn("checkpoint: use_reentrant should be passed explicitly; use_reentrant=False is recommended", stacklevel=2)
        use_reentrant = True
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'] but got {determinism_check}")
    if debug:
        raise NotImplementedError("checkpoint: debug=True is not supported; autograd.detect_anomaly shows where ops were made")
    if _C._trace_running():  # a plan keeps what its backward reads
        return function(*args, **kwargs)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        if not any(isinstance(a, _C.Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)
        return _Reentrant.apply(function, preserve_rng_state, *args)
    first, again = context_fn()
    if not autograd.is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    check = determinism_check == "default"
    frame = _Frame(lambda: function(*args, **kwargs), preserve_rng_state, again, check, early_stop)
    with frame, graph.saved_tensors_hooks(frame.pack, frame.unpack), first:
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, preserve_rng_state=True):  # noqa: A002 (PyTorch's name)
    """Run functions or the layers of a Sequential one after the other, all segments but the last checkpointed.

    >>> layers = lucid.nn.Sequential(lucid.nn.Linear(2, 2), lucid.nn.ReLU(), lucid.nn.Linear(2, 1))
    >>> lucid.utils.checkpoint.checkpoint_sequential(layers, 2, lucid.ones(1, 2), use_reentrant=False).shape
    lucid.Size([1, 1])
    """
    from ..nn import Sequential

    functions = list(functions.children()) if isinstance(functions, Sequential) else list(functions)
    if not 1 <= segments <= len(functions):
        raise ValueError(f"segments is 1 to the number of functions, {len(functions)}, not {segments}")
    size = len(functions) // segments

    def chain(part):
        def run(value):
            for function in part:
                value = function(value)
            return value

        return run

    for start in range(0, size * (segments - 1), size):
        options = {"use_reentrant": use_reentrant, "preserve_rng_state": preserve_rng_state}
        input = checkpoint(chain(functions[start : start + size]), input, **options)  # noqa: A001
    return chain(functions[size * (segments - 1) :])(input)
