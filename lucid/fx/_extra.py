"""Small names of `torch.fx._pytree` and `torch.fx._compatibility`."""

from ..utils._pytree import tree_flatten

SUPPORTED_NODES = {}


def compatibility(is_backward_compatible):
    """A decorator that says whether a name stays as it is; gives the name back.

    >>> from lucid.fx._compatibility import compatibility
    >>> compatibility(is_backward_compatible=True)(abs) is abs
    True
    """
    return lambda function: function


def _dict_flatten_spec(d, spec):
    return [d[key] for key in spec.context]


def _list_flatten_spec(d, spec):
    return [d[i] for i in range(spec.num_children)]


_tuple_flatten_spec = _list_flatten_spec


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """Set how a class is taken apart by a spec.

    >>> from lucid.fx._pytree import register_pytree_flatten_spec
    >>> register_pytree_flatten_spec(frozenset, lambda value, spec: list(value))
    """
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree, spec):
    """The leaves of a tree of a known structure.

    >>> from lucid.fx._pytree import tree_flatten_spec
    >>> tree_flatten_spec([1, 2], lucid.utils._pytree.tree_structure([0, 0]))
    [1, 2]
    """
    if spec.type in SUPPORTED_NODES:
        parts = SUPPORTED_NODES[spec.type](pytree, spec)
        return [leaf for part, child in zip(parts, spec.children_specs) for leaf in tree_flatten_spec(part, child)]
    return tree_flatten(pytree)[0]
