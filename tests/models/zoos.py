"""The published zoos as references: torchvision (also where its compiled ops do not load), timm, transformers, diffusers.

torchvision's model files are Python; of its compiled ops the detectors alone need two. Where the wheel does not fit the
PyTorch beside it, the ops are declared here, and non-maximum suppression is written out; RoI align has a form in Python
there.
"""

import torch


def _nms(boxes, scores, threshold):
    order = scores.argsort(descending=True, stable=True)
    corner = torch.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - torch.maximum(boxes[:, None, :2], boxes[None, :, :2])
    common = corner.clamp(min=0).prod(-1)
    area = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
    overlap = common / (area[:, None] + area[None, :] - common)
    kept = []
    for i in order.tolist():
        if all(overlap[i, k] <= threshold for k in kept):
            kept.append(i)
    return torch.tensor(kept, dtype=torch.int64)


def _torchvision():
    library = torch.library.Library("torchvision", "FRAGMENT")
    if not hasattr(torch.ops.torchvision, "nms"):
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("nms", _nms, "CPU")
    import torchvision
    import torchvision.models
    import torchvision.ops.boxes

    if not torchvision.extension._has_ops():
        torchvision.ops.boxes._assert_has_ops = lambda: None
    return torchvision, library  # the declarations live as long as the library object


torchvision, _KEPT = _torchvision()
tv = torchvision.models
import timm  # noqa: E402, F401 (after torchvision, which it imports)
