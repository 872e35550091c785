"""FusedLinear beside a linear layer and an activation of PyTorch's."""

import pytest
import torch

import lucid
from tests.compat.exchange import to_torch

ACTIVATIONS = {
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "silu": torch.nn.functional.silu,
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(5,), (7, 5), (2, 3, 5), (0, 5), (130, 5)])
def test_values_and_gradients(activation, bias, shape):
    lucid.manual_seed(1), torch.manual_seed(1)
    mine = lucid.nn.FusedLinear(5, 9, activation, bias=bias)
    theirs = torch.nn.Linear(5, 9, bias=bias)  # from the same seed: the same weights
    y = torch.randn(shape, generator=torch.Generator().manual_seed(2), requires_grad=True)
    x = lucid.tensor(y.tolist()).reshape(shape).requires_grad_()
    a, b = mine(x), ACTIVATIONS[activation](theirs(y))
    (a * a).sum().backward(), (b * b).sum().backward()
    sides = [(a.detach(), b.detach()), (x.grad, y.grad)]
    sides += [(p.grad, q.grad) for p, q in zip(mine.parameters(), theirs.parameters())]
    for p, q in sides:
        torch.testing.assert_close(to_torch(p), q, rtol=1e-4, atol=1e-5)


def test_settings():
    layer = lucid.nn.FusedLinear(2, 3, activation="gelu", bias=False, dtype=lucid.float64)
    assert repr(layer) == "FusedLinear(in_features=2, out_features=3, bias=False, activation='gelu')"
    assert layer.weight.dtype == lucid.float64 and list(layer.state_dict()) == ["weight"]
    with pytest.raises(ValueError, match="gelu_tanh"):
        lucid.nn.FusedLinear(2, 3, activation="tanh")
