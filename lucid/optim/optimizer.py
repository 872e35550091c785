"""The base class of optimizers: parameter groups, state, saving and loading, hooks."""

import functools
from collections import OrderedDict, defaultdict
from copy import deepcopy
from itertools import chain
from types import MappingProxyType

from .._C import Tensor, _set_grad_enabled, as_tensor
from ..autograd import enable_grad
from ..nn.modules._base.hooks import add_hook


class _Required:
    def __repr__(self):
        return "<required parameter>"


required = _Required()
_global_step_pre_hooks, _global_step_post_hooks = OrderedDict(), OrderedDict()


def register_optimizer_step_pre_hook(hook):
    """Call hook(optimizer, args, kwargs) before every step of every optimizer.

    >>> p = lucid.zeros(1, requires_grad=True)
    >>> handle = lucid.optim.optimizer.register_optimizer_step_pre_hook(lambda *_: print("before"))
    >>> lucid.optim.SGD([p]).step()
    before
    >>> handle.remove()
    """
    return add_hook(_global_step_pre_hooks, hook)


def register_optimizer_step_post_hook(hook):
    """Call hook(optimizer, args, kwargs) after every step of every optimizer.

    >>> p = lucid.zeros(1, requires_grad=True)
    >>> handle = lucid.optim.optimizer.register_optimizer_step_post_hook(lambda *_: print("after"))
    >>> lucid.optim.SGD([p]).step()
    after
    >>> handle.remove()
    """
    return add_hook(_global_step_post_hooks, hook)


def _with_hooks(step):
    """A step that runs the hooks around it."""

    @functools.wraps(step)
    def stepped(self, *args, **kwargs):
        hooks = _global_step_pre_hooks or self._optimizer_step_pre_hooks
        if not hooks and not self._optimizer_step_post_hooks and not _global_step_post_hooks:
            return step(self, *args, **kwargs)
        args = (self, *args)  # as PyTorch's hooks see them
        for hook in (*_global_step_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not isinstance(result, tuple) or len(result) != 2:
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            args, kwargs = result
        value = step(*args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_step_post_hooks.values()):
            hook(self, args, kwargs)
        return value

    stepped.hooked = True
    return stepped


def without_grad(step):
    """A step that is not recorded, unless the optimizer is differentiable; its closure is.

    >>> class Half(lucid.optim.Optimizer):
    ...     @lucid.optim.optimizer.without_grad
    ...     def step(self):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.mul_(0.5)
    >>> p = lucid.ones(1, requires_grad=True)
    >>> Half([p], {}).step(); p
    tensor([0.5000], requires_grad=True)
    """

    @functools.wraps(step)
    def stepped(self, closure=None):
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        before = _set_grad_enabled(self.defaults.get("differentiable", False))
        try:
            step(self)
        finally:
            _set_grad_enabled(before)
        return loss

    del stepped.__wrapped__  # its signature is another
    return stepped


class Optimizer:
    """The base class of optimizers.

    params: parameters, (name, parameter) pairs, or dicts, each with "params" and settings of its own.

    >>> model = lucid.nn.Linear(2, 1)
    >>> optimizer = lucid.optim.SGD(model.parameters(), lr=0.1)
    >>> model(lucid.ones(4, 2)).sum().backward()
    >>> optimizer.step(); optimizer.zero_grad()
    >>> model.weight.grad is None
    True
    """

    # wrappers of optimizers derive from this class without calling its __init__: they have no hooks
    _optimizer_step_pre_hooks = _optimizer_step_post_hooks = MappingProxyType({})

    def __init__(self, params, defaults):
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            raise TypeError(
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {params.type()}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    profile_hook_step = staticmethod(_with_hooks)  # PyTorch's name for it

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not getattr(step, "hooked", False):
            cls.step = _with_hooks(step)

    def _patch_step_function(self):
        """PyTorch adds hooks to `step` here; they are added when the class is made."""

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
        from .._declared.foreach_groups import _group_tensors_by_device_and_dtype

        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def _make_hooks(self):
        for name in (
            "step_pre",
            "step_post",
            "state_dict_pre",
            "state_dict_post",
            "load_state_dict_pre",
            "load_state_dict_post",
        ):
            self.__dict__.setdefault(f"_optimizer_{name}_hooks", OrderedDict())

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._make_hooks()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        groups = [
            "".join([f"\nParameter Group {i}\n", *(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")])
            for i, group in enumerate(self.param_groups)
        ]
        return f"{type(self).__name__} ({''.join(groups)})"

    # --- hooks --------------------------------------------------------------------------------------------------------
    def register_step_pre_hook(self, hook):
        """Call hook(optimizer, args, kwargs) before every step; it may return new (args, kwargs)."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """Call hook(optimizer, args, kwargs) after every step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend=False):
        """Call hook(optimizer) before a state dict is made."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend=False):
        """Call hook(optimizer, state_dict) when a state dict was made; it may return another."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend=False):
        """Call hook(optimizer, state_dict) before loading; it may return another."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend=False):
        """Call hook(optimizer) after loading."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # --- groups -------------------------------------------------------------------------------------------------------
    def add_param_group(self, param_group):
        """Add parameters with settings of their own: a dict with "params" and settings."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will "
                "change between runs. Please use a list instead."
            )
        params = list(params)
        if len({isinstance(p, tuple) for p in params}) > 1:
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        if params and isinstance(params[0], tuple):
            param_group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        param_group["params"] = params
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
            if not self.defaults.get("differentiable") and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len({id(p) for p in params}):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
                "github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(id(p) for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        named = {"param_names" in group for group in self.param_groups}
        if named and ("param_names" in param_group) not in named:
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if 'param_names' in param_group else 'without'} names to the optimizer"
            )
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none=True):
        """Reset the gradients to None; set_to_none=False fills them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    if p.grad.grad_fn is not None:
                        p.grad.detach_()
                    else:
                        p.grad.requires_grad_(False)
                    p.grad.zero_()

    def step(self, closure=None):
        """One step; closure: computes the loss again and returns it."""
        raise NotImplementedError

    # --- saving -------------------------------------------------------------------------------------------------------
    def state_dict(self):
        """State and settings, with indices instead of parameters: PyTorch's format."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}

        def packed(group):
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            return {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]}

        groups = [packed(group) for group in self.param_groups]
        state = {numbers[id(p)] if isinstance(p, Tensor) else p: v for p, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            result = hook(self, result) or result
        return result

    @staticmethod
    def _as_for(param, value, key, group):
        """A value of the state as this parameter needs it: float state has its dtype and device, counts stay what they are."""
        if key == "step":
            return value.to(device=param.device) if group.get("capturable") or group.get("fused") else value
        return value.to(dtype=param.dtype, device=param.device) if param.is_floating_point() else value.to(device=param.device)

    def load_state_dict(self, state_dict):
        """Load state and settings of an optimizer with the same groups, also from PyTorch's state dicts."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            state_dict = hook(self, state_dict) or state_dict
        saved, own = deepcopy(state_dict["param_groups"]), self.param_groups
        if len(own) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(own, saved)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        numbers = chain.from_iterable(group["params"] for group in saved)
        params = [(p, new) for old, new in zip(own, saved) for p in old["params"]]
        by_number = dict(zip(numbers, params))

        def cast(param, group, value, key=None):
            if not isinstance(value, Tensor) and hasattr(type(value), "__dlpack__"):  # another library's
                value = as_tensor(value).clone()
            if isinstance(value, Tensor):
                return self._as_for(param, value, key, group)
            if isinstance(value, dict):
                return {k: cast(param, group, v, k) for k, v in value.items()}
            if isinstance(value, (list, tuple)) and not isinstance(value, str):
                return type(value)(cast(param, group, v, key) for v in value)
            return value

        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                param, group = by_number[key]
                state[param] = cast(param, group, value)
            else:
                state[key] = value
        groups = []
        for old, new in zip(own, saved):
            new["params"] = old["params"]
            if "param_names" in old and "param_names" not in new:
                new["param_names"] = old["param_names"]
            groups.append(new)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


__all__ = [
    "Optimizer",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]
