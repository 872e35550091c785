"""Linear algebra. Matrices are made well-conditioned inside the call; of vectors whose sign is free, what they make together is compared."""

from .sample import COMPLEX, FLOATS, HALVES, S, T

BOTH = FLOATS + COMPLEX
NEAR = {"rtol": 2e-4, "atol": 2e-4, "strides": False}


def _moved(m, x):
    """Away from singular matrices."""
    return x + 5 * m.eye(x.shape[-2], x.shape[-1], dtype=x.dtype)


def _positive(m, x):
    return x @ x.mH + 2 * m.eye(x.shape[-1], dtype=x.dtype)


def L(name, make, *tensors, dtypes=BOTH, **more):
    return S(name, *tensors, fn=make, dtypes=dtypes, id=f"linalg.{name}", **{**NEAR, **more})


def of(name, prepare, **kwargs):
    """linalg.name of one prepared matrix."""
    return lambda m, x: getattr(m.linalg, name)(prepare(m, x), **kwargs)


def solves(name, **kwargs):
    return lambda m, x, b: getattr(m.linalg, name)(_moved(m, x), b, **kwargs)


SQUARES = [T(3, 3), T(2, 1, 4, 4), T(2, 17, 17), T(1, 1), T(0, 3, 3), T(2, 0, 0)]
SAMPLES = []
for x in SQUARES:
    large = {"gradgrad": False} if len(x.shape) == 3 else {}
    SAMPLES += [
        L(name, of(name, _moved), x, **large) for name in ("inv", "inv_ex", "det", "slogdet", "lu_factor", "lu_factor_ex", "lu")
    ]
    SAMPLES += [L(name, of(name, _positive), x, **large) for name in ("cholesky", "cholesky_ex", "eigvalsh")]
    SAMPLES += [
        L("cholesky", of("cholesky", _positive, upper=True), x, **large),
        L("matrix_exp", of("matrix_exp", lambda m, x: x / 4), x, **large),
    ]
    SAMPLES += [
        L("eigh", lambda m, x: (lambda w, v: (w, (v * w.unsqueeze(-2)) @ v.mH))(*m.linalg.eigh(_positive(m, x))), x, grad=False)
    ]
    SAMPLES += [L("solve", solves("solve"), x, x, **large), L("solve_ex", solves("solve_ex", left=False), x, x, **large)]
    SAMPLES += [
        L("solve_triangular", solves("solve_triangular", upper=u, left=l), x, x, **large)
        for u in (True, False)
        for l in (True, False)
    ]
    SAMPLES += [
        L("ldl_factor", of("ldl_factor", _positive), x, grad=False),
        L("ldl_factor_ex", of("ldl_factor_ex", _positive), x, grad=False),
    ]
    SAMPLES += [L("ldl_solve", lambda m, x, b: m.linalg.ldl_solve(*m.linalg.ldl_factor(_positive(m, x)), b), x, x, grad=False)]
    SAMPLES += [L("cholesky_solve", lambda m, x, b: m.cholesky_solve(b, _moved(m, x), upper=True), x, x, **large)]
    SAMPLES += [L("cholesky_inverse", lambda m, x: m.cholesky_inverse(m.linalg.cholesky(_positive(m, x))), x, **large)]
    SAMPLES += [L("lu_solve", lambda m, x, b: m.lu_solve(b, *m.linalg.lu_factor(_moved(m, x))), x, x, **large)]
    SAMPLES += [L("lu_unpack", lambda m, x: m.lu_unpack(*m.linalg.lu_factor(_moved(m, x))), x, **large)]
    SAMPLES += [L("triangular_solve", lambda m, x, b: m.triangular_solve(b, _moved(m, x), transpose=True), x, x, **large)]
for x in [T(4, 3), T(3, 4), T(2, 3, 3), T(20, 30), T(30, 20), T(0, 3), T(3, 0)]:
    SAMPLES += [
        L("qr", lambda m, x, mode=mode: m.linalg.qr(_moved(m, x), mode), x, grad=mode == "reduced", gradgrad=False)
        for mode in ("reduced", "complete", "r")
    ]
    SAMPLES += [
        L("svdvals", of("svdvals", _moved), x, gradgrad=False),
        L("matrix_rank", of("matrix_rank", _moved), x, grad=False),
    ]
    SAMPLES += [
        L(
            "svd",
            lambda m, x: (lambda u, s, v: (s, (u * s.unsqueeze(-2)) @ v))(*m.linalg.svd(_moved(m, x), full_matrices=False)),
            x,
            grad=False,
        )
    ]
    SAMPLES += [L("geqrf", lambda m, x: m.geqrf(x), x, grad=False)]
    SAMPLES += [L("lu", of("lu", _moved), x, gradgrad=False)]
    if 0 not in x.shape:
        SAMPLES += [L("pinv", of("pinv", _moved), x, gradgrad=False), L("cond", of("cond", _moved), x, gradgrad=False)]
        SAMPLES += [
            L("lstsq", lambda m, x, d=d: m.linalg.lstsq(_moved(m, x), x, driver=d)[0], x, gradgrad=False)
            for d in ("gelsy", "gels", "gelsd", "gelss")
        ]
SAMPLES += [
    L("eig", lambda m, x: (lambda w, v: (v * w.unsqueeze(-2)) @ m.linalg.inv(v))(*m.linalg.eig(x)), T(2, 5, 5), grad=False),
    L("eigvals", lambda m, x: m.linalg.eigvals(x).abs().sort().values, T(2, 5, 5), gradgrad=False),
    L("householder_product", lambda m, x, t: m.linalg.householder_product(x, t), T(2, 5, 3), T(2, 3)),
    L("householder_product", lambda m, x, t: m.linalg.householder_product(x, t), T(2, 40, 30), T(2, 30, low=0.1, high=0.2), gradgrad=False, grad=False),
    L("orgqr", lambda m, x, t: m.orgqr(x, t), T(5, 3), T(2)),
    *[L("ormqr", lambda m, a, t, c, l=l, h=h: m.ormqr(a, t, c, l, h), T(4, 3), T(3), T(4, 4)) for l in (True, False) for h in (True, False)],
    L("lu_solve", lambda m, x, b: m.linalg.lu_solve(*m.linalg.lu_factor(_moved(m, x)), b, left=False, adjoint=True), T(2, 4, 4), T(3, 1, 2, 4)),
    L("solve", solves("solve"), T(2, 4, 4), T(4)),
    L("solve", solves("solve"), T(2, 4, 4), T(2, 4)),
    L("solve", solves("solve"), T(4, 4), T(3, 4, 2)),
    L("solve", solves("solve"), T(4, 4), T(3, 2)),
    L("solve", solves("solve"), T(4, 3), T(4)),
    L("inv", lambda m, x: m.linalg.inv(x), T(values=[[1.0, 2.0], [2.0, 4.0]]), grad=False),
    L("cholesky", lambda m, x: m.linalg.cholesky(x), T(values=[[[2.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]), grad=False),
    L("det", lambda m, x: m.linalg.det(x), T(values=[[1.0, 2.0], [2.0, 4.0]]), gradgrad=False),
    *[L("inv", lambda m, x: m.linalg.inv(x), T(3, 3), dtypes=HALVES + ("int64", "bool"), grad=False)],
    S("det", T(3, 3), dtypes=BOTH, **NEAR),
    S("logdet", T(values=[[2.0, 1.0], [1.0, 3.0]]), dtypes=BOTH, **NEAR),
    S("slogdet", T(2, 3, 3), dtypes=BOTH, **NEAR),
    S("inverse", T(values=[[2.0, 1.0], [1.0, 3.0]]), dtypes=BOTH, **NEAR),
    S("pinverse", T(4, 3), dtypes=BOTH, gradgrad=False, **NEAR),
    S("qr", T(4, 3), dtypes=BOTH, gradgrad=False, **NEAR),
    S("cholesky", T(values=[[2.0, 1.0], [1.0, 3.0]]), dtypes=BOTH, **NEAR),
    S("matrix_exp", T(3, 3), dtypes=BOTH, **NEAR),
    L("_lu_with_info", lambda m, x: m.lu(_moved(m, x), get_infos=True), T(2, 4, 4)),
    L("svd", lambda m, x: m.svd(x).S, T(4, 3), gradgrad=False),
    L("matrix_rank", lambda m, x: m.linalg.matrix_rank(x, hermitian=True), T(values=[[1.0, 2.0], [2.0, 4.0]]), grad=False),
    *[L("matrix_norm", lambda m, x, p=p, k=k: m.linalg.matrix_norm(x, p, keepdim=k), T(2, 3, 4), gradgrad=False) for p in ("fro", "nuc", 2, -2, 1, -1, float("inf"), -float("inf")) for k in (True, False)],
    L("matrix_norm", lambda m, x: m.linalg.matrix_norm(x, 1, dim=(2, 0)), T(2, 3, 4), gradgrad=False),
    *[L("norm", lambda m, x, p=p, d=d: m.linalg.norm(x, p, d), T(3, 4), gradgrad=False) for p in (None, 1, 2, 0.5) for d in (None, 0, (1,))],
    *[L("norm", lambda m, x, p=p: m.linalg.norm(x, p), T(3, 4), gradgrad=False) for p in ("fro", "nuc")],
    *[L("vector_norm", lambda m, x, p=p: m.linalg.vector_norm(x, p), T(3, 4), gradgrad=False) for p in (0, 1, 2, 3.5, float("inf"))],
    *[L("cond", lambda m, x, p=p: m.linalg.cond(_moved(m, x), p), T(2, 3, 3), gradgrad=False, grad=p in (None, 2, -2)) for p in (None, 2, -2, 1, float("inf"), "fro", "nuc")],
    L("tensorinv", lambda m, x: m.linalg.tensorinv(_moved(m, x).reshape(2, 3, 6)), T(6, 6)),
    L("tensorsolve", lambda m, x, b: m.linalg.tensorsolve(_moved(m, x).reshape(2, 3, 6), b), T(6, 6), T(2, 3)),
    L("multi_dot", lambda m, *x: m.linalg.multi_dot(x), T(3), T(3, 4), T(4, 2)),
    L("vander", lambda m, x: m.linalg.vander(x, N=4), T(2, 3), dtypes=BOTH + ("int64",)),
    L("vecdot", lambda m, x, y: m.linalg.vecdot(x, y, dim=0), T(3, 2), T(3, 2)),
]  # fmt: skip
