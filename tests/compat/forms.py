"""One op of op_db, in every form it has: what is run on both libraries, and compared.

A form takes a sample (PyTorch's SampleInput) and raises AssertionError where Lucid differs. Each form makes its own arguments.
"""

import collections
import functools
import itertools
import random
import warnings
import zlib

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import lucid
from tests import few

from .compare import NO_VALUES, Tolerance, assert_same, assert_same_error, first_line
from .exchange import Exchange, Missing, counterpart, find, to_torch

OTHERS = (  # not part of Lucid's plan for tensor ops: fused text for CUDA, sparse layouts
    "jiterator_", "to_sparse", "sparse_",
)  # fmt: skip
PACKAGES = ("fft.", "linalg.", "masked.", "signal.windows.", "special.")  # compared as a whole
WIDER = {
    torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float32: torch.float64, torch.complex32: torch.complex64,
    torch.complex64: torch.complex128,
}  # fmt: skip
# PyTorch 2.13 writes out of bounds for a batch and an out= of odd strides; narrow_copy and avg_pool3d as if out= had none
WRITES_ASTRAY = {"tril", "triu", "narrow_copy", "nn.functional.avg_pool3d", "linalg.lu", "lu_unpack"}
ANY_ORDER = {"fft.ifft"}  # an out= that grows is contiguous here; PyTorch's is not if the input is real
IGNORES_OUT = {"fft.ihfft2", "fft.ihfftn"}  # PyTorch 2.13 leaves out= as it was
WRONG_GRADIENT = {"as_strided_scatter"}  # PyTorch's differs from finite differences: op_db expects that check to fail
NO_SECOND = {  # the gradient of PyTorch's in parts cannot be differentiated, although op_db says so
    ("nn.functional.linear_cross_entropy", "chunked"), ("nn.functional.linear_cross_entropy", "chunked_none"),
}  # fmt: skip
ILL_CONDITIONED = {
    "linalg.lstsq",
    "triangular_solve",
}  # random matrices: both libraries' float32 gradients have few right digits
# PyTorch computes aside and copies, or not: a resized out= is laid out as its results are, or row by row
OWN_LAYOUT = {
    "linalg.lstsq", "linalg.matrix_power", "linalg.solve", "linalg.solve_ex", "cholesky", "cholesky_solve", "triangular_solve",
}  # fmt: skip
OVERLOOKS_HISTORY = {"split_with_sizes_copy"}  # PyTorch accepts an out= that requires grad, and drops the flag
OTHER_NUMBERS = {"logsumexp"}  # PyTorch accepts a real out= for complex input and writes wrong values


def _of_svd(u, s, vh):
    k = s.shape[-1]
    return s, (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], u.mH @ u, vh @ vh.mH


# Vectors whose sign, phase or basis is free: what they make together is compared, besides shapes, dtypes and strides
FREE_VECTORS = {
    "linalg.svd": _of_svd,
    "svd": lambda u, s, v: _of_svd(u, s, v.mH) if bool((u != 0).any()) else (s,),
    "svd_lowrank": lambda u, s, v: _of_svd(u, s, v.mH),
    "pca_lowrank": lambda u, s, v: _of_svd(u, s, v.mH),
    "linalg.eigh": lambda w, v: (w, (v * w.unsqueeze(-2)) @ v.mH, v.mH @ v),
    "linalg.eig": lambda w, v: (w, (v * w.unsqueeze(-2)) @ torch.linalg.inv(v), v.abs()),
}


def stable_sort(input, dim=-1, descending=False, *, stable=None, **out):  # noqa: A002
    return torch.sort(input, dim=dim, descending=descending, stable=True, **out)


def stable_argsort(input, dim=-1, descending=False, *, stable=None):  # noqa: A002
    return torch.argsort(input, dim=dim, descending=descending, stable=True)


def stable_msort(input, out=None):  # noqa: A002
    values = torch.sort(input, dim=0, stable=True).values
    return values if out is None else torch.msort(input, out=out)


# PyTorch leaves the order of equal values open unless it is asked for stable=True; Lucid's sorts are always stable
STABLE = {"sort": stable_sort, "argsort": stable_argsort, "msort": stable_msort}
REFERENCE_NUMEL = 20_000  # larger reference inputs are left out
FAST_SAMPLES = 1 if few.wanted() else 6  # per variant and dtype, in the form that CI runs


def chosen(op):
    name = op.name
    public = not name.startswith("_") or (name.startswith("__") and name.endswith("__"))
    if name.startswith("nn.functional."):
        return hasattr(lucid.nn.functional, name.split(".")[-1])  # those that are there
    if name.startswith(PACKAGES):
        return True
    private = name.removeprefix("torch.ops.aten.").removesuffix(".default")
    if private.startswith("_") and not private.startswith("__"):
        return hasattr(lucid, private)  # those that programs call
    return "." not in name and public and not name.startswith(OTHERS)


OPS = collections.defaultdict(list)
for _op in op_db:
    if chosen(_op):
        OPS[_op.name].append(_op)


def seed():
    torch.default_generator.manual_seed(7)
    lucid.manual_seed(7)


def attempt(f, *args, **kwargs):
    seed()
    try:
        return f(*args, **kwargs), None
    except Missing:
        raise
    except Exception as error:  # noqa: BLE001  the class is compared
        return None, error


def brief(error):
    return f"{type(error).__name__}: {first_line(error)}"


def tensors_of(value, kind):
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_of(v, kind)]
    return []


class Variant:
    """An OpInfo and its counterparts in Lucid."""

    def __init__(self, op):
        self.op, self.tolerances = op, Tolerance(op)
        self.values = op.name not in NO_VALUES
        self.theirs = STABLE.get(op.name, op.op)
        self.ours = counterpart(op.op, op.name)
        self.methods = self.pair(op.get_method())
        if op.name in STABLE:
            self.methods = STABLE[op.name], self.methods[1]
        self.inplaces = self.pair(op.get_inplace())
        self.dtype = None

    def pair(self, theirs):
        """A method of PyTorch, and a function that finds Lucid's when it is needed."""
        if theirs is None:
            return None
        if isinstance(theirs, functools.partial):
            return theirs, functools.partial(counterpart(theirs.func, self.op.name), *theirs.args, **theirs.keywords)
        name = getattr(theirs, "__name__", self.op.name)
        if name == "<lambda>":
            return theirs, counterpart(theirs, self.op.name)
        return theirs, lambda x, *args, **kwargs: find(lucid, f"Tensor.{name}")(x, *args, **kwargs)

    def same(self, ours, theirs, tolerance=None, exact=None, **options):
        """exact: the result in a wider dtype; a result at least as close to it as PyTorch's is correct."""
        options.setdefault("values", self.values)
        if self.op.name in FREE_VECTORS and len(tensors_of(theirs, torch.Tensor)) > 1 and options["values"]:
            assert_same(ours, theirs, None, **dict(options, values=False))
            invariants = FREE_VECTORS[self.op.name]
            made = [invariants(*map(to_torch, tensors_of(ours, lucid.Tensor))), invariants(*tensors_of(theirs, torch.Tensor))]
            rtol, atol = self.tolerances.of(self.dtype, self.dtype)
            return torch.testing.assert_close(*made, rtol=100 * rtol, atol=100 * atol)
        try:
            assert_same(ours, theirs, tolerance or (lambda dtype: self.tolerances.of(dtype, self.dtype)), **options)
        except AssertionError as error:
            if exact is None or self.dtype not in WIDER or "values: " not in str(error) or not nearer(ours, theirs, exact()):
                raise
            assert_same(ours, theirs, None, **dict(options, values=False))

    def both(self, sample, theirs, ours, more=lambda m: {}):
        """Run both; None if both raise the same, else the results with the exchanges that made their arguments."""
        runs = []
        for f, to in ((theirs, Exchange(ours=False)), (ours, Exchange(ours=True))):
            args, kwargs = to((sample.input, *sample.args)), to(sample.kwargs)
            result, error = attempt(f, *args, **kwargs, **more(to))
            runs.append((result, error, to, args))
        (b, their_error, to_b, args_b), (a, our_error, to_a, args_a) = runs
        if their_error is not None:
            if "is_contiguous(" not in str(their_error):  # a check inside PyTorch that its kernels do not take strides
                assert_same_error(our_error, their_error)
            return None
        assert our_error is None, brief(our_error)
        return (a, to_a, args_a), (b, to_b, args_b)

    def exactly(self, sample, theirs=None):
        """PyTorch's result for the same sample in wider numbers."""
        wide = widened(sample)
        seed()
        return (theirs or self.theirs)(wide.input, *wide.args, **wide.kwargs)

    def function(self, sample):
        runs = self.both(sample, self.theirs, self.ours)
        if runs:
            (a, to_a, _), (b, to_b, _) = runs
            self.same(a, b, exact=lambda: self.exactly(sample))
            self.same_aliases(a, to_a, b, to_b)

    def same_aliases(self, a, to_a, b, to_b):
        """Views share memory with the same argument as PyTorch's."""
        for x, y in zip(tensors_of(a, lucid.Tensor), tensors_of(b, torch.Tensor)):
            if y.numel() == 0 or y.is_conj():  # a lazy conjugate of PyTorch's; Lucid has none
                continue
            shared = [y.untyped_storage().data_ptr() == t.untyped_storage().data_ptr() for t in to_b.tensors]
            found = [x.untyped_storage().data_ptr() == t.untyped_storage().data_ptr() for t in to_a.tensors]
            assert found == shared, f"shares memory with arguments {found}, not {shared}"

    def method(self, sample):
        runs = self.both(sample, *self.methods)
        if runs:
            self.same(runs[0][0], runs[1][0], exact=lambda: self.exactly(sample, self.methods[0]))

    def inplace(self, sample):
        runs = self.both(sample, *self.inplaces)
        if runs:
            (a, _, args_a), (b, _, args_b) = runs
            self.same(a, b, exact=lambda: self.exactly(sample, self.inplaces[0]))
            self.same(args_a[0], args_b[0], exact=lambda: self.exactly(sample, self.inplaces[0]), where="input ")
            assert (a is args_a[0]) == (b is args_b[0]), "does not return its input"

    def expected(self, sample):
        """PyTorch's results as a list, if they are tensors that out= can name."""
        to = Exchange(ours=False)
        result, error = attempt(self.theirs, *to((sample.input, *sample.args)), **to(sample.kwargs))
        results = [result] if isinstance(result, torch.Tensor) else result
        if error is not None or not isinstance(results, (list, tuple)) or not all(isinstance(t, torch.Tensor) for t in results):
            return None, False
        return results, isinstance(result, torch.Tensor)

    def with_out(self, sample, make, strict=True):
        """Not strict: a right out= that PyTorch refuses may be taken, and keeps strides that PyTorch changes."""
        results, single = self.expected(sample)
        if results is None:
            return
        made = [make(t) for t in results]
        outs = {}

        def out(to):
            outs[to.ours] = to(made[0] if single else tuple(made))
            return {"out": outs[to.ours]}

        try:
            runs = self.both(sample, self.theirs, self.ours, out)
        except AssertionError as error:
            if str(error).startswith("no error") and (not strict or "TypeError" in str(error)):  # no out= with numbers there
                return
            raise
        if runs:
            (a, _, _), (b, _, _) = runs
            kept = [t.stride() for t in made] == [t.stride() for t in tensors_of(outs[False], torch.Tensor)]
            coarse = max(self.tolerances.of(t.dtype, self.dtype) for t in results)  # the op's own, whatever out= is
            tolerance = lambda dtype: max(coarse, self.tolerances.of(dtype, self.dtype))
            options = {"strides": strict or kept, "where": "out "}
            self.same(outs[True], outs[False], tolerance, exact=lambda: self.exactly(sample), **options)
            ours, theirs = tensors_of(a, lucid.Tensor), tensors_of(b, torch.Tensor)
            given, their_given = tensors_of(outs[True], lucid.Tensor), tensors_of(outs[False], torch.Tensor)
            assert b is None or [x is y for x, y in zip(ours, given)] == [x is y for x, y in zip(theirs, their_given)], (
                "does not return out="
            )

    def out(self, sample):
        """Into a tensor of the right shape and other strides."""

        def strided_like(t):
            flat = torch.zeros(2 * t.numel() + 1, dtype=t.dtype)
            strides, step = [], 2
            for n in t.shape:  # the first dimension is the innermost one
                strides.append(step)
                step *= max(n, 1)
            return flat.as_strided(tuple(t.shape), strides, 1) if t.numel() else flat[:0].reshape(t.shape)

        if self.op.name not in WRITES_ASTRAY | IGNORES_OUT:
            self.with_out(sample, strided_like, strict=False)

    def out_resized(self, sample):
        if self.op.name not in IGNORES_OUT:
            strict = self.op.name not in ANY_ORDER and self.op.name not in OWN_LAYOUT
            self.with_out(sample, lambda t: torch.empty(0, dtype=t.dtype), strict=strict)

    def out_dtypes(self, sample):
        """Where PyTorch refuses an out= that could hold the result (some of its ops do), Lucid may write into it."""
        for dtype in (torch.float64, torch.int64, torch.complex128) if self.op.name not in IGNORES_OUT else ():
            if self.op.name in OTHER_NUMBERS and self.dtype.is_complex and not dtype.is_complex:
                continue
            make = lambda t, dtype=dtype: torch.zeros(t.shape, dtype=dtype)
            results, _ = self.expected(sample)
            if results and all(torch.can_cast(t.dtype, dtype) for t in results):
                to = Exchange(ours=False)
                out = [make(t) for t in results]
                args, kwargs = to((sample.input, *sample.args)), to(sample.kwargs)
                if attempt(self.theirs, *args, **kwargs, out=out[0] if len(out) == 1 else tuple(out))[1] is not None:
                    continue
            try:
                self.with_out(sample, make)
            except AssertionError as error:
                raise AssertionError(f"{str(dtype).split('.')[-1]}: {error}") from None

    def out_requires_grad(self, sample):
        if self.op.name in OVERLOOKS_HISTORY:
            return
        self.with_out(sample, lambda t: torch.zeros_like(t, requires_grad=t.is_floating_point()))

    def gradients(self, sample, theirs=None, ours=None, second=False):
        if self.op.name in WRONG_GRADIENT:
            return
        runs = self.both(sample, theirs or self.theirs, ours or self.ours)
        if not runs:
            return
        (a, to_a, _), (b, to_b, _) = runs
        a, b = sample.output_process_fn_grad(a), sample.output_process_fn_grad(b)
        a, b = tensors_of(a, lucid.Tensor), tensors_of(b, torch.Tensor)
        assert [t.requires_grad for t in a] == [t.requires_grad for t in b], (
            f"requires_grad of results {[t.requires_grad for t in a]}, not {[t.requires_grad for t in b]}"
        )
        a, b = [t for t in a if t.requires_grad], [t for t in b if t.requires_grad]
        if not b or not to_b.leaves:
            return
        generator = torch.Generator().manual_seed(11)
        ones = [torch.randn(t.shape, dtype=widest(t.dtype), generator=generator).to(t.dtype).requires_grad_(second) for t in b]
        to_g = Exchange(ours=True)
        gs = [to_g.tensor(g) for g in ones]
        kwargs = {"allow_unused": True, "create_graph": second}
        db, their_error = attempt(torch.autograd.grad, b, to_b.leaves, ones, **kwargs)
        da, our_error = attempt(lucid.autograd.grad, a, to_a.leaves, gs, **kwargs)
        if their_error is not None:
            return assert_same_error(our_error, their_error)
        assert our_error is None, f"gradient: {brief(our_error)}"
        self.same_gradients(da, db, "gradient", lambda: self.exact_gradients(sample, ones, theirs or self.theirs))
        if second:
            self.second(to_a.leaves + gs, da, to_b.leaves + ones, db, generator)

    def exact_gradients(self, sample, ones, theirs):
        wide = widened(sample)
        to = Exchange(ours=False)
        args, kwargs = to((wide.input, *wide.args)), to(wide.kwargs)
        seed()
        results = [
            t for t in tensors_of(sample.output_process_fn_grad(theirs(*args, **kwargs)), torch.Tensor) if t.requires_grad
        ]
        return torch.autograd.grad(
            results, to.leaves, [g.detach().to(y.dtype) for g, y in zip(ones, results)], allow_unused=True
        )

    def same_gradients(self, da, db, what, exact=lambda: ()):
        for i, (x, y) in enumerate(zip(da, db)):
            assert (x is None) == (y is None), f"{what} {i} is {'None' if x is None else 'not None'}, unlike PyTorch's"
            if y is not None:
                wide = lambda dtype: self.wider_tolerance(dtype, 100 if what.startswith("second") else 10)
                self.same(x, y, wide, exact=lambda i=i: exact()[i], where=f"{what} {i}: ", strides=False, values=True)

    def wider_tolerance(self, dtype, factor):
        """A gradient is a sum of rounded terms, which may cancel; still far below the 1e-3 and 1e-5 of op_db's own checks."""
        rtol, atol = self.tolerances.of(dtype, self.dtype)
        if self.op.name in ILL_CONDITIONED and dtype == torch.float32:
            return 100 * rtol, 100 * atol
        limits = {torch.float64: 1e-5, torch.complex128: 1e-5, torch.float32: 4e-5, torch.complex64: 4e-5}
        return max(rtol, min(rtol * factor, 1e-4)), max(atol, min(atol * factor, limits.get(dtype, atol)))

    def second(self, leaves_a, da, leaves_b, db, generator):
        keep = [i for i, g in enumerate(db) if g is not None and g.requires_grad]
        keep = [i for i in keep if da[i].requires_grad or not constant(db[i], leaves_b)]
        assert all(da[i].requires_grad for i in keep), "gradients cannot be differentiated"
        if not keep:
            return
        ones = [torch.randn(db[i].shape, dtype=db[i].dtype, generator=generator) for i in keep]
        to_g = Exchange(ours=True)
        kwargs = {"allow_unused": True}
        ddb, their_error = attempt(torch.autograd.grad, [db[i] for i in keep], leaves_b, ones, **kwargs)
        dda, our_error = attempt(lucid.autograd.grad, [da[i] for i in keep], leaves_a, [to_g.tensor(g) for g in ones], **kwargs)
        if their_error is not None:
            return
        assert our_error is None, f"second gradient: {brief(our_error)}"
        pairs = [(x, y) for x, y in zip(dda, ddb) if x is not None or (y is not None and bool((y != 0).any()))]
        pairs = [(x, y) for x, y in pairs if y is not None or bool((x != 0).any())]
        self.same_gradients([x for x, _ in pairs], [y for _, y in pairs], "second gradient")

    def inplace_gradients(self, sample):
        theirs, ours = self.inplaces
        self.gradients(
            sample,
            lambda x, *args, **kwargs: theirs(x.clone(), *args, **kwargs),
            lambda x, *args, **kwargs: ours(x.clone(), *args, **kwargs),
        )

    def error(self, wrong):
        sample = wrong.sample_input
        f, g = self.theirs, self.ours
        to = Exchange(ours=False)
        _, their_error = attempt(f, *to((sample.input, *sample.args)), **to(sample.kwargs))
        if their_error is None or "Expected out tensor to have dtype" in str(their_error):  # see out_dtypes
            return
        to = Exchange(ours=True)  # making the arguments may be what Lucid refuses
        _, our_error = attempt(lambda: g(*to((sample.input, *sample.args)), **to(sample.kwargs)))
        assert_same_error(our_error, their_error)


def constant(gradient, leaves):
    """Whether PyTorch records a gradient of which nothing depends on the leaves."""
    slopes = torch.autograd.grad(gradient.sum(), leaves, retain_graph=True, allow_unused=True)
    return not any(s is not None and bool((s != 0).any()) for s in slopes)


def widened(sample):
    """The sample in the next wider floating point type (the same numbers)."""

    def wide(x):
        if isinstance(x, torch.Tensor) and x.dtype in WIDER:
            return x.detach().to(WIDER[x.dtype]).requires_grad_(x.requires_grad)
        return WIDER.get(x, x) if isinstance(x, torch.dtype) else x

    return sample.transform(wide)


def nearer(ours, theirs, exact):
    """Whether our tensors are at most as far from the exact ones as PyTorch's, or as the spacing of the largest number."""
    kinds = (lucid.Tensor, torch.Tensor, torch.Tensor)
    for a, b, c in zip(*(tensors_of(value, kind) for value, kind in zip((ours, theirs, exact), kinds))):
        if not b.numel():
            continue
        spacing = torch.finfo(b.dtype).eps * c.abs().max()
        a, b = to_torch(a).to(c.dtype), b.detach().to(c.dtype)
        differ = (a != b) & ~(a.isnan() & b.isnan())
        if bool(differ.any()) and not (a[differ] - c[differ]).abs().max() <= max(
            (b[differ] - c[differ]).abs().nan_to_num(torch.inf).max(), spacing
        ):
            return False
    return True


def widest(dtype):
    return torch.complex128 if dtype.is_complex else torch.float64


def samples_of(op, dtype, grad, fast, reference=False):
    for set_seed in (torch.manual_seed, random.seed, np.random.seed):
        set_seed(1)
    try:
        make = op.reference_inputs if reference else op.sample_inputs
        samples = make("cpu", dtype, requires_grad=grad)
        samples = list(
            itertools.islice(samples, FAST_SAMPLES) if fast and few.wanted() else samples
        )  # making them takes longest
    except Exception:  # noqa: BLE001  op_db itself cannot make these
        return []
    if reference:
        samples = [s for s in samples if all(t.numel() < REFERENCE_NUMEL for t in tensors_of((s.input, *s.args), torch.Tensor))]
    step = -(-len(samples) // FAST_SAMPLES) if fast and samples else 1
    return list(enumerate(samples))[::step]


def shares_elements(t):
    """Whether two elements of a tensor are one in memory, by odd strides: what writing there gives is nobody's promise."""
    if not t.numel() or any(step == 0 and size > 1 for size, step in zip(t.shape, t.stride())):
        return False  # expanded: PyTorch refuses, and so must Lucid
    offsets = torch.zeros(1, dtype=torch.int64)
    for size, step in zip(t.shape, t.stride()):
        offsets = (offsets[:, None] + torch.arange(size) * step).flatten()
    return len(offsets.unique()) < len(offsets)


def noncontiguous(sample):
    try:
        return sample.noncontiguous()
    except Exception:  # noqa: BLE001  some have nothing to lay out otherwise
        return None


def dtypes_of(op):
    """All that PyTorch's CPU takes except float8; with --few float64 and one more, which the op's name decides."""
    every = sorted((d for d in op.supported_dtypes("cpu") if "float8" not in str(d)), key=str)
    if not few.wanted() or not every:
        return every
    other = every[zlib.crc32(op.name.encode()) % len(every)]
    return [d for d in every if d in (torch.float64, other)]


def cases(variant, fast, reference):
    """(name, form, sample) for everything that is compared. reference: with the wider set of inputs, where op_db has one."""
    op = variant.op
    backward = op.supported_backward_dtypes("cpu") if op.supports_autograd else set()
    for dtype in dtypes_of(op):
        variant.dtype = dtype
        short = str(dtype).split(".")[-1]
        for i, sample in samples_of(op, dtype, False, fast, reference):
            at = f"{short} #{i}"
            is_tensor = isinstance(sample.input, torch.Tensor)
            if not is_tensor and op.name.startswith("__r"):
                continue
            yield f"function {at}", variant.function, sample
            noncontiguous_sample = noncontiguous(sample)
            if noncontiguous_sample is not None:
                yield f"noncontiguous {at}", variant.function, noncontiguous_sample
            if variant.methods and is_tensor:
                yield f"method {at}", variant.method, sample
            if variant.inplaces and is_tensor and not shares_elements(sample.input):
                yield f"inplace {at}", variant.inplace, sample
                if noncontiguous_sample is not None:
                    yield f"noncontiguous inplace {at}", variant.inplace, noncontiguous_sample
            if op.supports_out:
                yield f"out {at}", variant.out, sample
                yield f"resized out {at}", variant.out_resized, sample
                if i == 0:
                    yield f"dtypes of out {at}", variant.out_dtypes, sample
                    yield f"out with requires_grad {at}", variant.out_requires_grad, sample
        if dtype not in backward:
            continue
        exact = dtype in (torch.float64, torch.complex128)
        for i, sample in samples_of(op, dtype, True, fast):
            at = f"{short} #{i}"
            second = exact and op.supports_gradgrad and (op.name, op.variant_test_name) not in NO_SECOND
            yield f"gradient {at}", lambda s, second=second: variant.gradients(s, second=second), sample
            if exact:
                noncontiguous_sample = noncontiguous(sample)
                if noncontiguous_sample is not None:
                    yield f"noncontiguous gradient {at}", variant.gradients, noncontiguous_sample
                if variant.inplaces and op.supports_inplace_autograd:
                    yield f"inplace gradient {at}", variant.inplace_gradients, sample
    if op.error_inputs_func is not None:
        for i, wrong in enumerate(op.error_inputs("cpu")):
            yield f"error #{i}", variant.error, wrong


def run(name, fast=False, reference=False):
    """Compare all variants of an op. Returns passed, total, failures as (case, message)."""
    passed, total, failures = 0, 0, []
    warnings.simplefilter("ignore")
    for op in OPS[name]:
        label = f"{op.variant_test_name}: " if op.variant_test_name else ""
        try:
            variant = Variant(op)
        except Missing as error:
            total += 1
            failures.append((label + "function", str(error)))
            continue
        for case, form, sample in cases(variant, fast, reference):
            total += 1
            try:
                form(sample)
                passed += 1
            except (AssertionError, Missing) as error:
                failures.append((label + case, str(error).strip()))
            except Exception as error:  # noqa: BLE001  whatever else went wrong is a failure of this case
                failures.append((label + case, brief(error)))
    return passed, total, failures
