"""Modules as functions of their parameters, by the names of functorch; `functional_call` and `stack_module_state` are newer.

>>> f, parameters = make_functional(lucid.nn.PReLU())
>>> f(parameters, lucid.tensor([-1.0, 1.0])).shape
lucid.Size([2])
"""

from copy import deepcopy

from .. import _C
from ..nn import Module
from ..nn.utils.stateless import call_with

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


class FunctionalModuleWithBuffers(Module):
    """A module without values of its own: call it with a tuple of parameters and one of buffers, then the inputs.

    >>> f, parameters, buffers = make_functional_with_buffers(lucid.nn.BatchNorm1d(2))
    >>> isinstance(f, FunctionalModuleWithBuffers), len(parameters), len(buffers)
    (True, 2, 3)
    """

    def __init__(self, stateless_model, param_names, buffer_names):
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names

    def forward(self, params, buffers, *args, **kwargs):
        given = dict(zip(self.param_names, params, strict=True)) | dict(zip(self.buffer_names, buffers, strict=True))
        return call_with(self.stateless_model, given, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers and without values of its own: call it with a tuple of parameters, then the inputs.

    >>> isinstance(make_functional(lucid.nn.PReLU())[0], FunctionalModule)
    True
    """

    def forward(self, params, *args, **kwargs):
        return super().forward(params, (), *args, **kwargs)


def _parts(model, disable_autograd_tracking):
    own = dict(model.named_parameters())
    tracked = [p.requires_grad and not disable_autograd_tracking for p in own.values()]
    parameters = tuple(p.detach().clone().requires_grad_(wanted) for p, wanted in zip(own.values(), tracked))
    buffers = dict(model.named_buffers())
    empty = deepcopy(model).to("meta")
    return empty, tuple(own), parameters, tuple(buffers), tuple(b.clone() for b in buffers.values())


def make_functional(model, disable_autograd_tracking=False):
    """A function of a module's parameters and inputs, and a copy of its parameters.

    >>> f, (weight, bias) = make_functional(lucid.nn.Linear(2, 1))
    >>> f((lucid.ones(1, 2), lucid.zeros(1)), lucid.tensor([[1.0, 2.0]]))
    tensor([[3.]])
    """
    empty, names, parameters, buffer_names, _ = _parts(model, disable_autograd_tracking)
    if buffer_names:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule(empty, names, ()), parameters


def make_functional_with_buffers(model, disable_autograd_tracking=False):
    """A function of a module's parameters, buffers and inputs, and copies of both.

    >>> f, parameters, buffers = make_functional_with_buffers(lucid.nn.BatchNorm1d(1).eval())
    >>> f(parameters, buffers, lucid.zeros(2, 1)).detach()
    tensor([[0.],
            [0.]])
    """
    empty, names, parameters, buffer_names, buffers = _parts(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(empty, names, buffer_names), parameters, buffers


def combine_state_for_ensemble(models):
    """A function for modules of one kind, and their parameters and buffers stacked, for `vmap`.

    >>> models = [lucid.nn.Linear(2, 1) for _ in range(3)]
    >>> f, parameters, buffers = combine_state_for_ensemble(models)
    >>> parameters[0].shape
    lucid.Size([3, 1, 2])
    >>> lucid.vmap(f, in_dims=(0, 0, None))(parameters, buffers, lucid.ones(4, 2)).shape
    lucid.Size([3, 4, 1])
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if len({type(m) for m in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [make_functional_with_buffers(m) for m in models]
    stacked = [tuple(_C.stack([t.detach() for t in same]) for same in zip(*(m[i] for m in made))) for i in (1, 2)]
    parameters = tuple(p.requires_grad_(own.requires_grad) for p, own in zip(stacked[0], made[0][1]))
    return made[0][0], parameters, stacked[1]
