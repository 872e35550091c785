"""U-Net (Ronneberger et al., 2015) with the keys of milesial/Pytorch-UNet; with gates of attention on its shortcuts (Oktay
et al., 2018); with residual blocks (Zhang et al., 2018); and for volumes (Çiçek et al., 2016). The latter three have keys
of their own.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...base import PretrainedModel
from ...registry import family
from ..base import ImageConfig
from .base import SemanticSegmentationOutput, pixel_loss


@dataclasses.dataclass(frozen=True)
class UNetConfig(ImageConfig):
    """The settings of U-Net. dims: 2 for images, 3 for volumes; bilinear: enlarge without weights; residual: blocks that add.

    >>> lucid.models.UNetConfig(num_classes=2).base_channels
    64
    """

    num_classes: int = 21
    base_channels: int = 64
    dims: int = 2
    bilinear: bool = False
    residual: bool = False

    model_type = "unet"

    def __post_init__(self):
        self.check(dims={2, 3})


@dataclasses.dataclass(frozen=True)
class AttentionUNetConfig(UNetConfig):
    """The settings of U-Net with gates of attention.

    >>> lucid.models.AttentionUNetConfig().dims
    2
    """

    model_type = "attention_unet"


def _kinds(dims):
    if dims == 2:
        return nn.Conv2d, nn.BatchNorm2d, nn.ConvTranspose2d, F.max_pool2d
    return nn.Conv3d, nn.BatchNorm3d, nn.ConvTranspose3d, F.max_pool3d


class _Twice(nn.Module):
    def __init__(self, inputs, outputs, config, inner=None):
        super().__init__()
        conv, norm, *_ = _kinds(config.dims)
        inner = inner or outputs
        self.double_conv = nn.Sequential(
            *(conv(inputs, inner, 3, padding=1, bias=False), norm(inner), nn.ReLU()),
            *(conv(inner, outputs, 3, padding=1, bias=False), norm(outputs), nn.ReLU()),
        )
        if config.residual:
            self.shortcut = conv(inputs, outputs, 1)

    def forward(self, x):
        y = self.double_conv(x)
        return y + self.shortcut(x) if hasattr(self, "shortcut") else y


class _Down(nn.Module):
    def __init__(self, inputs, outputs, config):
        super().__init__()
        pool = nn.MaxPool2d(2) if config.dims == 2 else nn.MaxPool3d(2)
        self.maxpool_conv = nn.Sequential(pool, _Twice(inputs, outputs, config))

    def forward(self, x):
        return self.maxpool_conv(x)


class _Gate(nn.Module):  # which places of a shortcut matter, by what lies deeper
    def __init__(self, width, config):
        super().__init__()
        conv, norm, *_ = _kinds(config.dims)
        inner = max(width // 2, 1)
        self.deep, self.side = (nn.Sequential(conv(width, inner, 1), norm(inner)) for _ in range(2))
        self.weight = nn.Sequential(conv(inner, 1, 1), norm(1), nn.Sigmoid())

    def forward(self, side, deep):
        return side * self.weight(F.relu(self.side(side) + self.deep(deep)))


class _Up(nn.Module):
    def __init__(self, inputs, outputs, config, gated):
        super().__init__()
        *_, transposed, _pool = _kinds(config.dims)
        if config.bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear" if config.dims == 2 else "trilinear", align_corners=True)
            self.conv = _Twice(inputs, outputs, config, inputs // 2)
        else:
            self.up = transposed(inputs, inputs // 2, 2, 2)
            self.conv = _Twice(inputs, outputs, config)
        if gated:
            self.gate = _Gate(inputs // 2, config)

    def forward(self, x, side):
        x = self.up(x)
        missing = [a - b for a, b in zip(reversed(side.shape[2:]), reversed(x.shape[2:]))]
        if any(missing):
            x = F.pad(x, [n for gap in missing for n in (gap // 2, gap - gap // 2)])
        return self.conv(_C.cat([self.gate(side, x) if hasattr(self, "gate") else side, x], 1))


class UNetForSemanticSegmentation(PretrainedModel):
    """U-Net: `.logits` of the images' size.

    >>> config = lucid.models.UNetConfig(num_classes=2, base_channels=4)
    >>> tuple(lucid.models.UNetForSemanticSegmentation(config).eval()(lucid.zeros(1, 3, 32, 40)).logits.shape)
    (1, 2, 32, 40)
    """

    config_class = UNetConfig
    head_keys = ("outc.",)
    stem_keys = ("inc.double_conv.0.weight",)
    gated = False

    def __init__(self, config):
        super().__init__(config)
        width, half = config.base_channels, 2 if config.bilinear else 1
        self.inc = _Twice(config.in_channels, width, config)
        for i in range(1, 5):
            outputs = width * 2**i // (half if i == 4 else 1)
            setattr(self, f"down{i}", _Down(width * 2 ** (i - 1), outputs, config))
        for i in range(1, 5):
            outputs = width * 2 ** (4 - i) // (half if i < 4 else 1)
            setattr(self, f"up{i}", _Up(width * 2 ** (5 - i), outputs, config, self.gated))
        self.outc = nn.Module()
        self.outc.conv = _kinds(config.dims)[0](width, config.num_classes, 1)

    def forward(self, pixel_values, labels=None):
        kept = [self.inc(pixel_values)]
        for i in range(1, 5):
            kept.append(getattr(self, f"down{i}")(kept[-1]))
        x = kept.pop()
        for i in range(1, 5):
            x = getattr(self, f"up{i}")(x, kept.pop())
        logits = self.outc.conv(x)
        return SemanticSegmentationOutput(loss=None if labels is None else pixel_loss(logits, labels), logits=logits)


class AttentionUNetForSemanticSegmentation(UNetForSemanticSegmentation):
    """U-Net whose shortcuts are weighed by what lies deeper.

    >>> config = lucid.models.AttentionUNetConfig(num_classes=2, base_channels=4)
    >>> tuple(lucid.models.AttentionUNetForSemanticSegmentation(config).eval()(lucid.zeros(1, 3, 32, 32)).logits.shape)
    (1, 2, 32, 32)
    """

    config_class = AttentionUNetConfig
    gated = True


globals().update(
    family(
        UNetConfig,
        {"": (UNetForSemanticSegmentation, "semantic-segmentation")},
        {
            "unet": {},
            "unet_3d": dict(dims=3, in_channels=1),
            "res_unet_2d": dict(residual=True),
            "res_unet_3d": dict(residual=True, dims=3, in_channels=1),
        },
    )
)
globals().update(
    family(
        AttentionUNetConfig,
        {"": (AttentionUNetForSemanticSegmentation, "semantic-segmentation")},
        {"attention_unet": {}},
    )
)
