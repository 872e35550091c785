"""What nn writes on plain ops until there is linear algebra: beside PyTorch's, with gradients and second gradients."""

import pytest
import torch

import lucid
from lucid.nn import _matrices
from tests.compat.exchange import to_torch

DTYPES = [torch.float64, torch.complex128]
SHAPES = [(3, 3), (5, 3), (2, 4, 3), (1, 1), (2, 2, 3, 3)]


def given(shape, dtype, seed=0):
    x = torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))
    return lucid.tensor(x.tolist(), dtype=getattr(lucid, str(dtype).split(".")[1])).reshape(shape), x


def assert_close(mine, theirs):
    torch.testing.assert_close(to_torch(mine), theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_reflections(shape, dtype):
    x, y = given(shape, dtype)
    for mine, theirs in zip(_matrices.reflections(x), torch.geqrf(y)):
        assert_close(mine, theirs)
    a, tau = torch.geqrf(y)
    mine = _matrices.product_of_reflections(*_matrices.reflections(x))
    assert_close(mine, torch.linalg.householder_product(a, tau))
    zeros = lucid.zeros(3, 2)
    assert_close(_matrices.reflections(zeros)[1], torch.zeros(2))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_exponential(dtype, scale):
    for shape in ((3, 3), (2, 4, 4), (0, 0)):
        x, y = given(shape, dtype)
        skew, wanted = (x - x.mH) * scale, (y - y.mH) * scale
        assert_close(_matrices.exponential(skew), torch.matrix_exp(wanted))


@pytest.mark.parametrize("dtype", DTYPES)
def test_solution(dtype):
    for shape in ((3, 3), (2, 4, 4), (2, 2, 3, 3)):
        (a, c), (b, d) = given(shape, dtype), given((*shape[:-1], 2), dtype, 1)
        assert_close(_matrices.solution(a, b), torch.linalg.solve(c, d))
    swapped = lucid.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert _matrices.solution(swapped, lucid.tensor([[1.0], [2.0]])).tolist() == [[2.0], [1.0]]


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4)])
def test_least_squares(shape):
    (a, c), (b, d) = given(shape, torch.float64), given(shape[:1], torch.float64, 1)
    torch.testing.assert_close(to_torch(_matrices.least_squares(a, b)), torch.linalg.pinv(c) @ d, rtol=1e-6, atol=1e-8)


def test_gradients_twice():
    a, b = (given(s, torch.float64, i)[0].requires_grad_() for i, s in enumerate(((2, 3, 3), (2, 3, 2))))
    checks = [(_matrices.solution, (a, b)), (_matrices.exponential, (a,))]
    checks += [(lambda x: _matrices.product_of_reflections(x.tril(-1), 2 / (1 + (x.tril(-1) ** 2).sum(-2))), (b,))]
    for function, inputs in checks:
        assert lucid.autograd.gradcheck(function, inputs)
        assert lucid.autograd.gradgradcheck(function, inputs)
