"""EfficientDet as the package effdet computes it: outputs of the network, losses, and the boxes that it chooses."""

import torch
import vision_cases as cases
import zoos  # noqa: F401 (torchvision's ops, which effdet needs)

_script = torch.jit.script
torch.jit.script = lambda function, *_, **__: function  # what stands in for torchvision's ops cannot be scripted
import effdet  # noqa: E402
from effdet import anchors, bench, config, loss  # noqa: E402

torch.jit.script = _script

BACKBONES = {"efficientdet": "tf_efficientnet_b0", "efficientdet symmetric": "efficientnet_b2"}


def _rounded(values):
    return [float(f"{v:.7g}") for v in values]


def _made(name):
    fields, chosen = cases.EFFDETS[name], config.get_efficientdet_config("tf_efficientdet_d0")
    chosen.update(
        **dict(backbone_name=BACKBONES[name], backbone_args={"drop_path_rate": 0.0}, image_size=(128, 128)),
        **{key: fields[key] for key in ("num_classes", "fpn_channels", "box_class_repeats", "fpn_cell_repeats")},
        **dict(redundant_bias=fields.get("redundant_bias", True), anchor_scale=fields.get("anchor_scale", 4.0)),
        **dict(pad_type="" if "padding" in fields else "same", fpn_name=None if fields.get("weighted", True) else "bifpn_sum"),
    )
    return effdet.EfficientDet(chosen, pretrained_backbone=False)


def _maps(classes):
    """Outputs that follow from a formula, as a map per level."""
    found = []
    for every in cases.effdet_outputs(torch, classes):
        parts = every.split([9 * (128 >> level) ** 2 for level in range(3, 8)])
        sides = [128 >> level for level in range(3, 8)]
        found.append([x.reshape(1, side, side, -1).permute(0, 3, 1, 2) for x, side in zip(parts, sides)])
    return found


def full(size):
    return effdet.EfficientDet(config.get_efficientdet_config(f"tf_efficientdet_d{size}"), pretrained_backbone=False)


def numbers(name):
    model = _made(name).eval()
    cases.fill(torch, model)
    found, (pictures, things) = {"keys": cases.digest(model)}, cases.effdet_inputs(torch)
    batch = torch.stack([torch.nn.functional.pad(p, (0, 0, 0, 128 - p.shape[1])) for p in pictures])
    labeler = anchors.AnchorLabeler(anchors.Anchors.from_config(model.config), model.config.num_classes)
    labels = labeler.batch_label_anchors([t["boxes"][:, [1, 0, 3, 2]] for t in things], [t["labels"] for t in things])
    classes, boxes = model(batch)
    _, first, second = loss.DetectionLoss(model.config)(classes, boxes, *labels)
    found["losses"] = {"loss_classifier": first.item(), "loss_box_reg": 50 * second.item()}
    (first + 50 * second).backward()
    norm = sum(float((p.grad.double() ** 2).sum()) for p in model.parameters() if p.grad is not None) ** 0.5
    found["norm"] = float(f"{norm:.7g}")
    with torch.no_grad():
        for key, count, maps in (("logits", model.config.num_classes, classes), ("codes", 4, boxes)):
            every = torch.cat([x.permute(0, 2, 3, 1).reshape(2, -1, count) for x in maps], 1).flatten()
            found[key] = _rounded(every[:: len(every) // 13].tolist())
        chosen = bench._post_process(*_maps(model.config.num_classes), 5, model.config.num_classes)
        size = torch.tensor([[128.0, 128.0]])
        kept = bench._batch_detection(1, *chosen[:2], labeler.anchors.boxes, *chosen[2:], torch.ones(1), size)
        found["detections"] = [_rounded(row) for row in kept[0, ::9].tolist()]
    return found
