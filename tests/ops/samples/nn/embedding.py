"""Embeddings: rows, bags, padding, frequencies, max_norm, and invalid indices."""

from ..sample import FLOATS, HALVES, S, T

WITH_HALVES = HALVES + FLOATS
TABLE = T(6, 5)
IDS = [[1, 3, 1], [0, 5, 3]]
SAMPLES = []


def ids(values, dtype="int64"):
    return T(dtype=dtype, values=values)


def function(name, index, *more, **kwargs):
    """nn.functional takes the indices first; they are made here, as the table is what has gradients."""

    def call(m, table, *rest):
        made = m.tensor(index, dtype=m.int64)
        given = {k: m.tensor(v) if isinstance(v, list) else v for k, v in kwargs.items()}
        return getattr(m.nn.functional, name)(made, table, *more, **given, **dict(zip(["per_sample_weights"], rest)))

    return call


for index in (ids(IDS), ids(IDS, "int32"), ids(3), ids([]), ids([[[2], [2]]])):
    if index.values != []:
        SAMPLES += [S("embedding", TABLE, index, dtypes=WITH_HALVES)]
SAMPLES += [
    S("embedding", TABLE, ids(IDS), 3),
    S("embedding", TABLE, ids(IDS), -1, True, gradgrad=False),
    S("embedding", TABLE, ids([0, 6])),
    S("embedding", TABLE, ids([-1, 0])),
    S("embedding", TABLE, T(2, dtype="float32", grad=False)),
    S("embedding", T(6), ids([0])),
    S("embedding", T(300, 70), ids([[0, 299, 5, 5, 5], [7, 7, 299, 1, 0]]), rtol=1e-5, atol=1e-5),
    S("embedding", TABLE, fn=function("embedding", IDS, padding_idx=-3), id="negative-padding"),
    S("embedding", TABLE, fn=function("embedding", IDS, scale_grad_by_freq=True), gradgrad=False, id="by-frequency"),
    S("embedding", TABLE, fn=function("embedding", IDS, max_norm=1.0, norm_type=1.5), gradgrad=False, id="renorm"),
    S("embedding_renorm_", TABLE, ids([1, 3, 1]), 1.0, 2.0, grad=False),
    S("embedding_renorm_", TABLE, ids([1, 9]), 1.0, 2.0, grad=False),
]
BAGS = [1, 3, 1, 0, 5, 3, 2]
for mode in ("sum", "mean", "max"):
    for more in ({}, {"padding_idx": 3}, {"padding_idx": -5}, {"include_last_offset": True}):
        given = {"mode": mode, "offsets": [0, 2, 2, 7] if more.get("include_last_offset") else [0, 3, 3], **more}
        bag = function("embedding_bag", BAGS, **given)
        SAMPLES += [S("embedding_bag", TABLE, fn=bag, dtypes=WITH_HALVES, gradgrad=False, id=f"{mode}-{more}")]
    SAMPLES += [S("embedding_bag", TABLE, fn=function("embedding_bag", IDS, mode=mode), gradgrad=False, id=f"{mode}-rows")]
    for bad in ({"offsets": [1, 2]}, {"offsets": [0, 9]}, {}, {"offsets": [0, 3], "padding_idx": 6}):
        SAMPLES += [S("embedding_bag", TABLE, fn=function("embedding_bag", BAGS, mode=mode, **bad), id=f"{mode}-bad-{bad}")]
    SAMPLES += [S("embedding_bag", TABLE, fn=function("embedding_bag", [0, 6], mode=mode, offsets=[0]), id=f"{mode}-no-row")]
    weighted = function("embedding_bag", BAGS, mode=mode, offsets=[0, 3, 3])
    SAMPLES += [S("embedding_bag", TABLE, T(7), fn=weighted, gradgrad=False, id=f"{mode}-weighted")]
SAMPLES += [
    S("_embedding_bag", TABLE, fn=function("embedding_bag", BAGS, mode="sum", offsets=[0, 5]), gradgrad=False),
    S("embedding_bag", TABLE, fn=function("embedding_bag", BAGS, mode="other", offsets=[0])),
    S(
        "embedding_bag",
        TABLE,
        T(7),
        fn=function("embedding_bag", BAGS, mode="sum", offsets=[0, 4], padding_idx=1),
        gradgrad=False,
    ),
    S("embedding_bag", TABLE, T(6), fn=function("embedding_bag", BAGS, mode="sum", offsets=[0, 4]), id="too-few-weights"),
    S("embedding_bag", TABLE, fn=function("embedding_bag", BAGS, offsets=[0, 4], scale_grad_by_freq=True), grad=False),
    S("embedding_bag", T(9, 150), fn=function("embedding_bag", BAGS, mode="sum", offsets=[0, 4]), gradgrad=False, id="wide"),
]
