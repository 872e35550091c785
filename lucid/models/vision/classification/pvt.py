"""PVT v2 (Wang et al., 2021): a pyramid of transformers whose keys and values are reduced by convolutions. timm's keys."""

import dataclasses

from .... import nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import DropPath, drop_rates, start_narrow


@dataclasses.dataclass(frozen=True)
class PVTConfig(ImageConfig):
    """The settings of PVT v2; the defaults are B0.

    >>> lucid.models.PVTConfig(dims=(64, 128, 320, 512)).sr_ratios
    (8, 4, 2, 1)
    """

    depths: tuple = (2, 2, 2, 2)
    dims: tuple = (32, 64, 160, 256)
    num_heads: tuple = (1, 2, 5, 8)
    sr_ratios: tuple = (8, 4, 2, 1)
    mlp_ratios: tuple = (8, 8, 4, 4)
    dropout: float = 0.0
    attention_dropout: float = 0.0
    drop_path_rate: float = 0.0
    model_type = "pvt_v2"

    def __post_init__(self):
        if any(width % heads for width, heads in zip(self.dims, self.num_heads)):
            raise ValueError("each of dims is a multiple of its num_heads")


class _Patches(nn.Module):
    def __init__(self, inputs, width, patch, stride):
        super().__init__()
        self.proj, self.norm = nn.Conv2d(inputs, width, patch, stride, patch // 2), nn.LayerNorm(width, eps=1e-6)

    def forward(self, x):
        x = self.proj(x)
        return self.norm(x.flatten(2).transpose(1, 2)), x.shape[2:]


class _Attention(nn.Module):
    def __init__(self, width, heads, ratio, config):
        super().__init__()
        self.heads, self.ratio, self.dropout = heads, ratio, config.attention_dropout
        self.q, self.kv, self.proj = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(config.dropout)
        if ratio > 1:
            self.sr, self.norm = nn.Conv2d(width, width, ratio, ratio), nn.LayerNorm(width, eps=1e-6)

    def forward(self, x, size):
        batch, length, width = x.shape
        q = self.q(x).view(batch, length, self.heads, -1).transpose(1, 2)
        if self.ratio > 1:
            x = self.norm(self.sr(x.transpose(1, 2).unflatten(2, size)).flatten(2).transpose(1, 2))
        k, v = self.kv(x).view(batch, -1, 2, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, None, self.dropout if self.training else 0.0)
        return self.drop(self.proj(y.transpose(1, 2).flatten(2)))


class _Mix(nn.Module):
    def __init__(self, width, inner, dropout):
        super().__init__()
        self.fc1, self.dwconv = nn.Linear(width, inner), nn.Conv2d(inner, inner, 3, padding=1, groups=inner)
        self.fc2, self.drop = nn.Linear(inner, width), nn.Dropout(dropout)

    def forward(self, x, size):
        x = self.dwconv(self.fc1(x).transpose(1, 2).unflatten(2, size)).flatten(2).transpose(1, 2)
        return self.drop(self.fc2(self.drop(F.gelu(x))))


class _Block(nn.Module):
    def __init__(self, width, heads, ratio, inner, rate, config):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn, self.mlp = _Attention(width, heads, ratio, config), _Mix(width, inner, config.dropout)
        self.drop_path = DropPath(rate)

    def forward(self, x, size):
        x = x + self.drop_path(self.attn(self.norm1(x), size))
        return x + self.drop_path(self.mlp(self.norm2(x), size))


class PVT(ImageModel):
    """PVT v2 without its head.

    >>> tuple(lucid.models.pvt_v2_b0()(lucid.zeros(1, 3, 64, 64)).last_hidden_state.shape)
    (1, 256, 2, 2)
    """

    config_class = PVTConfig
    head_keys = ("head.",)
    stem_keys = ("patch_embed.proj.weight",)

    def __init__(self, config):
        super().__init__(config)
        dims, stages = config.dims, []
        self.patch_embed = _Patches(config.in_channels, dims[0], 7, 4)
        for i, rates in enumerate(drop_rates(config.drop_path_rate, config.depths)):
            stage = nn.Module()
            if i:
                stage.downsample = _Patches(dims[i - 1], dims[i], 3, 2)
            shape = dims[i], config.num_heads[i], config.sr_ratios[i], int(dims[i] * config.mlp_ratios[i])
            stage.blocks = nn.ModuleList([_Block(*shape, rate, config) for rate in rates])
            stage.norm = nn.LayerNorm(dims[i], eps=1e-6)
            stages.append(stage)
        self.stages = nn.Sequential(*stages)
        if self.classifies:
            self.head = nn.Linear(dims[-1], config.num_classes)
        start_narrow(self)

    def trunk(self, x):
        for i, stage in enumerate(self.stages):
            x, size = stage.downsample(x) if i else self.patch_embed(x)
            for block in stage.blocks:
                x = block(x, size)
            x = stage.norm(x).transpose(1, 2).unflatten(2, size)
        return x

    def scores(self, x):
        return self.head(x)


_WIDE = (64, 128, 320, 512)
_DEPTHS = ((2, 2, 2, 2), (3, 4, 6, 3), (3, 4, 18, 3), (3, 8, 27, 3))
_SIZES = {"pvt_v2_b0": {}} | {f"pvt_v2_b{i}": dict(depths=d, dims=_WIDE) for i, d in enumerate(_DEPTHS, 1)}
_SIZES["pvt_v2_b5"] = dict(depths=(3, 6, 40, 3), dims=_WIDE, mlp_ratios=(4, 4, 4, 4))
globals().update(image_family(PVT, _SIZES))
