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


def heads_of(m, t, dtype, **kwargs):
    """multi_head_attention_forward of module m, with tensors t by name."""
    given = {k: m.tensor(v) if m is lucid else torch.tensor(v) for k, v in t.items()}
    for k in given:
        if given[k].is_floating_point() and "mask" not in k:
            given[k].requires_grad_()
    same = kwargs.pop("same", None)
    if same:
        given["key"] = given["query"] if same == "all" else given["key"]
        given["value"] = given["key"]
    m.manual_seed(7)
    defaults = dict.fromkeys(("in_proj_weight", "in_proj_bias", "bias_k", "bias_v", "out_proj_bias"))
    arguments = defaults | {"num_heads": 2, "add_zero_attn": False, "dropout_p": 0.0} | given | kwargs
    out, weights = m.nn.functional.multi_head_attention_forward(embed_dim_to_check=6, **arguments)
    leaves = list({id(x): x for x in given.values() if x.requires_grad}.values())
    total = (out * out).sum() + (0 if weights is None else (weights * weights).sum())
    grads = m.autograd.grad(total, leaves, allow_unused=True)
    return [None if x is None else np.array(x.detach()) for x in (out, weights, *grads)]


def arrays(rng, **shapes):
    return {k: rng.random(s) < 0.3 if k.endswith("mask_bool") else rng.standard_normal(s) for k, s in shapes.items()}


ATTENTION_CASES = {
    "plain": ({}, {}),
    "biases": ({"in_proj_bias": (18,), "out_proj_bias": (6,)}, {}),
    "self": ({"in_proj_bias": (18,)}, {"same": "all"}),
    "encoder-decoder": ({"in_proj_bias": (18,)}, {"same": "value"}),
    "bias_kv": ({"bias_k": (1, 1, 6), "bias_v": (1, 1, 6), "attn_mask": (4, 5)}, {"add_zero_attn": True}),
    "zero": ({"key_padding_mask": (3, 5)}, {"add_zero_attn": True}),
    "mask 3d": ({"attn_mask": (6, 4, 5)}, {}),
    "both masks": ({"attn_mask": (4, 5), "key_padding_mask": (3, 5)}, {}),
    "static": ({"static_k": (6, 7, 3), "static_v": (6, 7, 3)}, {}),
    "dropout": ({}, {"dropout_p": 0.3}),
    "no dropout": ({}, {"dropout_p": 0.3, "training": False}),
    "per head": ({}, {"average_attn_weights": False}),
    "separate": (
        {"q_proj_weight": (6, 6), "k_proj_weight": (6, 8), "v_proj_weight": (6, 4), "in_proj_bias": (18,),
         "key": (5, 3, 8), "value": (5, 3, 4), "in_proj_weight": None},
        {"use_separate_proj_weight": True},
    ),
    "unbatched": (
        {"query": (4, 6), "key": (5, 6), "value": (5, 6), "key_padding_mask": (5,), "attn_mask": (2, 4, 5)}, {},
    ),
    "causal": ({"key": (4, 3, 6), "value": (4, 3, 6), "attn_mask": (4, 4)}, {"is_causal": True}),
}  # fmt: skip


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("case", ATTENTION_CASES)
def test_multi_head_attention(case, need_weights):
    shapes, options = ATTENTION_CASES[case]
    shapes = {
        "query": (4, 3, 6), "key": (5, 3, 6), "value": (5, 3, 6), "in_proj_weight": (18, 6), "out_proj_weight": (6, 6)
    } | shapes  # fmt: skip
    t = arrays(np.random.default_rng(3), **{k: s for k, s in shapes.items() if s})
    if case == "causal":
        t["attn_mask"] = np.where(np.tril(np.ones((4, 4))) > 0, 0.0, -np.inf)
    options = options | {"need_weights": need_weights}
    for a, b in zip(heads_of(lucid, t, "float64", **options), heads_of(torch, t, "float64", **options)):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


def test_multi_head_attention_bool_masks_and_refusals():
    rng = np.random.default_rng(3)
    t = arrays(rng, query=(4, 3, 6), key=(5, 3, 6), value=(5, 3, 6), in_proj_weight=(18, 6), out_proj_weight=(6, 6))
    masks = {"attn_mask": np.triu(np.ones((4, 5), bool), 2), "key_padding_mask": np.array([[False] * 4 + [True]] * 3)}
    for need in (True, False):
        for a, b in zip(*(heads_of(m, t | masks, "float64", need_weights=need) for m in (lucid, torch))):
            assert a is None or np.allclose(a, b)
    for wrong in (
        {"num_heads": 4},
        {"attn_mask": np.ones((3, 5))},
        {"attn_mask": np.ones((2, 4, 5))},
        {"key_padding_mask": np.ones((2, 5))},
        {"bias_k": np.ones((1, 1, 6))},
        {"static_k": np.ones((5, 7, 3))},
        {"value": np.ones((4, 3, 6))},
        {"query": np.ones((4, 6))},
        {"query": np.ones((4, 3, 8))},
        {"in_proj_weight": None},
        {"use_separate_proj_weight": True},
        {"is_causal": True},
    ):
        tensors = {k: v for k, v in (t | wrong).items() if isinstance(v, np.ndarray)}
        options = {k: v for k, v in wrong.items() if not isinstance(v, np.ndarray)}
        with pytest.raises((AssertionError, RuntimeError)) as theirs:
            heads_of(torch, tensors, "float64", **options)
        with pytest.raises(type(theirs.value)):
            heads_of(lucid, tensors, "float64", **options)


# --- rotary positions ---
ROTARY = {
    "heads": ((2, 3, 5, 8), (5, 8), None),
    "transposed": ((2, 5, 3, 8), (2, 1, 5, 8), (1, 2)),
    "a row": ((4,), (4,), None),
    "rows": ((7, 6), (7, 6), None),
    "empty": ((0, 2, 3, 4), (3, 4), None),
}


def turned(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + lucid.cat([-x[..., half:], x[..., :half]], -1) * sin


@pytest.mark.parametrize("name", ROTARY)
@pytest.mark.parametrize("dtype", [lucid.float32, lucid.float64, lucid.bfloat16, lucid.float16])
def test_rotary_is_the_formula(name, dtype):
    """Values, layout and gradients, on the GPU too; in float32 on the CPU bit for bit."""
    size, angles, moved = ROTARY[name]
    given = [lucid.randn(*shape, dtype=dtype) for shape in (size, angles, angles)]
    devices, sides = ["cpu"] + ["cuda"] * lucid.cuda.is_available(), []
    for op, device in ((turned, "cpu"), *((lucid._C._rotary, device) for device in devices)):
        x, cos, sin = (t.to(device).detach().requires_grad_() for t in given)
        y = op(x.transpose(*moved) if moved else x, cos, sin)
        (y * y).sum().backward()
        sides.append((y.stride(), [t.detach().cpu().double() for t in (y, x.grad, cos.grad, sin.grad)]))
    strides, expected = sides[0]
    for i, (stride, found) in enumerate(sides[1:]):
        assert stride == strides
        for a, b in zip(found, expected):
            assert lucid.allclose(a, b, rtol=0, atol=4 * lucid.finfo(dtype).eps * (float(b.abs().max()) if b.numel() else 1))
        assert i or dtype is not lucid.float32 or lucid.equal(found[0], expected[0])


def test_rotary_in_transforms_and_refusals():
    op, x, angles = lucid._C._rotary, lucid.randn(3, 2, 4, 8), lucid.randn(3, 4, 8)
    assert lucid.allclose(lucid.vmap(op)(x, angles, angles), turned(x, angles[:, None], angles[:, None]))
    assert lucid.allclose(lucid.vmap(op, (0, None, None))(x, angles[0], angles[0]), turned(x, angles[0], angles[0]))
    doubles = [t.double().requires_grad_() for t in (x[0], angles[0], angles[0])]
    assert lucid.autograd.gradcheck(op, doubles) and lucid.autograd.gradgradcheck(op, doubles)
    for wrong in ((x[..., :7], angles, angles), (x, angles[..., :4], angles), (x, angles.double(), angles), (x[None], x, x)):
        with pytest.raises(lucid.ShapeMismatch, match="_rotary"):
            op(*wrong)
