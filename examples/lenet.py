"""Train LeNet-5 on handwritten digits and draw what came of it.   usage: python examples/lenet.py [EPOCHS] [FIGURE]"""

import sys
import time

import curve
import digits
import figure

import lucid
from lucid import Tensor, nn, optim

BATCH, SIZE = 64, 32
EPOCHS = 30


def upscaled(images: Tensor) -> Tensor:
    """(n, 64) pixels as pictures of the size LeNet-5 reads, around 0."""
    small = images.view(-1, 1, 8, 8)
    return nn.functional.interpolate(small, size=(SIZE, SIZE), mode="bilinear") * 2 - 1


def shifted(images: Tensor) -> Tensor:
    """Training pictures moved by up to two pixels each way: the network sees more places than were drawn."""
    dx, dy = lucid.randint(-2, 3, (2,)).tolist()
    return lucid.roll(images, (dy, dx), (2, 3))


def predictions(model: nn.Module, images: Tensor) -> Tensor:
    model.eval()
    with lucid.no_grad():
        scores: Tensor = model(images)
        return scores.argmax(dim=1)


def train(
    model: nn.Module, images: Tensor, labels: Tensor, test: digits.Digits, epochs: int
) -> tuple[list[float], list[float]]:
    """The loss of every batch and the test accuracy of every epoch."""
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    batches = len(labels) // BATCH
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=epochs * batches)
    losses: list[float] = []
    accuracies: list[float] = []
    spent = 0.0
    for epoch in range(1, epochs + 1):
        model.train()
        start = time.perf_counter()
        order = lucid.randperm(len(labels))
        for batch in order[: batches * BATCH].view(batches, BATCH):
            loss = nn.functional.cross_entropy(model(shifted(images[batch])), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        spent += time.perf_counter() - start
        accuracies.append((predictions(model, test[0]) == test[1]).float().mean().item())
        rate = epoch * batches * BATCH / spent
        recent = sum(losses[-batches:]) / batches
        curve.progress(epoch, epochs, f"loss {recent:.4f}  accuracy {accuracies[-1]:.1%}  {rate:,.0f} images/s")
    return losses, accuracies


def draw(path: str, losses: list[float], accuracies: list[float], said: Tensor, images: Tensor, labels: Tensor) -> None:
    """One picture: loss curve, confusion matrix, sample predictions with the mistakes first."""
    canvas = figure.Canvas(1120, 780)
    counts = [[0] * 10 for _ in range(10)]
    for true, predicted in zip(labels.tolist(), said.tolist()):
        counts[true][predicted] += 1
    canvas.text(40, 24, "LeNet-5 on handwritten digits", size=3)
    canvas.text(40, 62, f"{accuracies[-1]:.1%} of {len(labels)} unseen digits classified correctly", figure.MUTED)
    curves = [(losses, (0.72, 0.80, 0.91), 1.0), (digits.smooth(losses), figure.BLUE, 2.5)]
    figure.plot(canvas, 96, 142, 470, 340, curves, "training loss", "steps")
    figure.confusion(canvas, 690, 142, 37, counts, "true digit by predicted digit")
    wrong = [i for i, (a, b) in enumerate(zip(said.tolist(), labels.tolist())) if a != b]
    others = [i for i in range(len(labels)) if i not in set(wrong)]
    columns, rows = 17, 2
    chosen = (wrong[:columns] + others)[: columns * rows]
    shown = [(images[i].view(8, 8), said[i].item(), labels[i].item()) for i in chosen]
    figure.samples(canvas, 40, 608, 50, rows, columns, shown, "predictions; a mistake shows the true digit in brackets")
    canvas.save(path)


def main(epochs: int = EPOCHS, image: str = "lenet.png") -> float:
    lucid.manual_seed(0)
    (x, labels), (test_x, test_labels) = digits.load()
    images, test = upscaled(x), (upscaled(test_x), test_labels)
    model = lucid.models.lenet_5()
    weights = sum(p.numel() for p in model.parameters())
    print(f"LeNet-5, {weights:,} weights; {len(labels)} digits to learn from, {len(test_labels)} to test")
    start = time.perf_counter()
    losses, accuracies = train(model, images, labels, test, epochs)
    seconds = time.perf_counter() - start
    print(curve.draw(digits.smooth(losses), title=f"training loss, {len(losses)} steps of {BATCH} digits"))
    draw(image, losses, accuracies, predictions(model, test[0]), test_x, test_labels)
    print(f"test accuracy {accuracies[-1]:.1%} after {seconds:.1f} s; the picture is in {image}")
    return accuracies[-1]


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else EPOCHS, *sys.argv[2:3])
