"""DenseNet (Huang et al., 2016): every layer sees the maps of all layers before it. torchvision's keys."""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import conv1x1, conv3x3


@dataclasses.dataclass(frozen=True)
class DenseNetConfig(ImageConfig):
    """The settings of DenseNet; the defaults are DenseNet-121.

    >>> lucid.models.DenseNetConfig(growth_rate=48).bn_size
    4
    """

    growth_rate: int = 32
    block_config: tuple = (6, 12, 24, 16)
    num_init_features: int = 64
    bn_size: int = 4
    drop_rate: float = 0.0
    model_type = "densenet"


class _Layer(nn.Module):
    def __init__(self, inputs, config):
        super().__init__()
        inner = config.bn_size * config.growth_rate
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), conv1x1(inputs, inner)
        self.norm2, self.conv2 = nn.BatchNorm2d(inner), conv3x3(inner, config.growth_rate)
        self.drop = nn.Dropout(config.drop_rate)

    def forward(self, x):
        x = self.conv1(F.relu(self.norm1(x)))
        return self.drop(self.conv2(F.relu(self.norm2(x))))


class _Block(nn.Module):
    def __init__(self, inputs, depth, config):
        super().__init__()
        for i in range(depth):
            setattr(self, f"denselayer{i + 1}", _Layer(inputs + i * config.growth_rate, config))

    def forward(self, x):
        for layer in self.children():
            x = _C.cat([x, layer(x)], 1)
        return x


class _Transition(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(inputs), conv1x1(inputs, inputs // 2)

    def forward(self, x):
        return F.avg_pool2d(self.conv(F.relu(self.norm(x))), 2, 2)


class DenseNet(ImageModel):
    """DenseNet without its classifier.

    >>> config = lucid.models.DenseNetConfig(growth_rate=4, block_config=(2, 2), num_init_features=8)
    >>> tuple(lucid.models.DenseNet(config)(lucid.zeros(1, 3, 32, 32)).last_hidden_state.shape)
    (1, 16, 4, 4)
    """

    config_class = DenseNetConfig
    head_keys = ("classifier.",)
    stem_keys = ("features.conv0.weight",)
    renamed_keys = ((r"(denselayer\d+\.(?:norm|conv))\.([12])\.", r"\1\2."),)  # as the published files spell them

    def __init__(self, config):
        super().__init__(config)
        width = config.num_init_features
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(config.in_channels, width, 7, 2, 3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(width))
        self.features.add_module("relu0", nn.ReLU())
        self.features.add_module("pool0", nn.MaxPool2d(3, 2, 1))
        for number, depth in enumerate(config.block_config, 1):
            self.features.add_module(f"denseblock{number}", _Block(width, depth, config))
            width += depth * config.growth_rate
            if number < len(config.block_config):
                self.features.add_module(f"transition{number}", _Transition(width))
                width //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(width))
        if self.classifies:
            self.classifier = nn.Linear(width, config.num_classes)
            nn.init.zeros_(self.classifier.bias)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)

    def trunk(self, x):
        return F.relu(self.features(x))

    def scores(self, x):
        return self.classifier(x)


globals().update(
    image_family(
        DenseNet,
        {
            "densenet_121": {},
            "densenet_161": dict(growth_rate=48, block_config=(6, 12, 36, 24), num_init_features=96),
            "densenet_169": dict(block_config=(6, 12, 32, 32)),
            "densenet_201": dict(block_config=(6, 12, 48, 32)),
            "densenet_264": dict(block_config=(6, 12, 64, 48)),
        },
        {f"densenet{d}": f"densenet_{d}" for d in (121, 161, 169, 201)},
    )
)
