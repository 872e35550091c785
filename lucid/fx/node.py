"""`Node`: one step of a graph."""

import builtins
import operator
import types
from collections.abc import Callable
from typing import Any

from .._C import Tensor

Target = Callable | str
Argument = Any
BaseArgumentTypes = (str, int, float, bool, complex, type(None))
_OPS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
_side_effects = set()


class immutable_list(list):  # noqa: N801 (PyTorch's names)
    """A list among the arguments of a node.

    >>> lucid.fx.node.immutable_list([1]) == [1]
    True
    """

    def _no(self, *args, **kwargs):
        raise NotImplementedError("arguments of a node cannot be changed in place: assign node.args")

    append = extend = insert = pop = remove = clear = __setitem__ = __delitem__ = __iadd__ = _no

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return immutable_list, (tuple(self),)


class immutable_dict(dict):  # noqa: N801
    """A dict among the arguments of a node.

    >>> lucid.fx.node.immutable_dict(a=1)["a"]
    1
    """

    def _no(self, *args, **kwargs):
        raise NotImplementedError("arguments of a node cannot be changed in place: assign node.kwargs")

    pop = popitem = clear = update = setdefault = __setitem__ = __delitem__ = _no

    def __hash__(self):
        return hash(tuple(self.items()))

    def __reduce__(self):
        return immutable_dict, (dict(self.items()),)


def has_side_effect(fn):
    """Mark a function that stays in a graph although nobody uses its result.

    >>> lucid.fx.has_side_effect(print) is print
    True
    """
    _side_effects.add(fn)
    return fn


def map_aggregate(a, fn):
    """fn of every leaf of nested tuples, lists, dicts and slices.

    >>> lucid.fx.node.map_aggregate((1, [2]), lambda v: v + 1)
    (2, [3])
    """
    if isinstance(a, tuple):
        values = [map_aggregate(item, fn) for item in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a, fn):
    """fn of every node among arguments.

    >>> lucid.fx.map_arg((1, 2), str)
    (1, 2)
    """
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)


def qualified_name(function):
    """The name by which code finds a function.

    >>> import operator
    >>> lucid.fx.node.qualified_name(operator.add)
    'operator.add'
    """
    name = getattr(function, "__name__", None) or type(function).__name__
    if getattr(builtins, name, None) is function:
        return name
    module = getattr(function, "__module__", None) or ""
    if module in ("_operator", "operator"):
        module = "operator"
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{function.__objclass__.__module__}.{function.__objclass__.__name__}.{name}"
    return f"{module}.{name}" if module else name


def _shown(value):
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_shown, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {_shown(v)}" for k, v in value.items()) + "}"
    return repr(value) if not isinstance(value, Tensor) else f"<tensor {tuple(value.shape)}>"


class Node:
    """One step of a graph: an input, a parameter, a call of a module, function or method, or the output.

    >>> graph = lucid.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(lucid.relu, (x,))
    >>> y.op, y.args, list(x.users)
    ('call_function', (x,), [relu])
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op not in _OPS:
            raise AssertionError(f"{op!r} is no kind of node")
        if op == "call_function" and not callable(target):
            raise ValueError(f"Node [graph = {graph}, name = '{name}'] target {target} is no function")
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self._args, self._kwargs, self._input_nodes = (), {}, {}
        self.users, self.meta = {}, {}
        self._prev = self._next = self
        self._erased, self._repr_fn = False, None
        self._update(args, kwargs)

    def _update(self, args, kwargs):
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}
        note = self._input_nodes.setdefault
        self._args, self._kwargs = map_aggregate(tuple(args), lambda v: v), map_aggregate(dict(kwargs), lambda v: v)
        map_arg((self._args, self._kwargs), lambda node: note(node))
        for node in self._input_nodes:
            node.users.setdefault(self)

    @property
    def args(self):
        return self._args

    @args.setter
    def args(self, value):
        self._update(value, self._kwargs)

    @property
    def kwargs(self):
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value):
        self._update(self._args, value)

    @property
    def all_input_nodes(self):
        return list(self._input_nodes)

    @property
    def next(self):
        return self._next

    @property
    def prev(self):
        return self._prev

    @property
    def stack_trace(self):
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, text):
        self.meta["stack_trace"] = text

    def prepend(self, x):
        """Move a node to before this one."""
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x

    def append(self, x):
        """Move a node to behind this one."""
        self._next.prepend(x)

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev
        self._prev = self._next = self

    def update_arg(self, idx, arg):
        """Set one argument."""
        self.args = (*self.args[:idx], arg, *self.args[idx + 1 :])

    def insert_arg(self, idx, arg):
        """Put an argument between others."""
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key, arg):
        """Set one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input, new_input):
        """Use another node where one was used."""
        self._update(*map_arg((self._args, self._kwargs), lambda node: new_input if node is old_input else node))

    def replace_all_uses_with(self, replace_with, delete_user_cb=lambda user: True, *, propagate_meta=False):
        """Let all that use this node use another; the nodes that were changed."""
        if propagate_meta:
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self):
        """Whether a node must stay although nobody uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or self.target is print or self.target is operator.setitem
        if self.op == "call_module":
            module = self.graph.owning_module
            return False if module is None else getattr(module.get_submodule(self.target), "_is_impure", False)
        return False

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """Raises: signatures of ops are not matched."""
        raise NotImplementedError("Node.normalized_arguments is not in Lucid")

    def _pretty_print_target(self, target):
        return target if isinstance(target, str) else qualified_name(target)

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
        """The node as a line."""
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : [num_users={len(self.users)}] = placeholder[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : [num_users={len(self.users)}] = get_attr[target={self.target}]"
        if self.op == "output":
            return f"return {str(self.args[0]) if not isinstance(self.args[0], tuple) else self.args[0]}"
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={self._pretty_print_target(self.target)}]"
        return f"{head}(args = {_shown(self.args)}, kwargs = {_shown(self.kwargs)})"

    def __repr__(self):
        return self.name

    def __lt__(self, other):
        node = self
        while node._next.op != "root":
            node = node._next
            if node is other:
                return True
        return False

    def __gt__(self, other):
        return other < self
