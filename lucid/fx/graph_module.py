"""`GraphModule`: a module whose forward is made from a graph."""

import copy
import linecache
from itertools import count

from .. import _C
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from .graph import Graph

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_numbers = count()


def _compiled(code, names):
    """The function in a text; the text is kept so that tracebacks can show it."""
    file = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[file] = len(code), None, code.splitlines(keepends=True), file
    space = dict(names)
    exec(compile(code, file, "exec"), space)
    return space["forward"]


def _copy_attr(from_module, to_module, target):
    *path, name = target.split(".")
    for part in path:
        following = getattr(to_module, part, None)
        from_module = getattr(from_module, part)
        if following is from_module:
            return
        if following is None:
            following = Module()
            setattr(to_module, part, following)
        to_module = following
    value = getattr(from_module, name)
    if isinstance(value, _C.Tensor) and not isinstance(value, Parameter):
        to_module.register_buffer(name, value)
    else:
        setattr(to_module, name, value)


class _CodeOnlyModule(Module):
    """A module with the attributes of another and no forward: what a pickled graph is traced from."""

    def __init__(self, body):
        self.__dict__.update(body)  # Module's own state too


class GraphModule(Module):
    """A module made from a graph: parameters and submodules of `root`, and a forward written from `graph`.

    >>> traced = lucid.fx.symbolic_trace(lucid.nn.Sequential(lucid.nn.ReLU()))
    >>> print(traced.code.strip())
    def forward(self, input):
        input_1 = input
        _0 = getattr(self, "0")(input_1);  input_1 = None
        return _0
    """

    def __new__(cls, *args, **kwargs):
        made = type(cls.__name__, (cls,), {"__module__": cls.__module__})  # forward is an attribute of the class: one each
        return Module.__new__(made)

    def __init__(self, root, graph, class_name="GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(f"Node {node} referenced target {node.target}, which was not provided in `root`!")
            targets = {n.target for n in graph.nodes if n.op in ("get_attr", "call_module")}
            for target in sorted(targets, key=lambda t: t.count(".")):
                self._put(target, root[target])
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.meta = dict(getattr(root, "meta", {})) if isinstance(root, Module) else {}
        self.graph = graph
        self._tracer_cls = graph._tracer_cls

    def _put(self, target, value):
        *path, name = target.split(".")
        module = self
        for part in path:
            if not hasattr(module, part):
                setattr(module, part, Module())
            module = getattr(module, part)
        if isinstance(value, _C.Tensor) and not isinstance(value, Parameter):
            module.register_buffer(name, value)
        else:
            setattr(module, name, value)

    @property
    def graph(self):
        return self._graph

    @graph.setter
    def graph(self, graph):
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self.__dict__["_graph"] = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self):
        return self._code

    def recompile(self):
        """Write forward again after the graph has changed."""
        python = self._graph.python_code("self")
        self.__dict__["_code"] = python.src
        type(self).forward = _compiled(python.src, python.globals)
        return python

    def add_submodule(self, target, m):
        """Add a module at a path; whether that worked."""
        *path, name = target.split(".")
        module = self
        for part in path:
            following = getattr(module, part, None)
            if following is None:
                following = Module()
                setattr(module, part, following)
            if not isinstance(following, Module):
                return False
            module = following
        module.add_module(name, m)
        return True

    def delete_submodule(self, target):
        """Remove the module at a path; whether there was one."""
        path, _, name = target.rpartition(".")
        try:
            parent = self.get_submodule(path)
        except AttributeError:
            return False
        if not isinstance(getattr(parent, name, None), Module):
            return False
        delattr(parent, name)
        return True

    def delete_all_unused_submodules(self):
        """Remove modules that no node uses."""
        used = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                if node.op == "call_module":
                    used |= {f"{node.target}.{n}" for n, _ in self.get_submodule(node.target).named_modules() if n}
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output=True, **settings):
        """The code of the module, printed."""
        lines = [f"class {type(self).__name__}(torch.nn.Module):", *(f"    {line}" for line in self._code.strip().splitlines())]
        text = "\n".join(lines)
        if print_output:
            print(text)
        return text

    def __deepcopy__(self, memo):
        body = {name: copy.deepcopy(value, memo) for name, value in self.__dict__.items() if name not in ("_graph", "_code")}
        fake = Module()
        fake.__dict__.update(body)
        made = GraphModule.__new__(GraphModule)
        made.__dict__.update(fake.__dict__)
        type(made).__name__ = type(self).__name__
        made.graph = copy.deepcopy(self._graph)
        return made

    def __copy__(self):
        return GraphModule(self, copy.deepcopy(self.graph), type(self).__name__)

    def __reduce__(self):
        body = {name: value for name, value in self.__dict__.items() if name not in ("_graph", "_code")}
        return _unpickled, (body, self._code, self._graph.python_code("self").globals, type(self).__name__)

    def __str__(self):
        return f"{super().__str__()}\n\n{self._code}\n\n# To see more debug info, please use `graph_module.print_readable()`"


def _unpickled(body, code, names, class_name):
    """A module from its code, which is traced again."""
    from ._symbolic_trace import Tracer

    module = _CodeOnlyModule(body)
    type(module).forward = _compiled(code, names)

    class _Leaves(Tracer):
        def is_leaf_module(self, m, module_qualified_name):
            return True

    return GraphModule(module, _Leaves().trace(module), class_name)
