"""Two networks play against each other: one draws digits, the other tells them from real ones.

usage: python examples/gan.py [STEPS] [IMAGE]
"""

import sys

import curve
import digits

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F
from lucid.vision import save_image

LATENT, BATCH, STEPS = 16, 64, 4000


def networks(width: int = 128) -> tuple[nn.Sequential, nn.Sequential]:
    """The one that draws (latent numbers to pictures) and the one that judges (a logit: real or not)."""
    draws = nn.Sequential(
        nn.Linear(LATENT, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 64),
        nn.Tanh(),
    )
    judges = nn.Sequential(
        nn.Linear(64, width),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, 1),
    )
    return draws, judges


def train(draws: nn.Sequential, judges: nn.Sequential, real: Tensor, steps: int) -> list[tuple[float, float]]:
    """The losses of both in every step."""
    one, other = (optim.Adam(n.parameters(), lr=1e-3, betas=(0.5, 0.99)) for n in (draws, judges))
    losses = []
    for step in range(1, steps + 1):
        batch = real[lucid.randint(0, len(real), (BATCH,))]
        made = draws(lucid.randn(BATCH, LATENT))
        # softplus(-logit) is the cross entropy of "real", softplus(logit) that of "made"
        judging = F.softplus(-judges(batch)).mean() + F.softplus(judges(made.detach())).mean()
        other.zero_grad()
        judging.backward()
        other.step()
        drawing = F.softplus(-judges(made)).mean()
        one.zero_grad()
        drawing.backward()
        one.step()
        losses.append((drawing.item(), judging.item()))
        if step % 50 == 0 or step == steps:
            curve.progress(step, steps, f"drawing {losses[-1][0]:.2f}  judging {losses[-1][1]:.2f}")
    return losses


def main(steps: int = STEPS, image: str = "gan.png") -> list[tuple[float, float]]:
    lucid.manual_seed(0)
    (x, _), _ = digits.load()
    draws, judges = networks()
    losses = train(draws, judges, 2 * x - 1, steps)
    with lucid.no_grad():
        pictures = draws.eval()(lucid.randn(48, LATENT)).view(48, 1, 8, 8)
    save_image(1 - F.interpolate((pictures + 1) / 2, scale_factor=4.0), image, nrow=12, padding=4, pad_value=1.0)
    print(f"digits that the first network draws are in {image}")
    return losses


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else STEPS, *sys.argv[2:3])
