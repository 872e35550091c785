"""FCN (Long et al., 2015) and DeepLab v3 (Chen et al., 2017) on dilated ResNets and MobileNet v3, with torchvision's keys."""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...base import PretrainedModel
from ...registry import family
from ..base import ImageConfig
from ..blocks import ConvNormAct
from ..classification.mobilenet import MobileNetV3Config, v3_features
from ..classification.resnet import ResNetConfig, ResNetTrunk
from .base import SemanticSegmentationOutput, pixel_loss

_LAYERS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}


@dataclasses.dataclass(frozen=True)
class FCNConfig(ImageConfig):
    """The settings of FCN and DeepLab v3. aux_loss: a second head on an earlier map, as the published files have.

    >>> lucid.models.FCNConfig(backbone="resnet101").num_classes
    21
    """

    num_classes: int = 21
    backbone: str = "resnet50"
    backbone_layers: tuple | None = None
    aux_loss: bool = False
    head: str = "fcn"

    model_type = "fcn"

    def __post_init__(self):
        self.check(backbone={*_LAYERS, "mobilenet_v3_large"}, head={"fcn", "deeplab_v3"})


class _MobileTrunk(nn.Sequential):  # the layers, and the number of channels of the two maps that heads look at
    def __init__(self, config):
        layers, width = v3_features(MobileNetV3Config(in_channels=config.in_channels, dilated=True))
        super().__init__(*layers)
        striding = [0, *(i for i, layer in enumerate(layers) if getattr(layer, "strides", False)), len(layers) - 1]
        self.early, self.widths = striding[-4], (layers[striding[-4]].out_channels, width)

    def stages(self, x):
        found = None
        for i, layer in enumerate(self):
            x = layer(x)
            if i == self.early:
                found = x
        return [found, x]


def _trunk(config):
    if config.backbone == "mobilenet_v3_large":
        trunk = _MobileTrunk(config)
        return trunk, trunk.widths
    layers = config.backbone_layers or _LAYERS[config.backbone]
    trunk = ResNetTrunk(
        ResNetConfig(in_channels=config.in_channels, layers=layers, replace_stride_with_dilation=(False, True, True))
    )
    return trunk, (trunk.width // 2, trunk.width)


def _fcn_head(inputs, classes):
    inner = inputs // 4
    return nn.Sequential(*ConvNormAct(inputs, inner, 3), nn.Dropout(0.1), nn.Conv2d(inner, classes, 1))


class _Pooled(nn.Sequential):
    def __init__(self, inputs):
        super().__init__(nn.AdaptiveAvgPool2d(1), *ConvNormAct(inputs, 256, 1))

    def forward(self, x):
        return F.interpolate(super().forward(x), x.shape[-2:], mode="bilinear", align_corners=False)


class _Pyramid(nn.Module):  # the same map looked at with several dilations, and as a whole
    def __init__(self, inputs):
        super().__init__()
        looks = [ConvNormAct(inputs, 256, 1), *(ConvNormAct(inputs, 256, 3, dilation=rate) for rate in (12, 24, 36))]
        self.convs = nn.ModuleList([*looks, _Pooled(inputs)])
        self.project = nn.Sequential(*ConvNormAct(5 * 256, 256, 1), nn.Dropout(0.5))

    def forward(self, x):
        return self.project(_C.cat([look(x) for look in self.convs], 1))


def _deeplab_head(inputs, classes):
    return nn.Sequential(_Pyramid(inputs), *ConvNormAct(256, 256, 3), nn.Conv2d(256, classes, 1))


class FCNForSemanticSegmentation(PretrainedModel):
    """FCN, or DeepLab v3 if the config's head says so: `.logits` of the images' size.

    >>> config = lucid.models.FCNConfig(num_classes=3, backbone_layers=(1, 1, 1, 1))
    >>> model = lucid.models.FCNForSemanticSegmentation(config).eval()
    >>> tuple(model(lucid.zeros(1, 3, 32, 32)).logits.shape)
    (1, 3, 32, 32)
    """

    config_class = FCNConfig
    head_keys = ("classifier.4.", "aux_classifier.4.")
    stem_keys = ("backbone.conv1.weight", "backbone.0.0.weight")

    def __init__(self, config):
        super().__init__(config)
        self.backbone, (early, late) = _trunk(config)
        self.classifier = (_fcn_head if config.head == "fcn" else _deeplab_head)(late, config.num_classes)
        self.aux_classifier = _fcn_head(early, config.num_classes) if config.aux_loss else None

    def headless_keys(self):
        return () if self.config.aux_loss else (r"^aux_classifier\.",)

    def forward(self, pixel_values, labels=None):
        size = pixel_values.shape[-2:]
        *_, early, late = self.backbone.stages(pixel_values)
        enlarged = lambda x: F.interpolate(x, size, mode="bilinear", align_corners=False)
        logits = enlarged(self.classifier(late))
        other = None if self.aux_classifier is None else enlarged(self.aux_classifier(early))
        loss = None
        if labels is not None:
            loss = pixel_loss(logits, labels)
            if other is not None:
                loss = loss + 0.5 * pixel_loss(other, labels)
        return SemanticSegmentationOutput(loss=loss, logits=logits, aux_logits=other)


_BACKBONES = ("resnet50", "resnet101", "mobilenet_v3_large")
_SIZES = {f"fcn_{name}": dict(backbone=name) for name in _BACKBONES[:2]}
_SIZES |= {f"deeplab_v3_{name}": dict(backbone=name, head="deeplab_v3") for name in _BACKBONES}
_THEIRS = {f"deeplabv3_{name}": f"deeplab_v3_{name}" for name in _BACKBONES}
_THEIRS |= {f"fcn_{name}": f"fcn_{name}" for name in _BACKBONES[:2]}
globals().update(
    family(
        FCNConfig,
        {"": (FCNForSemanticSegmentation, "semantic-segmentation")},
        _SIZES,
        (
            FCNForSemanticSegmentation,
            {f"deeplabv3_{n}": f"deeplab_v3_{n}" for n in _BACKBONES} | {f"fcn_{n}": f"fcn_{n}" for n in _BACKBONES[:2]},
        ),
    )
)
