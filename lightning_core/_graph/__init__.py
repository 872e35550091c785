"""Graphs of operators: described once, checked, planned, run on NumPy arrays.

schemas.py says which operators there are, ir.py holds a graph, validate.py checks it, plan.py decides where nodes run and
groups them, fusion.py finds chains that are dispatched as one, execute.py computes.
"""

from .ir import GraphIR
from .schemas import graph_registry_schema, graph_registry_schemas, graph_registry_size
from .validate import graph_validation_passes

__all__ = ["GraphIR", "graph_registry_schema", "graph_registry_schemas", "graph_registry_size", "graph_validation_passes"]
