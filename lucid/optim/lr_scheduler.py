"""Schedules of learning rates."""

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter

from ._cycles import CyclicLR, OneCycleLR
from ._schedule import EPOCH_DEPRECATION_WARNING, LRScheduler, _set_lr
from .optimizer import Optimizer


class _LRScheduler(LRScheduler):
    """The base class under its old name."""


class _Lambdas(LRScheduler):
    """A function of the step per group. Functions are not saved, objects that can be called are."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        self.optimizer = optimizer
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas = [lr_lambda] * len(optimizer.param_groups)
        else:
            if len(lr_lambda) != len(optimizer.param_groups):
                raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self):
        """Everything but the optimizer and plain functions."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "lr_lambdas")}
        state["lr_lambdas"] = [None if isinstance(f, types.FunctionType) else f.__dict__.copy() for f in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave."""
        lambdas = state_dict["lr_lambdas"]
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for own, saved in zip(self.lr_lambdas, lambdas):
            if saved is not None:
                own.__dict__.update(saved)


class LambdaLR(_Lambdas):
    """The initial learning rate times a function of the step.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def get_lr(self):
        self._expect_step()
        return [base * f(self.last_epoch) for f, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_Lambdas):
    """The learning rate times a function of the step, every step.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda step: 0.5)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.125]
    """

    def get_lr(self):
        self._expect_step()
        if self._is_initial:
            return self._now()
        return [group["lr"] * f(self.last_epoch) for f, group in zip(self.lr_lambdas, self.optimizer.param_groups)]


class StepLR(LRScheduler):
    """Times gamma every step_size steps.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.1]
    """

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._now()
        return [group["lr"] * self.gamma for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Times gamma at every milestone.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 2])
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.01]
    """

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        if self.last_epoch not in self.milestones:
            return self._now()
        return [group["lr"] * self.gamma ** self.milestones[self.last_epoch] for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        milestones = sorted(self.milestones.elements())
        return [base * self.gamma ** bisect_right(milestones, self.last_epoch) for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """Times factor for the first total_iters steps.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.5]
    """

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        if self.last_epoch == 0:
            return [group["lr"] * self.factor for group in self.optimizer.param_groups]
        if self.last_epoch != self.total_iters:
            return self._now()
        return [group["lr"] * (1.0 / self.factor) for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        ended = self.last_epoch >= self.total_iters
        return [base * (self.factor + ended * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """Times a factor that goes from start_factor to end_factor in total_iters steps.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.LinearLR(optimizer, total_iters=6)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.6667]
    """

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        groups, change = self.optimizer.param_groups, self.end_factor - self.start_factor
        if self.last_epoch == 0:
            return [group["lr"] * self.start_factor for group in groups]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now()
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return [group["lr"] * (1.0 + change / before) for group in groups]

    def _get_closed_form_lr(self):
        change = (self.end_factor - self.start_factor) * min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + change) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Times gamma every step.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.125]
    """

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        if self._is_initial:
            return self._now()
        return [group["lr"] * self.gamma for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to zero in total_iters steps, as a power of what is left.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.25]
    """

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now()
        factor = ((1.0 - self.last_epoch / self.total_iters) / (1.0 - (self.last_epoch - 1) / self.total_iters)) ** self.power
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _get_closed_form_lr(self):
        left = (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
        return [base * left for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Down to eta_min in T_max steps along a cosine, and up again.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.5]
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        groups, low, t, n = self.optimizer.param_groups, self.eta_min, self.last_epoch, self.T_max
        if self._is_initial:
            return self._now()
        if self._step_count == 1 and t > 0:
            return [low + (base - low) * (1 + math.cos(t * math.pi / n)) / 2 for base in self.base_lrs]
        if (t - 1 - n) % (2 * n) == 0:
            return [group["lr"] + (base - low) * (1 - math.cos(math.pi / n)) / 2 for base, group in zip(self.base_lrs, groups)]
        factor = (1 + math.cos(math.pi * t / n)) / (1 + math.cos(math.pi * (t - 1) / n))
        return [factor * (group["lr"] - low) + low for group in groups]

    def _get_closed_form_lr(self):
        now = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * now for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down to eta_min along a cosine, then from the start again; every cycle T_mult times as long.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.5]
    """

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0, self.T_i, self.T_mult, self.eta_min, self.T_cur = T_0, T_0, T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        now = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * now for base in self.base_lrs]

    def step(self, epoch=None):
        """Count a step, or go to a given one, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            if epoch < self.T_0:
                self.T_i, self.T_cur = self.T_0, epoch
            elif self.T_mult == 1:
                self.T_cur = epoch % self.T_0
            else:
                n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
                self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
                self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        self._update(self._rates())


def _check_schedulers(name, schedulers, optimizer):
    """Schedules that work together: of one optimizer, and none that waits for a measure."""
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified when "
                f"calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if optimizer != scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class SequentialLR(LRScheduler):
    """Several schedules, one after the other; milestones: where the next begins.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> parts = [lucid.optim.lr_scheduler.ConstantLR(optimizer, 0.1), lucid.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)]
    >>> schedule = lucid.optim.lr_scheduler.SequentialLR(optimizer, parts, milestones=[2])
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        _check_schedulers(type(self).__name__, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                "points, "
                f"but got number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:  # as if none of them had made its first step
            _set_lr(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched=None):
        """Take back the first step that schedules make when they are made."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for inner in sched._schedulers:
                self.recursive_undo(inner)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self):
        """Count a step of the schedule whose turn it is."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        """Everything but the optimizer, the schedules as dicts."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for own, saved in zip(self._schedulers, state_dict["_schedulers"]):
            own.load_state_dict(saved)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: each changes what the others left.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> parts = [lucid.optim.lr_scheduler.ConstantLR(optimizer, 0.5), lucid.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)]
    >>> schedule = lucid.optim.lr_scheduler.ChainedScheduler(parts)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers, optimizer=None):
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        _check_schedulers(type(self).__name__, schedulers, optimizer)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = self._now()

    def step(self):
        """Count a step of every schedule."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._now()

    state_dict, load_state_dict = SequentialLR.state_dict, SequentialLR.load_state_dict


class ReduceLROnPlateau(LRScheduler):
    """Times factor when a measure did not get better for a while: `step(measure)`.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step(1.0)
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.1]
    """

    def __init__(
        self,
        optimizer,
        mode="min",
        factor=0.1,
        patience=10,
        threshold=1e-4,
        threshold_mode="rel",
        cooldown=0,
        min_lr=0,
        eps=1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != len(optimizer.param_groups):
            raise ValueError(f"expected {len(optimizer.param_groups)} min_lrs, got {len(min_lr)}")
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.optimizer, self.factor = optimizer, factor
        if isinstance(min_lr, (list, tuple)):
            self.default_min_lr, self.min_lrs = None, list(min_lr)
        else:
            self.default_min_lr, self.min_lrs = min_lr, [min_lr] * len(optimizer.param_groups)
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.last_epoch = 0
        self._last_lr = self._now()
        self._reset()

    def _reset(self):
        self.mode_worse = math.inf if self.mode == "min" else -math.inf
        self.best, self.num_bad_epochs, self.cooldown_counter = self.mode_worse, 0, 0

    def step(self, metrics, epoch=None):
        """Count a step with this measure."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._now()

    def _reduce_lr(self, epoch):
        if len(self.optimizer.param_groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` "
                    f"({len(self.optimizer.param_groups)}) differs from when `ReduceLROnPlateau` was initialized "
                    f"({len(self.min_lrs)}), usually due to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(self.optimizer.param_groups)
        for group, least in zip(self.optimizer.param_groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set_lr(group, "lr", new)

    @property
    def in_cooldown(self):
        """Whether bad steps do not count yet."""
        return self.cooldown_counter > 0

    def is_better(self, a, best):
        """Whether a is better than the best so far, by the threshold."""
        sign = -1 if self.mode == "min" else 1
        limit = best * (1.0 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return a < limit if self.mode == "min" else a > limit


class NoamScheduler(LRScheduler):
    """The schedule of "Attention is all you need": up linearly for warmup_steps, then down with the square root.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.NoamScheduler(optimizer, model_size=4, warmup_steps=2)
    >>> optimizer.step(); schedule.step(); round(schedule.get_last_lr()[0], 4)
    0.1768
    """

    def __init__(self, optimizer, model_size, warmup_steps, factor=1.0, last_epoch=-1):
        if model_size <= 0 or warmup_steps <= 0:
            raise ValueError(f"model_size and warmup_steps must be positive, got {model_size} and {warmup_steps}")
        self.model_size, self.warmup_steps, self.factor = model_size, warmup_steps, factor
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        self._expect_step()
        step = max(self.last_epoch, 1)
        scale = self.factor * self.model_size**-0.5 * min(step**-0.5, step * self.warmup_steps**-1.5)
        return [base * scale for base in self.base_lrs]


__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "NoamScheduler",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
