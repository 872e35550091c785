"""CrossViT (Chen et al., 2021): two vision transformers, of small and of large patches, whose class tokens look at each
other's patches. timm's keys.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...outputs import BaseModelOutputWithPooling
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import drop_rates, start_narrow
from .vit import PatchEmbed, TokenBlock, checked


@dataclasses.dataclass(frozen=True)
class CrossViTConfig(ImageConfig):
    """The settings of CrossViT, a number per branch; the defaults are the tiny one.

    depths: of each of the blocks, a number of layers per branch. image_scales: of each branch's picture.

    >>> lucid.models.CrossViTConfig().sides
    (240, 224)
    """

    image_size: int = 240
    image_scales: tuple = (1.0, 224 / 240)
    patch_sizes: tuple = (12, 16)
    dims: tuple = (96, 192)
    depths: tuple = ((1, 4), (1, 4), (1, 4))
    num_heads: tuple = (3, 3)
    mlp_ratios: tuple = (4.0, 4.0)
    dropout: float = 0.0
    attention_dropout: float = 0.0
    drop_path_rate: float = 0.0
    model_type = "crossvit"

    def __post_init__(self):
        object.__setattr__(self, "depths", tuple(tuple(block) for block in self.depths))
        if any(side < patch for side, patch in zip(self.sides, self.patch_sizes)):
            raise ValueError(f"pictures of {self.sides} pixels are smaller than patches of {self.patch_sizes}")
        if any(width % heads for width, heads in zip(self.dims, self.num_heads)):
            raise ValueError("each of dims is a multiple of its num_heads")

    @property
    def sides(self):
        return tuple(int(self.image_size * scale) for scale in self.image_scales)

    def to_dict(self):
        return {**super().to_dict(), "depths": [list(block) for block in self.depths]}


class _Look(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.wq, self.wk, self.wv = (nn.Linear(width, width) for _ in range(3))
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        split = lambda y: y.unflatten(2, (self.heads, -1)).transpose(1, 2)
        q, k, v = split(self.wq(x[:, :1])), split(self.wk(x)), split(self.wv(x))
        y = F.scaled_dot_product_attention(q, k, v, None, self.dropout if self.training else 0.0)
        return self.proj(y.transpose(1, 2).flatten(2))


class _Fusion(nn.Module):  # the first token looks at all of them
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(width, eps=1e-6), _Look(width, heads, dropout)

    def forward(self, x):
        return x[:, :1] + self.attn(self.norm1(x))


def _bridge(inputs, outputs):
    return nn.Sequential(nn.LayerNorm(inputs, eps=1e-6), nn.GELU(), nn.Linear(inputs, outputs))


class _Block(nn.Module):
    def __init__(self, config, depths, rates):
        super().__init__()
        dims, heads, drop, attention = config.dims, config.num_heads, config.dropout, config.attention_dropout
        branches = list(zip(dims, heads, config.mlp_ratios, depths))
        layer = lambda w, h, ratio, rate: TokenBlock(w, h, ratio, drop, attention, rate)
        self.blocks = nn.ModuleList(
            nn.Sequential(*(layer(width, count, ratio, rates[i]) for i in range(depth)))
            for width, count, ratio, depth in branches
        )
        others = dims[1:] + dims[:1], heads[1:] + heads[:1]
        self.projs = nn.ModuleList(_bridge(a, b) for a, b in zip(dims, others[0]))
        self.fusion = nn.ModuleList(_Fusion(width, count, attention) for width, count in zip(*others))
        self.revert_projs = nn.ModuleList(_bridge(b, a) for a, b in zip(dims, others[0]))

    def forward(self, branches):
        branches = [layers(x) for layers, x in zip(self.blocks, branches)]
        found = []
        for i, x in enumerate(branches):
            other = branches[(i + 1) % len(branches)]
            y = self.fusion[i](_C.cat([self.projs[i](x[:, :1]), other[:, 1:]], 1))
            found.append(_C.cat([self.revert_projs[i](y), x[:, 1:]], 1))
        return found


class CrossViT(ImageModel):
    """CrossViT without its heads: the tokens of the first branch, and the class tokens of all side by side.

    >>> config = lucid.models.CrossViTConfig(image_size=60, dims=(6, 12), depths=((1, 1),))
    >>> tuple(lucid.models.CrossViT(config)(lucid.zeros(1, 3, 60, 60)).pooler_output.shape)
    (1, 18)
    """

    config_class = CrossViTConfig
    head_keys = ("head.",)
    stem_keys = ("patch_embed.0.proj.weight", "patch_embed.1.proj.weight")

    def __init__(self, config):
        super().__init__(config)
        for i, (side, patch, width) in enumerate(zip(config.sides, config.patch_sizes, config.dims)):
            setattr(self, f"pos_embed_{i}", nn.Parameter(_C.empty(1, 1 + (side // patch) ** 2, width)))
            setattr(self, f"cls_token_{i}", nn.Parameter(_C.empty(1, 1, width)))
        for p in self.parameters():
            nn.init.trunc_normal_(p, std=0.02)
        self.patch_embed = nn.ModuleList(
            PatchEmbed(config.in_channels, width, patch) for width, patch in zip(config.dims, config.patch_sizes)
        )
        rates = drop_rates(config.drop_path_rate, [max(depths) for depths in config.depths])
        self.blocks = nn.ModuleList(_Block(config, depths, r) for depths, r in zip(config.depths, rates))
        self.norm = nn.ModuleList(nn.LayerNorm(width, eps=1e-6) for width in config.dims)
        self.drop = nn.Dropout(config.dropout)
        if self.classifies:
            self.head = nn.ModuleList(nn.Linear(width, config.num_classes) for width in config.dims)
        start_narrow(self)

    def trunk(self, x):
        """The tokens of every branch."""
        checked(x, self.config)
        branches = []
        for i, (side, embed) in enumerate(zip(self.config.sides, self.patch_embed)):
            y = x
            if side != x.shape[-1]:
                y = F.interpolate(x, (side, side), mode="bicubic", align_corners=False)
            first = getattr(self, f"cls_token_{i}").expand(len(x), -1, -1)
            branches.append(self.drop(_C.cat([first, embed(y)], 1) + getattr(self, f"pos_embed_{i}")))
        for block in self.blocks:
            branches = block(branches)
        return [norm(y) for norm, y in zip(self.norm, branches)]

    def pooled(self, x):
        return _C.cat([y[:, 0] for y in x], 1)

    def forward(self, pixel_values):
        x = self.trunk(pixel_values)
        return BaseModelOutputWithPooling(last_hidden_state=x[0], pooler_output=self.pooled(x))

    def scores(self, x):
        parts = x.split(self.config.dims, 1)
        return sum(head(self.drop(part)) for head, part in zip(self.head, parts)) / len(parts)


def _size(width, heads, ratio, depth):
    return dict(dims=(width, 2 * width), num_heads=(heads, heads), mlp_ratios=(ratio, ratio), depths=((1, depth),) * 3)


globals().update(
    image_family(
        CrossViT,
        {
            "crossvit_tiny": {},
            "crossvit_small": _size(192, 6, 4.0, 4),
            "crossvit_base": _size(384, 12, 4.0, 4),
            "crossvit_9": _size(128, 4, 3.0, 3),
            "crossvit_15": _size(192, 6, 3.0, 5),
            "crossvit_18": _size(224, 7, 3.0, 6),
        },
    )
)
