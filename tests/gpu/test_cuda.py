"""The CUDA seam: the same table, the same rows, kernels from text. Every result and gradient against the CPU's."""

import pytest

import lucid

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")

FUNCTIONS = {
    "add": lambda x, y: x + y,
    "add_number": lambda x, y: x + 2.5,
    "add_row": lambda x, y: x + y[0],
    "add_transposed": lambda x, y: x + y.transpose(0, 1).clone().transpose(0, 1),
    "exp": lambda x, y: x.exp(),
    "sum": lambda x, y: x.sum(),
    "sum_dim": lambda x, y: x.sum(1, keepdim=True) * y,
    "sum_first": lambda x, y: x.sum(0) * y,
    "mul": lambda x, y: x * y,
    "copy_": lambda x, y: (x * 1).copy_(y[0]),
    "cat": lambda x, y: lucid.cat([x, y, x], dim=1) * 2,
    "matmul": lambda x, y: x @ y.t(),
    "matmul_t": lambda x, y: x.t() @ y,
    "chain": lambda x, y: ((x @ y.t()).exp() + 1).sum(0),
}


def result(f, dtype, device):
    lucid.manual_seed(5)
    x, y = ((lucid.rand(33, 70) - 0.5).to(dtype).to(device).requires_grad_() for _ in range(2))
    z = f(x, y)
    (z * z).sum().backward()
    return z, [t.grad for t in (x, y) if t.grad is not None]


@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64, lucid.float16, lucid.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_like_the_cpu(name, dtype):
    ours, our_grads = result(FUNCTIONS[name], dtype, "cuda")
    cpu, cpu_grads = result(FUNCTIONS[name], dtype, "cpu")
    rtol = {lucid.float64: 1e-10, lucid.float32: 2e-5}.get(dtype, 4e-2)
    assert ours.device.type == "cuda" and len(our_grads) == len(cpu_grads)
    for a, b in [(ours, cpu), *zip(our_grads, cpu_grads)]:
        assert a.shape == b.shape and a.dtype == b.dtype
        atol = rtol * max(1.0, b.float().abs().max().item())  # sums of large and small terms: relative to the largest
        lucid.testing.assert_close(a.cpu().float(), b.float(), rtol=rtol, atol=atol)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_conversions(dtype):
    x = lucid.tensor([0.0, 1.0, 2.5, 7.0, 100.0])
    there = x.cuda().to(getattr(lucid, dtype))
    assert there.cpu().tolist() == x.to(getattr(lucid, dtype)).tolist()
    assert there.to(lucid.float32).cpu().tolist() == x.to(getattr(lucid, dtype)).to(lucid.float32).tolist()


def test_integer_matmul_takes_the_plain_kernel():
    a, b = lucid.arange(12).reshape(3, 4), lucid.arange(20).reshape(4, 5)
    assert (a.cuda() @ b.cuda()).cpu().tolist() == (a @ b).tolist()


def test_devices_do_not_mix():
    x = lucid.ones(3)
    with pytest.raises(lucid.DeviceMismatch):
        x.cuda() + x
    assert (x.cuda() + lucid.tensor(2.0)).cpu().tolist() == [3.0, 3.0, 3.0]  # a 0-d CPU tensor joins


def test_missing_kernels_are_refused_by_name():
    with pytest.raises(NotImplementedError, match="uint8 on cuda"):
        image = lucid.ones(1, 1, 2, 2, dtype=lucid.uint8).cuda()
        lucid.nn.functional.interpolate(image, scale_factor=2, mode="bilinear")


def test_memory_is_reused():
    before = lucid.memory_stats("cuda")["allocated_bytes"]
    for _ in range(100):
        lucid.ones(1 << 20, device="cuda").exp()
    assert lucid.memory_stats("cuda")["allocated_bytes"] == before


def test_pinned_memory():
    x = lucid.arange(12.0).reshape(3, 4).t()
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and pinned.stride() == x.stride()
    assert pinned.tolist() == x.tolist() and pinned.pin_memory() is pinned
    assert pinned.to("cuda").cpu().tolist() == x.tolist()
    assert lucid.zeros(3, pin_memory=True).is_pinned() and lucid.tensor([1.0, 2.0], pin_memory=True).is_pinned()
    assert lucid.empty(0, pin_memory=True).is_pinned()
    with pytest.raises(RuntimeError, match="pin"):
        lucid.zeros(2, device="cuda").pin_memory()
