"""gradcheck and gradgradcheck: they accept correct gradients, and refuse what PyTorch's refuse."""

import pytest
import torch

import lucid
from lucid.autograd import Function, gradcheck, gradgradcheck
from lucid.autograd.gradcheck import GradcheckError

DATA = [[0.5, -1.25, 2.0], [1.5, 0.75, -0.5]]


def double(data=DATA):
    return lucid.tensor(data, dtype=lucid.float64, requires_grad=True)


def both(make):
    """The same function and inputs for both libraries: make(library) -> func, inputs."""
    return make(lucid), make(torch)


def tensor(library, data, dtype="float64"):
    return library.tensor(data, dtype=getattr(library, dtype), requires_grad=True)


RIGHT = [
    lambda m: (lambda x: x * x.exp(), (tensor(m, DATA),)),
    lambda m: (lambda x, y: (x * y, (x / y).sum()), (tensor(m, DATA), tensor(m, [1.0, 2.0, 4.0]))),
    lambda m: (lambda x: x.t(), (tensor(m, DATA),)),
    lambda m: (lambda x, k: x * k, (tensor(m, DATA), 3)),
    lambda m: (lambda x: x.sum(dim=0).tanh(), (tensor(m, DATA),)),
    lambda m: (lambda x: x * 2, (tensor(m, 1.5),)),
    lambda m: (lambda x: x * 2, (tensor(m, []),)),
    lambda m: (lambda x: [x * 2, x.detach()], (tensor(m, DATA),)),
    lambda m: (lambda x: x.detach() * 0, (tensor(m, DATA),)),
    lambda m: (lambda x, y: x * x, (tensor(m, DATA), tensor(m, DATA))),
    lambda m: (lambda x: x[1:], (tensor(m, DATA),)),
]


@pytest.mark.parametrize("make", RIGHT)
@pytest.mark.parametrize("fast_mode", [False, True])
def test_right_gradients_pass(make, fast_mode):
    (f, xs), (g, ys) = both(make)
    before = [x.tolist() for x in xs if isinstance(x, lucid.Tensor)]
    assert torch.autograd.gradcheck(g, ys, fast_mode=fast_mode)
    assert gradcheck(f, xs, fast_mode=fast_mode)
    assert [x.tolist() for x in xs if isinstance(x, lucid.Tensor)] == before


@pytest.mark.parametrize("fast_mode", [False, True])
def test_second_gradients_pass(fast_mode):
    assert gradgradcheck(lambda x: x * x.exp(), double(), fast_mode=fast_mode)
    assert gradgradcheck(lambda x, y: (x * y, x.sin()), (double(), double()), fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x * x.exp(), double(), gen_non_contig_grad_outputs=True, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x * x * x, double(), double(), fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_mode(fast_mode):
    assert gradcheck(lambda x, y: (x * y, x.exp()), (double(), double()), check_forward_ad=True, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x * x.exp(), double(), check_fwd_over_rev=True, fast_mode=fast_mode)


def test_batched_gradients():
    assert gradcheck(lambda x: x * x.exp(), double(), check_batched_grad=True)


COMPLEX = [[0.5 + 1j, -1.25 - 0.5j], [1.5j, 0.75 + 0j]]


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize(
    "func",
    [
        lambda z: z * z,
        lambda z: z * (2 - 1j),
        lambda z: z.abs(),
        lambda z: (z * z).sum(),
        lambda z: z.t(),
        lambda z: z.exp(),
    ],
)
def test_complex(func, fast_mode):
    assert torch.autograd.gradcheck(func, torch.tensor(COMPLEX, dtype=torch.complex128, requires_grad=True))
    assert gradcheck(func, lucid.tensor(COMPLEX, dtype=lucid.complex128, requires_grad=True), fast_mode=fast_mode)


class Wrong(Function):
    """x * x with a gradient that lacks the factor two."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return x * g


class Offset(Function):
    """x * 2 with a gradient that does not depend on the weight."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2 + 1e-7


class Fickle(Function):
    """x * 2 with a gradient that differs each time."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Fickle.calls += 1
        return g * (2 + 1e-7 * Fickle.calls)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_wrong_gradients_are_found(fast_mode):
    with pytest.raises(GradcheckError, match=r"Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, double(), fast_mode=fast_mode)
    assert gradcheck(Wrong.apply, double(), raise_exception=False, fast_mode=fast_mode) is False
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(Offset.apply, double(), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Fickle.apply, double(), fast_mode=fast_mode)
    assert gradcheck(Fickle.apply, double(), nondet_tol=1e-4, fast_mode=fast_mode)


def test_which_output_and_input_is_named():
    def func(x, y):
        return x * y, Wrong.apply(y)

    with pytest.raises(GradcheckError, match="output 1 with respect to input 1"):
        gradcheck(func, (double(), double()))


def test_wrong_second_gradient_is_found():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x.detach() * g

    assert gradcheck(Once.apply, double())
    with pytest.raises(GradcheckError):
        gradgradcheck(Once.apply, double())


def test_hidden_dependence_is_found():
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, double())


def test_undefined_gradients():
    class Pair(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            if a is None and b is not None and not (b != 0).any().item():
                return b + 1
            return None if a is b else (0 if a is None else a * 2) + (0 if b is None else b * 3)

    with pytest.raises(GradcheckError, match="Expected all input grads to be undefined or zero"):
        gradcheck(Pair.apply, double())
    assert gradcheck(Pair.apply, double(), check_undefined_grad=False)


def test_bad_arguments():
    for library, check in ((lucid, gradcheck), (torch, torch.autograd.gradcheck)):
        plain = library.tensor(DATA, dtype=library.float64)
        with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
            check(lambda x: x * 2, plain)
        with pytest.raises(RuntimeError, match="stride 0"):
            check(lambda x: x * 2, library.ones(1, dtype=library.float64).expand(3).requires_grad_())
        with pytest.raises(AssertionError):
            check(lambda x: x * 2, plain, check_backward_ad=False)
        with pytest.warns(UserWarning, match="not a double precision"):
            check(lambda x: x * 2, library.ones(1, requires_grad=True), eps=1e-2, atol=1e-2)
    with pytest.raises(NotImplementedError):
        gradcheck(lambda x: x * 2, double(), check_batched_forward_grad=True, check_forward_ad=True)


def test_gradient_dtypes():
    class Narrow(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    assert gradcheck(Narrow.apply, double(), check_grad_dtypes=True)
