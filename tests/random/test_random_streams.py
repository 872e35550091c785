"""Random streams: the same seed gives PyTorch's numbers, and leaves the generator in PyTorch's state, byte by byte."""

import copy
import math
import pathlib
import pickle
import random
import threading

import pytest
import torch

import lucid

BOTH = (lucid, torch)
FLOATS = ("float16", "bfloat16", "float32", "float64")
SIZES = (1, 3, 15, 16, 17, 40, 624, 625, 2000)
SEEDS = (0, 1, 42, -1, -(2**63), 2**32, 2**32 + 42, 2**63, 2**64 - 1)
CPU = pathlib.Path("/proc/cpuinfo").read_text()
INTEL = "GenuineIntel" in CPU
not_intel = pytest.mark.skipif(INTEL, reason="PyTorch draws these from a vendor's generator on Intel CPUs")


def state_bytes(m):
    return bytes(m.get_rng_state().tolist())


def numbers(x):
    return x.double().tolist()


def drawn(m, seed, draw):
    m.manual_seed(seed)
    result = numbers(draw(m))
    return result, state_bytes(m)


def check(draw, seed=42, tolerance=0.0):
    """Same numbers, and the same state afterwards."""
    (ours, our_state), (theirs, their_state) = (drawn(m, seed, draw) for m in BOTH)
    assert torch.tensor(ours).shape == torch.tensor(theirs).shape
    torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=0, atol=tolerance)
    assert our_state == their_state


def rounding(dtype, largest=8):
    """What a tiny difference before rounding to `dtype` may become: one step of its largest numbers."""
    return {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2e-6, "float64": 1e-14}[dtype] * largest


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds(seed):
    check(lambda m: m.rand(5), seed)
    for m in BOTH:
        assert m.manual_seed(seed).initial_seed() == m.initial_seed() == seed % 2**64


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(dtype, n):
    check(lambda m: m.rand(n, dtype=getattr(m, dtype)))
    for lo, hi in ((-3.3, 7.1), (1, 2), (1e4, 1.0001e4), (0, 0.3)):
        check(lambda m, lo=lo, hi=hi: m.empty(n, dtype=getattr(m, dtype)).uniform_(lo, hi))


def test_uniform_never_reaches_the_upper_bound():
    """Where rounding would, PyTorch returns the lower bound: frequent between neighbours."""
    for dtype, lo, hi in (("float32", 1e8, 1e8 + 16), ("float64", 2.0**54, 2.0**54 + 16), ("bfloat16", 0.0, 1.0)):
        check(lambda m, d=dtype, lo=lo, hi=hi: m.empty(500, dtype=getattr(m, d)).uniform_(lo, hi))
        assert max(numbers(lucid.empty(500, dtype=getattr(lucid, dtype)).uniform_(lo, hi))) < hi


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_normal(dtype, n):
    check(lambda m: m.randn(n, dtype=getattr(m, dtype)), tolerance=rounding(dtype, 4))
    check(lambda m: m.empty(n, dtype=getattr(m, dtype)).normal_(3.3, 2.7), tolerance=rounding(dtype, 16))
    # a strided tensor is filled one by one, whatever its size
    check(lambda m: m.empty(n, 2, dtype=getattr(m, dtype))[:, 0].normal_(), tolerance=rounding(dtype, 4))


@pytest.mark.skipif("avx2" not in CPU, reason="PyTorch's vector code has other roundings elsewhere")
@pytest.mark.parametrize("dtype", FLOATS)
def test_normals_are_equal_to_the_last_bit(dtype):
    for seed in SEEDS:
        check(lambda m: m.randn(50000, dtype=getattr(m, dtype)), seed)
        check(lambda m: m.empty(1003, dtype=getattr(m, dtype)).normal_(-3.3, 0.02), seed)
        check(lambda m: m.empty(7, dtype=getattr(m, dtype)).normal_(-3.3, 0.02), seed)


def test_the_second_deviate_waits():
    """Pairs of normal deviates cross calls and dtypes."""
    check(lambda m: m.cat([m.randn(3), m.randn(3), m.rand(2), m.randn(1), m.randn(1).double().float()]), tolerance=2e-6)
    check(lambda m: m.cat([m.randn(3).double(), m.randn(3, dtype=m.float64)]), tolerance=2e-6)


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
@pytest.mark.parametrize("n", (3, 20))
def test_complex(dtype, n):
    check(lambda m: m.view_as_real(m.rand(n, dtype=getattr(m, dtype))))
    check(lambda m: m.view_as_real(m.randn(n, dtype=getattr(m, dtype))), tolerance=4e-6)


@pytest.mark.parametrize("bounds", ((0, 10), (-5, 100), (0, 2**28 - 1), (0, 2**28), (-(2**40), 2**41), (-(2**63), 2**63 - 1)))
def test_integers(bounds):
    for m in BOTH:
        m.manual_seed(3)
    assert lucid.randint(*bounds, (700,)).tolist() == torch.randint(*bounds, (700,)).tolist()
    assert state_bytes(lucid) == state_bytes(torch)


@pytest.mark.parametrize("dtype", ("bool", "uint8", "int8", "int16", "int32", "int64", *FLOATS))
def test_integers_of_all_dtypes(dtype):
    check(lambda m: m.empty(700, dtype=getattr(m, dtype)).random_())
    check(lambda m: m.randint(0, 2, (50,), dtype=getattr(m, dtype)))


@pytest.mark.parametrize("n", (0, 1, 2, 30, 5000))
def test_permutations(n):
    check(lambda m: m.randperm(n))


@not_intel
@pytest.mark.parametrize("dtype", FLOATS)
def test_exponential(dtype):
    check(lambda m: m.empty(700, dtype=getattr(m, dtype)).exponential_(1.7), tolerance=rounding(dtype))


@not_intel
def test_bernoulli():
    for p in (0.0, 0.3, 1.0):
        check(lambda m, p=p: m.empty(700).bernoulli_(p))
    check(lambda m: m.dropout(m.ones(700), 0.3, True))


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_of_probabilities(dtype):
    check(lambda m: m.bernoulli(m.linspace(0, 1, 500).to(getattr(m, dtype))))


def values_of(m, dtype, n, low=0.0, high=1.0):
    """The same numbers in both libraries, without a draw."""
    return (m.arange(n, dtype=m.float64) / max(n, 1) * (high - low) + low).to(getattr(m, dtype))


ONE_BY_ONE = {  # float64 formulas over one draw after the other: equal to the last bit
    "cauchy_": lambda m, x: x.cauchy_(1, 2),
    "log_normal_": lambda m, x: x.log_normal_(0.5, 0.7),
    "geometric_": lambda m, x: x.geometric_(0.05),
    "bernoulli_": lambda m, x: x.bernoulli_(0.3),
    "uniform_": lambda m, x: x.uniform_(-1, 3),
    "random_": lambda m, x: x.random_(-7, 100),
}


@not_intel
@pytest.mark.parametrize("seed", SEEDS[:6])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fill", ONE_BY_ONE)
def test_fills(fill, dtype, seed):
    for n in (0, *SIZES):
        check(lambda m, n=n: ONE_BY_ONE[fill](m, m.empty(n, dtype=getattr(m, dtype))), seed)
    check(lambda m: ONE_BY_ONE[fill](m, m.empty(7, 2, 9, dtype=getattr(m, dtype)).permute(2, 0, 1)[:, ::2]), seed)


@pytest.mark.parametrize("dtype", ("uint8", "int8", "int16", "int32", "int64"))
def test_geometric_of_integers(dtype):
    check(lambda m: m.empty(700, dtype=getattr(m, dtype)).geometric_(0.05))


@pytest.mark.parametrize("seed", SEEDS[:6])
@pytest.mark.parametrize("n", (1, 3, 15, 16, 17, 400))
def test_counts(n, seed):
    for dtype in FLOATS:
        check(lambda m, d=dtype: m.poisson(values_of(m, d, n, 0, 40)), seed)
        check(lambda m, d=dtype: m.poisson(values_of(m, d, n, 0, 5e4 if d != "float16" else 5e3)), seed)
    for dtype in ("float32", "float64"):
        for most in (5, 60, 1e5):
            check(
                lambda m, d=dtype, most=most: m.binomial(values_of(m, d, n, 0, most).floor(), values_of(m, d, n, -0.1, 1.1)),
                seed,
            )


def test_counts_of_what_is_no_parameter():
    for nothing in (float("nan"), float("inf")):
        x = lucid.tensor([nothing])
        assert lucid.binomial(x, lucid.tensor([0.3])).numel() == 1  # PyTorch would draw for ever
        assert lucid.binomial(lucid.tensor([5.0]), x).numel() == 1
    with pytest.raises(RuntimeError, match="rate"):
        lucid.poisson(lucid.tensor([float("nan")]))


@not_intel
@pytest.mark.parametrize("seed", SEEDS[:6])
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_multinomial(dtype, seed):
    for n in (1, 2, 17, 300):
        for shape in ((n,), (4, n)):
            for samples, replacement in ((1, False), (n, False), (1, True), (25, True), (n // 2 + 1, False)):
                check(
                    lambda m, shape=shape, s=samples, r=replacement: m.multinomial(
                        values_of(m, dtype, math.prod(shape), 0.1, 3).reshape(shape), s, r
                    ),
                    seed,
                )
    check(lambda m: m.multinomial(values_of(m, dtype, 60).reshape(12, 5).t(), 7), seed)  # drawn in the order of memory


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", (3, 16, 17, 40))
def test_normal_with_tensors(dtype, n):
    tolerance = rounding(dtype, 16)
    check(lambda m: m.normal(values_of(m, dtype, n, -3, 3), 2.0), tolerance=tolerance)
    check(lambda m: m.normal(1.5, values_of(m, dtype, n, 0, 3)), tolerance=tolerance)
    check(lambda m: m.normal(values_of(m, dtype, n, -3, 3), values_of(m, dtype, n, 0, 3)), tolerance=tolerance)
    check(lambda m: m.normal(values_of(m, dtype, n).reshape(n, 1), values_of(m, dtype, n)), tolerance=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bounds", ((0, 1, -2, 2), (0.5, 2, -1, 1), (0, 1, 1.5, 4), (0, 0.02, -0.03, 0.03), (3, 1, -1, 0.5)))
@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
def test_trunc_normal(bounds, dtype):
    for n in (1, 7, 16, 100):
        check(
            lambda m, n=n: m.nn.init.trunc_normal_(m.empty(n, dtype=getattr(m, dtype)), *bounds), tolerance=rounding(dtype, 4)
        )
    check(
        lambda m: m.nn.init.trunc_normal_(m.empty(7, 12, dtype=getattr(m, dtype)).t()[::2], *bounds),
        tolerance=rounding(dtype, 4),
    )


@not_intel
@pytest.mark.parametrize("name", ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout"))
@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_dropouts(name, dtype):
    def run(m, form=""):
        y = getattr(m, name + form)(values_of(m, dtype, 360, 1, 2).reshape(6, 5, 12), 0.3, True)
        return y[0] if isinstance(y, tuple) else y

    check(run)
    if name != "native_dropout":
        check(lambda m: run(m, "_"))
    check(lambda m: getattr(m, name)(values_of(m, dtype, 35, 1, 2).reshape(7, 5).t(), 0.3, True)[0])


@pytest.mark.parametrize("like", ("rand_like", "randn_like", "randint_like"))
def test_like_forms(like):
    more = (9,) if like == "randint_like" else ()
    for layout in (lambda x: x, lambda x: x.t(), lambda x: x[:, ::2]):
        check(lambda m, f=layout: getattr(m, like)(f(m.zeros(6, 8)), *more), tolerance=4e-6)
    check(lambda m: getattr(m, like)(m.zeros(5), *more, generator=m.Generator().manual_seed(3)), tolerance=4e-6)
    check(lambda m: getattr(m, like)(m.zeros(20), *more, dtype=m.float64), tolerance=4e-6)


def test_out_is_filled_in_the_order_of_its_memory():
    for name, args in (("rand", ((5, 7),)), ("randn", ((5, 7),)), ("randint", (9, (5, 7))), ("normal", (1.0, 2.0, (5, 7)))):
        for make in (lambda m: m.zeros(5, 7), lambda m: m.zeros(7, 5).t(), lambda m: m.zeros(5, 14)[:, ::2]):
            check(lambda m, n=name, a=args, make=make: getattr(m, n)(*a, out=make(m)), tolerance=1e-5)


STEPS = {
    "rand": lambda m, n: m.rand(n),
    "randn": lambda m, n: m.randn(n),
    "randn64": lambda m, n: m.randn(n, dtype=m.float64),
    "half": lambda m, n: m.randn(n, dtype=m.float16).to(m.float32),
    "randint": lambda m, n: m.randint(-5, 2**33, (n,)),
    "randperm": lambda m, n: m.randperm(n),
    "exponential": lambda m, n: m.empty(n).exponential_(2.0),
    "log_normal": lambda m, n: m.empty(n).log_normal_(),
    "poisson": lambda m, n: m.poisson(m.full((n,), 12.0)),
    "dropout": lambda m, n: m.dropout(m.ones(n), 0.5, True),
    "multinomial": lambda m, n: m.multinomial(m.ones(n + 1), n),
    "complex": lambda m, n: m.view_as_real(m.randn(n, dtype=m.complex64)),
}


@not_intel
@pytest.mark.parametrize("seed", range(20))
def test_interleaved_calls_with_saved_states(seed):
    """A random program of draws; in the middle the state is saved, later restored, and the same draws come again."""
    plan = random.Random(seed)
    program = [(plan.choice(list(STEPS)), plan.choice((1, 2, 7, 15, 16, 17, 33, 100))) for _ in range(30)]
    seen = []
    for m in BOTH:
        m.manual_seed(seed)
        first = [numbers(STEPS[name](m, n)) for name, n in program[:10]]
        state = m.get_rng_state()
        second = [numbers(STEPS[name](m, n)) for name, n in program[10:]]
        m.set_rng_state(state)
        assert [numbers(STEPS[name](m, n)) for name, n in program[10:]] == second
        seen.append((first + second, state_bytes(m)))
    for (name, n), ours, theirs in zip(program, seen[0][0], seen[1][0]):
        scale = {"half": 2**-7, "exponential": 1e-6, "log_normal": 1e-6}.get(name, 4e-6)
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=scale, atol=scale, msg=f"{name} {n}")
    assert seen[0][1] == seen[1][1]


def test_a_forked_stream():
    @lucid.random.fork_rng()
    def draws():
        return lucid.rand(3).tolist()

    lucid.manual_seed(4)
    assert draws() == draws() == lucid.rand(3).tolist()
    with lucid.random.fork_rng(devices=[0]):
        state = lucid.cuda.get_rng_state(0)
        lucid.cuda.manual_seed(99)
        assert not lucid.equal(lucid.cuda.get_rng_state(0), state)
    assert lucid.equal(lucid.cuda.get_rng_state(0), state)
    with pytest.raises(NotImplementedError):
        lucid.random.fork_rng(device_type="xpu")


def test_the_keyword_from():
    check(lambda m: m.empty(5).uniform_(**{"from": 2.0, "to": 3.0}))
    check(lambda m: m.empty(5).random_(**{"from": 2, "to": 30}))


def test_states_travel_between_libraries():
    lucid.manual_seed(9), torch.manual_seed(10)
    lucid.randn(5), torch.randn(700)  # one has a deviate waiting
    ours, theirs = state_bytes(lucid), state_bytes(torch)
    assert len(ours) == 5056
    lucid.set_rng_state(lucid.tensor(list(theirs), dtype=lucid.uint8))
    torch.set_rng_state(torch.tensor(list(ours), dtype=torch.uint8))
    assert state_bytes(lucid) == theirs and state_bytes(torch) == ours
    twin = torch.Generator()
    twin.set_state(torch.tensor(list(theirs), dtype=torch.uint8))
    assert lucid.rand(3).tolist() == torch.rand(3, generator=twin).tolist()


def test_bad_states_are_refused():
    before = state_bytes(lucid)
    good = lucid.get_rng_state()
    for bad in (lucid.zeros(5056, dtype=lucid.uint8), lucid.zeros(5055, dtype=lucid.uint8), good[1:]):
        with pytest.raises(RuntimeError):
            lucid.set_rng_state(bad)
    beyond = good.clone()
    beyond[8:24] = lucid.tensor([100, 0, 0, 0, 1, 0, 0, 0, 112, 2, 0, 0, 0, 0, 0, 0], dtype=lucid.uint8)  # left 100, next 624
    with pytest.raises(RuntimeError):
        lucid.set_rng_state(beyond)
    assert state_bytes(lucid) == before


def test_generators():
    g = lucid.Generator()
    assert g.initial_seed() == torch.Generator().initial_seed() == 67280421310721
    other = torch.Generator()
    assert lucid.rand(5, generator=g).tolist() == torch.rand(5, generator=other).tolist()
    lucid.manual_seed(1)
    before = state_bytes(lucid)
    lucid.randn(3, generator=g.manual_seed(5))
    assert state_bytes(lucid) == before  # the default stream is another
    for twin in (pickle.loads(pickle.dumps(g)), copy.deepcopy(g), g.clone_state()):
        assert bytes(twin.get_state().tolist()) == bytes(g.get_state().tolist())
    assert lucid.seed() == lucid.initial_seed() and lucid.seed() != lucid.seed()


def test_seeds_that_do_not_fit():
    for seed in (2**64, -(2**63) - 1):
        for m in BOTH:
            with pytest.raises((RuntimeError, ValueError)):
                m.manual_seed(seed)


def test_threads_share_the_stream():
    """Fills are atomic: each thread gets a contiguous part of one stream, nothing is drawn twice."""
    lucid.manual_seed(0)
    parts = []
    threads = [threading.Thread(target=lambda: parts.append(lucid.rand(10000).tolist())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    torch.manual_seed(0)
    whole = torch.rand(40000).tolist()
    assert sorted(sum(parts, [])) == sorted(whole)
    assert math.isclose(sum(sum(parts, [])), sum(whole))
