"""Private functions of `torch` on tensors, checks, old names, and numbers that may be symbols in PyTorch."""

from .. import _C


def _assert(condition, message):
    """assert with a message."""
    if type(condition) is not bool and _C._has_torch_function((condition,)):  # fx records the question
        from ..overrides import handle_torch_function

        return handle_torch_function(_assert, (condition,), condition, message)
    if isinstance(condition, _C.Tensor):
        condition = condition.item()
    if not condition:
        raise AssertionError(message)


def _assert_async(input, message="Expected Tensor with single nonzero value, but got zero"):  # noqa: A002 (PyTorch's name)
    if not input.item():
        raise RuntimeError(message)


def _is_all_true(input):  # noqa: A002
    return input.all()


def _is_any_true(input):  # noqa: A002
    return input.any()


def _check_of(error):
    def check(condition, *rest):
        """Raise if a condition does not hold; the message is a function."""
        rest = [r for r in rest if r is not None]
        if isinstance(condition, type) and issubclass(condition, Exception):  # _check_with(error, condition, message)
            kind, condition, rest = condition, rest[0], rest[1:]
        else:
            kind = error
        if not condition:
            message = rest[0] if rest else "Expected cond to be True, but got False."
            raise kind(message() if callable(message) else message)

    return check


_check, _check_value, _check_type = map(_check_of, (RuntimeError, ValueError, TypeError))
_check_not_implemented = _check_of(NotImplementedError)


def _check_tensor_all(condition, *rest):
    if isinstance(condition, type):
        return _check(condition, rest[0].all(), *rest[1:])
    return _check(condition.all(), *rest)


def _check_is_size(i, message=None, *, max=None):  # noqa: A002
    _check(i >= 0 and (max is None or i <= max), message or f"Expected a size, got {i}")


def _shape_as_tensor(input):  # noqa: A002
    return _C.tensor(list(input.shape), dtype=_C.int64)


def _cast_Long(input, non_blocking=False):  # noqa: A002, N802
    return input.to(_C.int64)


def _cast_Float(input, non_blocking=False):  # noqa: A002, N802
    return input.to(_C.float32)


def _convert_indices_from_coo_to_csr(input, size, *, out_int32=False):  # noqa: A002
    rows = _C.bincount(input.to(_C.int64), minlength=size).cumsum(0)
    return _C.cat([rows.new_zeros(1), rows]).to(_C.int32 if out_int32 else _C.int64)


def _convert_indices_from_csr_to_coo(crow_indices, col_indices, *, out_int32=False, transpose=False):
    rows = _C.repeat_interleave(_C.arange(crow_indices.shape[-1] - 1), crow_indices.diff().to(_C.int64))
    pair = [col_indices.to(_C.int64), rows] if transpose else [rows, col_indices.to(_C.int64)]
    return _C.stack(pair).to(_C.int32 if out_int32 else _C.int64)


_sample_dirichlet, _dirichlet_grad = _C._sample_dirichlet, _C._dirichlet_grad


def _grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    """Products of groups of rows (or of batches) by a matrix of their own; offs has where groups end."""
    if offs is None:
        result = self @ mat2
    elif self.ndim == 2 and mat2.ndim == 3:
        starts = [0, *offs.tolist()]
        result = _C.cat([self[a:b] @ mat2[i] for i, (a, b) in enumerate(zip(starts, starts[1:]))])
    elif self.ndim == 3 and mat2.ndim == 2:
        starts = [0, *offs.tolist()]
        result = _C.cat([self[i] @ mat2[:, a:b] for i, (a, b) in enumerate(zip(starts, starts[1:]))], -1)
    else:
        starts = [0, *offs.tolist()]
        result = _C.stack([self[:, a:b] @ mat2[a:b] for a, b in zip(starts, starts[1:])])
    result = result if bias is None else result + bias
    return result if out_dtype is None else result.to(out_dtype)


_FLOAT8 = frozenset((_C.float8_e4m3fn, _C.float8_e5m2, _C.float8_e4m3fnuz, _C.float8_e5m2fnuz))


def _scaled_mm(self, mat2, scale_a, scale_b, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False, *, out=None):
    """(self * scale_a) @ (mat2 * scale_b) + bias of two float8 matrices, computed in float32 and rounded once.

    Scales are float32: one number for a matrix, or a column (rows of self, 1) and a row (1, columns of mat2). A float8
    result is divided by scale_result. use_fast_accum allows less exact sums on a GPU; here sums are float32 either way.

    >>> a = lucid.ones(2, 4).to(lucid.float8_e4m3fn)
    >>> lucid._scaled_mm(a, a.t(), lucid.tensor(1.0), lucid.tensor(0.5), out_dtype=lucid.float32)
    tensor([[2., 2.],
            [2., 2.]])
    """
    for name, matrix in (("mat1", self), ("mat2", mat2)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, not of shape {tuple(matrix.shape)}")
    if self.shape[1] != mat2.shape[0]:
        shapes = "x".join(map(str, self.shape)), "x".join(map(str, mat2.shape))
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({shapes[0]} and {shapes[1]})")
    rows, columns = (self.shape[0], 1), (1, mat2.shape[1])
    each = scale_a.numel() == scale_b.numel() == 1 or (scale_a.shape == rows and scale_b.shape == columns)
    if not each or {self.dtype, mat2.dtype} - _FLOAT8 or {scale_a.dtype, scale_b.dtype} != {_C.float32}:
        raise ValueError(
            "_scaled_mm: Invalid scaling configuration. It takes two float8 matrices and float32 scales, of one element "
            f"each or of shapes {rows} and {columns}; got {self.dtype}, {mat2.dtype}, {tuple(scale_a.shape)} {scale_a.dtype}, "
            f"{tuple(scale_b.shape)} {scale_b.dtype}"
        )
    if scale_a.numel() == scale_b.numel() == 1:
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    result = (self.to(_C.float32) @ mat2.to(_C.float32)) * scale_a * scale_b
    result = result if bias is None else result + bias.to(_C.float32)
    dtype = out_dtype or self.dtype
    result = (result / scale_result if scale_result is not None and dtype in _FLOAT8 else result).to(dtype)
    return result if out is None else out.resize_as_(result).copy_(result)


def _amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inv_scale):
    for grad in grads:
        if not grad.isfinite().all():
            found_inf.fill_(1.0)
        grad.mul_(inv_scale)


def _amp_update_scale_(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval):
    if found_inf.item():
        scale.mul_(backoff_factor)
        growth_tracker.zero_()
        return scale
    growth_tracker.add_(1)
    if growth_tracker.item() == growth_interval:
        grown = scale * growth_factor
        if grown.isfinite().item():
            scale.copy_(grown)
        growth_tracker.zero_()
    return scale


def _make_per_tensor_quantized_tensor(*args):
    raise NotImplementedError("torch._make_per_tensor_quantized_tensor is not in Lucid: quantization")


def _old(name, now):
    def gone(*args, **kwargs):
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. {name} is now {now}.")

    return gone


_solve = _old("torch.solve", "torch.linalg.solve")
_symeig = _old("torch.symeig", "torch.linalg.eigh")
_matrix_rank = _old("torch.matrix_rank", "torch.linalg.matrix_rank")


def dsmm(mat1, mat2):
    """`mm`, by an old name.

    >>> lucid.dsmm(lucid.eye(2), lucid.eye(2)).sum()
    tensor(2.)
    """
    return _C.mm(mat1, mat2)


class _NumberMeta(type):
    def __instancecheck__(cls, instance):  # shapes are plain numbers: nothing is a symbol
        return False


class _SymInt(metaclass=_NumberMeta):
    """PyTorch's symbolic int: shapes are plain ints here, and nothing is an instance."""


class _SymFloat(metaclass=_NumberMeta):
    """PyTorch's symbolic float."""


class _SymBool(metaclass=_NumberMeta):
    """PyTorch's symbolic bool."""


def swap_tensors(t1, t2):
    """Exchange two tensors: each name then has the other's values, shape, gradient and attributes.

    >>> a, b = lucid.zeros(1), lucid.ones(2)
    >>> lucid.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([1., 1.]), tensor([0.]))
    """
    grads, needs = (t1.grad, t2.grad), (t1.requires_grad, t2.requires_grad)
    if type(t1) is not type(t2) and t1.__class__.__flags__ & (1 << 9):
        t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.grad = t2.grad = None
    one, two = t1.detach(), t2.detach()
    t1.__dict__, t2.__dict__ = dict(t2.__dict__), dict(t1.__dict__)
    t1.requires_grad_(False), t2.requires_grad_(False)
    t1.data, t2.data = two, one
    t1.requires_grad_(needs[1]), t2.requires_grad_(needs[0])
    t1.grad, t2.grad = grads[1], grads[0]


def set_module(obj, mod):
    """Set the module that an object says it is from.

    >>> def f(): pass
    >>> lucid.utils.set_module(f, "torch")
    >>> f.__module__
    'torch'
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
