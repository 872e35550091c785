"""I/O policies: which operands a call sends to the device, whether it fetches the result, whether it waits.

On an accelerator `upload_x = False` takes the operand that an earlier call left there (the first call sends all),
`download_out = False` leaves out as it is, and a call waits if it synchronizes or downloads. Calls under a policy keep their
operands per shape and device; those of sessions are the session's. On the CPU operands and results are in host memory and
every call has finished when it returns, so these flags change nothing. `output_scale`, `output_bias` and `output_relu` of
attention are applied by every call.
"""

import operator

from lucid import _C

from ._kept import Kept

_c = _C._lightning()
SEND, FETCH, WAIT = 7, 8, 16  # what a call moves (bindings/lightning/lightning.h)
SEND_FIRST = 1  # the first operand alone


class _Field:
    """A typed attribute: other types raise TypeError."""

    def __init__(self, preset):
        self.preset, self.kind = preset, type(preset)

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, policy, owner=None):
        return self.preset if policy is None else policy._values.get(self.name, self.preset)

    def __set__(self, policy, value):
        policy._values[self.name] = self.convert(value)

    def convert(self, value):
        if self.kind is bool:
            if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
                return bool(value)
        elif isinstance(value, bool):
            pass
        elif self.kind is int and hasattr(value, "__index__"):
            value = operator.index(value)
            if value >= 0:
                return value
        elif self.kind is float and hasattr(value, "__float__"):
            return float(value)
        raise TypeError(
            f"{self.name} must be {'a non-negative int' if self.kind is int else f'a {self.kind.__name__}'}, not {value!r}"
        )


class _Policy:
    __slots__ = ("_values",)

    def __init__(self):
        self._values = {}

    def __repr__(self):
        names = [n for c in type(self).__mro__ for n, f in vars(c).items() if isinstance(f, _Field)]
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


class _TwoOperands(_Policy):
    __slots__ = ()
    upload_a, upload_b, download_out, synchronize = _Field(True), _Field(True), _Field(True), _Field(True)


class MatMulIoPolicy(_TwoOperands):
    """How a product moves its operands.

    >>> policy = MatMulIoPolicy()
    >>> policy.upload_b = False
    >>> policy
    MatMulIoPolicy(upload_a=True, upload_b=False, download_out=True, synchronize=True)
    """

    __slots__ = ()


class MatrixElementwiseIoPolicy(_TwoOperands):
    """How a difference or quotient of matrices moves its operands.

    >>> MatrixElementwiseIoPolicy().synchronize
    True
    """

    __slots__ = ()


class VectorAddIoPolicy(_TwoOperands):
    """How a sum of vectors moves its operands.

    >>> VectorAddIoPolicy().download_out
    True
    """

    __slots__ = ()


class AttentionIoPolicy(_Policy):
    """How attention moves its operands, how often training computes the loss, and what is done to the result.

    >>> policy = AttentionIoPolicy()
    >>> policy.loss_every, policy.output_scale, policy.output_relu
    (1, 1.0, False)
    >>> policy.loss_every = "often"
    Traceback (most recent call last):
    TypeError: loss_every must be a non-negative int, not 'often'
    """

    __slots__ = ()
    upload_q, upload_k, upload_v, upload_target = _Field(True), _Field(True), _Field(True), _Field(True)
    download_out, download_v, synchronize = _Field(True), _Field(True), _Field(True)
    loss_every, output_scale, output_bias, output_relu = _Field(1), _Field(1.0), _Field(0.0), _Field(False)


def check_policy(policy, kind):
    if policy is None:
        return kind()
    if not isinstance(policy, kind):
        raise TypeError(f"policy must be a {kind.__name__}, not {type(policy).__name__}")
    return policy


def shape_output(out, policy):
    """The epilogue of attention, in place: out * scale + bias, then ReLU."""
    if policy.output_scale != 1.0:
        out *= out.dtype.type(policy.output_scale)
    if policy.output_bias != 0.0:
        out += out.dtype.type(policy.output_bias)
    if policy.output_relu:
        out.clip(0, None, out=out)


def moves_of(policy, operands):
    """What a call under a policy moves. operands: the names of the flags that send them."""
    sent = sum(getattr(policy, f"upload_{name}") << i for i, name in enumerate(operands))
    if len(operands) == 2:
        sent |= 4  # there is no third
    return sent | (FETCH if policy.download_out else WAIT if policy.synchronize else 0)


def _product_session(m, k, n, device):
    session = _c.MatMulMetalResidentSession(m, k, n)
    session._use(device)
    return session


def _attention_session(seq, dim, causal, device):
    return _c._AttentionSession(seq, dim, causal, device)


products, attentions = Kept(_product_session), Kept(_attention_session)


def _multiply(a, b, out, m, k, n, device, policy):
    """The product into out, or into a new array of zeros."""
    import numpy as np

    session = products.get(operator.index(m), operator.index(k), operator.index(n), device)
    if out is None:
        out = np.zeros(m * n, np.float32)
    session._run(a, b, out, moves_of(policy, "ab"))
    return out


def matmul_with_policy(a, b, m, k, n, device="metal", policy=None):
    """`matmul` under a MatMulIoPolicy.

    >>> matmul_with_policy([1, 2], [3, 4], 1, 2, 1, policy=MatMulIoPolicy())
    [11.0]
    """
    policy = check_policy(policy, MatMulIoPolicy)
    if not _c._uses_cuda(device):
        return _c.matmul(a, b, m, k, n, device)
    out = _multiply(a, b, None, m, k, n, device, policy)
    return out.tolist() if isinstance(a, list) else out


def matmul_np_with_policy(a, b, m, k, n, device="metal", policy=None):
    """`matmul_np` under a MatMulIoPolicy.

    >>> matmul_np_with_policy([1, 2], [3, 4], 1, 2, 1).tolist()
    [11.0]
    """
    policy = check_policy(policy, MatMulIoPolicy)
    if not _c._uses_cuda(device):
        return _c.matmul_np(a, b, m, k, n, device)
    return _multiply(a, b, None, m, k, n, device, policy)


def matmul_np_into_with_policy(a, b, out, m, k, n, device="metal", policy=None):
    """`matmul_np_into` under a MatMulIoPolicy.

    >>> import numpy as np
    >>> out = np.empty(1, np.float32)
    >>> matmul_np_into_with_policy([1, 2], [3, 4], out, 1, 2, 1)
    >>> out.tolist()
    [11.0]
    """
    policy = check_policy(policy, MatMulIoPolicy)
    if not _c._uses_cuda(device):
        return _c.matmul_np_into(a, b, out, m, k, n, device)
    _multiply(a, b, out, m, k, n, device, policy)
    return None


def attention_forward_with_policy(q, k, v, seq_len, head_dim, causal=False, device="metal", policy=None):
    """`attention_forward` under an AttentionIoPolicy, with its scale, bias and ReLU. Lists give a list.

    >>> policy = AttentionIoPolicy()
    >>> policy.output_scale = 2.0
    >>> attention_forward_with_policy([1, 2], [3, 4], [5, 6], 1, 2, policy=policy)
    [10.0, 12.0]
    """
    policy = check_policy(policy, AttentionIoPolicy)
    if _c._uses_cuda(device):
        import numpy as np

        session = attentions.get(operator.index(seq_len), operator.index(head_dim), causal, device)
        out = np.zeros(seq_len * head_dim, np.float32)
        there = session._run(q, k, v, out, moves_of(policy, "qkv"))
    else:
        out, there = _c.lightning_attention(q, k, v, seq_len, head_dim, causal, device), False
    if policy.download_out or not there:
        shape_output(out, policy)
    return out.tolist() if isinstance(q, list) else out
