"""Boxes, RoI align and the detectors: against plain loops, and against what torchvision gave."""

import json
import math
import pathlib
import random

import pytest

import lucid
from lucid import models
from lucid.models.vision import ops

from . import vision_cases as cases

NUMBERS = json.loads(pathlib.Path(__file__).with_name("vision.json").read_text())


def some_boxes(count, size=40.0):
    x = (cases.numbers(lucid, "boxes", 4 * count) + 0.5).view(count, 4).float() * size
    return lucid.cat([x[:, :2], x[:, :2] + x[:, 2:] * 0.5 + 1], 1)


def overlap(a, b):
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(w, 0) * max(h, 0)
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def test_suppression():
    boxes, scores = some_boxes(80), cases.numbers(lucid, "scores", 80)
    plain, kept = boxes.tolist(), []
    for i in sorted(range(80), key=lambda i: -scores[i].item()):
        if all(overlap(plain[i], plain[k]) <= 0.3 for k in kept):
            kept.append(i)
    assert ops.nms(boxes, scores, 0.3).tolist() == kept and 5 < len(kept) < 80
    groups = lucid.arange(80) % 3
    apart = boxes + groups[:, None] * 1000.0
    assert ops.batched_nms(boxes, scores, groups, 0.3).tolist() == ops.nms(apart, scores, 0.3).tolist()
    assert ops.nms(boxes[:0], scores[:0], 0.5).tolist() == []
    with pytest.raises(ValueError, match="boxes"):
        ops.nms(boxes[:, :3], scores, 0.5)


def bilinear(rows, y, x):
    height, width = len(rows), len(rows[0])
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    v, u = y - y0, x - x0
    return (1 - v) * ((1 - u) * rows[y0][x0] + u * rows[y0][x1]) + v * ((1 - u) * rows[y1][x0] + u * rows[y1][x1])


@pytest.mark.parametrize("ratio", [2, -1])
@pytest.mark.parametrize("aligned", [False, True])
def test_roi_align(ratio, aligned):
    x = cases.numbers(lucid, "map", 2 * 9 * 11).view(2, 1, 9, 11)
    boxes = some_boxes(6, 24.0) - 3
    numbers = lucid.tensor([0, 1, 0, 1, 1, 0])
    found = ops.roi_align(x, lucid.cat([numbers[:, None].float(), boxes], 1).double(), (3, 2), 0.5, ratio, aligned)
    for i, (box, number) in enumerate(zip(boxes.tolist(), numbers.tolist())):
        x0, y0, x1, y1 = (c * 0.5 - (0.5 if aligned else 0) for c in box)
        tall, wide = (y1 - y0, x1 - x0) if aligned else (max(y1 - y0, 1), max(x1 - x0, 1))
        down, across = (ratio, ratio) if ratio > 0 else (math.ceil(tall / 3), math.ceil(wide / 2))
        rows = x[number, 0].tolist()
        for row in range(3):
            for column in range(2):
                samples = [
                    bilinear(rows, y0 + (row + (a + 0.5) / down) * tall / 3, x0 + (column + (b + 0.5) / across) * wide / 2)
                    for a in range(down)
                    for b in range(across)
                ]
                assert found[i, 0, row, column].item() == pytest.approx(sum(samples) / len(samples), abs=1e-6)


def test_roi_align_gradient():
    x = lucid.rand(1, 2, 6, 7, dtype=lucid.float64, requires_grad=True)
    boxes = lucid.tensor([[0.0, 0.4, 1.2, 5.1, 4.9], [0.0, 2.0, 2.0, 6.5, 5.5]], dtype=lucid.float64)
    assert lucid.autograd.gradcheck(lambda x: ops.roi_align(x, boxes, 2, 1.0, 2), (x,))


def test_roi_pool():
    """Boxes in the map, across its edges, beyond it, and smaller than a place: as plain loops have it."""
    x = cases.numbers(lucid, "map", 2 * 2 * 9 * 11).view(2, 2, 9, 11)
    boxes = lucid.cat([some_boxes(8, 24.0) - 3, lucid.tensor([[30.0, 2.0, 40.0, 9.0], [5.0, 5.0, 5.1, 5.1]])])
    numbers = lucid.tensor([0, 1] * 5)
    x.requires_grad_()
    found = ops.roi_pool(x, lucid.cat([numbers[:, None].float(), boxes], 1), (3, 2), 0.5)
    for i, (box, number) in enumerate(zip(boxes.tolist(), numbers.tolist())):
        x0, y0, x1, y1 = (int(math.copysign(math.floor(abs(c) * 0.5 + 0.5), c)) for c in box)
        tall, wide = max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1)
        for row in range(3):
            for column in range(2):
                down = range(y0 + row * tall // 3, y0 - (-(row + 1) * tall // 3))
                across = range(x0 + column * wide // 2, x0 - (-(column + 1) * wide // 2))
                cell = [x[number, :, a, b] for a in down for b in across if 0 <= a < 9 and 0 <= b < 11]
                expected = lucid.stack(cell).amax(0) if cell else lucid.zeros(2)
                assert found[i, :, row, column].tolist() == expected.tolist(), (i, row, column)
    found.sum().backward()
    assert x.grad.isfinite().all() and x.grad.sum() > 50
    assert ops.roi_pool(x, [boxes[:0], boxes[:0]], 7).shape == (0, 2, 7, 7)
    with pytest.raises(ValueError, match="roi_pool takes boxes"):
        ops.roi_pool(x, boxes, 7)


def test_codes():
    random.seed(0)
    boxes, anchors = some_boxes(20), some_boxes(20) + 3
    for weights in ((1.0,) * 4, (10.0, 10.0, 5.0, 5.0)):
        again = ops.decode_boxes(ops.encode_boxes(boxes, anchors, weights), anchors, weights)[:, 0]
        assert (again - boxes).abs().max() < 1e-4
    assert (ops.box_cxcywh_to_xyxy(ops.box_xyxy_to_cxcywh(boxes)) - boxes).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["faster rcnn", "mask rcnn"])
def test_losses_as_torchvisions(name):
    """Without chance (every box is learned from) the losses are torchvision's."""
    expected = NUMBERS["detection"][name]
    model = models.create_model(cases.DETECTORS[name], **cases.RCNN, **cases.NO_CHANCE)
    cases.fill(lucid, model)
    assert cases.digest(model) == expected["keys"]
    for module in model.train().double().modules():
        if type(module).__name__ == "BatchNorm2d":
            module.eval()
    losses = model(*cases.detection_inputs(lucid, "mask" in name))
    assert losses.keys() == expected["losses"].keys() | {"loss_classifier"}
    for key, value in expected["losses"].items():
        assert losses[key].item() == pytest.approx(value, rel=1e-4), key
    sum(losses.values()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def effdet_of(name):
    model = models.efficientdet_d0(**cases.EFFDETS[name])
    cases.fill(lucid, model)
    return model.eval(), *cases.effdet_inputs(lucid)


@pytest.mark.parametrize("name", cases.EFFDETS)
def test_losses_as_effdets(name):
    expected, (model, pictures, targets) = NUMBERS["detection"][name], effdet_of(name)
    assert cases.digest(model) == expected["keys"]
    batch = lucid.stack([lucid.nn.functional.pad(p, (0, 0, 0, 128 - p.shape[1])) for p in pictures])
    with lucid.no_grad():
        logits, codes = model.raw(batch)
    for key, values in (("logits", logits), ("codes", codes[..., (1, 0, 3, 2)])):
        values = values.flatten()
        values = values[:: len(values) // 13].tolist()
        scale = max(map(abs, expected[key]))
        assert values == pytest.approx(expected[key], abs=2e-4 * scale), key
    model.training = True  # its modules stay as they are
    losses = model(pictures, targets)
    assert losses.keys() == expected["losses"].keys()
    for key, value in expected["losses"].items():
        assert losses[key].item() == pytest.approx(value, rel=1e-4), key
    sum(losses.values()).backward()
    norm = sum(float((p.grad.double() ** 2).sum()) for p in model.parameters() if p.grad is not None) ** 0.5
    assert norm == pytest.approx(expected["norm"], rel=1e-3)


@pytest.mark.parametrize("name", cases.EFFDETS)
def test_boxes_as_effdets(name):
    """Of the same outputs the same boxes, best first."""
    expected, (model, _, _) = NUMBERS["detection"][name]["detections"], effdet_of(name)
    logits, codes = cases.effdet_outputs(lucid, model.config.num_classes)
    anchors = models.vision.detection.efficientdet.anchors_of(model.config)
    result = model.detections(logits, codes[:, (1, 0, 3, 2)], (128, 128), anchors)
    assert len(result["boxes"]) == 100
    rows = lucid.cat([result["boxes"], result["scores"][:, None], result["labels"][:, None].float()], 1)[::9]
    assert (rows - lucid.tensor(expected)).abs().max() < 1e-3


def test_efficientdet():
    """It learns, from images of any size; an image without things is a lesson, too; what does not fit is refused."""
    lucid.manual_seed(0)
    small = dict(num_classes=3, image_size=128, fpn_channels=8, fpn_cell_repeats=1, box_class_repeats=1)
    model = models.efficientdet_d0(**small)
    images = [lucid.rand(3, 48, 64), lucid.rand(3, 100, 60)]
    targets = [{"boxes": lucid.tensor([[8.0, 8.0, 40.0, 40.0]]), "labels": lucid.tensor([3])}]
    targets.append({"boxes": lucid.zeros(0, 4), "labels": lucid.zeros(0).long()})
    optimizer, course = lucid.optim.Adam(model.parameters(), 5e-3), []
    for _ in range(8):
        losses = model(images, targets)
        course.append(sum(losses.values()).item())
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
    assert course[-1] < 0.7 * course[0], course
    with lucid.no_grad():
        model.eval().config = model.config.replace(score_thresh=0.01)
        for result, image in zip(model(images), images):
            assert (result["boxes"] >= 0).all() and (result["scores"] > 0.01).all() and len(result["boxes"])
            assert (result["boxes"][:, 2:] <= lucid.tensor([*image.shape[:0:-1]]) + 1e-3).all()
    with pytest.raises(ValueError, match="labels are 1 to 3, not 4"):
        model.train()(images[:1], [{"boxes": targets[0]["boxes"], "labels": lucid.tensor([4])}])
    with pytest.raises(ValueError, match="takes targets"):
        model(images)
    with pytest.raises(ValueError, match="multiple of 128"):
        models.EfficientDetConfig(image_size=500)
    with pytest.raises(ValueError, match="padding is one of"):
        models.EfficientDetConfig(padding="valid")
    with pytest.raises(ValueError, match="pairs of width and height"):
        models.EfficientDetConfig(aspect_ratios=((1.0,),))
    with pytest.raises(ValueError, match="size of EfficientDet is 0 to 7"):
        models.efficientdet_config(8)
    config = models.efficientdet_config(7)
    assert models.EfficientDetConfig.from_dict(config.to_dict()) == config == models.efficientdet_config("efficientdet_d7")
    with pytest.warns(UserWarning, match="class_net.predict"):
        again = models.efficientdet_d0(weights=model.state_dict(), **{**small, "num_classes": 5})
    assert (again.backbone.conv_stem.weight == model.backbone.conv_stem.weight).all()


@pytest.mark.parametrize("name", ["maskformer", "mask2former"])
def test_losses_of_queries(name):
    """Things are given to the queries that suit them; Mask2Former's points come from the seed."""
    expected = NUMBERS["detection"][f"{name} loss"]
    made, fields, _ = cases.CASES[name]
    model = models.create_model(made, **fields).eval()
    cases.fill(lucid, model)
    lucid.manual_seed(3)
    pictures = cases.one_input(lucid, "images", (2, 3, 64, 96), lucid.float32)
    out = model(pictures, **cases.query_inputs(lucid))
    out.loss.backward()
    norm = sum(float((p.grad.double() ** 2).sum()) for p in model.parameters() if p.grad is not None) ** 0.5
    assert out.loss.item() == pytest.approx(expected["loss"], rel=1e-4)
    assert norm == pytest.approx(expected["norm"], rel=1e-3)
    assert model.post_process(out, [(64, 96)] * 2)[1].shape == (64, 96)
    with pytest.raises(ValueError, match="come together"):
        model(pictures, class_labels=cases.query_inputs(lucid)["class_labels"])


def test_detr():
    expected = NUMBERS["detection"]["detr"]
    model = models.detr_resnet50(**cases.DETR)
    cases.fill(lucid, model)
    assert cases.digest(model) == expected["keys"]
    model.double().eval()
    pictures, mask, things = cases.detr_inputs(lucid)
    out = model(pictures, labels=things)
    assert (out.logits.flatten() - lucid.tensor(expected["logits"])).abs().max() < 1e-5
    assert (model(pictures, mask).pred_boxes.flatten() - lucid.tensor(expected["padded"])).abs().max() < 1e-5
    assert out.loss.item() == pytest.approx(expected["loss"], rel=1e-4)
    out.loss.backward()
    grads = [p.grad for name, p in model.named_parameters() if p.grad is not None and "backbone" not in name]
    assert sum(float((g**2).sum()) for g in grads) ** 0.5 == pytest.approx(expected["norm"], rel=1e-4)
    found = model.post_process(out, [(64, 96), (64, 96)], threshold=0.0)
    assert len(found) == 2 and found[0]["boxes"].shape == (5, 4) and set(found[0]["labels"].tolist()) <= {0, 1, 2}


def test_assignment():
    import itertools

    from lucid.models.vision.detection.detr import assign

    for rows, columns in ((1, 1), (2, 3), (3, 3), (3, 5), (4, 5)):
        costs = cases.numbers(lucid, f"costs {rows}", rows * columns).view(rows, columns).tolist()
        totals = [sum(costs[r][c] for r, c in enumerate(p)) for p in itertools.permutations(range(columns), rows)]
        assert sum(costs[r][c] for r, c in enumerate(assign(costs))) == pytest.approx(min(totals))
    assert assign([]) == []


def test_detections():
    model = models.mask_rcnn(num_classes=4, min_size=64, max_size=96, backbone_layers=(1, 1, 1, 1)).eval()
    cases.fill(lucid, model)
    with lucid.no_grad():
        first, second = model([lucid.rand(3, 48, 64), lucid.rand(3, 60, 40)])
    for found, (height, width) in ((first, (48, 64)), (second, (60, 40))):
        boxes, count = found["boxes"], len(found["boxes"])
        assert count and found["masks"].shape == (count, 1, height, width)
        assert (boxes >= 0).all() and (boxes[:, 2] <= width + 1e-3).all() and (boxes[:, 3] <= height + 1e-3).all()
        assert found["scores"].tolist() == sorted(found["scores"].tolist(), reverse=True)
        assert set(found["labels"].tolist()) <= {1, 2, 3}
    with pytest.raises(ValueError, match="takes targets"):
        model.train()([lucid.rand(3, 48, 64)])
    with pytest.raises(ValueError, match="x1 < x2"):
        model([lucid.rand(3, 48, 64)], [{"boxes": lucid.tensor([[5.0, 5.0, 2.0, 9.0]]), "labels": lucid.tensor([1])}])
    losses = model(
        [lucid.rand(3, 48, 64)],
        [{"boxes": lucid.zeros(0, 4), "labels": lucid.zeros(0).long(), "masks": lucid.zeros(0, 48, 64)}],
    )
    assert all(value.isfinite() for value in losses.values())


GIVEN = {
    "rcnn": dict(num_classes=4, hidden_size=8, crop_size=64, context=4),
    "fast_rcnn": dict(num_classes=4, depths=(1, 1, 1), widths=(4, 6, 8), hidden_size=16, min_size=64, max_size=96),
}


@pytest.mark.parametrize("name", GIVEN)
def test_given_proposals(name):
    """With heads of zeros the boxes that are found are the proposals; after training those of the targets are found."""
    lucid.manual_seed(0)
    model = models.create_model(name, **GIVEN[name], dropout=0.0, score_thresh=0.0, box_nms_thresh=0.99)
    for layer in (model.cls_score, model.bbox_pred):
        lucid.nn.init.zeros_(layer.weight)
    images = [lucid.rand(3, 48, 64), lucid.rand(3, 60, 40)]
    proposals = [lucid.tensor([[4.0, 4.0, 30.0, 40.0], [20.0, 8.0, 60.0, 30.0]]), lucid.tensor([[0.0, 0.0, 40.0, 60.0]])]
    found = model.eval()(images, proposals)
    for result, boxes in zip(found, proposals):
        assert len(result["boxes"]) == 3 * len(boxes) and set(result["labels"].tolist()) == {1, 2, 3}
        assert (lucid.cdist(result["boxes"], boxes).amin(1) < 1e-3).all() and (result["scores"] == 0.25).all()
    none = model(images, [proposals[0][:0], proposals[1]])
    assert len(none[0]["boxes"]) == 0 and len(none[1]["boxes"]) == 3
    assert len(model(images[:1], [proposals[0][:0]])[0]["boxes"]) == 0
    inwards = lucid.tensor([3.0, 3.0, 0.0, 0.0])
    targets = [{"boxes": p + inwards, "labels": lucid.tensor([1, 3][: len(p)])} for p in proposals]
    optimizer, course = lucid.optim.Adam(model.train().parameters(), 3e-3), []
    for step in range(100):
        losses = model(images, proposals, targets)
        assert set(losses) == {"loss_classifier", "loss_box_reg"}
        course.append([loss.item() for loss in losses.values()])
        optimizer.zero_grad()
        sum(losses.values()).backward()
        assert step or all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        optimizer.step()
    assert all(last < 0.6 * first for first, last in zip(course[0], course[-1])), (course[0], course[-1])
    for result, boxes, target in zip(model.eval()(images, proposals), proposals, targets):
        for label, box, start in zip(target["labels"].tolist(), target["boxes"], boxes):
            near = (result["labels"] == label).nonzero().flatten()[0]  # the best of its class
            assert result["scores"][near] > 0.5
            assert (result["boxes"][near] - box).abs().sum() < (start - box).abs().sum()


@pytest.mark.parametrize("name", GIVEN)
def test_given_proposals_are_checked(name):
    model = models.create_model(name, **GIVEN[name])
    image, box = lucid.rand(3, 48, 64), lucid.tensor([[4.0, 4.0, 30.0, 40.0]])
    with pytest.raises(ValueError, match="takes targets"):
        model([image], [box])
    with pytest.raises(ValueError, match="1 images and proposals of 2"):
        model([image], [box, box], [{"boxes": box, "labels": lucid.tensor([1])}])
    with pytest.raises(ValueError, match="boxes of proposals are"):
        model.eval()([image], [box[:, :3]])
    with pytest.raises(ValueError, match="boxes of targets are"):
        model.train()([image], [box], [{"boxes": box.flip(1), "labels": lucid.tensor([1])}])
    with pytest.raises(ValueError, match="floating tensors"):
        model.eval()([image[0]], [box])
    with pytest.raises(ValueError, match="leaves nothing"):
        models.RCNNConfig(crop_size=30, context=15)
    with pytest.raises(ValueError, match="number per stage"):
        models.FastRCNNConfig(depths=(1, 1))


def test_a_classifier_is_a_start():
    """Weights of AlexNet and VGG-16 fit; the two layers of the detector start fresh."""
    weights = models.vgg_16_cls(stages=((4,), (6,), (8,)), hidden_size=16).state_dict()
    with pytest.warns(UserWarning, match="bbox_pred.bias, bbox_pred.weight, cls_score.bias, cls_score.weight"):
        model = models.fast_rcnn(weights=weights, **GIVEN["fast_rcnn"])
    assert (model.features[0].weight == weights["features.0.weight"]).all()
    with pytest.warns(UserWarning, match="start fresh"):
        model = models.rcnn(weights=models.alexnet_cls(hidden_size=8).state_dict(), **GIVEN["rcnn"])
    again = models.rcnn(weights=model.state_dict(), **GIVEN["rcnn"])
    assert (again.cls_score.weight == model.cls_score.weight).all()
    config = models.FastRCNNConfig(roi_size=3, **GIVEN["fast_rcnn"])
    assert models.FastRCNNConfig.from_dict(config.to_dict()) == config
    assert models.FastRCNNForObjectDetection(config).classifier[0].in_features == 8 * 9
