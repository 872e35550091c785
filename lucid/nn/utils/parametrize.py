"""Parametrizations: a parameter that is computed from others whenever it is read.

`register_parametrization(module, "weight", f)` moves the weight to `module.parametrizations.weight.original` and makes
`module.weight` a property that returns `f(original)`; gradients flow through f. The property lives on a class of its own, so
other modules of the same class stay as they are.
"""

from collections.abc import Sequence
from copy import deepcopy

from ..._C import Tensor
from ...autograd import no_grad
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

_cache = {"depth": 0, "values": {}}


class cached:  # noqa: N801 (PyTorch's name)
    """Inside a `with` block, compute every parametrized tensor once.

    >>> class Counted(lucid.nn.Module):
    ...     calls = 0
    ...     def forward(self, x):
    ...         Counted.calls += 1
    ...         return x * 2
    >>> layer = lucid.nn.utils.parametrize.register_parametrization(lucid.nn.Linear(2, 2), "weight", Counted())
    >>> Counted.calls = 0
    >>> with lucid.nn.utils.parametrize.cached():
    ...     same = layer.weight is layer.weight
    >>> same, Counted.calls
    (True, 1)
    """

    def __enter__(self):
        _cache["depth"] += 1

    def __exit__(self, *error):
        _cache["depth"] -= 1
        if not _cache["depth"]:
            _cache["values"] = {}


def _register(module, name, value):
    (module.register_parameter if isinstance(value, Parameter) else module.register_buffer)(name, value)


def _expect(value, dtype, shape, whose):
    """A parametrization keeps dtype and shape, unless it was registered as unsafe."""
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for what, was, now in (("dtype", dtype, value.dtype), ("shape", shape, value.shape)):
        if was != now:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is enabled.\n"
                f"{whose}: {was}\nparametrized {what}: {now}"
            )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they are computed from: `original`, or `original0`, `original1`, ...

    >>> layer = lucid.nn.utils.parametrizations.weight_norm(lucid.nn.Linear(2, 3))
    >>> [name for name, _ in layer.parametrizations.weight.named_parameters()]
    ['original0', 'original1']
    """

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:  # then it is taken to be the identity
                        pass
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for what in ("dtype", "device"):
                was, now = getattr(original, what), getattr(new, what)
                if was != now:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                        f"original.{what}: {was}\nright_inverse(original).{what}: {now}"
                    )
            with no_grad():
                original.set_(new)  # the same object, which optimizers may hold
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not unsafe:
            _expect(self(), dtype, shape, "unparametrized")

    def right_inverse(self, value):
        """Assign a value to the tensor: the originals become the right inverse of the parametrizations."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                self._set("original", value, "The tensor returned by `right_inverse`")
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length "
                    f"{len(value)}."
                )
            for i, part in enumerate(value):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors. Got element {i} of type {type(part).__name__}"
                    )
                self._set(f"original{i}", part, f"Tensor {i} returned by `right_inverse`")

    def _set(self, name, value, whose):
        original = getattr(self, name)
        if value.dtype != original.dtype:
            raise ValueError(f"{whose} has dtype {value.dtype} while `{name}` has dtype {original.dtype}")
        original.set_(value)

    def forward(self):
        originals = [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]
        first, *rest = self
        value = first(*originals)
        for module in rest:
            value = module(value)
        return value


ParametrizationContainer = ParametrizationList  # Lucid's old name


def _refuse_pickling(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(): a parametrized module has a class of "
        "its own, which no other process knows"
    )


def _deepcopy(self, memo):
    if id(self) not in memo:
        memo[id(self)] = replica = type(self).__new__(type(self))
        replica.__dict__.update(deepcopy(self.__dict__, memo))
    return memo[id(self)]


def _give_own_class(module):
    cls = type(module)
    members = {"__getstate__": _refuse_pickling, "__module__": cls.__module__}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _add_property(module, name):
    def read(self):
        parametrization = self.parametrizations[name]
        if not _cache["depth"]:
            return parametrization()
        values, key = _cache["values"], (id(self), name)
        if key not in values:
            values[key] = parametrization()
        return values[key]

    def write(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Compute a parameter or buffer of a module from another tensor, whenever it is read. Returns the module.

    A `right_inverse` of the parametrization, if there is one, says what to compute a given value from: it is called with the
    value the tensor has now, and whenever the tensor is assigned to. It may return several tensors, which the first
    parametrization is then called with. More parametrizations of the same tensor are applied after those it has.
    unsafe: do not check that dtype and shape stay as they are.

    >>> class Symmetric(lucid.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).t()
    >>> layer = lucid.nn.utils.parametrize.register_parametrization(lucid.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.t()).all())
    True
    >>> layer
    ParametrizedLinear(
      in_features=3, out_features=3, bias=True
      (parametrizations): ModuleDict(
        (weight): ParametrizationList(
          (0): Symmetric()
        )
      )
    )
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            now = getattr(module, tensor_name)
            value = parametrization(now)
            _expect(value, now.dtype, now.shape, f"module.{tensor_name}")
            try:
                value = parametrization.right_inverse(value) if hasattr(parametrization, "right_inverse") else value
            except NotImplementedError:
                pass
            _expect(value, now.dtype, now.shape, f"right_inverse of module.{tensor_name}")
        parametrizations = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _give_own_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def is_parametrized(module, tensor_name=None):
    """Whether a tensor of a module is parametrized; without a name, whether any is.

    >>> lucid.nn.utils.parametrize.is_parametrized(lucid.nn.Linear(2, 2))
    False
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make a parametrized tensor a plain one again. Returns the module.

    It keeps the value it has; or, with leave_parametrized=False, takes the value of `original`.

    >>> layer = lucid.nn.utils.parametrizations.weight_norm(lucid.nn.Linear(2, 3))
    >>> lucid.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of "
            "tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class a module had before it was parametrized.

    >>> layer = lucid.nn.utils.parametrizations.weight_norm(lucid.nn.Linear(2, 3))
    >>> lucid.nn.utils.parametrize.type_before_parametrizations(layer).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Give a module the parametrizations of another, and the tensors they compute from. Returns to_module.

    >>> layer = lucid.nn.utils.parametrizations.weight_norm(lucid.nn.Linear(2, 3))
    >>> other = lucid.nn.utils.parametrize.transfer_parametrizations_and_params(layer, lucid.nn.Linear(2, 3))
    >>> bool((other.weight == layer.weight).all())
    True
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        source = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for original in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, original, getattr(source, original))
    return to_module


__all__ = [
    "ParametrizationContainer",
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]
