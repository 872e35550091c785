"""Names of `torch._C` that Python packages touch: keys of the dispatcher, switches of TorchScript, questions."""

from enum import IntEnum
from types import SimpleNamespace

from .. import _C
from .contexts import nothing

DispatchKey = IntEnum(
    "DispatchKey",
    "Undefined Dense BackendSelect Python FuncTorchBatched Functionalize ADInplaceOrView AutogradOther AutogradCPU "
    "AutogradCUDA Autograd AutocastCPU AutocastCUDA AutocastXPU AutocastMPS AutocastHPU CPU CUDA Meta SparseCPU QuantizedCPU "
    "PreDispatch CompositeImplicitAutograd CompositeExplicitAutograd PythonTLSSnapshot AutogradFunctionality",
)


DispatchKey.__doc__ = """Names of PyTorch's dispatcher.

>>> lucid._declared.engine.DispatchKey.CPU.name
'CPU'
"""


class DispatchKeySet(frozenset):
    """A set of keys.

    >>> from lucid._declared.engine import DispatchKey, DispatchKeySet
    >>> DispatchKeySet(DispatchKey.CPU).has(DispatchKey.CPU)
    True
    """

    def __new__(cls, key=()):
        return super().__new__(cls, (key,) if isinstance(key, DispatchKey) else key)

    def has(self, key):
        return key in self

    def add(self, key):
        return type(self)({*self, key})

    def remove(self, key):
        return type(self)(set(self) - {key})


class _ExcludeDispatchKeyGuard(nothing):
    """Switches autocast off in the block if its key is excluded, the one use packages make of it."""

    def __init__(self, keys):
        self.keys = keys if isinstance(keys, frozenset) else DispatchKeySet(keys)

    def __enter__(self):
        from ..amp import autocast

        kinds = {DispatchKey.AutocastCPU: "cpu", DispatchKey.AutocastCUDA: "cuda"}
        self._off = [autocast(kinds[key], enabled=False) for key in self.keys if key in kinds]
        for block in self._off:
            block.__enter__()
        return self

    def __exit__(self, *error):
        for block in reversed(self._off):
            block.__exit__(*error)
        return False


_TensorBase = _C.Tensor
_TensorMeta = type(_C.Tensor)
_GLIBCXX_USE_CXX11_ABI = True
_VariableFunctions = _C


def _log_api_usage_once(*args):
    return None


def _get_tracing_state():
    return None


def _len_torch_dispatch_stack():
    return 0


def _are_functorch_transforms_active():
    return bool(getattr(_C, "_transform_level", lambda: 0)())


def _get_accelerator(check=False):
    from .. import cuda

    return _C.device("cuda" if cuda.is_available() else "cpu")


def _get_default_device():
    return str(_C.get_default_device())


def _get_privateuse1_backend_name():
    return "privateuseone"


def _get_cpu_capability():
    from ..backends.cpu import get_cpu_capability

    return get_cpu_capability()


def _get_cudnn_enabled():
    from ..backends import cudnn

    return cudnn.enabled


def _add_docstr(function, text):
    return function


def _switch(*args):
    """TorchScript's switches: there is nothing to switch; the state was off."""
    return False


_jit_set_profiling_executor = _jit_set_profiling_mode = _jit_set_texpr_fuser_enabled = _jit_set_nvfuser_enabled = _switch
_jit_override_can_fuse_on_cpu = _jit_override_can_fuse_on_gpu = _jit_can_fuse_on_cpu = _jit_can_fuse_on_gpu = _switch
_jit_set_nvfuser_guard_mode = _set_math_sdp_allow_fp16_bf16_reduction = _switch


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) of the arguments of `Tensor.to`."""
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    blocking, form = kwargs.pop("non_blocking", False), kwargs.pop("memory_format", None)
    kwargs.pop("copy", None)
    if kwargs:
        raise TypeError(f"to() received an invalid combination of arguments: {sorted(kwargs)}")
    for value in args:
        if isinstance(value, _C.Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, _C.dtype):
            dtype = value
        elif isinstance(value, bool):
            blocking = value
        elif isinstance(value, (str, int, _C.device)):
            device = (
                _C.device(value) if isinstance(value, str) else _C.device("cuda", value) if isinstance(value, int) else value
            )
        elif value is not None:
            raise TypeError(f"to() received an invalid combination of arguments: {type(value).__name__}")
    device = _C.device(device) if isinstance(device, str) else device
    return device, dtype, blocking, form


_nn = SimpleNamespace(_parse_to=_parse_to)
_functorch = SimpleNamespace(
    is_batchedtensor=lambda tensor: False,
    is_legacy_batchedtensor=lambda tensor: False,
    is_gradtrackingtensor=lambda tensor: False,
    is_functorch_wrapped_tensor=lambda tensor: False,
    get_unwrapped=lambda tensor: tensor,
    maybe_get_bdim=lambda tensor: -1,
    peek_interpreter_stack=lambda: None,
)
_distributed_c10d = SimpleNamespace()
_distributed_rpc = SimpleNamespace(_is_current_rpc_agent_set=lambda: False)
_onnx = SimpleNamespace()
_dynamo = SimpleNamespace()
