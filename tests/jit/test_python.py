"""Python around compiled calls: containers, closures, globals, objects that change between calls. A case is a function that
gets `compile` and returns what its calls returned; with `lucid.compile` and without, that must be the same."""

import collections
import dataclasses
import enum
import functools
import gc
import itertools
import types
import warnings

import pytest

import lucid
import lucid.nn as nn
from lucid._compile.check import difference

FACTOR, TABLE, SEEN, QUEUE, WORDS = 2.0, {"a": 1.0}, {1}, collections.deque([1.0]), ["x"]
CASES = {}
EAGER = set()  # cases that are allowed to run eagerly


def case(f):
    CASES[f.__name__] = f
    return f


def runs_eagerly(f):
    EAGER.add(f.__name__)
    return case(f)


def x(n=3, seed=0):
    return lucid.randn(n, generator=lucid.Generator().manual_seed(seed))


# --- arguments and results ---
@case
def nested_containers(compile):
    f = compile(lambda a, b: {"s": a[0] + a[1]["k"], "t": (b, [b * 2, None])})
    return [f((x(seed=i), {"k": x(seed=9)}), x(2)) for i in range(3)]


@case
def ordered_dict_whose_value_is_replaced(compile):
    d = collections.OrderedDict(a=x(), b=x(seed=1))
    f = compile(lambda d: d["a"] * 2 + d["b"])
    results = [f(d), f(d)]
    d["a"] = x(seed=5)
    return [*results, f(d)]


@case
def default_dict_whose_value_is_replaced(compile):
    d = collections.defaultdict(float, a=x())
    f = compile(lambda d: d["a"] * 2)
    results = [f(d), f(d)]
    d["a"] = x(seed=5)
    return [*results, f(d)]


@case
def list_of_a_subclass(compile):
    class Batch(list):
        pass

    b = Batch([x()])
    f = compile(lambda b: b[0] * len(b))
    results = [f(b), f(b)]
    b.append(x())
    results.append(f(b))
    b[0] = x(seed=7)
    return [*results, f(b)]


@case
def named_tuple_and_its_field(compile):
    Pair = collections.namedtuple("Pair", "left right")
    f = compile(lambda p: Pair(p.right * 2, p.left))
    return [tuple(f(Pair(x(seed=i), x(seed=i + 1)))) for i in range(3)]


@case
def data_class_argument(compile):
    @dataclasses.dataclass
    class Config:
        scale: float
        bias: object

    c = Config(2.0, x())
    f = compile(lambda c, t: t * c.scale + c.bias)
    results = [f(c, x()), f(c, x(seed=1))]
    c.scale = 3.0
    results += [f(c, x()), f(c, x())]
    c.bias = x(seed=8)
    return [*results, f(c, x())]


@case
def data_class_with_slots(compile):
    @dataclasses.dataclass(slots=True)
    class Config:
        scale: float

    c = Config(2.0)
    f = compile(lambda c, t: t * c.scale)
    results = [f(c, x()), f(c, x(seed=1))]
    c.scale = 3.0
    return [*results, f(c, x())]


@case
def data_class_result(compile):
    @dataclasses.dataclass
    class Output:
        value: object

    f = compile(lambda t: Output(t * 2))
    return [f(x(seed=i)).value for i in range(3)]


@case
def keyword_arguments_in_any_order(compile):
    f = compile(lambda a, *, b, c=2.0: a * b + c)
    return [f(x(), b=x(seed=1)), f(x(), c=3.0, b=x(seed=1)), f(b=x(seed=2), a=x(), c=3.0), f(a=x(), b=x())]


@case
def defaults_and_variable_arguments(compile):
    def f(a, scale=2.0, *rest, shift=1.0, **more):
        return a * scale + shift + sum(rest, lucid.zeros(3)) + more.get("extra", 0)

    c = compile(f)
    return [c(x()), c(x(), 3.0), c(x(), 3.0, x(seed=1)), c(x(), 2.0, x(), x(), extra=x(seed=4)), c(x(), shift=2)]


@case
def a_default_that_is_mutable(compile):
    def f(a, scales=[1.0]):  # noqa: B006
        return a * scales[0]

    c = compile(f)
    results = [c(x()), c(x())]
    f.__defaults__[0][0] = 5.0
    return [*results, c(x())]


@case
def numbers_that_are_equal_but_not_the_same(compile):
    f = compile(lambda t, n: t * n)
    ints = lucid.arange(3)
    return [f(ints, n) for n in (1, True, 1.0, 0.0, -0.0, float("nan"), 1, 1j)] + [1 / f(x(), n) for n in (0.0, -0.0, 0)]


@case
def none_and_optional_arguments(compile):
    f = compile(lambda a, b=None: a if b is None else a + b)
    return [f(x()), f(x(), None), f(x(), x(seed=1)), f(x(seed=2), b=None), f(x(seed=3), x())]


@case
def the_same_tensor_twice(compile):
    f = compile(lambda a, b: (a is b, a * b))
    a = x()
    return [f(a, x(seed=1)), f(a, a), f(a, a.clone()), f(x(seed=2), a)]


@case
def strings_enums_dtypes_slices(compile):
    class Kind(enum.Enum):
        ADD = 1
        MUL = 2

    def f(t, kind, how, dtype, part):
        y = t + 2 if kind is Kind.ADD else t * 2
        return (y.sin() if how == "sin" else y).to(dtype)[part]

    c = compile(f)
    return [
        c(x(), k, h, d, s)
        for k, h, d, s in itertools.product(Kind, ("sin", "cos"), (lucid.float32, lucid.float64), (slice(1), slice(1, None)))
    ]


@case
def shapes_in_and_out(compile):
    f = compile(lambda t: (t.shape, t.dtype, len(t), t.sum(), t.numel()))
    return [f(lucid.ones(n)) for n in (2, 3, 2)]


@runs_eagerly
def generator_arguments(compile):
    f = compile(lambda items: sum(items))
    return [f(x(seed=i) for i in range(k)) for k in (2, 2, 3)]


@case
def sets_in_arguments(compile):
    names = {"a"}
    f = compile(lambda t, s: t * len(s))
    results = [f(x(), names), f(x(), names)]
    names.add("b")
    return [*results, f(x(), names)]


@runs_eagerly
def numpy_arrays_in_arguments(compile):
    import numpy as np

    a = np.ones(3, np.float32)
    f = compile(lambda t, a: t + lucid.tensor(a))
    results = [f(x(), a), f(x(), a)]
    a[:] = 5
    return [*results, f(x(), a)]


# --- what a function reads ---
@case
def globals_that_change(compile):
    global FACTOR
    f = compile(lambda t: t * FACTOR + TABLE["a"] + len(SEEN) + len(WORDS[0]))
    results = [f(x()), f(x())]
    FACTOR = 3.0
    results.append(f(x()))
    TABLE["a"] = 7.0
    results.append(f(x()))
    SEEN.add(2)
    results.append(f(x()))
    WORDS[0] = "long"
    results.append(f(x()))
    FACTOR, TABLE["a"], WORDS[0] = 2.0, 1.0, "x"
    SEEN.discard(2)
    return results


@runs_eagerly
def a_global_deque(compile):
    f = compile(lambda t: t * QUEUE[0])
    results = [f(x()), f(x())]
    QUEUE[0] = 4.0
    results.append(f(x()))
    QUEUE[0] = 1.0
    return results


@case
def a_closure_that_changes(compile):
    scale = 1.0

    def f(t):
        return t * scale

    c = compile(f)
    results = []
    for k in range(4):
        scale = float(k // 2)
        results.append(c(x(seed=k)))
    return results


@case
def closures_of_one_code(compile):
    def make(k):
        return compile(lambda t: t * k)

    return [make(k)(x()) for k in range(4)]


@case
def functions_called_inside(compile):
    def helper(t, k=[2.0]):  # noqa: B006
        return t * k[0]

    box = [helper]
    f = compile(lambda t: box[0](t) + 1)
    results = [f(x()), f(x())]
    helper.__defaults__[0][0] = 9.0
    results.append(f(x()))
    box[0] = lambda t: t - 5
    return [*results, f(x()), f(x())]


@case
def decorators(compile):
    def doubled(g):
        @functools.wraps(g)
        def inner(*args, **kwargs):
            return 2 * g(*args, **kwargs)

        return inner

    @compile
    @doubled
    def f(t, k=1):
        return t * k

    @doubled
    @compile
    def g(t, k=1):
        return t * k

    return [h(x(seed=i), k) for h in (f, g) for i in range(3) for k in (1, 2)]


@case
def recursion(compile):
    def power(t, n):
        return t if n == 0 else power(t, n - 1) * t

    c = compile(power)
    return [c(x(seed=i), n) for n in (3, 0, 5) for i in range(2)]


@case
def loops_and_comprehensions(compile):
    def f(ts, n):
        total = lucid.zeros(3)
        for i, t in enumerate(ts):
            total = total + t * i
        return total + sum([t for t in ts if t.shape[0] == 3]) + [k * ts[0] for k in range(n)][-1]

    c = compile(f)
    return [c([x(seed=i) for i in range(k)], n) for k, n in ((2, 1), (2, 1), (3, 2), (2, 2))]


@case
def generators_inside(compile):
    def rows(t):
        for i in range(len(t)):
            yield t[i] * i

    c = compile(lambda t: lucid.stack(list(rows(t))))
    return [c(x(n)) for n in (3, 3, 4)]


@runs_eagerly
def exceptions_inside(compile):
    def f(t):
        try:
            return t + lucid.ones(7)
        except RuntimeError:
            return t * 2

    c = compile(f)
    return [c(x(seed=i)) for i in range(3)] + [c(x(7)), c(x(7))]


@case
def exceptions_that_leave(compile):
    c = compile(lambda t: t.view(2, 2) * 2)
    results = []
    for n in (4, 3, 4, 4):
        try:
            results.append(c(x(n)))
        except RuntimeError as error:
            results.append(type(error).__name__)
    return results


@case
def objects_with_attributes(compile):
    class Model:
        def __init__(self):
            self.w, self.k, self.parts = x(), 2.0, [1.0, {"deep": 3.0}]

        def __call__(self, t):
            return t * self.w * self.k + self.parts[1]["deep"]

    m = Model()
    c = compile(m)
    results = [c(x()), c(x())]
    m.k = 5.0
    results.append(c(x()))
    m.w = x(seed=3)
    results.append(c(x()))
    m.parts[1]["deep"] = 8.0
    return [*results, c(x())]


@case
def properties_class_attributes_and_slots(compile):
    class Thing:
        factor = 2.0
        __slots__ = ("shift",)

        @property
        def both(self):
            return self.factor + self.shift

    t = Thing()
    t.shift = 1.0
    f = compile(lambda v: v * t.both)
    results = [f(x()), f(x())]
    t.shift = 4.0
    results.append(f(x()))
    Thing.factor = 10.0
    return [*results, f(x())]


@case
def methods_compiled_in_a_class(compile):
    class Thing:
        def __init__(self, k):
            self.k = k

        @compile
        def scaled(self, t):
            return t * self.k

    a, b = Thing(2.0), Thing(3.0)
    results = [a.scaled(x()), b.scaled(x()), a.scaled(x())]
    a.k = 7.0
    return [*results, a.scaled(x()), b.scaled(x())]


@case
def partial_functions_and_simple_namespaces(compile):
    space = types.SimpleNamespace(k=2.0)
    f = compile(functools.partial(lambda k, t: t * k * space.k, 3.0))
    results = [f(x()), f(x())]
    space.k = 4.0
    return [*results, f(x())]


@case
def big_lists(compile):
    numbers = [1.0] * 1000
    f = compile(lambda t: t * numbers[700])
    results = [f(x()), f(x())]
    numbers[700] = 3.0
    return [*results, f(x())]


@case
def deep_objects(compile):
    box = {"a": {"b": {"c": {"d": {"e": {"f": [2.0]}}}}}}
    f = compile(lambda t: t * box["a"]["b"]["c"]["d"]["e"]["f"][0])
    results = [f(x()), f(x())]
    box["a"]["b"]["c"]["d"]["e"]["f"][0] = 3.0
    return [*results, f(x())]


# --- what a function does to Python ---
@runs_eagerly
def counting_calls(compile):
    count = [0]

    def f(t):
        count[0] += 1
        return t * count[0]

    c = compile(f)
    return [c(x()) for _ in range(4)] + [count[0]]


@runs_eagerly
def nonlocal_variables(compile):
    n = 0

    def f(t):
        nonlocal n
        n += 1
        return t + n

    c = compile(f)
    return [c(x()) for _ in range(3)] + [n]


@runs_eagerly
def writing_an_argument_list(compile):
    out = []

    def f(t, out):
        out.append(t * 2)
        return t

    c = compile(f)
    for i in range(3):
        c(x(seed=i), out)
    return out


@runs_eagerly
def backward_inside(compile):
    w = lucid.ones(3, requires_grad=True)

    def f(t):
        loss = (w * t).sum()
        loss.backward()
        return loss.detach()

    c = compile(f)
    return [c(x(seed=i)) for i in range(3)] + [w.grad]


@case
def gradients_inside(compile):
    def f(t):
        t = t.detach().requires_grad_()
        return lucid.autograd.grad((t**3).sum(), t)[0]

    c = compile(f)
    return [c(x(seed=i)) for i in range(3)]


@runs_eagerly
def optimizers_inside(compile):
    w = nn.Parameter(lucid.ones(3))
    optimizer = lucid.optim.SGD([w], lr=0.1, momentum=0.9)

    def f(t):
        optimizer.zero_grad()
        loss = ((w - t) ** 2).sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    c = compile(f)
    return [c(x(seed=i)) for i in range(4)] + [w.detach(), w.grad]


@runs_eagerly
def setting_a_seed(compile):
    def f(t):
        lucid.manual_seed(3)
        return t + lucid.rand(3)

    c = compile(f)
    return [c(x()) for _ in range(3)]


@case
def local_objects(compile):
    class Box:
        pass

    def f(t):
        box, items = Box(), []
        box.t = t
        items.append(box.t * 2)
        return items.pop()

    c = compile(f)
    return [c(x(seed=i)) for i in range(3)]


# --- compiled functions and transforms ---
@case
def compiled_inside_compiled(compile):
    scale = [2.0]
    inner = compile(lambda t: t.sin() * scale[0])
    outer = compile(lambda t: inner(t) + inner(t + 1))
    results = [outer(x(seed=i)) for i in range(2)] + [inner(x())]
    scale[0] = 4.0
    return [*results, outer(x()), inner(x()), inner(x())]


@case
def vmap_around_and_inside(compile):
    f = compile(lambda r: r.sin().sum() + r)
    g = compile(lambda m: lucid.vmap(lambda r: r * r.sum())(m))
    m = x(6).view(2, 3)
    return [lucid.vmap(f)(m) for _ in range(3)] + [g(m + i) for i in range(3)]


@case
def grad_transform_around_and_inside(compile):
    f = compile(lambda t: (t**3).sum())
    g = compile(lambda t: lucid.func.grad(lambda u: (u**3).sum())(t))
    return [lucid.func.grad(f)(x(seed=i)) for i in range(3)] + [g(x(seed=i)) for i in range(3)]


@case
def jacobians_around_and_inside(compile):
    f = compile(lambda t: t.sin() * t)
    g = compile(lambda t: lucid.func.jacrev(lambda u: u.sin() * u)(t))
    return [lucid.func.jacrev(f)(x(seed=i)) for i in range(3)] + [g(x(seed=i)) for i in range(3)]


@case
def forward_mode_around_and_inside(compile):
    f = compile(lambda t: t.sin() * t)
    g = compile(lambda t: lucid.func.jvp(lambda u: u.sin() * u, (t,), (lucid.ones(3),))[1])
    return [lucid.func.jvp(f, (x(seed=i),), (lucid.ones(3),)) for i in range(3)] + [g(x(seed=i)) for i in range(3)]


@case
def functional_call_around(compile):
    net = nn.Linear(3, 2)
    with lucid.no_grad():
        for p in net.parameters():
            p.fill_(0.5)
    compiled = compile(net)
    other = {"weight": x(6).view(2, 3), "bias": lucid.zeros(2)}
    results = [compiled(x()).detach(), compiled(x()).detach()]
    return results + [lucid.func.functional_call(compiled, other, (x(),)).detach() for _ in range(2)] + [compiled(x()).detach()]


class Scaled(lucid.autograd.Function):
    @staticmethod
    def forward(ctx, t, k):
        ctx.save_for_backward(t)
        ctx.k = k
        return t * k

    @staticmethod
    def backward(ctx, g):
        (t,) = ctx.saved_tensors
        return g * ctx.k + t * 0.5, None


@case
def custom_functions(compile):
    f = compile(lambda t, k: Scaled.apply(t, k).sin())
    results = []
    for i, k in enumerate((2.0, 2.0, 3.0, 2.0)):
        t = x(seed=i).requires_grad_()
        f(t, k).sum().backward()
        results.append(t.grad)
    return results


@case
def checkpoints(compile):
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Dropout(0.5))
    with lucid.no_grad():
        net[0].weight.copy_(x(9).view(3, 3))
        net[0].bias.zero_()
    f = compile(lambda t: lucid.utils.checkpoint.checkpoint(net, t, use_reentrant=False).sin())
    results = []
    for i in range(4):
        lucid.manual_seed(i)
        t = x(seed=i).requires_grad_()
        net.zero_grad()
        f(t).sum().backward()
        results += [t.grad, net[0].weight.grad]
    return results


@case
def tensor_hooks(compile):
    seen = []

    def f(t):
        y = t * 2
        if y.requires_grad:
            y.register_hook(lambda g: g * 10)
        return y.sin()

    c = compile(f)
    for i in range(3):
        t = x(seed=i).requires_grad_()
        t.register_hook(lambda g: seen.append(g.clone()))
        c(t).sum().backward()
        seen.append(t.grad)
    return seen


@runs_eagerly
def hooks_of_parameters(compile):
    w, results = lucid.ones(3, requires_grad=True), []
    c = compile(lambda t: t * w)
    w.register_hook(lambda g: g * 10)
    for i in range(3):
        w.grad = None
        c(x(seed=i)).sum().backward()
        results.append(w.grad)
    return results


@case
def hooks_of_parameters_that_come_later(compile):
    w, results = lucid.ones(3, requires_grad=True), []
    c = compile(lambda t: t * w)
    for i in range(4):
        if i == 2:
            w.register_hook(lambda g: g * 10)
        w.grad = None
        c(x(seed=i)).sum().backward()
        results.append(w.grad)
    return results


@case
def module_hooks(compile):
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    with lucid.no_grad():
        net[0].weight.copy_(x(9).view(3, 3))
        net[0].bias.zero_()
    c = compile(net)
    results = [c(x()).detach(), c(x()).detach()]
    handle = net[1].register_forward_hook(lambda m, i, o: o * 10)
    results += [c(x()).detach(), c(x()).detach()]
    handle.remove()
    return [*results, c(x()).detach()]


@case
def modules_that_change(compile):
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    with lucid.no_grad():
        net[0].weight.copy_(x(9).view(3, 3))
        net[0].bias.zero_()
    c = compile(net)
    results = [c(x()).detach(), c(x()).detach()]
    net[1] = nn.Tanh()
    results.append(c(x()).detach())
    net.append(nn.Sigmoid())
    results.append(c(x()).detach())
    net.double()
    results.append(c(x().double()).detach())
    net[0].weight.requires_grad_(False)
    results.append(c(x().double()).requires_grad)
    net.requires_grad_(False)
    return [*results, c(x().double()).requires_grad, c(x().double()).requires_grad]


@case
def contexts_inside(compile):
    def f(t):
        with lucid.no_grad():
            a = t * 2
        with lucid.autocast("cpu", dtype=lucid.bfloat16):
            b = t[None] @ t[:, None]
        return a, b, a.requires_grad

    c = compile(f)
    return [c(x(seed=i).requires_grad_()) for i in range(3)]


@case
def default_dtypes(compile):
    f = compile(lambda t: t + lucid.ones(3))
    results = [f(lucid.ones(3, dtype=lucid.int64)).dtype]
    lucid.set_default_dtype(lucid.float64)
    try:
        results.append(f(lucid.ones(3, dtype=lucid.int64)).dtype)
    finally:
        lucid.set_default_dtype(lucid.float32)
    return [*results, f(lucid.ones(3, dtype=lucid.int64)).dtype]


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v)]
    if isinstance(value, dict):
        return [leaf for k, v in value.items() for leaf in (k, *leaves(v))]
    return [value]


def same(a, b):
    if isinstance(a, lucid.Tensor):
        return isinstance(b, lucid.Tensor) and difference(a, b) is None and a.requires_grad == b.requires_grad
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("name", CASES)
def test_python_around_calls(name):
    made = []

    def compile(f):
        made.append(lucid.compile(f))
        return made[-1]

    lucid.manual_seed(0)
    expected = leaves(CASES[name](lambda f: f))
    lucid.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = leaves(CASES[name](compile))
    assert len(found) == len(expected)
    for i, (a, b) in enumerate(zip(found, expected)):
        assert same(a, b), (i, a, b, [c.explain() for c in made])
    eager = [c.explain() for c in made if "eagerly" in c.explain()]
    assert name in EAGER or not eager, eager


def test_a_collection_during_the_trace_is_no_part_of_the_function():
    noted = []

    def callback(phase, info):
        noted.append(phase)

    def wasteful(x):
        for _ in range(2000):
            cycle = []
            cycle.append(cycle)
        return x + 1

    gc.callbacks.append(callback)
    try:
        compiled = lucid.compile(wasteful, fullgraph=True)
        assert compiled(lucid.ones(2)).tolist() == compiled(lucid.ones(2)).tolist() == [2, 2]
        assert gc.isenabled()
    finally:
        gc.callbacks.remove(callback)
