"""Optimizers with capturable=True: counts and learning rates lie on the device, so a captured step counts on in replays."""

import copy

import pytest

import lucid
from lucid import optim

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")

CASES = {
    "Adam": (optim.Adam, {"weight_decay": 0.1, "amsgrad": True}),
    "Adam, one by one": (optim.Adam, {"foreach": False}),
    "AdamW": (optim.AdamW, {"maximize": True}),
    "NAdam": (optim.NAdam, {"weight_decay": 0.1, "decoupled_weight_decay": True}),
    "RAdam": (optim.RAdam, {"betas": (0.8, 0.9)}),
    "Adamax": (optim.Adamax, {}),
    "ASGD": (optim.ASGD, {"t0": 3, "lambd": 0.01, "weight_decay": 0.1}),
    "Adadelta": (optim.Adadelta, {}),
    "RMSprop": (optim.RMSprop, {"momentum": 0.9, "centered": True}),
    "Rprop": (optim.Rprop, {}),
}
SIZES = [(3, 4), (5,), (0, 2), (), (1100,)] + [(k,) for k in range(1, 21)]  # an empty one; more than fit into a launch
STEPS = 9


def drawn(seed):
    lucid.manual_seed(seed)
    return [lucid.randn(size) for size in SIZES]


def started(make, settings, capturable=True, **more):
    params = [p.cuda().requires_grad_() for p in drawn(0)]
    for p in params:
        p.grad = lucid.zeros_like(p)
    return params, make(params, **settings, capturable=capturable, **more)


def give(params, k):
    for p, g in zip(params, drawn(k + 1)):
        p.grad.copy_(g)


def eager(make, settings, capturable, lr=None):
    params, optimizer = started(make, settings, capturable, **({} if lr is None else {"lr": lr[0]}))
    for k in range(STEPS):
        if lr is not None:
            optimizer.param_groups[0]["lr"] = lr[k]
        give(params, k)
        optimizer.step()
    return params, optimizer


def graph_of(optimizer):
    graph = lucid.cuda.CUDAGraph()
    with lucid.cuda.graph(graph):
        optimizer.step()
    return graph


def check(params, expected):
    for p, q in zip(params, expected):
        lucid.testing.assert_close(p.detach().cpu(), q.detach().cpu(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_replays_are_steps(name):
    make, settings = CASES[name]
    expected, _ = eager(make, settings, False)
    params, optimizer = eager(make, settings, True)
    check(params, expected)
    assert all(s["step"].device.type == "cuda" and s["step"].item() == STEPS for s in optimizer.state.values())
    params, optimizer = started(make, settings)
    for k in range(2):  # makes the states
        give(params, k)
        optimizer.step()
    graph = graph_of(optimizer)
    assert all(s["step"].item() == 2 for s in optimizer.state.values())  # a capture is no step
    for k in range(2, STEPS):
        give(params, k)
        graph.replay()
    check(params, expected)
    assert all(s["step"].item() == STEPS for s in optimizer.state.values())


@pytest.mark.parametrize("name", ["AdamW", "NAdam", "ASGD", "RMSprop", "Adadelta"])
def test_a_learning_rate_on_the_device(name):
    make, settings = CASES[name]
    rates = [0.1 / (1 + k) for k in range(STEPS)]
    expected, _ = eager(make, settings, False, rates)
    rate = lucid.tensor(rates[0], device="cuda")
    params, optimizer = started(make, settings, lr=rate)
    give(params, 0)
    optimizer.step()
    graph = graph_of(optimizer)
    for k in range(1, STEPS):
        rate.fill_(rates[k])
        give(params, k)
        graph.replay()
    check(params, expected)


def test_sgd_with_a_learning_rate_on_the_device():
    p = lucid.ones(3, device="cuda", requires_grad=True)
    p.grad = lucid.ones(3, device="cuda")
    rate = lucid.tensor(0.5, device="cuda", dtype=lucid.float64)
    graph = graph_of(optim.SGD([p], lr=rate))
    graph.replay()
    rate.fill_(0.25)
    graph.replay()
    assert p.tolist() == [0.25] * 3


@pytest.mark.parametrize("make", [optim.Adam, optim.SGD, optim.RMSprop])
@pytest.mark.parametrize("of_params, of_rate", [("cpu", "cuda"), ("cuda", "cpu"), ("cuda", "cuda")])
def test_a_learning_rate_elsewhere(make, of_params, of_rate):
    p, q = (lucid.ones(3, device=of_params, requires_grad=True) for _ in range(2))
    p.grad = q.grad = lucid.ones(3, device=of_params)
    make([p], lr=lucid.tensor(0.5, device=of_rate)).step()
    make([q], lr=0.5).step()
    check([p], [q])


def test_fused_counts_on_the_device():
    p = lucid.ones(3, device="cuda", requires_grad=True)
    p.grad = lucid.ones(3, device="cuda")
    optimizer = optim.Adam([p], fused=True)
    optimizer.step()
    assert optimizer.state[p]["step"].device.type == "cuda"
    graph_of(optimizer).replay()
    assert optimizer.state[p]["step"].item() == 2


@pytest.mark.parametrize("name", ["Adam", "NAdam", "ASGD"])
def test_state_dicts_fit_both_ways(name):
    make, settings = CASES[name]
    expected, plain = eager(make, settings, False)
    _, capturable = eager(make, settings, True)
    give(expected, STEPS)
    plain_state = plain.state_dict()
    states = {
        False: {"state": plain_state["state"], "param_groups": capturable.state_dict()["param_groups"]},
        True: {"state": capturable.state_dict()["state"], "param_groups": plain_state["param_groups"]},
    }
    copies = []
    for was_capturable in (False, True):
        params = [p.detach().clone().requires_grad_() for p in expected]
        for p in params:
            p.grad = lucid.zeros_like(p)
        other = make(params, **settings)
        other.load_state_dict(copy.deepcopy(states[was_capturable]))
        assert other.param_groups[0]["capturable"] is not was_capturable
        if not was_capturable:
            assert all(s["step"].device.type == "cuda" for s in other.state.values())
        give(params, STEPS)
        other.step()
        copies.append(params)
    plain.step()
    for params in copies:
        check(params, expected)


def test_what_cannot_be_captured_raises():
    params, optimizer = started(optim.Adam, {}, capturable=False)
    optimizer.step()
    with pytest.raises(NotImplementedError, match="capturable=True"):
        graph_of(optimizer)
    optimizer.param_groups[0]["capturable"] = True
    with pytest.raises(AssertionError, match="params and state_steps must be on supported devices"):
        optimizer.step()
