"""YOLO: the sizes of Darknet's configurations, boxes by plain loops, and losses of results that say what is there."""

import math

import pytest

import lucid
from lucid import models

# trainable numbers of yolov2.cfg (COCO), yolov3.cfg, yolov3-tiny.cfg and yolov4.cfg
PUBLISHED = {"yolo_v2": 50_962_889, "yolo_v3": 61_949_149, "yolo_v3_tiny": 8_852_366, "yolo_v4": 64_363_101}
SMALL = {
    "yolo_v1_tiny": dict(image_size=64, split_size=1, num_classes=3),
    "yolo_v2_tiny": dict(num_classes=3),
    "yolo_v3_tiny": dict(num_classes=3),
    "yolo_v4": dict(num_classes=3, depths=(1, 1, 1, 1, 1)),
}


def test_published_sizes():
    with lucid.device("meta"):
        assert {name: models.create_model(name).num_parameters() for name in PUBLISHED} == PUBLISHED


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


@pytest.mark.parametrize("name", ["yolo_v2_tiny", "yolo_v3_tiny", "yolo_v4"])
def test_boxes(name):
    model = models.create_model(name, **SMALL[name])
    config, share = model.config, len(model.config.anchors) // len(model.config.strides)
    lucid.manual_seed(0)
    found = [lucid.randn(1, config.outputs, 64 // s, 96 // s) for s in config.strides]
    boxes, scores = model.decoded(found, (64, 96))
    at = 0
    for raw, stride, scale, level in zip(found, config.strides, config.center_scales, range(9)):
        raw = raw[0].unflatten(0, (share, -1)).tolist()
        for a in range(share):
            width, height = config.anchors[level * share + a]
            for row in range(64 // stride):
                for column in range(96 // stride):
                    x, y, w, h, sure, *classes = (raw[a][k][row][column] for k in range(8))
                    x, y = ((sigmoid(v) * scale - (scale - 1) / 2 + cell) * stride for v, cell in ((x, column), (y, row)))
                    w, h = width * math.exp(w), height * math.exp(h)
                    expected = [x - w / 2, y - h / 2, x + w / 2, y + h / 2]
                    assert boxes[0, at].tolist() == pytest.approx(expected, rel=1e-4, abs=1e-3)
                    parts = [sigmoid(c) for c in classes]
                    if "v2" in name:
                        parts = [math.exp(c) / sum(map(math.exp, classes)) for c in classes]
                    assert scores[0, at].tolist() == pytest.approx([sigmoid(sure) * p for p in parts], rel=1e-4)
                    at += 1
    assert at == boxes.shape[1]


@pytest.mark.parametrize("name", ["yolo_v2_tiny", "yolo_v3_tiny", "yolo_v4"])
def test_losses_of_what_is_there(name):
    """Raw results that say exactly what is there have no loss and give the box back; other boxes and classes cost."""
    model = models.create_model(name, **SMALL[name])
    config, share = model.config, len(model.config.anchors) // len(model.config.strides)
    found = [lucid.full((1, config.outputs, 96 // s, 96 // s), -12.0) for s in config.strides]
    anchor = len(config.anchors) // 2
    level, (width, height) = anchor // share, config.anchors[anchor]
    stride = config.strides[level]
    center = 48 // stride * stride + 0.5 * stride
    own = found[level].view(1, share, 8, 96 // stride, 96 // stride)[0, anchor % share, :, 48 // stride, 48 // stride]
    own[:] = lucid.tensor([0.0, 0.0, 0.0, 0.0, 12.0, -12.0, 12.0, -12.0])
    box = [center - width / 2, center - height / 2, center + width / 2, center + height / 2]
    target = [{"boxes": lucid.tensor([box]), "labels": lucid.tensor([1])}]
    losses = model.losses(found, target, (96, 96))
    assert all(value < 1e-2 for value in losses.values()), losses
    boxes, scores = model.decoded(found, (96, 96))
    assert scores[0].max() > 0.99 and boxes[0, scores[0].max(1).values.argmax()].tolist() == pytest.approx(box, abs=1e-3)
    moved = [{"boxes": lucid.tensor([box]) + 0.2 * stride, "labels": lucid.tensor([1])}]
    assert model.losses(found, moved, (96, 96))["loss_box"] > losses["loss_box"] + 1e-3
    other = [{"boxes": lucid.tensor([box]), "labels": lucid.tensor([2])}]
    assert model.losses(found, other, (96, 96))["loss_class"] > 5
    own[4] = -12.0
    assert model.losses(found, target, (96, 96))["loss_object"] > 5


def test_first_version():
    model = models.yolo_v1_tiny(**SMALL["yolo_v1_tiny"])
    raw = lucid.zeros(1, 1, 1, 13)
    raw[0, 0, 0] = lucid.tensor([0, 1, 0, 1, 0, 0.5, 0.5, 0.5, 0.5, 0, 0, 0.1, 0.1])
    target = [{"boxes": lucid.tensor([[24.0, 24.0, 40.0, 40.0]]), "labels": lucid.tensor([1])}]
    assert all(float(value) < 1e-6 for value in model.losses(raw, target, (64, 64)).values())
    boxes, scores = model.decoded(raw, (64, 64))
    assert boxes[0, 0].tolist() == [24.0, 24.0, 40.0, 40.0] and scores[0].max() == 1
    with pytest.raises(ValueError, match="64x64"):
        model(lucid.zeros(1, 3, 32, 32))


@pytest.mark.parametrize("name", SMALL)
def test_trains_and_finds(name):
    lucid.manual_seed(0)
    model = models.create_model(name, **SMALL[name])
    images = [lucid.rand(3, 64, 64), lucid.rand(3, 64, 64)]
    targets = [
        {"boxes": lucid.tensor([[4.0, 8.0, 30.0, 50.0]]), "labels": lucid.tensor([2])},
        {"boxes": lucid.zeros(0, 4), "labels": lucid.zeros(0, dtype=lucid.int64)},
    ]
    losses = model(images, targets)
    sum(losses.values()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    for result in model.eval()(images):
        count = len(result["scores"])
        assert result["boxes"].shape == (count, 4) and result["labels"].shape == (count,)
    with pytest.raises(ValueError, match="targets"):
        model.train()(images, targets[:1])
