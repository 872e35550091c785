"""Fourier transforms and what belongs to them."""

from .sample import ALL, COMPLEX, FLOATS, REAL, S, T


def of(name):
    """The function of the namespace fft, which has no method."""
    return lambda m, *args, **kwargs: getattr(m.fft, name)(*args, **kwargs)


def F(name, *args, **kwargs):  # noqa: N802
    return S(f"fft.{name}", *args, fn=of(name), **kwargs)


SAMPLES = []
NORMS = [{}, {"norm": "ortho"}, {"norm": "forward"}, {"norm": "backward"}]
for name in ("fft", "ifft", "hfft", "irfft"):
    SAMPLES += [F(name, T(2, 5), dtypes=ALL, id=f"{name}-{k}", **k) for k in NORMS]
for name in ("rfft", "ihfft"):
    SAMPLES += [F(name, T(2, 5), dtypes=ALL, grad=True, id=f"{name}-{k}", **k) for k in NORMS]
for name in ("fft", "ifft", "hfft", "irfft", "rfft", "ihfft"):
    real = name in ("rfft", "ihfft")
    SAMPLES += [
        F(name, T(2, 6, 3), dim=1, dtypes=FLOATS if real else FLOATS + COMPLEX),
        F(name, T(2, 6, 3), n=4, dim=0, dtypes=FLOATS if real else FLOATS + COMPLEX),
        F(name, T(2, 6), n=9, dtypes=FLOATS if real else FLOATS + COMPLEX),
        F(name, T(3, 6), n=1),
        F(name, T(300), rtol=1e-4, atol=1e-4, gradgrad=False),
        F(name, T(3, 67), rtol=1e-4, atol=1e-4, gradgrad=False),
        F(name, T(2, 5), norm="none", grad=False),
        F(name, T(2, 5), n=0, grad=False),
        F(name, T(2, 5), dim=3, grad=False),
        F(name, T(), grad=False),
    ]
for name in ("fftn", "ifftn", "hfftn", "irfftn", "rfftn", "ihfftn"):
    real = name in ("rfftn", "ihfftn")
    dtypes = FLOATS if real else FLOATS + COMPLEX
    for k in (
        {}, {"dim": (0, 1)}, {"dim": (2, 0)}, {"dim": (1,)}, {"s": (3, 5)}, {"s": (-1, 2), "dim": (2, 0)},
        {"s": (4,), "norm": "ortho"}, {"norm": "forward"}, {"dim": -1},
    ):  # fmt: skip
        SAMPLES += [F(name, T(2, 3, 4), dtypes=dtypes, id=f"{name}-{k}", **k)]
    for k in ({"dim": (0, 0)}, {"s": (2,), "dim": (0, 1)}, {"s": (2, 2, 2, 2)}, {"s": (0, 2)}, {"dim": ()}, {"norm": "?"}):
        SAMPLES += [F(name, T(2, 3, 4), grad=False, id=f"{name}-{k}", **k)]
    SAMPLES += [F(name, T(3, 4), dtypes=REAL if real else ALL, grad=False)]
for name in ("fft2", "ifft2", "hfft2", "irfft2", "rfft2", "ihfft2"):
    dtypes = FLOATS if name in ("rfft2", "ihfft2") else FLOATS + COMPLEX
    SAMPLES += [F(name, T(2, 3, 4), dtypes=dtypes), F(name, T(3, 4, 2), s=(4, 2), dim=(0, 1), norm="ortho", dtypes=dtypes)]
for name in ("fftshift", "ifftshift"):
    SAMPLES += [
        F(name, T(2, 5), dtypes=ALL),
        F(name, T(4, 5), dim=0),
        F(name, T(4, 5, 2), dim=(0, -1)),
        F(name, T(4), dim=3, grad=False),
    ]
for name in ("fftfreq", "rfftfreq"):
    SAMPLES += [F(name, *a, grad=False, id=f"{name}-{a}") for a in ((5,), (6, 0.5), (1,), (8, 2))]

W = T(8, low=0.1, high=1.0)
for k in ({}, {"center": False}, {"normalized": True}, {"hop_length": 3}, {"onesided": False}, {"pad_mode": "constant"}):
    SAMPLES += [S("stft", T(2, 20), 8, window=W, return_complex=True, dtypes=FLOATS, id=f"stft-{k}", **k)]
SAMPLES += [
    S("stft", T(20), 8, window=W, dtypes=COMPLEX),
    S("stft", T(20), 8, win_length=6, window=T(6), return_complex=True),
    S("stft", T(20), 0, window=W, return_complex=True, grad=False),
    S("stft", T(20), 8, window=W, grad=False),
    S("istft", T(5, 9), 8, window=W, dtypes=COMPLEX),
    S("istft", T(2, 5, 9), 8, window=W, length=14, dtypes=COMPLEX),
    S("istft", T(8, 9), 8, window=W, return_complex=True, onesided=False, dtypes=COMPLEX),
    S("istft", T(5, 9), 8, window=W, grad=False),
]
for name in ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"):
    SAMPLES += [S(name, 7, grad=False, out=False), S(name, 8, False, grad=False, out=False), S(name, 1, grad=False, out=False)]
    SAMPLES += [S(name, -1, grad=False, out=False)]
