"""Names that PyTorch programs use besides tensors and layers: graphs, ops of programs, lists of tensors, groups, masks."""

import operator

import pytest
import torch

import lucid

LIBRARIES = [torch, lucid]


class Block:
    """The same module in both libraries."""

    def __new__(cls, m):
        class Net(m.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second = m.nn.Linear(4, 4), m.nn.Sequential(m.nn.ReLU(), m.nn.Linear(4, 2))
                self.scale = m.nn.Parameter(m.ones(2))

            def forward(self, x, y=None):
                a = m.relu(self.first(x)) + x
                b, c = a.chunk(2, dim=-1)
                return self.second(m.cat([b, c], -1)) * self.scale, a[:, 0].sum()

        m.manual_seed(0)
        return Net()


def test_fx_records_pytorchs_graph():
    graphs = [m.fx.symbolic_trace(Block(m)).graph for m in LIBRARIES]
    kinds = [[(n.op, n.name, str(n.args), len(n.users)) for n in graph.nodes] for graph in graphs]
    assert kinds[0] == kinds[1]
    targets = [[n.target for n in g.nodes if n.op in ("call_module", "call_method", "get_attr")] for g in graphs]
    assert targets[0] == targets[1]


def test_fx_modules_run_change_and_copy():
    import copy
    import pickle

    net = Block(lucid)
    traced, x = lucid.fx.symbolic_trace(net), lucid.randn(3, 4)
    wanted = net(x)[0].tolist()
    assert traced(x)[0].tolist() == wanted and copy.deepcopy(traced)(x)[0].tolist() == wanted
    assert lucid.fx.Interpreter(traced).run(x)[0].tolist() == wanted
    assert lucid.fx.Transformer(traced).transform()(x)[0].tolist() == wanted
    assert pickle.loads(pickle.dumps(traced))(x)[0].tolist() == wanted
    for node in traced.graph.nodes:
        if node.target is operator.add:
            node.target = operator.sub
    traced.recompile()
    assert traced(x)[0].tolist() != wanted
    traced.graph.lint()
    with pytest.raises(lucid.fx.proxy.TraceError):
        lucid.fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)


@pytest.mark.parametrize("m", LIBRARIES, ids=["torch", "lucid"])
def test_custom_op(m):
    space = f"names_{m.__name__}"

    @m.library.custom_op(f"{space}::scaled", mutates_args=())
    def scaled(x: m.Tensor, by: float = 2.0) -> m.Tensor:
        return x * by

    def keep(ctx, inputs, output):
        ctx.by = inputs[1]

    scaled.register_autograd(lambda ctx, grad: (grad * ctx.by, None), setup_context=keep)
    scaled.register_fake(lambda x, by=2.0: m.empty_like(x))
    x = m.ones(2, requires_grad=True)
    getattr(m.ops, space).scaled(x, 3.0).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    assert scaled(m.ones(2, 5, device="meta")).shape == (2, 5)
    with pytest.raises(AttributeError):
        _ = getattr(m.ops, space).nothing
    with pytest.raises(OSError):
        m.ops.load_library("nothing.so")


def test_ops_by_name():
    x = lucid.tensor([1.0, -2.0])
    aten = lucid.ops.aten
    assert aten.add.Tensor(x, x).tolist() == [2, -4] and aten.add.Tensor is aten.add.Tensor
    assert {aten.mul.Tensor: 1}[aten.mul.Tensor] == 1 and str(aten.add.Tensor) == str(torch.ops.aten.add.Tensor)
    assert aten._to_copy.default(x, dtype=lucid.int64).tolist() == [1, -2]
    assert aten.slice.Tensor(x, 0, 1).tolist() == [-2]


UNARY = ["abs", "neg", "sqrt", "exp", "reciprocal", "sign", "sigmoid"]


@pytest.mark.parametrize("name", UNARY)
def test_foreach_of_one_list(name):
    seen = []
    for m in LIBRARIES:
        x = [m.tensor([0.5, 2.0]), m.tensor([3.0])]
        new = getattr(m, f"_foreach_{name}")(x)
        getattr(m, f"_foreach_{name}_")(x)
        seen.append([[t.tolist() for t in new], [t.tolist() for t in x]])
    assert all(torch.allclose(torch.tensor(a), torch.tensor(b)) for p, q in zip(*seen) for a, b in zip(p, q))


def test_foreach_of_two_lists():
    def results(m):
        x, y = [m.tensor([1.0, 2.0]), m.tensor([3.0])], [m.tensor([0.5, 4.0]), m.tensor([2.0])]
        yield m._foreach_add(x, y, alpha=2)
        yield m._foreach_mul(x, [2.0, 3.0])
        yield m._foreach_div(x, y)
        yield m._foreach_sub(x, 1.0)
        yield m._foreach_maximum(x, y)
        yield m._foreach_clamp_min(x, 1.5)
        yield m._foreach_lerp(x, y, 0.25)
        yield m._foreach_addcmul(x, y, y, value=0.5)
        yield m._foreach_addcdiv(x, y, y, [1.0, 2.0])
        yield m._foreach_pow(x, 2)
        m._foreach_add_(x, y, alpha=0.5)
        m._foreach_mul_(x, 2.0)
        m._foreach_copy_(y, x)
        yield y

    for ours, theirs in zip(results(lucid), results(torch)):
        assert [t.tolist() for t in ours] == [t.tolist() for t in theirs]


def test_flex_attention():
    def results(m):
        from importlib import import_module

        flex = import_module(f"{m.__name__}.nn.attention.flex_attention")
        m.manual_seed(0)
        q, k, v = (m.randn(2, 4, 32, 8) for _ in range(3))
        mask = flex.create_block_mask(
            lambda b, h, i, j: (i >= j) & (i - j < 10), None, None, 32, 32, device="cpu", BLOCK_SIZE=16
        )
        out = flex.flex_attention(q, k, v, lambda s, b, h, i, j: s + 0.1 * h - 0.01 * (i - j), mask)
        return [out, mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.to_dense()]

    for ours, theirs in zip(results(lucid), results(torch)):
        assert torch.allclose(torch.tensor(ours.tolist()), torch.tensor(theirs.tolist()), atol=1e-5)


def test_a_group_of_one(tmp_path, monkeypatch):
    dist = lucid.distributed
    with pytest.raises(ValueError, match="not been initialized"):
        dist.get_rank()
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "29500")):
        monkeypatch.setenv(name, value)
    for how in ({}, {"init_method": "tcp://localhost:1", "rank": 0, "world_size": 1}):
        dist.init_process_group("gloo", **how)
        x = lucid.ones(2)
        dist.all_reduce(x, op=dist.ReduceOp.SUM)
        assert x.tolist() == [1, 1] and dist.get_world_size() == 1 and dist.get_backend() == "gloo"
        model = lucid.nn.parallel.DistributedDataParallel(lucid.nn.Linear(2, 1))
        model(lucid.ones(1, 2)).sum().backward()
        assert model.module.weight.grad.tolist() == [[1, 1]]
        assert list(lucid.utils.data.DistributedSampler(range(3), shuffle=False)) == [0, 1, 2]
        dist.destroy_process_group()
    with pytest.raises(NotImplementedError, match="2 processes"):
        dist.init_process_group("gloo", init_method="tcp://localhost:1", rank=0, world_size=2)
    with pytest.raises(NotImplementedError, match="several processes"):
        from lucid.distributed.fsdp import FullyShardedDataParallel

        FullyShardedDataParallel(lucid.nn.Linear(1, 1))


def test_tensors_of_another_library():
    theirs = torch.arange(6.0).view(2, 3)
    for make in (lucid.tensor, lucid.as_tensor, lucid.asarray):
        assert make(theirs).tolist() == theirs.tolist()
    shared = lucid.as_tensor(theirs)
    shared[0, 0] = 7
    assert theirs[0, 0] == 7
    layer = lucid.nn.Linear(3, 2)
    layer.load_state_dict(torch.nn.Linear(3, 2).state_dict())

    class Array:
        def __array__(self, dtype=None, copy=None):
            return theirs.numpy()

    assert lucid.as_tensor(Array()).tolist() == theirs.tolist()
    layer.load_state_dict({"weight": Array(), "bias": theirs[0, :2]})
    assert layer.weight.tolist() == theirs.tolist()


class OnlyDLPack:
    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **settings):
        return self.tensor.__dlpack__(**settings)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize(
    "hold", [lambda t: t, torch.nn.Parameter, lambda t: t.bfloat16(), lambda t: t.t().contiguous().t(), OnlyDLPack]
)
def test_values_of_another_library_are_copied(hold):
    theirs = hold(torch.arange(6.0).view(2, 3))
    x = lucid.zeros(2, 3, requires_grad=True)
    with lucid.no_grad():
        assert x.copy_(theirs) is x and x.copy_(theirs, True) is x
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    y = lucid.zeros(2, 2, 3, dtype=lucid.int32)
    y[1] = theirs
    assert y.tolist() == [[[0] * 3] * 2, x.tolist()]
    with pytest.raises(RuntimeError, match="size of tensor"):
        lucid.zeros(2).copy_(theirs)


def test_other_calls_refuse_tensors_of_pytorch():
    theirs, ours = torch.ones(2), lucid.ones(2)
    calls = [
        lambda: ours + theirs,
        lambda: theirs + ours,
        lambda: lucid.stack([ours, theirs]),
        lambda: torch.stack([theirs, ours]),
    ]
    calls += [lambda: lucid.equal(ours, theirs), lambda: torch.add(theirs, ours), lambda: theirs.copy_(ours)]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert torch.as_tensor(ours).tolist() == [1, 1] and ours.tolist() == [1, 1]
    with pytest.raises(TypeError):
        ours.copy_(torch.ones(2, device="meta"))
    with pytest.raises(TypeError):
        ours.copy_("ab")


def test_optimizer_state_of_pytorch():
    weights = []
    for m in LIBRARIES:
        weight = m.nn.Parameter(m.ones(3))
        optimizer = m.optim.Adam([weight], lr=0.1)
        weights.append((weight, optimizer))
    (theirs, before), (ours, after) = weights
    (theirs**2).sum().backward()
    before.step()
    after.load_state_dict(before.state_dict())
    with lucid.no_grad():
        ours.copy_(theirs)
    for weight, optimizer in weights:
        optimizer.zero_grad()
        (weight**2).sum().backward()
        optimizer.step()
    assert ours.tolist() == pytest.approx(theirs.tolist(), rel=1e-6)


def test_every_declared_module_and_name_is_there():
    from importlib import import_module

    from lucid._declared.reader import table

    for name, entry in table().items():
        import_module("lucid" if name == "lucid" else f"lucid.{name}")
        for make in entry.names.values():
            make()


def test_classes_take_attributes():
    import inspect
    import typing

    kind = typing.TypeVar("kind")

    class Generic(lucid.nn.Module, typing.Generic[kind]):
        pass

    module = Generic[int]()
    object.__setattr__(module, "plain", lucid.nn.Linear(1, 1))
    assert list(module.parameters()) == [] and str(inspect.signature(module)) == "(*args, **kwargs)"
    module.member = lucid.nn.Linear(1, 1)
    assert len(list(module.parameters())) == 2
    del module.member
    assert list(module.parameters()) == []
    lucid.Tensor.doubled = lambda self: self * 2
    assert lucid.ones(1).doubled().item() == 2
    del lucid.Tensor.doubled


def test_devices_can_be_named():
    for name in ("mps", "xpu:1", "hpu"):
        assert str(lucid.device(name)) == str(torch.device(name)) and lucid.device(name) == lucid.device(name)
        with pytest.raises(RuntimeError):
            lucid.ones(1, device=name)
    assert lucid.device("mps") != lucid.device("cpu") and not lucid.is_autocast_enabled("mps")


def test_a_value_written_to_itself():
    for m in LIBRARIES:
        x = m.ones(1, 2, 2)
        x[:, 0, 0] *= 3
        assert x.tolist() == [[[3, 1], [1, 1]]]
