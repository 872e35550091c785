"""Distances and similarities of vectors, products of three, one-hot vectors."""

from .sample import FLOATS, HALVES, S, T

INDEX = {"dtype": "int64", "low": 0, "high": 4}

SAMPLES = [
    S("cosine_similarity", T(3, 4), T(3, 4), dtypes=FLOATS + HALVES + ("int64", "complex128")),
    S("cosine_similarity", T(3, 4), T(4), -1, id="broadcast"),
    S("cosine_similarity", T(3, 4), T(4, dtype="int64"), -1, id="integers"),
    S("cosine_similarity", T(values=[[0.0, 0.0], [1e-9, 0.0]]), T(2, 2), 1, id="zeros", gradgrad=False),
    S("cosine_similarity", T(3, 4), T(3, 4), 2, id="no such dimension"),
    S("pairwise_distance", T(3, 4), T(3, 4), dtypes=FLOATS + HALVES + ("int64",)),
    S("pairwise_distance", T(3, 4), T(4), 1.0, 1e-3, True, id="keeps the dimension"),
    S("pairwise_distance", T(3, 4), T(2, 4), id="other batches"),
    S("pdist", T(5, 3), dtypes=FLOATS + HALVES + ("int64",), gradgrad=False),
    S("pdist", T(5, 3), 1.0, gradgrad=False),
    S("pdist", T(5, 3), 3.5, gradgrad=False),
    S("pdist", T(5, 3), 0.0, gradgrad=False),
    S("pdist", T(5, 3), float("inf"), gradgrad=False),
    S("pdist", T(values=[[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]]), gradgrad=False, id="equal rows"),
    S("pdist", T(1, 3), id="one row", gradgrad=False),
    S("pdist", T(0, 3), id="no row", grad=False),
    S("pdist", T(3, 0), id="no column", grad=False),
    S("pdist", T(3), id="a vector"),
    S("pdist", T(3, 2), -1.0, id="negative order"),
    S("pdist", T(300, 17), id="chunks", gradgrad=False, rtol=1e-5),
    S("bilinear", T(2, 3), T(2, 4), T(5, 3, 4), T(5), dtypes=FLOATS + HALVES + ("int64",)),
    S("bilinear", T(2, 6, 3), T(2, 6, 4), T(5, 3, 4), id="batches"),
    S("bilinear", T(3), T(4), T(5, 3, 4), id="vectors"),
    S("bilinear", T(0, 3), T(0, 4), T(5, 3, 4), id="empty", gradgrad=False),
    S("bilinear", T(2, 3), T(3, 4), T(5, 3, 4), id="other batches"),
    S("bilinear", T(2, 3), T(2, 4), T(5, 2, 4), id="other weight"),
    S("bilinear", T(2, 3), T(2, 4), T(5, 3, 4), T(4), id="other bias"),
    S("one_hot", T(2, 3, **INDEX)),
    S("one_hot", T(2, 3, **INDEX), 6, id="more classes"),
    S("one_hot", T(2, 3, **INDEX), 2, id="too few classes"),
    S("one_hot", T(values=[0, -1], dtype="int64"), id="negative"),
    S("one_hot", T(2, 3), id="no index"),
    S("one_hot", T(0, dtype="int64"), id="empty"),
    S("one_hot", T(0, dtype="int64"), 3, id="empty with classes"),
]
