"""Tensor subclasses, `__torch_function__` and modes: the same program on PyTorch and on Lucid."""

import copy
import pickle
import threading

import pytest
import torch

import lucid

LIBRARIES = (torch, lucid)

# what is called -> what a __torch_function__ sees; the value of an attribute is its getter
CALLS = """t + 1; 1 + t; t - 1; 1 - t; t / 2; 2 // t; t @ t; t ** 2; 2 ** t; 2 % t; t[0]; t.__setitem__(0, 1); len(t); -t
abs(t)
t < 1; t != 1; t.size(); t.stride(); t.dim(); t.numel(); t.max(0); lib.cat([t, lib.ones(1)]); lib.zeros(3) + t; t.tolist()
lib.zeros_like(t); t[0].item(); 1 in t; t.__iadd__(0); lib.ones(3)[t > 0]; lib.ones(3).add_(t); t.clone(); t.detach(); t.shape
t.dtype; t.T; t.requires_grad; t.grad; t.is_leaf; t.data; t.device; t.ndim; t.real; t.untyped_storage(); t.type(); t.double()
t.type(lib.float64); t.new_zeros(2); t.new_tensor([1.0]); t.is_contiguous(); t.storage_offset(); t.requires_grad_(False)
bool((t > 0)[0]); float(t[0]); int(t[0]); lib.einsum('i,i->', t, t); lib.nn.Linear(3, 3)(t); lib.stack([lib.ones(3), t])
lib.is_tensor(t); lib.is_floating_point(t); lib.numel(t); lib.add(t, 1, alpha=2); lib.as_tensor(t); t.as_subclass(lib.Tensor)
lib.nn.Parameter(lib.ones(3)) + t; lib.broadcast_tensors(t, lib.ones(2, 3)); lib.equal(t, t); t.copy_(lib.ones(3)); t.view(3, 1)
lib.where(t > 0, t, 0.0); t.reshape(1, 3).mT; lib.add(lib.ones(3), lib.ones(3), out=t); hash(t) == hash(t); t.expand(2, 3)
lib.special.erf(t); lib.linalg.norm(t); lib.fft.rfft(t); lib.tensor([1.0]); lib.nn.functional.pad(t, (1, 1)); t.contiguous()"""
CALLS = [call.strip() for line in CALLS.splitlines() for call in line.split(";")]
SAME = {
    "__rtruediv__": "__rdiv__",
    "linalg_norm": "norm",
    "special_erf": "erf",
    "fft_rfft": "rfft",
    "linalg_vector_norm": "norm",
}


def logged_class(lib):
    class Logged(lib.Tensor):
        log = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            name = func.__name__
            if name == "__get__":
                name = f"{func.__self__.__name__}.get"
            cls.log.append((SAME.get(name, name), len(args), all(t is cls for t in types)))
            return super().__torch_function__(func, types, args, kwargs)

    return Logged


def kinds(value):
    if isinstance(value, (tuple, list)) and not type(value).__name__ == "Size":
        return [kinds(v) for v in value]
    return type(value).__name__


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_what_is_asked_and_what_comes_back(call):
    seen = []
    for lib in LIBRARIES:
        cls = logged_class(lib)
        t = lib.tensor([1.0, 2.0, 3.0]).as_subclass(cls)
        cls.log.clear()
        result = eval(call, {"lib": lib, "t": t})  # noqa: S307
        seen.append((list(cls.log), kinds(result)))
    (theirs, kind), (ours, our_kind) = seen
    assert our_kind == kind
    assert [name for name, *_ in ours] == [name for name, *_ in theirs]
    assert all(rest[1] for rest in ours)


@pytest.mark.parametrize("lib", LIBRARIES)
def test_a_class_without_a_hook_keeps_its_class(lib):
    class Plain(lib.Tensor):
        pass

    class Other(lib.Tensor):
        pass

    p = lib.ones(2, 2).as_subclass(Plain)
    p.note = "kept"
    assert type(p + 1) is Plain and type(p.sum()) is Plain and type(p[0]) is Plain and type(p.T) is Plain
    assert all(type(row) is Plain for row in p) and type(p.max(0).values) is Plain
    assert p.note == "kept" and not hasattr(p + 1, "note")
    with pytest.raises(TypeError):
        p + lib.ones(2, 2).as_subclass(Other)
    with lib._C.DisableTorchFunctionSubclass():
        assert type(p + 1) is lib.Tensor
    y = lib.ones(2, 2, requires_grad=True)
    (y.as_subclass(Plain) * 3).sum().backward()
    assert type(y.grad) is lib.Tensor and y.grad.tolist() == [[3.0, 3.0]] * 2


@pytest.mark.parametrize("lib", LIBRARIES)
def test_a_class_that_carries_something(lib):
    """The pattern of MetaTensor and tv_tensors: results inherit an attribute of the first argument."""

    class Meta(lib.Tensor):
        @staticmethod
        def __new__(cls, data, unit="m"):
            t = lib.as_tensor(data).as_subclass(cls)
            t.unit = unit
            return t

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            result = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(result, cls) and not hasattr(result, "unit"):
                result.unit = next((a.unit for a in args if isinstance(a, cls) and hasattr(a, "unit")), None)
            return result

        def __getitem__(self, key):
            return super().__getitem__(key)

    m = Meta([1.0, 2.0], unit="cm")
    assert (m * 2).unit == "cm" and (1 - m).unit == "cm" and m[0].unit == "cm" and m.sum().unit == "cm"
    assert type(m[0]) is Meta and m.clone().unit == "cm"


@pytest.mark.parametrize("lib", LIBRARIES)
def test_objects_that_are_no_tensors(lib):
    class Diagonal:
        def __init__(self, n, value):
            self.n, self.value = n, value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            table = {lib.mean: lambda d: d.value / d.n, lib.linalg.det: lambda d: d.value**d.n}
            table[lib.nn.functional.relu] = lambda d: "relu"
            table[lib.einsum] = table[lib.cat] = lambda *a: "many"
            return table[func](*args) if func in table else NotImplemented

        def __rsub__(self, other):
            return "rsub"

    d = Diagonal(5, 2)
    assert lib.mean(d) == 0.4 and lib.linalg.det(d) == 32 and lib.nn.functional.relu(d) == "relu"
    assert lib.einsum("i->", d) == "many" and lib.cat([lib.ones(1), d]) == "many"
    assert lib.ones(2) - d == "rsub"
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        lib.sum(d)
    assert lib.overrides.is_tensor_like(d) and lib.overrides.has_torch_function((1, d))
    assert not lib.overrides.has_torch_function((1, lib.ones(1), lib.nn.Parameter(lib.ones(1))))


@pytest.mark.parametrize("lib", LIBRARIES)
def test_modes(lib):
    class Log(lib.overrides.TorchFunctionMode):
        def __init__(self, log, word):
            self.log, self.word = log, word

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.log.append((self.word, func.__name__))
            return func(*args, **(kwargs or {}))

    log = []
    x = lib.ones(2)
    with Log(log, "outer"), Log(log, "inner"):
        y = lib.zeros(2) + x
        y.size()
        with lib._C.DisableTorchFunctionSubclass():
            y.mul(2)
        with lib._C.DisableTorchFunction():
            y.mul(3)
        lib.tensor([1.0])
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
    x.exp()
    words = ["zeros", "add", "size", "mul", "tensor"]
    assert log == [(who, word) for word in words for who in ("inner", "outer")]


@pytest.mark.parametrize("lib", LIBRARIES)
def test_an_error_inside_a_mode_leaves_the_stack_as_it_was(lib):
    class Broken(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ZeroDivisionError(func.__name__)

    with pytest.raises(ZeroDivisionError), Broken():
        lib.ones(1)
    assert lib.ones(1).item() == 1 and not lib.overrides.has_torch_function((1,))


@pytest.mark.parametrize("lib", LIBRARIES)
def test_parameters(lib):
    class Special(lib.nn.Parameter):
        pass

    class Plain(lib.Tensor):
        pass

    p = Special(lib.ones(2))
    assert type(p + 1) is lib.Tensor and isinstance(p, lib.nn.Parameter) and p.requires_grad
    q = lib.nn.Parameter(lib.ones(2).as_subclass(Plain))
    assert type(q) is Plain and isinstance(q, lib.nn.Parameter) and q.requires_grad and not isinstance(q, Special)
    m = lib.nn.Module()
    m.p, m.q = p, q
    assert [n for n, _ in m.named_parameters()] == ["p", "q"]
    (q * 2).sum().backward()
    assert q.grad.tolist() == [2.0, 2.0]


class Kept(lucid.Tensor):
    pass


def test_copies_and_pickles_keep_the_class():
    t = lucid.arange(3.0).as_subclass(Kept)
    t.note = [1]
    for made in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert type(made) is Kept and made.tolist() == [0.0, 1.0, 2.0] and made.note == [1]


def test_both_spellings():
    class Old(lucid.Tensor):
        @classmethod
        def __lucid_function__(cls, func, types, args=(), kwargs=None):
            return "lucid"

    class New(Old):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "torch"

    class Off(New):
        __torch_function__ = lucid._C._disabled_torch_function_impl

    one = lucid.ones(1)
    assert one.as_subclass(Old) + 1 == "lucid" and one.as_subclass(New) + 1 == "torch"
    assert type(one.as_subclass(Off) + 1) is lucid.Tensor


def test_tables_of_functions():
    o = lucid.overrides
    functions = o.get_overridable_functions()
    assert lucid.add in functions[lucid] and lucid.linalg.inv in functions[lucid.linalg]
    assert lucid.zeros in o.get_ignored_functions() and lucid.add not in o.get_ignored_functions()
    assert len(o.get_testing_overrides()) > 900 and o.resolve_name(lucid.linalg.inv) == "lucid.linalg.inv"
    assert o.is_tensor_method_or_property(lucid.Tensor.add) and o.is_tensor_method_or_property(lucid.Tensor.shape.__get__)
    assert not o.is_tensor_method_or_property(lucid.linalg.inv)


def test_every_listed_function_asks():
    """Each function that get_overridable_functions lists calls the hook of its first argument."""

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    silent = []
    for owner, functions in lucid.overrides.get_overridable_functions().items():
        for function in functions if owner is not lucid.Tensor else ():
            try:
                asked = function(Duck())
            except Exception as error:  # noqa: BLE001
                asked = error
            if asked is not function:
                silent.append((function, asked))
    assert not silent


def test_wrapper_subclasses_are_refused_clearly():
    with pytest.raises(NotImplementedError, match="__torch_dispatch__"):
        lucid.Tensor._make_wrapper_subclass(Kept, (2, 3))


def test_wrap_torch_function_and_handle():
    @lucid.overrides.wrap_torch_function(lambda a, b=0: (a, b))
    def f(a, b=0):
        return "plain"

    class Mine:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func is f, types, args[1:], kwargs

    assert f(1) == "plain" and f(Mine(), b=2) == (True, (Mine,), (), {"b": 2})
