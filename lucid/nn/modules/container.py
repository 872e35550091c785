"""Containers: modules and parameters in a row or by name."""

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from itertools import chain, islice

from ..._C import Tensor
from ..parameter import Parameter
from .module import Module, _addindent


def _position(index, n):
    index = operator.index(index)
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of range")
    return index % n


class _Row(Module):
    """Modules under the names "0", "1", ...: what Sequential and ModuleList share."""

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def _key(self, index):
        return next(islice(self._modules, _position(index, len(self)), None))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self._part(list(self._modules.items())[index])
        return self._modules[self._key(index)]

    def __setitem__(self, index, module):
        setattr(self, self._key(index), module)

    def __delitem__(self, index):
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules):
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Put a module before the one at an index."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules):
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def pop(self, key):
        """Take the module at an index out."""
        module = self[key]
        del self[key]
        return module

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_Row):
    """Modules called one after the other.

    >>> model = lucid.nn.Sequential(lucid.nn.Linear(4, 8), lucid.nn.ReLU(), lucid.nn.Linear(8, 3))
    >>> tuple(model(lucid.ones(2, 4)).shape)
    (2, 3)
    """

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _part(self, items):
        return type(self)(OrderedDict(items))

    def forward(self, input):  # noqa: A002
        for module in self._modules.values():
            input = module(input)  # noqa: A001
        return input

    def insert(self, index, module):
        """Put a module before the one at an index."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        super().insert(index + n if index < 0 else index, module)
        return self

    def extend(self, sequential):
        """Add the modules of another one at the end."""
        return super().extend(sequential)

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, n):
        if not isinstance(n, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(n)}")
        if n <= 0:
            raise ValueError(f"Non-positive multiplication factor {n} for {type(self)}")
        return Sequential(*[module for _ in range(n) for module in self])

    __rmul__ = __mul__

    def __imul__(self, n):
        modules = list((self * n)._modules.values())
        return self.extend(modules[len(self) :])


class ModuleList(_Row):
    """A list of modules, registered as parts of the module that holds it.

    >>> layers = lucid.nn.ModuleList(lucid.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def _part(self, items):
        return type(self)([module for _, module in items])

    def extend(self, modules):
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        return super().extend(modules)

    __iadd__ = extend

    def __add__(self, other):
        return ModuleList(chain(self, other))

    def __repr__(self):
        """Equal neighbours are shown once."""
        shown = [repr(module) for module in self]
        lines, start = [], 0
        for i in range(1, len(shown) + 1):
            if i == len(shown) or shown[i] != shown[start]:
                where = f"({start})" if i == start + 1 else f"({start}-{i - 1})"
                times = "" if i == start + 1 else f"{i - start} x "
                lines.append(f"{where}: {times}{_addindent(shown[start], 2)}")
                start = i
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{self._get_name()}()"

    forward = Module.forward


def _pairs(given, kind):
    """(key, value) of a mapping or of an iterable of pairs."""
    if not isinstance(given, Iterable):
        raise TypeError(f"{kind}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}")
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        return list(given.items())
    pairs = []
    for i, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{kind} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{kind} update sequence element #{i} has length {len(pair)}; 2 is required")
        pairs.append(pair)
    return pairs


class ModuleDict(Module):
    """Modules by name, registered as parts of the module that holds it.

    >>> heads = lucid.nn.ModuleDict({"a": lucid.nn.Linear(2, 1), "b": lucid.nn.Linear(2, 5)})
    >>> tuple(heads["b"](lucid.ones(3, 2)).shape)
    (3, 5)
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key):
        """Take one module out."""
        module = self[key]
        del self[key]
        return module

    def keys(self):
        """The names."""
        return self._modules.keys()

    def items(self):
        """Pairs of name and module."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add modules, or replace those of the same name."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _as_value(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _described(key, value):
    if not isinstance(value, Tensor):
        return f"({key}): Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.size())
    where = f" (GPU {value.device.index})" if value.is_cuda else ""
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return kind, value.dtype, size, where


class ParameterList(Module):
    """Parameters in a row, registered; tensors become parameters, other values are kept as they are.

    >>> scales = lucid.nn.ParameterList([lucid.ones(2), lucid.zeros(3)])
    >>> [tuple(p.shape) for p in scales]
    [(2,), (3,)]
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __len__(self):
        return self._size

    def __iter__(self):
        return (self[i] for i in range(self._size))

    def __getitem__(self, index):
        if isinstance(index, slice):
            part = type(self)()
            for i in range(*index.indices(self._size)):
                part.append(self[i])
            return part
        return getattr(self, str(_position(index, self._size)))

    def __setitem__(self, index, value):
        setattr(self, str(_position(index, self._size)), _as_value(value))

    def append(self, value):
        """Add a value at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    __iadd__ = extend

    def extra_repr(self):
        lines = []
        for i, value in enumerate(self):
            d = _described(i, value)
            lines.append("  " + (d if isinstance(d, str) else f"({i}): {d[0]} containing: [{d[1]} of size {d[2]}{d[3]}]"))
        return "\n".join(lines)

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name, registered; tensors become parameters, other values are kept as they are.

    >>> p = lucid.nn.ParameterDict({"scale": lucid.ones(2)})
    >>> "scale" in p, p["scale"].requires_grad
    (True, True)
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _attribute(key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._attribute(key))

    def __setitem__(self, key, value):
        setattr(self, self._attribute(key), _as_value(value))
        self._keys[key] = None

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def keys(self):
        """The names."""
        return self._keys.keys()

    def items(self):
        """Pairs of name and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def get(self, key, default=None):
        """The value of a name, or a default."""
        return self[key] if key in self else default

    def setdefault(self, key, default=None):
        """The value of a name, which becomes the default if it is not there."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key):
        """Take one value out."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take the last value out, with its name."""
        key, _ = self._keys.popitem()
        value = self[key]
        delattr(self, key)
        return key, value

    def clear(self):
        """Take all values out."""
        for key in list(self._keys):
            del self[key]

    def copy(self):
        """Another one with the same values."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def fromkeys(self, keys, default=None):
        """A new one with the same value for every name."""
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters):
        """Add values, or replace those of the same name."""
        for key, value in _pairs(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self):
        lines = []
        for key, value in self.items():
            d = _described(key, value)
            lines.append(
                "  " + (d if isinstance(d, str) else f"({key}): {d[0]} containing: [{value.type()} of size {d[2]}{d[3]}]")
            )
        return "\n".join(lines)

    def __call__(self, input):  # noqa: A002
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        joined = self.copy()
        joined.update(other)
        return joined

    def __ror__(self, other):
        joined = other.copy()
        joined.update(self)
        return joined

    def __ior__(self, other):
        self.update(other)
        return self
