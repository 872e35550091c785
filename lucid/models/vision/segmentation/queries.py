"""What MaskFormer and Mask2Former share: every query gives a class and a mask; for the loss each thing in a picture is given
to the query that suits it best, and the others learn to say "nothing". Keys are transformers 5's.
"""

from .... import _C, nn
from ....autograd import no_grad
from ....nn import functional as F
from ...base import PretrainedModel
from ...outputs import ModelOutput
from ..detection.detr import assign

PUBLIC = ("InstanceSegmentationOutput",)


class InstanceSegmentationOutput(ModelOutput):
    """What queries say: logits of classes (the last is nothing) and of masks; those of earlier layers too if asked for.

    >>> lucid.models.InstanceSegmentationOutput(class_queries_logits=1).class_queries_logits
    1
    """

    fields = ("loss", "class_queries_logits", "masks_queries_logits", "auxiliary_logits")


def mask_layers(width, outputs):
    """Three fully connected layers, from a query to the weights of its mask.

    >>> from lucid.models.vision.segmentation.queries import mask_layers
    >>> list(mask_layers(2, 2).state_dict())[:2]
    ['0.0.weight', '0.0.bias']
    """
    steps = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, outputs)
    acts = nn.ReLU(), nn.ReLU(), nn.Identity()
    return nn.Sequential(*(nn.Sequential(layer, act) for layer, act in zip(steps, acts)))


def masks_of(weights, pixels):
    """Masks of queries: sums of the maps of pixels (batch, channels, height, width), weighed by (batch, queries, channels).

    >>> from lucid.models.vision.segmentation.queries import masks_of
    >>> tuple(masks_of(lucid.zeros(2, 5, 4), lucid.zeros(2, 4, 3, 6)).shape)
    (2, 5, 3, 6)
    """
    return (weights @ pixels.flatten(2)).unflatten(2, pixels.shape[2:])


def _both(logits, at_one, at_zero, labels):
    """The loss of every mask (rows) with every thing (columns): at_one where the thing is, at_zero elsewhere."""
    return (at_one @ labels.t() + at_zero @ (1 - labels).t()) / logits.shape[1]


def _pair_dice(shares, labels):
    return 1 - (2 * shares @ labels.t() + 1) / (shares.sum(1)[:, None] + labels.sum(1)[None] + 1)


def dice_loss(logits, labels, count):
    """How little masks overlap the things they stand for, summed and divided by a count.

    >>> from lucid.models.vision.segmentation.queries import dice_loss
    >>> dice_loss(lucid.zeros(1, 2), lucid.tensor([[1.0, 0.0]]), 1)
    tensor(0.3333)
    """
    shares = logits.sigmoid()
    return (1 - (2 * (shares * labels).sum(1) + 1) / (shares.sum(1) + labels.sum(1) + 1)).sum() / count


def focal_loss(logits, labels, count, alpha=0.25):
    """Cross entropy of masks that counts less where they are right already (gamma 2).

    >>> from lucid.models.vision.segmentation.queries import focal_loss
    >>> focal_loss(lucid.zeros(1, 1), lucid.ones(1, 1), 1)
    tensor(0.0433)
    """
    shares = logits.sigmoid()
    right = shares * labels + (1 - shares) * (1 - labels)
    loss = F.binary_cross_entropy_with_logits(logits, labels, reduction="none") * (1 - right) ** 2
    return (loss * (alpha * labels + (1 - alpha) * (1 - labels))).mean(1).sum() / count


class QuerySegmentation(PretrainedModel):
    """A model whose queries give classes and masks; the loss of things, and classes per pixel.

    A family says how a mask is compared with a thing: `compared` makes both into rows of numbers, `pair_costs` gives the
    losses of every two of them, `mask_loss` that of matched ones.

    >>> from lucid.models.vision.segmentation.queries import QuerySegmentation
    >>> issubclass(lucid.models.MaskFormerForSemanticSegmentation, QuerySegmentation)
    True
    """

    head_keys = ("class_predictor.",)

    def add_weights_of_classes(self, config):
        self.criterion = nn.Module()
        self.criterion.register_buffer("empty_weight", self.weights_of_classes())

    def weights_of_classes(self):
        config = self.config
        return _C.cat([_C.ones(config.num_classes), _C.full((1,), config.no_object_weight)])

    def load_weights(self, weights, source="the weights"):
        with _C.device("cpu"):
            return super().load_weights({**weights, "criterion.empty_weight": self.weights_of_classes()}, source)

    def matched(self, classes, masks, mask_labels, class_labels):
        """For every image the queries that stand for its things, in the order of the things."""
        found, config = [], self.config
        with no_grad():
            for logits, mask, things, kinds in zip(classes, masks, mask_labels, class_labels):
                if not len(kinds):
                    found.append(kinds.to(_C.int64))
                    continue
                mask, things = self.compared_for_matching(mask, things.to(mask.dtype))
                cost = config.mask_weight * self.pair_costs(mask, things) + config.dice_weight * _pair_dice(
                    mask.sigmoid(), things
                )
                cost = (cost - config.class_weight * logits.softmax(-1)[:, kinds]).nan_to_num(
                    nan=1e30, posinf=1e30, neginf=1e30
                )
                found.append(_C.tensor(assign(cost.t().tolist()), device=classes.device))
        return found

    def set_loss(self, classes, masks, mask_labels, class_labels):
        """The loss of things, (n, height, width) of zeros and ones and their classes (n,), per image."""
        config, chosen = self.config, self.matched(classes, masks, mask_labels, class_labels)
        wanted = _C.full(classes.shape[:2], config.num_classes, dtype=_C.int64, device=classes.device)
        for i, (queries, kinds) in enumerate(zip(chosen, class_labels)):
            wanted[i, queries] = kinds
        total = masks.sum() * 0
        count = max(sum(len(kinds) for kinds in class_labels), 1)
        if any(len(kinds) for kinds in class_labels):
            own = _C.cat([mask[queries.sort().values] for mask, queries in zip(masks, chosen)])
            size = [max(things.shape[i] for things in mask_labels) for i in (1, 2)]
            things = [F.pad(t.to(masks.dtype), (0, size[1] - t.shape[2], 0, size[0] - t.shape[1])) for t in mask_labels]
            things = [t[queries.argsort()] for t, queries in zip(things, chosen)]
            own, things = self.compared(own, _C.cat(things))
            total = config.mask_weight * self.mask_loss(own, things, count)
            total = total + config.dice_weight * dice_loss(own, things, count)
        weights = self.criterion.empty_weight.to(classes.dtype)
        return total + config.class_weight * F.cross_entropy(classes.transpose(1, 2), wanted, weights)

    def result(self, classes, masks, mask_labels, class_labels, deep):
        """classes, masks: of every layer; deep: whether earlier layers count in the loss."""
        loss = None
        if (mask_labels is None) != (class_labels is None):
            raise ValueError("mask_labels and class_labels come together: things of every image, and their classes")
        if mask_labels is not None:
            loss = self.set_loss(classes[-1], masks[-1], mask_labels, class_labels)
            for pair in zip(classes[:-1], masks[:-1]) if deep else ():
                loss = loss + self.set_loss(*pair, mask_labels, class_labels)
        others = [{"class_queries_logits": c, "masks_queries_logits": m} for c, m in zip(classes[:-1], masks[:-1])]
        return InstanceSegmentationOutput(
            loss=loss, class_queries_logits=classes[-1], masks_queries_logits=masks[-1], auxiliary_logits=others or None
        )

    def post_process(self, outputs, sizes=None):
        """The class of every pixel, (height, width) per image; sizes: of the images, if not those of the masks."""
        kinds = outputs.class_queries_logits.softmax(-1)[..., :-1]
        scores = (kinds.transpose(1, 2) @ outputs.masks_queries_logits.sigmoid().flatten(2)).unflatten(
            2, outputs.masks_queries_logits.shape[2:]
        )
        if sizes is None:
            return list(scores.argmax(1))
        return [
            F.interpolate(s[None], size, mode="bilinear", align_corners=False)[0].argmax(0) for s, size in zip(scores, sizes)
        ]


def focal_pairs(logits, labels, alpha=0.25):
    """focal_loss of every mask with every thing.

    >>> from lucid.models.vision.segmentation.queries import focal_pairs
    >>> focal_pairs(lucid.zeros(1, 1), lucid.ones(1, 1))
    tensor([[0.0433]])
    """
    shares = logits.sigmoid()
    at_one = alpha * (1 - shares) ** 2 * F.softplus(-logits)
    return _both(logits, at_one, (1 - alpha) * shares**2 * F.softplus(logits), labels)


def entropy_pairs(logits, labels):
    """Cross entropy of every mask with every thing.

    >>> from lucid.models.vision.segmentation.queries import entropy_pairs
    >>> entropy_pairs(lucid.zeros(1, 1), lucid.ones(1, 1))
    tensor([[0.6931]])
    """
    return _both(logits, F.softplus(-logits), F.softplus(logits), labels)
