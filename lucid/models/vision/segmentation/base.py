"""What networks that say what every pixel shows return."""

from ....nn import functional as F
from ...outputs import ModelOutput

PUBLIC = ("SemanticSegmentationOutput",)


class SemanticSegmentationOutput(ModelOutput):
    """Logits per pixel; torchvision's names, "out" and "aux", are understood as well.

    >>> out = lucid.models.SemanticSegmentationOutput(logits=1)
    >>> out.logits, out["out"]
    (1, 1)
    """

    fields = ("loss", "logits", "aux_logits", "hidden_states")
    theirs = {"out": "logits", "aux": "aux_logits"}

    def __getitem__(self, key):
        return super().__getitem__(self.theirs.get(key, key) if isinstance(key, str) else key)


def pixel_loss(logits, labels, ignore_index=255):
    """Mean cross entropy of all pixels; logits are enlarged to the labels (batch, height, width).

    >>> from lucid.models.vision.segmentation.base import pixel_loss
    >>> pixel_loss(lucid.zeros(1, 2, 2, 2), lucid.tensor([[[0, 1], [255, 1]]]))
    tensor(0.6931)
    """
    if logits.shape[-2:] != labels.shape[-2:]:
        logits = F.interpolate(logits, labels.shape[-2:], mode="bilinear", align_corners=False)
    return F.cross_entropy(logits, labels, ignore_index=ignore_index)
