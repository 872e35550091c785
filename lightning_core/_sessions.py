"""Sessions: an operator of one shape, called again and again. The phases are C (bindings/lightning/sessions.c); here are the
names that are called seldom, and attention's training step."""

import math

from lucid import _C

from . import _copies
from ._kept import Kept
from ._policies import AttentionIoPolicy, attentions, check_policy, moves_of, shape_output

_c = _C._lightning()
MatMulMetalResidentSession = _c.MatMulMetalResidentSession
MatrixElemwiseMetalResidentSession = _c.MatrixElemwiseMetalResidentSession
VectorAddMetalResidentSession = _c.VectorAddMetalResidentSession
Conv2dMetalResidentSession = _c.Conv2dMetalResidentSession
_LOSS_STEPS = {(512, 64): 8, (512, 128): 8, (1024, 64): 8, (1024, 128): 8, (256, 128): 16, (256, 64): 32}


class AttentionSession(_c._AttentionSession):
    """Attention over (seq_len, head_dim), with a policy of its own and a training step for v.

    >>> import numpy as np
    >>> session = AttentionSession(1, 2, device="cpu")
    >>> session.forward([1, 2], [3, 4], [5, 6])
    [5.0, 6.0]
    >>> out, v, loss = session.train_step([1, 2], [3, 4], [5, 6], [4, 6], 0.5)
    >>> out, v, loss
    ([5.0, 6.0], [4.5, 6.0], 0.5)
    """

    def __init__(self, seq_len, head_dim, causal=False, device="metal"):
        self.shape, self.causal, self.device = (int(seq_len), int(head_dim)), bool(causal), device
        self._policy, self._steps, self._loss, self._target = AttentionIoPolicy(), 0, 0.0, None
        if device == "metal":
            self._policy.synchronize, self._policy.loss_every = False, 0

    def _flat(self, *arrays):
        import numpy as np

        flat = [np.ascontiguousarray(a, np.float32).reshape(-1) for a in arrays]
        size = self.shape[0] * self.shape[1]
        if not size:
            raise RuntimeError("invalid value")
        if any(a.size != size for a in flat):
            raise ValueError(f"every array must have seq_len * head_dim = {size} elements")
        return flat

    def set_default_policy(self, policy):
        """What forward and train_step do from now on: a copy of the policy.

        >>> policy = AttentionIoPolicy()
        >>> policy.output_bias = 1.0
        >>> session = AttentionSession(1, 2)
        >>> session.set_default_policy(policy)
        >>> session.forward([1, 2], [3, 4], [5, 6])
        [6.0, 7.0]
        """
        given = check_policy(policy, AttentionIoPolicy)
        self._policy = AttentionIoPolicy()
        self._policy._values.update(given._values)
        self._set_policy(given.output_scale, given.output_bias, given.output_relu, moves_of(given, "qkv"))

    def forward(self, q, k, v):
        """The result as a list.

        >>> AttentionSession(1, 1).forward([1], [1], [3])
        [3.0]
        """
        import numpy as np

        out = np.zeros(self.shape[0] * self.shape[1], np.float32)  # a policy may leave it as it is
        self.forward_into(q, k, v, out)
        return out.tolist()

    def forward_with_policy(self, q, k, v, policy):
        """`forward` with another policy for this call.

        >>> AttentionSession(1, 1).forward_with_policy([1], [1], [3], AttentionIoPolicy())
        [3.0]
        """
        import numpy as np

        out = np.zeros(self.shape[0] * self.shape[1], np.float32)  # a policy may leave it as it is
        self.forward_with_policy_into(q, k, v, out, policy)
        return out.tolist()

    def forward_with_policy_into(self, q, k, v, out, policy):
        """`forward_into` with another policy for this call.

        >>> import numpy as np
        >>> out = np.empty(1, np.float32)
        >>> AttentionSession(1, 1).forward_with_policy_into([1], [1], [3], out, AttentionIoPolicy())
        >>> out.tolist()
        [3.0]
        """
        policy = check_policy(policy, AttentionIoPolicy)
        there = self._run(q, k, v, out, moves_of(policy, "qkv"))
        if policy.download_out or not there:
            shape_output(_as_array(out), policy)

    def train_step(self, q, k, v, target, learning_rate):
        """One step of gradient descent on v for mean((out - target) ** 2): the result before it, the new v, the loss.

        >>> AttentionSession(1, 1, device="cpu").train_step([1], [1], [3], [1], 0.25)
        ([3.0], [2.0], 4.0)
        """
        return self.train_step_with_policy(q, k, v, target, learning_rate, self._policy)

    def train_step_with_policy(self, q, k, v, target, learning_rate, policy):
        """`train_step` with another policy for this step.

        >>> AttentionSession(1, 1).train_step_with_policy([1], [1], [3], [1], 0.25, AttentionIoPolicy())
        ([3.0], [2.0], 4.0)
        """
        policy = check_policy(policy, AttentionIoPolicy)
        if isinstance(learning_rate, (str, bytes)) or not hasattr(learning_rate, "__float__"):
            raise TypeError(f"learning_rate must be a number, not {type(learning_rate).__name__}")
        if not learning_rate > 0:
            raise RuntimeError("invalid value")
        flat = self._flat(q, k, v, target)
        there = self._operands(*flat[:3], moves_of(policy, "qkv"))
        step = self._step_here if there is None else self._step_there
        every = policy.loss_every or _LOSS_STEPS.get(self.shape, 4)
        out, new, loss = step(flat, there, float(learning_rate), policy, self._steps % every == 0)
        self._loss = self._loss if loss is None else loss
        self._steps += 1
        give = (lambda a: a.ravel().tolist()) if isinstance(q, list) else (lambda a: a.ravel())
        return give(out), give(new), self._loss

    def _step_here(self, flat, there, rate, policy, with_loss):
        """A step on the CPU: the result, the new v, and the loss if it is asked for."""
        import numpy as np

        seq, dim = self.shape
        qs, ks, vs, wanted = (a.reshape(self.shape) for a in flat)
        _c._note(6, self.device, seq * seq * dim)
        scores = _c.matmul2d(qs, ks.T, "cpu") * np.float32(1 / math.sqrt(dim))
        if self.causal:
            scores[np.triu_indices(seq, 1)] = -1e30
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        out = _c.matmul2d(shares, vs, "cpu")
        shape_output(out, policy)
        miss = out - wanted
        slope = miss * np.float32(2 / miss.size * policy.output_scale)
        if policy.output_relu:
            slope[out <= 0] = 0
        new = vs - np.float32(rate) * _c.matmul2d(shares.T, slope, "cpu")
        return out, new, float(np.mean(np.square(miss, dtype=np.float64))) if with_loss else None

    def _step_there(self, flat, there, rate, policy, with_loss):
        """The same on the accelerator, on operands that are there already; v there becomes the new one."""
        import numpy as np

        import lucid

        seq, dim = self.shape
        q, k, v = there
        if policy.upload_target or self._target is None:
            self._target = _copies.send(flat[3].reshape(self.shape), v.device)
        _c._note(6, self.device, seq * seq * dim, "cuda")
        with lucid.no_grad():
            scores = q @ k.T * (1 / math.sqrt(dim))
            if self.causal:
                scores.masked_fill_(lucid.ones(seq, seq, dtype=lucid.bool, device=v.device).triu_(1), -1e30)
            shares = lucid.softmax(scores, 1)
            out = shares @ v * policy.output_scale + policy.output_bias
            if policy.output_relu:
                out.relu_()
            miss = out - self._target
            slope = miss * (2 / miss.numel() * policy.output_scale)
            if policy.output_relu:
                slope *= out > 0
            v -= rate * (shares.T @ slope)
            loss = miss.double().square().mean().item() if with_loss else None
        zeros = np.zeros(self.shape, np.float32)
        fetched = [
            _copies.fetch(tensor) if wanted else zeros.copy()
            for tensor, wanted in ((out, policy.download_out), (v, policy.download_v))
        ]
        if policy.synchronize and not policy.download_out:
            lucid.cuda.synchronize(v.device)
        return *fetched, loss


def _as_array(out):
    """An array on the memory of out, which has just been written."""
    import numpy as np

    return out if isinstance(out, np.ndarray) else np.asarray(memoryview(out))


def matmul2d_resident_session(a, b):
    """A session for products of the shapes of a and b.

    >>> type(matmul2d_resident_session([[1, 2]], [[3], [4]])).__name__
    'MatMulMetalResidentSession'
    """
    import numpy as np

    left, right = np.shape(a), np.shape(b)
    if len(left) != 2 or len(right) != 2 or left[1] != right[0]:
        raise ValueError("a and b must be matrices that can be multiplied")
    return MatMulMetalResidentSession(left[0], left[1], right[1])


def attention2d_session(q, causal=False, device="metal"):
    """A session for attention over matrices of the shape of q.

    >>> attention2d_session([[1, 2]]).forward([1, 2], [3, 4], [5, 6])
    [5.0, 6.0]
    """
    import numpy as np

    shape = np.shape(q)
    if len(shape) != 2:
        raise ValueError("q must be (seq, dim)")
    return AttentionSession(*shape, causal, device)


def clear_attention2d_session_cache():
    """Drop what one-shot attention keeps between calls: which way each shape is computed, and what lies on an accelerator.

    >>> clear_attention2d_session_cache()
    """
    attentions.clear()
    _c._forget_choices()


def _convolution(*sizes):
    if len(sizes) != 13 or sizes[1] != sizes[5]:
        raise ValueError("conv2d_nchw: x must be (N, C, H, W) and w (O, C, KH, KW)")
    return Conv2dMetalResidentSession(*sizes[:5], *sizes[6:])


convolutions = Kept(_convolution)


def conv2d_nchw_metal_resident(x, w, bias, out, stride_h=1, stride_w=1, pad_h=0, pad_w=0, phase="run", apply_relu=False):
    """One phase of a convolution: "start", "run", "sync", "finish", "run_batch_sync" (8 times) or "run_batch_sync:N". On an
    accelerator the calls of one shape share a session.

    >>> import numpy as np
    >>> out = np.empty((1, 1, 1, 1), np.float32)
    >>> conv2d_nchw_metal_resident(np.ones((1, 1, 2, 2)), np.ones((1, 1, 2, 2)), None, out, phase="run_batch_sync:2")
    >>> out.tolist()
    [[[[4.0]]]]
    """
    if not isinstance(phase, str):
        raise TypeError(f"phase must be a string, not {type(phase).__name__}")
    name, counted, count = phase.partition(":")
    batch = name == "run_batch_sync"
    if (not batch and phase not in ("start", "run", "sync", "finish")) or (counted and not count.isdecimal()):
        raise ValueError(f"phase must be start, run, sync, finish, run_batch_sync or run_batch_sync:N, not {phase!r}")
    repeats = int(count) if count else 8 if batch else 1
    if not repeats:
        raise RuntimeError("invalid value")
    if _c._uses_cuda("metal"):
        import numpy as np

        session = convolutions.get(*np.shape(x), *np.shape(w), stride_h, stride_w, pad_h, pad_w, bool(apply_relu))
        getattr(session, f"{name}_into")(x, w, bias, out, *([repeats] if batch else []))
        return
    run = _c.lightning_conv_relu_nchw_into if apply_relu else _c.conv2d_nchw_into
    for _ in range(repeats):
        run(x, w, bias, out, stride_h, stride_w, pad_h, pad_w)
