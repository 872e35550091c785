"""What lucid.profiler records of a GPU: kernels, copies and fills, whose they are, and how long they take. Runs on a GPU with
NVIDIA's CUPTI, or on the emulation of both (test_emulated.py), which does the work only when somebody waits for it."""

import contextlib
import json
import os
import threading
import time

import pytest

import lucid
from lucid.profiler import DeviceType, ProfilerActivity, profile, record_function, schedule

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")
cuda, BOTH = lucid.cuda, [ProfilerActivity.CPU, ProfilerActivity.CUDA]


@pytest.fixture(scope="module", autouse=True)
def cupti_records():
    refused = lucid._C._profile_start(False, False, False, True)
    lucid._C._profile_stop()
    if refused:
        pytest.skip(refused)


def on_device(p):
    return [e for e in p.events() if e.device_type == DeviceType.CUDA and not e.is_user_annotation]


def on_host(p):
    return [e for e in p.events() if e.device_type == DeviceType.CPU]


def one(p, name):
    (event,) = [e for e in on_host(p) if e.name == name]
    return event


def check_sums(p):
    """Whatever was recorded: totals are those of what is inside, and every kernel of a call is an event."""
    for e in on_host(p):
        assert e.self_device_time_total == pytest.approx(sum(k.duration for k in e.kernels))
        inside = sum(child.device_time_total for child in e.cpu_children)
        assert e.device_time_total == pytest.approx(e.self_device_time_total + inside)
        assert e.cuda_time_total == e.device_time_total and e.self_cuda_time_total == e.self_device_time_total
        mine = [d for d in on_device(p) if d.linked_correlation_id == e.id]
        assert [k.name for k in e.kernels] == [d.name for d in mine]
        for d in mine:  # nothing runs before it was asked for
            assert d.time_range.start >= e.time_range.start - 50
    for d in on_device(p):
        assert d.name and d.cpu_time_total == d.self_cpu_time_total == 0 and d.use_device == "cuda"
        assert d.device_time_total == d.self_device_time_total == d.time_range.elapsed_us() > 0


def test_an_op_and_its_kernel():
    x = lucid.ones(1000, device="cuda")
    x.exp()
    with profile(activities=BOTH) as p:
        x.exp()
    (kernel,) = on_device(p)
    call = one(p, "aten::exp")
    assert [k.name for k in call.kernels] == [kernel.name] and kernel.activity_type == "kernel"
    assert kernel.device_index == call.kernels[0].device == cuda.current_device()
    assert call.device_time == kernel.device_time > 0 and call.device_time_str.endswith("s")
    check_sums(p)


def test_both_are_recorded_by_default():
    assert lucid.profiler.supported_activities() == set(BOTH)
    with profile() as p:
        lucid.ones(3, device="cuda") + 1
    assert p.activities == set(BOTH) and on_device(p) and on_host(p)
    with profile(activities=[ProfilerActivity.CPU]) as p:
        lucid.ones(3, device="cuda") + 1
    assert on_host(p) and not on_device(p)
    assert p.events()[0].device_time_total == 0 and "CUDA" not in p.key_averages().table()
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        lucid.ones(3, device="cuda") + 1
    assert on_device(p) and not on_host(p)
    assert {k.key for k in p.key_averages()} == {e.name for e in on_device(p)}


def test_calls_inside_calls():
    x = lucid.ones(8, 8, device="cuda")
    with profile() as p:
        with record_function("outer"):
            x @ x
            with record_function("inner"):
                x.softmax(0)
    check_sums(p)
    outer, inner, product = one(p, "outer"), one(p, "inner"), one(p, "aten::matmul")
    assert outer.self_device_time_total == 0 and inner.device_time_total > 0 and product.device_time_total > 0
    assert outer.device_time_total == pytest.approx(inner.device_time_total + product.device_time_total)
    assert outer.device_time_total == pytest.approx(sum(e.device_time_total for e in on_device(p)))


def test_ranges_on_the_device():
    """A range is there from its first kernel to its last, once per stream; the innermost one has a kernel."""
    x, side = lucid.ones(8, device="cuda"), cuda.Stream()
    with profile() as p:
        with record_function("outer"):
            x.exp()
            with record_function("inner"):
                x.sin().cos()
            with record_function("nothing"):
                pass
            with cuda.stream(side):
                x.tanh()
        x.sqrt()
    ranges = [e for e in p.events() if e.device_type == DeviceType.CUDA and e.is_user_annotation]
    assert sorted(e.name for e in ranges) == ["inner", "outer", "outer"]
    assert all(e.activity_type == "gpu_user_annotation" for e in ranges)
    (inner,) = [e for e in ranges if e.name == "inner"]
    times = [e.time_range for e in on_device(p) if e.linked_correlation_id in {one(p, "aten::sin").id, one(p, "aten::cos").id}]
    assert inner.time_range.start == min(t.start for t in times) and inner.time_range.end == max(t.end for t in times)
    assert len({e.device_resource_id for e in ranges}) == 2 and len({e.id for e in p.events()}) == len(p.events())
    rows = {(k.key, k.device_type.name): k for k in p.key_averages()}
    assert rows["inner", "CUDA"].self_device_time_total == inner.time_range.elapsed_us() and "inner" in {k for k, _ in rows}
    last = p.key_averages().table(time_unit="us").splitlines()[-1]
    assert last == f"Self CUDA time total: {sum(e.device_time_total for e in on_device(p)):.3f}us"


def test_copies_and_fills(tmp_path):
    x = lucid.ones(1000)
    with profile() as p:
        y = x.cuda()
        y.cpu()
        x.pin_memory().to("cuda", non_blocking=True)
        lucid.zeros(500, device="cuda")
    names = [e.name for e in on_device(p)]
    for name in ("Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pageable)", "Memcpy HtoD (Pinned -> Device)"):
        assert names.count(name) == 1
        (copy,) = [e for e in on_device(p) if e.name == name]
        assert copy.activity_type == "gpu_memcpy" and copy.linked_correlation_id > 0
    check_sums(p)
    p.export_chrome_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e["args"]["bytes"] for e in events if e.get("cat") == "gpu_memcpy"] == [4000] * 3
    fills = [e for e in events if e.get("cat") == "gpu_memset"]
    assert all(e["name"] == "Memset (Device)" and e["args"]["bytes"] == 2000 for e in fills)
    assert one(p, "aten::zeros").device_time_total > 0


def test_gradients():
    net = lucid.nn.Sequential(lucid.nn.Linear(8, 16), lucid.nn.ReLU(), lucid.nn.Linear(16, 2)).cuda()
    x = lucid.ones(4, 8, device="cuda")
    with profile() as p:
        net(x).sum().backward()
    check_sums(p)
    steps = [e for e in on_host(p) if e.name == "LinearBackward0"]
    assert len(steps) == 2 and all(e.device_time_total > 0 and e.self_device_time_total == 0 for e in steps)
    averages = {k.key: k for k in p.key_averages()}
    linear = averages["LinearBackward0"]
    assert linear.device_time_total == pytest.approx(sum(e.device_time_total for e in steps))
    assert linear.device_time == pytest.approx(linear.device_time_total / 2) and linear.cuda_time == linear.device_time


def test_averages_and_the_table():
    x = lucid.ones(64, 64, device="cuda")
    with profile(record_shapes=True) as p:
        for _ in range(3):
            x.exp()
        x.tanh()
    averages = p.key_averages()
    calls = [k for k in averages if k.device_type == DeviceType.CPU]
    kernels = [k for k in averages if k.device_type == DeviceType.CUDA]
    assert {k.key for k in calls} == {"aten::exp", "aten::tanh"} and sum(k.count for k in kernels) == 4
    assert sum(k.device_time_total for k in kernels) == pytest.approx(sum(k.device_time_total for k in calls))
    for key in ("cuda_time_total", "self_cuda_time_total", "device_time_total", "self_device_time_total", "cuda_time"):
        lines = averages.table(sort_by=key, row_limit=1).splitlines()
        titles = [t.strip() for t in lines[1].split("  ") if t.strip()]
        assert titles[6:10] == ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
        assert lines[-1].startswith("Self CUDA time total: ") and lines[-2].startswith("Self CPU time total: ")
        attribute = key.replace("cuda", "device")
        assert lines[3].split()[0] == max(averages, key=lambda k: getattr(k, attribute)).key
    total = p.events().total_average()
    assert total.self_device_time_total == pytest.approx(2 * sum(k.device_time_total for k in kernels))
    assert "self_cuda_time" in repr(averages[0]) and "cuda_time" in repr(p.events()[0])
    shaped = p.key_averages(group_by_input_shape=True)
    assert [k.input_shapes for k in shaped if k.key == "aten::exp"] == [[[64, 64]]]


def test_the_trace(tmp_path):
    x = lucid.ones(1000, device="cuda")
    x.exp().sum().item()
    before = time.time_ns()
    with profile() as p:
        x.exp()
        x.sum()
    after = time.time_ns()
    p.export_chrome_trace(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_text())
    events = trace["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert len(kernels) == len(on_device(p)) >= 2
    for e in kernels:
        start = trace["baseTimeNanoseconds"] + e["ts"] * 1e3
        assert before - 1e5 <= start <= start + e["dur"] * 1e3 <= after + 1e5
        assert e["pid"] == e["args"]["device"] == 0 and e["tid"] == e["args"]["stream"]
        assert len(e["args"]["grid"]) == len(e["args"]["block"]) == 3 and min(e["args"]["grid"] + e["args"]["block"]) >= 1
        assert 0 < e["args"]["registers per thread"] < 256 and e["args"]["shared memory"] >= 0
    called = {e["args"]["External id"]: e for e in events if e.get("cat") == "cpu_op"}
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert len(starts) == len(ends) == len(kernels)
    for kernel in kernels:
        (arrow,) = [
            i for i, e in ends.items() if (e["ts"], e["pid"], e["tid"]) == tuple(kernel[k] for k in ("ts", "pid", "tid"))
        ]
        call = called[kernel["args"]["External id"]]
        assert starts[arrow]["ts"] == call["ts"] and starts[arrow]["pid"] == call["pid"] == os.getpid()
        assert starts[arrow]["cat"] == ends[arrow]["cat"] == "ac2g" and ends[arrow]["bp"] == "e"
    named = [(e["pid"], e["tid"], e["args"].get("name")) for e in events if e["name"] == "thread_name"]
    assert (0, kernels[0]["tid"], f"stream {kernels[0]['tid']}") in named


def test_recordings_of_a_schedule_do_not_mix():
    x, seen = lucid.ones(10, device="cuda"), []
    functions = [x.exp, x.tanh, x.sin, x.cos, x.sqrt, x.log]
    for f in functions:
        f()

    def keep(p):
        check_sums(p)
        seen.append(([e.name for e in on_host(p) if "aten" in e.name], len(on_device(p))))

    with profile(schedule=schedule(wait=1, warmup=1, active=1), on_trace_ready=keep) as p:
        for f in functions:
            f()
            p.step()
    assert seen == [(["aten::sin"], 1), (["aten::log"], 1)]


def test_accumulated_events():
    x = lucid.ones(10, device="cuda")
    with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=3), acc_events=True) as p:
        for _ in range(3):
            x.exp()
            p.step()
    assert len(on_device(p)) == 3 and len({e.id for e in p.events()}) == len(p.events())
    check_sums(p)


def test_stopping_in_the_middle():
    x = lucid.ones(1000, device="cuda")
    with contextlib.ExitStack() as ranges:
        p = profile()
        p.start()
        ranges.enter_context(record_function("outer"))
        for _ in range(200):
            x = x + 1
        p.stop()
        x.exp()  # not recorded
        again = profile()
        again.start()
        x.tanh()
        again.stop()
    assert len(on_device(p)) == 200 and one(p, "outer").device_time_total > 0
    assert [e.name for e in on_host(again)] == ["aten::tanh"] and len(on_device(again)) == 1
    check_sums(p), check_sums(again)
    assert x[0].item() == 201


def test_a_call_that_fails():
    x, y = lucid.ones(2, device="cuda"), lucid.ones(3, device="cuda")
    with profile() as p:
        with pytest.raises(RuntimeError):
            x + y
        with pytest.raises(ValueError), record_function("range"):
            raise ValueError
        x.exp()
    assert not one(p, "aten::add").kernels and not one(p, "range").kernels
    assert len(one(p, "aten::exp").kernels) == 1
    check_sums(p)


def test_other_threads_and_streams():
    x, side = lucid.ones(100, device="cuda"), cuda.Stream()
    cuda.synchronize()
    with profile() as p:
        thread = threading.Thread(target=lambda: x.sin())
        thread.start(), thread.join()
        with cuda.stream(side):
            x.exp()
    assert [e.name for e in on_host(p)] == ["aten::exp"]  # calls of other threads are not
    elsewhere, own = sorted(on_device(p), key=lambda e: e.linked_correlation_id)
    assert elsewhere.linked_correlation_id == 0 and own.linked_correlation_id == one(p, "aten::exp").id
    assert elsewhere.device_resource_id != own.device_resource_id


def test_captured_graphs():
    x = lucid.ones(100, device="cuda")
    x.exp().sin()
    graph = cuda.CUDAGraph()
    with cuda.graph(graph):
        x.exp().sin()
    with profile() as p, record_function("replay"):
        graph.replay()
    assert len(on_device(p)) == 2 and len({e.flow_id for e in on_device(p)}) == 1
    assert len(one(p, "replay").kernels) == 2
    with profile() as p:
        with cuda.graph(cuda.CUDAGraph()):
            x.exp().sin()
    assert not on_device(p) and len(on_host(p)) >= 2
    graph = cuda.CUDAGraph()  # a recording that ends meanwhile breaks no graph
    p = profile()
    p.start()
    with cuda.graph(graph):
        y = x.exp()
        p.stop()
    graph.replay()
    assert y[0].item() == pytest.approx(2.71828, rel=1e-4)


def test_many_kernels():
    x = lucid.ones(10, device="cuda")
    with profile() as p:
        for _ in range(3000):
            x = x + 1
    assert len(on_device(p)) == 3000 and all(len(e.kernels) == 1 for e in on_host(p))
    starts = [e.time_range.start for e in on_device(p)]
    assert starts == sorted(starts)


def test_autograd_profiler():
    for how in ({"use_cuda": True}, {"use_device": "cuda"}):
        with lucid.autograd.profiler.profile(**how) as p:
            lucid.ones(3, device="cuda")
        assert p.use_device == "cuda" and [e for e in p.function_events if e.device_type == DeviceType.CUDA]
        assert "CUDA time avg" in p.table(sort_by="cuda_time_total")
    with lucid.autograd.profiler.profile() as p:
        lucid.ones(3, device="cuda")
    assert "CUDA" not in str(p)
