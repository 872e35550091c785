"""The base class of optimizers that update every parameter by itself and by the same rule.

A class lists in `_checks` which settings are checked, by name (RULES) or as (name, message, condition), and passes the
arguments of its constructor to this one. The switches `foreach`, `fused`, `capturable` and `differentiable` are implemented
here.
"""

from .._C import (
    Tensor,
    _device_can,
    _foreach_add_,
    _takes_fused_steps,
    preserve_format,
    strided,
    tensor,
    view_as_complex,
    view_as_real,
    zeros_like,
)
from .optimizer import Optimizer, without_grad


def _not_negative(value):
    return value >= 0.0


RULES = {  # PyTorch's message for an invalid setting, and the condition of a valid one
    "lr": ("Invalid learning rate: {}", _not_negative),
    "eps": ("Invalid epsilon value: {}", _not_negative),
    "rho": ("Invalid rho value: {}", lambda rho: 0.0 <= rho <= 1.0),
    "etas": ("Invalid eta values: {0[0]}, {0[1]}", lambda etas: 0.0 < etas[0] < 1.0 < etas[1]),
    **{
        name: (f"Invalid {name} value: {{}}", _not_negative)
        for name in ("alpha", "momentum", "weight_decay", "momentum_decay", "lr_decay", "initial_accumulator_value")
    },
}
OPTIONS = {  # documentation of the shared options
    "foreach": "foreach: None or True: one call for all parameters of a group; False: tensor by tensor, with the same values.",
    "fused": "fused: like foreach; True wants real floating point parameters, and lets GradScaler leave its scale to the step.",
    "capturable": "capturable: counts and rates lie on the CUDA device, so that a captured graph counts on in its replays.",
    "differentiable": "differentiable: steps are recorded, tensor by tensor, and lr may be a tensor that wants a gradient.",
    "maximize": "maximize: go up instead of down.",
}


def check(settings, rules):
    """Raise ValueError where a setting breaks its rule.

    >>> lucid.optim._tensorwise.check({"lr": -1.0}, ("lr",))
    Traceback (most recent call last):
    ValueError: Invalid learning rate: -1.0
    """
    for rule in rules:
        name, (message, holds) = (rule, RULES[rule]) if isinstance(rule, str) else (rule[0], rule[1:])
        value = settings[name]
        if name == "lr" and isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not holds(value):
            raise ValueError(message.format(value))


def check_betas(settings):
    """Two decay rates of running means.

    >>> lucid.optim._tensorwise.check_betas({"betas": (0.9, 1.5)})
    Traceback (most recent call last):
    ValueError: Invalid beta parameter at index 1: 1.5
    """
    for i, beta in enumerate(settings["betas"]):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")


def value_of(x):
    """A setting or count, which may be a tensor, as a Python scalar.

    >>> lucid.optim._tensorwise.value_of(lucid.tensor(0.5)), lucid.optim._tensorwise.value_of(2)
    (0.5, 2)
    """
    return x.item() if isinstance(x, Tensor) else x


def rate_for(params, group):
    """The learning rate as a fused op takes it: a tensor on the device of the parameters is read there.

    >>> lucid.optim._tensorwise.rate_for([lucid.ones(2)], {"lr": lucid.tensor(0.5)})
    tensor(0.5000)
    """
    lr = group["lr"]
    return lr if isinstance(lr, Tensor) and lr.device == params[0].device else value_of(lr)


def in_formula(x, group):
    """A setting as used in a formula: a Python scalar, or the tensor itself if the step is recorded.

    >>> lucid.optim._tensorwise.in_formula(lucid.tensor(0.5), {"differentiable": True})
    tensor(0.5000)
    """
    return x if group.get("differentiable") else value_of(x)


def descend(p, direction, by):
    """p -= by * direction, in place.

    >>> p = lucid.ones(2)
    >>> lucid.optim._tensorwise.descend(p, lucid.ones(2), 0.25); p
    tensor([0.7500, 0.7500])
    """
    if isinstance(by, Tensor):
        p.sub_(direction * by)
    else:
        p.add_(direction, alpha=-by)


def descend_quotient(p, a, b, by):
    """p -= by * a / b, in place.

    >>> p = lucid.ones(2)
    >>> lucid.optim._tensorwise.descend_quotient(p, lucid.ones(2), lucid.full((2,), 2.0), 0.5); p
    tensor([0.7500, 0.7500])
    """
    if isinstance(by, Tensor):
        p.sub_(a / b * by)
    else:
        p.addcdiv_(a, b, value=-by)


def add_product(to, a, b, by):
    """to += by * a * b, in place; returns it.

    >>> lucid.optim._tensorwise.add_product(lucid.zeros(2), lucid.ones(2), lucid.ones(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    return to.add_(a * b * by) if isinstance(by, Tensor) else to.addcmul_(a, b, value=by)


def number_for(p, group, value=0.0):
    """A value per parameter that changes from step to step: a float32 tensor, as PyTorch saves them. With `capturable` or
    `fused` it is on the parameter's device, which then counts by itself.

    >>> lucid.optim._tensorwise.number_for(lucid.ones(2), {"capturable": False})
    tensor(0.)
    """
    return tensor(value, device=p.device if group.get("capturable") or group.get("fused") else "cpu")


def as_reals(t):
    """Complex parameters are updated as pairs of real numbers.

    >>> lucid.optim._tensorwise.as_reals(lucid.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    return view_as_real(t) if t.is_complex() else t


def each(states, name):
    """One value of every state.

    >>> lucid.optim._tensorwise.each([{"step": 1}, {"step": 2}], "step")
    [1, 2]
    """
    return [state[name] for state in states]


def given(names):
    """The settings among the locals() of a constructor.

    >>> lucid.optim._tensorwise.given({"self": None, "params": [], "lr": 0.1})
    {'lr': 0.1}
    """
    return {name: value for name, value in names.items() if name not in ("self", "params", "__class__")}


def _arguments(cls):
    code = cls.__init__.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _documented(cls):
    """The class's docstring with the shared options inserted before the example."""
    names = _arguments(cls)
    text, mark, example = cls.__doc__.partition(">>> ")
    if not mark:
        return text
    indent = text[text.rindex("\n") + 1 :]  # none from Python 3.13 on
    options = "".join(f"{indent}{OPTIONS[n]}\n" for n in OPTIONS if n in names)
    return f"{text.removesuffix(indent)}{options}\n{indent}{mark}{example}"


class Tensorwise(Optimizer):
    """`_start(state, p, group)` initialises the state of a parameter: the count, and the tensors that `_zeros` names. Then
    either all parameters of a group are updated by one call, `_fused(group, params, grads, states)`, which counts the step
    too, or each on its own: `_update(p, grad, state, group)`.

    >>> issubclass(lucid.optim.SGD, lucid.optim._tensorwise.Tensorwise)
    True
    """

    _fused = None
    _checks = _zeros = ()
    _records = True  # takes `differentiable`

    def __init__(self, params, names):
        """names: locals() of the constructor."""
        settings = given(names)
        check(settings, self._checks)
        self._check_more(settings)
        if settings.get("fused"):
            if settings.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if settings.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(params, settings)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__doc__ and "__init__" in cls.__dict__:
            cls.__doc__ = _documented(cls)
            cls._records = "differentiable" in _arguments(cls)

    def _check_more(self, settings):
        """Raise where settings do not go together."""

    def _start(self, state, p, group):
        state["step"] = number_for(p, group)
        for name in self._zeros:
            state[name] = zeros_like(p, memory_format=preserve_format)

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:  # saved by an older version
            for key, value in self.defaults.items():
                if key != "differentiable" or self._records:  # the base class gives it to all
                    group.setdefault(key, value)
            for p in group["params"]:
                own = self.state.get(p)
                if own and "step" in own and not isinstance(own["step"], Tensor):
                    own["step"] = tensor(float(own["step"]), device="cpu")

    @property
    def _step_supports_amp_scaling(self):
        return bool(self.defaults.get("fused"))

    def _scaling(self):
        """What a GradScaler left for this step, as arguments of a fused op."""
        left = self.__dict__
        if "found_inf" not in left:
            return {}
        return {name: left[name] for name in ("grad_scale", "found_inf") if left.get(name) is not None}

    def _states_of(self, params, group):
        states = list(map(self.state.get, params))
        if not all(states):
            for i, p in enumerate(params):
                if not states[i]:
                    states[i] = {}
                    self._start(states[i], p, group)
                    if states[i]:
                        self.state[p] = states[i]
        return states

    def _in_one_call(self, group, params):
        """Whether the parameters are updated together. False for either switch means one by one."""
        get = group.get
        foreach, fused = get("foreach"), get("fused")
        if get("capturable") and not all(_device_can(p)["queue"] and self._counts_with(p) for p in params):
            raise AssertionError("If capturable=True, params and state_steps must be on supported devices: ['cuda'].")
        plain = _takes_fused_steps(params)
        if fused and not plain:
            kinds = ", ".join(sorted({f"{p.dtype} and {p.device.type}" for p in params}))
            raise RuntimeError(
                f"`fused=True` requires all the params to be floating point Tensors of supported devices: ['cpu'] but {kinds}"
            )
        if get("differentiable"):
            if foreach and not self._foreach_records:
                raise AssertionError("_foreach ops don't support autograd")
            return False
        one_call = foreach or fused or (foreach is None and fused is None) or get("capturable")  # the values are the same
        return self._fused is not None and plain and bool(one_call)

    def _counts_with(self, p):
        """Whether the count of a parameter is on its device."""
        count = self.state[p].get("step") if p in self.state else None
        return count is None or count.device == p.device

    _foreach_records = False  # only PyTorch's SGD can do both

    @without_grad
    def step(self):
        """One step; closure: computes the loss again and returns it."""
        found_inf, overflow = self.__dict__.get("found_inf"), None
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            together = self._in_one_call(group, params)
            grads, states = [p.grad for p in params], self._states_of(params, group)
            if found_inf is not None and group.get("fused"):
                overflow = bool(found_inf) if overflow is None else overflow  # asked for once: the host waits
                if overflow:
                    continue  # this step does not count
            if together:
                try:
                    self._fused(group, params, grads, states)
                except NotImplementedError:  # lists with a sparse tensor in them are refused as a whole
                    if not self._any_sparse(grads):
                        raise
                    rest = self._sparse_steps(group, params, grads, states)
                    if rest[0]:
                        self._fused(group, *rest)
            else:
                if self._any_sparse(grads):
                    params, grads, states = self._sparse_steps(group, params, grads, states)
                if states and "step" in states[0]:
                    _foreach_add_(each(states, "step"), 1)
                for p, grad, state in zip(params, grads, states):
                    self._one(p, -grad if group.get("maximize") else grad, state, group)

    @staticmethod
    def _any_sparse(grads):
        return any(g.layout != strided for g in grads)

    def _sparse_steps(self, group, params, grads, states):
        """Update the parameters with sparse gradients; the others come back."""
        rest = []
        for p, grad, state in zip(params, grads, states):
            if grad.layout == strided:
                rest.append((p, grad, state))
                continue
            if self._update_rows is None:
                raise RuntimeError(
                    f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam instead"
                )
            if group.get("differentiable"):
                raise RuntimeError("differentiable=True does not go with sparse gradients")
            if "step" in state:
                state["step"] += 1
            self._update_rows(p, -grad if group.get("maximize") else grad, state, group)
        return tuple(map(list, zip(*rest))) if rest else ([], [], [])

    _update_rows = None  # of an optimizer that takes sparse gradients: the same as _update, with one

    def _one(self, p, grad, state, group):
        work = state
        if group.get("differentiable"):  # what the step before saved stays as it was
            work = {k: v.clone() if isinstance(v, Tensor) else v for k, v in state.items()}
        if p.is_complex():
            parts = {k: as_reals(v) if isinstance(v, Tensor) else v for k, v in work.items()}
            self._update(as_reals(p), as_reals(grad), parts, group)
            for key, value in parts.items():  # made by this update
                if isinstance(value, Tensor) and (work[key] is None or value.data_ptr() != work[key].data_ptr()):
                    work[key] = view_as_complex(value) if value.dim() > p.dim() else value
        else:
            self._update(p, grad, work, group)
        if work is not state:
            state.update(work)
