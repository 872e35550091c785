"""YOLO: boxes and classes from the maps of one network, in one pass. v1 (Redmon et al., 2016) reads them off a fully connected
layer, v2 (2017) and v3 (2018) as differences from anchors, v4 (Bochkovskiy et al., 2020) with more paths between the maps.

In eval a model gives torchvision's dictionaries, boxes, scores and labels of every image. While training it gives its losses
by name for targets (a list of dictionaries with boxes and labels), and its raw results without. Images are a batch, or a
list whose members are padded to the largest.
"""

import dataclasses
import math

from .... import _C, nn
from ....autograd import no_grad
from ....nn import functional as F
from ...base import PretrainedModel
from ...registry import family
from .. import ops
from ..base import ImageConfig
from . import darknet


@dataclasses.dataclass(frozen=True)
class YOLOV1Config(ImageConfig):
    """The settings of YOLO v1: a grid of split_size x split_size cells, num_boxes boxes in each.

    >>> lucid.models.YOLOV1Config().outputs
    30
    """

    num_classes: int = 20
    image_size: int = 448
    split_size: int = 7
    num_boxes: int = 2
    tiny: bool = False
    hidden_size: int = 4096
    dropout: float = 0.5
    coord_weight: float = 5.0
    nothing_weight: float = 0.5
    score_thresh: float = 0.1
    nms_thresh: float = 0.5
    detections_per_img: int = 100

    model_type = "yolo_v1"

    def __post_init__(self):
        if self.image_size != 64 * self.split_size:
            raise ValueError(f"image_size {self.image_size} is 64 times split_size {self.split_size}")

    @property
    def outputs(self):
        return 5 * self.num_boxes + self.num_classes


@dataclasses.dataclass(frozen=True)
class YOLOV2Config(ImageConfig):
    """The settings of YOLO v2. anchors: width and height in pixels, strides: of each map, which share the anchors evenly.

    >>> lucid.models.YOLOV2Config(num_classes=20).outputs
    125
    """

    num_classes: int = 80
    strides: tuple = (32,)
    anchors: tuple = tuple((round(32 * w, 5), round(32 * h, 5)) for w, h in (
        (0.57273, 0.677385), (1.87446, 2.06253), (3.33843, 5.47434), (7.88282, 3.52778), (9.77052, 9.16828),
    ))  # fmt: skip
    tiny: bool = False
    ignore_thresh: float = 0.6
    coord_weight: float = 1.0
    nothing_weight: float = 0.5
    score_thresh: float = 0.05
    nms_thresh: float = 0.45
    detections_per_img: int = 100

    model_type = "yolo_v2"
    center_scales = (1.0,)  # how far the center of a box may lie from its cell

    def __post_init__(self):
        object.__setattr__(self, "anchors", tuple(tuple(pair) for pair in self.anchors))
        if len(self.anchors) % len(self.strides):
            raise ValueError(f"{len(self.anchors)} anchors for {len(self.strides)} maps")

    @property
    def outputs(self):
        return len(self.anchors) // len(self.strides) * (5 + self.num_classes)

    def to_dict(self):
        return {**super().to_dict(), "anchors": [list(pair) for pair in self.anchors]}


_ANCHORS = ((10, 13), (16, 30), (33, 23), (30, 61), (62, 45), (59, 119), (116, 90), (156, 198), (373, 326))
_TINY = ((10, 14), (23, 27), (37, 58), (81, 82), (135, 169), (344, 319))


@dataclasses.dataclass(frozen=True)
class YOLOV3Config(YOLOV2Config):
    """The settings of YOLO v3.

    >>> lucid.models.YOLOV3Config().outputs
    255
    """

    strides: tuple = (8, 16, 32)
    anchors: tuple = _ANCHORS
    depths: tuple = (1, 2, 8, 8, 4)
    ignore_thresh: float = 0.5

    model_type = "yolo_v3"
    center_scales = (1.0, 1.0, 1.0)


@dataclasses.dataclass(frozen=True)
class YOLOV4Config(YOLOV3Config):
    """The settings of YOLO v4.

    >>> lucid.models.YOLOV4Config().anchors[0]
    (12, 16)
    """

    anchors: tuple = ((12, 16), (19, 36), (40, 28), (36, 75), (76, 55), (72, 146), (142, 110), (192, 243), (459, 401))
    ignore_thresh: float = 0.7
    coord_weight: float = 0.07

    model_type = "yolo_v4"
    center_scales = (1.2, 1.1, 1.05)


class _YOLO(PretrainedModel):
    def batch_of(self, images, multiple):
        """Images of a list padded to the largest, and to a multiple of the coarsest stride."""
        if isinstance(images, _C.Tensor) and images.ndim == 4:
            tall, wide = images.shape[2:]
            return F.pad(images, (0, -wide % multiple, 0, -tall % multiple)), [(tall, wide)] * len(images)
        images = list(images)
        if not images or any(image.ndim != 3 for image in images):
            raise ValueError("images are a batch (n, channels, height, width) or a list of (channels, height, width)")
        sizes = [tuple(image.shape[1:]) for image in images]
        tall, wide = (-(-max(side) // multiple) * multiple for side in zip(*sizes))
        return _C.stack([F.pad(x, (0, wide - x.shape[2], 0, tall - x.shape[1])) for x in images]), sizes

    def forward(self, images, targets=None):
        x, sizes = self.batch_of(images, self.multiple)
        found = self.raw(x)
        if self.training:
            if targets is None:
                return found
            if len(targets) != len(x):
                raise ValueError(f"{len(x)} images and {len(targets)} targets")
            return self.losses(found, targets, x.shape[2:])
        boxes, scores = self.decoded(found, x.shape[2:])
        return [self.kept(b, s, size) for b, s, size in zip(boxes, scores, sizes)]

    def kept(self, boxes, scores, size):
        """The boxes (n, 4) of an image whose scores (n, classes) suffice, each class without those it overlaps."""
        config = self.config
        places, labels = (scores > config.score_thresh).nonzero().unbind(1)
        boxes, scores = ops.clip_boxes_to_image(boxes[places], size), scores[places, labels]
        best = ops.batched_nms(boxes, scores, labels, config.nms_thresh)[: config.detections_per_img]
        return {"boxes": boxes[best], "scores": scores[best], "labels": labels[best]}


_V1 = [
    *((64, 7, 2), "M", (192, 3), "M", (128, 1), (256, 3), (256, 1), (512, 3), "M"),
    *((256, 1), (512, 3)) * 4,
    *((512, 1), (1024, 3), "M"),
    *((512, 1), (1024, 3)) * 2,
    *((1024, 3), (1024, 3, 2), (1024, 3), (1024, 3)),
]
_V1_TINY = [row for w in (16, 32, 64, 128, 256, 512) for row in ((w, 3), "M")] + [(1024, 3), (256, 3)]


class YOLOV1ForObjectDetection(_YOLO):
    """YOLO v1: every cell of a grid gives boxes, how sure they are, and one class.

    >>> config = lucid.models.YOLOV1Config(image_size=64, split_size=1, tiny=True, num_classes=3)
    >>> sorted(lucid.models.YOLOV1ForObjectDetection(config).eval()(lucid.rand(1, 3, 64, 64))[0])
    ['boxes', 'labels', 'scores']
    """

    config_class = YOLOV1Config
    multiple = 1

    def __init__(self, config):
        super().__init__(config)
        cells = config.split_size**2
        self.features = darknet.chain(config.in_channels, _V1_TINY if config.tiny else _V1)
        width, outputs = (256 if config.tiny else 1024) * cells, cells * config.outputs
        head = [nn.Linear(width, config.hidden_size), nn.LeakyReLU(0.1), nn.Dropout(config.dropout)]
        self.head = nn.Linear(width, outputs) if config.tiny else nn.Sequential(*head, nn.Linear(config.hidden_size, outputs))

    def raw(self, x):
        side, config = self.config.image_size, self.config
        if tuple(x.shape[2:]) != (side, side):
            raise ValueError(f"images of {x.shape[2]}x{x.shape[3]} pixels; the model is for {side}x{side}")
        return self.head(self.features(x).flatten(1)).view(len(x), config.split_size, config.split_size, -1)

    def parts(self, raw):
        """(classes, confidence of boxes, boxes: center in the cell, roots of width and height in parts of the image)"""
        classes, sure, boxes = raw.split((self.config.num_classes, self.config.num_boxes, 4 * self.config.num_boxes), 3)
        return classes, sure, boxes.unflatten(3, (-1, 4))

    def corners(self, boxes):
        side, config = self.config.split_size, self.config
        at = _C.arange(side, device=boxes.device, dtype=boxes.dtype)
        x, y = (boxes[..., 0] + at.view(1, 1, -1, 1)) / side, (boxes[..., 1] + at.view(1, -1, 1, 1)) / side
        return ops.box_cxcywh_to_xyxy(_C.stack([x, y, boxes[..., 2] ** 2, boxes[..., 3] ** 2], -1)) * config.image_size

    def decoded(self, raw, size):
        classes, sure, boxes = self.parts(raw)
        scores = sure.unsqueeze(-1) * classes.unsqueeze(3)
        return self.corners(boxes).flatten(1, 3), scores.flatten(1, 3)

    def losses(self, raw, targets, size):
        config, side = self.config, self.config.split_size
        classes, sure, boxes = self.parts(raw)
        with no_grad():
            corners = self.corners(boxes)
        found = dict.fromkeys(("loss_box", "loss_object", "loss_nothing", "loss_class"), 0.0)
        taken, wanted = _C.zeros_like(sure, dtype=_C.bool), _C.zeros_like(sure).detach()
        for i, target in enumerate(targets):
            for box, label in zip(target["boxes"].to(raw.dtype), target["labels"].tolist()):
                x, y, w, h = (ops.box_xyxy_to_cxcywh(box[None])[0] / config.image_size).tolist()
                column, row = (min(int(c * side), side - 1) for c in (x, y))
                overlaps = ops.box_iou(corners[i, row, column], box[None])[:, 0]
                best = int(overlaps.argmax())
                taken[i, row, column, best], wanted[i, row, column, best] = True, overlaps[best]
                goal = (x * side - column, y * side - row, math.sqrt(w), math.sqrt(h))
                own = boxes[i, row, column, best] - _C.tensor(goal, device=raw.device).to(raw.dtype)
                found["loss_box"] = found["loss_box"] + config.coord_weight * (own**2).sum()
                right = F.one_hot(_C.tensor(label, device=raw.device), config.num_classes).to(raw.dtype)
                found["loss_class"] = found["loss_class"] + ((classes[i, row, column] - right) ** 2).sum()
        apart = (sure - wanted) ** 2
        found["loss_object"] = (apart * taken).sum()
        found["loss_nothing"] = config.nothing_weight * (apart * ~taken).sum()
        zero = raw.sum() * 0
        return {name: (value + zero) / len(raw) for name, value in found.items()}


class YOLOV2ForObjectDetection(_YOLO):
    """YOLO v2: differences from five anchors on one map.

    >>> model = lucid.models.YOLOV2ForObjectDetection(lucid.models.YOLOV2Config(tiny=True, num_classes=3)).eval()
    >>> sorted(model(lucid.rand(1, 3, 64, 64))[0])
    ['boxes', 'labels', 'scores']
    """

    config_class = YOLOV2Config
    multiple = 32

    def __init__(self, config):
        super().__init__(config)
        self.backbone, self.neck = self.network(config)

    def network(self, config):
        if config.tiny:
            return darknet.TinyDarknet(config.in_channels), darknet.Plain(config.outputs)
        return darknet.Darknet19(config.in_channels), darknet.Passthrough(config.outputs)

    def class_scores(self, logits):
        return logits.softmax(-1)

    def class_loss(self, logits, labels):
        return F.cross_entropy(logits, labels, reduction="sum")

    def box_loss(self, raw, boxes, goals, anchors, places):
        """raw: differences (n, 4) of matched boxes; goals: the boxes of their things, in cells: center, width, height."""
        wanted = goals[:, :2] - places
        sizes = (goals[:, 2:] / anchors).clamp(min=1e-9).log()
        scale = 2 - (goals[:, 2:3] * goals[:, 3:4] / self.cells).clamp(max=1)  # small boxes count more
        return (scale * ((raw[:, :2].sigmoid() - wanted) ** 2 + (raw[:, 2:] - sizes) ** 2)).sum()

    def raw(self, x):
        return self.neck(self.backbone(x))

    def levels(self, found):
        """Per map: (raw (batch, anchors, height, width, 5 + classes), anchors in cells, stride, scale of centers)"""
        config = self.config
        share = len(config.anchors) // len(config.strides)
        for i, (x, stride) in enumerate(zip(found, config.strides)):
            anchors = _C.tensor(config.anchors[i * share : (i + 1) * share], device=x.device).to(x.dtype) / stride
            yield x.unflatten(1, (share, -1)).permute(0, 1, 3, 4, 2), anchors, stride, config.center_scales[i]

    def boxes_of(self, raw, anchors, scale):
        """Center, width and height in cells (batch, anchors, height, width, 4)."""
        height, width = raw.shape[2:4]
        y, x = (_C.arange(n, device=raw.device, dtype=raw.dtype) for n in (height, width))
        at = _C.stack([x.expand(height, -1), y[:, None].expand(-1, width)], -1)
        center = raw[..., :2].sigmoid() * scale - (scale - 1) / 2 + at
        return _C.cat([center, raw[..., 2:4].exp() * anchors[:, None, None]], -1)

    def decoded(self, found, size):
        boxes, scores = [], []
        for raw, anchors, stride, scale in self.levels(found):
            box = ops.box_cxcywh_to_xyxy(self.boxes_of(raw, anchors, scale)) * stride
            boxes.append(box.flatten(1, 3))
            scores.append((raw[..., 4:5].sigmoid() * self.class_scores(raw[..., 5:])).flatten(1, 3))
        return _C.cat(boxes, 1), _C.cat(scores, 1)

    def losses(self, found, targets, size):
        """Each thing belongs to the anchor whose shape suits it best, in the cell where its center lies."""
        config, losses = self.config, dict.fromkeys(("loss_box", "loss_object", "loss_nothing", "loss_class"), 0.0)
        shapes = _C.tensor(config.anchors)
        owners = []
        for i, target in enumerate(targets):
            goals = ops.box_xyxy_to_cxcywh(target["boxes"].float()).cpu()
            common = _C.minimum(goals[:, None, 2:], shapes[None]).prod(-1)
            best = (common / (goals[:, 2:].prod(-1)[:, None] + shapes.prod(-1)[None] - common)).argmax(1)
            owners += [(i, a, box, label) for a, box, label in zip(best.tolist(), goals.tolist(), target["labels"].tolist())]
        share = len(config.anchors) // len(config.strides)
        for level, (raw, anchors, stride, scale) in enumerate(self.levels(found)):
            boxes, (height, width) = self.boxes_of(raw, anchors, scale), raw.shape[2:4]
            self.cells = height * width
            free = self.free(boxes.detach() * stride, targets)
            own = [o for o in owners if o[1] // share == level]
            if own:
                goals = _C.tensor([box for *_, box, _ in own], device=raw.device).to(raw.dtype) / stride
                column, row = goals[:, 0].long().clamp(0, width - 1), goals[:, 1].long().clamp(0, height - 1)
                image, which, labels = (_C.tensor([o[k] for o in own], device=raw.device) for k in (0, 1, 3))
                at = image, which % share, row, column
                one, places = raw[at], _C.stack([column, row], 1).to(raw.dtype)
                free[at] = False
                part = self.box_loss(one[:, :4], boxes[at], goals, anchors[which % share], places)
                losses["loss_box"] = losses["loss_box"] + config.coord_weight * part
                sure = F.binary_cross_entropy_with_logits(one[:, 4], _C.ones_like(one[:, 4]), reduction="sum")
                losses["loss_object"] = losses["loss_object"] + sure
                losses["loss_class"] = losses["loss_class"] + self.class_loss(one[:, 5:], labels)
            nothing = F.softplus(raw[..., 4])[free].sum()
            losses["loss_nothing"] = losses["loss_nothing"] + config.nothing_weight * nothing
        zero, batch = sum(x.sum() for x in found) * 0, len(targets)
        return {name: (value + zero) / batch for name, value in losses.items()}

    def free(self, boxes, targets):
        """Where a box overlaps no thing so much that it may stay (batch, anchors, height, width)."""
        with no_grad():
            found = _C.ones(boxes.shape[:-1], dtype=_C.bool, device=boxes.device)
            for i, target in enumerate(targets):
                if len(target["boxes"]):
                    flat = ops.box_cxcywh_to_xyxy(boxes[i].reshape(-1, 4))
                    near = ops.box_iou(flat, target["boxes"].to(flat.dtype)).max(1).values > self.config.ignore_thresh
                    found[i] = ~near.view(boxes.shape[1:-1])
            return found


class YOLOV3ForObjectDetection(YOLOV2ForObjectDetection):
    """YOLO v3: three anchors on each of three maps; a thing may be of several classes.

    >>> config = lucid.models.YOLOV3Config(num_classes=3, depths=(1, 1, 1, 1, 1))
    >>> sorted(lucid.models.YOLOV3ForObjectDetection(config).eval()(lucid.rand(1, 3, 64, 64))[0])
    ['boxes', 'labels', 'scores']
    """

    config_class = YOLOV3Config

    def network(self, config):
        if config.tiny:
            return darknet.TinyDarknet(config.in_channels), darknet.TinyPyramid(config.outputs)
        return darknet.Darknet53(config.in_channels, config.depths), darknet.TopDown(config.outputs)

    def class_scores(self, logits):
        return logits.sigmoid()

    def class_loss(self, logits, labels):
        right = F.one_hot(labels, self.config.num_classes).to(logits.dtype)
        return F.binary_cross_entropy_with_logits(logits, right, reduction="sum")


class YOLOV4ForObjectDetection(YOLOV3ForObjectDetection):
    """YOLO v4: v3's maps with more paths between them; boxes learn by how they overlap.

    >>> config = lucid.models.YOLOV4Config(num_classes=3, depths=(1, 1, 1, 1, 1))
    >>> sorted(lucid.models.YOLOV4ForObjectDetection(config).eval()(lucid.rand(1, 3, 64, 64))[0])
    ['boxes', 'labels', 'scores']
    """

    config_class = YOLOV4Config

    def network(self, config):
        if config.tiny:
            raise ValueError("there is no tiny YOLO v4 here")
        return darknet.CSPDarknet53(config.in_channels, config.depths), darknet.PathAggregation(config.outputs)

    def box_loss(self, raw, boxes, goals, anchors, places):
        overlap = ops.complete_iou(ops.box_cxcywh_to_xyxy(boxes), ops.box_cxcywh_to_xyxy(goals))
        return (1 - overlap).sum()


_TINY_V3 = dict(tiny=True, strides=(16, 32), anchors=_TINY)
for _config, _model, _sizes in (
    (YOLOV1Config, YOLOV1ForObjectDetection, {"yolo_v1": {}, "yolo_v1_tiny": dict(tiny=True)}),
    (YOLOV2Config, YOLOV2ForObjectDetection, {"yolo_v2": {}, "yolo_v2_tiny": dict(tiny=True)}),
    (YOLOV3Config, YOLOV3ForObjectDetection, {"yolo_v3": {}, "yolo_v3_tiny": _TINY_V3}),
    (YOLOV4Config, YOLOV4ForObjectDetection, {"yolo_v4": {}}),
):
    globals().update(family(_config, {"": (_model, "object-detection")}, _sizes))
