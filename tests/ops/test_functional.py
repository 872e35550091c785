"""autograd.functional against PyTorch's: values, forms, what requires grad, errors."""

import pytest
import torch

import lucid

NAMES = ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"]


def square(x):
    return x * x * x


def weighted(x):
    return (x.exp() * x).sum(dim=1)


def pair(x, y):
    return x * y, (x + y * y).sum()


def total(x):
    return (x * x * x).sum()


def joint(x, y):
    return (x * x * y).sum() + (y * y * y).sum()


def half_used(x, y):
    return (x * x * x).sum()


def linear(x):
    return x.sum() * 2


def constant(x):
    return x.detach().sum()


def to_torch(value):
    if isinstance(value, tuple):
        return tuple(to_torch(v) for v in value)
    return (
        torch.tensor(value.tolist(), dtype=torch.float64).reshape(tuple(value.shape))
        if isinstance(value, lucid.Tensor)
        else value
    )


def both(values):
    """The same inputs for both libraries."""
    if isinstance(values, tuple):
        pairs = [both(v) for v in values]
        return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    return lucid.tensor(values, dtype=lucid.float64), torch.tensor(values, dtype=torch.float64)


def compare(got, want, history):
    assert isinstance(got, tuple) == isinstance(want, (tuple, list))  # PyTorch's forward mode returns lists
    if isinstance(got, tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            compare(g, w, history)
        return
    assert tuple(got.shape) == tuple(want.shape)
    assert got.requires_grad == want.requires_grad or not history
    torch.testing.assert_close(to_torch(got), want.detach())


def run_both(name, func, inputs, *args, **kwargs):
    ours, theirs = both(inputs)
    vs = [both(a) for a in args]
    got = getattr(lucid.autograd.functional, name)(func, ours, *(v[0] for v in vs), **kwargs)
    want = getattr(torch.autograd.functional, name)(func, theirs, *(v[1] for v in vs), **kwargs)
    compare(got, want, history=not kwargs.get("vectorize"))  # vectorized, PyTorch records zeros and detaches less


A, B = [1.0, 2.0, -3.0], [0.5, -1.0, 2.0]
M = [[0.1, 0.2, 0.3], [-0.4, 0.5, 0.6]]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize(
    "func, inputs", [(square, A), (weighted, M), (pair, (A, B)), (total, A), (linear, A), (half_used, (A, B))]
)
def test_jacobian(func, inputs, create_graph, vectorize):
    run_both("jacobian", func, inputs, create_graph=create_graph, vectorize=vectorize)


@pytest.mark.parametrize("func, inputs", [(square, A), (weighted, M), (pair, (A, B)), (half_used, (A, B))])
def test_jacobian_forward_mode(func, inputs):
    run_both("jacobian", func, inputs, vectorize=True, strategy="forward-mode")


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("func, inputs", [(total, A), (total, M), (joint, (A, B)), (half_used, (A, B)), (linear, A)])
def test_hessian(func, inputs, create_graph):
    run_both("hessian", func, inputs, create_graph=create_graph)


@pytest.mark.parametrize("func, inputs", [(total, A), (joint, (A, B))])
def test_hessian_forward_over_reverse(func, inputs):
    run_both("hessian", func, inputs, vectorize=True, outer_jacobian_strategy="forward-mode")


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "func, inputs, v",
    [(square, A, B), (weighted, M, [1.0, -2.0]), (pair, (A, B), (B, 2.0)), (total, A, None), (half_used, (A, B), None)],
)
def test_vjp(func, inputs, v, create_graph):
    run_both("vjp", func, inputs, *([] if v is None else [v]), create_graph=create_graph)


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "func, inputs, v",
    [(square, A, B), (weighted, M, M), (pair, (A, B), (B, A)), (total, 2.0, None), (half_used, (A, B), (B, A))],
)
def test_jvp(func, inputs, v, create_graph):
    run_both("jvp", func, inputs, *([] if v is None else [v]), create_graph=create_graph)


@pytest.mark.parametrize("name", ["vhp", "hvp"])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    "func, inputs, v", [(total, A, B), (joint, (A, B), (B, A)), (total, 2.0, None), (linear, A, B), (half_used, (A, B), (B, A))]
)
def test_hessian_products(name, func, inputs, v, create_graph):
    run_both(name, func, inputs, *([] if v is None else [v]), create_graph=create_graph)


def test_results_can_be_differentiated():
    x = lucid.tensor(A, dtype=lucid.float64, requires_grad=True)
    j = lucid.autograd.functional.jacobian(total, x, create_graph=True)
    (g,) = lucid.autograd.grad(j.sum(), x)
    assert g.tolist() == [6 * a for a in A]


def test_inputs_and_grad_mode_are_left_alone():
    x = lucid.tensor(A, requires_grad=True)
    with lucid.no_grad():
        j = lucid.autograd.functional.jacobian(square, x)
        assert not lucid.is_grad_enabled()
    assert j.shape == (3, 3) and not j.requires_grad and x.grad is None


STRICT = [
    ("vjp", constant, A, "does not require grad"),
    ("jvp", constant, A, "does not require grad"),
    ("jacobian", half_used, (A, B), "independent of input 1"),
    ("vjp", half_used, (A, B), "independent of input 1"),
    ("jvp", half_used, (A, B), "independent of input 1"),
    ("hessian", linear, A, "jacobian of the user-provided function with respect to input 0 is independent"),
    ("vhp", linear, A, "jacobian of the user-provided function with respect to input 0 is independent"),
    ("hvp", linear, A, "jacobian of the user-provided function with respect to input 0 is independent"),
]


@pytest.mark.parametrize("name, func, inputs, message", STRICT)
def test_strict(name, func, inputs, message):
    ours, theirs = both(inputs)
    v = [] if name in ("jacobian", "hessian", "vjp") else [inputs]
    for library, given, vs in ((lucid, ours, [both(x)[0] for x in v]), (torch, theirs, [both(x)[1] for x in v])):
        with pytest.raises(RuntimeError, match=message):
            getattr(library.autograd.functional, name)(func, given, *vs, strict=True)


BAD = [
    ("vjp", square, A, [[1.0, 2.0]], RuntimeError, "v has invalid size"),
    ("vjp", pair, (A, B), [(A,)], RuntimeError, "v is a tuple of invalid length"),
    ("vjp", square, A, [], RuntimeError, "v can only be None"),
    ("jvp", square, A, [], RuntimeError, "v can only be None"),
    ("hessian", square, A, [], RuntimeError, "should contain a single element"),
    ("hessian", pair, (A, B), [], RuntimeError, "should return a single Tensor"),
    ("vhp", square, A, [A], RuntimeError, "should contain a single element"),
    ("hvp", pair, (A, B), [(A, B)], RuntimeError, "should return a single Tensor"),
    ("jacobian", lambda x: 3.0, A, [], TypeError, "must be either a Tensor or a tuple of Tensors"),
]


@pytest.mark.parametrize("name, func, inputs, args, error, message", BAD)
def test_bad_input(name, func, inputs, args, error, message):
    ours, theirs = both(inputs)
    for k, (library, given) in enumerate(((lucid, ours), (torch, theirs))):
        with pytest.raises(error, match=message):
            getattr(library.autograd.functional, name)(func, given, *(both(a)[k] for a in args))


@pytest.mark.parametrize(
    "options, error",
    [
        ({"strategy": "sideways"}, AssertionError),
        ({"strategy": "forward-mode"}, NotImplementedError),
        ({"strategy": "forward-mode", "vectorize": True, "create_graph": True}, NotImplementedError),
        ({"strategy": "forward-mode", "vectorize": True, "strict": True}, RuntimeError),
        ({"vectorize": True, "strict": True}, RuntimeError),
    ],
)
def test_options_that_do_not_go_together(options, error):
    ours, theirs = both(A)
    for library, x in ((lucid, ours), (torch, theirs)):
        with pytest.raises(error):
            library.autograd.functional.jacobian(square, x, **options)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_must_be_tensors(name):
    for library in (lucid, torch):
        with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors"):
            getattr(library.autograd.functional, name)(square, [1.0, 2.0])
