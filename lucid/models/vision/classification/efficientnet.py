"""EfficientNet (Tan and Le, 2019) and EfficientNet v2 (2021), with torchvision's keys."""

import dataclasses
import math

from .... import nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import ConvNormAct, DropPath, SqueezeExcite, divisible, start_convolutions

# fused, expansion, kernel, stride, inputs, outputs, blocks
_FIRST = (
    (0, 1, 3, 1, 32, 16, 1),
    (0, 6, 3, 2, 16, 24, 2),
    (0, 6, 5, 2, 24, 40, 2),
    (0, 6, 3, 2, 40, 80, 3),
    (0, 6, 5, 1, 80, 112, 3),
    (0, 6, 5, 2, 112, 192, 4),
    (0, 6, 3, 1, 192, 320, 1),
)
_SECOND = {
    "s": (
        (1, 1, 3, 1, 24, 24, 2),
        (1, 4, 3, 2, 24, 48, 4),
        (1, 4, 3, 2, 48, 64, 4),
        (0, 4, 3, 2, 64, 128, 6),
        (0, 6, 3, 1, 128, 160, 9),
        (0, 6, 3, 2, 160, 256, 15),
    ),
    "m": (
        (1, 1, 3, 1, 24, 24, 3),
        (1, 4, 3, 2, 24, 48, 5),
        (1, 4, 3, 2, 48, 80, 5),
        (0, 4, 3, 2, 80, 160, 7),
        (0, 6, 3, 1, 160, 176, 14),
        (0, 6, 3, 2, 176, 304, 18),
        (0, 6, 3, 1, 304, 512, 5),
    ),
    "l": (
        (1, 1, 3, 1, 32, 32, 4),
        (1, 4, 3, 2, 32, 64, 7),
        (1, 4, 3, 2, 64, 96, 7),
        (0, 4, 3, 2, 96, 192, 10),
        (0, 6, 3, 1, 192, 224, 19),
        (0, 6, 3, 2, 224, 384, 25),
        (0, 6, 3, 1, 384, 640, 7),
    ),
}


@dataclasses.dataclass(frozen=True)
class EfficientNetConfig(ImageConfig):
    """The settings of EfficientNet; the defaults are B0.

    stages: rows of (fused, expansion, kernel, stride, inputs, outputs, blocks), scaled by width_mult and depth_mult.

    >>> lucid.models.EfficientNetConfig(dropout=0.3).stages[1][5]
    24
    """

    stages: tuple = _FIRST
    width_mult: float = 1.0
    depth_mult: float = 1.0
    dropout: float = 0.2
    stochastic_depth_prob: float = 0.2
    last_channel: int | None = None
    norm_eps: float = 1e-5
    norm_momentum: float = 0.1
    model_type = "efficientnet-torchvision"

    def __post_init__(self):
        object.__setattr__(self, "stages", tuple(tuple(row) for row in self.stages))
        if any(len(row) != 7 for row in self.stages):
            raise ValueError("a row of stages is (fused, expansion, kernel, stride, inputs, outputs, blocks)")

    def to_dict(self):
        return {**super().to_dict(), "stages": [list(row) for row in self.stages]}


class _Block(nn.Module):
    def __init__(self, fused, expand, kernel, stride, inputs, outputs, drop, norm):
        super().__init__()
        inner = divisible(inputs * expand)
        if fused:
            first = [ConvNormAct(inputs, inner if expand != 1 else outputs, kernel, stride, norm=norm, act=nn.SiLU)]
            layers = first if expand == 1 else [*first, ConvNormAct(inner, outputs, 1, norm=norm, act=None)]
        else:
            layers = [] if inner == inputs else [ConvNormAct(inputs, inner, 1, norm=norm, act=nn.SiLU)]
            layers.append(ConvNormAct(inner, inner, kernel, stride, inner, norm, nn.SiLU))
            layers.append(SqueezeExcite(inner, max(1, inputs // 4), act=F.silu))
            layers.append(ConvNormAct(inner, outputs, 1, norm=norm, act=None))
        self.block, self.stochastic_depth = nn.Sequential(*layers), DropPath(drop)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.stochastic_depth(self.block(x)) if self.adds else self.block(x)


class EfficientNet(ImageModel):
    """EfficientNet without its classifier.

    >>> model = lucid.models.EfficientNet(lucid.models.EfficientNetConfig())
    >>> tuple(model(lucid.zeros(2, 3, 32, 32)).pooler_output.shape)
    (2, 1280)
    """

    config_class = EfficientNetConfig
    head_keys = ("classifier.",)
    stem_keys = ("features.0.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        norm = lambda channels: nn.BatchNorm2d(channels, eps=config.norm_eps, momentum=config.norm_momentum)
        width = lambda channels: divisible(channels * config.width_mult)
        rows = [(*row[:4], width(row[4]), width(row[5]), math.ceil(row[6] * config.depth_mult)) for row in config.stages]
        layers = [ConvNormAct(config.in_channels, rows[0][4], 3, 2, norm=norm, act=nn.SiLU)]
        total, number = sum(row[6] for row in rows), 0
        for fused, expand, kernel, stride, inputs, outputs, depth in rows:
            blocks = []
            for i in range(depth):
                drop = config.stochastic_depth_prob * number / total
                shape = (stride, inputs, outputs) if i == 0 else (1, outputs, outputs)
                blocks.append(_Block(fused, expand, kernel, *shape, drop, norm))
                number += 1
            layers.append(nn.Sequential(*blocks))
        last = config.last_channel or 4 * rows[-1][5]
        self.features = nn.Sequential(*layers, ConvNormAct(rows[-1][5], last, 1, norm=norm, act=nn.SiLU))
        if self.classifies:
            self.classifier = nn.Sequential(nn.Dropout(config.dropout), nn.Linear(last, config.num_classes))
        start_convolutions(self, linear_std=1 / math.sqrt(3 * config.num_classes))

    def trunk(self, x):
        return self.features(x)

    def scores(self, x):
        return self.classifier(x)


_SCALES = ((1.0, 1.0, 0.2), (1.0, 1.1, 0.2), (1.1, 1.2, 0.3), (1.2, 1.4, 0.3), (1.4, 1.8, 0.4), (1.6, 2.2, 0.4))
_SCALES += ((1.8, 2.6, 0.5), (2.0, 3.1, 0.5))
_WIDE_NORM = dict(norm_eps=0.001, norm_momentum=0.01)
_SIZES = {
    f"efficientnet_b{i}": dict(width_mult=w, depth_mult=d, dropout=p, **(_WIDE_NORM if i > 4 else {}))
    for i, (w, d, p) in enumerate(_SCALES)
}
_SIZES.update(
    {
        f"efficientnet_v2_{size}": dict(stages=_SECOND[size], dropout=p, last_channel=1280, norm_eps=0.001)
        for size, p in (("s", 0.2), ("m", 0.3), ("l", 0.4))
    }
)
globals().update(image_family(EfficientNet, _SIZES, {name: name for name in _SIZES}))
