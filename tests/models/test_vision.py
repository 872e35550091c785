"""Families of the zoo compute what torchvision, timm, transformers and diffusers compute: from numbers that those once gave."""

import inspect
import json
import pathlib
import warnings

import pytest

import lucid
from lucid import models

from . import vision_cases as cases
from . import write_names

NUMBERS = json.loads(pathlib.Path(__file__).with_name("vision.json").read_text())


def build(name):
    made, fields, given = cases.CASES[name]
    model = models.create_model(made, **fields)
    cases.fill(lucid, model)
    return model, given


def near(value, expected, tolerance):
    scale = max(abs(v) for v in expected)
    return len(value) == len(expected) and all(abs(a - b) <= tolerance * scale for a, b in zip(value, expected))


@pytest.mark.parametrize("name", cases.CASES)
def test_as_the_zoo(name):
    expected = NUMBERS["cases"][name]
    model, given = build(name)
    assert cases.digest(model) == expected["keys"]
    assert model.num_parameters() == expected["count"]
    with lucid.no_grad():
        logits = cases.values_of(cases.call(model.eval(), cases.inputs(lucid, given)))
    assert near(logits[:: max(1, logits.numel() // 14)][:14].tolist(), expected["logits"], 2e-4)
    model.train().double()  # twice as exact: statistics of few values amplify rounding
    trained = cases.values_of(cases.call(model, cases.inputs(lucid, given, lucid.float64)))
    loss = (trained * cases.numbers(lucid, "weights", trained.numel())).sum()
    loss.backward()
    norm = sum(float((p.grad**2).sum()) for p in model.parameters() if p.grad is not None) ** 0.5
    assert loss.item() == pytest.approx(expected["loss"], rel=1e-5, abs=1e-6)
    assert norm == pytest.approx(expected["norm"], rel=1e-5)


@pytest.mark.parametrize("name", cases.CASES)
def test_compiled(name):
    """A compiled model gives the same bits as eager."""
    model, given = build(name)
    given = cases.inputs(lucid, given)
    model.eval()
    with lucid.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = cases.values_of(cases.call(model, given))
        model.compile(fullgraph=True)
        for _ in range(2):
            assert (cases.values_of(cases.call(model, given)) == expected).all()


def _network(model):
    return lucid.nn.Sequential(model.backbone, model.neck)


TINY_DIFFUSION = dict(sample_size=8, base_channels=8, channel_mult=(1, 2), resnet_groups=4)
# families without numbers of another library: a factory, fields, shapes of its inputs
REST = {
    "attention_unet": ("attention_unet", dict(base_channels=4), (1, 3, 32, 32)),
    "detr": ("detr_resnet50", cases.DETR, (1, 3, 64, 64)),
    "hvae": ("hvae", dict(sample_size=8, down_block_channels=(8, 16), latent_dim=(2, 3)), (1, 3, 8, 8)),
    "ncsn": ("ncsn_cifar", TINY_DIFFUSION, {"sample": (1, 3, 8, 8), "labels": ("ids", 10, 1)}),
    "transformer": (
        "transformer_base_seq2seq",
        dict(cases.TINY, num_decoder_layers=1),
        {"input_ids": ("ids", 37, 2, 5), "decoder_input_ids": ("ids", 37, 2, 4)},
    ),
    "unet": ("unet", dict(base_channels=4), (1, 3, 32, 32)),
    "vae": ("vae", dict(sample_size=8, down_block_channels=(4,), latent_dim=2), (1, 3, 8, 8)),
    "zfnet": ("zfnet_cls", dict(hidden_size=8), (1, 3, 64, 64)),
}
# detectors look at values as they choose boxes: what comes before is compiled
PARTS = {
    "fast_rcnn": ("fast_rcnn", dict(num_classes=3, depths=(1, 1), widths=(4, 8), hidden_size=8), lambda model: model.features),
    "rcnn": ("rcnn", dict(num_classes=3, hidden_size=8), lambda model: model.features),
    "efficientdet": (
        "efficientdet_d0",
        dict(image_size=128, fpn_channels=8),
        lambda model: lucid.nn.Sequential(model.backbone, model.fpn),
    ),
    "faster_rcnn": ("faster_rcnn", dict(cases.RCNN, backbone_layers=(1, 1, 1, 1)), lambda model: model.backbone),
    "mask_rcnn": ("mask_rcnn", dict(cases.RCNN, backbone_layers=(1, 1, 1, 1)), lambda model: model.backbone),
    "yolo_v1": ("yolo_v1_tiny", dict(image_size=64, split_size=1), lambda model: model.features),
    "yolo_v2": ("yolo_v2_tiny", dict(num_classes=2), _network),
    "yolo_v3": ("yolo_v3_tiny", dict(num_classes=2), _network),
    "yolo_v4": ("yolo_v4", dict(num_classes=2, depths=(1,) * 5), _network),
}


@pytest.mark.parametrize("family", REST)
def test_others_compiled(family):
    made, fields, given = REST[family]
    model = models.create_model(made, **fields).eval()
    given = cases.inputs(lucid, given)
    with lucid.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = cases.values_of(cases.call(model, given))
        model.compile(fullgraph=True)
        for _ in range(2):
            assert (cases.values_of(cases.call(model, given)) == expected).all()


@pytest.mark.parametrize("family", PARTS)
def test_detectors_compiled(family):
    made, fields, part = PARTS[family]
    model = models.create_model(made, **fields).eval()
    cases.fill(lucid, model)
    x = cases.one_input(lucid, "images", (1, 3, 64, 64), lucid.float32)
    with lucid.no_grad():
        given = [lucid.tensor([[4.0, 4.0, 30.0, 40.0]])] if "proposals" in inspect.signature(model.forward).parameters else []
        call = lambda x: model(x, [*given]) if given else model(x)
        chain, expected = part(model), call(x)
        maps = chain(x)
        chain.compile(fullgraph=True)
        for _ in range(2):
            again = chain(x)
            for a, b in zip(again, maps) if isinstance(maps, list) else [(again, maps)]:
                assert (a == b).all()
        for key, value in call(x)[0].items():
            assert (value == expected[0][key]).all()


def test_every_family_is_compiled():
    from ..jit import test_models as texts

    covered = {models.registry._ENTRIES[made][2] for made, *_ in cases.CASES.values()} | REST.keys() | PARTS.keys()
    models.list_models()
    known = {family for _, _, family in models.registry._ENTRIES.values() if family not in (None, "toys")}
    assert known - covered == {family for family in known - covered if texts.is_text(family)}


def test_published_sizes():
    """All keys, shapes and numbers of parameters of published models; on the meta device they take no memory."""
    with lucid.device("meta"):
        for name, (count, keys) in NUMBERS["full"].items():
            model = models.create_model(name)
            assert (model.num_parameters(), cases.digest(model)) == (count, keys), name


def test_names_are_written_down():
    from lucid.models._names import NAMES

    assert {module: sorted(names.split()) for module, names in NAMES.items()} == write_names.table()


def test_table_of_the_page():
    from . import write_table

    assert write_table.PAGE.read_text() == write_table.page(), "python -m tests.models.write_table"


def test_three_forms(tmp_path):
    small = dict(block_type="basic", layers=(1, 1, 1, 1), num_classes=5)
    lucid.manual_seed(0)
    model = models.resnet_18_cls(**small).eval()
    x = lucid.randn(2, 3, 32, 32)
    out = model(x, labels=lucid.tensor([1, 4]))
    assert out.loss.ndim == 0 and out.logits.shape == (2, 5)
    model.save_pretrained(tmp_path)
    plain = models.resnet18(weights=tmp_path, **small).eval()
    assert (plain(x) == out.logits).all() and type(plain).__name__ == "ResNet"
    body = models.resnet_18(weights=tmp_path, **small).eval()(x)
    assert (plain.fc(body.pooler_output) == out.logits).all() and body.last_hidden_state.shape == (2, 512, 1, 1)
    again = models.AutoModelForImageClassification.from_pretrained(tmp_path)
    assert (again(x).logits == out.logits).all() and again.config == model.config


def test_another_head_and_another_stem():
    small = dict(block_type="basic", layers=(1, 1, 1, 1))
    weights = models.resnet_18_cls(**small).state_dict()
    with pytest.warns(UserWarning, match="conv1.weight, fc.bias, fc.weight"):
        model = models.resnet_18_cls(weights=weights, num_classes=3, in_channels=1, **small)
    assert model.fresh_keys == ["conv1.weight", "fc.bias", "fc.weight"] and model(lucid.randn(2, 1, 32, 32)).logits.shape == (
        2,
        3,
    )
    with pytest.raises(models.WeightsError, match="look like timm's vision transformers"):
        models.resnet_18_cls(weights=models.deit_tiny_16_cls(depth=1).state_dict(), **small)


def test_greedy_generation():
    """Memories of keys and values change nothing: each next token is what the whole text gives."""
    for name in ("t5", "whisper"):
        made, fields, given = cases.CASES[name]
        model, source = build(name)[0].eval(), list(cases.inputs(lucid, given).values())[0]
        ids = model.generate(source, max_new_tokens=5)
        assert ids.shape[0] == 2 and ids.shape[1] > 2
        with lucid.no_grad():
            best = model(source, decoder_input_ids=ids[:, :-1]).logits.argmax(-1)
        ended = (ids[:, 1:] == model.config.eos_token_id).long().cumsum(1) > 1
        assert ((best == ids[:, 1:]) | ended | (ids[:, :-1] == model.config.eos_token_id)).all()


def test_what_is_refused():
    with pytest.raises(ValueError, match="block_type is one of"):
        models.ResNetConfig(block_type="round")
    with pytest.raises(ValueError, match="multiple of patch_size"):
        models.ViTConfig(image_size=30)
    with pytest.raises(ValueError, match="image_size is a multiple of 32"):
        models.pvt_tiny(image_size=72)
    with pytest.raises(ValueError, match="32x32"):
        models.vit_base_16_cls(image_size=32, dim=8, depth=1, num_heads=1)(lucid.zeros(1, 3, 48, 48))
    with pytest.raises(ValueError, match="drop_prob"):
        models.convnext_tiny(stochastic_depth_prob=1.5)
