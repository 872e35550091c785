"""The base class of learning rate schedules."""

import warnings
import weakref
from functools import wraps

from .._C import Tensor
from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler."
)


def _copied(value):
    return value.clone() if isinstance(value, Tensor) else value


def _set_lr(group, key, value):
    """A learning rate that is a tensor stays the same tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value if not isinstance(value, Tensor) else value.item())
    else:
        group[key] = value


def _per_group(optimizer, name, value):
    if isinstance(value, (list, tuple)):
        if len(value) != len(optimizer.param_groups):
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
                f"has {len(optimizer.param_groups)}."
            )
        return list(value)
    return [value] * len(optimizer.param_groups)


class LRScheduler:
    """The base class: `get_lr` says the learning rates of the step that `last_epoch` counts.

    >>> class Halving(lucid.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [base / (1 + self.last_epoch) for base in self.base_lrs]
    >>> optimizer = lucid.optim.SGD([lucid.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = Halving(optimizer)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    _is_initial = _get_lr_called_within_step = False

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer")
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._count_steps_of(optimizer)
        self._initial_step()

    @staticmethod
    def _count_steps_of(optimizer):
        """Wrap the optimizer's step to note that it ran: a schedule that steps first warns about the order of calls."""
        if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
            return
        ref, function = weakref.ref(optimizer), optimizer.step.__func__

        @wraps(function)
        def step(*args, **kwargs):
            owner = ref()
            owner._opt_called = True
            return function.__get__(owner, type(owner))(*args, **kwargs)

        step._wrapped_by_lr_sched = True
        optimizer.step = step

    def _initial_step(self):
        """The initial step of a schedule, made by the constructor; a schedule that resumes keeps the current learning rate."""
        self._step_count, self._is_initial = 0, True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self):
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self):
        """The learning rates of the last step, one per group."""
        return self._last_lr

    def get_lr(self):
        """The learning rates of this step, one per group."""
        raise NotImplementedError

    def step(self, epoch=None):
        """Count a step (or go to a given one) and set the learning rates."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(
                    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, "
                    "make "
                    "sure to call `optimizer.step()` before `lr_scheduler.step()`.",
                    UserWarning,
                    stacklevel=2,
                )
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(
                    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order: "
                    "`optimizer.step()` before `lr_scheduler.step()`. Otherwise the first value of the learning rate "
                    "schedule is "
                    "skipped.",
                    UserWarning,
                    stacklevel=2,
                )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch=None):
        """The learning rates of the next step, or of a given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._update(self._rates(epoch is not None and hasattr(self, "_get_closed_form_lr")))

    def _rates(self, closed=False):
        self._get_lr_called_within_step = True
        try:
            return self._get_closed_form_lr() if closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False

    def _expect_step(self):
        """Warn if get_lr is called outside of step."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _update(self, values):
        for group, lr in zip(self.optimizer.param_groups, values):
            _set_lr(group, "lr", lr)
        self._last_lr = [_copied(group["lr"]) for group in self.optimizer.param_groups]

    def _now(self):
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]
