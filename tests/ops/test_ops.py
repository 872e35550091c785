"""Every sample of every family against PyTorch: values, dtypes, strides, gradients twice, methods, in-place, out=, meta."""

import importlib
import pathlib
import warnings
import zlib

import pytest
import torch

import lucid
from tests.ops.samples.sample import T

from . import harness
from .harness import LAYOUTS, assert_same, build, dtype_of, error_class, flat

HERE = pathlib.Path(__file__).parent
TABLES = {p.stem: p.relative_to(HERE).with_suffix("") for p in (HERE / "samples").rglob("*.py")}  # of samples/ and samples/nn/
FAMILIES = sorted(TABLES.keys() - {"__init__", "sample"})
SAMPLES = [
    (f"{name}:{i}:{s.id or s.op}", s)
    for name in FAMILIES
    for i, s in enumerate(importlib.import_module("." + ".".join(TABLES[name].parts), __package__).SAMPLES)
]
CASES = [pytest.param(s, d, id=f"{i}-{d}") for i, s in SAMPLES for d in s.dtypes]
SMOOTH = [p for p in CASES if p.values[0].grad and p.values[1] in ("float64", "complex128")]
BY_SAMPLE = [pytest.param(s, id=i) for i, s in SAMPLES]
PLAIN = [p for p in BY_SAMPLE if not p.values[0].random and not p.values[0].fn]


def representative(sample, dtype):
    """With --few an op is run in float32 and in one dtype more, which the op's name decides."""
    first = "float32" if "float32" in sample.dtypes else sample.dtypes[0]
    other = sample.dtypes[zlib.crc32(sample.op.encode()) % len(sample.dtypes)]
    return (sample.op, dtype) if dtype in (first, other) else None


per_op = pytest.mark.few(per=lambda sample, dtype=None: sample.op)


def dtype_arguments(m, value):
    """Samples name dtypes by string ("@float64"), because each library has its own objects."""
    if isinstance(value, str) and value.startswith("@"):
        return dtype_of(m, value[1:])
    return value


def call(m, sample, tensors, method=False, **more):
    args, kwargs = sample.substitute(tensors)
    args = [dtype_arguments(m, a) for a in args]
    kwargs = {k: dtype_arguments(m, v) for k, v in kwargs.items()}
    if sample.random:
        m.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method:
            return getattr(args[0], method)(*args[1:], **kwargs, **more)
        return sample.function(m)(*args, **kwargs, **more)


def attempt(*args, **kwargs):
    try:
        return call(*args, **kwargs), None
    except Exception as error:  # noqa: BLE001  the class is compared
        return None, error


def compare(sample, dtype, layout="contiguous", method=False, prepare=lambda m, tensors: {}):
    """Run both; the same result, or both refuse with related exceptions. Returns Lucid's tensors after the call."""
    both = {}
    for m in (lucid, torch):
        tensors = build(m, sample, dtype, layout)
        result, error = attempt(m, sample, tensors, method, **prepare(m, tensors))
        both[m] = result, error, tensors
    (ours, our_error, a), (theirs, their_error, b) = both[lucid], both[torch]
    if their_error is not None:
        assert our_error is not None, f"PyTorch raises {type(their_error).__name__}: {their_error}; Lucid returned {ours}"
        assert isinstance(our_error, (error_class(their_error), RuntimeError)), f"{our_error!r} instead of {their_error!r}"
        return None
    if our_error is not None:
        raise our_error
    assert_same(ours, theirs, sample, sample.op, sample.strides)
    return a, b


@pytest.mark.few(per=representative)
@pytest.mark.parametrize("sample, dtype", CASES)
def test_values(sample, dtype):
    for layout in LAYOUTS:
        compare(sample, dtype, layout)


@per_op
@pytest.mark.parametrize("sample", BY_SAMPLE)
def test_forms(sample):
    """Method, in-place form, out= and meta, wherever PyTorch has them."""
    dtype = sample.dtypes[-1] if "float32" not in sample.dtypes else "float32"
    first = next(iter(sample.args), None)
    takes_tensor = sample.fn is None and isinstance(first, T)
    if takes_tensor and sample.method and hasattr(torch.Tensor, sample.op):
        compare(sample, dtype, method=sample.op)
    if takes_tensor and sample.inplace and hasattr(torch.Tensor, sample.op + "_"):
        for layout in LAYOUTS:
            after = compare(sample, dtype, layout, method=sample.op + "_")
            if after:
                assert_same(after[0], after[1], sample, "operands after the in-place call")
    if sample.fn is None and sample.out and not sample.random and takes_out(sample, dtype):
        for layout in ("contiguous", "transposed"):
            after = compare(sample, dtype, prepare=lambda m, tensors, layout=layout: {"out": out_for(m, sample, dtype, layout)})
            if after:
                assert_same(after[0], after[1], sample, "operands after out=")


def takes_out(sample, dtype):
    result, error = attempt(torch, sample, build(torch, sample, dtype))
    if error or not isinstance(result, torch.Tensor):
        return False
    return attempt(torch, sample, build(torch, sample, dtype), out=torch.empty_like(result))[1] is None


def out_for(m, sample, dtype, layout):
    theirs = call(torch, sample, build(torch, sample, dtype))
    empty = m.zeros(tuple(theirs.shape), dtype=dtype_of(m, harness.name_of(theirs.dtype)))
    return harness.laid_out(m, empty, layout)


@per_op
@pytest.mark.parametrize("sample", PLAIN)
def test_meta(sample):
    """Shapes, dtypes and strides without values."""
    dtype = sample.dtypes[-1]
    real, error = attempt(lucid, sample, build(lucid, sample, dtype))
    if error:
        pytest.skip("refused on the CPU too")
    meta, error = attempt(lucid, sample, [t.to("meta") for t in build(lucid, sample, dtype)])
    if error:
        assert isinstance(error, (NotImplementedError, RuntimeError)) and "meta" in str(error), repr(error)
        return
    for a, b in zip(flat(meta), flat(real)):
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())


def gradients(m, sample, dtype, layout):
    leaves = build(m, sample, dtype, layout, grad=True)
    wanted = [x for x in leaves if x.requires_grad]
    # operate on non-leaf copies: in-place samples may write them
    outputs = [y for y in flat(call(m, sample, [x * 1 if x.requires_grad else x for x in leaves])) if y.requires_grad]
    if not outputs or not wanted:
        return None
    loss = sum(((y * y.conj()).real if "complex" in str(y.dtype) else y * y * y).sum() for y in outputs)
    first = m.autograd.grad(loss, wanted, create_graph=True, allow_unused=True)
    if not sample.gradgrad:
        return first, None
    parts = [
        ((g * g.conj()).real if "complex" in str(g.dtype) else g * g).sum() for g in first if g is not None and g.requires_grad
    ]
    second = m.autograd.grad(sum(parts), wanted, allow_unused=True) if parts else None
    return first, second


@per_op
@pytest.mark.parametrize("sample, dtype", SMOOTH)
def test_gradients(sample, dtype):
    if attempt(torch, sample, build(torch, sample, dtype))[1]:
        pytest.skip("refused: test_values compares the errors")
    for layout in ("contiguous", "transposed"):
        if attempt(torch, sample, build(torch, sample, dtype, layout))[1]:
            continue  # refused: test_values compares that
        theirs, ours = gradients(torch, sample, dtype, layout), gradients(lucid, sample, dtype, layout)
        assert (ours is None) == (theirs is None), f"differentiable: {ours is not None} vs {theirs is not None}"
        if theirs is None:
            return
        for ours_part, theirs_part, order in zip(ours, theirs, ("first", "second")):
            if theirs_part is None:
                continue
            assert ours_part is not None, f"{order} gradients are missing"
            for k, (a, b) in enumerate(zip(ours_part, theirs_part)):
                if a is None or b is None:  # an exact zero may be a tensor here and nothing there
                    assert all(g is None or not g.abs().sum().item() for g in (a, b)), (
                        f"{order} gradient of input {k}: {a} vs {b}"
                    )
                else:
                    assert_same(a, b, sample, f"{order} gradient of input {k}", strides=False)


def test_every_op_has_a_sample():
    """By public name; an in-place form is covered by its op. without_samples.txt names exceptions and what covers them."""
    lines = pathlib.Path(__file__).with_name("without_samples.txt").read_text().splitlines()
    exempt = {line.split()[0] for line in lines if line.strip()}
    sampled = {s.op.split(".")[-1].rstrip("_") for _, s in SAMPLES}
    names = {n.split(".")[-1] for n in lucid._C._op_names()}
    missing = sorted(n for n in names if n.rstrip("_") not in sampled and n not in exempt)
    assert not missing, f"ops without samples: {missing}"
    assert not (stale := sorted(exempt - names)), f"without_samples.txt names what is no op: {stale}"
