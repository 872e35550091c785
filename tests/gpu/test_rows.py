"""Softmax and normalisations of rows that kernels hold in registers, by a warp and by a block: rows of masked elements, of
infinities, of large numbers."""

import math

import pytest

import lucid

if not lucid.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

TOLERANCE = {"bfloat16": 1.6e-2, "float16": 2e-3, "float32": 1e-5, "float64": 1e-12}
LENGTHS = [64, 512, 1000, 1024, 2049, 4096, 8192]  # by a warp, by a block, read twice; 2049 is read element by element


def special_rows(n, dtype):
    x = (lucid.randn(14, n, dtype=lucid.float64) * 3).to(dtype)
    least = lucid.finfo(dtype).min
    x[1], x[2, 5], x[3, 7], x[4] = -math.inf, math.nan, math.inf, least
    x[5, : n // 2], x[6, :-1], x[11, 1:], x[12, n // 2 :] = (-math.inf,) * 4
    x[7], x[7, n - 1], x[10, : n // 3], x[13] = least, -1000.0, least, 60000.0
    x[8] -= 900
    x[9] *= 1000
    return x


def both(f, *tensors):
    """Results and gradients on the CPU and on the device."""
    seeds, sides = None, []
    for device in ("cpu", "cuda"):
        given = [t.to(device).detach().requires_grad_() for t in tensors]
        y = f(*given)
        seeds = lucid.randn(y.shape, dtype=lucid.float64).to(y.dtype) if seeds is None else seeds
        y.backward(seeds.to(device))
        sides.append([t.detach().cpu().double() for t in (y, *(t.grad for t in given))])
    return zip(*sides)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_special_rows(name, dtype):
    for n in LENGTHS:
        for there, here in both(lambda x: getattr(x, name)(-1), special_rows(n, getattr(lucid, dtype))):
            assert lucid.allclose(here, there, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], equal_nan=True), n


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])
def test_norms(name, dtype):
    for n in LENGTHS:
        x, weight = (lucid.randn(*shape, dtype=lucid.float64).to(getattr(lucid, dtype)) for shape in ((3, n), (n,)))
        norm = getattr(lucid.nn.functional, name)
        for there, here in both(lambda x, w, n=n, norm=norm: norm(x, (n,), w), x, weight):
            assert (here - there).abs().max() <= 3 * TOLERANCE[dtype] * there.abs().max(), n
