"""Activation checkpoints beside PyTorch's."""

import functools
import warnings

import pytest
import torch
import torch.utils.checkpoint

import lucid
from lucid.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential


def gradients(m, how):
    m.manual_seed(0)
    net = m.nn.Sequential(m.nn.Linear(4, 8), m.nn.Dropout(0.5), m.nn.Tanh(), m.nn.Linear(8, 2))
    x = m.rand(3, 4, requires_grad=True)
    y = net(x) if how is None else m.utils.checkpoint.checkpoint(net, x, use_reentrant=how)
    y.square().sum().backward()
    m.utils.checkpoint.checkpoint_sequential(net, 2, x, use_reentrant=bool(how)).sum().backward()
    return [*(p.grad.tolist() for p in net.parameters()), x.grad.tolist(), m.rand(1).tolist()]


@pytest.mark.parametrize("how", [True, False])
def test_gradients_and_random_numbers(how):
    ours = gradients(lucid, how)
    assert ours == gradients(lucid, None)
    for a, b in zip(ours, gradients(torch, how), strict=True):
        assert torch.allclose(torch.tensor(a), torch.tensor(b), rtol=1e-5, atol=1e-6)


def test_memory_is_not_kept():
    def work(x):
        for _ in range(20):
            x = x.sin()
        return x

    def held(run):
        x = lucid.ones(100_000, requires_grad=True)
        before = lucid.memory_stats()["allocated_bytes"]
        y = run(x)
        after = lucid.memory_stats()["allocated_bytes"]
        y.sum().backward()
        return after - before, x.grad

    plain, gradient = held(work)
    small, again = held(lambda x: checkpoint(work, x, use_reentrant=False))
    assert small < plain / 5 and lucid.equal(gradient, again)


def test_second_derivatives_nested_and_retained():
    x = lucid.ones(3, requires_grad=True)

    def inner(x):
        return checkpoint(lambda v: v.exp() * v, x, use_reentrant=False).sin()

    def value(run):
        y = run(x).sum()
        (g,) = lucid.autograd.grad(y, x, create_graph=True)
        (gg,) = lucid.autograd.grad(g.sum(), x)
        return g.tolist(), gg.tolist()

    expected = value(lambda x: (x.exp() * x).sin())
    assert value(inner)[0] == pytest.approx(expected[0], rel=1e-6)
    found = value(lambda x: checkpoint(inner, x, use_reentrant=False))
    assert found[0] == pytest.approx(expected[0], rel=1e-6) and found[1] == pytest.approx(expected[1], rel=1e-5)
    y = checkpoint(inner, x, use_reentrant=False).sum()
    first = lucid.autograd.grad(y, x, retain_graph=True)[0]
    assert lucid.equal(first, lucid.autograd.grad(y, x)[0])


def test_keywords_contexts_and_no_grad():
    entered = []

    class Context:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *_):
            pass

    x = lucid.ones(2, requires_grad=True)
    y = checkpoint(
        lambda x, *, scale: x.sin() * scale, x, use_reentrant=False, context_fn=lambda: (Context("a"), Context("b")), scale=3.0
    )
    assert entered == ["a"]
    y.sum().backward()
    assert entered == ["a", "b"]
    with lucid.no_grad():
        assert not checkpoint(lambda x: x.sin(), x, use_reentrant=False).requires_grad


def test_autocast_comes_back():
    seen = []

    def work(x):
        y = x @ x
        seen.append(y.dtype)
        return y.float().sin()

    x = lucid.rand(3, 3, requires_grad=True)
    with lucid.autocast("cpu", dtype=lucid.bfloat16):
        y = checkpoint(work, x, use_reentrant=False)
    y.sum().backward()
    assert seen[0] == lucid.bfloat16 and set(seen) == {lucid.bfloat16}


def test_errors():
    x = lucid.ones(2, requires_grad=True)
    turns = []

    def changes(x):
        turns.append(1)
        return (x.sin() if len(turns) == 1 else x.view(2, 1).sin().view(2)).exp()

    y = checkpoint(changes, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="was"):
        y.sum().backward()

    def fewer(x):
        turns.append(1)
        return x.sin().sin() if len(turns) == 1 else x.sin()

    turns.clear()
    with pytest.raises(CheckpointError, match="2 tensors at first and 1"):
        checkpoint(fewer, x, use_reentrant=False).sum().backward()
    with pytest.raises(ValueError, match="keyword"):
        checkpoint(lambda x, a: x, x, use_reentrant=True, a=1)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda x: x, x, use_reentrant=False, determinism_check="some")
    with pytest.raises(NotImplementedError, match="debug"):
        checkpoint(lambda x: x, x, use_reentrant=False, debug=True)
    with pytest.raises(ValueError, match="segments"):
        checkpoint_sequential([lucid.sin], 2, x, use_reentrant=False)
    with pytest.warns(UserWarning, match="use_reentrant"):
        checkpoint(lambda x: x.sin(), x)
    with warnings.catch_warnings(), pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: 1 / 0, x, use_reentrant=False)


# ---- selective ----


def selective(choose, **settings):
    return functools.partial(lucid.utils.checkpoint.create_selective_checkpoint_contexts, choose, **settings)


def all_saved(ctx, op, *args, **kwargs):
    return lucid.utils.checkpoint.CheckpointPolicy.MUST_SAVE


def all_on_the_cpu(ctx, op, *args, **kwargs):
    return lucid.utils.checkpoint.CheckpointPolicy.PREFER_CPU_OFFLOAD


def none_saved(ctx, op, *args, **kwargs):
    return lucid.utils.checkpoint.CheckpointPolicy.PREFER_RECOMPUTE


ATEN = lucid.ops.aten
POLICIES = [
    [ATEN.addmm.default, ATEN.mm.default, ATEN.bmm.default],
    [ATEN._scaled_dot_product_flash_attention_for_cpu.default, ATEN._softmax.default],
    [ATEN.native_dropout.default],
    [ATEN.native_layer_norm.default, ATEN.gelu.default, ATEN.add.Tensor],
    all_saved,
    all_on_the_cpu,
    none_saved,
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: getattr(p, "__name__", str(p)))
def test_selective_gradients(policy):
    nn, F = lucid.nn, lucid.nn.functional
    lucid.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, 8, bias=False))
    w, x = nn.Parameter(lucid.randn(2, 8, 8)), lucid.randn(3, 4, requires_grad=True)

    def work(x):
        h = net(x)
        h = h + F.scaled_dot_product_attention(h[None], h[None], h[None], dropout_p=0.2)[0]
        h = F.dropout(h, 0.3)
        return (lucid.stack([h, h]) @ w + lucid.einsum("ij,bjk->bik", h, w)).softmax(-1).chunk(2, -1)[1].pow(2).sum()

    def gradients(run):
        lucid.manual_seed(1)
        return lucid.autograd.grad(run(), [*net.parameters(), w, x]), lucid.rand(1).item()

    plain, after = gradients(lambda: work(x))
    ours, also_after = gradients(lambda: checkpoint(work, x, use_reentrant=False, context_fn=selective(policy)))
    assert all(lucid.equal(a, b) for a, b in zip(plain, ours, strict=True)) and after == also_after


def test_what_is_saved_is_not_computed_again():
    w, x = lucid.randn(4, 4, requires_grad=True), lucid.randn(3, 4, requires_grad=True)
    run = lambda x: ((x @ w).exp() @ w).sin()  # noqa: E731
    products = []
    for choice in ([ATEN.mm.default], [ATEN.exp.default], []):
        y = checkpoint(run, x, use_reentrant=False, context_fn=selective(choice)).sum()
        with lucid.profiler.profile() as run_again:
            y.backward()
        names = [event.name for event in run_again.events()]
        products.append([sum(name.endswith(op) for name in names) for op in ("::exp", "::mm", "::sin")])
    assert [p[0] for p in products] == [1, 0, 1] and products[1][1] == products[2][1] == products[0][1] + 2


def test_a_saved_result_does_not_keep_the_inputs():
    def held(choice):
        x, w = lucid.ones(1000, 100, requires_grad=True), lucid.ones(100, 1)
        before = lucid.memory_stats()["allocated_bytes"]
        context = {"context_fn": selective(choice)}
        y = checkpoint(lambda x: x.exp().sin().cos() @ w, x, use_reentrant=False, **context)
        size = lucid.memory_stats()["allocated_bytes"] - before
        y.sum().backward()
        return size

    assert held([ATEN.mm.default]) < 20_000 < 400_000 <= held([ATEN.sin.default])


def test_policies_are_asked_as_pytorchs():
    seen = {}
    for m in (torch, lucid):
        asked = seen[m] = []

        def policy(ctx, op, *args, asked=asked, m=m, **kwargs):
            if str(op).split(".")[1] in ("mm", "exp", "add", "sum"):
                asked.append((ctx.is_recompute, str(op), len(args)))
            return m.utils.checkpoint.CheckpointPolicy.MUST_SAVE

        contexts = functools.partial(m.utils.checkpoint.create_selective_checkpoint_contexts, policy)
        x = m.ones(2, 2, requires_grad=True)
        work = lambda x: (x.mm(x).exp() + 1).sum(0)  # noqa: E731
        m.utils.checkpoint.checkpoint(work, x, use_reentrant=False, context_fn=contexts, early_stop=False).sum().backward()
    assert seen[lucid][:4] == seen[torch][:4] and all(again for again, _, _ in seen[lucid][4:])


def test_policies_are_asked_about_functions_of_functions():
    asked = []

    def policy(ctx, op, *args, **kwargs):
        asked.append(str(op))
        return lucid.utils.checkpoint.CheckpointPolicy.MUST_SAVE

    attention, table = lucid.nn.MultiheadAttention(4, 2), lucid.nn.Embedding(5, 4)
    keys = lucid.tensor([[0], [3]])

    def work(keys):
        return attention(*[table(keys)] * 3, need_weights=False)[0].square().sum()

    parameters = [*attention.parameters(), *table.parameters()]
    plain = lucid.autograd.grad(work(keys), parameters)
    ours = lucid.autograd.grad(checkpoint(work, keys, use_reentrant=False, context_fn=selective(policy)), parameters)
    assert all(lucid.equal(a, b) for a, b in zip(plain, ours, strict=True))
    assert "aten.embedding.default" in asked and any("attention" in op or "bmm" in op for op in asked)
    assert "aten.addmm.default" in asked and not any("multi_head" in op for op in asked)


def test_selective_refusals():
    x = lucid.ones(2, 2, requires_grad=True)
    y = checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=selective([ATEN.mm.default])).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        y.backward()

    def writes(x):
        y = x @ x
        z = y.exp()
        y.detach().zero_()
        return z.exp()

    with pytest.raises(RuntimeError, match="mutated"):
        checkpoint(writes, x, use_reentrant=False, context_fn=selective([ATEN.mm.default])).sum().backward()
    context = selective([ATEN.mm.default], allow_cache_entry_mutation=True)
    checkpoint(writes, x, use_reentrant=False, context_fn=context).sum().backward()
    create = lucid.utils.checkpoint.create_selective_checkpoint_contexts
    for wrong, error in (([ATEN.mm], ValueError), (["mm"], ValueError), (3, TypeError)):
        with pytest.raises(error):
            create(wrong)
