"""Tags of published weights, with made-up files: where they are looked for, what is checked, how images are prepared."""

import hashlib
import json

import pytest

import lucid
from lucid import models
from lucid.models import weights as W

SMALL = dict(layers=(1, 1, 1, 1), num_classes=3)


@pytest.fixture
def homes(tmp_path, monkeypatch):
    monkeypatch.setenv("LUCID_HOME", str(tmp_path / "lucid"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr("lucid.hub._dir", None)  # set_dir goes before the environment
    return tmp_path / "lucid" / "weights", tmp_path / "torch" / "hub" / "checkpoints", tmp_path / "hf" / "hub"


def test_table():
    rows = W.weights_of("resnet_50_cls")
    assert [r.tag for r in rows] == ["IMAGENET1K_V1", "IMAGENET1K_V2"] == [r.tag for r in W.weights_of("resnet50")]
    assert W.tag_of("resnet_50").file == "resnet50-11ad3fa6.pth" and W.tag_of("resnet_50").sha256 == "11ad3fa6"
    assert W.tag_of("vit_b_16", "ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1").fields() == {"image_size": 384}
    assert W.tag_of("vit_base_16_cls", "IMAGENET1K_SWAG_E2E_V1").licence == "CC-BY-NC-4.0"
    from lucid.models._weights import ROWS

    for line in ROWS.strip().splitlines():
        row = W.Tag(line)
        assert models.is_model(row.name) and len(row.sha256) >= 8 and int(row.sha256, 16) >= 0
        model = models.model_entrypoint(row.name)
        with lucid.device("meta"):
            config = model().config
        config.replace(**row.fields())
        assert models.transforms_of(row.name, row.tag) is not None


def test_lookup(homes, monkeypatch):
    own, torchs, _ = homes
    row = W.tag_of("resnet18")
    with pytest.raises(FileNotFoundError, match="lucid.models.download\\('resnet18', 'IMAGENET1K_V1'\\)"):
        models.resnet18(weights="DEFAULT")
    model = models.resnet18(block_type="basic", **SMALL)
    torchs.mkdir(parents=True)
    lucid.save(model.state_dict(), torchs / row.file)
    with pytest.raises(lucid.serialization.CorruptFileError, match="SHA-256 begins with"):
        models.resnet18(weights="IMAGENET1K_V1", **SMALL)
    digest = hashlib.sha256((torchs / row.file).read_bytes()).hexdigest()
    monkeypatch.setattr("lucid.models._weights.ROWS", f"resnet18 IMAGENET1K_V1 resnet18-{digest[:8]}.pth classify 256 224 bilinear imagenet acc@1=1 - default")  # fmt: skip  # noqa: E501
    (torchs / row.file).rename(torchs / f"resnet18-{digest[:8]}.pth")
    for tag in ("IMAGENET1K_V1", "DEFAULT", "ResNet18_Weights.IMAGENET1K_V1"):
        again = models.resnet18(weights=tag, **SMALL)
        assert (again.fc.weight == model.fc.weight).all()
    assert (models.resnet_18_cls(pretrained=True, **SMALL).fc.weight == model.fc.weight).all()
    with pytest.warns(UserWarning, match="fc.bias, fc.weight"):
        other = models.resnet_18_cls(weights="DEFAULT", **{**SMALL, "num_classes": 8})
    assert other.fc.weight.shape == (8, 512)
    own.mkdir(parents=True)
    (own / f"resnet18-{digest[:8]}.pth").write_bytes((torchs / f"resnet18-{digest[:8]}.pth").read_bytes()[:-100])
    with pytest.raises(lucid.serialization.CorruptFileError):  # cut short, and looked for here first
        models.resnet18(weights="DEFAULT", **SMALL)
    with pytest.raises(ValueError, match="its tags: IMAGENET1K_V1"):
        models.resnet18(weights="IMAGENET1K_V9")
    with pytest.raises(TypeError, match="a tag, not int"):
        models.resnet18(weights=3)


def test_files_without_counters():
    """Published files from before the counter of batches, and of frozen normalisation, lack it."""
    model = models.resnet18(**SMALL)
    state = {key: value for key, value in model.state_dict().items() if not key.endswith("num_batches_tracked")}
    again = models.resnet18(weights=state, **SMALL)
    assert again.bn1.num_batches_tracked.item() == 0 and not again.bn1.num_batches_tracked.is_meta


def test_repository(homes):
    model = models.GPT2LMHeadModel(models.GPT2Config(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    folder = homes[2] / "models--somebody--tiny"
    model.save_pretrained(folder / "snapshots" / "abc")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    fields = dict(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
    again = models.gpt2_small_lm(weights="somebody/tiny", **fields)
    assert (again.transformer.wte.weight == model.transformer.wte.weight).all()
    with pytest.raises(FileNotFoundError, match="cache of the Hugging Face hub"):
        models.gpt2_small_lm(weights="somebody/else", **fields)


TINY = dict(vocab_size=11, hidden_size=8, num_hidden_layers=2, num_attention_heads=2)


@pytest.fixture
def sharded(tmp_path):
    """A folder with a model in parts, the model, and the names of the parts."""
    model = models.GPT2LMHeadModel(models.GPT2Config(**TINY))
    model.save_pretrained(tmp_path, max_shard_size="2KB")
    parts = sorted(path.name for path in tmp_path.glob("model-*.safetensors"))
    assert len(parts) > 2
    return tmp_path, model, parts


def edit_index(folder, change):
    path = folder / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    change(index["weight_map"])
    path.write_text(json.dumps(index))


def load(folder):
    return models.GPT2LMHeadModel.from_pretrained(folder)


def test_parts_that_are_damaged(sharded):
    folder, model, parts = sharded
    assert (load(folder).transformer.wte.weight == model.transformer.wte.weight).all()
    whole = (folder / parts[1]).read_bytes()
    for cut in (0, 5, 100, len(whole) - 3):  # nothing, within the length, the header, the values
        (folder / parts[1]).write_bytes(whole[:cut])
        with pytest.raises(lucid.serialization.CorruptFileError):
            load(folder)
    (folder / parts[1]).write_bytes(whole[:8] + b"{" + whole[8:-1])
    with pytest.raises(lucid.serialization.CorruptFileError):
        load(folder)
    (folder / parts[1]).unlink()
    with pytest.raises(FileNotFoundError, match=parts[1]):
        load(folder)
    (folder / parts[1]).write_bytes(whole)
    load(folder)


def test_indices_that_are_damaged(sharded):
    folder, _, parts = sharded
    (folder / "model.safetensors.index.json").rename(folder / "kept")

    def changed(change, error, match):
        (folder / "model.safetensors.index.json").write_bytes((folder / "kept").read_bytes())
        edit_index(folder, change)
        with pytest.raises(error, match=match):
            load(folder)

    corrupt = lucid.serialization.CorruptFileError
    first = "transformer.wte.weight"
    changed(lambda where: where.update({first: parts[-1]}), corrupt, "which the index promises")
    changed(lambda where: where.update({first: "../" + parts[0]}), corrupt, "not a file of its own folder")
    changed(lambda where: where.update({first: "model-9.safetensors"}), FileNotFoundError, "model-9")
    changed(lambda where: where.pop(first), models.WeightsError, first)
    changed(lambda where: [where.update({f"encoder.layer.0.attention.self.{key}": where.pop(key)}) for key in [*where]],
            corrupt, "which the index promises")  # fmt: skip
    (folder / "model.safetensors.index.json").write_text("{")
    with pytest.raises(corrupt, match="damaged"):
        load(folder)


def test_parts_of_another_zoo(sharded):
    folder, model, _ = sharded
    for path in folder.glob("model*"):
        path.unlink()
    other = models.BertModel(models.BertConfig(**TINY, intermediate_size=8))
    lucid.save_sharded(other.state_dict(), folder, "2KB")
    with pytest.raises(models.WeightsError, match="look like transformers' BERT") as caught:
        load(folder)
    assert "transformer.wte.weight" in caught.value.missing and not caught.value.misshapen
    wide = models.GPT2LMHeadModel(models.GPT2Config(**{**TINY, "hidden_size": 16}))
    for path in folder.glob("model*"):
        path.unlink()
    wide.save_pretrained(folder, max_shard_size="2KB")
    with pytest.raises(models.WeightsError, match="of another shape"):
        models.GPT2LMHeadModel.from_pretrained(folder, config=model.config)


def test_preprocessing():
    import torch

    prepare = models.transforms_of("resnet_50_cls", "IMAGENET1K_V2")
    assert (prepare.resize, prepare.crop, prepare.interpolation) == (232, 224, "bilinear")
    x = lucid.rand(3, 250, 300)
    theirs = torch.tensor(x.tolist())[None]
    size = 232, int(232 * 300 / 250)
    theirs = torch.nn.functional.interpolate(theirs, size, mode="bilinear", align_corners=False, antialias=True)
    top, left = round((size[0] - 224) / 2), round((size[1] - 224) / 2)
    theirs = theirs[0, :, top : top + 224, left : left + 224]
    mean, std = (torch.tensor(v)[:, None, None] for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    expected = lucid.tensor(((theirs - mean) / std).tolist())
    assert (prepare(x) - expected).abs().max() < 1e-5
    assert (prepare(x[None].expand(2, -1, -1, -1))[1] - expected).abs().max() < 1e-5
    whole = (x * 255).to(lucid.uint8)
    assert (prepare(whole) == prepare(whole.permute(1, 2, 0).numpy())).all()

    class Picture:  # as PIL's
        size = (300, 250)

        def convert(self, mode):
            return self

        def tobytes(self):
            return bytes(whole.permute(1, 2, 0).flatten().tolist())

    assert (prepare(Picture()) == prepare(whole)).all()
    small = W.Preprocessing(crop=8)(lucid.ones(3, 4, 20))
    assert small.shape == (3, 8, 8) and small.sum() == 3 * 4 * 8
