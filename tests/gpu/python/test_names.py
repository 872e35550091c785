"""PyTorch's names for a machine with a GPU: generic streams, torch.accelerator, switches, legacy types, NVML, the runtime."""

import ctypes
import os

import pytest

import lucid

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")
cuda = lucid.cuda


def test_generic_streams_and_events():
    stream, event = lucid.Stream(device="cuda", priority=-1), lucid.Event("cuda:0", enable_timing=True)
    assert isinstance(stream, cuda.Stream) and isinstance(event, cuda.Event) and stream.priority == -1
    assert isinstance(cuda.Stream(), lucid.Stream) and not isinstance(lucid.Stream("cpu"), cuda.Stream)
    assert lucid.Stream().device.type == "cuda" and lucid.Event("cpu").device.type == "cpu"
    with stream:
        assert lucid.accelerator.current_stream() == stream and not stream.is_capturing()
        event.record()
    event.synchronize()
    assert event.query() and event.event_id == event.cuda_event != 0
    with pytest.raises(RuntimeError, match="streams of meta"):
        lucid.Stream("meta")


def test_accelerator():
    a = lucid.accelerator
    with a.device_index(0):
        x = lucid.zeros(1, device=a.current_accelerator())
    assert a.current_device_index() == 0 and x.device == lucid.device("cuda", 0)
    assert a.memory_allocated() == cuda.memory_allocated() > 0 and a.max_memory_reserved() >= a.memory_reserved() > 0
    assert a.get_memory_info() == cuda.mem_get_info() and a.memory_stats()["num_ooms"] >= 0
    assert lucid.bfloat16 in a.get_device_capability()["supported_dtypes"]
    graph, before = a.Graph(), a.current_stream()
    a.synchronize()
    with lucid.Stream(), graph:
        x += 1
    graph.replay()
    assert x.item() == 1
    a.set_stream(before)


def test_legacy_types():
    x = cuda.FloatTensor([1, 2])
    assert isinstance(x, cuda.FloatTensor) and x.tolist() == [1, 2] and cuda.LongTensor(2, 3).shape == (2, 3)
    lucid.set_default_tensor_type("torch.cuda.DoubleTensor")
    try:
        y, z = lucid.rand(2), lucid.FloatTensor(1)
        assert y.is_cuda and y.dtype == lucid.float64 and lucid.nn.Linear(2, 2).weight.is_cuda and not z.is_cuda
    finally:
        lucid.set_default_tensor_type(lucid.FloatTensor)
    assert not lucid.rand(2).is_cuda and lucid.rand(2).dtype == lucid.float32


def test_storages_and_pinned_memory():
    x = lucid.ones(3)
    assert x.storage().cuda().tolist() == [1.0] * 3 and x.untyped_storage().to(device="cuda").is_cuda
    assert x.untyped_storage().pin_memory().is_pinned() and x.pin_memory("cuda").is_pinned(device="cuda")
    with pytest.raises(RuntimeError, match="CUDA devices only"):
        x.pin_memory("cpu")


def test_switches_of_cudnn():
    cudnn, matmul = lucid.backends.cudnn, lucid.backends.cuda.matmul

    def engine():  # without cuDNN, deterministic, without TF32
        values = lucid._C._cuda_set_conv(False, False, False)
        lucid._C._cuda_set_conv(*values)
        return values

    cudnn.deterministic = True
    assert engine() == (False, True, False)
    with cudnn.flags(enabled=False, allow_tf32=False):
        assert engine() == (True, False, True) and cudnn.conv.fp32_precision == "ieee"
    assert engine() == (False, True, False) and cudnn.enabled
    cudnn.deterministic = False
    matmul.fp32_precision = "tf32"
    assert matmul.allow_tf32 and lucid.get_float32_matmul_precision() == "high"
    matmul.fp32_precision = "ieee"
    assert not matmul.allow_tf32
    assert cudnn.is_available() == (cudnn.version() is not None) == cudnn.is_acceptable(lucid.ones(1, device="cuda"))


def test_questions():
    assert lucid.version.cuda.count(".") == 1 and cuda.default_generators[0].device == lucid.device("cuda:0")
    assert (
        cuda.is_tf32_supported() == cuda.is_bf16_supported(including_emulation=False) == (cuda.get_device_capability()[0] >= 8)
    )
    from lucid.cuda.amp.common import amp_definitely_not_available

    assert (
        not amp_definitely_not_available() and not cuda._is_in_bad_fork() and issubclass(lucid.AcceleratorError, RuntimeError)
    )
    with pytest.raises(lucid.DeviceMismatch, match="cuda:0 and cpu!"):
        lucid.ones(2, device="cuda") + lucid.ones(2)


def test_the_runtime():
    cuda.check_error(cuda.cudart().cudaProfilerStart())
    cuda.profiler.stop()
    with cuda.profiler.profile():
        pass
    assert cuda.cudart().cudaMemGetInfo(0)[1] == cuda.mem_get_info()[1]
    x = lucid.ones(5000)
    cuda.check_error(cuda.cudart().cudaHostRegister(x.data_ptr(), 20000))
    cuda.check_error(cuda.cudart().cudaHostUnregister(x.data_ptr()))
    with pytest.raises(cuda.CudaError):
        cuda.check_error(cuda.cudart().cudaHostUnregister(x.data_ptr()))


def test_nvml():
    try:
        ctypes.CDLL(os.path.join(os.environ.get("LUCID_CUDA_PATH", ""), "libnvidia-ml.so.1"))
    except OSError:
        with pytest.raises(RuntimeError, match=r"libnvidia-ml.so.1.* was not found"):
            cuda.temperature()
        return
    seen = cuda.utilization(), cuda.memory_usage(), cuda.temperature(), cuda.power_draw(0), cuda.clock_rate("cuda:0")
    if "emulated" in cuda.get_device_name():
        assert seen == (50, 25, 41, 98765, 1980)
    else:
        assert 0 <= seen[0] <= 100 and 0 <= seen[1] <= 100 and 0 < seen[2] < 150 and seen[3] > 0 and seen[4] > 0


def test_older_names_of_profiles():
    with lucid.profiler.profile(profile_memory=True) as p:
        lucid.ones(2, device="cuda").exp()
    assert "aten::exp" in p.key_averages().table(sort_by="self_cuda_memory_usage")


def test_the_history_of_memory(tmp_path):
    import pickle

    cuda.memory._record_memory_history(max_entries=6)
    x = lucid.ones(1000, device="cuda")
    y = x + x
    kept = y.data_ptr()
    del x
    cuda.memory._dump_snapshot(tmp_path / "snapshot.pickle")
    cuda.memory._record_memory_history(enabled=None)
    del y
    shot = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    events = shot["device_traces"][0]
    assert [e["action"] for e in events][-4:] == ["alloc", "alloc", "free_requested", "free_completed"]
    assert (
        events[-3]["addr"] == kept
        and events[-3]["frames"][0]["name"] == "test_the_history_of_memory"
        and events[-3]["size"] >= 4000
    )
    (block,) = [b for s in shot["segments"] for b in s["blocks"] if b["address"] == kept]
    assert block["frames"] and block["state"] == "active_allocated"
    assert len(cuda.memory._snapshot()["device_traces"][0]) == len(events)  # nothing is recorded any more
    with pytest.warns(UserWarning, match="no settings"):
        cuda.memory._set_allocator_settings("expandable_segments:True")


def test_seeds_of_all_streams():
    assert lucid.seed() == cuda.initial_seed() == lucid.initial_seed()
    with lucid.random.fork_rng(devices=[0]):
        drawn = lucid.rand(2, device="cuda")
    assert lucid.equal(lucid.rand(2, device="cuda"), drawn)


def test_graphed_callables_refuse_the_cache_of_autocast():
    x = lucid.ones(2, 2, device="cuda")
    with lucid.autocast("cuda"), pytest.raises(RuntimeError, match="cache_enabled=False"):
        cuda.make_graphed_callables(lambda t: t @ t, (x,))
    with lucid.autocast("cuda", cache_enabled=False):
        assert cuda.make_graphed_callables(lambda t: t @ t, (x,))(x).dtype == lucid.float16
