"""LeNet-5 as a model with a config, like the other families; `lucid.models.lenet_5` makes the plain module."""

import dataclasses

from ....nn import functional as F
from ...base import PretrainedModel
from ...lenet import LeNet
from ...mixins import ClassificationHeadMixin
from ...outputs import ImageClassificationOutput
from ...registry import family
from ..base import ImageConfig

PUBLIC = ()


@dataclasses.dataclass(frozen=True)
class LeNetConfig(ImageConfig):
    """The settings of LeNet.

    >>> lucid.models.LeNetConfig(num_classes=26).pooling
    'avg'
    """

    num_classes: int = 10
    in_channels: int = 1
    activation: str = "tanh"
    pooling: str = "avg"

    model_type = "lenet"


class LeNetForImageClassification(ClassificationHeadMixin, LeNet, PretrainedModel):
    """LeNet made from a config, read from and written to folders: `logits`, and `loss` if it is given labels.

    >>> model = lucid.models.LeNetForImageClassification(lucid.models.LeNetConfig(num_classes=26))
    >>> tuple(model(lucid.zeros(5, 1, 32, 32)).logits.shape)
    (5, 26)
    """

    config_class = LeNetConfig
    stem_keys = ("features.0.weight",)

    def __init__(self, config):
        PretrainedModel.__init__(self, config)
        self.build(config.num_classes, config.in_channels, config.activation, config.pooling)

    def forward(self, pixel_values, labels=None):
        logits = super().forward(pixel_values)
        loss = None if labels is None else F.cross_entropy(logits, labels)
        return ImageClassificationOutput(loss=loss, logits=logits)


family(LeNetConfig, {}, {}, more={"image-classification": LeNetForImageClassification})
