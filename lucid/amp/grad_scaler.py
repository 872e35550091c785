"""GradScaler: scales losses so that gradients do not underflow in float16; steps with an overflow are skipped."""

from collections import defaultdict
from enum import Enum

from .. import _C
from ..autograd import no_grad


class OptState(Enum):
    """The stage of an optimizer between two updates of the scale.

    >>> lucid.amp.grad_scaler.OptState.READY.value
    0
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh_state():
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _unscale(grads, found_inf, inverse):
    """Multiply gradients in place; found_inf becomes 1 if any of them is not finite. The host does not wait for it."""
    largest = _C.stack([n.float() for n in _C._foreach_norm(grads, float("inf"))])
    found_inf.copy_(_C.maximum(found_inf, largest.isfinite().logical_not().any().float()))
    if inverse is not None:
        _C._foreach_mul_(grads, inverse.to(found_inf.device))


class GradScaler:
    """Scales losses so that gradients in float16 neither underflow nor overflow, as PyTorch's does.

    `scale(loss).backward()`, then `step(optimizer)`, which divides the gradients by the scale and skips the step if one is
    infinite or NaN, then `update()`: after a skipped step the scale shrinks by backoff_factor; after growth_interval good
    ones in a row it grows by growth_factor.

    >>> p = lucid.ones(1, requires_grad=True)
    >>> optimizer = lucid.optim.SGD([p], lr=0.5)
    >>> scaler = lucid.amp.GradScaler("cpu", init_scale=1024.0)
    >>> scaler.scale((p * p).sum()).backward()
    >>> p.grad
    tensor([2048.])
    >>> scaler.step(optimizer); scaler.update(); p
    tensor([0.], requires_grad=True)
    >>> p.grad = lucid.full((1,), float("inf"))
    >>> scaler.step(optimizer); scaler.update()
    >>> p.item(), scaler.get_scale()
    (0.0, 512.0)
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda":
            from .. import cuda

            if not cuda.is_available():
                import warnings

                warnings.warn("lucid.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
                self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale = self._growth_tracker = None
        self._growth_factor, self._backoff_factor, self._growth_interval = growth_factor, backoff_factor, growth_interval
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _check_scale_growth_tracker(self, name):
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        if self._scale is None:
            raise AssertionError(f"Attempted {name} but _scale is None.  {fix}")
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {name} but _growth_tracker is None.  {fix}")
        return self._scale, self._growth_tracker

    def _start(self, device):
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = _C.full((), self._init_scale, dtype=_C.float32, device=device)
        self._growth_tracker = _C.full((), self._init_growth_tracker, dtype=_C.int32, device=device)

    def scale(self, outputs):
        """A tensor, or tensors in nested iterables, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, _C.Tensor):
            if self._scale is None:
                self._start(outputs.device)
            return outputs * self._scale.to(outputs.device)
        from collections.abc import Iterable

        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    @no_grad()
    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16):
        by_kind = defaultdict(list)
        for group in optimizer.param_groups:
            for p in group["params"]:
                if not isinstance(p, _C.Tensor):
                    raise AssertionError(f"expected param to be lucid.Tensor, got {type(p).__name__}")
                grad = p.grad
                if grad is None:
                    continue
                if not allow_fp16 and grad.dtype == _C.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                by_kind[grad.device, grad.dtype].append(grad)
        found = {}
        for (device, _), grads in by_kind.items():
            _unscale(grads, found.setdefault(device, found_inf.to(device, copy=True)), inv_scale)
        return found

    def unscale_(self, optimizer):
        """Divide an optimizer's gradients by the scale before `step` would, to clip or to look at them."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._scale.double().reciprocal().float()
        found_inf = _C.zeros((), dtype=_C.float32, device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found_inf, False)
        state["stage"] = OptState.UNSCALED

    def _scaled_step(self, optimizer, state, args, kwargs):
        """An optimizer that takes the scale itself (fused=True) divides by it as it steps."""
        import inspect

        takes_scaler = "grad_scaler" in inspect.signature(optimizer.step).parameters
        if takes_scaler:
            import warnings

            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near future "
                "GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and let the "
                "optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            kwargs = {**kwargs, "grad_scaler": self}
        else:
            if state["stage"] is OptState.READY:
                self._check_inf_per_device(optimizer)
            before = getattr(optimizer, "grad_scale", None)
            done = state["stage"] is OptState.UNSCALED
            optimizer.grad_scale = before if done else self._scale if before is None else self._scale * before
            optimizer.found_inf = sum(t.to(self._scale.device) for t in state["found_inf_per_device"].values())
        value = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        if not takes_scaler:
            del optimizer.grad_scale, optimizer.found_inf
        return value

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step(*args, **kwargs)` with unscaled gradients, unless one of them is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            return self._scaled_step(optimizer, state, args, kwargs)
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not state["found_inf_per_device"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        finite = not sum(v.item() for v in state["found_inf_per_device"].values())
        value = optimizer.step(*args, **kwargs) if finite else None
        state["stage"] = OptState.STEPPED
        return value

    def update(self, new_scale=None):
        """Shrink or grow the scale after the steps since the last update, or set it."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(new_scale)
        else:
            found = [f for state in self._per_optimizer_states.values() for f in state["found_inf_per_device"].values()]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            bad = sum(f.to(scale.device) for f in found) > 0
            count = _C.where(bad, 0, tracker + 1)
            grows = count == self._growth_interval
            grown = scale * self._growth_factor
            kept = _C.where(grows & grown.isfinite(), grown, scale)
            scale.copy_(_C.where(bad, scale * self._backoff_factor, kept))
            tracker.copy_(_C.where(grows, 0, count))
        self._per_optimizer_states = defaultdict(_fresh_state)

    def _set_scale(self, new_scale):
        if isinstance(new_scale, float):
            self._scale.fill_(new_scale)
            return
        reason = "new_scale should be a float or a 1-element tensor of the scaler's device with requires_grad=False."
        if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
            raise AssertionError(reason)
        self._scale.copy_(new_scale.reshape(()))

    def get_scale(self):
        """The scale, a float; 1.0 if the scaler is not enabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self):
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def _get_scale_async(self):
        return self._scale

    def get_growth_factor(self):
        """The factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """The factor by which the scale shrinks after a skipped step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Set the factor by which the scale shrinks after a skipped step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """The number of good steps in a row after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Set the number of good steps in a row after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self):
        """Whether the scaler does anything."""
        return self._enabled

    def state_dict(self):
        """Scale, factors and the count of good steps, as plain numbers; empty if the scaler is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict):
        """Load the result of `state_dict`, also PyTorch's."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]

    def __getstate__(self):
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)

    def _check_inf_per_device(self, optimizer):
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        found_inf = _C.zeros((), dtype=_C.float32, device=scale.device)
        found = self._unscale_grads_(optimizer, None, found_inf, True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer):
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]


__all__ = ["GradScaler", "OptState"]
