"""Function transforms."""

from .. import _C
from ..utils._pytree import tree_flatten

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]


def _flatten(tree):
    """Leaves of nested containers, and a function that puts new leaves in their place."""
    leaves, spec = tree_flatten(tree)
    return leaves, spec.unflatten


def _matching(dims, tree, what):
    """One dim per leaf: an int (or None) stands for everything below it."""
    leaves, _ = _flatten(tree)
    if dims is None or isinstance(dims, int):
        return [dims] * len(leaves)
    if not isinstance(dims, (tuple, list, dict)) or not isinstance(tree, (tuple, list, dict)) or len(dims) != len(tree):
        raise ValueError(f"vmap: {what} is not compatible with the structure of the inputs")
    pairs = zip(dims.values(), tree.values()) if isinstance(tree, dict) else zip(dims, tree)
    return [d for sub, part in pairs for d in _matching(sub, part, what)]


def vmap(func, in_dims=0, out_dims=0):
    """A function that applies `func` to every example along a dimension of its inputs, all at once.

    >>> import lucid
    >>> x, w = lucid.ones(4, 3), lucid.tensor([1.0, 2.0, 3.0])
    >>> lucid.func.vmap(lambda row: (row * w).sum())(x)
    tensor([6., 6., 6., 6.])

    `in_dims` says which dimension of each input is the batch (None: not batched), `out_dims` where it comes back. Inside,
    a tensor looks like one example; keyword arguments are passed on as they are. Elementwise ops run on the whole batch; an
    op without a batching rule runs once per example and says so.
    """

    def batched(*args, **kwargs):
        leaves, build = _flatten(args)
        dims = _matching(in_dims if not isinstance(in_dims, list) else tuple(in_dims), args, "in_dims")
        sizes = {x.shape[d] for x, d in zip(leaves, dims) if d is not None and isinstance(x, _C.Tensor)}
        if len(sizes) != 1:
            raise ValueError(f"vmap: expected one size of the mapped dimension in all inputs, got {sorted(sizes) or 'none'}")
        (size,) = sizes
        level = _C._vmap_push()
        try:
            inner = [
                _C._batched(x, d, level) if d is not None and isinstance(x, _C.Tensor) else x for x, d in zip(leaves, dims)
            ]
            result = func(*build(inner), **kwargs)
            outputs, rebuild = _flatten(result)
            out = _matching(out_dims, result, "out_dims")
            if not all(isinstance(y, _C.Tensor) for y in outputs):
                raise ValueError("vmap: the function must return tensors")
            return rebuild([_C._unbatched(y, level, size, d) for y, d in zip(outputs, out)])
        finally:
            _C._vmap_pop()

    batched.__name__ = getattr(func, "__name__", "vmap")
    return batched


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Call a module with other parameters and buffers than its own.

    The tensors come in a dict by their dotted names, or in several dicts. What the module writes to a buffer by setting the
    attribute anew ends up in the dict. tie_weights: a tensor that the module has under several names is replaced under all of
    them. strict: the dict must have all names of the module and no others.

    >>> layer = lucid.nn.Linear(2, 1, bias=False)
    >>> lucid.func.functional_call(layer, {"weight": lucid.tensor([[1.0, 2.0]])}, lucid.ones(2))
    tensor([3.])
    """
    from ..nn.utils.stateless import call_with

    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, (list, tuple)) or not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts")
        names = [name for d in given for name in d]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {name: value for d in given for name, value in d.items()}
    return call_with(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """The parameters and the buffers of several models of one class, stacked: for `functional_call` inside `vmap`.

    >>> models = [lucid.nn.Linear(2, 3) for _ in range(4)]
    >>> parameters, buffers = lucid.func.stack_module_state(models)
    >>> tuple(parameters["weight"].shape), buffers
    ((4, 3, 2), {})
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(walk, what):
        rows = [dict(getattr(m, walk)()) for m in models]
        result = {}
        for name in rows[0]:
            tensors = [row[name] for row in rows]
            wanted = {t.requires_grad for t in tensors}
            if len(wanted) > 1:
                raise RuntimeError(f"Expected {what} {name} of all models to have the same .requires_grad state")
            whole = _C.stack([t.detach() for t in tensors])
            result[name] = whole.requires_grad_() if True in wanted else whole
        return result

    return stacked("named_parameters", "parameters"), stacked("named_buffers", "buffers")


from ._derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp  # noqa: E402 (uses _flatten)


def __getattr__(name):
    if name == "rearrange":  # PyTorch has it here as well
        from ..einops import rearrange

        return rearrange
    raise AttributeError(f"module 'lucid.func' has no attribute {name!r}")
