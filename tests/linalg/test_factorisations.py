"""Residuals and orthogonality of every factorisation on hard matrices, contiguous and strided; test_engines.py runs them again
without LAPACK."""

import numpy as np
import pytest

import lucid

from .matrices import DTYPES, assert_small, drawn, kinds, size, spread

L = lucid.linalg


def h(a):
    return np.conj(np.swapaxes(a, -1, -2))


def cases(square=False):
    return [
        pytest.param(a, dtype, id=f"{dtype}-{name}")
        for dtype in DTYPES
        for name, a in kinds(dtype)
        if not square or a.shape[-1] == a.shape[-2]
    ]


def both(a):
    return lucid.from_numpy(a.copy()), spread(a)


def identity_like(a, n):
    return np.broadcast_to(np.eye(n), (*a.shape[:-2], n, n))


@pytest.mark.parametrize("a, dtype", cases())
def test_qr(a, dtype):
    for x in both(a):
        for mode in ("reduced", "complete"):
            q, r = (t.numpy() for t in L.qr(x, mode))
            n = max(a.shape[-2:])
            assert_small(q @ r - a, size(a), dtype, n)
            assert_small(h(q) @ q - identity_like(a, q.shape[-1]), 1, dtype, n)
            assert not np.tril(r, -1).any()
        assert np.array_equal(L.qr(x, "r").R.numpy(), L.qr(x).R.numpy())


@pytest.mark.parametrize("a, dtype", cases())
def test_svd(a, dtype):
    for x in both(a):
        for full in (True, False):
            u, s, vh = (t.numpy() for t in L.svd(x, full_matrices=full))
            k, n = s.shape[-1], max(a.shape[-2:])
            assert_small((u[..., :k] * s[..., None, :]) @ vh[..., :k, :] - a, size(a), dtype, n)
            assert_small(h(u) @ u - identity_like(a, u.shape[-1]), 1, dtype, n)
            assert_small(vh @ h(vh) - identity_like(a, vh.shape[-2]), 1, dtype, n)
            assert (np.diff(s, axis=-1) <= 0).all() and (s >= 0).all()
        assert_small(L.svdvals(x).numpy() - s, size(a), dtype, n)


@pytest.mark.parametrize("a, dtype", cases())
def test_lu(a, dtype):
    for x in both(a):
        p, l, u = (t.numpy() for t in L.lu(x))
        assert_small(p @ l @ u - a, size(a), dtype, max(a.shape[-2:]))
        assert not np.triu(l, 1).any() and not np.tril(u, -1).any() and np.abs(l).max() <= 2
        assert (p.sum(-1) == 1).all() and (p.sum(-2) == 1).all()


def test_lu_without_pivots():
    a = drawn((3, 6, 6), "float64") + 10 * np.eye(6)
    p, l, u = L.lu(lucid.from_numpy(a), pivot=False)
    assert p.numel() == 0
    assert_small((l @ u).numpy() - a, 10, "float64", 6)


@pytest.mark.parametrize("a, dtype", cases(square=True))
def test_eigh(a, dtype):
    a = ((a + h(a)) / 2).astype(dtype)
    for x in both(a):
        for uplo in "LU":
            half = lucid.tril(x) if uplo == "L" else lucid.triu(x)  # the other triangle is not read
            w, v = (t.numpy() for t in L.eigh(half, UPLO=uplo))
            n = a.shape[-1]
            assert_small((v * w[..., None, :]) @ h(v) - a, size(a), dtype, n)
            assert_small(h(v) @ v - identity_like(a, n), 1, dtype, n)
            assert (np.diff(w, axis=-1) >= 0).all()
            assert_small(L.eigvalsh(half, UPLO=uplo).numpy() - w, size(a), dtype, n)


@pytest.mark.parametrize("a, dtype", cases(square=True))
def test_cholesky(a, dtype):
    scale = size(a)
    a = ((a / scale) @ h(a / scale) + 0.5 * np.eye(a.shape[-1])).astype(dtype)
    for x in both(a):
        l = L.cholesky(lucid.tril(x)).numpy()
        u = L.cholesky(lucid.triu(x), upper=True).numpy()
        assert_small(l @ h(l) - a, size(a), dtype, a.shape[-1])
        assert_small(h(u) @ u - a, size(a), dtype, a.shape[-1])
        assert not np.triu(l, 1).any() and not np.tril(u, -1).any()
        inverse = lucid.cholesky_inverse(lucid.from_numpy(l)).numpy()
        assert_small(inverse @ a - identity_like(a, a.shape[-1]), size(a) * size(inverse), dtype, a.shape[-1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (70, 4, 4), (2, 5, 16, 16), (30, 30), (90, 90)])
def test_systems(shape, dtype):
    n = shape[-1]
    a = (drawn(shape, dtype) + 2 * n**0.5 * np.eye(n)).astype(dtype)
    b = drawn((*shape[:-1], 3), dtype, 5)
    for x, y in zip(both(a), both(b)):
        assert_small(a @ L.solve(x, y).numpy() - b, n, dtype, n)
        assert_small(L.solve(x, y.mT, left=False).numpy() @ a - np.swapaxes(b, -1, -2), n, dtype, n)
        assert_small(L.inv(x).numpy() @ a - identity_like(a, n), 10, dtype, n)
        sign, logabs = L.slogdet(x)
        expected = np.linalg.slogdet(a.astype("complex128" if "complex" in dtype else "float64"))
        assert_small(sign.numpy() - expected[0], 10, dtype, n)
        assert_small(logabs.numpy() - expected[1], n, dtype, n)
        if n <= 16:
            np.testing.assert_allclose(
                L.det(x).numpy(), np.linalg.det(a), rtol=1e-3 if "32" in dtype or dtype == "complex64" else 1e-10
            )
        lu, pivots = L.lu_factor(x)
        for left in (True, False):
            for adjoint in (True, False):
                right = y if left else y.mT
                m = h(a) if adjoint else a
                s = L.lu_solve(lu, pivots, right, left=left, adjoint=adjoint).numpy()
                assert_small((m @ s if left else s @ m) - right.numpy(), n, dtype, n)
        for upper in (True, False):
            t = np.triu(a) if upper else np.tril(a)
            assert_small(t @ L.solve_triangular(x, y, upper=upper).numpy() - b, n, dtype, n)
            s = L.solve_triangular(x, y.mT, upper=upper, left=False, unitriangular=True)
            unit = t - t * np.eye(n) + np.eye(n)
            assert_small(s.numpy() @ unit - np.swapaxes(b, -1, -2), size(s.numpy()) * n, dtype, n)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("driver", ["gels", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(8, 5), (5, 8), (6, 6), (40, 30), (3, 12, 4)])
def test_least_squares(shape, driver, dtype):
    a, b = drawn(shape, dtype), drawn((*shape[:-1], 2), dtype, 3)
    x = L.lstsq(lucid.from_numpy(a), lucid.from_numpy(b), driver=driver)
    exact = np.linalg.pinv(a.astype("complex128" if "complex" in dtype else "float64")) @ b
    assert_small(x.solution.numpy() - exact, 100 * size(exact), dtype, max(shape[-2:]))
    if shape[-2] > shape[-1]:
        left = np.abs(a @ exact - b) ** 2
        assert_small(x.residuals.numpy() - left.sum(-2), 100 * size(left), dtype, max(shape[-2:]))
    if driver != "gels":
        assert (x.rank.numpy() == min(shape[-2:])).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (3, 40, 30)])
def test_reflections(shape, dtype):
    a = drawn(shape, dtype)
    x = lucid.from_numpy(a)
    packed, tau = lucid.geqrf(x)
    q, k = L.qr(x, "complete").Q, min(shape[-2:])
    thin = packed[..., :k]
    assert_small((L.householder_product(thin, tau) - q[..., :k]).numpy(), 1, dtype, max(shape))
    c = lucid.from_numpy(drawn((*shape[:-2], shape[-2], shape[-2]), dtype, 3))
    for left in (True, False):
        for adjoint in (True, False):
            m = q.mH if adjoint else q
            made = lucid.ormqr(thin, tau, c, left, adjoint)
            assert_small((made - (m @ c if left else c @ m)).numpy(), 10, dtype, max(shape))


def test_nothing():
    empty, none = lucid.empty(0, 3, 3), lucid.empty(2, 0, 0)
    for x in (empty, none):
        assert L.inv(x).shape == x.shape and L.cholesky(x).shape == x.shape and L.det(x).shape == x.shape[:1]
        assert [tuple(t.shape) for t in L.svd(x)] == [tuple(x.shape), tuple(x.shape[:2]), tuple(x.shape)]
        assert L.solve(x, x).shape == x.shape and L.eigvalsh(x).shape == x.shape[:2]
    assert L.det(none).tolist() == [1.0, 1.0]
    assert L.svd(lucid.empty(3, 0)).U.tolist() == lucid.eye(3).tolist()


def test_refusals_name_the_matrix():
    a = lucid.eye(3).repeat(4, 1, 1)
    a[2, 1] = 0
    for call in (L.inv, lambda x: L.solve(x, x), L.lu_factor, lucid.inverse):
        with pytest.raises(L.LinAlgError, match="Batch element 2"):
            call(a)
    with pytest.raises(L.LinAlgError, match="Batch element 2.*order 2"):
        L.cholesky(a)
    assert L.inv_ex(a).info.tolist() == L.cholesky_ex(a).info.tolist() == L.lu_factor_ex(a).info.tolist() == [0, 0, 2, 0]
    with pytest.raises(L.LinAlgError):
        L.solve_ex(a, a, check_errors=True)
    with pytest.raises(RuntimeError, match="4 by 3"):
        L.inv(lucid.ones(4, 3))
    with pytest.raises(RuntimeError, match="Low precision"):
        L.inv(lucid.ones(3, 3, dtype=lucid.float16))
    with pytest.raises(RuntimeError, match="floating point"):
        L.svd(lucid.ones(3, 3, dtype=lucid.int64))
    for call in (L.eigh, L.svd, L.eigvalsh, L.svdvals):
        with pytest.raises(L.LinAlgError):
            call(lucid.full((3, 3), float("nan")))
    with pytest.raises(RuntimeError):
        L.lu_solve(lucid.eye(2), lucid.tensor([1, 9], dtype=lucid.int32), lucid.eye(2))


def test_gradients_that_do_not_exist():
    a = lucid.from_numpy(drawn((3, 3), "complex128")).requires_grad_()
    with pytest.raises(RuntimeError, match="phase"):
        L.svd(a).U.sum().abs().backward()
    with pytest.raises(RuntimeError, match="e\\^{i phi}"):
        L.eigh(a @ a.mH).eigenvectors.sum().abs().backward()
    with pytest.raises(RuntimeError, match="mode='r'"):
        L.qr(a, "r").R.abs().sum().backward()


def test_determinant_of_a_singular_matrix():
    a = lucid.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=lucid.float64, requires_grad=True)
    L.det(a).backward()
    assert lucid.allclose(a.grad, lucid.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=lucid.float64))


def test_low_rank_and_lobpcg():
    lucid.manual_seed(0)
    a = lucid.randn(60, 4, dtype=lucid.float64) @ lucid.randn(4, 40, dtype=lucid.float64)
    for x in (a, a.mT):
        u, s, v = lucid.svd_lowrank(x, q=4)
        assert float(((u * s) @ v.mT - x).abs().max()) < 1e-9
    a = lucid.randn(2, 50, 50, dtype=lucid.float64)
    a = a @ a.mT
    b = lucid.eye(50, dtype=lucid.float64) * 2
    w = L.eigvalsh(a)
    for largest in (True, False):
        for other in (None, b):
            e, x = lucid.lobpcg(a, k=3, B=other, largest=largest, tol=1e-10)
            exact = (w[:, -3:].flip(-1) if largest else w[:, :3]) / (1 if other is None else 2)
            assert float((e - exact).abs().max()) < 1e-5 * float(w.max())
            bx = x if other is None else other @ x
            assert float((a @ x - bx * e.unsqueeze(-2)).abs().max()) < 1e-4 * float(w.max())


def test_exponential():
    a = lucid.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=lucid.float64)
    for t in (1e-8, 1.0, 50.0):
        made = L.matrix_exp(a * t).numpy()
        np.testing.assert_allclose(made, [[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]], atol=1e-12)
    mixed = lucid.stack([a * float("nan"), a * 3, a * 0])
    assert np.isnan(L.matrix_exp(mixed)[0].numpy()).any()
    np.testing.assert_allclose(L.matrix_exp(mixed)[1:].numpy(), L.matrix_exp(mixed[1:]).numpy(), atol=1e-14)


def test_vmap():
    a = lucid.from_numpy(drawn((6, 2, 4, 4), "float64") + 5 * np.eye(4))
    b = lucid.from_numpy(drawn((6, 4), "float64"))
    for f in (L.inv, L.det, L.svdvals, lambda x: L.solve(x, b[0]), lambda x: L.qr(x).R, lambda x: L.cholesky(x @ x.mT)):
        assert lucid.allclose(lucid.vmap(f)(a), lucid.stack([f(x) for x in a]))
    assert lucid.allclose(lucid.vmap(L.solve)(a[:, 0], b), L.solve(a[:, 0], b))
    single = lucid.vmap(lambda y: L.solve(a[0, 0], y))(b)
    assert lucid.allclose(single, L.solve(a[0, 0], b.mT).mT)
    grads = lucid.func.vmap(lucid.func.grad(lambda x: L.slogdet(x).logabsdet.sum()))(a)
    assert lucid.allclose(grads, L.inv(a).mT)
