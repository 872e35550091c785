"""forward_ad: tangents against PyTorch's forward mode."""

import pytest
import torch
from torch.autograd import forward_ad as theirs

import lucid
from lucid.autograd import forward_ad as ours

FUNCTIONS = {
    "polynomial": lambda m, x: x**3 + 2 * x,
    "product": lambda m, x: x @ x.t(),
    "reduction": lambda m, x: (x.sin() * x).sum(1),
    "choice": lambda m, x: m.where(x > 0, x.exp(), x),
    "linear in x": lambda m, x: x.flip(0).reshape(-1),
    "special": lambda m, x: m.special.log_ndtr(x),
    "complex": lambda m, x: m.complex(x, 2 * x) ** 2,
    "identity": lambda m, x: x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents(name):
    values, tangents = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    results = []
    for m, ad in ((lucid, ours), (torch, theirs)):
        x, t = (m.tensor(v.tolist(), dtype=m.float64) for v in (values, tangents))
        with ad.dual_level():
            results.append(ad.unpack_dual(FUNCTIONS[name](m, ad.make_dual(x, t))))
    for a, b in zip(*results):
        assert not a.requires_grad
        torch.testing.assert_close(torch.tensor(a.tolist(), dtype=b.dtype), b)


def test_two_duals_add_up():
    with ours.dual_level():
        x = ours.make_dual(lucid.tensor(2.0), lucid.tensor(1.0))
        y = ours.make_dual(lucid.tensor(3.0), lucid.tensor(10.0))
        assert ours.unpack_dual(x * y).tangent.item() == 3 + 20


def test_tangents_can_be_differentiated():
    w = lucid.tensor([3.0, 4.0], requires_grad=True)
    with ours.dual_level():
        x = ours.make_dual(lucid.tensor([1.0, 2.0]), lucid.tensor([1.0, 5.0]))
        primal, tangent = ours.unpack_dual(x * x * w)
        (primal.sum() + tangent.sum()).backward()
    assert w.grad.tolist() == [1 + 2, 4 + 20]


def test_independent_results_have_no_tangent():
    with ours.dual_level():
        ours.make_dual(lucid.ones(2), lucid.ones(2))
        assert ours.unpack_dual(lucid.zeros(2)).tangent is None
    assert ours.unpack_dual(lucid.zeros(2)).tangent is None


@pytest.mark.parametrize("ad, m", [(ours, lucid), (theirs, torch)])
def test_refusals(ad, m):
    with pytest.raises(RuntimeError):
        ad.make_dual(m.ones(2), m.ones(2))
    with ad.dual_level():
        with pytest.raises(RuntimeError):
            ad.enter_dual_level()
        with pytest.raises(ValueError):
            ad.make_dual(m.ones(2, dtype=m.int64), m.ones(2))
        with pytest.raises(RuntimeError):
            ad.make_dual(m.ones(2), m.ones(3))
        with pytest.raises(RuntimeError):
            ad.make_dual(ad.make_dual(m.ones(2), m.ones(2)), m.ones(2))


def test_without_recording_is_refused():
    with ours.dual_level(), lucid.no_grad(), pytest.raises(RuntimeError, match="grad mode"):
        ours.make_dual(lucid.ones(2), lucid.ones(2))


def test_as_decorator():
    @ours.dual_level()
    def tangent(x):
        return ours.unpack_dual(ours.make_dual(x, lucid.ones_like(x)) ** 2).tangent

    assert tangent(lucid.tensor([3.0])).tolist() == [6.0]
