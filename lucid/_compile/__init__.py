"""`lucid.compile` and `lucid.compile_step`: functions and training steps that are recorded once and run in C from then on."""

from . import check
from .function import Broken, compiled
from .step import CompiledStep

__all__ = ["compile", "compile_step"]


def compile(model=None, *, fullgraph=False, dynamic=None, backend="lucid", mode=None, options=None, disable=False):
    """A function or module that is traced when it is first called and runs as a plan from then on.

    The plan does what the function did, kernel by kernel, without Python in between: results are the function's own, bit for
    bit. A function that reads values (`if x.sum() > 0`, `.item()`) or changes Python state runs as it is, and one warning says
    why; with fullgraph=True that is an error. options: {"plans": n}, how many plans are kept (8). dynamic=True: the first
    dimension of the arguments is expected to change: 64 plans are kept, a new size there is no reason for a warning, and a
    function that does not look at sizes is run for two of them only: for others its calls are made again in C.
    mode="reduce-overhead": on a CUDA device, plans become captured graphs, one launch each: a forward, and the backward that
    belongs to it. Results and gradients are copied out of them.

    >>> @lucid.compile
    ... def f(x, y):
    ...     return (x * y).sum()
    >>> f(lucid.ones(3), lucid.ones(3)), f(lucid.ones(3), lucid.full((3,), 2.0))
    (tensor(3.), tensor(6.))
    """
    settings = dict(fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, disable=disable)
    if model is None:
        return lambda target: compile(target, **settings)
    kept = check_options(dynamic, backend, mode, options)
    if not callable(model):
        raise TypeError(f"lucid.compile: expected a function or a module, got {type(model).__name__}")
    if disable:
        return model
    from ..nn.modules.module import Module

    if isinstance(model, Module):
        from .module import compiled_module

        return compiled_module(model, fullgraph=fullgraph, **kept)
    return compiled(model, fullgraph=fullgraph, **kept)


def check_options(dynamic, backend, mode, options):
    """How many plans to keep, and whether sizes may change; raises for an argument that Lucid does not know.

    >>> lucid._compile.check_options(None, "lucid", None, {"plans": 3})
    {'plans': 3, 'dynamic': False}
    """
    if backend not in ("lucid", "inductor", "eager"):
        raise ValueError(
            f"lucid.compile: backend {backend!r} is unknown; it is 'lucid' (or 'inductor', which means the same here)"
        )
    if mode not in (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"):
        raise ValueError(f"lucid.compile: unknown mode {mode!r}")
    options = dict(options or {})
    plans = options.pop("plans", 64 if dynamic else 8)
    if not isinstance(plans, int) or plans < 1:
        raise ValueError(f"lucid.compile: options['plans'] must be a positive int, not {plans!r}")
    if options:
        raise ValueError(f"lucid.compile: unknown options {sorted(options)}; there is 'plans'")
    graphs = {"graphs": True} if mode == "reduce-overhead" else {}
    return {"plans": plans, "dynamic": bool(dynamic), **graphs}


def compile_step(model, loss_fn, optimizer, *, grad_clip=None, scaler=None, scheduler=None):
    """A whole training step as one plan: `step(*inputs, target)` returns the loss, detached.

    A step clears old gradients, computes `loss_fn(model(*inputs), target)` and its gradients, clips their norm to grad_clip,
    and steps the optimizer (and the scheduler). Learning rates may change between steps. The first call runs eagerly, the
    second is traced. With a GradScaler, which looks whether gradients overflowed before it decides about the step, forward,
    loss and backward are the plan, and unscaling, clipping and the optimizer's step follow it.

    >>> model = lucid.nn.Linear(2, 1)
    >>> step = lucid.compile_step(model, lucid.nn.functional.mse_loss, lucid.optim.SGD(model.parameters(), lr=0.1))
    >>> x, y = lucid.ones(4, 2), lucid.zeros(4, 1)
    >>> losses = [step(x, y).item() for _ in range(4)]
    >>> losses[0] > losses[1] > losses[2] > losses[3]
    True
    """
    kind = check.CheckedStep if check.wanted() else CompiledStep
    return kind(model, loss_fn, optimizer, grad_clip=grad_clip, scaler=scaler, scheduler=scheduler)
