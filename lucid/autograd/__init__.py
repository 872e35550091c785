"""Derivatives: `backward` and `grad`, the switches that govern recording, and functions of your own.

Modules that few programs need are loaded at first use.
"""

from .._C import RemovableHandle
from ._run import backward, grad
from .anomaly_mode import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .function import Function, FunctionCtx
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = [
    "Function",
    "FunctionCtx",
    "RemovableHandle",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_MODULES = ("forward_ad", "functional", "graph", "profiler", "profiler_util", "variable")
_ELSEWHERE = {  # public name: the module that is loaded when it is first asked for
    "jacobian": "functional",
    "hessian": "functional",
    "vjp": "functional",
    "jvp": "functional",
    "Variable": "variable",
}


def __getattr__(name):
    from importlib import import_module

    if name in _ELSEWHERE:
        value = getattr(import_module(f"{__name__}.{_ELSEWHERE[name]}"), name)
    elif name in _MODULES:
        return import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_MODULES, *_ELSEWHERE})
