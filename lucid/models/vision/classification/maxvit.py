"""MaxViT (Tu et al., 2022): a convolution, attention within windows, and attention over a grid that spans the map, in every
block. timm's keys and arithmetic of the files converted from TensorFlow (`maxvit_tiny_tf_224` and kin).

`Stem`, `MBConv`, `Smaller` and `Head` serve CoAtNet too.
"""

import dataclasses
import functools

from .... import _C, nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import MLP, DropPath, SameConv2d, SqueezeExcite, divisible, drop_rates, start_convolutions
from .swin import relative_positions

gelu_tanh = functools.partial(F.gelu, approximate="tanh")


@dataclasses.dataclass(frozen=True)
class MaxViTConfig(ImageConfig):
    """The settings of MaxViT; the defaults are the tiny one. Sides of images are multiples of 32 * window_size.

    stem_width, head_hidden_size: the first and the last of dims if they are not given.

    >>> lucid.models.MaxViTConfig().window_size
    7
    """

    depths: tuple = (2, 2, 5, 2)
    dims: tuple = (64, 128, 256, 512)
    window_size: int = 7
    head_dim: int = 32
    mlp_ratio: float = 4.0
    stem_width: int | None = None
    head_hidden_size: int | None = None
    dropout: float = 0.0
    drop_path_rate: float = 0.0
    model_type = "maxvit"

    def __post_init__(self):
        if len(self.depths) != len(self.dims):
            raise ValueError(f"{len(self.depths)} depths and {len(self.dims)} dims")
        if any(width % self.head_dim for width in self.dims):
            raise ValueError(f"dims {self.dims} are multiples of head_dim {self.head_dim}")


@dataclasses.dataclass(frozen=True)
class Convolutions:
    """How the convolutions of a network of this kind are: TensorFlow's padding or the usual, eps, the activation.

    >>> from lucid.models.vision.classification.maxvit import Convolutions
    >>> Convolutions().norm(4).eps
    1e-05
    """

    same: bool = False
    eps: float = 1e-5
    act: object = F.gelu

    def conv3(self, inputs, outputs, stride=1, groups=1, bias=False):
        if self.same:
            return SameConv2d(inputs, outputs, 3, stride, groups=groups, bias=bias)
        return nn.Conv2d(inputs, outputs, 3, stride, 1, groups=groups, bias=bias)

    def norm(self, channels):
        return nn.BatchNorm2d(channels, eps=self.eps)


class Stem(nn.Module):
    """Two convolutions that halve an image.

    >>> from lucid.models.vision.classification.maxvit import Convolutions, Stem
    >>> tuple(Stem(3, 8, Convolutions())(lucid.zeros(1, 3, 8, 8)).shape)
    (1, 8, 4, 4)
    """

    def __init__(self, inputs, width, kind, bias=False):
        super().__init__()
        self.conv1, self.norm1 = kind.conv3(inputs, width, 2, bias=bias), kind.norm(width)
        self.conv2, self.act = kind.conv3(width, width, bias=bias), kind.act

    def forward(self, x):
        return self.conv2(self.act(self.norm1(self.conv1(x))))


class Smaller(nn.Module):
    """Half the map by means, with other channels if they differ.

    >>> from lucid.models.vision.classification.maxvit import Smaller
    >>> tuple(Smaller(2, 4)(lucid.zeros(1, 2, 4, 4)).shape)
    (1, 4, 2, 2)
    """

    def __init__(self, inputs, outputs):
        super().__init__()
        self.expand = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.expand(F.avg_pool2d(x, 2))


class MBConv(nn.Module):
    """An inverted bottleneck: wide, a convolution per channel, weights per channel, narrow; the way around it.

    >>> from lucid.models.vision.classification.maxvit import Convolutions, MBConv
    >>> tuple(MBConv(8, 16, 2, Convolutions())(lucid.zeros(1, 8, 4, 4)).shape)
    (1, 16, 2, 2)
    """

    def __init__(self, inputs, outputs, stride, kind, rate=0.0):
        super().__init__()
        inner, self.act = divisible(4 * outputs), kind.act
        self.shortcut = Smaller(inputs, outputs) if stride > 1 else nn.Identity()
        self.pre_norm, self.conv1_1x1 = kind.norm(inputs), nn.Conv2d(inputs, inner, 1, bias=False)
        self.norm1, self.conv2_kxk = kind.norm(inner), kind.conv3(inner, inner, stride, inner)
        self.norm2, self.se = kind.norm(inner), SqueezeExcite(inner, outputs // 4, F.silu)
        self.conv3_1x1, self.drop_path = nn.Conv2d(inner, outputs, 1), DropPath(rate)

    def forward(self, x):
        y = self.act(self.norm1(self.conv1_1x1(self.pre_norm(x))))
        y = self.se(self.act(self.norm2(self.conv2_kxk(y))))
        return self.drop_path(self.conv3_1x1(y)) + self.shortcut(x)


class Head(nn.Module):
    """A vector per image to logits: normalised, a hidden layer with tanh, the scores.

    >>> from lucid.models.vision.classification.maxvit import Head
    >>> tuple(Head(4, 8, 3, 1e-5)(lucid.zeros(2, 4)).shape)
    (2, 3)
    """

    def __init__(self, width, hidden, classes, eps, dropout=0.0):
        super().__init__()
        self.norm, self.pre_logits = nn.LayerNorm(width, eps=eps), nn.Module()
        self.pre_logits.fc, self.drop, self.fc = nn.Linear(width, hidden), nn.Dropout(dropout), nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc(self.drop(self.pre_logits.fc(self.norm(x)).tanh()))


class _Distances(nn.Module):  # what attention adds for how far apart two places of a window lie
    def __init__(self, heads, window):
        super().__init__()
        side = 2 * window - 1
        self.relative_position_bias_table = nn.Parameter(_C.empty(heads, side, side))
        nn.init.normal_(self.relative_position_bias_table, std=0.02)
        self.shape = (1, heads, window**2, window**2)
        self.register_buffer("rows", side * side - 1 - relative_positions(window, window), persistent=False)

    def forward(self):
        return self.relative_position_bias_table.flatten(1)[:, self.rows].view(self.shape)


class _WindowAttention(nn.Module):
    def __init__(self, width, head_dim, window):
        super().__init__()
        self.heads = width // head_dim
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rel_pos = _Distances(self.heads, window)

    def forward(self, x):
        count, places, width = x.shape
        q, k, v = self.qkv(x).view(count, places, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, self.rel_pos())
        return self.proj(y.transpose(1, 2).reshape(count, places, width))


class _Partition(nn.Module):  # attention of places within a window, or of those at one place of every cell of a grid
    def __init__(self, config, width, grid, rate):
        super().__init__()
        self.window, self.grid = config.window_size, grid
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = _WindowAttention(width, config.head_dim, self.window)
        self.mlp, self.drop_path = MLP(width, int(width * config.mlp_ratio), gelu_tanh), DropPath(rate)

    def apart(self, x):
        batch, height, width, channels = x.shape
        side = self.window
        if self.grid:
            order, shape = (0, 2, 4, 1, 3, 5), (batch, side, height // side, side, width // side, channels)
        else:
            order, shape = (0, 1, 3, 2, 4, 5), (batch, height // side, side, width // side, side, channels)
        parts = x.view(shape).permute(order)
        found = self.attn(parts.reshape(-1, side * side, channels)).view(parts.shape)
        back = [order.index(i) for i in range(6)]
        return found.permute(back).reshape(batch, height, width, channels)

    def forward(self, x):
        x = x + self.drop_path(self.apart(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class _Block(nn.Module):
    def __init__(self, config, inputs, width, stride, kind, rate):
        super().__init__()
        self.conv = MBConv(inputs, width, stride, kind, rate)
        self.attn_block, self.attn_grid = _Partition(config, width, False, rate), _Partition(config, width, True, rate)

    def forward(self, x):
        x = self.attn_grid(self.attn_block(self.conv(x).permute(0, 2, 3, 1)))
        return x.permute(0, 3, 1, 2)


class MaxViT(ImageModel):
    """MaxViT without its head.

    >>> config = lucid.models.MaxViTConfig(depths=(1, 1), dims=(32, 32), window_size=2)
    >>> tuple(lucid.models.MaxViT(config)(lucid.zeros(1, 3, 32, 32)).last_hidden_state.shape)
    (1, 32, 4, 4)
    """

    config_class = MaxViTConfig
    head_keys = ("head.fc.",)
    stem_keys = ("stem.conv1.weight",)

    def __init__(self, config):
        super().__init__(config)
        kind, width = Convolutions(same=True, eps=1e-3, act=gelu_tanh), config.stem_width or config.dims[0]
        self.stem, stages = Stem(config.in_channels, width, kind, bias=True), []
        for outputs, rates in zip(config.dims, drop_rates(config.drop_path_rate, config.depths)):
            stage = nn.Module()
            blocks = []
            for i, rate in enumerate(rates):
                blocks.append(_Block(config, width, outputs, 1 if i else 2, kind, rate))
                width = outputs
            stage.blocks = nn.ModuleList(blocks)
            stages.append(stage)
        self.stages = nn.ModuleList(stages)
        if self.classifies:
            hidden = config.head_hidden_size or width
            self.head = Head(width, hidden, config.num_classes, 1e-5, config.dropout)
        start_convolutions(self, linear_std=0.02)

    def trunk(self, x):
        step = 2 ** (len(self.stages) + 1) * self.config.window_size
        if x.shape[-2] % step or x.shape[-1] % step:
            raise ValueError(f"sides of images are multiples of {step}, not {x.shape[-2]}x{x.shape[-1]}")
        x = self.stem(x)
        for stage in self.stages:
            for block in stage.blocks:
                x = block(x)
        return x

    def scores(self, x):
        return self.head(x)


_DEEP = (2, 6, 14, 2)
globals().update(
    image_family(
        MaxViT,
        {
            "maxvit_tiny": {},
            "maxvit_small": dict(dims=(96, 192, 384, 768), stem_width=64),
            "maxvit_base": dict(dims=(96, 192, 384, 768), depths=_DEEP, stem_width=64),
            "maxvit_large": dict(dims=(128, 256, 512, 1024), depths=_DEEP),
            "maxvit_xlarge": dict(dims=(192, 384, 768, 1536), depths=_DEEP),
        },
    )
)
