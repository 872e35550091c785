"""Compiled functions and training steps as captured graphs. Runs on a GPU, or on the emulation (test_emulated.py)."""

import gc
import threading

import pytest

import lucid
from lucid import nn
from tests.jit.programs import Program

pytestmark = pytest.mark.skipif(not lucid.cuda.is_available(), reason="no CUDA device")
cuda = lucid.cuda


# --- without gradients ---
def test_a_compiled_function_is_a_graph():
    weight = lucid.randn(4, 4).cuda()
    f = lucid.compile(lambda x: (x @ weight).relu() + 1, mode="reduce-overhead")
    kept = []
    for k in range(5):
        x = lucid.full((3, 4), float(k), device="cuda")
        kept.append((f(x), (x @ weight).relu() + 1))
    for ours, eager in kept:  # results are never overwritten
        assert lucid.equal(ours, eager)
    assert "CUDA graph" in f.explain()
    weight.data = lucid.zeros(4, 4).cuda()  # elsewhere: the plan runs, and is captured again
    assert f(x).tolist() == [[1.0] * 4] * 3


def graphed(f):
    return lucid.compile(f, mode="reduce-overhead")


def test_arguments_and_results_lie_as_in_eager():
    """Views with strides, arguments that are written, results that share memory."""
    f, g, h = graphed(lambda x: x + 1), graphed(lambda x: x.add_(1)), graphed(lambda x: (lambda y: (y, y[:, 1:]))(x * 2))
    for k in range(4):
        x = (lucid.arange(12.0) + k).reshape(3, 4).cuda()
        assert lucid.equal(f(x[:, ::2]), x[:, ::2] + 1) and lucid.equal(f(x[:1].expand(3, 4)), x[:1].expand(3, 4) + 1)
        was = x.clone()
        assert g(x) is x and lucid.equal(x, was + 1)
        whole, part = h(x)
        assert part.stride() == (4, 1)
        whole.zero_()
        assert part.abs().sum().item() == 0
    assert "CUDA graph" in f.explain() and "it writes an argument" in g.explain() and "CUDA graph" in h.explain()


def test_what_a_graph_writes_outside_counts_as_written():
    """Autograd sees that a tensor which it keeps was changed by a replay."""
    state = lucid.ones(3, device="cuda")
    f = graphed(lambda x: state.add_(x))
    for _ in range(4):
        x = lucid.ones(3, device="cuda", requires_grad=True)
        y = (x * state).sum()
        with lucid.no_grad():
            f(lucid.ones(3, device="cuda"))
        with pytest.raises(RuntimeError, match="inplace"):
            y.backward()
    assert state.tolist() == [5.0] * 3 and "CUDA graph" in f.explain()


def test_what_runs_on_the_cpu_is_not_left_out():
    """A replay does nothing on the host: such a plan is no graph."""
    f = graphed(lambda x: (x * lucid.rand(()), x + 1))
    x = lucid.ones(3, device="cuda")
    assert len({f(x)[0][0].item() for _ in range(6)}) == 6 and "runs on the CPU" in f.explain()


# The first six once went wrong: work on the CPU, inference mode, dimensions of size 1, numbers in backward, random numbers.
@pytest.mark.parametrize("seed", [3, 9, 11, 24, 100, 218, *range(40, 50)])
def test_random_programs(seed):
    program = Program(seed, cuda=True)
    failure = program.failure()
    assert failure is None, program.report(failure)


# --- with gradients ---
def network():
    lucid.manual_seed(0)
    layers = nn.Linear(6, 10), nn.BatchNorm1d(10), nn.ReLU(), nn.Dropout(0.25), nn.Linear(10, 3)
    return nn.Sequential(*layers).cuda()


def compared(ours, eager):
    assert len(ours) == len(eager)
    for k, (a, b) in enumerate(zip(ours, eager)):
        assert (a is None) == (b is None) and (a is None or lucid.equal(a, b)), k


def gradients(net, call, x, retain=False):
    lucid.manual_seed(7)
    net.zero_grad()
    x = x.detach().clone().requires_grad_()
    y = call(x)
    loss = (y * y).sum()
    loss.backward(retain_graph=retain)
    if retain:
        loss.backward()
    return [y.detach(), x.grad, *[p.grad for p in net.parameters()], *net.buffers()]


def test_forward_and_backward_are_graphs():
    net, twin = network(), network()
    f = graphed(net)
    results = []
    for k in range(6):
        x = lucid.randn(5, 6).cuda()
        results.append((gradients(net, f, x, k % 2), gradients(twin, twin, x, k % 2)))
        for p, q in zip(net.parameters(), twin.parameters()):  # a step of an optimizer: weights stay where they are
            with lucid.no_grad():
                p -= 0.1 * p.grad
                q -= 0.1 * q.grad
    for ours, eager in results[:-1]:  # nothing that was given out is overwritten; buffers are, as in eager
        compared(ours[: -len(list(net.buffers()))], eager[: -len(list(net.buffers()))])
    compared(*results[-1])
    said = f.explain()
    assert "1 CUDA graphs, 4 replays" in said and "1 CUDA graphs, 6 replays" in said, said


def forwards(f, inputs):
    xs = [lucid.full((4, 3), float(v), device="cuda", requires_grad=True) for v in inputs]
    return xs, [f(x) for x in xs]


def test_forwards_before_their_backwards():
    weight = lucid.randn(3, 3).cuda().requires_grad_()

    def function(x):
        return (x @ weight).sigmoid() * x

    f = graphed(function)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]):
        found = []
        for call in (f, function):
            weight.grad = None
            xs, ys = forwards(call, range(1, 5))
            for k in order:
                (ys[k] ** 2).sum().backward()
            found.append([*[x.grad for x in xs], weight.grad])
        compared(*found)
    assert "2 CUDA graphs" in f.explain()


def test_a_pair_of_graphs_is_free_when_nobody_can_ask_for_gradients():
    f = graphed(lambda x: x.exp() * x)
    forwards(f, [0])[1][0].sum().backward()
    for _ in range(4):  # the results of the last turn are still there
        (x,), (y,) = forwards(f, [1])
        y.sum().backward()
        kept = y
    for _ in range(4):  # nobody asks
        kept = forwards(f, [2])[1][0].detach()
    gc.collect()
    assert f.explain().count("1 CUDA graphs") == 2 and kept.numel() == 12
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    (x,), (y,) = forwards(f, [1])
    y.sum().backward(retain_graph=True)
    forwards(f, [3])[1][0].sum().backward()  # on another pair
    first = x.grad.clone()
    y.sum().backward()
    assert lucid.equal(x.grad, 2 * first) and f.explain().count("2 CUDA graphs") == 2


def test_hooks_and_parts_of_gradients():
    def function(x):
        return x.exp(), (x * x).sum(1)

    f, seen = graphed(function), []
    for k in range(5):
        found = []
        for call in (f, function):
            xs, ((a, b),) = forwards(call, [k / 4])
            for t in (xs[0], a, b):
                t.register_hook(lambda g: g if g is None else seen.append(g.shape) or g * 2)
            (a.sum() if k == 3 else b.sum() if k == 4 else a.sum() + b.sum()).backward()
            found.append([xs[0].grad])
        compared(*found)
    assert len(seen) == 2 * (3 * 3 + 2 * 2)
    (x,), ((a, b),) = forwards(f, [1])
    (g,) = lucid.autograd.grad(b.sum(), x, create_graph=True)
    (second,) = lucid.autograd.grad(g.sum(), x)
    assert second.tolist() == [[2.0] * 3] * 4


def test_weights_that_move_between_forward_and_backward():
    net, twin = network().eval(), network().eval()
    f = graphed(net)
    for k in range(5):
        x = lucid.randn(5, 6).cuda()
        found = []
        for module, call in ((net, f), (twin, twin)):
            module.zero_grad()
            if k in (2, 3):
                module[4].weight.data = module[4].weight.data * 2
            y = call(x).sum()
            if k == 3:
                module[4].bias.data = module[4].bias.data.clone()
            y.backward()
            found.append([y.detach(), *[p.grad for p in module.parameters()]])
        compared(*found)
    with lucid.no_grad():
        y = f(x).sum()
    y = f(x).sum()
    with lucid.no_grad():
        net[4].weight.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.backward()


def test_hooks_of_saved_tensors_are_not_in_the_way():
    f = graphed(lambda x: x.sin() * x)

    def pack(t):  # the memory by which a call holds its graphs is let go of
        return t.clone() if t.dtype == lucid.uint8 else t

    for k in range(4):
        with lucid.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            xs, ys = forwards(f, [k, k + 1])
        more, ms = forwards(f, [7])
        for y in ys:
            y.sum().backward()
        for x in xs:
            v = x.detach()
            lucid.testing.assert_close(x.grad, v.cos() * v + v.sin())
    assert "CUDA graphs" in f.explain()


def test_graphs_on_other_streams_and_threads():
    net, twin = network().eval(), network().eval()
    f, found = graphed(net), []

    def work(seed):
        with cuda.stream(cuda.Stream()):
            for k in range(3):
                x = lucid.full((5, 6), float(seed + k), device="cuda", requires_grad=True)
                (g,) = lucid.autograd.grad(f(x).pow(2).sum(), x)
                found.append((seed + k, g.cpu()))

    cuda.synchronize()
    work(1)
    threads = [threading.Thread(target=work, args=(3 * t,)) for t in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(found) == 12 and "CUDA graphs" in f.explain()
    for value, g in found:
        x = lucid.full((5, 6), float(value), device="cuda", requires_grad=True)
        (expected,) = lucid.autograd.grad(twin(x).pow(2).sum(), x)
        assert lucid.equal(g, expected.cpu())


# --- training steps ---
def test_lenet_steps_are_replayed():
    def losses(compiled):
        lucid.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(1, 3, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(3, 4, 5), nn.ReLU(), nn.AvgPool2d(2),
            nn.Flatten(), nn.Linear(36, 12), nn.ReLU(), nn.Linear(12, 5),
        ).cuda()  # fmt: skip
        optimizer = lucid.optim.Adam(net.parameters(), lr=0.01)
        schedule = lucid.optim.lr_scheduler.StepLR(optimizer, 2)
        step = lucid.compile_step(net, nn.functional.cross_entropy, optimizer) if compiled else None
        found = []
        for k in range(6):
            x, y = (lucid.arange(4 * 20 * 20).reshape(4, 1, 20, 20) % (7 + k) / 7).cuda(), (lucid.arange(4) * k % 5).cuda()
            if compiled:
                loss = step(x, y)
            else:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(x), y)
                loss.backward()
                optimizer.step()
            schedule.step()
            found.append(loss)
        if compiled:
            assert step.replays == 3, step.explain()  # the first is eager, the second traced, the third warms up
        return [loss.item() for loss in found]

    assert losses(True) == pytest.approx(losses(False), rel=1e-5)
