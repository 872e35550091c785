"""Every schedule beside PyTorch's, over 40 steps; saved and loaded in between."""

import warnings

import pytest
import torch

import lucid

SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda t: 0.9**t, lambda t: 1 / (t + 1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda t: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 3, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 20], 0.3),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.5, 7),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.9, 12),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 20, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 7, 0.01),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, 2, 0.001),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 5, 3),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], 0.2, 5, mode="triangular2", cycle_momentum=False),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 5, mode="exp_range", gamma=0.97),
    "CyclicLR scale_fn": lambda s, o: s.CyclicLR(o, 0.01, 0.2, 5, scale_fn=lambda x: 1 / x, scale_mode="cycle"),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.5, total_steps=60),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(o, [0.5, 0.3], epochs=5, steps_per_epoch=12, anneal_strategy="linear"),
    "OneCycleLR three_phase": lambda s, o: s.OneCycleLR(o, 0.5, 60, three_phase=True, cycle_momentum=False),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 9)], [4, 12]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)]),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, "min", 0.5, 2, cooldown=1, min_lr=[0.001, 0.01]),
    "ReduceLROnPlateau max": lambda s, o: s.ReduceLROnPlateau(o, "max", 0.5, 1, threshold_mode="abs", threshold=0.05),
    "SWALR": lambda s, o: (lucid.optim.swa_utils if s is lucid.optim.lr_scheduler else torch.optim.swa_utils).SWALR(o, 0.05, 6),
    "SWALR linear": lambda s, o: (lucid.optim.swa_utils if s is lucid.optim.lr_scheduler else torch.optim.swa_utils).SWALR(
        o, [0.05, 0.02], 6, "linear"
    ),
}  # fmt: skip


def optimizer(m, kind="SGD"):
    a, b = m.zeros(1, requires_grad=True), m.zeros(1, requires_grad=True)
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(m.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.3}], lr=0.1, **options)


def run(m, make, steps, save_at=None):
    o = optimizer(m)
    schedule, seen = make(m.optim.lr_scheduler, o), []
    for t in range(steps):
        if t == save_at:
            state, groups = schedule.state_dict(), o.state_dict()
            o = optimizer(m)
            schedule = make(m.optim.lr_scheduler, o)
            o.load_state_dict(groups)
            schedule.load_state_dict(state)
        seen.append([g["lr"] for g in o.param_groups] + [g["momentum"] for g in o.param_groups] + list(schedule.get_last_lr()))
        o.step()
        plateau = "Plateau" in type(schedule).__name__
        schedule.step(*([1 / (1 + t // 4)] if plateau else []))
    return seen


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("save_at", [None, 9])
def test_as_pytorch(name, save_at):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine, theirs = (run(m, SCHEDULES[name], 40, save_at) for m in (lucid, torch))
    for a, b in zip(mine, theirs):
        assert a == pytest.approx(b, rel=1e-12, abs=1e-15)


PARTS = {  # short ones, that take last_epoch
    "LambdaLR": lambda s, o, **k: s.LambdaLR(o, lambda t: 0.9**t, **k),
    "MultiplicativeLR": lambda s, o, **k: s.MultiplicativeLR(o, lambda t: 0.9, **k),
    "StepLR": lambda s, o, **k: s.StepLR(o, 2, 0.5, **k),
    "MultiStepLR": lambda s, o, **k: s.MultiStepLR(o, [2, 2, 5], 0.3, **k),
    "ConstantLR": lambda s, o, **k: s.ConstantLR(o, 0.3, 3, **k),
    "LinearLR": lambda s, o, **k: s.LinearLR(o, 0.2, 0.9, 4, **k),
    "ExponentialLR": lambda s, o, **k: s.ExponentialLR(o, 0.8, **k),
    "PolynomialLR": lambda s, o, **k: s.PolynomialLR(o, 5, 2.0, **k),
    "CosineAnnealingLR": lambda s, o, **k: s.CosineAnnealingLR(o, 4, 0.1, **k),
    "CosineAnnealingWarmRestarts": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.1, **k),
    "CyclicLR": lambda s, o, **k: s.CyclicLR(o, 0.1, 1.0, 3, cycle_momentum=False, **k),
}


def rates(m, make):
    o = optimizer(m)
    for group in o.param_groups:
        group["initial_lr"], group["lr"] = 1.0, 0.4
    schedule, seen = make(m.optim.lr_scheduler, o), []
    for _ in range(9):
        seen += [group["lr"] for group in o.param_groups]
        o.step()
        schedule.step()
    return seen, sorted(schedule.state_dict())


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_others(name):
    """Continued, as the first of two, as the second, and inside of another of its kind; state dicts have PyTorch's keys."""
    one = PARTS[name]
    cases = [lambda s, o: one(s, o, last_epoch=3)]
    for two in PARTS.values():
        cases += [
            lambda s, o, two=two: s.SequentialLR(o, [one(s, o), two(s, o)], [4]),
            lambda s, o, two=two: s.ChainedScheduler([one(s, o), two(s, o)]),
            lambda s, o, two=two: s.SequentialLR(
                o, [s.SequentialLR(o, [one(s, o), two(s, o)], [2]), s.ChainedScheduler([one(s, o)])], [5]
            ),
        ]
    for make in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mine, theirs = attempt(rates, lucid, make), attempt(rates, torch, make)
        assert mine[1] == theirs[1]
        assert mine[0] == pytest.approx(theirs[0], rel=1e-12, abs=1e-15)


def attempt(f, *args):
    try:
        return f(*args)
    except Exception as error:  # noqa: BLE001 (PyTorch's class is the specification)
        return [], next(k for k in (AttributeError, KeyError, TypeError, ValueError, RuntimeError) if isinstance(error, k))


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_get_lr_is_for_steps(m):
    schedule = PARTS["ExponentialLR"](m.optim.lr_scheduler, optimizer(m))
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


@pytest.mark.parametrize(
    "name", ["StepLR", "MultiStepLR", "LinearLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR"]
)
def test_given_epochs(name):
    def seen(m):
        o = optimizer(m)
        schedule = SCHEDULES[name](m.optim.lr_scheduler, o)
        lrs = []
        for epoch in (0, 3, 1, 12, 6):
            o.step()
            schedule.step(epoch)
            lrs.append(schedule.get_last_lr())
        return lrs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in zip(seen(lucid), seen(torch)):
            assert a == pytest.approx(b, rel=1e-12)


BAD = {
    "not an optimizer": lambda s, o: s.StepLR(3, 1),
    "number of lambdas": lambda s, o: s.LambdaLR(o, [lambda t: 1]),
    "resume": lambda s, o: s.StepLR(o, 3, last_epoch=4),
    "factor": lambda s, o: s.ConstantLR(o, 2.0),
    "start_factor": lambda s, o: s.LinearLR(o, 0.0),
    "T_0": lambda s, o: s.CosineAnnealingWarmRestarts(o, 0),
    "no schedulers": lambda s, o: s.SequentialLR(o, [], []),
    "milestones": lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]),
    "plateau factor": lambda s, o: s.ReduceLROnPlateau(o, factor=1.5),
    "plateau mode": lambda s, o: s.ReduceLROnPlateau(o, "least"),
    "min_lrs": lambda s, o: s.ReduceLROnPlateau(o, min_lr=[0.1]),
    "cyclic mode": lambda s, o: s.CyclicLR(o, 0.1, 0.2, mode="square"),
    "one cycle steps": lambda s, o: s.OneCycleLR(o, 0.1),
    "one cycle start": lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2.0),
    "max_lr": lambda s, o: s.OneCycleLR(o, [0.1], 10),
    "other optimizer": lambda s, o: s.ChainedScheduler(
        [s.StepLR(o, 1), s.StepLR(optimizer(lucid if s is lucid.optim.lr_scheduler else torch), 1)]
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_settings(name):
    kinds = []
    for m in (lucid, torch):
        with pytest.raises((TypeError, ValueError, KeyError)) as error:
            BAD[name](m.optim.lr_scheduler, optimizer(m))
        kinds.append(error.type)
    assert kinds[0] is kinds[1]


def test_order_of_steps_is_checked():
    schedule = lucid.optim.lr_scheduler.StepLR(optimizer(lucid), 3)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()


def test_tensor_learning_rate():
    p = lucid.zeros(1, requires_grad=True)
    lr = lucid.tensor(0.1)
    o = lucid.optim.SGD([p], lr=lr)
    schedule = lucid.optim.lr_scheduler.ExponentialLR(o, 0.5)
    o.step()
    schedule.step()
    assert o.param_groups[0]["lr"] is lr and lr.item() == pytest.approx(0.05)


def test_averaged_model():
    def trained(m):
        m.manual_seed(0)
        model = m.nn.Sequential(m.nn.PReLU(3), m.nn.PReLU())
        swa = (lucid if m is lucid else torch).optim.swa_utils
        means = [swa.AveragedModel(model), swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.5)),
                 swa.AveragedModel(model, avg_fn=swa.get_ema_avg_fn(0.9)),
                 swa.AveragedModel(model, avg_fn=swa.get_swa_avg_fn())]  # fmt: skip
        o = m.optim.SGD(model.parameters(), lr=0.1)
        for i in range(6):
            model(m.full((2, 3), -1.0 - i)).sum().backward()
            o.step()
            for mean in means:
                mean.update_parameters(model)
        return [[p.tolist() for p in mean.parameters()] + [int(mean.n_averaged)] for mean in means]

    flat = [str(trained(m)) for m in (lucid, torch)]
    import re

    numbers = [[float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)] for text in flat]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-5)
