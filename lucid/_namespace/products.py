"""Products with nested arguments: lists of dimensions, subscripts as lists of integers."""

from .. import _C

__all__ = ["einsum", "tensordot"]
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@_C.overridable
def tensordot(a, b, dims=2, out=None):
    """Products of two tensors summed over pairs of dimensions.

    `dims` is a number of dimensions: the last ones of `a` with the first ones of `b`. Or it names them, as two lists or a
    tensor of two rows.

    >>> lucid.tensordot(lucid.ones(2, 3), lucid.ones(3, 4), 1).shape
    lucid.Size([2, 4])
    >>> lucid.tensordot(lucid.ones(3, 2), lucid.ones(4, 3), ([0], [1])).shape
    lucid.Size([2, 4])
    """
    if isinstance(dims, _C.Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, (tuple, list)):
        dims_a, dims_b = (list(d) if isinstance(d, (tuple, list)) else [d] for d in dims)
    else:
        if not isinstance(dims, int):
            raise RuntimeError(f"tensordot expects dims to be an int or two lists of ints, but got {dims=}")
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    return _C.tensordot(a, b, dims_a, dims_b) if out is None else _C.tensordot(a, b, dims_a, dims_b, out=out)


def _text(subscripts):
    return "".join("..." if s is Ellipsis else _LETTERS[s] for s in subscripts)


def einsum(*args):
    """Products of operands summed over named dimensions, by Einstein's convention.

    Subscripts are a text, or follow each operand as a list of numbers below 52.

    >>> x, y = lucid.ones(2, 3), lucid.ones(3, 4)
    >>> lucid.einsum("ij,jk->ik", x, y).shape
    lucid.Size([2, 4])
    >>> lucid.einsum(x, [0, 1], y, [1, 2], [0, 2]).shape
    lucid.Size([2, 4])
    """
    if len(args) == 2 and isinstance(args[1], (list, tuple)):  # before overrides: those see the operands one by one
        return einsum(args[0], *args[1])
    if _C._has_torch_function(args):
        from ..overrides import handle_torch_function

        return handle_torch_function(einsum, args, *args)
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    equation, operands = args[0], args[1:]
    if isinstance(equation, _C.Tensor):
        operands = args[: len(args) - 1 : 2] if len(args) % 2 else args[::2]
        try:
            equation = ",".join(_text(s) for s in args[1 : 2 * len(operands) : 2])
            equation += "->" + _text(args[-1]) if len(args) % 2 else ""
        except IndexError:
            raise ValueError("einsum(): subscripts in subscript list should be within the range [0, 52)") from None
    return _C.einsum(equation, *operands)
