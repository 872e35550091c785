"""lucid.profiler: what it records, and that its schedules, tables and traces are PyTorch's."""

import gzip
import itertools
import json
import os
import threading
import time

import pytest
import torch

import lucid
from lucid.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler

PLANS = [
    dict(zip(("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait"), plan))
    for plan in itertools.product((0, 1, 2), (0, 1), (1, 3), (0, 1, 2), (0, 2), (0, 1))
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_schedules(plan):
    ours, theirs = schedule(**plan), torch.profiler.schedule(**plan)
    assert [ours(i).name for i in range(20)] == [theirs(i).name for i in range(20)]


def names(p):
    return [e.name for e in p.events()]


def test_events_nest_and_add_up():
    with profile() as p:
        with record_function("outer"):
            x = lucid.ones(2, 2)
            with record_function("inner"):
                x @ x
    assert names(p)[:3] == ["outer", "aten::ones", "inner"] and "aten::matmul" in names(p)
    outer, inner = p.events()[0], p.events()[2]
    assert outer.cpu_parent is None and inner.cpu_parent is outer and outer.cpu_children[1] is inner
    for event in p.events():
        inside = sum(child.cpu_time_total for child in event.cpu_children)
        assert 0 <= inside <= event.cpu_time_total + 1e-6
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inside)
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start <= child.time_range.end <= event.time_range.end
    roots = [e for e in p.events() if e.cpu_parent is None]
    assert p.events().self_cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in roots))


def test_counts_are_pytorchs():
    def program(lib):
        x, y = lib.ones(3, 3), lib.ones(3, 3)
        for _ in range(5):
            x = x * y + y
        return x

    counts = []
    for lib in (torch, lucid):
        with lib.profiler.profile() as p:
            program(lib)
        counts.append({k.key: k.count for k in p.key_averages() if k.key in ("aten::mul", "aten::add", "aten::ones")})
    assert counts[0] == counts[1] == {"aten::ones": 2, "aten::mul": 5, "aten::add": 5}


def test_backward_has_the_names_of_its_steps():
    w = lucid.ones(3, requires_grad=True)
    with profile() as p:
        (w * 2).exp().sum().backward()
    assert {"SumBackward0", "ExpBackward0", "MulBackward0"} <= set(names(p))
    step = next(e for e in p.events() if e.name == "ExpBackward0")
    assert [c.name for c in step.cpu_children] == ["aten::mul"]

    class Twice(lucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with profile() as p:
        Twice.apply(w).sum().backward()
    assert "TwiceBackward" in names(p)


def test_a_call_that_fails_ends_its_event():
    with profile() as p:
        with pytest.raises(RuntimeError):
            lucid.ones(2) + lucid.ones(3)
        lucid.ones(1).exp()
    assert names(p) == ["aten::ones", "aten::ones", "aten::add", "aten::ones", "aten::exp"]
    assert all(e.cpu_parent is None for e in p.events())


def test_shapes_flops_and_memory():
    with profile(record_shapes=True, with_flops=True, profile_memory=True) as p:
        a, b = lucid.ones(2, 3), lucid.ones(3, 4)
        c = lucid.mm(a, b)
        d = lucid.cat([c, c])
    by_name = {e.name: e for e in p.events()}
    assert by_name["aten::mm"].input_shapes == [[2, 3], [3, 4]] and by_name["aten::mm"].flops == 2 * 2 * 3 * 4
    assert by_name["aten::mm"].input_dtypes == ["float32"] * 2
    assert by_name["aten::cat"].input_shapes[0] == [[2, 4], [2, 4]]
    assert by_name["aten::mm"].cpu_memory_usage == c.nbytes and by_name["aten::cat"].cpu_memory_usage == d.nbytes
    grouped = p.key_averages(group_by_input_shape=True)
    assert sorted(k.count for k in grouped if k.key == "aten::ones") == [1, 1] or len(grouped) > 2
    conv = lucid.nn.functional.conv2d
    with profile(with_flops=True) as p:
        conv(lucid.ones(1, 4, 8, 8), lucid.ones(6, 4, 3, 3), stride=2, padding=1)
    event = next(e for e in p.events() if e.name == "aten::conv2d")
    assert event.flops == 2 * 6 * 4 * 4 * 4 * 9 and event.input_shapes == []


def test_stacks_name_the_line(tmp_path):
    with profile(with_stack=True) as p:
        lucid.ones(2).exp()
    event = p.events()[1]
    assert "test_profiler.py(" in event.stack[0] and "test_stacks_name_the_line" in event.stack[0]
    p.export_stacks(tmp_path / "stacks.txt")
    for line in (tmp_path / "stacks.txt").read_text().splitlines():
        frames, value = line.rsplit(" ", 1)
        assert frames.split(";") and int(value) > 0
    with profile() as p:
        lucid.ones(2)
    with pytest.raises(RuntimeError, match="with_stack"):
        p.export_stacks(tmp_path / "none.txt")


def test_the_table_has_pytorchs_columns():
    titles = []
    for lib in (torch, lucid):
        with lib.profiler.profile(record_shapes=True, profile_memory=True, with_flops=True) as p:
            lib.mm(lib.ones(2, 2), lib.ones(2, 2))
        table = p.key_averages(group_by_input_shape=True).table(sort_by="self_cpu_time_total", row_limit=2)
        lines = table.splitlines()
        titles.append([t.strip() for t in lines[1].split("  ") if t.strip()])
        assert len(lines) == 7 and lines[-1].startswith("Self CPU time total: ") or lib is torch
    assert titles[0] == titles[1]
    averages = p.key_averages()
    times = [k.cpu_time_total for k in sorted(averages, key=lambda k: -k.cpu_time_total)]
    shown = [line.split()[0] for line in averages.table(sort_by="cpu_time_total").splitlines()[3:-2]]
    assert shown == [k.key for k in sorted(averages, key=lambda k: -k.cpu_time_total)] and times[0] >= times[-1]
    with pytest.raises(AttributeError, match="no attribute"):
        averages.table(sort_by="nothing")


def test_traces_have_real_times(tmp_path):
    before = time.time_ns()
    with profile(record_shapes=True) as p:
        with record_function("mine"):
            lucid.ones(4).exp()
        p.add_metadata_json("run", '{"id": 3}')
    after = time.time_ns()
    for name, opened in (("t.json", open), ("t.json.gz", gzip.open)):
        p.export_chrome_trace(tmp_path / name)
        with opened(tmp_path / name, "rt") as file:
            trace = json.load(file)
        events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        assert [(e["name"], e["cat"]) for e in events] == [
            ("mine", "user_annotation"),
            ("aten::ones", "cpu_op"),
            ("aten::exp", "cpu_op"),
        ]
        for e in events:
            start = trace["baseTimeNanoseconds"] + e["ts"] * 1e3
            assert before - 1e6 <= start <= start + e["dur"] * 1e3 <= after + 1e6
            assert e["pid"] == os.getpid() and e["tid"] == threading.get_native_id()
        assert trace["run"] == {"id": 3} and events[2]["args"]["Input Dims"][0] == [4]


def test_schedule_and_handler(tmp_path):
    seen = []
    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=lambda p: seen.append(names(p))) as p:
        for _ in range(10):
            lucid.ones(2)
            p.step()
    assert seen == [[f"ProfilerStep#{i}", "aten::ones", f"ProfilerStep#{i + 1}", "aten::ones"] for i in (2, 6)]
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "worker")):
        lucid.ones(2)
    (file,) = os.listdir(tmp_path / "log")
    assert file.startswith("worker.") and file.endswith(".pt.trace.json")


def test_accumulated_events():
    def run(acc_events):
        with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=3), acc_events=acc_events) as p:
            for _ in range(3):
                lucid.ones(2)
                p.step()
        return names(p).count("aten::ones")

    assert run(False) == 1 and run(True) == 3


def test_one_recording_at_a_time():
    with profile():
        with pytest.raises(RuntimeError, match="already running"), profile():
            pass
    with profile() as p:
        pass
    assert names(p) == []


def test_only_this_thread():
    with profile() as p:
        thread = threading.Thread(target=lambda: lucid.ones(2).exp())
        thread.start()
        thread.join()
        lucid.ones(3)
    assert names(p) == ["aten::ones"]


def test_record_function_without_a_profiler_and_as_decorator():
    @record_function("decorated")
    def work():
        return lucid.ones(2)

    with record_function("nobody records"):
        work()
    with profile() as p:
        work()
    assert names(p) == ["decorated", "aten::ones"]


def test_autograd_profiler():
    with lucid.autograd.profiler.profile(record_shapes=True) as p:
        lucid.ones(2).exp()
    assert [e.name for e in p.function_events] == ["aten::ones", "aten::exp"]
    assert "aten::exp" in str(p) and p.total_average().count == 2 and p.self_cpu_time_total > 0
    with pytest.raises(NotImplementedError, match="NVTX"):
        lucid.autograd.profiler.emit_nvtx()


def test_what_is_not_there_says_so():
    if not lucid.cuda.is_available():
        for make in (
            lambda **cuda: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]),
            lucid.autograd.profiler.profile,
        ):
            with pytest.warns(UserWarning, match="^CUDA is not available, disabling CUDA profiling$"), make(use_cuda=True) as p:
                lucid.ones(2)
            assert "aten::ones" in p.key_averages().table()
    with pytest.warns(UserWarning, match="^XPU is not available, disabling XPU profiling$"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU])
    with pytest.warns(UserWarning, match="not a valid device option"):
        lucid.autograd.profiler.profile(use_device="abacus")
    with pytest.raises(NotImplementedError, match="with_modules"):
        profile(with_modules=True)
    with pytest.raises(RuntimeError, match="didn't finish"):
        profile().key_averages()


def test_averages_of_what_ran_on_a_device_are_pytorchs():
    """The same events, made by hand: a call with a call inside, both with kernels, and a range around them."""
    from torch.autograd import profiler_util as theirs

    from lucid.autograd import profiler_util as ours

    tables, rows = [], []
    for lib in (ours, theirs):
        cuda = lib.DeviceType.CUDA
        listed = [("range", 0, 100, None), ("aten::outer", 5, 50, None), ("aten::inner", 10, 30, None)]
        listed += [("aten::inner", 60, 80, None), ("one", 40, 44, cuda), ("two", 50, 51.5, cuda), ("one", 90, 97, cuda)]
        events = []
        for i, (name, start, end, device) in enumerate(listed):
            kind = 2 if name == "range" else 3 if device else 0
            if lib is ours:
                events.append(ours.FunctionEvent(i + 1, kind, name, start, end))
            else:
                events.append(theirs.FunctionEvent(i + 1, name, 1, start, end, stack=[], input_shapes=[], flops=0))
                events[-1].is_user_annotation = kind == 2
            events[-1].use_device = "cuda"
            if device:
                events[-1].device_type = device
        for parent, child in ((0, 1), (1, 2), (0, 3)):
            events[parent].append_cpu_child(events[child])
            events[child].cpu_parent = events[parent]
        for call, kernel in ((1, 4), (2, 5), (3, 6)):
            events[call].append_kernel(events[kernel].name, 0, events[kernel].time_range.elapsed_us())
        made = lib.EventList(events, use_device="cuda")
        made._tree_built = True
        averages = made.key_averages()
        names = ("cpu_time_total", "self_cpu_time_total", "device_time_total", "self_device_time_total", "device_time")
        rows.append([(k.key, k.count, k.device_type.name, *(getattr(k, name) for name in names)) for k in averages])
        rows[-1].append(tuple(getattr(made.total_average(), name) for name in names))
        tables.append([line.split() for line in averages.table(sort_by="cuda_time_total").splitlines() if "---" not in line])
    assert rows[0] == rows[1]
    assert [line for line in tables[0] if line] == [line for line in tables[1] if line]


def test_names_of_kernels_are_written_as_in_the_source():
    from lucid.profiler._names import _demangler, demangled

    assert demangled("flat_wide") == "flat_wide" and demangled("_Zwrong") == "_Zwrong"
    for name in ("_Z5scaleIfEvPfi", "_ZN7cutlass6KernelINS_4GemmEEEvNT_6ParamsE"):
        assert demangled(name) == (torch._C._demangle(name) if _demangler() else name)


def test_many_events():
    x = lucid.ones(1)
    with profile() as p:
        for _ in range(20_000):
            x + x
    assert len(p.events()) == 20_000 and p.key_averages()[0].count == 20_000
