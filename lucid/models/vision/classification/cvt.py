"""CvT (Wu et al., 2021): transformers whose queries, keys and values are made by convolutions. transformers' keys."""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...outputs import BaseModelOutputWithPooling
from ..base import ImageConfig, ImageModel, image_family
from ..blocks import DropPath, start_narrow


@dataclasses.dataclass(frozen=True)
class CvTConfig(ImageConfig):
    """The settings of CvT, a number per stage; the defaults are CvT-13. The last stage has a token for the class.

    >>> lucid.models.CvTConfig.from_dict({"embed_dim": [8, 24, 48]}).dims
    (8, 24, 48)
    """

    dims: tuple = (64, 192, 384)
    depths: tuple = (1, 2, 10)
    num_heads: tuple = (1, 3, 6)
    patch_sizes: tuple = (7, 3, 3)
    strides: tuple = (4, 2, 2)
    paddings: tuple = (2, 1, 1)
    mlp_ratio: tuple = (4.0, 4.0, 4.0)
    drop_rate: tuple = (0.0, 0.0, 0.0)
    attention_drop_rate: tuple = (0.0, 0.0, 0.0)
    drop_path_rate: tuple = (0.0, 0.0, 0.1)
    qkv_bias: tuple = (True, True, True)

    model_type = "cvt"
    names_labels = True
    aliases = {
        **ImageConfig.aliases,
        **dict(embed_dim="dims", depth="depths", patch_stride="strides", patch_padding="paddings"),
    }
    only = dict(
        **dict(cls_token=[False, False, True], qkv_projection_method=["dw_bn"] * 3, kernel_qkv=[3] * 3),
        **dict(padding_kv=[1] * 3, padding_q=[1] * 3, stride_kv=[2] * 3, stride_q=[1] * 3),
    )

    def __post_init__(self):
        if any(len(getattr(self, f.name)) != 3 for f in dataclasses.fields(self) if isinstance(f.default, tuple)):
            raise ValueError("CvT has three stages: dims, depths, num_heads and the like have three numbers")
        if any(width % heads for width, heads in zip(self.dims, self.num_heads)):
            raise ValueError("each of dims is a multiple of its num_heads")


class _Embedding(nn.Module):
    def __init__(self, inputs, width, patch, stride, padding):
        super().__init__()
        self.projection, self.normalization = nn.Conv2d(inputs, width, patch, stride, padding), nn.LayerNorm(width)

    def forward(self, x):
        x = self.projection(x)
        return self.normalization(x.flatten(2).transpose(1, 2)), x.shape[2:]


class _Projection(nn.Module):
    def __init__(self, width, stride):
        super().__init__()
        self.convolution_projection = nn.Module()
        self.convolution_projection.convolution = nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False)
        self.convolution_projection.normalization = nn.BatchNorm2d(width)

    def forward(self, x):
        own = self.convolution_projection
        return own.normalization(own.convolution(x)).flatten(2).transpose(1, 2)


class _Attention(nn.Module):
    def __init__(self, width, heads, bias, dropout):
        super().__init__()
        self.heads, self.dropout, self.scale = heads, dropout, width**-0.5  # of the whole width, as published
        for name, stride in (("query", 1), ("key", 2), ("value", 2)):
            setattr(self, f"convolution_projection_{name}", _Projection(width, stride))
            setattr(self, f"projection_{name}", nn.Linear(width, width, bias=bias))

    def forward(self, x, size, first):
        rest = x[:, first:].transpose(1, 2).unflatten(2, size)
        made = []
        for name in ("query", "key", "value"):
            y = getattr(self, f"convolution_projection_{name}")(rest)
            y = _C.cat([x[:, :first], y], 1) if first else y
            made.append(getattr(self, f"projection_{name}")(y).unflatten(2, (self.heads, -1)).transpose(1, 2))
        y = F.scaled_dot_product_attention(*made, None, self.dropout if self.training else 0.0, scale=self.scale)
        return y.transpose(1, 2).flatten(2)


class _Layer(nn.Module):
    def __init__(self, config, stage, rate):
        super().__init__()
        width, drop = config.dims[stage], config.drop_rate[stage]
        inner, dense = int(width * config.mlp_ratio[stage]), nn.Linear
        self.attention, self.intermediate, self.output = nn.Module(), nn.Module(), nn.Module()
        self.attention.attention = _Attention(
            width, config.num_heads[stage], config.qkv_bias[stage], config.attention_drop_rate[stage]
        )
        self.attention.output = nn.Module()
        self.attention.output.dense = dense(width, width)
        self.intermediate.dense, self.output.dense = dense(width, inner), dense(inner, width)
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.dropout, self.drop_path = nn.Dropout(drop), DropPath(rate)

    def forward(self, x, size, first):
        y = self.attention.attention(self.layernorm_before(x), size, first)
        x = x + self.drop_path(self.dropout(self.attention.output.dense(y)))
        y = self.output.dense(F.gelu(self.intermediate.dense(self.layernorm_after(x))))
        return x + self.drop_path(self.dropout(y))


class CvT(ImageModel):
    """CvT without its head: the last map, and the token of the class.

    >>> config = lucid.models.CvTConfig(dims=(4, 8, 8), depths=(1, 1, 1), num_heads=(1, 2, 2))
    >>> tuple(lucid.models.CvT(config)(lucid.zeros(2, 3, 32, 32)).last_hidden_state.shape)
    (2, 8, 2, 2)
    """

    config_class = CvTConfig
    head_keys = ("classifier.",)
    stem_keys = ("cvt.encoder.stages.0.embedding.convolution_embeddings.projection.weight",)
    renamed_keys = ((r"^encoder\.", "cvt.encoder."),)  # of files without a head

    def __init__(self, config):
        super().__init__(config)
        self.cvt, stages, inputs = nn.Module(), [], config.in_channels
        self.cvt.encoder = nn.Module()
        for i, (width, depth) in enumerate(zip(config.dims, config.depths)):
            stage = nn.Module()
            if i == len(config.dims) - 1:
                stage.cls_token = nn.Parameter(_C.empty(1, 1, width))
                nn.init.trunc_normal_(stage.cls_token, std=0.02)
            stage.embedding = nn.Module()
            stage.embedding.convolution_embeddings = _Embedding(
                inputs, width, config.patch_sizes[i], config.strides[i], config.paddings[i]
            )
            rates = [config.drop_path_rate[i] * n / max(depth - 1, 1) for n in range(depth)]
            stage.layers = nn.ModuleList(_Layer(config, i, rate) for rate in rates)
            stage.dropout = nn.Dropout(config.drop_rate[i])
            stages.append(stage)
            inputs = width
        self.cvt.encoder.stages = nn.ModuleList(stages)
        if self.classifies:
            self.layernorm, self.classifier = nn.LayerNorm(inputs), nn.Linear(inputs, config.num_classes)
        start_narrow(self)

    def head_prefixes(self):
        return {"layernorm.", "classifier."}

    def trunk(self, x):
        """The map and the token of the class."""
        for stage in self.cvt.encoder.stages:
            x, size = stage.embedding.convolution_embeddings(x)
            x, first = stage.dropout(x), 0
            if hasattr(stage, "cls_token"):
                x, first = _C.cat([stage.cls_token.expand(len(x), -1, -1), x], 1), 1
            for layer in stage.layers:
                x = layer(x, size, first)
            token, x = x[:, :first], x[:, first:].transpose(1, 2).unflatten(2, size)
        return x, token

    def pooled(self, x):
        return x[1][:, 0]

    def forward(self, pixel_values):
        x = self.trunk(pixel_values)
        return BaseModelOutputWithPooling(last_hidden_state=x[0], pooler_output=self.pooled(x))

    def scores(self, x):
        return self.classifier(self.layernorm(x))


globals().update(
    image_family(
        CvT,
        {
            "cvt_13": {},
            "cvt_21": dict(depths=(1, 4, 16)),
            "cvt_w24": dict(dims=(192, 768, 1024), depths=(2, 2, 20), num_heads=(3, 12, 16), drop_path_rate=(0.0, 0.0, 0.3)),
        },
    )
)
