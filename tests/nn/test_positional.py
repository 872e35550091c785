"""Rotary and sinusoidal embeddings beside their formulas, written with PyTorch."""

import copy
import math

import pytest
import torch

import lucid
from lucid.nn import functional as F
from tests.compat.exchange import to_torch


def angles(n, dim, base=10000.0):
    return torch.tensor([[p * base ** (-2 * i / dim) for i in range(dim // 2)] for p in range(n)], dtype=torch.float64)


def assert_close(mine, theirs, **tolerance):
    torch.testing.assert_close(to_torch(mine).double(), theirs.double(), **{"rtol": 1e-6, "atol": 1e-6, **tolerance})


@pytest.mark.parametrize("n, dim, base", [(7, 6, 10000.0), (1, 2, 10.0), (0, 4, 10000.0), (2000, 8, 500.0)])
def test_sinusoidal(n, dim, base):
    a = angles(n, dim, base).reshape(n, dim // 2)
    wanted = torch.stack([a.sin(), a.cos()], -1).reshape(n, dim)
    assert_close(F.sinusoidal_embedding(n, dim, base=base), wanted)
    half = F.sinusoidal_embedding(n, dim, base=base, dtype=lucid.bfloat16)
    assert half.dtype == lucid.bfloat16
    module = lucid.nn.SinusoidalEmbedding(n, dim, base=base)
    assert_close(module(), wanted)
    grown = module(n + 3)
    assert tuple(grown.shape) == (n + 3, dim) and module(2).shape[0] == 2
    assert_close(grown[:n], wanted)


def test_sinusoidal_2d():
    h, w, dim = 3, 5, 8
    table = F.sinusoidal_embedding_2d(h, w, dim)
    line = to_torch(F.sinusoidal_embedding(max(h, w), dim // 2))
    for r in range(h):
        for c in range(w):
            assert_close(table[r * w + c], torch.cat([line[c], line[r]]))
    module = lucid.nn.SinusoidalEmbedding2D(h, w, dim)
    assert_close(module(), to_torch(table))
    assert tuple(module(2, 2).shape) == (4, dim) and tuple(module().shape) == (4, dim)


def rotated(x, positions, interleaved):
    """Pairs as complex numbers, rotated."""
    d = x.shape[-1]
    a = positions.double().unsqueeze(-1) * angles(2, d)[1]
    pairs = x.double().unflatten(-1, (d // 2, 2)) if interleaved else x.double().unflatten(-1, (2, d // 2)).transpose(-1, -2)
    rotated = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(a), a))
    return (rotated if interleaved else rotated.transpose(-1, -2)).flatten(-2)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(interleaved):
    b, h, s, d = 2, 3, 5, 8
    lucid.manual_seed(0)
    q, k = lucid.randn(b, h, s, d), lucid.randn(b, h, s + 2, d)
    rope = lucid.nn.RotaryEmbedding(d, 4, interleaved=interleaved)
    cos, sin = rope(s + 2)
    assert tuple(cos.shape) == (s + 2, d) and rope.state_dict() == {} and not list(rope.parameters())
    for x, y in zip((q, k), F.apply_rotary_emb(q, k, cos, sin, interleaved=interleaved)):
        assert_close(y, rotated(to_torch(x), torch.arange(x.shape[-2]), interleaved), rtol=1e-5, atol=1e-5)
    at = lucid.tensor([[0, 2, 4, 1, 6], [3, 3, 3, 0, 5]])
    mine, _ = F.apply_rotary_emb(q, q, cos, sin, at, interleaved=interleaved)
    assert_close(mine, rotated(to_torch(q), to_torch(at).unsqueeze(1), interleaved), rtol=1e-5, atol=1e-5)
    mine, _ = F.apply_rotary_emb(q, q, cos, sin, at[0], interleaved=interleaved)
    assert_close(mine, rotated(to_torch(q), to_torch(at[0]), interleaved), rtol=1e-5, atol=1e-5)
    # only how far positions are apart counts
    a, c = q[:1, :1, :1].expand(1, 1, 7, d), k[:1, :1, :1].expand(1, 1, 7, d)
    a, c = F.apply_rotary_emb(a, c, cos, sin, interleaved=interleaved)
    dots = to_torch(a @ c.transpose(-1, -2))[0, 0]
    for i in range(1, 7):
        torch.testing.assert_close(dots[i, i], dots[0, 0], rtol=1e-4, atol=1e-4)


def test_rotary_gradients_and_dtypes():
    rope = lucid.nn.RotaryEmbedding(4, 8, dtype=lucid.float64)
    x = lucid.randn(2, 3, 4, dtype=lucid.float64, requires_grad=True)
    for interleaved in (False, True):
        assert lucid.autograd.gradcheck(lambda x, i=interleaved: F.apply_rotary_emb(x, x, *rope(), interleaved=i), (x,))
    half = lucid.randn(3, 4, dtype=lucid.bfloat16)
    assert F.apply_rotary_emb(half, half, *rope())[0].dtype == lucid.bfloat16


def test_tables_move_and_copy():
    rope = lucid.nn.RotaryEmbedding(4, 8).double()
    assert rope(20)[0].dtype == lucid.float64 and copy.deepcopy(rope)(3)[1].shape == (3, 4)
    with pytest.raises(ValueError):
        F.apply_rotary_emb(lucid.ones(9, 4), lucid.ones(9, 4), *lucid.nn.RotaryEmbedding(4, 8)())


def test_timesteps():
    lucid.manual_seed(2)
    layer = lucid.nn.TimestepEmbedding(8, 16)
    t = torch.tensor([[0.0, 1.5], [250.0, 999.0]])
    f = torch.tensor([10000.0 ** (-i / 3) for i in range(4)], dtype=torch.float64)
    waves = torch.cat([(t.double()[..., None] * f).cos(), (t.double()[..., None] * f).sin()], -1).float()
    w = {k: to_torch(v) for k, v in layer.state_dict().items()}
    hidden = torch.nn.functional.silu(waves @ w["linear_1.weight"].T + w["linear_1.bias"])
    assert_close(layer(lucid.tensor(t.tolist())), hidden @ w["linear_2.weight"].T + w["linear_2.bias"], rtol=1e-5, atol=1e-5)
    assert tuple(layer(lucid.tensor(3)).shape) == (16,)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lucid.nn.RotaryEmbedding(5, 4),
        lambda: lucid.nn.SinusoidalEmbedding(4, 3),
        lambda: lucid.nn.SinusoidalEmbedding2D(4, 4, 6),
        lambda: lucid.nn.TimestepEmbedding(3, 4),
        lambda: F.sinusoidal_embedding(4, 3),
        lambda: F.sinusoidal_embedding_2d(2, 2, 6),
    ],
)
def test_odd_sizes_are_refused(make):
    with pytest.raises(ValueError):
        make()


def test_formula_once():
    """One value by hand."""
    assert math.isclose(float(F.sinusoidal_embedding(4, 4)[3, 2]), math.sin(3 / 100), rel_tol=1e-6)
