"""Tensors rearranged by patterns that name their axes, as in the package einops.

>>> x = lucid.arange(12.0).reshape(2, 6)
>>> lucid.einops.rearrange(x, "b (h w) -> h (b w)", h=3).shape
lucid.Size([3, 4])
>>> lucid.einops.reduce(x, "b (h w) -> b h", "mean", w=2)
tensor([[ 0.5000,  2.5000,  4.5000],
        [ 6.5000,  8.5000, 10.5000]])
>>> lucid.einops.repeat(x, "b n -> b n k", k=2).shape
lucid.Size([2, 6, 2])

A pattern is read once; with a shape that comes again it costs one look into a table. Results are views where no element has to
move. The package einops itself takes Lucid's tensors too: `_backend` tells it how.
"""

from functools import lru_cache
from math import prod
from string import ascii_letters

from .. import _C
from ._plan import ELLIPSIS, REDUCTIONS, EinopsError, Length, parse, plan

__all__ = ["EinopsError", "asnumpy", "einsum", "pack", "parse_shape", "rearrange", "reduce", "repeat", "unpack"]


def _reduced(x, operation, dims):
    if not isinstance(operation, str):
        return operation(x, dims)
    if operation in ("min", "max"):
        return getattr(x, "a" + operation)(dim=dims)
    if operation == "mean" and not x.is_floating_point():
        raise NotImplementedError("reduce_mean is not available for non-floating tensors")
    if operation in ("sum", "mean"):
        return getattr(x, operation)(dim=dims)
    for d in reversed(dims):  # any, all, prod take one dimension
        x = getattr(x, operation)(dim=d)
    return x


def _apply(x, pattern, operation, lengths):
    if isinstance(x, list):
        if not x:
            raise TypeError("Rearrange/Reduce/Repeat can't be applied to an empty list")
        x = _C.stack(x)
    try:
        steps = plan(pattern, operation, tuple(x.shape), tuple(lengths.items()))
    except EinopsError as error:
        about = f'Error while processing {operation}-pattern "{pattern}" for shape {tuple(x.shape)} and {lengths}'
        raise EinopsError(f"{about}: {error}") from None
    if steps.first_shape is not None:
        x = x.reshape(steps.first_shape)
    if steps.reduced:
        x = _reduced(x, operation, steps.reduced)
    if steps.order is not None:
        x = x.permute(steps.order)
    for d in steps.added:
        x = x.unsqueeze(d)
    if steps.expanded is not None:
        x = x.expand(steps.expanded)
    return x if steps.last_shape is None else x.reshape(steps.last_shape)


def rearrange(tensor, pattern, **axes_lengths):
    """Permute, split and merge axes.

    A list of tensors is stacked first.

    >>> lucid.einops.rearrange(lucid.arange(6).reshape(2, 3), "a b -> b a")
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    """
    return _apply(tensor, pattern, "rearrange", axes_lengths)


def reduce(tensor, pattern, reduction, **axes_lengths):
    """Axes that are missing on the right are reduced: by min, max, sum, mean, prod, any, all, or a function of tensor and dims.

    >>> lucid.einops.reduce(lucid.arange(6).reshape(2, 3), "a b -> b", "sum")
    tensor([3, 5, 7])
    """
    if isinstance(reduction, str) and reduction not in REDUCTIONS:
        raise EinopsError(f"Unknown reduction {reduction}. Expect one of {REDUCTIONS}.")
    return _apply(tensor, pattern, reduction, axes_lengths)


def repeat(tensor, pattern, **axes_lengths):
    """Axes that are new on the right repeat the elements.

    >>> lucid.einops.repeat(lucid.arange(3), "a -> (a two)", two=2)
    tensor([0, 0, 1, 1, 2, 2])
    """
    return _apply(tensor, pattern, "repeat", axes_lengths)


@lru_cache(256)
def _letters(pattern):
    if pattern.count("->") != 1:
        raise ValueError("Einsum pattern must contain '->'.")
    left, right = pattern.split("->")
    letters = {}

    def shortened(side, may_be_new):
        text = ""
        for group in parse(side, underscore=True, duplicates=may_be_new):
            if group == ELLIPSIS:
                text += "..."
                continue
            if len(group) != 1 or isinstance(group[0], Length):
                raise NotImplementedError("Anonymous, singleton and composite axes are not yet supported in einsum.")
            if group[0] not in letters:
                if not may_be_new:
                    raise EinopsError(f"Unknown axis {group[0]} on right side of einsum {pattern}.")
                if len(letters) == len(ascii_letters):
                    raise RuntimeError("Too many axes in einsum.")
                letters[group[0]] = ascii_letters[len(letters)]
            text += letters[group[0]]
        return text

    return ",".join(shortened(side, True) for side in left.split(",")) + "->" + shortened(right, False)


def einsum(*tensors_and_pattern):
    """Products summed over axes that are missing on the right; the pattern comes last (or first).

    >>> x, y = lucid.ones(2, 3), lucid.ones(3, 4)
    >>> lucid.einops.einsum(x, y, "row k, k column -> row column").shape
    lucid.Size([2, 4])
    """
    if len(tensors_and_pattern) < 2:
        raise ValueError("`einops.einsum` takes at minimum two arguments: the tensors (at least one), followed by the pattern.")
    *tensors, pattern = tensors_and_pattern
    if isinstance(tensors[0], str):
        pattern, *tensors = tensors_and_pattern
    if not isinstance(pattern, str):
        raise ValueError("The last argument passed to `einops.einsum` must be a string, representing the einsum pattern.")
    letters = _letters(pattern)
    return _C.einsum(letters, *tensors)


@lru_cache(256)
def _around_star(pattern):
    """How many axes stand before and after the star."""
    names = pattern.split()
    if len(set(names)) != len(names):
        raise EinopsError(f'Duplicates in axes names in pack/unpack(..., "{pattern}")')
    if names.count("*") != 1:
        raise EinopsError(f'No *-axis in pack/unpack(..., "{pattern}")')
    for name in names:
        if name != "*":
            parse(name)
    before = names.index("*")
    return before, len(names) - before - 1


def pack(tensors, pattern):
    """Concatenate tensors of several shapes along the star; returns the result and the shapes, for unpack.

    >>> x, shapes = lucid.einops.pack([lucid.ones(2, 3), lucid.ones(2, 4, 5)], "b *")
    >>> x.shape, [tuple(s) for s in shapes]
    (lucid.Size([2, 23]), [(3,), (4, 5)])
    """
    before, after = _around_star(pattern)
    flat, shapes = [], []
    for i, t in enumerate(tensors):
        end = t.ndim - after
        if end < before:
            raise EinopsError(f"packed tensor #{i} has shape {tuple(t.shape)}, while pattern {pattern} has more axes")
        shapes.append(t.shape[before:end])
        flat.append(t.reshape((*t.shape[:before], prod(t.shape[before:end]), *t.shape[end:])))
    return _C.cat(flat, before), shapes


def unpack(tensor, packed_shapes, pattern):
    """The inverse of pack, as views; one shape may have a -1.

    >>> [t.shape for t in lucid.einops.unpack(lucid.ones(2, 23), [(3,), (4, -1)], "b *")]
    [lucid.Size([2, 3]), lucid.Size([2, 4, 5])]
    """
    before, after = _around_star(pattern)
    if tensor.ndim != before + 1 + after:
        raise EinopsError(f"unpack(..., {pattern}) received input of wrong dim with shape {tuple(tensor.shape)}")
    sizes = [-1 if -1 in shape else prod(shape) for shape in packed_shapes]
    if sizes.count(-1) > 1:
        raise EinopsError(f"unpack(..., {pattern}) received more than one -1 in {packed_shapes} and can't infer dimensions")
    total = tensor.shape[before]
    sizes = [total - sum(sizes) - 1 if size == -1 else size for size in sizes]
    if sum(sizes) != total or min(sizes, default=0) < 0:
        raise EinopsError(f'unpack(..., "{pattern}"): could not split axis of size {total} into requested {packed_shapes}')
    parts, start = [], 0
    for size, shape in zip(sizes, packed_shapes):
        part = tensor.narrow(before, start, size)
        try:
            parts.append(part.reshape((*tensor.shape[:before], *shape, *tensor.shape[before + 1 :])))
        except RuntimeError as error:
            raise EinopsError(f'unpack(..., "{pattern}"): {shape} does not hold {size} elements') from error
        start += size
    return parts


def parse_shape(x, pattern):
    """The lengths of the axes that a pattern names; `_` skips one.

    >>> lucid.einops.parse_shape(lucid.ones(2, 3, 5), "batch _ w")
    {'batch': 2, 'w': 5}
    """
    groups, shape = parse(pattern, underscore=True), tuple(x.shape)
    if any(group != ELLIPSIS and (len(group) > 1 or ELLIPSIS in group) for group in groups):
        raise EinopsError(f"Can't parse shape with composite axes: {pattern} {shape}")
    if ELLIPSIS in groups and len(shape) >= len(groups) - 1:
        at = groups.index(ELLIPSIS)
        groups[at : at + 1] = [["_"]] * (len(shape) - len(groups) + 1)
    if len(groups) != len(shape):
        raise EinopsError(f"Can't parse shape with different number of dimensions: {pattern} {shape}")
    lengths = {}
    for group, size in zip(groups, shape):
        axis = group[0] if group else Length(1)
        if isinstance(axis, Length):
            if size != axis.value:
                raise EinopsError(f"Length of axis is not {axis.value}: {pattern} {shape}")
        elif axis != "_":
            lengths[axis] = size
    return lengths


def asnumpy(tensor):
    """The tensor as a NumPy array, without history.

    >>> lucid.einops.asnumpy(lucid.ones(2, requires_grad=True))
    array([1., 1.], dtype=float32)
    """
    return tensor.detach().cpu().numpy()
