"""R-CNN (Girshick et al., 2014) on AlexNet and Fast R-CNN (Girshick, 2015) on VGG-16: detectors that are given proposals.

R-CNN cuts every proposal with some context out of the image, warps it to one size, and runs the network on each. Fast R-CNN
runs it on the image once, and pools the places of each proposal. Both then score the classes and move the box, with a box
per class. The keys of the convolutions and of the first two fully connected layers are torchvision's, so that its files of
AlexNet and VGG-16 are a start; `cls_score` and `bbox_pred` start fresh then.

R-CNN's authors trained the scores as support vector machines and the boxes by ridge regression after the network. Here both
are layers of the network and are learned with it, by the losses of Fast R-CNN.
"""

import dataclasses

from .... import _C, nn
from ...base import PretrainedModel
from ...registry import family
from .. import ops
from ..base import ImageConfig
from ..classification.vgg import AlexNetConfig, AlexNetForImageClassification, VGGConfig, VGGForImageClassification
from .rcnn import BoxDecisions, as_given, check_boxes, check_targets, normalised, prepared


@dataclasses.dataclass(frozen=True)
class _GivenConfig(ImageConfig):
    num_classes: int = 91
    hidden_size: int = 4096
    dropout: float = 0.5
    image_mean: tuple = (0.485, 0.456, 0.406)
    image_std: tuple = (0.229, 0.224, 0.225)
    score_thresh: float = 0.05
    box_nms_thresh: float = 0.3
    box_detections_per_img: int = 100
    box_fg_iou_thresh: float = 0.5
    box_bg_iou_thresh: float = 0.5
    box_batch_size_per_image: int = 64
    box_positive_fraction: float = 0.25


@dataclasses.dataclass(frozen=True)
class RCNNConfig(_GivenConfig):
    """The settings of R-CNN. Class 0 is the background.

    crop_size: pixels of a warped proposal, of which context on each side are not of the proposal; crops_at_once: how many go
    through the network together, for its memory.

    >>> lucid.models.RCNNConfig(num_classes=3).context
    16
    """

    crop_size: int = 224
    context: int = 16
    crops_at_once: int = 256
    model_type = "rcnn"

    def __post_init__(self):
        if not 0 <= 2 * self.context < self.crop_size:
            raise ValueError(f"a context of {self.context} on each side leaves nothing of {self.crop_size} pixels")
        if self.crops_at_once < 1:
            raise ValueError(f"crops_at_once is at least 1, not {self.crops_at_once}")


@dataclasses.dataclass(frozen=True)
class FastRCNNConfig(_GivenConfig):
    """The settings of Fast R-CNN. Class 0 is the background; images are resized as for Faster R-CNN.

    depths, widths: convolutions of each stage of VGG; roi_size: cells that a proposal is pooled to along each side.

    >>> lucid.models.FastRCNNConfig(num_classes=3).roi_size
    7
    """

    depths: tuple = (2, 2, 3, 3, 3)
    widths: tuple = (64, 128, 256, 512, 512)
    roi_size: int = 7
    min_size: int = 600
    max_size: int = 1000
    model_type = "fast_rcnn"

    def __post_init__(self):
        if len(self.depths) != len(self.widths) or not self.depths:
            raise ValueError(f"depths and widths have a number per stage, not {self.depths} and {self.widths}")


class _Given(BoxDecisions, PretrainedModel):
    """What both have in common: a classifier without its last layer, and two layers in its place."""

    head_keys = ("cls_score.", "bbox_pred.")
    stem_keys = ("features.0.weight",)
    ignored_keys = (r"^classifier\.6\.",)  # the classes of ImageNet

    def start(self, body, inputs):
        """Take the layers of a classifier; inputs: what the differences of boxes are computed from."""
        config = self.config
        self.features, self.classifier = body.features, body.classifier[:-1]
        self.cls_score = nn.Linear(config.hidden_size, config.num_classes)
        self.bbox_pred = nn.Linear(inputs, 4 * config.num_classes)
        for layer, std in ((self.cls_score, 0.01), (self.bbox_pred, 0.001)):
            nn.init.normal_(layer.weight, std=std)
            nn.init.zeros_(layer.bias)

    def prepared(self, images, targets):
        """What `scored` takes, the sizes of the images in it, and targets with boxes in these sizes."""
        raise NotImplementedError

    def scored(self, images, proposals):
        """Scores of the classes and differences of the boxes, of all proposals."""
        raise NotImplementedError

    def forward(self, images, proposals, targets=None):
        images, proposals = list(images), list(proposals)
        if len(images) != len(proposals):
            raise ValueError(f"{len(images)} images and proposals of {len(proposals)}")
        check_targets(images, targets, self.training)
        for boxes in proposals:
            check_boxes(boxes, "proposals")
        known = [{**target, "proposals": boxes} for target, boxes in zip(targets or [{}] * len(images), proposals)]
        ready, sizes, known = self.prepared(images, known)
        proposals = [one["proposals"] for one in known]
        if self.training:
            goals = [self.goals(*pair) for pair in zip(proposals, known)]
            return self.box_losses(goals, *self.scored(ready, [goal[0] for goal in goals]))
        results = self.all_detections(proposals, *self.scored(ready, proposals), sizes)
        return as_given(results, images, sizes)


class RCNNForObjectDetection(_Given):
    """R-CNN: a list of images (channels, height, width) between 0 and 1 and the boxes of each in, a list of dictionaries out.

    While training it takes targets as well, a list of dictionaries with boxes and labels, and returns its losses by name.

    >>> config = lucid.models.RCNNConfig(num_classes=3, hidden_size=8, crop_size=64, context=4)
    >>> model = lucid.models.RCNNForObjectDetection(config).eval()
    >>> boxes = lucid.tensor([[4.0, 4.0, 30.0, 40.0]])
    >>> sorted(model([lucid.rand(3, 48, 64)], [boxes])[0])
    ['boxes', 'labels', 'scores']
    """

    config_class = RCNNConfig

    def __init__(self, config):
        super().__init__(config)
        shape = dict(in_channels=config.in_channels, hidden_size=config.hidden_size, dropout=config.dropout)
        body = AlexNetForImageClassification.Plain(AlexNetConfig(**shape))
        self.start(body, 256 * 36)
        self.avgpool = body.avgpool

    def prepared(self, images, targets):
        sizes = [tuple(image.shape[-2:]) for image in images]
        return [normalised(self.config, image) for image in images], sizes, targets

    def crops(self, image, boxes):
        """Parts of an image warped to one size. What lies outside of the image has its mean, which is zero."""
        config = self.config
        part = config.context / (config.crop_size - 2 * config.context)
        margin = (boxes[:, 2:] - boxes[:, :2]) * part
        around = _C.cat([boxes[:, :2] - margin, boxes[:, 2:] + margin], 1)
        return ops.roi_align(image[None], [around], config.crop_size, sampling_ratio=2, aligned=True)

    def scored(self, images, proposals):
        scores, codes = [], []
        for image, boxes in zip(images, proposals):
            for part in boxes.split(self.config.crops_at_once):
                x = self.avgpool(self.features(self.crops(image, part.to(image.dtype)))).flatten(1)
                scores.append(self.cls_score(self.classifier(x)))
                codes.append(self.bbox_pred(x))
        return _C.cat(scores), _C.cat(codes)


class FastRCNNForObjectDetection(_Given):
    """Fast R-CNN: a list of images (channels, height, width) between 0 and 1 and the boxes of each in, a list of dictionaries
    out.

    While training it takes targets as well, a list of dictionaries with boxes and labels, and returns its losses by name.

    >>> config = lucid.models.FastRCNNConfig(num_classes=3, depths=(1, 1), widths=(4, 8), hidden_size=8, min_size=64)
    >>> model = lucid.models.FastRCNNForObjectDetection(config).eval()
    >>> boxes = lucid.tensor([[4.0, 4.0, 30.0, 40.0]])
    >>> sorted(model([lucid.rand(3, 48, 64)], [boxes])[0])
    ['boxes', 'labels', 'scores']
    """

    config_class = FastRCNNConfig

    def __init__(self, config):
        super().__init__(config)
        stages = tuple((width,) * depth for width, depth in zip(config.widths, config.depths))
        shape = dict(in_channels=config.in_channels, hidden_size=config.hidden_size, dropout=config.dropout)
        body = VGGForImageClassification.Plain(VGGConfig(stages=stages, **shape))
        self.start(body, config.hidden_size)
        self.features = body.features[:-1]  # without the last pooling, which that of the proposals replaces
        if config.roi_size != 7:  # VGG's own
            self.classifier[0] = nn.Linear(config.widths[-1] * config.roi_size**2, config.hidden_size)

    def prepared(self, images, targets):
        return prepared(self.config, images, targets)

    def scored(self, images, proposals):
        scale = 0.5 ** (len(self.config.widths) - 1)
        x = ops.roi_pool(self.features(images), proposals, self.config.roi_size, scale)
        x = self.classifier(x.flatten(1))
        return self.cls_score(x), self.bbox_pred(x)


globals().update(family(RCNNConfig, {"": (RCNNForObjectDetection, "object-detection")}, {"rcnn": {}}))
globals().update(family(FastRCNNConfig, {"": (FastRCNNForObjectDetection, "object-detection")}, {"fast_rcnn": {}}))
