"""Resident sessions: phases, sizes, batches, buffers of their own, attention's training step."""

import os
import signal
import threading

import numpy as np
import pytest

import lightning_core as lc
import lucid

from .reference import attention, conv, random

PHASES = ("start_into", "run_into", "sync_into", "finish_into")


def close(got, wanted):
    np.testing.assert_allclose(np.ravel(got), np.ravel(wanted), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("m,k,n", [(1, 1, 1), (5, 6, 7), (70, 40, 90)])
def test_products(m, k, n):
    a, b, session = random(m, k), random(k, n, seed=1), lc.MatMulMetalResidentSession(m, k, n)
    for phase in PHASES:
        out = np.zeros((m, n), np.float32)
        assert getattr(session, phase)(a, b, out) is None
        close(out, a @ b)
    for phase in ("run_batch_sync_into", "run_batch_sync_no_download_into"):
        out = np.zeros(m * n, np.float32)
        assert getattr(session, phase)(a, b, out, 3) is None
        close(out, a @ b)
    assert session.run_batch_sync_cached_no_download(2) is None
    for phase in ("start", "run", "finish", "sync"):
        result = getattr(session, phase)(a.ravel().tolist(), b, m * n)
        assert type(result) is list
        close(result, a @ b)
    close(session.run_batch_sync(a, b, m * n, 2), a @ b)
    assert type(lc.matmul2d_resident_session(a, b)) is lc.MatMulMetalResidentSession


def test_a_cached_batch_needs_a_start_and_a_count():
    a, out = random(2, 2), np.zeros(4, np.float32)
    session = lc.MatMulMetalResidentSession(2, 2, 2)
    with pytest.raises(RuntimeError, match="not initialized"):
        session.run_batch_sync_cached_no_download(1)
    session.run_into(a, a, out)
    with pytest.raises(RuntimeError):
        session.run_batch_sync_cached_no_download(1)
    session.start_into(a, a, out)
    session.run_batch_sync_cached_no_download(1)
    for call in (lambda: session.run_batch_sync_cached_no_download(0), lambda: session.run_batch_sync_into(a, a, out, 0)):
        with pytest.raises(RuntimeError, match="invalid value"):
            call()
    with pytest.raises(TypeError):
        session.run_batch_sync_cached_no_download(-1)


def test_arguments_by_their_names():
    a, b, out = random(2, 3), random(3, 2, seed=1), np.zeros(4, np.float32)
    session, adds = lc.MatMulMetalResidentSession(m=2, k=3, n=2), lc.VectorAddMetalResidentSession(n=4)
    session.start_into(a, out=out, b=b)
    close(out, a @ b)
    session.run_batch_sync_into(a=2 * a, b=b, out=out, n=3)
    close(out, 2 * a @ b)
    session.run_batch_sync_cached_no_download(n=2)
    close(session.run_batch_sync(a, b, n=2, out_size=4), a @ b)
    close(adds.add(a=out, b=out, out_size=4), 2 * out)
    q, image = random(2, 2), random(1, 1, 2, 2)
    lc.AttentionSession(2, 2).forward_into(q=q, k=q, v=q, out=out)
    close(out, attention(q, q, q))
    lc.Conv2dMetalResidentSession(1, 1, 2, 2, 1, 1, 1).run_into(x=image, w=[2.0], bias=None, out=out)
    close(out, np.maximum(2 * image, 0))
    out[:] = 7
    for wrong in ({"a": a, "b": b}, {"a": a, "b": b, "out": out, "n": 1}, {"x": a, "b": b, "out": out}):
        with pytest.raises(TypeError, match=r"run_into\(\)"):
            session.run_into(**wrong)
    with pytest.raises(TypeError, match="twice"):
        session.run_into(a, b, out, a=a)
    assert (out == 7).all()


def test_elementwise():
    a, b = random(3, 5), random(3, 5, seed=1)
    session, adds = lc.MatrixElemwiseMetalResidentSession(3, 5), lc.VectorAddMetalResidentSession(15)
    for phase in ("start_into", "run_into", "finish_into"):
        out = np.zeros((3, 5), np.float32)
        getattr(session, f"sub_{phase}")(a, b, out)
        np.testing.assert_array_equal(out, a - b)
        getattr(session, f"div_{phase}")(a, b, out)
        np.testing.assert_array_equal(out, a / b)
        getattr(adds, phase)(a, b, out)
        np.testing.assert_array_equal(out, a + b)
    for phase in ("start", "run", "finish"):
        close(getattr(session, f"sub_{phase}")(a, b, 15), a - b)
        close(getattr(session, f"div_{phase}")(a, b, 15), a / b)
        close(getattr(adds, phase)(a, b, 15), a + b)
    close(session.sub(a, b, 15), a - b)
    close(session.div(a, b, 15), a / b)
    close(adds.add(a, b, 15), a + b)


@pytest.mark.parametrize("relu", [True, False])
def test_convolutions(relu):
    x, w, bias = random(2, 3, 8, 7), random(4, 3, 3, 2), random(4)
    session = lc.Conv2dMetalResidentSession(2, 3, 8, 7, 4, 3, 2, 2, 1, pad_w=1, apply_relu=relu)
    for given in (bias, None):
        wanted = conv(x, w, given, (2, 1), (0, 1), relu)
        for phase in PHASES:
            out = np.zeros(wanted.shape, np.float32)
            getattr(session, phase)(x, w, given, out)
            close(out, wanted)
        out[:] = 0
        session.run_batch_sync_into(x, w, given, out, 2)
        close(out, wanted)
        for phase in ("start", "run", "sync", "finish", "run_batch_sync", "run_batch_sync:3"):
            out[:] = 0
            lc.conv2d_nchw_metal_resident(x, w, given, out, 2, 1, 0, 1, phase, relu)
            close(out, wanted)
    for error, phase in (
        (ValueError, "stop"),
        (ValueError, "run_batch_sync:x"),
        (RuntimeError, "run_batch_sync:0"),
        (TypeError, 1),
    ):
        with pytest.raises(error):
            lc.conv2d_nchw_metal_resident(x, w, bias, out, 2, 1, 0, 1, phase)


def test_sizes_are_checked_and_nothing_is_written():
    a, out = random(3, 3), np.full(9, 7, np.float32)
    session = lc.MatMulMetalResidentSession(3, 3, 3)
    for args in ((a[:2], a, out), (a, a[:2], out), (a, a, out[:8])):
        with pytest.raises(ValueError):
            session.run_into(*args)
    with pytest.raises(ValueError):
        session.run(a, a, 8)
    with pytest.raises(TypeError):
        session.run_into(a, a)
    with pytest.raises(TypeError):
        session.run_into(a, a, [0.0] * 9)
    assert (out == 7).all()
    for empty in (lc.MatMulMetalResidentSession(0, 1, 1), lc.MatMulMetalResidentSession(2**40, 2**40, 2**40)):
        with pytest.raises(RuntimeError, match="invalid value"):
            empty.run_into(a, a, out)
    with pytest.raises(RuntimeError):
        lc.Conv2dMetalResidentSession(1, 1, 2, 2, 1, 3, 3).run_into(a, a, None, out)
    with pytest.raises(TypeError):
        lc.MatMulMetalResidentSession(-1, 1, 1)


def test_sessions_share_no_buffers():
    a, b, out = random(4, 4), random(4, 4, seed=9), np.zeros(16, np.float32)
    first, second = (lc.MatMulMetalResidentSession(4, 4, 4) for _ in range(2))
    first.start_into(a, a, out)
    second.start_into(b, b, out)
    first.run_batch_sync_cached_no_download(1)
    close(second.run(b, b, 16), b @ b)
    a[:] = 0
    first.run_into(a, a, out)
    assert not out.any()


@pytest.mark.parametrize("device", ["cpu", "metal", "cuda"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(device, causal):
    q, k, v = (random(6, 4, seed=i) for i in range(3))
    session, wanted = lc.AttentionSession(6, 4, causal, device), attention(q, k, v, causal)
    out = np.zeros((6, 4), np.float32)
    assert session.forward_into(q, k, v, out) is None
    close(out, wanted)
    result = session.forward(q, k, v)
    assert type(result) is list
    close(result, wanted)
    policy = lc.AttentionIoPolicy()
    policy.output_scale, policy.output_bias, policy.output_relu = 3.0, -0.5, True
    shaped = np.maximum(3 * wanted - 0.5, 0)
    close(session.forward_with_policy(q, k, v, policy), shaped)
    session.forward_with_policy_into(q, k, v, out, policy)
    close(out, shaped)
    session.set_default_policy(policy)
    policy.output_scale = 1.0
    close(session.forward(q, k, v), shaped)
    close(lc.attention2d_session(q, causal, device).forward(q, k, v), wanted)


@pytest.mark.parametrize("relu", [False, True])
def test_train_step_is_the_gradient_of_v(relu):
    import torch

    q, k, v, target = (random(5, 3, seed=i) for i in range(4))
    policy = lc.AttentionIoPolicy()
    policy.output_scale, policy.output_relu = 1.5, relu
    session = lc.AttentionSession(5, 3, True, "cpu")
    out, new, loss = session.train_step_with_policy(q, k, v, target, 0.5, policy)
    tv = torch.tensor(v, requires_grad=True)
    y = 1.5 * torch.nn.functional.scaled_dot_product_attention(
        torch.tensor(q)[None], torch.tensor(k)[None], tv[None], is_causal=True
    )
    y = y.relu() if relu else y
    wanted = ((y[0] - torch.tensor(target)) ** 2).mean()
    wanted.backward()
    close(out, y.detach())
    close(new, v - 0.5 * tv.grad.numpy())
    assert loss == pytest.approx(wanted.item(), rel=1e-5)
    for rate in (0, -1.0, float("nan")):
        with pytest.raises(RuntimeError, match="invalid value"):
            session.train_step(q, k, v, target, rate)


def test_the_loss_is_computed_every_few_steps():
    q, v = random(4, 2), random(4, 2, seed=1)
    session, losses = lc.AttentionSession(4, 2), []
    for _ in range(9):
        _, v, loss = session.train_step(q, q, v, q, 1.0)
        losses.append(loss)
    assert losses[0] == losses[3] > losses[4] == losses[7] > losses[8]


def test_threads_and_fork():
    a, b = random(90, 90), random(90, 90, seed=1)
    session, wanted, failures = lc.MatMulMetalResidentSession(90, 90, 90), lc.matmul2d(a, b), []

    def work():
        out = np.empty((90, 90), np.float32)
        for _ in range(20):
            session.start_into(a, b, out)
            session.run_batch_sync_cached_no_download(1)
            if not np.allclose(out, wanted, atol=1e-4):
                failures.append("start_into")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    child = os.fork()
    if not child:
        out = np.empty((90, 90), np.float32)
        session.run_into(a, b, out)
        os._exit(not np.allclose(out, wanted, atol=1e-4))
    assert os.waitpid(child, 0)[1] == 0


def test_a_forked_process_does_not_wait_for_threads_that_it_lacks():
    a, out, inside = random(300, 300), np.empty((300, 300), np.float32), []
    session = lc.MatMulMetalResidentSession(300, 300, 300)
    session.start_into(a, a, out)
    lc.runtime_trace_enable(True)
    thread = threading.Thread(target=session.run_batch_sync_cached_no_download, args=(3000,))
    thread.start()
    while not any(e["op"] == "matmul" for e in lc.runtime_trace_events()):  # it has the session's lock
        pass
    child = os.fork()
    if not child:
        signal.alarm(60)
        out[:] = 0
        session.start_into(-a, a, out)
        session.run_batch_sync_cached_no_download(1)
        os._exit(not np.allclose(out, -a @ a, atol=1e-3))
    inside.append(thread.is_alive())
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert inside == [True]


@pytest.mark.parametrize("sizes", [(1, 3, 8, 8, 16), (1, 16, 32, 32, 32), (3, 8, 9, 20, 5), (1, 64, 8, 8, 64)])
def test_convolutions_see_weights_that_change_in_place(sizes):
    """A session packs weights once: what it keeps is theirs, and follows them."""
    n, c, h, w, o = sizes
    x, weight, bias = random(n, c, h, w), random(o, c, 3, 3), random(o)
    session, out = lc.Conv2dMetalResidentSession(n, c, h, w, o, 3, 3, 1, 1, 1, 1), np.empty((n, o, h, w), np.float32)
    for step in range(4):
        for given in (x, x, -x):
            session.run_into(given, weight, bias, out)
            close(out, conv(given, weight, bias, pad=(1, 1), relu=True))
        weight[step % o, -1] *= -3
    same, fresh = lc.Conv2dMetalResidentSession(n, c, h, w, o, 3, 3, 1, 1, 1, 1), out.copy()
    same.run_into(-x, weight.copy(), bias, fresh)
    session.run_into(-x, weight, bias, out)
    np.testing.assert_array_equal(fresh, out)  # packed before or just now: one result
    x[0, 0, 2, 2] = np.inf  # images that are not finite take another way
    session.run_into(x, weight, bias, out)
    wanted = lc.lightning_conv_relu_nchw(x, weight, bias, 1, 1, 1, 1, "cpu")
    np.testing.assert_array_equal(out, wanted)


def test_one_convolution_session_of_many_threads():
    x, weights = random(1, 16, 32, 32), [random(32, 16, 3, 3, seed=s) for s in range(4)]
    wanted = [lc.lightning_conv_relu_nchw(x, w, None, 1, 1, 1, 1, "cpu") for w in weights]
    session, wrong = lc.Conv2dMetalResidentSession(1, 16, 32, 32, 32, 3, 3, 1, 1, 1, 1), []

    def work(k):
        out = np.empty_like(wanted[k])
        for _ in range(30):
            session.run_into(x, weights[k], None, out)
            if not (out == wanted[k]).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_a_convolution_that_finds_no_memory_works_the_next_time():
    x, weight = random(1, 16, 32, 32), random(32, 16, 3, 3)
    wanted = lc.lightning_conv_relu_nchw(x, weight, None, 1, 1, 1, 1, "cpu")
    failures = 0
    for n in range(1, 12):
        session, out = lc.Conv2dMetalResidentSession(1, 16, 32, 32, 32, 3, 3, 1, 1, 1, 1), np.empty_like(wanted)
        for _ in range(2):
            lucid._C._fail_allocation(n)
            try:
                session.run_into(x, weight, None, out)
            except RuntimeError:
                failures += 1
            finally:
                lucid._C._fail_allocation(0)
            session.run_into(x, weight, None, out)
            np.testing.assert_array_equal(out, wanted)
    assert failures >= 3
