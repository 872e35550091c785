"""Chains of convolutions and three fully connected layers: AlexNet (Krizhevsky, 2012; the one-column form of 2014), ZFNet
(Zeiler and Fergus, 2013) and VGG (Simonyan and Zisserman, 2014). AlexNet and VGG have torchvision's keys, ZFNet its own
in the same form.
"""

import dataclasses

from .... import nn
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import start_convolutions


@dataclasses.dataclass(frozen=True)
class AlexNetConfig(ImageConfig):
    """The settings of AlexNet.

    >>> lucid.models.AlexNetConfig(num_classes=10).dropout
    0.5
    """

    dropout: float = 0.5
    hidden_size: int = 4096
    model_type = "alexnet"


@dataclasses.dataclass(frozen=True)
class ZFNetConfig(AlexNetConfig):
    """The settings of ZFNet.

    >>> lucid.models.ZFNetConfig().num_classes
    1000
    """

    model_type = "zfnet"


@dataclasses.dataclass(frozen=True)
class VGGConfig(AlexNetConfig):
    """The settings of VGG: widths of the convolutions of each stage; the defaults are VGG-16.

    >>> lucid.models.VGGConfig(batch_norm=True).stages[0]
    (64, 64)
    """

    stages: tuple = ((64,) * 2, (128,) * 2, (256,) * 3, (512,) * 3, (512,) * 3)
    batch_norm: bool = False
    model_type = "vgg"

    def __post_init__(self):
        object.__setattr__(self, "stages", tuple(tuple(stage) for stage in self.stages))

    def to_dict(self):
        return {**super().to_dict(), "stages": [list(stage) for stage in self.stages]}


class _Chain(ImageModel):
    def pooled(self, x):
        return self.avgpool(x).flatten(1)

    def scores(self, x):
        return self.classifier(x)

    def trunk(self, x):
        return self.features(x)


def _alexnet_head(inputs, config):
    drop, width = config.dropout, config.hidden_size
    layers = [nn.Dropout(drop), nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(drop), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, config.num_classes))


class AlexNet(_Chain):
    """AlexNet without its fully connected layers.

    >>> tuple(lucid.models.AlexNet(lucid.models.AlexNetConfig())(lucid.zeros(1, 3, 63, 63)).pooler_output.shape)
    (1, 9216)
    """

    config_class = AlexNetConfig
    head_keys = ("classifier.6.",)
    stem_keys = ("features.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        self.features = nn.Sequential(
            *(nn.Conv2d(config.in_channels, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2)),
            *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2)),
            *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2)),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        if self.classifies:
            self.classifier = _alexnet_head(256 * 36, config)


class ZFNet(_Chain):
    """ZFNet: AlexNet with a smaller first kernel and stride. Without its fully connected layers.

    >>> tuple(lucid.models.ZFNet(lucid.models.ZFNetConfig())(lucid.zeros(1, 3, 64, 64)).pooler_output.shape)
    (1, 9216)
    """

    config_class = ZFNetConfig
    head_keys = ("classifier.6.",)
    stem_keys = ("features.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        self.features = nn.Sequential(
            *(nn.Conv2d(config.in_channels, 96, 7, 2, 1), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.LocalResponseNorm(5)),
            *(nn.Conv2d(96, 256, 5, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.LocalResponseNorm(5)),
            *(nn.Conv2d(256, 384, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(384, 384, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2)),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        if self.classifies:
            self.classifier = _alexnet_head(256 * 36, config)


class VGG(_Chain):
    """VGG without its fully connected layers.

    >>> config = lucid.models.VGGConfig(stages=((8,), (8,)))
    >>> tuple(lucid.models.VGG(config)(lucid.zeros(1, 3, 32, 32)).last_hidden_state.shape)
    (1, 8, 8, 8)
    """

    config_class = VGGConfig
    head_keys = ("classifier.6.",)
    stem_keys = ("features.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        layers, inputs = [], config.in_channels
        for stage in config.stages:
            for width in stage:
                layers.append(nn.Conv2d(inputs, width, 3, padding=1))
                layers += [nn.BatchNorm2d(width), nn.ReLU()] if config.batch_norm else [nn.ReLU()]
                inputs = width
            layers.append(nn.MaxPool2d(2, 2))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        if self.classifies:
            drop, width = config.dropout, config.hidden_size
            self.classifier = nn.Sequential(
                *(nn.Linear(inputs * 49, width), nn.ReLU(), nn.Dropout(drop)),
                *(nn.Linear(width, width), nn.ReLU(), nn.Dropout(drop)),
                nn.Linear(width, config.num_classes),
            )
        start_convolutions(self)


_WIDTHS = (64, 128, 256, 512, 512)
_DEPTHS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_SIZES = {
    f"vgg_{d}{suffix}": dict(stages=tuple((w,) * n for w, n in zip(_WIDTHS, counts)), batch_norm=bool(suffix))
    for d, counts in _DEPTHS.items()
    for suffix in ("", "_bn")
}
globals().update(image_family(AlexNet, {"alexnet": {}}, {"alexnet": "alexnet"}))
globals().update(image_family(ZFNet, {"zfnet": {}}))
globals().update(image_family(VGG, _SIZES, {name.replace("_", "", 1): name for name in _SIZES}))
