"""MaskFormer (Cheng et al., 2021): a picture as a set of classes, each with a mask, by a transformer over the last map of a
ResNet and a pyramid over all of them. transformers' keys.
"""

import dataclasses

from .... import _C, nn
from ....nn import functional as F
from ...registry import family
from ...text.projected import ProjectedAttention
from ..base import ImageConfig
from ..detection.detr import sine_positions
from .backbones import ResNetBackbone
from .queries import QuerySegmentation, focal_loss, focal_pairs, mask_layers, masks_of


@dataclasses.dataclass(frozen=True)
class MaskFormerConfig(ImageConfig):
    """The settings of MaskFormer; the defaults are those of maskformer_resnet50. mask_feature_size: fpn_out_channels if None.

    >>> lucid.models.MaskFormerConfig(num_queries=10).d_model
    256
    """

    num_classes: int = 150
    backbone_layers: tuple = (3, 4, 6, 3)
    d_model: int = 256
    n_head: int = 8
    num_decoder_layers: int = 6
    dim_feedforward: int = 2048
    dropout: float = 0.1
    num_queries: int = 100
    fpn_out_channels: int = 256
    mask_feature_size: int | None = None
    aux_loss: bool = False
    no_object_weight: float = 0.1
    class_weight: float = 1.0
    mask_weight: float = 20.0
    dice_weight: float = 1.0

    model_type = "maskformer"
    names_labels = True
    aliases = {
        **ImageConfig.aliases,
        **dict(fpn_feature_size="fpn_out_channels", cross_entropy_weight="class_weight", use_auxiliary_loss="aux_loss"),
    }
    decoder = {  # the Hub's file has these in a part of their own
        **dict(d_model="d_model", decoder_attention_heads="n_head", decoder_layers="num_decoder_layers"),
        **dict(decoder_ffn_dim="dim_feedforward", dropout="dropout", num_queries="num_queries"),
    }

    def __post_init__(self):
        if self.d_model % self.n_head or self.d_model % 4:
            raise ValueError(f"d_model {self.d_model} is a multiple of 4 and of n_head {self.n_head}")
        if self.fpn_out_channels % 32:
            raise ValueError(f"fpn_out_channels {self.fpn_out_channels} is a multiple of 32")

    @classmethod
    def understood(cls, values):
        values = super().understood(values)
        backbone, decoder = values.pop("backbone_config", None), values.pop("decoder_config", None)
        if backbone is not None:
            if backbone.get("model_type") != "resnet" or backbone.get("layer_type", "bottleneck") != "bottleneck":
                raise ValueError(f"{cls.__name__}: a backbone {backbone.get('model_type')!r} is not implemented, only ResNet")
            values["backbone_layers"] = tuple(backbone.get("depths", (3, 4, 6, 3)))
        for theirs, own in cls.decoder.items() if decoder is not None else ():
            if theirs in decoder:
                values[own] = decoder[theirs]
        return values

    def to_hub(self):
        values = super().to_hub()
        stages = [f"stage{i}" for i in (1, 2, 3, 4)]
        depths = list(values.pop("backbone_layers"))
        values["backbone_config"] = {"model_type": "resnet", "depths": depths, "out_features": stages}
        values["decoder_config"] = {"model_type": "detr", **{a: values.pop(b) for a, b in self.decoder.items()}}
        values.setdefault("mask_feature_size", self.fpn_out_channels)
        return values


def normed(inputs, outputs, kernel=1, act=False):
    """A convolution without bias, normalisation in 32 groups, and ReLU if asked for.

    >>> from lucid.models.vision.segmentation.maskformer import normed
    >>> list(normed(2, 32).state_dict())
    ['0.weight', '1.weight', '1.bias']
    """
    layers = [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False), nn.GroupNorm(32, outputs)]
    return nn.Sequential(*layers, *([nn.ReLU()] if act else []))


class _Pyramid(nn.Module):
    def __init__(self, channels, width, outputs):
        super().__init__()
        self.fpn, layers = nn.Module(), []
        self.fpn.stem = normed(channels[-1], width, 3, act=True)
        for inputs in channels[-2::-1]:
            layer = nn.Module()
            layer.proj, layer.block = normed(inputs, width), normed(width, width, 3, act=True)
            layers.append(layer)
        self.fpn.layers, self.mask_projection = nn.ModuleList(layers), nn.Conv2d(width, outputs, 3, padding=1)

    def forward(self, maps):
        x = self.fpn.stem(maps[-1])
        for layer, side in zip(self.fpn.layers, maps[-2::-1]):
            side = layer.proj(side)
            x = layer.block(F.interpolate(x, side.shape[2:], mode="nearest") + side)
        return self.mask_projection(x)


class _Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, names = config.d_model, ("q_proj", "k_proj", "v_proj", "o_proj")
        self.self_attn, self.encoder_attn = (ProjectedAttention(width, config.n_head, names) for _ in range(2))
        self.mlp, self.dropout = nn.Module(), nn.Dropout(config.dropout)
        self.mlp.fc1, self.mlp.fc2 = nn.Linear(width, config.dim_feedforward), nn.Linear(config.dim_feedforward, width)
        self.self_attn_layer_norm, self.encoder_attn_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.final_layer_norm = nn.LayerNorm(width)

    def forward(self, x, queries, memory, places):
        x = self.self_attn_layer_norm(x + self.dropout(self.self_attn(x, places=queries)))
        y = self.encoder_attn(x, memory, places=queries, source_places=places)
        x = self.encoder_attn_layer_norm(x + self.dropout(y))
        return self.final_layer_norm(x + self.dropout(self.mlp.fc2(F.relu(self.mlp.fc1(x)))))


class MaskFormerForSemanticSegmentation(QuerySegmentation):
    """MaskFormer: images in, classes and masks of queries out; `loss` with mask_labels and class_labels, lists with the masks
    (n, height, width) and classes (n,) of every image's things. `post_process` gives the class of every pixel.

    >>> config = lucid.models.MaskFormerConfig(num_classes=3, backbone_layers=(1, 1, 1, 1), d_model=16, n_head=2,
    ...     num_decoder_layers=1, dim_feedforward=32, num_queries=5, fpn_out_channels=32)
    >>> model = lucid.models.MaskFormerForSemanticSegmentation(config).eval()
    >>> out = model(lucid.zeros(1, 3, 64, 64))
    >>> tuple(out.class_queries_logits.shape), tuple(out.masks_queries_logits.shape)
    ((1, 5, 4), (1, 5, 16, 16))
    >>> tuple(model.post_process(out, [(64, 64)])[0].shape)
    (64, 64)
    """

    config_class = MaskFormerConfig
    stem_keys = ("model.pixel_level_module.encoder.embedder.embedder.convolution.weight",)
    renamed_keys = (  # of published files
        (r"(transformer_module\.decoder\.layers\.\d+)\.(fc\d)\.", r"\1.mlp.\2."),
        (r"(transformer_module\.decoder\.layers\.\d+\.\w+_attn)\.out_proj\.", r"\1.o_proj."),
    )

    def __init__(self, config):
        super().__init__(config)
        self.model, width = nn.Module(), config.d_model
        features = config.mask_feature_size or config.fpn_out_channels
        self.model.pixel_level_module, self.model.transformer_module = nn.Module(), nn.Module()
        pixels, transformer = self.model.pixel_level_module, self.model.transformer_module
        pixels.encoder = ResNetBackbone(config.in_channels, config.backbone_layers)
        pixels.decoder = _Pyramid(pixels.encoder.channels, config.fpn_out_channels, features)
        transformer.queries_embedder = nn.Embedding(config.num_queries, width)
        deepest = pixels.encoder.channels[-1]
        transformer.input_projection = nn.Identity() if deepest == width else nn.Conv2d(deepest, width, 1)
        transformer.decoder = nn.Module()
        transformer.decoder.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_decoder_layers))
        transformer.decoder.layernorm = nn.LayerNorm(width)
        for value in transformer.decoder.parameters():
            if value.ndim > 1:
                nn.init.xavier_uniform_(value)
        self.class_predictor = nn.Linear(width, config.num_classes + 1)
        self.mask_embedder = mask_layers(width, features)
        self.add_weights_of_classes(config)

    pair_costs = staticmethod(focal_pairs)
    mask_loss = staticmethod(focal_loss)

    def compared_for_matching(self, masks, things):
        things = F.interpolate(things[:, None], masks.shape[-2:], mode="nearest")[:, 0]
        return masks.flatten(1), things.flatten(1)

    def compared(self, masks, things):
        masks = F.interpolate(masks[:, None], things.shape[-2:], mode="bilinear", align_corners=False)[:, 0]
        return masks.flatten(1), things.flatten(1)

    def forward(self, pixel_values, mask_labels=None, class_labels=None):
        transformer, maps = self.model.transformer_module, self.model.pixel_level_module.encoder(pixel_values)
        pixels = self.model.pixel_level_module.decoder(maps)
        memory = transformer.input_projection(maps[-1])
        real = _C.ones(len(memory), *memory.shape[2:], dtype=memory.dtype, device=memory.device)
        places = sine_positions(real, self.config.d_model).to(memory.dtype)
        memory = memory.flatten(2).transpose(1, 2)
        queries = transformer.queries_embedder.weight.expand(len(memory), -1, -1)
        x, found = _C.zeros_like(queries), []
        for layer in transformer.decoder.layers:
            x = layer(x, queries, memory, places)
            found.append(x)
        found = [transformer.decoder.layernorm(y) for y in (found if self.config.aux_loss else found[-1:])]
        classes = [self.class_predictor(y) for y in found]
        masks = [masks_of(self.mask_embedder(y), pixels) for y in found]
        return self.result(classes, masks, mask_labels, class_labels, deep=True)


globals().update(
    family(
        MaskFormerConfig,
        {"": (MaskFormerForSemanticSegmentation, "semantic-segmentation")},
        {"maskformer_resnet50": {}, "maskformer_resnet101": dict(backbone_layers=(3, 4, 23, 3))},
    )
)
