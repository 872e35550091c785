"""Arguments and results of compiled functions as a structure, which is hashable, and a list of tensors."""

import collections
import functools
import types

from .. import _C
from . import guards

# Objects that are what they are: a result may hold them.
CONSTANT = (_C.dtype, _C.device, _C.layout, _C.memory_format, slice, range, type, types.EllipsisType)

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that Python code made


def flatten(value, tensors, born=None):
    """The structure of value, hashable; its tensors are appended to the list. born: whether an object was made by the function
    that was traced: it is taken apart then, if attributes and items are all there is to it.

    >>> from lucid._compile.arguments import flatten
    >>> found = []
    >>> flatten({"a": [lucid.ones(1), 2]}, found), len(found)
    (('dict', ('a',), (('list', ('tensor', ('value', <class 'int'>, 2))),)), 1)
    """
    if isinstance(value, _C.Tensor):
        tensors.append(value)
        return "tensor"
    kind = type(value)
    if kind is tuple or kind is list:
        return (kind.__name__, tuple(flatten(v, tensors, born) for v in value))
    if kind is dict or kind is collections.OrderedDict:
        return (kind.__name__, tuple(value), tuple(flatten(v, tensors, born) for v in value.values()))
    if isinstance(value, tuple):
        return ("named" if hasattr(value, "_fields") else "sequence", kind, tuple(flatten(v, tensors, born) for v in value))
    if isinstance(value, float):
        return ("value", kind, value, value.hex())  # 0.0 == -0.0
    if isinstance(value, complex):
        return ("value", kind, value, value.real.hex(), value.imag.hex())
    if guards.is_plain(value):
        return ("value", kind, value)
    if born and born(value) and is_record(kind):
        items = dict(value) if isinstance(value, dict) else {}
        own = vars(value)
        parts = tuple(flatten(v, tensors, born) for v in (*own.values(), *items.values()))
        return ("record", kind, tuple(own), tuple(items), parts)
    return ("object", Held(value))


def tensors_in(value, born=None):
    """The tensors of a value, in the order of its structure.

    >>> from lucid._compile.arguments import tensors_in
    >>> tensors_in({"a": [lucid.ones(1), 2]})
    [tensor([1.])]
    """
    found = []
    flatten(value, found, born)
    return found


@functools.cache
def is_record(kind):
    """Whether objects of a class are their attributes, and their items if it is a dict.

    >>> from lucid._compile.arguments import is_record
    >>> is_record(lucid.models.CausalLMOutput), is_record(lucid.nn.Linear), is_record(type(lucid.float32))
    (True, False, False)
    """
    made = [c for c in kind.__mro__ if c not in (object, dict, collections.OrderedDict)]
    return bool(made) and all(c.__flags__ & _HEAP_TYPE and not vars(c).get("__slots__") for c in made)


class Held:
    """An object that is a part of a structure: equal to itself only.

    >>> from lucid._compile.arguments import Held
    >>> Held(lucid) == Held(lucid), Held([]) == Held([])
    (True, False)
    """

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return id(self.value)

    def __eq__(self, other):
        return isinstance(other, Held) and other.value is self.value


def unflatten(structure, tensors):
    """The value again; tensors: an iterator.

    >>> from lucid._compile.arguments import flatten, unflatten
    >>> found = []
    >>> unflatten(flatten((1, [lucid.zeros(1)]), found), iter(found))
    (1, [tensor([0.])])
    """
    if structure == "tensor":
        return next(tensors)
    kind = structure[0]
    if kind == "value":
        return structure[2]
    if kind == "object":
        return structure[1].value
    if kind == "dict" or kind == "OrderedDict":
        return (dict if kind == "dict" else collections.OrderedDict)(
            zip(structure[1], [unflatten(s, tensors) for s in structure[2]])
        )
    items = [unflatten(s, tensors) for s in structure[-1]]
    if kind == "record":
        _, made, names, keys, _ = structure
        value = made.__new__(made)
        vars(value).update(zip(names, items))
        for key, item in zip(keys, items[len(names) :]):
            (collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict).__setitem__(value, key, item)
        return value
    if kind == "named" or kind == "sequence":
        return structure[1](*items) if kind == "named" else structure[1](items)
    return tuple(items) if kind == "tuple" else items


def objects_in(structure):
    """What of a structure is neither a tensor, a container nor a plain value.

    >>> from lucid._compile.arguments import flatten, objects_in
    >>> objects_in(flatten([1, {"a": lucid.ones(1)}, len], []))
    [<built-in function len>]
    """
    if structure == "tensor" or structure[0] == "value":
        return []
    if structure[0] == "object":
        return [] if isinstance(structure[1].value, CONSTANT) else [structure[1].value]
    return [o for part in structure[-1] for o in objects_in(part)]


def put_back(original, changed):
    """Lists and dicts of the arguments as a call on copies has left them.

    >>> from lucid._compile.arguments import put_back
    >>> mine = {"a": [1]}
    >>> put_back(mine, {"a": [1, 2]})
    >>> mine
    {'a': [1, 2]}
    """
    if type(original) is not type(changed):
        return
    if isinstance(original, list):
        kept = list(original)
        original[:] = changed
        for i, (a, b) in enumerate(zip(kept, changed)):
            if isinstance(a, (list, dict)) and type(a) is type(b):
                original[i] = a
                put_back(a, b)
    elif isinstance(original, dict):
        kept = dict(original)
        original.clear()
        original.update(changed)
        for name, a in kept.items():
            if name in changed and isinstance(a, (list, dict)) and type(a) is type(changed[name]):
                original[name] = a
                put_back(a, changed[name])
    elif isinstance(original, tuple):
        for a, b in zip(original, changed):
            put_back(a, b)
