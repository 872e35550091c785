"""Mask2Former (Cheng et al., 2022): queries that look only where their own mask is, level by level, at maps that deformable
attention has mixed; on a Swin or a ResNet. transformers' keys.

Deformable attention reads, for every place and head, a few points of every map; where they lie follows from the place. The
loss compares masks and things at points drawn at random, most of them where a mask is undecided.
"""

import dataclasses
import math

from .... import _C, nn
from ....autograd import no_grad
from ....nn import functional as F
from ...registry import family
from ...text.projected import ProjectedAttention
from ..base import ImageConfig
from ..detection.detr import sine_positions
from .backbones import ResNetBackbone, SwinBackbone
from .maskformer import normed
from .queries import QuerySegmentation, entropy_pairs, mask_layers, masks_of


@dataclasses.dataclass(frozen=True)
class Mask2FormerConfig(ImageConfig):
    """The settings of Mask2Former; the defaults are those of mask2former_swin_tiny. backbone: "swin" or "resnet".

    num_decoder_layers counts the predictions: one before the layers and one after each.

    >>> lucid.models.Mask2FormerConfig(num_queries=10).d_model
    256
    """

    num_classes: int = 150
    backbone: str = "swin"
    backbone_layers: tuple = (3, 4, 6, 3)
    swin_embed_dim: int = 96
    swin_depths: tuple = (2, 2, 6, 2)
    swin_num_heads: tuple = (3, 6, 12, 24)
    swin_window_size: int = 7
    swin_mlp_ratio: float = 4.0
    swin_drop_path_rate: float = 0.3
    d_model: int = 256
    mask_feature_size: int = 256
    n_head: int = 8
    num_encoder_layers: int = 6
    encoder_feedforward_dim: int = 1024
    num_decoder_layers: int = 10
    dim_feedforward: int = 2048
    dropout: float = 0.0
    num_queries: int = 100
    no_object_weight: float = 0.1
    class_weight: float = 2.0
    mask_weight: float = 5.0
    dice_weight: float = 5.0
    train_num_points: int = 12544
    oversample_ratio: float = 3.0
    importance_sample_ratio: float = 0.75
    deep_supervision: bool = True

    model_type = "mask2former"
    names_labels = True
    aliases = {
        **ImageConfig.aliases,
        **dict(hidden_dim="d_model", num_attention_heads="n_head", encoder_layers="num_encoder_layers"),
        **dict(decoder_layers="num_decoder_layers", use_auxiliary_loss="deep_supervision"),
    }
    only = dict(pre_norm=False, common_stride=4, feature_strides=[4, 8, 16, 32], activation_function="relu")

    def __post_init__(self):
        self.check(backbone={"swin", "resnet"})
        if self.d_model % 32 or self.d_model % self.n_head:
            raise ValueError(f"d_model {self.d_model} is a multiple of 32 and of n_head {self.n_head}")

    @classmethod
    def understood(cls, values):
        values = super().understood(values)
        if "feature_size" in values and values.pop("feature_size") != values.get("hidden_dim", 256):
            raise ValueError(f"{cls.__name__}: a feature_size that is not hidden_dim is not implemented")
        backbone = values.pop("backbone_config", None)
        if backbone is not None:
            kind = backbone.get("model_type")
            values["backbone"] = kind
            if kind == "resnet":
                values["backbone_layers"] = tuple(backbone.get("depths", (3, 4, 6, 3)))
            for name in ("embed_dim", "depths", "num_heads", "window_size", "mlp_ratio", "drop_path_rate"):
                if kind == "swin" and name in backbone:
                    values[f"swin_{name}"] = backbone[name]
        return values

    def to_hub(self):
        values = super().to_hub()
        swin = {name[5:]: values.pop(name) for name in list(values) if name.startswith("swin_")}
        layers, kind = list(values.pop("backbone_layers")), values.pop("backbone")
        values["backbone_config"] = {"model_type": kind, "out_features": [f"stage{i}" for i in (1, 2, 3, 4)]}
        values["backbone_config"].update(swin if kind == "swin" else {"depths": layers})
        return {**values, "feature_size": self.d_model}


class DeformableAttention(nn.Module):
    """Every place (batch, places, width) reads `points` points of every map per head, near to where it lies.

    >>> from lucid.models.vision.segmentation.mask2former import DeformableAttention
    >>> layer = DeformableAttention(8, 2, levels=1)
    >>> tuple(layer(lucid.zeros(1, 4, 8), lucid.zeros(1, 4, 8), lucid.full((4, 2), 0.5), [(2, 2)]).shape)
    (1, 4, 8)
    """

    def __init__(self, width, heads, levels=3, points=4):
        super().__init__()
        self.heads, self.levels, self.points = heads, levels, points
        self.sampling_offsets = nn.Linear(width, heads * levels * points * 2)
        self.attention_weights = nn.Linear(width, heads * levels * points)
        self.value_proj, self.output_proj = nn.Linear(width, width), nn.Linear(width, width)
        for layer in (self.sampling_offsets, self.attention_weights):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)
        angles = [2 * math.pi * head / heads for head in range(heads)]  # a direction per head, a step per point
        rays = [(math.cos(a), math.sin(a)) for a in angles]
        rays = [[c / max(map(abs, ray)) * (p + 1) for _ in range(levels) for p in range(points) for c in ray] for ray in rays]
        with no_grad():
            self.sampling_offsets.bias.copy_(_C.tensor(rays, device=self.sampling_offsets.bias.device).flatten())

    def forward(self, queries, x, places, sizes):
        """queries: x with its positions added; places: (places, 2), across and down, in parts of a map."""
        batch, count, width = x.shape
        shape = batch, count, self.heads, self.levels, self.points
        values = self.value_proj(x).unflatten(2, (self.heads, -1)).permute(0, 2, 3, 1).flatten(0, 1)
        scale = _C.tensor([[w, h] for h, w in sizes], dtype=x.dtype, device=x.device)
        at = self.sampling_offsets(queries).view(*shape, 2) / scale[:, None] + places.view(1, count, 1, 1, 1, 2)
        at = (2 * at - 1).permute(0, 2, 3, 1, 4, 5).flatten(0, 1)
        weights = self.attention_weights(queries).view(*shape[:3], -1).softmax(-1)
        weights = weights.transpose(1, 2).flatten(0, 1).unflatten(2, (self.levels, self.points)).unsqueeze(1)
        total, first = None, 0
        for level, (height, wide) in enumerate(sizes):
            part = values[:, :, first : first + height * wide].unflatten(2, (height, wide))
            first += height * wide
            part = F.grid_sample(part, at[:, level], mode="bilinear", padding_mode="zeros", align_corners=False)
            part = (part * weights[:, :, :, level]).sum(-1)
            total = part if total is None else total + part
        return self.output_proj(total.view(batch, width, count).transpose(1, 2))


class _EncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config.d_model, config.encoder_feedforward_dim
        self.self_attn, self.self_attn_layer_norm = DeformableAttention(width, config.n_head), nn.LayerNorm(width)
        self.fc1, self.fc2, self.final_layer_norm = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x, positions, places, sizes):
        x = self.self_attn_layer_norm(x + self.dropout(self.self_attn(x + positions, x, places, sizes)))
        return self.final_layer_norm(x + self.dropout(self.fc2(self.dropout(F.relu(self.fc1(x))))))


def _positions(x, width):
    real = _C.ones(1, *x.shape[2:], dtype=x.dtype, device=x.device)
    return sine_positions(real, width).to(x.dtype)


class _PixelDecoder(nn.Module):
    def __init__(self, config, channels):
        super().__init__()
        width = self.width = config.d_model
        self.level_embed = nn.Parameter(_C.empty(3, width).normal_())
        self.input_projections = nn.ModuleList(
            nn.Sequential(nn.Conv2d(inputs, width, 1), nn.GroupNorm(32, width)) for inputs in channels[:0:-1]
        )
        self.encoder = nn.Module()
        self.encoder.layers = nn.ModuleList(_EncoderLayer(config) for _ in range(config.num_encoder_layers))
        self.mask_projection = nn.Conv2d(width, config.mask_feature_size, 1)
        self.adapter_1, self.layer_1 = normed(channels[0], width), normed(width, width, 3, act=True)

    def forward(self, maps):
        """(the map that masks are made of, three maps to look at, the smallest first)"""
        found = [layer(x) for layer, x in zip(self.input_projections, maps[:0:-1])]
        sizes, places, positions = [tuple(x.shape[2:]) for x in found], [], []
        for x, level, (height, wide) in zip(found, self.level_embed, sizes):
            positions.append(_positions(x, self.width) + level)
            y, z = ((_C.arange(n, dtype=x.dtype, device=x.device) + 0.5) / n for n in (height, wide))
            places.append(_C.stack([z.repeat(height), y.repeat_interleave(wide)], 1))
        places, positions = _C.cat(places), _C.cat(positions, 1)
        x = _C.cat([y.flatten(2).transpose(1, 2) for y in found], 1)
        for layer in self.encoder.layers:
            x = layer(x, positions, places, sizes)
        parts = x.split([height * wide for height, wide in sizes], 1)
        found = [part.transpose(1, 2).unflatten(2, size) for part, size in zip(parts, sizes)]
        side = self.adapter_1(maps[0])
        last = side + F.interpolate(found[-1], side.shape[2:], mode="bilinear", align_corners=False)
        return self.mask_projection(self.layer_1(last)), found


class _DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner, drop = config.d_model, config.dim_feedforward, config.dropout
        self.self_attn, self.self_attn_layer_norm = ProjectedAttention(width, config.n_head, dropout=drop), nn.LayerNorm(width)
        self.cross_attn = nn.MultiheadAttention(width, config.n_head, drop, batch_first=True)
        self.cross_attn_layer_norm, self.final_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1, self.fc2, self.dropout = nn.Linear(width, inner), nn.Linear(inner, width), nn.Dropout(drop)

    def forward(self, x, queries, memory, places, unseen):
        y = self.cross_attn(x + queries, memory + places, memory, attn_mask=unseen, need_weights=False)[0]
        x = self.cross_attn_layer_norm(x + self.dropout(y))
        x = self.self_attn_layer_norm(x + self.dropout(self.self_attn(x, places=queries)))
        return self.final_layer_norm(x + self.dropout(self.fc2(self.dropout(F.relu(self.fc1(x))))))


def _read(masks, points):
    """Values of masks (n, height, width) at points (n, count, 2) in parts of them."""
    return F.grid_sample(masks[:, None], (2 * points - 1)[:, :, None], align_corners=False)[:, 0, :, 0]


class Mask2FormerForSemanticSegmentation(QuerySegmentation):
    """Mask2Former: images in, classes and masks of queries out; `loss` with mask_labels and class_labels as MaskFormer's.

    >>> config = lucid.models.Mask2FormerConfig(num_classes=3, swin_embed_dim=8, swin_depths=(1, 1, 1, 1), d_model=32,
    ...     swin_num_heads=(1, 1, 1, 1), n_head=2, num_encoder_layers=1, num_decoder_layers=2, num_queries=5)
    >>> out = lucid.models.Mask2FormerForSemanticSegmentation(config).eval()(lucid.zeros(1, 3, 64, 64))
    >>> tuple(out.class_queries_logits.shape), tuple(out.masks_queries_logits.shape)
    ((1, 5, 4), (1, 5, 16, 16))
    """

    config_class = Mask2FormerConfig
    stem_keys = (
        "model.pixel_level_module.encoder.swin.embeddings.patch_embeddings.projection.weight",
        "model.pixel_level_module.encoder.embedder.embedder.convolution.weight",
    )
    renamed_keys = (  # of published files
        (r"(pixel_level_module\.encoder)\.(embeddings|encoder\.layers|layernorm)\.", r"\1.swin.\2."),
        (r"\.attention\.self\.(q|k|v)(uery|ey|alue)\.", r".attention.\1_proj."),
        (r"\.attention\.self\.(relative_position_bias_table)", r".attention.relative_position_bias.\1"),
        (r"(blocks\.\d+)\.attention\.output\.dense\.", r"\1.attention.o_proj."),
        (r"(blocks\.\d+)\.intermediate\.dense\.", r"\1.mlp.fc1."),
        (r"(blocks\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
    )
    ignored_keys = (r"\.relative_position_index$", r"attention\.self\.relative_position_index")

    def __init__(self, config):
        super().__init__(config)
        self.model, width = nn.Module(), config.d_model
        self.model.pixel_level_module, self.model.transformer_module = nn.Module(), nn.Module()
        pixels, transformer = self.model.pixel_level_module, self.model.transformer_module
        resnet = config.backbone == "resnet"
        pixels.encoder = ResNetBackbone(config.in_channels, config.backbone_layers) if resnet else SwinBackbone(config)
        pixels.decoder = _PixelDecoder(config, list(pixels.encoder.channels))
        transformer.queries_embedder = nn.Embedding(config.num_queries, width)
        transformer.queries_features = nn.Embedding(config.num_queries, width)
        transformer.decoder, transformer.level_embed = nn.Module(), nn.Embedding(3, width)
        transformer.decoder.layers = nn.ModuleList(_DecoderLayer(config) for _ in range(config.num_decoder_layers - 1))
        transformer.decoder.layernorm, transformer.decoder.mask_predictor = nn.LayerNorm(width), nn.Module()
        transformer.decoder.mask_predictor.mask_embedder = mask_layers(width, config.mask_feature_size)
        self.class_predictor = nn.Linear(width, config.num_classes + 1)
        self.add_weights_of_classes(config)

    pair_costs = staticmethod(entropy_pairs)

    def compared_for_matching(self, masks, things):
        points = _C.rand(1, self.config.train_num_points, 2, device=masks.device).to(masks.dtype)
        return tuple(_read(x, points.expand(len(x), -1, -1)) for x in (masks, things))

    def compared(self, masks, things):
        config, count = self.config, len(masks)
        with no_grad():
            some = int(config.train_num_points * config.oversample_ratio)
            chosen = int(config.importance_sample_ratio * config.train_num_points)
            points = _C.rand(count, some, 2, device=masks.device).to(masks.dtype)
            undecided = (-_read(masks, points).abs()).topk(chosen, 1).indices
            points = points.gather(1, undecided[:, :, None].expand(-1, -1, 2))
            if chosen < config.train_num_points:
                more = _C.rand(count, config.train_num_points - chosen, 2, device=masks.device).to(masks.dtype)
                points = _C.cat([points, more], 1)
        return _read(masks, points), _read(things, points)

    def mask_loss(self, masks, things, count):
        return F.binary_cross_entropy_with_logits(masks, things, reduction="none").mean(1).sum() / count

    def predicted(self, x, pixels, size):
        """Masks of queries, and what they do not see at a size: (batch * heads, queries, places)."""
        masks = masks_of(self.model.transformer_module.decoder.mask_predictor.mask_embedder(x), pixels)
        seen = F.interpolate(masks.detach(), size, mode="bilinear", align_corners=False).flatten(2)
        unseen = seen.sigmoid() < 0.5
        unseen = unseen & ~unseen.all(-1, keepdim=True)
        return masks, unseen.repeat_interleave(self.config.n_head, 0)

    def forward(self, pixel_values, mask_labels=None, class_labels=None):
        transformer, width = self.model.transformer_module, self.config.d_model
        pixels, maps = self.model.pixel_level_module.decoder(self.model.pixel_level_module.encoder(pixel_values))
        sizes = [x.shape[2:] for x in maps]
        levels = list(zip(maps, transformer.level_embed.weight))
        memory = [x.flatten(2).transpose(1, 2) + level for x, level in levels]
        places = [_positions(x, width) for x in maps]
        batch = len(pixels)
        queries = transformer.queries_embedder.weight.expand(batch, -1, -1)
        x, norm = transformer.queries_features.weight.expand(batch, -1, -1), transformer.decoder.layernorm
        mask, unseen = self.predicted(norm(x), pixels, sizes[0])
        classes, masks = [self.class_predictor(norm(x))], [mask]
        for i, layer in enumerate(transformer.decoder.layers):
            x = layer(x, queries, memory[i % 3], places[i % 3], unseen)
            mask, unseen = self.predicted(norm(x), pixels, sizes[(i + 1) % 3])
            classes.append(self.class_predictor(norm(x)))
            masks.append(mask)
        return self.result(classes, masks, mask_labels, class_labels, self.config.deep_supervision)


_DEEP = (2, 2, 18, 2)
globals().update(
    family(
        Mask2FormerConfig,
        {"": (Mask2FormerForSemanticSegmentation, "semantic-segmentation")},
        {
            "mask2former_swin_tiny": {},
            "mask2former_swin_small": dict(swin_depths=_DEEP),
            "mask2former_swin_base": dict(
                swin_embed_dim=128, swin_depths=_DEEP, swin_num_heads=(4, 8, 16, 32), swin_window_size=12
            ),
            "mask2former_swin_large": dict(
                swin_embed_dim=192, swin_depths=_DEEP, swin_num_heads=(6, 12, 24, 48), swin_window_size=12
            ),
            "mask2former_resnet50": dict(backbone="resnet"),
            "mask2former_resnet101": dict(backbone="resnet", backbone_layers=(3, 4, 23, 3)),
        },
    )
)
