"""The one-shot operators: values against NumPy, shapes, `out`, errors."""

import sys
import threading

import numpy as np
import pytest

import lightning_core as lc

from .reference import DEVICES, attention, conv, random

SIZES = [(1, 1, 1), (2, 7, 3), (5, 4, 33), (64, 48, 80), (130, 70, 90)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("m,k,n", SIZES)
def test_products(device, m, k, n):
    a, b = random(m, k), random(k, n, seed=1)
    wanted = a @ b
    close = lambda y: np.testing.assert_allclose(np.reshape(y, (m, n)), wanted, rtol=1e-4, atol=1e-4)
    y = lc.matmul2d(a, b, device)
    assert y.shape == (m, n) and y.dtype == np.float32 and y.flags.writeable
    close(y)
    for out in (np.empty((m, n), np.float32), np.empty(m * n, np.float32)):
        assert lc.matmul2d_into(a, b, out, device) is None
        close(out)
    for f in (lc.matmul, lc.matmul_np, lc.matmul_with_policy, lc.matmul_np_with_policy):
        y = f(a.ravel(), b[None], m, k, n, device)
        assert y.shape == (m * n,)
        close(y)
    for f in (lc.matmul_np_into, lc.matmul_np_into_with_policy):
        out = np.empty((m, 1, n), np.float32)
        assert f(a, b, out, m, k, n, device) is None
        close(out)


@pytest.mark.parametrize("size", [1, 5, 256, 257, 100_000])
def test_elementwise(size):
    a, b = random(size), random(size, seed=1)
    np.testing.assert_array_equal(lc.vector_add(a, b), a + b)
    np.testing.assert_array_equal(lc.matrix_sub(a, b, 1, size), a - b)
    assert lc.vector_add(a.reshape(1, -1), b, "cpu").shape == (size,)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seq,dim", [(1, 1), (3, 5), (8, 16), (70, 24), (200, 64)])
def test_attention(device, causal, seq, dim):
    q, k, v = (random(seq, dim, seed=i) for i in range(3))
    wanted = attention(q, k, v, causal)
    close = lambda y: np.testing.assert_allclose(np.reshape(y, (seq, dim)), wanted, rtol=1e-4, atol=1e-5)
    y = lc.attention2d(q, k, v, causal, device)
    assert y.shape == (seq, dim)
    close(y)
    out = np.empty((seq, dim), np.float32)
    assert lc.attention2d_into(q, k, v, out, causal=causal, device=device) is None
    close(out)
    for f in (lc.attention_forward, lc.attention_forward_with_policy, lc.lightning_attention, lc.api.attention):
        y = f(q, k, v, seq, dim, causal, device)
        assert np.size(y) == seq * dim
        close(y)
    flat = np.empty((dim, seq), np.float32)
    assert lc.lightning_attention_into(q, k, v, flat, seq, dim, causal, device) is None
    close(flat)


def test_attention_of_large_scores_is_stable():
    q = np.array([[1000.0, 0], [0, 1000.0]], np.float32)
    np.testing.assert_allclose(lc.attention2d(q, q, q), q, rtol=1e-6)


CONVS = [((1, 1, 1, 1), (1, 1, 1, 1), (1, 1), (0, 0)), ((2, 3, 9, 8), (5, 3, 3, 2), (2, 1), (1, 2))]
CONVS += [((1, 3, 32, 32), (16, 3, 3, 3), (1, 1), (1, 1))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape,kernel,stride,pad", CONVS)
@pytest.mark.parametrize("biased", [False, True])
def test_convolutions(device, shape, kernel, stride, pad, biased):
    x, w, bias = random(*shape), random(*kernel, seed=1), random(kernel[0], seed=2) if biased else None
    for f, into, relu in (
        (lc.conv2d_nchw, lc.conv2d_nchw_into, False),
        (lc.lightning_conv_relu_nchw, lc.lightning_conv_relu_nchw_into, True),
        (lc.api.conv_relu_nchw, lc.api.conv_relu_nchw_into, True),
    ):
        wanted = conv(x, w, bias, stride, pad, relu)
        y = f(x, w, bias, *stride, *pad, device)
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4)
        out = np.empty_like(y)
        assert into(x, w, bias, out, *stride, *pad, device=device) is None
        np.testing.assert_array_equal(out, y)


def test_weights_changed_in_place_are_seen():
    x, w = random(1, 2, 5, 5), random(3, 2, 3, 3)
    before = lc.conv2d_nchw(x, w)
    w *= 2
    np.testing.assert_allclose(lc.conv2d_nchw(x, w), 2 * before, rtol=1e-5)


def test_lists_give_lists_and_arrays_arrays():
    for f, args in (
        (lc.matmul, (2, 2, 1)),
        (lc.matmul_with_policy, (2, 2, 1)),
        (lc.matrix_sub, (2, 2)),
        (lc.vector_add, ()),
    ):
        a, b = [1.0, 2, 3, 4], [5.0, 6] if f in (lc.matmul, lc.matmul_with_policy) else [5.0, 6, 7, 8]
        listed, wide = f(a, b, *args), f(np.array(a), np.array(b), *args)
        assert type(listed) is list and type(wide) is np.ndarray and wide.dtype == np.float32
        assert listed == wide.tolist()
    assert type(lc.attention_forward([1.0, 2], [1, 2], [1, 2], 2, 1)) is list


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.uint8, np.bool_, np.float16, ">f4"])
def test_any_dtype_and_layout_is_taken(dtype):
    a = np.arange(12).reshape(3, 4).astype(dtype)
    np.testing.assert_allclose(lc.matmul2d(a[::2, ::-1], a.T), (a[::2, ::-1].astype("f") @ a.T.astype("f")))
    np.testing.assert_allclose(lc.vector_add(memoryview(np.ones(3, "f")), (1, 2, 3)), [2, 3, 4])


def test_odd_addresses():
    memory = bytearray(65)
    odd = np.frombuffer(memory, "f", 16, offset=1)
    odd[:] = range(16)
    np.testing.assert_array_equal(lc.vector_add(odd, odd), 2.0 * np.arange(16))
    with pytest.raises(ValueError):
        lc.matmul2d_into(random(4, 4), random(4, 4), odd)
    np.testing.assert_array_equal(odd, range(16))


def test_not_a_number_stays():
    q = random(4, 4)
    q[2, 1] = np.nan
    ours = lc.attention2d(random(4, 4), random(4, 4), q)
    assert np.isnan(ours[:, 1]).all() and np.isfinite(np.delete(ours, 1, 1)).all()
    ours = lc.attention2d(q, random(4, 4), random(4, 4), device="cpu")
    assert np.isnan(ours[2]).all() and np.isfinite(np.delete(ours, 2, 0)).all()
    image = np.full((1, 1, 2, 2), np.nan, "f")
    assert np.isnan(lc.lightning_conv_relu_nchw(image, np.ones((1, 1, 1, 1)))).all()


def test_out_is_the_callers_memory_or_an_error():
    a = random(4, 4)
    frozen, wide, strided = np.zeros((4, 4), "f"), np.zeros((4, 4)), np.zeros((4, 8), "f")[:, ::2]
    frozen.flags.writeable = False
    for out in (frozen, wide, strided, np.zeros((2, 8), "f"), np.zeros(15, "f"), np.zeros((4, 4), "i4")):
        with pytest.raises(ValueError):
            lc.matmul2d_into(a, a, out)
        assert not out.any()
    for out in ([0.0] * 16, None, "x", 1.0):
        with pytest.raises(TypeError):
            lc.matmul2d_into(a, a, out)
    memory = bytearray(64)
    lc.matmul2d_into(a, a, memoryview(memory).cast("f"), "cpu")
    np.testing.assert_allclose(np.frombuffer(memory, "f").reshape(4, 4), a @ a, rtol=1e-5, atol=1e-6)


def test_out_may_be_an_operand():
    a, b = random(20, 20), random(20, 20, seed=1)
    wanted = a @ b
    lc.matmul2d_into(a, b, a)
    np.testing.assert_allclose(a, wanted, rtol=1e-4, atol=1e-4)
    wanted = attention(b, b, b)
    lc.attention2d_into(b, b, b, b)
    np.testing.assert_allclose(b, wanted, rtol=1e-4, atol=1e-5)


M = np.ones((2, 3), "f")
X, W = np.ones((1, 2, 4, 4), "f"), np.ones((3, 2, 3, 3), "f")
BAD = [
    (ValueError, lambda: lc.matmul2d(M, M)),
    (ValueError, lambda: lc.matmul2d(M.ravel(), M)),
    (ValueError, lambda: lc.matmul2d(M, M.T, "auto")),
    (ValueError, lambda: lc.matmul2d(M, M.T, "Metal")),
    (ValueError, lambda: lc.matmul(M, M, 2, 3, 3)),
    (ValueError, lambda: lc.matmul(M, M, 2**62, 4, 2**62)),
    (TypeError, lambda: lc.matmul(M, M, -1, 3, 2)),
    (TypeError, lambda: lc.matmul(M, M, 2.0, 3, 2)),
    (TypeError, lambda: lc.matmul(M, M, True, 3, 2)),
    (TypeError, lambda: lc.matmul(M, M, 2, 3, 2**64)),
    (TypeError, lambda: lc.matmul2d(M)),
    (TypeError, lambda: lc.matmul2d(M, M.T, "cpu", 1)),
    (TypeError, lambda: lc.matmul2d(M, M.T, where="cpu")),
    (TypeError, lambda: lc.matmul2d(M, b=M.T, a=M)),
    (TypeError, lambda: lc.matmul2d(M, M.T, 1)),
    (TypeError, lambda: lc.matmul2d("abc", M)),
    (TypeError, lambda: lc.matmul2d(None, M)),
    (RuntimeError, lambda: lc.matmul2d(np.ones((0, 3)), M.T)),
    (RuntimeError, lambda: lc.matmul2d(np.ones((2, 0)), np.ones((0, 2)))),
    (RuntimeError, lambda: lc.vector_add([], [])),
    (ValueError, lambda: lc.vector_add([1], [1, 2])),
    (ValueError, lambda: lc.matrix_sub(M, M, 2, 2)),
    (ValueError, lambda: lc.attention2d(M, M, M.T)),
    (ValueError, lambda: lc.attention2d(M[0], M[0], M[0])),
    (TypeError, lambda: lc.attention2d(M, M, M, "yes")),
    (RuntimeError, lambda: lc.attention2d(M[:0], M[:0], M[:0])),
    (ValueError, lambda: lc.attention_forward(M, M, M, 3, 3)),
    (ValueError, lambda: lc.attention2d_into(M, M, M, np.empty(6, "f"))),
    (ValueError, lambda: lc.conv2d_nchw(X, W[:, :1])),
    (ValueError, lambda: lc.conv2d_nchw(X[0], W)),
    (ValueError, lambda: lc.conv2d_nchw(X, W, [1.0])),
    (ValueError, lambda: lc.conv2d_nchw(X, np.ones((3, 2, 5, 5)))),
    (ValueError, lambda: lc.conv2d_nchw(X, W, None, 0)),
    (TypeError, lambda: lc.conv2d_nchw(X, W, pad_h=-1)),
    (RuntimeError, lambda: lc.conv2d_nchw(X[:0], W)),
    (ValueError, lambda: lc.conv2d_nchw_into(X, W, None, np.empty(12, "f"))),
    (TypeError, lambda: lc.matmul_with_policy(M, M, 2, 3, 2, policy=lc.VectorAddIoPolicy())),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_errors(number):
    error, call = BAD[number]
    with pytest.raises(error) as caught:
        call()
    if error is RuntimeError:
        assert str(caught.value) == "invalid value"


def test_policies():
    for kind in (lc.MatMulIoPolicy, lc.MatrixElementwiseIoPolicy, lc.VectorAddIoPolicy):
        policy = kind()
        assert (policy.upload_a, policy.upload_b, policy.download_out, policy.synchronize) == (True,) * 4
        policy.upload_a = False
        assert not policy.upload_a and kind().upload_a
        for wrong in (1, "x", None):
            with pytest.raises(TypeError):
                policy.upload_a = wrong
        with pytest.raises(AttributeError):
            policy.upload_q = True
        with pytest.raises(TypeError):
            kind(True)
    policy = lc.AttentionIoPolicy()
    policy.output_scale, policy.output_bias, policy.output_relu, policy.loss_every = 2, -1.5, True, 3
    x = random(4, 3)
    wanted = np.maximum(2 * attention(x, x, x) - 1.5, 0).ravel()
    np.testing.assert_allclose(lc.attention_forward_with_policy(x, x, x, 4, 3, policy=policy), wanted, rtol=1e-5, atol=1e-6)
    for name, wrong in (("loss_every", -1), ("loss_every", 1.5), ("output_scale", "x"), ("output_relu", 1)):
        with pytest.raises(TypeError):
            setattr(policy, name, wrong)


def test_nothing_is_leaked():
    a, out = random(6, 6), np.empty((6, 6), "f")
    calls = [lambda: lc.matmul2d(a, a), lambda: lc.matmul2d_into(a, a, out), lambda: lc.attention2d(a, a, a)]
    calls += [lambda: lc.matmul2d(a.astype("f8"), a.tolist()), lambda: lc.vector_add(a, a)]
    counts = [sys.getrefcount(a), sys.getrefcount(out)]
    for call in calls * 10:
        call()
    for _, bad in BAD:
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            bad()
    assert [sys.getrefcount(a), sys.getrefcount(out)] == counts


def test_threads():
    a, b = random(150, 150), random(150, 150, seed=1)
    wanted, failures = lc.matmul2d(a, b), []

    def work():
        for _ in range(20):
            if not np.array_equal(lc.matmul2d(a, b), wanted):
                failures.append("matmul2d")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
