"""DETR (Carion et al., 2020): objects as a set, by a transformer over the map of a ResNet. Keys are those of
facebookresearch/detr.

Every query gives a class, the last of which is "nothing", and a box (center and size, parts of the image). For the loss
each thing is given to the query that suits it best (`assign`), the others learn to say nothing.
"""

import dataclasses
import math

from .... import _C, nn
from ....autograd import no_grad
from ....nn import functional as F
from ...base import PretrainedModel
from ...outputs import ModelOutput
from ...registry import family
from .. import ops
from ..base import ImageConfig
from ..classification.resnet import ResNetConfig, ResNetTrunk
from .rcnn import FrozenNorm


class ObjectDetectionOutput(ModelOutput):
    """What a detector of sets returns: logits per query (the last class is nothing) and boxes; those of earlier layers too.

    >>> lucid.models.ObjectDetectionOutput(logits=1).logits
    1
    """

    fields = ("loss", "logits", "pred_boxes", "aux_outputs")


@dataclasses.dataclass(frozen=True)
class DETRConfig(ImageConfig):
    """The settings of DETR; the defaults are detr_resnet50.

    >>> lucid.models.DETRConfig(num_queries=10).d_model
    256
    """

    num_classes: int = 91
    backbone_layers: tuple = (3, 4, 6, 3)
    d_model: int = 256
    n_head: int = 8
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    dim_feedforward: int = 2048
    dropout: float = 0.1
    num_queries: int = 100
    bbox_hidden_dim: int = 256
    aux_loss: bool = False
    nothing_weight: float = 0.1
    box_weight: float = 5.0
    overlap_weight: float = 2.0

    model_type = "detr"

    def __post_init__(self):
        if self.d_model % self.n_head or self.d_model % 4:
            raise ValueError(f"d_model {self.d_model} is a multiple of 4 and of n_head {self.n_head}")


def assign(costs):
    """The cheapest way to give every row a column of its own: a column per row, for at most as many rows as columns.

    >>> from lucid.models.vision.detection.detr import assign
    >>> assign([[1.0, 9.0, 5.0], [1.0, 2.0, 9.0]])
    [0, 1]
    """
    rows, columns = len(costs), len(costs[0]) if costs else 0
    if rows > columns:
        raise ValueError(f"{rows} rows for {columns} columns")
    row_price, column_price, owner = [0.0] * (rows + 1), [0.0] * (columns + 1), [0] * (columns + 1)
    for row in range(1, rows + 1):  # each row by the cheapest path of exchanges
        owner[0], place, way = row, 0, [0] * (columns + 1)
        least, seen = [math.inf] * (columns + 1), [False] * (columns + 1)
        while True:
            seen[place] = True
            step, following = math.inf, 0
            for c in range(1, columns + 1):
                if not seen[c]:
                    cost = costs[owner[place] - 1][c - 1] - row_price[owner[place]] - column_price[c]
                    if cost < least[c]:
                        least[c], way[c] = cost, place
                    if least[c] < step:
                        step, following = least[c], c
            for c in range(columns + 1):
                if seen[c]:
                    row_price[owner[c]] += step
                    column_price[c] -= step
                else:
                    least[c] -= step
            place = following
            if not owner[place]:
                break
        while place:
            owner[place], place = owner[way[place]], way[place]
    found = [0] * rows
    for c in range(1, columns + 1):
        if owner[c]:
            found[owner[c] - 1] = c - 1
    return found


class _Layer(nn.Module):
    def __init__(self, config, decodes):
        super().__init__()
        width, drop = config.d_model, config.dropout
        attention = lambda: nn.MultiheadAttention(width, config.n_head, drop, batch_first=True)
        self.self_attn = attention()
        if decodes:
            self.multihead_attn = attention()
        self.linear1, self.linear2 = nn.Linear(width, config.dim_feedforward), nn.Linear(config.dim_feedforward, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        if decodes:
            self.norm3 = nn.LayerNorm(width)
        self.dropout, self.decodes = nn.Dropout(drop), decodes

    def forward(self, x, places, padding=None, memory=None, memory_places=None):
        """places are added to queries and keys; padding: True where the image, or its memory, is padded."""
        at = x + places
        y = self.self_attn(at, at, x, None if self.decodes else padding, need_weights=False)[0]
        x = self.norm1(x + self.dropout(y))
        last = self.norm2
        if self.decodes:
            y = self.multihead_attn(x + places, memory + memory_places, memory, padding, need_weights=False)[0]
            x, last = self.norm2(x + self.dropout(y)), self.norm3
        return last(x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x))))))


class _Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.encoder, self.decoder = nn.Module(), nn.Module()
        self.encoder.layers = nn.ModuleList([_Layer(config, False) for _ in range(config.num_encoder_layers)])
        self.decoder.layers = nn.ModuleList([_Layer(config, True) for _ in range(config.num_decoder_layers)])
        self.decoder.norm = nn.LayerNorm(config.d_model)
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, x, places, queries, padding):
        for layer in self.encoder.layers:
            x = layer(x, places, padding)
        y, found = _C.zeros_like(queries), []
        for layer in self.decoder.layers:
            y = layer(y, queries, padding, x, places)
            found.append(self.decoder.norm(y))
        return found


class _Boxes(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, inner), nn.Linear(inner, inner), nn.Linear(inner, 4)])

    def forward(self, x):
        first, second, last = self.layers
        return last(F.relu(second(F.relu(first(x))))).sigmoid()


def sine_positions(real, width):
    """Sines and cosines of rows and columns, (batch, height, width) to (batch, height * width, width); real: no padding there.

    >>> from lucid.models.vision.detection.detr import sine_positions
    >>> tuple(sine_positions(lucid.ones(1, 2, 3), 8).shape)
    (1, 6, 8)
    """
    half, parts = width // 2, []
    rates = 10000.0 ** (_C.arange(half, device=real.device) // 2 * 2 / half)
    for dim in (1, 2):
        count = real.cumsum(dim)
        count = count / (count.narrow(dim, count.shape[dim] - 1, 1) + 1e-6) * (2 * math.pi)
        angles = count.unsqueeze(-1) / rates
        parts.append(_C.stack([angles[..., 0::2].sin(), angles[..., 1::2].cos()], -1).flatten(3))
    return _C.cat(parts, -1).flatten(1, 2)


class DETRForObjectDetection(PretrainedModel):
    """DETR: images in, logits and boxes per query out; `loss` with labels, a list of dictionaries with labels and boxes.

    Boxes are (center x, center y, width, height) in parts of the image. `post_process` gives boxes in pixels.

    >>> config = lucid.models.DETRConfig(num_classes=3, backbone_layers=(1, 1, 1, 1), d_model=16, n_head=2,
    ...     num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=32, num_queries=5, bbox_hidden_dim=16)
    >>> out = lucid.models.DETRForObjectDetection(config).eval()(lucid.zeros(1, 3, 64, 64))
    >>> tuple(out.logits.shape), tuple(out.pred_boxes.shape)
    ((1, 5, 4), (1, 5, 4))
    """

    config_class = DETRConfig
    head_keys = ("class_embed.",)
    stem_keys = ("backbone.0.body.conv1.weight",)

    def __init__(self, config):
        super().__init__(config)
        width = config.d_model
        self.transformer = _Transformer(config)
        self.class_embed = nn.Linear(width, config.num_classes + 1)
        self.bbox_embed = _Boxes(width, config.bbox_hidden_dim)
        self.query_embed = nn.Embedding(config.num_queries, width)
        trunk = ResNetTrunk(ResNetConfig(in_channels=config.in_channels, layers=config.backbone_layers), FrozenNorm)
        self.input_proj = nn.Conv2d(trunk.width, width, 1)
        self.backbone = nn.ModuleList([nn.Module()])
        self.backbone[0].body = trunk

    def forward(self, pixel_values, pixel_mask=None, labels=None):
        """pixel_mask: (batch, height, width), 0 where an image is padded."""
        x = self.input_proj(self.backbone[0].body.stages(pixel_values)[-1])
        padding = None
        real = _C.ones(x.shape[0], *x.shape[-2:], dtype=x.dtype, device=x.device)
        if pixel_mask is not None:
            real = F.interpolate(pixel_mask[:, None].to(x.dtype), x.shape[-2:], mode="nearest")[:, 0]
            padding = real.flatten(1) == 0
        places = sine_positions(real, self.config.d_model).to(x.dtype)
        queries = self.query_embed.weight.unsqueeze(0).expand(x.shape[0], -1, -1)
        found = self.transformer(x.flatten(2).transpose(1, 2), places, queries, padding)
        logits, boxes = [self.class_embed(y) for y in found], [self.bbox_embed(y) for y in found]
        loss, others = None, None
        if self.config.aux_loss:
            others = [{"logits": a, "pred_boxes": b} for a, b in zip(logits[:-1], boxes[:-1])]
        if labels is not None:
            loss = self.set_loss(logits[-1], boxes[-1], labels)
            for other in others or ():
                loss = loss + self.set_loss(other["logits"], other["pred_boxes"], labels)
        return ObjectDetectionOutput(loss=loss, logits=logits[-1], pred_boxes=boxes[-1], aux_outputs=others)

    def set_loss(self, logits, boxes, labels):
        """Each thing is given to the query that suits it best; classes, boxes and overlaps count."""
        config, count = self.config, max(sum(len(target["labels"]) for target in labels), 1)
        wanted = _C.full(logits.shape[:2], config.num_classes, dtype=_C.int64, device=logits.device)
        apart = boxes.sum() * 0
        for i, target in enumerate(labels):
            if not len(target["labels"]):
                continue
            goal = target["boxes"].to(boxes.dtype)
            with no_grad():
                cost = config.box_weight * (goal[:, None] - boxes[i][None]).abs().sum(-1)
                cost = cost - logits[i].softmax(-1)[:, target["labels"]].t() - config.overlap_weight * _overlaps(goal, boxes[i])
                chosen = _C.tensor(assign(cost.tolist()), device=boxes.device)
            wanted[i, chosen] = target["labels"]
            own = boxes[i][chosen]
            paired = _overlaps(goal, own).diagonal()
            apart = apart + config.box_weight * (own - goal).abs().sum() + config.overlap_weight * (1 - paired).sum()
        weights = _C.ones(config.num_classes + 1, dtype=logits.dtype, device=logits.device)
        weights[-1] = config.nothing_weight
        return F.cross_entropy(logits.transpose(1, 2), wanted, weights) + apart / count

    def post_process(self, outputs, sizes, threshold=0.5):
        """A dictionary of boxes (corners, pixels), scores and labels per image; sizes: (height, width) of each."""
        found = []
        scores, labels = outputs.logits.softmax(-1)[..., :-1].max(-1)
        for score, label, boxes, (height, width) in zip(scores, labels, outputs.pred_boxes, sizes):
            kept = (score > threshold).nonzero().flatten()
            scale = _C.tensor([width, height, width, height], device=boxes.device).to(boxes.dtype)
            boxes = ops.box_cxcywh_to_xyxy(boxes[kept]) * scale
            found.append({"boxes": boxes, "scores": score[kept], "labels": label[kept]})
        return found


def _overlaps(a, b):
    return ops.generalized_box_iou(ops.box_cxcywh_to_xyxy(a), ops.box_cxcywh_to_xyxy(b))


globals().update(
    family(
        DETRConfig,
        {"": (DETRForObjectDetection, "object-detection")},
        {"detr_resnet50": {}, "detr_resnet101": dict(backbone_layers=(3, 4, 23, 3))},
    )
)
