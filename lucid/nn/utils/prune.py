"""Pruning: weights that are set to zero and stay zero, by masks that are multiplied in before every call."""

import numbers
from collections.abc import Iterable

from ... import _C
from .convert_parameters import parameters_to_vector


def _check_amount(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or not isinstance(amount, numbers.Integral) and float(amount) > 1.0:
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _how_many(amount, size):
    """The number of units to prune out of `size`: amount is a count or a fraction."""
    count = amount if isinstance(amount, numbers.Integral) else round(amount * size)
    if count > size:
        raise ValueError(f"amount={count} should be smaller than the number of parameters to prune={size}")
    return count


def _channels(t, dim):
    """How many channels there are along a dimension."""
    if t.ndim <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
            f"{t.shape} with {t.ndim} dims"
        )
    if dim >= t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
    return t.shape[dim]


def _where(dim, ndim, kept):
    """An index: everything, but only what is `kept` along one dimension."""
    index = [slice(None)] * ndim
    index[dim] = kept
    return tuple(index)


def _mask_of_channels(t, dim, kept, default_mask):
    mask = _C.zeros_like(t)
    mask[_where(dim, t.ndim, kept)] = 1
    mask *= default_mask.to(mask.dtype)
    return mask


class BasePruningMethod:
    """A way to choose what is pruned: a subclass defines `compute_mask(t, default_mask)` and PRUNING_TYPE.

    `apply(module, name, ...)` moves the parameter to `name_orig`, keeps a mask in the buffer `name_mask`, and lets `name` be
    their product, computed again before each call of the module.

    >>> class EveryOther(lucid.nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...     def compute_mask(self, t, default_mask):
    ...         mask = default_mask.clone()
    ...         mask.view(-1)[::2] = 0
    ...         return mask
    >>> layer = lucid.nn.Linear(2, 2)
    >>> _ = EveryOther.apply(layer, "bias")
    >>> layer.bias_mask
    tensor([0., 1.])
    """

    _tensor_name = None

    def __new__(cls, *args, **kwargs):
        if cls.compute_mask is BasePruningMethod.compute_mask:
            raise TypeError(f"Can't instantiate abstract class {cls.__name__} with abstract method compute_mask")
        return super().__new__(cls)

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    def compute_mask(self, t, default_mask):
        """A mask for a tensor of scores t: ones are kept. What default_mask has pruned already stays pruned."""
        raise NotImplementedError

    def apply_mask(self, module):
        """The original tensor times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, orig = (getattr(module, self._tensor_name + end) for end in ("_mask", "_orig"))
        return mask.to(orig.dtype) * orig

    @classmethod
    def _on_top_of_others(cls, module, name, *args, **kwargs):
        """The method, in a container with the one that prunes this tensor already; that one's hook goes."""
        hooks = module._forward_pre_hooks
        keys = [k for k, hook in hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(keys) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
            )
        old = hooks.pop(keys[0]) if keys else None
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if old is None:
            return method
        container = old if isinstance(old, PruningContainer) else PruningContainer(old)
        container.add_pruning_method(method)
        return container

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune a parameter of a module; importance_scores: what to go by instead of its values. Returns the method."""
        method = cls._on_top_of_others(module, name, *args, **kwargs)
        again = isinstance(method, PruningContainer)
        orig = getattr(module, name)
        if importance_scores is None:
            importance_scores = orig
        elif importance_scores.shape != orig.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {orig.shape}"
            )
        if again:
            default_mask = getattr(module, name + "_mask").detach().clone()
        else:
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
            default_mask = _C.ones_like(orig)
        try:
            mask = method.compute_mask(importance_scores, default_mask=default_mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if not again:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t, default_mask=None, importance_scores=None):
        """A tensor with a part of it set to zero."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        default_mask = _C.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module):
        """Make the pruned tensor a plain parameter; what is pruned stays zero until training changes it."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        orig = module._parameters.pop(name + "_orig")
        orig.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


class PruningContainer(BasePruningMethod):
    """Pruning methods one after the other, each choosing among what those before it left.

    >>> layer = lucid.nn.utils.prune.l1_unstructured(lucid.nn.Linear(4, 4), "weight", 4)
    >>> layer = lucid.nn.utils.prune.random_unstructured(layer, "weight", 4)
    >>> len(next(iter(layer._forward_pre_hooks.values()))), int(layer.weight_mask.sum())
    (2, 8)
    """

    def __init__(self, *args):
        self._pruning_methods = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Add a method of the same tensor at the end."""
        if method is not None:
            if not isinstance(method, BasePruningMethod):
                raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
            if method._tensor_name != self._tensor_name:
                raise ValueError(
                    f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                    f"{self}. Found '{method._tensor_name}'"
                )
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method, over what default_mask has left."""
        method = self._pruning_methods[-1]
        kind = method.PRUNING_TYPE
        if kind == "unstructured":
            left = default_mask == 1
        elif kind == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
            dim = method.dim + (t.ndim if method.dim < 0 else 0)
            if dim < 0:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {t.ndim}")
            others = [d for d in range(t.ndim) if d != dim]
            left = _where(dim, t.ndim, default_mask.sum(others) != 0)
        elif kind == "global":
            left = (slice(None),) * t.ndim
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        mask = default_mask.to(t.dtype)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but rearranges the parameters as pruning does.

    >>> lucid.nn.utils.prune.Identity().prune(lucid.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        return default_mask

    @classmethod
    def apply(cls, module, name):
        return super().apply(module, name)


class _Unstructured(BasePruningMethod):
    """A count, or a fraction, of all values."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount):
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t, default_mask):
        count = _how_many(self.amount, t.numel())
        mask = default_mask.clone(memory_format=_C.contiguous_format)
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Values chosen at random.

    >>> int((lucid.nn.utils.prune.RandomUnstructured(0.5).prune(lucid.ones(8)) == 0).sum())
    4
    """

    def _chosen(self, t, count):
        return _C.rand_like(t).view(-1).topk(count).indices

    @classmethod
    def apply(cls, module, name, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """The values nearest to zero.

    >>> lucid.nn.utils.prune.L1Unstructured(2).prune(lucid.tensor([3.0, -1.0, 0.5, -4.0]))
    tensor([ 3., -0.,  0., -4.])
    """

    def _chosen(self, t, count):
        return t.abs().view(-1).topk(count, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class RandomStructured(BasePruningMethod):
    """Whole channels, chosen at random.

    >>> int((lucid.nn.utils.prune.RandomStructured(1, dim=0).prune(lucid.ones(4, 2)) == 0).sum())
    2
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim=-1):
        _check_amount(amount)
        self.amount, self.dim = amount, dim

    def compute_mask(self, t, default_mask):
        size = _channels(t, self.dim)
        count = _how_many(self.amount, size)
        if not count:
            return default_mask
        chances = _C.rand(size)
        return _mask_of_channels(t, self.dim, chances > chances.kthvalue(count).values, default_mask)

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(BasePruningMethod):
    """The channels with the least norm of order n.

    >>> lucid.nn.utils.prune.LnStructured(1, 2, dim=0).prune(lucid.tensor([[1.0, 1.0], [2.0, 0.0], [0.0, 0.5]]))
    tensor([[1., 1.],
            [2., 0.],
            [0., 0.]])
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount, n, dim=-1):
        _check_amount(amount)
        self.amount, self.n, self.dim = amount, n, dim

    def compute_mask(self, t, default_mask):
        size = _channels(t, self.dim)
        count = _how_many(self.amount, size)
        others = [d for d in range(t.ndim) if d != self.dim % t.ndim]
        kept = _C.norm(t, self.n, others).topk(size - count).indices
        return _mask_of_channels(t, self.dim, kept, default_mask) if count else default_mask

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """The elements that a given mask prunes.

    >>> lucid.nn.utils.prune.CustomFromMask(lucid.tensor([0, 1])).prune(lucid.tensor([5.0, 6.0]))
    tensor([0., 6.])
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        self.mask = mask

    def compute_mask(self, t, default_mask):
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}")
        return default_mask * self.mask.to(default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        return super().apply(module, name, mask=mask)


def identity(module, name):
    """Arrange a parameter as if it were pruned. Returns the module.

    >>> layer = lucid.nn.utils.prune.identity(lucid.nn.Linear(2, 3), "bias")
    >>> layer.bias_mask
    tensor([1., 1., 1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Set a number (an int) or a part (a float) of the values of a parameter, chosen at random, to zero. Returns the module.

    >>> layer = lucid.nn.utils.prune.random_unstructured(lucid.nn.Linear(2, 3), "weight", amount=1)
    >>> int((layer.weight == 0).sum())
    1
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Set a number (an int) or a part (a float) of the values of a parameter, the smallest ones, to zero. Returns the module.

    >>> layer = lucid.nn.utils.prune.l1_unstructured(lucid.nn.Linear(2, 3), "weight", amount=0.5)
    >>> sorted(layer.state_dict()), int((layer.weight == 0).sum())
    (['bias', 'weight_mask', 'weight_orig'], 3)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Set channels of a parameter along a dimension, chosen at random, to zero. Returns the module.

    >>> layer = lucid.nn.utils.prune.random_structured(lucid.nn.Linear(5, 3), "weight", amount=3, dim=1)
    >>> int((layer.weight == 0).all(0).sum())
    3
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Set the channels of a parameter with the least norm of order n to zero. Returns the module.

    >>> layer = lucid.nn.utils.prune.ln_structured(lucid.nn.Conv2d(5, 3, 2), "weight", amount=0.4, dim=1, n=2)
    >>> int((layer.weight == 0).all(0).all(-1).all(-1).sum())
    2
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune several parameters, pairs (module, name), as if they were one.

    >>> net = lucid.nn.Sequential(lucid.nn.Linear(10, 4), lucid.nn.Linear(4, 1))
    >>> prune = lucid.nn.utils.prune
    >>> prune.global_unstructured([(net[0], "weight"), (net[1], "weight")], prune.L1Unstructured, amount=10)
    >>> int(sum((mask == 0).sum() for mask in net.buffers()))
    10
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    importance_scores = {} if importance_scores is None else importance_scores
    if not isinstance(importance_scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    values = [getattr(module, name) for module, name in parameters]
    scores = parameters_to_vector([importance_scores.get(at, value) for at, value in zip(parameters, values)])
    masks = [getattr(module, name + "_mask", _C.ones_like(value)) for (module, name), value in zip(parameters, values)]
    method, container = pruning_method(**kwargs), PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    mask = container.compute_mask(scores, parameters_to_vector(masks))
    for (module, name), part, value in zip(parameters, mask.split([v.numel() for v in values]), values):
        custom_from_mask(module, name, part.view_as(value))


def custom_from_mask(module, name, mask):
    """Set elements to zero where a mask is zero. Returns the module.

    >>> layer = lucid.nn.utils.prune.custom_from_mask(lucid.nn.Linear(5, 3), "bias", lucid.tensor([0, 1, 0]))
    >>> layer.bias_mask
    tensor([0., 1., 0.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    """Make a pruned tensor a plain parameter again: zeros stay until training changes them. Returns the module.

    >>> layer = lucid.nn.utils.prune.random_unstructured(lucid.nn.Linear(5, 7), "weight", 0.2)
    >>> list(lucid.nn.utils.prune.remove(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module):
    """Whether anything in a module is pruned.

    >>> lucid.nn.utils.prune.is_pruned(lucid.nn.Linear(5, 7))
    False
    """
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())


__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]
