"""Vision transformers in two spellings: ViT (Dosovitskiy et al., 2020) with torchvision's keys, DeiT (Touvron et al., 2020)
with timm's. Both cut an image into patches, put a token for the class in front and add learned positions.
"""

import dataclasses

from .... import _C, nn
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import MLP, Attention, DropPath, drop_rates, start_narrow


@dataclasses.dataclass(frozen=True)
class ViTConfig(ImageConfig):
    """The settings of a vision transformer; the defaults are ViT-B/16.

    >>> lucid.models.ViTConfig(image_size=384).patches
    576
    """

    image_size: int = 224
    patch_size: int = 16
    dim: int = 768
    depth: int = 12
    num_heads: int = 12
    mlp_ratio: float = 4.0
    dropout: float = 0.0
    attention_dropout: float = 0.0
    model_type = "vit-torchvision"

    def __post_init__(self):
        if self.image_size % self.patch_size:
            raise ValueError(f"image_size {self.image_size} is not a multiple of patch_size {self.patch_size}")
        if self.dim % self.num_heads:
            raise ValueError(f"dim {self.dim} is not a multiple of num_heads {self.num_heads}")

    @property
    def patches(self):
        return (self.image_size // self.patch_size) ** 2


@dataclasses.dataclass(frozen=True)
class DeiTConfig(ViTConfig):
    """The settings of DeiT; the defaults are the tiny one. distilled: a second token, and the mean of two heads.

    >>> lucid.models.DeiTConfig().dim
    192
    """

    dim: int = 192
    num_heads: int = 3
    drop_path: float = 0.0
    distilled: bool = False
    model_type = "deit-timm"


def checked(x, config):
    """The images, if they have the size the positions are for.

    >>> from lucid.models.vision.classification.vit import checked
    >>> checked(lucid.zeros(1, 3, 8, 8), lucid.models.ViTConfig())
    Traceback (most recent call last):
    ValueError: images of 8x8 pixels; the model is for 224x224
    """
    side = config.image_size
    if x.shape[-2:] != (side, side):
        raise ValueError(f"images of {x.shape[-2]}x{x.shape[-1]} pixels; the model is for {side}x{side}")
    return x


class _Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config.dim, int(config.dim * config.mlp_ratio)
        self.ln_1 = nn.LayerNorm(width, eps=1e-6)
        self.self_attention = nn.MultiheadAttention(width, config.num_heads, config.attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)
        self.ln_2 = nn.LayerNorm(width, eps=1e-6)
        drop = config.dropout
        self.mlp = nn.Sequential(
            nn.Linear(width, inner), nn.GELU(), nn.Dropout(drop), nn.Linear(inner, width), nn.Dropout(drop)
        )
        for layer in (self.mlp[0], self.mlp[3]):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.normal_(layer.bias, std=1e-6)

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.dropout(self.self_attention(y, y, y, need_weights=False)[0])
        return x + self.mlp(self.ln_2(x))


class _Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.pos_embedding = nn.Parameter(_C.empty(1, config.patches + 1, config.dim).normal_(0.0, 0.02))
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.Sequential()
        for i in range(config.depth):
            self.layers.add_module(f"encoder_layer_{i}", _Block(config))
        self.ln = nn.LayerNorm(config.dim, eps=1e-6)

    def forward(self, x):
        return self.ln(self.layers(self.dropout(x + self.pos_embedding)))


class ViT(ImageModel):
    """A vision transformer without its head: a vector per patch after that of the class.

    >>> config = lucid.models.ViTConfig(image_size=16, patch_size=8, dim=8, depth=1, num_heads=2)
    >>> tuple(lucid.models.ViT(config)(lucid.zeros(1, 3, 16, 16)).last_hidden_state.shape)
    (1, 5, 8)
    """

    config_class = ViTConfig
    head_keys = ("heads.",)
    stem_keys = ("conv_proj.weight",)

    def __init__(self, config):
        super().__init__(config)
        self.class_token = nn.Parameter(_C.zeros(1, 1, config.dim))
        self.conv_proj = nn.Conv2d(config.in_channels, config.dim, config.patch_size, config.patch_size)
        nn.init.trunc_normal_(self.conv_proj.weight, std=(1 / (config.in_channels * config.patch_size**2)) ** 0.5)
        nn.init.zeros_(self.conv_proj.bias)
        self.encoder = _Encoder(config)
        if self.classifies:
            self.heads = nn.Sequential()
            self.heads.add_module("head", nn.Linear(config.dim, config.num_classes))
            nn.init.zeros_(self.heads.head.weight)
            nn.init.zeros_(self.heads.head.bias)

    def trunk(self, x):
        x = self.conv_proj(checked(x, self.config)).flatten(2).transpose(1, 2)
        return self.encoder(_C.cat([self.class_token.expand(x.shape[0], -1, -1), x], 1))

    def pooled(self, x):
        return x[:, 0]

    def scores(self, x):
        return self.heads(x)


class TokenBlock(nn.Module):
    """A layer of a transformer as timm spells it: norm1, attn, norm2, mlp.

    >>> from lucid.models.vision.classification.vit import TokenBlock
    >>> tuple(TokenBlock(8, 2, 4.0)(lucid.zeros(1, 3, 8)).shape)
    (1, 3, 8)
    """

    def __init__(self, width, heads, ratio, dropout=0.0, attention_dropout=0.0, drop_path=0.0, eps=1e-6):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=eps)
        self.attn = Attention(width, heads, dropout=attention_dropout, projection_dropout=dropout)
        self.norm2 = nn.LayerNorm(width, eps=eps)
        self.mlp = MLP(width, int(width * ratio), dropout=dropout)
        self.drop_path = DropPath(drop_path)

    def forward(self, x):
        x = x + self.drop_path(self.attn(self.norm1(x)))
        return x + self.drop_path(self.mlp(self.norm2(x)))


class PatchEmbed(nn.Module):
    """Patches of an image as tokens, under the key proj.

    >>> from lucid.models.vision.classification.vit import PatchEmbed
    >>> tuple(PatchEmbed(3, 8, 4)(lucid.zeros(1, 3, 8, 8)).shape)
    (1, 4, 8)
    """

    def __init__(self, inputs, width, patch):
        super().__init__()
        self.proj = nn.Conv2d(inputs, width, patch, patch)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class DeiT(ImageModel):
    """DeiT without its head.

    >>> config = lucid.models.DeiTConfig(image_size=16, patch_size=8, dim=8, depth=1, num_heads=2)
    >>> tuple(lucid.models.DeiT(config)(lucid.zeros(1, 3, 16, 16)).pooler_output.shape)
    (1, 8)
    """

    config_class = DeiTConfig
    head_keys = ("head.", "head_dist.")
    stem_keys = ("patch_embed.proj.weight",)

    def __init__(self, config):
        super().__init__(config)
        extra = 2 if config.distilled else 1
        self.cls_token = nn.Parameter(_C.empty(1, 1, config.dim).normal_(0.0, 1e-6))
        if config.distilled:
            self.dist_token = nn.Parameter(_C.zeros(1, 1, config.dim))
        self.pos_embed = nn.Parameter(_C.empty(1, config.patches + extra, config.dim).normal_(0.0, 0.02))
        self.patch_embed = PatchEmbed(config.in_channels, config.dim, config.patch_size)
        self.pos_drop = nn.Dropout(config.dropout)
        (rates,) = drop_rates(config.drop_path, (config.depth,))
        shape = config.dim, config.num_heads, config.mlp_ratio, config.dropout, config.attention_dropout
        self.blocks = nn.Sequential(*(TokenBlock(*shape, rate) for rate in rates))
        self.norm = nn.LayerNorm(config.dim, eps=1e-6)
        if self.classifies:
            self.head = nn.Linear(config.dim, config.num_classes)
            if config.distilled:
                self.head_dist = nn.Linear(config.dim, config.num_classes)
        start_narrow(self)

    def trunk(self, x):
        x = self.patch_embed(checked(x, self.config))
        tokens = [self.cls_token, self.dist_token] if self.config.distilled else [self.cls_token]
        x = _C.cat([*(token.expand(x.shape[0], -1, -1) for token in tokens), x], 1)
        return self.norm(self.blocks(self.pos_drop(x + self.pos_embed)))

    def pooled(self, x):
        return x[:, :2] if self.config.distilled else x[:, 0]

    def scores(self, x):
        return (self.head(x[:, 0]) + self.head_dist(x[:, 1])) / 2 if self.config.distilled else self.head(x)


def _size(dim, depth, heads, patch):
    return dict(dim=dim, depth=depth, num_heads=heads, patch_size=patch)


_BASE, _LARGE, _HUGE = (768, 12, 12), (1024, 24, 16), (1280, 32, 16)
globals().update(
    image_family(
        ViT,
        {
            f"vit_{name}_{patch}": _size(*shape, patch)
            for name, shape, patches in (("base", _BASE, (16, 32)), ("large", _LARGE, (16, 32)), ("huge", _HUGE, (14,)))
            for patch in patches
        },
        {
            "vit_b_16": "vit_base_16",
            "vit_b_32": "vit_base_32",
            "vit_l_16": "vit_large_16",
            "vit_l_32": "vit_large_32",
            "vit_h_14": "vit_huge_14",
        },
    )
)
globals().update(
    image_family(
        DeiT,
        {
            f"deit_{name}{'_distilled' if distilled else ''}_16": dict(_size(dim, 12, heads, 16), distilled=distilled)
            for name, dim, heads in (("tiny", 192, 3), ("small", 384, 6), ("base", 768, 12))
            for distilled in (False, True)
        },
    )
)
