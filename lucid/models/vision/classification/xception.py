"""Xception (Chollet, 2016): residual blocks of separable convolutions. timm's keys."""

import dataclasses

from .... import nn
from ....nn import functional as F
from ...outputs import ImageClassificationOutput
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import conv1x1, start_convolutions


class XceptionOutput(ImageClassificationOutput):
    """What Xception returns.

    >>> lucid.models.XceptionOutput(logits=1).logits
    1
    """


@dataclasses.dataclass(frozen=True)
class XceptionConfig(ImageConfig):
    """The settings of Xception, for images of 299x299 pixels.

    >>> lucid.models.XceptionConfig(num_classes=10).dropout
    0.0
    """

    dropout: float = 0.0
    model_type = "xception"


class _Separable(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        self.pointwise = conv1x1(inputs, outputs)

    def forward(self, x):
        return self.pointwise(self.conv1(x))


class _Block(nn.Module):
    def __init__(self, inputs, outputs, depth, stride, begins=True, grows_first=True):
        super().__init__()
        changes = stride != 1 or inputs != outputs
        self.skip = conv1x1(inputs, outputs, stride) if changes else None
        if changes:
            self.skipbn = nn.BatchNorm2d(outputs)
        layers = []
        for i in range(depth):
            grown = i > 0 if grows_first else False
            before = outputs if grown else inputs
            after = outputs if grows_first or i == depth - 1 else inputs
            layers += [nn.ReLU(), _Separable(before, after), nn.BatchNorm2d(after)]
        layers = layers if begins else layers[1:]
        self.rep = nn.Sequential(*layers, *([nn.MaxPool2d(3, stride, 1)] if stride != 1 else []))

    def forward(self, x):
        return self.rep(x) + (x if self.skip is None else self.skipbn(self.skip(x)))


# inputs, outputs, depth, stride
_BLOCKS = ((64, 128, 2, 2), (128, 256, 2, 2), (256, 728, 2, 2), *((728, 728, 3, 1),) * 8, (728, 1024, 2, 2))


class Xception(ImageModel):
    """Xception without its head.

    >>> model = lucid.models.Xception(lucid.models.XceptionConfig()).eval()
    >>> tuple(model(lucid.zeros(1, 3, 64, 64)).pooler_output.shape)
    (1, 2048)
    """

    config_class = XceptionConfig
    head_keys = ("fc.",)
    stem_keys = ("conv1.weight",)
    result = XceptionOutput

    def __init__(self, config):
        super().__init__(config)
        self.conv1, self.bn1 = nn.Conv2d(config.in_channels, 32, 3, 2, bias=False), nn.BatchNorm2d(32)
        self.conv2, self.bn2 = nn.Conv2d(32, 64, 3, bias=False), nn.BatchNorm2d(64)
        for number, row in enumerate(_BLOCKS, 1):
            setattr(self, f"block{number}", _Block(*row, begins=number > 1, grows_first=number < len(_BLOCKS)))
        self.conv3, self.bn3 = _Separable(1024, 1536), nn.BatchNorm2d(1536)
        self.conv4, self.bn4 = _Separable(1536, 2048), nn.BatchNorm2d(2048)
        if self.classifies:
            self.drop, self.fc = nn.Dropout(config.dropout), nn.Linear(2048, config.num_classes)
        start_convolutions(self)

    def trunk(self, x):
        x = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        for number in range(1, len(_BLOCKS) + 1):
            x = getattr(self, f"block{number}")(x)
        return F.relu(self.bn4(self.conv4(F.relu(self.bn3(self.conv3(x))))))

    def scores(self, x):
        return self.fc(self.drop(x))


globals().update(image_family(Xception, {"xception": {}}))
