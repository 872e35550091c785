"""Attention beyond the samples: second gradients of the fused kernel, thread counts, memory, long sequences."""

import numpy as np
import pytest
import torch

import lucid

attention = lucid.nn.functional.scaled_dot_product_attention


def both(*shapes, grad=False, dtype=np.float32):
    values = [np.random.default_rng(len(shapes) + i).standard_normal(s).astype(dtype) for i, s in enumerate(shapes)]
    ours, theirs = [lucid.tensor(v) for v in values], [torch.tensor(v) for v in values]
    if grad:
        for t in ours + theirs:
            t.requires_grad_()
    return ours, theirs


def formula(q, k, v, causal):
    """PyTorch's own kernel has no second gradient; its formula does."""
    k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -float("inf"))
    return torch.softmax(s, -1) @ v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [2, 1])
def test_second_gradients(causal, heads):
    ours, theirs = both((2, 2, 5, 4), (2, heads, 6, 4), (2, heads, 6, 3), grad=True, dtype=np.float64)
    a = attention(*ours, is_causal=causal, enable_gqa=True)
    b = formula(*theirs, causal)
    first, wanted = (m.autograd.grad((y * y).sum(), x, create_graph=True) for m, y, x in ((lucid, a, ours), (torch, b, theirs)))
    second, expected = (
        m.autograd.grad(sum((g * g).sum() for g in gs), x) for m, gs, x in ((lucid, first, ours), (torch, wanted, theirs))
    )
    for x, y in zip((*first, *second), (*wanted, *expected)):
        np.testing.assert_allclose(np.array(x.detach()), y.detach().numpy(), rtol=1e-8, atol=1e-9)


def test_gradients_of_gradients_by_differences():
    ours, _ = both((1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 2), grad=True, dtype=np.float64)
    mask = lucid.tensor([[True, False, True, True], [True] * 4, [False, True, True, False]])
    assert lucid.autograd.gradcheck(lambda *t: attention(*t, mask), ours)
    assert lucid.autograd.gradgradcheck(lambda *t: attention(*t, mask), ours)


@pytest.mark.parametrize("shape", [(2, 3, 200, 32), (1, 1, 333, 20)])
def test_threads_agree(shape):
    ours, theirs = both(shape, shape, shape, grad=True)
    seen = []
    before = lucid.get_num_threads()
    try:
        for n in (1, 2, 3):
            lucid.set_num_threads(n)
            y = attention(*ours, is_causal=True)
            seen.append([np.array(t.detach()) for t in (y, *lucid.autograd.grad((y * y).sum(), ours))])
    finally:
        lucid.set_num_threads(before)
    for other in seen[1:]:
        for a, b in zip(seen[0], other):
            assert (a == b).all()
    y = torch.nn.functional.scaled_dot_product_attention(*theirs, is_causal=True)
    for a, b in zip(seen[0], (y, *torch.autograd.grad((y * y).sum(), theirs))):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=2e-5, atol=2e-5)


def test_no_matrix_of_all_queries_by_all_keys():
    n = 4096
    ours, theirs = both((1, 1, n, 16), (1, 1, n, 16), (1, 1, n, 16), grad=True)
    lucid.reset_peak_memory_stats()
    before = lucid.memory_stats()["allocated_bytes"]
    attention(*ours).sum().backward()
    assert lucid.memory_stats()["peak_bytes"] - before < 16 * n * 16 * 4  # operands and gradients; n * n would be 64 MB
    torch.nn.functional.scaled_dot_product_attention(*theirs).sum().backward()
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(np.array(a.grad), b.grad.numpy(), rtol=1e-3, atol=1e-5)
