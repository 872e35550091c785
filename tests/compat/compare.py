"""Compare results of Lucid and PyTorch: structure, shape, dtype, strides, values. Raises AssertionError if they differ."""

import torch
from torch.testing._internal.common_device_type import precisionOverride, toleranceOverride

import lucid

from .exchange import to_torch

NO_VALUES = {
    "empty",
    "empty_like",
    "new_empty",
    "empty_strided",
    "new_empty_strided",
    "empty_permuted",
    "resize_",
    "resize_as_",
}
RANDOM = {
    "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "rand_like", "randint",
    "randint_like", "randn", "randn_like", "uniform",
}  # fmt: skip
DEFAULTS = {
    torch.float16: (1e-3, 1e-5), torch.bfloat16: (1.6e-2, 1e-5), torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5), torch.complex64: (1.3e-6, 1e-5), torch.complex128: (1e-7, 1e-7),
}  # fmt: skip
REAL_OF = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


class Tolerance:
    """rtol and atol per dtype: torch.testing's, widened where op_db widens them for a test on the CPU."""

    def __init__(self, op):
        self.table = dict(DEFAULTS)
        if op.name in RANDOM:
            self.table.update({d: (max(r, 2e-6), max(a, 2e-6)) for d, (r, a) in DEFAULTS.items()})
        for info in op.decorators:
            if getattr(info, "device_type", None) not in (None, "cpu") or not getattr(info, "active_if", True):
                continue
            for decorator in getattr(info, "decorators", [info]):
                if isinstance(decorator, toleranceOverride):
                    for dtype, tol in decorator.d.items():
                        self.widen(dtype, tol.rtol, tol.atol)
                elif isinstance(decorator, precisionOverride):
                    for dtype, atol in decorator.d.items():
                        self.widen(dtype, 0, atol)

    def widen(self, dtype, rtol, atol):
        was = self.table.get(dtype, (0, 0))
        self.table[dtype] = max(was[0], rtol), max(was[1], atol)

    def of(self, dtype, asked):
        """For a result of this dtype in a test of the dtype asked for."""
        same_width = REAL_OF.get(asked, asked) == REAL_OF.get(dtype, dtype)  # abs of complex64 is float32
        mine, test = self.table.get(dtype, (0, 0)), self.table.get(asked, (0, 0)) if same_width else (0, 0)
        return max(mine[0], test[0]), max(mine[1], test[1])


def assert_same(ours, theirs, tolerance, where="", strides=True, values=True):
    """tolerance: dtype -> (rtol, atol)."""
    if isinstance(theirs, torch.Size):
        assert isinstance(ours, lucid.Size) and tuple(ours) == tuple(theirs), f"{where}{ours!r}, not {theirs!r}"
    elif isinstance(theirs, (tuple, list)):
        kind = list if isinstance(theirs, list) else tuple
        assert isinstance(ours, kind), f"{where}{type(ours).__name__}, not {type(theirs).__name__}"
        assert type(ours) is tuple or type(theirs) is not tuple, f"{where}{type(ours).__name__}, not a plain tuple"
        assert len(ours) == len(theirs), f"{where}{len(ours)} results, not {len(theirs)}"
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert_same(a, b, tolerance, f"{where}[{i}] ", strides, values)
        for field in [f for f in dir(theirs) if kind is tuple and not f.startswith("_") and hasattr(type(theirs), "n_fields")]:
            assert hasattr(ours, field), f"{where}no field {field}"
    elif isinstance(theirs, torch.Tensor):
        assert isinstance(ours, lucid.Tensor), f"{where}{type(ours).__name__}, not a tensor"
        assert_same_tensor(ours, theirs, tolerance, where, strides, values)
    elif isinstance(theirs, torch.dtype):
        assert str(ours) == str(theirs).replace("torch", "lucid"), f"{where}{ours}, not {theirs}"
    else:
        assert type(ours) is type(theirs), f"{where}{type(ours).__name__}, not {type(theirs).__name__}"
        if isinstance(theirs, (float, complex)):
            pair = torch.tensor(ours), torch.tensor(theirs)
            torch.testing.assert_close(*pair, rtol=1e-6, atol=1e-6, equal_nan=True, msg=lambda text: f"{where}{text}")
        else:
            assert ours == theirs, f"{where}{ours!r}, not {theirs!r}"


def assert_same_tensor(ours, theirs, tolerance, where, strides, values):
    assert tuple(ours.shape) == tuple(theirs.shape), f"{where}shape {tuple(ours.shape)}, not {tuple(theirs.shape)}"
    mine, other = str(ours.dtype).split(".")[-1], str(theirs.dtype).split(".")[-1]
    assert mine == other, f"{where}dtype {mine}, not {other}"
    if strides and theirs.numel() and not theirs.is_conj():  # a lazy conjugate of PyTorch's; Lucid computes it
        real = [d for d in range(theirs.ndim) if theirs.shape[d] > 1]
        assert [ours.stride()[d] for d in real] == [theirs.stride()[d] for d in real], (
            f"{where}strides {tuple(ours.stride())}, not {tuple(theirs.stride())}, of shape {tuple(theirs.shape)}"
        )
    if values and theirs.numel():
        theirs = theirs.detach().resolve_conj().resolve_neg()
        ours = to_torch(ours)
        rtol, atol = tolerance(theirs.dtype)
        if theirs.dtype is torch.complex32:  # PyTorch itself compares few of these
            ours, theirs = torch.view_as_real(ours), torch.view_as_real(theirs)
        if ours.equal(theirs):
            return
        torch.testing.assert_close(
            ours, theirs, rtol=rtol, atol=atol, equal_nan=True, check_stride=False, msg=lambda text: f"{where}{one_line(text)}"
        )


def one_line(text):
    keep = [line.strip() for line in text.split("\n") if line.strip() and "allowed)" in line or "Mismatched" in line]
    return "values: " + "; ".join(keep or [text.replace("\n", " ")])


def assert_same_error(ours, theirs):
    """Lucid raises PyTorch's class or a subclass of it. Lucid may implement what PyTorch does not."""
    if isinstance(theirs, NotImplementedError) and (ours is None or isinstance(ours, RuntimeError)):
        return
    if isinstance(theirs, AttributeError):  # an accident of a function that PyTorch writes in Python
        assert ours is not None, "no error, unlike PyTorch"
        return
    kind = next(k for k in type(theirs).__mro__ if k.__module__ == "builtins")
    said = f"PyTorch raises {kind.__name__}: {first_line(theirs)}"
    assert ours is not None, f"no error; {said}"
    assert isinstance(ours, kind), f"{type(ours).__name__}: {first_line(ours)}; {said}"


def first_line(error):
    return (str(error).strip().splitlines() or [""])[0][:160]
