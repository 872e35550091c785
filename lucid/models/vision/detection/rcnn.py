"""Faster R-CNN (Ren et al., 2015) and Mask R-CNN (He et al., 2017) on ResNet-50 with a feature pyramid, with torchvision's
keys.

An image is normalised, resized and padded; the pyramid gives five maps; the proposal network says where things may be; each
proposal is drawn to 7x7 (14x14 for masks) and classified. While training the models return their losses by name, else a
dictionary per image: boxes, labels, scores, masks.
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
from ..classification.resnet import ResNetConfig, ResNetTrunk


@dataclasses.dataclass(frozen=True)
class FasterRCNNConfig(ImageConfig):
    """The settings of Faster R-CNN. Images are resized until the shorter side is min_size or the longer one max_size.

    norm: "batch", or "frozen" as the published weights were trained, with norm_eps=0.0 for torchvision's COCO_V1.

    >>> lucid.models.FasterRCNNConfig(num_classes=3).box_detections_per_img
    100
    """

    num_classes: int = 91
    backbone_layers: tuple = (3, 4, 6, 3)
    norm: str = "batch"
    norm_eps: float = 1e-5
    min_size: int = 800
    max_size: int = 1333
    image_mean: tuple = (0.485, 0.456, 0.406)
    image_std: tuple = (0.229, 0.224, 0.225)
    anchor_sizes: tuple = (32, 64, 128, 256, 512)
    aspect_ratios: tuple = (0.5, 1.0, 2.0)
    rpn_pre_nms_top_n: int = 1000
    rpn_post_nms_top_n: int = 1000
    rpn_pre_nms_top_n_train: int = 2000
    rpn_post_nms_top_n_train: int = 2000
    rpn_nms_thresh: float = 0.7
    rpn_score_thresh: float = 0.0
    rpn_fg_iou_thresh: float = 0.7
    rpn_bg_iou_thresh: float = 0.3
    rpn_batch_size_per_image: int = 256
    rpn_positive_fraction: float = 0.5
    score_thresh: float = 0.05
    box_nms_thresh: float = 0.5
    box_detections_per_img: int = 100
    box_fg_iou_thresh: float = 0.5
    box_bg_iou_thresh: float = 0.5
    box_batch_size_per_image: int = 512
    box_positive_fraction: float = 0.25

    model_type = "faster_rcnn"
    also = {
        "rpn_pre_nms_top_n_test": "rpn_pre_nms_top_n",
        "rpn_post_nms_top_n_test": "rpn_post_nms_top_n",
        "box_score_thresh": "score_thresh",
    }

    def __post_init__(self):
        self.check(norm={"batch", "frozen"})


@dataclasses.dataclass(frozen=True)
class MaskRCNNConfig(FasterRCNNConfig):
    """The settings of Mask R-CNN.

    >>> lucid.models.MaskRCNNConfig(num_classes=3).min_size
    800
    """

    model_type = "mask_rcnn"


class FrozenNorm(nn.Module):
    """Batch normalisation with fixed numbers: all are buffers.

    >>> from lucid.models.vision.detection.rcnn import FrozenNorm
    >>> list(FrozenNorm(2).state_dict())
    ['weight', 'bias', 'running_mean', 'running_var']
    """

    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.eps = eps
        for name, start in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, _C.full((channels,), start))

    def forward(self, x):
        scale = self.weight * (self.running_var + self.eps).rsqrt()
        return x * scale.view(1, -1, 1, 1) + (self.bias - self.running_mean * scale).view(1, -1, 1, 1)


class _Pyramid(nn.Module):
    def __init__(self, widths, width):
        super().__init__()
        self.inner_blocks = nn.ModuleList([nn.Sequential(nn.Conv2d(w, width, 1)) for w in widths])
        self.layer_blocks = nn.ModuleList([nn.Sequential(nn.Conv2d(width, width, 3, padding=1)) for _ in widths])
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_uniform_(module.weight, a=1)
                nn.init.zeros_(module.bias)

    def forward(self, maps):
        found, above = [], None
        for i in reversed(range(len(maps))):
            x = self.inner_blocks[i](maps[i])
            above = x if above is None else x + F.interpolate(above, x.shape[-2:], mode="nearest")
            found.insert(0, self.layer_blocks[i](above))
        return [*found, F.max_pool2d(found[-1], 1, 2, 0)]


class _Backbone(nn.Module):
    def __init__(self, config):
        super().__init__()
        norm = FrozenNorm if config.norm == "frozen" else nn.BatchNorm2d
        trunk = ResNetConfig(in_channels=config.in_channels, layers=config.backbone_layers)
        self.body = ResNetTrunk(trunk, lambda channels: norm(channels, eps=config.norm_eps))
        self.fpn = _Pyramid((256, 512, 1024, 2048), 256)

    def forward(self, x):
        return self.fpn(self.body.stages(x))


def _matched(overlaps, high, low, keep_best):
    """For every box the number of the target it overlaps most, -1: below low, -2: between; targets keep their best boxes."""
    values, which = overlaps.max(0)
    which_all = which
    which = _C.where(values < low, -1, _C.where(values < high, -2, which))
    if keep_best:
        best = overlaps.max(1).values
        boxes = (overlaps == best[:, None]).any(0)
        which = _C.where(boxes, which_all, which)
    return which


def _sampled(labels, count, fraction):
    """Indices of positive and negative boxes by chance: at most count, of which at most a fraction are positive."""
    positive, negative = (labels >= 1).nonzero().flatten(), (labels == 0).nonzero().flatten()
    some = min(len(positive), int(count * fraction))
    rest = min(len(negative), count - some)
    pick = lambda of, n: of[_C.randperm(len(of), device=of.device)[:n]]
    return pick(positive, some), pick(negative, rest)


class _Proposals(nn.Module):
    def __init__(self, config, width=256):
        super().__init__()
        self.config, count = config, len(config.aspect_ratios)
        self.head = nn.Module()
        self.head.conv = nn.Sequential(nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU()))
        self.head.cls_logits, self.head.bbox_pred = nn.Conv2d(width, count, 1), nn.Conv2d(width, 4 * count, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)

    def anchors(self, maps, size):
        """Boxes around every place of every map, in the order of the head's results."""
        found, like = [], maps[0]
        for x, side in zip(maps, self.config.anchor_sizes):
            ratios = _C.tensor(self.config.aspect_ratios, dtype=like.dtype, device=like.device).sqrt()
            w, h = side / ratios, side * ratios
            base = (_C.stack([-w, -h, w, h], 1) / 2).round()
            steps = [s // g for s, g in zip(size, x.shape[-2:])]
            y, x = (_C.arange(g, device=like.device) * step for g, step in zip(x.shape[-2:], steps))
            y, x = y.repeat_interleave(len(x)), x.repeat(len(y))
            shifts = _C.stack([x, y, x, y], 1).to(like.dtype)
            found.append((shifts[:, None] + base[None]).view(-1, 4))
        return found

    def forward(self, maps, sizes, size, targets):
        config, batch = self.config, len(sizes)
        hidden = [self.head.conv(x) for x in maps]
        scores = [self.head.cls_logits(x).permute(0, 2, 3, 1).reshape(batch, -1) for x in hidden]
        codes = []
        for x in hidden:
            raw = self.head.bbox_pred(x)
            raw = raw.view(batch, -1, 4, *raw.shape[-2:])
            codes.append(raw.permute(0, 3, 4, 1, 2).reshape(batch, -1, 4))
        levels = self.anchors(maps, size)
        anchors = _C.cat(levels)
        all_scores, all_codes = _C.cat(scores, 1), _C.cat(codes, 1)
        with no_grad():
            boxes = [ops.decode_boxes(c, anchors)[:, 0] for c in all_codes.detach()]
            counts = [len(level) for level in levels]
            proposals = [self.chosen(b, s, counts, shape) for b, s, shape in zip(boxes, all_scores.detach(), sizes)]
        if not self.training:
            return proposals, {}
        losses, used, right, wanted, given = {}, [], [], [], []
        for i, target in enumerate(targets):
            labels, goals = self.goals(anchors, target["boxes"])
            positive, negative = _sampled(labels, config.rpn_batch_size_per_image, config.rpn_positive_fraction)
            both = _C.cat([positive, negative])
            used.append(all_scores[i][both])
            right.append(labels[both].to(all_scores.dtype))
            given.append(all_codes[i][positive])
            wanted.append(goals[positive])
        used, right, given, wanted = _C.cat(used), _C.cat(right), _C.cat(given), _C.cat(wanted)
        losses["loss_objectness"] = F.binary_cross_entropy_with_logits(used, right)
        losses["loss_rpn_box_reg"] = F.smooth_l1_loss(given, wanted, beta=1 / 9, reduction="sum") / max(len(used), 1)
        return proposals, losses

    def goals(self, anchors, boxes):
        """Per anchor: 1 for a thing, 0 for none, -1 for neither; and the differences to learn."""
        config = self.config
        if not len(boxes):
            return _C.zeros(len(anchors), device=anchors.device), _C.zeros_like(anchors)
        which = _matched(ops.box_iou(boxes, anchors), config.rpn_fg_iou_thresh, config.rpn_bg_iou_thresh, True)
        labels = _C.where(which >= 0, 1, _C.where(which == -1, 0, -1))
        return labels, ops.encode_boxes(boxes[which.clamp(min=0)], anchors)

    def chosen(self, boxes, scores, counts, shape):
        config, train = self.config, self.training
        before = config.rpn_pre_nms_top_n_train if train else config.rpn_pre_nms_top_n
        after = config.rpn_post_nms_top_n_train if train else config.rpn_post_nms_top_n
        kept, level, first = [], [], 0
        for number, count in enumerate(counts):
            best = scores[first : first + count].topk(min(before, count)).indices
            kept.append(best + first)
            level.append(_C.full((len(best),), number, device=boxes.device))
            first += count
        kept, level = _C.cat(kept), _C.cat(level)
        boxes, scores = ops.clip_boxes_to_image(boxes[kept], shape), scores[kept].sigmoid()
        sides = boxes[:, 2:] - boxes[:, :2]
        large = ((sides >= 1e-3).all(1) & (scores >= config.rpn_score_thresh)).nonzero().flatten()
        boxes, scores, level = boxes[large], scores[large], level[large]
        return boxes[ops.batched_nms(boxes, scores, level, config.rpn_nms_thresh)[:after]]


def _pooled(maps, boxes, sizes, side):
    """Each box from the map of its size, drawn to side x side."""
    tallest = max(h for h, _ in sizes)
    scales = [2.0 ** round(math.log2(x.shape[-2] / tallest)) for x in maps]
    least, most = -math.log2(scales[0]), -math.log2(scales[-1])
    numbers = _C.cat([_C.full((len(b), 1), i, dtype=b.dtype, device=b.device) for i, b in enumerate(boxes)])
    rois = _C.cat([numbers, _C.cat(boxes)], 1)
    level = (4 + _C.log2(ops.box_area(rois[:, 1:]).sqrt() / 224) + 1e-6).floor().clamp(least, most) - least
    found = maps[0].new_zeros(len(rois), maps[0].shape[1], side, side)
    for i, (x, scale) in enumerate(zip(maps, scales)):
        rows = (level == i).nonzero().flatten()
        if len(rows):
            found = found.index_copy(0, rows, ops.roi_align(x, rois[rows], side, scale, 2))
    return found


def normalised(config, image):
    """An image (channels, height, width) less the mean of its channels, in their spreads.

    >>> from lucid.models.vision.detection.rcnn import normalised
    >>> tuple(normalised(lucid.models.FasterRCNNConfig(), lucid.zeros(3, 2, 2)).shape)
    (3, 2, 2)
    """
    if image.ndim != 3 or not image.is_floating_point():
        raise ValueError(f"images are floating tensors (channels, height, width), not {tuple(image.shape)}")
    mean, std = (_C.tensor(v, device=image.device).to(image.dtype) for v in (config.image_mean, config.image_std))
    return (image - mean[:, None, None]) / std[:, None, None]


def prepared(config, images, targets, shape=None):
    """Images normalised, resized and put into one batch, with their sizes; boxes and masks of targets resized alike.

    shape: height and width of the batch; multiples of 32 around all images if it is not given.

    >>> from lucid.models.vision.detection.rcnn import prepared
    >>> config = lucid.models.FasterRCNNConfig(min_size=64)
    >>> batch, sizes, _ = prepared(config, [lucid.zeros(3, 32, 40)], None)
    >>> tuple(batch.shape), sizes
    ((1, 3, 64, 96), [(64, 80)])
    """
    found, scaled = [], []
    for i, image in enumerate(images):
        image = normalised(config, image)
        height, width = image.shape[-2:]
        limits = _C.tensor([config.min_size, config.max_size], dtype=_C.float32)
        scale = float((limits / _C.tensor([min(height, width), max(height, width)])).min())
        size = int(height * scale), int(width * scale)
        found.append(F.interpolate(image[None], size, mode="bilinear", align_corners=False)[0])
        if targets is not None:
            target = dict(targets[i])
            ratio = _C.tensor([size[1] / width, size[0] / height] * 2, device=image.device)
            for name in ("boxes", "proposals"):
                if name in target:
                    target[name] = target[name] * ratio.to(target[name].dtype)
            if "masks" in target:
                masks = target["masks"][:, None].to(_C.float32)
                target["masks"] = F.interpolate(masks, size, mode="nearest")[:, 0].to(target["masks"].dtype)
            scaled.append(target)
    sizes = [tuple(image.shape[-2:]) for image in found]
    tall, wide = shape or (math.ceil(max(side) / 32) * 32 for side in zip(*sizes))
    batch = _C.stack([F.pad(x, (0, wide - x.shape[-1], 0, tall - x.shape[-2])) for x in found])
    return batch, sizes, scaled if targets is not None else None


def check_boxes(boxes, whose):
    """Raise ValueError for boxes that are none.

    >>> from lucid.models.vision.detection.rcnn import check_boxes
    >>> check_boxes(lucid.tensor([[0.0, 0.0, 2.0, 2.0]]), "targets")
    """
    if boxes.ndim != 2 or boxes.shape[-1] != 4 or bool((boxes[:, 2:] <= boxes[:, :2]).any()):
        raise ValueError(f"boxes of {whose} are (n, 4) with x1 < x2 and y1 < y2")


def check_targets(images, targets, training):
    """Raise ValueError for targets that do not fit their images.

    >>> from lucid.models.vision.detection.rcnn import check_targets
    >>> check_targets([lucid.zeros(3, 4, 4)], None, training=False)
    """
    if training and targets is None:
        raise ValueError("while training the model takes targets: a list of dictionaries with boxes and labels")
    if targets is not None and len(targets) != len(images):
        raise ValueError(f"{len(images)} images and {len(targets)} targets")
    for target in targets or ():
        check_boxes(target["boxes"], "targets")


def as_given(results, images, sizes):
    """Boxes and masks of images of these sizes in the sizes that the images had first.

    >>> from lucid.models.vision.detection.rcnn import as_given
    >>> as_given([{"boxes": lucid.ones(1, 4)}], [lucid.zeros(3, 8, 8)], [(4, 4)])[0]["boxes"]
    tensor([[2., 2., 2., 2.]])
    """
    for result, image, size in zip(results, images, sizes):
        height, width = image.shape[-2:]
        ratio = _C.tensor([width / size[1], height / size[0]] * 2, device=image.device)
        result["boxes"] = result["boxes"] * ratio.to(result["boxes"].dtype)
        if "masks" in result:
            result["masks"] = _pasted(result["masks"], result["boxes"], (height, width))
    return results


class BoxDecisions:
    """From proposals, scores of classes and differences of boxes to losses or to detections; for a module with `config`.

    >>> from lucid.models.vision.detection.rcnn import BoxDecisions
    >>> issubclass(lucid.models.FastRCNNForObjectDetection, BoxDecisions)
    True
    """

    def goals(self, proposals, target):
        """Boxes to learn from by chance: (boxes, labels, numbers of their targets, differences to learn)."""
        config, boxes = self.config, target["boxes"].to(proposals.dtype)
        proposals = _C.cat([proposals, boxes])
        if len(boxes):
            overlaps = ops.box_iou(boxes, proposals)
            which = _matched(overlaps, config.box_fg_iou_thresh, config.box_bg_iou_thresh, False)
            labels = _C.where(which >= 0, target["labels"][which.clamp(min=0)], _C.where(which == -1, 0, -1))
            which = which.clamp(min=0)
        else:
            labels = which = _C.zeros(len(proposals), dtype=_C.int64, device=proposals.device)
            boxes = _C.zeros(1, 4, dtype=proposals.dtype, device=proposals.device)
        kept = _C.cat(_sampled(labels, config.box_batch_size_per_image, config.box_positive_fraction)).sort().values
        proposals, labels, which = proposals[kept], labels[kept], which[kept]
        return proposals, labels, which, ops.encode_boxes(boxes[which], proposals, (10.0, 10.0, 5.0, 5.0))

    def box_losses(self, goals, scores, codes):
        """The losses of classes and boxes, of proposals that `goals` chose."""
        labels, wanted = _C.cat([g[1] for g in goals]), _C.cat([g[3] for g in goals])
        things = (labels > 0).nonzero().flatten()
        own = codes.view(len(labels), -1, 4)[things, labels[things]]
        apart = F.smooth_l1_loss(own, wanted[things], beta=1 / 9, reduction="sum")
        return {"loss_classifier": F.cross_entropy(scores, labels), "loss_box_reg": apart / max(len(labels), 1)}

    def all_detections(self, proposals, scores, codes, sizes):
        """Boxes, labels and scores of every image; scores and codes are those of all images, one after the other."""
        counts = [len(boxes) for boxes in proposals]
        return [self.detections(*one) for one in zip(proposals, scores.split(counts), codes.split(counts), sizes)]

    def detections(self, proposals, scores, codes, shape):
        config, classes = self.config, scores.shape[-1]
        scores = scores.softmax(-1)[:, 1:].flatten()
        boxes = ops.clip_boxes_to_image(ops.decode_boxes(codes, proposals, (10.0, 10.0, 5.0, 5.0)), shape)
        boxes = boxes[:, 1:].reshape(-1, 4)
        labels = _C.arange(1, classes, device=scores.device).repeat(len(proposals))
        sides = boxes[:, 2:] - boxes[:, :2]
        kept = ((scores > config.score_thresh) & (sides >= 1e-2).all(1)).nonzero().flatten()
        boxes, scores, labels = boxes[kept], scores[kept], labels[kept]
        kept = ops.batched_nms(boxes, scores, labels, config.box_nms_thresh)[: config.box_detections_per_img]
        return {"boxes": boxes[kept], "labels": labels[kept], "scores": scores[kept]}


class _Heads(BoxDecisions, nn.Module):
    def __init__(self, config, masks):
        super().__init__()
        self.config = config
        self.box_head, self.box_predictor = nn.Module(), nn.Module()
        self.box_head.fc6, self.box_head.fc7 = nn.Linear(256 * 49, 1024), nn.Linear(1024, 1024)
        self.box_predictor.cls_score = nn.Linear(1024, config.num_classes)
        self.box_predictor.bbox_pred = nn.Linear(1024, 4 * config.num_classes)
        self.masks = masks
        if masks:
            self.mask_head = nn.Sequential(*(nn.Sequential(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU()) for _ in range(4)))
            self.mask_predictor = nn.Module()
            self.mask_predictor.conv5_mask = nn.ConvTranspose2d(256, 256, 2, 2)
            self.mask_predictor.mask_fcn_logits = nn.Conv2d(256, config.num_classes, 1)
            for name, value in [*self.mask_head.named_parameters(), *self.mask_predictor.named_parameters()]:
                if "weight" in name:
                    nn.init.kaiming_normal_(value, mode="fan_out", nonlinearity="relu")
                else:
                    nn.init.zeros_(value)

    def forward(self, maps, proposals, sizes, targets):
        if self.training:
            goals = [self.goals(p, t) for p, t in zip(proposals, targets)]
            proposals = [g[0] for g in goals]
        x = _pooled(maps[:4], proposals, sizes, 7).flatten(1)
        x = F.relu(self.box_head.fc7(F.relu(self.box_head.fc6(x))))
        scores, codes = self.box_predictor.cls_score(x), self.box_predictor.bbox_pred(x)
        if self.training:
            losses = self.box_losses(goals, scores, codes)
            if self.masks:
                losses["loss_mask"] = self.mask_loss(maps, goals, sizes, targets)
            return [], losses
        results = self.all_detections(proposals, scores, codes, sizes)
        if self.masks:
            found = [r["boxes"] for r in results]
            logits = self.mask_logits(maps, found, sizes).sigmoid()
            labels = _C.cat([r["labels"] for r in results])
            chosen = logits[_C.arange(len(labels), device=labels.device), labels][:, None]
            for result, part in zip(results, chosen.split([len(b) for b in found])):
                result["masks"] = part
        return results, {}

    def mask_logits(self, maps, boxes, sizes):
        x = self.mask_head(_pooled(maps[:4], boxes, sizes, 14))
        return self.mask_predictor.mask_fcn_logits(F.relu(self.mask_predictor.conv5_mask(x)))

    def mask_loss(self, maps, goals, sizes, targets):
        boxes, labels, wanted = [], [], []
        for (proposals, kinds, which, _), target in zip(goals, targets):
            things = (kinds > 0).nonzero().flatten()
            own = proposals[things]
            rois = _C.cat([which[things, None].to(own.dtype), own], 1)
            boxes.append(own)
            labels.append(kinds[things])
            wanted.append(ops.roi_align(target["masks"][:, None].to(own.dtype), rois, 28)[:, 0])
        labels, wanted = _C.cat(labels), _C.cat(wanted)
        if not len(labels):
            return sum(p.sum() for p in self.mask_predictor.parameters()) * 0
        logits = self.mask_logits(maps, boxes, sizes)
        return F.binary_cross_entropy_with_logits(logits[_C.arange(len(labels), device=labels.device), labels], wanted)


def _pasted(masks, boxes, size):
    """Masks (n, 1, 28, 28) where their boxes lie in an image (height, width)."""
    height, width = size
    found = masks.new_zeros(len(masks), 1, height, width)
    masks = F.pad(masks, (1, 1, 1, 1))
    scale = masks.shape[-1] / (masks.shape[-1] - 2)
    center, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) / 2 * scale
    corners = _C.cat([center - half, center + half], 1).to(_C.int64).tolist()
    for i, (x0, y0, x1, y1) in enumerate(corners):
        w, h = max(x1 - x0 + 1, 1), max(y1 - y0 + 1, 1)
        mask = F.interpolate(masks[i : i + 1], (h, w), mode="bilinear", align_corners=False)[0, 0]
        top, bottom, left, right = max(y0, 0), min(y1 + 1, height), max(x0, 0), min(x1 + 1, width)
        found[i, 0, top:bottom, left:right] = mask[top - y0 : bottom - y0, left - x0 : right - x0]
    return found


class FasterRCNNForObjectDetection(PretrainedModel):
    """Faster R-CNN: a list of images (channels, height, width) between 0 and 1 in, a list of dictionaries out.

    While training it takes targets as well, a list of dictionaries with boxes and labels, and returns its losses by name.

    >>> config = lucid.models.FasterRCNNConfig(num_classes=3, backbone_layers=(1, 1, 1, 1), min_size=64, max_size=64)
    >>> model = lucid.models.FasterRCNNForObjectDetection(config).eval()
    >>> sorted(model([lucid.rand(3, 48, 64)])[0])
    ['boxes', 'labels', 'scores']
    """

    config_class = FasterRCNNConfig
    head_keys = ("roi_heads.box_predictor.", "roi_heads.mask_predictor.mask_fcn_logits.")
    stem_keys = ("backbone.body.conv1.weight",)
    renamed_keys = ((r"^rpn\.head\.conv\.(weight|bias)$", r"rpn.head.conv.0.0.\1"),
                    (r"^(backbone\.fpn\..*_blocks\.\d+|roi_heads\.mask_head\.\d+)\.(weight|bias)$", r"\1.0.\2"))  # fmt: skip
    masks = False

    def __init__(self, config):
        super().__init__(config)
        self.backbone, self.rpn = _Backbone(config), _Proposals(config)
        self.roi_heads = _Heads(config, self.masks)

    def forward(self, images, targets=None):
        images, config = list(images), self.config
        check_targets(images, targets, self.training)
        batch, sizes, scaled = prepared(config, images, targets)
        maps = self.backbone(batch)
        proposals, losses = self.rpn(maps, sizes, tuple(batch.shape[-2:]), scaled)
        results, more = self.roi_heads(maps, proposals, sizes, scaled)
        return {**more, **losses} if self.training else as_given(results, images, sizes)


class MaskRCNNForObjectDetection(FasterRCNNForObjectDetection):
    """Mask R-CNN: Faster R-CNN that also says which pixels belong to a thing. Targets have masks (n, height, width).

    >>> config = lucid.models.MaskRCNNConfig(num_classes=3, backbone_layers=(1, 1, 1, 1), min_size=64, max_size=64)
    >>> sorted(lucid.models.MaskRCNNForObjectDetection(config).eval()([lucid.rand(3, 48, 64)])[0])
    ['boxes', 'labels', 'masks', 'scores']
    """

    config_class = MaskRCNNConfig
    masks = True


globals().update(
    family(
        FasterRCNNConfig,
        {"": (FasterRCNNForObjectDetection, "object-detection")},
        {"faster_rcnn": {}, "faster_rcnn_resnet50_fpn": {}},
        (FasterRCNNForObjectDetection, {"fasterrcnn_resnet50_fpn": "faster_rcnn"}),
    )
)
globals().update(
    family(
        MaskRCNNConfig,
        {"": (MaskRCNNForObjectDetection, "object-detection")},
        {"mask_rcnn": {}, "mask_rcnn_resnet50_fpn": {}},
        (MaskRCNNForObjectDetection, {"maskrcnn_resnet50_fpn": "mask_rcnn"}),
    )
)
