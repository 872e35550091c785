"""Boxes in images: overlap, non-maximum suppression, RoI align, and boxes as differences from others. Names and results are
torchvision's (`torchvision.ops`).

Boxes are (x1, y1, x2, y2). RoI align reads four neighbours of every sample as rows of a table of places, so that its
gradient is that of a lookup; suppression compares all boxes at once and then walks down the scores.
"""

import math

from ... import _C
from ...autograd import no_grad
from ...nn import functional as F

CLIP = math.log(1000.0 / 16)  # the largest growth of a side


def box_area(boxes):
    """Areas of boxes (n, 4).

    >>> lucid.models.vision.ops.box_area(lucid.tensor([[0.0, 0.0, 2.0, 3.0]]))
    tensor([6.])
    """
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


def _common(a, b):
    corner = _C.minimum(a[:, None, 2:], b[None, :, 2:]) - _C.maximum(a[:, None, :2], b[None, :, :2])
    common = corner.clamp(min=0).prod(-1)
    return common, box_area(a)[:, None] + box_area(b)[None, :] - common


def box_iou(boxes1, boxes2):
    """The common area of every two boxes over that of both together.

    >>> lucid.models.vision.ops.box_iou(lucid.tensor([[0.0, 0.0, 2.0, 2.0]]), lucid.tensor([[0.0, 0.0, 2.0, 1.0]]))
    tensor([[0.5000]])
    """
    common, both = _common(boxes1, boxes2)
    return common / both


def generalized_box_iou(boxes1, boxes2):
    """The same, less the share of the smallest box around both that neither covers.

    >>> lucid.models.vision.ops.generalized_box_iou(lucid.tensor([[0.0, 0.0, 1.0, 1.0]]), lucid.tensor([[1.0, 0.0, 2.0, 1.0]]))
    tensor([[0.]])
    """
    common, both = _common(boxes1, boxes2)
    around = _C.maximum(boxes1[:, None, 2:], boxes2[None, :, 2:]) - _C.minimum(boxes1[:, None, :2], boxes2[None, :, :2])
    around = around.clamp(min=0).prod(-1)
    return common / both - (around - both) / around


def complete_iou(a, b):
    """How much boxes (n, 4) overlap those of the same number, less how far and how different they are; torchvision's CIoU.

    >>> from lucid.models.vision.ops import complete_iou
    >>> complete_iou(lucid.tensor([[0.0, 0.0, 2.0, 2.0]]), lucid.tensor([[0.0, 0.0, 2.0, 2.0]]))
    tensor([1.])
    """
    common = (_C.minimum(a[:, 2:], b[:, 2:]) - _C.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(-1)
    overlap = common / (box_area(a) + box_area(b) - common).clamp(min=1e-9)
    around = ((_C.maximum(a[:, 2:], b[:, 2:]) - _C.minimum(a[:, :2], b[:, :2])) ** 2).sum(-1).clamp(min=1e-9)
    apart = ((a[:, :2] + a[:, 2:] - b[:, :2] - b[:, 2:]) ** 2).sum(-1) / 4
    angle = lambda x: _C.atan((x[:, 2] - x[:, 0]) / (x[:, 3] - x[:, 1]).clamp(min=1e-9))
    shape = (2 / math.pi * (angle(a) - angle(b))) ** 2
    with no_grad():
        weight = shape / (1 - overlap + shape).clamp(min=1e-9)
    return overlap - apart / around - weight * shape


def nms(boxes, scores, iou_threshold):
    """Indices of the boxes that stay, best score first: each removes all worse ones that it overlaps by more.

    >>> boxes = lucid.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 1.9], [5.0, 5.0, 6.0, 6.0]])
    >>> lucid.models.vision.ops.nms(boxes, lucid.tensor([0.5, 0.9, 0.1]), 0.5)
    tensor([1, 2])
    """
    if boxes.ndim != 2 or boxes.shape[-1] != 4 or scores.shape != boxes.shape[:1]:
        raise ValueError(f"nms takes boxes (n, 4) and scores (n,), not {tuple(boxes.shape)} and {tuple(scores.shape)}")
    boxes, scores = boxes.detach(), scores.detach()
    order = scores.argsort(descending=True, stable=True)
    boxes = boxes[order]
    kept, alive = [], _C.ones(len(boxes), dtype=_C.bool, device=boxes.device)
    while True:  # one comparison with all that are left per box that stays
        left = alive.nonzero()
        if not len(left):
            break
        first = int(left[0])
        kept.append(first)
        alive[: first + 1] = False
        near = box_iou(boxes[first : first + 1], boxes)[0] > iou_threshold
        alive = alive & ~near
    return order[_C.tensor(kept, dtype=_C.int64, device=boxes.device)]


def batched_nms(boxes, scores, idxs, iou_threshold):
    """nms within every group of boxes; the indices of all that stay, best score first.

    >>> boxes = lucid.tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 2.0, 2.0]])
    >>> lucid.models.vision.ops.batched_nms(boxes, lucid.tensor([0.5, 0.9]), lucid.tensor([0, 1]), 0.5)
    tensor([1, 0])
    """
    kept = []
    for group in idxs.unique().tolist():
        members = (idxs == group).nonzero().flatten()
        kept.append(members[nms(boxes[members], scores[members], iou_threshold)])
    if not kept:
        return _C.zeros(0, dtype=_C.int64, device=boxes.device)
    kept = _C.cat(kept)
    return kept[scores.detach()[kept].argsort(descending=True, stable=True)]


def clip_boxes_to_image(boxes, size):
    """Boxes cut at the edges of an image (height, width).

    >>> lucid.models.vision.ops.clip_boxes_to_image(lucid.tensor([[-1.0, 0.0, 9.0, 9.0]]), (4, 5))
    tensor([[0., 0., 5., 4.]])
    """
    height, width = size
    x, y = boxes[..., 0::2].clamp(0, width), boxes[..., 1::2].clamp(0, height)
    return _C.stack([x, y], -1).flatten(-2)


def box_cxcywh_to_xyxy(boxes):
    """Center, width and height to corners.

    >>> lucid.models.vision.ops.box_cxcywh_to_xyxy(lucid.tensor([[1.0, 1.0, 2.0, 2.0]]))
    tensor([[0., 0., 2., 2.]])
    """
    center, size = boxes[..., :2], boxes[..., 2:]
    return _C.cat([center - size / 2, center + size / 2], -1)


def box_xyxy_to_cxcywh(boxes):
    """Corners to center, width and height.

    >>> lucid.models.vision.ops.box_xyxy_to_cxcywh(lucid.tensor([[0.0, 0.0, 2.0, 2.0]]))
    tensor([[1., 1., 2., 2.]])
    """
    return _C.cat([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1)


def encode_boxes(boxes, anchors, weights=(1.0, 1.0, 1.0, 1.0)):
    """Boxes as differences from anchors: of the centers in sizes of the anchor, of the sizes in logarithms.

    >>> box = lucid.tensor([[0.0, 0.0, 2.0, 2.0]])
    >>> lucid.models.vision.ops.encode_boxes(box, box)
    tensor([[0., 0., 0., 0.]])
    """
    wanted, given = box_xyxy_to_cxcywh(boxes), box_xyxy_to_cxcywh(anchors)
    moves = (wanted[:, :2] - given[:, :2]) / given[:, 2:]
    return _C.cat([moves, _C.log(wanted[:, 2:] / given[:, 2:])], 1) * _C.tensor(weights, device=boxes.device).to(moves.dtype)


def decode_boxes(codes, anchors, weights=(1.0, 1.0, 1.0, 1.0)):
    """Boxes (n, k, 4) from k differences (n, 4 * k) from each anchor.

    >>> box = lucid.tensor([[0.0, 0.0, 2.0, 2.0]])
    >>> lucid.models.vision.ops.decode_boxes(lucid.zeros(1, 4), box)
    tensor([[[0., 0., 2., 2.]]])
    """
    codes = codes.view(len(anchors), codes.shape[-1] // 4, 4) / _C.tensor(weights, device=codes.device).to(codes.dtype)
    given = box_xyxy_to_cxcywh(anchors).to(codes.dtype)[:, None]
    center = codes[..., :2] * given[..., 2:] + given[..., :2]
    size = codes[..., 2:].clamp(max=CLIP).exp() * given[..., 2:]
    return _C.cat([center - size / 2, center + size / 2], -1)


def _sides(start, size, cells, samples, length):
    """Neighbours and weights of the samples along one side: two indices, two weights, each (n, cells * samples)."""
    steps = (_C.arange(cells * samples, device=start.device, dtype=start.dtype) + 0.5) / samples
    at = start[:, None] + steps * (size / cells)[:, None]
    inside = ((at >= -1.0) & (at <= length)).to(start.dtype)
    at = at.clamp(min=0)
    low = at.floor().clamp(max=length - 1)
    high = (low + 1).clamp(max=length - 1)
    at = _C.where(low >= length - 1, low, at)
    part = at - low
    return low.to(_C.int64), high.to(_C.int64), (1 - part) * inside, part * inside


def _numbered(boxes, who):
    """Boxes (n, 5) with the numbers of their maps first."""
    if not isinstance(boxes, _C.Tensor):
        numbers = [_C.full((len(b), 1), i, dtype=b.dtype, device=b.device) for i, b in enumerate(boxes)]
        boxes = _C.cat([_C.cat(numbers), _C.cat(list(boxes))], 1)
    if boxes.ndim != 2 or boxes.shape[1] != 5:
        raise ValueError(f"{who} takes boxes (n, 5) or a list of (k, 4), not {tuple(boxes.shape)}")
    return boxes


def roi_align(input, boxes, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=False):  # noqa: A002
    """Parts of maps (batch, channels, height, width) drawn to one size, (n, channels, *output_size), with gradients.

    boxes: (n, 5), the number of the map first, or a list of (k, 4) per map; sampling_ratio: samples along each side of a cell,
    as many as fit if it is not positive.

    >>> x = lucid.arange(16.0).view(1, 1, 4, 4)
    >>> lucid.models.vision.ops.roi_align(x, [lucid.tensor([[0.0, 0.0, 2.0, 2.0]])], 1, sampling_ratio=2).item()
    5.0
    """
    boxes = _numbered(boxes, "roi_align")
    tall, wide = (output_size, output_size) if isinstance(output_size, int) else output_size
    batch, channels, height, width = input.shape
    if not len(boxes):
        return input.new_zeros(0, channels, tall, wide)
    boxes = boxes.detach()
    places = boxes[:, 1:].to(input.dtype) * spatial_scale - (0.5 if aligned else 0.0)
    size = places[:, 2:] - places[:, :2]
    size = size if aligned else size.clamp(min=1.0)
    shape = (tall, wide)
    if sampling_ratio > 0:
        found = _aligned(input, boxes[:, 0], places, size, shape, (sampling_ratio,) * 2)
    else:  # boxes with as many samples each at once
        counts = (size.flip(1) / _C.tensor(shape, device=size.device)).ceil().to(_C.int64).clamp(min=1)
        found = input.new_zeros(len(boxes), channels, tall, wide)
        for pair in sorted(set(map(tuple, counts.tolist()))):
            rows = (counts == _C.tensor(pair, device=counts.device)).all(1).nonzero().flatten()
            part = _aligned(input, boxes[rows, 0], places[rows], size[rows], shape, pair)
            found = found.index_copy(0, rows, part)
    return found


def _aligned(maps, numbers, places, size, shape, samples):
    (tall, wide), (down, across) = shape, samples
    batch, channels, height, width = maps.shape
    table = maps.permute(0, 2, 3, 1).reshape(-1, channels)
    y0, y1, v0, v1 = _sides(places[:, 1], size[:, 1], tall, down, height)
    x0, x1, u0, u1 = _sides(places[:, 0], size[:, 0], wide, across, width)
    first = (numbers.to(_C.int64) * height)[:, None]
    total = None
    for y, v in ((y0, v0), (y1, v1)):
        for x, u in ((x0, u0), (x1, u1)):
            rows = ((first + y) * width)[:, :, None] + x[:, None, :]
            part = F.embedding(rows, table) * (v[:, :, None] * u[:, None, :]).unsqueeze(-1)
            total = part if total is None else total + part
    total = total.view(len(numbers), tall, down, wide, across, channels).mean((2, 4))
    return total.permute(0, 3, 1, 2)


def roi_pool(input, boxes, output_size, spatial_scale=1.0):  # noqa: A002
    """The largest values of parts of maps (batch, channels, height, width) in cells of each, (n, channels, *output_size).

    Corners are rounded to whole places; a cell that lies outside of its map is zero. boxes: as for roi_align.

    >>> x = lucid.arange(16.0).view(1, 1, 4, 4)
    >>> lucid.models.vision.ops.roi_pool(x, [lucid.tensor([[0.0, 0.0, 2.0, 2.0]])], 1).item()
    10.0
    """
    boxes = _numbered(boxes, "roi_pool")
    if not len(boxes):
        shape = (output_size, output_size) if isinstance(output_size, int) else output_size
        return input.new_zeros(0, input.shape[1], *shape)
    numbers = boxes[:, 0].to(_C.int64).tolist()
    scaled = boxes[:, 1:].detach() * spatial_scale
    corners = ((scaled.abs() + 0.5).floor() * scaled.sign()).to(_C.int64).tolist()  # halves go away from zero
    found = []
    for number, (x0, y0, x1, y1) in zip(numbers, corners):
        wide, tall = max(x1 - x0, 0) + 1, max(y1 - y0, 0) + 1
        part = input[number, :, max(y0, 0) : max(y0 + tall, 0), max(x0, 0) : max(x0 + wide, 0)]
        left, top = min(max(-x0, 0), wide), min(max(-y0, 0), tall)
        edges = (left, wide - left - part.shape[2], top, tall - top - part.shape[1])
        if any(edges):  # the cells are those of the whole part, also where it leaves the map
            part = F.pad(part, edges, value=-math.inf)
        found.append(F.adaptive_max_pool2d(part, output_size))
    found = _C.stack(found)
    return _C.where(found == -math.inf, 0.0, found)
