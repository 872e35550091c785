"""Modules whose activations are computed again in backward: `checkpoint_wrapper`."""

from enum import Enum, auto
from functools import partial

from ..nn.modules.module import Module
from ..utils.checkpoint import checkpoint

_PREFIX = "_checkpoint_wrapped_module."


class CheckpointImpl(Enum):
    """Which kind of checkpoint.

    >>> lucid.distributed._checkpointed.CheckpointImpl.NO_REENTRANT.name
    'NO_REENTRANT'
    """

    REENTRANT = auto()
    NO_REENTRANT = auto()


class CheckpointWrapper(Module):
    """A module that keeps its inputs and computes the rest again in backward; state dicts have the module's own names.

    >>> layer = lucid.distributed._checkpointed.checkpoint_wrapper(lucid.nn.Linear(1, 1))
    >>> list(layer.state_dict())
    ['weight', 'bias']
    """

    def __init__(self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **settings):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        reentrant = checkpoint_impl == CheckpointImpl.REENTRANT
        self.checkpoint_fn = partial(checkpoint_fn or partial(checkpoint, use_reentrant=reentrant), **settings)
        self._register_state_dict_hook(self._without_prefix)
        self.register_load_state_dict_pre_hook(self._with_prefix)

    @staticmethod
    def _without_prefix(module, state, prefix, *args):
        for name in [n for n in state if n.startswith(prefix + _PREFIX)]:
            state[prefix + name[len(prefix + _PREFIX) :]] = state.pop(name)
        return state

    @staticmethod
    def _with_prefix(module, state, prefix, *args):
        for name in [n for n in state if n.startswith(prefix) and not n.startswith(prefix + _PREFIX)]:
            state[prefix + _PREFIX + name[len(prefix) :]] = state.pop(name)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["_checkpoint_wrapped_module"], name)

    def named_parameters(self, *args, **kwargs):
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), parameter

    def forward(self, *args, **kwargs):
        """Call the module under a checkpoint."""
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)


def checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **settings):
    """Wrap a module.

    >>> layer = lucid.distributed._checkpointed.checkpoint_wrapper(lucid.nn.Linear(1, 1))
    >>> layer(lucid.ones(1, 1)).sum().backward()
    >>> layer.weight.grad
    tensor([[1.]])
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **settings)


def offload_wrapper(module):
    """Keep activations in CPU memory, where they are.

    >>> layer = lucid.nn.Linear(1, 1)
    >>> lucid.distributed._checkpointed.offload_wrapper(layer) is layer
    True
    """
    return module


def apply_activation_checkpointing(
    model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda module: True, auto_wrap_policy=None
):
    """Wrap every module of a model that `check_fn` chooses.

    >>> model = lucid.nn.Sequential(lucid.nn.Linear(1, 1), lucid.nn.ReLU())
    >>> lucid.distributed._checkpointed.apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, lucid.nn.Linear))
    >>> type(model[0]).__name__
    'CheckpointWrapper'
    """
    if auto_wrap_policy is not None:
        raise NotImplementedError("apply_activation_checkpointing: auto_wrap_policy is not supported; use check_fn")
    for name, child in list(model.named_children()):
        apply_activation_checkpointing(child, checkpoint_wrapper_fn, check_fn)
        if check_fn(child):
            setattr(model, name, checkpoint_wrapper_fn(child))
