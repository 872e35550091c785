"""The operators again, written with NumPy alone."""

import numpy as np

DEVICES = ("cpu", "metal", "cuda")


def random(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def attention(q, k, v, causal=False):
    scores = q.astype(np.float64) @ k.astype(np.float64).T / np.sqrt(q.shape[1])
    if causal:
        scores = np.where(np.tri(len(q), dtype=bool), scores, -1e30)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True) @ v


def conv(x, w, bias=None, stride=(1, 1), pad=(0, 0), relu=False):
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, :: stride[0], :: stride[1]]
    y = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64))
    y = y if bias is None else y + np.reshape(bias, (1, -1, 1, 1))
    return np.maximum(y, 0) if relu else y


def pipeline(x, w, bias, seq, dim, stride=(1, 1), pad=(0, 0)):
    flat = np.resize(conv(x, w, bias, stride, pad, relu=True).ravel(), 3 * seq * dim)
    q, k, v = flat.reshape(3, seq, dim).astype(np.float32)
    return attention(q, k, v)
