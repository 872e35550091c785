"""A diffusion model learns to take noise away from digits, and makes new ones of noise.

usage: python examples/ddpm.py [STEPS] [IMAGE]

Training adds noise of a random strength to a digit and asks the network which noise it was. Drawing starts with noise alone
and takes away, step by step, what the network says is noise (Ho, Jain and Abbeel 2020).
"""

import sys

import curve
import digits

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F
from lucid.vision import save_image

TIMES, BATCH, STEPS = 100, 64, 3000
BETAS = lucid.linspace(1e-3, 0.1, TIMES)
KEPT = lucid.cumprod(1 - BETAS, 0)  # how much of the picture is left after so many steps of noise


class Denoiser(nn.Module):
    """The noise in pictures (n, 64) at times (n,)."""

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.time = nn.Embedding(TIMES, width)
        self.start, self.end = nn.Linear(64, width), nn.Linear(width, 64)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU()) for _ in range(4))

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.start(x)
        for block in self.blocks:
            h = h + block(h + self.time(time))
        return self.end(h)


def noisy(x: Tensor, time: Tensor, noise: Tensor) -> Tensor:
    kept = KEPT[time].unsqueeze(1)
    return kept.sqrt() * x + (1 - kept).sqrt() * noise


def train(model: Denoiser, x: Tensor, steps: int) -> list[float]:
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps, eta_min=1e-4)
    losses = []
    for step in range(1, steps + 1):
        batch = x[lucid.randint(0, len(x), (BATCH,))]
        time, noise = lucid.randint(0, TIMES, (BATCH,)), lucid.randn(BATCH, 64)
        loss = F.mse_loss(model(noisy(batch, time, noise), time), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if step % 50 == 0 or step == steps:
            curve.progress(step, steps, f"error {sum(losses[-50:]) / len(losses[-50:]):.3f}")
    return losses


@lucid.no_grad()
def draw(model: Denoiser, n: int) -> Tensor:
    """n pictures (n, 1, 8, 8) of values between 0 and 1."""
    x = lucid.randn(n, 64)
    for t in reversed(range(TIMES)):
        said = model(x, lucid.full((n,), t, dtype=lucid.int64))
        x = (x - BETAS[t] / (1 - KEPT[t]).sqrt() * said) / (1 - BETAS[t]).sqrt()
        if t:
            x = x + BETAS[t].sqrt() * lucid.randn_like(x)
    return ((x + 1) / 2).clamp(0, 1).view(n, 1, 8, 8)


def main(steps: int = STEPS, image: str = "ddpm.png") -> list[float]:
    lucid.manual_seed(0)
    (x, _), _ = digits.load()
    model = Denoiser()
    losses = train(model, 2 * x - 1, steps)
    pictures = 1 - F.interpolate(draw(model, 48), scale_factor=4.0)
    save_image(pictures, image, nrow=12, padding=4, pad_value=1.0)
    print(f"digits made of noise are in {image}")
    return losses


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else STEPS, *sys.argv[2:3])
