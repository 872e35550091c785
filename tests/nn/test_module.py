"""What nn.Module does, beside PyTorch's: the same program with both libraries gives the same data or the same kind of error."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest
import torch

import lucid
from tests.nn.programs import attempt

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def net(m):
    class Inner(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = m.nn.Parameter(m.tensor([1.0, 2.0]))
            self.register_buffer("seen", m.zeros(2))
            self.register_buffer("aside", m.ones(1), persistent=False)

        def forward(self, x, scale=1.0):
            return x * self.weight * scale

    class Outer(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
            self.twice = self.inner
            self.bias = m.nn.Parameter(m.tensor([0.5, -0.5]))
            self.register_parameter("missing", None)
            self.nothing = None

        def forward(self, x, scale=1.0):
            return self.inner(x, scale=scale) + self.bias

    return Outer()


def names(pairs):
    return [name for name, _ in pairs]


@program
def walks(m):
    n = net(m)
    return [
        names(n.named_parameters()), names(n.named_parameters(remove_duplicate=False)), names(n.named_parameters("p", False)),
        names(n.named_buffers()), names(n.named_modules()), names(n.named_modules(prefix="x", remove_duplicate=False)),
        names(n.named_children()), len(list(n.modules())), len(list(n.children())), list(n.parameters()), list(n.buffers()),
    ]  # fmt: skip


@program
def state(m):
    n = net(m)
    kept = n.state_dict(keep_vars=True)
    return [n.state_dict(), n.state_dict(prefix="a."), kept, kept["bias"] is n.bias, dict(n.state_dict()._metadata), repr(n)]


@program
def loading(m):
    n, other = net(m), net(m)
    given = {k: v + 1 for k, v in other.state_dict().items()}
    result = n.load_state_dict(given)
    short = {k: v for k, v in given.items() if k != "bias"} | {"more": m.ones(1), "inner.more.x": m.ones(2)}
    loose = n.load_state_dict(short, strict=False)
    return [n.state_dict(), list(result), repr(result), [sorted(k) for k in loose]]


for _name, _change in {
    "missing": lambda m, s: s.pop("bias"),
    "unexpected": lambda m, s: s.update(more=m.ones(1)),
    "unexpected_inside": lambda m, s: s.update({"inner.weight.deeper": m.ones(1)}),
    "size": lambda m, s: s.update(bias=m.ones(3)),
    "kind": lambda m, s: s.update(bias=[1.0, 2.0]),
}.items():

    def _load(m, change=_change):
        n = net(m)
        s = n.state_dict()
        change(m, s)
        try:
            return n.load_state_dict(s)
        except RuntimeError as error:
            lines = str(error).split("\n\t")
            return [lines[0], len(lines), "size mismatch for bias" in str(error), "Missing key(s)" in str(error), n.bias]

    PROGRAMS[f"loading_{_name}"] = _load


@program
def load_not_a_dict(m):
    return net(m).load_state_dict([1])


@program
def assigning(m):
    n = net(m)
    given = OrderedDict((k, v.double()) for k, v in n.state_dict().items())
    n.load_state_dict(given, assign=True)
    return [n.state_dict(), n.bias.data_ptr() == given["bias"].data_ptr(), isinstance(n.bias, m.nn.Parameter)]


@program
def attributes(m):
    n = net(m)
    n.extra = m.ones(1)
    n.inner.seen = m.ones(2)
    n.bias = None
    n.late = m.nn.Parameter(m.zeros(1))
    n.late_module = m.nn.Module()
    had = [hasattr(n, "late"), "late" in n._parameters, "extra" in n.__dict__, "bias" in n._parameters, n.bias]
    del n.late, n.late_module
    n.number = 3
    n.number = m.nn.Parameter(m.ones(1))
    n.inner = m.nn.Linear(1, 1, bias=False)
    n.nothing = m.nn.Module()
    return [
        *had,
        hasattr(n, "late"),
        "number" in n.__dict__,
        "nothing" in n.__dict__,
        n.inner.seen if hasattr(n.inner, "seen") else "gone",
    ]


for _name, _do in {
    "parameter_from_tensor": lambda m, n: setattr(n, "bias", m.ones(2)),
    "module_from_number": lambda m, n: setattr(n, "inner", 3),
    "buffer_from_number": lambda m, n: setattr(n.inner, "seen", 3),
    "no_such_attribute": lambda m, n: n.nonsense,
    "no_such_to_delete": lambda m, n: delattr(n, "nonsense"),
    "name_with_dot": lambda m, n: n.register_parameter("a.b", None),
    "empty_name": lambda m, n: n.register_buffer("", None),
    "name_is_taken": lambda m, n: n.register_buffer("forward", None),
    "name_not_a_string": lambda m, n: n.register_buffer(3, None),
    "parameter_of_wrong_type": lambda m, n: n.register_parameter("p", m.ones(1)),
    "buffer_of_wrong_type": lambda m, n: n.register_buffer("p", 1.0),
    "parameter_not_leaf": lambda m, n: n.register_parameter("p", m.nn.Parameter(m.ones(1)) * 2),
    "module_of_wrong_type": lambda m, n: n.add_module("x", m.ones(1)),
    "not_implemented": lambda m, n: m.nn.Module()(3),
    "too_many_arguments": lambda m, n: m.nn.Module(3),
    "unknown_argument": lambda m, n: m.nn.Module(x=3),
    "train_with_number": lambda m, n: n.train(1.5),
    "to_integers": lambda m, n: n.to(m.int32),
    "to_nonsense": lambda m, n: n.to(colour=3),
    "get_submodule": lambda m, n: n.get_submodule("inner.weight"),
    "get_parameter": lambda m, n: n.get_parameter("inner.seen"),
    "get_buffer": lambda m, n: n.get_buffer("bias"),
    "get_nothing": lambda m, n: n.get_parameter("inner.nonsense"),
    "set_submodule": lambda m, n: n.set_submodule("inner.weight", m.nn.Module()),
    "set_submodule_unnamed": lambda m, n: n.set_submodule("", m.nn.Module()),
}.items():
    PROGRAMS[f"refused_{_name}"] = lambda m, do=_do: do(m, net(m))


@program
def before_init(m):
    class Early(m.nn.Module):
        def __init__(self):
            self.weight = m.nn.Parameter(m.ones(1))
            super().__init__()

    return Early()


@program
def module_before_init(m):
    class Early(m.nn.Module):
        def __init__(self):
            self.inner = m.nn.Module()
            super().__init__()

    return Early()


@program
def call_without_init(m):
    class Never(m.nn.Module):
        def __init__(self):
            pass

        def forward(self, x):
            return x

    return Never()(3)


@program
def dotted_access(m):
    n = net(m)
    n.set_submodule("inner.more", m.nn.Identity())
    return [
        n.get_parameter("inner.weight"),
        n.get_buffer("inner.seen"),
        repr(n.get_submodule("inner")),
        n.get_submodule("") is n,
    ]


@program
def moves(m):
    n = net(m)
    n(m.ones(2)).sum().backward()
    p = n.bias
    n.double()
    d = [n.bias, n.bias.grad, n.bias is p, n.inner.seen]
    n.to(m.float32)
    n.half().float()
    n.to("cpu", m.float64, True)
    n.to(m.ones(1, dtype=m.float32))
    n.type(m.float64)
    return [*d, n.bias, n.inner.seen, n.requires_grad_(False).bias, [p.requires_grad for p in n.parameters()]]


@program
def gradients(m):
    n = net(m)
    n(m.ones(2), scale=3.0).sum().backward()
    first = [p.grad.clone() for p in n.parameters()]
    n.zero_grad(set_to_none=False)
    zeros = [p.grad for p in n.parameters()]
    n.zero_grad()
    return [first, zeros, [p.grad for p in n.parameters()]]


@program
def training(m):
    n = net(m).eval()
    modes = [x.training for x in n.modules()]
    n.inner.train()
    return [modes, [x.training for x in n.modules()], n.train().training, n.inner.training]


@program
def applied(m):
    seen = []
    net(m).apply(lambda x: seen.append(type(x).__name__))
    return seen


@program
def forward_hooks(m):
    n, seen = net(m), []

    def note(name, result=None):
        def hook(*args):
            seen.append((name, len(args)))
            return result(*args) if result else None

        return hook

    everywhere = (m.nn.modules.module if m is torch else m.nn).register_module_forward_hook
    handles = [
        n.register_forward_pre_hook(note("pre", lambda mod, args: (args[0] + 1,))),
        n.register_forward_pre_hook(note("pre kw", lambda mod, args, kw: (args, {"scale": 5.0})), with_kwargs=True),
        n.register_forward_pre_hook(note("pre single", lambda mod, args: args[0] * 2), prepend=True),
        n.register_forward_hook(note("post", lambda mod, args, out: out * 10)),
        n.register_forward_hook(note("post kw"), with_kwargs=True, prepend=True),
        everywhere(note("global")),
    ]  # fmt: skip
    first = n(m.ones(2), scale=2.0)
    for h in handles:
        h.remove()
    seen.append("removed")
    return [first, n(m.ones(2)), seen, len(n._forward_hooks)]


@program
def always_called(m):
    class Bad(m.nn.Module):
        def forward(self, x):
            raise ArithmeticError

    seen, bad = [], Bad()
    bad.register_forward_hook(lambda mod, args, out: seen.append("plain"))
    bad.register_forward_hook(lambda mod, args, out: seen.append("always"), always_call=True)
    with pytest.raises(ArithmeticError):
        bad(1)
    return seen


@program
def bad_pre_hook(m):
    n = net(m)
    n.register_forward_pre_hook(lambda mod, args, kw: 3, with_kwargs=True)
    return n(m.ones(2))


@program
def backward_hooks(m):
    n, seen = net(m), []
    n.register_full_backward_pre_hook(lambda mod, go: seen.append(("pre", go)) or (go[0] * 2,))
    n.register_full_backward_hook(lambda mod, gi, go: seen.append(("post", gi, go)) or (gi[0] * 3,))
    x = m.ones(2, requires_grad=True)
    n(x).sum().backward()
    return [seen, x.grad, [p.grad for p in n.parameters()]]


@program
def backward_hooks_without_input_grad(m):
    n, seen = net(m), []
    n.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
    n(m.ones(2)).sum().backward()
    return [seen, [p.grad for p in n.parameters()]]


@program
def backward_hook_returns_too_many(m):
    n = net(m)
    n.register_full_backward_hook(lambda mod, gi, go: (gi[0], gi[0]))
    n(m.ones(2, requires_grad=True)).sum().backward()


@program
def backward_hooks_of_tuples(m):
    class Two(m.nn.Module):
        def forward(self, x, y, n):
            return x * y, n, y.detach()

    two, seen = Two(), []
    two.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go)))
    x, y = m.ones(2, requires_grad=True), m.full((2,), 3.0)
    two(x, y, 4)[0].sum().backward()
    return [seen, x.grad]


@program
def state_hooks(m):
    n, seen = net(m), []
    n.register_state_dict_pre_hook(lambda mod, prefix, keep: seen.append(("pre", prefix, keep)))
    n.register_state_dict_post_hook(lambda mod, s, prefix, meta: s.update(added=m.ones(1)))
    n._register_state_dict_hook(lambda mod, s, prefix, meta: OrderedDict((k.upper(), v) for k, v in s.items()))
    n.register_load_state_dict_pre_hook(lambda mod, s, prefix, *rest: seen.append(("load", prefix, sorted(s))))
    n.register_load_state_dict_post_hook(lambda mod, keys: keys.missing_keys.clear())
    result = n.load_state_dict(
        {"inner.weight": m.zeros(2), "inner.seen": m.ones(2), "twice.weight": m.ones(2), "twice.seen": m.ones(2)}, strict=True
    )
    return [list(n.state_dict()), seen, list(result), n.inner.weight]


@program
def extra_state(m):
    class Extra(m.nn.Module):
        kept = 3

        def get_extra_state(self):
            return {"kept": self.kept}

        def set_extra_state(self, state):
            self.kept = state["kept"]

    a, b = Extra(), Extra()
    a.kept = 7
    s = m.nn.Sequential(a).state_dict()
    m.nn.Sequential(b).load_state_dict(s)
    return [b.kept, dict(s)]


@program
def no_extra_state(m):
    return m.nn.Module().get_extra_state()


@program
def sequential(m):
    s = m.nn.Sequential(m.nn.Identity(), m.nn.ReLU(), m.nn.Tanh())
    s.append(m.nn.Sigmoid()).insert(1, m.nn.ELU())
    del s[0]
    s[0] = m.nn.SELU()
    popped = s.pop(1)
    both = s + m.nn.Sequential(m.nn.Identity())
    named = m.nn.Sequential(OrderedDict(a=m.nn.ReLU(), b=m.nn.Tanh()))
    s *= 2
    return [repr(s), repr(popped), repr(both), repr(s[1:3]), repr(s[-1]), repr(named), repr(named[1]), len(s), repr(2 * named),
            list(named._modules), list(dict(named[:1].named_modules()))]  # fmt: skip


@program
def module_list(m):
    x = m.nn.ModuleList([m.nn.Identity(), m.nn.Identity(), m.nn.ReLU()])
    x += [m.nn.ReLU()]
    x.extend([m.nn.Tanh()]).append(m.nn.Tanh())
    x.insert(0, m.nn.ELU())
    del x[1:3]
    return [
        repr(x),
        len(x),
        repr(x[1:]),
        repr(x + [m.nn.SELU()]),
        repr(x.pop(-1)),
        [type(i).__name__ for i in x],
        repr(m.nn.ModuleList()),
    ]


@program
def module_dict(m):
    d = m.nn.ModuleDict({"a": m.nn.ReLU(), "b": m.nn.Tanh()})
    d.update([("c", m.nn.ELU()), ("a", m.nn.Identity())])
    popped = d.pop("b")
    return [repr(d), list(d), "c" in d, len(d), repr(popped), list(d.keys()), [repr(v) for v in d.values()], d.clear(), len(d)]


@program
def parameter_containers(m):
    p = m.nn.ParameterList([m.nn.Parameter(m.ones(2)), m.zeros(2, 3), 5])
    p.append(m.ones(1)).extend([m.ones(2)])
    p[0] = m.zeros(4)
    d = m.nn.ParameterDict({"a": m.ones(2), "b": m.nn.Parameter(m.zeros(1))})
    d["c"] = 3
    joined = d | {"e": m.ones(2)}
    return [repr(p), len(p), list(p)[1], repr(p[1:3]), names(p.named_parameters()), repr(d), list(d), d.get("z", 1),
            sorted(joined.keys()),
            d.pop("a"), names(d.named_parameters()), d.setdefault("q", m.ones(1)), "q" in d, list(reversed(d)),
            d.popitem()[0], len(d)]  # fmt: skip


for _name, _do in {
    "sequential_index": lambda m: m.nn.Sequential(m.nn.ReLU())[3],
    "sequential_add": lambda m: m.nn.Sequential() + [m.nn.ReLU()],
    "list_index": lambda m: m.nn.ModuleList()[0],
    "list_extend": lambda m: m.nn.ModuleList().extend(3),
    "list_member": lambda m: m.nn.ModuleList([3]),
    "dict_pairs": lambda m: m.nn.ModuleDict([("a", m.nn.ReLU(), 3)]),
    "dict_key": lambda m: m.nn.ModuleDict()["a"],
    "list_call": lambda m: m.nn.ModuleList()(3),
    "parameters_index": lambda m: m.nn.ParameterList()[0],
    "parameters_call": lambda m: m.nn.ParameterList()(3),
    "parameters_key": lambda m: m.nn.ParameterDict({3: m.ones(1)}),
}.items():
    PROGRAMS[f"container_refuses_{_name}"] = _do


@program
def buffers_by_class(m):
    x = m.nn.Module()
    x.b = m.nn.Buffer(m.ones(2))
    x.c = m.nn.Buffer(m.ones(1), persistent=False)
    return [x.state_dict(), names(x.named_buffers()), type(x.b).__name__]


@program
def copies(m):
    n = m.nn.Sequential(m.nn.PReLU(), m.nn.Sequential(m.nn.PReLU(2)))
    n.tag = [1, 2]
    n[0].weight.grad = m.ones(1)
    results = []
    for other in (copy.deepcopy(n), pickle.loads(pickle.dumps(n)), copy.copy(n)):
        shares = other[0].weight.data_ptr() == n[0].weight.data_ptr()
        results.append([repr(other), other.tag, other.state_dict(), shares, other[0].weight.grad is None])
    return results


@program
def uninitialized(m):
    layer = m.nn.LazyLinear(3)
    before = [repr(layer), layer.has_uninitialized_params(), type(layer.weight).__name__, list(layer.state_dict())]
    layer.double()
    m.manual_seed(1)
    y = layer(m.ones(2, 5, dtype=m.float64))
    return [before, repr(layer), type(layer).__name__, layer.weight, (y * 1e6).round()]


@program
def uninitialized_modules(m):
    m.manual_seed(0)
    n = m.nn.Sequential(m.nn.LazyLinear(3), m.nn.ReLU(), m.nn.LazyBatchNorm1d(), m.nn.LazyLinear(2))
    hooks = [(len(layer._forward_pre_hooks), len(layer._load_state_dict_pre_hooks)) for layer in n]
    optimizer = m.optim.SGD(n.parameters(), 0.1)
    n(m.ones(4, 2)).sum().backward()
    optimizer.step()
    after = [(len(layer._forward_pre_hooks), len(layer._load_state_dict_pre_hooks)) for layer in n]
    return [hooks, after, repr(n), [tuple(p.shape) for p in optimizer.param_groups[0]["params"]]]


@program
def uninitialized_copies(m):
    results = []
    for other in (copy.deepcopy(m.nn.LazyConv2d(3, 2)), pickle.loads(pickle.dumps(m.nn.LazyConv2d(3, 2)))):
        other(m.ones(1, 2, 4, 4))
        results.append(repr(other))
    fresh = m.nn.LazyConv2d(3, 2)
    fresh.load_state_dict(other.state_dict())
    wide = m.nn.LazyLinear(3).double()
    wide.weight.materialize((3, 4))
    twice = m.nn.LazyLinear(3)
    twice.initialize_parameters(m.ones(1, 2))
    twice.initialize_parameters(m.ones(1, 5))
    return [results, repr(fresh), str(wide.weight.dtype), wide.weight.requires_grad, tuple(twice.weight.shape)]


@program
def old_checkpoints(m):
    bn = m.nn.BatchNorm1d(2)
    s = dict(bn.state_dict())
    del s["num_batches_tracked"]
    return [repr(bn.load_state_dict(s)), bn.num_batches_tracked]


@program
def old_checkpoint_of_instance_norm(m):
    return m.nn.InstanceNorm1d(2).load_state_dict({"running_mean": m.zeros(2), "running_var": m.zeros(2)})


@program
def parameters_are_tensors(m):
    p = m.nn.Parameter(m.ones(2))
    results = (p + 1, p.data, p.detach(), p.clone(), copy.deepcopy(p), p.double())
    return [[type(t).__name__ for t in results], repr(p), tuple(m.nn.Parameter().shape), m.nn.Parameter(m.ones(1), False)]


@program
def parameters_of_integers(m):
    return m.nn.Parameter(m.ones(2, dtype=m.int64))


@program
def uninitialized_loads(m):
    layer = m.nn.LazyLinear(3)
    layer.load_state_dict(m.nn.Linear(4, 3).state_dict())
    return [tuple(layer.weight.shape), repr(layer)]


for _name, _do in {
    "used": lambda m: m.nn.LazyLinear(3).weight + 1,
    "shape": lambda m: m.nn.LazyLinear(3).weight.shape,
    "numel": lambda m: m.nn.LazyLinear(3).weight.numel(),
    "dim": lambda m: m.nn.LazyLinear(3).weight.dim(),
    "tolist": lambda m: m.nn.LazyLinear(3).weight.tolist(),
    "len": lambda m: len(m.nn.LazyLinear(3).weight),
    "index": lambda m: m.nn.LazyLinear(3).weight[0],
    "float": lambda m: float(m.nn.LazyLinear(3).weight),
    "iteration": lambda m: list(m.nn.LazyLinear(3).weight),
    "item": lambda m: m.nn.LazyLinear(3).weight.item(),
    "assignment": lambda m: m.nn.LazyLinear(3).weight.__setitem__(0, 1.0),
    "backward": lambda m: m.nn.LazyLinear(3).weight.backward(),
    "numpy": lambda m: m.nn.LazyLinear(3).weight.numpy(),
    "stride": lambda m: m.nn.LazyLinear(3).weight.stride(),
    "pointer": lambda m: m.nn.LazyLinear(3).weight.data_ptr(),
    "buffer": lambda m: m.nn.LazyBatchNorm1d().running_mean + 1,
    "buffer_numel": lambda m: m.nn.LazyBatchNorm1d().running_mean.numel(),
    "plain_layer": lambda m: m.nn.Linear(2, 3).load_state_dict(m.nn.LazyLinear(3).state_dict()),
    "wrong_dims": lambda m: m.nn.LazyConv2d(3, 1)(m.ones(2, 2)),
    "shared": lambda m: m.nn.LazyLinear(3).share_memory(),
}.items():
    PROGRAMS[f"uninitialized_refuses_{_name}"] = _do


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    assert attempt(PROGRAMS[name], lucid) == attempt(PROGRAMS[name], torch)


def test_compile_in_place_returns_the_module():
    layer = lucid.nn.Linear(2, 2)
    assert layer.compile(fullgraph=True) is layer
    x = lucid.ones(1, 2)
    assert layer(x).equal(layer(x)) and layer.forward.cache_info().hits == 1


def test_getattr_can_be_overridden():
    class Wrapper(lucid.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

    w = Wrapper(lucid.nn.PReLU())
    assert w.num_parameters == 1 and w.weight is w.inner.weight
    with pytest.raises(AttributeError):
        w.nonsense  # noqa: B018


def test_modules_do_not_leak():
    n = lucid.nn.Sequential(lucid.nn.PReLU(), lucid.nn.PReLU())
    n.me = [n]
    n.register_forward_hook(lambda *args, kept=n: None)
    n(lucid.ones(2))
    ref = weakref.ref(n)
    del n
    gc.collect()
    assert ref() is None


def test_dicts_may_be_replaced():
    n = lucid.nn.PReLU()
    n(lucid.ones(1))
    n._forward_hooks = OrderedDict({0: lambda mod, args, out: out * 0 + 5})
    assert n(lucid.ones(1)).item() == 5
    n._parameters = {"weight": lucid.nn.Parameter(lucid.zeros(1))}
    assert n.weight.item() == 0
