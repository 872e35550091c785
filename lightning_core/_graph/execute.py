"""Execution: a graph becomes a list of calls once; a run goes through it. Nodes that are planned for the CPU compute on arrays:
float32 goes to the operators of lightning_core, float64 to Lucid's. Nodes that are planned for CUDA compute on Lucid's tensors,
which stay on the device: what is fed is sent when it is first needed, and values are fetched at the end."""

from math import prod

from lucid import _C

from .. import _copies
from .schemas import window_of

_c = _C._lightning()
_CODES = {"matmul": 1, "vector_add": 2, "matrix_sub": 3, "matrix_div": 4, "attention_forward": 6}
_CODES |= {"conv2d_nchw3x3": 5, "conv2d_nchw3x3s1p1": 5}
_BY_OPERATOR = {"matmul": "matmul", "vector_add": "add", "matrix_sub": "sub", "matrix_div": "truediv"}


def _repeat(x, shape):
    import numpy as np

    size = prod(shape)
    return [part.reshape(shape) for part in np.resize(x.ravel(), 3 * size).reshape(3, size)]


def _relu(x):
    import numpy as np

    return np.maximum(x, 0)


def _by_lucid(operator):
    import operator as operators

    import lucid

    run = getattr(operators, operator)
    return lambda a, b: run(lucid.from_numpy(a), lucid.from_numpy(b)).numpy()


def _operator(node, shapes, dtype):
    """A function of the inputs' arrays and the device, that gives the list of the outputs' arrays."""
    op, out = node["op"], shapes[node["outputs"][0]]
    flags = node["attributes"]
    if op == "relu":
        return lambda inputs, device: [_relu(inputs[0])]
    if op == "qkv_pack_repeat":
        return lambda inputs, device: _repeat(inputs[0], out)
    if op == "attention_forward":
        causal = bool(flags.get("causal", 0))
        return lambda inputs, device: [_c.attention2d(*inputs, causal, device)]
    if op.startswith("conv2d"):
        run = _c.lightning_conv_relu_nchw if flags.get("apply_relu", 0) else _c.conv2d_nchw
        window = window_of(node)
        return lambda inputs, device: [run(*inputs[:2], inputs[2] if len(inputs) > 2 else None, *window, device)]
    if dtype == "float32" and op != "matrix_div":
        if op == "matmul":
            return lambda inputs, device: [_c.matmul2d(*inputs, device)]
        if op == "vector_add":
            return lambda inputs, device: [_c.vector_add(*inputs, device).reshape(out)]
        return lambda inputs, device: [_c.matrix_sub(*inputs, *out, device).reshape(out)]
    run, (code, work) = _by_lucid(_BY_OPERATOR[op]), _traced_work(node, shapes)

    def call(inputs, device):
        _c._note(code, device, work)
        if op == "vector_add":
            inputs = [x.reshape(out) for x in inputs]
        return [run(*inputs)]

    return call


def _operator_there(node, shapes):
    """The same on Lucid's tensors on the device: a function of the inputs that gives the list of outputs."""
    import operator as operators

    import lucid
    from lucid.nn import functional

    op, out, flags = node["op"], shapes[node["outputs"][0]], node["attributes"]
    if op == "relu":
        return lambda x: [x.relu()]
    if op == "qkv_pack_repeat":
        size = prod(out)
        return lambda x: list(x.reshape(-1).repeat(-(-3 * size // x.numel()))[: 3 * size].reshape(3, *out).unbind())
    if op == "attention_forward":
        causal = bool(flags.get("causal", 0))
        attend = functional.scaled_dot_product_attention
        return lambda q, k, v: [attend(q[None, None], k[None, None], v[None, None], is_causal=causal)[0, 0]]
    if op.startswith("conv2d"):
        *stride, pad_h, pad_w = window_of(node)
        after = lucid.relu if flags.get("apply_relu", 0) else lambda x: x
        return lambda x, w, bias=None: [after(functional.conv2d(x, w, bias, tuple(stride), (pad_h, pad_w)))]
    run = getattr(operators, _BY_OPERATOR[op])
    return lambda a, b: [run(a, b) if op == "matmul" else run(a.reshape(out), b.reshape(out))]


def _traced_work(node, shapes):
    """(code of the trace, work), or None."""
    op, out = node["op"], prod(shapes[node["outputs"][0]])
    each = {"matmul": lambda: shapes[node["inputs"][0]][1], "attention_forward": lambda: shapes[node["inputs"][0]][0]}
    conv = lambda: prod(shapes[node["inputs"][1]][1:])
    return op in _CODES and (_CODES[op], out * (conv if op.startswith("conv") else each.get(op, lambda: 1))())


class _Values:
    """The values of a run, on the host or on the device, or both."""

    def __init__(self, arrays):
        self.arrays, self.tensors = arrays, [None] * len(arrays)

    def here(self, t):
        if self.arrays[t] is None and self.tensors[t] is not None:
            self.arrays[t] = _copies.fetch(self.tensors[t])
        return self.arrays[t]

    def there(self, t):
        if self.tensors[t] is None:
            self.tensors[t] = _copies.send(self.arrays[t])
        return self.tensors[t]


class Program:
    """A validated graph for one dtype."""

    def __init__(self, tensors, nodes, dtype):
        if any(t["dtype"] != dtype for t in tensors):
            raise RuntimeError("invalid value")
        self.dtype, self.shapes = dtype, [tuple(t["shape"]) for t in tensors]
        self.calls = [(n, _operator(n, self.shapes, dtype)) for n in nodes]
        self.calls_there = {}
        made = {t for n in nodes for t in n["outputs"]}
        self.made, self.needed = made, {t for n in nodes for t in n["inputs"]} - made

    def _fed(self, feeds):
        import numpy as np

        if not hasattr(feeds, "items"):
            raise TypeError(f"feeds must be a dict of arrays by tensor id, not {type(feeds).__name__}")
        arrays = [None] * len(self.shapes)
        for t, value in feeds.items():
            if isinstance(t, bool) or not hasattr(t, "__index__"):
                raise TypeError(f"feeds must be a dict of arrays by tensor id, not {t!r}")
            array = np.array(value, self.dtype, order="C")  # a copy: values are the caller's to change
            if not 0 <= t < len(arrays) or t in self.made or array.size != prod(self.shapes[t]):
                raise RuntimeError("invalid value")
            arrays[t] = array.reshape(self.shapes[t])
        if any(arrays[t] is None for t in self.needed):
            raise RuntimeError("invalid value")
        return arrays

    def run(self, feeds, found):
        values = _Values(self._fed(feeds))
        (mode, traced), device = found["policy"], found["requested"]
        before = {first for first, _, wanted, _ in found["boundaries"] if wanted}
        after = {last for _, last, _, wanted in found["boundaries"] if wanted}
        for (node, call), step in zip(self.calls, found["steps"]):
            number, inputs, outputs = node["id"], node["inputs"], node["outputs"]
            if number in before:
                _c.runtime_sync_apply(mode, traced)
            if step["assigned_device"] == "cuda":
                for t, value in zip(outputs, self._run_there(node, [values.there(i) for i in inputs], device)):
                    values.tensors[t] = value
            else:
                for t, value in zip(outputs, call([values.here(i) for i in inputs], device)):
                    values.arrays[t] = value
            if number in after:
                _c.runtime_sync_apply(mode, traced)
        return {t: values.here(t).ravel() for t in range(len(self.shapes)) if values.here(t) is not None}

    def _run_there(self, node, inputs, device):
        run = self.calls_there.get(node["id"])
        if run is None:
            run = self.calls_there[node["id"]] = _operator_there(node, self.shapes)
        traced = _traced_work(node, self.shapes)
        if traced:
            _c._note(traced[0], device, traced[1], "cuda")
        return run(*inputs)
