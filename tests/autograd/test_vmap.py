"""vmap through the call path: elementwise ops on the whole batch, any other op by its rule or example by example."""

import pickle
import warnings

import pytest
import torch

import lucid

FUNCTIONS = {
    "add": lambda x, w: x + w,
    "mul_number": lambda x, w: x * 2.5,
    "exp_mul": lambda x, w: x.exp() * w,
    "sum": lambda x, w: (x * w).sum(),
    "sum_dim": lambda x, w: x.sum(0),
    "matmul": lambda x, w: x @ w,
    "where": lambda x, w: (x > 0) * w + x,
    "lower_rank": lambda x, w: x[0] + w,
    "mean_dims": lambda x, w: (x * w).mean((0, -1), keepdim=True),
    "amax_all": lambda x, w: (x - w).amax(),
    "prod_all": lambda x, w: (x * 0.5 + w).prod(),
    "max_dim": lambda x, w: (x * w).max(-1).values,
    "var": lambda x, w: x.var(0, correction=0) + w.std(),
    "aminmax": lambda x, w: (x + w).aminmax(dim=1, keepdim=True).max,
    "argmax": lambda x, w: x * (x * w).argmax() + (x - w).argmin(dim=0, keepdim=True),
    "argmax_keepdim": lambda x, w: x + (x * w).argmax(keepdim=True),
    "pow": lambda x, w: x**2 + (w + 1) ** 0.5,
    "clamp": lambda x, w: x.clamp(-0.5, 0.5).clamp_min(w),
    "add_alpha": lambda x, w: x.add(w, alpha=3).sub(w, alpha=2),
    "gelu": lambda x, w: torch_like(x).nn.functional.gelu(x, approximate="tanh") + w.square(),
    "masked_fill": lambda x, w: x.masked_fill(w > 0.3, 2.0),
    "lerp": lambda x, w: x.lerp(w, 0.25).lerp(w, w),
    "view_dtype": lambda x, w: x + w.view(torch_like(w).int32).sum() * 0,
}


def torch_like(x):
    return lucid if isinstance(x, lucid.Tensor) else torch


@pytest.mark.filterwarnings("ignore:.*vmap")
@pytest.mark.parametrize("dims", [(0, None), (1, None), (None, 0), (-1, 1)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_torch(name, dims):
    results = []
    for m in (lucid, torch):
        w_shape = (3, 3) if dims[1] is None else (3, 3, 3)
        x_shape = (3, 3) if dims[0] is None else (3, 3, 3)
        x = (m.arange(3 ** len(x_shape)).reshape(x_shape) * 0.1 - 1).requires_grad_()
        w = m.arange(3 ** len(w_shape)).reshape(w_shape) * 0.05
        y = m.vmap(FUNCTIONS[name], in_dims=dims)(x, w)
        (y * y).sum().backward()
        results.append((y, x.grad))
    (y, g), (ty, tg) = results
    torch.testing.assert_close(torch.tensor(y.tolist()), ty.detach())
    torch.testing.assert_close(torch.tensor(g.tolist()), tg)


def test_nested_and_out_dims():
    x = lucid.arange(24.0).reshape(2, 3, 4)
    f = lucid.vmap(lucid.vmap(lambda r: r * 2, in_dims=0), in_dims=1, out_dims=2)
    t = torch.vmap(torch.vmap(lambda r: r * 2, in_dims=0), in_dims=1, out_dims=2)
    assert f(x).tolist() == t(torch.arange(24.0).reshape(2, 3, 4)).tolist()


def test_result_without_batch_is_expanded():
    assert lucid.vmap(lambda x: lucid.ones(2))(lucid.zeros(3, 1)).tolist() == [[1.0, 1.0]] * 3


def test_bad_input():
    with pytest.raises(ValueError):
        lucid.vmap(lambda x, y: x + y)(lucid.ones(2), lucid.ones(3))
    with pytest.raises(IndexError):
        lucid.vmap(lambda x: x, in_dims=2)(lucid.ones(2))
    with pytest.raises(NotImplementedError):
        lucid.vmap(lambda x: x.index_add_(0, lucid.tensor([0]), x))(lucid.ones(2, 1))
    assert (lucid.ones(2) + 1).tolist() == [2.0, 2.0]  # no level is left open


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.tolist(),
        lambda x: x[0].item(),
        lambda x: bool(x[0] > 1),
        lambda x: float(x[0]),
        lambda x: x.numpy(),
        lambda x: memoryview(x),
        lambda x: pickle.dumps(x),
        lambda x: x.__dlpack__(),
    ],
)
def test_values_of_a_batch_cannot_be_read(read):
    with pytest.raises(RuntimeError, match="vmap"):
        lucid.func.vmap(lambda x: (read(x), x)[1])(lucid.ones(4, 3))


PRODUCTS = {  # by the sizes of the operands of one example
    "mm": ((3, 4), (4, 5)),
    "bmm": ((2, 3, 4), (2, 4, 5)),
    "mv": ((3, 4), (4,)),
    "dot": ((4,), (4,)),
    "matmul": ((3, 4), (4, 5)),
}


@pytest.mark.parametrize("in_dims", [(0, 0), (1, None), (None, -1)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, in_dims):
    """Values and gradients."""
    results = []
    for m in (torch, lucid):
        m.manual_seed(0)
        shapes = []
        for shape, d in zip(PRODUCTS[name], in_dims):
            shape = list(shape)
            shape.insert(len(shape) + 1 + d if d is not None and d < 0 else d or 0, 6) if d is not None else None
            shapes.append(shape)
        a, b = (m.randn(shape).requires_grad_() for shape in shapes)
        y = m.func.vmap(getattr(m, name), in_dims)(a, b)
        results.append([t.tolist() for t in (y, *m.autograd.grad((y * y).sum(), (a, b)))])
    for ours, theirs in zip(*results):
        assert torch.allclose(torch.tensor(ours), torch.tensor(theirs), rtol=1e-4, atol=1e-4)


def test_products_refuse_other_shapes():
    for name, shapes in PRODUCTS.items():
        if name != "matmul":
            with pytest.raises(RuntimeError):
                lucid.vmap(getattr(lucid, name))(lucid.ones(2, 3, 3, 3, 3), lucid.ones(2, 3, 3, 3, 3))
            with pytest.raises(RuntimeError):
                lucid.vmap(getattr(lucid, name))(lucid.ones(2, *shapes[0]), lucid.ones(2, *(7 for _ in shapes[1])))


# --- rules: no call runs once per example, and values and gradients are those of the examples one by one ---
NN = lucid.nn.functional
INDEX = lucid.tensor([[0, 2, 1, 1], [3, 0, 2, 2], [1, 1, 0, 3], [2, 3, 3, 0]])
RULES = {
    "softmax": lambda x, w: x.softmax(0) + NN.log_softmax(w, -1),
    "scans": lambda x, w: x.cumsum(0) * w.cumprod(-1) + x.cummax(1).values + w.logcumsumexp(-2),
    "sorts": lambda x, w: x.sort(-1).values + w.sort(0, descending=True).values + x.argsort(0),
    "order statistics": lambda x, w: x.topk(2, 0).values.sum(0) + w.kthvalue(3).values + x.median(-1).values,
    "flip, roll": lambda x, w: x.flip(0, -1) + w.roll((1, 2), (0, 1)) + x.roll(3),
    "gather, scatter": lambda x, w: x.gather(1, INDEX) + x.scatter(0, INDEX, w) + w.scatter_add(-1, INDEX, x),
    "scatter a number": lambda x, w: x.scatter(1, INDEX[:, :1], 2.5) + w,
    "index of values": lambda x, w: w[(x[0] > 0).long()] + x[INDEX[0]],
    "index in the middle": lambda x, w: w.reshape(2, 2, 4)[:, (x[0] > 0).long()] + x.reshape(2, 2, 4)[:, INDEX[0] % 2],
    "indices apart": lambda x, w: x.reshape(2, 2, 4)[(w[0] > 0).long(), :, INDEX[0]]
    + w.view(2, 2, 4)[INDEX[0] % 2, :, INDEX[1]],
    "indices that broadcast": lambda x, w: x[(w[0] > 0).long()[:, None], INDEX[0]] + w[INDEX[0], (x[1] > 0).long()],
    "index_select": lambda x, w: x.index_select(1, INDEX[0]) + w.index_fill(0, INDEX[0, :1], 2.0),
    "cat, stack": lambda x, w: lucid.cat([x, w], 1).sum() * lucid.stack([w, x, w], -1).sum(-1),
    "norms": lambda x, w: x / x.norm() + w.norm(dim=-1, keepdim=True) + NN.normalize(x, dim=0) + x.logsumexp(0),
    "linear": lambda x, w: NN.linear(x, w) + NN.linear(x, w, x[0]) + NN.linear(x[1], w, w[1]),
    "addmm": lambda x, w: lucid.addmm(x, w, x, beta=0.5, alpha=2) + lucid.addmm(w[0], x, w),
    "conv2d": lambda x, w: NN.conv2d(x.reshape(1, 2, 2, 4), w.reshape(4, 2, 1, 2), w[0], padding=(0, 1)),
    "conv2d, groups": lambda x, w: NN.conv2d(x.reshape(2, 2, 2, 2), w.reshape(4, 1, 2, 2), groups=2, stride=2),
    "conv1d": lambda x, w: NN.conv1d(x, w.reshape(2, 4, 2)),
    "pools": lambda x, w: NN.max_pool2d(x[None], 2) + NN.avg_pool2d(w[None], 2) + NN.adaptive_avg_pool2d(x[None], 2),
    "interpolate": lambda x, w: NN.interpolate((x + w)[None, None], scale_factor=2, mode="bilinear"),
    "embedding": lambda x, w: NN.embedding(INDEX, x) + NN.embedding((w > 0).long(), x + w),
    "layer norms with weights": lambda x, w: NN.layer_norm(x, (4,), w[0], w[1]) + NN.group_norm(x[None], 2, w[0], w[1])[0],
    "layer norms": lambda x, w: NN.layer_norm(x, (4,)) + NN.rms_norm(w, (4,)) + NN.group_norm(x[None], 2)[0],
    "batch norm": lambda x, w: NN.batch_norm(x, w[0].detach(), w[1].detach().abs() + 1, x[2], w[3]),
    "batch norm, training": lambda x, w: NN.batch_norm(x, None, None, w[0], training=True),
    "attention": lambda x, w: NN.scaled_dot_product_attention(x[None], w[None], x[None]),
    "attention, causal": lambda x, w: NN.scaled_dot_product_attention(x[None], w[None], (x + w)[None], is_causal=True),
    "attention, mask": lambda x, w: NN.scaled_dot_product_attention(x[None], x[None], w[None], attn_mask=w > 0.1),
    "cross_entropy": lambda x, w: NN.cross_entropy(x, INDEX[0]) * NN.cross_entropy(w, (x[0] > 0).long(), reduction="sum"),
    "cross_entropy, weights": lambda x, w: NN.cross_entropy(x + w, INDEX[0], INDEX[0] + 1.0, ignore_index=2),
    "cross_entropy, smooth": lambda x, w: NN.cross_entropy(x + w, INDEX[0], INDEX[0] + 1.0, label_smoothing=0.1),
    "cross_entropy, none": lambda x, w: NN.cross_entropy(x[None] * w, INDEX[:1], reduction="none"),
    "one prediction": lambda x, w: NN.cross_entropy(x[0] * w[0], INDEX[0, 1]),
    "pad, tril": lambda x, w: NN.pad(x, (1, 0, 2, 1))[2:6, 1:] + w.tril() + x.triu(1),
    "repeat": lambda x, w: x.repeat(2, 1, 1).sum(0) + w.repeat(1, 1),
    "factories": lambda x, w: lucid.zeros_like(x) + lucid.ones_like(w) * x + x.new_zeros(4) + w.new_full((1,), 2.0) * w,
    "masked_fill": lambda x, w: x.masked_fill(w > 0, 2.0) + w.masked_fill(x > 0, -1.0),
    "similarity": lambda x, w: NN.cosine_similarity(x, w) + NN.glu(x)[:, 0],
    "cross": lambda x, w: lucid.linalg.cross(x[:, :3], w[:, 1:]),
    "no dropout": lambda x, w: NN.dropout(x, 0.0) * NN.dropout(w, 0.5, training=False),
}  # fmt: skip


def ones_by_one(f, x, w, dims):
    count = x.shape[0] if dims[0] == 0 else w.shape[0]
    return lucid.stack([f(x[i] if dims[0] == 0 else x, w[i] if dims[1] == 0 else w) for i in range(count)])


@pytest.mark.parametrize("dims", [(0, None), (None, 0), (0, 0)])
@pytest.mark.parametrize("name", RULES)
def test_rules(name, dims):
    generator, found = lucid.Generator().manual_seed(3), []
    x, w = (lucid.randn(*(5, 4, 4)[dims[k] is None :], generator=generator) for k in range(2))
    for run in (lambda *a: lucid.vmap(RULES[name], in_dims=dims)(*a), lambda *a: ones_by_one(RULES[name], *a, dims)):
        mine = [t.clone().requires_grad_() for t in (x, w)]
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*batching rule")
            y = run(*mine)
        lucid.manual_seed(0)
        grads = lucid.autograd.grad((y * lucid.randn(y.shape)).sum(), mine, allow_unused=True)
        found.append([y, *(lucid.zeros(1) if g is None else g for g in grads)])
    for ours, theirs in zip(*found):
        lucid.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_rules_inside_rules():
    x, w = lucid.randn(2, 3, 4, 4), lucid.randn(3, 4, 4)
    for name in ("softmax", "linear", "conv2d", "index of values", "attention", "batch norm", "cross_entropy", "embedding"):
        f = RULES[name]
        nested = lucid.vmap(lucid.vmap(f), in_dims=(0, None))(x, w)
        wanted = lucid.stack([lucid.stack([f(x[i, j], w[j]) for j in range(3)]) for i in range(2)])
        lucid.testing.assert_close(nested, wanted, rtol=1e-4, atol=1e-5)


def test_writes_in_place():
    def f(x, w):
        y = x.clone()
        y[0] = 1
        y[1:3, 0] = w[0, :2]
        y.add_(w).mul_(2).clamp_(max=3)
        y[:, 3].zero_()
        y[3].copy_(w[1])
        return y.masked_fill_(w > 1, 0)

    x, w = lucid.randn(5, 4, 4), lucid.randn(5, 4, 4)
    assert lucid.equal(lucid.vmap(f)(x, w), ones_by_one(f, x, w, (0, 0)))
    assert lucid.equal(lucid.vmap(f, in_dims=(0, None))(x, w[0]), ones_by_one(f, x, w[0], (0, None)))
    with pytest.raises(lucid.LucidError, match="add_ is not possible in place"):
        lucid.vmap(lambda a, b: a.add_(b), in_dims=(None, 0))(x[0], w)
    with pytest.raises(lucid.LucidError, match="not possible in place"):
        lucid.vmap(lambda a, b: a[0].add_(b))(x, w)
    written = x.clone()
    assert lucid.equal(lucid.vmap(lambda a: a.add_(1))(written), x + 1) and lucid.equal(written, x + 1)
    grad = x.clone().requires_grad_()
    lucid.vmap(f)(grad, w).sum().backward()
    alone = x.clone().requires_grad_()
    ones_by_one(f, alone, w, (0, 0)).sum().backward()
    assert lucid.equal(grad.grad, alone.grad)


def test_an_ensemble_of_networks():
    nets = [
        lucid.nn.Sequential(lucid.nn.Conv2d(1, 2, 3), lucid.nn.ReLU(), lucid.nn.Flatten(), lucid.nn.Linear(8, 3))
        for _ in range(3)
    ]
    params, buffers = lucid.func.stack_module_state(nets)
    x = lucid.randn(5, 1, 4, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = lucid.vmap(lambda p, b: lucid.func.functional_call(nets[0], (p, b), (x,)))(params, buffers)
    lucid.testing.assert_close(y, lucid.stack([net(x) for net in nets]))


WRONG = {
    "linear": lambda x: NN.linear(x, x[:, :3]),
    "linear, bias": lambda x: NN.linear(x, x, x[0, :3]),
    "embedding": lambda x: NN.embedding(INDEX, x[0]),
    "addmm": lambda x: lucid.addmm(x, x[0], x),
    "conv2d": lambda x: NN.conv2d(x[None, None], x[None]),
    "softmax": lambda x: x.softmax(2),
    "flip": lambda x: x.flip(-3),
    "cat": lambda x: lucid.cat([x, x[0]], 0),
    "gather": lambda x: x.gather(0, INDEX[0]),
    "index": lambda x: x[INDEX[:3, :2], INDEX[:2]],
    "cross_entropy": lambda x: NN.cross_entropy(x, INDEX[0, :3]),
    "layer_norm": lambda x: NN.layer_norm(x, (4,), x),
    "batch_norm": lambda x: NN.batch_norm(x[0], None, None, training=True),
}


@pytest.mark.parametrize("size", [3, 0])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_of_an_example(name, size):
    with pytest.raises((RuntimeError, ValueError, IndexError, TypeError)):
        lucid.vmap(WRONG[name])(lucid.ones(size, 4, 4))
    assert (lucid.ones(2) + 1).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("name", RULES)
def test_no_examples(name):
    """An error, or no result; nothing else."""
    try:
        assert lucid.vmap(RULES[name])(lucid.ones(0, 4, 4), lucid.ones(0, 4, 4)).shape[0] == 0
    except (RuntimeError, ValueError, IndexError):
        pass
