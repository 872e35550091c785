"""Factorisations of matrices, and batches of them, that nn needs itself: written on plain ops, a column at a time.

Conventions are LAPACK's, so that signs are those of PyTorch's results. Matrices of weights have a few hundred columns at
most; the products of a column's step are the cost, and run in the engine.
"""

from .. import _C
from ..autograd import Function


def reflections(a):
    """LAPACK's geqrf: (R above the vectors of the reflections, their factors tau).

    >>> from lucid.nn._matrices import reflections
    >>> reflections(lucid.tensor([[3.0], [4.0]]))
    (tensor([[-5.0000],
            [ 0.5000]]), tensor([1.6000]))
    """
    r, taus = a.clone(), []
    rows, columns = a.shape[-2:]
    for j in range(min(rows, columns)):
        x = r[..., j:, j]
        alpha, rest = x[..., 0], x[..., 1:]
        below = rest.abs().square().sum(-1)
        real = alpha.real if alpha.is_complex() else alpha
        length = (alpha.abs().square() + below).sqrt()
        beta = _C.where(real >= 0, -length, length)
        nothing = below == 0 if real is alpha else (below == 0) & (alpha.imag == 0)
        one = _C.ones_like(beta)
        tau = _C.where(nothing, _C.zeros_like(alpha), (beta - alpha) / _C.where(nothing, one, beta))
        v = rest / _C.where(nothing, _C.ones_like(alpha), alpha - beta).unsqueeze(-1)
        v = _C.where(nothing.unsqueeze(-1), _C.zeros_like(v), v)
        v = _C.cat([_C.ones_like(alpha).unsqueeze(-1), v], -1)
        block = r[..., j:, j + 1 :]
        block -= tau.conj().unsqueeze(-1).unsqueeze(-1) * (v.unsqueeze(-1) @ (v.conj().unsqueeze(-2) @ block))
        r[..., j, j] = _C.where(nothing, alpha, beta.to(a.dtype))
        r[..., j + 1 :, j] = v[..., 1:]
        taus.append(tau)
    return r, _C.stack(taus, -1) if taus else a.new_zeros((*a.shape[:-2], 0))


def product_of_reflections(a, tau):
    """linalg.householder_product: the first columns of the product of the reflections below the diagonal of a.

    >>> from lucid.nn._matrices import product_of_reflections
    >>> product_of_reflections(lucid.tensor([[-5.0], [0.5]]), lucid.tensor([1.6]))
    tensor([[-0.6000],
            [-0.8000]])
    """
    rows, columns = a.shape[-2:]
    one = _C.eye(rows, columns, dtype=a.dtype, device=a.device)
    vectors, q = a.tril(-1) + one, one.expand(a.shape)
    for j in reversed(range(tau.shape[-1])):
        v = vectors[..., j : j + 1]
        q = q - tau[..., j, None, None] * (v @ (v.mH @ q))
    return q


def orthonormal_columns(a):
    """The Q of a QR decomposition of tall matrices, and the diagonal of R.

    >>> from lucid.nn._matrices import orthonormal_columns
    >>> orthonormal_columns(lucid.tensor([[3.0], [4.0]]))
    (tensor([[-0.6000],
            [-0.8000]]), tensor([-5.]))
    """
    r, tau = reflections(a)
    return product_of_reflections(r, tau), r.diagonal(dim1=-2, dim2=-1)


def exponential(a):
    """matrix_exp: the Taylor polynomial of degree 18 of a / 2^s, squared s times.

    >>> from lucid.nn._matrices import exponential
    >>> exponential(lucid.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    size = float(a.detach().abs().sum(-2).max()) if a.numel() else 0.0
    halvings = 0
    while size > 1.0 and halvings < 1100:
        size, halvings = size / 2, halvings + 1
    x = a / 2.0**halvings
    one = _C.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    total = one + x / 18
    for k in range(17, 0, -1):
        total = one + (x @ total) / k
    for _ in range(halvings):
        total = total @ total
    return total


class _Solution(Function):
    @staticmethod
    def forward(ctx, a, b):
        shape, n = a.shape[:-2], a.shape[-1]
        m = _C.cat([a, b], -1).reshape(-1, n, n + b.shape[-1])
        matrices = _C.arange(m.shape[0], device=m.device)
        for j in range(n):
            at = m[:, j:, j].abs().argmax(-1) + j
            pivot = m[matrices, at]
            m[matrices, at] = m[:, j].clone()
            pivot = pivot / pivot[:, j : j + 1]
            m -= m[:, :, j : j + 1] * pivot.unsqueeze(1)
            m[:, j] = pivot
        x = m[:, :, n:].reshape(*shape, n, -1)
        ctx.save_for_backward(a, x)
        return x

    @staticmethod
    def backward(ctx, grad):
        a, x = ctx.saved_tensors
        of_b = _Solution.apply(a.mH, grad)
        return -of_b @ x.mH, of_b


def solution(a, b):
    """linalg.solve of batches of one shape: x with a x = b, by elimination with a search for pivots in columns.

    >>> from lucid.nn._matrices import solution
    >>> solution(lucid.tensor([[2.0, 0.0], [1.0, 1.0]]), lucid.tensor([[2.0], [3.0]]))
    tensor([[1.],
            [2.]])
    """
    return _Solution.apply(a, b)


def least_squares(a, b):
    """The shortest x with least |a x - b|, for a matrix of full rank and a vector.

    >>> from lucid.nn._matrices import least_squares
    >>> least_squares(lucid.tensor([[1.0], [1.0]]), lucid.tensor([1.0, 3.0]))
    tensor([2.])
    """
    rows, columns = a.shape
    if rows <= columns:
        return _C.mv(a.t(), solution(a @ a.t(), b.unsqueeze(1)).squeeze(1))
    return solution(a.t() @ a, _C.mv(a.t(), b).unsqueeze(1)).squeeze(1)
