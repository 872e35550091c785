"""dynamic=True: after two sizes, others are compiled without running the function again; with eager's bits."""

import copy
import sys
import warnings
from pathlib import Path

import pytest

import lucid
import lucid.nn.functional as F
from lucid import nn
from lucid._compile.check import difference

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from nets import networks  # noqa: E402

NETS = networks(lucid)
SIZES = (4, 7, 12, 5, 33, 2, 4, 12)  # 4 and 12 twice: plans answer


def counted(fn):
    def wrapped(*args):
        counted.runs += 1
        return fn(*args)

    return wrapped


class Normed(nn.Module):
    """Statistics that are written, dropout, a loss: everything but a look at a size."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.GELU(), nn.Dropout(0.3), nn.Linear(16, 3))

    def forward(self, x):
        return F.log_softmax(self.layers(x), -1).flatten(1)


CASES = {
    "chain": (lambda x: (x * 2 + 1).sin().sum(1, keepdim=True) * x, (5,)),
    "product": (lambda x: (x @ x.mT).softmax(-1) @ x, (3, 5)),
    "views": (lambda x: x.flatten(1).view(-1, 5, 4).transpose(1, 2).reshape(-1, 20) + x.permute(0, 2, 1).flatten(1), (4, 5)),
    "joined": (lambda x: {"a": lucid.cat([x, x * 2]), "b": [x.mean(0), lucid.stack([x, x.exp()], 1)]}, (5,)),
    "in place": (lambda x: (x + 1).mul_(2).add_(x), (5,)),
    "split": (lambda x: sum(x.chunk(2, 1)) + x.split(2, -1)[1] * x[1].sum(), (4,)),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (2, 6, 8)),
}


def compare(fn, inputs, twin=None, misses=2):
    """Calls for all sizes; the function ran for the first two only."""
    counted.runs = 0
    compiled = lucid.compile(counted(fn), dynamic=True, fullgraph=True)
    for k, x in enumerate(inputs):
        same_call(compiled, twin or fn, x, k)
    assert counted.runs == compiled.cache_info().misses == misses
    return compiled


def same_call(compiled, fn, x, k):
    pairs = []
    for f in (compiled, fn):
        lucid.manual_seed(k)
        mine = x.detach().clone().requires_grad_(x.requires_grad)
        result = f(mine)
        tensors = lucid._compile.arguments.tensors_in(result)
        wanting = [t for t in tensors if t.requires_grad]
        if wanting:
            sum((t * t).sum() for t in wanting).backward()
        pairs.append((*tensors, mine.grad, lucid.get_rng_state()))
    for a, b in zip(*pairs):
        assert difference(a, b) is None, (k, x.shape)


@pytest.mark.parametrize("wants", [False, True], ids=["plain", "gradient"])
@pytest.mark.parametrize("name", CASES)
def test_functions(name, wants):
    fn, shape = CASES[name]
    compiled = compare(fn, [lucid.randn(n, *shape).requires_grad_(wants) for n in SIZES])
    assert compiled.cache_info().hits == 2 and "sizes without running the function" in compiled.explain()


@pytest.mark.parametrize("name", ["mlp", "lenet", "normed"])
@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
def test_networks(name, training):
    lucid.manual_seed(0)
    net = (Normed() if name == "normed" else getattr(NETS, name)()).train(training)
    twin = copy.deepcopy(net)
    shape = {"mlp": (784,), "lenet": (1, 28, 28), "normed": (6,)}[name]
    compare(net.forward, [lucid.randn(n, *shape) for n in SIZES[:6]], twin)
    for (key, a), b in zip(net.state_dict().items(), twin.state_dict().values()):
        assert difference(a, b) is None, key
    for a, b in zip(net.parameters(), twin.parameters()):
        assert difference(a.grad, b.grad) is None


LOOKS = {
    "shape": lambda x: x / x.shape[0],
    "size": lambda x: x.view(x.size(0), -1) * 2,
    "len": lambda x: x * len(x),
    "branch": lambda x: x.sin() if x.numel() > 50 else x.cos(),
    "a slice": lambda x: x[1:] - x[:-1],
    "an odd slice": lambda x: x[: (5 if x.shape[0] > 4 else 3)],
    "rows": lambda x: sum(row for row in x),
    "unbind": lambda x: lucid.stack([r * 2 for r in x.unbind(0)]),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_function_that_looks_at_a_size_is_traced_for_each(name):
    compare(LOOKS[name], [lucid.randn(n, 6) for n in SIZES[:6]], misses=6)


def test_sizes_that_are_told_by_the_layout():
    """A slice that is cut to three rows is the same call for many sizes, but not for two rows."""
    compare(lambda x: x[:3] * 2, [lucid.randn(n, 2) for n in (5, 4, 3, 2, 6)], misses=5)


def test_one_row_is_traced_by_itself():
    compare(lambda x: x.squeeze() * 2, [lucid.randn(n, 3) for n in (5, 4, 6, 1)], misses=3)


def test_other_dimensions_and_types_are_other_calls():
    compiled = lucid.compile(lambda x: x * 2, dynamic=True)
    for shape in ((3, 4), (4, 4), (5, 4), (3, 5), (4, 5), (5, 5), (6, 4)):
        x = lucid.randn(*shape)
        assert compiled(x).equal(x * 2) and compiled(x.double()).equal(x.double() * 2)
    assert compiled.cache_info().misses == 8


def test_guards_hold_for_other_sizes():
    settings = {"scale": 2.0}
    compiled = lucid.compile(lambda x: x * settings["scale"], dynamic=True)
    for n in (3, 4, 5, 6):
        assert compiled(lucid.ones(n))[0] == 2
    settings["scale"] = 5.0
    for n in (3, 4, 5, 6, 7):
        assert compiled(lucid.ones(n))[0] == 5
    assert compiled.cache_info().misses == 4  # two for each value of the setting


def test_errors_are_the_functions_own():
    compiled = lucid.compile(lambda x: x.view(-1, 2).sum(1), dynamic=True)
    for n in (4, 6, 8):
        assert compiled(lucid.ones(n)).shape == (n // 2,)
    with pytest.raises(RuntimeError, match="view|shape"):
        compiled(lucid.ones(7))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert compiled(lucid.ones(10)).shape == (5,)


def test_many_sizes_take_no_more_memory():
    compiled = lucid.compile(lambda x: (x @ x.mT).softmax(-1) @ x, dynamic=True)
    for n in range(2, 80):
        compiled(lucid.ones(n, 8))
    before = lucid.memory_stats()["allocated_bytes"]
    for n in range(80, 400):
        compiled(lucid.ones(n % 150 + 2, 8))
    assert lucid.memory_stats()["allocated_bytes"] - before < 1 << 20
    assert compiled.cache_info().misses == 2
