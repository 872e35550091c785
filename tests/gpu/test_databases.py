"""Every module of PyTorch's module database and every configuration of its optimizers on `cuda`, against the CPU, which
tests/nn and tests/optim compare with PyTorch: results, gradients, states and parameters after some steps."""

import copy
import warnings

import pytest

import lucid
from tests.gpu import prepare_databases

if not lucid.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)
torch = pytest.importorskip("torch")
prepare_databases()

from torch.testing._internal.common_modules import module_db  # noqa: E402
from torch.testing._internal.common_optimizers import optim_db  # noqa: E402

from tests.compat.exchange import to_torch  # noqa: E402
from tests.gpu.op_db import Placed  # noqa: E402
from tests.nn.test_module_db import ToLucid, flat  # noqa: E402
from tests.optim import test_optim_db as optimizers  # noqa: E402

WIDE = {torch.float64: 1e-7, torch.float32: 1e-3, torch.bfloat16: 5e-2}


class ToDevice(Placed, ToLucid):
    """Arguments of a module: modules and functions by name, tensors on a device."""

    def __call__(self, value):
        made = (
            ToLucid.__call__(self, value)
            if not isinstance(value, (torch.device, str, torch.Generator))
            else super().__call__(value)
        )
        return made.to(self.device) if isinstance(made, lucid.nn.Module) else made


def assert_alike(mine, cpu, what):
    assert len(mine) == len(cpu), what
    for a, b in zip(mine, cpu):
        assert (a is None) == (b is None), what
        if a is None or not isinstance(a, lucid.Tensor):
            continue
        a, b = to_torch(a.detach().cpu()), to_torch(b.detach())
        assert a.dtype == b.dtype and a.shape == b.shape, what
        rtol = WIDE.get(b.dtype, 1e-7)
        finite = b[b.isfinite()].abs().double() if b.is_floating_point() else b.new_zeros(0).double()
        atol = rtol * max(1.0, finite.max().item() if finite.numel() else 0.0)
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True, msg=lambda m: f"{what}: {m}")


def outcome(kind, sample, info, dtype, training, device):
    """Result, gradients of inputs and parameters, state and whether random numbers were drawn."""
    to = ToDevice("cpu")
    args, kwargs = to(sample.constructor_input.args), to(sample.constructor_input.kwargs)
    lucid.manual_seed(3)
    module = kind(*args, **kwargs).to(dtype).train(training).to(device)
    to = ToDevice(device)
    args, kwargs = to(sample.forward_input.args), to(sample.forward_input.kwargs)
    lucid.manual_seed(7)
    state = lucid.get_rng_state()
    result = module(*args, **kwargs)
    drawn = device == "cpu" and not lucid.equal(lucid.get_rng_state(), state)
    smooth = [t for t in flat(result) if isinstance(t, lucid.Tensor) and t.requires_grad]
    if smooth:
        sum((t * (i + 1)).sum() for i, t in enumerate(smooth)).backward()
    lucid.cuda.synchronize()
    parameters = [p for p in module.parameters() if not lucid.nn.parameter.is_lazy(p)]
    return flat(result), [t.grad for t in to.leaves], [p.grad for p in parameters], list(module.state_dict().values()), drawn


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", module_db, ids=lambda info: info.formatted_name)
def test_module(info, training, dtype):
    kind, wrong = getattr(lucid.nn, info.module_cls.__name__), []
    torch.manual_seed(5)
    samples = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, sample in enumerate(samples):
            if sample.forward_input is None or i >= 24:
                continue
            ours = getattr(lucid, str(dtype)[6:])
            try:
                *cpu, drawn = outcome(kind, sample, info, ours, training, "cpu")
            except Exception:  # noqa: BLE001  refused: tests/nn compares errors
                continue
            try:
                *here, _ = outcome(kind, sample, info, ours, training, "cuda")
                if drawn:
                    assert [t.shape for t in here[0]] == [t.shape for t in cpu[0]]
                    continue
                for a, b, what in zip(here, cpu, ("result", "gradient of an input", "gradient of a parameter", "state")):
                    assert_alike(a, b, what)
            except Exception as error:  # noqa: BLE001  all samples are tried
                wrong.append(f"sample {i} {sample.desc}: {type(error).__name__}: {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)


CASES = [(info, i) for info in optim_db for i, _ in enumerate(info.optim_inputs_func(device="cuda"))]


def on_device(value, device):
    value = optimizers.convert(value)
    return value.to(device) if isinstance(value, lucid.Tensor) and value.dim() else value


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("info", "i"), CASES, ids=[f"{info.name}-{i}" for info, i in CASES])
def test_optimizer(info, i, dtype):
    given = info.optim_inputs_func(device="cuda")[i].kwargs
    kind, sides = getattr(lucid.optim, info.optim_cls.__name__), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for device in ("cpu", "cuda"):
            settings = {k: on_device(v, device) for k, v in given.items() if k != "params"}
            if device == "cpu":
                settings |= {"capturable": False} if "capturable" in settings else {}  # for GPUs alone
            start, _ = optimizers.parameters(info, getattr(torch, dtype))
            params = [p.detach().to(device).requires_grad_() for p in start]
            optimizer = kind(params, **settings)
            losses = optimizers.run(optimizer, params)
            again = kind([p.detach().clone().requires_grad_() for p in params], **settings)
            again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            taken_up = again.param_groups[0]["params"]
            losses += optimizers.run(again, taken_up, 3)
            sides.append((losses, [*params, *taken_up], optimizer.state_dict()["state"]))
    rtol = max(optimizers.tolerance(info), 1e-7 if dtype == "float64" else 2e-3)
    (a, a_params, a_state), (b, b_params, b_state) = sides[::-1]
    assert optimizers.near(a, b, rtol)
    for x, y in zip(a_params, b_params):
        assert x.device.type == "cuda" and y.device.type == "cpu"
        torch.testing.assert_close(to_torch(x.detach().cpu()), to_torch(y.detach()), rtol=rtol, atol=rtol)
    if info.name != "LBFGS" or dtype == "float64":  # how often LBFGS tries a step near the end hangs on the last bits
        assert optimizers.near(optimizers.comparable(a_state), optimizers.comparable(b_state), rtol)
