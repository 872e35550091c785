"""Hooks of modules: handles, the hooks that all modules share, and hooks around the backward pass of a module."""

import weakref
from collections import OrderedDict

from ...._C import ModuleBase, Tensor, _grad_enabled, zeros
from ....autograd import Function


class RemovableHandle:
    """The handle of a registered hook: `remove()` removes the hook, and so does the end of a `with` block.

    >>> layer = lucid.nn.Identity()
    >>> with layer.register_forward_hook(lambda module, args, output: output + 1):
    ...     layer(lucid.zeros(2))
    tensor([1., 1.])
    >>> layer(lucid.zeros(2))
    tensor([0., 0.])
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        extra = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)

    def remove(self):
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state):
        def reference(hooks):
            return weakref.ref(OrderedDict() if hooks is None else hooks)

        self.hooks_dict_ref, self.id = reference(state[0]), state[1]
        self.extra_dict_ref = tuple(reference(d) for d in state[2]) if len(state) > 2 else ()
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self):
        return self

    def __exit__(self, type, value, tb):  # noqa: A002
        self.remove()


def add_hook(hooks, hook, prepend=False, **marks):
    """Add a hook to a dict; marks: further dicts that get its id, or None.

    >>> from collections import OrderedDict
    >>> from lucid.nn.modules._base.hooks import add_hook
    >>> hooks = OrderedDict()
    >>> handle = add_hook(hooks, print); len(hooks)
    1
    """
    handle = RemovableHandle(hooks, extra_dict=[d for d in marks.values() if d is not None])
    hooks[handle.id] = hook
    for d in marks.values():
        if d is not None:
            d[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


# --- of all modules ---------------------------------------------------------------------------------------------------
global_forward_hooks = OrderedDict()
global_forward_hooks_with_kwargs = OrderedDict()
global_forward_hooks_always_called = OrderedDict()
global_forward_pre_hooks = OrderedDict()
global_backward_hooks = OrderedDict()
global_backward_pre_hooks = OrderedDict()
global_module_registration_hooks = OrderedDict()
global_parameter_registration_hooks = OrderedDict()
global_buffer_registration_hooks = OrderedDict()
global_load_state_dict_pre_hooks = OrderedDict()
global_load_state_dict_post_hooks = OrderedDict()
for _hooks in (global_forward_hooks, global_forward_pre_hooks, global_backward_hooks, global_backward_pre_hooks):
    ModuleBase._note_global_hooks(_hooks)


def any_global():
    """Whether calls of all modules are watched.

    >>> from lucid.nn.modules._base.hooks import any_global
    >>> with lucid.nn.register_module_forward_hook(print):
    ...     any_global()
    True
    """
    return bool(global_forward_hooks or global_forward_pre_hooks or any_global_backward())


def any_global_backward():
    """Whether gradients of all modules are watched.

    >>> from lucid.nn.modules._base.hooks import any_global_backward
    >>> any_global_backward()
    False
    """
    return bool(global_backward_hooks or global_backward_pre_hooks)


def register_module_forward_pre_hook(hook):
    """Call hook(module, args) before the forward of every module; what it returns replaces the arguments.

    >>> with lucid.nn.register_module_forward_pre_hook(lambda module, args: (args[0] + 1,)):
    ...     lucid.nn.Identity()(1)
    2
    """
    return add_hook(global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call hook(module, args, output) after the forward of every module; what it returns replaces the output.

    >>> seen = []
    >>> with lucid.nn.register_module_forward_hook(lambda module, args, output: seen.append(type(module).__name__)):
    ...     _ = lucid.nn.Sequential(lucid.nn.Identity())(lucid.zeros(1))
    >>> seen
    ['Identity', 'Sequential']
    """
    return add_hook(
        global_forward_hooks,
        hook,
        with_kwargs=global_forward_hooks_with_kwargs if with_kwargs else None,
        always_call=global_forward_hooks_always_called if always_call else None,
    )


def register_module_full_backward_pre_hook(hook):
    """Call hook(module, grad_output) before the gradients of every module; what it returns replaces them.

    >>> x = lucid.ones(1, requires_grad=True)
    >>> with lucid.nn.register_module_full_backward_pre_hook(lambda module, grads: (grads[0] * 2,)):
    ...     lucid.nn.Identity()(x).backward()
    >>> x.grad
    tensor([2.])
    """
    return add_hook(global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call hook(module, grad_input, grad_output) after the gradients of every module's inputs.

    >>> x = lucid.ones(1, requires_grad=True)
    >>> with lucid.nn.register_module_full_backward_hook(lambda module, grads, out: (grads[0] * 3,)):
    ...     lucid.nn.Identity()(x).backward()
    >>> x.grad
    tensor([3.])
    """
    return add_hook(global_backward_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call hook(module, name, submodule) whenever a module becomes part of another; what it returns takes its place.

    >>> with lucid.nn.register_module_module_registration_hook(lambda module, name, inner: print(name)):
    ...     _ = lucid.nn.Sequential(lucid.nn.ReLU())
    0
    """
    return add_hook(global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call hook(module, name, parameter) whenever a module gets a parameter; what it returns takes its place.

    >>> with lucid.nn.register_module_parameter_registration_hook(lambda module, name, parameter: print(name)):
    ...     _ = lucid.nn.PReLU()
    weight
    """
    return add_hook(global_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook):
    """Call hook(module, name, buffer) whenever a module gets a buffer; what it returns takes its place.

    >>> with lucid.nn.register_module_buffer_registration_hook(lambda module, name, buffer: print(name)):
    ...     lucid.nn.Module().register_buffer("seen", lucid.zeros(1))
    seen
    """
    return add_hook(global_buffer_registration_hooks, hook)


def register_module_load_state_dict_pre_hook(hook):
    """Call hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors) before any module loads.

    >>> with lucid.nn.register_module_load_state_dict_pre_hook(lambda module, state, *rest: print(list(state))):
    ...     lucid.nn.PReLU().load_state_dict({"weight": lucid.ones(1)})
    ['weight']
    <All keys matched successfully>
    """
    return add_hook(global_load_state_dict_pre_hooks, hook)


def register_module_load_state_dict_post_hook(hook):
    """Call hook(module, incompatible_keys) after any module was loaded.

    >>> with lucid.nn.register_module_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear()):
    ...     lucid.nn.PReLU().load_state_dict({})
    <All keys matched successfully>
    """
    return add_hook(global_load_state_dict_post_hooks, hook)


# --- around the backward pass -----------------------------------------------------------------------------------------
class _Passing(Function):
    """The identity of several tensors: its node is where a module's gradients can be seen."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return grads


class BackwardHook:
    """Runs the backward hooks of one call of a module: inputs and outputs pass through nodes of its own.

    >>> from lucid.nn.modules._base.hooks import BackwardHook
    >>> hook = BackwardHook(None, [lambda module, grads, out: print(grads)], [])
    >>> (x,) = hook.setup_input_hook((lucid.ones(1, requires_grad=True),))
    >>> hook.setup_output_hook(x * 2).backward()
    (tensor([2.]),)
    """

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = None
        self.n_inputs = self.n_outputs = -1
        self.inputs_at = self.outputs_at = None

    @staticmethod
    def _watched(values, watch):
        """The values with its tensors passed through a node, and their positions; None if there are none to watch."""
        at = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        if not at or not _grad_enabled() or not any(values[i].requires_grad for i in at):
            return values, None
        passed = _Passing.apply(*[values[i] for i in at])
        watch(next(t.grad_fn for t in passed if t.grad_fn is not None))
        values = list(values)
        for i, t in zip(at, passed):
            values[i] = t
        return tuple(values), at

    @staticmethod
    def _placed(grads, at, n):
        placed = [None] * n
        for i, g in zip(at, grads):
            placed[i] = g
        return tuple(placed)

    def _replaced(self, kind, result, n):
        if not isinstance(result, tuple):
            result = (result,)
        if len(result) != n:
            raise RuntimeError(f"Backward {kind} returned an invalid number of gradients: got {len(result)}, expected {n}")
        return result

    def setup_input_hook(self, args):
        def after(grad_inputs, _):
            if self.grad_outputs is None:  # no gradient came through the outputs of this call
                return None
            grad_inputs = [
                zeros(like, device=device, dtype=dtype) if g is None else g
                for g, (like, dtype, device) in zip(grad_inputs, kinds)
            ]
            grads = self._placed(grad_inputs, self.inputs_at, self.n_inputs)
            for hook in self.hooks:
                result = hook(self.module, grads, self.grad_outputs)
                if result is not None:
                    grads = self._replaced("hook", result, self.n_inputs)
            self.grad_outputs = None
            return tuple(grads[i] for i in self.inputs_at)

        kinds = [(t.shape, t.dtype, t.device) for t in args if isinstance(t, Tensor)]
        self.n_inputs = len(args)
        args, self.inputs_at = self._watched(args, lambda node: node.register_hook(after))
        return args

    def setup_output_hook(self, output):
        def before(_, grad_outputs):
            grads = self._placed(grad_outputs, self.outputs_at, self.n_outputs)
            for hook in self.pre_hooks:
                result = hook(self.module, grads)
                if result is not None:
                    grads = self._replaced("pre hook", result, self.n_outputs)
            self.grad_outputs = grads
            if self.inputs_at is None:  # no input asks for a gradient: the hooks run here, and cannot change anything
                nothing = (None,) * self.n_inputs
                for hook in self.hooks:
                    result = hook(self.module, nothing, grads)
                    if result is not None and not (isinstance(result, tuple) and all(r is None for r in result)):
                        raise RuntimeError(
                            "Backward hook for Modules where no input requires gradient should always return None or None for "
                            "all gradients."
                        )
                self.grad_outputs = None
            return tuple(grads[i] for i in self.outputs_at) if self.pre_hooks else None

        single = not isinstance(output, tuple)
        values = (output,) if single else output
        self.n_outputs = len(values)
        values, self.outputs_at = self._watched(values, lambda node: node.register_hook(before))
        return values[0] if single else values


__all__ = [
    "RemovableHandle",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_load_state_dict_post_hook",
    "register_module_load_state_dict_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
