"""What programs written for PyTorch import and call besides ops: old tensor types, switches, places where names are."""

import collections
import hashlib
import importlib
import inspect

import numpy
import pytest
import torch

import lucid
from tests.nn.programs import assert_close, attempt

TYPES = ["Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"]


def of_data(m, *data):
    return [getattr(m, f"{name}Tensor")(*data) for name in TYPES]


def syncs(m):
    net = m.nn.Sequential(m.nn.BatchNorm1d(2), m.nn.ModuleList([m.nn.BatchNorm2d(3, affine=False).eval()]))
    made = m.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    same = [a is b for a, b in zip(net.state_dict(keep_vars=True).values(), made.state_dict(keep_vars=True).values())]
    norm = m.nn.SyncBatchNorm(2, momentum=None)
    x = m.arange(12.0).reshape(2, 2, 3)
    return (
        str(made),
        same,
        [n.training for n in made.modules()],
        norm(x),
        norm.running_mean,
        made[0](m.arange(6.0).reshape(3, 2)),
    )


def prefixes(m):
    module = importlib.import_module(f"{m.__name__}.nn.modules.utils")
    state = m.nn.DataParallel(m.nn.Sequential(m.nn.Linear(2, 1))).state_dict()
    before = list(state), list(state._metadata)
    module.consume_prefix_in_state_dict_if_present(state, "module.")
    return before, list(state), list(state._metadata)


def shared_by_variable(m):
    x = m.zeros(2)
    m.autograd.Variable(x).add_(1)
    return x


def default_types(m):
    try:
        seen = []
        for kind in (m.DoubleTensor, f"{m.__name__}.HalfTensor", m.FloatTensor):
            m.set_default_tensor_type(kind)
            seen.append(str(m.ones(1).dtype))
        return seen
    finally:
        m.set_default_dtype(m.float32)


def switches(m):
    b = m.backends
    seen = [
        b.cudnn.enabled,
        b.cudnn.benchmark,
        b.cudnn.deterministic,
        b.cudnn.allow_tf32,
        b.cudnn.is_available(),
        b.cudnn.version(),
    ]
    with b.cudnn.flags(enabled=False, deterministic=True):
        seen += [b.cudnn.enabled, b.cudnn.deterministic]
    seen += [b.cudnn.enabled, b.cudnn.deterministic, b.mps.is_available(), b.mps.is_built(), b.cuda.matmul.allow_tf32]
    seen += [b.cuda.flash_sdp_enabled(), b.cuda.math_sdp_enabled(), b.mkldnn.enabled]
    m.set_float32_matmul_precision("high")
    seen.append(m.get_float32_matmul_precision())
    m.set_float32_matmul_precision("highest")
    return seen, m.is_warn_always_enabled(), m.get_device(m.ones(1)), m.is_distributed(m.ones(1))


def kernels(m, *wrong):
    module = importlib.import_module(f"{m.__name__}.nn.attention")
    seen, q = [], m.arange(8.0).reshape(1, 2, 4)
    for kind in wrong or (module.SDPBackend.MATH, [module.SDPBackend.FLASH_ATTENTION, module.SDPBackend.MATH]):
        with module.sdpa_kernel(kind):
            seen += [m.backends.cuda.math_sdp_enabled(), m.backends.cuda.flash_sdp_enabled()]
            seen.append(m.nn.functional.scaled_dot_product_attention(q, q, q))
    return seen, m.backends.cuda.mem_efficient_sdp_enabled(), [b.name for b in (module.SDPBackend.CUDNN_ATTENTION,)]


def special_functions(m):
    s, x, n = m.special, m.tensor([0.5, 1.5, 3.0]), m.tensor([1.0, 2.0, 0.5])
    one = (s.digamma, s.psi, s.erf, s.erfc, s.exp2, s.expit, s.expm1, s.gammaln, s.i0, s.log1p, s.round, s.sinc)
    two = (s.gammainc, s.gammaincc, s.xlogy)
    others = [s.erfinv(x / 4), s.logit(x, eps=0.1), s.multigammaln(x, 1), s.polygamma(1, x)]
    return [f(x) for f in one], [f(n, x) for f in two], others, [f(x, 0) for f in (s.softmax, s.log_softmax, s.logsumexp)]


def gradients_of_convolutions(m):
    found = []
    for dims in (1, 2, 3):
        x = m.arange(4.0 * 5**dims).reshape(1, 4, *[5] * dims) / 50
        w = m.arange(8.0 * 2**dims).reshape(4, 2, *[2] * dims) / 9
        options = {"stride": 2, "padding": 1, "groups": 2}
        g = m.ones_like(getattr(m.nn.functional, f"conv{dims}d")(x, w, **options)).requires_grad_()
        of_input = getattr(m.nn.grad, f"conv{dims}d_input")(x.shape, w, g, **options)
        of_weight = getattr(m.nn.grad, f"conv{dims}d_weight")(x, w.shape, g.detach(), **options)
        of_input.sum().backward()
        found += [of_input, of_weight, g.grad]
    return found


def trees(m):
    p, pair = importlib.import_module(f"{m.__name__}.utils._pytree"), collections.namedtuple("pair", "a b")
    tree = {"x": [1, (2, None)], "y": pair(3, collections.OrderedDict(q=4)), "z": collections.deque([5], maxlen=3)}
    leaves, spec = p.tree_flatten(tree)
    ordered = p.tree_map(lambda a, b: a + b, {"a": 1, "b": 2}, {"b": 20, "a": 10})
    best = p.tree_leaves(m.max(m.ones(2, 2), 0))
    refused = []
    for bad in (lambda: p.tree_unflatten([1], spec), lambda: p.tree_map(max, [1, 2], [1]), lambda: p.tree_map(max, [1], (1,))):
        try:
            bad()
        except ValueError:
            refused.append("ValueError")
    return (
        leaves,
        str(spec).replace("torch", "lucid"),
        str(p.tree_unflatten(range(6), spec)),
        (spec.num_leaves, spec.num_nodes, spec.num_children, spec == p.tree_structure(tree), spec == p.tree_structure([1])),
        p.tree_map_only(int, lambda v: v * 2, [1, "a", (2,)]),
        (p.tree_all(bool, [1, [2]]), p.tree_any(bool, [0, [0]]), p.tree_all_only(int, bool, [1, ""]), p.tree_is_leaf([1])),
        p.tree_leaves([(1, 2), [3]], is_leaf=lambda v: isinstance(v, tuple)),
        ordered,
        best,
        refused,
    )


CASES = {
    "special functions": special_functions,
    "gradients of convolutions": gradients_of_convolutions,
    "NLLLoss2d": lambda m: m.nn.NLLLoss2d()(m.ones(1, 2, 2, 2).log_softmax(1), m.zeros(1, 2, 2, dtype=m.int64)),
    "trees": trees,
    "types of data": lambda m: of_data(m, [[1, 0], [0, 1]]),
    "types of arrays": lambda m: of_data(m, numpy.array([1.5, 0.0])),
    "types of a range": lambda m: of_data(m, range(2)),
    "types of nothing": of_data,
    "types of sizes": lambda m: [tuple(t.shape) for args in ((2, 3), (4,), (m.Size([2, 1]),)) for t in of_data(m, *args)],
    "types of tensors": lambda m: m.LongTensor([m.tensor(3), 4]),
    "a type of a tensor is the tensor": lambda m: (x := m.ones(2), m.FloatTensor(x).add_(1), x)[2],
    "a type of another tensor": lambda m: m.FloatTensor(m.ones(2, dtype=m.float64)),
    "a type of a number": lambda m: m.FloatTensor(1.5),
    "a type of bytes": lambda m: m.ByteTensor(b"ab"),
    "a type that does not fit": lambda m: m.ByteTensor([300]),
    "a type on a device": lambda m: m.FloatTensor([1, 2], device="cpu"),
    "isinstance": lambda m: [isinstance(x, m.FloatTensor) for x in (m.ones(1), m.nn.Parameter(m.ones(1)), m.ones(1).int(), 1)],
    "names of types": lambda m: (repr(m.LongTensor), m.LongTensor.__name__, str(m.LongTensor.dtype), m.LongTensor.is_cuda),
    "type() takes types": lambda m: m.ones(2).type(m.LongTensor),
    "type() takes no other class": lambda m: m.ones(2).type(int),
    "Module.type": lambda m: str(m.nn.Linear(1, 1).type(m.DoubleTensor).weight.dtype),
    "cuda types": lambda m: m.cuda.FloatTensor(2) if not m.cuda.is_available() else m.FloatTensor(1.5),
    "default types": default_types,
    "a default type of integers": lambda m: m.set_default_tensor_type(m.LongTensor),
    "typename": lambda m: [m.typename(x) for x in (m.ones(1), m.nn.Linear(1, 1), m.nn.Linear, 1, "a")],
    "Tensor of an array": lambda m: m.Tensor(numpy.arange(6).reshape(2, 3)),
    "Tensor of a NumPy number": lambda m: tuple(m.Tensor(numpy.int64(3)).shape),
    "Tensor of a Size": lambda m: tuple(m.Tensor(m.Size([2, 3])).shape),
    "Tensor of a float": lambda m: m.Tensor(2.5),
    "Tensor of a bool": lambda m: m.Tensor(True),
    "Tensor of nothing": lambda m: m.Tensor(None),
    "new of an array": lambda m: m.ones(1).new(numpy.array([1, 2])),
    "new of another dtype": lambda m: m.ones(1).new(m.arange(2)),
    "asarray detaches": lambda m: [
        m.asarray(m.ones(2, requires_grad=True) * 2, **options)
        for options in ({}, {"requires_grad": False}, {"requires_grad": True})
    ],
    "inner with a number of another dtype": lambda m: m.inner(m.arange(3.0), m.tensor(2)),
    "Variable": lambda m: [m.autograd.Variable(m.ones(2), *a) for a in ((), (False,), (True,))],
    "Variable of what wants gradients": lambda m: m.autograd.Variable(m.ones(2, requires_grad=True)),
    "Variable of nothing": lambda m: m.autograd.Variable(),
    "Variable of a list": lambda m: m.autograd.Variable([1.0]),
    "Variable shares": shared_by_variable,
    "isinstance Variable": lambda m: [isinstance(x, m.autograd.Variable) for x in (m.ones(1), 1)],
    "range": lambda m: [m.range(1, 4), m.range(0, 1, 0.25), m.range(5, 1, -2), m.range(1, 2, dtype=m.int64)],
    "range backwards": lambda m: m.range(3, 1),
    "range by nothing": lambda m: m.range(0, 1, 0),
    "range without an end": lambda m: m.range(3),
    "range into": lambda m: m.range(0, 2, out=m.zeros(1, dtype=m.float64)),
    "switches": switches,
    "matmul precision": lambda m: m.set_float32_matmul_precision(1),
    "no GPU of Apple's or Intel's": lambda m: (m.mps.is_available(), m.mps.device_count(), m.xpu.is_available()),
    "seeds of devices": lambda m: (m.cuda.manual_seed(1), m.cuda.manual_seed_all(1), m.cuda.seed_all(), m.mps.manual_seed(1)),
    "not distributed": lambda m: m.distributed.is_initialized(),
    "DistributedDataParallel": lambda m: m.nn.parallel.DistributedDataParallel(m.nn.Linear(1, 1)),
    "DataParallel": lambda m: (str(m.nn.DataParallel(m.nn.ReLU())), m.nn.DataParallel(m.nn.ReLU())(m.arange(-1.0, 2.0))),
    "SyncBatchNorm": syncs,
    "SyncBatchNorm of a vector": lambda m: m.nn.SyncBatchNorm(2)(m.ones(2)),
    "prefixes": prefixes,
    "pools of the main namespace": lambda m: [
        m.avg_pool1d(m.arange(4.0)[None], 2),
        m.max_pool2d(m.arange(16.0).reshape(1, 1, 4, 4), 2),
    ],
    "assert_allclose": lambda m: m.testing.assert_allclose(m.tensor([1.0, float("nan")]), [1.00005, float("nan")]),
    "assert_allclose differs": lambda m: m.testing.assert_allclose(m.tensor([1.0]), [1.001]),
    "sharing strategies": lambda m: sorted(m.multiprocessing.get_all_sharing_strategies()),
    "no such strategy": lambda m: m.multiprocessing.set_sharing_strategy("post"),
    "not compiled": lambda m: (
        m.jit.is_scripting(),
        m.jit.is_tracing(),
        m.jit.annotate(int, 3),
        m.jit.unused(lambda v: v + 1)(1),
    ),
    "storage": lambda m: (
        x := m.arange(6.0).reshape(2, 3),
        s := x[1].storage(),
        s.__setitem__(0, 7.0),
        [
            len(s),
            s.size(),
            s[0],
            s[-1],
            s.nbytes(),
            s.element_size(),
            s.tolist(),
            list(s),
            s.is_shared(),
            s.is_cuda,
            str(s.dtype),
        ],
        [s.data_ptr() == x.data_ptr(), s.untyped().nbytes(), m.is_storage(s), s.clone().fill_(2).tolist(), repr(s)],
        x,
    )[3:],
    "kernels of attention": kernels,
    "no kernel of attention": lambda m: kernels(m, 7),
    "a storage by a tensor": lambda m: m.ones(2).storage()[m.tensor(0)],
    "slices of a storage": lambda m: m.ones(2).storage()[:1],
    "storages": lambda m: [m.TypedStorage(3, dtype=m.int32).size(), m.TypedStorage([1, 2], dtype=m.float64).tolist()],
    "new of a storage": lambda m: (x := m.arange(4.0), y := x.new(x.storage()).view(2, 2), y.zero_(), x)[3],
    "batches in shared memory": lambda m: (
        x := m.ones(2),
        out := x.new(x.storage()._new_shared(4, device=x.device)).resize_(2, 2),
        m.stack([x, x], 0, out=out).is_shared(),
        out,
    )[2:],
    "versions": lambda m: (m.version.cuda, m.version.hip, m.version.debug),
}


def matrices(m):
    return m.tensor([[1.0, -2.0, 0.5], [3.0, 4.0, -1.0]]), m.arange(24.0).reshape(2, 3, 4) - 7


NORMS = [
    ("norm", {}),
    ("norm", {"ord": 1}),
    ("norm", {"ord": float("inf")}),
    ("norm", {"ord": "fro", "keepdim": True}),
    ("norm", {"ord": 3, "dim": 1}),
    ("norm", {"ord": -1, "dim": (0, 1)}),
    ("norm", {"dim": (0, 1), "keepdim": True}),
    ("norm", {"dim": -1, "dtype": "float64"}),
    ("norm", {"ord": 0, "dim": 0}),
    ("norm", {"ord": "foo"}),
    ("norm", {"ord": 3}),
    ("norm", {"ord": 1, "dim": (0, 0)}),
    ("vector_norm", {}),
    ("vector_norm", {"ord": 1.5, "dim": (0, 1)}),
    ("vector_norm", {"ord": -float("inf"), "dim": -1, "keepdim": True}),
    ("vector_norm", {"dim": []}),
    ("vector_norm", {"dim": 7}),
    ("matrix_norm", {}),
    ("matrix_norm", {"ord": -float("inf")}),
    ("matrix_norm", {"ord": -1, "keepdim": True}),
    ("matrix_norm", {"ord": 1, "dim": (0, 1)}),
    ("matrix_norm", {"ord": 0.5}),
    ("diagonal", {}),
    ("diagonal", {"offset": 1}),
    ("vander", {}),
    ("vander", {"N": 2}),
]


@pytest.mark.parametrize("case", NORMS, ids=str)
@pytest.mark.parametrize("which", [0, 1, 2], ids=["matrix", "batch", "vector"])
def test_linalg(case, which):
    def program(m):
        name, options = case
        options = {k: getattr(m, v) if k == "dtype" else v for k, v in options.items()}
        x = (*matrices(m), m.tensor([1.0, -2.0, 2.0]))[which].requires_grad_()
        y = getattr(m.linalg, name)(x, **options)
        return y, m.autograd.grad((y * y).sum(), [x])

    assert_close(*(attempt(program, m) for m in (lucid, torch)))


PRODUCTS = {
    "cross": lambda m: m.linalg.cross(m.eye(3)[:2], m.ones(2, 3)),
    "multi_dot": lambda m: [
        m.linalg.multi_dot(t) for t in ([m.ones(2), m.ones(2, 3)], [m.ones(2, 3), m.ones(3, 1), m.ones(1)])
    ],
    "multi_dot of vectors": lambda m: m.linalg.multi_dot([m.ones(2), m.ones(2, 3), m.ones(3)]),
    "multi_dot of one": lambda m: m.linalg.multi_dot([m.ones(2, 2)]),
    "multi_dot of batches": lambda m: m.linalg.multi_dot([m.ones(2, 2), m.ones(2, 2, 2), m.ones(2, 2)]),
    "vecdot": lambda m: [m.linalg.vecdot(*matrices(m)[:1] * 2, dim=d) for d in (0, -1)],
    "vecdot of complex": lambda m: m.linalg.vecdot(m.tensor([1j, 2.0]), m.tensor([3.0, 1j])),
    "vecdot of dtypes": lambda m: m.linalg.vecdot(m.ones(2), m.ones(2, dtype=m.float64)),
    "powers": lambda m: (m.linalg.matrix_power(m.ones(2, 2), 3), m.linalg.matmul(m.ones(2, 2), m.ones(2))),
    "integers": lambda m: m.linalg.norm(m.arange(3)),
    "a number": lambda m: m.linalg.vector_norm(m.tensor(-2.0)),
    "into": lambda m: m.linalg.norm(m.ones(4), out=m.empty(())),
    "vander of one": lambda m: m.linalg.vander(m.ones(2), N=1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    assert_close(*(attempt(PRODUCTS[name], m) for m in (lucid, torch)))


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    ours, theirs = (attempt(CASES[name], m) for m in (lucid, torch))
    assert_close(ours, theirs)


# modules that programs import from, and what they import
PLACES = {
    "autograd": ["Variable"],
    "autograd.variable": ["Variable"],
    "backends.cudnn": ["benchmark", "deterministic", "enabled", "is_available", "version"],
    "cuda": [
        "OutOfMemoryError",
        "empty_cache",
        "is_initialized",
        "max_memory_allocated",
        "memory_allocated",
        "memory_reserved",
    ],
    "cuda.amp": ["GradScaler", "autocast", "custom_bwd", "custom_fwd"],
    "func": ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jvp", "linearize", "rearrange", "vjp"],
    "hub": ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"],
    "jit": ["Final", "annotate", "export", "is_scripting", "is_tracing", "unused"],
    "nn.common_types": ["_ratio_2_t", "_size_1_t", "_size_2_t", "_size_3_t", "_size_any_t"],
    "nn.modules.batchnorm": ["BatchNorm1d", "BatchNorm2d", "SyncBatchNorm", "_BatchNorm", "_NormBase"],
    "nn.modules.conv": ["_ConvNd", "_ConvTransposeNd"],
    "nn.modules.activation": ["MultiheadAttention"],
    "nn.modules.dropout": ["_DropoutNd"],
    "nn.modules.instancenorm": ["InstanceNorm2d", "_InstanceNorm"],
    "nn.modules.upsampling": ["Upsample"],
    "nn.modules.utils": ["_ntuple", "_pair", "_quadruple", "_reverse_repeat_tuple", "_single", "_triple"],
    "nn.parallel": ["DataParallel", "DistributedDataParallel"],
    "nn": ["DataParallel", "NLLLoss2d", "SyncBatchNorm", "common_types", "grad", "parallel"],
    "nn.grad": ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"],
    "special": [
        "digamma",
        "erf",
        "expit",
        "gammainc",
        "gammaincc",
        "gammaln",
        "log1p",
        "logit",
        "multigammaln",
        "psi",
        "xlogy",
    ],
    "types": ["Device", "Number", "_size"],
    "utils._pytree": ["tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure", "tree_unflatten"],
    "utils.data._utils.collate": ["default_collate"],
    "utils.data.distributed": ["DistributedSampler"],
    "utils.dlpack": ["from_dlpack", "to_dlpack"],
    "utils.hooks": ["RemovableHandle"],
    "utils.model_zoo": ["load_url"],
}


@pytest.mark.parametrize("place", PLACES)
def test_places(place):
    theirs, ours = (importlib.import_module(f"{library}.{place}") for library in ("torch", "lucid"))
    for name in PLACES[place]:
        assert hasattr(ours, name) and hasattr(theirs, name)
        if inspect.isclass(getattr(theirs, name)) and issubclass(getattr(theirs, name), torch.nn.Module):
            assert issubclass(getattr(ours, name), lucid.nn.Module)
        if inspect.isfunction(getattr(ours, name)) and inspect.isfunction(getattr(theirs, name)) and name[0] != "_":
            assert list(inspect.signature(getattr(ours, name)).parameters) == list(
                inspect.signature(getattr(theirs, name)).parameters
            )


def test_questions_about_accelerators():
    has = lucid.cuda.is_available()
    assert lucid.accelerator.is_available() == has == (lucid.accelerator.current_accelerator() is not None)
    assert lucid.cuda.memory_allocated() <= lucid.cuda.max_memory_allocated()
    assert lucid.cuda.memory_reserved() <= lucid.cuda.max_memory_reserved()
    assert issubclass(lucid.OutOfMemoryError, RuntimeError)
    if not has:
        for call in (lucid.accelerator.synchronize, lucid.cuda.init):
            with pytest.raises(lucid.GpuNotAvailable):
                call()


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_hub(m, tmp_path, monkeypatch):
    monkeypatch.setattr(m.hub, "_dir" if m is lucid else "_hub_dir", None)  # whatever was set before
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert m.hub.get_dir() == str(tmp_path / "home/hub")
    source = tmp_path / "model.pth"
    m.save({"weight": m.ones(2)}, source)
    wanted = hashlib.sha256(source.read_bytes()).hexdigest()
    named = source.rename(tmp_path / f"model-{wanted[:8]}.pth").as_uri()
    for _ in range(2):  # fetched once, then kept
        state = m.hub.load_state_dict_from_url(named, progress=False, check_hash=True, map_location="cpu")
        assert state["weight"].tolist() == [1, 1]
        (tmp_path / f"model-{wanted[:8]}.pth").unlink(missing_ok=True)
    assert (tmp_path / f"home/hub/checkpoints/model-{wanted[:8]}.pth").exists()
    wrong = tmp_path / "model-00000000.pth"
    m.save({}, wrong)
    with pytest.raises(RuntimeError):
        m.hub.load_state_dict_from_url(wrong.as_uri(), model_dir=tmp_path / "kept", progress=False, check_hash=True)
    assert list((tmp_path / "kept").iterdir()) == []
