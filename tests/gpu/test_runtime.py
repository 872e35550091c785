"""Streams, events, memory, graphs and copies of the CUDA backend. Runs on a GPU, or on the emulation (test_emulated.py), whose
streams run as late and as differently ordered as events allow."""

import gc
import os
import threading

import pytest

import lucid
from lucid import nn

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")
cuda = lucid.cuda


@pytest.fixture(autouse=True)
def everything_is_done():
    yield
    gc.collect()
    cuda.synchronize()
    assert cuda.current_stream() == cuda.default_stream()


# --- streams and events ---
def test_streams_of_a_thread():
    side, other = cuda.Stream(), cuda.Stream(priority=-1)
    assert side != other and side.priority == 0 and other.priority == -1 and side.device == lucid.device("cuda", 0)
    with cuda.stream(side):
        assert cuda.current_stream() == side and hash(cuda.current_stream()) == hash(side)
        with other:
            assert cuda.current_stream() == other
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cuda.current_stream()))
        thread.start(), thread.join()
        assert seen == [cuda.default_stream()]
        with cuda.stream(None):
            assert cuda.current_stream() == side
    assert cuda.ExternalStream(side.cuda_stream) == side and side.__cuda_stream__() == (0, side.cuda_stream)
    assert "cuda_stream=0x" in repr(side)


def test_streams_wait_for_each_other():
    side = cuda.Stream()
    x = lucid.arange(1000.0, device="cuda") + 1
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x * 2
        done = side.record_event()
    assert not side.query() or side.query()
    cuda.current_stream().wait_event(done)
    z = y + 1
    assert z.tolist()[:3] == [3.0, 5.0, 7.0]
    side.synchronize()
    assert side.query() and done.query()


def test_events_measure():
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    assert start.query()
    start.synchronize()
    with pytest.raises(ValueError, match="recorded"):
        start.elapsed_time(end)
    start.record()
    lucid.ones(100, device="cuda").exp()
    end.record()
    end.synchronize()
    assert end.query() and 0 <= start.elapsed_time(end) < 60e3
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(cuda.Event())


def test_gradients_run_on_the_stream_of_their_forward_call():
    side, seen = cuda.Stream(), {}

    class Watched(lucid.autograd.Function):
        @staticmethod
        def forward(ctx, x, name):
            ctx.name = name
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen[ctx.name] = cuda.current_stream()
            return g * 2, None

    x = lucid.arange(500.0, device="cuda").requires_grad_()
    first = Watched.apply(x, "default")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = Watched.apply(first, "side") ** 2
        total = y.sum()
    cuda.current_stream().wait_stream(side)
    total.backward()
    assert seen == {"default": cuda.default_stream(), "side": side}
    assert x.grad.cpu().tolist() == [2 * 16.0 * i for i in range(500)]  # read on the caller's stream: it has waited
    x.grad = None
    cuda.synchronize()
    with cuda.stream(side):
        (g,) = lucid.autograd.grad((Watched.apply(x, "side") * 3).sum(), x)
        assert g.cpu().tolist() == [6.0] * 500


def test_a_training_step_on_a_side_stream():
    def losses(stream):
        lucid.manual_seed(0)
        absent = nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16, affine=False)  # calls with tensors that are not there
        net = nn.Sequential(*absent, nn.ReLU(), nn.Linear(16, 3)).cuda()
        optimizer = lucid.optim.SGD(net.parameters(), lr=0.1)
        x, y = lucid.randn(6, 8).cuda(), (lucid.arange(6) % 3).cuda()
        cuda.synchronize()
        found = []
        with cuda.stream(stream):
            for _ in range(3):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(x), y)
                loss.backward()
                optimizer.step()
                found.append(loss.item())
        return found

    assert losses(cuda.Stream()) == losses(None)


def test_threads_on_streams():
    results = {}

    def work(k):
        with cuda.stream(cuda.Stream()):
            x = lucid.full((64, 64), float(k), device="cuda")
            for _ in range(5):
                x = x @ lucid.eye(64, device="cuda")
            results[k] = x.sum().item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert results == {k: 64.0 * 64 * k for k in range(4)}


# --- memory ---
def test_memory_is_counted():
    before, reserved = cuda.memory_allocated(), cuda.memory_reserved()
    cuda.reset_peak_memory_stats()
    x = lucid.empty(1 << 20, dtype=lucid.uint8, device="cuda")
    y = lucid.empty(100, device="cuda")
    assert cuda.memory_allocated() - before == (1 << 20) + 512 and cuda.memory_reserved() >= reserved
    del x
    assert cuda.memory_allocated() - before == 512 and cuda.max_memory_allocated() - before == (1 << 20) + 512
    stats = cuda.memory_stats()
    assert stats["requested_bytes.all.current"] <= stats["allocated_bytes.all.current"] <= stats["reserved_bytes.all.current"]
    assert stats["allocated_bytes.all.allocated"] - stats["allocated_bytes.all.freed"] == stats["allocated_bytes.all.current"]
    assert cuda.memory_stats_as_nested_dict()["segment"]["all"]["current"] == stats["segment.all.current"]
    blocks = [b for s in cuda.memory_snapshot() for b in s["blocks"]]
    assert any(b["address"] == y.data_ptr() and b["requested_size"] == 400 for b in blocks)
    assert sum(b["size"] for b in blocks) == cuda.memory_reserved()
    assert "allocated" in cuda.memory_summary() and cuda.mem_get_info()[0] <= cuda.mem_get_info()[1]


@pytest.mark.skipif(os.environ.get("LUCID_CUDA_CACHE") == "0", reason="blocks are the driver's own")
def test_blocks_are_cut_and_joined():
    cuda.empty_cache()
    start = cuda.memory_reserved()
    parts = [lucid.empty(3 << 20, dtype=lucid.uint8, device="cuda") for _ in range(6)]
    held = cuda.memory_reserved()
    assert held - start == 20 << 20
    del parts[1], parts[1]
    six = lucid.empty(6 << 20, dtype=lucid.uint8, device="cuda")  # the two neighbours that are free
    assert cuda.memory_reserved() == held
    del parts, six
    cuda.empty_cache()
    assert cuda.memory_reserved() == start


def test_a_block_waits_for_other_streams():
    side = cuda.Stream()
    x = lucid.full((1 << 18,), 3.0, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x * 2
    x.record_stream(side)
    del x
    z = lucid.zeros(1 << 18, device="cuda")  # without record_stream it would overwrite x before the side stream has read it
    cuda.current_stream().synchronize()
    side.synchronize()
    assert y.sum().item() == 6.0 * (1 << 18) and z.sum().item() == 0


def test_out_of_memory_gives_back_and_says_what_is_held():
    total = cuda.mem_get_info()[1]
    kept = lucid.empty(total // 8, dtype=lucid.uint8, device="cuda")
    del kept
    with pytest.raises(cuda.OutOfMemoryError, match="Tried to allocate"):
        lucid.empty(total * 2, dtype=lucid.uint8, device="cuda")
    assert lucid.ones(3, device="cuda").sum().item() == 3
    cuda.empty_cache()
    cuda.set_per_process_memory_fraction(0.25)
    try:
        assert abs(cuda.get_per_process_memory_fraction() - 0.25) < 1e-6
        with pytest.raises(cuda.OutOfMemoryError, match="set_per_process_memory_fraction"):
            lucid.empty(total // 2, dtype=lucid.uint8, device="cuda")
        first = lucid.empty(total // 5, dtype=lucid.uint8, device="cuda")
        del first
        retries = cuda.memory_stats()["num_alloc_retries"]
        lucid.empty(total // 6 + (64 << 20), dtype=lucid.uint8, device="cuda")  # fits in what is kept or after giving it back
        assert cuda.memory_stats()["num_alloc_retries"] >= retries
    finally:
        cuda.set_per_process_memory_fraction(1.0)
    with pytest.raises(ValueError):
        cuda.set_per_process_memory_fraction(2.0)


# --- copies ---
@pytest.mark.parametrize("n", [3, 1 << 16, 5_000_011])
def test_copies(n):
    x = lucid.arange(n, dtype=lucid.float32)
    assert lucid.equal((x.cuda() + 1).cpu(), x + 1)
    pinned = x.pin_memory()
    there = pinned.to("cuda", non_blocking=True)
    del pinned
    again = lucid.zeros(n).pin_memory()  # the memory that is read may not be given out yet
    assert lucid.equal(there.cpu(), x) and again.sum() == 0
    back = lucid.empty(n, pin_memory=True)
    back.copy_(there, non_blocking=True)
    cuda.current_stream().synchronize()
    assert lucid.equal(back, x)


def test_a_copy_does_not_wait_from_pinned_memory():
    x = lucid.ones(1 << 16).pin_memory()
    there = x.cuda(non_blocking=True)
    assert there.sum().item() == 1 << 16
    there = x.to("cuda")  # without, the values are those of the call
    x.zero_()
    assert there.sum().item() == 1 << 16


def test_mapped_host_memory():
    x = lucid.arange(1 << 16, dtype=lucid.float32)
    seen = cuda.map_host(x)
    assert seen.device.type == "cuda" and x.is_pinned() and (seen * 2).sum().item() == 2 * x.double().sum().item()
    seen += 1
    cuda.synchronize()
    assert x[0] == 1 and x[-1] == 1 << 16
    del x
    assert seen[5].item() == 6
    with pytest.raises(ValueError, match="64 KiB"):
        cuda.map_host(lucid.ones(3))
    with pytest.raises(ValueError, match="CPU"):
        cuda.map_host(seen)


def test_loaders_pin():
    data = lucid.utils.data.TensorDataset(lucid.arange(8.0), lucid.arange(8))
    for x, y in lucid.utils.data.DataLoader(data, batch_size=4, pin_memory=True):
        assert x.is_pinned() and y.is_pinned() and x.cuda(non_blocking=True).sum().item() == x.sum().item()


# --- graphs ---
def test_a_graph_replays():
    x = lucid.zeros(4, device="cuda")
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        assert cuda.is_current_stream_capturing()
        y = (x + 1).exp().sum()
    assert not cuda.is_current_stream_capturing()
    for k in range(3):
        x.fill_(float(k))
        g.replay()
        assert abs(y.item() - 4 * lucid.tensor(k + 1.0).exp().item()) < 1e-3
    other = lucid.full((4,), 7.0, device="cuda")  # never in the graph's memory
    g.replay()
    assert other.tolist() == [7.0] * 4
    pool = g.pool()
    h = cuda.CUDAGraph()
    with cuda.graph(h, pool=pool):
        z = y * 2
    g.replay(), h.replay()
    assert abs(z.item() - 2 * y.item()) < 1e-3 and h.pool() == pool
    g.reset()
    with pytest.raises(RuntimeError, match="without a preceding"):
        g.replay()


def test_random_numbers_go_on_from_replay_to_replay():
    def three(draw):
        cuda.manual_seed(5)
        return [draw() for _ in range(3)]

    eager = three(lambda: (lucid.rand(300, device="cuda").tolist(), lucid.randn(300, device="cuda").tolist()))
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        u, n = lucid.rand(300, device="cuda"), lucid.randn(300, device="cuda")

    def replayed():
        g.replay()
        return u.tolist(), n.tolist()

    assert three(replayed) == eager


def test_random_numbers_after_memory_was_given_back():
    """Seeds and counters of a graph do not lie where an earlier step of it wrote."""
    g, x = cuda.CUDAGraph(), lucid.ones(8, device="cuda")
    with cuda.graph(g):
        y = x * 3
        total, z = y.sum(), lucid.empty(8, device="cuda")
        del y
        z.uniform_()
    for seed in range(3):
        lucid.manual_seed(seed)
        expected = lucid.empty(8, device="cuda").uniform_()
        lucid.manual_seed(seed)
        g.replay()
        assert lucid.equal(z, expected) and total.item() == 24


def test_what_a_capture_refuses():
    x = lucid.ones(3, device="cuda")
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="captur"), cuda.graph(g):
        x.sum().item()
    assert lucid.ones(3, device="cuda").sum().item() == 3  # nothing is left over
    with pytest.raises(RuntimeError, match="non-default stream"):
        cuda.CUDAGraph().capture_begin()
    with pytest.raises(RuntimeError, match="capture error mode"), cuda.graph(cuda.CUDAGraph(), capture_error_mode="loose"):
        pass
    assert cuda.current_stream() == cuda.default_stream()


def test_a_graph_may_be_dropped_while_another_is_captured():
    """To free it waits for the device, which no capture survives: it is freed when that has ended."""
    x = lucid.ones(4, device="cuda")
    old, new = cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(old):
        y = lucid.full((1 << 20,), 2.0, device="cuda") + 1
    held = cuda.memory_reserved()
    with cuda.graph(new):
        del y
        old.reset()
        z = x * 2
    cuda.empty_cache()
    assert cuda.memory_reserved() < held
    new.replay()
    assert z.tolist() == [2.0] * 4


def test_a_training_step_is_a_graph():
    def step_of():
        lucid.manual_seed(1)
        net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(2 * 6 * 6, 3)).cuda()
        optimizer = lucid.optim.SGD(net.parameters(), lr=0.05)
        x, y = lucid.zeros(4, 1, 8, 8, device="cuda"), lucid.zeros(4, dtype=lucid.int64, device="cuda")

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return step, x, y

    lucid.manual_seed(2)
    batches = [(lucid.randn(4, 1, 8, 8), lucid.arange(4) * k % 3) for k in range(5)]
    step, x, y = step_of()
    eager = []
    for a, b in batches:
        x.copy_(a), y.copy_(b)
        eager.append(step().item())
    step, x, y = step_of()
    x.copy_(batches[0][0]), y.copy_(batches[0][1])
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        replayed = [step().item()]
    cuda.current_stream().wait_stream(side)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        loss = step()
    for a, b in batches[1:]:
        x.copy_(a), y.copy_(b)
        g.replay()
        replayed.append(loss.item())
    assert replayed == pytest.approx(eager, rel=1e-5)


def test_graphed_callables():
    lucid.manual_seed(3)
    layer = nn.Linear(4, 5).cuda()
    x = lucid.randn(3, 4).cuda().requires_grad_()
    expected = layer(x).sin()
    (expected.sum()).backward()
    wanted = [t.grad.cpu() for t in (x, layer.weight, layer.bias)]
    x.grad = layer.weight.grad = layer.bias.grad = None
    fast = cuda.make_graphed_callables(layer, (lucid.zeros(3, 4, device="cuda", requires_grad=True),))
    for _ in range(2):
        x.grad = layer.weight.grad = layer.bias.grad = None
        y = fast(x)
        lucid.testing.assert_close(y.sin(), expected)
        y.sin().sum().backward()
        lucid.testing.assert_close([t.grad.cpu() for t in (x, layer.weight, layer.bias)], wanted)


@pytest.mark.parametrize("kind", ["Adam", "NAdam", "Adagrad"])
def test_steps_that_count_are_not_captured(kind):
    x = lucid.ones(3, device="cuda", requires_grad=True)
    optimizer = getattr(lucid.optim, kind)([x], lr=0.1)
    x.grad = lucid.ones(3, device="cuda")
    optimizer.step()
    before = x.tolist()
    with pytest.raises(NotImplementedError, match="outside"), cuda.graph(cuda.CUDAGraph()):
        optimizer.step()
    assert x.tolist() == before


# --- own kernels ---
SAXPY = """
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
extern "C" __global__ void square(double *to, const double *from, double by)
{
    to[threadIdx.x] = from[threadIdx.x] * from[threadIdx.x] * by;
}
"""


def test_own_kernels():
    import ctypes

    x, y = lucid.arange(1000.0, device="cuda"), lucid.zeros(1000, device="cuda")
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        cuda.run_kernel(SAXPY, "saxpy", 4, 256, (y, x, 2.0, 1000))
        assert y.tolist() == [2.0 * i for i in range(1000)]
    d = lucid.arange(4, dtype=lucid.float64, device="cuda")
    out = lucid.empty_like(d)
    cuda.Kernel(SAXPY, "square")((1, 1, 1), 4, out, d, ctypes.c_double(0.5))
    assert out.tolist() == [0.0, 0.5, 2.0, 4.5]
    with pytest.raises(cuda.CompileError, match="undeclared|not declared|undefined") as refused:
        cuda.run_kernel('extern "C" __global__ void broken(float *x)\n{\n    x[0] = unknown;\n}', "broken", 1, 1, (x,))
    assert "3" in refused.value.log
    with pytest.raises(ValueError, match="no kernel"):
        cuda.run_kernel(SAXPY, "missing", 1, 1, ())
    with pytest.raises(ValueError, match="cpu"):
        cuda.run_kernel(SAXPY, "saxpy", 1, 1, (y.cpu(), x, 2.0, 1))
    with pytest.raises(TypeError, match="str"):
        cuda.run_kernel(SAXPY, "saxpy", 1, 1, (y, x, "2", 1))
    with pytest.raises(ValueError, match="grid"):
        cuda.run_kernel(SAXPY, "saxpy", 0, 1, (y, x, 2.0, 1))


def test_own_kernels_in_a_function():
    forward = """
extern "C" __global__ void cube(float *y, const float *x) { float v = x[threadIdx.x]; y[threadIdx.x] = v * v * v; }"""
    backward = """
extern "C" __global__ void slope(float *d, const float *g, const float *x)
{
    d[threadIdx.x] = 3 * g[threadIdx.x] * x[threadIdx.x] * x[threadIdx.x];
}"""

    class Cube(lucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            y = lucid.empty_like(x)
            cuda.run_kernel(forward, "cube", 1, x.numel(), (y, x))
            return y

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            d = lucid.empty_like(x)
            cuda.run_kernel(backward, "slope", 1, x.numel(), (d, g.contiguous(), x))
            return d

    x = lucid.arange(5.0).cuda().requires_grad_()
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0 * i * i for i in range(5)]


# --- other libraries ---
class Foreign:
    """Another library's array."""

    def __init__(self, tensor, stream=None):
        self.kept, self.given = tensor, dict(tensor.__cuda_array_interface__)
        if stream is not None:
            self.given["stream"] = stream.cuda_stream

    @property
    def __cuda_array_interface__(self):
        return self.given


def test_the_cuda_array_interface():
    x = lucid.arange(12.0, device="cuda").reshape(3, 4)
    given = x.t().__cuda_array_interface__
    assert given["typestr"] == "<f4" and given["shape"] == (4, 3) and given["strides"] == (4, 16) and given["stream"] == 1
    side = cuda.Stream()
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x.t() * 2
    seen = lucid.as_tensor(Foreign(y, side))
    assert seen.data_ptr() == y.data_ptr() and lucid.equal(seen, x.t() * 2)
    seen[0, 0] = 5.0
    assert y[0, 0].item() == 5.0 and lucid.tensor(Foreign(x)).data_ptr() != x.data_ptr()
    with pytest.raises(AttributeError):
        x.cpu().__cuda_array_interface__  # noqa: B018
    with pytest.raises(RuntimeError, match="requires grad"):
        x.clone().requires_grad_().__cuda_array_interface__  # noqa: B018
    wrong = Foreign(x)
    wrong.given["typestr"] = "<M8"
    with pytest.raises(TypeError, match="not supported"):
        lucid.as_tensor(wrong)


def test_dlpack_waits_for_the_stream():
    side = cuda.Stream()
    x = lucid.arange(1000.0, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        y = x * 2
        capsule = y.__dlpack__(stream=1)  # for a consumer on the default stream
    z = lucid.from_dlpack(capsule)
    assert z.data_ptr() == y.data_ptr() and z.tolist() == [2.0 * i for i in range(1000)]
    asked = []

    class Producer:
        def __dlpack_device__(self):
            return x.__dlpack_device__()

        def __dlpack__(self, stream=None, max_version=None):
            asked.append(stream)
            return x.__dlpack__(stream=stream, max_version=max_version)

    assert lucid.from_dlpack(Producer()).data_ptr() == x.data_ptr()
    with cuda.stream(side):
        lucid.from_dlpack(Producer())
    assert asked == [1, side.cuda_stream] and x.__dlpack_device__() == (2, 0)


def test_against_another_framework():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no CUDA device")
    x = lucid.arange(6.0, device="cuda").reshape(2, 3)
    for there in (torch.from_dlpack(x), torch.as_tensor(x, device="cuda")):
        assert there.data_ptr() == x.data_ptr() and there.tolist() == x.tolist()
    y = torch.arange(6.0, device="cuda") * 2
    for here in (lucid.from_dlpack(y), lucid.as_tensor(y)):
        assert here.data_ptr() == y.data_ptr() and here.tolist() == y.tolist()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), cuda.stream(cuda.ExternalStream(side.cuda_stream)):
        assert lucid.from_dlpack(torch.arange(6.0, device="cuda") + 1).sum().item() == 21


def test_parameters_stay_the_same_objects():
    """An optimizer that was made before the move, and layers that share a weight, go on."""
    net = lucid.nn.Sequential(lucid.nn.Embedding(5, 3), lucid.nn.Linear(3, 5, bias=False))
    net[1].weight = net[0].weight
    weight, optimizer = net[0].weight, lucid.optim.SGD(net.parameters(), lr=0.1)
    for device in ("cuda", "cpu", "cuda"):
        net.to(device)
        assert net[0].weight is net[1].weight is weight and weight.device.type == device
        before = weight.detach().clone()
        net(lucid.tensor([1, 2], device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        assert not lucid.equal(weight, before)
    assert net.to("meta")[0].weight is not weight  # as in PyTorch
