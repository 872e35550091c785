"""Position embeddings: tables of sines and cosines, and rotations. PyTorch has no such functions; models bring their own."""

from .. import _C


def frequencies(dim, base, steps=None, device=None):
    """base ** (-i / steps) for i below dim / 2, in float64; steps: dim / 2 unless given.

    >>> from lucid.nn._positional import frequencies
    >>> frequencies(4, 100.0).tolist()
    [1.0, 0.1]
    """
    half = dim // 2
    exponents = _C.arange(half, dtype=_C.float64, device=device) / (half if steps is None else steps)
    return base**-exponents


def _angles(n, dim, base, device):
    return _C.outer(_C.arange(n, dtype=_C.float64, device=device), frequencies(dim, base, device=device))


def rotary_tables(n, dim, base, interleaved, dtype=None, device=None):
    """cos and sin of the angles of n positions, (n, dim): twice in a row, or interleaved each angle twice.

    >>> from lucid.nn._positional import rotary_tables
    >>> cos, sin = rotary_tables(2, 4, 10000.0, interleaved=True)
    >>> sin
    tensor([[0.0000, 0.0000, 0.0000, 0.0000],
            [0.8415, 0.8415, 0.0100, 0.0100]])
    """
    angles = _angles(n, dim, base, device)
    angles = angles.repeat_interleave(2, -1) if interleaved else _C.cat([angles, angles], -1)
    dtype = _C.get_default_dtype() if dtype is None else dtype
    return angles.cos().to(dtype), angles.sin().to(dtype)


def sinusoidal_embedding(num_positions, embedding_dim, *, base=10000.0, device=None, dtype=None):
    """A vector for each position, (num_positions, embedding_dim): sin and cos of p / base^(2i / embedding_dim) by turns.

    >>> lucid.nn.functional.sinusoidal_embedding(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    if embedding_dim % 2:
        raise ValueError(f"sinusoidal_embedding: embedding_dim must be even, got {embedding_dim}")
    angles = _angles(num_positions, embedding_dim, base, device)
    table = _C.stack([angles.sin(), angles.cos()], -1).flatten(-2)
    return table.to(_C.get_default_dtype() if dtype is None else dtype)


def sinusoidal_embedding_2d(height, width, embedding_dim, *, base=10000.0, device=None, dtype=None):
    """A vector for each cell of a grid, row by row, (height * width, embedding_dim): of its column, then of its row.

    >>> lucid.nn.functional.sinusoidal_embedding_2d(1, 2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0000, 1.0000]])
    """
    if embedding_dim % 4:
        raise ValueError(f"sinusoidal_embedding_2d: embedding_dim must be divisible by 4, got {embedding_dim}")
    half = embedding_dim // 2
    columns, rows = (sinusoidal_embedding(n, half, base=base, device=device, dtype=dtype) for n in (width, height))
    columns = columns.unsqueeze(0).expand(height, width, half)
    rows = rows.unsqueeze(1).expand(height, width, half)
    return _C.cat([columns, rows], -1).reshape(height * width, embedding_dim)


def _rotated(x, interleaved):
    """Every pair (a, b) as (-b, a)."""
    if interleaved:
        return _C.stack([-x[..., 1::2], x[..., 0::2]], -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return _C.cat([-b, a], -1)


@_C.overridable
def apply_rotary_emb(q, k, cos, sin, position_ids=None, *, interleaved=False):
    """Rotate queries and keys (..., length, dim) by angles that grow with the position. Returns both.

    cos, sin: (positions, dim), as `lucid.nn.RotaryEmbedding` makes them. position_ids: the positions of the rows, (length) or
    (batch, length); the first ones if not given. Pairs are a feature and the one dim / 2 after it, or neighbours if
    interleaved (the tables must be made so too). Dot products of the results depend on how far positions are apart, not on
    where they are.

    >>> cos, sin = lucid.nn.RotaryEmbedding(4, 16)()
    >>> q = k = lucid.tensor([[1.0, 0.0, 0.0, 0.0]]).expand(3, 4)
    >>> q, k = lucid.nn.functional.apply_rotary_emb(q, k, cos, sin)
    >>> q @ k.t()
    tensor([[ 1.0000,  0.5403, -0.4161],
            [ 0.5403,  1.0000,  0.5403],
            [-0.4161,  0.5403,  1.0000]])
    """

    def rotated(x):
        length = x.shape[-2]
        if position_ids is None:
            if cos.shape[0] < length:
                raise ValueError(f"apply_rotary_emb: {length} positions, but the tables have {cos.shape[0]}")
            c, s = cos[:length], sin[:length]
        else:
            c, s = cos[position_ids], sin[position_ids]
        while 2 < c.ndim < x.ndim:  # (batch, length, dim): heads come between
            c, s = c.unsqueeze(-3), s.unsqueeze(-3)
        return x * c.to(x.dtype) + _rotated(x, interleaved) * s.to(x.dtype)

    return rotated(q), rotated(k)


__all__ = ["apply_rotary_emb", "sinusoidal_embedding", "sinusoidal_embedding_2d"]
