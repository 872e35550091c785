"""What models inherit from: fresh heads, maps, losses of tokens, generation of images; LeNet's config; entries of weights."""

import hashlib

import pytest

import lucid
from lucid import models, nn

TINY = dict(sample_size=8, base_channels=8, channel_mult=(1, 2), resnet_groups=4)


@pytest.mark.parametrize(
    "name",
    [
        "resnet_18_cls",
        "vgg_11_cls",
        "mobilenet_v3_small_cls",
        "densenet_121_cls",
        "googlenet_cls",
        "maxvit_tiny_cls",
        "vit_base_16_cls",
    ],
)
def test_a_fresh_head(name):
    with lucid.device("meta"):
        model = models.create_model(name).eval()
        before = set(model.state_dict())
        model.reset_classifier(7)
    side = getattr(model.config, "image_size", 224)
    assert tuple(model(lucid.zeros(1, 3, side, side, device="meta")).logits.shape) == (1, 7)
    assert model.config.num_classes == 7 and set(model.state_dict()) == before
    assert not any(p.device.type != "meta" for p in model.parameters())


def test_a_fresh_head_keeps_dtype_and_mode():
    model = models.lenet_5_cls()
    with pytest.raises(AttributeError):
        model.reset_classifier(3)  # a plain module
    model = models.LeNetForImageClassification(models.LeNetConfig()).to(lucid.float64).eval()
    model.reset_classifier(3)
    assert model.classifier.weight.dtype == lucid.float64 and not model.classifier.training

    class Headless(models.ClassificationHeadMixin, nn.Module):
        pass

    with pytest.raises(ValueError, match="no linear layer"):
        Headless().reset_classifier(3)
    with pytest.raises(NotImplementedError, match="stages"):
        type("Net", (models.BackboneMixin, nn.Module), {})().forward_features(lucid.zeros(1))


def test_maps():
    model = models.resnet_50(layers=(1, 1, 1, 1), replace_stride_with_dilation=(False, True, True))
    found = model.feature_info
    assert found == [models.FeatureInfo(i, 256 << i, r) for i, r in enumerate((4, 8, 8, 8))]
    model.eval()
    assert model.forward_features(lucid.zeros(1, 3, 64, 64)).shape == (1, 2048, 8, 8)


def test_lenet_with_a_config(tmp_path):
    lucid.manual_seed(0)
    plain = models.lenet_5(num_classes=5, activation="relu", pooling="max")
    model = models.LeNetForImageClassification(models.LeNetConfig(num_classes=5, activation="relu", pooling="max"))
    model.load_state_dict(plain.state_dict())
    x = lucid.randn(2, 1, 32, 32)
    out = model(x, labels=lucid.tensor([0, 4]))
    assert bool((out.logits == plain(x)).all())
    assert out.loss.item() == nn.functional.cross_entropy(plain(x), lucid.tensor([0, 4])).item()
    model.save_pretrained(tmp_path)
    again = models.AutoModelForImageClassification.from_pretrained(tmp_path)
    assert again.config == model.config and bool((again(x).logits == out.logits).all())


def test_the_loss_of_tokens_is_that_of_the_model():
    config = models.BertConfig(vocab_size=11, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    model = models.BertForMaskedLM(config).eval()
    ids, labels = lucid.tensor([[1, 2, 3]]), lucid.tensor([[-100, 2, 5]])
    out = model(ids, labels=labels)
    assert isinstance(model, models.MaskedLMMixin)
    expected = nn.functional.cross_entropy(out.logits[0, 1:], labels[0, 1:])
    assert abs(out.loss.item() - expected.item()) < 1e-6


def test_images_step_by_step():
    config = models.DDPMConfig(num_train_timesteps=20, beta_schedule="cosine", prediction_type="sample", **TINY)
    assert models.DDPMConfig.from_dict(config.to_dict()) == config
    assert "beta_start" not in config.to_hub() and config.to_hub()["sample_size"] == 8
    scheduler = config.scheduler()
    same = models.DDPMScheduler(20, beta_schedule="squaredcos_cap_v2", prediction_type="sample")
    assert scheduler.prediction_type == "sample" and bool((scheduler.betas == same.betas).all())
    model = models.DDPMForImageGeneration(config).train()
    lucid.manual_seed(0)
    out = model.generate(1, steps=4, return_intermediates=True)
    assert isinstance(out, models.GenerationOutput) and len(out.intermediates) == 4 and model.training
    assert bool((out.intermediates[-1] == out.samples).all())
    lucid.manual_seed(0)
    assert bool((model.generate(1, steps=4) == out.samples).all())
    with pytest.raises(TypeError):
        models.NCSNConfig(beta_start=0.1)  # it has no such noise
    with pytest.raises(ValueError, match="sample_size"):
        models.DDPMConfig(**{**TINY, "sample_size": 0})


def test_an_entry_of_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("LUCID_HOME", str(tmp_path / "home"))
    config = models.LeNetConfig()
    source, model = models.LeNetForImageClassification(config), models.LeNetForImageClassification(config)
    path = tmp_path / "lenet.pth"
    lucid.save(source.state_dict(), path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    entry = models.PretrainedEntry(path.as_uri(), digest, config)
    models.load_from_pretrained_entry(model, entry, name="lenet")
    assert bool((model.f6[0].weight == source.f6[0].weight).all())
    path.unlink()
    models.load_from_pretrained_entry(model, entry, name="lenet")  # kept
    (kept,) = (tmp_path / "home" / "weights").iterdir()
    kept.write_bytes(b"another")
    with pytest.raises(lucid.serialization.CorruptFileError, match="SHA-256"):
        models.load_from_pretrained_entry(model, entry, name="lenet")
    path.write_bytes(b"another")
    with pytest.raises(RuntimeError, match="invalid hash"):
        models.load_from_pretrained_entry(model, entry, name="other")
    assert [p.name for p in (tmp_path / "home" / "weights").iterdir()] == [kept.name]
    with pytest.raises(ValueError, match="name of a file"):
        models.load_from_pretrained_entry(model, entry, name="../lenet")
    with pytest.raises(TypeError, match="gpt2"):
        models.load_from_pretrained_entry(model, models.PretrainedEntry("", "", models.GPT2Config()), name="lenet")
