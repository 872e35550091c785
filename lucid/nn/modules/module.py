"""`Module`: the base class of everything that has parameters. Calls and attributes are in C (bindings/py_module.c)."""

import itertools
from collections import OrderedDict

from ... import _C
from ..._C import Tensor, _set_grad_enabled
from ..parameter import Buffer, Parameter, is_lazy
from ._base import hooks as _hooks
from ._base.hooks import *  # noqa: F403 (PyTorch has them here)
from ._base.hooks import BackwardHook, add_hook
from ._base.state import StateDict

_MEMBERS = ("_parameters", "_buffers", "_modules")
_HOOKS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _addindent(text, n):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * n + line for line in rest)])


def _forward_unimplemented(self, *args, **kwargs):
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class _CallSignature:
    """`inspect.signature(module)` is that of any call; that of a class is its constructor's."""

    def __get__(self, instance, owner):
        if instance is None:
            raise AttributeError("__signature__")
        from inspect import Parameter, Signature

        return Signature([Parameter("args", Parameter.VAR_POSITIONAL), Parameter("kwargs", Parameter.VAR_KEYWORD)])


class Module(StateDict):
    """The base class of all layers and models.

    Parameters, buffers and modules that are set as attributes are registered: they move, train and save together.

    >>> class Model(lucid.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = lucid.nn.Linear(2, 1, bias=False)
    ...     def forward(self, x):
    ...         return self.layer(x).relu()
    >>> model = Model()
    >>> model
    Model(
      (layer): Linear(in_features=2, out_features=1, bias=False)
    )
    >>> [name for name, _ in model.named_parameters()]
    ['layer.weight']
    >>> tuple(model(lucid.ones(5, 2)).shape)
    (5, 1)
    """

    __signature__ = _CallSignature()
    dump_patches = False
    call_super_init = False
    _is_full_backward_hook = None  # which kind of backward hooks there are: old and new ones do not mix
    training: bool
    __setattr__ = _C.ModuleBase.__setattr__
    __delattr__ = _C.ModuleBase.__delattr__

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        state = self.__dict__
        state["training"] = True
        for name in _MEMBERS:
            state[name] = {}
        state["_non_persistent_buffers_set"] = set()
        for name in _HOOKS:
            state[name] = OrderedDict()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward = _forward_unimplemented

    # --- members ------------------------------------------------------------------------------------------------------
    def _check_name(self, kind, name, members):
        if members not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: "{name}"')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in self.__dict__[members]:
            raise KeyError(f"attribute '{name}' already exists")

    @staticmethod
    def _as_registered(hooks, module, name, value):
        for hook in hooks.values():
            result = hook(module, name, value)
            if result is not None:
                value = result
        return value

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that is part of the state but not trained; persistent: it is saved too."""
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"cannot assign '{type(tensor)}' object to buffer '{name}' (lucid Tensor or None required)")
        self._buffers[name] = self._as_registered(_hooks.global_buffer_registration_hooks, self, name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def register_parameter(self, name, param):
        """Add a parameter, or the name of one that may be missing (None)."""
        self._check_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{type(param)}' object to parameter '{name}' (lucid.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = self._as_registered(_hooks.global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def add_module(self, name, module):
        """Add a module under a name, as setting an attribute does."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{type(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {type(name)}")
        self._check_name("module", name, "_modules")
        self._modules[name] = self._as_registered(_hooks.global_module_registration_hooks, self, name, module)

    def register_module(self, name, module):
        """The same as `add_module`."""
        self.add_module(name, module)

    def _assign(self, name, value):
        """Set an attribute to a tensor or module, or one that already is a parameter, buffer or module."""
        state = self.__dict__
        parameters, buffers, modules = (state.get(members) for members in _MEMBERS)

        def take_from(*places):
            for place in places:
                if place is not None and place.pop(name, None) is not None and place is buffers:
                    state["_non_persistent_buffers_set"].discard(name)

        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            take_from(state, buffers, modules)
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{type(value)}' as parameter '{name}' (lucid.nn.Parameter or None expected)")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            take_from(state, parameters, buffers)
            modules[name] = self._as_registered(_hooks.global_module_registration_hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(f"cannot assign '{type(value)}' as child module '{name}' (lucid.nn.Module or None expected)")
            modules[name] = self._as_registered(_hooks.global_module_registration_hooks, self, name, value)
        elif isinstance(value, Buffer) and buffers is not None:
            take_from(state, parameters, modules)
            self.register_buffer(name, value, value.persistent)
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{type(value)}' as buffer '{name}' (lucid.Tensor or None expected)")
            buffers[name] = self._as_registered(_hooks.global_buffer_registration_hooks, self, name, value)
        else:
            self._set_plain(name, value)

    def _at(self, target):
        """The module that owns a dotted name, and the last part of it."""
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        return owner, name, getattr(owner, name)

    def get_submodule(self, target):
        """The module at a dotted name; the empty name is the module itself."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put a module at a dotted name; strict: one must be there already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if strict and not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`")
        if hasattr(owner, name) and not isinstance(getattr(owner, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(owner, name, module)

    def get_parameter(self, target):
        """The parameter at a dotted name."""
        _, name, value = self._at(target)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target):
        """The buffer at a dotted name."""
        owner, name, value = self._at(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return value

    # --- all members at once --------------------------------------------------------------------------------------------
    def _apply(self, fn, recurse=True):
        if recurse:
            for module in self.children():
                module._apply(fn)

        def replaced(old):
            before = _set_grad_enabled(False)
            try:
                return fn(old)
            finally:
                _set_grad_enabled(before)

        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            new, grad = replaced(parameter), parameter.grad
            holds = new is not parameter and new.is_meta == parameter.is_meta and not is_lazy(parameter)
            if (
                holds
            ):  # the parameter stays the same object, on another device too: optimizers and shared layers keep hold of it
                parameter.data = new
            elif new is not parameter:
                self._parameters[name] = new = new if is_lazy(new) else type(parameter)(new, parameter.requires_grad)
            if grad is not None:
                new_grad = replaced(grad)
                if holds or new is parameter:
                    grad.data = new_grad
                else:
                    new.grad = new_grad.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn):
        """Call fn with every module, the innermost first. Returns the module.

        >>> model = lucid.nn.Sequential(lucid.nn.Linear(2, 2)).apply(lambda m: print(type(m).__name__))
        Linear
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def cuda(self, device=None):
        """Move everything to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None):
        """For an Intel GPU, which Lucid does not drive: raises where there is something to move."""
        return self._apply(lambda t: t.to("xpu" if device is None else device))

    def ipu(self, device=None):
        """For a Graphcore IPU, which Lucid does not drive: raises where there is something to move."""
        return self._apply(lambda t: t.to("ipu" if device is None else device))

    def mtia(self, device=None):
        """For an MTIA device, which Lucid does not drive: raises where there is something to move."""
        return self._apply(lambda t: t.to("mtia" if device is None else device))

    def compile(self, *, fullgraph=False, dynamic=None, backend="lucid", mode=None, options=None, disable=False):  # noqa: A003
        """Compile forward in place: see `lucid.compile`. Returns the module.

        >>> net = lucid.nn.Linear(2, 1).compile()
        >>> net(lucid.ones(3, 2)).shape
        lucid.Size([3, 1])
        """
        from ..._compile import check_options
        from ..._compile.module import compile_in_place

        kept = check_options(dynamic, backend, mode, options)
        return self if disable else compile_in_place(self, fullgraph=fullgraph, **kept)

    def cpu(self):
        """Move everything to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type):  # noqa: A003
        """Cast all parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast(self, dtype):
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self):  # noqa: A003
        """Cast floating parameters and buffers to float32."""
        return self._cast(_C.float32)

    def double(self):
        """Cast floating parameters and buffers to float64."""
        return self._cast(_C.float64)

    def half(self):
        """Cast floating parameters and buffers to float16."""
        return self._cast(_C.float16)

    def bfloat16(self):
        """Cast floating parameters and buffers to bfloat16."""
        return self._cast(_C.bfloat16)

    def to_empty(self, *, device, recurse=True):
        """Move to a device without values: for modules made on `meta`."""
        return self._apply(lambda t: _C.empty_like(t, device=device), recurse=recurse)

    def to(self, *args, **kwargs):
        """Move or cast parameters and buffers: to(device), to(dtype), to(tensor), to(memory_format=...).

        >>> lucid.nn.Linear(2, 2).to(lucid.float64).weight.dtype
        lucid.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

        def convert(t):
            casts = dtype is not None and (t.is_floating_point() or t.is_complex())
            options = {"memory_format": memory_format} if memory_format is not None and t.ndim in (4, 5) else {}
            return t.to(device or t.device, dtype if casts else t.dtype, non_blocking, **options)

        return self._apply(convert)

    def share_memory(self):
        """Move everything into memory that other processes can use."""
        return self._apply(lambda t: t.share_memory_())

    def train(self, mode=True):
        """Set training mode (or not) here and in all modules inside."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):  # noqa: A003
        """Leave training mode: the same as `train(False)`."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Record gradients of the parameters, or stop."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Reset the gradients of all parameters to None; set_to_none=False fills them with zeros."""
        for p in self.parameters():
            if p.grad is not None:
                if set_to_none:
                    p.grad = None
                else:
                    (p.grad.detach_ if p.grad.grad_fn is not None else lambda p=p: p.grad.requires_grad_(False))()
                    p.grad.zero_()

    # --- walks --------------------------------------------------------------------------------------------------------
    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        for path, module in (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        ):
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Parameters with their dotted names; shared ones once."""
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """All parameters, shared ones once."""
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Buffers with their dotted names; shared ones once."""
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """All buffers, shared ones once."""
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def named_children(self):
        """Modules directly inside, with their names; shared ones once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """Modules directly inside; shared ones once."""
        for _, module in self.named_children():
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """The module and all inside it, with dotted names; shared ones once."""
        memo = set() if memo is None else memo
        pending = [(prefix, self)]
        while pending:
            path, module = pending.pop()
            if module in memo:
                continue
            if module is not self and type(module).named_modules is not Module.named_modules:
                yield from module.named_modules(memo, path, remove_duplicate)
                continue
            if remove_duplicate:
                memo.add(module)
            yield path, module
            if module._modules:
                start = path + "." if path else ""
                pending += [(start + name, inner) for name, inner in reversed(module._modules.items()) if inner is not None]

    def modules(self, remove_duplicate=True):
        """The module and all inside it; shared ones once, or as often as they are used."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # --- hooks --------------------------------------------------------------------------------------------------------
    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call hook(module, args) before forward; what it returns replaces the arguments."""
        marks = self._forward_pre_hooks_with_kwargs if with_kwargs else None
        return add_hook(self._forward_pre_hooks, hook, prepend, with_kwargs=marks)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call hook(module, args, output) after forward; what it returns replaces the output.

        with_kwargs: hook(module, args, kwargs, output). always_call: also when forward raised.
        """
        return add_hook(
            self._forward_hooks,
            hook,
            prepend,
            with_kwargs=self._forward_hooks_with_kwargs if with_kwargs else None,
            always_call=self._forward_hooks_always_called if always_call else None,
        )

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call hook(module, grad_output) before the module's gradients; what it returns replaces grad_output."""
        return add_hook(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call hook(module, grad_input, grad_output) after the gradients of the inputs; what it returns replaces grad_input.

        >>> layer = lucid.nn.Identity()
        >>> _ = layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
        >>> x = lucid.ones(2, requires_grad=True)
        >>> layer(x).sum().backward(); x.grad
        tensor([10., 10.])
        """
        return self._add_backward_hook(hook, prepend, True)

    def register_backward_hook(self, hook):
        """PyTorch's old form, which sees the gradients of all inputs here; not together with `register_full_backward_hook`."""
        return self._add_backward_hook(hook, False, False)

    def _add_backward_hook(self, hook, prepend, full):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of "
                "them."
            )
        self._is_full_backward_hook = full
        return add_hook(self._backward_hooks, hook, prepend)

    def _call_with_hooks(self, *args, **kwargs):
        if self._forward_hooks_always_called or _hooks.global_forward_hooks_always_called:
            return self._call_always_hooks(args, kwargs)
        return self._call_between_hooks(args, kwargs, self._forward_hook_list(), None)

    def _call_between_hooks(self, args, kwargs, hooks, progress):
        """forward with what comes before and after it; progress: notes what a hook after an error is given."""
        if _hooks.global_forward_pre_hooks or self._forward_pre_hooks:
            args, kwargs = self._run_pre_hooks(args, kwargs, progress)
        backward = self._backward_hook()
        if backward is not None:
            args = backward.setup_input_hook(args)
        if progress is not None:
            progress.update(args=args, kwargs=kwargs)
        result = self.forward(*args, **kwargs)
        for number, hook, with_kwargs in hooks:
            if progress is not None:
                progress["called"].add(number)
                progress["result"] = result
            new = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if new is not None:
                result = new
        return result if backward is None else backward.setup_output_hook(result)

    def _call_always_hooks(self, args, kwargs):
        """The same where some hooks are called even if forward raises."""
        at, hooks = {"args": args, "kwargs": kwargs, "called": set(), "result": None}, self._forward_hook_list()
        try:
            return self._call_between_hooks(args, kwargs, hooks, at)
        except Exception:
            result, for_all = at["result"], _hooks.global_forward_hooks_always_called
            for number, hook, with_kwargs in hooks:
                if number in at["called"] or not (number in for_all or number in self._forward_hooks_always_called):
                    continue
                try:  # PyTorch passes no kwargs to a hook of all modules now
                    given = (
                        (at["args"], at["kwargs"], result) if with_kwargs and number not in for_all else (at["args"], result)
                    )
                    new = hook(self, *given)
                    result = result if new is None else new
                except Exception as error:
                    import warnings

                    warnings.warn(
                        f"{'global ' if number in for_all else ''}module forward hook with ``always_call=True`` raised an "
                        f"exception that was silenced as another error was raised in forward: {error}",
                        stacklevel=2,
                    )
            raise

    def _forward_hook_list(self):
        marked = self._forward_hooks_with_kwargs
        own = [(number, hook, number in marked) for number, hook in self._forward_hooks.items()]
        if not _hooks.global_forward_hooks:
            return own
        marked = _hooks.global_forward_hooks_with_kwargs
        return [(number, hook, number in marked) for number, hook in _hooks.global_forward_hooks.items()] + own

    def _run_pre_hooks(self, args, kwargs, progress):
        for number, hook in [*_hooks.global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()]:
            if number in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not isinstance(result, tuple) or len(result) != 2:
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
            if progress is not None:
                progress.update(args=args, kwargs=kwargs)
        return args, kwargs

    def _backward_hook(self):
        if not (self._backward_hooks or self._backward_pre_hooks or _hooks.any_global_backward()):
            return None
        hooks = [*_hooks.global_backward_hooks.values(), *self._backward_hooks.values()]
        pre_hooks = [*_hooks.global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        return BackwardHook(self, hooks, pre_hooks)

    # --- the object ---------------------------------------------------------------------------------------------------
    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _HOOKS:  # saved by an older version
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What `repr` says about a module besides its name; to be overridden."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        inner = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if len(lines) == 1 and not inner:
            return f"{self._get_name()}({lines[0]})"
        body = "\n  ".join(lines + inner)
        return f"{self._get_name()}(\n  {body}\n)" if body else f"{self._get_name()}()"

    def __dir__(self):
        names = itertools.chain(dir(type(self)), self.__dict__, self._parameters, self._modules, self._buffers)
        return sorted({name for name in names if not name[:1].isdigit()})


def _parse_to(*args, **kwargs):
    """The arguments of `to`: (device, dtype, non_blocking, memory_format)."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    non_blocking, memory_format = kwargs.pop("non_blocking", False), kwargs.pop("memory_format", None)
    copy = kwargs.pop("copy", False)
    if "tensor" in kwargs:
        args = (kwargs.pop("tensor"), *args)
    if "other" in kwargs:
        args = (kwargs.pop("other"), *args)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        like = rest.pop(0)
        device, dtype = like.device, like.dtype
    else:
        if rest and not isinstance(rest[0], (_C.dtype, bool)):
            device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], _C.dtype)):
            dtype = rest.pop(0)
    if rest:
        non_blocking = rest.pop(0)
    if rest:
        copy = rest.pop(0)
    if rest or copy and not isinstance(copy, bool):
        raise TypeError("to() received an invalid combination of arguments")
    return device if device is None else _C.device(device), dtype, non_blocking, memory_format


__all__ = ["Module", *_hooks.__all__]
