"""State dicts: saving and loading modules, in PyTorch's format."""

from collections import OrderedDict, namedtuple

from ...._C import ModuleBase, Tensor, _set_grad_enabled, as_tensor
from ...parameter import Parameter, is_lazy
from . import hooks

EXTRA_STATE_KEY = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns: keys the module has and the dict lacks, and the other way round.

    >>> lucid.nn.PReLU().load_state_dict({}, strict=False)
    _IncompatibleKeys(missing_keys=['weight'], unexpected_keys=[])
    """

    __slots__ = ()

    def __repr__(self):
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


def _swap_in(module, name, own, given, assign):
    """Load one value of a module from a state dict: copy it, or assign the tensor itself."""
    if not assign:
        before = _set_grad_enabled(False)
        try:
            own.copy_(given)
        finally:
            _set_grad_enabled(before)
        return
    if isinstance(own, Parameter):
        if not isinstance(given, Parameter):
            given = Parameter(given, requires_grad=own.requires_grad)
        else:
            given.requires_grad_(own.requires_grad)
    setattr(module, name, given)


class StateDict(ModuleBase):
    """The part of nn.Module that saves and loads.

    >>> from lucid.nn.modules._base.state import StateDict
    >>> issubclass(lucid.nn.Module, StateDict)
    True
    """

    _version = 1
    # so that super(nn.Module, self).__setattr__ sets a plain attribute, as where Module has no base but object
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__

    def get_extra_state(self):
        """State of a module besides parameters and buffers; define it together with `set_extra_state`."""
        raise RuntimeError(f"get_extra_state() is not defined by {type(self).__name__}, which is needed here")

    def set_extra_state(self, state):
        """Restore the result of `get_extra_state`."""
        raise RuntimeError(f"set_extra_state() is not defined by {type(self).__name__}, which is needed here")

    # --- hooks --------------------------------------------------------------------------------------------------------
    def register_state_dict_post_hook(self, hook):
        """Call hook(module, state_dict, prefix, local_metadata) when a state dict was made; it may change the dict."""
        hook._from_public_api = True
        return hooks.add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("this hook was registered with register_state_dict_post_hook already")
        return hooks.add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call hook(module, prefix, keep_vars) before a state dict is made."""
        return hooks.add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        if with_module:
            plain, module = hook, self

            def hook(*args):
                plain(module, *args)

        return hooks.add_hook(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Call hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors) before loading."""
        return hooks.add_hook(self._load_state_dict_pre_hooks, _WithModule(hook, self))

    def register_load_state_dict_post_hook(self, hook):
        """Call hook(module, incompatible_keys) after loading; it may change the lists of keys."""
        return hooks.add_hook(self._load_state_dict_post_hooks, hook)

    # --- out ----------------------------------------------------------------------------------------------------------
    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in (*self._parameters.items(), *self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()

    def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
        """All parameters and persistent buffers by name. They share memory with the module's own.

        keep_vars: the parameters themselves; otherwise detached from the graph.

        >>> list(lucid.nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
        """
        if args:  # PyTorch's old order
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    # --- in -----------------------------------------------------------------------------------------------------------
    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        hook_args = (state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        for hook in self._load_state_dict_pre_hooks.values():
            hook(*hook_args)
        for hook in hooks.global_load_state_dict_pre_hooks.values():
            hook(self, *hook_args)
        assign = local_metadata.get("assign_to_params_buffers", False)
        buffers = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        own = {n: v for n, v in (*self._parameters.items(), *buffers.items()) if v is not None}
        for name, value in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            error = self._load_one(name, value, key, state_dict[key], assign)
            if error:
                error_msgs.append(error)
        extra_key = prefix + EXTRA_STATE_KEY
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra_key:
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if first not in (self._modules if dot else own):
                        unexpected_keys.append(key)

    def _load_one(self, name, own, key, given, assign):
        """Load one value; returns what went wrong, or None."""
        if not isinstance(given, Tensor) and (hasattr(type(given), "__dlpack__") or hasattr(type(given), "__array__")):
            given = as_tensor(given)
        if not isinstance(given, Tensor):
            return (
                f'While copying the parameter named "{key}", expected lucid.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
        if not is_lazy(own):
            if given.ndim == 1 and own.ndim == 0 and len(given) == 1:  # written by old versions of PyTorch
                given = given[0]
            if given.shape != own.shape:
                return (
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                    f"current model is {own.shape}."
                )
        if own.is_meta and not given.is_meta and not assign:
            import warnings

            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
                "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
                "corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            _swap_in(self, name, own, given, assign)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {own.size()} and whose '
                f"dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
            )
        return None

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copy values from a state dict into the parameters and buffers.

        strict: the keys must be exactly this module's. assign: take the tensors themselves instead of copying their values.
        Returns the missing and the unexpected keys.

        >>> a, b = lucid.nn.Linear(2, 3), lucid.nn.Linear(2, 3)
        >>> b.load_state_dict(a.state_dict())
        <All keys matched successfully>
        """
        from collections.abc import Mapping

        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing, unexpected, errors = [], [], []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata

        def load(module, local_state, prefix):
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            module._load_from_state_dict(local_state, prefix, local_metadata, True, missing, unexpected, errors)
            if module._modules:
                parts = {name: {} for name in module._modules}
                for key, value in local_state.items():
                    first, dot, _ = key[len(prefix) :].partition(".")
                    if dot and first in parts:
                        parts[first][key] = value
                for name, child in module._modules.items():
                    if child is not None:
                        load(child, parts[name], f"{prefix}{name}.")
            incompatible = _IncompatibleKeys(missing, unexpected)
            for hook in (
                *module._load_state_dict_post_hooks.values(),
                *hooks.global_load_state_dict_post_hooks.values(),
            ):
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "hooks registered with register_load_state_dict_post_hook must not return new values: change the "
                        "incompatible_keys they are given"
                    )

        load(self, state_dict, "")
        if strict:
            for keys, kind in ((unexpected, "Unexpected"), (missing, "Missing")):
                if keys:
                    listed = ", ".join(f'"{k}"' for k in keys)
                    errors.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)


class _WithModule:
    """A load hook that is given its module first; a weak reference, so that the module's own dict holds no cycle."""

    def __init__(self, hook, module):
        import weakref

        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args):
        return self.hook(self.module(), *args)

    def __getstate__(self):
        return {"hook": self.hook, "module": self.module()}

    def __setstate__(self, state):
        import weakref

        self.hook, self.module = state["hook"], weakref.ref(state["module"])
