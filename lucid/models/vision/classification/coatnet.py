"""CoAtNet (Dai et al., 2021): two stages of convolutions, then stages of attention over the whole map. timm's keys."""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import ChannelNorm, DropPath, drop_rates, start_convolutions
from .maxvit import Convolutions, Head, MBConv, Smaller, Stem
from .swin import relative_positions
from .vit import checked


@dataclasses.dataclass(frozen=True)
class CoAtNetConfig(ImageConfig):
    """The settings of CoAtNet; the defaults are CoAtNet-0. The last stages attend: as many as attn_heads has numbers.

    >>> lucid.models.CoAtNetConfig().attn_heads
    (12, 24)
    """

    image_size: int = 224
    blocks_per_stage: tuple = (2, 3, 5, 2)
    dims: tuple = (96, 192, 384, 768)
    stem_width: int = 64
    attn_heads: tuple = (12, 24)
    mlp_ratio: float = 4.0
    head_hidden_size: int = 768
    dropout: float = 0.0
    drop_path_rate: float = 0.0
    model_type = "coatnet"

    def __post_init__(self):
        if len(self.blocks_per_stage) != len(self.dims) or len(self.attn_heads) > len(self.dims):
            raise ValueError("blocks_per_stage and dims have one number per stage, attn_heads one per stage that attends")
        for heads, width in zip(self.attn_heads[::-1], self.dims[::-1]):
            if width % heads:
                raise ValueError(f"dims {self.dims} are multiples of their attn_heads {self.attn_heads}")


class _Distances(nn.Module):
    def __init__(self, heads, side):
        super().__init__()
        self.relative_position_bias_table = nn.Parameter(_C.empty((2 * side - 1) ** 2, heads))
        nn.init.trunc_normal_(self.relative_position_bias_table, std=0.02)
        self.places = side * side
        self.register_buffer("relative_position_index", relative_positions(side, side), persistent=False)

    def forward(self):
        table = self.relative_position_bias_table[self.relative_position_index]
        return table.view(1, self.places, self.places, -1).permute(0, 3, 1, 2)


class _Attention(nn.Module):  # queries, keys and values of a head lie side by side
    def __init__(self, inputs, width, heads, side):
        super().__init__()
        self.heads, self.rel_pos = heads, _Distances(heads, side)
        self.qkv, self.proj = nn.Conv2d(inputs, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        batch, _, height, width = x.shape
        q, k, v = self.qkv(x).view(batch, self.heads, -1, height * width).transpose(2, 3).chunk(3, 3)
        y = F.scaled_dot_product_attention(q, k, v, self.rel_pos())
        return self.proj(y.transpose(2, 3).reshape(batch, -1, height, width))


class _Layers(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(width, inner, 1), nn.Conv2d(inner, width, 1)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class _Block(nn.Module):
    def __init__(self, inputs, width, stride, heads, side, ratio, rate):
        super().__init__()
        self.shortcut, self.norm1 = nn.Identity(), ChannelNorm(inputs, eps=1e-6)
        if stride > 1:
            self.shortcut, norm = Smaller(inputs, width), self.norm1
            self.norm1 = nn.Sequential()
            self.norm1.add_module("norm", norm)
            self.norm1.add_module("down", Smaller(inputs, inputs))
        self.attn, self.norm2 = _Attention(inputs, width, heads, side), ChannelNorm(width, eps=1e-6)
        self.mlp, self.drop_path = _Layers(width, int(width * ratio)), DropPath(rate)

    def forward(self, x):
        x = self.shortcut(x) + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class CoAtNet(ImageModel):
    """CoAtNet without its head.

    >>> config = lucid.models.CoAtNetConfig(image_size=32, blocks_per_stage=(1, 1), dims=(8, 8), stem_width=8, attn_heads=(2,))
    >>> tuple(lucid.models.CoAtNet(config)(lucid.zeros(1, 3, 32, 32)).last_hidden_state.shape)
    (1, 8, 4, 4)
    """

    config_class = CoAtNetConfig
    head_keys = ("head.fc.",)
    stem_keys = ("stem.conv1.weight",)

    def __init__(self, config):
        super().__init__(config)
        kind, width, side = Convolutions(), config.stem_width, -(-config.image_size // 2)
        self.stem, stages = Stem(config.in_channels, width, kind), []
        first = len(config.dims) - len(config.attn_heads)
        rates = drop_rates(config.drop_path_rate, config.blocks_per_stage)
        for number, outputs in enumerate(config.dims):
            stage, blocks, side = nn.Module(), [], -(-side // 2)
            for i, rate in enumerate(rates[number]):
                if number < first:
                    blocks.append(MBConv(width, outputs, 1 if i else 2, kind, rate))
                else:
                    heads = config.attn_heads[number - first]
                    blocks.append(_Block(width, outputs, 1 if i else 2, heads, side, config.mlp_ratio, rate))
                width = outputs
            stage.blocks = nn.Sequential(*blocks)
            stages.append(stage)
        self.stages = nn.ModuleList(stages)
        if self.classifies:
            self.head = Head(width, config.head_hidden_size, config.num_classes, 1e-6, config.dropout)
        start_convolutions(self, linear_std=0.02)

    def trunk(self, x):
        x = self.stem(checked(x, self.config))
        for stage in self.stages:
            x = stage.blocks(x)
        return x

    def scores(self, x):
        return self.head(x)


globals().update(image_family(CoAtNet, {"coatnet_0": {}}))
