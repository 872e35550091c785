"""Derivatives as functions (lucid.func): values, structure and what is recorded of the results, as PyTorch has them."""

import warnings

import pytest
import torch

import lucid
from tests.nn.programs import assert_close, attempt, plain


def sizes(m):
    return m.tensor([0.3, -1.2, 2.0]), m.tensor([1.0, 0.5, -0.7]), m.tensor([1.0, 2.0, 3.0], requires_grad=True)


def without_recording(m, x, y, w):
    with m.no_grad():
        f = m.func
        return (
            f.grad(lambda w: (w**3).sum())(w),
            f.jacrev(m.sin)(w),
            f.hessian(lambda w: (w**3).sum())(x),
            f.jvp(m.sin, (x,), (y,)),
        )


def constant_inside(m, x, y, w):
    def f(x):
        with m.no_grad():
            c = (x * x).sum()
        return (x * c).sum() - c

    return m.func.grad(f)(x)


def through_a_closure(m, x, y, w):
    m.func.grad(lambda x: (x * w * w).sum())(x).sum().backward()
    return w.grad


def vjps(m, x, y, w):
    pair, back = m.func.vjp(lambda x: (x.sin(), x.cos()), x)
    _, back_two = m.func.vjp(lambda a, b: a @ b, m.ones(2, 3), m.ones(3, 2))
    value, back_aux, aux = m.func.vjp(lambda x: (x * x, x + 1), x, has_aux=True)
    return pair, back((y, y)), back_two(m.ones(2, 2)), value, back_aux(y), aux, m.vmap(back_aux)(m.eye(3))


def linear(m, x, y, w):
    value, forward = m.func.linearize(lambda x: x.sin(), x)
    return value, forward(y), forward(x)


def per_example_gradients(m, x, y, w):
    layer = m.nn.Linear(3, 1)
    with m.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.fill_(0.1)
    own = dict(layer.named_parameters())
    cut = {name: p.detach() for name, p in own.items()}

    def loss(parameters, x, t):
        return m.nn.functional.mse_loss(m.func.functional_call(layer, parameters, (x,)), t)

    rows, targets, f = m.arange(6.0).reshape(2, 3), m.ones(2, 1), m.func.grad(loss)
    return f(own, rows, targets), f(cut, rows, targets), m.vmap(f, in_dims=(None, 0, 0))(cut, rows, targets)


def batches(m, x, y, w):
    rows, f = m.arange(6.0).reshape(2, 3), m.func
    return [
        m.vmap(f.grad(lambda w, x: (w * x).tanh().sum()), in_dims=(None, 0))(y, rows),
        m.vmap(lambda x: f.grad(lambda w: (w * w).sum())(x) * 2)(rows),
        m.vmap(f.jacrev(m.sin))(rows),
        m.vmap(m.vmap(f.grad(lambda x: x**3)))(rows),
        m.vmap(lambda a, b: f.jvp(m.sin, (a,), (b,)))(rows, rows),
        m.vmap(f.grad(lambda x: (x**3).sum()), in_dims=1, out_dims=1)(rows),
        m.vmap(lambda x, scale=4.0: x * scale)(rows, scale=rows),
    ]


def examples_from_a_closure(m, x, y, w):
    """What is differentiated has no batch, or that of one vmap of two; the function reads examples that are no arguments."""
    rows, others, f = m.arange(12.0).reshape(4, 3) / 10, m.arange(6.0).reshape(2, 3) / 7, m.func

    def nested(of):
        return m.vmap(lambda u: m.vmap(lambda v: f.grad(lambda c: (u * v * c).sin().sum())(of(u, v)))(rows))(others)

    return [
        m.vmap(lambda v: f.grad_and_value(lambda c: (v * c).sin().sum())(y))(rows),
        m.vmap(lambda v: f.grad(lambda c: f.grad(lambda d: (v * c * d).sin().sum())(y).sum())(x))(rows),
        f.grad(lambda c: m.vmap(lambda v: f.grad(lambda d: (v * c * d).sin().sum())(y))(rows).sum())(x),
        m.vmap(lambda v: f.grad(lambda p: ((v * p["c"]).sin().sum(), v), has_aux=True)({"c": y}))(rows),
        m.vmap(lambda u: m.vmap(f.grad(lambda c, v: (u * v * c).sin().sum()), in_dims=(None, 0))(y, rows))(others),
        m.vmap(lambda u: m.vmap(lambda v: f.grad(lambda c: (u * c).sin().sum())(y))(rows))(others),
        *(nested(of) for of in (lambda u, v: y, lambda u, v: u, lambda u, v: v, lambda u, v: u + v)),
    ]


PROGRAMS = {
    "grad": lambda m, x, y, w: m.func.grad(lambda x: (x.sin() * y).sum())(x),
    "twice": lambda m, x, y, w: m.func.grad(m.func.grad(lambda x: x**3))(m.tensor(2.0)),
    "argnums": lambda m, x, y, w: m.func.grad(lambda x, y: (x * y * y).sum(), argnums=(0, 1))(x, y),
    "last argument": lambda m, x, y, w: m.func.grad(lambda x, y: (x * y * y).sum(), argnums=-1)(x, y),
    "aux": lambda m, x, y, w: m.func.grad(lambda x: ((x * y).sum(), x * 2), has_aux=True)(x),
    "value": lambda m, x, y, w: m.func.grad_and_value(lambda x: (x * y).sum())(x),
    "value and aux": lambda m, x, y, w: m.func.grad_and_value(lambda x: ((x * y).sum(), {"a": x}), has_aux=True)(x),
    "dict": lambda m, x, y, w: m.func.grad(lambda p: (p["w"] * x).sum() * p["b"])({"w": y, "b": m.tensor(2.0)}),
    "closure": lambda m, x, y, w: m.func.grad(lambda x: (x * w * w).sum())(x),
    "recorded argument": lambda m, x, y, w: m.func.grad(lambda w: (w**3).sum())(w),
    "unused": lambda m, x, y, w: m.func.grad(lambda x, y: y.sum())(x, y),
    "constant": lambda m, x, y, w: m.func.grad(lambda x: m.tensor(3.0))(x),
    "closure of the outer one": lambda m, x, y, w: m.func.grad(lambda x: m.func.grad(lambda y: (x * y * y).sum())(y).sum())(x),
    "jvp": lambda m, x, y, w: m.func.jvp(lambda a, b: a * b, (x, y), (y, x)),
    "jvp and aux": lambda m, x, y, w: m.func.jvp(lambda a: (a * a, a), (x,), (y,), has_aux=True),
    "jacrev": lambda m, x, y, w: m.func.jacrev(m.sin)(x),
    "jacrev of trees": lambda m, x, y, w: m.func.jacrev(lambda x, y: (x * y.sum(), {"k": x @ y}), argnums=(0, 1))(x, y),
    "jacrev and aux": lambda m, x, y, w: m.func.jacrev(lambda x: (x * x, x.sum()), has_aux=True)(x),
    "jacfwd": lambda m, x, y, w: m.func.jacfwd(lambda x, y: x * y**2, argnums=1)(x, y),
    "jacfwd of two": lambda m, x, y, w: m.func.jacfwd(lambda x, y: x * y**2, argnums=(0, 1))(x, y),
    "hessian": lambda m, x, y, w: m.func.hessian(lambda x: (x.sin() * x).sum())(x),
    "hessian of two": lambda m, x, y, w: m.func.hessian(lambda x, y: (x * y * y).sum(), argnums=(0, 1))(x, y),
    "jacobian of a jacobian": lambda m, x, y, w: m.func.jacrev(m.func.jacrev(m.sin))(x),
    **{f.__name__: f for f in (without_recording, constant_inside, through_a_closure, vjps, linear)},
    **{f.__name__: f for f in (per_example_gradients, batches, examples_from_a_closure)},
}


@pytest.mark.filterwarnings("ignore:.*vmap")
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    ours, theirs = (PROGRAMS[name](m, *sizes(m)) for m in (lucid, torch))
    assert_close(plain(ours), plain(theirs))


REFUSED = [
    lambda m, x, y: m.func.grad(lambda x: x)(x),
    lambda m, x, y: m.func.grad(lambda x: 3)(x),
    lambda m, x, y: m.func.grad(lambda x: x.sum(), argnums=1)(x),
    lambda m, x, y: m.func.grad(lambda x: x.sum(), argnums=(0, 0))(x),
    lambda m, x, y: m.func.grad(lambda x: x.sum(), has_aux=True)(x),
    lambda m, x, y: m.func.grad(lambda x, y: x.sum() * y, argnums=1)(x, 2.0),
    lambda m, x, y: m.func.vjp(m.sin, x)[1](m.ones(2)),
    lambda m, x, y: m.func.jvp(m.sin, x, x),
    lambda m, x, y: m.func.jvp(m.sin, (x,), (m.ones(2),)),
    lambda m, x, y: m.func.jacrev(m.sin, chunk_size=0),
    lambda m, x, y: m.func.jacfwd(m.sin, randomness="none")(x),
]


@pytest.mark.parametrize("program", REFUSED)
def test_what_is_refused(program):
    ours, theirs = (attempt(lambda m: program(m, *sizes(m)[:2]), m) for m in (lucid, torch))
    assert ours == theirs and isinstance(theirs, str)


def test_gradients_of_every_example():
    """vmap(grad): all at once, like one by one; a parameter without a batch has a gradient per example."""
    net = lucid.nn.Sequential(
        lucid.nn.Conv2d(1, 2, 3), lucid.nn.ReLU(), lucid.nn.Flatten(), lucid.nn.Linear(32, 6), lucid.nn.LayerNorm(6),
        lucid.nn.Tanh(), lucid.nn.Linear(6, 3),
    )  # fmt: skip
    params = {name: p.detach() for name, p in net.named_parameters()}
    x, labels = lucid.randn(4, 1, 6, 6), lucid.tensor([0, 2, 1, 1])

    def loss(params, x, label):
        y = lucid.func.functional_call(net, params, (x[None],))
        return lucid.nn.functional.cross_entropy(y, label[None]), y[0]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grads, (values, outputs) = lucid.vmap(lucid.func.grad_and_value(loss, has_aux=True), (None, 0, 0))(params, x, labels)
    for i in range(4):
        grad, (value, output) = lucid.func.grad_and_value(loss, has_aux=True)(params, x[i], labels[i])
        lucid.testing.assert_close(values[i], value)
        lucid.testing.assert_close(outputs[i], output)
        for name in params:
            lucid.testing.assert_close(grads[name][i], grad[name], rtol=1e-4, atol=1e-5)


def test_gradients_of_examples_that_cannot_run_together():
    def f(x):
        y = x * 1
        if y.sum() > 0:  # read for every example
            return (y * y).sum()
        return y.index_add_(0, lucid.tensor([0]), x[:1]).sum()

    x = lucid.tensor([[1.0, 2.0], [-3.0, 1.0]])
    assert lucid.vmap(lucid.func.grad(f))(x).tolist() == [[2.0, 4.0], [2.0, 1.0]]
    w = lucid.tensor(2.0, requires_grad=True)  # recorded by the caller: gradients can be differentiated
    y = lucid.vmap(lucid.func.grad(lambda v: (w * v**3).sum()))(x)
    assert lucid.autograd.grad(y.sum(), w)[0].item() == (3 * x**2).sum().item()
    nested = lucid.vmap(lucid.vmap(lucid.func.grad(lambda v: v**3)))(x)
    assert lucid.equal(nested, 3 * x**2) and lucid.equal(
        lucid.vmap(lucid.func.hessian(lambda v: (v**3).sum()))(x)[0].diagonal(), 6 * x[0]
    )
    with pytest.raises(RuntimeError, match="scalar tensor"):
        lucid.vmap(lucid.func.grad(lambda v: v))(x)
    cubes = lambda v: (lucid.func.grad(lambda c: (c**3).sum())(v) * float(v.sum() > 0)).sum()  # noqa: E731  read again
    assert lucid.vmap(lucid.func.grad(cubes))(x).tolist() == [[6.0, 12.0], [0.0, 0.0]]
    for other in (lucid.func.jacrev, lucid.func.jacfwd, lucid.func.hessian):  # never zeros
        with pytest.raises(NotImplementedError, match="give them as arguments"):
            lucid.vmap(lambda v, other=other: other(lambda c: (v * c * c).sum())(x[0]))(x)
