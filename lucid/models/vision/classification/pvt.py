"""PVT v2 (Wang et al., 2021): a pyramid of transformers whose keys and values are reduced by convolutions. timm's keys.

PVT v1 (Wang et al., 2021) has the keys of its authors: patches that do not overlap, positions to learn for each stage, no
convolution between the fully connected layers, and a token for the whole image that joins in the last stage.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import MLP, DropPath, drop_rates, start_narrow


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


@dataclasses.dataclass(frozen=True)
class PVTV1Config(PVTConfig):
    """The settings of PVT v1; the defaults are the tiny one. Images of another size than image_size resize the positions.

    >>> lucid.models.PVTV1Config(image_size=64).dims
    (64, 128, 320, 512)
    """

    dims: tuple = (64, 128, 320, 512)
    image_size: int = 224
    model_type = "pvt"

    def __post_init__(self):
        super().__post_init__()
        if self.image_size < 1 or self.image_size % 2 ** (len(self.dims) + 1):
            raise ValueError(f"image_size is a multiple of {2 ** (len(self.dims) + 1)}, not {self.image_size}")


class _Patches(nn.Module):
    def __init__(self, inputs, width, patch, stride, padding=None, eps=1e-6):
        super().__init__()
        self.proj = nn.Conv2d(inputs, width, patch, stride, patch // 2 if padding is None else padding)
        self.norm = nn.LayerNorm(width, eps=eps)

    def forward(self, x):
        x = self.proj(x)
        return self.norm(x.flatten(2).transpose(1, 2)), x.shape[2:]


class _Attention(nn.Module):
    def __init__(self, width, heads, ratio, config, eps):
        super().__init__()
        self.heads, self.ratio, self.dropout = heads, ratio, config.attention_dropout
        self.q, self.kv, self.proj = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        self.drop = nn.Dropout(config.dropout)
        if ratio > 1:
            self.sr, self.norm = nn.Conv2d(width, width, ratio, ratio), nn.LayerNorm(width, eps=eps)

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
    mixes = True  # whether a convolution stands between the fully connected layers

    def __init__(self, width, heads, ratio, inner, rate, config):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attn = _Attention(width, heads, ratio, config, 1e-6 if self.mixes else 1e-5)
        self.mlp = _Mix(width, inner, config.dropout) if self.mixes else MLP(width, inner, dropout=config.dropout)
        self.drop_path = DropPath(rate)

    def forward(self, x, size):
        x = x + self.drop_path(self.attn(self.norm1(x), size))
        y = self.norm2(x)
        return x + self.drop_path(self.mlp(y, size) if self.mixes else self.mlp(y))


class _PlainBlock(_Block):
    mixes = False


def _blocks(block, config):
    """The blocks of every stage."""
    for i, rates in enumerate(drop_rates(config.drop_path_rate, config.depths)):
        width = config.dims[i]
        shape = width, config.num_heads[i], config.sr_ratios[i], int(width * config.mlp_ratios[i])
        yield nn.ModuleList([block(*shape, rate, config) for rate in rates])


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
        for i, blocks in enumerate(_blocks(_Block, config)):
            stage = nn.Module()
            if i:
                stage.downsample = _Patches(dims[i - 1], dims[i], 3, 2)
            stage.blocks = blocks
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


class PVTV1(PVT):
    """PVT v1 without its head.

    >>> model = lucid.models.pvt_tiny(image_size=64)
    >>> tuple(model(lucid.zeros(1, 3, 64, 64)).last_hidden_state.shape)
    (1, 5, 512)
    """

    config_class = PVTV1Config
    stem_keys = ("patch_embed1.proj.weight",)

    def __init__(self, config):
        ImageModel.__init__(self, config)
        dims, before, side = config.dims, config.in_channels, config.image_size // 2
        for i, blocks in enumerate(_blocks(_PlainBlock, config), 1):
            side //= 2
            patch, last = 4 if i == 1 else 2, i == len(dims)
            setattr(self, f"patch_embed{i}", _Patches(before, dims[i - 1], patch, patch, 0, 1e-5))
            setattr(self, f"pos_embed{i}", nn.Parameter(_C.zeros(1, side * side + last, dims[i - 1])))
            setattr(self, f"block{i}", blocks)
            before = dims[i - 1]
        self.pos_drop, self.norm = nn.Dropout(config.dropout), nn.LayerNorm(before, eps=1e-6)
        self.cls_token = nn.Parameter(_C.zeros(1, 1, before))
        if self.classifies:
            self.head = nn.Linear(before, config.num_classes)
        start_narrow(self)
        for name, value in self.named_parameters():
            if name.startswith(("pos_embed", "cls_token")):
                nn.init.trunc_normal_(value, std=0.02)

    def positions(self, i, size):
        """What is added to the tokens of stage i, for a map of this size."""
        own, side = getattr(self, f"pos_embed{i}"), self.config.image_size >> (i + 1)
        if size == (side, side):
            return own
        first = own.shape[1] - side * side  # the token of the whole image has no place
        grid = own[:, first:].transpose(1, 2).unflatten(2, (side, side))
        grid = F.interpolate(grid, size, mode="bilinear", align_corners=False).flatten(2).transpose(1, 2)
        return _C.cat([own[:, :first], grid], 1) if first else grid

    def trunk(self, x):
        count = len(self.config.dims)
        for i in range(1, count + 1):
            x, size = getattr(self, f"patch_embed{i}")(x)
            if i == count:
                x = _C.cat([self.cls_token.expand(len(x), -1, -1), x], 1)
            x = self.pos_drop(x + self.positions(i, tuple(size)))
            for block in getattr(self, f"block{i}"):
                x = block(x, size)
            if i < count:
                x = x.transpose(1, 2).unflatten(2, size)
        return self.norm(x)

    def pooled(self, x):
        return x[:, 0]


_WIDE = (64, 128, 320, 512)
_DEPTHS = ((2, 2, 2, 2), (3, 4, 6, 3), (3, 4, 18, 3), (3, 8, 27, 3))
_SIZES = {"pvt_v2_b0": {}} | {f"pvt_v2_b{i}": dict(depths=d, dims=_WIDE) for i, d in enumerate(_DEPTHS, 1)}
_SIZES["pvt_v2_b5"] = dict(depths=(3, 6, 40, 3), dims=_WIDE, mlp_ratios=(4, 4, 4, 4))
globals().update(image_family(PVT, _SIZES))
globals().update(image_family(PVTV1, {"pvt_tiny": {}}))
