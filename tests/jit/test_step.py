"""compile_step: whole training steps, bit for bit those of the eager loop."""

import copy
import sys
import warnings
from pathlib import Path

import pytest

import lucid
import lucid.nn.functional as F
from lucid._compile.check import difference

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from nets import networks  # noqa: E402

NETS = networks(lucid)


def batches(name):
    lucid.manual_seed(1)
    if name == "gpt":
        tokens = lucid.randint(0, 65, (4, 17))
        return tokens[:, :-1], tokens[:, 1:]
    shapes = {"tiny": (16, 4), "mlp": (8, 784), "lenet": (4, 1, 28, 28), "lstm": (4, 10, 32)}
    return lucid.randn(*shapes[name]), lucid.randint(0, 3, (shapes[name][0],))


def loss_of(name):
    return (lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten())) if name == "gpt" else F.cross_entropy


OPTIMIZERS = {
    "SGD": lambda p: lucid.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda p: lucid.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: lucid.optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "RMSprop": lambda p: lucid.optim.RMSprop(p, lr=0.01),
    "Adagrad": lambda p: lucid.optim.Adagrad(p, lr=0.01),
    "Adafactor": lambda p: lucid.optim.Adafactor(p, lr=0.01),
}


def compare(name, optimizer="Adam", steps=6, clip=None, schedule=False):
    lucid.manual_seed(0)
    net = getattr(NETS, name)()
    twin, (x, t), loss_fn = copy.deepcopy(net), batches(name), loss_of(name)
    ours, theirs = (OPTIMIZERS[optimizer](m.parameters()) for m in (net, twin))
    schedulers = [lucid.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (ours, theirs)] if schedule else (None, None)
    step = lucid.compile_step(net, loss_fn, ours, grad_clip=clip, scheduler=schedulers[0])
    for i in range(steps):
        lucid.manual_seed(i)
        a = step(x, t)
        lucid.manual_seed(i)
        theirs.zero_grad()
        b = loss_fn(twin(x), t)
        b.backward()
        if clip is not None:
            lucid.nn.utils.clip_grad_norm_(twin.parameters(), clip)
        theirs.step()
        if schedule:
            schedulers[1].step()
        assert a.equal(b.detach()), (i, a, b, step.explain())
        assert all(p.equal(q) and p.grad.equal(q.grad) for p, q in zip(net.parameters(), twin.parameters())), (
            i,
            step.explain(),
        )
    assert step.cache_info().hits == steps - 2, step.explain()
    return step


@pytest.mark.parametrize("name", ["tiny", "mlp", "lenet", "gpt", "lstm"])
def test_networks(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(name)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare("tiny", optimizer)


def test_clipping_and_schedules():
    compare("tiny", "SGD", steps=8, clip=0.1, schedule=True)


@pytest.mark.parametrize("clip", [None, 0.1])
@pytest.mark.parametrize("schedule", [False, True])
def test_grad_scalers(clip, schedule):
    lucid.manual_seed(0)
    net = NETS.tiny()
    twin, (x, t) = copy.deepcopy(net), batches("tiny")
    ours, theirs = (lucid.optim.Adam(m.parameters(), lr=0.01) for m in (net, twin))
    scalers = [lucid.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3) for _ in range(2)]
    schedulers = [lucid.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (ours, theirs)] if schedule else (None, None)
    step = lucid.compile_step(net, F.cross_entropy, ours, grad_clip=clip, scaler=scalers[0], scheduler=schedulers[0])
    for i in range(9):
        batch = x * float("inf") if i == 5 else x  # a step that overflows is left out
        a = step(batch, t)
        theirs.zero_grad()
        b = F.cross_entropy(twin(batch), t)
        scalers[1].scale(b).backward()
        if clip is not None:
            scalers[1].unscale_(theirs)
            lucid.nn.utils.clip_grad_norm_(twin.parameters(), clip)
        scalers[1].step(theirs)
        scalers[1].update()
        if schedule:
            schedulers[1].step()
        assert difference(a, b) is None, (i, a, b)
        assert scalers[0].get_scale() == scalers[1].get_scale()
        for p, q in zip(net.parameters(), twin.parameters()):
            assert difference(p, q) is None and difference(p.grad, q.grad) is None, i
    assert step.cache_info().hits == 7, step.explain()


@pytest.mark.parametrize("kind", ["StepLR", "CosineAnnealingLR", "OneCycleLR"])
def test_schedulers(kind):
    settings = {
        "StepLR": dict(step_size=2),
        "CosineAnnealingLR": dict(T_max=5),
        "OneCycleLR": dict(max_lr=0.1, total_steps=20, cycle_momentum=False),
    }[kind]
    lucid.manual_seed(0)
    net = NETS.tiny()
    twin, (x, t) = copy.deepcopy(net), batches("tiny")
    optimizers = [lucid.optim.SGD(m.parameters(), lr=0.05) for m in (net, twin)]
    schedulers = [getattr(lucid.optim.lr_scheduler, kind)(o, **settings) for o in optimizers]
    step = lucid.compile_step(net, F.cross_entropy, optimizers[0], scheduler=schedulers[0])
    for _ in range(8):
        step(x, t)
        optimizers[1].zero_grad()
        F.cross_entropy(twin(x), t).backward()
        optimizers[1].step()
        schedulers[1].step()
        assert all(p.equal(q) for p, q in zip(net.parameters(), twin.parameters()))
        assert schedulers[0].get_last_lr() == schedulers[1].get_last_lr()
    assert step.cache_info().hits == 6


def test_settings_that_change_trace_again():
    step = compare("tiny", "SGD")
    x, t = batches("tiny")
    step.optimizer.param_groups[0]["momentum"] = 0.5
    step(x, t)
    assert step.cache_info().misses == 2


def test_gradients_are_kept():
    net = NETS.tiny()
    step = lucid.compile_step(net, F.cross_entropy, lucid.optim.SGD(net.parameters(), lr=0.1))
    x, t = batches("tiny")
    for _ in range(3):
        step(x, t)
    kept = net[0].weight.grad
    values = kept.clone()
    step(x * 2, t)
    assert kept.equal(values) and net[0].weight.grad is not kept
