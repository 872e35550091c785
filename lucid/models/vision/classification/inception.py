"""GoogLeNet (Szegedy et al., 2014, with normalisation) and Inception v3 (2015), with torchvision's keys.

A block is a table: branch name, then the convolutions of it as (name, outputs, kernel, stride, padding). While training
both give the logits of their auxiliary heads as well: `aux_logits` in the output, a named tuple from the plain form.
"""

import collections
import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...outputs import ModelOutput
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import NamedConvNormAct

GoogLeNetOutputs = collections.namedtuple("GoogLeNetOutputs", ("logits", "aux_logits2", "aux_logits1"))
InceptionOutputs = collections.namedtuple("InceptionOutputs", ("logits", "aux_logits"))
for _kind in (GoogLeNetOutputs, InceptionOutputs):
    _kind.__doc__ = f"Logits while training, as torchvision's.\n\n    >>> {_kind.__name__}._fields[0]\n    'logits'\n    "


class GoogLeNetOutput(ModelOutput):
    """What GoogLeNet returns; auxiliary logits only while training.

    >>> lucid.models.GoogLeNetOutput(logits=1).logits
    1
    """

    fields = ("loss", "logits", "aux_logits2", "aux_logits1")


class InceptionV3Output(ModelOutput):
    """What Inception v3 returns; auxiliary logits only while training.

    >>> lucid.models.InceptionV3Output(logits=1).logits
    1
    """

    fields = ("loss", "logits", "aux_logits")


@dataclasses.dataclass(frozen=True)
class GoogLeNetConfig(ImageConfig):
    """The settings of GoogLeNet; transform_input: images are normalised for ImageNet, the weights expect halves.

    >>> lucid.models.GoogLeNetConfig(aux_logits=False).dropout
    0.2
    """

    aux_logits: bool = True
    transform_input: bool = False
    dropout: float = 0.2
    dropout_aux: float = 0.7
    model_type = "googlenet"


@dataclasses.dataclass(frozen=True)
class InceptionConfig(ImageConfig):
    """The settings of Inception v3, for images of 299x299 pixels.

    >>> lucid.models.InceptionConfig().dropout
    0.5
    """

    aux_logits: bool = True
    transform_input: bool = False
    dropout: float = 0.5
    model_type = "inception_v3"


def _conv(inputs, outputs, kernel=1, stride=1, padding=0):
    return NamedConvNormAct(inputs, outputs, kernel, stride, padding, eps=0.001)


def _renormalised(x):
    """From ImageNet's mean and deviation to those of values between -1 and 1."""
    parts = zip(x.unbind(1), (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    return _C.stack([part * (deviation / 0.5) + (mean - 0.5) / 0.5 for part, mean, deviation in parts], 1)


class _Auxiliary(ImageModel):
    """What both share: auxiliary heads while training."""

    outputs, result, weight = None, None, 0.3

    def logits_of(self, x):
        return self.all_logits(x)[0]

    def plain(self, x):
        logits, *others = self.all_logits(x)
        return self.outputs(logits, *others) if others else logits

    def with_logits(self, pixel_values, labels=None):
        logits, *others = self.all_logits(pixel_values)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits, labels)
            for other in others:
                loss = loss + self.weight * F.cross_entropy(other, labels)
        return self.result(loss=loss, logits=logits, **dict(zip(self.outputs._fields[1:], others)))


class _GoogLeNetBlock(nn.Module):
    def __init__(self, inputs, one, reduce3, three, reduce5, five, pool):
        super().__init__()
        self.branch1 = _conv(inputs, one)
        self.branch2 = nn.Sequential(_conv(inputs, reduce3), _conv(reduce3, three, 3, padding=1))
        self.branch3 = nn.Sequential(_conv(inputs, reduce5), _conv(reduce5, five, 3, padding=1))  # 3x3 in the published files
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), _conv(inputs, pool))
        self.width = one + three + five + pool

    def forward(self, x):
        return _C.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class _GoogLeNetHead(nn.Module):
    def __init__(self, inputs, config):
        super().__init__()
        self.conv, self.fc1 = _conv(inputs, 128), nn.Linear(2048, 1024)
        self.fc2, self.dropout = nn.Linear(1024, config.num_classes), nn.Dropout(config.dropout_aux)

    def forward(self, x):
        x = self.conv(F.adaptive_avg_pool2d(x, 4)).flatten(1)
        return self.fc2(self.dropout(F.relu(self.fc1(x))))


_GOOGLENET = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


class GoogLeNet(_Auxiliary):
    """GoogLeNet without its heads.

    >>> model = lucid.models.GoogLeNet(lucid.models.GoogLeNetConfig()).eval()
    >>> tuple(model(lucid.zeros(1, 3, 64, 64)).pooler_output.shape)
    (1, 1024)
    """

    config_class = GoogLeNetConfig
    head_keys = ("fc.", "aux1.", "aux2.")
    stem_keys = ("conv1.conv.weight",)
    outputs, result = GoogLeNetOutputs, GoogLeNetOutput

    def __init__(self, config):
        super().__init__(config)
        self.conv1, self.conv2, self.conv3 = _conv(config.in_channels, 64, 7, 2, 3), _conv(64, 64), _conv(64, 192, 3, 1, 1)
        width = 192
        for name, sizes in _GOOGLENET.items():
            block = _GoogLeNetBlock(width, *sizes)
            setattr(self, f"inception{name}", block)
            width = block.width
        if self.classifies:
            if config.aux_logits:
                self.aux1, self.aux2 = _GoogLeNetHead(512, config), _GoogLeNetHead(528, config)
            self.dropout, self.fc = nn.Dropout(config.dropout), nn.Linear(width, config.num_classes)
        _start(self)

    def trunk(self, x, found=None):
        if self.config.transform_input:
            x = _renormalised(x)
        x = F.max_pool2d(self.conv1(x), 3, 2, ceil_mode=True)
        x = F.max_pool2d(self.conv3(self.conv2(x)), 3, 2, ceil_mode=True)
        for name in _GOOGLENET:
            if name in ("4a", "5a"):
                x = F.max_pool2d(x, 3 if name == "4a" else 2, 2, ceil_mode=True)
            x = getattr(self, f"inception{name}")(x)
            if found is not None and name in ("4a", "4d"):
                found.append(x)
        return x

    def scores(self, x):
        return self.fc(self.dropout(x))

    def all_logits(self, x):
        found = [] if self.training and self.config.aux_logits else None
        logits = self.scores(self.pooled(self.trunk(x, found)))
        return (logits,) if found is None else (logits, self.aux2(found[1]), self.aux1(found[0]))


def _start(model):
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.trunc_normal_(module.weight, std=getattr(module, "stddev", 0.1 if isinstance(model, InceptionV3) else 0.01))


class _Branches(nn.Module):
    """Branches side by side. A table per branch: (name, outputs, kernel, stride, padding) each; "avg" or "max" pool first, a
    tuple of tables at the end forks."""

    def __init__(self, inputs, branches):
        super().__init__()
        self.branches, self.width = branches, 0
        for branch in branches:
            width = inputs
            for step in branch:
                if isinstance(step, str):
                    continue
                forks = step if isinstance(step[0], tuple) else (step,)
                for name, outputs, *rest in forks:
                    setattr(self, name, _conv(width, outputs, *rest))
                width = sum(fork[1] for fork in forks)
            self.width += width

    def forward(self, x):
        found = []
        for branch in self.branches:
            y = x
            for step in branch:
                if step == "avg":
                    y = F.avg_pool2d(y, 3, 1, 1)
                elif step == "max":
                    y = F.max_pool2d(y, 3, 2)
                elif isinstance(step[0], tuple):
                    y = _C.cat([getattr(self, fork[0])(y) for fork in step], 1)
                else:
                    y = getattr(self, step[0])(y)
            found.append(y)
        return _C.cat(found, 1)


_ROW, _COLUMN = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))


def _block_a(pool):
    return (
        (("branch1x1", 64),),
        (("branch5x5_1", 48), ("branch5x5_2", 64, 5, 1, 2)),
        (("branch3x3dbl_1", 64), ("branch3x3dbl_2", 96, 3, 1, 1), ("branch3x3dbl_3", 96, 3, 1, 1)),
        ("avg", ("branch_pool", pool)),
    )


def _block_c(c):
    double = (("branch7x7dbl_1", c), ("branch7x7dbl_2", c, *_COLUMN), ("branch7x7dbl_3", c, *_ROW))
    return (
        (("branch1x1", 192),),
        (("branch7x7_1", c), ("branch7x7_2", c, *_ROW), ("branch7x7_3", 192, *_COLUMN)),
        (*double, ("branch7x7dbl_4", c, *_COLUMN), ("branch7x7dbl_5", 192, *_ROW)),
        ("avg", ("branch_pool", 192)),
    )


def _block_e():
    row, column = ((1, 3), 1, (0, 1)), ((3, 1), 1, (1, 0))
    fork3 = (("branch3x3_2a", 384, *row), ("branch3x3_2b", 384, *column))
    fork = (("branch3x3dbl_3a", 384, *row), ("branch3x3dbl_3b", 384, *column))
    return (
        (("branch1x1", 320),),
        (("branch3x3_1", 384), fork3),
        (("branch3x3dbl_1", 448), ("branch3x3dbl_2", 384, 3, 1, 1), fork),
        ("avg", ("branch_pool", 192)),
    )


_INCEPTION_V3 = {
    "Mixed_5b": _block_a(32),
    "Mixed_5c": _block_a(64),
    "Mixed_5d": _block_a(64),
    "Mixed_6a": (
        (("branch3x3", 384, 3, 2),),
        (("branch3x3dbl_1", 64), ("branch3x3dbl_2", 96, 3, 1, 1), ("branch3x3dbl_3", 96, 3, 2)),
        ("max",),
    ),
    **{f"Mixed_6{letter}": _block_c(c) for letter, c in zip("bcde", (128, 160, 160, 192))},
    "Mixed_7a": (
        (("branch3x3_1", 192), ("branch3x3_2", 320, 3, 2)),
        (("branch7x7x3_1", 192), ("branch7x7x3_2", 192, *_ROW), ("branch7x7x3_3", 192, *_COLUMN), ("branch7x7x3_4", 192, 3, 2)),
        ("max",),
    ),
    "Mixed_7b": _block_e(),
    "Mixed_7c": _block_e(),
}


class _InceptionHead(nn.Module):
    def __init__(self, inputs, config):
        super().__init__()
        self.conv0, self.conv1 = _conv(inputs, 128), _conv(128, 768, 5)
        self.fc = nn.Linear(768, config.num_classes)
        self.conv1.conv.stddev, self.fc.stddev = 0.01, 0.001

    def forward(self, x):
        return self.fc(self.conv1(self.conv0(F.avg_pool2d(x, 5, 3))).mean((2, 3)))


class InceptionV3(_Auxiliary):
    """Inception v3 without its heads.

    >>> model = lucid.models.InceptionV3(lucid.models.InceptionConfig()).eval()
    >>> tuple(model(lucid.zeros(1, 3, 96, 96)).pooler_output.shape)
    (1, 2048)
    """

    config_class = InceptionConfig
    head_keys = ("fc.", "AuxLogits.")
    stem_keys = ("Conv2d_1a_3x3.conv.weight",)
    outputs, result, weight = InceptionOutputs, InceptionV3Output, 0.4

    def __init__(self, config):
        super().__init__(config)
        self.Conv2d_1a_3x3 = _conv(config.in_channels, 32, 3, 2)
        self.Conv2d_2a_3x3, self.Conv2d_2b_3x3 = _conv(32, 32, 3), _conv(32, 64, 3, 1, 1)
        self.Conv2d_3b_1x1, self.Conv2d_4a_3x3 = _conv(64, 80), _conv(80, 192, 3)
        width = 192
        for name, branches in _INCEPTION_V3.items():
            block = _Branches(width, branches)
            setattr(self, name, block)
            width = block.width
            if name == "Mixed_6e" and config.aux_logits and self.classifies:
                self.AuxLogits = _InceptionHead(width, config)
        if self.classifies:
            self.dropout, self.fc = nn.Dropout(config.dropout), nn.Linear(width, config.num_classes)
        _start(self)

    def trunk(self, x, found=None):
        if self.config.transform_input:
            x = _renormalised(x)
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(F.max_pool2d(x, 3, 2)))
        x = F.max_pool2d(x, 3, 2)
        for name in _INCEPTION_V3:
            x = getattr(self, name)(x)
            if found is not None and name == "Mixed_6e":
                found.append(x)
        return x

    def scores(self, x):
        return self.fc(self.dropout(x))

    def all_logits(self, x):
        found = [] if self.training and self.config.aux_logits else None
        logits = self.scores(self.pooled(self.trunk(x, found)))
        return (logits,) if found is None else (logits, self.AuxLogits(found[0]))


globals().update(image_family(GoogLeNet, {"googlenet": {}}, {"googlenet": "googlenet"}))
globals().update(image_family(InceptionV3, {"inception_v3": {}}, {"inception_v3": "inception_v3"}))
