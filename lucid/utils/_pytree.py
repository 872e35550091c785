"""Trees of Python containers: tuples, lists, dicts and similar, named tuples, registered classes. Everything else is a leaf.

>>> leaves, spec = lucid.utils._pytree.tree_flatten({"a": 1, "b": [2, (3, None)]})
>>> leaves
[1, 2, 3, None]
>>> lucid.utils._pytree.tree_unflatten([10, 20, 30, 40], spec)
{'a': 10, 'b': [20, (30, 40)]}
"""

from collections import OrderedDict, defaultdict, deque, namedtuple

__all__ = [
    "LeafSpec",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_structure",
    "tree_unflatten",
]


def _of_dict(d):
    return list(d.values()), list(d)


# type -> (children and context of a node, a node of children and context)
_NODES = {
    tuple: (lambda t: (list(t), None), lambda children, _: tuple(children)),
    list: (lambda x: (list(x), None), lambda children, _: list(children)),
    dict: (_of_dict, lambda children, keys: dict(zip(keys, children))),
    OrderedDict: (_of_dict, lambda children, keys: OrderedDict(zip(keys, children))),
    defaultdict: (
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda children, context: defaultdict(context[0], zip(context[1], children)),
    ),
    deque: (lambda d: (list(d), d.maxlen), lambda children, length: deque(children, maxlen=length)),
    namedtuple: (lambda t: (list(t), type(t)), lambda children, kind: kind(*children)),
}


def _node_type(tree):
    kind = type(tree)
    if kind in _NODES:
        return kind
    if isinstance(tree, tuple) and hasattr(kind, "_fields"):
        return namedtuple
    if isinstance(tree, tuple) and hasattr(kind, "n_sequence_fields"):  # what ops return: max, sort, ...
        register_pytree_node(kind, lambda t: (list(t), None), lambda children, _: kind(children))
        return kind
    return None


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Make a class of containers known. flatten_fn(node) returns (children, context), unflatten_fn(children, context) a node.

    The keyword arguments are for writing structures to files and for naming children, which nothing here does.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> tree = lucid.utils._pytree
    >>> tree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda children, _: Pair(*children))
    >>> tree.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    if cls in _NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _NODES[cls] = (flatten_fn, unflatten_fn)


class TreeSpec:
    """The structure of a tree without its leaves.

    >>> spec = lucid.utils._pytree.tree_structure((1, [2, 3]))
    >>> spec
    TreeSpec(tuple, None, [*,
      TreeSpec(list, None, [*,
        *])])
    >>> spec.num_leaves, spec.num_nodes, spec.num_children
    (3, 5, 2)
    """

    __slots__ = ("children_specs", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type, context, children_specs):  # noqa: A002 (PyTorch's name)
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_children = len(children_specs)
        self.num_leaves = sum(spec.num_leaves for spec in children_specs) if type is not None else 1
        self.num_nodes = 1 + sum(spec.num_nodes for spec in children_specs)

    def is_leaf(self):
        """Whether the whole tree is one leaf.

        >>> lucid.utils._pytree.tree_structure(1).is_leaf()
        True
        """
        return self.type is None

    def unflatten(self, leaves):
        """A tree of this structure.

        >>> lucid.utils._pytree.tree_structure((1, [2, 3])).unflatten("abc")
        ('a', ['b', 'c'])
        """
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                f"{self.num_leaves} items ({self})."
            )
        return self._built(iter(leaves))

    def _built(self, leaves):
        if self.type is None:
            return next(leaves)
        return _NODES[self.type][1]([spec._built(leaves) for spec in self.children_specs], self.context)

    def flatten_up_to(self, tree):
        """What is in a tree where this one has its leaves.

        >>> lucid.utils._pytree.tree_structure((1, 2)).flatten_up_to(([3, 4], 5))
        [[3, 4], 5]
        """
        if self.type is None:
            return [tree]
        if _node_type(tree) is not self.type:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = _NODES[self.type][0](tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if self.type in (dict, OrderedDict):
            if set(context) != set(self.context):
                raise ValueError(f"Node keys mismatch; expected {self.context}, but got {context}.")
            children = [tree[key] for key in self.context]
        elif self.type is not defaultdict and context != self.context:
            raise ValueError(f"Node context mismatch for {self.type!r}: expected {self.context!r}, but got {context!r}.")
        return [x for spec, child in zip(self.children_specs, children) for x in spec.flatten_up_to(child)]

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self.children_specs) == (other.type, other.context, other.children_specs)

    def __hash__(self):
        return hash((self.type, str(self.context), self.num_leaves, self.num_nodes))

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        parts = [spec.__repr__(indent + 2) for spec in self.children_specs]
        inner = (",\n" + " " * (indent + 2)).join(parts)
        context = "None" if self.context is None else repr(self.context)
        return f"TreeSpec({self.type.__name__}, {context}, [{inner}])"


class LeafSpec(TreeSpec):
    """The structure of a tree that is one leaf.

    >>> lucid.utils._pytree.LeafSpec() == lucid.utils._pytree.tree_structure(5)
    True
    """

    __slots__ = ()

    def __init__(self):
        super().__init__(None, None, [])


_LEAF = LeafSpec()


def tree_is_leaf(tree, is_leaf=None):
    """Whether an object is a leaf: not a known container, or one that `is_leaf` accepts.

    >>> lucid.utils._pytree.tree_is_leaf(3), lucid.utils._pytree.tree_is_leaf([3])
    (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) is None


def _flattened(tree, leaves, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    kind = _node_type(tree)
    children, context = _NODES[kind][0](tree)
    return TreeSpec(kind, context, [_flattened(child, leaves, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves of a tree, and its structure.

    >>> lucid.utils._pytree.tree_flatten((1, [2]))[0]
    [1, 2]
    """
    leaves = []
    return leaves, _flattened(tree, leaves, is_leaf)


def tree_unflatten(leaves, treespec):
    """The tree of these leaves and this structure.

    >>> lucid.utils._pytree.tree_unflatten([1, 2], lucid.utils._pytree.tree_structure((0, [0])))
    (1, [2])
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten: expected a TreeSpec, got {type(treespec)}")
    return treespec.unflatten(leaves)


def tree_leaves(tree, is_leaf=None):
    """The leaves of a tree, in a list.

    >>> lucid.utils._pytree.tree_leaves({"a": 1, "b": (2, 3)})
    [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree, is_leaf=None):
    """The leaves of a tree, one after the other.

    >>> sum(lucid.utils._pytree.tree_iter({"a": 1, "b": (2, 3)}))
    6
    """
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    """The structure of a tree.

    >>> lucid.utils._pytree.tree_structure([1])
    TreeSpec(list, None, [*])
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """Apply `func` to each leaf, and to the matching parts of further trees; returns the tree of results.

    >>> lucid.utils._pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call `func` with each leaf and the matching parts of further trees; returns the tree itself.

    >>> weights = [lucid.ones(2), lucid.ones(1)]
    >>> lucid.utils._pytree.tree_map_(lambda w: w.mul_(3), weights)
    [tensor([3., 3.]), tensor([3.])]
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    for values in zip(leaves, *[spec.flatten_up_to(rest) for rest in rests]):
        func(*values)
    return tree


def _chosen(what):
    if isinstance(what, type) or not callable(what):
        return lambda x: isinstance(x, what)
    return what


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """As tree_map, for leaves of some types or that a predicate accepts; the others stay.

    >>> lucid.utils._pytree.tree_map_only(int, lambda x: x + 1, [1, "a"])
    [2, 'a']
    """
    wanted = _chosen(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if wanted(x) else x, tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """As tree_map_, for leaves of some types or that a predicate accepts.

    >>> lucid.utils._pytree.tree_map_only_(lucid.Tensor, lambda x: x.add_(1), [lucid.zeros(1), "a"])
    [tensor([1.]), 'a']
    """
    wanted = _chosen(type_or_types_or_pred)
    return tree_map_(lambda x: func(x) if wanted(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether `pred` is true for all leaves.

    >>> lucid.utils._pytree.tree_all(lambda x: x > 0, [1, (2, 3)])
    True
    """
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether `pred` is true for any leaf.

    >>> lucid.utils._pytree.tree_any(lambda x: x > 2, [1, (2, 3)])
    True
    """
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether `pred` is true for all leaves of some types.

    >>> lucid.utils._pytree.tree_all_only(int, lambda x: x > 0, [1, ("a", 3)])
    True
    """
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether `pred` is true for any leaf of some types.

    >>> lucid.utils._pytree.tree_any_only(int, lambda x: x > 2, [1, ("a", 3)])
    True
    """
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))
