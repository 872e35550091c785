"""Layers that turn positions into vectors. Their tables are buffers that move with the module but are not saved."""

from ... import _C
from .. import functional as F
from .._positional import frequencies, rotary_tables
from .activation import SiLU
from .linear import Linear
from .module import Module


def _divisible(name, argument, value, by):
    if value <= 0 or value % by:
        raise ValueError(f"{name}: {argument} must be positive and divisible by {by}, got {value}")


class RotaryEmbedding(Module):
    """cos and sin tables of rotary position embeddings, for `lucid.nn.functional.apply_rotary_emb`.

    forward(seq_len) gives the tables of the first seq_len positions, (seq_len, head_dim) each; without an argument, of all
    there are. They start with max_position_embeddings and grow when more are asked for. interleaved: pairs are neighbours,
    instead of a feature and the one head_dim / 2 after it.

    >>> rope = lucid.nn.RotaryEmbedding(head_dim=4, max_position_embeddings=8)
    >>> q, k = lucid.ones(1, 2, 3, 4), lucid.ones(1, 2, 3, 4)
    >>> q, k = lucid.nn.functional.apply_rotary_emb(q, k, *rope(3))
    >>> tuple(q.shape), tuple(rope(100)[0].shape), rope.state_dict()
    ((1, 2, 3, 4), (100, 4), OrderedDict())
    """

    def __init__(self, head_dim, max_position_embeddings=2048, base=10000.0, *, interleaved=False, device=None, dtype=None):
        super().__init__()
        _divisible("RotaryEmbedding", "head_dim", head_dim, 2)
        self.head_dim, self.base, self.interleaved = head_dim, base, interleaved
        self.max_position_embeddings = max_position_embeddings
        cos, sin = self._tables(max_position_embeddings, dtype, device)
        self.register_buffer("cos_cached", cos, persistent=False)
        self.register_buffer("sin_cached", sin, persistent=False)

    def _tables(self, n, dtype, device):
        return rotary_tables(n, self.head_dim, self.base, self.interleaved, dtype, device)

    def forward(self, seq_len=None):
        cos, sin = self.cos_cached, self.sin_cached
        if seq_len is None:
            return cos, sin
        if seq_len > cos.shape[0]:
            cos, sin = self._tables(max(seq_len, 2 * cos.shape[0]), cos.dtype, cos.device)
            self.cos_cached, self.sin_cached = cos, sin
        return cos[:seq_len], sin[:seq_len]

    def extra_repr(self):
        more = ", interleaved=True" if self.interleaved else ""
        return f"{self.head_dim}, {self.max_position_embeddings}, base={self.base}{more}"


class SinusoidalEmbedding(Module):
    """A fixed vector of sines and cosines for each position: see `lucid.nn.functional.sinusoidal_embedding`.

    forward(num_positions) gives the table of the first positions; without an argument, of all there are. It grows when more
    are asked for.

    >>> table = lucid.nn.SinusoidalEmbedding(512, 64)
    >>> tuple(table().shape), tuple(table(5).shape), tuple(table(600).shape)
    ((512, 64), (5, 64), (600, 64))
    """

    def __init__(self, num_positions, embedding_dim, *, base=10000.0, device=None, dtype=None):
        super().__init__()
        _divisible("SinusoidalEmbedding", "embedding_dim", embedding_dim, 2)
        self.num_positions, self.embedding_dim, self.base = num_positions, embedding_dim, base
        table = F.sinusoidal_embedding(num_positions, embedding_dim, base=base, device=device, dtype=dtype)
        self.register_buffer("pe", table, persistent=False)

    def forward(self, num_positions=None):
        table = self.pe
        if num_positions is None:
            return table
        if num_positions > table.shape[0]:
            n = max(num_positions, 2 * table.shape[0])
            table = F.sinusoidal_embedding(n, self.embedding_dim, base=self.base, device=table.device, dtype=table.dtype)
            self.pe = table
        return table[:num_positions]

    def extra_repr(self):
        return f"{self.num_positions}, {self.embedding_dim}, base={self.base}"


class SinusoidalEmbedding2D(Module):
    """A fixed vector for each cell of a grid, row by row: see `lucid.nn.functional.sinusoidal_embedding_2d`.

    forward(height, width) is for a grid of another size, whose table is kept then; without arguments, for the last one.

    >>> table = lucid.nn.SinusoidalEmbedding2D(16, 24, 128)
    >>> tuple(table().shape), tuple(table(2, 3).shape)
    ((384, 128), (6, 128))
    """

    def __init__(self, height, width, embedding_dim, *, base=10000.0, device=None, dtype=None):
        super().__init__()
        _divisible("SinusoidalEmbedding2D", "embedding_dim", embedding_dim, 4)
        self.height, self.width, self.embedding_dim, self.base = height, width, embedding_dim, base
        table = F.sinusoidal_embedding_2d(height, width, embedding_dim, base=base, device=device, dtype=dtype)
        self.register_buffer("pe", table, persistent=False)

    def forward(self, height=None, width=None):
        height, width = self.height if height is None else height, self.width if width is None else width
        if (height, width) != (self.height, self.width):
            self.height, self.width, old = height, width, self.pe
            self.pe = F.sinusoidal_embedding_2d(
                height, width, self.embedding_dim, base=self.base, device=old.device, dtype=old.dtype
            )
        return self.pe

    def extra_repr(self):
        return f"{self.height}, {self.width}, {self.embedding_dim}, base={self.base}"


class TimestepEmbedding(Module):
    """Times of a diffusion model as vectors: cosines and sines of them, through two linear layers with a SiLU between.

    forward(timesteps): numbers of any shape; the result has one more dimension, of size out_dim.

    >>> layer = lucid.nn.TimestepEmbedding(128, 512)
    >>> tuple(layer(lucid.tensor([0, 250, 999])).shape)
    (3, 512)
    """

    def __init__(self, in_dim, out_dim, *, base=10000.0, device=None, dtype=None):
        super().__init__()
        _divisible("TimestepEmbedding", "in_dim", in_dim, 2)
        self.in_dim, self.out_dim, self.base = in_dim, out_dim, base
        self.linear_1 = Linear(in_dim, out_dim, device=device, dtype=dtype)
        self.act = SiLU()
        self.linear_2 = Linear(out_dim, out_dim, device=device, dtype=dtype)

    def _waves(self, timesteps):
        weight = self.linear_1.weight
        steps = max(self.in_dim // 2 - 1, 1)  # the last frequency is 1 / base
        angles = timesteps.to(_C.float64).unsqueeze(-1) * frequencies(self.in_dim, self.base, steps, timesteps.device)
        return _C.cat([angles.cos(), angles.sin()], -1).to(weight.dtype)

    def forward(self, timesteps):
        return self.linear_2(self.act(self.linear_1(self._waves(timesteps))))

    def extra_repr(self):
        return f"in_dim={self.in_dim}, out_dim={self.out_dim}, base={self.base}"


__all__ = ["RotaryEmbedding", "SinusoidalEmbedding", "SinusoidalEmbedding2D", "TimestepEmbedding"]
