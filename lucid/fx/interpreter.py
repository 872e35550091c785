"""`Interpreter` runs a graph node by node; `Transformer` makes a new graph that way."""

from .graph import Graph
from .graph_module import GraphModule
from .node import map_arg
from .proxy import Proxy, TracerBase


class Interpreter:
    """Runs the graph of a module; subclasses change what a kind of node does.

    >>> traced = lucid.fx.symbolic_trace(lambda x: lucid.relu(x) + 1)
    >>> lucid.fx.Interpreter(traced).run(lucid.ones(1))
    tensor([2.])
    """

    def __init__(self, module, garbage_collect_values=True, graph=None):
        self.module, self.graph = module, module.graph if graph is None else graph
        self.submodules = dict(module.named_modules())
        self.env, self.garbage_collect_values, self.extra_traceback = {}, garbage_collect_values, True
        self._last = {}
        for node in reversed(list(self.graph.nodes)):
            for used in node.all_input_nodes:
                if used not in self._last:
                    self._last[used] = node

    def run(self, *args, initial_env=None, enable_io_processing=True):
        """What the graph gives for these inputs."""
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        gone = {}
        for used, user in self._last.items():
            gone.setdefault(user, []).append(used)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            if self.garbage_collect_values:
                for used in gone.get(node, ()):
                    self.env.pop(used, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def run_node(self, n):
        """What one node gives."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target, args, kwargs):
        """An input."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!") from None

    def get_attr(self, target, args, kwargs):
        """A parameter or other attribute."""
        return self.fetch_attr(target)

    def call_function(self, target, args, kwargs):
        """A call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target, args, kwargs):
        """A call of a method."""
        own, *rest = args
        return getattr(own, target)(*rest, **kwargs)

    def call_module(self, target, args, kwargs):
        """A call of a module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target, args, kwargs):
        """What the graph gives."""
        return args[0]

    def fetch_attr(self, target):
        """An attribute of the module by its path."""
        value = self.module
        for part in target.split("."):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {target}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n):
        """The arguments of a node as values."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args, n):
        """Arguments with values for nodes."""
        return map_arg(args, lambda node: self.env[node])


class Transformer(Interpreter):
    """Runs a graph on stand-ins, which makes a new graph; subclasses change what a kind of node becomes.

    >>> traced = lucid.fx.symbolic_trace(lambda x: lucid.relu(x) + 1)
    >>> lucid.fx.Transformer(traced).transform()(lucid.ones(1))
    tensor([2.])
    """

    def __init__(self, module):
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _Adding(self.new_graph)

    def placeholder(self, target, args, kwargs):
        return Proxy(self.new_graph.placeholder(target, None, *args[:1]), self.tracer)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self):
        """The new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(_unwrapped(result))
        return GraphModule(self.module, self.new_graph)


class _Adding(TracerBase):
    def __init__(self, graph):
        self.graph = graph


def _unwrapped(value):
    from .node import map_aggregate

    return map_aggregate(value, lambda v: v.node if isinstance(v, Proxy) else v)
