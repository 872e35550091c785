"""Swin Transformer (Liu et al., 2021): attention inside windows that shift from layer to layer. torchvision's keys."""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import DropPath, drop_rates, start_narrow


@dataclasses.dataclass(frozen=True)
class SwinConfig(ImageConfig):
    """The settings of Swin; the defaults are the tiny one. Images may have any size; image_size says what it was trained for.

    >>> lucid.models.SwinConfig(embed_dim=128).window_size
    7
    """

    image_size: int = 224
    patch_size: int = 4
    embed_dim: int = 96
    depths: tuple = (2, 2, 6, 2)
    num_heads: tuple = (3, 6, 12, 24)
    window_size: int = 7
    mlp_ratio: float = 4.0
    dropout: float = 0.0
    attention_dropout: float = 0.0
    stochastic_depth_prob: float = 0.2
    model_type = "swin-torchvision"

    def __post_init__(self):
        if len(self.depths) != len(self.num_heads):
            raise ValueError("depths and num_heads have one number per stage")


def relative_positions(height, width):
    """For every pair of places in a window, the row of a table of their distances (height * width squared numbers).

    >>> from lucid.models.vision.classification.swin import relative_positions
    >>> relative_positions(1, 2)
    tensor([1, 0, 2, 1])
    """
    rows, columns = _C.arange(height, device="cpu"), _C.arange(width, device="cpu")
    y = rows.repeat_interleave(width)
    x = columns.repeat(height)
    dy, dx = y[:, None] - y[None, :] + height - 1, x[:, None] - x[None, :] + width - 1
    return (dy * (2 * width - 1) + dx).flatten()


def _shift_mask(height, width, window, shift_y, shift_x, like):
    """(windows, 1, places, places): -100 where two places of a window lay apart before the shift."""
    bands = []
    for size, shift in ((height, shift_y), (width, shift_x)):
        places = _C.arange(size, device=like.device)
        band = (places >= size - window).to(_C.int64)
        bands.append(band + (places >= size - shift).to(_C.int64) if shift else band)
    region = bands[0][:, None] * 3 + bands[1][None, :]
    region = region.view(height // window, window, width // window, window).permute(0, 2, 1, 3).reshape(-1, window * window)
    apart = region[:, None, :] != region[:, :, None]
    return (apart.to(like.dtype) * -100.0).unsqueeze(1)


class WindowAttention(nn.Module):
    """Attention inside windows of a map (batch, height, width, channels), shifted by `shift`.

    >>> from lucid.models.vision.classification.swin import WindowAttention
    >>> tuple(WindowAttention(8, 2, 4, 2)(lucid.zeros(1, 6, 6, 8)).shape)
    (1, 6, 6, 8)
    """

    shifts_small = False  # whether a map of a single window is shifted too

    def __init__(self, width, heads, window, shift, dropout=0.0, attention_dropout=0.0):
        super().__init__()
        self.heads, self.window, self.shift, self.attention_dropout = heads, window, shift, attention_dropout
        self.relative_position_bias_table = nn.Parameter(_C.zeros((2 * window - 1) ** 2, heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.qkv, self.proj, self.drop = nn.Linear(width, 3 * width), nn.Linear(width, width), nn.Dropout(dropout)
        self.register_buffer("relative_position_index", relative_positions(window, window))

    def bias(self):
        places = self.window**2
        table = self.relative_position_bias_table[self.relative_position_index]
        return table.view(places, places, self.heads).permute(2, 0, 1).unsqueeze(0)

    def three(self, x):
        """Queries, keys and values (batch, windows, heads, places, width of a head)."""
        return self.qkv(x).unflatten(3, (3, self.heads, -1)).permute(3, 0, 1, 4, 2, 5).unbind(0)

    def out(self, y):
        return self.drop(self.proj(y))

    def forward(self, x):
        batch, height, width, channels = x.shape
        window = self.window
        below, right = -height % window, -width % window
        if below or right:
            x = F.pad(x, (0, 0, 0, right, 0, below))
        tall, wide = height + below, width + right
        shift_y, shift_x = (0 if window >= size and not self.shifts_small else self.shift for size in (tall, wide))
        mask = self.bias()
        if shift_y or shift_x:
            x = _C.roll(x, (-shift_y, -shift_x), (1, 2))
            mask = mask + _shift_mask(tall, wide, window, shift_y, shift_x, mask)
        x = x.view(batch, tall // window, window, wide // window, window, channels).permute(0, 1, 3, 2, 4, 5)
        q, k, v = self.three(x.reshape(batch, -1, window * window, channels))
        y = F.scaled_dot_product_attention(q, k, v, mask, self.attention_dropout if self.training else 0.0)
        y = self.out(y.transpose(2, 3).reshape(-1, window * window, channels))
        y = y.view(batch, tall // window, wide // window, window, window, channels).permute(0, 1, 3, 2, 4, 5)
        y = y.reshape(batch, tall, wide, channels)
        if shift_y or shift_x:
            y = _C.roll(y, (shift_y, shift_x), (1, 2))
        return y[:, :height, :width]


class _Block(nn.Module):
    def __init__(self, config, width, heads, shift, rate):
        super().__init__()
        inner, drop = int(width * config.mlp_ratio), config.dropout
        self.norm1 = nn.LayerNorm(width)
        self.attn = WindowAttention(width, heads, config.window_size, shift, drop, config.attention_dropout)
        self.stochastic_depth, self.norm2 = DropPath(rate), nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, inner), nn.GELU(), nn.Dropout(drop), nn.Linear(inner, width), nn.Dropout(drop)
        )

    def forward(self, x):
        x = x + self.stochastic_depth(self.attn(self.norm1(x)))
        return x + self.stochastic_depth(self.mlp(self.norm2(x)))


class Merging(nn.Module):
    """Four neighbours of a map (batch, height, width, channels) to one, of twice the width.

    >>> from lucid.models.vision.classification.swin import Merging
    >>> tuple(Merging(4)(lucid.zeros(1, 3, 4, 4)).shape)
    (1, 2, 2, 8)
    """

    def __init__(self, width):
        super().__init__()
        self.reduction, self.norm = nn.Linear(4 * width, 2 * width, bias=False), nn.LayerNorm(4 * width)

    def forward(self, x):
        if x.shape[1] % 2 or x.shape[2] % 2:
            x = F.pad(x, (0, 0, 0, x.shape[2] % 2, 0, x.shape[1] % 2))
        corners = [x[:, row::2, column::2] for row, column in ((0, 0), (1, 0), (0, 1), (1, 1))]
        return self.reduction(self.norm(_C.cat(corners, -1)))


class _ChannelsLast(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 3, 1)


class SwinTransformer(ImageModel):
    """Swin without its head; the map has its channels last.

    >>> config = lucid.models.SwinConfig(embed_dim=8, depths=(1, 1), num_heads=(1, 2), window_size=4)
    >>> tuple(lucid.models.SwinTransformer(config)(lucid.zeros(1, 3, 32, 32)).last_hidden_state.shape)
    (1, 4, 4, 16)
    """

    config_class = SwinConfig
    head_keys = ("head.",)
    stem_keys = ("features.0.0.weight",)

    def __init__(self, config):
        super().__init__(config)
        width, patch = config.embed_dim, config.patch_size
        stem = nn.Conv2d(config.in_channels, width, patch, patch), _ChannelsLast(), nn.LayerNorm(width)
        layers = [nn.Sequential(*stem)]
        stages = zip(config.num_heads, drop_rates(config.stochastic_depth_prob, config.depths))
        for number, (heads, rates) in enumerate(stages):
            if number:
                layers.append(Merging(width))
                width *= 2
            shifts = [0 if i % 2 == 0 else config.window_size // 2 for i in range(len(rates))]
            layers.append(nn.Sequential(*(_Block(config, width, heads, s, r) for s, r in zip(shifts, rates))))
        self.features, self.norm = nn.Sequential(*layers), nn.LayerNorm(width)
        if self.classifies:
            self.head = nn.Linear(width, config.num_classes)
        start_narrow(self)

    def trunk(self, x):
        return self.norm(self.features(x))

    def pooled(self, x):
        return x.mean((1, 2))

    def scores(self, x):
        return self.head(x)


_SMALL = (2, 2, 18, 2)
globals().update(
    image_family(
        SwinTransformer,
        {
            "swin_tiny": {},
            "swin_small": dict(depths=_SMALL, stochastic_depth_prob=0.3),
            "swin_base": dict(embed_dim=128, depths=_SMALL, num_heads=(4, 8, 16, 32), stochastic_depth_prob=0.5),
            "swin_large": dict(embed_dim=192, depths=_SMALL, num_heads=(6, 12, 24, 48), stochastic_depth_prob=0.5),
        },
        {"swin_t": "swin_tiny", "swin_s": "swin_small", "swin_b": "swin_base"},
    )
)
