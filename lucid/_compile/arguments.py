"""Arguments and results of compiled functions as a structure, which is hashable, and a list of tensors."""

from .. import _C
from . import guards


def flatten(value, tensors):
    """The structure of value, hashable; its tensors are appended to the list.

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
        return (kind.__name__, tuple(flatten(v, tensors) for v in value))
    if kind is dict:
        return ("dict", tuple(value), tuple(flatten(v, tensors) for v in value.values()))
    if isinstance(value, tuple):
        return ("named" if hasattr(value, "_fields") else "sequence", kind, tuple(flatten(v, tensors) for v in value))
    if guards.is_plain(value):
        return ("value", kind, value)
    return ("object", Held(value))


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
    if kind == "dict":
        return dict(zip(structure[1], [unflatten(s, tensors) for s in structure[2]]))
    items = [unflatten(s, tensors) for s in structure[-1]]
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
        return [structure[1].value]
    return [o for part in structure[-1] for o in objects_in(part)]
