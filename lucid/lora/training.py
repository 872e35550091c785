"""Training in a few lines: the loss over tokens, schedules, and a Trainer, thin layers over lucid.optim."""

import math
import os
import sys
import time

from .. import _C, optim
from ..nn import functional as F
from ..nn.utils import clip_grad_norm_


def cross_entropy_loss(logits, targets, ignore_index=-100, smoothing=0.0):
    """The mean cross entropy over tokens that count; smoothing gives that much of the weight to all tokens alike.

    >>> lucid.lora.cross_entropy_loss(lucid.zeros(1, 2, 4), lucid.tensor([[1, -100]]))
    tensor(1.3863)
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be at least 0 and below 1, got {smoothing}")
    flat = targets.reshape(-1)
    if not bool((flat != ignore_index).any()):
        raise ValueError("all labels are ignored: there is nothing to learn from")
    logits = logits.reshape(-1, logits.shape[-1]).to(_C.float32)
    return F.cross_entropy(logits, flat, ignore_index=ignore_index, label_smoothing=smoothing)


def schedule(optimizer, kind="constant", warmup_steps=0, total_steps=None, min_ratio=0.0):
    """A learning rate scheduler: warm-up from 0 over warmup_steps, then "constant", "linear" to min_ratio, or "cosine" to it.

    >>> optimizer = lucid.optim.SGD([lucid.nn.Parameter(lucid.ones(1))], lr=1.0)
    >>> plan = lucid.lora.schedule(optimizer, "cosine", warmup_steps=2, total_steps=4)
    >>> [round(plan.lr_lambdas[0](i), 3) for i in range(5)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    if kind not in ("constant", "linear", "cosine"):
        raise ValueError(f"kind is constant, linear or cosine, not {kind!r}")
    if kind != "constant" and (total_steps is None or total_steps <= warmup_steps):
        raise ValueError(f"{kind} needs total_steps, more than warmup_steps ({warmup_steps})")

    def factor(step):
        if step < warmup_steps:
            return step / warmup_steps
        if kind == "constant":
            return 1.0
        done = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
        return min_ratio + (1 - min_ratio) * (1 - done if kind == "linear" else 0.5 * (1 + math.cos(math.pi * done)))

    return optim.lr_scheduler.LambdaLR(optimizer, factor)


class StepMetrics:
    """What one step gave: loss, step, learning_rate, grad_norm.

    >>> lucid.lora.StepMetrics(0.5, 1, 1e-4, 2.0)
    step 1: loss 0.5000, learning rate 0.0001, gradient 2.000
    """

    __slots__ = ("grad_norm", "learning_rate", "loss", "step")

    def __init__(self, loss, step, learning_rate, grad_norm):
        self.loss, self.step, self.learning_rate, self.grad_norm = loss, step, learning_rate, grad_norm

    def __repr__(self):
        start = f"step {self.step}: loss {self.loss:.4f}, learning rate {self.learning_rate:.4g}"
        return f"{start}, gradient {self.grad_norm:.3f}"


class Trainer:
    """Trains what requires a gradient, over batches: dicts for model(**batch).loss, or pairs for loss(model(x), y).

    data: a sized iterable of batches; a DataLoader may shuffle. optimizer: AdamW(lr) unless given.
    max_grad_norm: gradients are clipped to it (None: not). accumulate: batches per step. metrics: {name: function of (output,
    batch)}, averaged by evaluate. checkpoint: a folder; the state is written there every checkpoint_every steps and at the
    end, and resume() goes on from it, to the same numbers as a run that was not interrupted.

    >>> _ = lucid.manual_seed(0)
    >>> data = [(lucid.ones(4, 2), lucid.zeros(4, 1))]
    >>> mse = lucid.nn.functional.mse_loss
    >>> trainer = lucid.lora.Trainer(lucid.nn.Linear(2, 1), data, epochs=5, lr=0.1, loss=mse, progress=False)
    >>> history = trainer.train()
    >>> len(history), history[-1].loss < history[0].loss
    (5, True)
    """

    def __init__(
        self, model, data, optimizer=None, *, epochs=3, lr=1e-4, weight_decay=0.01, kind="constant", warmup_steps=0,
        min_ratio=0.0, max_grad_norm=1.0, accumulate=1, loss=None, metrics=None, progress=True, checkpoint=None,
        checkpoint_every=None,
    ):  # fmt: skip
        self.model, self.data, self.epochs, self.accumulate = model, data, epochs, accumulate
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        if not self.parameters:
            raise ValueError("nothing to train: no parameter requires a gradient")
        self.optimizer = optimizer or optim.AdamW(self.parameters, lr=lr, weight_decay=weight_decay)
        self.steps_per_epoch = -(-len(data) // accumulate)
        self.scheduler = schedule(self.optimizer, kind, warmup_steps, epochs * self.steps_per_epoch, min_ratio)
        self.max_grad_norm, self.loss, self.metrics, self.progress = max_grad_norm, loss, metrics or {}, progress
        self.checkpoint, self.checkpoint_every = checkpoint, checkpoint_every
        self.step, self.history = 0, []
        self._versions = {name: buffer._version for name, buffer in model.named_buffers()}
        self._epoch_start = self._kept = None  # random numbers when the epoch began, and when the state was saved

    def _output(self, batch):
        """(loss, output) of a batch."""
        if isinstance(batch, dict):
            out = self.model(**batch)
            if self.loss is not None:
                return self.loss(out, batch), out
            if getattr(out, "loss", None) is None:
                raise ValueError("the model gives no loss for this batch: it needs labels, or the Trainer a loss")
            return out.loss, out
        inputs, targets = batch
        out = self.model(inputs)
        return (self.loss or cross_entropy_loss)(getattr(out, "logits", out), targets), out

    def _step(self, batches):
        self.optimizer.zero_grad()
        total = 0.0
        for batch in batches:
            loss = self._output(batch)[0] / len(batches)
            loss.backward()
            total += float(loss.detach())
        if not math.isfinite(total):
            raise FloatingPointError(f"the loss is {total} in step {self.step + 1}; the weights are those of the step before")
        norm = float(clip_grad_norm_(self.parameters, math.inf if self.max_grad_norm is None else self.max_grad_norm))
        rate = self.optimizer.param_groups[0]["lr"]
        self.optimizer.step()
        self.scheduler.step()
        self.step += 1
        self.history.append(StepMetrics(total, self.step, rate, norm))

    def train(self):
        """Run what is left of the epochs; returns the StepMetrics of all steps, those before resume() included."""
        self.model.train()
        last, started, first = self.epochs * self.steps_per_epoch, time.monotonic(), self.step
        while self.step < last:
            skipped, group = (self.step % self.steps_per_epoch) * self.accumulate, []
            if not (skipped and self._kept is not None):
                self._epoch_start = self._kept = _rng().get_rng_state()
            _rng().set_rng_state(self._epoch_start)  # data that shuffles does so as it did
            for i, batch in enumerate(self.data):
                if i < skipped:
                    continue
                if i == skipped and skipped:
                    _rng().set_rng_state(self._kept)
                group.append(batch)
                if len(group) == self.accumulate or i + 1 == len(self.data):
                    self._step(group)
                    group = []
                    self._show(last, first, started)
                    if self.checkpoint and self.checkpoint_every and self.step % self.checkpoint_every == 0:
                        self.save(self.checkpoint)
        if self.checkpoint:
            self.save(self.checkpoint)
        return self.history

    def _show(self, last, first, started):
        if self.progress:
            done, left = self.step - first, (time.monotonic() - started) / (self.step - first) * (last - self.step)
            bar = "#" * (20 * self.step // last)
            end = "\n" if self.step == last else ""
            print(
                f"\r[{bar:20}] {self.history[-1]}, {left:.0f} s left",
                end=end,
                file=sys.stderr,
                flush=done % 8 == 0 or bool(end),
            )

    def evaluate(self, data):
        """The mean loss over data, and the mean of every metric, by name."""
        from ..autograd import no_grad

        was, sums, count = self.model.training, {}, 0
        self.model.eval()
        try:
            with no_grad():
                for batch in data:
                    loss, out = self._output(batch)
                    values = {"loss": loss, **{name: metric(out, batch) for name, metric in self.metrics.items()}}
                    sums = {name: sums.get(name, 0.0) + float(value) for name, value in values.items()}
                    count += 1
        finally:
            self.model.train(was)
        return {name: value / max(count, 1) for name, value in sums.items()}

    def save(self, folder):
        """Write the state of the run: trained parameters, buffers that changed, optimizer, random numbers, history."""
        from ..serialization import save

        os.makedirs(folder, exist_ok=True)
        names = {name: p.detach() for name, p in self.model.named_parameters() if p.requires_grad}
        changed = {n: b for n, b in self.model.named_buffers() if b._version != self._versions.get(n)}
        history = [[m.loss, m.step, m.learning_rate, m.grad_norm] for m in self.history]
        state = {
            "parameters": names,
            "buffers": changed,
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "history": history,
            "random": _rng().get_rng_state(),
            "epoch_random": self._epoch_start,
        }
        save(state, os.path.join(folder, "trainer.pt"))

    def resume(self, folder=None):
        """Go on from a saved state: the next train() runs the rest."""
        from ..autograd import no_grad
        from ..serialization import load

        state = load(os.path.join(folder or self.checkpoint, "trainer.pt"))
        own = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        if own.keys() != state["parameters"].keys():
            raise ValueError(f"the saved run trains other parameters: {sorted(own.keys() ^ state['parameters'].keys())[:4]}")
        with no_grad():
            for name, value in state["parameters"].items():
                own[name].copy_(value)
            buffers = dict(self.model.named_buffers())
            for name, value in state["buffers"].items():
                buffers[name].copy_(value)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step, self.history = state["step"], [StepMetrics(*row) for row in state["history"]]
        self.scheduler.last_epoch = self.step
        self._epoch_start, self._kept = state["epoch_random"], state["random"]
        _rng().set_rng_state(self._kept)
        return self


def _rng():
    from .. import random

    return random
