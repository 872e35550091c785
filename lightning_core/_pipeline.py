"""Convolution and attention in one call, as a graph, and the report that compares the two ways. The eager way is C
(bindings/lightning/conv.c); execution_mode="graph" comes here: a graph per set of shapes, kept, run by GraphIR. A graph takes 3
x 3 kernels; for others, and if it fails, the eager way answers, unless LC_GRAPH_MODE_STRICT is set.
"""

import os
import time

from lucid import _C

from ._graph import GraphIR
from ._kept import Kept

_c = _C._lightning()


def _strict():
    return os.environ.get("LC_GRAPH_MODE_STRICT", "")[:1].lower() in ("1", "t", "y")


def _build(x, w, biased, seq, dim, window, device):
    graph = GraphIR()
    sh, sw, ph, pw = window
    size = [(x[2] + 2 * ph - 3) // sh + 1, (x[3] + 2 * pw - 3) // sw + 1]
    ids = [graph.add_tensor(x, name="x"), graph.add_tensor(w, name="w")]
    if biased:
        ids.append(graph.add_tensor([w[0]], name="bias"))
    image = graph.add_tensor([x[0], w[0], *size], name="image")
    qkv = [graph.add_tensor([seq, dim], name=name) for name in "qkv"]
    out = graph.add_tensor([seq, dim], name="out")
    attributes = {"stride_h": sh, "stride_w": sw, "pad_h": ph, "pad_w": pw, "apply_relu": 1}
    graph.add_node("conv2d_nchw3x3", ids, [image], attributes=attributes)
    graph.add_node("qkv_pack_repeat", [image], qkv)
    graph.add_node("attention_forward", qkv, [out])
    graph.validate()
    return graph, ids, out


_graphs = Kept(_build)  # a graph is used on one device


def _run_graph(x, w, bias, seq, dim, window, device):
    import numpy as np

    arrays = [np.ascontiguousarray(x, np.float32), np.ascontiguousarray(w, np.float32)]
    if bias is not None:
        arrays.append(np.ascontiguousarray(bias, np.float32).reshape(-1))
    if arrays[1].shape[2:] != (3, 3):
        raise ValueError("graph mode takes 3 x 3 kernels")
    key = arrays[0].shape, arrays[1].shape, bias is not None, seq, dim, window, device
    graph, ids, out = _graphs.get(*key)
    return graph.execute_f32(dict(zip(ids, arrays)), device)["values"][out]


def conv_attention_graph(x, w, bias, seq, dim, *rest):
    """Called by the C function for execution_mode="graph"; Ellipsis stands for an argument that was not given.

    >>> import numpy as np
    >>> x, w = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3))
    >>> conv_attention_graph(x, w, None, 1, 2, *[...] * 5).tolist()
    [9.0, 9.0]
    """
    presets = (1, 1, 0, 0, "metal")
    *window, device = (p if r is ... else r for p, r in zip(presets, rest))
    _c.runtime_backend_capabilities(device)  # an unknown device raises
    try:
        return _run_graph(x, w, bias, seq, dim, tuple(window), device)
    except (ValueError, RuntimeError, TypeError, IndexError):
        if _strict():
            raise
        return _c.lightning_conv_attention_torchstrong_nchw(x, w, bias, seq, dim, *window, device)


def conv_attention_graph_into(x, w, bias, out, seq, dim, *rest):
    """`conv_attention_graph` into out.

    >>> import numpy as np
    >>> x, w, out = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3)), np.empty(2, np.float32)
    >>> conv_attention_graph_into(x, w, None, out, 1, 2, *[...] * 5)
    >>> out.tolist()
    [9.0, 9.0]
    """
    result = conv_attention_graph(x, w, bias, seq, dim, *rest)
    _c._copy_into(result, out)


def report_of(run, seq_len, head_dim, device, warmup, repeat, atol, rtol):
    """The 16 entries of an A/B report, from a function of the execution mode."""
    import numpy as np

    for name, value in (("warmup", warmup), ("repeat", repeat)):
        if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
            raise TypeError(f"{name} must be a non-negative int, not {value!r}")
    if not repeat or not atol >= 0 or not rtol >= 0:
        raise ValueError("repeat must be positive, tolerances not negative")
    results, times = [], []
    for mode in ("eager", "graph"):
        for _ in range(warmup):
            run(mode)
        start = time.perf_counter()
        for _ in range(repeat):
            result = run(mode)
        times.append((time.perf_counter() - start) / repeat * 1e3)
        results.append(np.asarray(result, np.float64).ravel())
    e, g = results
    miss = np.abs(e - g)
    ratio = lambda a, b: a / b if b else 0.0
    return {
        "seq_len": seq_len,
        "head_dim": head_dim,
        "warmup": warmup,
        "repeat": repeat,
        "device": device,
        "allclose": bool(np.all(miss <= atol + rtol * np.abs(e))),
        "max_abs_diff": float(miss.max()),
        "mean_abs_diff": float(miss.mean()),
        "max_rel_diff": float((miss / (np.abs(e) + 1e-12)).max()),
        "atol": atol,
        "rtol": rtol,
        "eager_ms": times[0],
        "graph_ms": times[1],
        "graph_over_eager": ratio(times[1], times[0]),
        "eager_over_graph": ratio(times[0], times[1]),
        "winner": "graph" if times[1] < times[0] else "eager" if times[0] < times[1] else "tie",
    }


def lightning_conv_attention_torchstrong_nchw_ab_report(
    x,
    w,
    bias,
    seq_len,
    head_dim,
    stride_h=1,
    stride_w=1,
    pad_h=0,
    pad_w=0,
    device="metal",
    warmup=1,
    repeat=5,
    atol=1e-4,
    rtol=1e-4,
    *,
    run=_c.lightning_conv_attention_torchstrong_nchw,
):
    """The eager and the graph way on one input: how they differ, how long each takes. run: what computes the pipeline.

    >>> import numpy as np
    >>> x, w = np.ones((1, 1, 3, 3)), np.ones((1, 1, 3, 3))
    >>> report = lightning_conv_attention_torchstrong_nchw_ab_report(x, w, None, 2, 2, device="cpu", repeat=1)
    >>> report["allclose"], len(report)
    (True, 16)
    """
    args = (x, w, bias, seq_len, head_dim, stride_h, stride_w, pad_h, pad_w, device)
    return report_of(lambda mode: run(*args, mode), seq_len, head_dim, device, warmup, repeat, atol, rtol)


def clear_integrated_attention_session_cache():
    """Drop the kept graphs, and which way each shape of attention is computed.

    >>> clear_integrated_attention_session_cache()
    """
    _graphs.clear()
    _c._forget_choices()
