"""Graphs of modules, recorded by calling them with stand-ins: print them, change them, run them as modules.

>>> class Model(lucid.nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.layer = lucid.nn.Linear(2, 1)
...     def forward(self, x):
...         return self.layer(x).relu() + 1
>>> traced = lucid.fx.symbolic_trace(Model())
>>> print(traced.graph)
graph():
    %x : [num_users=1] = placeholder[target=x]
    %layer : [num_users=1] = call_module[target=layer](args = (%x,), kwargs = {})
    %relu : [num_users=1] = call_method[target=relu](args = (%layer,), kwargs = {})
    %add : [num_users=1] = call_function[target=operator.add](args = (%relu, 1), kwargs = {})
    return add
>>> traced(lucid.ones(1, 2)).shape
lucid.Size([1, 1])
"""

from ._symbolic_trace import Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]


def __getattr__(name):
    from .. import _declared

    return _declared.look("fx", name)
