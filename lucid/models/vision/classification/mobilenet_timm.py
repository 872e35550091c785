"""MobileNet v1 (Howard et al., 2017) and v4 (Qin et al., 2024), with timm's keys.

Both are rows of blocks: `ds` a depthwise and a pointwise convolution, `conv` one convolution, `fused` a wide convolution
and a narrow one, `uib` the universal inverted bottleneck with depthwise convolutions before and between its pointwise ones.
"""

import dataclasses

from .... import nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import NamedConvNormAct, conv1x1, divisible, start_convolutions


@dataclasses.dataclass(frozen=True)
class MobileNetV1Config(ImageConfig):
    """The settings of MobileNet v1.

    >>> lucid.models.MobileNetV1Config(width_mult=0.5).num_classes
    1000
    """

    width_mult: float = 1.0
    model_type = "mobilenet_v1-timm"


@dataclasses.dataclass(frozen=True)
class MobileNetV4Config(ImageConfig):
    """The settings of MobileNet v4 (its convolutional forms).

    >>> lucid.models.MobileNetV4Config(variant="medium").variant
    'medium'
    """

    variant: str = "small"
    model_type = "mobilenet_v4"

    def __post_init__(self):
        self.check(variant=_V4)


class _Separable(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv_dw = nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False)
        self.bn1, self.conv_pw, self.bn2 = nn.BatchNorm2d(inputs), conv1x1(inputs, outputs), nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu6(self.bn2(self.conv_pw(F.relu6(self.bn1(self.conv_dw(x))))))


class MobileNetV1(ImageModel):
    """MobileNet v1 without its classifier.

    >>> model = lucid.models.MobileNetV1(lucid.models.MobileNetV1Config(width_mult=0.25))
    >>> tuple(model(lucid.zeros(2, 3, 32, 32)).pooler_output.shape)
    (2, 256)
    """

    config_class = MobileNetV1Config
    head_keys = ("classifier.",)
    stem_keys = ("conv_stem.weight",)

    def __init__(self, config):
        super().__init__(config)
        width = lambda channels: divisible(channels * config.width_mult)
        inputs = width(32)
        self.conv_stem, self.bn1 = nn.Conv2d(config.in_channels, inputs, 3, 2, 1, bias=False), nn.BatchNorm2d(inputs)
        stages = []
        for stride, outputs, depth in ((1, 64, 1), (2, 128, 2), (2, 256, 2), (2, 512, 6), (2, 1024, 2)):
            blocks = []
            for i in range(depth):
                blocks.append(_Separable(inputs, width(outputs), stride if i == 0 else 1))
                inputs = width(outputs)
            stages.append(nn.Sequential(*blocks))
        self.blocks = nn.Sequential(*stages)
        if self.classifies:
            self.classifier = nn.Linear(inputs, config.num_classes)
        start_convolutions(self)

    def trunk(self, x):
        return self.blocks(F.relu6(self.bn1(self.conv_stem(x))))

    def scores(self, x):
        return self.classifier(x)


class _Wide(nn.Module):
    def __init__(self, inputs, expand, kernel, stride, outputs):
        super().__init__()
        inner = divisible(inputs * expand)
        self.conv_exp = nn.Conv2d(inputs, inner, kernel, stride, kernel // 2, bias=False)
        self.bn1, self.conv_pwl, self.bn2 = nn.BatchNorm2d(inner), conv1x1(inner, outputs), nn.BatchNorm2d(outputs)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.bn2(self.conv_pwl(F.relu(self.bn1(self.conv_exp(x)))))
        return y + x if self.adds else y


class _Plain(nn.Module):
    def __init__(self, inputs, kernel, stride, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.bn1(self.conv(x)))


class _Universal(nn.Module):
    def __init__(self, inputs, before, between, stride, expand, outputs):
        super().__init__()
        inner = divisible(inputs * expand)
        early = stride if not between else 1
        depthwise = lambda kernel, width, step, act: NamedConvNormAct(width, width, kernel, step, groups=width, act=act)
        self.dw_start = depthwise(before, inputs, early, None) if before else nn.Identity()
        self.pw_exp = NamedConvNormAct(inputs, inner)
        self.dw_mid = depthwise(between, inner, stride, F.relu) if between else nn.Identity()
        self.pw_proj = NamedConvNormAct(inner, outputs, act=None)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.pw_proj(self.dw_mid(self.pw_exp(self.dw_start(x))))
        return y + x if self.adds else y


def _repeat(count, *row):
    return (row,) * count


# ("conv", kernel, stride, outputs), ("fused", expansion, kernel, stride, outputs),
# ("uib", kernel before, kernel between, stride, expansion, outputs)
_V4 = {
    "small": (
        (("conv", 3, 2, 32), ("conv", 1, 1, 32)),
        (("conv", 3, 2, 96), ("conv", 1, 1, 64)),
        (("uib", 5, 5, 2, 3, 96), *_repeat(4, "uib", 0, 3, 1, 2, 96), ("uib", 3, 0, 1, 4, 96)),
        (
            *(("uib", 3, 3, 2, 6, 128), ("uib", 5, 5, 1, 4, 128), ("uib", 0, 5, 1, 4, 128), ("uib", 0, 5, 1, 3, 128)),
            *_repeat(2, "uib", 0, 3, 1, 4, 128),
        ),
        (("conv", 1, 1, 960),),
    ),
    "medium": (
        (("fused", 4, 3, 2, 48),),
        (("uib", 3, 5, 2, 4, 80), ("uib", 3, 3, 1, 2, 80)),
        (
            *(("uib", 3, 5, 2, 6, 160), *_repeat(2, "uib", 3, 3, 1, 4, 160), ("uib", 3, 5, 1, 4, 160)),
            *(("uib", 3, 3, 1, 4, 160), ("uib", 3, 0, 1, 4, 160), ("uib", 0, 0, 1, 2, 160), ("uib", 3, 0, 1, 4, 160)),
        ),
        (
            *(("uib", 5, 5, 2, 6, 256), ("uib", 5, 5, 1, 4, 256), *_repeat(2, "uib", 3, 5, 1, 4, 256)),
            *(("uib", 0, 0, 1, 4, 256), ("uib", 3, 0, 1, 4, 256), ("uib", 3, 5, 1, 2, 256), ("uib", 5, 5, 1, 4, 256)),
            *(*_repeat(2, "uib", 0, 0, 1, 4, 256), ("uib", 5, 0, 1, 2, 256)),
        ),
        (("conv", 1, 1, 960),),
    ),
    "large": (
        (("fused", 4, 3, 2, 48),),
        (("uib", 3, 5, 2, 4, 96), ("uib", 3, 3, 1, 4, 96)),
        (
            *(("uib", 3, 5, 2, 4, 192), *_repeat(3, "uib", 3, 3, 1, 4, 192), ("uib", 3, 5, 1, 4, 192)),
            *(*_repeat(5, "uib", 5, 3, 1, 4, 192), ("uib", 3, 0, 1, 4, 192)),
        ),
        (
            *(("uib", 5, 5, 2, 4, 512), *_repeat(3, "uib", 5, 5, 1, 4, 512), ("uib", 5, 0, 1, 4, 512)),
            *(("uib", 5, 3, 1, 4, 512), *_repeat(2, "uib", 5, 0, 1, 4, 512), ("uib", 5, 3, 1, 4, 512)),
            *(("uib", 5, 5, 1, 4, 512), *_repeat(3, "uib", 5, 0, 1, 4, 512)),
        ),
        (("conv", 1, 1, 960),),
    ),
}
_KINDS = {"conv": _Plain, "fused": _Wide, "uib": _Universal}


class MobileNetV4(ImageModel):
    """MobileNet v4 without its classifier.

    >>> model = lucid.models.MobileNetV4(lucid.models.MobileNetV4Config())
    >>> tuple(model(lucid.zeros(2, 3, 32, 32)).pooler_output.shape)
    (2, 960)
    """

    config_class = MobileNetV4Config
    head_keys = ("classifier.",)
    stem_keys = ("conv_stem.weight",)

    def __init__(self, config):
        super().__init__(config)
        inputs = 24 if config.variant == "large" else 32
        self.conv_stem, self.bn1 = nn.Conv2d(config.in_channels, inputs, 3, 2, 1, bias=False), nn.BatchNorm2d(inputs)
        stages = []
        for rows in _V4[config.variant]:
            blocks = []
            for kind, *shape in rows:
                blocks.append(_KINDS[kind](inputs, *shape))
                inputs = shape[-1]
            stages.append(nn.Sequential(*blocks))
        self.blocks = nn.Sequential(*stages)
        if self.classifies:
            self.conv_head, self.norm_head = conv1x1(inputs, 1280), nn.BatchNorm2d(1280)
            self.classifier = nn.Linear(1280, config.num_classes)
        start_convolutions(self)

    def head_prefixes(self):
        return {"conv_head.", "norm_head.", "classifier."}

    def trunk(self, x):
        return self.blocks(F.relu(self.bn1(self.conv_stem(x))))

    def scores(self, x):
        return self.classifier(F.relu(self.norm_head(self.conv_head(x[:, :, None, None]))).flatten(1))


globals().update(
    image_family(
        MobileNetV1,
        {
            f"mobilenet_v1{suffix}": dict(width_mult=w)
            for suffix, w in (("", 1.0), ("_025", 0.25), ("_050", 0.5), ("_075", 0.75))
        },
    )
)
globals().update(image_family(MobileNetV4, {f"mobilenet_v4_conv_{v}": dict(variant=v) for v in _V4}))
