"""The hierarchical variational autoencoder: its divergences, its levels, and that it learns. No other library has its keys."""

import typing

import pytest

import lucid
from lucid import models
from lucid.distributions import Normal, kl_divergence

SMALL = dict(sample_size=8, down_block_channels=(8, 16), latent_dim=(2, 3))


def made(name="hvae", **fields):
    """A model whose posteriors are not its priors."""
    lucid.manual_seed(0)
    model = models.create_model(name, **{**SMALL, **fields})
    for level in model.levels:
        lucid.nn.init.normal_(level.posterior.weight, std=0.3)
        lucid.nn.init.normal_(level.posterior.bias, std=0.3)
    return model


def test_divergences():
    """kl is the distributions' own, level by level; the loss adds it to the squared error."""
    model, x = made(kl_weight=0.5).eval(), lucid.rand(5, 3, 8, 8)
    priors = []
    for level in model.levels:
        before = level.before
        level.before = lambda x, before=before: priors.append(before(x)) or priors[-1]
    out = model(x, return_loss=True)
    normal = lambda mean, logvar: Normal(mean, (0.5 * logvar).exp())
    for i, prior in enumerate(priors):
        expected = kl_divergence(normal(out.mean[i], out.logvar[i]), normal(prior.mean, prior.logvar))
        assert out.kl[i].item() == pytest.approx(expected.sum((1, 2, 3)).mean().item(), rel=1e-4) and out.kl[i] > 0
    assert priors[0].mean.abs().max() == priors[0].logvar.abs().max() == 0 and priors[1].mean.abs().max() > 0
    error = ((out.sample - x) ** 2).sum() / 5
    assert out.loss.item() == pytest.approx((error + 0.5 * out.kl.sum()).item(), rel=1e-5)
    assert list(out.keys()) == ["loss", "sample", "mean", "logvar", "kl"]


def test_levels():
    model, x = made("hvae_gen").eval(), lucid.rand(2, 3, 8, 8)
    assert model.config.latent_shapes == ((3, 2, 2), (2, 4, 4))
    means, _ = model.encode(x)
    assert (model.decode(means) == model(x).sample).all()
    above = model.decode(means[:1])  # the large level from its prior
    assert above.shape == x.shape and (above != model.decode(means)).any()
    lucid.manual_seed(1)
    first, again = model(x, sample_posterior=True).sample, model(x, sample_posterior=True).sample
    assert (first != again).any()
    draw = lambda seed, heat: model.generate(3, generator=lucid.Generator().manual_seed(seed), temperature=heat)
    assert (draw(0, 1.0) == draw(0, 1.0)).all() and (draw(0, 1.0) != draw(1, 1.0)).any()
    assert (draw(0, 0.0) == draw(1, 0.0)).all()
    assert isinstance(model, models.VAEForImageGeneration) and isinstance(model.config, models.VAEConfig)


def test_untrained_levels_cost_nothing():
    lucid.manual_seed(0)
    assert models.hvae(**SMALL)(lucid.rand(2, 3, 8, 8)).kl.tolist() == [0.0, 0.0]


def test_it_learns(tmp_path):
    lucid.manual_seed(0)
    model = models.hvae_gen(**SMALL, kl_weight=0.01, act_fn="relu", layers_per_block=2)
    x = (lucid.rand(8, 1, 2, 2) > 0.5).float().repeat_interleave(4, 2).repeat_interleave(4, 3).repeat(1, 3, 1, 1)
    optimizer, course = lucid.optim.Adam(model.parameters(), 3e-3), []
    for step in range(60):
        loss = model(x, return_loss=True).loss
        course.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        assert step or all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
        optimizer.step()
    assert course[-1] < 0.4 * course[0], (course[0], course[-1])
    model.eval().save_pretrained(tmp_path)
    again = models.AutoModelForImageGeneration.from_pretrained(tmp_path)
    assert again.config == model.config and (again(x).sample == model(x).sample).all()


def test_activations():
    assert typing.get_args(models.GenerativeActivation) == ("silu", "swish", "relu", "gelu")
    x, found = lucid.rand(1, 3, 8, 8), {}
    for name in typing.get_args(models.GenerativeActivation):
        found[name] = made(act_fn=name).eval()(x).sample
    assert (found["silu"] == found["swish"]).all()
    assert (found["silu"] != found["relu"]).any() and (found["silu"] != found["gelu"]).any()


def test_what_is_refused():
    for fields, words in (
        (dict(act_fn="tanh"), "one of silu, swish, relu, gelu, not 'tanh'"),
        (dict(latent_dim=(2,)), "for each of 2 blocks"),
        (dict(latent_dim=4), "for each of 2 blocks"),
        (dict(latent_dim=(2, 0)), "for each of 2 blocks"),
        (dict(down_block_channels=(8, 12)), "multiples of 8"),
        (dict(sample_size=6), "cannot be halved 2 times"),
    ):
        with pytest.raises(ValueError, match=words):
            models.hvae(**{**SMALL, **fields})
    model = models.hvae(**SMALL)
    with pytest.raises(ValueError, match=r"images are \(n, 3, 8, 8\)"):
        model(lucid.zeros(1, 3, 16, 16))
    with pytest.raises(ValueError, match=r"latents of level 1 are \(1, 2, 4, 4\)"):
        model.decode([lucid.zeros(1, 3, 2, 2), lucid.zeros(1, 3, 4, 4)])
    with pytest.raises(ValueError, match="1 to 2 levels, not 0"):
        model.decode([])
