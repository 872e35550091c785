"""Routes: which engine computes the convolution, the attention and the graph of a pipeline, and what crosses from one to the
other."""

import numpy as np

from lucid import _C

from .. import _pipeline
from .engines import ENGINES, attention, check_out, conv_relu, get_engine, resolve, tensor

_c = _C._lightning()
KEYS = ("conv", "attention", "graph")


class RoutePolicyValidationError(ValueError):
    """A route policy that is none, with its code and details.

    >>> try:
    ...     validate_route_policy({"pool": "torch"}, strict=True)
    ... except RoutePolicyValidationError as error:
    ...     error.code
    'interop_route_policy_invalid_key'
    """

    def __init__(self, code, message, details):
        super().__init__(message)
        self.code, self.details = code, details


def _problem(policy):
    """(code, message, details) of what is wrong; None if nothing is."""
    if policy is not None and not isinstance(policy, dict):
        return "type", f"a route policy is a dict, not {type(policy).__name__}", {"type": type(policy).__name__}
    for key, value in (policy or {}).items():
        if key not in KEYS:
            return "key", f"a route policy has the keys {', '.join(KEYS)}, not {key!r}", {"key": repr(key)}
        if not isinstance(value, str) or value.strip().lower() not in ENGINES:
            return "value", f"{key} must be one of {', '.join(ENGINES)}, not {value!r}", {"key": key, "value": repr(value)}
    return None


def validate_route_policy(policy, *, strict=False):
    """Whether a dict of engines by stage is a route policy: {ok, code, message, details, normalized}.

    >>> validate_route_policy({"conv": "Torch"})["normalized"]
    {'conv': 'torch', 'attention': 'auto', 'graph': 'auto'}
    >>> validate_route_policy({"conv": "abacus"})["code"]
    'interop_route_policy_invalid_value'
    """
    found = _problem(policy)
    if found:
        code, message, details = f"interop_route_policy_invalid_{found[0]}", *found[1:]
        if strict:
            raise RoutePolicyValidationError(code, message, details)
        return {"ok": False, "code": code, "message": message, "details": details, "normalized": None}
    normalized = {key: (policy or {}).get(key, "auto").strip().lower() for key in KEYS}
    return {"ok": True, "code": "ok", "message": "", "details": {}, "normalized": normalized}


def _engines(policy, device):
    """{stage: engine}: a stage left to "auto" follows the chosen engine."""
    normalized = validate_route_policy(policy, strict=True)["normalized"]
    return normalized, {key: resolve(None if value == "auto" else value, device) for key, value in normalized.items()}


def _check_mode(mode):
    if not isinstance(mode, str):
        raise TypeError(f"execution_mode must be a string, not {type(mode).__name__}")
    if mode not in ("eager", "graph"):
        raise ValueError(f'execution_mode must be "eager" or "graph", not {mode!r}')


def run_pipeline(x, w, bias, seq, head_dim, window, device, mode, policy):
    _check_mode(mode)
    _, engines = _engines(policy, device)
    if engines["conv"] == engines["attention"] == "lightning" and (mode == "eager" or engines["graph"] == "lightning"):
        return _c.lightning_conv_attention_torchstrong_nchw(x, w, bias, seq, head_dim, *window, device, mode)
    if seq < 1 or head_dim < 1:
        raise RuntimeError("invalid value")
    image = conv_relu(x, w, bias, window, device, engines["conv"])
    q, k, v = np.resize(image.ravel(), 3 * seq * head_dim).reshape(3, seq, head_dim)
    return attention(q, k, v, seq, head_dim, False, device, engines["attention"]).ravel()


def lightning_conv_attention_torchstrong_nchw(
    x,
    conv_weight,
    conv_bias,
    seq,
    head_dim,
    stride_h=1,
    stride_w=1,
    pad_h=0,
    pad_w=0,
    device="metal",
    conv_policy="auto",
    execution_mode="eager",
    *,
    pipeline_cache=None,
    cache_key=None,
    route_policy=None,
):
    """Convolution, ReLU, attention over the numbers, flat. conv_policy and the caches are hints of the original and change
    nothing.

    >>> x = np.ones((1, 1, 3, 3))
    >>> lightning_conv_attention_torchstrong_nchw(x, x, None, 1, 2).tolist()
    [9.0, 9.0]
    """
    window = (stride_h, stride_w, pad_h, pad_w)
    return run_pipeline(x, conv_weight, conv_bias, seq, head_dim, window, device, execution_mode, route_policy)


def lightning_conv_attention_torchstrong_nchw_ab_report(
    x,
    conv_weight,
    conv_bias,
    seq,
    head_dim,
    stride_h=1,
    stride_w=1,
    pad_h=0,
    pad_w=0,
    device="metal",
    conv_policy="auto",
    warmup=1,
    repeat=5,
    atol=1e-4,
    rtol=1e-4,
    *,
    route_policy=None,
):
    """Eager and graph execution on one input: the 16 entries of the report, and conv_policy.

    >>> x = np.ones((1, 1, 3, 3))
    >>> lightning_conv_attention_torchstrong_nchw_ab_report(x, x, None, 1, 2, repeat=1)["allclose"]
    True
    """
    args = (x, conv_weight, conv_bias, seq, head_dim, (stride_h, stride_w, pad_h, pad_w), device)
    run = lambda mode: run_pipeline(*args, mode, route_policy)
    return _pipeline.report_of(run, seq, head_dim, device, warmup, repeat, atol, rtol) | {"conv_policy": conv_policy}


def lightning_conv_attention_torchstrong_nchw_route_report(
    x,
    conv_weight,
    conv_bias,
    seq,
    head_dim,
    stride_h=1,
    stride_w=1,
    pad_h=0,
    pad_w=0,
    device="metal",
    execution_mode="eager",
    route_policy=None,
):
    """Which engines a pipeline asks for and gets, and what crosses between them. Nothing is computed.

    >>> x = np.ones((1, 1, 3, 3))
    >>> report = lightning_conv_attention_torchstrong_nchw_route_report(x, x, None, 1, 2, execution_mode="graph")
    >>> report["resolved_execution_mode"], report["graph_fallback_reason_code"]
    ('graph', 'none')
    """
    _check_mode(execution_mode)
    x, w = tensor(x), tensor(conv_weight)
    if x.ndim != 4 or w.ndim != 4 or min(stride_h, stride_w) < 1:
        raise ValueError("x must be (N, C, H, W), the weight (O, C, KH, KW), strides positive")
    requested, engines = _engines(route_policy, device)
    supported = w.shape[2:] == (3, 3)
    reason = "none"
    if execution_mode == "graph" and engines["graph"] != "lightning":
        reason = "graph_engine_not_lightning"
    elif execution_mode == "graph" and not supported:
        reason = "graph_shape_unsupported"
    size = [(x.shape[2] + 2 * pad_h - w.shape[2]) // stride_h + 1, (x.shape[3] + 2 * pad_w - w.shape[3]) // stride_w + 1]
    image = [x.shape[0], w.shape[0], *size]
    crosses = engines["conv"] != engines["attention"]
    moved = 12 * seq * head_dim if crosses else 0
    foreign = sum(engines[key] != "lightning" for key in ("conv", "attention"))
    return {
        "requested_execution_mode": execution_mode,
        "resolved_execution_mode": "graph" if execution_mode == "graph" and reason == "none" else "eager",
        "selected_engine": get_engine(),
        **{f"requested_{key}_engine": value for key, value in requested.items()},
        **{f"resolved_{key}_engine": value for key, value in engines.items()},
        "route_policy": requested,
        "device": device,
        "graph_shape_supported": supported,
        "graph_fallback_reason_code": reason,
        "boundary_count": int(crosses),
        "boundary_crosses_engines": crosses,
        "boundary_from_engine": engines["conv"],
        "boundary_to_engine": engines["attention"],
        "boundary_copy_mode": "host_copy" if foreign else "none",
        "boundary_copy_count": 3 * foreign,
        "boundary_bytes": moved,
        "boundary_upload_bytes": moved if engines["attention"] != "lightning" else 0,
        "boundary_download_bytes": moved if engines["conv"] != "lightning" else 0,
        "boundary_dtype": "float32",
        "boundary_layout": "contiguous",
        "boundary_reason_code": "engine_switch" if crosses else "none",
        "zero_copy_eligible": not foreign,
        "input_shape": list(x.shape),
        "weight_shape": list(w.shape),
        "conv_output_shape": image,
        "attention_shape": [seq, head_dim],
    }


# ---- what importing the helper puts into lc.api ----
def _conv_relu_nchw(x, w, bias=None, stride_h=1, stride_w=1, pad_h=0, pad_w=0, device="metal"):
    """Convolution and ReLU by the chosen engine."""
    return conv_relu(x, w, bias, (stride_h, stride_w, pad_h, pad_w), device)


def _into(result, out):
    if check_out(out).size != result.size:
        raise ValueError(f"out must have {result.size} elements")
    _c._copy_into(result, out)


def _conv_relu_nchw_into(x, w, bias, out, stride_h=1, stride_w=1, pad_h=0, pad_w=0, device="metal"):
    """Convolution and ReLU by the chosen engine, into out."""
    check_out(out)
    if resolve(device=device) == "lightning":
        _c.lightning_conv_relu_nchw_into(x, w, bias, out, stride_h, stride_w, pad_h, pad_w, device)
        return
    result = _conv_relu_nchw(x, w, bias, stride_h, stride_w, pad_h, pad_w, device)
    if result.shape != out.shape:
        raise ValueError(f"out must be {result.shape}")
    _into(result, out)


def _attention(q, k, v, seq_len, head_dim, causal=False, device="metal"):
    """Attention by the chosen engine; the result has the rank of q."""
    return attention(q, k, v, seq_len, head_dim, causal, device)


def _attention_into(q, k, v, out, seq_len, head_dim, causal=False, device="metal"):
    """Attention by the chosen engine, into out."""
    check_out(out)
    if resolve(device=device) == "lightning":
        _c.lightning_attention_into(q, k, v, out, seq_len, head_dim, causal, device)
    else:
        _into(attention(q, k, v, seq_len, head_dim, causal, device), out)


def _conv_attention(
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
    execution_mode="eager",
    route_policy=None,
):
    """The pipeline by the engines of a route policy."""
    window = (stride_h, stride_w, pad_h, pad_w)
    return run_pipeline(x, w, bias, seq_len, head_dim, window, device, execution_mode, route_policy)


def _conv_attention_into(x, w, bias, out, seq_len, head_dim, *args, **kwargs):
    """The pipeline into out."""
    check_out(out)
    if out.size != seq_len * head_dim:
        raise ValueError("out must have seq_len * head_dim elements")
    _into(_conv_attention(x, w, bias, seq_len, head_dim, *args, **kwargs), out)


def _conv_attention_ab_report(*args, route_policy=None, **named):
    """Eager and graph execution of the pipeline, compared: the arguments of the report it replaces, and route_policy."""
    run = lambda *a: run_pipeline(*a[:5], a[5:9], *a[9:], route_policy)
    return _pipeline.lightning_conv_attention_torchstrong_nchw_ab_report(*args, run=run, **named)


def route_report(x, w, bias, seq_len, head_dim, *args, **kwargs):
    """Which engines the pipeline gets."""
    return lightning_conv_attention_torchstrong_nchw_route_report(x, w, bias, seq_len, head_dim, *args, **kwargs)


WRAPPERS = {
    "conv_relu_nchw": _conv_relu_nchw,
    "conv_relu_nchw_into": _conv_relu_nchw_into,
    "attention": _attention,
    "attention_into": _attention_into,
    "conv_attention_torchstrong_nchw": _conv_attention,
    "conv_attention_torchstrong_nchw_into": _conv_attention_into,
    "conv_attention_torchstrong_nchw_ab_report": _conv_attention_ab_report,
}
