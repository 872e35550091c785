"""Losses, schedules and the Trainer."""

import pytest
import torch

import lucid
from lucid import lora, models, nn


def test_loss():
    lucid.manual_seed(0)
    logits, labels = lucid.randn(2, 5, 7), lucid.tensor([[1, 2, -100, 3, 4], [0, -100, -100, 6, 5]])
    for smoothing in (0.0, 0.2):
        ours = lora.cross_entropy_loss(logits, labels, smoothing=smoothing)
        log = logits.log_softmax(-1).reshape(-1, 7)
        kept = [i for i, l in enumerate(labels.flatten().tolist()) if l != -100]
        rows = [(1 - smoothing) * -log[i, labels.flatten()[i]] + smoothing * -log[i].mean() for i in kept]
        assert abs(float(ours) - sum(map(float, rows)) / len(rows)) < 1e-6
    with pytest.raises(ValueError, match="nothing to learn"):
        lora.cross_entropy_loss(logits, lucid.full((2, 5), -100))
    with pytest.raises(ValueError):
        lora.cross_entropy_loss(logits, labels, smoothing=1.0)


def test_schedules():
    def rates(kind, **options):
        optimizer = lucid.optim.SGD([nn.Parameter(lucid.ones(1))], lr=2.0)
        plan, found = lora.schedule(optimizer, kind, **options), []
        for _ in range(6):
            found.append(round(optimizer.param_groups[0]["lr"], 6))
            optimizer.step()
            plan.step()
        return found

    assert rates("constant") == [2.0] * 6
    assert rates("constant", warmup_steps=2) == [0.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    assert rates("linear", total_steps=4) == [2.0, 1.5, 1.0, 0.5, 0.0, 0.0]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=2.0)
    plan, theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4, eta_min=0.2), []
    for _ in range(5):
        theirs.append(round(optimizer.param_groups[0]["lr"], 6))
        optimizer.step()
        plan.step()
    assert rates("cosine", total_steps=4, min_ratio=0.1)[:5] == theirs
    for bad in (dict(kind="steps"), dict(kind="cosine"), dict(kind="linear", warmup_steps=5, total_steps=5)):
        with pytest.raises(ValueError):
            rates(**bad)


def build(folder=None, epochs=4, every=None):
    lucid.manual_seed(0)
    config = models.GPT2Config(
        vocab_size=13,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        initializer_range=0.3,
        max_position_embeddings=16,
    )
    model = lora.get_peft_model(models.GPT2LMHeadModel(config), lora.LoraConfig(r=4, lora_alpha=16, lora_dropout=0.1))
    data = [{"input_ids": ids, "labels": ids} for ids in lucid.randint(0, 13, (5, 2, 6))]
    return lora.Trainer(
        model,
        data,
        epochs=epochs,
        lr=2e-2,
        kind="cosine",
        warmup_steps=2,
        accumulate=2,
        progress=False,
        checkpoint=folder,
        checkpoint_every=every,
    )


def test_trainer(tmp_path, capsys):
    whole = build()
    history = whole.train()
    assert len(history) == 4 * 3 and history[-1].loss < history[0].loss
    assert history[0].learning_rate == 0 and history[2].learning_rate == 2e-2 and history[-1].learning_rate < 3e-3
    frozen = [p for name, p in whole.model.named_parameters() if ".lora_" not in name]
    assert all(p.grad is None for p in frozen)

    part = build(tmp_path, every=5)
    steps = part._step

    def stop_at_eight(batches):
        if part.step == 8:
            raise KeyboardInterrupt
        steps(batches)

    part._step = stop_at_eight
    with pytest.raises(KeyboardInterrupt):
        part.train()
    rest = build(tmp_path).resume()
    assert rest.step == 5
    again = rest.train()
    assert [m.loss for m in again] == [m.loss for m in history]
    assert all((a == b).all() for a, b in zip(rest.parameters, whole.parameters))
    other = lora.Trainer(nn.Linear(2, 2), [1])
    with pytest.raises(ValueError, match="other parameters"):
        other.resume(tmp_path)

    whole.metrics = {"length": lambda out, batch: batch["input_ids"].shape[1]}
    found = whole.evaluate(whole.data)
    assert found["length"] == 6 and found["loss"] < history[0].loss and whole.model.training
    noisy = build(epochs=1)
    noisy.progress = True
    noisy.train()
    assert "step 3" in capsys.readouterr().err


def test_trainer_refuses():
    layer = nn.Linear(2, 1)
    bad = lora.Trainer(
        layer, [(lucid.full((1, 2), float("inf")), lucid.zeros(1, 1))], loss=nn.functional.mse_loss, progress=False
    )
    before = layer.weight.tolist()
    with pytest.raises(FloatingPointError):
        bad.train()
    assert layer.weight.tolist() == before
    with pytest.raises(ValueError, match="needs labels"):
        config = models.GPT2Config(vocab_size=13, hidden_size=8, num_hidden_layers=1, num_attention_heads=2)
        lora.Trainer(
            models.GPT2LMHeadModel(config), [{"input_ids": lucid.ones(1, 2, dtype=lucid.int64)}], progress=False
        ).train()
    with pytest.raises(ValueError, match="nothing to train"):
        lora.Trainer(layer.requires_grad_(False), [1])


@pytest.mark.parametrize("stop", [3, 5, 7])
def test_resuming_amid_an_epoch_of_shuffled_data(tmp_path, stop):
    """A DataLoader that shuffles, dropout, and statistics that are no parameters: all as in a run that was not interrupted."""
    x, y = lucid.linspace(-1, 1, 80).view(20, 4), lucid.linspace(0, 1, 20).unsqueeze(1)
    data = lucid.utils.data.DataLoader(lucid.utils.data.TensorDataset(x, y), batch_size=4, shuffle=True)

    class Stopped(Exception):
        pass

    def trainer(seed, interrupt=False):
        lucid.manual_seed(seed)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))
        made = lora.Trainer(
            model, data, epochs=3, lr=0.05, loss=nn.functional.mse_loss, progress=False, kind="cosine", warmup_steps=2
        )
        if interrupt:
            save = made.save

            def save_and_stop(folder):
                save(folder)
                raise Stopped

            made.checkpoint, made.checkpoint_every, made.save = tmp_path, stop, save_and_stop
        return made

    whole = trainer(5)
    losses = [row.loss for row in whole.train()]
    first = trainer(5, interrupt=True)
    with pytest.raises(Stopped):
        first.train()
    second = trainer(99).resume(tmp_path)
    assert [row.loss for row in second.train()] == losses
    assert second.evaluate([(x, y)]) == whole.evaluate([(x, y)])
