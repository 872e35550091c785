"""vmap through the call path: elementwise ops on the whole batch, any other op by its rule or example by example."""

import pickle

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
        lucid.vmap(lambda x: x.add_(1))(lucid.ones(2))
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
