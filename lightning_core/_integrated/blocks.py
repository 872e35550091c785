"""Layers that keep their weights and result buffers between calls. Weights are NumPy arrays, states are dicts of them."""

import numpy as np

from lucid import _C

from .._kept import Kept
from .._policies import FETCH, SEND, SEND_FIRST
from .._sessions import AttentionSession, Conv2dMetalResidentSession
from .engines import attention, check_out, conv_relu, lightning_conv_relu_nchw, lightning_matmul, resolve, tensor
from .routes import run_pipeline

_c = _C._lightning()
_sessions = Kept(AttentionSession)  # by seq, head_dim, causal, device


class _Stateful:
    """state_dict and load_state_dict over the attributes that _state names."""

    _state = ()

    def state_dict(self, prefix=""):
        """Copies of the arrays by name."""
        found = {name: getattr(self, name) for name in self._state}
        return {prefix + name: np.array(value) for name, value in found.items() if value is not None}

    def load_state_dict(self, state, strict=True, prefix=""):
        """Copies arrays in; strict: every name must be there, and no other with the prefix."""
        wanted = {prefix + name: name for name in self._state if getattr(self, name) is not None}
        missing = [key for key in wanted if key not in state]
        unexpected = [key for key in state if key.startswith(prefix) and key not in wanted]
        if strict and (missing or unexpected):
            raise ValueError(f"missing {missing}, unexpected {unexpected}")
        found = {name: np.array(state[key]) for key, name in wanted.items() if key in state}
        for name, value in found.items():
            if value.shape != np.shape(getattr(self, name)):
                raise ValueError(f"{name} has the shape {value.shape}, not {np.shape(getattr(self, name))}")
        for name, value in found.items():
            self._set(name, value)

    def _set(self, name, value):
        setattr(self, name, tensor(value))


class Linear(_Stateful):
    """y = x weight + bias. weight is (in, out), drawn from N(0, 0.02).

    >>> layer = Linear(3, 2)
    >>> layer.weight.shape, layer(np.ones((4, 3))).shape
    ((3, 2), (4, 2))
    """

    _state = ("weight", "bias")

    def __init__(self, in_features, out_features, bias=True):
        self.weight = (np.random.standard_normal((in_features, out_features)) * 0.02).astype(np.float32)
        self.bias = np.zeros(out_features, np.float32) if bias else None

    def __call__(self, x, device="metal"):
        x = tensor(x)
        if x.ndim != 2 or x.shape[1] != self.weight.shape[0]:
            raise ValueError(f"x must be (rows, {self.weight.shape[0]}), not {x.shape}")
        y = lightning_matmul(x, self.weight, device)
        return y if self.bias is None else y + self.bias


class TinyMLPModel(_Stateful):
    """Linear, ReLU, Linear.

    >>> model = TinyMLPModel(3, 8, 2)
    >>> sorted(model.state_dict())
    ['fc1.bias', 'fc1.weight', 'fc2.bias', 'fc2.weight']
    >>> model(np.ones((4, 3))).shape
    (4, 2)
    """

    def __init__(self, d_in, d_hidden, d_out):
        self.fc1, self.fc2 = Linear(d_in, d_hidden), Linear(d_hidden, d_out)

    def forward(self, x, device="metal"):
        """The result for rows of x."""
        return self.fc2(np.maximum(self.fc1(x, device), 0), device)

    __call__ = forward

    def state_dict(self, prefix=""):
        """The states of both layers."""
        return self.fc1.state_dict(f"{prefix}fc1.") | self.fc2.state_dict(f"{prefix}fc2.")

    def load_state_dict(self, state, strict=True, prefix=""):
        """Loads both layers."""
        own = (f"{prefix}fc1.", f"{prefix}fc2.")
        unexpected = [key for key in state if key.startswith(prefix) and not key.startswith(own)]
        if strict and unexpected:
            raise ValueError(f"unexpected {unexpected}")
        self.fc1.load_state_dict(state, strict, own[0])
        self.fc2.load_state_dict(state, strict, own[1])


class _Convolution:
    """A session for images of one shape, the buffer of its results, and the weights that an accelerator got."""

    def __init__(self, x, w, window, device, buffer):
        self.session, self.buffer = Conv2dMetalResidentSession(*x, w[0], *w[2:], *window), buffer
        self.device, self.sent = device, None
        self.session._use(device)

    def run(self, x, w, b, out):
        if not _c._uses_cuda(self.device):
            self.session._run(x, w, b, out, SEND | FETCH)
            return
        weights = [w] if b is None else [w, b]
        same = self.sent is not None and len(self.sent) == len(weights) and all(map(np.array_equal, self.sent, weights))
        there = self.session._run(x, w, b, out, (SEND_FIRST if same else SEND) | FETCH)
        self.sent = [a.copy() for a in weights] if there and not same else self.sent if there else None


class ConvReLUResidentBlock(_Stateful):
    """Convolution and ReLU with kept weights: packed once, sent to an accelerator once, and again when they have changed. `run`
    writes into a buffer per shape, which its next call writes again.

    >>> block = ConvReLUResidentBlock(np.ones((1, 1, 2, 2)), None)
    >>> block.run(np.ones((1, 1, 2, 2))).item()
    4.0
    """

    _state = ("w", "b")

    def __init__(
        self,
        weight,
        bias,
        *,
        stride_h=1,
        stride_w=1,
        pad_h=0,
        pad_w=0,
        device="metal",
        policy="auto",
        cache_key_prefix="conv_resident",
    ):
        self.w, self.b = tensor(weight).copy(), None if bias is None else tensor(bias).reshape(-1).copy()
        if self.w.ndim != 4 or (self.b is not None and self.b.size != self.w.shape[0]):
            raise ValueError("the weight must be (O, C, KH, KW), the bias (O,)")
        self.window, self.device, self.policy, self.cache_key_prefix = (
            (stride_h, stride_w, pad_h, pad_w),
            device,
            policy,
            cache_key_prefix,
        )
        self._kept = {}

    def run(self, x, out=None):
        """The result, in out or in the block's own buffer."""
        x = tensor(x)
        shapes = x.shape, self.w.shape
        kept = self._kept.get(shapes)
        if kept is None:  # this also checks the shapes
            buffer = conv_relu(x, self.w, self.b, self.window, self.device)
            kept = self._kept[shapes] = _Convolution(*shapes, self.window, self.device, buffer)
            if out is None:
                return buffer
        out = kept.buffer if out is None else check_out(out)
        if out.shape != kept.buffer.shape or resolve(device=self.device) != "lightning":
            return lightning_conv_relu_nchw(x, self.w, self.b, *self.window, self.device, out)
        kept.run(x, self.w, self.b, out)
        return out


def clear_attention_session_cache():
    """Drop the kept attention sessions, and the choices for their shapes.

    >>> clear_attention_session_cache()
    """
    _sessions.clear()
    _c._forget_choices()


class AttentionResidentBlock(_Stateful):
    """Attention of one shape with a kept session. The result has the rank of q, in a buffer that the next call writes again.

    >>> AttentionResidentBlock(1, 2).run([1, 2], [3, 4], [5, 6]).tolist()
    [5.0, 6.0]
    """

    _state = ("seq", "head_dim", "causal")

    def __init__(self, seq, head_dim, *, causal=False, device="metal"):
        self.seq, self.head_dim, self.causal, self.device = int(seq), int(head_dim), bool(causal), device
        self._session, self._buffers = _sessions.get(self.seq, self.head_dim, self.causal, device), {}

    def _set(self, name, value):
        setattr(self, name, bool(value) if name == "causal" else int(value))
        self._session, self._buffers = _sessions.get(self.seq, self.head_dim, self.causal, self.device), {}

    def run(self, q, k, v):
        """Attention over (seq, head_dim), flat, or several of them in a third dimension."""
        q, k, v = tensor(q), tensor(k), tensor(v)
        if resolve(device=self.device) != "lightning":
            return attention(q, k, v, self.seq, self.head_dim, self.causal, self.device)
        out = self._buffers.get(q.shape)
        if out is None:
            out = self._buffers[q.shape] = np.empty(q.shape, np.float32)
        several = q.shape[1:] == (self.seq, self.head_dim) and q.shape == k.shape == v.shape
        for head in zip(q, k, v, out) if several else [(q, k, v, out)]:
            self._session.forward_into(*head)
        return out


class ConvAttentionResidentPipeline(_Stateful):
    """Convolution, ReLU and attention with kept weights, flat.

    >>> w = np.ones((1, 1, 3, 3))
    >>> ConvAttentionResidentPipeline(w, None, seq=1, head_dim=2).run(w).tolist()
    [9.0, 9.0]
    """

    _state = ("conv_weight", "conv_bias")

    def __init__(
        self,
        conv_weight,
        conv_bias,
        *,
        seq,
        head_dim,
        conv_stride_h=1,
        conv_stride_w=1,
        conv_pad_h=0,
        conv_pad_w=0,
        device="metal",
        conv_policy="auto",
        cache_key_prefix="conv_attention",
    ):
        self.conv_weight = tensor(conv_weight).copy()
        self.conv_bias = None if conv_bias is None else tensor(conv_bias).reshape(-1).copy()
        self.seq, self.head_dim, self.device = seq, head_dim, device
        self.conv_policy, self.cache_key_prefix = conv_policy, cache_key_prefix
        self.window = (conv_stride_h, conv_stride_w, conv_pad_h, conv_pad_w)

    def run(self, x, execution_mode="eager", route_policy=None):
        """The result for an image."""
        return run_pipeline(
            x,
            self.conv_weight,
            self.conv_bias,
            self.seq,
            self.head_dim,
            self.window,
            self.device,
            execution_mode,
            route_policy,
        )
