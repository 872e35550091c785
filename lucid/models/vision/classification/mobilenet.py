"""MobileNet v2 (Sandler et al., 2018) and v3 (Howard et al., 2019), with torchvision's keys."""

import dataclasses

from .... import nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import ConvNormAct, SqueezeExcite, divisible, start_convolutions


@dataclasses.dataclass(frozen=True)
class MobileNetV2Config(ImageConfig):
    """The settings of MobileNet v2.

    >>> lucid.models.MobileNetV2Config(width_mult=0.75).dropout
    0.2
    """

    width_mult: float = 1.0
    round_nearest: int = 8
    dropout: float = 0.2
    model_type = "mobilenet_v2-torchvision"


@dataclasses.dataclass(frozen=True)
class MobileNetV3Config(ImageConfig):
    """The settings of MobileNet v3. dilated: the last blocks keep the size of the maps, for segmentation; reduced_tail: they
    have half as many channels.

    >>> lucid.models.MobileNetV3Config(variant="small").dropout
    0.2
    """

    variant: str = "large"
    width_mult: float = 1.0
    reduced_tail: bool = False
    dilated: bool = False
    dropout: float = 0.2
    model_type = "mobilenet_v3"

    def __post_init__(self):
        self.check(variant=_V3)


class _V2Block(nn.Module):
    def __init__(self, inputs, outputs, stride, expand):
        super().__init__()
        inner = int(round(inputs * expand))
        layers = [] if expand == 1 else [ConvNormAct(inputs, inner, 1, act=nn.ReLU6)]
        layers += [ConvNormAct(inner, inner, 3, stride, inner, act=nn.ReLU6), nn.Conv2d(inner, outputs, 1, bias=False)]
        self.conv = nn.Sequential(*layers, nn.BatchNorm2d(outputs))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.conv(x) if self.adds else self.conv(x)


# expansion, channels, blocks, stride of the first
_V2 = (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)


class MobileNetV2(ImageModel):
    """MobileNet v2 without its classifier.

    >>> model = lucid.models.MobileNetV2(lucid.models.MobileNetV2Config())
    >>> tuple(model(lucid.zeros(2, 3, 32, 32)).pooler_output.shape)
    (2, 1280)
    """

    config_class = MobileNetV2Config
    head_keys = ("classifier.",)
    stem_keys = ("features.0.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        width = lambda channels: divisible(channels * config.width_mult, config.round_nearest)
        inputs = width(32)
        last = divisible(1280 * max(1.0, config.width_mult), config.round_nearest)
        layers = [ConvNormAct(config.in_channels, inputs, 3, 2, act=nn.ReLU6)]
        for expand, channels, depth, stride in _V2:
            for i in range(depth):
                layers.append(_V2Block(inputs, width(channels), stride if i == 0 else 1, expand))
                inputs = width(channels)
        self.features = nn.Sequential(*layers, ConvNormAct(inputs, last, 1, act=nn.ReLU6))
        if self.classifies:
            self.classifier = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(last, config.num_classes))
        start_convolutions(self)

    def trunk(self, x):
        return self.features(x)

    def scores(self, x):
        return self.classifier(x)


# kernel, expanded, outputs, squeeze and excite, hard swish, stride; the last three blocks are the tail that may be dilated
_V3 = {
    "large": (
        (3, 16, 16, 0, 0, 1),
        (3, 64, 24, 0, 0, 2),
        (3, 72, 24, 0, 0, 1),
        (5, 72, 40, 1, 0, 2),
        (5, 120, 40, 1, 0, 1),
        (5, 120, 40, 1, 0, 1),
        (3, 240, 80, 0, 1, 2),
        (3, 200, 80, 0, 1, 1),
        (3, 184, 80, 0, 1, 1),
        (3, 184, 80, 0, 1, 1),
        (3, 480, 112, 1, 1, 1),
        (3, 672, 112, 1, 1, 1),
        (5, 672, 160, 1, 1, 2),
        (5, 960, 160, 1, 1, 1),
        (5, 960, 160, 1, 1, 1),
    ),
    "small": (
        (3, 16, 16, 1, 0, 2),
        (3, 72, 24, 0, 0, 2),
        (3, 88, 24, 0, 0, 1),
        (5, 96, 40, 1, 1, 2),
        (5, 240, 40, 1, 1, 1),
        (5, 240, 40, 1, 1, 1),
        (5, 120, 48, 1, 1, 1),
        (5, 144, 48, 1, 1, 1),
        (5, 288, 96, 1, 1, 2),
        (5, 576, 96, 1, 1, 1),
        (5, 576, 96, 1, 1, 1),
    ),
}


def _norm(channels):
    return nn.BatchNorm2d(channels, eps=0.001, momentum=0.01)


class _V3Block(nn.Module):
    def __init__(self, inputs, kernel, inner, outputs, squeezes, swishes, stride, dilation):
        super().__init__()
        act = nn.Hardswish if swishes else nn.ReLU
        layers = [] if inner == inputs else [ConvNormAct(inputs, inner, 1, norm=_norm, act=act)]
        step = 1 if dilation > 1 else stride
        layers.append(ConvNormAct(inner, inner, kernel, step, inner, _norm, act, dilation))
        if squeezes:
            layers.append(SqueezeExcite(inner, divisible(inner // 4), gate=F.hardsigmoid))
        self.block = nn.Sequential(*layers, ConvNormAct(inner, outputs, 1, norm=_norm, act=None))
        self.adds, self.strides, self.out_channels = stride == 1 and inputs == outputs, stride > 1, outputs

    def forward(self, x):
        return x + self.block(x) if self.adds else self.block(x)


def v3_features(config):
    """The layers of MobileNet v3, and the number of channels of the last.

    >>> from lucid.models.vision.classification.mobilenet import v3_features
    >>> v3_features(lucid.models.MobileNetV3Config(variant="small"))[1]
    576
    """
    width = lambda channels: divisible(channels * config.width_mult)
    rows = _V3[config.variant]
    inputs = width(16)
    layers = [ConvNormAct(config.in_channels, inputs, 3, 2, norm=_norm, act=nn.Hardswish)]
    for i, (kernel, inner, outputs, squeezes, swishes, stride) in enumerate(rows):
        tail = i >= len(rows) - 3
        if tail and config.reduced_tail:
            outputs, inner = outputs // 2, inner // 2 if i > len(rows) - 3 else inner
        dilation = 2 if tail and config.dilated else 1
        layers.append(_V3Block(inputs, kernel, width(inner), width(outputs), squeezes, swishes, stride, dilation))
        inputs = width(outputs)
    return nn.Sequential(*layers, ConvNormAct(inputs, 6 * inputs, 1, norm=_norm, act=nn.Hardswish)), 6 * inputs


class MobileNetV3(ImageModel):
    """MobileNet v3 without its classifier.

    >>> model = lucid.models.MobileNetV3(lucid.models.MobileNetV3Config(variant="small"))
    >>> tuple(model(lucid.zeros(2, 3, 32, 32)).pooler_output.shape)
    (2, 576)
    """

    config_class = MobileNetV3Config
    head_keys = ("classifier.3.",)
    stem_keys = ("features.0.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        self.features, width = v3_features(config)
        if self.classifies:
            last = divisible(
                (1280 if config.variant == "large" else 1024) // (2 if config.reduced_tail else 1) * config.width_mult
            )
            head = nn.Linear(width, last), nn.Hardswish(), nn.Dropout(config.dropout), nn.Linear(last, config.num_classes)
            self.classifier = nn.Sequential(*head)
        start_convolutions(self)

    def trunk(self, x):
        return self.features(x)

    def scores(self, x):
        return self.classifier(x)


globals().update(
    image_family(
        MobileNetV2,
        {"mobilenet_v2": {}, "mobilenet_v2_075": dict(width_mult=0.75)},
        {"mobilenet_v2": "mobilenet_v2"},
    )
)
_V3_SIZES = {f"mobilenet_v3_{v}": dict(variant=v) for v in _V3}
globals().update(image_family(MobileNetV3, _V3_SIZES, {name: name for name in _V3_SIZES}))
