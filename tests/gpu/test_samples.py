"""The CPU's sample tables (tests/ops/samples) on `cuda` against the CPU: values, dtypes and shapes, and gradients in float64
and complex128. What the CPU refuses, and what draws random numbers, is not asked of the GPU. On a GPU all samples run;
test_emulated.py runs a part of them on the emulation."""

import importlib
import pathlib
import re
import warnings
import zlib

import numpy as np
import pytest

import lucid

if not lucid.cuda.is_available():  # not a skip for each of thousands of samples: they slow the distribution of all tests
    pytest.skip("no CUDA device", allow_module_level=True)
FOLDER = pathlib.Path(__file__).parents[1] / "ops/samples"
TABLES = {p.stem: ".".join(p.relative_to(FOLDER.parents[2]).with_suffix("").parts) for p in sorted(FOLDER.rglob("*.py"))}
CASES = [
    pytest.param(s, dtype, id=f"{name}:{i}:{s.id or s.op}-{dtype}")
    for name, module in TABLES.items()
    if name not in ("__init__", "sample")
    for i, s in enumerate(importlib.import_module(module).SAMPLES)
    if not s.random and s.id not in ("to-self",)  # whether a tensor is on the CPU already
    for dtype in s.dtypes
]
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-4, "complex64": 2e-4, "float64": 1e-8, "complex128": 1e-8}
# Of one answer in many: signs and phases of vectors, the order of equal elements, who writes last.
FREE = {"put", "put_", "svd", "linalg.svd", "linalg.eigh", "linalg.eig", "eig", "geqrf", "pca_lowrank", "svd_lowrank", "lobpcg"}


# Read by the host: sizes of packed sequences, and where to split.
SIZES_ON_THE_HOST = {"gru", "lstm", "rnn_tanh", "rnn_relu", "tensor_split"}


def tensors_of(sample, dtype, device, grad):
    rng = np.random.default_rng(zlib.crc32(sample.op.encode()))
    for t in sample.tensors():
        numbers, own = t.numbers(dtype, rng), getattr(lucid, t.dtype or dtype)
        x = lucid.tensor(numbers.tolist(), dtype=own).reshape(numbers.shape)
        x = x if t.dtype == "int64" and sample.op in SIZES_ON_THE_HOST else x.to(device)
        inexact = own.is_floating_point or own.is_complex
        yield x.detach().requires_grad_() if grad and inexact and t.grad is not False else x


NAMES_ONE_OF_EQUALS = {"kthvalue", "topk", "mode"}
# What CUDA refuses for a dtype.
REFUSED = re.compile(r"(_interpolate is not implemented for uint8|scatter_reduce is not implemented for complex\d+) on cuda")


def indices_by_values(op, results, x, *args, **kwargs):
    """Which of several equal elements is named is free: the indices are replaced by the elements that they name."""
    args = args if op == "mode" else args[1:]  # k comes first
    dim, kept = args[0] if args else kwargs.get("dim", -1), results[0].dim() == x.dim()
    values, at = (r if kept else r.unsqueeze(dim) for r in results)
    found = [values, x.gather(dim, at)]
    if kwargs.get("sorted") is False:  # in no particular order
        found = [lucid.sort(t, dim).values for t in found]
    return [*found, at.new_zeros(at.shape)]


def flat(result):
    if isinstance(result, (tuple, list)):
        return [y for r in result for y in flat(r)]
    return [result] if isinstance(result, lucid.Tensor) else []


def named(value):
    return getattr(lucid, value[1:]) if isinstance(value, str) and value.startswith("@") else value


def computed(sample, dtype, device):
    """The results of the call, then the gradients of a sum of their squares."""
    grad = sample.grad and dtype in ("float64", "complex128")
    leaves = list(tensors_of(sample, dtype, device, grad))
    args, kwargs = sample.substitute([x * 1 if x.requires_grad else x for x in leaves])
    with warnings.catch_warnings(), lucid.device(device):
        warnings.simplefilter("ignore")
        results = flat(sample.function(lucid)(*[named(a) for a in args], **{k: named(v) for k, v in kwargs.items()}))
        if sample.op in NAMES_ONE_OF_EQUALS:
            results = indices_by_values(sample.op, results, *args, **kwargs)
        smooth = [y for y in results if y.requires_grad]
        if not smooth:
            return results
        wanted = [x for x in leaves if x.requires_grad]
        loss = sum((y.abs() ** 2 if y.is_complex() else y * y).sum() for y in smooth)
        return results + [g for g in lucid.autograd.grad(loss, wanted, allow_unused=True) if g is not None]


def wide(x):
    x = x.detach().to_dense() if x.layout != lucid.strided else x.detach()
    return x.cpu().resolve_conj().to(lucid.complex128 if x.is_complex() else lucid.float64)


def check(sample, dtype):
    try:
        lucid.manual_seed(1)
        state = lucid.get_rng_state()
        expected = computed(sample, dtype, "cpu")
    except Exception:  # noqa: BLE001  refused: tests/ops compares errors
        pytest.skip("refused on the CPU too")
    if not lucid.equal(lucid.get_rng_state(), state):
        pytest.skip("draws random numbers")
    try:
        found = computed(sample, dtype, "cuda")
    except lucid.LucidError as error:  # as in PyTorch, a GPU has one driver of lstsq
        if "(gels)" not in str(error) and not REFUSED.search(str(error)):
            raise
        return
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        if sample.op in FREE:
            continue
        name = str(theirs.dtype).split(".")[-1]
        ours, theirs, tolerance = wide(ours), wide(theirs), max(TOLERANCE.get(name, 0), sample.rtol or 0)
        finite = theirs[theirs.isfinite()].abs()
        atol = max(tolerance * max(1.0, finite.max().item() if finite.numel() else 0.0), sample.atol or 0)
        lucid.testing.assert_close(ours, theirs, rtol=tolerance, atol=atol, equal_nan=True)


@pytest.mark.parametrize("sample, dtype", CASES)
def test_like_the_cpu(sample, dtype):
    check(sample, dtype)
