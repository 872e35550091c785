"""PyTorch's op database on `cuda`: every op on a bounded number of samples per dtype, in every form of a call, against Lucid's
CPU, which tests/compat compares with PyTorch. Where the two differ, PyTorch's own CUDA judges if it is there: what it gives or
refuses is right too.

usage: python -m tests.gpu.op_db [OP ...]     prints the failures of these ops, or of all
"""

import itertools
import os
import random
import re
import sys
import warnings
import zlib

import numpy as np
import torch
from torch.utils._pytree import tree_map

import lucid
from tests.compat.exchange import Exchange, Missing, to_torch
from tests.compat.forms import FREE_VECTORS, NO_VALUES, OPS, Variant, brief, noncontiguous, seed, shares_elements, tensors_of

SAMPLES = 4 * int(os.environ.get("LUCID_EXPLORE") or 1)  # per variant and dtype
GRADIENTS = {torch.float64: SAMPLES, torch.complex128: SAMPLES}  # of other dtypes half as many
DRAWN_FROM = 40 * int(os.environ.get("LUCID_EXPLORE") or 1)  # making all samples of an op takes longest
# rtol, and atol relative to the largest element: the two devices add in other orders
TOLERANCE = {
    torch.float16: 4e-3, torch.bfloat16: 3e-2, torch.float32: 2e-4, torch.float64: 1e-8, torch.complex32: 6e-3,
    torch.complex64: 2e-4, torch.complex128: 1e-8,
}  # fmt: skip
# Lengths that the host reads: they stay on the CPU, as in PyTorch
ON_THE_HOST = {"tensor_split"}
# One answer of many: the shapes are compared. Signs and phases of vectors; which of equal elements is named; who writes last.
FREE = {
    "geqrf", "lobpcg", "mode", "linalg.ldl_factor", "linalg.ldl_factor_ex",
}  # fmt: skip
MISSING = re.compile(r"is not implemented for \w+ on cuda")
# Which of several equal elements has the gradient is free: those of few digits are often equal
OF_EQUALS = {"topk", "kthvalue", "mode", "median", "nanmedian", "max", "min", "sort", "msort", "argsort"}
# A context that is lost: every later call of this process would fail
LOST = re.compile(r"illegal|misaligned|unspecified launch|device-side|hardware stack|launch timed out", re.I)


class Placed(Exchange):
    """Arguments on a device: "cpu" becomes that device in them too."""

    def __init__(self, device, integers_stay=False):
        super().__init__(ours=True)
        self.device, self.integers_stay = device, integers_stay

    def placed(self, flat):
        return flat if self.integers_stay and not flat.is_floating_point() else flat.to(self.device)

    def __call__(self, value):
        if isinstance(value, torch.device) or (isinstance(value, str) and value == "cpu"):
            return lucid.device(self.device) if str(value) == "cpu" else super().__call__(value)
        if isinstance(value, torch.Generator):
            generator = lucid.Generator(self.device)
            generator.manual_seed(value.initial_seed())
            return generator
        return super().__call__(value)


class Outcome:
    """What a call gave: results and gradients, or an error; and whether it drew random numbers."""

    def __init__(self, results=None, error=None, random=False):
        self.results, self.error, self.random = results, error, random


def flattened(value):
    if isinstance(value, (list, tuple)):
        return [x for v in value for x in flattened(v)]
    return [value]


def with_gradients(m, results, leaves):
    """The results that depend on leaves, and the gradients of a weighted sum of them."""
    results = [y for y in results if y.requires_grad]
    if not results or not leaves:
        return []
    generator, weights = torch.Generator().manual_seed(11), []
    for y in results:
        w = torch.randn(tuple(y.shape), dtype=torch.float64, generator=generator)
        w = lucid.from_dlpack(w) if m is lucid else w
        weights.append(w.to(y.device).to(y.dtype))
    return results + [g for g in m.autograd.grad(results, leaves, weights, allow_unused=True) if g is not None]


def run(device, function, sample, form, to):
    """An Outcome on a device of Lucid's."""
    seed()
    state = lucid.get_rng_state() if device == "cpu" else None
    try:
        args, kwargs = to((sample.input, *sample.args)), to(sample.kwargs)
        with lucid.device(device):
            if form == "inplace grad":
                args = (args[0].clone(), *args[1:])
            result = function(*args, **kwargs)
            results = flattened(result)
            if form == "inplace":
                results.append(args[0])
            if form.endswith("grad"):
                results = with_gradients(lucid, tensors_of(sample.output_process_fn_grad(result), lucid.Tensor), to.leaves)
        if device != "cpu":
            lucid.cuda.synchronize()
    except Missing:
        raise
    except Exception as error:  # noqa: BLE001  compared with the other device's
        if LOST.search(str(error)) and device != "cpu":
            print(f"op_db: the device is lost: {error}", file=sys.stderr, flush=True)
            os._exit(1)  # xdist names the test, and starts another process
        if device != "cpu":
            try:
                lucid.cuda.synchronize()
            except Exception:  # noqa: BLE001  the error word of the same call
                pass
        return Outcome(error=error)
    return Outcome(results, random=device == "cpu" and not lucid.equal(lucid.get_rng_state(), state))


def theirs_on_cuda(variant, function, sample, form):
    """PyTorch's own outcome on its device, or None if it has none."""
    if not torch.cuda.is_available():
        return None

    def there(x):
        if isinstance(x, torch.Tensor):
            x = x.detach().clone().requires_grad_(x.requires_grad)
            stays = variant.op.name in ON_THE_HOST and not x.is_floating_point()
            moved = x if stays else x.detach().cuda().requires_grad_(x.requires_grad)
            if moved.requires_grad:
                leaves.append(moved)
            return moved
        if isinstance(x, torch.device) or (isinstance(x, str) and x == "cpu"):
            return torch.device("cuda") if str(x) == "cpu" else x
        return torch.Generator("cuda").manual_seed(x.initial_seed()) if isinstance(x, torch.Generator) else x

    leaves = []
    try:
        args, kwargs = tree_map(there, (sample.input, *sample.args)), tree_map(there, dict(sample.kwargs))
        torch.manual_seed(7)
        with torch.device("cuda"):
            if form == "inplace grad":
                args = (args[0].clone(), *args[1:])
            result = function(*args, **kwargs)
            results = flattened(result)
            if form == "inplace":
                results.append(args[0])
            if form.endswith("grad"):
                results = with_gradients(torch, tensors_of(sample.output_process_fn_grad(result), torch.Tensor), leaves)
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001  refused
        return Outcome(error=error)
    return Outcome(results)


def host(x):
    if isinstance(x, torch.Tensor):
        return x.detach().cpu().resolve_conj().resolve_neg()
    x = x.detach()
    x = x.to_dense() if x.layout != lucid.strided else x
    return to_torch(x.cpu().clone())


def first_difference(ours, theirs, tolerance, values, strides=True):
    """None, or a line that says where two lists of results differ."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for i, (a, b) in enumerate(zip(ours, theirs)):
        tensors = (lucid.Tensor, torch.Tensor)
        if not isinstance(b, tensors):
            if isinstance(a, tensors):
                return f"[{i}] a tensor, not {b!r}"
            if isinstance(b, (bool, int, str)) and a != b:
                return f"[{i}] {a!r}, not {b!r}"
            continue
        if not isinstance(a, tensors):
            return f"[{i}] {type(a).__name__}, not a tensor"
        if tuple(a.shape) != tuple(b.shape) or str(a.dtype).split(".")[1] != str(b.dtype).split(".")[1]:
            return f"[{i}] {tuple(a.shape)} {a.dtype}, not {tuple(b.shape)} {b.dtype}"
        if strides and a.layout == lucid.strided and b.numel() > 1:
            mine, other = ([s for s, n in zip(x.stride(), x.shape) if n > 1] for x in (a, b))
            if mine != other:
                return f"[{i}] strides {mine}, not {other}"
        if not values or not b.numel():
            continue
        a, b = host(a), host(b)
        limit = tolerance(b.dtype)
        if b.dtype is torch.complex32:  # PyTorch compares few of these
            a, b = torch.view_as_real(a), torch.view_as_real(b)
        if a.equal(b):
            continue
        if not (b.dtype.is_floating_point or b.dtype.is_complex):
            wrong = a != b
        else:
            wide = torch.complex128 if b.dtype.is_complex else torch.float64
            a, b = a.to(wide), b.to(wide)
            finite = b[b.isfinite()].abs()
            atol = limit * max(1.0, finite.max().item() if finite.numel() else 0.0)
            wrong = ~torch.isclose(a, b, rtol=limit, atol=atol, equal_nan=True)
        if wrong.any():
            at = wrong.nonzero()[0].tolist()
            where = tuple(at)
            first = f"first at {at} of {list(b.shape)}: {a[where].item()}, not {b[where].item()}"
            return f"[{i}] {int(wrong.sum())}/{b.numel()} differ, {first}"
    return None


def tolerance_of(variant):
    """The wider of our own and op_db's."""

    def of(dtype):
        rtol, atol = variant.tolerances.of(dtype, variant.dtype)
        return max(TOLERANCE.get(dtype, 0), TOLERANCE.get(variant.dtype, 0) if dtype.is_floating_point else 0, rtol, atol)

    return of


def invariants(name, results, kind):
    """What vectors of free signs make together, followed by the other results."""
    tensors = [x for x in results if isinstance(x, kind)]
    if name == "linalg.eigvals":  # in any order: traces of powers
        w = host(tensors[0])
        return [(w**k).sum(-1) for k in range(1, w.shape[-1] + 1)]
    if name in FREE_VECTORS and len(tensors) > 1:
        return [y for y in FREE_VECTORS[name](*(host(x) for x in tensors))]
    return results


def named_elements(variant, sample, results):
    """Indices may name any of several equal elements: they are replaced by what they name."""
    name, x = variant.op.name, sample.input
    if name not in ("topk", "kthvalue", "mode") or len(results) != 2 or x.dim() == 0 or results[0].numel() == 0:
        return results
    at = 0 if name == "mode" else 1
    dim = sample.args[at] if len(sample.args) > at else sample.kwargs.get("dim", -1)
    values, places = (host(r) for r in results)
    kept = values.dim() == x.dim()
    chosen = x.detach().gather(dim, places if kept else places.unsqueeze(dim))
    chosen = chosen if kept else chosen.squeeze(dim)
    pair = [values, chosen]
    ordered = name != "topk" or (sample.args[3] if len(sample.args) > 3 else sample.kwargs.get("sorted", True))
    return pair if ordered else [torch.sort(t, dim).values for t in pair]


def judge(variant, ours, cpu, sample, form):
    """None if the outcome on the GPU is the CPU's."""
    if cpu.error is not None:
        if ours.error is None:
            return f"no error; the CPU raises {brief(cpu.error)}"
        kind = next(k for k in type(cpu.error).__mro__ if k.__module__ == "builtins")
        return (
            None if isinstance(ours.error, (kind, RuntimeError)) else f"{brief(ours.error)}; the CPU raises {brief(cpu.error)}"
        )
    if ours.error is not None:
        return brief(ours.error)
    name = variant.op.name
    coarse = variant.dtype in (torch.float16, torch.bfloat16) and name in OF_EQUALS and form.endswith("grad")
    coarse = coarse or (name == "linalg.eigvals" and form == "grad")
    values = name not in NO_VALUES and (name not in FREE or form == "grad") and not cpu.random and not coarse
    a, b = ours.results, cpu.results
    stray = [x for x in a if isinstance(x, lucid.Tensor) and x.device.type != "cuda"]
    if stray and form == "function" and variant.op.name not in ON_THE_HOST and any(isinstance(x, lucid.Tensor) for x in b):
        return "a result on the CPU"
    if values and form != "inplace":
        strides = first_difference(a, b, None, values=False)
        if strides:
            return strides
        if not form.endswith("grad"):
            a, b = named_elements(variant, sample, a), named_elements(variant, sample, b)
            a, b = invariants(name, a, lucid.Tensor), invariants(name, b, lucid.Tensor)
    return first_difference(a, b, tolerance_of(variant), values, strides=not form.endswith("grad"))


def check(variant, form, sample):
    """None, or what is wrong with one call on cuda."""
    ours, theirs = variant.inplaces[::-1] if form.startswith("inplace") else (variant.ours, variant.theirs)
    stays = variant.op.name in ON_THE_HOST
    cpu = run("cpu", ours, sample, form, Placed("cpu"))
    here = run("cuda", ours, sample, form, Placed("cuda", stays))
    wrong = judge(variant, here, cpu, sample, form)
    if wrong is None:
        return None
    there = theirs_on_cuda(variant, theirs, sample, form)
    if there is not None:
        if there.error is not None and here.error is not None:
            return None  # refused there too
        if (
            there.error is None
            and here.error is None
            and not first_difference(
                here.results, there.results, tolerance_of(variant), values=variant.op.name not in NO_VALUES, strides=False
            )
        ):
            return None
        if there.error is not None:
            wrong += f" (PyTorch refuses on cuda: {brief(there.error)})"
    return wrong


def chosen_samples(op, dtype, grad, count):
    """Of the first samples some, other ones for each dtype."""
    for set_seed in (torch.manual_seed, random.seed, np.random.seed):
        set_seed(1)
    try:
        samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), DRAWN_FROM))
    except Exception:  # noqa: BLE001  op_db itself cannot make these
        return []
    step = max(1, len(samples) / count)
    start = zlib.crc32(f"{op.name} {dtype}".encode()) % max(1, int(step))
    places = sorted({int(start + k * step) for k in range(min(count, len(samples)))})
    return [(i, samples[i]) for i in places if i < len(samples)]


def cases(variant):
    """(form, sample number, sample) of a variant, dtype by dtype."""
    op = variant.op
    backward = op.supported_backward_dtypes("cpu") if op.supports_autograd else set()
    for dtype in sorted((d for d in op.supported_dtypes("cpu") if "float8" not in str(d)), key=str):
        variant.dtype = dtype
        for k, (i, sample) in enumerate(chosen_samples(op, dtype, False, SAMPLES)):
            is_tensor = isinstance(sample.input, torch.Tensor)
            if not is_tensor and op.name.startswith("__r"):
                continue
            yield "function", i, sample
            other = noncontiguous(sample) if k % 2 else None
            if other is not None:
                yield "function", f"{i} noncontiguous", other
            if variant.inplaces and is_tensor and not shares_elements(sample.input):
                yield "inplace", i, sample
        if dtype not in backward:
            continue
        for i, sample in chosen_samples(op, dtype, True, GRADIENTS.get(dtype, SAMPLES // 2)):
            yield "grad", i, sample
            if dtype == torch.float64 and variant.inplaces and op.supports_inplace_autograd:
                yield "inplace grad", i, sample


def failures(name):
    """(number of cases, [(dtype, form, sample number, what differs)]) of an op."""
    total, found = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for op in OPS[name]:
            try:
                variant = Variant(op)
            except Missing:  # an op that the CPU lacks: tests/compat/gaps.txt
                continue
            for form, i, sample in cases(variant):
                total += 1
                wrong = check(variant, form, sample)
                if wrong is not None:
                    label = f" {op.variant_test_name}" if op.variant_test_name else ""
                    found.append((str(variant.dtype)[6:] + label, form, i, wrong))
    return total, found


def described(name, found, most=6):
    """A line for each kind of failure."""
    kinds = {}
    for dtype, form, i, wrong in found:
        key = form, re.sub(r"[-\d.]+", "0", wrong)[:60]
        kinds.setdefault(key, []).append((dtype, i, wrong))
    lines = []
    for (form, _), those in list(kinds.items())[:most]:
        dtypes = sorted({d for d, _, _ in those})
        lines.append(f"{name} {form} {','.join(dtypes)} #{those[0][1]} ({len(those)}x): {those[0][2][:200]}")
    return lines + [f"{name}: and {len(kinds) - most} more kinds"] * (len(kinds) > most)


def main(*names):
    wrong = cases = 0
    for name in names or sorted(OPS):
        total, found = failures(name)
        wrong, cases = wrong + len(found), cases + total
        print("\n".join(described(name, found)) or f"{name} {total} ok", flush=True)
    print(f"op_db on cuda: {cases} cases, {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
