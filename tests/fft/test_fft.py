"""Fourier transforms against the sum that defines them, in long double; and what must hold between them."""

import os
import subprocess
import sys

import numpy as np
import pytest

import lucid

EPS = {np.complex64: 2.0**-24, np.complex128: 2.0**-53}
RNG = np.random.default_rng(16)


def noise(*shape, dtype=np.complex128):
    real = {np.complex64: np.float32, np.complex128: np.float64}[dtype]
    return (RNG.standard_normal(shape).astype(real) + 1j * RNG.standard_normal(shape).astype(real)).astype(dtype)


def roots(n):
    """exp(-2 pi i k / n) for all k, right to the last bit or so of long double."""
    angle = np.arange(n).astype(np.longdouble) * (-2 * np.longdouble("3.14159265358979323846264338327950288")) / n
    return np.cos(angle) + 1j * np.sin(angle)


def direct(x, frequencies=None):
    """The transform of the last dimension by its definition, at some frequencies or all."""
    n = x.shape[-1]
    k = np.arange(n) if frequencies is None else np.asarray(frequencies)
    w, x = roots(n), x.astype(np.clongdouble)
    return np.stack([(x * w[(int(f) * np.arange(n)) % n]).sum(-1) for f in k], -1)


def error(ours, right):
    """The largest error in units of the last place at the root of the mean square of the right values."""
    scale = np.sqrt((np.abs(right) ** 2).mean())
    dtype = np.complex64 if ours.dtype in (np.complex64, np.float32) else np.complex128
    return float(np.abs(ours - right).max() / max(scale, np.finfo(float).tiny) / EPS[dtype])


def bound(n):
    """A transform has about log n roundings in sequence; a few units each, at the worst of all elements."""
    return 4 + 3 * np.log2(n)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("begin", range(1, 257, 16))
def test_every_length(begin, dtype):
    for n in range(begin, begin + 16):
        x = noise(3, n, dtype=dtype)
        right, back = direct(x), direct(x.conj()).conj() / n
        t = lucid.tensor(x)
        assert error(lucid.fft.fft(t).numpy(), right) < bound(n), n
        assert error(lucid.fft.ifft(t).numpy(), back) < bound(n), n
        assert error(lucid.fft.fft(lucid.tensor(x.T.copy()), dim=0).numpy().T, right) < bound(n), n
        real = direct(x.real.copy())
        assert error(lucid.fft.fft(lucid.tensor(x.real.copy())).numpy(), real) < bound(n), n
        assert error(lucid.fft.rfft(lucid.tensor(x.real.copy())).numpy(), real[:, : n // 2 + 1]) < bound(n), n
        assert error(lucid.fft.rfft(lucid.tensor(x.real.T.copy()), dim=0).numpy().T, real[:, : n // 2 + 1]) < bound(n), n
        half = x[:, : n // 2 + 1]
        whole = np.concatenate([half, half[:, (n - 1) // 2 : 0 : -1].conj()], -1)
        whole[:, 0] = whole[:, 0].real
        if n % 2 == 0:
            whole[:, n // 2] = whole[:, n // 2].real
        signal = direct(whole.conj()).conj().real / n
        assert error(lucid.fft.irfft(lucid.tensor(half.copy()), n=n).numpy(), signal) < bound(n), n
        assert error(lucid.fft.irfft(lucid.tensor(half.T.copy()), n=n, dim=0).numpy().T, signal) < bound(n), n


LENGTHS = sorted({int(n) for n in np.exp(np.random.default_rng(1).uniform(np.log(257), np.log(1e6), 24))})
NAMED = [1009, 4096, 8191, 32768, 32769, 65536, 65537, 99991, 2 * 65537, 3**11, 10**6, 2**20, 999983, 2**5 * 31 * 37]


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", LENGTHS + NAMED)
def test_long_lengths(n, dtype):
    x = noise(2 if n < 50000 else 1, n, dtype=dtype)
    at = sorted({0, 1, n // 2, n - 1, *(int(k) for k in RNG.integers(0, n, 6))})
    t, right = lucid.tensor(x), direct(x, at)
    spectrum = lucid.fft.fft(t)
    assert error(spectrum.numpy()[:, at], right) < bound(n)
    assert error(lucid.fft.ifft(spectrum).numpy(), x) < 2 * bound(n)
    r = x.real.copy()
    half = lucid.fft.rfft(lucid.tensor(r))
    low = [k for k in at if k <= n // 2]
    assert error(half.numpy()[:, low], direct(r, low)) < bound(n)
    assert error(lucid.fft.irfft(half, n=n).numpy(), r) < 2 * bound(n)
    assert error(lucid.fft.fft(lucid.tensor(r)).numpy()[:, at], direct(r, at)) < bound(n)
    strided = lucid.tensor(np.repeat(x, 3, 0).T.copy()).t()[::2]
    assert error(lucid.fft.fft(strided).numpy()[0, at], right[0]) < bound(n)


@pytest.mark.parametrize("n", [7, 64, 100, 509, 4096, 70000])
def test_parseval_and_linearity(n):
    x, y = noise(2, n), noise(2, n)
    f = lambda a: lucid.fft.fft(lucid.tensor(a), norm="ortho").numpy()
    assert np.allclose((np.abs(f(x)) ** 2).sum(-1), (np.abs(x) ** 2).sum(-1), rtol=1e-13)
    assert np.allclose(f(2 * x - 3j * y), 2 * f(x) - 3j * f(y), rtol=1e-12, atol=1e-12)
    shift = lucid.fft.fft(lucid.tensor(x).roll(1, -1), norm="ortho").numpy()
    assert np.allclose(shift, f(x) * np.exp(-2j * np.pi * np.arange(n) / n), atol=1e-11)


@pytest.mark.parametrize("shape", [(3, 4, 5), (8, 16, 32), (17, 1, 6), (2, 300, 3)])
def test_several_dimensions(shape):
    x = noise(*shape)
    for dims in ((0,), (1,), (2,), (0, 1), (2, 0), (1, 2), (0, 1, 2), (2, 1, 0)):
        right = x
        for d in dims:
            right = np.moveaxis(direct(np.moveaxis(right, d, -1)), -1, d)
        t = lucid.tensor(x)
        for view in (t, lucid.tensor(x.transpose(2, 0, 1).copy()).permute(1, 2, 0), lucid.tensor(x.repeat(2, 1))[:, ::2]):
            assert error(lucid.fft.fftn(view, dim=dims).numpy(), right) < 20
        real = np.moveaxis(direct(np.moveaxis(x.real, dims[-1], -1)), -1, dims[-1])
        for d in dims[:-1]:
            real = np.moveaxis(direct(np.moveaxis(real, d, -1)), -1, d)
        half = real.take(range(shape[dims[-1]] // 2 + 1), dims[-1])
        r = lucid.tensor(x.real.copy())
        assert error(lucid.fft.rfftn(r, dim=dims).numpy(), half) < 20
        sizes = [shape[d] for d in dims]
        back = lucid.fft.irfftn(lucid.fft.rfftn(r, dim=dims), s=sizes, dim=dims)
        assert error(back.numpy(), x.real) < 20
        assert error(lucid.fft.fftn(r, dim=dims).numpy(), real) < 20


def test_whole_spectrum_of_real_input():
    x = RNG.standard_normal((3, 4, 6))
    for n in (1, 2, 5, 6):
        assert np.allclose(lucid.fft.fft(lucid.tensor(x), n=n).numpy(), np.fft.fft(x, n=n))
        assert np.allclose(lucid.fft.ifft(lucid.tensor(x), n=n, dim=0).numpy(), np.fft.ifft(x, n=n, axis=0))


def test_empty_batches():
    assert lucid.fft.fft(lucid.zeros(0, 5)).shape == (0, 5)
    assert lucid.fft.rfft(lucid.zeros(3, 0, 8)).shape == (3, 0, 5)
    assert lucid.fft.irfft(lucid.zeros(0, 5, dtype=lucid.complex64)).shape == (0, 8)
    assert lucid.fft.fft2(lucid.zeros(0, 4, 4)).shape == (0, 4, 4)
    with pytest.raises(RuntimeError, match="Invalid number of data points"):
        lucid.fft.fft(lucid.zeros(5, 0))


def test_a_nan_stays_in_its_line():
    for n in (6, 7, 67, 256, 300):
        x = lucid.ones(20, n)
        x[3, 1] = float("nan")
        for f in (lucid.fft.fft, lucid.fft.rfft):
            bad = f(x).isnan().any(1).tolist()
            assert [i for i, b in enumerate(bad) if b] == [3]


def test_threads_and_the_plan_cache_change_nothing():
    cases = [noise(40, n, dtype=np.complex64) for n in (16, 100, 256, 1009, 4096)] + [noise(1, 70000), noise(2, 65537)]
    before, results = lucid.get_num_threads(), []
    for threads in (1, 2, 5):
        lucid.set_num_threads(threads)
        lucid._C._clear_cache()
        results.append([lucid.fft.fft(lucid.tensor(x)).numpy().tobytes() for x in cases for _ in range(2)])
    lucid.set_num_threads(before)
    assert results[0] == results[1] == results[2]
    assert all(a == b for a, b in zip(results[0][::2], results[0][1::2]))


def test_more_lengths_than_the_cache_holds():
    for n in list(range(200, 300)) + [200, 210]:
        x = noise(n)
        assert np.allclose(lucid.fft.fft(lucid.tensor(x)).numpy(), np.fft.fft(x))


@pytest.mark.parametrize("n", [6, 67, 256, 1009, 2049, 40000, 40009])
def test_no_memory_for_a_plan(n):
    """Every allocation of a first call fails in turn: an error, nothing lost, and the next call is right."""
    x = lucid.tensor(noise(3, n))
    right = lucid.fft.fft(x)
    lucid._C._clear_cache()
    before, at = lucid._C.live_blocks(), 1
    while True:
        lucid._C._clear_cache()
        lucid._C._fail_allocation(at)
        try:
            y = lucid.fft.fft(x)
        except lucid.OutOfMemory:
            y = None
        reached = lucid._C._fail_allocation(0) == 0
        if not reached:
            break
        assert y is None, "a failure went unnoticed"
        at += 1
    assert at > 3 and bool((y == right).all())
    del y
    lucid._C._clear_cache()
    assert lucid._C.live_blocks() == before


def test_several_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    xs = [noise(4, n) for n in range(150, 250)]
    rights = [np.fft.fft(x) for x in xs]
    with ThreadPoolExecutor(4) as pool:
        for y, right in zip(pool.map(lambda x: lucid.fft.fft(lucid.tensor(x)).numpy(), xs * 3), rights * 3):
            assert np.allclose(y, right)


def test_vmap_has_a_rule(recwarn):
    x = lucid.tensor(noise(3, 4, 6))
    for f in (
        lucid.fft.fft,
        lucid.fft.ifft2,
        lucid.fft.irfft,
        lambda a: lucid.fft.fft(a, dim=0),
        lambda a: lucid.fft.hfftn(a, dim=(1, 0)),
    ):
        assert lucid.allclose(lucid.func.vmap(f)(x), lucid.stack([f(a) for a in x]))
    r = x.real
    for f in (lucid.fft.rfft, lucid.fft.ihfft, lambda a: lucid.fft.rfftn(a, dim=(1, 0)), lucid.fft.fft):
        assert lucid.allclose(lucid.func.vmap(f, in_dims=1)(r), lucid.stack([f(a) for a in r.unbind(1)]))
    assert not [w for w in recwarn if "no batching rule" in str(w.message)]


@pytest.mark.skipif(not os.path.exists("/proc/cpuinfo"), reason="which tables there are is read from /proc")
@pytest.mark.parametrize("isa", ["base", "avx2", "avx512"])
def test_every_kernel_table(isa):
    flags = open("/proc/cpuinfo").read()
    if isa != "base" and {"avx2": " avx2", "avx512": " avx512bw"}[isa] not in flags:
        pytest.skip("this machine has no such table")
    script = (
        "import lucid, numpy as np\n"
        "r = np.random.default_rng(0)\n"
        "for n in [*range(1, 70), 81, 128, 256, 509, 1000, 1009, 1024, 2187, 4096, 36000, 65536, 40009]:\n"
        "    for lines in (1, 3, 17):\n"
        "        x = r.standard_normal((lines, n)) + 1j * r.standard_normal((lines, n))\n"
        "        t = lucid.tensor(x)\n"
        "        assert np.allclose(lucid.fft.fft(t).numpy(), np.fft.fft(x)), n\n"
        "        assert np.allclose(lucid.fft.fft(t.to(lucid.complex64)).numpy(), np.fft.fft(x), atol=1e-4 * n**0.5), n\n"
        "        assert np.allclose(lucid.fft.irfft(t, n=n).numpy(), np.fft.irfft(x, n=n)), n\n"
        "        assert np.allclose(lucid.fft.rfft(t.real.t().contiguous(), dim=0).numpy().T, np.fft.rfft(x.real)), n\n"
    )
    package = os.path.dirname(os.path.dirname(lucid.__file__))
    environment = {**os.environ, "LUCID_ISA": isa, "PYTHONPATH": package}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, cwd=package)  # not the source tree
