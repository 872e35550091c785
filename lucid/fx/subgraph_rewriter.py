"""`replace_pattern`: finds a small graph in a large one and puts another in its place."""

from collections import namedtuple

from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node

Match = namedtuple("Match", ["anchor", "nodes_map"])
Match.__doc__ = """A place where a pattern was found: its last node, and what the pattern's nodes stand for.

>>> lucid.fx.subgraph_rewriter.Match(1, {}).anchor
1
"""


def _as_graph(pattern):
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


def _matches(want, have, found):
    """Whether a node and all it is made from are as in the pattern; found: pattern nodes and what they stand for."""
    if not isinstance(want, Node):
        if isinstance(want, (tuple, list)):
            alike = isinstance(have, (tuple, list)) and len(have) == len(want)
            return alike and all(_matches(w, h, found) for w, h in zip(want, have))
        return not isinstance(have, Node) and want == have
    if want in found:
        return found[want] is have
    if want.op == "placeholder":
        found[want] = have
        return True
    if not isinstance(have, Node) or (want.op, want.target) != (have.op, have.target) or set(want.kwargs) != set(have.kwargs):
        return False
    found[want] = have
    pairs = zip((*want.args, *want.kwargs.values()), (*have.args, *(have.kwargs[k] for k in want.kwargs)))
    return len(want.args) == len(have.args) and all(_matches(w, h, found) for w, h in pairs)


def replace_pattern(gm, pattern, replacement):
    """Replace every place of a graph that does what `pattern` does; the matches. Both are functions, graphs or modules.

    >>> traced = lucid.fx.symbolic_trace(lambda x: lucid.relu(x) + 1)
    >>> matches = lucid.fx.replace_pattern(traced, lambda x: lucid.relu(x), lambda x: lucid.tanh(x))
    >>> len(matches), traced(lucid.zeros(1))
    (1, tensor([1.]))
    """
    want, put = _as_graph(pattern), _as_graph(replacement)
    last, matches, taken = want.output_node().args[0], [], set()
    for node in list(gm.graph.nodes):
        found = {}
        if node.op == "output" or not _matches(last, node, found):
            continue
        inner = {have for w, have in found.items() if w.op != "placeholder"}
        if inner & taken or any(user not in inner for n in inner - {node} for user in n.users):
            continue
        taken |= inner
        matches.append(Match(node, found))
    for anchor, found in matches:
        inputs = [found[w] for w in want.find_nodes(op="placeholder")]
        values = dict(zip(put.find_nodes(op="placeholder"), inputs))
        with gm.graph.inserting_before(anchor):
            result = gm.graph.graph_copy(put, values)
        anchor.replace_all_uses_with(result)
        for w, have in reversed(found.items()):
            if w.op != "placeholder" and isinstance(have, Node) and not have._erased and not have.users:
                gm.graph.erase_node(have)
        for n in reversed([h for w, h in found.items() if w.op != "placeholder"]):
            if not n._erased and not n.users:
                gm.graph.erase_node(n)
    gm.recompile()
    return matches
