"""Methods of tensors that are written in Python, beside PyTorch's."""

import pytest
import torch

import lucid

LIBRARIES = [lucid, torch]
CASES = {
    "apply_": lambda m: m.arange(6.0).reshape(2, 3).t().apply_(lambda v: v * 2 + 1),
    "apply_ int": lambda m: m.arange(4).apply_(lambda v: v * v),
    "apply_ on a view": lambda m: (x := m.arange(6.0), x[::2].apply_(lambda v: -v), x)[2],
    "apply_ empty": lambda m: m.zeros(0, 3).apply_(abs),
    "map_": lambda m: m.arange(6.0).reshape(2, 3).map_(m.ones(3), lambda a, b: a + b),
    "map2_": lambda m: m.arange(3.0).map2_(m.ones(3), m.ones(3), lambda a, b, c: a + b * c),
    "is_same_size": lambda m: [m.ones(2).is_same_size(m.ones(n)) for n in (2, 3)],
    "is_set_to": lambda m: (x := m.ones(4), [x.is_set_to(y) for y in (x, x.detach(), x[1:], x.clone())])[1],
    "is_nonzero": lambda m: [m.tensor([v]).is_nonzero() for v in (0.0, 2.0)],
    "is_distributed": lambda m: m.ones(1).is_distributed(),
    "dims": lambda m: (m.ones(2, 3).dense_dim(), m.ones(2, 3).sparse_dim()),
    "to_dense": lambda m: m.arange(2).to_dense(m.float64),
    "dim_order": lambda m: [
        m.empty(2, 3, 5, 7).dim_order(),
        m.empty(2, 3, 5, 7).permute(2, 0, 3, 1).dim_order(),
        m.empty((2, 3, 5, 7), memory_format=m.channels_last).dim_order(),
        m.empty(1, 2, 3, 4).dim_order(ambiguity_check=[m.contiguous_format, m.channels_last]),
        m.empty(3, 2).t().dim_order(ambiguity_check=True),
        m.empty(()).dim_order(),
    ],
    "new": lambda m: [tuple(m.ones(1).new(*a).shape) for a in ((), (2, 3), (m.Size([2, 1]),), (m.ones(4),))],
    "new from data": lambda m: m.ones(1, dtype=m.float64).new([[1, 2], [3, 4]]),
    "set_ tensor": lambda m: m.ones(2).set_(m.arange(4.0).reshape(2, 2).t()),
    "set_ part": lambda m: m.ones(2).set_(m.arange(6.0), 1, (2, 2)),
    "set_ strided": lambda m: m.ones(2).set_(m.arange(6.0), 0, (2, 2), (1, 3)),
    "set_ storage": lambda m: m.ones(2).set_(m.arange(4.0).untyped_storage()),
    "set_ part of a storage": lambda m: m.ones(2).set_(m.arange(4.0).untyped_storage(), 1, (2,), (2,)),
    "set_ nothing": lambda m: m.ones(2).set_(),
    "set_ shares": lambda m: (x := m.arange(4.0), m.ones(2).set_(x).mul_(2), x)[2],
}
ERRORS = {
    "apply_ requires grad": lambda m: m.ones(2, requires_grad=True).apply_(abs),
    "map_ dtype": lambda m: m.ones(2).map_(m.ones(2, dtype=m.int32), lambda a, b: a),
    "map_ shape": lambda m: m.ones(2).map_(m.ones(3), lambda a, b: a),
    "is_nonzero": lambda m: m.ones(2).is_nonzero(),
    "dim_order ambiguous": lambda m: m.empty(1, 2).dim_order(ambiguity_check=True),
    "dim_order of two formats": lambda m: m.empty(2, 1, 3, 3).dim_order(ambiguity_check=[m.contiguous_format, m.channels_last]),
    "dim_order what": lambda m: m.empty(1, 2).dim_order(ambiguity_check="ILLEGAL"),
    "set_ dtype": lambda m: m.ones(2).set_(m.arange(4)),
    "set_ too long": lambda m: m.ones(2).set_(m.arange(4.0), 2, (3,), (-1,)),
    "set_ offset": lambda m: m.ones(2).set_(m.arange(4.0), -1, (3,)),
}


def plain(result):
    if isinstance(result, (list, tuple)):
        return [plain(r) for r in result]
    return (tuple(result.shape), result.stride(), result.tolist()) if hasattr(result, "tolist") else result


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name):
    ours, theirs = (plain(CASES[name](m)) for m in LIBRARIES)
    assert ours == theirs


@pytest.mark.parametrize("name", ERRORS)
def test_errors_as_pytorch(name):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 (the class is compared)
        ERRORS[name](torch)
    with pytest.raises(next(c for c in (TypeError, RuntimeError) if isinstance(theirs.value, c))):
        ERRORS[name](lucid)


def test_flags():
    names = ["is_sparse_csr", "is_mps", "is_xpu", "is_xla", "is_ipu", "is_maia", "is_mtia", "is_vulkan"]
    assert [getattr(lucid.ones(1), n) for n in names] == [getattr(torch.ones(1), n) for n in names]
    assert lucid.ones(1).const_data_ptr() != 0


def test_set_keeps_the_old_memory_for_others():
    x = lucid.arange(4.0)
    y = x[1:]
    x.set_(lucid.zeros(1))
    assert y.tolist() == [1.0, 2.0, 3.0] and x.tolist() == [0.0]


def test_old_names_of_activations():
    x = lucid.tensor([-4.0, 0.5, 4.0])
    assert x.hard_sigmoid().tolist() == lucid.nn.functional.hardsigmoid(x).tolist()
    assert x.hard_swish().tolist() == lucid.nn.functional.hardswish(x).tolist()
