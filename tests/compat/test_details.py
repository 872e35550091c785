"""What op_db has no sample for: PyTorch's rules at the edges, one line each, the same outcome or the same class of error."""

import copy
import warnings

import pytest
import torch

import lucid

from .compare import assert_same, assert_same_error
from .exchange import Exchange

WIDE = torch.zeros(2, 1).expand(2, 3)  # two elements of memory
PERMUTED = torch.arange(120.0).reshape(4, 5, 6).permute(2, 0, 1)
I = torch.tensor([1, 0, 2])
ROW = torch.tensor([True, False, True])


def put(m, x, key, value):
    x[key] = value
    return x


def copied(m, x):  # views of one tensor are views of one copy
    a, b, c = copy.deepcopy([x[1:], x, x[::2]])
    a[1] = 99
    return a, b, c


CASES = {
    "number in place": (lambda m, x: m.add_(5, x), torch.tensor(1)),
    "two numbers": (lambda m, x: m.pow(2, 3), I),
    "expanded.fill_(number)": (lambda m, x: x.fill_(2), WIDE),
    "expanded.fill_(tensor)": (lambda m, x, v: x.fill_(v), WIDE, torch.tensor(2.0)),
    "expanded[...] = number": (put, WIDE, ..., 2),
    "expanded[0] = number": (put, WIDE, 0, 2),
    "expanded[0, 1] = number": (put, WIDE, (0, 1), 2),
    "x[False] = wrong shape": (put, PERMUTED, False, I),
    "int[mask] = float": (put, I, ROW, torch.tensor([1.5])),
    "x[:, :, mask] = int": (put, torch.zeros(2, 1, 3), (slice(None), slice(None), ROW), torch.tensor(4)),
    "x[None, i]": (lambda m, x, i: x[None, i], PERMUTED, I),
    "x[:, None, i]": (lambda m, x, i: x[:, None, i], PERMUTED, I),
    "clamp by number and tensor": (lambda m, x, v: m.clamp(x, 0.5, v), PERMUTED, PERMUTED),
    "clamp of complex": (lambda m, x: m.clamp(x, x, x), torch.zeros(3, dtype=torch.complex64)),
    "cat of empty vectors": (lambda m, x: m.cat([x, x], 1), torch.empty(0)),
    "int expanded + float": (lambda m, x, y: x + y, torch.arange(3).expand(2, 4, 3).permute(2, 0, 1), torch.zeros(1, 4)),
    "float(memory_format) of a strided tensor": (lambda m, x: x.float(memory_format=m.contiguous_format), PERMUTED[:, ::2]),
    "to(channels_last) of a strided tensor": (lambda m, x: x.to(memory_format=m.channels_last), PERMUTED[None]),
    "old names": (lambda m, x: [x.__div__(2), x.__rdiv__(2), x[1].sum().__long__(), x[1, 1, 1].__nonzero__()], PERMUTED),
}
# Sizes beyond all memory, numbers beyond their dtype, tensors that are empty, 0-d, of the wrong dtype or device.
STATEMENTS = """
    m.empty(2**62) | m.empty(2**32, 2**32) | m.ones(3).resize_(2**62) | m.ones(3).resize_(2**31, 2**31) | m.eye(2**62)
    m.ones(3).repeat(2**62) | m.ones(3).expand(2**62, 3) | m.tile(m.ones(3), (2**62, 2)) | m.arange(2**62)
    m.arange(0, 1e30) | m.linspace(0, 1, 2**62) | m.linspace(0, 1, -1) | m.tril_indices(2**62, 2**62)
    m.triu_indices(2**40, 2, 2) | m.randperm(2**62) | m.cartesian_prod(*[m.ones(256)] * 10)
    m.combinations(m.ones(1000), 8) | m.ones(3).repeat_interleave(2**62) | m.cat([m.ones(1).expand(2**62)] * 3)
    m.as_strided(m.ones(3), (2,), (2**62,)) | m.ones(3).unfold(0, 2**62, 1) | m.bincount(m.tensor([2**62]))
    m.bincount(m.tensor([1]), minlength=2**62) | m.diag(m.ones(3), -(2**62)) | m.ones(3).topk(2**62)
    m.ones(3, 3).diagonal(2**62) | m.ones(3, 3).tril(-(2**63)) | m.ones(3, 3).roll(2**62) | m.ones(3, 3)[2**62:]
    m.ones(3).sum(2**62) | m.ones(3, dtype=m.int8).clamp(max=300)
    m.ones(3, dtype=m.int8).add(m.ones(3, dtype=m.int8), alpha=300) | m.ones(3).clamp(1e300)
    m.ones(3).lerp(m.ones(3), 1e300) | m.ones(3).add(m.ones(3), alpha=1e300)
    m.ones(3).addcmul(m.ones(3), m.ones(3), value=1e300) | m.where(m.ones(3) > 0, m.ones(3), 1e300)
    m.where(m.ones(3) > 0, m.ones(3).half(), 1e300) | m.ones(3).half().clamp(max=1e6) | m.full((2,), -3, dtype=m.uint8)
    m.full((2,), -3.5, dtype=m.uint8) | m.tensor([-3.5], dtype=m.uint8) | m.ones(3).mul(1e300)
    m.zeros(2, dtype=m.uint8).fill_(300) | m.ones(2, dtype=m.uint8).masked_fill(m.tensor([True, False]), -2.5)
    m.bincount(m.tensor([], dtype=m.int64), m.ones(3), minlength=2) | m.diff(m.ones(3), 0, 100)
    m.diff(m.ones(3), 1, 100) | m.cumulative_trapezoid(m.empty(0)) | m.trapezoid(m.tensor(1.0))
    m.trapezoid(m.ones(()), m.ones(3)) | m.empty(0).kthvalue(1) | m.broadcast_shapes((-1, 2)) | m.broadcast_shapes(1.5)
    m.broadcast_shapes(3, (2, 1), None) | m.ones(3).put_(m.tensor([0]), m.ones(2))
    m.index_add(m.ones(()), 0, m.tensor([0, 0]), m.ones(2)) | m.index_add(m.ones(3), 0, m.tensor([0]), m.ones(()))
    m.index_reduce(m.ones(3), 0, m.tensor([0]), m.ones(()), "amax")
    m.index_copy(m.ones(3), 0, m.tensor([0]), m.ones(())) | m.index_fill(m.ones(3), 0, m.tensor([0.5]), 1)
    m.index_fill(m.ones(3), 0, m.tensor([0]), m.tensor(1j)) | m.masked_select(m.ones(()), m.ones(3, device="meta") > 0)
    m.ones(2, 3) + m.ones(2, 3, device="meta")
    m.cross(m.ones(3), m.ones(3).double()) | m.cdist(m.ones(2, 3), m.ones(2, 3).double())
    m.cdist(m.ones(0, 3), m.ones(2, 3).double()) | m.inner(m.tensor(2), m.ones(2, 2))
    m.ones(3) + 2**63 | 2**63 - m.ones(3) | 2**63 / m.ones(3) | m.ones(3) * 2**64 | m.tensor([1, 2]) + 2**63
    m.ones(3) < 2**63 | m.ones(3).half() + 2**63 | m.ones(3) + -(2**63) - 1 | m.add(m.ones(3), m.ones(3), alpha=2**63)
    m.clamp(m.ones(3), max=2**63) | m.full((2,), 2**63) | m.full((2,), 2**63, dtype=m.float32)
    m.tensor([1, 2]).fill_(2**63) | m.ones(3).fill_(2**63) | put(m, m.zeros(3), 0, 2**63)
    m.addmm(m.ones(2, 2), m.ones(2, 2), m.ones(2, 2), beta=2**63)
    m.addmm(m.ones(2, 2).long(), m.ones(2, 2).long(), m.ones(2, 2).long(), alpha=2**63)
    m.addmm(m.ones(2, 2), m.ones(2, 2), m.ones(2, 2), alpha=1e300)
    m.addmm(m.ones(2, 2).char(), m.ones(2, 2).char(), m.ones(2, 2).char(), beta=300)
    m.addmv(m.ones(2), m.ones(2, 2), m.ones(2), alpha=1j) | m.addr(m.ones(2, 2), m.ones(2), m.ones(2), beta=1e300)
    m.addbmm(m.ones(2, 2), m.ones(2), m.ones(2, 2, 2)) | m.addbmm(m.ones(2, 2), m.ones(2, 2, 2), m.ones(()))
    m.baddbmm(m.ones(2, 2), m.ones(()), m.ones(2, 2, 2)) | m.mv(m.ones(()), m.ones(2))
    m.var(m.tensor([1e308, 1e308], dtype=m.float64)) | m.std(m.full((1000,), 1e300, dtype=m.float64))
    m.all(m.ones(2, 3), dim=()) | m.any(m.tensor([[1, 0]], dtype=m.uint8), dim=[], keepdim=True)
    m.bernoulli(m.tensor([0.5, 1.5])) | m.bernoulli(m.tensor([float("nan")])) | m.median(m.empty(0, dtype=m.int32))
    m.diff(m.ones(3), 0, 100, m.ones(1)) | m.diff(m.ones(3, 3), 0, 1, m.ones(1, 1)) | m.einsum("ij->i")
    m.index_fill(m.tensor(3.0), 0, m.tensor([], dtype=m.int64), 2.0) | m.index_fill(m.ones(3), 0, m.tensor([0]).int(), 2.0)
    m.logit(m.tensor([0.1, 0.5, 0.9]), 1) | m.logit(m.tensor([0.1, 0.5, 0.9]), 0.7) | m.logit(m.tensor([0.1]), float("nan"))
    m.take_along_dim(m.ones(3, 3), m.tensor([-4])) | m.eye(2, requires_grad=True, out=m.ones(2, 2)).requires_grad
    m.tensor([1.605276] * 40).half() == 1.605276 | m.tensor([0.3, 1.605276]).bfloat16() < 1.605276
    m.tensor(1.605276) >= m.tensor([1.605276] * 3).bfloat16() | m.tensor([0.1, 2.5]).bfloat16() + 0.3
    0.3 - m.tensor([0.1, 2.5]).half() | m.tensor([0.1, 2.5]).half() * 0.3 | m.tensor([0.1, 2.5]).bfloat16() / 0.3
    m.tensor([0.7, 2.5]).half() % 0.3 | m.tensor([256.0, 2.0]).bfloat16() == m.tensor([257, 2])
    m.tensor([1.0, 2.0]).bfloat16() + m.tensor([257, 1001]) | m.tensor(0.3) / m.tensor([0.7, 2.5]).bfloat16()
    m.tensor(m.ones(3, 4).t()).stride() | m.ones(2).new_tensor(m.ones(3, 4).t()).stride()
    m.zeros(2).copy_(0.5) | m.zeros(2, dtype=m.int8).copy_(300) | m.zeros(2, 1).expand(2, 3).copy_(1)
    m.ones(2).requires_grad_(1) | m.ones(2).is_same_size(1) | m.ones(2).is_set_to(None)
    m.mm(m.ones(2, 2), m.ones(2, 2), out=m.ones(2, 2).double()) | m.floor(m.ones(2), out=m.ones(2).double())
    m.add(m.ones(2), m.ones(2), out=m.ones(2).double()) | m.amax(m.ones(2), out=m.ones(()).double())
    m.any(m.ones(2), out=m.ones(()).byte()) | m.any(m.ones(2), out=m.ones(())) | m.argmax(m.ones(2), out=m.ones(()).int())
    m.sort(m.ones(2), out=(m.ones(2), m.ones(2))) | m.permute_copy(m.ones(2, 2), (1, 0), out=m.ones(2, 2).double())
    m.where(m.ones(2) > 0, m.ones(2), m.ones(2), out=m.ones(2).double()) | m.sum(m.ones(2), 0, out=m.ones(()).double())
    m.abs(m.ones(3), out=m.ones(3).double()) | m.abs(m.ones(3).cfloat(), out=m.ones(3).cdouble())
    m.abs(m.ones(3).cfloat(), out=m.ones(3).cfloat()) | m.abs(m.ones(3).cfloat(), out=m.ones(3).double())
    m.ones(3).cumsum_(0, dtype=m.float64) | m.ones(3).int().cumprod_(0, dtype=m.int64) | m.ones(3).int().cumsum_(0)
    m.ones(3).int().cumprod_(0, dtype=m.int32) | m.norm(m.ones(3), p=1j) | m.ones(3).norm(1 + 0j)
    m.arange(5)[m.tensor(3, dtype=m.int8)] | put(m, m.zeros(2, 3), (..., m.tensor(-1, dtype=m.int16)), 4)
    m.arange(5)[m.tensor([3], dtype=m.int8)] | m.full(2, 1) | m.ones(3).new_full(2, 1) | m.empty_strided(2, 1)
    m.as_strided(m.ones(6), 2, 1) | m.ones(4).unflatten(0, 4) | m.randint(5, 2) | m.normal(0.0, 1.0, 2)
    m.split_with_sizes(m.ones(4), 4) | m.tensor([m.ones(2), m.ones(2)]) | m.tensor([1.0, m.ones(0)]) | m.tensor(b"ab")
    m.ones(5).half().random_(0, 70000) | m.randint(0, 65504, (5,), dtype=m.float16, generator=m.Generator().manual_seed(1))
    m.randint(-65504, 65504, (5,), dtype=m.float16, generator=m.Generator().manual_seed(1))
    m.randint(0, 300, (5,), dtype=m.bfloat16, generator=m.Generator().manual_seed(1))
    m.randint(0, 2**40, (5,), dtype=m.float32, generator=m.Generator().manual_seed(1))
    m.randint(-(2**62), 2**62, (5,), dtype=m.float64, generator=m.Generator().manual_seed(1))
    m.optim.Adam([m.nn.Parameter(m.ones(2))], betas=(0, 0.99)) | m.var_mean(m.arange(4.0))
    m.lerp(m.arange(40.0).half(), m.ones(40).half(), m.tensor(0.3)) | m.lerp(m.arange(40.0).half(), m.ones(40).half(), 0.3)
    m.tensor([1, 2**63 + 5], dtype=m.uint64) == m.tensor([1, 2], dtype=m.uint64) | m.tensor([7, 2], dtype=m.uint64) * 2
    m.where(m.tensor([True, False]), m.tensor([7, 2], dtype=m.uint64), 3) | m.tensor([0, 2**63], dtype=m.uint64).any()
    m.tensor([7, 2], dtype=m.uint64) ^ 3 | m.where(m.tensor([True, False]), m.tensor([7, 2], dtype=m.uint16), 3)
    m.where(m.tensor([1, 0], dtype=m.uint8), m.tensor([7, 2], dtype=m.int8), m.tensor([1, 1], dtype=m.int8))
    m.ones((2, True)) | m.ones((True, 2)) | m.ones(3, 2).sum((0, True)) | m.ones(3, 2).permute(1, False)
    m.ones(10, 5).view(m.tensor([5]), -1) | m.zeros((2, m.tensor([5]))) | m.zeros((2, m.tensor([5.0]))) | m.zeros(m.tensor([2]))
    m.unbind_copy(m.arange(2.0), out=(m.ones(()), m.ones(()))) | m.lerp(m.ones(2), m.ones(2), 0.5, out=m.ones(2).double())
    m.lerp(m.ones(2), m.ones(2), m.ones(2), out=m.ones(2).double())
    m.tensordot(m.ones(2, 2), m.ones(2, 2), dims=[2]) | m.tensordot(m.ones(2, 2), m.ones(2, 2), dims=None)
    m.tensordot(m.ones(2, 2), m.ones(2, 2), dims=0.0)
    copied(m, m.arange(6.0)) | m.ones(3) == np.ones((2, 3)) | np.ones(3) == m.ones(3) | m.ones(3) == np.array(["a"] * 3)
    m.ones(3) != np.ones(3) | m.tensor(np.ones((2, 3, 4)).transpose(2, 0, 1)) | m.tensor(np.ones((4, 6))[:, ::2])
    m.asarray(m.ones(2), requires_grad=True) | m.asarray(m.ones(2), dtype=m.float64, copy=False) | m.asarray([1], copy=False)
    m.asarray(np.ones(2), copy=False) | m.asarray(np.ones(2), dtype=m.float32, copy=False) | m.frombuffer(3, dtype=m.int8)
    m.ones(0).data_ptr() | m.ones(3)[3:].data_ptr()
    m.zeros(2).cfloat() ** 0 | m.zeros(2).cfloat() ** 0j | m.ones(2).char() ** 300 | m.ones(2).half() ** 1e6
    m.tensor([1.0, 0, 3]).half() + m.tensor(2j) | m.tensor([[1.0, 0], [3, 2]]).half().t() == m.tensor(2 + 0j)
    m.ones(2).to(m.tensor(1)) | m.ones(2).to(m.tensor(1), True) | m.ones(2).byte() // 256 | m.ones(2).byte() % 2**40
    m.fmod(m.ones(2).int(), 2**32) | m.ones(2).char() // 257 | m.ones(2).short() // m.tensor(65536)
    type((lambda x: x[x > 1])(m.arange(4.0).requires_grad_()).grad_fn).__name__
    m.std_mean(m.arange(4.0), 0, True) | m.nn.functional.max_pool2d(m.ones(1, 4, 4), 2, return_indices=True)
"""
for line in STATEMENTS.split("\n"):
    CASES |= {s: (eval(f"lambda m: {s}"),) for s in map(str.strip, line.split(" | ")) if s}  # noqa: S307


@pytest.mark.parametrize("name", CASES)
def test_same(name):
    f, *args = CASES[name]
    runs = {}
    for m in (torch, lucid):
        made = Exchange(ours=m is lucid)(args)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                runs[m] = f(m, *made), None
            except Exception as error:  # noqa: BLE001  the class is compared
                runs[m] = None, error
    (ours, our_error), (theirs, their_error) = runs[lucid], runs[torch]
    if their_error is not None:
        return assert_same_error(our_error, their_error)
    assert our_error is None, our_error
    assert_same(ours, theirs, lambda dtype: (1e-6, 1e-6) if dtype.is_floating_point else (0, 0))
