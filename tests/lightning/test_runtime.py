"""Devices, synchronisation, trace and timeline; importing; lightning_core.h from C."""

import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest

import lightning_core as lc
from lucid import config

CAPABILITIES = "device built available compute_surface memory_surface sync_surface profiling_surface runtime_trace_surface"
CAPABILITIES = {*CAPABILITIES.split(), "sync_policy_surface", "memory_model"}
TAGS = {
    "cpu": ("cpu.eager.dispatch", "cpu.host_memory", "cpu.noop_sync"),
    "cuda": ("cuda.runtime.dispatch", "cuda.memory", "cuda.device_sync"),
    "metal": ("metal.compute.dispatch", "metal.host_managed_memory", "metal.command_sync"),
}


def test_devices():
    assert (lc.metal_available(), lc.cuda_available(), lc.backend_name()) == (False, False, "cpu")
    assert lc.memory_model_name() == "host-managed-compat"
    for device, tags in TAGS.items():
        found, here = lc.runtime_backend_capabilities(device), device == "cpu"
        assert set(found) == CAPABILITIES
        assert (found["device"], found["built"], found["available"], found["compute_surface"]) == (device, here, here, here)
        assert found["memory_surface"] is found["sync_surface"] is found["profiling_surface"] is False
        assert found["runtime_trace_surface"] is found["sync_policy_surface"] is True
        assert found["memory_model"] == ("native-device" if device == "cuda" else "host-managed-compat")
        parts = lc.runtime_backend_interfaces(device)
        assert parts["capabilities"] == found and parts["device"] == device
        assert tuple(parts[p]["driver_tag"] for p in ("compute", "memory", "sync")) == tags
        assert parts["memory"]["memcpy_surface"] is True and parts["memory"]["allocator_surface"] is False
        assert parts["sync"]["available"] is here
        assert parts["profiler"]["trace_capacity"] == 4096 and parts["profiler"]["driver_tag"] == "runtime.trace.ring"
    assert lc.runtime_active_backend_capabilities() == lc.runtime_backend_capabilities("cpu")
    assert lc.runtime_active_backend_interfaces() == lc.runtime_backend_interfaces("cpu")
    for call in (lc.runtime_backend_capabilities, lc.runtime_backend_interfaces):
        with pytest.raises(ValueError):
            call("auto")
        with pytest.raises(TypeError):
            call(1)


def test_synchronisation():
    assert lc.runtime_sync_policy_get() == {"mode": "auto", "trace_sync_boundary": False}
    lc.runtime_sync_policy_set("never", True)
    assert lc.runtime_sync_policy_get() == {"mode": "never", "trace_sync_boundary": True}
    lc.runtime_sync_policy_set()
    for mode in ("auto", "always", "never"):
        assert lc.runtime_sync_apply(mode, trace_sync_boundary=True) is None
    assert lc.runtime_sync_apply_default() is None
    with pytest.raises(ValueError):
        lc.runtime_sync_apply("often")


def test_what_has_no_meaning_here_says_so():
    for call in (
        lambda: lc.coreml_inference_benchmark("x"),
        lc.mpsgraph_vector_add_benchmark,
        lc.mpsgraph_train_step_benchmark,
    ):
        assert call() == {"ok": False, "status": "not supported", "avg_ms": -1.0}


def traced(*calls):
    lc.runtime_trace_clear()
    lc.runtime_trace_enable(True)
    for call in calls:
        call()
    lc.runtime_trace_enable(False)
    return lc.runtime_trace_events()


X, Y = np.ones((4, 3), "f"), np.ones((3, 5), "f")
IMAGE, KERNEL = np.ones((2, 3, 6, 5), "f"), np.ones((4, 3, 3, 2), "f")
OPS = [
    (lambda d: lc.matmul2d(X, Y, d), "matmul", 1, 60),
    (lambda d: lc.vector_add(X, X, d), "vector_add", 2, 12),
    (lambda d: lc.matrix_sub(X, X, 4, 3, d), "matrix_sub", 3, 12),
    (lambda d: lc.conv2d_nchw(IMAGE, KERNEL, device=d), "conv2d_nchw", 5, 2 * 4 * 4 * 4 * 3 * 3 * 2),
    (lambda d: lc.attention2d(X, X, X, device=d), "attention_forward", 6, 48),
]


@pytest.mark.parametrize("device,code", [("cpu", 0), ("cuda", 1), ("metal", 2)])
def test_operators_are_traced(device, code):
    for call, name, op, work in OPS:
        (event,) = traced(lambda call=call: call(device))
        assert event["timestamp_ns"] > 0
        del event["timestamp_ns"]
        assert event == {
            "type": "op_dispatch",
            "status": "success",
            "size_bytes": work,
            "detail0": op,
            "detail1": code | (code != 0) << 8,
            "op": name,
            "requested_device": device,
            "selected_device": "cpu",
            "fallback": device != "cpu",
        }


def test_sessions_and_graphs_are_traced():
    session = lc.MatrixElemwiseMetalResidentSession(4, 3)
    out = np.empty((4, 3), "f")
    events = traced(lambda: session.div_run_into(X, X, out), lambda: session.sub_run_into(X, X, out))
    assert [e["op"] for e in events] == ["matrix_div", "matrix_sub"]
    events = traced(lambda: lc.lightning_conv_attention_torchstrong_nchw(IMAGE, KERNEL, None, 2, 2, device="cpu"))
    assert [e["op"] for e in events] == ["conv2d_nchw", "attention_forward"]


def test_queries_are_traced_and_the_ring_is_bounded():
    assert not lc.runtime_trace_enabled() and lc.runtime_trace_capacity() == 4096
    events = traced(lc.backend_name, lc.metal_available, lc.cuda_available, lambda: lc.runtime_sync_apply("never", True))
    assert [e["type"] for e in events] == ["backend_name", "is_metal_available", "is_cuda_available", "apply_sync_policy"]
    assert (events[-1]["detail0"], events[-1]["detail1"]) == (2, 1)
    assert all(e["op"] == e["requested_device"] == "" and e["fallback"] is False for e in events)
    assert lc.runtime_trace_events() == events
    lc.backend_name()
    assert lc.runtime_trace_events() == events
    many = traced(lc.metal_available, *[lc.backend_name] * 4100)
    assert len(many) == 4096 and {e["type"] for e in many} == {"backend_name"}
    times = [e["timestamp_ns"] for e in many]
    assert times == sorted(times)
    lc.runtime_trace_clear()
    assert lc.runtime_trace_events() == []


def test_the_trace_is_thread_safe():
    def work():
        for _ in range(500):
            lc.vector_add(X, X, "cpu")

    threads = [threading.Thread(target=work) for _ in range(4)]
    lc.runtime_trace_enable(True)
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(lc.runtime_trace_events()) == 2000


def test_timeline():
    empty = lc.runtime_trace_timeline(group_by="nonsense")
    assert empty["events"] == empty["groups"] == empty["hotspots"] == [] and empty["window_ns"] == 0
    traced(*[lambda: lc.matmul2d(X, Y, "metal")] * 3, lc.backend_name, lambda: lc.vector_add(X, X, "cpu"))
    found = lc.runtime_trace_timeline()
    events = found["events"]
    assert found["event_count"] == 5 and [e["index"] for e in events] == list(range(5))
    assert found["window_ns"] == events[-1]["timestamp_ns"] - events[0]["timestamp_ns"] == events[-1]["offset_ns"]
    assert events[0]["delta_prev_ns"] == events[-1]["delta_next_ns"] == 0
    assert all(a["delta_next_ns"] == b["delta_prev_ns"] for a, b in zip(events, events[1:]))
    hot = [e["delta_next_ns"] for e in found["hotspots"]]
    assert hot == sorted(hot, reverse=True)
    assert sum(g["total_delta_next_ns"] for g in found["groups"]) == found["window_ns"]
    assert sum(g["window_share_pct"] for g in found["groups"]) == pytest.approx(100)
    keys = {
        "type": {"op_dispatch", "backend_name"},
        "status": {"success"},
        "type_status": {"op_dispatch|success", "backend_name|success"},
        "op": {"matmul", "vector_add", "non_op"},
        "op_selected_device": {"matmul|cpu", "vector_add|cpu", "non_op"},
        "op_path": {"matmul|cpu|fallback", "vector_add|cpu|direct", "non_op"},
    }
    for group_by, wanted in keys.items():
        groups = lc.runtime_trace_timeline(group_by=group_by)["groups"]
        assert {g["key"] for g in groups} == wanted and sum(g["count"] for g in groups) == 5
    for key in ("index", "timestamp_ns", "offset_ns", "delta_prev_ns", "delta_next_ns", "size_bytes"):
        rows = lc.runtime_trace_timeline(event_sort_by=key, event_descending=True)["events"]
        order = [(r[key], r["index"]) for r in rows]
        assert order == sorted(order, reverse=True)
    for key in ("key", "count", "total_delta_next_ns", "avg_delta_next_ns", "max_delta_next_ns", "total_size_bytes"):
        groups = lc.runtime_trace_timeline(group_by="op", group_sort_by=key, group_descending=False)["groups"]
        order = [(g[key], g["key"]) for g in groups]
        assert order == sorted(order)
    assert len(lc.runtime_trace_timeline(hotspot_top_k=2)["hotspots"]) == 2
    assert len(lc.runtime_trace_timeline(hotspot_top_k=0)["hotspots"]) == 5
    for wrong in ({"event_sort_by": "op"}, {"group_by": "thread"}, {"group_sort_by": "index"}):
        with pytest.raises(ValueError):
            lc.runtime_trace_timeline(**wrong)
    with pytest.raises(TypeError):
        lc.runtime_trace_timeline(hotspot_top_k=-1)


def test_importing_loads_little(tmp_path):
    code = (
        "import sys; import lightning_core, lightning_core_integrated_api, lightning_core_api\n"
        "assert 'numpy' not in sys.modules and 'torch' not in sys.modules\n"
        "lightning_core.backend_name(); lightning_core.runtime_trace_events(); assert 'numpy' not in sys.modules\n"
        "lightning_core.runtime_trace_enable(enabled=True); lightning_core.runtime_backend_capabilities('cpu')\n"
        "assert 'numpy' not in sys.modules and lightning_core.runtime_trace_enabled()\n"
        "lightning_core.matmul2d([[1]], [[1]], 'cpu'); assert 'torch' not in sys.modules\n"
        "import os; assert os.listdir('.') == [], os.listdir('.')\n"
    )
    environment = {"PYTHONPATH": str(pathlib.Path(lc.__file__).parent.parent)}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)


def test_every_name_is_there():
    import lightning_core_integrated_api as helper

    for module in (lc, lc.api, helper):
        for name in module.__all__:
            assert getattr(module, name).__doc__, name
    assert len(lc.__all__) > 66
    with pytest.raises(AttributeError):
        lc.Linear  # noqa: B018


EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/c/runtime.c"


@pytest.mark.parametrize("compiler,language", [("cc", "c"), ("c++", "c++")])
def test_the_c_example(tmp_path, compiler, language):
    command = [compiler, "-x", language, "-Wall", "-Werror", EXAMPLE, "-x", "none", "-o", tmp_path / "program"]
    subprocess.run([*map(str, command), *config.cflags(), *config.libs()], check=True)
    done = subprocess.run([str(tmp_path / "program")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "backend cpu, API 0.6.0: success\n")
