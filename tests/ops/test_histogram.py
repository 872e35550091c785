"""histogram2d against NumPy: PyTorch has none."""

import numpy as np
import pytest

import lucid

rng = np.random.default_rng(5)
X, Y, W = rng.normal(size=200), rng.normal(size=200), rng.uniform(size=200)
EDGES = np.array([-1.0, -0.25, 0.5, 2.0])


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("density", [False, True])
@pytest.mark.parametrize(
    "bins, limits", [(10, None), ((3, 4), None), ((3, 4), ((-1, 1), (0, 2))), (EDGES, None), ([EDGES, EDGES[1:]], None)]
)
def test_histogram2d(bins, limits, density, weights):
    def ours(a):
        return lucid.tensor(a.tolist(), dtype=lucid.float64) if isinstance(a, np.ndarray) else a

    theirs = np.histogram2d(X, Y, bins, range=limits, density=density, weights=weights)
    pair = [ours(b) for b in bins] if isinstance(bins, (list, tuple)) else ours(bins)
    found = lucid.histogram2d(ours(X), ours(Y), pair, range=limits, density=density, weights=ours(weights))
    for a, b in zip(found, theirs, strict=True):
        np.testing.assert_allclose(np.array(a.tolist()), b, rtol=1e-12, atol=1e-12)


def test_histogram2d_refuses():
    x = lucid.ones(3)
    for wrong in ((x, lucid.ones(2)), (lucid.ones(2, 2), lucid.ones(2, 2)), (x, x, [1, 2, 3])):
        with pytest.raises(ValueError):
            lucid.histogram2d(*wrong)


def test_histograms_have_no_gradient():
    x = lucid.ones(3, requires_grad=True)
    w = lucid.ones(3, requires_grad=True)
    for y in (lucid.histogram(x, 2).hist, lucid.bincount(lucid.tensor([0, 1, 1]), w), lucid.unique(x)):
        with pytest.raises(NotImplementedError):
            y.sum().backward()
