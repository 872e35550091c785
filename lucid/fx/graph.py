"""`Graph`: a list of nodes, and the Python code they stand for."""

import builtins
import keyword
import re
from contextlib import contextmanager
from inspect import Signature

from .. import _C
from .node import Node, map_arg, qualified_name

_RESERVED = ("self", "torch", "lucid", "operator")


class _Names:
    """Names that are not taken: x, x_1, x_2."""

    def __init__(self):
        self._taken, self._count = set(), {}

    def make(self, wanted):
        wanted = re.sub(r"[^0-9a-zA-Z_]+", "_", wanted) or "_unnamed"
        if wanted[0].isdigit():
            wanted = f"_{wanted}"
        base, _, number = wanted.rpartition("_")
        base = base if base and number.isdigit() else wanted
        name, n = wanted, self._count.get(base, 0)
        while name in self._taken or keyword.iskeyword(name) or hasattr(builtins, name) or name in _RESERVED:
            n += 1
            name = f"{base}_{n}"
        self._count[base] = n
        self._taken.add(name)
        return name


def _snake(text):
    text = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", text)
    return text.lower()


class PythonCode:
    """The code of a graph, and the objects it names.

    >>> graph = lucid.fx.Graph()
    >>> _ = graph.output(graph.placeholder("x"))
    >>> print(graph.python_code("self").src.strip())
    def forward(self, x):
        return x
    """

    def __init__(self, src, globals_):
        self.src, self.globals = src, globals_


class CodeGen:
    """Writes the code of a graph.

    >>> lucid.fx.CodeGen().gen_fn_def([], "")
    'def forward(self):'
    """

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        """The first line."""
        return f"def forward({', '.join(['self', *free_vars])}){maybe_return_annotation}:"

    def generate_output(self, output_args):
        """The last line."""
        return f"return {output_args!r}"

    def process_inputs(self, *args):
        """What the function gets."""
        return args

    def process_outputs(self, outputs):
        """What it gives."""
        return outputs


class Graph:
    """The steps of a function or module in order.

    >>> graph = lucid.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(lucid.add, (x, 1))
    >>> _ = graph.output(y)
    >>> lucid.fx.GraphModule(lucid.nn.Module(), graph)(lucid.ones(1))
    tensor([2.])
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self.owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras
        self._root = Node(self, "", "root", "", (), {})
        self._insert = self._root.prepend
        self._names, self._codegen, self._len = _Names(), CodeGen(), 0

    @property
    def nodes(self):
        return _Nodes(self)

    def __len__(self):
        return self._len

    def create_node(self, op, target, args=None, kwargs=None, name=None, type_expr=None):
        """Add a node where nodes are added now: at the end, or where `inserting_before` says."""
        for value in (args, kwargs):
            map_arg(value if value is not None else (), self._own)
        wanted = name or self._target_to_str(target)
        node = Node(self, self._names.make(wanted), op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        self._len += 1
        return node

    def _own(self, node):
        if node.graph is not self:
            raise RuntimeError(f"Argument '{node.name}' of Node belongs to another graph")
        return node

    def _target_to_str(self, target):
        if not isinstance(target, str):
            target = getattr(target, "__name__", type(target).__name__).strip("_") or "function"
        elif target.startswith("__") and target.endswith("__"):
            target = target[2:-2]
        return _snake(target.replace(".", "_"))

    def placeholder(self, name, type_expr=None, default_value=Signature.empty):
        """An input."""
        args = () if default_value is Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args, {}, name.lstrip("*"), type_expr)

    def get_attr(self, qualified_name, type_expr=None):
        """A parameter, buffer or other attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name, args=None, kwargs=None, type_expr=None):
        """A call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name, args=None, kwargs=None, type_expr=None):
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function, args=None, kwargs=None, type_expr=None, name=None):
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result, type_expr=None):
        """What the graph gives."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self):
        """The last node."""
        node = self._root._prev
        if node.op != "output":
            raise AssertionError("the graph has no output")
        return node

    def find_nodes(self, *, op, target=None, sort=True):
        """All nodes of a kind."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def node_copy(self, node, arg_transform=lambda node: node):
        """Add a copy of a node of another graph."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(self, g, val_map, return_output_node=False):
        """Add copies of all nodes of another graph; its output's value."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], val_map.__getitem__)
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def __deepcopy__(self, memo=None):
        made, val_map = Graph(self.owning_module, self._tracer_cls), {}
        result = made.graph_copy(self, val_map, return_output_node=True)
        if result is not None:
            value, old = result
            made.output(value, type_expr=old.type).meta = dict(old.meta)
        return made

    def erase_node(self, to_erase):
        """Remove a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._update((), {})
        self._len -= 1

    @contextmanager
    def _inserting(self, insert):
        before, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = before

    def inserting_before(self, n=None):
        """A block in which nodes are added before a node."""
        return self._inserting((self._root._next if n is None else n).prepend)

    def inserting_after(self, n=None):
        """A block in which nodes are added behind a node, each behind the last."""
        last = [self._root if n is None else n]

        def insert(node):
            last[0].append(node)
            last[0] = node

        return self._inserting(insert)

    def eliminate_dead_code(self, is_impure_node=None):
        """Remove nodes that nobody uses and that do nothing else; whether there were any."""
        impure, changed = is_impure_node or Node.is_impure, False
        for node in reversed(list(self.nodes)):
            if not node.users and not impure(node) and node.op != "output":
                self.erase_node(node)
                changed = True
        return changed

    def lint(self):
        """Check that nodes come before their uses, names are unique, and targets are there."""
        seen, names = set(), set()
        for node in self.nodes:
            for used in node.all_input_nodes:
                if used not in seen:
                    raise RuntimeError(f"Argument '{used}' of Node '{node}' was used before it has been defined!")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("call_module", "get_attr"):
                value = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(value, part):
                        raise RuntimeError(f"Node {node} target {node.target} references nonexistent attribute {part}")
                    value = getattr(value, part)

    def python_code(self, root_module, *, verbose=False, **settings):
        """The graph as a function `forward`, and what it names."""
        return _written(self, root_module)

    def set_codegen(self, codegen):
        """Use another writer of code."""
        self._codegen = codegen

    def print_tabular(self):
        """Print the nodes as a table."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        rows += [(n.op, n.name, str(n.target), str(n.args), str(n.kwargs)) for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, tuple("-" * width for width in widths))
        print("\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows))

    def process_inputs(self, *args):
        """What the graph gets."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What it gives."""
        return self._codegen.process_outputs(out)

    def __str__(self):
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)


class _Nodes:
    """The nodes of a graph in order; a node may be erased while they are walked."""

    def __init__(self, graph, backwards=False):
        self.graph, self.backwards = graph, backwards

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        root = self.graph._root
        node = root._prev if self.backwards else root._next
        while node is not root:
            following = node._prev if self.backwards else node._next
            yield node
            node = following if node._erased or node._next is node else node._prev if self.backwards else node._next

    def __reversed__(self):
        return iter(_Nodes(self.graph, not self.backwards))


_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "truediv": "/", "mod": "%", "pow": "**", "lshift": "<<",
    "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "gt": ">",
    "le": "<=", "ge": ">=",
}  # fmt: skip


class _Writer:
    """Names of objects in code."""

    def __init__(self):
        self.globals = {}

    def object(self, value, name):
        name = re.sub(r"[^0-9a-zA-Z_]", "_", name)
        while self.globals.get(name, value) is not value:
            name += "_"
        self.globals[name] = value
        return name

    def value(self, value):
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return f"{self.object(type(value), type(value).__name__)}({', '.join(map(self.value, value))})"
        if isinstance(value, tuple):
            return "(" + ", ".join(map(self.value, value)) + ("," if len(value) == 1 else "") + ")"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.value, value)) + "]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return f"float('{value}')"
        if isinstance(value, (str, int, float, bool, complex, type(None), type(...), range)):
            return repr(value)
        if isinstance(value, (_C.dtype, _C.layout, _C.memory_format)):
            return self.object(value, repr(value).replace(".", "_"))
        if isinstance(value, _C.device):
            return self.object(value, f"device_{value.type}_{value.index or 0}")
        return self.object(value, getattr(value, "__name__", type(value).__name__))

    def arguments(self, node, args=None):
        parts = [self.value(a) for a in (node.args if args is None else args)]
        return ", ".join(parts + [f"{k} = {self.value(v)}" for k, v in node.kwargs.items()])

    def call(self, node):
        target = node.target
        module = getattr(target, "__module__", "")
        name = getattr(target, "__name__", "")
        if module == "_operator" and name in _OPERATORS and len(node.args) == 2 and not node.kwargs:
            return f"{self.value(node.args[0])} {_OPERATORS[name]} {self.value(node.args[1])}"
        if module == "_operator" and name == "getitem":
            return f"{self.value(node.args[0])}[{self.value(node.args[1])}]"
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{self.value(node.args[0])}.{node.args[1]}"
        written = self.object(target, qualified_name(target).replace(".", "_"))
        return f"{written}({self.arguments(node)})"


def _path(root, target):
    text = root
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() and not keyword.iskeyword(part) else f'getattr({text}, "{part}")'
    return text


def _written(graph, root):
    writer, lines, inputs = _Writer(), [], []
    last_use = {}
    for node in reversed(list(graph.nodes)):
        for used in node.all_input_nodes:
            last_use.setdefault(used, node)
    gone = {}
    for used, user in last_use.items():
        gone.setdefault(user, []).append(used.name)
    for node in graph.nodes:
        if node.op == "placeholder":
            default = f" = {writer.value(node.args[0])}" if node.args else ""
            star = "*" * (len(node.target) - len(node.target.lstrip("*")))
            raw = node.target.lstrip("*")
            inputs.append(f"{star}{raw}{default}")
            if raw != node.name:
                lines.append(f"{node.name} = {raw}")
            continue
        if node.op == "output":
            lines.append(f"return {writer.value(node.args[0])}")
            continue
        if node.op == "get_attr":
            text = _path(root, node.target)
        elif node.op == "call_module":
            text = f"{_path(root, node.target)}({writer.arguments(node)})"
        elif node.op == "call_method":
            text = f"{writer.value(node.args[0])}.{node.target}({writer.arguments(node, node.args[1:])})"
        else:
            text = writer.call(node)
        free = [name for name in sorted(gone.get(node, ())) if name != node.name]
        if not node.users:
            free.append(node.name)
        lines.append(f"{node.name} = {text}" + (f";  {' = '.join(free)} = None" if free else ""))
    head = graph._codegen.gen_fn_def(inputs, "")
    return PythonCode("\n\n" + head + "\n" + "".join(f"    {line}\n" for line in lines or ["pass"]), writer.globals)
