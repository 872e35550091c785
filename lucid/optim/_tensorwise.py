"""Optimizers that treat every parameter alike and on its own: what they share."""

from .._C import Tensor, _foreach_add_, tensor, view_as_complex, view_as_real
from .optimizer import Optimizer, without_grad


def check(name, value, holds):
    """Raise ValueError if a setting does not hold."""
    if not holds:
        raise ValueError(f"Invalid {name}: {value}")


def check_lr(lr, capturable=False, foreach=None):
    """A learning rate is not negative; a tensor has one element."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def value_of(x):
    """A setting or count that may be a tensor, as a number."""
    return x.item() if isinstance(x, Tensor) else x


def step_count():
    """Counts are float32 tensors, as PyTorch saves them."""
    return tensor(0.0)


def as_reals(t):
    """Complex parameters are updated as pairs of real numbers."""
    return view_as_real(t) if t.is_complex() else t


class Tensorwise(Optimizer):
    """`_start(state, p, group)` fills the state of a parameter. Then either all parameters of a group are updated by one call,
    `_fused(group, params, grads, states)`, or each on its own: `_update(p, grad, state, group)`."""

    _fused = None

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:  # saved by an older version
            for key, value in self.defaults.items():
                group.setdefault(key, value)
            for p in group["params"]:
                own = self.state.get(p)
                if own and "step" in own and not isinstance(own["step"], Tensor):
                    own["step"] = tensor(float(own["step"]))

    def _state_of(self, p, group):
        state = self.state.get(p)
        if not state:
            state = {}
            self._start(state, p, group)
            if state:
                self.state[p] = state
        return state

    @without_grad
    def step(self):
        """One step; closure: computes the loss again and returns it."""
        for group in self.param_groups:
            params, grads, states = [], [], []
            together = self._fused is not None and not group.get("differentiable")
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if group.get("capturable") and p.device.type != "cuda":
                    raise AssertionError("If capturable=True, params and state_steps must be on supported devices: ['cuda'].")
                params.append(p)
                grads.append(grad)
                states.append(self._state_of(p, group))
                together = together and _floats_here(p)
            if not params:
                continue
            counts = [state["step"] for state in states if "step" in state]
            if counts:
                _foreach_add_(counts, 1)
            if together:
                self._fused(group, params, grads, states)
            else:
                for p, grad, state in zip(params, grads, states):
                    self._one(p, -grad if group.get("maximize") else grad, state, group)

    def _one(self, p, grad, state, group):
        if not p.is_complex():
            return self._update(p, grad, state, group)
        kept = {k: as_reals(v) if isinstance(v, Tensor) else v for k, v in state.items()}
        self._update(as_reals(p), as_reals(grad), kept, group)
        for key, value in kept.items():  # made by the first update
            if state[key] is None and value is not None:
                state[key] = view_as_complex(value)


def _floats_here(p):
    return p.is_floating_point() and p.is_cpu


def each(states, name):
    """One value of every state."""
    return [state[name] for state in states]


def check_switches(foreach, fused, differentiable):
    """Two ways to do the same thing cannot both be asked for."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
