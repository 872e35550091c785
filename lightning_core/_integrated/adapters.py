"""A runner as a module of another library. The PyTorch wrapper is an nn.Module (any module with Module can be given, as tests
do); the adapters for TensorFlow, MLX and Core ML take arrays and say "numpy_shim" unless that library's module is given to
them. Each keeps a telemetry of its calls.
"""

import time

import numpy as np

_FIELDS = (
    "adapter",
    "runtime_tag",
    "mode",
    "device",
    "route_policy",
    "calls",
    "failures",
    "last_ms",
    "mean_ms",
    "total_ms",
    "max_ms",
    "overhead_ms",
    "overhead_budget_ms",
    "within_budget",
    "input_shape",
    "output_shape",
    "output_dtype",
    "last_error",
)


class _Telemetry:
    def __init__(self, adapter, tag, mode, device, policy, budget):
        if not budget >= 0:
            raise ValueError(f"overhead_budget_ms must not be negative, not {budget!r}")
        self.row = dict.fromkeys(_FIELDS)
        self.row |= {"adapter": adapter, "runtime_tag": tag, "mode": mode, "device": device, "route_policy": policy}
        self.row |= {"overhead_budget_ms": float(budget), "within_budget": True, "calls": 0, "failures": 0}
        self.row |= {name: 0.0 for name in _FIELDS if name.endswith("_ms") and name != "overhead_budget_ms"}

    def run(self, runner, x, convert):
        """The runner's result, converted, with the times of both."""
        row, start = self.row, time.perf_counter()
        try:
            x = np.asarray(x)
            begun = time.perf_counter()
            y = runner.run(x, mode=row["mode"], device=row["device"], route_policy=row["route_policy"])
            inner = time.perf_counter() - begun
            out = convert(y)
        except Exception as error:
            row["failures"] += 1
            row["last_error"] = f"{type(error).__name__}: {error}"
            raise
        took = (time.perf_counter() - start) * 1e3
        row["calls"] += 1
        row["last_ms"], row["total_ms"], row["max_ms"] = took, row["total_ms"] + took, max(row["max_ms"], took)
        row["mean_ms"], row["overhead_ms"] = row["total_ms"] / row["calls"], took - inner * 1e3
        row["within_budget"] = row["overhead_ms"] <= row["overhead_budget_ms"]
        row["input_shape"], row["output_shape"], row["output_dtype"] = list(x.shape), list(y.shape), str(y.dtype)
        return out


def create_torch_module_wrapper(
    runner, *, mode="eager", device="auto", route_policy=None, overhead_budget_ms=5, torch_module=None
):
    """A torch.nn.Module that calls the runner: tensors in, a tensor out, no gradients.

    >>> from lightning_core._integrated.runner import TinyTransformerRunner
    >>> import lucid
    >>> runner = TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3)
    >>> module = create_torch_module_wrapper(runner, torch_module=lucid)
    >>> tuple(module(lucid.tensor([0, 1])).shape), get_torch_wrapper_telemetry(module)["calls"]
    ((2, 3), 1)
    """
    torch = torch_module
    if torch is None:
        try:
            import torch
        except ImportError:
            raise RuntimeError("the wrapper needs PyTorch: pip install torch") from None
    telemetry = _Telemetry("torch", "torch", mode, device, route_policy, overhead_budget_ms)

    class RunnerModule(torch.nn.Module):
        def forward(self, x):
            given = x.detach().cpu().numpy() if hasattr(x, "detach") else x
            return telemetry.run(runner, given, lambda y: torch.from_numpy(y))

    module = RunnerModule()
    module.lc_telemetry = telemetry
    return module


class _Adapter:
    """A runner behind `__call__`, and the names the other library would use."""

    def __init__(self, runner, name, module, mode, device, route_policy, budget):
        self.runner, self.module = runner, module
        tag = {"tf": "tensorflow"}.get(name, name) if module is not None else "numpy_shim"
        self.lc_telemetry = _Telemetry(name, tag, mode, device, route_policy, budget)

    def __call__(self, x):
        convert = getattr(self.module, "convert_to_tensor", None) or getattr(self.module, "array", None) or (lambda y: y)
        return self.lc_telemetry.run(self.runner, x, convert)

    call = predict = __call__


def create_tf_keras_layer_wrapper(
    runner, *, mode="eager", device="auto", route_policy=None, overhead_budget_ms=5, tf_module=None
):
    """A layer-like object for TensorFlow: `layer(x)`, `layer.call(x)`.

    >>> from lightning_core._integrated.runner import TinyTransformerRunner
    >>> layer = create_tf_keras_layer_wrapper(TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3))
    >>> layer([0, 1]).shape, get_tf_wrapper_telemetry(layer)["runtime_tag"]
    ((2, 3), 'numpy_shim')
    """
    return _Adapter(runner, "tf", tf_module, mode, device, route_policy, overhead_budget_ms)


def create_tf_model_runner_adapter(
    runner, *, mode="eager", device="auto", route_policy=None, overhead_budget_ms=5, tf_module=None
):
    """A model-like object for TensorFlow: `model.predict(x)`.

    >>> from lightning_core._integrated.runner import TinyTransformerRunner
    >>> model = create_tf_model_runner_adapter(TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3))
    >>> model.predict([0, 1]).shape
    (2, 3)
    """
    return _Adapter(runner, "tf", tf_module, mode, device, route_policy, overhead_budget_ms)


def create_mlx_model_runner_adapter(
    runner, *, mode="eager", device="auto", route_policy=None, overhead_budget_ms=5, mlx_module=None
):
    """A model-like object for MLX.

    >>> from lightning_core._integrated.runner import TinyTransformerRunner
    >>> model = create_mlx_model_runner_adapter(TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3))
    >>> model([0, 1]).shape
    (2, 3)
    """
    return _Adapter(runner, "mlx", mlx_module, mode, device, route_policy, overhead_budget_ms)


def create_coreml_model_runner_adapter(runner, *, mode="eager", device="auto", route_policy=None, overhead_budget_ms=5):
    """A model-like object with Core ML's `predict`; there is no Core ML here, so it is a shim.

    >>> from lightning_core._integrated.runner import TinyTransformerRunner
    >>> model = create_coreml_model_runner_adapter(TinyTransformerRunner(seq_len=2, d_model=4, d_ff=4, vocab_size=3))
    >>> model.predict([0, 1]).shape, get_coreml_wrapper_telemetry(model)["runtime_tag"]
    ((2, 3), 'numpy_shim')
    """
    return _Adapter(runner, "coreml", None, mode, device, route_policy, overhead_budget_ms)


def _telemetry_of(wrapper, name):
    telemetry = getattr(wrapper, "lc_telemetry", None)
    if not isinstance(telemetry, _Telemetry) or telemetry.row["adapter"] != name:
        raise TypeError(f"a wrapper for {name} is expected, not {type(wrapper).__name__}")
    return dict(telemetry.row)


def get_torch_wrapper_telemetry(wrapper):
    """The calls of a PyTorch wrapper, their times and shapes.

    >>> get_torch_wrapper_telemetry(None)
    Traceback (most recent call last):
    TypeError: a wrapper for torch is expected, not NoneType
    """
    return _telemetry_of(wrapper, "torch")


def get_tf_wrapper_telemetry(wrapper):
    """The calls of a TensorFlow adapter.

    >>> get_tf_wrapper_telemetry(None)
    Traceback (most recent call last):
    TypeError: a wrapper for tf is expected, not NoneType
    """
    return _telemetry_of(wrapper, "tf")


def get_mlx_wrapper_telemetry(wrapper):
    """The calls of an MLX adapter.

    >>> get_mlx_wrapper_telemetry(None)
    Traceback (most recent call last):
    TypeError: a wrapper for mlx is expected, not NoneType
    """
    return _telemetry_of(wrapper, "mlx")


def get_coreml_wrapper_telemetry(wrapper):
    """The calls of a Core ML adapter.

    >>> get_coreml_wrapper_telemetry(None)
    Traceback (most recent call last):
    TypeError: a wrapper for coreml is expected, not NoneType
    """
    return _telemetry_of(wrapper, "coreml")


def _schema(name, tags):
    return {"adapter": name, "runtime_tags": list(tags), "required_fields": list(_FIELDS)}


def torch_runner_adapter_schema():
    """The fields of the PyTorch wrapper's telemetry.

    >>> len(torch_runner_adapter_schema()["required_fields"])
    18
    """
    return _schema("torch", ("torch",))


def tf_runner_adapter_schema():
    """The fields of the TensorFlow adapter's telemetry.

    >>> tf_runner_adapter_schema()["runtime_tags"]
    ['tensorflow', 'numpy_shim']
    """
    return _schema("tf", ("tensorflow", "numpy_shim"))


def mlx_runner_adapter_schema():
    """The fields of the MLX adapter's telemetry.

    >>> mlx_runner_adapter_schema()["adapter"]
    'mlx'
    """
    return _schema("mlx", ("mlx", "numpy_shim"))


def coreml_runner_adapter_schema():
    """The fields of the Core ML adapter's telemetry.

    >>> coreml_runner_adapter_schema()["runtime_tags"]
    ['numpy_shim']
    """
    return _schema("coreml", ("numpy_shim",))
