"""The same model code, the same seed, no weights copied: training gives PyTorch's loss curve."""

import pathlib
import sys

import pytest
import torch

import lucid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))
from nets import networks, training_step  # noqa: E402

STEPS = 50


def curve(lib, make, optimizer, data, seed=0):
    """The losses of some steps, everything drawn from one seed: weights, batches, dropout."""
    lib.manual_seed(seed)
    model = make(networks(lib))
    model.train()
    optimizer = optimizer(lib.optim, model.parameters())
    losses = []
    for _ in range(STEPS):
        x, y = data(lib)
        losses.append(training_step(lib, model, optimizer, x, y)().item())
    return losses


def compare(make, optimizer, data, least=0.0):
    mine, theirs = curve(lucid, make, optimizer, data), curve(torch, make, optimizer, data)
    assert mine == pytest.approx(theirs, rel=1e-3)
    assert theirs[-1] < theirs[0] - least  # and it does learn


def stripes(lib):
    """Images whose label is where their bright row is."""
    y = lib.randint(0, 10, (16,))
    x = lib.rand(16, 1, 28, 28)
    rows = lib.arange(28).view(1, 1, 28, 1) // 3
    return x + 2.0 * (rows == y.view(16, 1, 1, 1)), y


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_lenet(optimizer):
    settings = {"lr": 0.01, "momentum": 0.9} if optimizer == "SGD" else {"lr": 1e-3}
    compare(lambda nets: nets.lenet(), lambda optim, p: getattr(optim, optimizer)(p, **settings), stripes, least=0.1)


def counting(lib):
    """Sequences that count up from somewhere, and the same one further."""
    tokens = (lib.randint(0, 32, (4, 1)) + lib.arange(33).view(1, 33)) % 32
    return tokens[:, :-1], tokens[:, 1:]


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_gpt(dropout):
    compare(
        lambda nets: nets.gpt(vocabulary=32, width=64, layers=2, heads=4, context=32, dropout=dropout),
        lambda optim, p: optim.AdamW(p, lr=1e-3, weight_decay=0.1),
        counting,
        least=1.0,
    )


def sums(lib):
    """Sequences whose label is the sign of the sum of their first feature."""
    x = lib.randn(16, 12, 8)
    return x, (x[:, :, 0].sum(1) > 0).long()


@pytest.mark.parametrize("settings", [{}, {"num_layers": 2, "dropout": 0.2}, {"bidirectional": True}], ids=str)
def test_lstm(settings):
    hidden = 32

    def make(nets):
        model = nets.lstm(8, hidden, 2, **settings)
        if settings.get("bidirectional"):
            model.head = type(model.head)(2 * hidden, 2)
        return model

    compare(make, lambda optim, p: optim.Adam(p, lr=1e-2), sums)


def test_resnet():
    """Few steps, in float64: normalisation over a handful of values makes float32's last bits matter."""

    def losses(lib):
        lib.manual_seed(0)
        model = networks(lib).resnet_18(10).double()
        optimizer = lib.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        images = lib.randn(4, 3, 32, 32, dtype=lib.float64), lib.randint(0, 10, (4,))
        return [training_step(lib, model, optimizer, *images)().item() for _ in range(2)]

    assert losses(lucid) == pytest.approx(losses(torch), rel=1e-3)
