"""Whole models beside PyTorch: forward passes and training steps.

usage: models.py [--markdown] [--seconds=S] [FILTER...]      a filter is a part of a title

One thread against one thread; then Lucid with two against the better of PyTorch's with one and with two.
"""

import sys
from dataclasses import dataclass, replace

import torch
from compare import Row, best_times, show, start_up, timer
from nets import networks, training_step

import lucid

NETS = {lib: networks(lib) for lib in (lucid, torch)}


@dataclass
class Case:
    target: float
    net: str
    inputs: tuple  # a shape of floats, or (shape, classes) of integers
    classes: tuple  # shape of the labels, number of classes
    optimizer: str | None = None  # without: a forward pass


SGD, ADAMW = "SGD(p, lr=0.01, momentum=0.9)", "AdamW(p, lr=1e-3)"
TINY = Case(0.15, "tiny", (16, 4), ((16,), 3))
LENET = Case(0.35, "lenet", (64, 1, 28, 28), ((64,), 10), SGD)
CASES = {
    "tiny MLP 4-16-3 b16 forward": TINY,
    "tiny MLP 4-16-3 b16 step": replace(TINY, target=0.1, optimizer=SGD),
    "MLP 784-256-10 b64 step, SGD": Case(0.5, "mlp", (64, 784), ((64,), 10), SGD),
    "MLP 784-256-10 b64 step, AdamW": Case(0.5, "mlp", (64, 784), ((64,), 10), ADAMW),
    "LeNet-5 b64 step": LENET,
    "LeNet-5 b1 forward": replace(LENET, target=0.25, inputs=(1, 1, 28, 28), classes=((1,), 10), optimizer=None),
    "GPT 4x128 b8 t64 step": Case(0.75, "gpt", ((8, 64), 65), ((8, 64), 65), ADAMW),
    "LSTM 32-64 b16 t32 step": Case(0.5, "lstm", (16, 32, 32), ((16,), 10), SGD),
    "ResNet-18 b8 3x64x64 step": Case(0.9, "resnet_18", (8, 3, 64, 64), ((8,), 1000), SGD),
}
STEPS = {  # AdamW alone: 200 tensors of 1k elements
    "AdamW over 200 x 1k": (0.1, {}),
    "AdamW over 200 x 1k, of PyTorch's fused": (0.5, {"fused": True}),
}


def values(of):
    shape, high = of if isinstance(of[0], tuple) else (of, None)
    return (torch.randint(high, shape) if high else torch.randn(shape)).numpy()


def prepared(case):
    """A timer per library, of the same model on the same values."""
    x, y = values(case.inputs), values(case.classes)
    for lib in (lucid, torch):
        lib.manual_seed(0)
        model = getattr(NETS[lib], case.net)()
        names = {"model": model, "x": lib.from_numpy(x.copy()), "y": lib.from_numpy(y.copy())}
        if case.optimizer is None:
            for p in model.parameters():
                p.requires_grad_(False)
            yield timer("model(x)", names)
        else:
            optimizer = eval(f"optim.{case.optimizer}", {"optim": lib.optim, "p": model.parameters()})
            yield timer("step()", {"step": training_step(lib, model, optimizer, names["x"], names["y"])})


def optimizer_steps(theirs):
    for lib, settings in ((lucid, {}), (torch, theirs)):
        tensors = [lib.ones(1000, requires_grad=True) for _ in range(200)]
        for t in tensors:
            t.grad = lib.ones(1000)
        yield timer("step()", {"step": lib.optim.AdamW(tensors, lr=1e-3, **settings).step})


def threads(ours, theirs):
    def switch():
        lucid.set_num_threads(ours)
        torch.set_num_threads(theirs)

    return switch


def measured(title, target, turns, seconds):
    """Rows for one thread and for two."""
    ours, theirs = turns
    mine, other = best_times([(threads(1, 1), ours), (threads(1, 1), theirs)], seconds)
    yield Row(f"{title}, 1 thread", mine, other, ratio=target, unit="s")
    mine, one, two = best_times([(threads(2, 1), ours), (threads(2, 1), theirs), (threads(2, 2), theirs)], seconds)
    yield Row(f"{title}, 2 threads", mine, min(one, two), ratio=target, unit="s")


def main(arguments):
    seconds = next((float(a[10:]) for a in arguments if a.startswith("--seconds=")), 2.0)
    filters = [a for a in arguments if not a.startswith("--")]

    def wanted(title):
        return not filters or any(f in title for f in filters)

    rows = []
    for title, case in CASES.items():
        if wanted(title):
            rows += measured(title, case.target, tuple(prepared(case)), seconds)
    for title, (target, theirs) in STEPS.items():
        if wanted(title):
            rows += measured(title, target, tuple(optimizer_steps(theirs)), seconds)
    if wanted("import of nn and optim, over bare Python"):
        seconds = start_up("import lucid.nn, lucid.optim", 15) - start_up("pass", 15)
        rows.append(Row("import of nn and optim, over bare Python", seconds, limit=0.060, unit="s"))
    show(rows, "--markdown" in arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
