"""EfficientDet (Tan, Pang and Le, 2020), with the keys of the package effdet.

EfficientNet gives maps at 1/8, 1/16 and 1/32 of the image, and two smaller ones follow from the last. Some cells then carry
them down to the large map and up again (`_Cell`): every node weighs two or three maps, resized to its own size. Two nets,
one for the classes and one for the boxes, look at all five maps with the same convolutions, but with a normalisation for
each. Nine anchors stand on every place.

Google's weights, which effdet publishes as tf_efficientdet_d0 to d7, want TensorFlow's padding and a bias before each
normalisation: these are the defaults. effdet's own efficientdet_d0 and d1 have padding="symmetric", redundant_bias=False and
backbone_norm_eps=1e-5.
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
from ..blocks import DropPath, SameConv2d, SqueezeExcite, divisible, same_pads, start_convolutions
from ..classification.efficientnet import EfficientNetConfig
from .rcnn import as_given, check_targets, prepared

PUBLIC = ("efficientdet_config",)
LEVELS = (3, 4, 5, 6, 7)  # the maps are 2**level times smaller than the image
TAPS = (2, 4, 6)  # the stages of EfficientNet whose maps are taken
# of a cell: the level of each node and the maps that it joins; 0 to 4 are the cell's own, 5 is the first node's
NODES = ((3, (3, 4)), (2, (2, 5)), (1, (1, 6)), (0, (0, 7)), (1, (1, 7, 8)), (2, (2, 6, 9)), (3, (3, 5, 10)), (4, (4, 11)))


@dataclasses.dataclass(frozen=True)
class EfficientDetConfig(ImageConfig):
    """The settings of EfficientDet; the defaults are D0. No class is the background; labels count from 1.

    width_mult, depth_mult: of EfficientNet; weighted: whether nodes weigh their maps or add them; aspect_ratios: pairs of
    width and height; max_detection_points: how many scores go into the choice of boxes.

    >>> lucid.models.EfficientDetConfig(num_classes=3).image_size
    512
    """

    num_classes: int = 90
    image_size: int = 512
    width_mult: float = 1.0
    depth_mult: float = 1.0
    drop_path_rate: float = 0.2
    fpn_channels: int = 64
    fpn_cell_repeats: int = 3
    box_class_repeats: int = 3
    weighted: bool = True
    padding: str = "same"
    redundant_bias: bool = True
    backbone_norm_eps: float = 1e-3
    anchor_scale: float = 4.0
    num_scales: int = 3
    aspect_ratios: tuple = ((1.0, 1.0), (1.4, 0.7), (0.7, 1.4))
    image_mean: tuple = (0.485, 0.456, 0.406)
    image_std: tuple = (0.229, 0.224, 0.225)
    match_thresh: float = 0.5
    focal_alpha: float = 0.25
    focal_gamma: float = 1.5
    huber_delta: float = 0.1
    box_loss_weight: float = 50.0
    score_thresh: float = 0.05
    box_nms_thresh: float = 0.5
    box_detections_per_img: int = 100
    max_detection_points: int = 5000
    model_type = "efficientdet"

    def __post_init__(self):
        self.check(padding={"same", "symmetric"})
        object.__setattr__(self, "aspect_ratios", tuple(tuple(pair) for pair in self.aspect_ratios))
        if any(len(pair) != 2 for pair in self.aspect_ratios) or not self.aspect_ratios:
            raise ValueError(f"aspect_ratios are pairs of width and height, not {self.aspect_ratios}")
        if self.image_size < 1 or self.image_size % 128:
            raise ValueError(f"image_size is a multiple of 128, not {self.image_size}")

    def to_dict(self):
        return {**super().to_dict(), "aspect_ratios": [list(pair) for pair in self.aspect_ratios]}

    @property
    def min_size(self):  # as `prepared` asks
        return self.image_size

    max_size = min_size


def _convolution(config, inputs, outputs, kernel=1, stride=1, groups=1, bias=False):
    kind = SameConv2d if config.padding == "same" else nn.Conv2d
    return kind(inputs, outputs, kernel, stride, (kernel - 1) // 2 if kind is nn.Conv2d else 0, groups=groups, bias=bias)


class _Block(nn.Module):
    """An inverted residual of EfficientNet under timm's keys; without the first convolution if nothing is expanded."""

    def __init__(self, config, expand, kernel, stride, inputs, outputs, drop):
        super().__init__()
        inner = inputs * expand
        norm = lambda channels: nn.BatchNorm2d(channels, eps=config.backbone_norm_eps)
        names = ("conv_pw", "conv_dw", "conv_pwl") if expand != 1 else (None, "conv_dw", "conv_pw")
        if expand != 1:
            self.conv_pw = _convolution(config, inputs, inner)
        self.conv_dw = _convolution(config, inner, inner, kernel, stride, inner)
        self.se = SqueezeExcite(inner, inputs // 4, act=F.silu, names=("conv_reduce", "conv_expand"))
        setattr(self, names[2], _convolution(config, inner, outputs))
        widths = (inner, inner, outputs) if expand != 1 else (inner, outputs)
        for i, width in enumerate(widths, 1):
            setattr(self, f"bn{i}", norm(width))
        self.names, self.adds, self.drop_path = names, stride == 1 and inputs == outputs, DropPath(drop)

    def forward(self, x):
        first, second, last = self.names
        y, norms = x, iter([self.bn1, self.bn2] + ([self.bn3] if first else []))
        if first:
            y = F.silu(next(norms)(getattr(self, first)(y)))
        y = self.se(F.silu(next(norms)(getattr(self, second)(y))))
        y = next(norms)(getattr(self, last)(y))
        return x + self.drop_path(y) if self.adds else y


class _Backbone(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = lambda channels: divisible(channels * config.width_mult)
        rows = [(*row[1:4], width(row[5]), math.ceil(row[6] * config.depth_mult)) for row in EfficientNetConfig().stages]
        before, total, number, stages = width(32), sum(row[-1] for row in rows), 0, []
        self.conv_stem = _convolution(config, config.in_channels, before, 3, 2)
        self.bn1, self.widths = nn.BatchNorm2d(before, eps=config.backbone_norm_eps), []
        for i, (expand, kernel, stride, outputs, depth) in enumerate(rows):
            blocks = []
            for j in range(depth):
                drop = config.drop_path_rate * number / total
                blocks.append(_Block(config, expand, kernel, 1 if j else stride, before, outputs, drop))
                before, number = outputs, number + 1
            stages.append(nn.Sequential(*blocks))
            if i in TAPS:
                self.widths.append(outputs)
        self.blocks = nn.Sequential(*stages)

    def forward(self, x):
        x, found = F.silu(self.bn1(self.conv_stem(x))), []
        for i, stage in enumerate(self.blocks):
            x = stage(x)
            if i in TAPS:
                found.append(x)
        return found


def _norm(width):
    return nn.BatchNorm2d(width, eps=1e-3, momentum=0.01)


class _Narrow(nn.Module):
    """A map of other channels, without an activation."""

    def __init__(self, config, inputs):
        super().__init__()
        self.conv = _convolution(config, inputs, config.fpn_channels, bias=config.redundant_bias)
        self.bn = _norm(config.fpn_channels)

    def forward(self, x):
        return self.bn(self.conv(x))


class _Separable(nn.Module):
    """A depthwise and a pointwise convolution, and a normalisation for a node of a cell."""

    def __init__(self, config, outputs=None, bias=None, norm=False):
        super().__init__()
        width = config.fpn_channels
        self.conv_dw = _convolution(config, width, width, 3, 1, width)
        bias = config.redundant_bias if bias is None else bias
        self.conv_pw = _convolution(config, width, outputs or width, bias=bias)
        self.bn = _norm(width) if norm else None

    def forward(self, x):
        x = self.conv_pw(self.conv_dw(x))
        return x if self.bn is None else self.bn(x)


class _Resized(nn.Module):
    """A map in the channels of the pyramid, then half or twice as large."""

    def __init__(self, config, inputs):
        super().__init__()
        self.same = config.padding == "same"
        self.conv = _Narrow(config, inputs) if inputs != config.fpn_channels else None

    def forward(self, x, size=None):
        x = x if self.conv is None else self.conv(x)
        if size is None or x.shape[-1] > size[-1]:  # the largest of nine places, at every second
            if not self.same:
                return F.max_pool2d(x, 3, 2, 1)
            return F.max_pool2d(F.pad(x, same_pads(x.shape, (3, 3), (2, 2)), value=-math.inf), 3, 2)
        return x if x.shape[-1] == size[-1] else F.interpolate(x, size, mode="nearest")


class _Combine(nn.Module):
    def __init__(self, config, inputs, widths):
        super().__init__()
        self.inputs = inputs
        self.resample = nn.ModuleDict({str(i): _Resized(config, widths[i]) for i in inputs})
        self.edge_weights = nn.Parameter(_C.ones(len(inputs))) if config.weighted else None

    def forward(self, maps, size):
        maps = [self.resample[str(i)](maps[i], size) for i in self.inputs]
        if self.edge_weights is None:
            return sum(maps[1:], maps[0])
        weights = F.relu(self.edge_weights)
        weights = weights / (weights.sum() + 1e-4)
        return sum(x * weight for x, weight in zip(maps, weights.unbind()))


class _Cell(nn.Module):
    """Once down to the large map and up again; nodes join the cell's maps and those of nodes before them."""

    def __init__(self, config, widths):
        super().__init__()
        widths, self.fnode = [*widths], nn.ModuleList()
        for _, inputs in NODES:
            node = nn.Module()
            node.combine = _Combine(config, inputs, widths)
            node.after_combine = nn.ModuleDict({"conv": _Separable(config, norm=True)})
            self.fnode.append(node)
            widths.append(config.fpn_channels)

    def forward(self, maps):
        maps = [*maps]
        for (level, _), node in zip(NODES, self.fnode):
            x = node.combine(maps, maps[level].shape[-2:])
            maps.append(node.after_combine["conv"](F.silu(x)))
        return maps[-len(LEVELS) :]


class _Pyramid(nn.Module):
    def __init__(self, config, widths):
        super().__init__()
        width, count = config.fpn_channels, len(widths)
        befores = [widths[-1]] + [width] * (len(LEVELS) - count - 1)
        self.resample = nn.ModuleDict({str(count + i): _Resized(config, before) for i, before in enumerate(befores)})
        first = [*widths] + [width] * len(befores)
        cells = [_Cell(config, [width] * len(LEVELS) if i else first) for i in range(config.fpn_cell_repeats)]
        self.cell = nn.Sequential(*cells)

    def forward(self, maps):
        maps = [*maps]
        for layer in self.resample.values():
            maps.append(layer(maps[-1]))
        return self.cell(maps)


class _Net(nn.Module):
    """The same convolutions for all maps; every map has its own normalisations. outputs: numbers per anchor."""

    def __init__(self, config, outputs):
        super().__init__()
        width, repeats, self.outputs = config.fpn_channels, range(config.box_class_repeats), outputs
        self.conv_rep = nn.ModuleList([_Separable(config) for _ in repeats])
        norms = lambda: nn.ModuleList([nn.ModuleDict({"bn": _norm(width)}) for _ in LEVELS])
        self.bn_rep = nn.ModuleList([norms() for _ in repeats])
        anchors = config.num_scales * len(config.aspect_ratios)
        self.predict = _Separable(config, outputs * anchors, bias=True)

    def forward(self, maps):
        """(batch, anchors of all maps, outputs)."""
        found = []
        for level, x in enumerate(maps):
            for layer, norms in zip(self.conv_rep, self.bn_rep):
                x = F.silu(norms[level]["bn"](layer(x)))
            found.append(self.predict(x).permute(0, 2, 3, 1).reshape(len(x), -1, self.outputs))
        return _C.cat(found, 1)


def anchors_of(config):
    """The anchors (n, 4) of all maps in the order of the nets' results, in pixels of the resized image.

    >>> from lucid.models.vision.detection.efficientdet import anchors_of
    >>> anchors = anchors_of(lucid.models.EfficientDetConfig(image_size=128))
    >>> anchors.shape, anchors[0]
    (lucid.Size([3069, 4]), tensor([-12., -12.,  20.,  20.]))
    """
    found = []
    for level in LEVELS:
        step = 2**level
        base = [config.anchor_scale * step * 2 ** (i / config.num_scales) for i in range(config.num_scales)]
        sides = _C.tensor([[side * x / 2, side * y / 2] for side in base for x, y in config.aspect_ratios], dtype=_C.float64)
        at = _C.arange(step / 2, config.image_size, step, dtype=_C.float64)
        places = _C.stack([at.repeat(len(at)), at.repeat_interleave(len(at))], 1)[:, None]
        found.append(_C.cat([places - sides, places + sides], -1).view(-1, 4))
    return _C.cat(found).to(_C.float32)


class EfficientDetForObjectDetection(PretrainedModel):
    """EfficientDet: a list of images (channels, height, width) between 0 and 1 in, a list of dictionaries out.

    While training it takes targets as well, a list of dictionaries with boxes and labels, and returns its losses by name.

    >>> config = lucid.models.EfficientDetConfig(num_classes=3, image_size=128, fpn_channels=8, fpn_cell_repeats=1)
    >>> model = lucid.models.EfficientDetForObjectDetection(config).eval()
    >>> sorted(model([lucid.rand(3, 96, 128)])[0])
    ['boxes', 'labels', 'scores']
    """

    config_class = EfficientDetConfig
    head_keys = ("class_net.predict.conv_pw.",)
    stem_keys = ("backbone.conv_stem.weight",)

    def __init__(self, config):
        super().__init__(config)
        self.backbone = _Backbone(config)
        self.fpn = _Pyramid(config, self.backbone.widths)
        self.class_net, self.box_net = _Net(config, config.num_classes), _Net(config, 4)
        start_convolutions(self.backbone)
        for module in self.modules():
            if isinstance(module, _Separable):
                for layer in (module.conv_dw, module.conv_pw):
                    nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
                    if layer.bias is not None:
                        nn.init.zeros_(layer.bias)
        nn.init.constant_(self.class_net.predict.conv_pw.bias, -math.log(99))  # at first a class has one chance in a hundred

    def raw(self, batch):
        """Logits (batch, anchors, classes) and codes (batch, anchors, 4) of a batch of prepared images."""
        maps = self.fpn(self.backbone(batch))
        return self.class_net(maps), self.box_net(maps)[..., (1, 0, 3, 2)]  # published files have y before x

    def forward(self, images, targets=None):
        images, config = list(images), self.config
        check_targets(images, targets, self.training)
        for label in (label for target in targets or () for label in target["labels"].tolist()):
            if not 1 <= label <= config.num_classes:
                raise ValueError(f"labels are 1 to {config.num_classes}, not {label}")
        batch, sizes, scaled = prepared(config, images, targets, (config.image_size, config.image_size))
        logits, codes = self.raw(batch)
        anchors = anchors_of(config).to(device=codes.device, dtype=codes.dtype)
        if self.training:
            return self.losses(logits, codes, anchors, scaled)
        return as_given([self.detections(*one, anchors) for one in zip(logits, codes, sizes)], images, sizes)

    def goals(self, anchors, target):
        """The class of every anchor, counted from 0 (-1: none), and the differences of its box."""
        boxes = target["boxes"].to(anchors.dtype)
        if not len(boxes):
            return _C.full((len(anchors),), -1, device=anchors.device), _C.zeros_like(anchors)
        overlaps = ops.box_iou(boxes, anchors)
        values, which = overlaps.max(0)
        which = _C.where(values >= self.config.match_thresh, which, -1)
        for row, best in reversed(list(enumerate(overlaps.argmax(1).tolist()))):  # every thing has an anchor
            which[best] = row
        things, at = (which >= 0), which.clamp(min=0)
        codes = ops.encode_boxes(boxes[at], anchors)
        return _C.where(things, target["labels"][at] - 1, -1), _C.where(things[:, None], codes, 0.0)

    def losses(self, logits, codes, anchors, targets):
        config = self.config
        with no_grad():
            goals = [self.goals(anchors, target) for target in targets]
            labels, wanted = _C.stack([g[0] for g in goals]), _C.stack([g[1] for g in goals])
            count = (labels >= 0).sum() + 1.0
            truth = (labels[..., None] == _C.arange(config.num_classes, device=labels.device)).to(logits.dtype)
        chance = logits.sigmoid()
        right = truth * chance + (1 - truth) * (1 - chance)
        weight = (truth * config.focal_alpha + (1 - truth) * (1 - config.focal_alpha)) * (1 - right) ** config.focal_gamma
        classes = (weight * F.binary_cross_entropy_with_logits(logits, truth, reduction="none")).sum() / count
        apart = F.huber_loss(codes, wanted, reduction="none", delta=config.huber_delta)
        apart = (apart * (wanted != 0)).sum() / (4 * count)  # as published: a difference of exactly zero is not learned
        return {"loss_classifier": classes, "loss_box_reg": config.box_loss_weight * apart}

    def detections(self, logits, codes, size, anchors):
        """Boxes, labels and scores of an image of this size in the batch."""
        config, scores = self.config, logits.flatten()
        best = scores.topk(min(config.max_detection_points, len(scores))).indices
        scores = scores[best].sigmoid()
        best, scores = best[scores > config.score_thresh], scores[scores > config.score_thresh]
        which, labels = best // config.num_classes, best % config.num_classes + 1
        boxes = ops.clip_boxes_to_image(ops.decode_boxes(codes[which], anchors[which])[:, 0], size)
        kept = ops.batched_nms(boxes, scores, labels, config.box_nms_thresh)[: config.box_detections_per_img]
        return {"boxes": boxes[kept], "labels": labels[kept], "scores": scores[kept]}


# of EfficientNet: width and depth; of the images: pixels; of the pyramid: channels, cells; of the nets: convolutions
_ROWS = (
    (1.0, 1.0, 512, 64, 3, 3),
    (1.0, 1.1, 640, 88, 4, 3),
    (1.1, 1.2, 768, 112, 5, 3),
    (1.2, 1.4, 896, 160, 6, 4),
    (1.4, 1.8, 1024, 224, 7, 4),
    (1.6, 2.2, 1280, 288, 7, 4),
    (1.8, 2.6, 1280, 384, 8, 5),
    (1.8, 2.6, 1536, 384, 8, 5),
)
_FIELDS = ("width_mult", "depth_mult", "image_size", "fpn_channels", "fpn_cell_repeats", "box_class_repeats")
_SIZES = {f"efficientdet_d{i}": dict(zip(_FIELDS, row)) for i, row in enumerate(_ROWS)}
_SIZES["efficientdet_d6"]["weighted"] = _SIZES["efficientdet_d7"]["weighted"] = False
_SIZES["efficientdet_d7"]["anchor_scale"] = 5.0


def efficientdet_config(size=0, **overrides):
    """The config of EfficientDet D0 to D7, by number or name; fields by keyword.

    >>> lucid.models.efficientdet_config(3, num_classes=20).fpn_channels
    160
    >>> lucid.models.efficientdet_config("efficientdet_d7").image_size
    1536
    """
    name = size if isinstance(size, str) else f"efficientdet_d{size}"
    if name not in _SIZES:
        raise ValueError(f"the size of EfficientDet is 0 to {len(_SIZES) - 1} or one of {', '.join(_SIZES)}, not {size!r}")
    return EfficientDetConfig(**_SIZES[name]).replace(**overrides)


globals().update(family(EfficientDetConfig, {"": (EfficientDetForObjectDetection, "object-detection")}, _SIZES))
