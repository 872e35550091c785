"""Steps of optimizers over lists of tensors, beside torch.optim for twenty steps; and what they refuse."""

import gc
import inspect

import numpy as np
import pytest
import torch

import lucid

SHAPES = [(3, 4), (7,), (), (2, 3, 5), (1000,), (0, 3), (130, 130)]
LARGE = [(70, 1100), (40, 25, 70), (70000,), (2, 1100)]  # cut for threads, and into pieces


class Run:
    """The parameters and states of one algorithm in Lucid. d: the options, named as torch.optim's."""

    def __init__(self, params, d):
        self.p, self.d = params, d
        self.steps = [lucid.tensor(0.0) for _ in params]
        self.first = self.count = True

    def zeros(self, wanted=True):
        return [lucid.zeros_like(p) for p in self.p] if wanted else []

    def numbers(self, value):
        return [lucid.tensor(value) for _ in self.p]

    def keywords(self, *names):
        d = self.d | dict(zip(("beta1", "beta2"), self.d.get("betas", ())))
        return {"count": self.count, **{name: d[name] for name in (*names, "lr", "weight_decay", "maximize")}}

    def step(self, grads):
        if self.first:
            self.states = self.start()
        if not self.count:
            lucid._foreach_add_(self.steps, 1)
        self.update(grads)
        self.first, self.count = False, not self.count  # by the call itself, and before it


class SGD(Run):
    def start(self):
        return [self.zeros(self.d["momentum"])]

    def update(self, g):
        names = self.keywords("momentum", "dampening", "nesterov")
        del names["count"]
        lucid._fused_sgd_(self.p, g, *self.states, is_first_step=self.first, **names)


class Adam(Run):
    op = "_fused_adam_"

    def start(self):
        return [self.zeros(), self.zeros(), self.zeros(self.d["amsgrad"])]

    def update(self, g):
        names = self.keywords("beta1", "beta2", "eps", "amsgrad")
        getattr(lucid, self.op)(self.p, g, *self.states, self.steps, **names)


class AdamW(Adam):
    op = "_fused_adamw_"


class Adagrad(Run):
    def start(self):
        return [[lucid.full_like(p, self.d["initial_accumulator_value"]) for p in self.p]]

    def update(self, g):
        lucid._fused_adagrad_(self.p, g, *self.states, self.steps, **self.keywords("lr_decay", "eps"))


class RMSprop(Run):
    def start(self):
        return [self.zeros(), self.zeros(self.d["centered"]), self.zeros(self.d["momentum"])]

    def update(self, g):
        lucid._fused_rmsprop_(self.p, g, *self.states, self.steps, **self.keywords("alpha", "eps", "momentum", "centered"))


class Adadelta(Run):
    def start(self):
        return [self.zeros(), self.zeros()]

    def update(self, g):
        lucid._fused_adadelta_(self.p, g, *self.states, self.steps, **self.keywords("rho", "eps"))


class Adamax(Run):
    def start(self):
        return [self.zeros(), self.zeros()]

    def update(self, g):
        lucid._fused_adamax_(self.p, g, *self.states, self.steps, **self.keywords("beta1", "beta2", "eps"))


class NAdam(Run):
    def start(self):
        return [self.zeros(), self.zeros(), self.numbers(1.0)]

    def update(self, g):
        names = self.keywords("beta1", "beta2", "eps", "momentum_decay", "decoupled_weight_decay")
        lucid._fused_nadam_(self.p, g, *self.states, self.steps, **names)


class RAdam(Run):
    def start(self):
        return [self.zeros(), self.zeros()]

    def update(self, g):
        names = self.keywords("beta1", "beta2", "eps", "decoupled_weight_decay")
        lucid._fused_radam_(self.p, g, *self.states, self.steps, **names)


class ASGD(Run):
    def start(self):
        return [self.zeros(), self.numbers(1.0), self.numbers(self.d["lr"])]

    def update(self, g):
        lucid._fused_asgd_(self.p, g, *self.states, self.steps, **self.keywords("lambd", "t0", "alpha"))


class Rprop(Run):
    def start(self):
        return [self.zeros(), [lucid.full_like(p, self.d["lr"]) for p in self.p]]

    def update(self, g):
        (low, high), (down, up) = self.d["step_sizes"], self.d["etas"]
        sizes = {"step_size_min": low, "step_size_max": high, "etaminus": down, "etaplus": up}
        lucid._fused_rprop_(self.p, g, *self.states, self.steps, maximize=self.d["maximize"], count=self.count, **sizes)


class Adafactor(Run):
    def start(self):
        shapes = [(p, shape) for p in self.p for shape in self.factors(tuple(p.shape))]
        return [[lucid.zeros(shape, dtype=p.dtype) for p, shape in shapes]]

    @staticmethod
    def factors(shape):
        return [(*shape[:-1], 1), (*shape[:-2], 1, shape[-1])] if len(shape) > 1 else [shape]

    def update(self, g):
        eps = dict(zip(("eps1", "eps2"), self.d["eps"]))
        lucid._fused_adafactor_(self.p, g, *self.states, self.steps, **self.keywords("beta2_decay", "d"), **eps)


CASES = [
    (SGD, {"lr": 0.1}),
    (SGD, {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    (SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    (Adam, {"lr": 0.01}),
    (Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True, "maximize": True, "betas": (0.4, 0.9)}),
    (AdamW, {"lr": 0.01}),
    (AdamW, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    (Adagrad, {"lr": 0.1}),
    (Adagrad, {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1, "maximize": True}),
    (RMSprop, {"lr": 0.01}),
    (RMSprop, {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.1}),
    (RMSprop, {"lr": 0.01, "momentum": 0.9, "centered": True, "maximize": True}),
    (RMSprop, {"lr": 0.01, "centered": True}),
    (Adadelta, {"lr": 1.0}),
    (Adadelta, {"lr": 1.0, "weight_decay": 0.1, "maximize": True}),
    (Adamax, {"lr": 0.01}),
    (Adamax, {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    (NAdam, {"lr": 0.01}),
    (NAdam, {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    (RAdam, {"lr": 0.01}),
    (RAdam, {"lr": 0.01, "weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    (ASGD, {"lr": 0.01, "t0": 5}),
    (ASGD, {"lr": 0.01, "weight_decay": 0.1, "maximize": True}),
    (Rprop, {"lr": 0.01}),
    (Rprop, {"lr": 0.01, "maximize": True}),
    (Adafactor, {"lr": 0.1, "eps": (1e-6, 1e-3)}),
    (Adafactor, {"lr": 0.1, "weight_decay": 0.1, "d": 2.0, "eps": (1e-3, 0.1), "beta2_decay": -0.3, "maximize": True}),
]
IDS = [f"{kind.__name__}-{i}" for i, (kind, _) in enumerate(CASES)]


def made(m, numbers, dtype, strided=False):
    t = m.tensor(numbers.tolist(), dtype=getattr(m, dtype)).reshape(numbers.shape)
    if strided and t.ndim > 1:
        return t.transpose(0, 1).clone(memory_format=m.contiguous_format).transpose(0, 1)
    return t


def both(kind, options, dtype, steps=20, strided=False, theirs_in=None):
    rng = np.random.default_rng(1)
    wide = getattr(torch, theirs_in or dtype)
    shapes = [s for s in SHAPES if 0 not in s or kind is not Adafactor]  # PyTorch's divides by the number of elements
    start = [rng.normal(size=s) for s in shapes]
    theirs = [made(torch, x, dtype).to(wide).requires_grad_() for x in start]
    ours = [made(lucid, x, dtype) for x in start]
    optimizer = getattr(torch.optim, kind.__name__)(theirs, **options, foreach=False)
    run = kind(ours, dict(optimizer.defaults))
    for _ in range(steps):
        grads = [rng.normal(size=s) for s in shapes]
        for p, g in zip(theirs, grads):
            p.grad = made(torch, g, dtype).to(wide)
        optimizer.step()
        run.step([made(lucid, g, dtype, strided) for g in grads])
    assert kind is SGD or [s.item() for s in run.steps] == [steps] * len(shapes)
    return ours, [p.detach() for p in theirs]


def test_large_parameters_of_adafactor():
    """In a group with small ones; the same with another number of threads."""
    rng, results, threads = np.random.default_rng(0), [], lucid.get_num_threads()
    values = [[rng.normal(size=s) * 1e-3 for s in (*SHAPES[:4], *LARGE)] for _ in range(4)]

    def run(m):
        params = [m.tensor(x).requires_grad_() for x in values[0]]
        optimizer = m.optim.Adafactor(params, lr=0.1)
        for grads in values[1:]:
            for p, g in zip(params, grads):
                p.grad = m.tensor(g)
            optimizer.step()
        return [p.detach().numpy() for p in params]

    try:
        for n in (1, 3):
            lucid.set_num_threads(n)
            results.append(run(lucid))
    finally:
        lucid.set_num_threads(threads)
    for a, b, theirs in zip(*results, run(torch)):
        assert (a == b).all()
        np.testing.assert_allclose(a, theirs, rtol=1e-12, atol=1e-12)


def assert_close(ours, theirs, rtol, atol):
    for a, b in zip(ours, theirs):
        a = torch.tensor(a.tolist(), dtype=torch.float64).reshape(b.shape)
        torch.testing.assert_close(a, b.double(), rtol=rtol, atol=atol)


@pytest.mark.few(per=lambda kind, options: kind)
@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_twenty_steps(kind, options):
    assert_close(*both(kind, options, "float32"), 3e-6, 3e-6)
    assert_close(*both(kind, options, "float64"), 1e-13, 1e-13)


@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_gradients_of_other_strides(kind, options):
    for a, b in zip(both(kind, options, "float32", 3)[0], both(kind, options, "float32", 3, strided=True)[0]):
        assert lucid.equal(a, b)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_half_precision_rounds_once_per_step(kind, options, dtype):
    """A step in float32, rounded. (torch.optim rounds after each operation; its fused SGD is wrong in bfloat16.)"""
    unit = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
    assert_close(*both(kind, options, dtype, 1, theirs_in="float32"), 1.01 * unit, unit / 8)


def adam(p, g, m, v, step, **options):
    how = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.0, "eps": 1e-8, "amsgrad": False, "maximize": False}
    lucid._fused_adam_(p, g, m, v, [], step, **(how | options))


def state(*shapes, n=4):
    return [[lucid.ones(s) for s in shapes] for _ in range(n)] + [[lucid.tensor(1.0) for _ in shapes]]


def test_scaled_gradients_and_overflow():
    plain, scaled, skipped = state(3), state(3), state(3)
    scaled[1][0].mul_(8)
    adam(*plain)
    adam(*scaled, grad_scale=lucid.tensor(8.0), found_inf=lucid.tensor(0.0))
    adam(*skipped, found_inf=lucid.tensor(1.0), count=True)
    assert lucid.equal(plain[0][0], scaled[0][0]) and lucid.equal(scaled[1][0], lucid.ones(3))
    assert lucid.equal(skipped[0][0], lucid.ones(3)) and skipped[4][0].item() == 1


def test_a_learning_rate_may_be_a_tensor():
    number, tensor = state(3), state(3)
    adam(*number, lr=0.5)
    adam(*tensor, lr=lucid.tensor(0.5))
    assert lucid.equal(number[0][0], tensor[0][0])


def test_writes_are_seen():
    lists = state(3)
    before = [x[0]._version for x in lists]
    adam(*lists)
    assert [x[0]._version > v for x, v in zip(lists, before)] == [True] * 5  # torch declares gradients too
    assert adam([], [], [], [], []) is None
    lists[0][0].requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        adam(*lists)
    with lucid.no_grad():
        adam(*lists)
    lists[0][0] = lucid.ones(3, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="not recorded"):
        adam(*lists)


def test_bad_lists_change_nothing():
    for k, wrong in (
        (1, lucid.ones(4)),
        (2, lucid.ones(3, dtype=lucid.int64)),
        (4, lucid.ones(2)),
        (0, lucid.ones(1).expand(3)),
    ):
        lists = state(2, 3)
        lists[k][1] = wrong
        with pytest.raises(RuntimeError):
            adam(*lists)
        assert lucid.equal(lists[0][0], lucid.ones(2))
    lists = state(2)
    with pytest.raises(RuntimeError, match="same number"):
        adam(lists[0], [], *lists[2:])
    with pytest.raises(RuntimeError, match="is empty"):
        adam(*lists, amsgrad=True)


OPTIONS = {
    "maximize": False, "amsgrad": True, "centered": True, "nesterov": True, "is_first_step": False, "match_rms_adamw": False,
    "decoupled_weight_decay": False, "ns_coefficients": (3.4, -4.7, 2.0), "ns_steps": 2,
}  # fmt: skip
MISFITS = {
    "empty": lambda ts: [],
    "shorter": lambda ts: ts[:1],
    "longer": lambda ts: [*ts, ts[0].clone()],
    "other shape": lambda ts: [lucid.ones(3), ts[1]],
    "of integers": lambda ts: [ts[0].long(), ts[1]],
    "complex": lambda ts: [ts[0].to(lucid.complex64), ts[1]],
    "on meta": lambda ts: [ts[0].to("meta"), ts[1]],
}


@pytest.mark.parametrize("misfit", MISFITS.values(), ids=MISFITS)
@pytest.mark.parametrize("name", [n for n in dir(lucid._C) if n.startswith("_fused_")])
def test_no_list_is_trusted(name, misfit):
    op, given = getattr(lucid._C, name), inspect.signature(getattr(lucid._C, name)).parameters.values()
    options = {p.name: OPTIONS.get(p.name, 0.5) for p in given if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    names = [p.name for p in given if p.kind is not p.KEYWORD_ONLY]
    single = ("state_steps", "mus", "etas", "mu_products")
    for bad in names[:2] if name == "_fused_adafactor_" else names:
        if bad in single and misfit in (MISFITS["other shape"], MISFITS["of integers"], MISFITS["complex"]):
            continue
        lists = {n: [lucid.ones(() if n in single else (4, 5)) for _ in range(2)] for n in names}
        lists[bad] = misfit(lists[bad])
        with pytest.raises(RuntimeError):
            op(*lists.values(), **options, **({"count": True} if "state_steps" in names else {}))
        assert all((t == 1).all() for ts in lists.values() for t in ts if t.device.type == "cpu")


def test_the_number_of_threads_does_not_matter():
    results, threads = [], lucid.get_num_threads()
    try:
        for n in (1, 2, 3):
            lucid.set_num_threads(n)
            lucid.manual_seed(0)
            lists = [[lucid.rand(s) for s in (5, 40000, 3, 70001)] for _ in range(4)] + [[lucid.tensor(3.0) for _ in range(4)]]
            adam(*lists)
            results.append(lists[0])
    finally:
        lucid.set_num_threads(threads)
    assert all(lucid.equal(a, b) for other in results[1:] for a, b in zip(results[0], other))


@pytest.mark.parametrize(("kind", "options"), CASES, ids=IDS)
def test_every_allocation(kind, options):
    optimizer = getattr(torch.optim, kind.__name__)([torch.ones(1, requires_grad=True)], **options)
    run = kind([lucid.ones(3, 2), lucid.ones(4)], dict(optimizer.defaults))
    grads = [lucid.ones(3, 2), lucid.ones(4, dtype=lucid.float64)]
    run.step(grads)
    run.count = kind is not SGD
    gc.collect()
    before, n = lucid._C.live_blocks(), 1
    while True:
        values = str([p.tolist() for p in run.p + run.steps])
        lucid._C._fail_allocation(n)
        try:
            run.update(grads)
            break
        except lucid.OutOfMemory:
            lucid._C._fail_allocation(0)
            assert str([p.tolist() for p in run.p + run.steps]) == values
            n += 1
        finally:
            lucid._C._fail_allocation(0)
    assert n > 1 and lucid._C.live_blocks() == before
    assert {s.item() for s in run.steps} == {2.0 if run.count else 0.0}


@pytest.mark.parametrize("dtype", ["float64", "float16", "int64"])
def test_counts_of_other_dtypes(dtype):
    lists = state(3, 2)
    lists[4] = [t.to(getattr(lucid, dtype)) for t in lists[4]]
    adam(*lists, count=True)
    assert [(s.item(), s.dtype) for s in lists[4]] == [(2, getattr(lucid, dtype))] * 2


def test_counts_end_where_float32_does():
    lists = state(3)
    lists[4][0].fill_(2.0**24)
    adam(*lists, count=True)
    assert lists[4][0].item() == 2.0**24


def test_parts_of_lbfgs():
    c = lucid._C
    x = [lucid.tensor([[1.0, 2.0], [3.0, 4.0]]).T, lucid.tensor([1 + 2j]), lucid.tensor(5.0), lucid.ones(0)]
    flat = c._lbfgs_gather(x)
    assert flat.tolist() == [1, 3, 2, 4, 1, 2, 5]
    whole = x[0].is_contiguous()

    def move(direction):
        c._lbfgs_move_(x, direction, 0.5)

    for bad in (flat[:-1], lucid.ones(8), lucid.ones(7, 1), lucid.ones(7, device="meta"), lucid.ones(7, dtype=lucid.complex64)):
        with pytest.raises(RuntimeError):
            move(bad)
        assert lucid.equal(c._lbfgs_gather(x), flat)
    for n in range(1, 99):
        lucid._C._fail_allocation(n)
        try:
            move(flat)
            break
        except lucid.OutOfMemory:
            lucid._C._fail_allocation(0)
            assert lucid.equal(c._lbfgs_gather(x), flat)
        finally:
            lucid._C._fail_allocation(0)
    assert n > 1 and not whole and lucid.equal(c._lbfgs_gather(x), flat * 1.5)

    rng = np.random.default_rng(0)
    y, s = ([rng.normal(size=7) for _ in range(3)] for _ in range(2))
    g, ro, scale = rng.normal(size=7), [rng.normal() for _ in range(3)], 0.7
    d, al = -g, [0] * 3
    for i in (2, 1, 0):
        al[i] = ro[i] * (s[i] @ d)
        d = d - al[i] * y[i]
    d *= scale
    for i in range(3):
        d = d + (al[i] - ro[i] * (y[i] @ d)) * s[i]
    lists = [[lucid.tensor(v) for v in values] for values in (y, s, ro)]
    ours = c._lbfgs_direction(lucid.tensor(g), *lists, lucid.tensor(scale))
    for a, b in zip(ours, (d, *al)):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)
    for k in range(3):
        with pytest.raises(RuntimeError):
            c._lbfgs_direction(lucid.tensor(g), *(ts[: 2 if j == k else 3] for j, ts in enumerate(lists)), lucid.tensor(scale))


@pytest.mark.parametrize("m", [lucid, torch])
def test_lists_of_tensors(m):
    x = [m.ones(2), m.full((2, 2), 2.0, dtype=m.float64), m.ones(3, dtype=m.float16)]
    m._foreach_add_(x, 1)
    m._foreach_mul_(x, 2)
    m._foreach_mul_(x, m.tensor(0.5))
    assert [t.sum().item() for t in x] == [4, 12, 6]
    assert [round(t.item(), 2) for t in m._foreach_norm(x)] == [2.83, 6, 3.46]
    assert [t.item() for t in m._foreach_norm(x, float("inf"))] == [2, 3, 2]
    whole = [m.ones(2, dtype=m.int64)]
    with pytest.raises(RuntimeError):
        m._foreach_add_(whole, 0.5)
    m._foreach_add_(whole, 2)
    assert whole[0].tolist() == [3, 3]
