"""`Proxy`: the stand-in that records what is done with it."""

import operator
from types import MappingProxyType

from .. import _C
from .node import BaseArgumentTypes, Node, map_aggregate


class TraceError(ValueError):
    """A module does what a graph cannot hold: it decides by values.

    >>> issubclass(lucid.fx.proxy.TraceError, ValueError)
    True
    """


class TracerBase:
    """What makes nodes and proxies.

    >>> lucid.fx.proxy.TracerBase().check_mutable_operations
    False
    """

    record_stack_traces = check_mutable_operations = trace_asserts = proxy_buffer_attributes = False
    module_stack = None
    scope = None

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node):
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        args, kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a):
        """What stands in a node for a value: nodes for proxies, values as they are."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(map(self.create_arg, a)), {})
        if isinstance(a, (tuple, list)):
            return (
                type(a)([self.create_arg(item) for item in a]) if type(a) in (tuple, list) else tuple(map(self.create_arg, a))
            )
        if isinstance(a, dict):
            for key in a:
                map_aggregate(key, _no_proxy)
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, (*BaseArgumentTypes, _C.dtype, _C.device, _C.layout, _C.memory_format, _C.Tensor, type(...), Node)):
            return a
        if callable(a) or isinstance(a, (type, MappingProxyType)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj):
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        import dis
        import inspect

        caller = inspect.currentframe().f_back.f_back
        place = dis.opname[caller.f_code.co_code[caller.f_lasti]]
        if place == "UNPACK_SEQUENCE":  # a, b = proxy
            return (obj[i] for i in range(caller.f_code.co_code[caller.f_lasti + 1]))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control "
            "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj):
        return Attribute(obj, "keys")()


def _no_proxy(key):
    if isinstance(key, (Proxy, Node)):
        raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}")


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that is there.

    >>> lucid.fx.proxy.GraphAppendingTracer(lucid.fx.Graph()).graph.owning_module is None
    True
    """

    def __init__(self, graph):
        self.graph = graph


class Proxy:
    """Stands for a value while a module is traced; everything done with it becomes a node.

    >>> graph = lucid.fx.Graph()
    >>> x = lucid.fx.Proxy(graph.placeholder("x"))
    >>> (lucid.relu(x) + 1).node
    add
    """

    def __init__(self, node, tracer=None):
        self.__dict__["tracer"] = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.__dict__["node"] = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__") and name not in ("__array__",):
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self):
        return self.tracer.iter(self)

    def __bool__(self):
        import dis
        import inspect

        frame = inspect.currentframe().f_back
        if self.tracer.trace_asserts and "assert" in dis.opname[frame.f_code.co_code[frame.f_lasti]].lower():
            return True
        return self.tracer.to_bool(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default: torch.fx.wrap('len') at module scope records it"
        )

    def __contains__(self, item):
        raise RuntimeError("'in' is not supported in symbolic tracing")

    def keys(self):
        return self.tracer.keys(self)

    def __deepcopy__(self, memo):
        return self

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        return _tracer_of(args, kwargs).create_proxy("call_function", orig_method, args, kwargs)

    __lucid_function__ = __torch_function__


def _tracer_of(args, kwargs):
    found = []

    def note(value):
        if isinstance(value, Proxy):
            found.append(value.tracer)
        return value

    map_aggregate((args, kwargs), note)
    return found[0]


class Attribute(Proxy):
    """An attribute of a stand-in, `x.shape`; it becomes a node when it is used, or a call of a method.

    >>> graph = lucid.fx.Graph()
    >>> x = lucid.fx.Proxy(graph.placeholder("x"))
    >>> x.sum(dim=1).node.op, x.shape.node.op
    ('call_method', 'call_function')
    """

    def __init__(self, root, attr):
        self.__dict__.update(root=root, attr=attr, tracer=root.tracer, _node=None)

    @property
    def node(self):
        if self._node is None:
            self.__dict__["_node"] = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """Stands for a parameter whose shape is known.

    >>> issubclass(lucid.fx.proxy.ParameterProxy, lucid.fx.Proxy)
    True
    """

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        self.__dict__.update(param=param, name=name)

    @property
    def shape(self):
        return self.param.shape

    def size(self, *args):
        return self.param.size(*args)

    def dim(self):
        return self.param.dim()

    @property
    def ndim(self):
        return self.param.ndim

    def numel(self):
        return self.param.numel()


_BINARY = "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor matmul".split()
_OTHER = "eq ne lt gt le ge getitem neg pos invert".split()


def _record(function):
    def method(self, *args):
        return self.tracer.create_proxy("call_function", function, (self, *args), {})

    return method


def _reflected(function):
    def method(self, other):
        return self.tracer.create_proxy("call_function", function, (other, self), {})

    return method


for _name in _BINARY + _OTHER:
    _function = getattr(operator, _name)
    setattr(Proxy, f"__{_name.strip('_')}__", _record(_function))
    if _name in _BINARY:
        setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_function))
Proxy.__hash__ = object.__hash__
Proxy.__abs__ = _record(abs)
