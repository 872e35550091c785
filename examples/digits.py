"""Train a small network on 8x8 handwritten digits, written with plain ops.   usage: python examples/digits.py [EPOCHS]"""

import gzip
import pathlib
import random
import sys
import time
from collections.abc import Callable

import curve

import lucid
from lucid import Tensor

Digits = tuple[Tensor, Tensor]  # pixels and labels
HERE = pathlib.Path(__file__).parent
HIDDEN, BATCH, RATE, MOMENTUM = 64, 32, 0.05, 0.9


def load() -> tuple[Digits, Digits]:
    """(pixels scaled to 0 ... 1, labels) of the training and of the test digits; every fifth digit is for the test"""
    raw = gzip.decompress((HERE / "data/digits.gz").read_bytes())
    rows = [raw[i : i + 65] for i in range(0, len(raw), 65)]
    pixels = lucid.tensor([list(r[1:]) for r in rows], dtype=lucid.float32) / 16
    labels = lucid.tensor([r[0] for r in rows])
    test = lucid.arange(len(rows)) % 5 == 4
    return (pixels[~test], labels[~test]), (pixels[test], labels[test])


def parameter(*shape: int, scale: float = 0.0) -> Tensor:
    return (lucid.randn(*shape) * scale).requires_grad_()


def network(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return lucid.relu(x @ w1 + b1) @ w2 + b2


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return -lucid.log_softmax(logits, dim=1).gather(1, labels.unsqueeze(1)).mean()


def accuracy(parameters: list[Tensor], x: Tensor, labels: Tensor) -> float:
    with lucid.no_grad():
        return float((network(x, *parameters).argmax(dim=1) == labels).float().mean())


def step(parameters: list[Tensor], velocities: list[Tensor]) -> None:
    with lucid.no_grad():
        for p, v in zip(parameters, velocities):
            assert p.grad is not None
            v.mul_(MOMENTUM).add_(p.grad)
            p.sub_(v * RATE)
            p.grad = None


def train(
    parameters: list[Tensor], x: Tensor, labels: Tensor, epochs: int, after_epoch: Callable[[int, list[float]], None]
) -> list[float]:
    """The loss of every batch."""
    velocities = [lucid.zeros_like(p) for p in parameters]
    losses: list[float] = []
    order = list(range(len(labels)))
    for epoch in range(1, epochs + 1):
        random.shuffle(order)
        for start in range(0, len(order), BATCH):
            batch = lucid.tensor(order[start : start + BATCH])
            loss = cross_entropy(network(x[batch], *parameters), labels[batch])
            loss.backward()
            step(parameters, velocities)
            losses.append(loss.item())
        after_epoch(epoch, losses)
    return losses


def smooth(values: list[float], weight: float = 0.95) -> list[float]:
    """Moving average: single batches are noisy."""
    out, mean = [], values[0]
    for v in values:
        mean = weight * mean + (1 - weight) * v
        out.append(mean)
    return out


def main(epochs: int = 30, image: str = "digits.png") -> float:
    lucid.manual_seed(0)
    random.seed(0)
    (x, labels), test = load()
    parameters = [
        parameter(64, HIDDEN, scale=(2 / 64) ** 0.5),
        parameter(HIDDEN),
        parameter(HIDDEN, 10, scale=(1 / HIDDEN) ** 0.5),
        parameter(10),
    ]

    def show(epoch: int, losses: list[float]) -> None:
        curve.progress(epoch, epochs, f"loss {sum(losses[-20:]) / 20:.4f}  test accuracy {accuracy(parameters, *test):.1%}")

    start = time.perf_counter()
    losses = train(parameters, x, labels, epochs, show)
    seconds = time.perf_counter() - start
    print(curve.draw(smooth(losses), title=f"training loss, {len(losses)} steps of {BATCH} digits"))
    curve.save(smooth(losses), image, title=f"training loss, {len(losses)} steps of {BATCH} digits")
    final = accuracy(parameters, *test)
    print(f"test accuracy {final:.1%} on {len(test[1])} digits it has not seen")
    print(f"{len(losses)} steps in {seconds:.2f} s, {seconds / len(losses) * 1e6:.0f} µs each; the curve is in {image}")
    return final


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 30)
