"""nn.Parameter: creation, copies, pickles, and that results are plain tensors."""

import copy
import gc
import pickle
import weakref

import pytest
import torch

import lucid
from lucid.nn import Parameter


def test_creation():
    data = lucid.tensor([1.0, 2.0])
    p = Parameter(data)
    assert isinstance(p, lucid.Tensor) and p.requires_grad and p.is_leaf and p.grad is None
    assert p.data_ptr() == data.data_ptr() and not data.requires_grad
    assert not Parameter(data, requires_grad=False).requires_grad
    assert tuple(Parameter().shape) == tuple(torch.nn.Parameter().shape)
    with lucid.no_grad():
        assert Parameter(data).requires_grad


def test_history_is_left_behind():
    x = lucid.tensor([1.0], requires_grad=True)
    p = Parameter(x * 2)
    (p * 3).sum().backward()
    assert p.is_leaf and p.grad.tolist() == [3.0] and x.grad is None


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_integers_cannot_require_grad(m):
    with pytest.raises(RuntimeError):
        m.nn.Parameter(m.tensor([1, 2]))
    assert m.nn.Parameter(m.tensor([1, 2]), requires_grad=False).tolist() == [1, 2]


def test_data_must_be_a_tensor():
    with pytest.raises(TypeError):
        Parameter([1.0, 2.0])


def test_results_are_plain_tensors():
    p = Parameter(lucid.ones(2, 2))
    for result in (p + 1, 1 - p, p @ p, p.t(), p[0], p.detach(), p.data, p.clone(), p.sum()):
        assert type(result) is lucid.Tensor
    q = p
    with lucid.no_grad():
        q += 1
    assert q is p and type(q) is Parameter


def test_training_step():
    p = Parameter(lucid.tensor([1.0, 2.0]))
    for _ in range(2):
        p.grad = None
        (p * p).sum().backward()
        with lucid.no_grad():
            p -= 0.25 * p.grad
    assert p.tolist() == [0.25, 0.5] and p.requires_grad and p.is_leaf


@pytest.mark.parametrize("m", [lucid, torch], ids=["lucid", "torch"])
def test_deepcopy(m):
    p = m.nn.Parameter(m.tensor([1.0, 2.0]))
    (p * p).sum().backward()
    q, again = copy.deepcopy([p, p])
    assert q is again and type(q) is m.nn.Parameter and q.requires_grad and q.grad is None
    assert q.tolist() == p.tolist() and q.data_ptr() != p.data_ptr()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(protocol):
    p = Parameter(lucid.arange(6.0).reshape(2, 3).t(), requires_grad=False)
    p.tag = "mine"
    q = pickle.loads(pickle.dumps(p, protocol))
    assert type(q) is Parameter and q.tag == "mine" and not q.requires_grad
    assert q.tolist() == p.tolist() and q.stride() == p.stride()


def test_subclass():
    class Mass(Parameter):
        def heavy(self):
            return self.sum() > 1

    p = Mass(lucid.ones(2))
    assert isinstance(p, Parameter) and p.heavy().item()


def test_is_freed():
    p = Parameter(lucid.ones(2))
    p.self = p
    seen = weakref.ref(p)
    del p
    gc.collect()
    assert seen() is None
