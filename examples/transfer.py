"""What a network has learnt helps it to learn something else.   usage: python examples/transfer.py [CHECKPOINT]

A network learns to read digits and is saved. Then it is loaded without its last layer, its features are frozen, and a new last
layer learns to tell odd digits from even ones, from two examples of each digit. Beside it a new network learns the same from
nothing. Both do so several times, with other examples, because so few examples are a matter of luck.
"""

import pathlib
import sys
import tempfile

import curve
import digits

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F

EXAMPLES, ROUNDS = 2, 6


class Net(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 16, 64),
            nn.ReLU(),
        )
        self.head = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


def train(model: nn.Module, x: Tensor, labels: Tensor, epochs: int, progress: bool = False) -> None:
    """Only parameters that want a gradient learn."""
    optimizer = optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
    for epoch in range(1, epochs + 1):
        total, batches = 0.0, 0
        for batch in lucid.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, batches = total + loss.item(), batches + 1
        if progress:
            curve.progress(epoch, epochs, f"loss {total / batches:.4f}")


def accuracy(model: nn.Module, x: Tensor, labels: Tensor) -> float:
    with lucid.no_grad():
        return float((model(x).argmax(dim=1) == labels).float().mean())


def main(checkpoint: str = "") -> tuple[float, float]:
    """How many digits are told odd or even rightly, with the checkpoint and without."""
    lucid.manual_seed(0)
    (x, labels), (test, test_labels) = ((p.view(-1, 1, 8, 8), t) for p, t in digits.load())
    path = pathlib.Path(checkpoint or pathlib.Path(tempfile.mkdtemp(), "digits.pt"))
    if not path.exists():
        reader = Net(classes=10)
        train(reader, x, labels, epochs=8, progress=True)
        print(f"reads {accuracy(reader, test, test_labels):.1%} of unseen digits; saved in {path}")
        lucid.save(reader.state_dict(), path)

    found: list[list[float]] = [[], []]
    for start in range(0, ROUNDS * EXAMPLES, EXAMPLES):
        few = lucid.cat([(labels == digit).nonzero()[start : start + EXAMPLES, 0] for digit in range(10)])
        for loaded in (True, False):
            model = Net(classes=2)
            if loaded:
                weights = {k: v for k, v in lucid.load(path).items() if k.startswith("features.")}
                missing, unexpected = model.load_state_dict(weights, strict=False)
                assert sorted(missing) == ["head.bias", "head.weight"] and not unexpected
                model.features.requires_grad_(False)
            train(model, x[few], labels[few] % 2, epochs=40)
            found[loaded].append(accuracy(model, test, test_labels % 2))
        curve.progress(
            start // EXAMPLES + 1, ROUNDS, f"odd or even: {found[True][-1]:.1%}, without the checkpoint {found[False][-1]:.1%}"
        )
    without, with_it = (sum(f) / ROUNDS for f in found)
    print(f"odd or even, from {EXAMPLES} examples of each digit: {with_it:.1%} with the checkpoint, {without:.1%} without")
    return with_it, without


if __name__ == "__main__":
    main(*sys.argv[1:2])
