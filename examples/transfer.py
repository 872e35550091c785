"""What a network has learnt of some digits helps with others.   usage: python examples/transfer.py [CHECKPOINT]

A network learns the digits 0 to 4 and is saved. Then it is loaded without its last layer, its features are frozen, and a new
last layer learns the digits 5 to 9 from three examples of each. Beside it a new network learns the same from nothing. Both do
so several times, with other examples, because three examples are a matter of luck.
"""

import pathlib
import sys
import tempfile

import digits

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F

EXAMPLES, ROUNDS = 3, 6


class Net(nn.Module):
    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.head = nn.Linear(32 * 16, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def train(model: nn.Module, x: Tensor, labels: Tensor, epochs: int) -> None:
    """Only parameters that want a gradient learn."""
    optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    for _ in range(epochs):
        for batch in lucid.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def accuracy(model: nn.Module, x: Tensor, labels: Tensor) -> float:
    with lucid.no_grad():
        return float((model(x).argmax(dim=1) == labels).float().mean())


def main(checkpoint: str = "") -> tuple[float, float]:
    """Accuracies on the digits 5 to 9, with the checkpoint and without."""
    lucid.manual_seed(0)
    (x, labels), (test, test_labels) = ((p.view(-1, 1, 8, 8), t) for p, t in digits.load())
    path = pathlib.Path(checkpoint or pathlib.Path(tempfile.mkdtemp(), "digits-0-to-4.pt"))
    if not path.exists():
        first = Net()
        train(first, x[labels < 5], labels[labels < 5], epochs=8)
        print(f"digits 0 to 4: {accuracy(first, test[test_labels < 5], test_labels[test_labels < 5]):.1%}; saved in {path}")
        lucid.save(first.state_dict(), path)

    others = test_labels >= 5
    found: list[list[float]] = [[], []]
    for start in range(0, ROUNDS * EXAMPLES, EXAMPLES):
        few = lucid.cat([(labels == digit).nonzero()[start : start + EXAMPLES, 0] for digit in range(5, 10)])
        for loaded in (True, False):
            model = Net()
            if loaded:
                weights = {k: v for k, v in lucid.load(path).items() if k.startswith("features.")}
                missing, unexpected = model.load_state_dict(weights, strict=False)
                assert sorted(missing) == ["head.bias", "head.weight"] and not unexpected
                model.features.requires_grad_(False)
            train(model, x[few], labels[few] - 5, epochs=40)
            found[loaded].append(accuracy(model, test[others], test_labels[others] - 5))
    without, with_it = (sum(f) / ROUNDS for f in found)
    print(f"digits 5 to 9 from {EXAMPLES} examples each: {with_it:.1%} with the checkpoint, {without:.1%} without")
    return with_it, without


if __name__ == "__main__":
    main(*sys.argv[1:2])
