"""Function transforms."""

from .. import _C

__all__ = ["vmap"]


def _flatten(tree):
    """Leaves of nested tuples, lists and dicts, and a function that puts new leaves in their place."""
    if isinstance(tree, (tuple, list)):
        parts = [_flatten(x) for x in tree]
        counts = [len(leaves) for leaves, _ in parts]

        def build(leaves):
            it = iter(leaves)
            made = [rebuild([next(it) for _ in range(n)]) for (_, rebuild), n in zip(parts, counts)]
            return type(tree)(*made) if hasattr(tree, "_fields") else type(tree)(made)

        return [x for leaves, _ in parts for x in leaves], build
    if isinstance(tree, dict):
        leaves, build = _flatten(list(tree.values()))
        return leaves, lambda new: dict(zip(tree, build(new)))
    return [tree], lambda new: new[0]


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
    a tensor looks like one example. Elementwise ops run on the whole batch; an op without a batching rule runs once per
    example and says so.
    """

    def batched(*args):
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
            result = func(*build(inner))
            outputs, rebuild = _flatten(result)
            out = _matching(out_dims, result, "out_dims")
            if not all(isinstance(y, _C.Tensor) for y in outputs):
                raise ValueError("vmap: the function must return tensors")
            return rebuild([_C._unbatched(y, level, size, d) for y, d in zip(outputs, out)])
        finally:
            _C._vmap_pop()

    batched.__name__ = getattr(func, "__name__", "vmap")
    return batched
