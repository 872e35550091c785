"""How many floating-point operations a call did, by the shapes of its inputs: PyTorch's formulas."""

from math import prod


def _matrix_product(shapes, out_numel):
    return 2 * out_numel * shapes[0][-1]


def _added_product(shapes, out_numel):
    return 2 * out_numel * shapes[1][-1]


def _convolution(shapes, out_numel):
    return 2 * out_numel * prod(shapes[1][1:])


def _elementwise(shapes, out_numel):
    return out_numel


_FORMULAS = {
    **dict.fromkeys(("mm", "bmm", "matmul", "linear", "mv", "dot", "_mm_sums"), _matrix_product),
    **dict.fromkeys(("addmm", "baddbmm"), _added_product),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("add", "mul"), _elementwise),
}


def flops_of(name, shapes, out_numel):
    """0 for an op without a formula.

    >>> from lucid.profiler._flops import flops_of
    >>> flops_of("mm", [[2, 3], [3, 4]], 8)
    48
    """
    formula = _FORMULAS.get(name)
    try:
        return formula(shapes, out_numel) if formula else 0
    except IndexError:  # a scalar where the formula reads a matrix
        return 0
