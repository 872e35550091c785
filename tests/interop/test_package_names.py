"""What packages for PyTorch call besides its documented API: old orders of arguments, functorch, private names."""

import os
import subprocess
import sys
import warnings

import pytest
import torch

import lucid

LIBRARIES = [torch, lucid]


def old_order(m):
    """Numbers before the tensors that they scale."""
    a, b, e = m.tensor([1.0, 2.0]), m.tensor([3.0, 5.0]), m.tensor([[1.0, 2.0], [0.0, 1.0]])
    yield from (m.add(a, 0.5, b), a.add(2, b), a.clone().add_(2, b), m.sub(a, 2, b), a.clone().sub_(2, b))
    yield from (m.addcmul(a, 2, a, b), a.clone().addcmul_(-1, a, b), m.addcdiv(a, 2, a, b), a.clone().addcdiv_(0.5, a, b))
    yield from (m.addmm(2, e, 3, e, e), m.addmm(2, e, e, e), e.addmm(2, e, e), e.clone().addmm_(2, 3, e, e))
    yield from (a.addmv(2, e, b), a.clone().addmv_(2, 3, e, b), e.addr(2, a, b), e.clone().addr_(2, 3, a, b))
    many = e[None]
    yield from (many.baddbmm(2, many, many), many.clone().baddbmm_(2, 3, many, many), e.addbmm(2, many, many))
    out = m.empty(2)
    yield from (m.addcmul(a, 2, a, b, out=out), out)


def test_numbers_before_tensors():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = ([t.tolist() for t in old_order(m)] for m in LIBRARIES)
    assert ours == theirs
    x = lucid.ones(2)
    with pytest.warns(UserWarning, match="give it as alpha="):
        x.add_(2, x.clone())
    for name, *wrong in (("add", 2, 3, x), ("add", x, 2), ("mul", 2, x), ("addmm", x, 2, x), ("add", "2", x)):
        with pytest.raises(TypeError):
            getattr(x, name)(*wrong)


def test_old_order_has_gradients():
    grads = []
    for m in LIBRARIES:
        x, y = (m.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x.add(3, y).sum().backward()
        grads.append([x.grad.tolist(), y.grad.tolist()])
    assert grads[0] == grads[1] == [[1, 1], [3, 3]]


def by_name(m):
    """Lists of tensors with arguments by the names of PyTorch's overloads."""
    x, y = [m.tensor([1.0, 2.0]), m.tensor([3.0])], [m.tensor([0.5, 4.0]), m.tensor([2.0])]
    yield from (m._foreach_lerp(x, y, weight=0.25), m._foreach_lerp(x, tensors1=y, weights=y))
    yield from (m._foreach_add(self=x, other=y, alpha=2), m._foreach_lerp_(x, y, weight=0.5))
    yield from (m._foreach_mul(x, scalar=2.0), m._foreach_mul(x, scalars=[2.0, 3.0]), m._foreach_pow(x, exponent=2.0))
    yield from (m._foreach_addcmul(x, tensor1=y, tensor2=y, value=2.0), m._foreach_addcdiv(x, y, y, scalars=[1.0, 2.0]))
    yield from (m._foreach_clamp_max(x, scalar=1.5), m._foreach_maximum(x, other=y), m._foreach_powsum(x, ord=2))
    yield from (m._foreach_add_(x, scalar=1.0), m._foreach_copy_(y, src=x, non_blocking=True), x, y)


def test_foreach_by_name():
    ours, theirs = ([[t.tolist() for t in many] for many in by_name(m)] for m in LIBRARIES)
    assert ours == theirs
    x = [lucid.ones(1)]
    assert lucid._foreach_add_(x, 1.0) is x and lucid._foreach_zero_(x) is x
    with pytest.raises(TypeError):
        lucid._foreach_add(x, 1.0, other=x)


def test_plain_attributes_of_modules():
    for m in LIBRARIES:

        class Net(m.nn.Module):
            def __setattr__(self, name, value, base=m.nn.Module):
                return super(base, self).__setattr__(name, value) if name == "plain" else super().__setattr__(name, value)

        net = Net()
        net.plain, net.member = m.nn.Linear(1, 1), m.nn.Linear(1, 1)
        assert [name for name, _ in net.named_children()] == ["member"] and net.plain.weight.shape == (1, 1)
        del net.member
        assert not list(net.children())


def test_fx_sees_einsums_operands_and_assertions():
    def product(m):
        def f(x, y):
            m._assert(x.shape[0] == 2, "two rows")
            return m.einsum("ij,jk->ik", [x, y])

        return f

    for m in LIBRARIES:
        graph = m.fx.symbolic_trace(product(m))
        node = next(n for n in graph.graph.nodes if n.target is m.functional.einsum)
        assert [str(a) for a in node.args] == ["ij,jk->ik", "x", "y"]
        assert graph(m.ones(2, 3), m.ones(3, 1)).tolist() == [[3], [3]]
        with pytest.raises(AssertionError, match="two rows"):
            graph(m.ones(1, 3), m.ones(3, 1))


def test_names_have_pytorchs_values():
    for m in LIBRARIES:
        assert m.meshgrid.__kwdefaults__ == {"indexing": None} and m.has_cuda is m.backends.cuda.is_built()
        assert m.cuda._initialized is m.cuda.is_initialized()
        with pytest.raises(RuntimeError, match="space.Name"):
            _ = m.classes.space.Name
        with pytest.raises(RuntimeError, match="removed"):
            m.matrix_rank(m.eye(2))
        m.manual_seed(0)
        assert m._standard_gamma(m.full((2000,), 3.0)).mean().item() == pytest.approx(3, abs=0.2)
        with m.autograd.set_multithreading_enabled(False):
            x = m.ones(1, requires_grad=True)
            (x * 2).sum().backward()
        assert x.grad.item() == 2
        layer, given = m.nn.BatchNorm1d(1), {"running_mean": m.ones(1)}
        with m.nn.utils.stateless._reparametrize_module(layer, given):
            layer(m.tensor([[1.0], [5.0]]))
        assert layer.running_mean.item() == 0 and given["running_mean"].item() == pytest.approx(1.2)
    assert lucid.meshgrid.__kwdefaults__ == {"indexing": None} and lucid.addmm.__kwdefaults__["beta"] == 1
    assert lucid.DeviceObjType is lucid.device and lucid.exp.__kwdefaults__ is None or "out" in lucid.exp.__kwdefaults__
    with pytest.raises(NotImplementedError, match="symbolic_trace"):
        lucid.jit._get_trace_graph(lucid.nn.ReLU(), lucid.ones(1))


def test_no_memory_format_is_that_of_the_input():
    for m in LIBRARIES:
        x = m.ones(1, 2, 3, 4).to(memory_format=m.channels_last)
        assert x.clone(memory_format=None).stride() == m.clone(x, memory_format=None).stride() == x.stride()


def test_ops_take_attributes():
    lucid.nn.functional.relu.remark = "kept"
    assert lucid.nn.functional.relu.remark == "kept" and not hasattr(lucid.exp, "remark")
    del lucid.nn.functional.relu.remark
    assert not hasattr(lucid.nn.functional.relu, "remark")


class Stream:
    """A loader with the attributes that PyTorch's have, as packages write them: an endless source of batches of its own."""

    def __init__(self, m, num_workers=0):
        self._dataset_kind, self._auto_collation, self.collate_fn, self.drop_last = 1, False, Stream.same, False
        self._IterableDataset_len_called, self._index_sampler, self.generator = None, iter(int, 1), None
        self.dataset, self.num_workers, self.timeout, self.pin_memory = self, num_workers, 0, False
        self.worker_init_fn, self.persistent_workers, self.prefetch_factor, self.in_order = None, False, 2, True
        self.multiprocessing_context = __import__("multiprocessing") if num_workers else None
        self.made = [m.full((2,), float(i)) for i in range(4)]
        self.pin_memory_device, self._get_shared_seed = "", None

    same = staticmethod(lambda batch: batch)

    def __iter__(self):
        return iter(self.made)


def test_iterators_over_a_packages_own_loader():
    for m in LIBRARIES:
        loading = m.utils.data.dataloader
        iterator = loading._Here if m is lucid else loading._SingleProcessDataLoaderIter
        batches = list(iterator(Stream(m)))
        assert [b.tolist() for b in batches] == [[i, i] for i in range(4)]


def test_ops_by_inner_names():
    x, y = [0.5, -1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]]
    for call in (
        lambda m: m.ops.aten._softmax(m.tensor(x), 0, False),
        lambda m: m.ops.aten._log_softmax.default(m.tensor(x), 0, False),
        lambda m: m.ops.aten.copy(m.tensor(x), m.tensor([3])),
        lambda m: m.ops.aten.index.Tensor(m.tensor(y), [None, m.tensor([1])]),
    ):
        ours, theirs = call(lucid), call(torch)
        assert torch.allclose(torch.tensor(ours.tolist()), theirs) and ours.dtype.itemsize == theirs.dtype.itemsize


def test_functorch(tmp_path):
    code = """
import functorch, torch
from torch import nn
from torch.nn.modules import CrossMapLRN2d
torch.manual_seed(0)
f, parameters = functorch.make_functional(nn.Linear(2, 3))
print(functorch.grad(lambda p: f(p, torch.ones(1, 2)).sum())(parameters)[0].tolist())
f, parameters, buffers = functorch.combine_state_for_ensemble([nn.BatchNorm1d(2) for _ in range(3)])
y = functorch.vmap(f, in_dims=(0, 0, None))(parameters, buffers, torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
assert torch._C._get_cudnn_enabled() is torch.backends.cudnn.enabled
print(y.shape, y.sum().round().item(), isinstance(nn.ReLU(), CrossMapLRN2d))
try:
    functorch.make_functional(nn.BatchNorm1d(2))
except RuntimeError as error:
    print(error)
try:
    CrossMapLRN2d(3)
except NotImplementedError as error:
    print("LocalResponseNorm" in str(error))
"""
    package = os.path.dirname(os.path.dirname(lucid.__file__))
    done = subprocess.run(
        [sys.executable, "-m", "lucid", "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": package}
    )
    assert done.stdout.splitlines() == [
        "[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]",
        "torch.Size([3, 2, 2]) 0.0 False",
        "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.",
        "True",
    ], done.stderr


def test_tensorboards_messages():
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import summary as theirs

    from lucid.utils.tensorboard import summary as ours

    given = {"lr": 0.1}, {"loss": 0}  # one each: messages keep no order of several
    for a, b in zip(ours.hparams(*given), theirs.hparams(*given), strict=True):
        assert a.SerializeToString(deterministic=True) == b.SerializeToString(deterministic=True)
    a, b = ours.scalar("x", lucid.tensor(2.5)), theirs.scalar("x", torch.tensor(2.5))
    assert a.SerializeToString() == b.SerializeToString()
    with pytest.raises(NotImplementedError):
        ours.scalar("x", 1.0, collections=["a"])
