"""InceptionNeXt (Yu et al., 2023): ConvNeXt whose wide convolutions are a square and two bands over a part of the channels.
timm's keys.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import DropPath, drop_rates, start_narrow


@dataclasses.dataclass(frozen=True)
class InceptionNeXtConfig(ImageConfig):
    """The settings of InceptionNeXt; the defaults are the tiny one.

    >>> lucid.models.InceptionNeXtConfig().dims
    (96, 192, 384, 768)
    """

    depths: tuple = (3, 3, 9, 3)
    dims: tuple = (96, 192, 384, 768)
    mlp_ratios: tuple = (4, 4, 4, 3)
    layer_scale: float = 1e-6
    drop_path_rate: float = 0.0
    model_type = "inception_next"

    def __post_init__(self):
        if not len(self.depths) == len(self.dims) <= len(self.mlp_ratios):
            raise ValueError("depths, dims and mlp_ratios have one number per stage")


class _Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        part = width // 8
        self.parts = (width - 3 * part, part, part, part)
        self.dwconv_hw = nn.Conv2d(part, part, 3, padding=1, groups=part)
        self.dwconv_w = nn.Conv2d(part, part, (1, 11), padding=(0, 5), groups=part)
        self.dwconv_h = nn.Conv2d(part, part, (11, 1), padding=(5, 0), groups=part)

    def forward(self, x):
        kept, square, row, column = x.split(self.parts, 1)
        return _C.cat([kept, self.dwconv_hw(square), self.dwconv_w(row), self.dwconv_h(column)], 1)


class _Block(nn.Module):
    def __init__(self, width, ratio, scale, rate):
        super().__init__()
        self.token_mixer, self.norm, self.mlp = _Mixer(width), nn.BatchNorm2d(width), nn.Module()
        self.mlp.fc1, self.mlp.fc2 = nn.Conv2d(width, ratio * width, 1), nn.Conv2d(ratio * width, width, 1)
        self.gamma, self.drop_path = nn.Parameter(_C.full((width,), scale)), DropPath(rate)

    def forward(self, x):
        y = self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm(self.token_mixer(x)))))
        return x + self.drop_path(y * self.gamma.view(1, -1, 1, 1))


class _Head(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.fc1, self.norm = nn.Linear(width, 3 * width), nn.LayerNorm(3 * width, eps=1e-6)
        self.fc2 = nn.Linear(3 * width, classes)

    def forward(self, x):
        return self.fc2(self.norm(F.gelu(self.fc1(x))))


class InceptionNeXt(ImageModel):
    """InceptionNeXt without its head.

    >>> config = lucid.models.InceptionNeXtConfig(depths=(1, 1), dims=(8, 16))
    >>> tuple(lucid.models.InceptionNeXt(config)(lucid.zeros(2, 3, 32, 32)).last_hidden_state.shape)
    (2, 16, 4, 4)
    """

    config_class = InceptionNeXtConfig
    head_keys = ("head.fc2.",)
    stem_keys = ("stem.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        dims, stages = config.dims, []
        self.stem = nn.Sequential(nn.Conv2d(config.in_channels, dims[0], 4, 4), nn.BatchNorm2d(dims[0]))
        for i, rates in enumerate(drop_rates(config.drop_path_rate, config.depths)):
            stage, before = nn.Module(), dims[max(i - 1, 0)]
            if i:
                stage.downsample = nn.Sequential(nn.BatchNorm2d(before), nn.Conv2d(before, dims[i], 2, 2))
            shape = dims[i], config.mlp_ratios[i], config.layer_scale
            stage.blocks = nn.Sequential(*(_Block(*shape, rate) for rate in rates))
            stages.append(stage)
        self.stages = nn.Sequential(*stages)
        if self.classifies:
            self.head = _Head(dims[-1], config.num_classes)
        start_narrow(self)

    def trunk(self, x):
        x = self.stem(x)
        for i, stage in enumerate(self.stages):
            x = stage.blocks(stage.downsample(x) if i else x)
        return x

    def scores(self, x):
        return self.head(x)


_DEEP = (3, 3, 27, 3)
globals().update(
    image_family(
        InceptionNeXt,
        {
            "inception_next_tiny": {},
            "inception_next_small": dict(depths=_DEEP),
            "inception_next_base": dict(depths=_DEEP, dims=(128, 256, 512, 1024)),
        },
    )
)
