"""Networks with ResNet's outline and blocks of their own: SKNet (Li et al., 2019), ResNeSt (Zhang et al., 2020) and
CSPResNet    (Wang et al., 2019). timm's keys.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ..base import ImageModel, image_family
from ..blocks import NamedConvNormAct, conv1x1, divisible, start_convolutions
from .resnet import Block, ResNet, ResNetConfig, depths


@dataclasses.dataclass(frozen=True)
class SKNetConfig(ResNetConfig):
    """The settings of SKNet; the defaults are SK-ResNet-50. split_input: half of the channels for each of the two kernels.

    >>> lucid.models.SKNetConfig(block_type="basic").rd_ratio
    0.0625
    """

    rd_ratio: float = 1 / 16
    rd_divisor: int = 8
    split_input: bool = True

    model_type = "sknet"


@dataclasses.dataclass(frozen=True)
class ResNeStConfig(ResNetConfig):
    """The settings of ResNeSt; the defaults are ResNeSt-50.

    >>> lucid.models.ResNeStConfig(radix=4).stem_width
    32
    """

    radix: int = 2
    stem_width: int = 32
    deep_stem: bool = True
    average_down: bool = True

    model_type = "resnest"


class _KernelAttention(nn.Module):
    def __init__(self, channels, inner):
        super().__init__()
        self.fc_reduce, self.bn = conv1x1(channels, inner), nn.BatchNorm2d(inner)
        self.fc_select = conv1x1(inner, 2 * channels)

    def forward(self, x):
        batch, paths, channels = x.shape[:3]
        x = self.fc_select(F.relu(self.bn(self.fc_reduce(x.sum(1).mean((2, 3), keepdim=True)))))
        return x.view(batch, paths, channels, 1, 1).softmax(1)


class _SelectiveKernel(nn.Module):  # a 3x3 kernel, and the same dilated; channels choose between them
    def __init__(self, config, inputs, outputs, stride, groups=1):
        super().__init__()
        self.splits = config.split_input
        width = inputs // 2 if self.splits else inputs
        self.paths = nn.ModuleList([NamedConvNormAct(width, outputs, 3, stride, groups=groups, dilation=d) for d in (1, 2)])
        self.attn = _KernelAttention(outputs, divisible(outputs * config.rd_ratio, config.rd_divisor))

    def forward(self, x):
        parts = x.chunk(2, 1) if self.splits else (x, x)
        x = _C.stack([path(part) for path, part in zip(self.paths, parts)], 1)
        return (x * self.attn(x)).sum(1)


class _SKBasic(Block):
    def __init__(self, config, inputs, planes, stride, downsample, dilation, norm):
        super().__init__()
        self.conv1 = _SelectiveKernel(config, inputs, planes, stride)
        self.conv2 = NamedConvNormAct(planes, planes, 3, act=None)
        self.end(config, planes, downsample)

    def branch(self, x):
        return self.conv2(self.conv1(x))


class _SKBottleneck(Block):
    expansion = 4

    def __init__(self, config, inputs, planes, stride, downsample, dilation, norm):
        super().__init__()
        width = config.width_of(planes)
        self.conv1 = NamedConvNormAct(inputs, width)
        self.conv2 = _SelectiveKernel(config, width, width, stride, config.groups)
        self.conv3 = NamedConvNormAct(width, 4 * planes, act=None)
        self.end(config, 4 * planes, downsample)

    def branch(self, x):
        return self.conv3(self.conv2(self.conv1(x)))


class _SplitAttention(nn.Module):  # `radix` groups of maps, added with weights that follow from their sum
    def __init__(self, width, radix, groups):
        super().__init__()
        inner = divisible(width * radix / 4, 8, least=32)
        self.radix, self.groups = radix, groups
        self.conv = nn.Conv2d(width, width * radix, 3, 1, 1, groups=groups * radix, bias=False)
        self.bn0 = nn.BatchNorm2d(width * radix)
        self.fc1, self.bn1 = nn.Conv2d(width, inner, 1, groups=groups), nn.BatchNorm2d(inner)
        self.fc2 = nn.Conv2d(inner, width * radix, 1, groups=groups)

    def forward(self, x):
        x = F.relu(self.bn0(self.conv(x)))
        batch, _, height, width = x.shape
        x = x.view(batch, self.radix, -1, height, width)
        weights = self.fc2(F.relu(self.bn1(self.fc1(x.sum(1).mean((2, 3), keepdim=True)))))
        weights = weights.view(batch, self.groups, self.radix, -1).transpose(1, 2).softmax(1)
        return (x * weights.reshape(batch, self.radix, -1, 1, 1)).sum(1)


class _ResNeStBlock(Block):
    expansion = 4

    def __init__(self, config, inputs, planes, stride, downsample, dilation, norm):
        super().__init__()
        width = config.width_of(planes)
        self.conv1, self.bn1 = conv1x1(inputs, width), norm(width)
        self.conv2 = _SplitAttention(width, config.radix, config.groups)
        self.avd_last = nn.AvgPool2d(3, stride, padding=1) if stride > 1 else None
        self.conv3, self.bn3 = conv1x1(width, 4 * planes), norm(4 * planes)
        self.end(config, 4 * planes, downsample)

    def branch(self, x):
        x = self.conv2(F.relu(self.bn1(self.conv1(x))))
        return self.bn3(self.conv3(x if self.avd_last is None else self.avd_last(x)))


class SKNet(ResNet):
    """ResNet whose blocks choose between two sizes of kernels.

    >>> lucid.models.SKNet(lucid.models.SKNetConfig(layers=(1, 1, 1, 1))).width
    2048
    """

    config_class = SKNetConfig
    blocks = {"basic": _SKBasic, "bottleneck": _SKBottleneck}


class ResNeSt(ResNet):
    """ResNet with attention over groups of maps.

    >>> lucid.models.ResNeSt(lucid.models.ResNeStConfig(layers=(1, 1, 1, 1))).width
    2048
    """

    config_class = ResNeStConfig
    blocks = {"bottleneck": _ResNeStBlock}


@dataclasses.dataclass(frozen=True)
class CSPNetConfig(ResNetConfig):
    """The settings of CSPResNet-50.

    >>> lucid.models.CSPNetConfig().layers
    (3, 3, 5, 2)
    """

    layers: tuple = (3, 3, 5, 2)
    hidden_sizes: tuple = (128, 256, 512, 1024)

    model_type = "cspnet"


def _leaky(x):
    return F.leaky_relu(x, 0.01)


class _CSPBlock(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.conv1 = NamedConvNormAct(width, inner, act=_leaky)
        self.conv2 = NamedConvNormAct(inner, inner, 3, act=_leaky)
        self.conv3 = NamedConvNormAct(inner, width, act=None)

    def forward(self, x):
        return _leaky(self.conv3(self.conv2(self.conv1(x))) + x)


class _CSPStage(nn.Module):  # half of the channels go through the blocks, half around them
    def __init__(self, inputs, outputs, stride, depth):
        super().__init__()
        self.conv_down = NamedConvNormAct(inputs, inputs, 3, stride, act=_leaky) if stride > 1 else nn.Identity()
        self.conv_exp = NamedConvNormAct(inputs, 2 * outputs, act=None)
        self.blocks = nn.Sequential(*(_CSPBlock(outputs, outputs // 2) for _ in range(depth)))
        self.conv_transition_b = NamedConvNormAct(outputs, outputs, act=_leaky)
        self.conv_transition = NamedConvNormAct(2 * outputs, outputs, act=_leaky)

    def forward(self, x):
        around, through = self.conv_exp(self.conv_down(x)).chunk(2, 1)
        return self.conv_transition(_C.cat([around, self.conv_transition_b(self.blocks(through))], 1))


class CSPNet(ImageModel):
    """CSPResNet without its head.

    >>> config = lucid.models.CSPNetConfig(layers=(1, 1, 1, 1), hidden_sizes=(8, 8, 8, 16))
    >>> tuple(lucid.models.CSPNet(config)(lucid.zeros(1, 3, 64, 64)).last_hidden_state.shape)
    (1, 16, 2, 2)
    """

    config_class = CSPNetConfig
    head_keys = ("head.",)
    stem_keys = ("stem.conv1.conv.weight",)

    def __init__(self, config):
        super().__init__(config)
        self.stem, inputs, stages = nn.Sequential(), 64, []
        self.stem.add_module("conv1", NamedConvNormAct(config.in_channels, inputs, 7, 2, act=_leaky))
        self.stem.add_module("pool", nn.MaxPool2d(3, 2, 1))
        for number, (outputs, depth) in enumerate(zip(config.hidden_sizes, config.layers)):
            stages.append(_CSPStage(inputs, outputs, 2 if number else 1, depth))
            inputs = outputs
        self.stages = nn.Sequential(*stages)
        if self.classifies:
            self.head = nn.Module()
            self.head.fc = nn.Linear(inputs, config.num_classes)
        start_convolutions(self)

    def trunk(self, x):
        return self.stages(self.stem(x))

    def scores(self, x):
        return self.head.fc(x)


_SK = depths("sk_resnet_{}", 18, 34, 50, 101)
for _name in ("sk_resnet_18", "sk_resnet_34"):
    _SK[_name].update(rd_ratio=1 / 8, rd_divisor=16)
_SK["sk_resnext_50_32x4d"] = dict(rd_ratio=1 / 16, rd_divisor=32, split_input=False, groups=32, width_per_group=4)
_NEST = {
    "resnest_14": dict(layers=(1, 1, 1, 1)),
    "resnest_26": dict(layers=(2, 2, 2, 2)),
    "resnest_50": {},
    "resnest_101": dict(layers=(3, 4, 23, 3), stem_width=64),
    "resnest_200": dict(layers=(3, 24, 36, 3), stem_width=64),
    "resnest_269": dict(layers=(3, 30, 48, 8), stem_width=64),
}
globals().update(image_family(SKNet, _SK))
globals().update(image_family(ResNeSt, _NEST))
globals().update(image_family(CSPNet, {"cspresnet_50": {}}))
