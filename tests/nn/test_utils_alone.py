"""Parts of lucid.nn.utils that PyTorch lacks or does not document."""

import copy

import pytest

import lucid
from tests.nn.programs import plain


def test_copy_parameters_and_buffers():
    a, b = lucid.nn.BatchNorm1d(2), lucid.nn.BatchNorm1d(2)
    a.running_mean.fill_(3.0), a.weight.data.fill_(2.0)
    held = b.weight
    lucid.nn.utils.copy_parameters_and_buffers(a, b)
    assert plain(dict(a.state_dict())) == plain(dict(b.state_dict())) and b.weight is held and b.weight.requires_grad
    with pytest.raises(KeyError):
        lucid.nn.utils.copy_parameters_and_buffers(a, lucid.nn.LayerNorm(2))
    c = lucid.nn.BatchNorm1d(3)
    with pytest.raises(RuntimeError):
        lucid.nn.utils.copy_parameters_and_buffers(a, c)
    assert c.weight.tolist() == [1.0] * 3


def test_foreach_is_refused_where_lists_cannot_go():
    p = lucid.nn.Parameter(lucid.zeros(2, device="meta"))
    p.grad = lucid.zeros(2, device="meta")
    for call in (lucid.nn.utils.clip_grad_norm_, lucid.nn.utils.clip_grad_value_):
        with pytest.raises(RuntimeError, match="foreach"):
            call([p], 1.0, foreach=True)


def test_caches_are_per_module():
    P = lucid.nn.utils.parametrize
    a = lucid.nn.utils.parametrizations.weight_norm(lucid.nn.Linear(2, 2))
    b = copy.deepcopy(a)
    b.parametrizations.weight.original0.data.zero_()
    with P.cached():
        assert float(a.weight.abs().sum()) > 0 and float(b.weight.abs().sum()) == 0
