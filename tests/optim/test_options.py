"""The switches of optimizers: each works as in PyTorch or raises, none is ignored. State dicts go both ways."""

import inspect
import warnings

import pytest
import torch

import lucid
from tests.compat.exchange import to_torch
from tests.oracle import of_torch

KINDS = [
    n
    for n, c in vars(torch.optim).items()
    if inspect.isclass(c) and issubclass(c, torch.optim.Optimizer) and c is not torch.optim.Optimizer
]
DENSE = [n for n in KINDS if n not in ("SparseAdam", "LBFGS")]  # those two want sparse gradients, and a closure


def takes(name, option):
    return option in inspect.signature(getattr(torch.optim, name)).parameters


def with_option(*options):
    return [n for n in DENSE if all(takes(n, o) for o in options)]


def parameters(m, dtype="float64"):
    dtype = getattr(m, dtype)
    shapes = ((3, 4), (2, 3))
    return [(m.arange(a * b, dtype=m.float64) / 5 - 1).to(dtype).reshape(a, b).requires_grad_() for a, b in shapes]


def run(m, name, steps=6, dtype="float64", **options):
    params = parameters(m, dtype)
    optimizer = getattr(m.optim, name)(params, lr=0.05, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        sum((p.abs() ** 3).sum() + p.real.sum() if p.is_complex() else (p**3).sum() for p in params).backward()
        optimizer.step()
    return optimizer, params


def near(ours, theirs, rtol=1e-7):
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(to_torch(a), b.detach(), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", KINDS)
def test_signatures(name):
    ours, theirs = (
        [(p.name, p.default, p.kind.name) for p in inspect.signature(getattr(m.optim, name)).parameters.values()]
        for m in (lucid, torch)
    )
    assert ours == theirs
    ours, theirs = (list(inspect.signature(getattr(m.optim, name).step).parameters) for m in (lucid, torch))
    assert ours == theirs


SWITCHES = [(n, {o: v}) for o in ("foreach", "fused") for n in with_option(o) for v in (None, False, True)]


@pytest.mark.parametrize(("name", "options"), SWITCHES, ids=str)
def test_switches(name, options, monkeypatch):
    calls, kind = [], getattr(lucid.optim, name)
    update = kind._update
    monkeypatch.setattr(kind, "_update", lambda self, *args: calls.append(1) or update(self, *args))
    optimizer, ours = run(lucid, name, **options)
    reference, theirs = run(torch, name, **options)
    near(ours, theirs)
    assert len(calls) == (12 if False in options.values() or kind._fused is None else 0)  # tensor by tensor, or all at once
    supports = [bool(getattr(o, "_step_supports_amp_scaling", False)) for o in (optimizer, reference)]
    assert supports[0] == supports[1]


class Logged(lucid.Tensor):
    """Notes the names of the ops that Python calls with it."""

    log = []

    @classmethod
    def __lucid_function__(cls, func, types, args=(), kwargs=None):
        if isinstance(func, type(lucid.add)):  # attributes are asked for, too
            cls.log.append(func.__name__)
        return super().__lucid_function__(func, types, args, kwargs)


@pytest.mark.parametrize("name", [n for n in KINDS if n != "LBFGS"])
def test_a_step_is_one_call(name):
    optimizer, params = run(lucid, name, 2)
    for state in optimizer.state.values():
        state.update({k: v.as_subclass(Logged) for k, v in state.items() if v is not None})
    optimizer.param_groups[0]["params"] = logged = [p.detach().as_subclass(Logged) for p in params]
    for p, q in zip(params, logged):
        q.grad = p.grad.as_subclass(Logged)
        if p in optimizer.state:
            optimizer.state[q] = optimizer.state.pop(p)
    Logged.log.clear()
    optimizer.step()
    assert Logged.log == [f"_fused_{ {'SparseAdam': 'sparse_adam'}.get(name, name.lower()) }_"]


def outcome(m, name, **options):
    try:
        return run(m, name, **options)[1]
    except Exception as error:  # noqa: BLE001 (PyTorch's class is the specification)
        return next(k for k in (AssertionError, TypeError, ValueError, RuntimeError) if isinstance(error, k))


TOGETHER = [
    {"fused": True, "foreach": True},
    {"fused": True, "differentiable": True},
    {"fused": False, "foreach": True},
    {"fused": True, "foreach": False},
    {"foreach": True, "differentiable": True},
    {"capturable": True},
    {"maximize": True, "foreach": False},
    {"maximize": True, "foreach": True},
    {"dtype": "complex128", "fused": True},
    *({"dtype": "complex128", "foreach": v} for v in (None, False, True)),
]
TOGETHER = [(n, o) for n in DENSE for o in TOGETHER if all(takes(n, k) for k in o if k != "dtype")]


@pytest.mark.parametrize(("name", "options"), TOGETHER, ids=str)
def test_together(name, options):
    ours, theirs = outcome(lucid, name, **options), outcome(torch, name, **options)
    if isinstance(theirs, type):
        assert ours is theirs
    else:
        near(ours, theirs)


def meta_gradients(m, name, rate, **options):
    """How the result of some recorded steps depends on where they started, and on the learning rate."""
    lr = m.tensor(0.1, dtype=m.float64, requires_grad=True) if rate else 0.1
    start = m.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=m.float64, requires_grad=True)
    p = start.clone()
    optimizer = getattr(m.optim, name)([p], lr=lr, differentiable=True, **options)
    for _ in range(3):
        (p.grad,) = m.autograd.grad(((p * 1.0) ** 3).sum(), p, create_graph=True)
        optimizer.step()
    p.sum().backward()
    return [p.detach(), start.grad, *([lr.grad] if rate and lr.grad is not None else [])]


def by_differences(name, **options):
    """The same for the rate, from values alone."""
    results = []
    for lr in (0.1 + 1e-6, 0.1 - 1e-6):
        p = lucid.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=lucid.float64)
        optimizer = getattr(lucid.optim, name)([p], lr=lr, foreach=False, **options)
        for _ in range(3):
            p.grad = 3 * p**2
            optimizer.step()
        results.append(p.sum().item())
    return (results[0] - results[1]) / 2e-6


@pytest.mark.parametrize("name", with_option("differentiable"))
@pytest.mark.parametrize("rate", [False, True])
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"maximize": True}], ids=str)
def test_differentiable(name, rate, options):
    if not all(takes(name, o) for o in options):
        pytest.skip("no such option")
    ours = meta_gradients(lucid, name, rate, **options)
    try:
        theirs = meta_gradients(torch, name, rate, **options)
    except (TypeError, RuntimeError):  # PyTorch cannot: a rate that wants a gradient, states that change too early
        theirs = None
    if theirs is not None:
        near(ours, theirs, 1e-4 if "Adam" in name else 1e-6)  # PyTorch's counts are float32 there
    if rate:
        assert ours[2].item() == pytest.approx(by_differences(name, **options), rel=2e-3)  # ASGD keeps its rate in float32


@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize("first", ["float32", "float64"])
def test_adafactor_takes_its_epsilon_from_the_first(first, foreach):
    def run(m):
        kinds = [getattr(m, d) for d in (first, "float64", "float32")]
        params = [m.full((2, 3), 1e-3, dtype=d).requires_grad_() for d in kinds]
        optimizer = m.optim.Adafactor(params, foreach=foreach)
        for _ in range(2):
            for p in params:
                p.grad = m.full((2, 3), 1e-9, dtype=p.dtype)
            optimizer.step()
        return params

    near(run(lucid), run(torch), 1e-6)


def test_decay_rates_get_gradients():
    def gradients(m):
        betas = [m.tensor(b, dtype=m.float64, requires_grad=True) for b in (0.9, 0.99)]
        p = m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True).clone()
        optimizer = m.optim.Adam([p], lr=m.tensor(0.1, dtype=m.float64), betas=tuple(betas), differentiable=True)
        for _ in range(3):
            (p.grad,) = m.autograd.grad(((p * 1.0) ** 3).sum(), p, create_graph=True)
            optimizer.step()
        p.sum().backward()
        return [b.grad for b in betas]

    near(gradients(lucid), gradients(torch), 1e-4)


def plain(value, m):
    """A state dict through NumPy, as the other library takes it."""
    if hasattr(value, "detach"):
        return m.tensor(value.detach().numpy()) if value.dim() else m.tensor(value.item(), dtype=named(value.dtype, m))
    if isinstance(value, dict):
        return {k: plain(v, m) for k, v in value.items()}
    return type(value)(plain(v, m) for v in value) if isinstance(value, (list, tuple)) else value


def named(dtype, m):
    return getattr(m, str(dtype).split(".")[-1])


def steps(m, optimizer, params, n):
    def closure():
        optimizer.zero_grad()
        loss = sum(((p - 0.3) ** 2).sum() + (p * 1.5).sin().sum() for p in params)
        loss.backward()
        return loss

    for _ in range(n):
        optimizer.step(closure)


@pytest.mark.parametrize("name", [n for n in KINDS if n != "SparseAdam"])
@pytest.mark.parametrize("first", [lucid, torch], ids=["lucid first", "torch first"])
def test_state_dicts_go_both_ways(name, first):
    second = torch if first is lucid else lucid
    lr = {"lr": 0.05}
    a, b, alone = parameters(first), parameters(second), parameters(first)
    one = getattr(first.optim, name)(a, **lr)
    steps(first, one, a, 3)
    two = getattr(second.optim, name)(b, **lr)
    with second.no_grad():
        for mine, theirs in zip(b, a):
            mine.copy_(second.tensor(theirs.detach().numpy()))
    two.load_state_dict(plain(one.state_dict(), second))
    assert sorted(two.param_groups[0]) == sorted(one.param_groups[0])
    steps(second, two, b, 3)
    steps(first, getattr(first.optim, name)(alone, **lr), alone, 6)
    rtol = 2e-2 if name == "Muon" else 1e-6
    for x, y in zip(b, alone):
        x, y = (t.detach() if isinstance(t, torch.Tensor) else to_torch(t) for t in (x, y))
        torch.testing.assert_close(x, y, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_swapped_in(m):
    optimizer, params = run(m, "Adam", 2)
    swap = m.optim.swap_in_optimizer_params_and_state
    other = [p.detach().clone().requires_grad_() for p in params]
    saved = plain(optimizer.state_dict(), m)
    for p, q in zip(params, other):
        q.grad = p.grad.clone()
    with swap(optimizer, {"a": other[0], "b": other[1]}, saved):
        optimizer.param_groups[0]["lr"] = 0.05
        optimizer.step()
    values = [p.tolist() for p in params]
    assert saved["state"][0]["step"].item() == 3 and optimizer.state[params[0]]["step"].item() == 2
    optimizer.step()
    assert [q.tolist() for q in other] == [p.tolist() for p in params] != values
    bad = [
        {},
        {"state": {}, "param_groups": []},
        {**saved, "state": {9: {}}},
        {**saved, "param_groups": [{"params": [0, 1]}]},
        3,
    ]
    for given in bad:
        with pytest.raises(RuntimeError), swap(optimizer, {"a": other[0], "b": other[1]}, given):
            pass
    with pytest.raises(RuntimeError), swap(optimizer, {"a": other[0]}, saved):
        pass
    with pytest.raises(RuntimeError), swap(m.optim.Adam(other), {}, saved):
        pass


@pytest.mark.parametrize("name", with_option("foreach"))
def test_options_are_documented(name):
    text = getattr(lucid.optim, name).__doc__
    for option in ("foreach", "fused", "capturable", "differentiable", "maximize"):
        assert (f"{option}: " in text) == takes(name, option)


# --- averages of models ---------------------------------------------------------------------------------------------------
def model_of(m, norm=True):
    m.manual_seed(0)
    layers = [m.nn.Linear(3, 4), *([m.nn.BatchNorm1d(4)] if norm else []), m.nn.Linear(4, 2)]
    return m.nn.Sequential(*layers)


def same_start(norm=True):
    ours, theirs = model_of(lucid, norm), model_of(torch, norm)
    ours.load_state_dict({k: of_torch(v) for k, v in theirs.state_dict().items()})
    return ours, theirs


AVERAGES = {
    "mean": lambda u: {},
    "ema": lambda u: {"multi_avg_fn": u.get_ema_multi_avg_fn(0.9)},
    "ema one by one": lambda u: {"avg_fn": u.get_ema_avg_fn(0.9)},
    "mean at once": lambda u: {"multi_avg_fn": u.get_swa_multi_avg_fn()},
    "mean one by one": lambda u: {"avg_fn": u.get_swa_avg_fn(), "use_buffers": True},
}


@pytest.mark.parametrize("options", AVERAGES.values(), ids=AVERAGES)
def test_averaged_models(options):
    def averaged(m, model):
        mean = m.optim.swa_utils.AveragedModel(model, **options(m.optim.swa_utils))
        optimizer = m.optim.SGD(model.parameters(), lr=0.1)
        x = m.arange(15, dtype=m.float32).reshape(5, 3).sin()
        for _ in range(6):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            mean.update_parameters(model)
        m.optim.swa_utils.update_bn([x, [x * 2, None]], mean)
        return mean.eval(), mean(x)

    (ours, a), (theirs, b) = (averaged(m, model) for m, model in zip((lucid, torch), same_start()))
    assert list(ours.state_dict()) == list(theirs.state_dict())
    near(ours.state_dict().values(), theirs.state_dict().values(), 1e-5)
    near([a], [b], 1e-5)


def test_swa_schedule():
    def rates(m):
        optimizer = m.optim.SGD([{"params": p, "lr": 0.1 * (i + 1)} for i, p in enumerate(parameters(m))], lr=1.0)
        seen = []
        for strategy in ("cos", "linear"):
            schedule = m.optim.swa_utils.SWALR(optimizer, [0.01, 0.02], anneal_epochs=4, anneal_strategy=strategy)
            for _ in range(6):
                optimizer.step()
                schedule.step()
                seen.append(schedule.get_last_lr())
        return seen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [r for rs in rates(lucid) for r in rs] == pytest.approx([r for rs in rates(torch) for r in rs])


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_bad_averages(m):
    u = m.optim.swa_utils
    for bad in (lambda: u.get_ema_avg_fn(1.5), lambda: u.SWALR(run(m, "SGD")[0], [1, 2]), lambda: u.get_ema_multi_avg_fn(-1)):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(AssertionError):
        u.AveragedModel(model_of(m), avg_fn=u.get_swa_avg_fn(), multi_avg_fn=u.get_swa_multi_avg_fn())
