"""Gradients checked against finite differences.

A complex number is two reals here, so there is one kind of Jacobian: entry [j][i] is the change of real coordinate i of
the output per change of real coordinate j of the input. Numerically a coordinate of the input is moved by eps to both
sides. Analytically one backward per output coordinate gives a column: weight 1 for a real part and 1j for an imaginary
one, since the gradient of a real L with respect to a + bi is dL/da + i dL/db.

The fast mode compares one number instead of the matrix: u J v for random u, v with positive entries, so that no error is
lost by cancellation of signs.
"""

from .. import _C
from ._run import grad
from .function import Function

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """What `gradcheck` raises when a gradient is wrong.

    >>> lucid.autograd.gradcheck(lambda x: x.detach() * x, lucid.ones(1, dtype=lucid.float64, requires_grad=True))
    Traceback (most recent call last):
    lucid.autograd.gradcheck.GradcheckError: Jacobian mismatch for output 0 with respect to input 0,
    numerical:tensor([[2.]], dtype=lucid.float64)
    analytical:tensor([[1.]], dtype=lucid.float64)
    """


# --- tensors as lists of reals
# ------------------------------------------------------------------------------------------------


def _as_tuple(values):
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _differentiable(values):
    return tuple(v for v in _as_tuple(values) if isinstance(v, _C.Tensor) and v.requires_grad)


def _n_reals(t):
    return t.numel() * (2 if t.dtype.is_complex else 1)


def _reals(t):
    values = t.detach().reshape(-1).tolist()
    return [part for v in values for part in (v.real, v.imag)] if t.dtype.is_complex else values


def _from_reals(reals, like):
    """A tensor of like's shape and dtype."""
    if like.dtype.is_complex:
        reals = [complex(re, im) for re, im in zip(reals[::2], reals[1::2], strict=True)]
    return _C.tensor(reals, dtype=like.dtype, device=like.device).reshape(like.shape)


def _unit(n, i):
    return [float(k == i) for k in range(n)]


def _random(seed):
    import random  # here: `import lucid` need not load it

    return random.Random(seed)


def _positive(n, generator):
    values = [generator.random() + 0.1 for _ in range(n)]
    norm = sum(v * v for v in values) ** 0.5
    return [v / norm for v in values]


def _dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


# --- the two derivatives along a direction
# ----------------------------------------------------------------------------------------


class _Problem:
    def __init__(self, func, inputs, eps):
        self.func, self.inputs, self.eps = func, inputs, eps
        self.wanted = _differentiable(inputs)
        self.outputs = self.evaluate()

    def evaluate(self):
        return _differentiable(self.func(*self.inputs))

    def all_outputs(self):
        return [o for o in _as_tuple(self.func(*self.inputs)) if isinstance(o, _C.Tensor)]

    def change(self, x, direction, evaluate):
        """Per output: the change of its coordinates when x moves along direction. x is back where it was afterwards."""
        data, before = x.data, x.detach().clone()
        step = _from_reals([self.eps * d for d in direction], x)
        sides = []
        try:
            for moved in (before + step, before - step):
                data.copy_(moved)
                sides.append([_reals(out) for out in evaluate()])
        finally:
            data.copy_(before)
        return [[(a - b) / (2 * self.eps) for a, b in zip(*pair, strict=True)] for pair in zip(*sides, strict=True)]

    def pull(self, out, weight, dtypes=False):
        """Per input: the weighted gradient of one output."""
        grads = grad(out, self.wanted, _from_reals(weight, out), retain_graph=True, allow_unused=True)
        return [self.reals_of_gradient(g, x, dtypes) for g, x in zip(grads, self.wanted, strict=True)]

    @staticmethod
    def reals_of_gradient(g, x, dtypes):
        if g is None:
            return [0.0] * _n_reals(x)
        if dtypes and g.dtype != x.dtype:
            raise GradcheckError("Gradient has dtype mismatch")
        if g.shape != x.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        return _reals(g.to(x.dtype))

    def push(self, x, direction):
        """Per output: its change in forward mode, the derivative of the linear map u -> uJ."""
        u = tuple(_C.zeros_like(out).requires_grad_() for out in self.outputs)
        (pulled,) = grad(self.outputs, x, u, create_graph=True, allow_unused=True)
        changes = [None] * len(u)
        if pulled is not None and pulled.requires_grad:
            changes = grad(pulled, u, _from_reals(direction, x), allow_unused=True)
        return [[0.0] * _n_reals(o) if c is None else _reals(c) for c, o in zip(changes, self.outputs, strict=True)]

    # Jacobians[output][input], each a list of rows by input coordinate.

    def numerical(self):
        return self._by_input(lambda x, direction: self.change(x, direction, self.evaluate))

    def forward(self):
        return self._by_input(self.push)

    def _by_input(self, derivative):
        jacobians = [[[] for _ in self.wanted] for _ in self.outputs]
        for k, x in enumerate(self.wanted):
            for i in range(_n_reals(x)):
                for o, row in enumerate(derivative(x, _unit(_n_reals(x), i))):
                    jacobians[o][k].append(row)
        return jacobians

    def analytical(self, dtypes):
        jacobians = []
        for out in self.outputs:
            columns = [self.pull(out, _unit(_n_reals(out), i), dtypes) for i in range(_n_reals(out))]
            per_input = ([c[k] for c in columns] for k in range(len(self.wanted)))
            jacobians.append([[list(row) for row in zip(*of_input, strict=True)] for of_input in per_input])
        return jacobians


def _close(a, b, rtol, atol):
    return all(abs(x - y) <= atol + rtol * abs(y) for xs, ys in zip(a, b, strict=True) for x, y in zip(xs, ys, strict=True))


# --- the checks
# -------------------------------------------------------------------------------------------------------------------


def _check_inputs(inputs):
    import warnings

    found = False
    for i, x in enumerate(inputs):
        if not isinstance(x, _C.Tensor) or not x.requires_grad:
            continue
        found = True
        if x.dtype not in (_C.float64, _C.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely "
                "fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if any(step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be "
                "able to compute the numerical gradients correctly. You should call .contiguous on the input before passing it "
                "to gradcheck."
            )
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True."
        )


def _check_no_output_depends(problem):
    for x in problem.wanted:
        for i in range(_n_reals(x)):
            if any(any(row) for row in problem.change(x, _unit(_n_reals(x), i), problem.all_outputs)):
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _mismatch(kind, o, k, numerical, analytical, problem):
    note = ""
    if problem.outputs[o].dtype.is_complex or problem.wanted[k].dtype.is_complex:
        note = " (a complex number counts as two reals)"
    texts = (repr(_C.tensor(j, dtype=_C.float64)) for j in (numerical, analytical))
    return "Jacobian{} mismatch for output {:d} with respect to input {:d}{},\nnumerical:{}\nanalytical:{}\n".format(
        " computed with forward mode" if kind == "forward" else "", o, k, note, *texts
    )


def _compare(kind, numerical, analytical, problem, rtol, atol):
    for o in range(len(problem.outputs)):
        for k in range(len(problem.wanted)):
            if not _close(analytical[o][k], numerical[o][k], rtol, atol):
                raise GradcheckError(_mismatch(kind, o, k, numerical[o][k], analytical[o][k], problem))


def _check_slow(problem, rtol, atol, nondet_tol, dtypes, backward_ad, forward_ad):
    numerical = problem.numerical()
    if forward_ad:
        _compare("forward", numerical, problem.forward(), problem, rtol, atol)
    if not backward_ad:
        return
    analytical, again = problem.analytical(dtypes), problem.analytical(dtypes)
    _compare("backward", numerical, analytical, problem, rtol, atol)
    for first, second in zip(analytical, again, strict=True):
        if not all(_close(a, b, 0.0, nondet_tol) for a, b in zip(first, second, strict=True)):
            _raise_not_reentrant(nondet_tol)


def _raise_not_reentrant(nondet_tol):
    raise GradcheckError(
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
        f"values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was {nondet_tol}."
    )


def _check_fast(problem, rtol, atol, nondet_tol, dtypes, backward_ad, forward_ad):
    generator = _random(42)
    weights = [_positive(_n_reals(o), generator) for o in problem.outputs]
    for k, x in enumerate(problem.wanted):
        if not _n_reals(x):
            continue
        direction = _positive(_n_reals(x), generator)
        changes = problem.change(x, direction, problem.evaluate)
        pushed = problem.push(x, direction) if forward_ad else None
        for o, out in enumerate(problem.outputs):
            numerical = _dot(weights[o], changes[o])
            allowed = atol * sum(direction) * sum(weights[o]) + rtol * abs(numerical)
            found = [] if pushed is None else [_dot(weights[o], pushed[o])]
            if backward_ad:
                twice = [_dot(problem.pull(out, weights[o], dtypes)[k], direction) for _ in range(2)]
                if abs(twice[0] - twice[1]) > nondet_tol:
                    _raise_not_reentrant(nondet_tol)
                found.append(twice[0])
            if not all(abs(f - numerical) <= allowed for f in found):
                _check_slow(problem, rtol, atol, nondet_tol, dtypes, backward_ad, forward_ad)  # names the entry
                raise GradcheckError(
                    f"Jacobian mismatch for output {o} with respect to input {k} in fast mode: numerical {numerical}, "
                    f"analytical {found}, allowed difference {allowed}; every entry by itself is within the tolerances"
                )


def _check_linear_in_weight(problem):
    """A weight of zero must give a gradient of zero, of the input's kind."""
    weights = tuple(_C.zeros_like(out) for out in problem.outputs)
    grads = grad(problem.outputs, problem.wanted, weights, retain_graph=True, allow_unused=True)
    for g, x in zip(grads, problem.wanted, strict=True):
        if g is None:
            continue
        if any(_reals(g)):
            raise GradcheckError("backward not multiplied by grad_output")
        if g.device != x.device:
            raise GradcheckError("grad is incorrect device")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


class _Undefined(Function):
    """The identity, with a gradient that is not there."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return None


def _check_undefined(problem):
    """A missing output gradient must count as zero: all missing, then each alone."""
    outputs, n = problem.evaluate(), len(problem.outputs)
    for missing in [range(n), *([i] for i in range(n) if n > 1)]:
        roots = tuple(_Undefined.apply(o) if i in missing else o for i, o in enumerate(outputs))
        weights = tuple(_C.zeros_like(o) for o in outputs)
        try:
            grads = grad(roots, problem.wanted, weights, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            raise GradcheckError("Expected backward function to handle undefined output grads.") from error
        if any(any(_reals(g)) for g in grads if g is not None):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _check_batched(problem):
    """A batch of weights must give what they give one by one."""
    generator = _random(0)
    for o, out in enumerate(problem.outputs):
        weights = [_from_reals(_positive(_n_reals(out), generator), out) for _ in range(2)]
        single = [grad(out, problem.wanted, w, retain_graph=True, allow_unused=True) for w in weights]
        batch = _C.stack(weights)
        together = grad(out, problem.wanted, batch, retain_graph=True, allow_unused=True, is_grads_batched=True)
        for k, g in enumerate(together):
            alone = [s[k] for s in single]
            if g is not None and not _close([_reals(g)], [_reals(_C.stack(alone))], 1e-5, 1e-8):
                raise GradcheckError(f"The batched gradient of output {o} with respect to input {k} differs from single ones")


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compare the gradients of `func` with finite differences, for every input that requires grad; use float64.

    Returns True, or raises `GradcheckError` (returns False with `raise_exception=False`). Also checked: gradients are the
    same each time (up to `nondet_tol`), proportional to the output gradient, and work where an output gradient is missing.

    >>> x = lucid.tensor([0.5, 2.0], dtype=lucid.float64, requires_grad=True)
    >>> lucid.autograd.gradcheck(lambda x: x * x.exp(), (x,))
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad:
        raise NotImplementedError("gradcheck: check_batched_forward_grad is not available")
    inputs = _as_tuple(inputs)
    _check_inputs(inputs)
    try:
        problem = _Problem(func, inputs, eps)
        if not problem.outputs:
            _check_no_output_depends(problem)
            return True
        check = _check_fast if fast_mode else _check_slow
        check(problem, rtol, atol, nondet_tol, check_grad_dtypes, check_backward_ad, check_forward_ad)
        if check_backward_ad:
            if check_batched_grad:
                _check_batched(problem)
            _check_linear_in_weight(problem)
            if check_undefined_grad:
                _check_undefined(problem)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_weights(outputs, noncontiguous):
    from ..testing import make_tensor

    floating = [o.dtype if o.dtype.is_floating_point or o.dtype.is_complex else _C.float64 for o in outputs]
    return tuple(
        make_tensor(o.shape, dtype=d, device=o.device, low=-1, high=1, requires_grad=True, noncontiguous=noncontiguous)
        for o, d in zip(outputs, floating, strict=True)
    )


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """`gradcheck` for the gradient of `func`, as a function of the inputs and of the output gradients (random by default).

    >>> x = lucid.tensor([0.5, 2.0], dtype=lucid.float64, requires_grad=True)
    >>> lucid.autograd.gradgradcheck(lambda x: x * x.exp(), (x,))
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, wanted in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if wanted and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        weights = _random_weights(_differentiable(func(*inputs)), gen_non_contig_grad_outputs)
    else:
        weights = _as_tuple(grad_outputs)

    def gradients(*args):
        xs, ws = args[: len(inputs)], args[len(inputs) :]
        outputs = _differentiable(func(*xs))
        grads = grad(outputs, _differentiable(xs), ws, create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradients,
        inputs + weights,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )
