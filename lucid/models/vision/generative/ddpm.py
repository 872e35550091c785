"""Denoising diffusion (Ho et al., 2020): the U-Net that says which noise is in an image, with diffusers' keys
(UNet2DModel), and a network for score matching (Song and Ermon, 2019) of the same shape, with its own.

With a scheduler (schedulers.py) the network makes images: `DDPMForImageGeneration.generate`.
"""

import dataclasses

from .... import _C, nn
from ....autograd import no_grad
from ....nn import functional as F
from ...base import PretrainedModel
from ...mixins import DiffusionMixin
from ...outputs import ModelOutput
from ...registry import family
from .blocks import Double, Halve, Middle, PlaceAttention, ResBlock, Stage, time_vector
from .configs import DiffusionModelConfig, GenerativeModelConfig

PUBLIC = ("DDPMUNet",)


class DiffusionModelOutput(ModelOutput):
    """What a network of diffusion returns: the noise in its input, and the loss if it was told the noise.

    >>> lucid.models.DiffusionModelOutput(sample=1).sample
    1
    """

    fields = ("loss", "sample")


@dataclasses.dataclass(frozen=True)
class _UNetShape(GenerativeModelConfig):
    """The shape of the U-Net; attention_resolutions: sizes of the maps that have attention.

    Files of diffusers say block_out_channels and block types instead: `from_dict` understands them.

    >>> lucid.models.DDPMConfig(base_channels=32, channel_mult=(1, 2)).channels
    (32, 64)
    """

    out_channels: int = 3
    base_channels: int = 128
    channel_mult: tuple = (1, 2, 2, 2)
    num_res_blocks: int = 2
    attention_resolutions: tuple = (16,)
    num_heads: int = 1
    resnet_groups: int = 32
    dropout: float = 0.0
    norm_eps: float = 1e-5
    cosines_first: bool = True
    freq_shift: int = 0
    downsample_padding: int = 1

    aliases = {
        "layers_per_block": "num_res_blocks",
        "norm_num_groups": "resnet_groups",
        "flip_sin_to_cos": "cosines_first",
    }

    def __post_init__(self):
        super().__post_init__()
        if self.base_channels % self.resnet_groups:
            raise ValueError(f"base_channels {self.base_channels} is not a multiple of resnet_groups {self.resnet_groups}")

    @property
    def channels(self):
        return tuple(int(self.base_channels * m) for m in self.channel_mult)

    @classmethod
    def understood(cls, values):
        values = super().understood(values)
        widths = values.pop("block_out_channels", None)
        if widths:
            values.update(base_channels=widths[0], channel_mult=tuple(w / widths[0] for w in widths))
        kinds, ups = values.pop("down_block_types", None), values.pop("up_block_types", None)
        if kinds:
            if ups and [k.startswith("Attn") for k in ups] != [k.startswith("Attn") for k in kinds][::-1]:
                raise ValueError("up_block_types has attention at other sizes than down_block_types: not implemented")
            side = values.get("sample_size", 32)
            values["attention_resolutions"] = tuple(side >> i for i, kind in enumerate(kinds) if kind.startswith("Attn"))
        return values


@dataclasses.dataclass(frozen=True)
class DDPMConfig(_UNetShape, DiffusionModelConfig):
    """The settings of the U-Net (_UNetShape), and of the noise it learns from.

    >>> lucid.models.DDPMConfig(sample_size=64).beta_schedule
    'linear'
    """

    model_type = "ddpm"
    only = {
        "_class_name": "UNet2DModel",
        "center_input_sample": False,
        "time_embedding_type": "positional",
        "mid_block_scale_factor": 1,
        "act_fn": "silu",
        "resnet_time_scale_shift": "default",
        "add_attention": True,
        "class_embed_type": None,
        "attention_head_dim": None,
    }


class DDPMUNet(nn.Module):
    """The U-Net: images (batch, channels, height, width) and times (batch,) in, images out.

    >>> config = lucid.models.DDPMConfig(sample_size=8, base_channels=8, channel_mult=(1, 2), resnet_groups=4)
    >>> tuple(lucid.models.DDPMUNet(config)(lucid.zeros(1, 3, 8, 8), lucid.tensor([5])).shape)
    (1, 3, 8, 8)
    """

    def __init__(self, config):
        super().__init__()
        self.build(config)

    def build(self, config):
        channels, groups, eps, count = config.channels, config.resnet_groups, config.norm_eps, config.num_res_blocks
        time = 4 * channels[0]
        self.cosines_first, self.freq_shift, self.width = config.cosines_first, config.freq_shift, channels[0]
        self.conv_in, self.time_embedding = nn.Conv2d(config.in_channels, channels[0], 3, padding=1), nn.Module()
        self.time_embedding.linear_1, self.time_embedding.linear_2 = nn.Linear(channels[0], time), nn.Linear(time, time)
        block = lambda inputs, outputs: ResBlock(inputs, outputs, time, groups, eps, config.dropout)
        attends = [config.sample_size >> i in config.attention_resolutions for i in range(len(channels))]
        look = lambda i, n: [PlaceAttention(channels[i], config.num_heads, groups, eps) for _ in range(n * attends[i])]
        downs, kept, before, last = [], [channels[0]], channels[0], len(channels) - 1
        for i, width in enumerate(channels):
            blocks = [block(before if j == 0 else width, width) for j in range(count)]
            smaller = Halve(width, config.downsample_padding) if i < last else None
            downs.append(Stage(blocks, look(i, count), downsamplers=smaller))
            kept += [width] * (count + (i < last))
            before = width
        ups = []
        for i, width in reversed(list(enumerate(channels))):
            blocks = []
            for _ in range(count + 1):
                blocks.append(block(before + kept.pop(), width))
                before = width
            ups.append(Stage(blocks, look(i, count + 1), upsamplers=Double(width) if i else None))
        self.down_blocks, self.up_blocks = nn.ModuleList(downs), nn.ModuleList(ups)
        self.mid_block = Middle(channels[-1], time, config.num_heads, groups, eps, config.dropout)
        self.conv_norm_out = nn.GroupNorm(groups, channels[0], eps)
        self.conv_out = nn.Conv2d(channels[0], config.out_channels, 3, padding=1)

    def noise_in(self, x, t):
        if not isinstance(t, _C.Tensor):
            t = _C.tensor(t, device=x.device)
        t = t.expand(x.shape[0]) if t.ndim == 0 else t
        layers = self.time_embedding
        time = layers.linear_1(time_vector(t, self.width, self.cosines_first, self.freq_shift).to(x.dtype))
        time = layers.linear_2(F.silu(time))
        kept = [self.conv_in(x)]
        for stage in self.down_blocks:
            kept += stage.steps(kept[-1], time)
        x = self.mid_block(kept[-1], time)
        for stage in self.up_blocks:
            x = stage.steps(x, time, kept)[-1]
        return self.conv_out(F.silu(self.conv_norm_out(x)))

    def forward(self, x, t):
        return self.noise_in(x, t)


class DDPMModel(DDPMUNet, PretrainedModel):
    """The U-Net of diffusion; with noise= the loss as well.

    >>> config = lucid.models.DDPMConfig(sample_size=8, base_channels=8, channel_mult=(1, 2), resnet_groups=4)
    >>> out = lucid.models.DDPMModel(config)(lucid.zeros(2, 3, 8, 8), lucid.tensor([5, 9]), noise=lucid.ones(2, 3, 8, 8))
    >>> tuple(out.sample.shape), out.loss.ndim
    ((2, 3, 8, 8), 0)
    """

    config_class = DDPMConfig
    stem_keys = ("conv_in.weight",)
    renamed_keys = (  # as the first files spell attention
        (r"(attentions\.\d+)\.query\.", r"\1.to_q."),
        (r"(attentions\.\d+)\.key\.", r"\1.to_k."),
        (r"(attentions\.\d+)\.value\.", r"\1.to_v."),
        (r"(attentions\.\d+)\.proj_attn\.", r"\1.to_out.0."),
    )

    def __init__(self, config):
        PretrainedModel.__init__(self, config)
        self.build(config)

    def forward(self, sample, timestep, noise=None):
        found = self.noise_in(sample, timestep)
        return DiffusionModelOutput(loss=None if noise is None else F.mse_loss(found, noise), sample=found)


class DDPMForImageGeneration(DiffusionMixin, DDPMModel):
    """The U-Net with `generate`: images from noise, by a scheduler.

    >>> config = lucid.models.DDPMConfig(sample_size=8, base_channels=8, channel_mult=(1, 2), resnet_groups=4)
    >>> scheduler = lucid.models.DDIMScheduler()
    >>> tuple(lucid.models.DDPMForImageGeneration(config).generate(2, scheduler, steps=3).shape)
    (2, 3, 8, 8)
    """

    def make_scheduler(self):
        return self.config.scheduler()


@dataclasses.dataclass(frozen=True)
class NCSNConfig(_UNetShape):
    """The settings of a noise conditional score network: levels of noise from sigma_begin to sigma_end.

    >>> lucid.models.NCSNConfig().num_scales
    10
    """

    num_scales: int = 10
    sigma_begin: float = 1.0
    sigma_end: float = 0.01

    model_type = "ncsn"


class NCSNModel(DDPMModel):
    """The direction in which images at a level of noise become more probable: the U-Net's result over the level.

    >>> config = lucid.models.NCSNConfig(sample_size=8, base_channels=8, channel_mult=(1, 2), resnet_groups=4)
    >>> tuple(lucid.models.NCSNModel(config)(lucid.zeros(1, 3, 8, 8), lucid.tensor([5])).sample.shape)
    (1, 3, 8, 8)
    """

    config_class = NCSNConfig

    def sigmas(self, device=None):
        config = self.config
        steps = _C.arange(config.num_scales, dtype=_C.float32, device=device) / max(config.num_scales - 1, 1)
        return config.sigma_begin * (config.sigma_end / config.sigma_begin) ** steps

    def forward(self, sample, labels, noise=None):
        """labels: numbers of levels; noise: what was added, for the loss of denoising score matching."""
        sigma = self.sigmas(sample.device)[labels].view(-1, 1, 1, 1).to(sample.dtype)
        score = self.noise_in(sample, labels) / sigma
        loss = None if noise is None else 0.5 * ((score * sigma + noise / sigma) ** 2).flatten(1).sum(1).mean()
        return DiffusionModelOutput(loss=loss, sample=score)


class NCSNForImageGeneration(NCSNModel):
    """The score network with `generate`: annealed Langevin dynamics.

    >>> config = lucid.models.NCSNConfig(sample_size=8, base_channels=8, channel_mult=(1, 2), resnet_groups=4, num_scales=2)
    >>> tuple(lucid.models.NCSNForImageGeneration(config).generate(1, steps=2).shape)
    (1, 3, 8, 8)
    """

    def generate(self, count=1, steps=100, step_size=2e-5, generator=None):
        config, training = self.config, self.training
        self.eval()
        with no_grad():
            shape = count, config.in_channels, config.sample_size, config.sample_size
            x = _C.rand(*shape, generator=generator).to(device=self.device, dtype=self.dtype)
            for level, sigma in enumerate(self.sigmas().tolist()):
                rate = step_size * (sigma / config.sigma_end) ** 2
                labels = _C.full((count,), level, dtype=_C.int64, device=x.device)
                for _ in range(steps):
                    noise = _C.randn(*shape, generator=generator).to(device=x.device, dtype=x.dtype)
                    x = x + rate * self(x, labels).sample + (2 * rate) ** 0.5 * noise
        return self.train(training) and x


_PUBLISHED = dict(norm_eps=1e-6, cosines_first=False, freq_shift=1, downsample_padding=0)
_CLASSES = {"": (DDPMModel, "diffusion"), "_gen": (DDPMForImageGeneration, "image-generation")}
globals().update(
    family(
        DDPMConfig,
        _CLASSES,
        {
            "ddpm_cifar": _PUBLISHED,
            "ddpm_lsun": dict(sample_size=256, channel_mult=(1, 1, 2, 2, 4, 4), **_PUBLISHED),
            "ddpm_imagenet64": dict(
                sample_size=64, channel_mult=(1, 2, 3, 4), num_res_blocks=3, attention_resolutions=(16, 8), num_heads=4
            ),
        },
    )
)
globals().update(
    family(
        NCSNConfig,
        {"": (NCSNModel, "diffusion"), "_gen": (NCSNForImageGeneration, "image-generation")},
        {"ncsn_cifar": {}, "ncsn_celeba": dict(sample_size=64)},
    )
)
