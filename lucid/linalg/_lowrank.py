"""Factorisations of nearly low rank by random projections (Halko, Martinsson and Tropp, 2009)."""

from .. import _C
from . import qr, svd


def _basis(A, q, niter):
    """Orthonormal columns that nearly span the range of A: q random combinations of its columns, sharpened niter times."""
    Q = qr(A @ _C.randn(A.shape[-1], q, dtype=A.dtype, device=A.device)).Q
    for _ in range(niter):
        Q = qr(A.mH @ Q).Q
        Q = qr(A @ Q).Q
    return Q


@_C.overridable
def svd_lowrank(A, q=6, niter=2, M=None):
    """U, S, V of a matrix of rank about q, so that U diag(S) V^H is nearly A, or A - M. It is drawn at random.

    >>> A = lucid.randn(100, 3) @ lucid.randn(3, 50)
    >>> U, S, V = lucid.svd_lowrank(A, q=3)
    >>> bool(((U * S) @ V.mT - A).abs().max() < 1e-3)
    True
    """
    if M is not None:
        A = A - M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    A = A.mH if wide else A
    Q = _basis(A, 6 if q is None else q, niter)
    U, S, Vh = svd(Q.mH @ A, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


@_C.overridable
def pca_lowrank(A, q=None, center=True, niter=2):
    """The principal components of the rows of A: U, S, V of A less its mean row (unless center is False), of rank q.

    >>> points = lucid.randn(200, 1) @ lucid.tensor([[3.0, 4.0]]) + 7
    >>> U, S, V = lucid.pca_lowrank(points, q=1)
    >>> V.abs().flatten()  # the direction in which they differ
    tensor([0.6000, 0.8000])
    """
    most = min(A.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={most}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise ValueError(f"pca_lowrank: input is expected to be floating point or complex. Got {A.dtype}")
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True) if center else A, q, niter)
