"""Ops of lucid.special that the main namespace does not have."""

from .sample import FLOATS, INTS, S, T

INF, NAN = float("inf"), float("nan")
PLACES = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 4.0, 5.0, -4.5, 8.0, 8.5, 30.0, -30.0, INF, -INF, NAN, 2.0**21, -(2.0**21), 1e30]
DTYPES = FLOATS + INTS + ("bool",)


def special(name):
    return lambda m, *args, **kwargs: getattr(m.special, name)(*args, **kwargs)


def add(name, *args, **options):
    SAMPLES.append(S(name, *args, fn=special(name), **options))


SAMPLES = []
CONSTANT = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
    "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "airy_ai",
]  # fmt: skip
SMOOTH = ["i0e", "i1", "i1e", "ndtr", "log_ndtr", "erfcx"]
for name in CONSTANT + SMOOTH:
    smooth = name in SMOOTH
    add(name, T(3, 4), dtypes=DTYPES, grad=smooth, rtol=1e-5)
    rtol = 1e-5 if name.startswith(("bessel", "airy")) else 1e-9  # PyTorch errs by 1e-6 there: test_special_accuracy.py
    add(name, T(3, 4, low=3, high=12), dtypes=("float64",), grad=smooth, rtol=rtol, atol=1e-13, id=name + "-far")
    add(name, T(1000, low=0.01, high=20), grad=False, rtol=1e-4, atol=1e-6, id=name + "-vectors")
    add(name, T(values=PLACES), dtypes=("float64",), grad=False, rtol=rtol, atol=1e-12, id=name + "-places")
for name in ("ndtri", "entr"):
    add(name, T(3, 4, low=0.01, high=0.99), dtypes=DTYPES)
    add(name, T(values=[0.0, 1.0, 0.5, 1e-30, 1e-300, 0.075, 0.925, -1.0, 2.0, NAN, INF]), dtypes=("float64",), grad=False)
add("xlog1py", T(3, 4, low=0.1), T(4, low=-0.9, high=3), dtypes=DTYPES)
add("xlog1py", T(values=[0.0, 0.0, 0.0, 1.0]), T(values=[-1.0, NAN, 2.0, -1.0]), grad=False)
add("xlog1py", T(3), 2.0)
add("xlog1py", 2.0, T(3, low=0))
add("zeta", T(3, 4, low=1.1, high=6), T(4, low=0.2, high=12), dtypes=DTYPES, grad=False, rtol=1e-5)
add("zeta", T(values=[1.0, 0.5, 2.0, 2.0, 3.0, 2.5]), T(values=[1.0, 1.0, 0.0, -1.0, -1.5, -1.5]), grad=False)
add("zeta", 3.0, T(4, low=0.2, high=12), rtol=1e-5)
POLYNOMIALS = [
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
]  # fmt: skip
for name in POLYNOMIALS:
    add(name, T(3, 4), T(4, low=-1, high=9, dtype="int64"), dtypes=DTYPES, grad=False, rtol=1e-4, atol=1e-4)
    add(name, T(600, low=-1, high=1), 12, dtypes=("float64",), grad=False, rtol=1e-8, atol=1e-9, id=name + "-same-degree")
    add(name, T(8, low=0.1, high=0.9), T(values=[0.0, 1.0, 2.0, 70.0, 80.0, 6.5, NAN, -3.0]), dtypes=("float64",), grad=False,
        rtol=1e-8, atol=1e-9, id=name + "-degrees")  # fmt: skip
    add(name, 0.5, T(values=[0.0, 3.0, 7.0]), grad=False)
