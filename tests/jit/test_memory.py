"""Where the memory of a plan lies and when: measured by the engine's counters, with eager's bits."""

import copy
import gc
import sys
from pathlib import Path

import pytest

import lucid
import lucid.nn.functional as F
from lucid import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from nets import networks  # noqa: E402


def gpt_steps():
    """The same training step, compiled and eager, of two equal networks."""
    lucid.manual_seed(0)
    net = networks(lucid).gpt()
    twin = copy.deepcopy(net)
    tokens = lucid.randint(0, 65, (8, 65))
    x, t = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    ours, theirs = (lucid.optim.SGD(m.parameters(), lr=0.01, momentum=0.9) for m in (net, twin))

    def loss_fn(y, t):
        return F.cross_entropy(y.flatten(0, -2), t.flatten())

    compiled = lucid.compile_step(net, loss_fn, ours)

    def eager():
        theirs.zero_grad()
        loss = loss_fn(twin(x), t)
        loss.backward()
        theirs.step()
        return loss.detach()

    return (lambda: compiled(x, t)), eager, compiled, net, twin


def taken(step):
    """Bytes above now at the worst moment of a step, and behind it."""
    for _ in range(3):
        step()
    gc.collect()
    before = lucid.memory_stats()["allocated_bytes"]
    lucid.reset_peak_memory_stats()
    step()
    gc.collect()
    after = lucid.memory_stats()
    return after["peak_bytes"] - before, after["allocated_bytes"] - before


def test_a_training_step_takes_less_than_eager():
    ours, theirs, step, net, twin = gpt_steps()
    (peak, left), (eager_peak, eager_left) = taken(ours), taken(theirs)
    assert peak < 0.68 * eager_peak, (peak, eager_peak)  # without parameters, their momenta and old gradients
    assert left == eager_left == 0
    facts = step._plan_of[-1].facts()
    assert facts["recomputed"] >= 8 and facts["in_place"] >= 4
    for a, b in zip(net.parameters(), twin.parameters()):
        assert a.equal(b) and a.grad.equal(b.grad)


def test_nothing_large_is_held_between_runs():
    f = lucid.compile(lambda x: ((x @ x).sin() @ x).cos() @ x, fullgraph=True)
    x = lucid.randn(600, 600)
    f(x)
    y = f(x)
    gc.collect()
    before = lucid.memory_stats()["allocated_bytes"]
    for _ in range(3):
        y = f(x)
    assert lucid.memory_stats()["allocated_bytes"] == before
    assert y.equal(((x @ x).sin() @ x).cos() @ x)


def plain_calls(x, w):
    f = lucid.compile(lambda x: (x.sin() @ x.t()).cos().sum(0))
    return f(x), f(x)


def calls_of_other_structures(x, w):
    f = lucid.compile(lambda x, k=1: (x, {"a": (x.sin() @ x.t()).cos() * k}))
    return f(x, k=2), f(x, k=2), f(x=x)


def calls_with_gradients(x, w):
    f = lucid.compile(lambda x: (x @ w).relu().sin().sum())
    for _ in range(2):
        f(x).backward()
    w.grad = None


def calls_of_other_sizes(x, w):
    f = lucid.compile(lambda x: (x * 2).softmax(-1) @ x.t(), dynamic=True)
    return [f(x[:n]) for n in (3, 4, 5, 6)]


def a_module(x, w):
    net = lucid.compile(lucid.nn.Sequential(lucid.nn.Linear(100, 50), lucid.nn.ReLU()))
    for _ in range(2):
        net(x).sum().backward()


def steps_of_training(x, w):
    net = lucid.nn.Sequential(lucid.nn.Linear(100, 50), lucid.nn.ReLU())
    step = lucid.compile_step(net, F.cross_entropy, lucid.optim.Adam(net.parameters()))
    return [step(x, lucid.zeros(64, dtype=lucid.int64)) for _ in range(4)]


@pytest.mark.parametrize("use", [plain_calls, calls_of_other_structures, calls_with_gradients, calls_of_other_sizes, a_module,
                                 steps_of_training], ids=lambda f: f.__name__)  # fmt: skip
def test_plans_go_with_their_function_without_a_collection(use):
    x, w = lucid.randn(64, 100), lucid.randn(100, 100, requires_grad=True)
    use(x, w)
    gc.collect()
    gc.disable()
    try:
        before = lucid.memory_stats()["allocated_bytes"]
        for _ in range(2):
            use(x, w)
        assert lucid.memory_stats()["allocated_bytes"] == before
    finally:
        gc.enable()


def test_the_quick_way_in_outlives_its_function():
    f = lucid.compile(lambda x: x.sin() * 2)
    x, way = lucid.randn(5), f.entrance()
    f(x)
    del f
    assert way(x).equal(x.sin() * 2) and way(x[:3]).equal(x[:3].sin() * 2)


def in_place(f, *args):
    compiled = lucid.compile(f, fullgraph=True)
    for _ in range(3):
        assert compiled(*args).equal(f(*args))
    return compiled._traced[-1][0].facts()["in_place"]


@pytest.mark.parametrize("n", [4, 300])
def test_a_result_takes_the_place_of_an_input_that_dies(n):
    x = lucid.randn(n, n)
    assert in_place(lambda x: (x @ x).sin() @ x, x) == 1
    assert in_place(lambda x: ((x @ x).sin() * 2 + 1) @ x, x) == 1  # a region
    assert in_place(lambda x: (x @ x).sin(), x) == 1  # the result itself
    assert in_place(lambda x: F.softmax(x @ x, -1).sin() @ x, x) == 1


def test_what_is_still_read_is_not_overwritten():
    x = lucid.randn(20, 20)
    row = lucid.randn(1, 20)
    assert in_place(lambda x: (x @ x).sin() @ x @ x, x) == 1

    def read_later(x):
        y = x @ x
        return y.sin() @ y

    def transposed(x):
        y = x @ x
        return (y + y.t()) @ x

    def widened(row, x):
        y = row @ x
        return (y + x) @ x

    assert in_place(read_later, x) == 0
    assert in_place(transposed, x) == 0
    assert in_place(widened, row, x) == 0
    assert in_place(lambda x: (x @ x).double() @ x.double(), x) == 0  # other sizes of elements

    def needs_both(x):  # a region reads y in its last step, behind the write of its first result
        y = x @ x
        a = y.sin()
        b = a * y
        return a @ x + b @ x

    assert in_place(needs_both, x) == 2  # b lies where y was, and the sum where one of its terms was


class Wide(nn.Module):
    """Activations that backward reads much later."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(4)])

    def forward(self, x):
        for k, layer in enumerate(self.layers):
            x = layer(x)
            x = (F.silu(x) * 1.5, x.sigmoid().sin(), F.gelu(x + 1), F.dropout(x, 0.5).tanh())[k]
        return x


def test_repeated_steps_have_the_same_bits():
    lucid.manual_seed(3)
    net = Wide()
    twin = copy.deepcopy(net)
    ours, theirs = (lucid.optim.Adam(m.parameters(), lr=0.01) for m in (net, twin))
    step = lucid.compile_step(net, F.mse_loss, ours, grad_clip=1.0)
    x, t = lucid.randn(1024, 64), lucid.randn(1024, 64)
    for k in range(4):
        lucid.manual_seed(k)
        a = step(x, t)
        lucid.manual_seed(k)
        theirs.zero_grad()
        b = F.mse_loss(twin(x), t)
        b.backward()
        nn.utils.clip_grad_norm_(twin.parameters(), 1.0)
        theirs.step()
        assert a.equal(b), k
        assert all(p.equal(q) and p.grad.equal(q.grad) for p, q in zip(net.parameters(), twin.parameters())), k
    assert step._plan_of[-1].facts()["recomputed"] > 0


def test_an_input_that_is_written_in_between_is_not_read_again():
    """y = sin(x) waits while x changes: making y again would read the new x."""

    def f(x, w):
        z = x @ w
        y = z.sin()
        for _ in range(3):
            w = (w @ w).tanh()
        big = [w + k for k in range(4)]
        z.mul_(2)
        return sum(b @ b for b in big) + y @ w + z

    x, w = lucid.randn(300, 300), lucid.randn(300, 300)
    compiled = lucid.compile(f, fullgraph=True)
    for _ in range(3):
        assert compiled(x, w).equal(f(x, w))
