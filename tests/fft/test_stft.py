"""Short-time transforms and windows beside PyTorch's: values, strides, gradients, refusals and warnings."""

import functools
import itertools
import warnings

import numpy as np
import pytest
import torch

import lucid

RNG = np.random.default_rng(3)


def both(values):
    return lucid.tensor(values), torch.tensor(values)


def outcome(f):
    """The result as comparable parts, or the class of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            y = f()
        except (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError) as error:
            return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
    return tuple(y.shape), y.stride(), str(y.dtype).split(".")[-1], y.detach().numpy()


def same(ours, theirs, atol=1e-9):
    a, b = outcome(ours), outcome(theirs)
    if isinstance(b, str) or isinstance(a, str):
        assert a == b
        return False
    assert a[:3] == b[:3]
    np.testing.assert_allclose(a[3], b[3], rtol=1e-6, atol=atol)
    return True


SIGNALS = {"one": RNG.standard_normal(50), "batch": RNG.standard_normal((3, 50)), "complex": RNG.standard_normal((2, 50)) + 1j}
WINDOWS = {"none": None, "hann": np.hanning(16), "short": np.hanning(12), "complex": np.hanning(16) + 0.5j}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("window", WINDOWS)
def test_stft_and_back(signal, window):
    worked = 0
    for hop, center, normalized, onesided, asked in itertools.product(
        (None, 4, 5), (True, False), (True, False), (None, True, False), (None, True, False)
    ):
        x, w = both(SIGNALS[signal]), (None, None) if window == "none" else both(WINDOWS[window])
        k = {"hop_length": hop, "center": center, "normalized": normalized, "onesided": onesided, "return_complex": asked}
        k["win_length"] = 12 if window == "short" else None
        fine = same(*(functools.partial(m.stft, a, 16, window=b, **k) for m, a, b in zip((lucid, torch), x, w)))
        if not fine or asked is False:
            continue
        worked += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spectra = torch.stft(x[1], 16, window=w[1], **k)
        back = {**k, "length": 40 if normalized else None, "return_complex": torch.is_complex(x[1]) or window == "complex"}
        ours = lucid.tensor(spectra.numpy())
        same(*(functools.partial(m.istft, a, 16, window=b, **back) for m, a, b in zip((lucid, torch), (ours, spectra), w)))
    assert worked


BAD = [
    {"n_fft": 0}, {"n_fft": 300}, {"n_fft": 300, "center": False}, {"hop_length": 0}, {"win_length": 20}, {"win_length": 0},
    {"pad_mode": "what"}, {"align_to_window": True}, {"align_to_window": True, "center": False, "win_length": 12},
    {"return_complex": None}, {"onesided": False}, {"pad_mode": "constant"}, {"pad_mode": "replicate"},
]  # fmt: skip


@pytest.mark.parametrize("k", BAD, ids=str)
def test_options_of_stft(k):
    x, options = both(SIGNALS["batch"]), {"n_fft": 16, "return_complex": True, **k}
    same(lambda: lucid.stft(x[0], **options), lambda: torch.stft(x[1], **options))
    same(lambda: x[0].stft(**options), lambda: x[1].stft(**options))


@pytest.mark.parametrize("shape", [(), (2, 3, 50)])
def test_wrong_ranks(shape):
    x = both(RNG.standard_normal(shape))
    same(lambda: lucid.stft(x[0], 16, return_complex=True), lambda: torch.stft(x[1], 16, return_complex=True))


@pytest.mark.parametrize(
    "k",
    [{"hop_length": 0}, {"hop_length": 17}, {"win_length": 20}, {"n_fft": 20}, {"onesided": False}, {"return_complex": True},
     {"length": 200}, {"length": 20}, {"center": False}],
    ids=str,
)  # fmt: skip
def test_options_of_istft(k):
    x = torch.stft(torch.tensor(SIGNALS["batch"]), 16, window=torch.ones(16), return_complex=True)
    options = {"n_fft": 16, **k}
    same(lambda: lucid.istft(lucid.tensor(x.numpy()), **options), lambda: torch.istft(x, **options))
    real = lucid.tensor(x.real.numpy())
    with pytest.raises(RuntimeError, match="complex-valued"):
        lucid.istft(real, 16)
    with pytest.raises(RuntimeError, match="window overlap add min"):
        lucid.istft(lucid.tensor(x.numpy()), 16, window=lucid.zeros(16))


def test_warnings():
    import subprocess
    import sys

    script = (
        "import lucid, warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    warnings.simplefilter('always')\n"
        "    for _ in range(2):\n"
        "        y = lucid.stft(lucid.ones(64), 16, return_complex=True)\n"
        "        lucid.stft(lucid.ones(64), 16, return_complex=False)\n"
        "        lucid.istft(y, 16)\n"
        "print(*[str(w.message)[:24] for w in seen], sep='|')"
    )
    import os

    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(lucid.__file__))}
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment).stdout
    assert out.strip() == "A window was not provide|stft with return_complex|A window was not provide"


@pytest.mark.parametrize("complex_input", [False, True])
def test_gradients(complex_input):
    values = RNG.standard_normal((2, 40)) + (1j * RNG.standard_normal((2, 40)) if complex_input else 0)
    grads = []
    for m in (lucid, torch):
        x = m.tensor(values, requires_grad=True)
        w = m.hann_window(16, dtype=m.float64, requires_grad=True)
        y = m.stft(x, 16, hop_length=4, window=w, return_complex=True)
        z = m.istft(y * y, 16, hop_length=4, window=w, return_complex=complex_input)
        first = m.autograd.grad((z.abs() ** 2).sum(), (x, w), create_graph=True)
        second = m.autograd.grad(sum((g.abs() ** 2).sum() for g in first), (x, w))
        grads.append([g.detach().numpy() for g in (*first, *second)])
    for a, b in zip(*grads):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-6 * np.abs(b).max())


MAIN = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")


@pytest.mark.parametrize("name", MAIN)
def test_windows_of_the_main_namespace(name):
    ours, theirs = getattr(lucid, name), getattr(torch, name)
    for n, periodic in itertools.product((0, 1, 2, 3, 8, 15, 100), (True, False)):
        for dtype in ("float32", "float64", "float16", "bfloat16"):
            a, b = (f(n, periodic, dtype=getattr(m, dtype)) for m, f in ((lucid, ours), (torch, theirs)))
            assert tuple(a.shape) == tuple(b.shape) and str(a.dtype).split(".")[1] == dtype
            eps = {"float64": 1e-12, "float32": 1e-6, "float16": 3e-3, "bfloat16": 2e-2}[dtype]
            np.testing.assert_allclose(a.double().numpy(), b.double().numpy(), rtol=eps, atol=eps)
    assert ours(5, requires_grad=True).requires_grad
    for n, dtype in ((-1, "float32"), (5, "int32"), (5, "complex64")):
        a, b = (functools.partial(f, n, dtype=getattr(m, dtype)) for m, f in ((lucid, ours), (torch, theirs)))
        same(a, b)
    if name == "hamming_window":
        same(lambda: ours(9, True, 0.3, 0.7), lambda: theirs(9, True, 0.3, 0.7), 1e-6)
    if name == "kaiser_window":
        same(lambda: ours(9, False, 3.0), lambda: theirs(9, False, 3.0), 1e-6)


@pytest.mark.parametrize("name", torch.signal.windows.__all__)
def test_signal_windows(name):
    ours, theirs = (getattr(m.signal.windows, name) for m in (lucid, torch))
    own = {"general_cosine": [{"a": [0.4, 0.5, 0.1]}, {"a": []}, {"a": 3}], "kaiser": [{}, {"beta": 0.9}, {"beta": -1}],
           "gaussian": [{}, {"std": 0.9}, {"std": 0}], "general_hamming": [{}, {"alpha": 0.7}],
           "exponential": [{}, {"tau": 2.0}, {"tau": -1}, {"center": 1.0, "sym": False}, {"center": 1.0}]}  # fmt: skip
    for k, n, sym, dtype in itertools.product(
        own.get(name, [{}]), (0, 1, 2, 7, 10, -1), (True, False), ("float32", "float64", "float16")
    ):
        k = {"sym": sym, **k}
        same(
            lambda: ours(n, dtype=getattr(lucid, dtype), **k),  # noqa: B023
            lambda: theirs(n, dtype=getattr(torch, dtype), **k),  # noqa: B023
            1e-12 if dtype == "float64" else 1e-6,
        )
    assert sorted(lucid.signal.windows.__all__) == sorted(torch.signal.windows.__all__)
