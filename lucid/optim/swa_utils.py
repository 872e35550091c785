"""Averages of models over training: stochastic weight averaging and exponential moving averages."""

import itertools
import math
from copy import deepcopy

from .. import _C
from ..autograd import no_grad
from ..nn import Module
from ..nn.modules.normalization import _BatchNorm
from .lr_scheduler import LRScheduler


def get_ema_multi_avg_fn(decay=0.999):
    """The update function of an exponential moving average, for a list of parameters.

    >>> mean = lucid.zeros(1)
    >>> lucid.optim.swa_utils.get_ema_multi_avg_fn(0.5)([mean], [lucid.ones(1)], 1); mean
    tensor([0.5000])
    """
    _check_decay(decay)

    @no_grad()
    def update(ema_param_list, current_param_list, _):
        for mean, now in zip(ema_param_list, current_param_list):
            if mean.is_floating_point() or mean.is_complex():
                mean.lerp_(now, 1 - decay)
            else:
                mean.copy_(mean * decay + now * (1 - decay))

    return update


def get_swa_multi_avg_fn():
    """The update function of a plain average, for a list of parameters.

    >>> mean = lucid.zeros(1)
    >>> lucid.optim.swa_utils.get_swa_multi_avg_fn()([mean], [lucid.ones(1)], 3); mean
    tensor([0.2500])
    """

    @no_grad()
    def update(averaged_param_list, current_param_list, num_averaged):
        for mean, now in zip(averaged_param_list, current_param_list):
            n = float(num_averaged) + 1
            if mean.is_floating_point() or mean.is_complex():
                mean.lerp_(now, 1 / n)
            else:
                mean.add_(((now - mean) / n).to(mean.dtype))

    return update


def get_ema_avg_fn(decay=0.999):
    """The update function of an exponential moving average, for one parameter.

    >>> lucid.optim.swa_utils.get_ema_avg_fn(0.5)(lucid.zeros(1), lucid.ones(1), 1)
    tensor([0.5000])
    """
    _check_decay(decay)

    @no_grad()
    def update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return update


def get_swa_avg_fn():
    """The update function of a plain average, for one parameter.

    >>> lucid.optim.swa_utils.get_swa_avg_fn()(lucid.zeros(1), lucid.ones(1), 3)
    tensor([0.2500])
    """

    @no_grad()
    def update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return update


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


class AveragedModel(Module):
    """A copy of a model that holds the mean of its parameters over time: `update_parameters(model)`.

    >>> model = lucid.nn.Linear(1, 1, bias=False)
    >>> mean = lucid.optim.swa_utils.AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = lucid.nn.init.constant_(model.weight, value)
    ...     mean.update_parameters(model)
    >>> mean.module.weight.item()
    2.0
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", _C.tensor(0, dtype=_C.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)

    def _values(self, model):
        return itertools.chain(model.parameters(), model.buffers() if self.use_buffers else ())

    @no_grad()
    def update_parameters(self, model):
        """Take the parameters of the model into the mean."""
        pairs = [
            (mine, theirs.detach().to(mine.device)) for mine, theirs in zip(self._values(self.module), self._values(model))
        ]
        if self.n_averaged == 0:
            for mine, theirs in pairs:
                mine.detach().copy_(theirs)
        elif self.avg_fn is not None:
            for mine, theirs in pairs:
                mine.detach().copy_(self.avg_fn(mine.detach(), theirs, self.n_averaged.to(mine.device)))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            update([mine.detach() for mine, _ in pairs], [theirs for _, theirs in pairs], self.n_averaged)
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model, device=None):
    """Compute the running statistics of batch norms anew from all batches of a loader.

    >>> model = lucid.nn.BatchNorm1d(1)
    >>> lucid.optim.swa_utils.update_bn([lucid.tensor([[1.0], [3.0]])], model)
    >>> model.running_mean
    tensor([2.])
    """
    norms = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not norms:
        return
    for module in norms:
        module.reset_running_stats()
    was_training = model.training
    model.train()
    for module in norms:
        module.momentum = None
    for batch in loader:
        if isinstance(batch, (list, tuple)):
            batch = batch[0]
        model(batch if device is None else batch.to(device))
    for module, momentum in norms.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the current learning rate to a constant one, in anneal_epochs steps.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.swa_utils.SWALR(optimizer, swa_lr=0.1, anneal_epochs=2)
    >>> for _ in range(2):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.1]
    """

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        lrs = swa_lr if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(lrs) != len(optimizer.param_groups):
            raise ValueError(
                f"swa_lr must have the same length as optimizer.param_groups: swa_lr has {len(lrs)}, "
                f"optimizer.param_groups has "
                f"{len(optimizer.param_groups)}"
            )
        for lr, group in zip(lrs, optimizer.param_groups):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step):
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self):
        self._expect_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(max(0, step - 1)), self._part(step)
        lrs = []
        for group in self.optimizer.param_groups:
            start = group["swa_lr"] if before == 1 else (group["lr"] - before * group["swa_lr"]) / (1 - before)
            lrs.append(group["swa_lr"] * now + start * (1 - now))
        return lrs


__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
