"""Engines: who computes the integrated functions. "lightning" is this library, "torch" a real PyTorch, imported when it is
used, "auto" whichever is there. TensorFlow, Core ML and MLX are no engines here: choosing them raises RuntimeError.
"""

import importlib.util
import sys

from lucid import _C

_c = _C._lightning()
ENGINES = ("lightning", "torch", "tf", "coreml", "mlx", "auto")
_chosen = "lightning"


def torch_is_here():
    """Whether there is a real PyTorch: Lucid under that name is none.

    >>> torch_is_here() in (True, False)
    True
    """
    loaded = sys.modules.get("torch")
    if loaded is not None:
        return not getattr(loaded, "__file__", "").replace("\\", "/").endswith("/lucid/__init__.py")
    try:
        return importlib.util.find_spec("torch") is not None
    except (ImportError, ValueError):
        return False


def check_engine(name):
    """The name of an engine in lower case; ValueError if there is no such engine, RuntimeError if it cannot run here.

    >>> check_engine("Lightning")
    'lightning'
    """
    if not isinstance(name, str):
        raise TypeError(f"an engine is named by a string, not {type(name).__name__}")
    name = name.strip().lower()
    if name not in ENGINES:
        raise ValueError(f"the engine must be one of {', '.join(ENGINES)}, not {name!r}")
    if name in ("tf", "coreml", "mlx"):
        raise RuntimeError(f"not supported: there is no engine {name!r} here")
    if name == "torch" and not torch_is_here():
        raise RuntimeError("the engine 'torch' needs PyTorch: pip install torch")
    return name


def set_engine(name):
    """Choose the engine of all integrated functions.

    >>> set_engine("LIGHTNING")
    >>> get_engine()
    'lightning'
    >>> set_engine("abacus")
    Traceback (most recent call last):
    ValueError: the engine must be one of lightning, torch, tf, coreml, mlx, auto, not 'abacus'
    """
    global _chosen
    _chosen = check_engine(name)


def get_engine():
    """The engine that was chosen.

    >>> get_engine()
    'lightning'
    """
    return _chosen


set_backend, get_backend = set_engine, get_engine


def resolve(name=None, device="metal"):
    """The engine that computes: "auto" is lightning where the device is here, else PyTorch if it is.

    >>> resolve("auto", "cpu")
    'lightning'
    """
    name = _chosen if name is None else name
    here = _c.runtime_backend_capabilities(device)["available"] or _c._uses_cuda(device)
    if name != "auto":
        return check_engine(name)
    return "lightning" if device == "cpu" or here or not torch_is_here() else "torch"


def tensor(x):
    """A C-contiguous float32 array.

    >>> tensor([1, 2]).dtype
    dtype('float32')
    """
    import numpy as np

    return np.ascontiguousarray(x, np.float32)


def check_out(out):
    """The caller's array: float32 and C-contiguous, or ValueError."""
    import numpy as np

    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an array, not {type(out).__name__}")
    if out.dtype != np.float32 or not out.flags.c_contiguous or not out.flags.writeable:
        raise ValueError("out must be a writable, C-contiguous float32 array")
    return out


# ---- the operators of PyTorch, from arrays to arrays ----
def _torch_tensors(*arrays):
    import torch

    return [torch.from_numpy(tensor(a).copy()) for a in arrays]


def torch_matmul(a, b):
    x, y = _torch_tensors(a, b)
    return (x @ y).numpy()


def torch_attention(q, k, v, causal):
    import torch

    tensors = _torch_tensors(q, k, v)
    many = [t if t.dim() == 3 else t[None] for t in tensors]
    out = torch.nn.functional.scaled_dot_product_attention(*many, is_causal=causal).contiguous()
    return (out if tensors[0].dim() == 3 else out[0]).numpy()


def torch_conv_relu(x, w, bias, stride, pad):
    import torch

    x, w = _torch_tensors(x, w)
    bias = None if bias is None else _torch_tensors(bias)[0].reshape(-1)
    return torch.nn.functional.conv2d(x, w, bias, stride, pad).relu().contiguous().numpy()


# ---- the operators of the chosen engine ----
def lightning_matmul(a, b, device="metal"):
    """The product of two matrices.

    >>> lightning_matmul([[1, 2]], [[3], [4]]).tolist()
    [[11.0]]
    """
    if resolve(device=device) == "lightning":
        return _c.matmul2d(a, b, device)
    a, b = tensor(a), tensor(b)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError("a and b must be matrices that can be multiplied")
    return torch_matmul(a, b)


def lightning_matmul_into(a, b, out, device="metal"):
    """`lightning_matmul` into out, (m, n) or flat; gives out as (m, n).

    >>> import numpy as np
    >>> lightning_matmul_into([[1, 2]], [[3], [4]], np.empty(1, np.float32)).tolist()
    [[11.0]]
    """
    a, b, out = tensor(a), tensor(b), check_out(out)
    if resolve(device=device) == "lightning":
        _c.matmul2d_into(a, b, out, device)
    else:
        result = lightning_matmul(a, b, device)
        if out.shape not in (result.shape, (result.size,)):
            raise ValueError("out must be (m, n) or flat (m * n,)")
        _c._copy_into(result, out)
    return out.reshape(a.shape[0], b.shape[1])


def attention(q, k, v, seq, head_dim, causal, device, engine=None):
    """Attention that keeps the rank of q: flat, (seq, head_dim), or (heads, seq, head_dim)."""
    import numpy as np

    q, k, v = tensor(q), tensor(k), tensor(v)
    if q.ndim == 3 and q.shape[1:] == (seq, head_dim) == k.shape[1:] and q.shape == k.shape == v.shape:
        if resolve(engine, device) == "torch":
            return torch_attention(q, k, v, causal)
        return np.stack([_c.attention2d(a, b, c, causal, device) for a, b, c in zip(q, k, v)])
    if resolve(engine, device) == "lightning":
        return _c.lightning_attention(q, k, v, seq, head_dim, causal, device).reshape(q.shape)
    for a in (q, k, v):
        if a.size != seq * head_dim:
            raise ValueError("every array must have seq * head_dim elements")
    return torch_attention(*(a.reshape(seq, head_dim) for a in (q, k, v)), bool(causal)).reshape(q.shape)


def lightning_attention(q, k, v, seq, head_dim, device="metal", causal=False):
    """Attention; the result has the rank of q.

    >>> lightning_attention([[1, 2]], [[3, 4]], [[5, 6]], 1, 2).tolist()
    [[5.0, 6.0]]
    """
    return attention(q, k, v, seq, head_dim, causal, device)


def conv_relu(x, w, bias, window, device, engine=None):
    if resolve(engine, device) == "lightning":
        return _c.lightning_conv_relu_nchw(x, w, bias, *window, device)
    x, w = tensor(x), tensor(w)
    if x.ndim != 4 or w.ndim != 4 or x.shape[1] != w.shape[1] or min(window[:2]) < 1:
        raise ValueError("x must be (N, C, H, W), w (O, C, KH, KW), strides positive")
    if bias is not None and tensor(bias).size != w.shape[0]:
        raise ValueError("bias must have one element per output channel")
    return torch_conv_relu(x, w, bias, window[:2], window[2:])


def lightning_conv_relu_nchw(x, weight, bias, stride_h=1, stride_w=1, pad_h=0, pad_w=0, device="metal", out=None):
    """Convolution and ReLU, into out if it is given.

    >>> import numpy as np
    >>> lightning_conv_relu_nchw(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), None).item()
    4.0
    """
    window = (stride_h, stride_w, pad_h, pad_w)
    if out is None:
        return conv_relu(x, weight, bias, window, device)
    check_out(out)
    if resolve(device=device) == "lightning":
        _c.lightning_conv_relu_nchw_into(x, weight, bias, out, *window, device)
    else:
        result = conv_relu(x, weight, bias, window, device)
        if out.shape != result.shape:
            raise ValueError(f"out must be {result.shape}")
        _c._copy_into(result, out)
    return out


def lightning_conv_relu_torchstrong_nchw(
    x,
    weight,
    bias,
    stride_h=1,
    stride_w=1,
    pad_h=0,
    pad_w=0,
    device="metal",
    out=None,
    workspace_cache=None,
    cache_key=None,
    force_into=None,
):
    """The same function. The last three arguments are hints of the original, for a workspace that is not needed here.

    >>> import numpy as np
    >>> lightning_conv_relu_torchstrong_nchw(np.ones((1, 1, 2, 2)), -np.ones((1, 1, 2, 2)), None).item()
    0.0
    """
    return lightning_conv_relu_nchw(x, weight, bias, stride_h, stride_w, pad_h, pad_w, device, out)
