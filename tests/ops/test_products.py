"""Matrix products of sizes that reach every path of the kernels and their edges, in all layouts, against PyTorch in float64.

"values" in the names: `make isa-test` runs these for every instruction set.
"""

import itertools

import numpy as np
import pytest
import torch

import lucid

SIZES = [
    (1, 1, 100_003), (1, 700, 600), (700, 1, 600), (3, 50, 300), (50, 3, 300), (5, 5, 5), (8, 48, 7), (9, 49, 17), (14, 32, 31),
    (15, 33, 300), (16, 200, 520), (17, 97, 257), (29, 131, 64), (64, 64, 64), (113, 95, 40), (130, 129, 513), (200, 300, 257),
    (333, 65, 600), (1040, 250, 270), (301, 2090, 130), (60, 2090, 80), (2, 3, 0),
]  # fmt: skip
LAYOUTS = ["plain", "transposed", "stepped"]
LIMIT = {"float32": 3e-6, "float64": 1e-14}


def laid_out(values, layout):
    """The same matrix in memory of another layout: (Lucid's tensor)."""
    if layout == "transposed":
        return lucid.tensor(values.t().contiguous().numpy()).t()
    if layout == "stepped":
        wide = torch.zeros(values.shape[0], 2 * values.shape[1], dtype=values.dtype)
        wide[:, ::2] = values
        return lucid.tensor(wide.numpy())[:, ::2]
    return lucid.tensor(values.numpy())


def close(ours, exact, k, dtype):
    error = (torch.from_numpy(ours.numpy()).double() - exact).abs().max().item() if exact.numel() else 0
    return error <= LIMIT[dtype] * max(k, 1) ** 0.5 * 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, n, k", SIZES)
def test_values_of_products(m, n, k, dtype):
    torch.manual_seed(m + n + k)
    a, b = (torch.randn(shape, dtype=getattr(torch, dtype)) for shape in ((m, k), (k, n)))
    c = torch.randn(m, n, dtype=a.dtype)
    exact = a.double() @ b.double()
    for one, two in itertools.product(LAYOUTS, LAYOUTS):
        x, y = laid_out(a, one), laid_out(b, two)
        assert close(x @ y, exact, k, dtype), (one, two)
        for layout in LAYOUTS:
            out = laid_out(torch.zeros(m, n, dtype=a.dtype), layout)
            lucid.mm(x, y, out=out)
            assert close(out, exact, k, dtype), (one, two, layout)
    z = lucid.tensor(c.numpy())
    assert close(lucid.addmm(z, x, y, beta=0.5, alpha=2), 0.5 * c.double() + 2 * exact, 4 * k + 4, dtype)
    assert close(z.addmm_(x, y), c.double() + exact, 4 * k + 4, dtype)
    relu = lucid.nn.functional.fused_linear(x, y.t(), z[0], "relu", 0.5, z)
    ours = torch.from_numpy(z.numpy()).double()
    assert close(relu, torch.relu(0.5 * exact + ours[0]) + ours, 4 * k + 4, dtype)


@pytest.mark.parametrize(
    "batch, m, n, k", [(300, 3, 3, 3), (50, 9, 17, 5), (3, 150, 160, 170), (9, 128, 130, 64), (4, 1, 60, 50)]
)
def test_values_of_batches(batch, m, n, k):
    torch.manual_seed(1)
    a, b = torch.randn(batch, m, k), torch.randn(batch, k, n)
    x, y = lucid.tensor(a.numpy()), lucid.tensor(b.numpy())
    exact = a.double() @ b.double()
    assert close(x @ y, exact, k, "float32")
    transposed = lucid.tensor(b.transpose(1, 2).contiguous().numpy()).transpose(1, 2)
    assert close(x @ transposed, exact, k, "float32")
    assert close(x @ y[:1], a.double() @ b[:1].double(), k, "float32")
    assert close(lucid.baddbmm(y[:, :1, :1], x, y, beta=2, alpha=0.5), 2 * b[:, :1, :1].double() + exact / 2, 4 * k, "float32")


def test_products_are_the_same_for_any_number_of_threads():
    before = lucid.get_num_threads()
    try:
        for m, n, k in ((300, 310, 320), (500, 510, 300), (16, 1024, 512), (1024, 16, 300), (120, 130, 140), (700, 1, 700)):
            a, b = lucid.randn(m, k), lucid.randn(k, n)
            results = []
            for threads in (1, 2, 5):
                lucid.set_num_threads(threads)
                results.append((a @ b).numpy().tobytes())
            assert len(set(results)) == 1, (m, n, k)
    finally:
        lucid.set_num_threads(before)


@pytest.mark.parametrize("shapes", [((16, 8), (2, 8, 16)), ((2, 4, 8), (2, 8, 16)), ((8, 16), (16, 8)), ((2, 4, 8), (8, 16))])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_grouped_mm(shapes, dtype):
    both = all(len(shape) == 3 for shape in shapes)
    made = []
    for m in (torch, lucid):
        operands = [m.tensor(np.arange(np.prod(s)).reshape(s) % 7 - 3.0, dtype=getattr(m, dtype)) for s in shapes]
        operands = [t.requires_grad_() for t in operands]
        offs = None if both else m.tensor([4, 16], dtype=m.int32)
        y = m.nn.functional.grouped_mm(*operands, offs=offs)
        y.backward(m.ones(y.shape, dtype=y.dtype).contiguous())
        made.append([t.detach().float().numpy() for t in (y, *(t.grad for t in operands))])
    for mine, theirs in zip(made[1], made[0], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-2 if dtype == "bfloat16" else 1e-5)


def test_grouped_mm_behind_the_last_group_and_refused():
    f, a, b = lucid.nn.functional.grouped_mm, lucid.ones(6, 4), lucid.ones(2, 4, 3)
    offs = lucid.tensor([1, 4], dtype=lucid.int32)
    assert f(a, b, offs=offs)[4:].count_nonzero() == 0
    calls = [
        {},
        {"offs": offs.long()},
        {"offs": offs[:1]},
        {"offs": offs.flip(0)},
        {"offs": offs + 3},
        {"offs": offs, "bias": a},
    ]
    for wrong in calls:
        with pytest.raises(RuntimeError):
            f(a, b, **wrong)
