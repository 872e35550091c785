"""The lucid namespace besides ops: dtype limits, random state, defaults, predicates, type names."""

import json
import typing

import pytest
import torch

import lucid

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
LIBRARIES = [lucid, torch]


@pytest.mark.parametrize("name", FLOATS)
def test_finfo(name):
    ours, theirs = lucid.finfo(getattr(lucid, name)), torch.finfo(getattr(torch, name))
    assert repr(ours) == repr(theirs)
    for field in ("bits", "eps", "max", "min", "resolution", "smallest_normal", "tiny", "dtype"):
        assert getattr(ours, field) == getattr(theirs, field)


@pytest.mark.parametrize("name", INTEGERS)
def test_iinfo(name):
    ours, theirs = lucid.iinfo(getattr(lucid, name)), torch.iinfo(getattr(torch, name))
    assert repr(ours) == repr(theirs)
    for field in ("bits", "max", "min", "dtype"):
        assert getattr(ours, field) == getattr(theirs, field)


def test_limits_of_other_types():
    assert lucid.finfo() == lucid.finfo(lucid.float32) != lucid.finfo(lucid.float64)
    assert lucid.finfo(lucid.complex128) == lucid.finfo(lucid.float64)
    assert hash(lucid.iinfo(lucid.int8)) == hash(lucid.iinfo(lucid.int8))
    for m in LIBRARIES:
        for function, dtype in ((m.finfo, m.int8), (m.finfo, m.bool), (m.iinfo, m.float32), (m.iinfo, m.bool)):
            with pytest.raises(TypeError):
                function(dtype)


@pytest.fixture
def random_state():
    before = lucid.get_rng_state(), torch.get_rng_state()
    yield
    lucid.set_rng_state(before[0])
    torch.set_rng_state(before[1])


@pytest.mark.usefixtures("random_state")
@pytest.mark.parametrize("seed", [0, 7, -1, 2**63, True])
def test_manual_seed_gives_pytorchs_numbers(seed):
    values = []
    for m in LIBRARIES:
        assert m.manual_seed(seed) is m.default_generator
        values.append((m.initial_seed(), m.rand(5).tolist(), m.randint(0, 100, (5,)).tolist()))
    assert values[0] == values[1]


@pytest.mark.usefixtures("random_state")
def test_random_state():
    state = lucid.get_rng_state()
    a = lucid.rand(3)
    with lucid.random.fork_rng():
        lucid.rand(3)
    b = lucid.rand(3)
    lucid.set_rng_state(state)
    assert lucid.rand(3).tolist() == a.tolist() and lucid.rand(3).tolist() == b.tolist()
    with lucid.random.fork_rng(enabled=False):
        lucid.rand(3)
    assert lucid.get_rng_state().tolist() != state.tolist()
    assert lucid.seed() == lucid.initial_seed()
    with pytest.raises(NotImplementedError):
        lucid.random.fork_rng(device_type="xpu")


def questions(m):
    tensors = [m.ones(2, 3), m.tensor(1), m.tensor([True]), m.ones(1, dtype=m.complex64), m.tensor(1, dtype=m.uint8)]
    names = ["is_tensor", "is_storage", "is_floating_point", "is_complex", "is_signed", "is_inference", "numel"]
    seen = [[getattr(m, name)(t) for t in tensors] for name in names]
    seen += [
        m.is_tensor([1.0]),
        m.is_storage(tensors[0].untyped_storage()),
        m.is_nonzero(m.tensor([0.0])),
        m.is_nonzero(m.tensor(2)),
    ]
    return [*seen, m.is_same_size(tensors[0], m.ones(2, 3)), m.is_same_size(tensors[0], m.ones(3, 2))]


def test_questions():
    assert questions(lucid) == questions(torch)


@pytest.mark.parametrize("m", LIBRARIES, ids=["lucid", "torch"])
@pytest.mark.parametrize("shape", [(0,), (2,)])
def test_is_nonzero_of_no_single_value(m, shape):
    with pytest.raises(RuntimeError, match="is ambiguous"):
        m.is_nonzero(m.ones(shape))


def defaults(m):
    seen = [str(m.get_default_dtype())]
    m.set_default_dtype(m.float64)
    try:
        seen += [str(m.get_default_dtype()), str(m.ones(1).dtype), str(m.tensor([1.0]).dtype), str(m.tensor([1j]).dtype)]
    finally:
        m.set_default_dtype(m.float32)
    for bad in (m.int64, "float32", None):
        with pytest.raises(TypeError):
            m.set_default_dtype(bad)
    return [*seen, str(m.get_default_dtype()), str(m.get_default_device())]


def test_defaults():
    assert [text.replace("lucid", "torch") for text in defaults(lucid)] == defaults(torch)


def test_types():
    assert lucid.types.Scalar == int | float | complex | bool
    assert lucid.Tensor in typing.get_args(lucid.TensorOrScalar) and lucid.Tensor in typing.get_args(lucid.TensorLike)
    x = lucid.ones(2)
    for protocol in (lucid.HasShape, lucid.SupportsGrad, lucid.SupportsNumpyConversion, lucid.TensorLikeProtocol):
        assert isinstance(x, protocol) and not isinstance(3.0, protocol)


def test_version():
    assert lucid.__version__ == lucid.version.__version__
    assert all(part.isdigit() for part in lucid.__version__.split(".")[:2])


def test_memory_statistics():
    before = lucid.memory_stats()
    x = lucid.ones(1000)
    after = lucid.memory_stats()
    assert after["allocated_bytes"] - before["allocated_bytes"] >= 4000 and after["peak_bytes"] >= after["allocated_bytes"]
    del x
    assert lucid.memory_stats()["allocated_bytes"] == before["allocated_bytes"]
    json.dumps(after)


def test_deterministic_algorithms():
    seen = []
    for m in LIBRARIES:
        seen.append([m.are_deterministic_algorithms_enabled()])
        m.use_deterministic_algorithms(True)
        seen[-1] += [m.are_deterministic_algorithms_enabled(), m.are_deterministic_algorithms_enabled()]
        m.use_deterministic_algorithms(False)
        seen[-1].append(m.are_deterministic_algorithms_enabled())
    assert seen[0] == seen[1] == [False, True, True, False]
