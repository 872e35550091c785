"""nn.Module in its corners, beside PyTorch's: state dicts and what goes wrong with them, hooks of all kinds, copies, walks."""

import copy
import importlib
import io
import pickle
import warnings
import weakref
from collections import OrderedDict

import pytest
import torch

import lucid
from tests.nn.programs import assert_close, attempt
from tests.nn.test_module import names, net

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def hooks(m):
    return m.nn.modules.module if m is torch else m.nn


def said(do):
    """The class and the text of an error."""
    try:
        do()
    except Exception as error:  # noqa: BLE001 (whatever PyTorch raises is the specification)
        return [type(error).__mro__[-3].__name__ if type(error).__module__ != "builtins" else "builtin", str(error)]
    return "nothing"


# --- state dicts ------------------------------------------------------------------------------------------------------
@program
def state_dict_forms(m):
    n = net(m)
    into = OrderedDict()
    into._metadata = OrderedDict()
    same = n.state_dict(destination=into, prefix="a.") is into
    plain_dict = {}
    n.state_dict(destination=plain_dict)
    kept = n.state_dict(keep_vars=True)
    old = n.state_dict(OrderedDict(), "b.", True)
    metadata = {k: dict(v) for k, v in into._metadata.items()}
    return [same, list(into), metadata, list(plain_dict), hasattr(plain_dict, "_metadata"),
            [v.requires_grad for v in kept.values()], kept["inner.seen"] is n.inner.seen, list(old), old["b.bias"] is n.bias,
            n.state_dict()["bias"].requires_grad, n.state_dict()["bias"].data_ptr() == n.bias.data_ptr(),
            type(n.state_dict()).__name__]  # fmt: skip


@program
def names_in_the_module_of_modules(m):
    """Hooks of all modules are found where PyTorch has them."""
    here, seen = importlib.import_module(f"{m.__name__}.nn.modules.module"), []
    with here.register_module_parameter_registration_hook(lambda module, name, p: seen.append(name)):
        layer = m.nn.Linear(1, 1)
    with here.register_module_forward_pre_hook(lambda module, args: seen.append("called")):
        layer(m.ones(1))
    return seen


@program
def modules_as_often_as_used(m):
    layer = m.nn.Linear(1, 1)
    return [len(list(m.nn.Sequential(layer, layer).modules(remove_duplicate=once))) for once in (True, False)]


@program
def merged_masks(m):
    attention, x = m.nn.MultiheadAttention(4, 2), m.ones(2, 3, 4)
    mask, padding = m.ones(3, 3), m.zeros(2, 3)
    both = [(None, None), (None, padding), (mask, None), (mask, padding), (m.ones(4, 3, 3), padding)]
    return [attention.merge_masks(*masks, x) for masks in both]


@program
def versions(m):
    class Old(m.nn.Module):
        _version = 3
        seen = []

        def __init__(self):
            super().__init__()
            self.w = m.nn.Parameter(m.ones(1))

        def _load_from_state_dict(self, state, prefix, meta, *rest):
            self.seen.append((prefix, meta.get("version"), meta.get("assign_to_params_buffers")))
            super()._load_from_state_dict(state, prefix, meta, *rest)

    n = m.nn.Sequential(Old(), m.nn.Sequential(Old()), m.nn.BatchNorm1d(1))
    s = n.state_dict()
    n.load_state_dict(s)
    n.load_state_dict(dict(s))
    n.load_state_dict(s, assign=True)
    return [dict(s._metadata), Old.seen]


LOADS = {
    "missing": lambda m, s: s.pop("bias"),
    "two_missing": lambda m, s: (s.pop("bias"), s.pop("inner.weight")),
    "unexpected": lambda m, s: s.update(more=m.ones(1)),
    "both": lambda m, s: (s.pop("bias"), s.update({"more": m.ones(1), "inner.x.y": m.ones(1)})),
    "aside": lambda m, s: s.update({"inner.aside": m.zeros(1)}),
    "size": lambda m, s: s.update(bias=m.ones(3)),
    "sizes_and_missing": lambda m, s: (s.update({"bias": m.ones(3), "inner.seen": m.ones(1, 2)}), s.pop("twice.weight")),
    "kind": lambda m, s: s.update(bias=3.0),
    "none": lambda m, s: s.update(bias=None),
    "scalar": lambda m, s: s.update(bias=m.tensor(3.0)),
    "dtype": lambda m, s: s.update(bias=m.tensor([5, 6])),
    "deeper": lambda m, s: s.update({"bias.more": m.ones(1)}),
    "module_name": lambda m, s: s.update({"inner": m.ones(1)}),
    "extra_state": lambda m, s: s.update({"inner._extra_state": m.ones(1)}),
    "order": lambda m, s: [s.move_to_end(k, last=False) for k in list(s)],
}
for _name, _change in LOADS.items():
    for _strict in (True, False):
        for _assign in (True, False):

            def _load(m, change=_change, strict=_strict, assign=_assign):
                n = net(m)
                s = OrderedDict((k, v + 1) for k, v in n.state_dict().items())
                change(m, s)
                result = []
                text = said(lambda: result.append(n.load_state_dict(s, strict=strict, assign=assign)))
                text = text if isinstance(text, str) else text[1].partition("an exception occurred")[0]
                return [text, [sorted(k) for r in result for k in r], n.state_dict(), n.inner.aside]

            PROGRAMS[f"load_{_name}_{'strict' if _strict else 'loose'}_{'assign' if _assign else 'copy'}"] = _load


@program
def loading_keeps_objects(m):
    n = net(m)
    held = [n.bias, n.inner.seen]
    n.bias.requires_grad_(False)
    n.load_state_dict({k: v.double() for k, v in n.state_dict().items()})
    copied = [n.bias is held[0], n.inner.seen is held[1], n.bias.dtype is m.float32, n.bias.requires_grad]
    given = {k: m.nn.Parameter(v.double()) if v.is_floating_point() else v for k, v in n.state_dict().items()}
    n.load_state_dict(given, assign=True)
    return [copied, n.bias is given["bias"], n.bias.requires_grad, n.inner.weight.requires_grad, type(n.inner.seen).__name__,
            str(n.bias.dtype)]  # fmt: skip


@program
def loading_metadata_is_not_changed(m):
    n = net(m)
    s = n.state_dict()
    n.load_state_dict(s, assign=True)
    keys = list(s)
    n.load_state_dict(s)
    return [keys == list(s), list(s._metadata)]


@program
def state_hooks_inside(m):
    n, seen = net(m), []
    n.inner.register_state_dict_pre_hook(lambda mod, prefix, keep: seen.append(("pre", prefix, keep)))
    n.inner.register_state_dict_post_hook(lambda mod, s, prefix, meta: seen.append(("post", prefix, sorted(s), dict(meta))))
    n.inner._register_load_state_dict_pre_hook(lambda s, prefix, meta, *rest: seen.append(("load", prefix, sorted(s))))
    n.inner._register_load_state_dict_pre_hook(lambda mod, s, prefix, *rest: seen.append(mod is n.inner), with_module=True)
    n.inner.register_load_state_dict_post_hook(lambda mod, keys: seen.append(("done", sorted(keys.missing_keys))))
    handle = n.register_load_state_dict_post_hook(lambda mod, keys: seen.append("outer"))
    s = n.state_dict(keep_vars=True)
    n.load_state_dict(s)
    handle.remove()
    n.load_state_dict(s)
    return seen


@program
def state_hook_that_returns(m):
    n = net(m)
    n.register_state_dict_post_hook(lambda mod, s, prefix, meta: s)
    n.state_dict()


@program
def state_hook_registered_twice(m):
    n = net(m)

    def hook(mod, s, prefix, meta):
        return None

    n.register_state_dict_post_hook(hook)
    n._register_state_dict_hook(hook)


@program
def load_hook_that_returns(m):
    n = net(m)
    n.register_load_state_dict_post_hook(lambda mod, keys: 3)
    n.load_state_dict(n.state_dict())


@program
def load_pre_hook_renames(m):
    n = net(m)

    def rename(mod, s, prefix, meta, strict, missing, unexpected, errors):
        if prefix + "old" in s:
            s[prefix + "bias"] = s.pop(prefix + "old")

    n.register_load_state_dict_pre_hook(rename)
    s = n.state_dict()
    s["old"] = s.pop("bias") * 3
    result = n.load_state_dict(s)
    return [repr(result), n.bias, "old" in s]


@program
def loading_into_meta(m):
    n, given = m.nn.Linear(2, 2, device="meta"), m.nn.Linear(2, 2).state_dict()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        n.load_state_dict(given)
        texts = [str(w.message) for w in seen]
        n.load_state_dict(given, assign=True)
        n.load_state_dict(m.nn.Linear(2, 2, device="meta").state_dict())
    return [texts, len(seen), n.weight.is_meta]


@program
def extra_state_is_missed(m):
    class Extra(m.nn.Module):
        def get_extra_state(self):
            return 1

        def set_extra_state(self, state):
            pass

    return [said(lambda: m.nn.Sequential(Extra()).load_state_dict({})), repr(Extra().load_state_dict({}, strict=False))]


# --- hooks ------------------------------------------------------------------------------------------------------------
@program
def global_hooks(m):
    seen, G, n = [], hooks(m), m.nn.Sequential(m.nn.Identity(), m.nn.Identity())

    def note(name):
        return lambda mod, *args: seen.append((name, type(mod).__name__, len(args)))

    handles = [
        G.register_module_forward_pre_hook(note("pre")),
        G.register_module_forward_hook(note("post")),
        G.register_module_forward_hook(note("post kw"), with_kwargs=True),
        G.register_module_full_backward_pre_hook(note("back pre")),
        G.register_module_full_backward_hook(note("back")),
    ]
    n.register_forward_hook(note("own"))
    n.register_full_backward_hook(note("own back"))
    x = m.ones(2, requires_grad=True)
    n(x).sum().backward()
    for h in handles:
        h.remove()
    seen.append("removed")
    n(x).sum().backward()
    return [seen, x.grad]


@program
def global_hooks_change(m):
    G, layer = hooks(m), m.nn.Identity()
    x = m.ones(2, requires_grad=True)
    with G.register_module_forward_pre_hook(lambda mod, args: args[0] * 3):
        with G.register_module_forward_hook(lambda mod, args, out: out + 1):
            with G.register_module_full_backward_hook(lambda mod, gi, go: (gi[0] * 5,)):
                with G.register_module_full_backward_pre_hook(lambda mod, go: (go[0] * 7,)):
                    y = layer(x)
                    y.sum().backward()
    return [y, x.grad, layer(x)]


@program
def global_always_called(m):
    class Bad(m.nn.Module):
        def forward(self, x):
            raise ArithmeticError

    seen = []
    with hooks(m).register_module_forward_hook(lambda *args: seen.append(len(args)), always_call=True):
        with hooks(m).register_module_forward_hook(lambda *args: seen.append(len(args)), with_kwargs=True):
            with pytest.raises(ArithmeticError):
                Bad()(1)
    with hooks(m).register_module_forward_hook(lambda *args: seen.append(len(args)), with_kwargs=True, always_call=True):
        with pytest.raises(ArithmeticError):
            Bad()(1)
    return seen


@program
def always_called_after_hooks_before(m):
    class Bad(m.nn.Module):
        def forward(self, *args, **kwargs):
            raise ArithmeticError

    seen, bad = [], Bad()
    bad.register_forward_pre_hook(lambda mod, args, kw: ((3,), {"a": 4}), with_kwargs=True)
    bad.register_forward_hook(lambda mod, *args: seen.append(args), with_kwargs=True, always_call=True)
    with pytest.raises(ArithmeticError):
        bad(1)
    bad.register_forward_pre_hook(lambda mod, args: 1 / 0)  # what the hook before it changed stays changed
    with pytest.raises(ArithmeticError):
        bad(1)
    return seen


@program
def global_registration_hooks(m):
    seen, G = [], hooks(m)
    with G.register_module_module_registration_hook(lambda mod, name, sub: seen.append(("module", name))):
        with G.register_module_parameter_registration_hook(lambda mod, name, p: seen.append(("parameter", name))):
            with G.register_module_buffer_registration_hook(lambda mod, name, b: seen.append(("buffer", name))):
                n = m.nn.Sequential(m.nn.Linear(1, 1, bias=False), m.nn.BatchNorm1d(1))
                n.x = m.nn.Parameter(m.ones(1))
                n.y = m.nn.ReLU()
                n[1].running_mean = m.zeros(1)
                n.add_module("z", None)
                n.register_parameter("none", None)
    return seen


@program
def registration_hooks_replace(m):
    G = hooks(m)
    with G.register_module_parameter_registration_hook(lambda mod, name, p: m.nn.Parameter(p.detach() * 0 + 3)):
        with G.register_module_buffer_registration_hook(lambda mod, name, b: b * 0 + 4):
            with G.register_module_module_registration_hook(lambda mod, name, sub: m.nn.Identity()):
                n = m.nn.Module()
                n.p = m.nn.Parameter(m.ones(1))
                n.register_buffer("b", m.ones(1))
                n.m = m.nn.ReLU()
    return [n.p, n.b, repr(n)]


if hasattr(torch.nn.modules.module, "register_module_load_state_dict_pre_hook"):

    @program
    def global_load_hooks(m):
        seen, G, n = [], hooks(m), net(m)
        with G.register_module_load_state_dict_pre_hook(
            lambda mod, s, prefix, *rest: seen.append((type(mod).__name__, prefix))
        ):
            with G.register_module_load_state_dict_post_hook(lambda mod, keys: seen.append(type(mod).__name__)):
                n.load_state_dict(n.state_dict())
        return seen


@program
def hook_order(m):
    seen, n = [], m.nn.Identity()
    for i in range(3):
        n.register_forward_pre_hook(lambda mod, args, i=i: seen.append(("pre", i)), prepend=i == 2)
        n.register_forward_hook(lambda mod, args, out, i=i: seen.append(("post", i)), prepend=i == 1)
        n.register_full_backward_pre_hook(lambda mod, go, i=i: seen.append(("bpre", i)), prepend=i == 2)
        n.register_full_backward_hook(lambda mod, gi, go, i=i: seen.append(("back", i)), prepend=i == 1)
    n(m.ones(1, requires_grad=True)).sum().backward()
    return seen


@program
def hooks_removed_while_running(m):
    seen, n = [], m.nn.Identity()
    handles = []

    def once(mod, args, out):
        seen.append("once")
        handles[0].remove()

    handles.append(n.register_forward_hook(once))
    n(1), n(2)
    return seen


@program
def handles(m):
    n = m.nn.Identity()
    h = n.register_forward_hook(print)
    other = pickle.loads(pickle.dumps((n, h)))
    before = [len(n._forward_hooks), len(other[0]._forward_hooks)]
    h.remove(), h.remove(), other[1].remove()
    return [before, len(n._forward_hooks), len(other[0]._forward_hooks)]


@program
def handle_outlives_module(m):
    n = m.nn.Identity()
    h = n.register_forward_hook(print)
    ref = weakref.ref(n)
    del n
    h.remove()
    return ref() is None


@program
def kwargs_in_all_hooks(m):
    class Takes(m.nn.Module):
        def forward(self, x, *, scale=1.0):
            return x * scale

    seen, n = [], Takes()
    n.register_forward_pre_hook(lambda mod, args, kw: seen.append((args, kw)), with_kwargs=True)
    n.register_forward_hook(lambda mod, args, kw, out: out + kw.get("scale", 0), with_kwargs=True)
    n.register_forward_hook(lambda mod, args, kw, out: seen.append(out), with_kwargs=True, always_call=True)
    return [n(2.0, scale=3.0), n(2.0), seen]


@program
def always_called_that_fails(m):
    class Bad(m.nn.Module):
        def forward(self, x):
            raise ArithmeticError

    seen, bad = [], Bad()
    bad.register_forward_hook(lambda *args: 1 / 0, always_call=True)
    bad.register_forward_hook(lambda *args: seen.append(args[-1]), always_call=True)
    with pytest.raises(ArithmeticError):
        bad(1)
    return len(seen)


@program
def old_backward_hook_and_new(m):
    n = m.nn.Identity()
    n.register_backward_hook(lambda *args: None)
    n.register_full_backward_hook(lambda *args: None)


@program
def new_backward_hook_and_old(m):
    n = m.nn.Identity()
    n.register_full_backward_hook(lambda *args: None)
    n.register_backward_hook(lambda *args: None)


@program
def backward_hooks_of_layers(m):
    m.manual_seed(0)
    n, seen = m.nn.Sequential(m.nn.PReLU(), m.nn.Linear(2, 2, bias=False)), []
    n[1].weight.data.fill_(0.5)
    for layer in n:
        layer.register_full_backward_hook(lambda mod, gi, go: seen.append((type(mod).__name__, gi, go)))
    n(m.tensor([1.0, -1.0], requires_grad=True)).sum().backward()
    return seen


# --- copies -----------------------------------------------------------------------------------------------------------
@program
def copies_share_inside(m):
    n = net(m)
    d = copy.deepcopy(n)
    e = pickle.loads(pickle.dumps(m.nn.Sequential(m.nn.Linear(2, 2))))
    return [d.inner is d.twice, d.inner is n.inner, d.bias is n.bias, d.state_dict(), names(d.named_buffers()),
            sorted(d.inner._non_persistent_buffers_set), repr(e), isinstance(e[0].weight, m.nn.Parameter)]  # fmt: skip


@program
def copies_of_tied_parameters(m):
    n = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.Linear(2, 2))
    n[1].weight = n[0].weight
    d, s = copy.deepcopy(n), io.BytesIO()
    pickle.dump(n, s)
    s.seek(0)
    e = pickle.load(s)
    return [d[0].weight is d[1].weight, e[0].weight is e[1].weight, len(list(d.parameters())), len(d.state_dict())]


@program
def copies_keep_hooks_and_modes(m):
    n = m.nn.Sequential(m.nn.Identity())
    n.register_forward_hook(print)
    n.eval().requires_grad_(False)
    d = copy.deepcopy(n)
    return [len(d._forward_hooks), d.training, d[0].training, d._forward_hooks is n._forward_hooks]


@program
def shallow_copy(m):
    n = net(m)
    c = copy.copy(n)
    c.extra = m.nn.Parameter(m.ones(1))
    return [c.bias is n.bias, c._parameters is n._parameters, hasattr(n, "extra")]


# --- walks ------------------------------------------------------------------------------------------------------------
@program
def walks_with_prefix_and_duplicates(m):
    n = net(m)
    n.again = n.bias
    n.inner.register_buffer("same", n.inner.seen)
    return [
        names(n.named_parameters("p")), names(n.named_parameters("p", True, False)), names(n.named_parameters(recurse=False)),
        names(n.named_buffers("b")), names(n.named_buffers("b", True, False)), names(n.named_buffers(recurse=False)),
        names(n.named_modules(prefix="m")), names(n.named_modules(remove_duplicate=False)), names(n.named_children()),
        [len(list(w())) for w in (n.parameters, n.buffers, n.modules, n.children)],
        len(list(n.parameters(recurse=False))), names(n.named_modules(memo={n.inner})),
    ]  # fmt: skip


@program
def members_in_dir(m):
    n = net(m)
    listed = dir(n)
    return [x in listed for x in ("bias", "inner", "missing", "forward", "nothing", "seen")] + ["seen" in dir(n.inner)]


@program
def reprs(m):
    class Lines(m.nn.Module):
        def extra_repr(self):
            return "one\ntwo"

    class Both(Lines):
        def __init__(self):
            super().__init__()
            self.a, self.b = m.nn.ReLU(), m.nn.Sequential(Lines())

    return [repr(Lines()), repr(Both()), repr(m.nn.Module()), repr(m.nn.ModuleList([m.nn.ReLU()] * 3)), str(net(m))]


# --- moves ------------------------------------------------------------------------------------------------------------
@program
def to_other_places(m):
    n = net(m)
    n.counter = m.nn.Buffer(m.ones(1, dtype=m.int64))
    results = []
    for move in (m.nn.Module.half, m.nn.Module.bfloat16, m.nn.Module.double, m.nn.Module.float):
        move(n)
        results += [str(n.bias.dtype), str(n.inner.seen.dtype), str(n.counter.dtype)]
    n.to(dtype=m.float64)
    results += [str(n.bias.dtype), str(n.counter.dtype)]
    e = m.nn.Linear(2, 3, device="meta")
    held = e.weight
    e.to_empty(device="cpu")
    results += [e.weight.device.type, e.weight is held, e.weight.requires_grad, tuple(e.weight.shape)]
    c = m.nn.Conv2d(2, 3, 2).to(memory_format=m.channels_last)
    return [*results, c.weight.stride(), c.bias.stride()]


@program
def shared(m):
    n = net(m)
    n.share_memory()
    return [n.bias.is_shared(), n.inner.seen.is_shared(), n.inner.weight.is_shared(), n(m.ones(2))]


@program
def to_devices_that_are_not_there(m):
    names = ("xpu", "ipu", "mtia")
    refused = [said(getattr(m.nn.Linear(1, 1), name)) != "nothing" for name in names]
    return refused + [getattr(m.nn.ReLU(), name)().training for name in names]


@program
def applied_with_result(m):
    n = m.nn.Sequential(m.nn.Linear(2, 2), m.nn.Sequential(m.nn.Linear(2, 2)))

    def fill(x):
        if isinstance(x, m.nn.Linear):
            x.weight.data.fill_(3.0)

    return [n.apply(fill) is n, n[0].weight, n[1][0].weight]


@program
def registration_order(m):
    n = m.nn.Module()
    n.b = m.nn.Parameter(m.ones(1))
    n.a = m.nn.Parameter(m.ones(1))
    n.b = m.nn.Parameter(m.zeros(1))
    n.c = None
    n.c = m.nn.Linear(1, 1)
    n.register_buffer("d", None)
    n.d = m.ones(1)
    n.add_module("e", m.nn.ReLU())
    n.register_module("f", m.nn.ReLU())
    del n.a
    return [list(n.state_dict()), names(n.named_children()), n.d]


@program
def buffers_change_persistence(m):
    n = m.nn.Module()
    n.register_buffer("a", m.ones(1), persistent=False)
    first = list(n.state_dict())
    n.register_buffer("a", m.ones(1))
    second = list(n.state_dict())
    n.b = m.nn.Buffer(m.ones(1), persistent=False)
    n.b = m.zeros(1)
    del n.a
    n.register_buffer("a", m.ones(2), persistent=False)
    return [first, second, list(n.state_dict()), n.b, sorted(n._non_persistent_buffers_set)]


@program
def gradients_set_to_zero(m):
    n = net(m)
    n(m.ones(2)).sum().backward()
    held = n.bias.grad
    n.zero_grad(False)
    kept = [n.bias.grad is held, n.bias.grad]
    n.zero_grad()
    return [kept, n.bias.grad is None]


@program
def frozen(m):
    n = net(m)
    n.requires_grad_(False)
    n.bias.requires_grad_()
    y = n(m.ones(2))
    y.sum().backward()
    return [[p.requires_grad for p in n.parameters()], n.bias.grad, n.inner.weight.grad is None]


@program
def forward_may_be_replaced(m):
    n = m.nn.Linear(1, 1)
    n.forward = lambda x: x + 1
    return n(1)


@program
def call_super_init(m):
    class Base:
        def __init__(self, x):
            self.x = x

    class Both(m.nn.Module, Base):
        call_super_init = True

        def __init__(self, x):
            super().__init__(x)

    return Both(3).x


# --- a layer that PyTorch's database of modules lacks ------------------------------------------------------------------
def adaptive(m, *given, **kwargs):
    m.manual_seed(7)
    return m.nn.AdaptiveLogSoftmaxWithLoss(*(given or (8, 20, [3, 9, 15])), **{"div_value": 2.0, **kwargs})


@program
def adaptive_softmax(m):
    results = []
    for bias in (False, True):
        layer = adaptive(m, head_bias=bias)
        x = m.randn(6, 8, requires_grad=True)
        for target in ([0, 2, 5, 9, 14, 19], [1, 1, 0, 2, 0, 1], [16, 17, 18, 19, 15, 16]):
            out, loss = layer(x, m.tensor(target))
            loss.backward()
            results += [out, loss]
        grads = [x.grad, [p.grad for p in layer.parameters()]]
        one = layer(x[0], m.tensor(11))
        results += [grads, one.output, one.loss, layer.log_prob(x), layer.predict(x), layer.state_dict(), repr(layer)]
    wide = adaptive(m)
    wide.head.weight.data[:3] = -5
    return [results, wide.predict(m.ones(4, 8)), str(one._fields)]


for _name, _do in {
    "none": lambda m: adaptive(m, 8, 20, []),
    "falling": lambda m: adaptive(m, 8, 20, [9, 3]),
    "twice": lambda m: adaptive(m, 8, 20, [3, 3]),
    "beyond": lambda m: adaptive(m, 8, 20, [3, 20]),
    "target": lambda m: adaptive(m)(m.ones(1, 8), m.tensor([20])),
    "batch": lambda m: adaptive(m)(m.ones(2, 8), m.tensor([1])),
    "dims": lambda m: adaptive(m)(m.ones(2, 8), m.tensor(1)),
    "many": lambda m: adaptive(m)(m.ones(2, 8), m.ones(2, 2, dtype=m.int64)),
}.items():
    PROGRAMS[f"adaptive_refuses_{_name}"] = _do


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch(name):
    assert_close(attempt(PROGRAMS[name], lucid), attempt(PROGRAMS[name], torch))
