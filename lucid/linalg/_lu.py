"""The old form of the LU factorisation."""

from .. import _C


@_C.overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """The LU factorisation with pivots, in one matrix, and with get_infos the first zero pivot of each matrix (from 1; 0: none)
    instead of an error. linalg.lu_factor and linalg.lu_factor_ex are the newer forms.

    >>> LU, pivots = lucid.lu(lucid.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> LU
    tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]])
    """
    result = _C._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    result = result if get_infos else tuple(result[:2])
    if out is None:
        return result
    if not isinstance(out, (tuple, list)) or len(out) != len(result):
        raise TypeError(f"lu(): out= must be {len(result)} tensors")
    for to, made in zip(out, result):
        to.resize_as_(made).copy_(made)
    return out
