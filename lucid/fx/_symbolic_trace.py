"""`Tracer` and `symbolic_trace`: call a module with stand-ins and keep what it did."""

import builtins
import functools
import inspect
import math
import sys
from types import ModuleType

from .. import _C
from ..nn import functional
from ..nn.modules.container import Sequential
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from .graph import Graph
from .graph_module import GraphModule
from .proxy import ParameterProxy, Proxy, TracerBase

_wrapped = {}  # (id of a module's dict, name): the dict
_tracing = 0


def is_fx_tracing():
    """Whether a module is being traced.

    >>> lucid.fx._symbolic_trace.is_fx_tracing()
    False
    """
    return _tracing > 0


is_fx_symbolic_tracing = is_fx_tracing


def wrap(fn_or_name):
    """Let a function of this module be a node of its own instead of being traced into; its name, or a decorator.

    >>> @lucid.fx.wrap
    ... def half(x):
    ...     return x / 2
    >>> half(2.0)
    1.0
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name.__name__ if callable(fn_or_name) else fn_or_name
    space = inspect.currentframe().f_back.f_globals
    _wrapped[id(space), name] = space
    return fn_or_name


def _first_proxy(args, kwargs):
    for value in (*args, *kwargs.values()):
        if isinstance(value, Proxy):
            return value
        if isinstance(value, (tuple, list)):
            found = _first_proxy(value, {})
            if found is not None:
                return found
    return None


def _recording(function):
    """The function, which becomes a node where it is given stand-ins."""

    @functools.wraps(function, updated=())
    def call(*args, **kwargs):
        proxy = _first_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    return call


class _Patches:
    """Names of modules replaced, and put back at the end."""

    def __init__(self):
        self.undo = []

    def __enter__(self):
        return self

    def set(self, space, name, value):
        self.undo.append((space, name, space.get(name), name in space))
        space[name] = value

    def set_on_class(self, cls, name, value):
        """Replace a method, inherited or not."""
        self.undo.append((cls, name, vars(cls).get(name), name in vars(cls)))
        setattr(cls, name, value)

    def __exit__(self, *error):
        for space, name, value, there in reversed(self.undo):
            if isinstance(space, type):
                setattr(space, name, value) if there else delattr(space, name)
            elif there:
                space[name] = value
            else:
                del space[name]


class Tracer(TracerBase):
    """Traces modules. Subclasses say which modules are steps of their own (`is_leaf_module`).

    >>> print(lucid.fx.Tracer().trace(lambda x: lucid.relu(x)))
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=lucid.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self._wrap_modules, self._wrap_functions = tuple(autowrap_modules), tuple(autowrap_functions)
        self.param_shapes_constant = param_shapes_constant
        self.root, self.submodule_paths, self.tensor_attrs = None, None, {}
        self.module_stack, self.node_name_to_scope = {}, {}

    def is_leaf_module(self, m, module_qualified_name):
        """Whether a call of a module is one step: those of `nn` are, but containers."""
        return m.__module__.startswith(("lucid.nn", "torch.nn", "lucid.ao.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod):
        """The name of a module in the root."""
        if self.submodule_paths and mod in self.submodule_paths:
            return self.submodule_paths[mod]
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        """Called for each call of a module: a step, or forward."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        self.module_stack[path] = (path, type(m))
        try:
            return forward(*args, **kwargs)
        finally:
            self.module_stack.pop(path, None)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """Called for each attribute of a module that is a parameter or buffer."""
        if isinstance(attr_val, _C.Tensor):
            for name, value in (*self.root.named_parameters(), *self.root.named_buffers()):
                if value is attr_val:
                    if name not in parameter_proxy_cache:
                        node = self.create_proxy("get_attr", name, (), {})
                        if self.param_shapes_constant:
                            node = ParameterProxy(self, node.node, name, attr_val)
                        parameter_proxy_cache[name] = node
                    return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a):
        if isinstance(a, _C.Tensor):
            for name, value in (*self.root.named_parameters(), *self.root.named_buffers()):
                if value is a:
                    return self.create_node("get_attr", name, (), {})
            if a not in self.tensor_attrs:
                number = 0
                while hasattr(self.root, f"_tensor_constant{number}"):
                    number += 1
                setattr(self.root, f"_tensor_constant{number}", a)
                self.tensor_attrs[a] = f"_tensor_constant{number}"
            return self.create_node("get_attr", self.tensor_attrs[a], (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _inputs(self, function, is_module, concrete_args):
        parameters = list(inspect.signature(inspect.unwrap(function)).parameters.values())
        args, kwargs = [self.root] if is_module else [], {}
        for p in parameters[1:] if is_module else parameters:
            if p.name in concrete_args:
                made = concrete_args[p.name]
            elif p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                if p.name in ("args", "kwargs", "_", "unused"):  # left empty
                    continue
                raise NotImplementedError(f"fx: an input *{p.name} cannot be traced; give it by concrete_args")
            else:
                default = () if p.default is p.empty else (p.default,)
                made = self.create_proxy("placeholder", p.name, default, {}, name=p.name)
            if p.kind is p.KEYWORD_ONLY:
                kwargs[p.name] = made
            else:
                args.append(made)
        return args, kwargs

    def trace(self, root, concrete_args=None):
        """The graph of a module or function. concrete_args: inputs with given values, which are not inputs of the graph."""
        global _tracing
        is_module = isinstance(root, Module)
        if is_module:
            self.root, function = root, type(root).forward
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function, self.submodule_paths = Module(), root, {}
        self.graph, self.tensor_attrs = Graph(tracer_cls=type(self)), {}
        args, kwargs = self._inputs(function, is_module, concrete_args or {})
        with _Patches() as patches:
            self._patch(patches)
            _tracing += 1
            try:
                result = function(*args, **kwargs)
            finally:
                _tracing -= 1
        self.create_node("output", "output", (self.create_arg(result),), {})
        self.submodule_paths = None
        return self.graph

    def _patch(self, patches):
        """Calls of modules, their parameters, and functions that are not ops come to this tracer."""
        call, get, tracer, cache = Module.__call__, Module.__getattr__, self, {}

        def traced_call(mod, *args, **kwargs):
            return tracer.call_module(mod, lambda *a, **k: call(mod, *a, **k), args, kwargs)

        def traced_get(mod, name):
            value = get(mod, name)
            return tracer.getattr(name, value, cache) if isinstance(value, Parameter) else value

        patches.set_on_class(Module, "__call__", traced_call)
        patches.set_on_class(Module, "__getattr__", traced_get)
        for space in (vars(functional), *map(vars, self._wrap_modules)):
            for name, value in list(space.items()):
                ours = inspect.isfunction(value) or (space is not vars(functional) and callable(value))
                if not name.startswith("_") and ours:
                    patches.set(space, name, _recording(value))
        for (_, name), space in _wrapped.items():
            value = space.get(name, getattr(builtins, name, None))
            if value is not None:
                patches.set(space, name, _recording(value))
        for function in self._wrap_functions:
            for space in _holders(function):
                patches.set(space, function.__name__, _recording(function))


def _holders(function):
    """The dicts of modules in which a function is known by its name."""
    name = function.__name__
    return [vars(m) for m in list(sys.modules.values()) if isinstance(m, ModuleType) and vars(m).get(name) is function]


def symbolic_trace(root, concrete_args=None):
    """A module (or function) as a `GraphModule` that does the same.

    >>> traced = lucid.fx.symbolic_trace(lambda x: lucid.relu(x) * 2)
    >>> traced(lucid.tensor([-1.0, 1.0]))
    tensor([0., 2.])
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name if name.isidentifier() else "GraphModule")
