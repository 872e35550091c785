"""ResNet (He et al., 2015) and its kin: Wide ResNet and ResNeXt by two numbers, SENet by one layer more in a block.

Keys are torchvision's (SENet: timm's seresnet). `ResNetTrunk` is the part that detectors and segmentation stand on: the same
layers without a classifier, with strides exchanged for dilation and another normalisation where they ask for it.
"""

import dataclasses

from .... import nn
from ....nn import functional as F
from ...mixins import BackboneMixin
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import SqueezeExcite, conv1x1, conv3x3, divisible, start_convolutions


@dataclasses.dataclass(frozen=True)
class ResNetConfig(ImageConfig):
    """The settings of ResNet; the defaults are ResNet-50.

    width_per_group: channels of a group in the first stage's inner layers; bottleneck_width_mult widens them (Wide ResNet).
    replace_stride_with_dilation: for the last three stages, keep the size of the maps.

    >>> lucid.models.ResNetConfig(block_type="basic", layers=(2, 2, 2, 2)).groups
    1
    """

    block_type: str = "bottleneck"
    layers: tuple = (3, 4, 6, 3)
    groups: int = 1
    width_per_group: int = 64
    bottleneck_width_mult: float = 1.0
    zero_init_residual: bool = False
    replace_stride_with_dilation: tuple = (False, False, False)
    hidden_sizes: tuple = (64, 128, 256, 512)
    stem_width: int = 64
    deep_stem: bool = False
    average_down: bool = False

    model_type = "resnet-torchvision"

    def __post_init__(self):
        self.check(block_type=BLOCKS)
        if len(self.layers) != 4 or len(self.replace_stride_with_dilation) != 3:
            raise ValueError("layers has four numbers, replace_stride_with_dilation three")
        if self.block_type == "basic" and (self.groups, self.width_per_group) != (1, 64):
            raise ValueError("blocks of type basic have one group of width 64")

    def width_of(self, planes):
        """Channels of a bottleneck's 3x3 convolution."""
        return int(planes * (self.width_per_group / 64.0) * self.bottleneck_width_mult) * self.groups

    def attention(self, channels):
        """A layer after the last normalisation of a block; None: none."""
        return None


@dataclasses.dataclass(frozen=True)
class ResNeXtConfig(ResNetConfig):
    """The settings of ResNeXt; the defaults are ResNeXt-50 32x4d.

    >>> lucid.models.ResNeXtConfig(cardinality=32, width_per_group=8).groups
    32
    """

    cardinality: int = 32
    width_per_group: int = 4

    model_type = "resnext-torchvision"

    def __post_init__(self):
        object.__setattr__(self, "groups", self.cardinality)
        super().__post_init__()


@dataclasses.dataclass(frozen=True)
class SENetConfig(ResNetConfig):
    """The settings of SENet, a ResNet whose blocks weigh their channels; the defaults are SE-ResNet-50.

    >>> lucid.models.SENetConfig(reduction=8).block_type
    'bottleneck'
    """

    reduction: int = 16

    model_type = "seresnet"

    def attention(self, channels):
        return SqueezeExcite(channels, divisible(channels / self.reduction, 8, limit=0.0))


class Block(nn.Module):
    """What blocks share: a branch, a layer of attention over channels if there is one, and the way around.

    >>> lucid.models.resnet_18().layer1[0].expansion
    1
    """

    expansion = 1

    def end(self, config, outputs, downsample):
        attention = config.attention(outputs)
        if attention is not None:
            self.se = attention
        self.attends = attention is not None
        self.downsample = downsample

    def forward(self, x):
        y = self.branch(x)
        if self.attends:
            y = self.se(y)
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class BasicBlock(Block):
    """Two 3x3 convolutions.

    >>> type(lucid.models.resnet_34().layer2[1]).__name__
    'BasicBlock'
    """

    def __init__(self, config, inputs, planes, stride, downsample, dilation, norm):
        super().__init__()
        if dilation > 1:
            raise ValueError("blocks of type basic have no dilation")
        self.conv1, self.bn1 = conv3x3(inputs, planes, stride), norm(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes), norm(planes)
        self.end(config, planes, downsample)

    def branch(self, x):
        return self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))


class Bottleneck(Block):
    """A 3x3 convolution between two of 1x1.

    >>> type(lucid.models.resnet_50().layer2[1]).__name__
    'Bottleneck'
    """

    expansion = 4

    def __init__(self, config, inputs, planes, stride, downsample, dilation, norm):
        super().__init__()
        width, outputs = config.width_of(planes), 4 * planes
        self.conv1, self.bn1 = conv1x1(inputs, width), norm(width)
        self.conv2, self.bn2 = conv3x3(width, width, stride, config.groups, dilation), norm(width)
        self.conv3, self.bn3 = conv1x1(width, outputs), norm(outputs)
        self.end(config, outputs, downsample)

    def branch(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        return self.bn3(self.conv3(F.relu(self.bn2(self.conv2(x)))))


BLOCKS = {"basic": BasicBlock, "bottleneck": Bottleneck}


def stem_of(config, norm):
    """The first convolution, or the three of a deep stem.

    >>> from lucid.models.vision.classification.resnet import stem_of
    >>> stem_of(lucid.models.ResNetConfig(), lucid.nn.BatchNorm2d)[0].kernel_size
    (7, 7)
    """
    if not config.deep_stem:
        width = config.stem_width
        return nn.Conv2d(config.in_channels, width, 7, 2, 3, bias=False), width
    half, width = config.stem_width, 2 * config.stem_width
    layers = [conv3x3(config.in_channels, half, 2), norm(half), nn.ReLU(), conv3x3(half, half), norm(half), nn.ReLU()]
    return nn.Sequential(*layers, conv3x3(half, width)), width


def downsample_of(config, inputs, outputs, stride, norm):
    """The way around a block that changes the shape: a 1x1 convolution, after a mean if the config says so.

    >>> from lucid.models.vision.classification.resnet import downsample_of
    >>> len(downsample_of(lucid.models.ResNetConfig(average_down=True), 4, 8, 2, lucid.nn.BatchNorm2d))
    3
    """
    if not config.average_down:
        return nn.Sequential(conv1x1(inputs, outputs, stride), norm(outputs))
    pool = nn.AvgPool2d(2, stride, ceil_mode=True, count_include_pad=False) if stride > 1 else nn.Identity()
    return nn.Sequential(pool, conv1x1(inputs, outputs), norm(outputs))


class ResNetLayers:
    """The layers of ResNet: `build` enters them into a module, `stages` gives the four maps.

    >>> from lucid.models.vision.classification.resnet import ResNetTrunk
    >>> trunk = ResNetTrunk(lucid.models.ResNetConfig(block_type="basic", layers=(1, 1, 1, 1)))
    >>> [tuple(x.shape[1:]) for x in trunk.stages(lucid.zeros(1, 3, 64, 64))]
    [(64, 16, 16), (128, 8, 8), (256, 4, 4), (512, 2, 2)]
    """

    blocks = BLOCKS

    def build(self, config, norm=nn.BatchNorm2d):
        self.conv1, inputs = stem_of(config, norm)
        self.bn1 = norm(inputs)
        block, dilation = self.blocks[config.block_type], 1
        for number, (planes, depth) in enumerate(zip(config.hidden_sizes, config.layers), 1):
            stride, before = 1 if number == 1 else 2, dilation
            if number > 1 and config.replace_stride_with_dilation[number - 2]:
                dilation, stride = dilation * stride, 1
            outputs, blocks = planes * block.expansion, []
            for i in range(depth):
                first = i == 0
                down = None
                if first and (stride != 1 or inputs != outputs):
                    down = downsample_of(config, inputs, outputs, stride, norm)
                step = stride if first else 1
                blocks.append(block(config, inputs, planes, step, down, before if first else dilation, norm))
                inputs = outputs
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self.width = inputs
        start_convolutions(self, linear_std=None)
        if config.zero_init_residual:
            for module in self.modules():
                if isinstance(module, Block):
                    last = getattr(module, "bn3", None) or module.bn2
                    nn.init.zeros_(last.weight)

    def stages(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        found = []
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4):
            x = layer(x)
            found.append(x)
        return found


class ResNetTrunk(ResNetLayers, nn.Module):
    """ResNet as a part of another network: four maps.

    >>> from lucid.models.vision.classification.resnet import ResNetTrunk
    >>> ResNetTrunk(lucid.models.ResNetConfig()).width
    2048
    """

    def __init__(self, config, norm=nn.BatchNorm2d):
        super().__init__()
        self.build(config, norm)

    def forward(self, x):
        return self.stages(x)


class ResNet(ResNetLayers, BackboneMixin, ImageModel):
    """Residual networks for images, without a head.

    >>> config = lucid.models.ResNetConfig(block_type="basic", layers=(1, 1, 1, 1))
    >>> tuple(lucid.models.ResNet(config)(lucid.zeros(1, 3, 64, 64)).last_hidden_state.shape)
    (1, 512, 2, 2)
    """

    config_class = ResNetConfig
    head_keys = ("fc.",)
    stem_keys = ("conv1.weight", "conv1.0.weight")

    def __init__(self, config):
        super().__init__(config)
        self.build(config)
        if self.classifies:
            self.fc = nn.Linear(self.width, config.num_classes)

    def trunk(self, x):
        return self.stages(x)[-1]

    def scores(self, x):
        return self.fc(x)


class ResNeXt(ResNet):
    """ResNet with grouped convolutions in its blocks.

    >>> lucid.models.ResNeXt(lucid.models.ResNeXtConfig(layers=(1, 1, 1, 1))).layer1[0].conv2.groups
    32
    """

    config_class = ResNeXtConfig


class SENet(ResNet):
    """ResNet whose blocks weigh their channels.

    >>> lucid.models.SENet(lucid.models.SENetConfig(layers=(1, 1, 1, 1))).layer1[0].se.fc1.out_channels
    16
    """

    config_class = SENetConfig


_DEEP = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3), 269: (3, 30, 48, 8)}
SHALLOW = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3)}


def depths(name, *chosen):
    """Sizes by depth: {name with the depth in it: block type and layers}.

    >>> from lucid.models.vision.classification.resnet import depths
    >>> depths("net_{}", 18)
    {'net_18': {'block_type': 'basic', 'layers': (2, 2, 2, 2)}}
    """
    return {
        name.format(d): dict(block_type="basic" if d in SHALLOW else "bottleneck", layers=SHALLOW.get(d) or _DEEP[d])
        for d in chosen
    }


globals().update(
    image_family(
        ResNet,
        {
            **depths("resnet_{}", 18, 34, 50, 101, 152, 200, 269),
            "wide_resnet_50": dict(layers=_DEEP[50], bottleneck_width_mult=2.0),
            "wide_resnet_101": dict(layers=_DEEP[101], bottleneck_width_mult=2.0),
        },
        {
            **{f"resnet{d}": f"resnet_{d}" for d in (18, 34, 50, 101, 152)},
            "wide_resnet50_2": "wide_resnet_50",
            "wide_resnet101_2": "wide_resnet_101",
        },
    )
)
_NEXT = ("50_32x4d", 50, 4), ("101_32x4d", 101, 4), ("101_32x8d", 101, 8), ("101_64x4d", 101, 4)
globals().update(
    image_family(
        ResNeXt,
        {f"resnext_{n}": dict(layers=_DEEP[d], cardinality=64 if "64x" in n else 32, width_per_group=w) for n, d, w in _NEXT},
        {f"resnext{n}": f"resnext_{n}" for n in ("50_32x4d", "101_32x8d", "101_64x4d")},
    )
)
globals().update(image_family(SENet, depths("se_resnet_{}", 18, 34, 50, 101, 152)))
