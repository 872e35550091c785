"""Histograms of several dimensions, in Python because their results are nested."""

from .. import _C


class _Histogram(tuple):
    """A named tuple: hist, bin_edges."""

    __slots__ = ()
    n_fields = n_sequence_fields = 2
    n_unnamed_fields = 0
    hist = property(lambda self: self[0], doc="the counts")
    bin_edges = property(lambda self: self[1], doc="a tuple: the edges of the bins along each dimension")

    def __repr__(self):
        return f"lucid.return_types.histogramdd(\nhist={self.hist!r},\nbin_edges={self.bin_edges!r})"


@_C.overridable
def histogramdd(input, bins, range=None, weight=None, density=False):  # noqa: A002 (PyTorch's names)
    """How many points, rows of `input`, fall into each bin of a grid.

    `bins` is the number of bins per coordinate (an int for all), or a list of tensors with their edges. Bins of equal width
    cover the range of the points, or `range` (the smallest and the largest value of each coordinate in turn).

    >>> points = lucid.tensor([[0.0, 0.0], [1.0, 2.0], [1.0, 0.5]])
    >>> hist, (x, y) = lucid.histogramdd(points, bins=[2, 2])
    >>> hist
    tensor([[1., 0.],
            [1., 1.]])
    >>> y
    tensor([0., 1., 2.])
    """
    if not isinstance(bins, (list, tuple)):
        bins = [bins] * input.size(-1)
    if any(isinstance(b, _C.Tensor) for b in bins):
        return _Histogram((_C._histogramdd_from_bin_tensors(input, bins, weight=weight, density=density), tuple(bins)))
    edges = _C._histogramdd_bin_edges(input, bins, range=range, weight=weight, density=density)
    return _Histogram((_C._histogramdd_from_bin_tensors(input, edges, weight=weight, density=density, even=True), edges))


@_C.overridable
def histogram2d(x, y, bins=10, range=None, density=False, weights=None):  # noqa: A002 (NumPy's names)
    """How many of the pairs (x[i], y[i]) fall into each bin of a grid: the counts, the edges along x, the edges along y.

    `bins` is a number, a pair of numbers, a tensor of edges for both, or a pair of tensors; `range` is ((least x, largest x),
    (least y, largest y)). As NumPy's function of this name.

    >>> hist, x_edges, y_edges = lucid.histogram2d(lucid.tensor([0.0, 1.0, 1.0]), lucid.tensor([0.0, 2.0, 0.5]), bins=(2, 2))
    >>> hist
    tensor([[1., 0.],
            [1., 1.]])
    >>> y_edges
    tensor([0., 1., 2.])
    """
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"histogram2d: x and y must be vectors of one length, got {tuple(x.shape)} and {tuple(y.shape)}")
    if not isinstance(bins, (list, tuple)):
        bins = [bins, bins]
    if len(bins) != 2:
        raise ValueError(f"histogram2d: bins must be one number or tensor, or a pair of them, got {len(bins)}")
    if range is not None:
        (a, b), (c, d) = range
        range = [a, b, c, d]  # noqa: A001
    hist, edges = histogramdd(_C.stack([x, y], -1), list(bins), range, weights, density)
    return hist, *edges
