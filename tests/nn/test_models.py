"""lucid.models: shapes, settings, and that they train."""

import pytest

import lucid


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("pooling", ["avg", "max"])
def test_lenet_5(activation, pooling):
    lucid.manual_seed(0)
    model = lucid.models.lenet_5(num_classes=7, in_channels=3, activation=activation, pooling=pooling)
    x, y = lucid.randn(4, 3, 32, 32), lucid.tensor([0, 6, 3, 3])
    optimizer = lucid.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(20):
        loss = lucid.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert tuple(model(x).shape) == (4, 7) and losses[-1] < 0.8 * losses[0]


def test_lenet_5_is_the_papers():
    model = lucid.models.lenet_5()
    assert [tuple(p.shape) for p in model.parameters() if p.dim() > 1] == [
        (6, 1, 5, 5),
        (16, 6, 5, 5),
        (120, 16, 5, 5),
        (84, 120),
        (10, 84),
    ]
    assert sum(p.numel() for p in model.parameters()) == 61_706


@pytest.mark.parametrize("settings", [{"activation": "gelu"}, {"pooling": "sum"}])
def test_unknown_settings_are_refused(settings):
    with pytest.raises(ValueError, match="expected one of"):
        lucid.models.lenet_5(**settings)
