"""Tensor, Tensor64 and their views."""

import numpy as np
import pytest

import lightning_core as lc

KINDS = [(lc.Tensor, np.float32, "float32"), (lc.Tensor64, np.float64, "float64")]


@pytest.mark.parametrize("kind,dtype,name", KINDS)
def test_geometry_and_values(kind, dtype, name):
    x, values = kind([2, 3, 4]), np.arange(24, dtype=dtype) + dtype(0.1)
    assert x.to_list() == [0.0] * 24 == kind.zeros([24]).to_list()
    assert x.from_numpy(values.reshape(4, 6)) is None
    np.testing.assert_array_equal(x.to_numpy(), values)
    assert x.to_numpy().dtype == dtype
    assert (x.shape(), x.strides(), x.rank(), x.numel(), x.storage_numel()) == ([2, 3, 4], [12, 4, 1], 3, 24, 24)
    assert (x.is_contiguous(), x.layout(), x.dtype(), x.device()) == (True, "contiguous", name, "cpu")
    assert x.contract() == {
        "shape": [2, 3, 4],
        "strides": [12, 4, 1],
        "rank": 3,
        "numel": 24,
        "storage_numel": 24,
        "is_contiguous": True,
        "layout": "contiguous",
        "dtype": name,
        "device": "cpu",
    }
    assert x.reshape([6, 4]) is None and x.shape() == [6, 4] and x.validate_contract() is None
    part = x.slice(1, 1, 3)
    wanted = values.reshape(6, 4)[:, 1:3].ravel()
    assert (part.shape(), part.strides(), part.offset_elements(), part.layout()) == ([6, 2], [4, 1], 1, "strided")
    np.testing.assert_array_equal(x.to_host_view_numpy(part), wanted)
    assert x.to_host_view(part) == wanted.tolist() == x.slice_copy(1, 1, 3) == x.slice_copy_numpy(1, 1, 3).tolist()
    assert "offset_elements" in part.contract() and "storage_numel" not in part.contract()
    x.from_list([0.0] * 24)
    assert x.to_host_view(part) == [0.0] * 12
    assert x.view([24]).is_contiguous()
    x.from_numpy(values)
    np.testing.assert_array_equal(x.read_strided([2, 2], [5, 3], 4), values[[4, 7, 9, 12]])
    np.testing.assert_array_equal(x.add(x).to_numpy(), 2 * values)
    assert x.add(x).shape() == [6, 4]
    copied = x.to_numpy()
    copied[:] = 9
    np.testing.assert_array_equal(x.to_numpy(), values)


@pytest.mark.parametrize("kind", [lc.Tensor, lc.Tensor64])
def test_errors(kind):
    x = kind([2, 3])
    other = lc.Tensor64 if kind is lc.Tensor else lc.Tensor
    cases = [
        (RuntimeError, lambda: kind([])),
        (RuntimeError, lambda: kind([0, 2])),
        (ValueError, lambda: kind([-1])),
        (RuntimeError, lambda: kind([2**62])),
        (TypeError, lambda: kind([1.5])),
        (TypeError, lambda: kind(3)),
        (ValueError, lambda: kind([1], "tpu")),
        (RuntimeError, lambda: kind([1], "metal")),
        (RuntimeError, lambda: x.from_list([1, 2])),
        (TypeError, lambda: x.from_numpy(np.array(["a"] * 6))),
        (RuntimeError, lambda: x.reshape([4])),
        (RuntimeError, lambda: x.view([5])),
        (RuntimeError, lambda: x.slice(2, 0, 1)),
        (RuntimeError, lambda: x.slice(0, 1, 1)),
        (RuntimeError, lambda: x.slice(0, 0, 3)),
        (RuntimeError, lambda: x.read_strided([2], [6])),
        (RuntimeError, lambda: x.read_strided([2], [0])),
        (RuntimeError, lambda: x.read_strided([2, 1], [1])),
        (RuntimeError, lambda: x.add(kind([5]))),
        (TypeError, lambda: x.add(other([2, 3]))),
        (TypeError, lambda: x.to_host_view(other([2, 3]).view([6]))),
        (RuntimeError, lambda: x.to_host_view(kind([7]).view([7]))),
        (RuntimeError, lambda: x.view([6]).validate_contract_for_storage(5)),
        (TypeError, lambda: lc.TensorView()),
        (TypeError, lambda: lc.Tensor64View([1])),
    ]
    for error, call in cases:
        with pytest.raises(error):
            call()
    assert x.shape() == [2, 3] and x.to_list() == [0.0] * 6
