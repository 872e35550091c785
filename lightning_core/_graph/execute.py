"""Execution: a graph becomes a list of calls once; a run goes through it on arrays. float32 goes to the operators of
lightning_core, float64 to Lucid's."""

from math import prod

from lucid import _C

from .schemas import window_of

_c = _C._lightning()
_CODES = {"matmul": 1, "vector_add": 2, "matrix_sub": 3, "matrix_div": 4, "attention_forward": 6}


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
    names = {"matmul": "matmul", "vector_add": "add", "matrix_sub": "sub", "matrix_div": "truediv"}
    run, code, work = _by_lucid(names[op]), _CODES[op], prod(out) * (shapes[node["inputs"][0]][1] if op == "matmul" else 1)

    def call(inputs, device):
        _c._note(code, device, work)
        if op == "vector_add":
            inputs = [x.reshape(out) for x in inputs]
        return [run(*inputs)]

    return call


class Program:
    """A validated graph for one dtype."""

    def __init__(self, tensors, nodes, dtype):
        if any(t["dtype"] != dtype for t in tensors):
            raise RuntimeError("invalid value")
        self.dtype, self.shapes = dtype, [tuple(t["shape"]) for t in tensors]
        self.calls = [(n["id"], n["inputs"], n["outputs"], _operator(n, self.shapes, dtype)) for n in nodes]
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
        arrays = self._fed(feeds)
        (mode, traced), device = found["policy"], found["requested"]
        before = {first for first, _, wanted, _ in found["boundaries"] if wanted}
        after = {last for _, last, _, wanted in found["boundaries"] if wanted}
        for number, inputs, outputs, call in self.calls:
            if number in before:
                _c.runtime_sync_apply(mode, traced)
            for t, value in zip(outputs, call([arrays[i] for i in inputs], device)):
                arrays[t] = value
            if number in after:
                _c.runtime_sync_apply(mode, traced)
        return {t: array.ravel() for t, array in enumerate(arrays) if array is not None}
