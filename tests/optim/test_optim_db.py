"""Every configuration of every optimizer in PyTorch's own database, over 25 steps from the same parameters."""

import copy
import math
import warnings

import pytest
import torch
from torch.testing._internal.common_optimizers import optim_db

import lucid
from tests.oracle import of_torch

SHAPES = [(3, 4), (5,), (), (2, 3, 2)]
CASES = [(info, i) for info in optim_db for i, _ in enumerate(info.optim_inputs_func(device="cpu"))]


def parameters(info, dtype=torch.float64):
    """Parameters of several shapes (matrices alone for Muon)."""
    torch.manual_seed(0)
    shapes = [(3, 4), (6, 2)] if info.optim_cls.__name__ == "Muon" else SHAPES
    theirs = [torch.randn(s, dtype=dtype).requires_grad_() for s in shapes]
    mine = [of_torch(p.detach()).requires_grad_() for p in theirs]
    return mine, theirs


def alike(value, made):
    """Parameters in any structure as Lucid's; what is the same object stays the same."""
    if isinstance(value, torch.Tensor):
        mine = of_torch(value.detach().to_dense())
        return made.setdefault(id(value), (mine.to_sparse() if value.is_sparse else mine).requires_grad_())
    if isinstance(value, dict):
        return {k: alike(v, made) for k, v in value.items()}
    return type(value)(alike(v, made) for v in value) if isinstance(value, (list, tuple)) else value


def settings(kwargs):
    """A configuration as Lucid takes it."""
    return {k: convert(v) for k, v in kwargs.items() if k != "params"}


def convert(value):
    if isinstance(value, torch.Tensor):
        return of_torch(value)
    return type(value)(convert(v) for v in value) if isinstance(value, (tuple, list)) else value


def loss_of(params):
    return sum(((p - 0.3 * i) ** 2).sum() + (p * 1.5).sin().sum() for i, p in enumerate(params))


def run(optimizer, params, steps=25):
    """The losses of some steps; the third parameter has no gradient in the first two."""
    losses = []
    for step in range(steps):

        def closure(step=step):
            optimizer.zero_grad()
            loss = loss_of(params)
            loss.backward()
            if step < 2 and len(params) > 2:
                params[2].grad = None
            if isinstance(optimizer, (torch.optim.SparseAdam, lucid.optim.SparseAdam)):
                for p in params:
                    p.grad = None if p.grad is None else p.grad.to_sparse()
            return loss

        losses.append(float(optimizer.step(closure)))
    return losses


def assert_near(mine, theirs, rtol=1e-9):
    for a, b in zip(mine, theirs):
        torch.testing.assert_close(torch.tensor(a.tolist(), dtype=b.dtype).reshape(b.shape), b.detach(), rtol=rtol, atol=rtol)


def comparable(value):
    """State of either library as plain data."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        return {k: comparable(v) for k, v in value.items()}
    return [comparable(v) for v in value] if isinstance(value, (list, tuple)) else value


def near(a, b, rtol):
    if isinstance(a, dict):
        return set(a) == set(b) and all(near(a[k], b[k], rtol) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(near(x, y, rtol) for x, y in zip(a, b))
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return abs(a - b) <= rtol * max(1, abs(b)) or (a != a and b != b)
    return a == b


def attempt(make, *args):
    try:
        return make(*args)
    except Exception as error:  # noqa: BLE001 (whatever PyTorch raises is the specification)
        return next(k for k in (AssertionError, TypeError, ValueError, RuntimeError) if isinstance(error, k))


def tolerance(info):
    return 2e-2 if info.optim_cls.__name__ == "Muon" else 1e-6 if info.optim_cls.__name__ in ("ASGD", "NAdam") else 1e-8


@pytest.mark.few(per=lambda info, i: info.name)
@pytest.mark.parametrize(("info", "i"), CASES, ids=[f"{info.name}-{i}" for info, i in CASES])
def test_configuration(info, i):
    kwargs = info.optim_inputs_func(device="cpu")[i].kwargs
    kind, rtol = getattr(lucid.optim, info.optim_cls.__name__), tolerance(info)
    mine, theirs = parameters(info)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = attempt(lambda: (o := info.optim_cls(theirs, **kwargs), run(o, theirs)))
        if isinstance(expected, type):
            with pytest.raises(expected):
                run(kind(mine, **settings(kwargs)), mine)
            return
        optimizer = kind(mine, **settings(kwargs))
        losses = run(optimizer, mine)
    assert near(losses, expected[1], max(rtol, 1e-8))
    assert_near(mine, theirs, rtol)
    reference = expected[0]
    assert near(comparable(optimizer.state_dict()["state"]), comparable(reference.state_dict()["state"]), rtol)
    groups = [
        [{k: comparable(v) for k, v in g.items()} for g in o.state_dict()["param_groups"]] for o in (optimizer, reference)
    ]
    assert groups[0] == groups[1]
    assert repr(optimizer) == repr(reference).replace("torch.", "lucid.")
    taken_up(info, kind, kwargs, optimizer, mine, reference, theirs, rtol)


def taken_up(info, kind, kwargs, optimizer, mine, reference, theirs, rtol):
    """PyTorch's state dict loads, and training goes on as PyTorch's does; so does a copy."""
    state = reference.state_dict()
    given = {
        "state": {k: {n: convert(v) for n, v in s.items()} for k, s in state["state"].items()},
        "param_groups": [{k: convert(v) for k, v in g.items()} for g in state["param_groups"]],
    }  # fmt: skip
    fresh = [p.detach().clone().requires_grad_() for p in mine]
    other = kind(fresh, **settings(kwargs))
    other.load_state_dict(given)
    copied = copy.deepcopy(optimizer)
    copies = [p for g in copied.param_groups for p in g["params"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for o, params in ((other, fresh), (copied, copies), (reference, theirs)):
            run(o, params, 4)
    assert_near(fresh, theirs, rtol)
    assert_near(copies, theirs, rtol)


@pytest.mark.few(per=lambda info: info.name)
@pytest.mark.parametrize("info", optim_db, ids=lambda info: info.name)
def test_bad_settings(info):
    for bad in info.optim_error_inputs_func(device="cpu", dtype=torch.float64):
        params, kind = bad.optimizer_error_input.params, getattr(lucid.optim, info.optim_cls.__name__)
        given = alike([torch.ones(2, 2)] if params is None else params, {})
        expects = pytest.warns if issubclass(bad.error_type, Warning) else pytest.raises
        with expects(bad.error_type):
            o = kind(given, **settings(bad.optimizer_error_input.kwargs))
            if bad.error_on.name != "CONSTRUCTION_ERROR":
                o.param_groups[0]["params"][0].grad = lucid.ones_like(o.param_groups[0]["params"][0])
                o.step()


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"]
)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(name, dtype):
    options = {"momentum": 0.9, "weight_decay": 0.1} if name == "SGD" else {"weight_decay": 0.1} if name != "Rprop" else {}
    torch.manual_seed(1)
    start = [torch.randn(s, dtype=getattr(torch, dtype)) for s in ((3, 4), (5,))]
    sides = []
    for m, params in ((lucid, [of_torch(p) for p in start]), (torch, [p.clone() for p in start])):
        params = [p.requires_grad_() for p in params]
        optimizer = getattr(m.optim, name)(params, lr=0.01, **options)
        for _ in range(20):
            optimizer.zero_grad()
            total = sum((p.abs() ** 2).sum() + 0.3 * (p * p).real.sum() if p.is_complex() else (p**2).sum() for p in params)
            total.backward()
            optimizer.step()
        sides.append(params)
    assert_near(*sides, rtol=1e-9 if dtype == "complex128" else 1e-5)


def test_sparse_adam():
    def trained(m, sparse):
        e = m.ones(3, 2, dtype=m.float64, requires_grad=True)
        o = m.optim.SparseAdam([e], lr=0.1)
        for i in range(5):
            grad = m.full((3, 2), 0.5 + i, dtype=m.float64)
            e.grad = grad.to_sparse() if sparse else grad
            o.step()
        return e.tolist()

    assert near(trained(lucid, False), trained(torch, True), 1e-12)


def test_differentiable():
    def meta(m):
        lr = m.tensor(0.1, dtype=m.float64)
        start = m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True)
        p = start.clone()
        o = m.optim.SGD([p], lr=float(lr), momentum=0.9, differentiable=True)
        for _ in range(3):
            (p.grad,) = m.autograd.grad(((p * 1.0) ** 3).sum(), p, create_graph=True)
            o.step()
        p.sum().backward()
        return start.grad.tolist()

    assert near(meta(lucid), meta(torch), 1e-12)


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_hooks_and_groups(m):
    a, b = m.zeros(2, requires_grad=True), m.zeros(3, requires_grad=True)
    o, seen = m.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1), []
    handles = [
        o.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre") if args == (o,) and kwargs == {} else None),
        o.register_step_post_hook(lambda *x: seen.append("post")),
        o.register_state_dict_pre_hook(lambda *x: seen.append("state pre")),
        o.register_state_dict_post_hook(lambda o, s: seen.append("state post")),
        o.register_load_state_dict_pre_hook(lambda o, s: seen.append("load pre")),
        o.register_load_state_dict_post_hook(lambda o: seen.append("load post")),
    ]
    a.grad, b.grad = m.ones(2), m.ones(3)
    o.step()
    o.load_state_dict(o.state_dict())
    for h in handles:
        h.remove()
    o.step()
    assert seen == ["pre", "post", "state pre", "state post", "load pre", "load post"]
    assert [round(v, 6) for v in (a.tolist() + b.tolist())] == [-0.2, -0.2, -1.0, -1.0, -1.0]
    for bad in ([], [3], {a: 1}.values().__class__, a):
        with pytest.raises((TypeError, ValueError)):
            m.optim.SGD(bad, lr=0.1)
    with pytest.raises(ValueError):
        m.optim.SGD([{"params": [a]}, {"params": [a]}], lr=0.1)
    with pytest.raises(ValueError):
        m.optim.SGD([a * 1], lr=0.1)
    with pytest.raises(ValueError):
        o.load_state_dict(m.optim.SGD([a], lr=0.1).state_dict())
    named = m.optim.SGD([("first", m.zeros(1, requires_grad=True))], lr=0.1)
    assert named.state_dict()["param_groups"][0]["param_names"] == ["first"]
    o.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0.0, 0.0]
    assert math.isclose(o.param_groups[1]["lr"], 0.5)
