"""Random tensors against PyTorch's streams: the order of draws, generators, what the state is after a call."""

import pytest
import torch

import lucid


def both(f):
    results = []
    for m in (lucid, torch):
        m.manual_seed(11)
        results.append(f(m))
    return results


def assert_close(a, b):
    assert tuple(a.shape) == tuple(b.shape)
    torch.testing.assert_close(torch.tensor(a.tolist(), dtype=b.dtype).reshape(b.shape), b.contiguous(), rtol=1e-5, atol=1e-6)


LAYOUTS = {
    "contiguous": lambda m: m.zeros(5, 7),
    "transposed": lambda m: m.zeros(7, 5).t(),
    "sliced": lambda m: m.zeros(5, 14)[:, ::2],
    "permuted": lambda m: m.zeros(3, 5, 4).permute(2, 0, 1),
    "vector": lambda m: m.zeros(3),
}
FILLS = {
    "uniform": lambda x: x.uniform_(-1, 2),
    "normal": lambda x: x.normal_(1, 2),
    "exponential": lambda x: x.exponential_(2),
    "bernoulli": lambda x: x.bernoulli_(0.3),
    "random": lambda x: x.random_(100),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("fill", FILLS)
def test_fills_draw_in_the_same_order(fill, layout):
    def run(m):
        x = FILLS[fill](LAYOUTS[layout](m))
        return m.cat([x.reshape(-1), m.rand(3)])  # the stream goes on from the same place

    assert_close(*both(run))


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 33])
def test_normals_leave_the_generator_in_the_same_state(n):
    assert_close(*both(lambda m: m.cat([m.randn(n), m.randn(3), m.rand(2), m.randn(n)])))


def test_generator_argument():
    results = []
    for m in (lucid, torch):
        g = m.Generator()
        g.manual_seed(5)
        first = [m.rand(3, generator=g), m.randn(20, generator=g), m.randperm(9, generator=g).to(m.float32)]
        first += [m.randint(2, 9, (4,), generator=g).to(m.float32), m.zeros(6).uniform_(generator=g)]
        results.append(m.cat(first))
    assert_close(*results)
    g.manual_seed(5)
    lucid.manual_seed(1)
    before = lucid.rand(2).tolist()
    lucid.manual_seed(1)
    lucid.rand(100, generator=lucid.Generator())
    assert lucid.rand(2).tolist() == before, "a generator of one's own leaves the default alone"


def test_dropout_is_the_same_mask():
    assert_close(*both(lambda m: m.dropout(m.ones(6, 9), 0.3, True)))


def test_random_fills_are_constants_to_autograd():
    x = lucid.ones(3, requires_grad=True)
    y = x * 2
    y.normal_()
    (y * x).sum().backward()
    assert x.grad.tolist() == y.tolist()
