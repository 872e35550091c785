"""An LSTM learns waves and goes on alone where they end.   usage: python examples/lstm.py [STEPS]

Every wave is a sum of two sines of random phase. The network sees it value by value and predicts the next one; then it hears
its own predictions only, and what it makes of the future is drawn below the true one.
"""

import math
import sys

import curve

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F

SEEN, AHEAD = 96, 48
State = tuple[Tensor, Tensor]


def waves(n: int, length: int) -> Tensor:
    """(n, length, 1)"""
    t = lucid.arange(length) * (2 * math.pi / 32)
    phases = lucid.rand(n, 2, 1) * (2 * math.pi)
    return (0.6 * lucid.sin(t + phases[:, 0]) + 0.4 * lucid.sin(2.3 * t + phases[:, 1])).unsqueeze(-1)


class Oracle(nn.Module):
    def __init__(self, hidden: int = 48) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(1, hidden, num_layers=2, batch_first=True), nn.Linear(hidden, 1)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The next value at every place, and the state to go on from."""
        hidden, state = self.lstm(x, state)
        return x + self.head(hidden), state

    @lucid.no_grad()
    def go_on(self, x: Tensor, steps: int) -> Tensor:
        """What follows x: predictions of predictions."""
        y, state = self(x)
        ahead = [y[:, -1:]]
        for _ in range(steps - 1):
            y, state = self(ahead[-1], state)
            ahead.append(y)
        return lucid.cat(ahead, dim=1)


def train(model: Oracle, steps: int, batch: int = 16) -> list[float]:
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=1e-4)
    losses = []
    for step in range(1, steps + 1):
        wave = waves(batch, SEEN + 1)
        loss = F.mse_loss(model(wave[:, :-1])[0][:, 8:], wave[:, 9:])  # the first values say too little
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        curve.progress(step, steps, f"mean squared error {loss.item():.6f}")
    return losses


def main(steps: int = 600) -> tuple[list[float], float]:
    lucid.manual_seed(0)
    model = Oracle()
    losses = train(model, steps)
    wave = waves(32, SEEN + AHEAD)
    ahead = model.go_on(wave[:, :SEEN], AHEAD)
    error = F.mse_loss(ahead, wave[:, SEEN:]).item()
    silence = (wave[:, SEEN:] ** 2).mean().item()  # the error of predicting 0
    print(curve.draw(wave[0, :, 0].tolist(), title=f"a wave: {SEEN} values, and the {AHEAD} that follow"))
    guessed = lucid.cat([wave[0, :SEEN, 0], ahead[0, :, 0]]).tolist()
    print(curve.draw(guessed, title="the same values, and what the LSTM makes of them"))
    print(f"mean squared error {AHEAD} steps ahead {error:.4f}; of silence {silence:.4f}")
    return losses, error / silence


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
