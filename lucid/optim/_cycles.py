"""Schedules that go up and down: cycles, and one cycle."""

import math
import types

from ._schedule import LRScheduler, _copied, _per_group, _set_lr
from .optimizer import Optimizer


class CyclicLR(LRScheduler):
    """Up and down between two learning rates, every cycle anew; momentum the other way.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 1.0, step_size_up=4, cycle_momentum=False)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.775]
    """

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode="triangular",
        gamma=1.0,
        scale_fn=None,
        scale_mode="cycle",
        cycle_momentum=True,
        base_momentum=0.8,
        max_momentum=0.9,
        last_epoch=-1,
    ):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        base_lrs = [_copied(b) for b in _per_group(optimizer, "base_lr", base_lr)]
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups):
                _set_lr(group, "lr", lr)
        self.max_lrs = _per_group(optimizer, "max_lr", max_lr)
        up, down = float(step_size_up), float(step_size_up if step_size_down is None else step_size_down)
        self.total_size, self.step_ratio = up + down, up / (up + down)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = _per_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = _per_group(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for most, least, group in zip(self.max_momentums, self.base_momentums, optimizer.param_groups):
                    self._set_momentum(group, most)
                    group["max_momentum"], group["base_momentum"] = most, least
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _set_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def scale_fn(self, x):
        """The scale of a cycle's amplitude."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return {"triangular": 1.0, "triangular2": 1 / (2.0 ** (x - 1)), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self):
        self._expect_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        at = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for least, most, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups):
                self._set_momentum(group, most - (most - least) * height * at)
        return [base + (most - base) * height * at for base, most in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self):
        """Everything but the optimizer and plain functions."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = (
            custom.__dict__.copy() if custom is not None and not isinstance(custom, types.FunctionType) else None
        )
        return state

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave."""
        custom = state_dict.get("_scale_fn_custom")
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if custom is not None:
            self._scale_fn_custom.__dict__.update(custom)


class OneCycleLR(LRScheduler):
    """One cycle: up to max_lr, then down far below the start; momentum the other way.

    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = lucid.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=10, cycle_momentum=False)
    >>> for _ in range(3):
    ...     optimizer.step(); schedule.step()
    >>> [round(lr, 4) for lr in schedule.get_last_lr()]
    [0.9505]
    """

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start=0.3,
        anneal_strategy="cos",
        cycle_momentum=True,
        base_momentum=0.85,
        max_momentum=0.95,
        div_factor=25.0,
        final_div_factor=1e4,
        three_phase=False,
        last_epoch=-1,
    ):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self.total_steps = self._steps(total_steps, epochs, steps_per_epoch)
        if three_phase:
            ends = [pct_start * self.total_steps - 1, 2 * pct_start * self.total_steps - 2, self.total_steps - 1]
            lrs = [("initial_lr", "max_lr"), ("max_lr", "initial_lr"), ("initial_lr", "min_lr")]
            momenta = [("max_momentum", "base_momentum"), ("base_momentum", "max_momentum"), ("max_momentum", "max_momentum")]
        else:
            ends = [pct_start * self.total_steps - 1, self.total_steps - 1]
            lrs = [("initial_lr", "max_lr"), ("max_lr", "min_lr")]
            momenta = [("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")]
        self._schedule_phases = [
            {"end_step": float(e), "start_lr": a, "end_lr": b, "start_momentum": c, "end_momentum": d}
            for e, (a, b), (c, d) in zip(ends, lrs, momenta)
        ]
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, _per_group(optimizer, "max_lr", max_lr)):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            self.use_beta1 = "betas" in optimizer.defaults
            if last_epoch == -1:
                each = zip(
                    _per_group(optimizer, "max_momentum", max_momentum),
                    _per_group(optimizer, "base_momentum", base_momentum),
                    optimizer.param_groups,
                )
                for most, least, group in each:
                    CyclicLR._set_momentum(self, group, most)
                    group["max_momentum"], group["base_momentum"] = most, least
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _steps(total_steps, epochs, steps_per_epoch):
        if total_steps is not None:
            if total_steps <= 0 or not isinstance(total_steps, int):
                raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
            return total_steps
        if epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(epochs, int) or epochs <= 0:
            raise ValueError(f"Expected positive integer epochs, but got {epochs}")
        if not isinstance(steps_per_epoch, int) or steps_per_epoch <= 0:
            raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
        return epochs * steps_per_epoch

    def _between(self, start, end, part):
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)
        return (end - start) * part + start

    def get_lr(self):
        self._expect_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The total number of steps is {self.total_steps}")
        lrs = []
        for group in self.optimizer.param_groups:
            start = 0.0
            for i, phase in enumerate(self._schedule_phases):
                end = phase["end_step"]
                if step <= end or i == len(self._schedule_phases) - 1:
                    part = (step - start) / (end - start)
                    lrs.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
                    if self.cycle_momentum:
                        value = self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                        CyclicLR._set_momentum(self, group, value)
                    break
                start = end
        return lrs
