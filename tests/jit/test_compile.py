"""lucid.compile: what a compiled function must do as the function does, and what it must refuse."""

import copy
import gc
import os
import pickle
import sys
import threading
import warnings
from pathlib import Path

import pytest

import lucid
import lucid.nn as nn
import lucid.nn.functional as F
from lucid._compile.check import difference

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from nets import networks  # noqa: E402

NETS = networks(lucid)
SCALE = 2.0
BOX = {"scale": 1.0}
LOG = []


@pytest.fixture(autouse=True)
def no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def agree(fn, *calls, hits=None):
    """Compiled and eager give the same bits for every call; the plans answered `hits` of them."""
    compiled = lucid.compile(fn, fullgraph=True)
    for args in calls:
        assert compiled(*args).equal(fn(*args))
    if hits is not None:
        assert compiled.cache_info().hits == hits
    return compiled


def test_a_plan_answers_the_second_call():
    x, y = lucid.randn(3, 4), lucid.randn(3, 4)
    c = agree(lambda a, b: (a * b).exp().sum(0), (x, y), (y, x), (x + 1, y), hits=2)
    assert "exp" in c.graph() and "<svg" in c.graph(format="svg") and "forward" in c.explain()
    c.invalidate_cache()
    assert c.cache_info() == (0, 0, 8, 0)


def test_shapes_dtypes_and_strides_have_plans_of_their_own():
    calls = [(lucid.randn(n),) for n in (2, 3, 2, 3)] + [(lucid.randn(2, dtype=lucid.float64),), (lucid.randn(4)[::2],)]
    agree(lambda x: x.sin() + 1, *calls, hits=2)


def test_views_and_in_place():
    def f(x):
        y = x.clone()
        y[:, 1:] += y[:, :-1] * 2
        y.t()[0].mul_(3)
        return y.view(-1)[2:].relu_()

    agree(f, *[(lucid.randn(4, 5),) for _ in range(4)], hits=3)


def test_an_input_that_is_written():
    def f(x):
        return x.add_(1).sum()

    compiled = lucid.compile(f, fullgraph=True)
    x, y = lucid.zeros(3), lucid.zeros(3)
    for _ in range(3):
        assert compiled(x).equal(f(y)) and x.equal(y) and x._version == y._version


def test_outputs_are_never_overwritten_and_may_be_inputs():
    c = lucid.compile(lambda x: (x * 2, x, x[1:]), fullgraph=True)
    x = lucid.arange(4.0)
    first, same, part = c(x)
    kept = first.clone()
    again = c(lucid.ones(4))
    assert first.equal(kept) and same is x and part.data_ptr() == x[1:].data_ptr()
    assert again[0].equal(lucid.full((4,), 2.0))
    outputs = c(x)
    assert outputs[1] is x and outputs[2].equal(x[1:]) and outputs[2].data_ptr() == x[1:].data_ptr()


def test_nested_arguments_and_results():
    def f(pair, *, scale, names):
        return {"sum": pair["a"] + pair["b"][0] * scale, "n": len(names), "none": None}

    c = lucid.compile(f, fullgraph=True)
    for _ in range(3):
        pair = {"a": lucid.randn(2), "b": [lucid.randn(2)]}
        got, want = c(pair, scale=3, names=("x", "y")), f(pair, scale=3, names=("x", "y"))
        assert got["sum"].equal(want["sum"]) and got["n"] == 2 and got["none"] is None
    assert c.cache_info().hits == 2
    assert c({"a": lucid.ones(1), "b": [lucid.ones(1)]}, scale=5, names=())["sum"].item() == 6


def test_globals_closures_and_containers_are_guarded():
    global SCALE
    offset, steps = 1.0, [1.0, 2.0]

    def f(x):
        return x * SCALE + offset + BOX["scale"] + sum(steps)

    compiled = lucid.compile(f, fullgraph=True)
    x = lucid.ones(2)
    for change in range(5):
        assert compiled(x).equal(f(x)) and compiled(x).equal(f(x))
        if change == 0:
            SCALE = 5.0
        elif change == 1:
            offset = 7.0
        elif change == 2:
            BOX["scale"] = 9.0
        elif change == 3:
            steps.append(4.0)
    assert compiled.cache_info().misses == 5
    SCALE, BOX["scale"] = 2.0, 1.0


def test_parameters_are_read_at_run_time():
    layer = nn.Linear(3, 2)
    c = lucid.compile(layer, fullgraph=True)
    x = lucid.randn(4, 3)
    with lucid.no_grad():
        assert c(x).equal(layer(x))
        layer.weight.mul_(2)
        assert c(x).equal(layer(x))
        layer.weight.data = lucid.randn(2, 3)
        assert c(x).equal(layer(x)) and c.cache_info() == (2, 1, 8, 1)
        layer.load_state_dict(nn.Linear(3, 2).state_dict())
        assert c(x).equal(layer(x)) and c.cache_info().misses == 1
        layer.weight = nn.Parameter(lucid.randn(2, 3))
        assert c(x).equal(layer(x)) and c.cache_info().misses == 2


def test_training_mode_and_attributes_of_modules():
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))
    c, twin = lucid.compile(net, fullgraph=True), copy.deepcopy(net)
    for mode in (True, False, True, False):
        net.train(mode), twin.train(mode)
        for i in range(2):
            x = lucid.randn(8, 4)
            lucid.manual_seed(i)
            a = c(x)
            lucid.manual_seed(i)
            assert a.equal(twin(x))
    assert all(p.equal(q) for p, q in zip(net.buffers(), twin.buffers()))
    net[1].p = 0.0
    net.train()
    assert c(lucid.ones(8, 4)).shape == (8, 4) and c.cache_info().misses == 3


def test_dropout_draws_anew():
    c = lucid.compile(lambda x: F.dropout(x, 0.5), fullgraph=True)
    x = lucid.ones(1000)
    first, second, third = c(x), c(x), c(x)
    assert not first.equal(second) and not second.equal(third)


@pytest.mark.parametrize("why, f", {
    "reads values": lambda x: x if x.sum() > 0 else -x,
    "reads": lambda x: x * float(x[0]),
    "nonzero": lambda x: x[x > 0],
    "print": lambda x: (print("x"), x + 1)[1],
    "changes": lambda x: (LOG.append(1), x + 1)[1],
}.items())  # fmt: skip
def test_what_cannot_be_replayed_runs_eagerly(why, f):
    LOG.clear()
    with pytest.warns(UserWarning, match="runs eagerly"):
        compiled = lucid.compile(f)
        for _ in range(2):  # what was changed once may have been made at the first use
            compiled(lucid.ones(3))
    for x in (lucid.ones(3), -lucid.ones(3), lucid.arange(3.0)):
        assert compiled(x).equal(f(x))
    assert compiled.cache_info().currsize == 0 and "eagerly" in compiled.explain()
    with pytest.raises(RuntimeError):
        compiled = lucid.compile(f, fullgraph=True)
        compiled(lucid.ones(3)), compiled(lucid.ones(3))


def test_what_is_made_at_the_first_use():
    class Scaled:
        def __init__(self):
            self.table = None

        def __call__(self, x):
            if self.table is None or self.table.dtype != x.dtype:
                self.table = lucid.arange(3).to(x.dtype)
            return x * self.table

    compiled, x = lucid.compile(Scaled(), fullgraph=True), lucid.ones(3)
    for dtype in (lucid.float32, lucid.float64):
        for _ in range(3):
            assert compiled(x.to(dtype)).tolist() == [0, 1, 2]
    assert compiled.cache_info().hits >= 1


def test_a_tensor_from_around_ops_breaks_the_trace():
    import numpy as np

    weight = lucid.ones(3)
    for f in (lambda x: x + lucid.from_numpy(np.ones(3, np.float32)), lambda x: x + weight.data):
        with pytest.warns(UserWarning, match="runs eagerly"):
            assert lucid.compile(f)(lucid.ones(3)).equal(lucid.full((3,), 2.0))


def test_constants_made_inside():
    agree(
        lambda x: x + lucid.tensor([1.0, 2.0]) + lucid.zeros(2) + lucid.arange(2),
        *[(lucid.randn(2),) for _ in range(3)],
        hits=2,
    )


def test_inputs_that_share_memory():
    x = lucid.arange(6.0)
    c = agree(lambda a, b: a * 2 + b, (x[:3], x[3:]), (x[:3], x[3:]), (x[1:4], x[1:4]), (x[:3], lucid.ones(3)))
    assert c.cache_info().hits >= 1

    def writes(a, b):
        a.add_(1)
        return b * 1

    c = lucid.compile(writes, fullgraph=True)
    for a, b in ((lucid.zeros(3), lucid.zeros(3)), (lucid.zeros(3), lucid.zeros(3)), (x, x)):
        twin_a = a.clone()
        twin_b = twin_a if a is b else b.clone()
        assert c(a, b).equal(writes(twin_a, twin_b)) and a.equal(twin_a)


def test_gradients():
    w = lucid.randn(3, 3, requires_grad=True)

    def f(x):
        return (x @ w).tanh(), (w * w).sum()

    c = lucid.compile(f, fullgraph=True)
    for i in range(4):
        x = lucid.randn(2, 3, requires_grad=True)
        results = []
        for fn in (f, c):
            w.grad = None
            y = x.detach().requires_grad_()
            a, b = fn(y)
            loss = a.sum() + b if i < 3 else b  # the last backward is partial
            loss.backward(retain_graph=True)
            results.append((a.detach(), b.detach(), w.grad, y.grad))
        assert all(
            p is q is None or (p if p is not None else lucid.zeros(2, 3)).equal(q if q is not None else lucid.zeros(2, 3))
            for p, q in zip(*results)
        )
    assert c.cache_info().hits == 3


def same_gradients(f, make):
    """Backward through f and through its compiled form give the same gradients, four times; fresh inputs each time."""
    compiled = lucid.compile(f, fullgraph=True)
    for _ in range(4):
        found = []
        for fn in (f, compiled):
            inputs, leaves = make()
            result = fn(*inputs)
            for t in leaves:
                t.grad = None
            (result if isinstance(result, lucid.Tensor) else result[-1]).sum().backward()
            found.append([t.grad.clone() for t in leaves])
        assert all(map(lucid.Tensor.equal, *found))
    return compiled


def test_arguments_that_depend_on_each_other():
    def make():
        x = lucid.arange(3.0).requires_grad_()
        return (x, x * 2), [x]

    assert same_gradients(lambda x, y: x * 3 + y * 5, make).cache_info().hits == 3


def test_a_compiled_layer_used_twice():
    layer = nn.Linear(3, 3)
    compiled = same_gradients(lambda x: layer(x), lambda: ((layer(lucid.ones(2, 3)),), list(layer.parameters())))
    assert compiled.cache_info().hits == 3
    twice = lucid.compile(layer, fullgraph=True)
    for _ in range(3):
        grads = []
        for fn in (layer, twice):
            layer.weight.grad = None
            fn(fn(lucid.ones(2, 3))).sum().backward()
            grads.append(layer.weight.grad)
        assert grads[0].equal(grads[1])


def test_a_gradient_of_one_result_does_not_see_the_others():
    def make():
        x = lucid.zeros(3, requires_grad=True)  # the gradient of sqrt is infinite there
        return (x,), [x]

    assert same_gradients(lambda x: (x.sqrt(), x * 2), make).cache_info().hits == 3


def test_parameters_that_are_views():
    w = lucid.randn(3, 4).t().requires_grad_()
    same_gradients(lambda x: x @ w, lambda: ((lucid.randn(2, 4, generator=lucid.Generator().manual_seed(0)),), [w]))


def test_results_that_the_caller_has_already():
    weight = lucid.ones(2, requires_grad=True)

    def f(x):
        y = x + weight
        return y, weight, y, x

    compiled = lucid.compile(f, fullgraph=True)
    x = lucid.ones(2, requires_grad=True) * 2
    for _ in range(3):
        a, b, c, d = compiled(x)
        assert a is c and b is weight and d is x and a.requires_grad


def test_an_argument_made_in_inference_mode():
    w = lucid.ones(3, requires_grad=True)
    f = lucid.compile(lambda x: x + w)
    with lucid.inference_mode():
        x = lucid.ones(3)
    for _ in range(3):
        w.grad = None
        f(x).sum().backward()
        assert w.grad.tolist() == [1.0] * 3


@pytest.mark.parametrize("written", [0, 1])
def test_a_result_that_backward_reads_may_not_be_written(written):
    f = lucid.compile(lambda x: (x.exp(), x * 3))  # backward reads the first result, not the second
    for _ in range(3):
        x = lucid.ones(3, requires_grad=True)
        made = f(x)
        with lucid.no_grad():
            made[written].mul_(2)
        if written == 0:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                made[0].sum().backward()
        else:
            (made[0].sum() + made[1].sum()).backward()
            assert lucid.allclose(x.grad, x.detach().exp() + 3)


def test_arguments_with_a_history_that_are_written():
    def f(x):
        x.mul_(2)
        return x.sin()

    compiled = lucid.compile(f)
    with pytest.warns(UserWarning, match="history"):
        for _ in range(3):
            grads = []
            for fn in (f, compiled):
                leaf = lucid.ones(3, requires_grad=True)
                x = leaf * 3
                (fn(x) + x**2).sum().backward()
                grads.append(leaf.grad)
            assert grads[0].equal(grads[1])


def test_copies_of_tensors_are_no_constants():
    with pytest.warns(UserWarning):
        compiled = lucid.compile(lambda x: lucid.tensor(x) * 2)
        assert [compiled(lucid.full((1,), float(k))).item() for k in range(3)] == [0, 2, 4]


def test_second_gradients_and_writes_between():
    c = lucid.compile(lambda x: (x**3).sum(), fullgraph=True)
    x = lucid.randn(3, requires_grad=True)
    for _ in range(2):
        (g,) = lucid.autograd.grad(c(x), x, create_graph=True)
        (h,) = lucid.autograd.grad(g.sum(), x)
        assert lucid.allclose(h, 6 * x)
    y = c(x)
    with lucid.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_custom_functions_and_hooks():
    class Double(lucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    seen = []
    x = lucid.ones(2, requires_grad=True)
    x.register_hook(lambda g: seen.append(g.clone()))
    c = lucid.compile(lambda x: Double.apply(x).sum(), fullgraph=True)
    for _ in range(3):
        x.grad = None
        c(x).backward()
        assert x.grad.tolist() == [3, 3]
    assert len(seen) >= 3


def test_modules_keep_what_they_are():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    c = lucid.compile(net)
    assert isinstance(c, nn.Sequential) and list(c.state_dict()) == list(net.state_dict()) and c[0] is net[0]
    assert [p is q for p, q in zip(c.parameters(), net.parameters())] == [True, True]
    calls = []
    net.register_forward_hook(lambda *_: calls.append(1))
    x = lucid.ones(1, 2)
    c(x), c(x)
    assert len(calls) == 2
    c.eval()
    assert not net.training
    twin = copy.deepcopy(c)
    assert twin(x).equal(c(x)) and twin[0].weight is not c[0].weight
    net._forward_hooks.clear()
    assert pickle.loads(pickle.dumps(c))(x).equal(c(x))
    net.compile()
    assert copy.deepcopy(net)(x).equal(net(x)) and pickle.loads(pickle.dumps(net))(x).equal(net(x))


def test_threads_have_an_arena_each():
    net = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64)).requires_grad_(False)
    c = lucid.compile(net, fullgraph=True)
    inputs = [lucid.randn(512, 64) for _ in range(8)]
    wanted = [net(x) for x in inputs]
    c(inputs[0])
    wrong = []

    def work(i):
        for _ in range(20):
            if not c(inputs[i]).equal(wanted[i]):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == []


def test_many_shapes_keep_few_plans():
    c = lucid.compile(lambda x: x + 1)
    with pytest.warns(UserWarning, match="traced"):
        for n in range(40):
            c(lucid.zeros(n + 1))
    assert c.cache_info().currsize == 8


def test_dynamic_sizes_are_no_surprise():
    c = lucid.compile(lambda x, w: x @ w, dynamic=True, fullgraph=True)
    w = lucid.randn(3, 2)
    for n in [*range(1, 41), *range(1, 41)]:  # no warning: the fixture makes it an error
        x = lucid.randn(n, 3)
        assert c(x, w).equal(x @ w)
    assert c.cache_info() == (40, 2, 64, 40)  # the function ran for two sizes
    with pytest.warns(UserWarning, match="traced"):
        for n in range(1, 80):
            c(lucid.randn(2, n), lucid.randn(n, 2))
    few = lucid.compile(lambda x: x + 1, dynamic=True, options={"plans": 2})
    for n in range(1, 9):
        assert few(lucid.zeros(n)).equal(lucid.ones(n))
    assert few.cache_info().currsize == 2
    net = nn.Linear(3, 2).compile(dynamic=True)
    assert all(net(lucid.zeros(n, 3)).shape == (n, 2) for n in range(1, 20))


def resident():
    """Memory of this process in pages."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1])


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="reads /proc")
def test_a_thousand_shapes_take_no_more_memory():
    layer = nn.Linear(16, 16)
    c = lucid.compile(lambda x: (layer(x).tanh() * x).sum(), dynamic=True, fullgraph=True)

    def calls(sizes):
        for n in sizes:
            c(lucid.ones(n, 16, requires_grad=True)).backward()

    calls(range(1, 301))
    gc.collect()
    before = resident()
    calls(range(301, 1301))
    gc.collect()
    assert c.cache_info().currsize == 64 and c.cache_info().misses == 2
    assert resident() - before < 4096, (resident() - before, "pages")  # 16 MB: the plans of 64 larger batches


def test_calls_with_changing_numbers_keep_few_plans():
    c = lucid.compile(lambda x, k: x * k)
    with pytest.warns(UserWarning, match="traced"):
        for k in range(100):
            assert c(lucid.ones(2), k).tolist() == [k, k]
    assert len(c._by_structure) <= 8 and c.cache_info().currsize == 8


def test_threads_train_one_compiled_model():
    net = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
    c, inputs = lucid.compile(net), [lucid.randn(8, 16) for _ in range(8)]
    wanted = [lucid.autograd.grad(net(x).square().sum(), list(net.parameters())) for x in inputs]
    wrong, start = [], threading.Barrier(8)

    def work(i):
        start.wait()  # all begin with the first call, which one of them traces
        for _ in range(20):
            got = lucid.autograd.grad(c(inputs[i]).square().sum(), list(net.parameters()))
            if not all(map(lucid.Tensor.equal, got, wanted[i])):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert wrong == [] and c.cache_info().currsize >= 1


@pytest.mark.parametrize("name", ["tiny", "mlp", "lenet", "gpt", "lstm", "resnet_18"])
def test_networks_forward_and_backward(name):
    lucid.manual_seed(0)
    shapes = {"tiny": (4, 4), "mlp": (3, 784), "lenet": (2, 1, 28, 28), "lstm": (2, 5, 32), "resnet_18": (2, 3, 32, 32)}
    net = getattr(NETS, name)()
    twin = copy.deepcopy(net)
    compiled = lucid.compile(net, fullgraph=True)
    for i in range(3):
        x = lucid.randint(0, 65, (2, 9)) if name == "gpt" else lucid.randn(*shapes[name])
        results = []
        for model in (compiled, twin):
            lucid.manual_seed(i)
            model.zero_grad()
            y = model(x)
            y.square().mean().backward()
            results.append([y, *[p.grad for p in model.parameters()], *model.buffers()])
        assert all(difference(a, b) is None for a, b in zip(*results))
    assert compiled.cache_info().hits == 2


def test_explain_measures_a_call():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    c, before = lucid.compile(net), copy.deepcopy(net.state_dict())
    state = lucid.get_rng_state()
    text = c.explain(lucid.ones(3, 4))
    assert "a call takes" in text and "forward" in text
    assert lucid.get_rng_state().equal(state)
    assert all(v.equal(before[k]) for k, v in net.state_dict().items())


def test_modes_have_plans_of_their_own():
    c = lucid.compile(lambda x, w: x @ w, fullgraph=True)
    x, w = lucid.randn(4, 4), lucid.randn(4, 4, requires_grad=True)
    assert c(x, w).requires_grad and c(x, w).requires_grad
    with lucid.no_grad():
        assert not c(x, w).requires_grad and not c(x, w).requires_grad
    with lucid.autocast("cpu", dtype=lucid.bfloat16):
        assert c(x, w).dtype == lucid.bfloat16 and c(x, w).dtype == lucid.bfloat16
    assert c(x, w).dtype == lucid.float32


def test_compiled_inside_compiled_and_vmap():
    inner = lucid.compile(lambda x: x.sin() * 2)
    agree(lambda x: inner(x) + inner(x + 1), *[(lucid.randn(3),) for _ in range(3)], hits=2)
    agree(lambda x: lucid.vmap(lambda r: r.sum() * 2 + r)(x), *[(lucid.randn(3, 4),) for _ in range(3)])


def test_arguments_are_honoured_or_refused():
    assert lucid.compile(len, disable=True) is len
    for wrong in ({"backend": "tvm"}, {"mode": "fast"}, {"options": {"triton": 1}}, {"options": {"plans": 0}}):
        with pytest.raises(ValueError):
            lucid.compile(lambda x: x, **wrong)
    with pytest.raises(TypeError):
        lucid.compile(3)
    assert lucid.compile(options={"plans": 2})(lambda x: x)._plans == 2


def test_explain_times_the_steps_and_changes_nothing():
    layer, x = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU()), lucid.randn(5, 8)
    c = lucid.compile(layer)
    for k in (5, 3):
        c(x[:k])
    before = {key: t.clone() for key, t in layer.state_dict().items()}
    text = c.explain(x)
    assert "step 0: linear -> float32[5, 8]" in text and text.count(" µs ") >= 4
    assert all(t.equal(before[key]) for key, t in layer.state_dict().items())
    optimizer = lucid.optim.SGD(layer.parameters(), lr=0.1)
    step = lucid.compile_step(layer, nn.functional.mse_loss, optimizer)
    for _ in range(3):
        step(x, x)
    before = {key: t.clone() for key, t in layer.state_dict().items()}
    assert "_fused_sgd_" in step.explain(x, x)
    assert all(t.equal(before[key]) for key, t in layer.state_dict().items())


def laid_out(values, layout):
    """The values in another layout of memory."""
    if layout == "contiguous":
        return values.clone()
    if layout == "reversed":
        backwards = list(reversed(range(values.dim())))
        return values.permute(backwards).contiguous().permute(backwards)
    if layout == "every second":
        twice = lucid.zeros(*values.shape[:-1], 2 * values.shape[-1])
        twice[..., ::2] = values
        return twice[..., ::2]
    return lucid.full((), 0.3).expand(values.shape)


LAYOUTS = ["contiguous", "reversed", "every second", "one number"]
PRODUCTS = [
    lambda x, w: x @ w,
    lambda x, w: (x @ w).t(),
    lambda x, w: (w.t() @ x.t()).softmax(0).sin(),
    lambda x, w: F.linear(x, w.t()),
]


@pytest.mark.parametrize("f", PRODUCTS, ids=["product", "transposed", "more", "linear"])
def test_gradients_are_read_as_they_lie(f):
    """A sum is added up in the order of memory: a backward plan is for a layout. The call behind one that met a new layout is
    traced for it."""
    lucid.manual_seed(0)
    x, w = lucid.randn(33, 70, requires_grad=True), lucid.randn(70, 50, requires_grad=True)
    compiled, values = lucid.compile(f, fullgraph=True), lucid.randn(f(x, w).shape)

    def gradients(g, layout):
        return lucid.autograd.grad(g(x, w), (x, w), laid_out(values, layout))

    compiled(x, w)
    for layout in LAYOUTS:
        gradients(compiled, layout)
        for _ in range(3):
            assert all(map(lucid.Tensor.equal, gradients(compiled, layout), gradients(f, layout))), layout
    for layout in LAYOUTS:  # all of them are known by now
        assert all(map(lucid.Tensor.equal, gradients(compiled, layout), gradients(f, layout))), layout
    assert compiled.cache_info().misses == 1 and len(compiled._traced) in (3, 4)  # some results lie like that themselves


def test_a_gradient_that_lies_like_its_result_is_known_at_once():
    lucid.manual_seed(0)
    x, w = lucid.randn(33, 70, requires_grad=True), lucid.randn(70, 50, requires_grad=True)

    def f(x, w):
        return (x @ w).t()

    compiled = lucid.compile(f, fullgraph=True)
    seed = lucid.randn(33, 50).t()
    for _ in range(3):
        found, expected = (lucid.autograd.grad(g(x, w), (x, w), seed) for g in (compiled, f))
        assert all(map(lucid.Tensor.equal, found, expected))
    assert len(compiled._traced) == 1


def test_layouts_of_several_results():
    lucid.manual_seed(0)
    x = lucid.randn(20, 30, requires_grad=True)

    def f(x):
        return x @ x.t(), x.t() @ x, x.sum()

    compiled, seeds = lucid.compile(f, fullgraph=True), [lucid.randn(20, 20), lucid.randn(30, 30), lucid.randn(())]
    for used in ([0, 1, 2], [0], [1], [0, 2], [1, 2]):
        for layout in ("reversed", "contiguous", "one number"):
            for _ in range(2):
                found = []
                for g in (compiled, f):
                    y = g(x)
                    given = [laid_out(seeds[k], layout) for k in used]
                    found.append(lucid.autograd.grad([y[k] for k in used], x, given)[0])
                assert lucid.allclose(*found, atol=1e-5), (used, layout)
    assert len(compiled._traced) <= 5


def test_more_layouts_than_are_kept():
    x = lucid.ones(2, 3, 4, 5, requires_grad=True)
    compiled = lucid.compile(lambda x: x * 2, fullgraph=True)
    for order in ((3, 2, 1, 0), (0, 1, 3, 2), (1, 0, 2, 3), (2, 1, 0, 3), (0, 2, 1, 3), (3, 0, 1, 2)):
        for _ in range(3):
            seed = lucid.arange(120.0).reshape([(2, 3, 4, 5)[d] for d in order]).permute([order.index(d) for d in range(4)])
            assert lucid.autograd.grad(compiled(x), x, seed)[0].equal(seed * 2)
    assert len(compiled._traced) <= 4 and compiled.cache_info().misses == 1


def test_a_seed_in_a_layout_that_shares_what_backward_writes():
    """It is copied, and lies as it did."""
    x, w = lucid.randn(4, 6, requires_grad=True), lucid.randn(6, 5)

    def f(x, w):
        return x @ w

    compiled = lucid.compile(f, fullgraph=True)
    for _ in range(4):
        seed = w[:5, :4].t()
        found, expected = (lucid.autograd.grad(g(x, w), x, seed)[0] for g in (compiled, f))
        assert found.equal(expected)
