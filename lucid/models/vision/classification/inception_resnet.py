"""Inception-ResNet v2 (Szegedy et al., 2016): blocks of branches whose sum, scaled down, is added to what came in. timm's
keys.

A block is a table of branches; a branch has convolutions (outputs, kernel, stride, padding), or "avg" or "max" for a pool.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...outputs import ImageClassificationOutput
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import NamedConvNormAct, start_convolutions


class InceptionResNetOutput(ImageClassificationOutput):
    """What Inception-ResNet v2 returns.

    >>> lucid.models.InceptionResNetOutput(logits=1).logits
    1
    """


@dataclasses.dataclass(frozen=True)
class InceptionResNetConfig(ImageConfig):
    """The settings of Inception-ResNet v2, for images of 299x299 pixels; repeats: how often each of the three blocks comes.

    >>> lucid.models.InceptionResNetConfig().repeats
    (10, 20, 9)
    """

    repeats: tuple = (10, 20, 9)
    dropout: float = 0.0
    model_type = "inception_resnet_v2"

    def __post_init__(self):
        if len(self.repeats) != 3:
            raise ValueError("repeats has three numbers")


def _conv(inputs, outputs, kernel=1, stride=1, padding=0):
    return NamedConvNormAct(inputs, outputs, kernel, stride, padding, eps=0.001)


class _Branches(nn.Module):
    def __init__(self, inputs, branches, scale=None, act=True):
        super().__init__()
        self.count, self.width, self.scale, self.act = len(branches), 0, scale, act
        for i, branch in enumerate(branches):
            layers, width = [], inputs
            for step in branch:
                if step == "avg":
                    layers.append(nn.AvgPool2d(3, 1, 1, count_include_pad=False))
                elif step == "max":
                    layers.append(nn.MaxPool2d(3, 2))
                else:
                    layers.append(_conv(width, *step))
                    width = step[0]
            setattr(self, f"branch{i}", layers[0] if len(layers) == 1 else nn.Sequential(*layers))
            self.width += width
        if scale is not None:
            self.conv2d, self.width = nn.Conv2d(self.width, inputs, 1), inputs

    def forward(self, x):
        y = _C.cat([getattr(self, f"branch{i}")(x) for i in range(self.count)], 1)
        if self.scale is None:
            return y
        y = self.conv2d(y) * self.scale + x
        return F.relu(y) if self.act else y


_THREE = (3, 1, 1)
_5B = (
    ((96,),),
    ((48,), (64, 5, 1, 2)),
    ((64,), (96, *_THREE), (96, *_THREE)),
    ("avg", (64,)),
)
_35 = ((32,),), ((32,), (32, *_THREE)), ((32,), (48, *_THREE), (64, *_THREE))
_6A = ((384, 3, 2),), ((256,), (256, *_THREE), (384, 3, 2)), ("max",)
_17 = ((192,),), ((128,), (160, (1, 7), 1, (0, 3)), (192, (7, 1), 1, (3, 0)))
_7A = ((256,), (384, 3, 2)), ((256,), (288, 3, 2)), ((256,), (288, *_THREE), (320, 3, 2)), ("max",)
_8 = ((192,),), ((192,), (224, (1, 3), 1, (0, 1)), (256, (3, 1), 1, (1, 0)))


class InceptionResNetV2(ImageModel):
    """Inception-ResNet v2 without its head.

    >>> model = lucid.models.InceptionResNetV2(lucid.models.InceptionResNetConfig(repeats=(1, 1, 1))).eval()
    >>> tuple(model(lucid.zeros(1, 3, 96, 96)).pooler_output.shape)
    (1, 1536)
    """

    config_class = InceptionResNetConfig
    head_keys = ("classif.",)
    stem_keys = ("conv2d_1a.conv.weight",)
    result = InceptionResNetOutput

    def __init__(self, config):
        super().__init__(config)
        self.conv2d_1a, self.conv2d_2a = _conv(config.in_channels, 32, 3, 2), _conv(32, 32, 3)
        self.conv2d_2b, self.conv2d_3b, self.conv2d_4a = _conv(32, 64, *_THREE), _conv(64, 80), _conv(80, 192, 3)
        width, self.parts = 192, []
        several = lambda branches, scale, count: nn.Sequential(*(_Branches(width, branches, scale) for _ in range(count)))
        rows = (("5b", _5B, "", _35, 0.17), ("6a", _6A, "_1", _17, 0.1), ("7a", _7A, "_2", _8, 0.2))
        for count, (name, first, suffix, branches, scale) in zip(config.repeats, rows):
            block = _Branches(width, first)
            width = block.width
            setattr(self, f"mixed_{name}", block)
            setattr(self, f"repeat{suffix}", several(branches, scale, count))
            self.parts += [f"mixed_{name}", f"repeat{suffix}"]
        self.block8, self.conv2d_7b = _Branches(width, _8, 1.0, act=False), _conv(width, 1536)
        if self.classifies:
            self.drop, self.classif = nn.Dropout(config.dropout), nn.Linear(1536, config.num_classes)
        start_convolutions(self)

    def trunk(self, x):
        x = F.max_pool2d(self.conv2d_2b(self.conv2d_2a(self.conv2d_1a(x))), 3, 2)
        x = F.max_pool2d(self.conv2d_4a(self.conv2d_3b(x)), 3, 2)
        for name in self.parts:
            x = getattr(self, name)(x)
        return self.conv2d_7b(self.block8(x))

    def scores(self, x):
        return self.classif(self.drop(x))


globals().update(image_family(InceptionResNetV2, {"inception_resnet_v2": {}}))
