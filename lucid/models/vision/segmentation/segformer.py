"""SegFormer (Xie et al., 2021): a hierarchical transformer without positions, and a head of fully connected layers. The
keys are transformers 5's; files with the earlier names, as published, are understood.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...base import ModelConfig, PretrainedModel
from ...registry import family
from ...text.projected import ProjectedAttention
from ..blocks import DropPath, drop_rates, start_narrow
from .base import SemanticSegmentationOutput, pixel_loss


@dataclasses.dataclass(frozen=True)
class SegformerConfig(ModelConfig):
    """The settings of SegFormer; defaults are those of mit-b0.

    >>> lucid.models.SegformerConfig(decoder_hidden_size=768).sr_ratios
    (8, 4, 2, 1)
    """

    num_channels: int = 3
    hidden_sizes: tuple = (32, 64, 160, 256)
    depths: tuple = (2, 2, 2, 2)
    num_attention_heads: tuple = (1, 2, 5, 8)
    sr_ratios: tuple = (8, 4, 2, 1)
    patch_sizes: tuple = (7, 3, 3, 3)
    strides: tuple = (4, 2, 2, 2)
    mlp_ratios: tuple = (4, 4, 4, 4)
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    classifier_dropout_prob: float = 0.1
    drop_path_rate: float = 0.1
    decoder_hidden_size: int = 256
    semantic_loss_ignore_index: int = 255
    num_labels: int = 150

    model_type = "segformer"
    also = {"num_classes": "num_labels", "in_channels": "num_channels"}
    only = {"hidden_act": "gelu", "reshape_last_stage": True}

    def __post_init__(self):
        names = ("hidden_sizes", "depths", "num_attention_heads", "sr_ratios", "patch_sizes", "strides", "mlp_ratios")
        if len({len(getattr(self, name)) for name in names}) != 1:
            raise ValueError(f"{', '.join(names)} have one number per stage")

    def to_hub(self):
        return {**super().to_hub(), "num_encoder_blocks": len(self.depths)}

    @classmethod
    def understood(cls, values):
        values = super().understood(values)
        values.pop("num_encoder_blocks", None)
        return values


class _Patches(nn.Module):
    def __init__(self, inputs, width, patch, stride):
        super().__init__()
        self.proj, self.layer_norm = nn.Conv2d(inputs, width, patch, stride, patch // 2), nn.LayerNorm(width)

    def forward(self, x):
        x = self.proj(x)
        return self.layer_norm(x.flatten(2).transpose(1, 2)), x.shape[2:]


class _Reduction(nn.Module):
    def __init__(self, width, ratio):
        super().__init__()
        self.sequence_reduction, self.layer_norm = nn.Conv2d(width, width, ratio, ratio), nn.LayerNorm(width)

    def forward(self, x, size):
        x = self.sequence_reduction(x.transpose(1, 2).unflatten(2, size))
        return self.layer_norm(x.flatten(2).transpose(1, 2))


class _Attention(ProjectedAttention):
    def __init__(self, width, heads, ratio, dropout):
        super().__init__(width, heads, ("q_proj", "k_proj", "v_proj", "o_proj"), dropout=dropout)
        if ratio > 1:
            self.sequence_reduction = _Reduction(width, ratio)
        self.reduces = ratio > 1

    def forward(self, x, size):
        return super().forward(x, self.sequence_reduction(x, size) if self.reduces else None)


class _Mix(nn.Module):  # a fully connected layer, a depthwise convolution, a fully connected layer
    def __init__(self, width, inner, dropout):
        super().__init__()
        self.fc1, self.dwconv, self.fc2 = nn.Linear(width, inner), nn.Module(), nn.Linear(inner, width)
        self.dwconv.dwconv = nn.Conv2d(inner, inner, 3, padding=1, groups=inner)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, size):
        x = self.dwconv.dwconv(self.fc1(x).transpose(1, 2).unflatten(2, size)).flatten(2).transpose(1, 2)
        return self.dropout(self.fc2(self.dropout(F.gelu(x))))


class _Layer(nn.Module):
    def __init__(self, config, stage, rate):
        super().__init__()
        width, drop = config.hidden_sizes[stage], config.hidden_dropout_prob
        heads, ratio = config.num_attention_heads[stage], config.sr_ratios[stage]
        self.layernorm_before = nn.LayerNorm(width)
        self.attention = _Attention(width, heads, ratio, config.attention_probs_dropout_prob)
        self.drop_path, self.layernorm_after = DropPath(rate), nn.LayerNorm(width)
        self.mlp, self.hidden_dropout = _Mix(width, int(width * config.mlp_ratios[stage]), drop), nn.Dropout(drop)

    def forward(self, x, size):
        x = x + self.drop_path(self.hidden_dropout(self.attention(self.layernorm_before(x), size)))
        return x + self.drop_path(self.mlp(self.layernorm_after(x), size))


class _Stage(nn.Module):
    def __init__(self, config, stage, rates):
        super().__init__()
        sizes = (config.num_channels, *config.hidden_sizes)
        shape = sizes[stage], sizes[stage + 1], config.patch_sizes[stage], config.strides[stage]
        self.patch_embeddings = _Patches(*shape)
        self.blocks = nn.ModuleList([_Layer(config, stage, rate) for rate in rates])
        self.layer_norm = nn.LayerNorm(sizes[stage + 1])

    def forward(self, x):
        x, size = self.patch_embeddings(x)
        for block in self.blocks:
            x = block(x, size)
        return self.layer_norm(x).transpose(1, 2).unflatten(2, size)


class _Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        rates = drop_rates(config.drop_path_rate, config.depths)
        self.stages = nn.ModuleList([_Stage(config, i, rates[i]) for i in range(len(rates))])


class _Projection(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.proj = nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.proj(x.flatten(2).transpose(1, 2)).transpose(1, 2).unflatten(2, x.shape[2:])


class _Head(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, sizes = config.decoder_hidden_size, config.hidden_sizes
        self.linear_projections = nn.ModuleList([_Projection(size, width) for size in sizes])
        self.linear_fuse = nn.Conv2d(width * len(sizes), width, 1, bias=False)
        self.batch_norm, self.dropout = nn.BatchNorm2d(width), nn.Dropout(config.classifier_dropout_prob)
        self.classifier = nn.Conv2d(width, config.num_labels, 1)

    def forward(self, maps):
        size = maps[0].shape[2:]
        found = [layer(x) for layer, x in zip(self.linear_projections, maps)]
        found = [F.interpolate(x, size, mode="bilinear", align_corners=False) for x in found]
        x = F.relu(self.batch_norm(self.linear_fuse(_C.cat(found[::-1], 1))))
        return self.classifier(self.dropout(x))


class SegformerForSemanticSegmentation(PretrainedModel):
    """SegFormer: `.logits` of a quarter of the images' size.

    >>> config = lucid.models.SegformerConfig(hidden_sizes=(8, 8, 8, 8), num_attention_heads=(1, 1, 1, 1), num_labels=3)
    >>> tuple(lucid.models.SegformerForSemanticSegmentation(config).eval()(lucid.zeros(1, 3, 32, 32)).logits.shape)
    (1, 3, 8, 8)
    """

    config_class = SegformerConfig
    head_keys = ("decode_head.classifier.",)
    stem_keys = ("segformer.stages.0.patch_embeddings.proj.weight",)
    ignored_keys = (r"^classifier\.",)
    renamed_keys = (  # from the names in published files
        (r"^segformer\.encoder\.patch_embeddings\.(\d+)\.", r"segformer.stages.\1.patch_embeddings."),
        (r"^segformer\.encoder\.block\.(\d+)\.(\d+)\.", r"segformer.stages.\1.blocks.\2."),
        (r"^segformer\.encoder\.layer_norm\.(\d+)\.", r"segformer.stages.\1.layer_norm."),
        (r"\.layer_norm_1\.", ".layernorm_before."),
        (r"\.layer_norm_2\.", ".layernorm_after."),
        (r"\.attention\.self\.(q|k|v)(uery|ey|alue)\.", r".attention.\1_proj."),
        (r"\.attention\.self\.sr\.", ".attention.sequence_reduction.sequence_reduction."),
        (r"\.attention\.self\.layer_norm\.", ".attention.sequence_reduction.layer_norm."),
        (r"\.attention\.output\.dense\.", ".attention.o_proj."),
        (r"\.mlp\.dense([12])\.", r".mlp.fc\1."),
        (r"^decode_head\.linear_c\.", "decode_head.linear_projections."),
    )

    def __init__(self, config):
        super().__init__(config)
        self.segformer, self.decode_head = _Encoder(config), _Head(config)
        start_narrow(self)

    def forward(self, pixel_values, labels=None):
        maps, x = [], pixel_values
        for stage in self.segformer.stages:
            x = stage(x)
            maps.append(x)
        logits = self.decode_head(maps)
        loss = None if labels is None else pixel_loss(logits, labels, self.config.semantic_loss_ignore_index)
        return SemanticSegmentationOutput(loss=loss, logits=logits)


def _size(depths, wide=True):
    return dict(hidden_sizes=(64, 128, 320, 512) if wide else (32, 64, 160, 256), depths=depths)


_DEPTHS = ((2, 2, 2, 2), (2, 2, 2, 2), (3, 4, 6, 3), (3, 4, 18, 3), (3, 8, 27, 3), (3, 6, 40, 3))
globals().update(
    family(
        SegformerConfig,
        {"": (SegformerForSemanticSegmentation, "semantic-segmentation")},
        {
            f"segformer_b{i}": dict(_size(depths, i > 0), decoder_hidden_size=256 if i < 2 else 768)
            for i, depths in enumerate(_DEPTHS)
        },
    )
)
