"""Every op sample, eager and compiled: the same bits, forward and backward. A sample that cannot be traced must say so, not be wrong."""

import warnings

import pytest

import lucid
from tests.ops.harness import build, flat
from tests.ops.test_ops import BY_SAMPLE, call


def bits(result):
    return [t.detach().clone() if isinstance(t, lucid.Tensor) else t for t in flat(result)]


def same(a, b, strides=True):
    if not isinstance(a, lucid.Tensor):
        return a == b or (a != a and b != b)
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and (a.stride() == b.stride() or not strides)
        and a.isnan().equal(b.isnan())
        and a.nan_to_num().equal(b.nan_to_num())
    )


@pytest.mark.parametrize("sample", BY_SAMPLE)
def test_compiled_is_eager(sample):
    dtype = "float32" if "float32" in sample.dtypes else sample.dtypes[0]
    try:
        tensors = build(lucid, sample, dtype, grad=sample.grad)
        expected = bits(call(lucid, sample, tensors))
    except Exception:  # noqa: BLE001  refused: other tests compare how
        return
    leaves = [t for t in tensors if t.requires_grad]

    def gradients(result):
        outputs = [t for t in flat(result) if isinstance(t, lucid.Tensor) and t.requires_grad]
        if not outputs or not leaves:
            return []
        seeds = [lucid.ones(o.shape, dtype=o.dtype) for o in outputs]
        return list(lucid.autograd.grad(outputs, leaves, seeds, allow_unused=True))

    compiled = lucid.compile(lambda *tensors: call(lucid, sample, list(tensors)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = [g for g in gradients(call(lucid, sample, tensors))]
        for _ in range(3):
            result = compiled(*tensors)
            found = bits(result)
            assert len(found) == len(expected) and all(map(same, found, expected)), compiled.explain()
            grads = gradients(result)
            assert [g is None for g in grads] == [g is None for g in wanted]
            assert all(g is None or same(g, w, strides=False) for g, w in zip(grads, wanted)), compiled.explain()
