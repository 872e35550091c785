"""Networks that write an image as a few numbers and read it back: AutoencoderKL (Rombach et al., 2022), with diffusers'
keys, and the variational autoencoder (Kingma and Welling, 2013), with its own.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...base import PretrainedModel
from ...outputs import ModelOutput
from ...registry import family
from .blocks import Double, Halve, Middle, ResBlock, Stage
from .configs import GenerativeModelConfig
from .ddpm import DDPMModel


class VAEOutput(ModelOutput):
    """What an autoencoder returns: the image again, and the mean and logarithm of the variance of its description.

    >>> lucid.models.VAEOutput(sample=1).sample
    1
    """

    fields = ("loss", "sample", "mean", "logvar")


@dataclasses.dataclass(frozen=True)
class AutoencoderKLConfig(GenerativeModelConfig):
    """The settings of AutoencoderKL; defaults are those of Stable Diffusion's.

    >>> lucid.models.AutoencoderKLConfig(latent_channels=16).latent_channels
    16
    """

    sample_size: int = 512
    out_channels: int = 3
    block_out_channels: tuple = (128, 256, 512, 512)
    layers_per_block: int = 2
    latent_channels: int = 4
    norm_num_groups: int = 32
    scaling_factor: float = 0.18215
    shift_factor: float | None = None
    use_quant_conv: bool = True
    use_post_quant_conv: bool = True

    model_type = "autoencoder-kl"
    only = {"_class_name": "AutoencoderKL", "act_fn": "silu", "mid_block_add_attention": True}


class _Coder(nn.Module):  # a chain of stages; the middle before (decoder) or after them (encoder)
    def __init__(self, inputs, outputs, widths, config, decodes):
        super().__init__()
        groups, count = config.norm_num_groups, config.layers_per_block + decodes
        self.conv_in, stages, before, self.decodes = nn.Conv2d(inputs, widths[0], 3, padding=1), [], widths[0], decodes
        for i, width in enumerate(widths):
            blocks = [ResBlock(before if j == 0 else width, width, None, groups) for j in range(count)]
            last, before = i == len(widths) - 1, width
            if decodes:
                stages.append(Stage(blocks, [], upsamplers=None if last else Double(width)))
            else:
                stages.append(Stage(blocks, [], downsamplers=None if last else Halve(width, 0)))
        setattr(self, "up_blocks" if decodes else "down_blocks", nn.ModuleList(stages))
        self.mid_block = Middle(widths[0] if decodes else before, groups=groups)
        self.conv_norm_out = nn.GroupNorm(groups, before, 1e-6)
        self.conv_out = nn.Conv2d(before, outputs, 3, padding=1)

    def forward(self, x):
        x = self.conv_in(x)
        if self.decodes:
            x = self.mid_block(x)
        for stage in self.up_blocks if self.decodes else self.down_blocks:
            x = stage.steps(x)[-1]
        if not self.decodes:
            x = self.mid_block(x)
        return self.conv_out(F.silu(self.conv_norm_out(x)))


class AutoencoderKL(PretrainedModel):
    """The autoencoder of latent diffusion: `encode` to mean and logarithm of the variance, `decode` back.

    >>> config = lucid.models.AutoencoderKLConfig(block_out_channels=(8, 8), norm_num_groups=4)
    >>> model = lucid.models.AutoencoderKL(config)
    >>> tuple(model(lucid.zeros(1, 3, 16, 16)).sample.shape), tuple(model.encode(lucid.zeros(1, 3, 16, 16))[0].shape)
    ((1, 3, 16, 16), (1, 4, 8, 8))
    """

    config_class = AutoencoderKLConfig
    renamed_keys = DDPMModel.renamed_keys
    stem_keys = ("encoder.conv_in.weight",)

    def __init__(self, config):
        super().__init__(config)
        latent, widths = config.latent_channels, config.block_out_channels
        self.encoder = _Coder(config.in_channels, 2 * latent, widths, config, False)
        self.decoder = _Coder(latent, config.out_channels, widths[::-1], config, True)
        self.quant_conv = nn.Conv2d(2 * latent, 2 * latent, 1) if config.use_quant_conv else None
        self.post_quant_conv = nn.Conv2d(latent, latent, 1) if config.use_post_quant_conv else None

    def encode(self, x):
        """(mean, logarithm of the variance) of what describes each image."""
        x = self.encoder(x)
        mean, logvar = (x if self.quant_conv is None else self.quant_conv(x)).chunk(2, 1)
        return mean, logvar.clamp(-30.0, 20.0)

    def decode(self, z):
        return self.decoder(z if self.post_quant_conv is None else self.post_quant_conv(z))

    def forward(self, sample, sample_posterior=False, generator=None):
        mean, logvar = self.encode(sample)
        z = mean
        if sample_posterior:
            noise = _C.randn(mean.shape, generator=generator).to(device=mean.device, dtype=mean.dtype)
            z = mean + (0.5 * logvar).exp() * noise
        return VAEOutput(sample=self.decode(z), mean=mean, logvar=logvar)


@dataclasses.dataclass(frozen=True)
class VAEConfig(GenerativeModelConfig):
    """The settings of the variational autoencoder: each block halves the image; latent_dim numbers describe it.

    kl_weight: how much the loss minds descriptions that are not normally distributed.

    >>> lucid.models.VAEConfig(sample_size=28, down_block_channels=(8, 16)).smallest
    7
    """

    latent_dim: int = 128
    down_block_channels: tuple = (32, 64, 128, 256)
    kl_weight: float = 1.0

    model_type = "vae"

    def __post_init__(self):
        super().__post_init__()
        if self.sample_size % 2 ** len(self.down_block_channels):
            raise ValueError(f"sample_size {self.sample_size} cannot be halved {len(self.down_block_channels)} times")

    @property
    def smallest(self):
        return self.sample_size >> len(self.down_block_channels)


class VAEModel(PretrainedModel):
    """The variational autoencoder: images between 0 and 1 in and out; `loss` if it is asked for.

    >>> model = lucid.models.VAEModel(lucid.models.VAEConfig(sample_size=8, down_block_channels=(4,), latent_dim=2))
    >>> out = model(lucid.zeros(1, 3, 8, 8), return_loss=True)
    >>> tuple(out.sample.shape), tuple(out.mean.shape), out.loss.ndim
    ((1, 3, 8, 8), (1, 2), 0)
    """

    config_class = VAEConfig

    def __init__(self, config):
        super().__init__(config)
        widths, side = config.down_block_channels, config.smallest
        pairs = list(zip((config.in_channels, *widths), widths))
        down = [[nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.LeakyReLU(0.2)] for a, b in pairs]
        self.encoder = nn.Sequential(*(layer for block in down for layer in block), nn.Flatten())
        self.mean = nn.Linear(widths[-1] * side**2, config.latent_dim)
        self.logvar = nn.Linear(widths[-1] * side**2, config.latent_dim)
        self.spread = nn.Linear(config.latent_dim, widths[-1] * side**2)
        up = []
        for a, b in reversed(pairs):
            up.append(nn.ConvTranspose2d(b, b if a == config.in_channels else a, 4, 2, 1))
            up += [nn.BatchNorm2d(up[-1].out_channels), nn.LeakyReLU(0.2)]
        self.decoder = nn.Sequential(*up, nn.Conv2d(widths[0], config.in_channels, 3, padding=1), nn.Sigmoid())

    def encode(self, x):
        x = self.encoder(x)
        return self.mean(x), self.logvar(x)

    def decode(self, z):
        side = self.config.smallest
        return self.decoder(self.spread(z).view(z.shape[0], -1, side, side))

    def forward(self, sample, sample_posterior=None, return_loss=False, generator=None):
        """sample_posterior: by chance (while training, if it is not said), else the mean."""
        mean, logvar = self.encode(sample)
        z = mean
        if self.training if sample_posterior is None else sample_posterior:
            noise = _C.randn(mean.shape, generator=generator).to(device=mean.device, dtype=mean.dtype)
            z = mean + (0.5 * logvar).exp() * noise
        again, loss = self.decode(z), None
        if return_loss:
            apart = -0.5 * (1 + logvar - mean**2 - logvar.exp()).sum(1).mean()
            loss = F.mse_loss(again, sample, reduction="sum") / len(sample) + self.config.kl_weight * apart
        return VAEOutput(loss=loss, sample=again, mean=mean, logvar=logvar)


class VAEForImageGeneration(VAEModel):
    """The variational autoencoder with `generate`: images from normal numbers.

    >>> config = lucid.models.VAEConfig(sample_size=8, down_block_channels=(4,), latent_dim=2)
    >>> tuple(lucid.models.VAEForImageGeneration(config).eval().generate(2).shape)
    (2, 3, 8, 8)
    """

    def generate(self, count=1, generator=None):
        from ....autograd import no_grad

        with no_grad():
            z = _C.randn(count, self.config.latent_dim, generator=generator)
            return self.decode(z.to(device=self.device, dtype=self.dtype))


globals().update(family(AutoencoderKLConfig, {"": (AutoencoderKL, "autoencoder")}, {"autoencoder_kl": {}}))
globals().update(
    family(VAEConfig, {"": (VAEModel, "autoencoder"), "_gen": (VAEForImageGeneration, "image-generation")}, {"vae": {}})
)
