"""EfficientFormer (Li et al., 2022): blocks that mix places by means, and a few of attention at the end. timm's keys."""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import MLP, DropPath, drop_rates, start_narrow
from .vit import checked


@dataclasses.dataclass(frozen=True)
class EfficientFormerConfig(ImageConfig):
    """The settings of EfficientFormer; the defaults are l1. num_attention: how many of the last blocks attend.

    >>> lucid.models.EfficientFormerConfig().dims
    (48, 96, 224, 448)
    """

    image_size: int = 224
    depths: tuple = (3, 2, 6, 4)
    dims: tuple = (48, 96, 224, 448)
    num_attention: int = 1
    num_heads: int = 8
    key_dim: int = 32
    mlp_ratio: float = 4.0
    layer_scale: float = 1e-5
    dropout: float = 0.0
    drop_path_rate: float = 0.0
    model_type = "efficientformer"

    def __post_init__(self):
        if len(self.depths) != len(self.dims) or not 0 < self.num_attention <= self.depths[-1]:
            raise ValueError(
                "depths and dims have one number per stage; num_attention is at least 1 and at most the last depth"
            )


class _Scale(nn.Module):
    def __init__(self, width, start, maps):
        super().__init__()
        self.gamma, self.shape = nn.Parameter(_C.full((width,), start)), (1, -1, 1, 1) if maps else (-1,)

    def forward(self, x):
        return x * self.gamma.view(self.shape)


class _Attention(nn.Module):
    def __init__(self, config, width, side):
        super().__init__()
        self.heads, self.parts = config.num_heads, (config.key_dim, config.key_dim, 4 * config.key_dim)
        inner = config.num_heads * 4 * config.key_dim
        self.qkv, self.proj = nn.Linear(width, config.num_heads * sum(self.parts)), nn.Linear(inner, width)
        self.attention_biases = nn.Parameter(_C.zeros(config.num_heads, side * side))
        places = _C.arange(side, device="cpu")
        y, x = places.repeat_interleave(side), places.repeat(side)
        apart = (y[:, None] - y[None, :]).abs() * side + (x[:, None] - x[None, :]).abs()
        self.register_buffer("attention_bias_idxs", apart)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(2, (self.heads, -1)).transpose(1, 2).split(self.parts, 3)
        y = F.scaled_dot_product_attention(q, k, v, self.attention_biases[:, self.attention_bias_idxs])
        return self.proj(y.transpose(1, 2).flatten(2))


class _Attending(nn.Module):
    def __init__(self, config, width, rate, side):
        super().__init__()
        self.norm1, self.token_mixer = nn.LayerNorm(width), _Attention(config, width, side)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = MLP(width, int(width * config.mlp_ratio), dropout=config.dropout)
        self.ls1, self.ls2 = (_Scale(width, config.layer_scale, False) for _ in range(2))
        self.drop_path = DropPath(rate)

    def forward(self, x):
        x = x + self.drop_path(self.ls1(self.token_mixer(self.norm1(x))))
        return x + self.drop_path(self.ls2(self.mlp(self.norm2(x))))


class _Layers(nn.Module):
    def __init__(self, width, inner, dropout):
        super().__init__()
        self.fc1, self.norm1 = nn.Conv2d(width, inner, 1), nn.BatchNorm2d(inner)
        self.fc2, self.norm2 = nn.Conv2d(inner, width, 1), nn.BatchNorm2d(width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = self.drop(F.gelu(self.norm1(self.fc1(x))))
        return self.drop(self.norm2(self.fc2(x)))


class _Pooling(nn.Module):
    def __init__(self, config, width, rate):
        super().__init__()
        self.mlp = _Layers(width, int(width * config.mlp_ratio), config.dropout)
        self.ls1, self.ls2 = (_Scale(width, config.layer_scale, True) for _ in range(2))
        self.drop_path = DropPath(rate)

    def forward(self, x):
        near = F.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        x = x + self.drop_path(self.ls1(near - x))
        return x + self.drop_path(self.ls2(self.mlp(x)))


class _Tokens(nn.Module):
    def forward(self, x):
        return x.flatten(2).transpose(1, 2)


class EfficientFormer(ImageModel):
    """EfficientFormer without its heads: a vector per place of the last map.

    >>> config = lucid.models.EfficientFormerConfig(image_size=64, depths=(1, 1), dims=(8, 8), num_heads=1, key_dim=4)
    >>> tuple(lucid.models.EfficientFormer(config)(lucid.zeros(1, 3, 64, 64)).last_hidden_state.shape)
    (1, 64, 8)
    """

    config_class = EfficientFormerConfig
    head_keys = ("head.", "head_dist.")
    stem_keys = ("stem.conv1.weight",)

    def __init__(self, config):
        super().__init__(config)
        width, side, stages = config.dims[0], -(-config.image_size // 4), []
        self.stem = nn.Sequential()
        for i, (a, b) in enumerate(((config.in_channels, width // 2), (width // 2, width)), 1):
            self.stem.add_module(f"conv{i}", nn.Conv2d(a, b, 3, 2, 1))
            self.stem.add_module(f"norm{i}", nn.BatchNorm2d(b))
            self.stem.add_module(f"act{i}", nn.ReLU())
        last = len(config.dims) - 1
        for number, (outputs, rates) in enumerate(zip(config.dims, drop_rates(config.drop_path_rate, config.depths))):
            stage, blocks = nn.Module(), []
            stage.downsample = nn.Sequential()
            if number:
                stage.downsample.add_module("conv", nn.Conv2d(width, outputs, 3, 2, 1))
                stage.downsample.add_module("norm", nn.BatchNorm2d(outputs))
                width, side = outputs, -(-side // 2)
            count = config.num_attention if number == last else 0
            for i, rate in enumerate(rates):
                left = len(rates) - i
                if left == count:
                    blocks.append(_Tokens())
                blocks.append(_Attending(config, width, rate, side) if left <= count else _Pooling(config, width, rate))
            stage.blocks = nn.Sequential(*blocks)
            stages.append(stage)
        self.stages, self.norm, self.drop = nn.ModuleList(stages), nn.LayerNorm(width), nn.Dropout(config.dropout)
        if self.classifies:
            self.head, self.head_dist = (nn.Linear(width, config.num_classes) for _ in range(2))
        start_narrow(self)

    def trunk(self, x):
        x = self.stem(checked(x, self.config))
        for stage in self.stages:
            x = stage.blocks(stage.downsample(x))
        return self.norm(x)

    def pooled(self, x):
        return x.mean(1)

    def scores(self, x):
        x = self.drop(x)
        return (self.head(x) + self.head_dist(x)) / 2


globals().update(
    image_family(
        EfficientFormer,
        {
            "efficientformer_l1": {},
            "efficientformer_l3": dict(depths=(4, 4, 12, 6), dims=(64, 128, 320, 512), num_attention=4),
            "efficientformer_l7": dict(depths=(6, 6, 18, 8), dims=(96, 192, 384, 768), num_attention=8),
        },
    )
)
