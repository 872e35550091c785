"""The older weight_norm, which computes the weight before every call of the module."""

import warnings

from ... import _C
from ..parameter import Parameter, is_lazy


def norm_except_dim(v, pow=2, dim=0):  # noqa: A002 (PyTorch's name)
    """Norms over all dimensions but one; dim -1: over all.

    >>> from lucid.nn.utils.weight_norm import norm_except_dim
    >>> norm_except_dim(lucid.tensor([[3.0, 4.0], [6.0, 8.0]]))
    tensor([[ 5.],
            [10.]])
    """
    if dim == -1:
        return _C.norm(v, pow)
    if not -v.ndim <= dim < v.ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-v.ndim}, {v.ndim - 1}], but got {dim})")
    dim = dim % v.ndim
    others = [d for d in range(v.ndim) if d != dim]
    return _C.norm(v, pow, others, True) if others else v.abs()


def scaled_to(v, g, dim):
    """v with norms g.

    >>> from lucid.nn.utils.weight_norm import scaled_to
    >>> scaled_to(lucid.tensor([[3.0, 4.0]]), lucid.tensor([[10.0]]), 0)
    tensor([[6., 8.]])
    """
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """A hook that sets a weight of norm `weight_g` in the direction of `weight_v` before each call.

    >>> layer = lucid.nn.utils.weight_norm(lucid.nn.Linear(2, 3))
    >>> [type(hook).__name__ for hook in layer._forward_pre_hooks.values()]
    ['WeightNorm']
    """

    def __init__(self, name, dim):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module):
        return scaled_to(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module, name, dim):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
                "before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, hook.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module):
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"], module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Train the norm of a weight (`weight_g`) and its direction (`weight_v`) apart. Returns the module.

    `lucid.nn.utils.parametrizations.weight_norm` is the newer form.

    >>> layer = lucid.nn.utils.weight_norm(lucid.nn.Linear(20, 40))
    >>> tuple(layer.weight_g.shape), tuple(layer.weight_v.shape)
    ((40, 1), (40, 20))
    """
    warnings.warn(
        "`lucid.nn.utils.weight_norm` is deprecated in favor of `lucid.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Make the weight a plain parameter again. Returns the module.

    >>> lucid.nn.utils.remove_weight_norm(lucid.nn.utils.weight_norm(lucid.nn.Linear(20, 40)))
    Linear(in_features=20, out_features=40, bias=True)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")


__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]
