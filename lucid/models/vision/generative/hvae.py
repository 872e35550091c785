"""A hierarchical variational autoencoder: several levels of latent maps, from a small map to a large one, as in Ladder VAE
(Sønderby et al., 2016) and NVAE (Vahdat and Kautz, 2020). Keys are its own.

The encoder goes up once and keeps a map per level. The decoder comes down: at every level it has a prior of the level's
latents, given those above, and while there is an image a posterior, which also sees the encoder's map. The posterior is
learned as a difference from the prior, zero at first, so that a level costs nothing until it is of use. The loss adds the
divergence of the two at every level (`kl` has them) to the squared error of the image.

Levels are counted from the top, the smallest map, whose prior is the standard normal distribution.
"""

import dataclasses

from .... import _C, nn
from ....autograd import no_grad
from ....nn import functional as F
from ...base import PretrainedModel
from ...registry import family
from .autoencoder import VAEConfig, VAEForImageGeneration, VAEModel, VAEOutput
from .blocks import Double, Halve, ResBlock
from .configs import GenerativeActivation, activation


class HVAEOutput(VAEOutput):
    """What the hierarchical autoencoder returns: mean and logvar have a map per level, kl a number per level.

    >>> lucid.models.HVAEOutput(kl=1).kl
    1
    """

    fields = ("loss", "sample", "mean", "logvar", "kl")


@dataclasses.dataclass(frozen=True)
class HVAEConfig(VAEConfig):
    """The settings of the hierarchical variational autoencoder: each block halves the image, and has latents.

    latent_dim: channels of the latent map after each block, from the large map to the small one; layers_per_block: residual
    blocks of each on the way up, and on the way down.

    >>> config = lucid.models.HVAEConfig(sample_size=16, down_block_channels=(16, 32), latent_dim=(4, 8))
    >>> config.latent_shapes
    ((8, 4, 4), (4, 8, 8))
    """

    latent_dim: tuple = (4, 8, 16, 32)
    layers_per_block: int = 1
    norm_num_groups: int = 8
    act_fn: GenerativeActivation = "silu"

    model_type = "hvae"

    def __post_init__(self):
        super().__post_init__()
        activation(self.act_fn)
        counts = self.latent_dim if isinstance(self.latent_dim, tuple) else ()
        if len(counts) != len(self.down_block_channels) or not counts or min(counts) < 1:
            wanted = len(self.down_block_channels)
            raise ValueError(f"latent_dim has a number of channels for each of {wanted} blocks, not {self.latent_dim}")
        if any(width % self.norm_num_groups for width in self.down_block_channels):
            raise ValueError(f"down_block_channels are multiples of {self.norm_num_groups}, not {self.down_block_channels}")

    @property
    def latent_shapes(self):
        """Channels, height and width of the latents of every level, the smallest map first."""
        sides = [self.sample_size >> i for i in range(1, len(self.latent_dim) + 1)]
        return tuple((count, side, side) for count, side in zip(self.latent_dim[::-1], sides[::-1]))


class _Normal:
    """Normal distributions of a map: mean and logarithm of the variance."""

    def __init__(self, mean, logvar):
        self.mean, self.logvar = mean, logvar.clamp(-10.0, 10.0)

    def draw(self, generator=None, temperature=1.0):
        noise = _C.randn(self.mean.shape, generator=generator).to(device=self.mean.device, dtype=self.mean.dtype)
        return self.mean + (0.5 * self.logvar).exp() * noise * temperature

    def apart(self, other):
        """The divergence from another, of all places together, on average over the images."""
        square = (self.mean - other.mean) ** 2
        ratio = (self.logvar.exp() + square) / other.logvar.exp()
        return 0.5 * (other.logvar - self.logvar + ratio - 1).sum((1, 2, 3)).mean()


class _Level(nn.Module):
    """A level of the decoder: its distributions, and what its latents make of the map."""

    def __init__(self, width, latents, top, block, count):
        super().__init__()
        self.prior = None if top else nn.Conv2d(width, 2 * latents, 1)
        self.meet, self.posterior = block(2 * width, width), nn.Conv2d(width, 2 * latents, 1)
        self.join = nn.Conv2d(latents, width, 1)
        self.resnets = nn.Sequential(*(block(width, width) for _ in range(count)))
        self.latents = latents
        nn.init.zeros_(self.posterior.weight)
        nn.init.zeros_(self.posterior.bias)

    def before(self, x):
        """The prior, of the map from above."""
        if self.prior is None:
            zero = x.new_zeros(len(x), self.latents, *x.shape[2:])
            return _Normal(zero, zero)
        return _Normal(*self.prior(x).chunk(2, 1))

    def after(self, x, seen, prior):
        """The posterior, of the map from above and the encoder's."""
        mean, logvar = self.posterior(self.meet(_C.cat([x, seen], 1))).chunk(2, 1)
        return _Normal(prior.mean + mean, prior.logvar + logvar)

    def forward(self, x, latents):
        return self.resnets(x + self.join(latents))


class HVAEModel(VAEModel):
    """The hierarchical variational autoencoder: images between 0 and 1 in and out; `loss` if it is asked for.

    >>> config = lucid.models.HVAEConfig(sample_size=8, down_block_channels=(8, 8), latent_dim=(2, 3))
    >>> model = lucid.models.HVAEModel(config)
    >>> out = model(lucid.zeros(1, 3, 8, 8), return_loss=True)
    >>> tuple(out.sample.shape), [tuple(mean.shape) for mean in out.mean], tuple(out.kl.shape), out.loss.ndim
    ((1, 3, 8, 8), [(1, 3, 2, 2), (1, 2, 4, 4)], (2,), 0)
    """

    config_class = HVAEConfig
    stem_keys = ("conv_in.weight",)

    def __init__(self, config):
        PretrainedModel.__init__(self, config)
        widths, act, count = config.down_block_channels, activation(config.act_fn), config.layers_per_block
        block = lambda a, b: ResBlock(a, b, groups=config.norm_num_groups, act=act)
        self.act, self.conv_in = act, nn.Conv2d(config.in_channels, widths[0], 3, padding=1)
        self.encoder, before = nn.ModuleList(), widths[0]
        for width in widths:
            blocks = [block(before if i == 0 else width, width) for i in range(count)]
            self.encoder.append(nn.Sequential(*blocks, Halve(width)))
            before = width
        self.start = nn.Parameter(_C.zeros(1, before, config.smallest, config.smallest))
        self.levels, self.growth = nn.ModuleList(), nn.ModuleList()
        for i in reversed(range(len(widths))):
            self.levels.append(_Level(widths[i], config.latent_dim[i], i == len(widths) - 1, block, count))
            self.growth.append(nn.Sequential(Double(widths[i]), block(widths[i], widths[max(i - 1, 0)])))
        self.conv_norm_out = nn.GroupNorm(config.norm_num_groups, widths[0])
        self.conv_out = nn.Conv2d(widths[0], config.in_channels, 3, padding=1)

    def features(self, x):
        """The encoder's maps, the smallest first."""
        x, found = self.conv_in(x), []
        for stage in self.encoder:
            x = stage(x)
            found.insert(0, x)
        return found

    def down(self, count, choose):
        """Images; choose(number of the level, level, map from above) gives the latents of each."""
        x = self.start.expand(count, -1, -1, -1)
        for i, (level, grow) in enumerate(zip(self.levels, self.growth)):
            x = grow(level(x, choose(i, level, x)))
        return self.conv_out(self.act(self.conv_norm_out(x))).sigmoid()

    def encode(self, x):
        """Mean and logarithm of the variance of every level's latents, if those above are their means."""
        out = self(x, sample_posterior=False)
        return out.mean, out.logvar

    def decode(self, z):
        """Images of latents, a map per level; levels that are left out are the means of their priors."""
        z, shapes = list(z), self.config.latent_shapes
        if not 1 <= len(z) <= len(shapes):
            raise ValueError(f"decode takes latents of 1 to {len(shapes)} levels, not {len(z)}")
        for i, (given, shape) in enumerate(zip(z, shapes)):
            if tuple(given.shape) != (len(z[0]), *shape):
                raise ValueError(f"latents of level {i} are {(len(z[0]), *shape)}, not {tuple(given.shape)}")
        return self.down(len(z[0]), lambda i, level, x: z[i] if i < len(z) else level.before(x).mean)

    def forward(self, sample, sample_posterior=None, return_loss=False, generator=None):
        """sample_posterior: by chance (while training, if it is not said), else the means."""
        side = self.config.sample_size
        if sample.ndim != 4 or tuple(sample.shape[1:]) != (self.config.in_channels, side, side):
            raise ValueError(f"images are (n, {self.config.in_channels}, {side}, {side}), not {tuple(sample.shape)}")
        by_chance = self.training if sample_posterior is None else sample_posterior
        seen, posteriors, divergences = self.features(sample), [], []

        def choose(i, level, x):
            prior = level.before(x)
            posteriors.append(level.after(x, seen[i], prior))
            divergences.append(posteriors[-1].apart(prior))
            return posteriors[-1].draw(generator) if by_chance else posteriors[-1].mean

        again, loss = self.down(len(sample), choose), None
        kl = _C.stack(divergences)
        if return_loss:
            loss = F.mse_loss(again, sample, reduction="sum") / len(sample) + self.config.kl_weight * kl.sum()
        mean, logvar = (tuple(getattr(one, name) for one in posteriors) for name in ("mean", "logvar"))
        return HVAEOutput(loss=loss, sample=again, mean=mean, logvar=logvar, kl=kl)


class HVAEForImageGeneration(HVAEModel, VAEForImageGeneration):
    """The hierarchical variational autoencoder with `generate`: images from the priors of all levels.

    >>> config = lucid.models.HVAEConfig(sample_size=8, down_block_channels=(8, 8), latent_dim=(2, 3))
    >>> tuple(lucid.models.HVAEForImageGeneration(config).eval().generate(2).shape)
    (2, 3, 8, 8)
    """

    def generate(self, count=1, generator=None, temperature=1.0):
        """temperature: how far from the means the latents are drawn; 0 takes the means."""
        with no_grad():
            return self.down(count, lambda i, level, x: level.before(x).draw(generator, temperature))


globals().update(
    family(HVAEConfig, {"": (HVAEModel, "autoencoder"), "_gen": (HVAEForImageGeneration, "image-generation")}, {"hvae": {}})
)
