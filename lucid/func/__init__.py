"""Function transforms."""

from _thread import _local

from .. import _C
from ..utils._pytree import tree_flatten

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
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


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """A function that applies `func` to every example along a dimension of its inputs, all at once.

    >>> import lucid
    >>> x, w = lucid.ones(4, 3), lucid.tensor([1.0, 2.0, 3.0])
    >>> lucid.func.vmap(lambda row: (row * w).sum())(x)
    tensor([6., 6., 6., 6.])

    `in_dims` says which dimension of each input is the batch (None: not batched), `out_dims` where it comes back. Inside,
    a tensor looks like one example; keyword arguments are passed on as they are. Most ops run on the whole batch, with
    weights of their own for the examples too; an op without a batching rule runs once per example and says so. `grad` inside
    gives every example's gradient, also of parameters that have no batch:

    >>> loss = lambda w, row: ((row * w).sum() - 1) ** 2
    >>> lucid.func.vmap(lucid.func.grad(loss), in_dims=(None, 0))(w, lucid.eye(3)).diagonal()
    tensor([0., 2., 4.])

    `randomness` says what random numbers mean inside: "error" refuses them; "different" draws for every example, "same" gives
    all examples the same numbers, and both call `func` once per example. `chunk_size` bounds how many examples are computed
    at a time.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and (isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size <= 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    def batched(*args, **kwargs):
        leaves, build = _flatten(args)
        dims = _matching(in_dims if not isinstance(in_dims, list) else tuple(in_dims), args, "in_dims")
        mapped = [d is not None and isinstance(x, _C.Tensor) for x, d in zip(leaves, dims)]
        sizes = {x.shape[d] for x, d, own in zip(leaves, dims, mapped) if own}
        if len(sizes) != 1:
            raise ValueError(f"vmap: expected one size of the mapped dimension in all inputs, got {sorted(sizes) or 'none'}")
        (size,) = sizes
        if randomness != "error":
            call = lambda parts: func(*build(parts), **kwargs)
            return _one_by_one(call, leaves, dims, mapped, size, out_dims, randomness == "same")
        if chunk_size is None or chunk_size >= size:
            return _all_at_once(func, leaves, build, dims, mapped, size, out_dims, kwargs)
        results = []
        for start in range(0, size, chunk_size):
            width = min(chunk_size, size - start)
            part = [x.narrow(d, start, width) if own else x for x, d, own in zip(leaves, dims, mapped)]
            results.append(_all_at_once(func, part, build, dims, mapped, width, out_dims, kwargs))
        return _joined(results, out_dims, _C.cat)

    batched.__name__ = getattr(func, "__name__", "vmap")
    return batched


class _Maps(_local):
    """The vmaps under way on this thread that run all examples at once, outermost first: (level, number of examples)."""

    def __init__(self):
        self.open = []


_maps = _Maps()


def _all_at_once(func, leaves, build, dims, mapped, size, out_dims, kwargs):
    level = _C._vmap_push()
    _maps.open.append((level, size))
    try:
        inner = [_C._batched(x, d, level) if own else x for x, d, own in zip(leaves, dims, mapped)]
        result = func(*build(inner), **kwargs)
        outputs, rebuild = _flatten(result)
        out = _matching(out_dims, result, "out_dims")
        if not all(isinstance(y, _C.Tensor) for y in outputs):
            raise ValueError("vmap: the function must return tensors")
        return rebuild([_C._unbatched(y, level, size, d) for y, d in zip(outputs, out)])
    finally:
        _maps.open.pop()
        _C._vmap_pop()


def _one_by_one(call, leaves, dims, mapped, size, out_dims, same):
    """The examples one after the other, all from the same state of the generator if their numbers are to be the same."""
    generator, results = _C.default_generator, []
    start = generator.get_state()
    for i in range(size):
        if same:
            generator.set_state(start)
        results.append(call([x.select(d, i) if own else x for x, d, own in zip(leaves, dims, mapped)]))
    return _joined(results, out_dims, _C.stack)


def _joined(results, out_dims, join):
    """Results of the same structure, joined tensor by tensor along out_dims; where that is None they are the same."""
    parts, rebuild = [_flatten(r)[0] for r in results], _flatten(results[0])[1]
    out = _matching(out_dims, results[0], "out_dims")
    if not all(isinstance(y, _C.Tensor) for part in parts for y in part):
        raise ValueError("vmap: the function must return tensors")
    return rebuild([column[0] if d is None else join(list(column), d) for column, d in zip(zip(*parts), out)])


def debug_unwrap(tensor, *, recurse=True):
    """The tensor with all examples behind a tensor inside `vmap`, for looking at it; recurse: through nested `vmap`s.

    >>> seen = []
    >>> _ = lucid.func.vmap(lambda x: seen.append(lucid.func.debug_unwrap(x)) or x)(lucid.ones(3))
    >>> seen
    [tensor([1., 1., 1.])]
    """
    while (batch := _C._batch_of(tensor)) is not None:
        tensor = batch[0]
        if not recurse:
            break
    return tensor


def functionalize(func, *, remove="mutations"):
    """A function that does what `func` does. PyTorch rewrites mutations for its compilers, which read the ops of a call; here
    what is recorded of a mutation is its result already, so there is nothing to rewrite.

    >>> lucid.func.functionalize(lambda x: x.clone().add_(1))(lucid.zeros(2))
    tensor([1., 1.])
    """
    from functools import wraps

    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): valid options for argument \"remove\" are: 'mutations', "
            f"'mutations_and_views'. Got remove={remove!r}"
        )

    @wraps(func)
    def called(*args, **kwargs):
        return func(*args, **kwargs)

    return called


def replace_all_batch_norm_modules_(root):
    """Take the running statistics out of every batch norm layer of a module, which `vmap` could not update. Returns the module.

    >>> net = lucid.func.replace_all_batch_norm_modules_(lucid.nn.Sequential(lucid.nn.BatchNorm1d(2)))
    >>> net[0].track_running_stats, net[0].running_mean
    (False, None)
    """
    from ..nn.modules.normalization import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


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


def __dir__():
    return sorted({*globals(), "rearrange"})
