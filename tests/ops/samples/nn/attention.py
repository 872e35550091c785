"""Attention: ranks, broadcast batches, masks, shared heads, tiles that end anywhere, queries that see no key, what does not fit."""

from ..sample import FLOATS, HALVES, S, T

NAME = "scaled_dot_product_attention"
WITH_HALVES = HALVES + FLOATS
INF = float("inf")
BLIND = [[True, False, True, True, False], [False] * 5, [True] * 5, [False, False, False, False, True]]
FLOAT_MASK = [[0.0, -INF, 0.5, -1.0, 2.0], [-INF] * 5, [1.0] * 5, [-INF, 0.0, 0.0, -INF, 0.25]]
SAMPLES = []


def attention(*tensors, gradgrad=False, dtypes=FLOATS, **kwargs):
    """PyTorch has no second gradient of its fused kernel: test_attention.py compares those with its formula."""
    more = {key: kwargs.pop(key) for key in ("rtol", "atol", "id", "grad", "random", "strides") if key in kwargs}
    more = {"rtol": 1e-5, "atol": 1e-5} | more if dtypes == FLOATS else more
    SAMPLES.append(S(NAME, *tensors, dtypes=dtypes, gradgrad=gradgrad, **more, **kwargs))


def operands(batch, length, keys, width, width_v=None, key_batch=None, **kwargs):
    key_batch = batch if key_batch is None else key_batch
    return (
        T(*batch, length, width, **kwargs),
        T(*key_batch, keys, width, **kwargs),
        T(*key_batch, keys, width_v or width, **kwargs),
    )


for batch in ((), (3,), (2, 3), (2, 1, 2)):
    for causal in (False, True):
        attention(*operands(batch, 4, 5, 8), is_causal=causal, gradgrad=len(batch) != 2)
        attention(*operands(batch, 4, 5, 8, 6), is_causal=causal, gradgrad=True)
        attention(*operands(batch, 4, 5, 8), is_causal=causal, dtypes=HALVES, rtol=2e-2, atol=2e-2, grad=False)
for causal in (False, True):  # several tiles of queries and keys, with ends; widths that are no whole vectors
    attention(*operands((1, 2), 130, 70, 20), is_causal=causal)
    attention(*operands((1, 1), 65, 129, 33, 3), is_causal=causal)
    attention(*operands((2, 1), 1, 200, 64), is_causal=causal)
    attention(*operands((1, 1), 66, 130, 16), is_causal=causal, dtypes=HALVES, rtol=2e-2, atol=2e-2, grad=False)
q, k, v = operands((2, 3), 4, 5, 8)
for mask in (T(values=BLIND, dtype="bool"), T(2, 1, 4, 5, dtype="bool"), T(2, 3, 1, 5, dtype="bool"), T(3, 4, 5, dtype="bool")):
    attention(q, k, v, mask)
    attention(q, k, T(2, 3, 5, 6), mask, gradgrad=True)
for mask in (T(values=FLOAT_MASK, grad=False), T(2, 3, 4, 5, grad=False), T(1, 3, 1, 5, grad=False)):
    attention(q, k, v, mask)
    attention(q, k, T(2, 3, 5, 6), mask, gradgrad=True)
attention(q, k, v, T(2, 1, 4, 5), gradgrad=True)  # a mask that requires grad
attention(q, k, v, T(4, 5, dtype="float32", grad=False))
attention(*operands((1, 2), 70, 130, 16), T(2, 70, 130, dtype="bool"))
attention(*operands((1, 2), 70, 130, 16), T(70, 130, grad=False))
attention(q, k, v, T(4, 5, dtype="int64"))
attention(q, k, v, T(2, 2, 3, 4, 5))
for scale in (0.0, 0.3, -1.0):
    attention(q, k, v, scale=scale)
attention(*operands((2, 6), 4, 5, 8, key_batch=(2, 3)), enable_gqa=True)
attention(*operands((2, 6), 4, 5, 8, 6, key_batch=(2, 3)), enable_gqa=True, is_causal=True, gradgrad=True)
attention(*operands((1, 4), 70, 80, 16, key_batch=(1, 2)), enable_gqa=True, is_causal=True)
attention(*operands((6,), 4, 5, 8, key_batch=(3,)), enable_gqa=True, gradgrad=True)
attention(T(2, 6, 4, 8), T(2, 3, 5, 8), T(2, 2, 5, 8), enable_gqa=True, gradgrad=True)
attention(*operands((2, 4), 4, 5, 8, key_batch=(2, 3)), enable_gqa=True)
attention(*operands((2, 6), 4, 5, 8, key_batch=(2, 3)))
attention(T(2, 1, 4, 8), T(1, 3, 5, 8), T(2, 3, 5, 8), gradgrad=True)
attention(T(4, 8), T(3, 5, 8), T(3, 5, 8), gradgrad=True)
for shapes in (
    ((2, 3, 4, 8), (2, 3, 0, 8)),
    ((2, 3, 0, 8), (2, 3, 5, 8)),
    ((0, 3, 4, 8), (0, 3, 5, 8)),
    ((2, 3, 4, 0), (2, 3, 5, 0)),
):
    attention(T(*shapes[0]), T(*shapes[1]), T(*shapes[1]))
attention(T(8), T(8), T(8))
attention(T(2, 3, 4, 8), T(2, 3, 5, 7), T(2, 3, 5, 8))
attention(T(2, 3, 4, 8), T(2, 3, 5, 8, dtype="float16"), T(2, 3, 5, 8))
attention(q, k, v, dtypes=("int64",), grad=False)
attention(q, k, v, dropout_p=1.5)
attention(T(1, 1, 2, 4), T(values=[[[[1.0, float("nan"), 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]]]]), T(1, 1, 2, 4), grad=False)
attention(T(1, 1, 2, 4), T(values=[[[[1e20] * 4, [-1e20] * 4]]]), T(1, 1, 2, 4), grad=False)


def transposed(m, x, y, z, **kwargs):
    """Transposed layout (batch, length, heads, width), as a projection leaves it: the result keeps it."""
    return m.nn.functional.scaled_dot_product_attention(x.transpose(1, 2), y.transpose(1, 2), z.transpose(1, 2), **kwargs)


def dropped(m, x, y, z, **kwargs):
    m.manual_seed(5)
    return m.nn.functional.scaled_dot_product_attention(x, y, z, dropout_p=0.4, **kwargs)


SAMPLES += [S(NAME, T(2, 4, 3, 8), T(2, 5, 3, 8), T(2, 5, 3, 8), fn=transposed, gradgrad=False, rtol=1e-5, atol=1e-5)]
SAMPLES += [
    S(NAME, *operands((2, 3), 4, 5, 8), fn=lambda m, *a, k=k: dropped(m, *a, **k), rtol=1e-5, atol=1e-5)
    for k in ({}, {"is_causal": True}, {"scale": 0.5})
]
SAMPLES += [
    S(
        NAME,
        *operands((2, 4), 4, 5, 8, key_batch=(2, 2)),
        fn=lambda m, *a: dropped(m, *a, enable_gqa=True),
        rtol=1e-5,
        atol=1e-5,
    )
]
