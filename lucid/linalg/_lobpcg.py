"""A few eigenvalues at one end of the spectrum of a symmetric matrix (Knyazev's LOBPCG, 2001)."""

from .. import _C
from . import cholesky, eigh, inv, qr, solve_triangular


def _dense(A, B, k, largest):
    """All eigenvalues, of which k are taken: for matrices with gradients and small ones."""
    A = (A + A.mT) / 2
    L = None if B is None else cholesky(B)
    if L is not None:
        inverse = inv(L)
        A = inverse @ A @ inverse.mT
    E, X = eigh(A)
    E, X = (E[..., -k:].flip(-1), X[..., -k:].flip(-1)) if largest else (E[..., :k], X[..., :k])
    return E, X if L is None else solve_triangular(L.mT, X, upper=True)


def _orthonormal(S, B):
    """Columns spanning what S spans, orthonormal in the inner product of B; those that add nothing are left out."""
    S = S / S.norm(dim=0, keepdim=True).clamp_min(1e-300 if S.dtype == _C.float64 else 1e-30)
    if B is None:
        Q, R = qr(S)
        size = R.diagonal().abs()
        return Q[:, size > size.max() * S.shape[0] * _epsilon(S)]
    w, V = eigh(S.mT @ (B @ S))
    keep = w > w.max() * S.shape[0] * _epsilon(S)
    return S @ (V[:, keep] / w[keep].sqrt())


def _epsilon(t):
    return 2.220446049250313e-16 if t.dtype == _C.float64 else 1.1920928955078125e-07


def _ritz(A, S, k, largest):
    w, V = eigh(S.mT @ (A @ S))
    w, V = (w.flip(0), V.flip(1)) if largest else (w, V)
    return w[:k], V[:, :k]


def _iterate(A, B, X, iK, k, niter, tol, largest, tracker):
    X = _orthonormal(X, B)
    if X.shape[1] < k:
        X = _orthonormal(_C.cat([X, _C.randn(A.shape[0], k, dtype=A.dtype, device=A.device)], 1), B)
    E, V = _ritz(A, X, k, largest)
    X, P, size = X @ V, None, A.norm()
    for step in range(niter + 1):
        R = A @ X - (X if B is None else B @ X) * E
        error = R.norm(dim=0) / (X.norm(dim=0) * (size + E.abs() * (1 if B is None else B.norm())))
        if tracker is not None:
            tracker(_State(step, E, X, R, error))
        if bool((error <= tol).all()) or step == niter:
            break
        W = R if iK is None else iK @ R
        S = _orthonormal(_C.cat([X, W] if P is None else [X, W, P], 1), B)
        E, V = _ritz(A, S, k, largest)
        before, X = X, S @ V
        P = X - before @ (before.mT @ (X if B is None else B @ X))  # the direction of this step
    return E, X


class _State:
    """What a tracker sees of a step: ivars, tvars, E, X, R as PyTorch's solver names them."""

    def __init__(self, step, E, X, R, error):
        self.ivars = {"istep": step, "converged_count": 0}
        self.tvars = {"rerr": error}
        self.E, self.X, self.R = E, X, R


@_C.overridable
def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """The k largest (or smallest) eigenvalues and vectors of symmetric matrices A, or of A x = e B x. X starts the iteration,
    iK approximates the inverse of A. Both methods, "basic" and "ortho", are one here, which orthogonalises every step.

    >>> A = lucid.diag(lucid.arange(1.0, 31.0))
    >>> E, X = lucid.lobpcg(A, k=2, largest=True)
    >>> lucid.allclose(E, lucid.tensor([30.0, 29.0]), rtol=1e-3)
    True
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"lobpcg: A must be batches of square matrices, got {tuple(A.shape)}")
    if not A.dtype.is_floating_point:
        raise ValueError(f"lobpcg: expected a floating point tensor, got {A.dtype}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method must be 'basic' or 'ortho', got {method!r}")
    if any(p is not None for p in (ortho_iparams, ortho_fparams, ortho_bparams)):
        raise ValueError("lobpcg: ortho_iparams, ortho_fparams and ortho_bparams steer a loop of PyTorch that is not used here")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if X is None else X.shape[-1]) if n is None else n
    if m < 3 * n:
        raise ValueError(f"lobpcg needs three times as many rows as eigenpairs: A has {m} rows, {n} pairs were asked for")
    largest = True if largest is None else largest
    if A.requires_grad or (B is not None and B.requires_grad):
        return _dense(A, B, k, largest)
    tol = _epsilon(A) ** 0.5 if tol is None else tol
    niter = 1000 if niter is None or niter < 0 else niter
    batch = A.shape[:-2]
    flat = lambda t: None if t is None else t.expand(*batch, *t.shape[-2:]).reshape(-1, *t.shape[-2:])
    parts = []
    matrices = flat(A)
    for i in range(matrices.shape[0]):
        a, b, x, p = (None if t is None else flat(t)[i] for t in (A, B, X, iK))
        a = (a + a.mT) / 2
        x = _C.randn(m, n, dtype=A.dtype, device=A.device) if x is None else x
        parts.append(_iterate(a, b, x, p, k, niter, tol, largest, tracker))
    E, V = _C.stack([e for e, _ in parts]), _C.stack([v for _, v in parts])
    return E.reshape(*batch, k), V.reshape(*batch, m, k)
