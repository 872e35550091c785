"""Fourier transforms by cuFFT: plans, streams, graphs. Runs on a GPU, or on a stand-in of the library (emulator/cufft.cpp)."""

import ctypes
import os
import pathlib

import pytest

import lucid

if not lucid.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)


def transforms():
    """How many the stand-in made; None: a real library counts nothing."""
    path = pathlib.Path(os.environ.get("LUCID_CUDA_PATH", ""), "libcufft.so.12")
    library = ctypes.CDLL(str(path)) if path.is_file() else None
    if not hasattr(library, "emulated_transforms"):
        return None
    library.emulated_transforms.restype = ctypes.c_int64
    return library.emulated_transforms()


def near(a, b):
    return bool(((a.cpu() - b).abs().max() < 1e-4 * (1 + b.abs().max())).item())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_transforms_of_many_lengths(dtype):
    """More than there are plans, so that some are made again."""
    before = transforms()
    for n in [*range(2, 40), 7, 64, 2]:
        x = lucid.randn(3, n, dtype=getattr(lucid, dtype))
        assert near(lucid.fft.ifft(lucid.fft.fft(x.cuda()) * 2), x * 2)
        assert near(lucid.fft.fft(x.cuda(), norm="ortho"), lucid.fft.fft(x, norm="ortho"))
    assert before is None or transforms() == before + 3 * 41


def captured(x, warm):
    """A graph of two transforms of x; its result."""
    if warm:
        lucid.fft.ifft(lucid.fft.fft(x))
    graph = lucid.cuda.CUDAGraph()
    with lucid.cuda.graph(graph):
        y = lucid.fft.ifft(lucid.fft.fft(x) * 3)
    return graph, y


@pytest.mark.parametrize("warm", [True, False])
def test_a_graph_keeps_its_plans(warm):
    """Other lengths push plans out, but not those that replays use. A length without a plan is transformed by own kernels."""
    x = lucid.randn(4, 24 + warm, dtype=lucid.complex64)
    held = x.cuda()
    before = transforms()
    graph, y = captured(held, warm)
    assert before is None or transforms() == before + (4 if warm else 0)
    for n in range(50, 70):
        lucid.fft.fft(lucid.ones(2, n, dtype=lucid.complex64, device="cuda"))
    for times in (1, 2):
        held.copy_(x * times)
        graph.replay()
        assert near(y, x * 3 * times)


def test_streams_share_no_workspace():
    """A replay and eager transforms of the same length, side by side."""
    x = lucid.randn(8, 32, dtype=lucid.complex64)
    held, other = x.cuda(), (x * 2).cuda()
    graph, y = captured(held, True)
    streams = [lucid.cuda.Stream() for _ in range(3)]
    for _ in range(5):
        lucid.cuda.synchronize()
        results = []
        for stream in streams:
            with lucid.cuda.stream(stream):
                results.append(lucid.fft.fft(other))
        graph.replay()
        lucid.cuda.synchronize()
        assert near(y, x * 3) and all(near(r, lucid.fft.fft(x * 2)) for r in results)
