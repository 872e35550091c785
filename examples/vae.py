"""A variational autoencoder learns the handwritten digits and draws new ones.   usage: python examples/vae.py [EPOCHS] [IMAGE]

The encoder gives a mean and a variance for each of a few latent numbers, the decoder a picture for latent numbers. The loss is
the error of the picture that comes back, and how far the latent numbers are from a standard normal distribution: from that
one new pictures are drawn.
"""

import sys

import curve
import digits

import lucid
from lucid import Tensor, nn, optim
from lucid.nn import functional as F
from lucid.vision import save_image

LATENT, BATCH, EPOCHS = 8, 64, 60


class VAE(nn.Module):
    def __init__(self, hidden: int = 128) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, hidden), nn.SiLU(), nn.Linear(hidden, 2 * LATENT))
        self.decode = nn.Sequential(nn.Linear(LATENT, hidden), nn.SiLU(), nn.Linear(hidden, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of the pixels that come back, mean and logarithm of the variance of the latent numbers."""
        mean, log_variance = self.encode(x).chunk(2, dim=1)
        latent = mean + lucid.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decode(latent), mean, log_variance

    @lucid.no_grad()
    def draw(self, n: int) -> Tensor:
        logits: Tensor = self.decode(lucid.randn(n, LATENT))
        return logits.sigmoid().view(n, 1, 8, 8)


def loss_of(model: VAE, x: Tensor) -> Tensor:
    """Per picture: error of the pixels, and divergence from the standard normal distribution."""
    logits, mean, log_variance = model(x)
    error = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum()
    loss: Tensor = (error + divergence) / len(x)
    return loss


def train(model: VAE, x: Tensor, epochs: int) -> list[float]:
    optimizer = optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    for epoch in range(1, epochs + 1):
        for batch in lucid.randperm(len(x)).split(BATCH):
            loss = loss_of(model, x[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        curve.progress(epoch, epochs, f"loss {sum(losses[-20:]) / 20:.2f}")
    return losses


def main(epochs: int = EPOCHS, image: str = "vae.png") -> list[float]:
    lucid.manual_seed(0)
    (x, _), (test, _) = digits.load()
    model = VAE()
    losses = train(model, x, epochs)
    with lucid.no_grad():
        print(f"loss of digits it has not seen: {loss_of(model, test).item():.2f}")
    pictures = 1 - F.interpolate(model.draw(48), scale_factor=4.0)
    save_image(pictures, image, nrow=12, padding=4, pad_value=1.0)
    print(f"new digits are in {image}")
    return losses


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else EPOCHS, *sys.argv[2:3])
