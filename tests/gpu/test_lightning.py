"""lightning_core on a CUDA device: results are the CPU's, what is resident stays there, the trace and the queries say so."""

import ctypes
import os
import pathlib
import threading

import numpy as np
import pytest

import lightning_core as lc
import lightning_core_integrated_api as lc_api
import lucid
from lightning_core import _tuning
from tests.lightning.reference import attention, conv, pipeline, random

pytestmark = pytest.mark.skipif(not lc.cuda_available(), reason="no CUDA device")
EMULATED = "EMULATOR_CC" in os.environ
FILES = ("CJ_MATMUL_TUNE_CACHE_FILE", "CJ_MATMUL_SMALL_TUNE_CACHE_FILE", "CJ_ATTN_TUNE_CACHE_FILE")
LIMITS = ("CJ_VECTORADD_CPU_CROSSOVER_N", "CJ_CONV2D_CPU_CROSSOVER_MACS", "CJ_ATTN_METAL_ONESHOT_CPU_CROSSOVER_OPS")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (*FILES, *LIMITS, "CJ_CROSSOVER_TUNE_CACHE_FILE"):
        monkeypatch.delenv(name, raising=False)
    lc.matmul_reset_tuning()
    yield
    lc.runtime_trace_enable(False)
    lc.runtime_trace_clear()
    lc.matmul_reset_tuning()
    lc.clear_attention2d_session_cache()


@pytest.fixture
def always(monkeypatch):
    """ "metal" is the device, whatever is faster."""
    monkeypatch.setattr(_tuning, "_measure_crossover", lambda op, sizes: _tuning.ALWAYS)


def close(got, wanted):
    np.testing.assert_allclose(np.ravel(got), np.ravel(wanted), rtol=2e-4, atol=2e-4)


def traced(call, kind="op_dispatch"):
    lc.runtime_trace_clear()
    lc.runtime_trace_enable(True)
    call()
    lc.runtime_trace_enable(False)
    return [e for e in lc.runtime_trace_events() if e["type"] == kind]


class Copies:
    """How many copies from the host and to it the emulated driver made in a block."""

    def __enter__(self):
        driver = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcuda.so.1")
        self.counters = driver.emulated_sent, driver.emulated_fetched, driver.emulated_launches
        for counter in self.counters:
            counter.restype = ctypes.c_int64
        self.before = [counter() for counter in self.counters]
        return self

    def __exit__(self, *error):
        now = [counter() - before for counter, before in zip(self.counters, self.before)]
        self.sent, self.fetched, self.launched = now


counted = pytest.mark.skipif(not EMULATED, reason="the emulated driver counts")


# ---- what there is ----
def test_queries_tell_the_truth():
    assert lc.cuda_available() and not lc.metal_available() and lc.backend_name() == "cuda"
    cuda, metal, cpu = (lc.runtime_backend_capabilities(d) for d in ("cuda", "metal", "cpu"))
    assert cuda["available"] and cuda["compute_surface"] and cuda["sync_surface"] and cuda["memory_model"] == "native-device"
    assert cuda["memory_surface"] and not metal["memory_surface"] and not cpu["memory_surface"]
    memory = lc.runtime_backend_interfaces("cuda")["memory"]
    assert memory["available"] and memory["allocator_surface"] and memory["memcpy_surface"]
    assert cpu["available"] and not metal["available"] and not metal["built"]
    assert lc.runtime_active_backend_capabilities() == cuda
    assert lc.runtime_active_backend_interfaces()["compute"]["driver_tag"] == "cuda.runtime.dispatch"
    assert lc.runtime_active_backend_interfaces()["compute"]["available"]
    for mode in ("auto", "always"):
        assert [e["status"] for e in traced(lambda mode=mode: lc.runtime_sync_apply(mode), "device_synchronize")] == ["success"]


# ---- one-shot operators ----
A, B = random(20, 30), random(30, 17, seed=1)
Q, K, V = (random(24, 16, seed=s) for s in range(3))
X, W, BIAS = random(2, 3, 9, 8), random(5, 3, 3, 2), random(5)
WINDOW = (2, 1, 1, 1)
FEW, CONVOLVED = (Q[:3], K[:3], V[:3]), conv(X, W, BIAS, (2, 1), (1, 1), True)
OPERATORS = {  # a call for a device, the result, its op codes
    "matmul2d": (lambda d: lc.matmul2d(A, B, d), A @ B, [1]),
    "matmul": (lambda d: lc.matmul(A.ravel().tolist(), B, 20, 30, 17, d), A @ B, [1]),
    "matmul_np": (lambda d: lc.matmul_np(A, B, 20, 30, 17, d), A @ B, [1]),
    "vector_add": (lambda d: lc.vector_add(A, 2 * A, d), 3 * A, [2]),
    "matrix_sub": (lambda d: lc.matrix_sub(A, 3 * A, 20, 30, d), -2 * A, [3]),
    "attention2d": (lambda d: lc.attention2d(Q, K, V, False, d), attention(Q, K, V), [6]),
    "attention, causal": (lambda d: lc.attention2d(Q, K, V, True, d), attention(Q, K, V, True), [6]),
    "attention of few": (lambda d: lc.attention_forward(*FEW, 3, 16, True, d), attention(*FEW, True), [6]),
    "attention, flat": (lambda d: lc.lightning_attention(Q, K, V, 24, 16, False, d), attention(Q, K, V), [6]),
    "conv2d": (lambda d: lc.conv2d_nchw(X, W, BIAS, *WINDOW, d), conv(X, W, BIAS, (2, 1), (1, 1)), [5]),
    "conv2d, no bias": (lambda d: lc.conv2d_nchw(X, W, None, *WINDOW, d), conv(X, W, None, (2, 1), (1, 1)), [5]),
    "conv, relu": (lambda d: lc.lightning_conv_relu_nchw(X, W, BIAS, *WINDOW, d), conv(X, W, BIAS, (2, 1), (1, 1), True), [5]),
    "pipeline": (
        lambda d: lc.lightning_conv_attention_torchstrong_nchw(X, W, BIAS, 24, 24, *WINDOW, d),
        pipeline(X, W, BIAS, 24, 24, (2, 1), (1, 1)),
        [5, 6],
    ),
    "pipeline that cuts": (
        lambda d: lc.lightning_conv_attention_torchstrong_nchw(X, W, BIAS, 3, 5, *WINDOW, d),
        pipeline(X, W, BIAS, 3, 5, (2, 1), (1, 1)),
        [5, 6],
    ),
}  # fmt: skip


@pytest.mark.parametrize("device", ["cuda", "metal"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name, device, always):
    call, wanted, codes = OPERATORS[name]
    got = []
    events = traced(lambda: got.append(call(device)))
    close(got[0], wanted)
    close(got[0], call("cpu"))
    assert [e["detail0"] for e in events] == codes
    assert all(e["requested_device"] == device and e["selected_device"] == "cuda" and not e["fallback"] for e in events)


INTO = {
    "matmul2d": (lambda out, d: lc.matmul2d_into(A, B, out, d), A @ B),
    "matmul_np": (lambda out, d: lc.matmul_np_into(A, B, out, 20, 30, 17, d), A @ B),
    "attention2d": (lambda out, d: lc.attention2d_into(Q, K, V, out, True, d), attention(Q, K, V, True)),
    "attention": (lambda out, d: lc.lightning_attention_into(Q, K, V, out, 24, 16, False, d), attention(Q, K, V)),
    "conv2d": (lambda out, d: lc.conv2d_nchw_into(X, W, BIAS, out, *WINDOW, d), conv(X, W, BIAS, (2, 1), (1, 1))),
    "conv, relu": (lambda out, d: lc.lightning_conv_relu_nchw_into(X, W, BIAS, out, *WINDOW, d), CONVOLVED),
    "pipeline": (
        lambda out, d: lc.lightning_conv_attention_torchstrong_nchw_into(X, W, BIAS, out, 6, 4, *WINDOW, d),
        pipeline(X, W, BIAS, 6, 4, (2, 1), (1, 1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INTO)
def test_into(name):
    call, wanted = INTO[name]
    out = np.full(wanted.shape, 7, np.float32)
    assert call(out, "cuda") is None
    close(out, wanted)


def test_out_may_be_an_operand():
    x = A[:, :20].copy()
    lc.matmul2d_into(x, x, x, "cuda")
    close(x, A[:, :20] @ A[:, :20])


@counted
def test_an_error_leaves_out_as_it_was():
    driver = ctypes.CDLL(os.environ["LUCID_CUDA_PATH"] + "/libcuda.so.1")
    session = lc.MatMulMetalResidentSession(20, 30, 17)
    session._use("cuda")
    wanted = A @ B
    calls = [lambda out, call=call: call(out, "cuda") for call, _ in INTO.values()]
    calls.append(lambda out: session.finish_into(A, B, out))
    for call, shape in zip(calls, [*(w.shape for _, w in INTO.values()), (20, 17)]):
        out = np.full(shape, 7, np.float32)
        driver.emulated_fail_fetches(1)
        try:
            with pytest.raises(RuntimeError):
                call(out)
        finally:
            driver.emulated_fail_fetches(0)
        assert (out == 7).all()
    session.finish_into(A, B, out)
    close(out, wanted)


def test_no_memory_leaves_out_as_it_was():
    n = 600  # more than the small segments hold
    x, out = np.ones((n, n), np.float32), np.full((n, n), 7, np.float32)
    lucid.cuda.empty_cache()
    lucid.cuda.set_per_process_memory_fraction(1e-9)
    try:
        with pytest.raises(RuntimeError):
            lc.matmul2d_into(x, x, out, "cuda")
    finally:
        lucid.cuda.set_per_process_memory_fraction(1.0)
    assert (out == 7).all()
    lc.matmul2d_into(x, x, out, "cuda")
    assert (out == n).all()


# ---- sessions ----
def session_cases():
    product, sums = lc.MatMulMetalResidentSession(20, 30, 17), lc.VectorAddMetalResidentSession(600)
    matrices = lc.MatrixElemwiseMetalResidentSession(20, 30)
    images = lc.Conv2dMetalResidentSession(2, 3, 9, 8, 5, 3, 2, *WINDOW)
    A2 = A + 3
    return {
        "product": (product, "", (A, B), A @ B),
        "sum": (sums, "", (A, A2), A + A2),
        "difference": (matrices, "sub_", (A, A2), A - A2),
        "quotient": (matrices, "div_", (A, A2), A / A2),
        "convolution": (images, "", (X, W, BIAS), conv(X, W, BIAS, (2, 1), (1, 1), True)),
        "convolution, no bias": (images, "", (X, W, None), conv(X, W, None, (2, 1), (1, 1), True)),
    }


@counted
@pytest.mark.parametrize("name", session_cases())
def test_phases_move_what_they_say(name):
    session, prefix, args, wanted = session_cases()[name]
    session._use("cuda")
    operands = sum(a is not None for a in args)
    out = np.full(wanted.shape, 7, np.float32)
    phase = lambda which, *more: getattr(session, f"{prefix}{which}")(*args, out, *more)
    with Copies() as start:
        phase("start_into")
    assert (start.sent, start.fetched) == (operands, 0) and start.launched and (out == 7).all()
    changed = [a if a is None else a * 0 for a in args]  # resident operands are not sent again
    with Copies() as resident:
        for _ in range(3):
            getattr(session, f"{prefix}run_into")(*changed, out)
        session._run_cached(4) if prefix == "" else None
    assert (resident.sent, resident.fetched) == (0, 0) and resident.launched >= 3 and (out == 7).all()
    with Copies() as finish:
        getattr(session, f"{prefix}finish_into")(*changed, out)
    assert (finish.sent, finish.fetched) == (0, 1)
    close(out, wanted)


@counted
def test_batches_and_lists_move_what_they_say():
    session, out = lc.MatMulMetalResidentSession(20, 30, 17), np.full(340, 7, np.float32)
    session._use("cuda")
    with pytest.raises(RuntimeError, match="not initialized"):
        session.run_batch_sync_cached_no_download(1)
    with Copies() as first:  # nothing is there: a run sends
        session.run_into(A, B, out)
    assert (first.sent, first.fetched) == (2, 0) and (out == 7).all()
    with Copies() as batches:
        session.run_batch_sync_no_download_into(A, B, out, 3)
        session.run_batch_sync_cached_no_download(5)
    assert (batches.sent, batches.fetched) == (0, 0) and batches.launched == 8 and (out == 7).all()
    with Copies() as fetching:
        session.run_batch_sync_into(A, B, out, 3)
    assert (fetching.sent, fetching.fetched, fetching.launched) == (0, 1, 3)
    close(out, A @ B)
    out[:] = 7
    session.sync_into(A, B, out)
    close(out, A @ B)
    for phase in ("start", "run", "sync", "finish"):
        close(getattr(session, phase)(A, B, 340), A @ B)
    close(session.run_batch_sync(A, B, 340, 2), A @ B)


@pytest.mark.parametrize("device", ["cuda", "metal"])
def test_sessions_of_lists_send_every_time(device, always):
    sums, matrices = lc.VectorAddMetalResidentSession(3), lc.MatrixElemwiseMetalResidentSession(1, 3)
    for session in (sums, matrices):
        session._use(device)
    for shift in (0, 5):
        x, y = [1 + shift, 2, 4], [3, 4, 8]
        assert sums.add(x, y, 3) == [4 + shift, 6, 12] and matrices.sub(x, y, 3) == [shift - 2, -2, -4]
        close(matrices.div(x, y, 3), np.divide(x, y))


def test_sessions_do_not_share_and_the_metal_default_finds_the_device(always):
    first, second = (lc.MatMulMetalResidentSession(20, 30, 17) for _ in range(2))
    out = np.zeros((20, 17), np.float32)
    first.start_into(A, B, out)
    second.start_into(2 * A, B, out)
    events = traced(lambda: first.finish_into(A, B, out))
    close(out, A @ B)
    assert [e["selected_device"] for e in events] == ["cuda"]
    second.finish_into(A, B, out)
    close(out, 2 * A @ B)


def test_wrong_sizes_are_refused_and_nothing_is_sent():
    session, out = lc.MatMulMetalResidentSession(20, 30, 17), np.full((20, 17), 7, np.float32)
    session._use("cuda")
    for args, error in (((B, B, out), ValueError), ((A, B, out[:3]), ValueError), ((A, B, "x"), TypeError)):
        with pytest.raises(error):
            session.start_into(*args)
    with pytest.raises(RuntimeError, match="invalid value"):
        session.run_batch_sync_into(A, B, out, 0)
    assert (out == 7).all()


def test_streams_and_threads():
    """A call on another stream follows the one before."""
    session, out = lc.MatMulMetalResidentSession(20, 30, 17), np.zeros((20, 17), np.float32)
    session._use("cuda")
    for _ in range(5):
        session.start_into(A, B, out)
        with lucid.cuda.stream(lucid.cuda.Stream()):
            session.run_into(A, B, out)
            session.start_into(2 * A, B, out)
        session.finish_into(A, B, out)
        close(out, 2 * A @ B)
    failures = []

    def work(k):
        own, mine = lc.MatMulMetalResidentSession(20, 30, 17), np.zeros((20, 17), np.float32)
        own._use("cuda")
        for _ in range(5):
            own.start_into(k * A, B, mine)
            own.finish_into(A, B, mine)
            if not np.allclose(mine, k * A @ B, atol=1e-3) or not np.allclose(lc.matmul2d(A, B, "cuda"), A @ B, atol=1e-3):
                failures.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures


@pytest.mark.parametrize("phase", ["start", "run", "sync", "finish", "run_batch_sync", "run_batch_sync:3"])
def test_convolution_phases(phase, always):
    wanted = conv(X, W, BIAS, (2, 1), (1, 1), True)
    out = np.full(wanted.shape, 7, np.float32)
    lc.conv2d_nchw_metal_resident(X, W, BIAS, out, *WINDOW, "start", True)
    lc.conv2d_nchw_metal_resident(X, W, BIAS, out, *WINDOW, phase, True)
    if phase in ("start", "run"):
        assert (out == 7).all()
    else:
        close(out, wanted)
    with pytest.raises(ValueError):
        lc.conv2d_nchw_metal_resident(X[:, :2], W, BIAS, out, *WINDOW, phase, True)


@counted
def test_weights_of_a_block_are_sent_once():
    block = lc_api.ConvReLUResidentBlock(W, BIAS, stride_h=2, pad_h=1, pad_w=1, device="cuda")
    wanted = lambda x, w, bias: conv(x, w, bias, (2, 1), (1, 1), True)
    result = block.run(X)  # also checks the shapes
    block.run(X)
    for step in range(3):
        with Copies() as copies:
            assert block.run((step + 2) * X) is result
        assert (copies.sent, copies.fetched) == (1, 1)
        close(result, wanted((step + 2) * X, W, BIAS))
    block.w[0] *= -2
    with Copies() as copies:
        block.run(X)
    assert copies.sent == 3
    close(result, wanted(X, block.w, BIAS))
    block.b = None
    close(block.run(-X), wanted(-X, block.w, None))
    with Copies() as copies:
        close(block.run(X), wanted(X, block.w, None))
    assert copies.sent == 1


# ---- attention sessions and policies ----
@counted
def test_matmul_policies():
    policy, out = lc.MatMulIoPolicy(), np.full((20, 17), 7, np.float32)
    run = lambda a, b, device="cuda": lc.matmul_np_into_with_policy(a, b, out, 20, 30, 17, device, policy)
    run(A, B)
    close(out, A @ B)
    policy.upload_b = False
    with Copies() as partly:
        run(2 * A, 0 * B)
    assert (partly.sent, partly.fetched) == (1, 1)
    close(out, 2 * A @ B)
    policy.upload_a, policy.download_out, policy.synchronize = False, False, False
    out[:] = 7
    with Copies() as none:
        run(0 * A, 0 * B)
    assert (none.sent, none.fetched) == (0, 0) and none.launched and (out == 7).all()
    assert traced(lambda: run(A, B), "device_synchronize") == []
    policy.synchronize = True
    assert len(traced(lambda: run(A, B), "device_synchronize")) == 1
    assert not lc.matmul_np_with_policy(A, B, 20, 30, 17, "cuda", policy).any()
    policy.download_out = True
    close(lc.matmul_np_with_policy(A, B, 20, 30, 17, "cuda", policy), 2 * A @ B)
    assert type(lc.matmul_with_policy(A.tolist(), B, 20, 30, 17, "cuda", policy)) is list
    close(lc.matmul_np_with_policy(A, B, 20, 30, 17, "cpu", policy), A @ B)


@counted
def test_attention_sessions():
    session, out = lc.AttentionSession(24, 16, True, "cuda"), np.zeros((24, 16), np.float32)
    session.forward_into(Q, K, V, out)
    close(out, attention(Q, K, V, True))
    close(session.forward(Q, K, V), attention(Q, K, V, True))
    policy = lc.AttentionIoPolicy()
    policy.upload_k = policy.upload_v = False
    policy.output_scale, policy.output_bias, policy.output_relu = 2.0, -0.25, True
    wanted = np.maximum(attention(2 * Q, K, V, True) * 2 - 0.25, 0)
    with Copies() as partly:
        session.forward_with_policy_into(2 * Q, 0 * K, 0 * V, out, policy)
    assert (partly.sent, partly.fetched) == (1, 1)
    close(out, wanted)
    session.set_default_policy(policy)
    with Copies() as partly:
        session.forward_into(2 * Q, 0 * K, 0 * V, out)
    assert (partly.sent, partly.fetched) == (1, 1)
    close(out, wanted)
    policy.download_out = False
    out[:] = 7
    session.forward_with_policy_into(2 * Q, 0 * K, 0 * V, out, policy)
    assert (out == 7).all()
    full = [np.full(24 * 16, 7, np.float32) for _ in range(20)]
    del full  # memory that is not zeros
    assert not any(session.forward_with_policy(Q, K, V, policy))
    session.set_default_policy(policy)
    assert not any(session.forward(Q, K, V))
    close(lc.attention_forward_with_policy(Q.ravel(), K.ravel(), V.ravel(), 24, 16, True, "cuda"), attention(Q, K, V, True))
    assert not lc.attention_forward_with_policy(Q.ravel(), K.ravel(), V.ravel(), 24, 16, True, "cuda", policy).any()


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("relu", [True, False])
def test_training_steps(causal, relu):
    here, there = (lc.AttentionSession(24, 16, causal, d) for d in ("cpu", "cuda"))
    policy, target = lc.AttentionIoPolicy(), random(24, 16, seed=9)
    policy.output_relu, policy.output_bias, policy.loss_every = relu, 0.5, 2
    v = V.copy()
    for _ in range(3):
        wanted = here.train_step_with_policy(Q, K, v, target, 0.5, policy)
        got = []
        events = traced(lambda got=got, v=v: got.extend(there.train_step_with_policy(Q, K, v, target, 0.5, policy)))
        assert [(e["op"], e["selected_device"]) for e in events] == [("attention_forward", "cuda")]
        kinds = [e["detail0"] for e in lc.runtime_trace_events() if e["type"] == "memcpy"]
        assert kinds == [1, 1, 1, 1, 2, 2]  # q, k, v, the target; the result and v
        for a, b in zip(got, wanted):
            close(a, b)
        v = wanted[1]
    policy.upload_q = policy.upload_k = policy.upload_v = policy.upload_target = policy.download_out = False
    _, new, _ = there.train_step_with_policy(0 * Q, 0 * K, 0 * v, 0 * target, 0.5, policy)  # v went on there
    close(new, here.train_step_with_policy(Q, K, v, target, 0.5, policy)[1])
    policy.download_v = False
    out, new, _ = there.train_step_with_policy(Q, K, v, target, 0.5, policy)
    assert not out.any() and not new.any()
    assert type(there.train_step(Q.tolist(), K, V, target, 0.5)[0]) is list


# ---- the CPU or the device ----
def rows():
    text = pathlib.Path(".lightning_core_crossover_tune_cache.csv").read_text().splitlines()
    assert text[0] == "#lc_tune_cache,crossover,2" and text[1].startswith("#columns,op,")
    return text[2:]


@pytest.mark.parametrize(
    "times,verdict",
    [((1, 9, 5), 0), ((6, 9, 5), 1), ((10, 9, 5), 2)],
)
def test_the_faster_side_is_taken_and_written(monkeypatch, times, verdict):
    asked, real = [], _tuning._times
    given = dict(zip(("cpu", "device", "resident"), times))
    answer = lambda run, ways: asked.append(ways) or given if "device" in ways else real(run, ways)
    monkeypatch.setattr(_tuning, "_times", answer)
    where = lambda call: traced(call)[-1]["selected_device"]
    out, session = np.zeros((20, 17), np.float32), lc.MatMulMetalResidentSession(20, 30, 17)
    assert where(lambda: lc.matmul2d(A, B)) == ("cuda" if verdict == 2 else "cpu")
    assert rows() == [f"matmul,20,30,17,{verdict}"]
    assert where(lambda: session.start_into(A, B, out)) == ("cuda" if verdict else "cpu")
    assert where(lambda: lc.matmul2d(A, B, "cuda")) == "cuda" and where(lambda: lc.matmul2d(A, B, "cpu")) == "cpu"
    lc.matmul_reset_tuning()  # the file answers
    lc.matmul2d(A, B)
    assert asked == [["cpu", "device", "resident"]] and len(rows()) == 1


def test_every_operator_is_measured_once():
    for call, wanted, _ in OPERATORS.values():
        for _ in range(2):
            close(call("metal"), wanted)
    lc.MatrixElemwiseMetalResidentSession(3, 3).sub_start_into(A[:3, :3], A[:3, :3], np.zeros((3, 3), np.float32))
    found = rows()
    assert len(found) == len(set(found)) and all(line.rpartition(",")[2] in "012" for line in found)
    assert {line.partition(",")[0] for line in found} == set(_tuning._SIZES) - {"matrix_div"}
    damaged = pathlib.Path(".lightning_core_crossover_tune_cache.csv")
    damaged.write_text(damaged.read_text() + "matmul,1,2\nabacus,1,1,1\nvector_add,4,9\n\x00\n")
    lc.matmul_reset_tuning()
    lc.matmul2d(A[:7], B)
    assert set(found) < set(rows()) and len(rows()) == len(found) + 1


def test_a_product_is_written_to_the_file_of_products_whatever_computes_it():
    pathlib.Path(".lightning_core_crossover_tune_cache.csv").write_text("matmul,20,30,17,2\nmatmul,30,17,20,2\n")
    (event,) = traced(lambda: lc.matmul2d(A, B))
    assert event["selected_device"] == "cuda"
    lc.MatMulMetalResidentSession(30, 17, 20).start_into(B, B[:17, :1] @ A[:1, :20], np.zeros((30, 20), np.float32))
    lines = pathlib.Path(".lightning_core_matmul_tune_cache.csv").read_text().splitlines()
    assert [line.rsplit(",", 3)[0] for line in lines[2:]] == ["20,30,17", "30,17,20"]


def test_what_the_device_cannot_compute_is_the_cpus(monkeypatch):
    def refuses(op, sizes):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(_tuning, "_measure_crossover", refuses)
    close(lc.matmul2d(A, B), A @ B)
    assert not pathlib.Path(".lightning_core_crossover_tune_cache.csv").exists()


def test_limits_of_the_environment(monkeypatch):
    where = lambda call: traced(call)[-1]["selected_device"]
    monkeypatch.setenv("CJ_VECTORADD_CPU_CROSSOVER_N", "600")
    assert where(lambda: lc.vector_add(A, A)) == "cpu" and where(lambda: lc.vector_add(np.ones(2000), np.ones(2000))) == "cuda"
    monkeypatch.setenv("CJ_VECTORADD_CPU_CROSSOVER_N", "5000")
    assert where(lambda: lc.vector_add(np.ones(2000), np.ones(2000))) == "cuda"  # read once per size
    lc.matmul_reset_tuning()
    monkeypatch.setenv("CJ_VECTORADD_CPU_CROSSOVER_DYNAMIC", "1")
    assert where(lambda: lc.vector_add(np.ones(2000), np.ones(2000))) == "cpu"
    monkeypatch.setenv("CJ_VECTORADD_CPU_CROSSOVER_N", "10")
    assert where(lambda: lc.vector_add(np.ones(2000), np.ones(2000))) == "cuda"
    for limit, device in (("0", "cuda"), ("100000", "cpu"), ("9215", "cuda"), ("9216", "cpu")):  # read by every call
        monkeypatch.setenv("CJ_ATTN_METAL_ONESHOT_CPU_CROSSOVER_OPS", limit)
        assert where(lambda: lc.attention2d(Q, K, V)) == device
    macs = conv(X, W).size * 18
    for limit, device in ((macs, "cpu"), (macs - 1, "cuda")):
        monkeypatch.setenv("CJ_CONV2D_CPU_CROSSOVER_MACS", str(limit))
        lc.matmul_reset_tuning()
        assert where(lambda: lc.conv2d_nchw(X, W)) == device


def test_a_forked_process_computes_on_the_cpu():
    session, out = lc.MatMulMetalResidentSession(20, 30, 17), np.zeros((20, 17), np.float32)
    session._use("cuda")
    session.start_into(A, B, out)
    child = os.fork()
    if child == 0:
        try:
            session.finish_into(A, B, out)
            well = np.allclose(out, A @ B, atol=1e-4) and np.allclose(lc.matmul2d(A, B, "cuda"), A @ B, atol=1e-4)
            os._exit(0 if well and not lc.cuda_available() else 3)
        except BaseException:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    session.finish_into(A, B, out)
    close(out, A @ B)


def test_a_session_that_ends_gives_its_memory_back():
    before = lucid.cuda.memory_allocated()
    session, out = lc.MatMulMetalResidentSession(20, 30, 17), np.zeros((20, 17), np.float32)
    session._use("cuda")
    session.start_into(A, B, out)
    assert lucid.cuda.memory_allocated() > before
    del session
    lc.matmul2d(A, B, "cuda")
    assert lucid.cuda.memory_allocated() == before


# ---- graphs ----
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", ["matmul", "vector_add", "matrix_sub", "matrix_div", "relu"])
def test_nodes_of_graphs(op, dtype):
    a, b = (np.random.default_rng(i).standard_normal((4, 4)) for i in range(2))
    wanted = {"matmul": a @ b, "vector_add": a + b, "matrix_sub": a - b, "matrix_div": a / b, "relu": np.maximum(a, 0)}[op]
    graph = lc.GraphIR()
    x, y, z = (graph.add_tensor([4, 4], dtype) for _ in range(3))
    graph.add_node(op, [x] if op == "relu" else [x, y], [z])
    run = graph.execute_f32 if dtype == "float32" else graph.execute_f64
    for device in ("cuda", "metal"):
        found = run({x: a, y: b}, preferred_device=device)
        (step,) = found["steps"]
        assert step["assigned_device"] == "cuda" and step["fallback"] is (device == "metal")
        assert found["values"][z].dtype == dtype and found["summary"]["cuda_nodes"] == 1
        np.testing.assert_allclose(found["values"][z], wanted.ravel(), rtol=1e-12 if dtype == "float64" else 1e-4, atol=1e-6)


@counted
@pytest.mark.parametrize("bias", [BIAS, None])
def test_values_of_a_graph_stay_on_the_device(bias):
    weight = random(5, 3, 3, 3)
    graph = lc.GraphIR()
    ids = [graph.add_tensor(list(a.shape)) for a in (X, weight, *([] if bias is None else [bias]))]
    image = graph.add_tensor([2, 5, 5, 8])
    qkv, out = [graph.add_tensor([6, 4]) for _ in range(3)], graph.add_tensor([6, 4])
    attributes = {"stride_h": 2, "stride_w": 1, "pad_h": 1, "pad_w": 1, "apply_relu": 1}
    graph.add_node("conv2d_nchw3x3", ids, [image], attributes=attributes)
    graph.add_node("qkv_pack_repeat", [image], qkv)
    graph.add_node("attention_forward", qkv, [out])
    feeds = dict(zip(ids, (X, weight, bias)))
    with Copies() as copies:
        events = traced(lambda: feeds.update(got=graph.execute_f32(dict(list(feeds.items())[: len(ids)]), "cuda")))
    close(feeds["got"]["values"][out], pipeline(X, weight, bias, 6, 4, (2, 1), (1, 1)))
    assert (copies.sent, copies.fetched) == (len(ids), 5)
    again = traced(lambda: graph.execute_f32(dict(zip(ids, (X, weight, bias))), "cuda"), "memcpy")
    assert [e["detail0"] for e in again] == [1] * len(ids) + [2] * 5 and again[0]["size_bytes"] == X.nbytes
    wanted = [("conv2d_nchw", 2 * 5 * 5 * 8 * 27), ("attention_forward", 6 * 6 * 4)]
    assert [(e["op"], e["size_bytes"]) for e in events] == wanted and all(e["selected_device"] == "cuda" for e in events)
    close(graph.execute_f32(dict(zip(ids, (X, weight, bias))), "cpu")["values"][out], feeds["got"]["values"][out])


@pytest.mark.parametrize("kind", [lc.Tensor, lc.Tensor64])
def test_tensors_on_the_device(kind):
    x = kind([2, 3], "cuda")
    assert x.device() == "cuda" and x.to_list() == [0.0] * 6 and x.storage_numel() == 6
    before = lucid.cuda.memory_allocated()
    y = kind.from_numpy_array(np.arange(6.0), [2, 3], "cuda")
    assert lucid.cuda.memory_allocated() > before
    column = y.slice(1, 1, 2)
    assert y.to_host_view(column) == [1.0, 4.0] and column.device() == "cuda"
    y.from_list([5, 4, 3, 2, 1, 0])
    assert y.to_host_view(column) == [4.0, 1.0] and y.read_strided([2, 2], [1, 3]) == [5.0, 2.0, 4.0, 1.0]
    assert y.slice_copy(0, 1, 2) == [2.0, 1.0, 0.0] and y.to_numpy().dtype == x.dtype()
    copies = traced(lambda: (y.from_list([5, 4, 3, 2, 1, 0]), y.to_list(), y.to_host_view(column)), "memcpy")
    size = np.dtype(x.dtype()).itemsize
    assert [(e["detail0"], e["size_bytes"]) for e in copies] == [(1, 6 * size), (2, 6 * size), (2, 2 * size)]
    (event,) = traced(lambda: y.add(y))
    assert event["selected_device"] == "cuda" and y.add(y).to_list() == [10.0, 8.0, 6.0, 4.0, 2.0, 0.0]
    with pytest.raises(RuntimeError):
        y.add(kind([2, 3]))
    with pytest.raises(RuntimeError):
        kind([2, 3], "metal")


def test_failing_allocations_leave_out_as_it_was():
    failures = 0
    for name, (call, wanted) in INTO.items():
        call(np.zeros(wanted.shape, np.float32), "cuda")  # kernels are there
        for n in range(1, 8):
            out = np.full(wanted.shape, 7, np.float32)
            lucid._C._fail_allocation(n)
            try:
                call(out, "cuda")
            except RuntimeError:
                failures += 1
                assert (out == 7).all(), name
            finally:
                lucid._C._fail_allocation(0)
            call(out, "cuda")
            close(out, wanted)
    assert failures >= len(INTO)
