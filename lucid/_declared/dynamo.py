"""What `torch.compiler`, `torch._dynamo` and `torch._inductor` answer where `lucid.compile` is the compiler."""

import os
import tempfile
from contextlib import contextmanager
from types import SimpleNamespace


def is_compiling():
    """Whether a function is being recorded by `lucid.compile` now.

    >>> lucid.compiler.is_compiling()
    False
    """
    from .. import _C

    return bool(getattr(_C, "_tracing", lambda: False)())


def is_compile_supported(device_type):
    """Whether `lucid.compile` works for a device.

    >>> from lucid._dynamo.utils import is_compile_supported
    >>> is_compile_supported("cpu"), is_compile_supported("mps")
    (True, False)
    """
    return str(device_type).partition(":")[0] == "cpu"


def reset():
    """Forget what was compiled: every compiled function keeps its own plans, so that there is nothing in common to forget.

    >>> lucid._dynamo.reset()
    """


def list_backends(exclude_tags=("debug", "experimental")):
    """The names `lucid.compile` takes as backend.

    >>> lucid._dynamo.list_backends()
    ['inductor', 'lucid']
    """
    return ["inductor", "lucid"]


def list_mode_options(mode=None, dynamic=None):
    """What the modes of the compiler set: nothing.

    >>> lucid._inductor.list_mode_options("default")
    {}
    """
    modes = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
    return {} if mode else {name: {} for name in modes}


def list_options():
    """The options of the compiler.

    >>> lucid._inductor.list_options()
    ['plans']
    """
    return ["plans"]


def cache_dir():
    """Where PyTorch's compiler keeps its files.

    >>> isinstance(lucid._inductor.runtime.cache_dir_utils.cache_dir(), str)
    True
    """
    return os.environ.get("TORCHINDUCTOR_CACHE_DIR", os.path.join(tempfile.gettempdir(), "torchinductor"))


@contextmanager
def fresh_inductor_cache(cache_entries=None):
    """A block with an empty cache of the compiler: it has none.

    >>> with lucid._inductor.utils.fresh_inductor_cache():
    ...     1
    1
    """
    yield


def compile(*args, **kwargs):
    """`lucid.compile`.

    >>> lucid.compiler.compile(abs)(-1)
    1
    """
    import lucid

    return lucid.compile(*args, **kwargs)


def optimize(backend="inductor", **settings):
    """A decorator that compiles.

    >>> lucid._dynamo.optimize()(abs)(-1)
    1
    """
    import lucid

    return lambda function: function if settings.get("disable") or callable(backend) else lucid.compile(function)


def explain(function, *args, **kwargs):
    """Raises: `LUCID_VERBOSE=1` and the warnings of `lucid.compile` say why a function is not compiled.

    >>> lucid._dynamo.explain(abs)
    Traceback (most recent call last):
    NotImplementedError: ...
    """
    raise NotImplementedError("_dynamo.explain is not in Lucid: a warning of lucid.compile says why a function runs as it is")


class _Patch:
    def __init__(self, values):
        self.values = values

    def __enter__(self):
        from importlib import import_module

        config = import_module("lucid._dynamo.config")
        self.before = {name: getattr(config, name, None) for name in self.values}
        for name, value in self.values.items():
            setattr(config, name, value)

    def __exit__(self, *error):
        from importlib import import_module

        for name, value in self.before.items():
            setattr(import_module("lucid._dynamo.config"), name, value)

    def __call__(self, function):
        from functools import wraps

        @wraps(function)
        def inside(*args, **kwargs):
            with _Patch(self.values):
                return function(*args, **kwargs)

        return inside


def patch(name=None, value=None, **values):
    """Settings of `_dynamo.config` that hold in a block or a function. They are kept and change nothing.

    >>> with lucid._dynamo.config.patch(verbose=True):
    ...     lucid._dynamo.config.verbose
    True
    """
    if isinstance(name, dict):
        values = {**name, **values}
    elif name is not None:
        values[name] = value
    return _Patch(values)


class _CompiledMeta(type):
    def __instancecheck__(cls, instance):
        return hasattr(type(instance), "_lucid_compiled") or type.__instancecheck__(cls, instance)


class OptimizedModule(metaclass=_CompiledMeta):
    """The class of what PyTorch's compiler makes of a module, for `isinstance`.

    >>> isinstance(lucid.nn.Identity(), lucid._dynamo.OptimizedModule)
    False
    """


class TorchDynamoException(RuntimeError):  # noqa: N818 (PyTorch's name)
    """The base of the compiler's errors.

    >>> issubclass(lucid._dynamo.exc.TorchDynamoException, RuntimeError)
    True
    """


class BackendCompilerFailed(TorchDynamoException):
    """PyTorch's error of a compiler that failed.

    >>> issubclass(lucid._dynamo.exc.BackendCompilerFailed, RuntimeError)
    True
    """


class Unsupported(TorchDynamoException):
    """PyTorch's error of a function that cannot be compiled.

    >>> issubclass(lucid._dynamo.exc.Unsupported, RuntimeError)
    True
    """


class OnnxExporterError(RuntimeError):
    """The base of errors of an export to ONNX.

    >>> issubclass(lucid.onnx.OnnxExporterError, RuntimeError)
    True
    """


class CompileCounter:
    """Counts how often a function was given to it as a compiler.

    >>> counter = lucid._dynamo.testing.CompileCounter()
    >>> counter.frame_count
    0
    """

    def __init__(self):
        self.frame_count = self.op_count = 0

    def __call__(self, function, example_inputs):
        self.frame_count += 1
        return function


class CompileContext:
    """The compilation under way: none.

    >>> lucid._guards.CompileContext.current_compile_id() is None
    True
    """

    @staticmethod
    def current_compile_id():
        return None


def getArtifactLogger(module, artifact):  # noqa: N802 (PyTorch's name)
    """A logger of Python.

    >>> lucid._logging.getArtifactLogger("a", "b").name
    'a.b'
    """
    import logging

    return logging.getLogger(f"{module}.{artifact}")


class TransformGetItemToIndex:
    """A context in which indexing by a batched tensor works inside `vmap`: it always does here.

    >>> with lucid._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex():
    ...     lucid.vmap(lambda i: lucid.arange(3)[i])(lucid.tensor([2, 0]))
    tensor([2, 0])
    """

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class _BroadcastingList:
    def __getitem__(self, kind):
        return list[kind]

    def __call__(self, *args, **kwargs):
        raise TypeError("BroadcastingList is for annotations")


BroadcastingList = _BroadcastingList()
concrete_type_store = SimpleNamespace(type_store={}, methods_compiled=set())
